//! One `Set-Cookie` header, taken apart (RFC 6265bis section 5.6): what it says, not yet whether it may.

use std::time::Duration;

use super::date::cookie_date;
use crate::clock::Time;

/// Name and value of a cookie together, at most, bytes.
pub const MAX_COOKIE_BYTES: usize = 4_096;
/// Value of an attribute, at most, bytes; a longer one counts as not written.
pub const MAX_ATTRIBUTE_BYTES: usize = 1_024;
/// A cookie lives no longer than this, whatever it says.
pub(super) const MAX_AGE: Duration = Duration::from_secs(400 * 86_400);

/// What a header says.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
    pub(super) expires: Option<Time>,
    /// Without the dot that may start it; as written otherwise.
    pub(super) domain: Option<&'a str>,
    pub(super) path: Option<&'a str>,
    pub(super) secure: bool,
}

/// Takes a header apart. `None` if it is none that may be kept: control characters, neither name nor value, too long.
pub(super) fn parse(text: &str, now: Time) -> Option<Line<'_>> {
    if text.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        return None;
    }
    let mut parts = text.split(';');
    let pair = parts.next()?;
    let (name, value) = pair.split_once('=').unwrap_or(("", pair));
    let (name, value) = (trimmed(name), trimmed(value));
    if name.len() + value.len() > MAX_COOKIE_BYTES || (name.is_empty() && value.is_empty()) {
        return None;
    }
    let mut line = Line {
        name,
        value,
        expires: None,
        domain: None,
        path: None,
        secure: false,
    };
    let mut max_age = None;
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        let (key, value) = (trimmed(key), trimmed(value));
        if value.len() > MAX_ATTRIBUTE_BYTES {
            continue;
        }
        // of an attribute that stands twice the last one counts
        match key.to_ascii_lowercase().as_str() {
            "expires" => line.expires = cookie_date(value).or(line.expires),
            "max-age" => max_age = age(value).or(max_age),
            "domain" => line.domain = Some(value.strip_prefix('.').unwrap_or(value)).filter(|name| !name.is_empty()),
            "path" => line.path = Some(value).filter(|path| path.starts_with('/')),
            "secure" => line.secure = true,
            _ => {}
        }
    }
    if let Some(age) = max_age {
        line.expires = Some(if age.is_zero() { Time(0) } else { now + age.min(MAX_AGE) });
    }
    line.expires = line.expires.map(|at| at.min(now + MAX_AGE));
    Some(line)
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

/// Seconds; none at all for a number below one. `None` if it is no number.
fn age(value: &str) -> Option<Duration> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if value.starts_with('-') {
        return Some(Duration::ZERO);
    }
    Some(digits.parse().map_or(MAX_AGE, Duration::from_secs))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_700_000_000_000_000);

    fn parsed(text: &str) -> Option<(&str, &str)> {
        parse(text, NOW).map(|line| (line.name, line.value))
    }

    #[test]
    fn name_and_value_are_what_stands_around_the_first_equals_sign() {
        for (text, pair) in [
            ("a=b", ("a", "b")),
            (" a \t= b c ; x", ("a", "b c")),
            ("a=b=c", ("a", "b=c")),
            ("a=\"q;x\"", ("a", "\"q")),
            ("a=", ("a", "")),
            ("=b", ("", "b")),
            ("b", ("", "b")),
            ("a=\u{e4}", ("a", "\u{e4}")),
        ] {
            assert_eq!(parsed(text), Some(pair), "{text}");
        }
        for text in ["", ";", "=", " = ;path=/", "a=b\nc", "a=\u{0}", "a=b; path=\u{7f}"] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_cookie_has_so_many_bytes_and_not_one_more() {
        let longest = format!("n={}", "v".repeat(MAX_COOKIE_BYTES - 1));
        assert!(parsed(&longest).is_some());
        assert!(parsed(&format!("{longest}v")).is_none());
        let path = format!("/{}", "p".repeat(MAX_ATTRIBUTE_BYTES - 1));
        let line = format!("a=b; path={path}");
        assert_eq!(parse(&line, NOW).unwrap().path, Some(path.as_str()));
        assert_eq!(parse(&format!("{line}p"), NOW).unwrap().path, None);
    }

    #[test]
    fn attributes_are_read_in_any_case_and_the_last_one_counts() {
        let line = parse(
            "a=b;PATH=/x; Domain=.One.example;secure ;domain = two.example; HttpOnly; samesite=none;path=y;Path=/z",
            NOW,
        )
        .unwrap();
        assert_eq!(
            (line.domain, line.path, line.secure),
            (Some("two.example"), Some("/z"), true)
        );
        let line = parse("a=b; Path=/x; path=x; domain=x; domain=", NOW).unwrap();
        assert_eq!(
            (line.domain, line.path),
            (None, None),
            "the last one counts, and it asks for the default"
        );
    }

    #[test]
    fn max_age_beats_expires_and_both_are_bounded() {
        let expires = |attributes: &str| parse(&format!("a=b; {attributes}"), NOW).unwrap().expires;
        let date = "expires=Wed, 15 Nov 2023 00:00:00 GMT";
        let of_date = Time(1_700_006_400_000_000);
        assert_eq!(expires(date), Some(of_date));
        assert_eq!(
            expires(&format!("Max-Age=10; {date}")),
            Some(NOW + Duration::from_secs(10))
        );
        assert_eq!(expires("max-age=0"), Some(Time(0)));
        assert_eq!(expires("max-age=-5"), Some(Time(0)));
        for nothing in ["max-age=1x", "max-age=", "max-age=-", "max-age=+1", "expires=soon", ""] {
            assert_eq!(expires(nothing), None, "{nothing}");
        }
        assert_eq!(expires(&format!("{date}; max-age=x; expires=soon")), Some(of_date));
        for far in [
            "max-age=99999999999",
            "max-age=99999999999999999999999999",
            "expires=1 Jan 9999 00:00:00",
        ] {
            assert_eq!(expires(far), Some(NOW + MAX_AGE), "{far}");
        }
    }
}
