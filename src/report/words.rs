//! Numbers as a person reads them. Never NaN, never a surprise of width.

use std::time::Duration;

pub use crate::config::value::thousands;

/// Bytes in binary units with one decimal: `512 B`, `1.5 KiB`, `2.0 GiB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut tenths = u128::from(bytes) * 10 / 1024;
    for unit in UNITS {
        if tenths < 10_240 || unit == "PiB" {
            return format!("{}.{} {unit}", tenths / 10, tenths % 10);
        }
        tenths /= 1024;
    }
    unreachable!("the last unit takes every number")
}

/// A span in its two largest units: `4 s`, `1 m 05 s`, `2 h 03 m`, `3 d 04 h`.
#[must_use]
pub fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 if span.is_zero() => "0 s".to_owned(),
        0 => format!("{} ms", span.as_millis().max(1)),
        1..60 => format!("{seconds} s"),
        60..3_600 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{} h {:02} m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

/// A share of 0 to 1 as a percentage: `0 %`, `0.03 %`, `12.3 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    let percent = finite(share) * 100.0;
    if percent == 0.0 {
        "0 %".to_owned()
    } else if percent < 0.01 {
        "< 0.01 %".to_owned()
    } else if percent < 1.0 {
        format!("{percent:.2} %")
    } else {
        format!("{percent:.1} %")
    }
}

/// Events a second: `0.25`, `12.3`, `1,234`.
#[must_use]
pub fn rate(rate: f64) -> String {
    let rate = finite(rate);
    if rate < 10.0 {
        format!("{rate:.2}")
    } else if rate < 1_000.0 {
        format!("{rate:.1}")
    } else {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and the cast saturates"
        )]
        thousands(rate as u64)
    }
}

/// The number, or zero for NaN, an infinity or a negative number, none of which a report may hold.
#[must_use]
pub fn finite(number: f64) -> f64 {
    if number.is_finite() && number > 0.0 {
        number
    } else {
        0.0
    }
}

/// `part / whole`, zero if there is no whole.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// `count` a second, zero if no time has passed.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "shown with a few digits")]
pub fn per_second(count: u64, time: Duration) -> f64 {
    if time.is_zero() {
        0.0
    } else {
        count as f64 / time.as_secs_f64()
    }
}

/// The interval of an estimate of lost URLs, once there are any: ` (95 %: 3 to 17)`.
#[must_use]
pub fn span_of_lost(seen: &crate::seen::Account) -> String {
    if seen.lost_high < 1.0 {
        return String::new();
    }
    format!(" (95 %: {:.0} to {:.0})", finite(seen.lost_low), finite(seen.lost_high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_one_decimal_and_a_unit() {
        for (number, text) in [
            (0, "0 B"),
            (1_023, "1023 B"),
            (1_024, "1.0 KiB"),
            (1_536, "1.5 KiB"),
            (1_048_575, "1023.9 KiB"),
            (1 << 20, "1.0 MiB"),
            (5 << 30, "5.0 GiB"),
            (u64::MAX, "16383.9 PiB"),
        ] {
            assert_eq!(bytes(number), text);
        }
    }

    #[test]
    fn spans_have_two_units() {
        for (millis, text) in [
            (0, "0 s"),
            (5, "5 ms"),
            (59_999, "59 s"),
            (65_000, "1 m 05 s"),
            (7_380_000, "2 h 03 m"),
            (273_600_000, "3 d 04 h"),
        ] {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn shares_and_rates_are_never_nan() {
        assert_eq!(percent(f64::NAN), "0 %");
        assert_eq!(percent(0.000_01), "< 0.01 %");
        assert_eq!(percent(0.001_5), "0.15 %");
        assert_eq!(percent(0.5), "50.0 %");
        assert_eq!(rate(f64::INFINITY), "0.00");
        assert_eq!(rate(12.34), "12.3");
        assert_eq!(rate(12_345.6), "12,345");
        assert_eq!(per_second(5, Duration::ZERO).to_bits(), 0);
        assert_eq!(share(1, 0).to_bits(), 0);
    }
}
