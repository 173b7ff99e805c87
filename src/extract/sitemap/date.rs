//! The dates of sitemaps and feeds: W3C profile of ISO 8601, RFC 822, and what is near to them.

use std::num::NonZeroU32;

use jiff::Timestamp;
use jiff::civil;

use crate::politeness::http_date;

/// Seconds since 1970; `None` for what is no date, or one that no page can have.
pub(super) fn seconds(text: &str) -> Option<NonZeroU32> {
    let text = text.trim();
    let seconds = iso(text).or_else(|| http_date(text).and_then(|time| i64::try_from(time.0 / 1_000_000).ok()))?;
    u32::try_from(seconds).ok().and_then(NonZeroU32::new)
}

fn iso(text: &str) -> Option<i64> {
    if let Ok(stamp) = text.parse::<Timestamp>() {
        return Some(stamp.as_second());
    }
    // without a zone: taken for UTC; a day's last hour is no matter here
    let whole: civil::DateTime = match text.len() {
        4 => civil::date(text.parse().ok()?, 1, 1).at(0, 0, 0, 0),
        7 => format!("{text}-01").parse::<civil::Date>().ok()?.at(0, 0, 0, 0),
        _ => text.parse().ok()?,
    };
    let zoned = whole.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_people_write_them() {
        let second = |text| seconds(text).map(NonZeroU32::get);
        let noon = 1_780_315_200;
        for text in [
            "2026-06-01T12:00:00Z",
            "2026-06-01T12:00:00.25Z",
            "2026-06-01T14:00:00+02:00",
            "2026-06-01T14:00+02:00",
            "2026-06-01T12:00:00",
            "2026-06-01 12:00:00",
            " 2026-06-01T12:00Z\n",
            "Mon, 01 Jun 2026 12:00:00 GMT",
            "Mon, 01 Jun 2026 14:00:00 +0200",
        ] {
            assert_eq!(second(text), Some(noon), "{text}");
        }
        assert_eq!(second("2026-06-01"), Some(noon - 12 * 3_600));
        assert_eq!(second("2026-06"), Some(noon - 12 * 3_600));
        assert_eq!(second("2026"), second("2026-01-01"));
        for wrong in [
            "",
            "x",
            "0000-00-00",
            "1066-10-14",
            "1970-01-01",
            "9999-01-01",
            "yesterday",
            "12345",
            "éé-é",
        ] {
            assert_eq!(second(wrong), None, "{wrong}");
        }
    }
}
