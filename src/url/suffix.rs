//! Where a name ends that somebody registered: the public suffix list. Holds `psl`.

/// The registrable domain of a host, or the host itself where there is none (addresses, single labels, public
/// suffixes). Without the dot that may end a host.
#[must_use]
pub fn registrable_domain(host: &str) -> &str {
    let name = host.strip_suffix('.').unwrap_or(host);
    if is_address(name) {
        name
    } else {
        psl::domain_str(name).unwrap_or(name)
    }
}

/// Is it a name below which anybody can register (`com`, `co.uk`, `github.io`), so that nothing is shared there? In
/// A-labels and lower case. A single label is one, listed or not.
#[must_use]
pub fn is_public_suffix(domain: &str) -> bool {
    !is_address(domain) && psl::suffix_str(domain) == Some(domain)
}

/// Is this host, as it stands in a parsed address, an IP address? In a host that is a domain, a last label that starts
/// with a digit would have made it an IPv4 address or invalid, except for labels such as `1a`, which no public suffix
/// has.
#[must_use]
pub fn is_address(host: &str) -> bool {
    host.starts_with('[')
        || host
            .rsplit('.')
            .next()
            .is_some_and(|label| label.starts_with(|c: char| c.is_ascii_digit()))
}

/// Is a registrable domain left of this host?
pub(super) fn can_be_registered(host: &str) -> bool {
    psl::domain_str(host).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_are_told_from_names_below_them() {
        for suffix in ["com", "co.uk", "github.io", "localhost", "test"] {
            assert!(is_public_suffix(suffix), "{suffix}");
            assert_eq!(registrable_domain(suffix), suffix);
        }
        for name in ["example.com", "a.co.uk", "me.github.io", "192.0.2.1", "[::1]", "a.test"] {
            assert!(!is_public_suffix(name), "{name}");
            assert_eq!(registrable_domain(&format!("{name}.")), name);
        }
        assert_eq!(registrable_domain("x.y.example.com"), "example.com");
    }
}
