//! What single settings ask of their value beyond its form. Each says what it expected.

use std::path::PathBuf;
use std::time::Duration;

use super::file::{hint, nearest};
use super::value::{duration, show_size, size, whole};
use crate::extract::fields::Builtin;
use crate::fetch::dns::Cidr;
use crate::fetch::filter::{MAX_TYPES, MediaRange};
use crate::seen::sizing::{MAX_FP, MIN_FP};
use crate::url::Rules;

/// Smallest WARC file size, bytes: below it every record would get a file of its own.
pub(super) const MIN_WARC_SIZE: u64 = 1 << 20;
/// Largest `--delay-factor`: a longer pause than this many times the response is `--delay`'s business.
const MAX_FACTOR: f64 = 1_000.0;
/// Longest text of a header made from a setting, bytes.
pub(super) const MAX_HEADER_BYTES: usize = 1_000;
/// Longest start of a WARC file name, bytes.
pub(super) const MAX_PREFIX_BYTES: usize = 100;

/// Reads every value of a list; the first that fails is named.
///
/// # Errors
/// What was expected, and what was found.
pub(super) fn each<T>(values: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    values
        .iter()
        .map(|text| read(text).map_err(|expected| format!("{expected}, found {text:?}")))
        .collect()
}

/// As [`each`], of values that may hold a secret.
///
/// # Errors
/// What was expected, and which of them it is, counted from one.
pub(super) fn each_secret<T>(values: &[String], read: impl Fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    let read = |(n, text): (usize, &String)| read(text).map_err(|expected| format!("value {}: {expected}", n + 1));
    values.iter().enumerate().map(read).collect()
}

/// A whole number of at least one.
///
/// # Errors
/// What was expected.
pub(super) fn count(text: &str) -> Result<u64, String> {
    whole(text, 1..=u64::MAX)
}

/// A number of times that a response's length is waited.
///
/// # Errors
/// What was expected.
pub(super) fn factor(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=MAX_FACTOR).contains(number));
    number.ok_or_else(|| format!("expected a number from 0 to {MAX_FACTOR}"))
}

/// A rate that a filter can have.
///
/// # Errors
/// What was expected.
pub(super) fn fp_rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (MIN_FP..=MAX_FP).contains(rate));
    rate.ok_or_else(|| format!("expected a number from {MIN_FP} to {MAX_FP}"))
}

/// A size above zero.
///
/// # Errors
/// What was expected.
pub(super) fn some_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("expected a size above zero".to_owned()),
        bytes => Ok(bytes),
    }
}

/// A duration above zero.
///
/// # Errors
/// What was expected.
pub(super) fn some_duration(text: &str) -> Result<Duration, String> {
    let span = duration(text)?;
    if span.is_zero() {
        Err("expected a duration above zero".to_owned())
    } else {
        Ok(span)
    }
}

/// A size of at least [`MIN_WARC_SIZE`].
///
/// # Errors
/// What was expected.
pub(super) fn warc_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        bytes if bytes < MIN_WARC_SIZE => Err(format!("expected a size of at least {}", show_size(MIN_WARC_SIZE))),
        bytes => Ok(bytes),
    }
}

/// A regular expression, kept as text.
///
/// # Errors
/// What was expected, with the reason.
pub(super) fn pattern(text: &str) -> Result<String, String> {
    match regex::Regex::new(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => {
            let error = error.to_string();
            let reason = error.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Err(format!("expected a regular expression ({reason})"))
        }
    }
}

/// Media types, several of them in one value with commas between.
///
/// # Errors
/// What was expected, and what was found.
pub(super) fn media_types(values: &[String]) -> Result<Vec<MediaRange>, String> {
    let mut types = Vec::new();
    for text in values.iter().flat_map(|value| value.split(',')) {
        types.push(MediaRange::parse(text).map_err(|expected| format!("{expected}, found {text:?}"))?);
    }
    if types.len() > MAX_TYPES {
        return Err(format!("expected {MAX_TYPES} media types at most"));
    }
    Ok(types)
}

/// Names of query parameters, as addresses spell them.
///
/// # Errors
/// What was expected, and what was found.
pub(super) fn drop_params(values: &[String]) -> Result<Vec<String>, String> {
    let mut rules = Rules::default();
    for name in values {
        rules
            .drop_param(name)
            .map_err(|expected| format!("{expected}, found {name:?}"))?;
    }
    Ok(rules.drop_params)
}

/// Names of built-in fields, commas between them, each once.
///
/// # Errors
/// What was expected, and what was found.
pub(super) fn builtins(values: &[String]) -> Result<Vec<Builtin>, String> {
    let mut found = Vec::new();
    let names = values.iter().flat_map(|value| value.split(',')).map(str::trim);
    for name in names.filter(|name| !name.is_empty()) {
        let Some(builtin) = Builtin::of(name) else {
            let known = Builtin::ALL.map(|builtin| builtin.name().to_owned());
            let near = hint(nearest(name, known.clone()));
            return Err(format!("expected some of {}, found {name:?}{near}", known.join(", ")));
        };
        if !found.contains(&builtin) {
            found.push(builtin);
        }
    }
    Ok(found)
}

/// A CIDR range.
///
/// # Errors
/// What was expected.
pub(super) fn address(text: &str) -> Result<Cidr, String> {
    text.parse()
        .map_err(|_| "expected an address range such as 127.0.0.0/8 or ::1/128".to_owned())
}

/// The text of a request header: printable ASCII, so that nothing can be smuggled into the request.
///
/// # Errors
/// What was expected.
pub(super) fn header(text: &str) -> Result<String, String> {
    let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    if text.is_empty() || text.len() > MAX_HEADER_BYTES || !printable {
        return Err(format!("expected 1 to {MAX_HEADER_BYTES} printable ASCII characters"));
    }
    Ok(text.to_owned())
}

/// A URL or a mail address that fits into the comment of a User-Agent.
///
/// # Errors
/// What was expected.
pub(super) fn contact(text: &str) -> Result<String, String> {
    let url = ["https://", "http://", "mailto:"]
        .iter()
        .any(|scheme| text.len() > scheme.len() && text.starts_with(scheme));
    let mail = text
        .split_once('@')
        .is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    if !(url || mail) || text.contains([' ', '(', ')']) {
        return Err("expected an http(s) URL or a mail address".to_owned());
    }
    header(text)
}

/// A folder's path.
///
/// # Errors
/// What was expected.
pub(super) fn folder(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        Err("expected a folder".to_owned())
    } else {
        Ok(text.into())
    }
}

/// The start of a file name: no separators, not hidden.
///
/// # Errors
/// What was expected.
pub(super) fn prefix(text: &str) -> Result<String, String> {
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if text.is_empty() || text.len() > MAX_PREFIX_BYTES || !plain || text.starts_with('.') {
        return Err(format!(
            "expected 1 to {MAX_PREFIX_BYTES} letters, digits, - _ or . (not first)"
        ));
    }
    Ok(text.to_owned())
}

/// `text` or `json`; true for JSON.
///
/// # Errors
/// What was expected.
pub(super) fn log_format(text: &str) -> Result<bool, String> {
    match text {
        "json" => Ok(true),
        "text" => Ok(false),
        _ => Err("expected one of text, json".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_one_that_a_filter_can_have() {
        assert_eq!(fp_rate("0.000001"), Ok(MIN_FP));
        assert_eq!(fp_rate("0.5"), Ok(MAX_FP));
        for text in ["0", "-1", "0.0000009", "0.6", "NaN", "much"] {
            assert!(fp_rate(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_contact_is_an_address_a_person_can_use() {
        for text in ["https://example.com/bot", "me@example.org", "mailto:me@example.org"] {
            assert_eq!(contact(text), Ok(text.to_owned()));
        }
        for text in [
            "",
            "me",
            "https://",
            "@example.org",
            "me@localhost",
            "https://e.com/ x",
            "https://e.com/(x)",
            "m\u{e4}x@e.com",
        ] {
            assert!(contact(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_header_cannot_carry_a_second_one() {
        assert!(header("bot/1.0\r\nHost: evil").is_err());
        assert!(header(&"x".repeat(MAX_HEADER_BYTES)).is_ok());
        assert!(header(&"x".repeat(MAX_HEADER_BYTES + 1)).is_err());
    }

    #[test]
    fn a_prefix_stays_in_its_folder() {
        for text in ["", "../x", "a/b", ".hidden", "a b", &"x".repeat(MAX_PREFIX_BYTES + 1)] {
            assert!(prefix(text).is_err(), "{text}");
        }
        assert_eq!(prefix("my-crawl_1.0"), Ok("my-crawl_1.0".to_owned()));
    }

    #[test]
    fn limits_are_reached_and_not_passed() {
        assert!(warc_size("1MiB").is_ok());
        assert!(warc_size("1048575").is_err());
        assert!(some_size("0").is_err());
        assert!(some_duration("0").is_err());
        assert!(count("0").is_err());
        assert!(folder("").is_err());
    }

    #[test]
    fn media_types_are_lists_with_commas() {
        let read = |values: &[&str]| {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            media_types(&values)
        };
        assert_eq!(read(&["text/html,image/*", "a/b"]).unwrap().len(), 3);
        assert!(read(&["text/html,,a/b"]).unwrap_err().ends_with("found \"\""));
        let many = vec!["a/b"; MAX_TYPES].join(",");
        assert!(read(&[&many]).is_ok() && read(&[&many, "c/d"]).is_err());
    }

    #[test]
    fn built_in_fields_are_named() {
        let read = |values: &[&str]| builtins(&values.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        assert_eq!(read(&["title, h1", "title,"]), Ok(vec![Builtin::Title, Builtin::H1]));
        assert_eq!(read(&[]), Ok(Vec::new()));
        let error = read(&["title,tilte"]).unwrap_err();
        assert!(error.ends_with("found \"tilte\"; did you mean title?"), "{error}");
    }

    #[test]
    fn a_bad_pattern_says_why() {
        let error = each(&["ok".to_owned(), "(".to_owned()], pattern).unwrap_err();
        assert_eq!(error, r#"expected a regular expression (unclosed group), found "(""#);
    }
}
