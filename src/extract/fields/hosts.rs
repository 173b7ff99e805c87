//! Patterns of hosts: `example.com`, `example.com:8080`, `*.example.com`.

/// Longest pattern, bytes: that of a host's name, a star and a port.
const MAX_BYTES: usize = 253 + 2 + 6;

/// Is this a pattern?
///
/// # Errors
/// What was expected.
pub(crate) fn check(pattern: &str) -> Result<(), String> {
    let (name, port) = split(pattern.strip_prefix("*.").unwrap_or(pattern));
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '[' | ']' | ':');
    let has_port = port.is_none_or(|port| port.parse::<u16>().is_ok());
    if name.is_empty() || pattern.len() > MAX_BYTES || !name.chars().all(is_name) || !has_port {
        return Err(format!(
            "expected a host such as \"example.com\", \"example.com:8080\" or \"*.example.com\" (the domain and every host \
             below it), found {pattern:?}"
        ));
    }
    Ok(())
}

/// Does a pattern cover a host, given with its port if that is not its scheme's? Without a port it covers all of them.
pub(super) fn covers(pattern: &str, host: &str) -> bool {
    let (pattern, below) = match pattern.strip_prefix("*.") {
        Some(domain) => (domain, true),
        None => (pattern, false),
    };
    let ((domain, wanted), (name, port)) = (split(pattern), split(host));
    if wanted.is_some() && wanted != port {
        return false;
    }
    let same = |name: &str| name.eq_ignore_ascii_case(domain);
    let under = |name: &str| {
        let at = name.len().checked_sub(domain.len())?;
        let (sub, rest) = name.split_at_checked(at)?;
        Some(sub.ends_with('.') && same(rest))
    };
    same(name) || below && under(name) == Some(true)
}

/// Name and port. A name in brackets has colons of its own.
fn split(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_covers_its_host_or_its_domain() {
        for (pattern, host, is_so) in [
            ("a.test", "a.test", true),
            ("A.test", "a.test:81", true),
            ("a.test:81", "a.test:81", true),
            ("a.test:81", "a.test", false),
            ("a.test", "x.a.test", false),
            ("*.a.test", "x.a.test:81", true),
            ("*.a.test", "a.test", true),
            ("*.a.test", "xa.test", false),
            ("*.a.test:81", "x.a.test", false),
            ("[::1]", "[::1]:80", true),
            ("[::1]:81", "[::1]", false),
        ] {
            assert_eq!(covers(pattern, host), is_so, "{pattern} {host}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_told() {
        for pattern in [
            "",
            "*",
            "*.",
            "http://a.test",
            "a.test/x",
            "a b",
            "a.test:x",
            "a.test:",
            "a.*",
            &"x".repeat(300),
        ] {
            assert!(check(pattern).is_err(), "{pattern}");
        }
        for pattern in ["a", "a.test:80", "*.a.test", "[::1]:80", "m\u{fc}nchen.de", "127.0.0.1"] {
            assert_eq!(check(pattern), Ok(()), "{pattern}");
        }
    }
}
