//! Hosts by name in tables of settings.

/// Does a pattern cover a host, by its key? A pattern is a host key (`example.com`, `example.com:8080`), or `*.` and a
/// domain: the domain and every host below it, on any port.
#[must_use]
pub fn covers_host(pattern: &str, host_key: &str) -> bool {
    let name = |key: &str| key.rsplit_once(':').map_or(key.len(), |(name, _)| name.len());
    match pattern.strip_prefix("*.") {
        None => pattern.eq_ignore_ascii_case(host_key),
        Some(domain) => {
            let host = host_key.get(..name(host_key)).unwrap_or(host_key);
            let below = host
                .len()
                .checked_sub(domain.len())
                .and_then(|at| host.split_at_checked(at));
            below.is_some_and(|(sub, rest)| rest.eq_ignore_ascii_case(domain) && (sub.is_empty() || sub.ends_with('.')))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_a_host_or_a_domain() {
        for (pattern, host, covered) in [
            ("h.test", "h.test", true),
            ("H.test", "h.test", true),
            ("h.test", "h.test:8080", false),
            ("h.test:8080", "h.test:8080", true),
            ("*.h.test", "h.test", true),
            ("*.h.test", "a.b.h.test:81", true),
            ("*.h.test", "ah.test", false),
            ("*.h.test", "test", false),
        ] {
            assert_eq!(covers_host(pattern, host), covered, "{pattern} {host}");
        }
    }
}
