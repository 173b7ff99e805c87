//! The pace of one host and of the whole crawl. Holds `governor`, which is told the time.
//!
//! Both are GCRA cells that hold one request: a host's cell is filled at the end of a response and says when it is
//! empty again; the crawl's cell is filled by each request that starts. Nothing here reads a clock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};

use crate::clock::Time;

/// The longest time between two requests that a cell can keep; far longer than any crawl.
const MAX_PERIOD: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The latest time a cell can be told, in nanoseconds since the Unix epoch (the year 2262): with [`MAX_PERIOD`] added
/// it still fits into 64 bits.
const MAX_NANOS: u64 = u64::MAX / 2;

/// The settings of patience.
#[derive(Debug, Clone, PartialEq)]
pub struct Patience {
    /// Least time between the end of a response and the next request to its host.
    pub delay: Duration,
    /// A response is followed by a pause of at least so many times what it took; 0 for none.
    pub delay_factor: f64,
    /// A robots.txt Crawl-delay or a Retry-After longer than this is cut to it.
    pub max_wait: Duration,
    /// First wait after a failure; doubles with each further failure in a row.
    pub backoff_base: Duration,
    /// Failures in a row after which a host is retired.
    pub max_failures: u32,
    /// Requests a second over all hosts; `None` for no limit.
    pub global_rate: Option<f64>,
}

/// `[[host]]`: what holds for single hosts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostRule {
    /// A host key, or `*.` and a domain: the domain and every host below it.
    pub host: String,
    /// URLs fetched of each such host at most.
    pub max_pages: Option<u64>,
    /// Least time between the end of a response and the next request to such a host.
    pub delay: Option<Duration>,
}

/// Most entries of `[[host]]`.
pub const MAX_HOST_RULES: usize = 1_000;

/// Answers of status 403 in a row from which on a host is asked ever more slowly: it has shut us out, and every further
/// request tells it that we do not listen.
pub const FORBIDDEN_IN_A_ROW: u32 = 3;

/// What a request that ended asks of the time after it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Asked {
    /// The setting or the Crawl-delay of the host: [`host_delay`].
    pub delay: Duration,
    /// What the response took, from the look-up of the name to the last byte; zero if none came. With several
    /// connections to a host, the part of one of them: together they load the host as one alone would.
    pub took: Duration,
    /// The Retry-After of the answer.
    pub retry_after: Option<Duration>,
    /// How many requests in a row failed (0 after a success).
    pub failures: u32,
    /// How many answers in a row were 403.
    pub forbidden: u32,
}

/// The rule that decides how long a host rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The setting.
    Delay,
    /// A Crawl-delay longer than the setting.
    CrawlDelay,
    /// The time that the response took.
    Factor,
    /// Retry-After.
    RetryAfter,
    /// Failures in a row.
    Failures,
    /// Answers of 403 in a row.
    Forbidden,
}

impl Rule {
    /// Its name in crawl.log.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Delay => "delay",
            Self::CrawlDelay => "crawl-delay",
            Self::Factor => "delay-factor",
            Self::RetryAfter => "retry-after",
            Self::Failures => "failures",
            Self::Forbidden => "forbidden",
        }
    }
}

/// How long a host rests after a request, and by which rule: the longest of the waits that are asked for. All but the
/// setting itself are at most `max_wait`.
#[must_use]
pub fn rest(patience: &Patience, asked: &Asked) -> (Duration, Rule) {
    let own = if asked.delay > patience.delay {
        Rule::CrawlDelay
    } else {
        Rule::Delay
    };
    let storm = asked.forbidden.saturating_add(1).saturating_sub(FORBIDDEN_IN_A_ROW);
    [
        (stretched(patience, asked.took), Rule::Factor),
        (
            asked.retry_after.unwrap_or_default().min(patience.max_wait),
            Rule::RetryAfter,
        ),
        (backoff(patience, asked.failures), Rule::Failures),
        (backoff(patience, storm), Rule::Forbidden),
    ]
    .into_iter()
    .fold(
        (asked.delay, own),
        |longest, other| {
            if other.0 > longest.0 { other } else { longest }
        },
    )
}

/// The pause that a response of this length is followed by, at most `max_wait`.
#[must_use]
pub fn stretched(patience: &Patience, took: Duration) -> Duration {
    let pause = Duration::try_from_secs_f64(took.as_secs_f64() * patience.delay_factor);
    pause.unwrap_or(patience.max_wait).min(patience.max_wait)
}

/// When a host may be asked again after a request that ended at `end`, if it rests so long.
#[must_use]
pub fn next_due(end: Time, rest: Duration) -> Time {
    let Some(cell) = Cell::one_in(rest) else { return end };
    // the request that ended fills the cell; when the next one fits is what the second look says
    match cell.take(end) {
        Ok(()) => cell.take(end).err().unwrap_or(end),
        Err(due) => due,
    }
}

/// The wait after so many failures in a row: none, the base, twice the base ... at most `max_wait`.
fn backoff(patience: &Patience, failures: u32) -> Duration {
    let Some(doublings) = failures.checked_sub(1) else {
        return Duration::ZERO;
    };
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    patience.backoff_base.saturating_mul(factor).min(patience.max_wait)
}

/// The delay of a host: the setting, or its Crawl-delay (cut to `max_wait`) if that is longer.
#[must_use]
pub fn host_delay(patience: &Patience, crawl_delay: Option<Duration>) -> Duration {
    patience
        .delay
        .max(crawl_delay.unwrap_or_default().min(patience.max_wait))
}

/// Parses Retry-After (RFC 9110 section 10.2.3): seconds or an HTTP date, seen from `now`. `None` if it is neither, or
/// a number of more than 64 bits: then the own back-off holds. A date that has passed is no wait. Not cut to anything:
/// [`rest`] does that.
#[must_use]
pub fn retry_after(value: &[u8], now: Time) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().ok().map(Duration::from_secs);
    }
    http_date(text).map(|date| date.since(now))
}

/// Parses a date of HTTP in its three forms (RFC 9110 section 5.6.7), and, as servers also write them, with a wrong
/// weekday, a numeric zone, lower case, or in the form of RFC 3339. `None` if it is none, or before 1970.
#[must_use]
pub fn http_date(text: &str) -> Option<Time> {
    let seconds = if let Ok(date) = httpdate::parse_http_date(text) {
        date.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs()
    } else {
        // a leap second is the next one, as POSIX counts
        let leap = u64::from(text.contains(":60"));
        u64::try_from(tolerant_date(text)?.as_second()).ok()? + leap
    };
    seconds.checked_mul(1_000_000).map(Time)
}

fn tolerant_date(text: &str) -> Option<jiff::Timestamp> {
    if let Ok(timestamp) = text.parse() {
        return Some(timestamp);
    }
    // the date of a cookie has hyphens; a zone may have one at its start, which stays
    let (date, zone) = text.rsplit_once(' ')?;
    let mended = format!("{} {}", date.replace('-', " "), zone.to_ascii_uppercase());
    let parser = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true);
    parser.parse_timestamp(&mended).ok()
}

/// The limit on requests a second over all hosts: one governor cell with a told clock. Smooth: two requests are never
/// closer than one part of the rate, however long none came before.
#[derive(Debug)]
pub struct GlobalPace(Option<Cell>);

impl GlobalPace {
    /// `rate` requests a second; `None`, or what is no positive number, never holds back.
    #[must_use]
    pub fn new(rate: Option<f64>) -> Self {
        let period = rate.filter(|rate| *rate > 0.0).map(|rate| {
            // a rate so low that its period is out of range
            Duration::try_from_secs_f64(rate.recip()).unwrap_or(MAX_PERIOD)
        });
        Self(period.and_then(Cell::one_in))
    }

    /// Takes one request at `now`, or says when the next may start.
    ///
    /// # Errors
    /// The earliest time of the next request.
    pub fn take(&mut self, now: Time) -> Result<(), Time> {
        self.0.as_ref().map_or(Ok(()), |cell| cell.take(now))
    }
}

/// The clock of a cell: it knows what it was told last.
#[derive(Debug, Default)]
struct ToldClock(AtomicU64);

impl Clock for ToldClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.load(Ordering::Relaxed).into()
    }
}

/// One request a period.
#[derive(Debug)]
struct Cell(RateLimiter<NotKeyed, InMemoryState, ToldClock, NoOpMiddleware<Nanos>>);

impl Cell {
    /// `None` for a period of nothing, which holds nothing back.
    fn one_in(period: Duration) -> Option<Self> {
        let quota = Quota::with_period(period.min(MAX_PERIOD))?;
        Some(Self(RateLimiter::direct_with_clock(quota, ToldClock::default())))
    }

    fn take(&self, now: Time) -> Result<(), Time> {
        let nanos = now.0.saturating_mul(1_000).min(MAX_NANOS);
        self.0.clock().0.store(nanos, Ordering::Relaxed);
        self.0.check().map_err(|until| {
            let earliest: u64 = until.earliest_possible().into();
            // a told time is in whole microseconds: round up, never down
            Time(earliest.div_ceil(1_000))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: Time = Time(1_796_000_000_000_000);

    fn patience() -> Patience {
        Patience {
            delay: Duration::from_secs(1),
            delay_factor: 2.0,
            max_wait: Duration::from_secs(30),
            backoff_base: Duration::from_secs(2),
            max_failures: 5,
            global_rate: None,
        }
    }

    fn wait(delay_ms: u64, retry_after: Option<u64>, failures: u32) -> Duration {
        let asked = Asked {
            delay: Duration::from_millis(delay_ms),
            retry_after: retry_after.map(Duration::from_secs),
            failures,
            ..Asked::default()
        };
        next_due(NOW, rest(&patience(), &asked).0).since(NOW)
    }

    #[test]
    fn a_slow_answer_is_followed_by_a_longer_pause_that_is_cut_to_the_longest_wait() {
        let pause = |took_ms: u64, factor: f64| {
            let patience = Patience {
                delay_factor: factor,
                ..patience()
            };
            let asked = Asked {
                delay: patience.delay,
                took: Duration::from_millis(took_ms),
                ..Asked::default()
            };
            let (pause, rule) = rest(&patience, &asked);
            (pause.as_millis(), rule)
        };
        assert_eq!(pause(499, 2.0), (1_000, Rule::Delay));
        assert_eq!(pause(700, 2.0), (1_400, Rule::Factor));
        assert_eq!(pause(700, 0.0), (1_000, Rule::Delay));
        assert_eq!(pause(60_000, 2.0), (30_000, Rule::Factor));
        assert_eq!(pause(u64::MAX, 1e300), (30_000, Rule::Factor));
        assert_eq!(pause(60_000, f64::NAN), (30_000, Rule::Factor));
    }

    #[test]
    fn the_third_403_in_a_row_and_each_further_one_doubles_the_wait() {
        let waits: Vec<(u64, Rule)> = (0..9)
            .chain([u32::MAX])
            .map(|forbidden| {
                let asked = Asked {
                    forbidden,
                    ..Asked::default()
                };
                let (wait, rule) = rest(&patience(), &asked);
                (wait.as_secs(), rule)
            })
            .collect();
        let seconds: Vec<u64> = waits.iter().map(|(wait, _)| *wait).collect();
        assert_eq!(seconds, [0, 0, 0, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!((waits[2].1, waits[3].1), (Rule::Delay, Rule::Forbidden));
    }

    #[test]
    fn the_rule_in_force_is_named() {
        let rule = |change: fn(&mut Asked)| {
            let mut asked = Asked {
                delay: Duration::from_secs(1),
                ..Asked::default()
            };
            change(&mut asked);
            rest(&patience(), &asked).1.word()
        };
        assert_eq!(rule(|_| ()), "delay");
        assert_eq!(rule(|asked| asked.delay = Duration::from_secs(2)), "crawl-delay");
        assert_eq!(rule(|asked| asked.took = Duration::from_secs(2)), "delay-factor");
        assert_eq!(
            rule(|asked| asked.retry_after = Some(Duration::from_secs(2))),
            "retry-after"
        );
        assert_eq!(rule(|asked| asked.failures = 1), "failures");
        assert_eq!(rule(|asked| asked.forbidden = 3), "forbidden");
    }

    #[test]
    fn the_longest_wait_holds() {
        assert_eq!(wait(1_500, None, 0), Duration::from_millis(1_500));
        assert_eq!(wait(0, None, 0), Duration::ZERO);
        assert_eq!(wait(1_000, Some(7), 0), Duration::from_secs(7));
        assert_eq!(wait(9_000, Some(7), 0), Duration::from_secs(9));
        assert_eq!(wait(1_000, Some(7), 3), Duration::from_secs(8));
    }

    #[test]
    fn what_a_server_asks_is_cut_but_not_what_the_setting_says() {
        assert_eq!(wait(1_000, Some(u64::MAX), 0), Duration::from_secs(30));
        assert_eq!(wait(60_000, Some(u64::MAX), 40), Duration::from_secs(60));
        let slow = Patience {
            delay: Duration::from_secs(90),
            ..patience()
        };
        assert_eq!(
            host_delay(&slow, Some(Duration::from_secs(20))),
            Duration::from_secs(90)
        );
        assert_eq!(host_delay(&patience(), None), Duration::from_secs(1));
        assert_eq!(
            host_delay(&patience(), Some(Duration::from_secs(5))),
            Duration::from_secs(5)
        );
        assert_eq!(
            host_delay(&patience(), Some(Duration::from_secs(500))),
            Duration::from_secs(30)
        );
    }

    #[test]
    fn failures_double_the_wait_up_to_the_cap() {
        let waits: Vec<u64> = (0..7).map(|failures| wait(0, None, failures).as_secs()).collect();
        assert_eq!(waits, [0, 2, 4, 8, 16, 30, 30]);
        assert_eq!(wait(0, None, u32::MAX), Duration::from_secs(30));
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = http_date("Mon, 30 Nov 2026 12:00:00 GMT").unwrap();
        for (value, seconds) in [
            ("0", Some(0)),
            (" 120\t", Some(120)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("99999999999999999999999999999999999999999", None),
            ("0000000000000000000000000000000000000005", Some(5)),
            ("-1", None),
            ("1.5", None),
            ("", None),
            ("later", None),
            ("Mon, 30 Nov 2026 12:01:00 GMT", Some(60)),
            ("Monday, 30-Nov-26 12:00:30 GMT", Some(30)),
            ("Mon Nov 30 12:00:10 2026", Some(10)),
            ("Sun, 29 Nov 2026 12:00:00 GMT", Some(0)),
        ] {
            assert_eq!(
                retry_after(value.as_bytes(), now),
                seconds.map(Duration::from_secs),
                "{value:?}"
            );
        }
        assert_eq!(retry_after(b"\xff", now), None);
    }

    #[test]
    fn dates_are_also_taken_as_servers_write_them() {
        let expected = http_date("Mon, 30 Nov 2026 12:00:00 GMT");
        assert!(expected.is_some());
        for written in [
            "Tue, 30 Nov 2026 12:00:00 GMT",
            "Mon, 30 Nov 2026 14:00:00 +0200",
            "Mon, 30 Nov 2026 10:00:00 -0200",
            "mon, 30 nov 2026 12:00:00 gmt",
            "Mon, 30-Nov-2026 12:00:00 GMT",
            "Mon, 30 Nov 2026 12:00:00 UTC",
            "2026-11-30T12:00:00Z",
        ] {
            assert_eq!(http_date(written), expected, "{written}");
        }
        assert_eq!(
            http_date("Thu, 31 Dec 2015 23:59:60 GMT"),
            http_date("Fri, 01 Jan 2016 00:00:00 GMT")
        );
        for wrong in [
            "Mon, 31 Nov 2026 12:00:00 GMT",
            "Mon, 30 Nov 2026 25:00:00 GMT",
            "Mon, 30 Nov 1926 12:00:00 GMT",
            "0",
            "",
        ] {
            assert_eq!(http_date(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_global_pace_is_smooth() {
        let mut pace = GlobalPace::new(Some(4.0));
        assert_eq!(pace.take(NOW), Ok(()));
        let next = NOW + Duration::from_millis(250);
        assert_eq!(pace.take(NOW), Err(next));
        assert_eq!(pace.take(Time(next.0 - 1)), Err(next));
        assert_eq!(pace.take(next), Ok(()));
        // a long silence saves nothing up
        let later = NOW + Duration::from_secs(3_600);
        assert_eq!(pace.take(later), Ok(()));
        assert_eq!(pace.take(later), Err(later + Duration::from_millis(250)));
    }

    #[test]
    fn a_rate_that_is_none_never_holds_back() {
        for rate in [None, Some(0.0), Some(-1.0), Some(f64::NAN), Some(f64::INFINITY)] {
            let mut pace = GlobalPace::new(rate);
            for _ in 0..100 {
                assert_eq!(pace.take(NOW), Ok(()), "{rate:?}");
            }
        }
        let mut slowest = GlobalPace::new(Some(f64::MIN_POSITIVE));
        assert_eq!(slowest.take(NOW), Ok(()));
        assert!(slowest.take(NOW).is_err());
    }

    #[test]
    fn times_at_the_ends_of_the_line_do_not_overflow() {
        for time in [Time(0), Time::NEVER] {
            let asked = Asked {
                delay: Duration::MAX,
                took: Duration::MAX,
                retry_after: Some(Duration::MAX),
                failures: u32::MAX,
                forbidden: u32::MAX,
            };
            let _ = next_due(time, rest(&patience(), &asked).0);
            let mut pace = GlobalPace::new(Some(0.001));
            let _ = pace.take(time);
            let _ = pace.take(time);
        }
    }

    proptest! {
        /// A host in virtual time: whatever its answers ask, no request starts sooner than the delay after the last end.
        #[test]
        fn no_request_starts_before_the_delay_is_over(
            delay_ms in 0_u64..5_000,
            visits in prop::collection::vec((0_u64..3_000_000, prop::option::of(0_u64..100), 0_u32..8), 1..50),
        ) {
            let delay = Duration::from_millis(delay_ms);
            let mut start = NOW;
            for (took, asked, failures) in visits {
                let end = start + Duration::from_micros(took);
                let asked = asked.map(Duration::from_secs);
                let asks = Asked {
                    delay,
                    took: Duration::from_micros(took),
                    retry_after: asked,
                    failures,
                    forbidden: 0,
                };
                let due = next_due(end, rest(&patience(), &asks).0);
                prop_assert!(due.since(end) >= Duration::from_micros(2 * took).min(patience().max_wait));
                prop_assert!(due.since(end) >= delay);
                prop_assert!(due.since(end) >= asked.unwrap_or_default().min(patience().max_wait));
                prop_assert!(due.since(end) <= delay.max(patience().max_wait));
                start = due;
            }
        }

        /// Over any stretch no more requests start than the rate allows, and none waits longer than needed.
        #[test]
        fn the_global_rate_is_kept(rate in 0.5_f64..2_000.0, pauses in prop::collection::vec(0_u64..2_000, 1..200)) {
            let mut pace = GlobalPace::new(Some(rate));
            let period_micros = 1e6 / rate;
            let mut now = NOW;
            let mut last: Option<Time> = None;
            for pause in pauses {
                now = now + Duration::from_micros(pause);
                if let Err(due) = pace.take(now) {
                    prop_assert!(due > now);
                    now = due;
                    prop_assert_eq!(pace.take(now), Ok(()));
                }
                if let Some(last) = last {
                    #[expect(clippy::cast_precision_loss, reason = "seconds apart, in microseconds")]
                    let apart = (now.0 - last.0) as f64;
                    prop_assert!(apart + 0.002 >= period_micros, "{} < {}", apart, period_micros);
                }
                last = Some(now);
            }
        }
    }
}
