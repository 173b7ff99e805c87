//! Time as an argument: a point on the crawl's own time line, and how it is written down.
//!
//! Nothing in the crate but `crawl.rs` and the doors to the outside reads a clock. Everything else is told the time.

use std::ops::{Add, Sub};
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Microseconds since the Unix epoch. Within one process it never steps back: the loop derives it from a
/// monotonic clock anchored once at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(pub u64);

impl Time {
    /// The far future: later than any time a crawl can reach.
    pub const NEVER: Time = Time(u64::MAX);

    /// The span from `earlier` to `self`, zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Time) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// RFC 3339 in UTC with `digits` (0 to 6) digits of the second's fraction: `2026-11-30T20:25:46.123Z`.
    #[must_use]
    pub fn rfc3339(self, digits: u8) -> String {
        let digits = usize::from(digits.min(6));
        let stamp = self.timestamp();
        if digits == 0 {
            return stamp.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        }
        let fraction = format!("{:06}", self.0 % 1_000_000);
        format!(
            "{}.{}Z",
            stamp.strftime("%Y-%m-%dT%H:%M:%S"),
            fraction.get(..digits).unwrap_or("")
        )
    }

    /// `yyyyMMddHHmmss`, the 14-digit stamp of CDX lines and WARC file names.
    #[must_use]
    pub fn digits14(self) -> String {
        self.timestamp().strftime("%Y%m%d%H%M%S").to_string()
    }

    /// `yyyyMMddHHmmssSSS`, the 17-digit stamp of a crawl.log line.
    #[must_use]
    pub fn digits17(self) -> String {
        format!("{}{:03}", self.digits14(), self.0 / 1_000 % 1_000)
    }

    fn timestamp(self) -> jiff::Timestamp {
        i64::try_from(self.0)
            .ok()
            .and_then(|micros| jiff::Timestamp::from_microsecond(micros).ok())
            .unwrap_or(jiff::Timestamp::MAX)
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, span: Duration) -> Time {
        Time(
            self.0
                .saturating_add(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, span: Duration) -> Time {
        Time(
            self.0
                .saturating_sub(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_the_three_forms_of_the_formats() {
        let t = Time(1_308_849_128_802_345);
        assert_eq!(t.rfc3339(0), "2011-06-23T17:12:08Z");
        assert_eq!(t.rfc3339(3), "2011-06-23T17:12:08.802Z");
        assert_eq!(t.rfc3339(6), "2011-06-23T17:12:08.802345Z");
        assert_eq!(t.digits14(), "20110623171208");
        assert_eq!(t.digits17(), "20110623171208802");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time(5) - Duration::from_secs(1), Time(0));
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time(1).since(Time(2)), Duration::ZERO);
    }
}
