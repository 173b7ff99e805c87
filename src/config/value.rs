//! How values are written: sizes, durations, numbers, yes and no. One reader for flags, environment and file.
//!
//! Every reader fails with what it expected, so that the caller only adds where the value stood.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;
use serde::de::{DeserializeOwned, IntoDeserializer, value::Error as WordError};

/// Longest duration that can be set, in seconds: ten years. A longer one is a slip of the pen.
pub const MAX_DURATION_S: u64 = 10 * 365 * 86_400;

const SIZE_HELP: &str = "expected a size such as 500000, 64KB, 100MiB or 1GiB";
const DURATION_HELP: &str = "expected a duration such as 500ms, 2s, 3m, 1h or 2d (at most ten years)";

/// Units of a size and their bytes, largest first: a size is printed in the first that divides it.
const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("KB", 1_000),
    ("B", 1),
];

/// Units of a duration and their milliseconds, largest first.
const DURATION_UNITS: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1_000),
    ("ms", 1),
];

/// Reads a size in bytes: a plain number, or a number (also `1.5`) and a unit: B, KiB, MiB, GiB, TiB (powers of
/// 1024), KB, MB, GB, TB (powers of 1000). Case does not matter. A bare `K` or `M` is refused: it means either.
///
/// # Errors
/// What was expected.
pub fn size(text: &str) -> Result<u64, String> {
    let fail = || SIZE_HELP.to_owned();
    let (number, unit) = split_number(text);
    let bytes = if unit.is_empty() {
        1
    } else {
        SIZE_UNITS
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(unit))
            .ok_or_else(fail)?
            .1
    };
    scaled(number, bytes).ok_or_else(fail)
}

/// Writes a size so that [`size`] reads the same number: in the largest unit that divides it.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    if bytes == 0 {
        return "0B".to_owned();
    }
    let unit = SIZE_UNITS.iter().find(|(_, unit)| bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// Reads a duration: numbers (also `1.5`) with their units ms, s, m, h, d, one after the other (`1h30m`); a plain
/// number is seconds. Kept to the millisecond.
///
/// # Errors
/// What was expected.
pub fn duration(text: &str) -> Result<Duration, String> {
    let fail = || DURATION_HELP.to_owned();
    let mut rest = text.trim();
    let mut total: u64 = 0;
    let mut parts = 0_u32;
    while !rest.is_empty() {
        let (number, tail) = split_number(rest);
        let end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, after) = tail.split_at(end);
        let millis = match unit {
            "" if parts == 0 && after.is_empty() => 1_000,
            unit => {
                DURATION_UNITS
                    .iter()
                    .find(|(name, _)| name.eq_ignore_ascii_case(unit))
                    .ok_or_else(fail)?
                    .1
            }
        };
        total = scaled(number, millis)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(fail)?;
        parts += 1;
        rest = after;
    }
    if parts == 0 || total > MAX_DURATION_S * 1_000 {
        return Err(fail());
    }
    Ok(Duration::from_millis(total))
}

/// Writes a duration so that [`duration`] reads the same one: in the largest unit that divides it.
#[must_use]
pub fn show_duration(span: Duration) -> String {
    let millis = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    if millis == 0 {
        return "0s".to_owned();
    }
    let unit = DURATION_UNITS.iter().find(|(_, unit)| millis.is_multiple_of(*unit));
    unit.map_or_else(
        || format!("{millis}ms"),
        |(name, unit)| format!("{}{name}", millis / unit),
    )
}

/// Reads a whole number within limits; `_` and `,` between digits are allowed.
///
/// # Errors
/// What was expected.
pub fn whole<T>(text: &str, limits: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display + Copy + Into<u64>,
{
    let fail = || {
        let (low, high): (u64, u64) = ((*limits.start()).into(), (*limits.end()).into());
        if high == u64::MAX {
            format!("expected a whole number of at least {low}")
        } else {
            format!("expected a whole number from {low} to {}", thousands(high))
        }
    };
    let digits = text.replace(['_', ','], "");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(fail());
    }
    digits
        .parse()
        .ok()
        .filter(|number| limits.contains(number))
        .ok_or_else(fail)
}

/// Reads a number greater than `above` and at most `most`. Never NaN or infinite.
///
/// # Errors
/// What was expected.
pub fn real(text: &str, above: f64, most: f64) -> Result<f64, String> {
    let number = text
        .parse::<f64>()
        .ok()
        .filter(|number| *number > above && *number <= most);
    number.ok_or_else(|| format!("expected a number above {above} and at most {most}"))
}

/// Reads yes or no (true or false, on or off, 1 or 0).
///
/// # Errors
/// What was expected.
pub fn yes_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err("expected yes or no".to_owned()),
    }
}

/// Reads `none` as "not set", and anything else with `read`: a flag can so take back what a file sets.
///
/// # Errors
/// What `read` expected.
pub fn optional<T>(text: &str, read: impl FnOnce(&str) -> Result<T, String>) -> Result<Option<T>, String> {
    if text.eq_ignore_ascii_case("none") {
        return Ok(None);
    }
    read(text).map(Some).map_err(|expected| format!("{expected}, or none"))
}

/// Reads one of the words of an enum, as serde spells them.
///
/// # Errors
/// The words that were expected.
pub fn word<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    T::deserialize(text.into_deserializer()).map_err(|error: WordError| {
        let message = error.to_string().replace('`', "");
        let expected = message.find("expected ").and_then(|start| message.get(start..));
        expected.unwrap_or(&message).to_owned()
    })
}

/// Writes a word of an enum, as serde spells it.
#[must_use]
pub fn show_word<T: Serialize>(value: T) -> String {
    serde_json::to_value(value)
        .ok()
        .and_then(|json| json.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Reads `HOST:PORT:ADDRESS` as curl does; the address may carry another port to connect to (`a.test:80:127.0.0.1:8080`).
///
/// # Errors
/// What was expected.
pub fn resolve(text: &str) -> Result<(String, u16, SocketAddr), String> {
    let fail = || "expected HOST:PORT:ADDRESS, such as example.com:443:192.0.2.1".to_owned();
    let (host, rest) = match text.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
        Some((inner, rest)) => (format!("[{inner}]"), rest.strip_prefix(':').ok_or_else(fail)?),
        None => text
            .split_once(':')
            .map(|(host, rest)| (host.to_ascii_lowercase(), rest))
            .ok_or_else(fail)?,
    };
    let (port, address) = rest.split_once(':').ok_or_else(fail)?;
    let port: u16 = port.parse().ok().filter(|port| *port > 0).ok_or_else(fail)?;
    let bare = address
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(address);
    let target = match bare.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, port),
        Err(_) => address.parse().map_err(|_| fail())?,
    };
    if host.is_empty() {
        return Err(fail());
    }
    Ok((host, port, target))
}

/// Writes such an address as [`resolve`] reads it.
#[must_use]
pub fn show_resolve((host, port, target): &(String, u16, SocketAddr)) -> String {
    if target.port() == *port {
        format!("{host}:{port}:{}", target.ip())
    } else {
        format!("{host}:{port}:{target}")
    }
}

/// A number with a comma between thousands.
#[must_use]
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The leading number of a text (digits and points) and the rest without white space around it.
fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    (number, rest.trim())
}

/// `number` (digits with at most one point) times `unit`, rounded down. `None` if it is no number or too large.
fn scaled(number: &str, unit: u64) -> Option<u64> {
    let (integral, fraction) = number.split_once('.').unwrap_or((number, ""));
    if integral.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.len() > 9 {
        return None;
    }
    let parts = integral.parse::<u64>().ok()?.checked_mul(unit)?;
    if fraction.is_empty() {
        return Some(parts);
    }
    let ten = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let rest = fraction.parse::<u128>().ok()? * u128::from(unit) / ten;
    parts.checked_add(u64::try_from(rest).ok()?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scope::ScopeKind;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("1", 1),
            ("17B", 17),
            ("1KiB", 1_024),
            ("1kib", 1_024),
            ("1KB", 1_000),
            ("1.5 MiB", 1_572_864),
            ("100MiB", 104_857_600),
            ("1GiB", 1 << 30),
            ("2GB", 2_000_000_000),
            ("0.1GB", 100_000_000),
            ("3TiB", 3 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "MiB",
            "1M",
            "1K",
            "-1",
            "1.",
            ".5",
            "1..5",
            "1.2.3",
            "1 MiB x",
            "20000000TiB",
            "1e6",
            "NaN",
        ] {
            assert_eq!(size(text), Err(SIZE_HELP.to_owned()), "{text}");
        }
    }

    #[test]
    fn durations_are_read_as_people_write_them() {
        for (text, millis) in [
            ("500ms", 500),
            ("2s", 2_000),
            ("2 s", 2_000),
            ("3m", 180_000),
            ("1h", 3_600_000),
            ("2d", 172_800_000),
            ("2", 2_000),
            ("0", 0),
            ("0.25", 250),
            ("1.5s", 1_500),
            ("1h30m", 5_400_000),
            ("1m 30s", 90_000),
            ("2D", 172_800_000),
            ("3650d", MAX_DURATION_S * 1_000),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "",
            "s",
            "1x",
            "-1s",
            "1s2",
            "2 3",
            "3651d",
            "99999999999999999999s",
            "1e3s",
            "1.s",
            "ms500",
        ] {
            assert_eq!(duration(text), Err(DURATION_HELP.to_owned()), "{text}");
        }
    }

    #[test]
    fn sizes_and_durations_are_shown_in_their_largest_unit() {
        assert_eq!(show_size(0), "0B");
        assert_eq!(show_size(104_857_600), "100MiB");
        assert_eq!(show_size(2_000_000_000), "2GB");
        assert_eq!(show_size(1_000_001), "1000001B");
        assert_eq!(show_duration(Duration::ZERO), "0s");
        assert_eq!(show_duration(Duration::from_secs(120)), "2m");
        assert_eq!(show_duration(Duration::from_millis(1_500)), "1500ms");
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(bytes: u64, millis in 0..=MAX_DURATION_S * 1_000) {
            prop_assert_eq!(size(&show_size(bytes)), Ok(bytes));
            let span = Duration::from_millis(millis);
            prop_assert_eq!(duration(&show_duration(span)), Ok(span));
        }

        #[test]
        fn no_text_makes_a_reader_fail_otherwise(text in "\\PC{0,20}") {
            let _ = (size(&text), duration(&text), whole::<u64>(&text, 0..=9), real(&text, 0.0, 1.0), resolve(&text));
        }
    }

    #[test]
    fn numbers_have_limits_and_say_them() {
        assert_eq!(whole::<u64>("10_000,000", 1..=u64::MAX), Ok(10_000_000));
        assert_eq!(
            whole::<u64>("0", 1..=u64::MAX),
            Err("expected a whole number of at least 1".to_owned())
        );
        assert_eq!(
            whole::<u32>("10001", 1..=10_000),
            Err("expected a whole number from 1 to 10,000".to_owned())
        );
        assert!(whole::<u64>("+5", 0..=9).is_err());
        assert!(whole::<u64>("", 0..=9).is_err());
        assert_eq!(real("0.001", 0.0, 0.5), Ok(0.001));
        for text in ["NaN", "inf", "0", "-1", "0.6", "x"] {
            assert!(real(text, 0.0, 0.5).is_err(), "{text}");
        }
    }

    #[test]
    fn words_are_those_of_the_enum() {
        assert_eq!(word::<ScopeKind>("prefix"), Ok(ScopeKind::Prefix));
        assert_eq!(show_word(ScopeKind::Domain), "domain");
        let error = word::<ScopeKind>("everything").unwrap_err();
        assert_eq!(error, "expected one of host, domain, prefix, any");
        assert_eq!(yes_no("Yes"), Ok(true));
        assert_eq!(yes_no("off"), Ok(false));
        assert!(yes_no("maybe").is_err());
    }

    #[test]
    fn none_takes_a_value_back() {
        assert_eq!(optional("none", size), Ok(None));
        assert_eq!(optional("1KiB", size), Ok(Some(1_024)));
        assert!(optional("x", size).unwrap_err().ends_with(", or none"));
    }

    #[test]
    fn addresses_to_connect_to_are_read_as_curl_does() {
        for (text, host, port, target) in [
            ("a.test:80:127.0.0.1", "a.test", 80, "127.0.0.1:80"),
            ("A.test:80:127.0.0.1:8080", "a.test", 80, "127.0.0.1:8080"),
            ("a.test:443:::1", "a.test", 443, "[::1]:443"),
            ("a.test:443:[::1]", "a.test", 443, "[::1]:443"),
            ("a.test:443:[::1]:8443", "a.test", 443, "[::1]:8443"),
            ("[2001:db8::1]:80:127.0.0.1", "[2001:db8::1]", 80, "127.0.0.1:80"),
        ] {
            let read = (host.to_owned(), port, target.parse().unwrap());
            assert_eq!(resolve(text), Ok(read.clone()), "{text}");
            assert_eq!(resolve(&show_resolve(&read)), Ok(read), "{text}");
        }
        for text in [
            "",
            "a",
            "a:80",
            "a:80:",
            "a:0:127.0.0.1",
            "a:x:127.0.0.1",
            ":80:127.0.0.1",
            "a:80:b.test",
            "[::1]80:x",
        ] {
            assert!(resolve(text).is_err(), "{text}");
        }
    }

    #[test]
    fn thousands_are_parted() {
        for (number, text) in [(0, "0"), (999, "999"), (1_000, "1,000"), (10_000_000, "10,000,000")] {
            assert_eq!(thousands(number), text);
        }
    }
}
