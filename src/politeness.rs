//! The pace of one host and of the whole crawl. Holds `governor`, which is told the time.

use std::time::Duration;

use crate::clock::Time;

/// The settings of patience.
#[derive(Debug, Clone, PartialEq)]
pub struct Patience {
    /// Least time between the end of a response and the next request to its host.
    pub delay: Duration,
    /// A robots.txt Crawl-delay or a Retry-After longer than this is cut to it.
    pub max_wait: Duration,
    /// First wait after a failure; doubles with each further failure in a row.
    pub backoff_base: Duration,
    /// Failures in a row after which a host is retired.
    pub max_failures: u32,
    /// Requests a second over all hosts; `None` for no limit.
    pub global_rate: Option<f64>,
}

/// When a host may be asked again after a request that ended at `end`.
///
/// `delay` is the host's own (the larger of the setting and its Crawl-delay), `retry_after` what the last answer asked,
/// `failures` how many requests in a row failed (0 after a success).
#[must_use]
pub fn next_due(_patience: &Patience, _delay: Duration, _end: Time, _retry_after: Option<Duration>, _failures: u32) -> Time {
    todo!()
}

/// The delay of a host: the setting, or its Crawl-delay if longer, cut to `max_wait`.
#[must_use]
pub fn host_delay(_patience: &Patience, _crawl_delay: Option<Duration>) -> Duration {
    todo!()
}

/// Parses Retry-After (RFC 9110 section 10.2.3): seconds or an HTTP date, seen from `now`. `None` if it is neither.
#[must_use]
pub fn retry_after(_value: &[u8], _now: Time) -> Option<Duration> {
    todo!()
}

/// The limit on requests a second over all hosts: one governor cell with a told clock.
#[derive(Debug)]
pub struct GlobalPace(());

impl GlobalPace {
    /// `rate` requests a second; `None` never holds back.
    #[must_use]
    pub fn new(_rate: Option<f64>) -> Self {
        todo!()
    }
    /// Takes one request at `now`, or says when the next may start.
    ///
    /// # Errors
    /// The earliest time of the next request.
    pub fn take(&mut self, _now: Time) -> Result<(), Time> {
        todo!()
    }
}
