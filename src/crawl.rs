//! The loop. (The lead writes this file.)

use std::time::Duration;

use crate::clock::Time;
use crate::seen::Account;
use crate::stats::Counters;

/// What the crawl looks like at one moment: for the progress line and, at the end, the report.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The counters of the job so far.
    pub counters: Counters,
    /// The filter's account.
    pub seen: Account,
    /// Requests in flight.
    pub in_flight: usize,
    /// Hosts that have something to do now or later.
    pub hosts_active: usize,
    /// Hosts waiting for their next due time.
    pub hosts_resting: usize,
    /// When the next host comes due, if all rest: "waiting 12 s for example.com".
    pub next_due: Option<(Time, String)>,
    /// Time spent crawling in this run.
    pub run_time: Duration,
    /// Time spent crawling in all runs of the job.
    pub wall: Duration,
    /// The clock's time of this snapshot.
    pub now: Time,
    /// Last finished address.
    pub last: String,
}

/// How a crawl ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// Nothing was left to do.
    Finished,
    /// A limit that was asked for was reached; the text names it.
    Limit(String),
    /// A signal asked it to stop; its number.
    Stopped(i32),
}

/// A seed and what came of it, for the closing summary.
#[derive(Debug, Clone)]
pub struct SeedOutcome {
    /// The seed as parsed.
    pub url: String,
    /// `Ok(status)` if it brought a response, or why it did not.
    pub result: Result<u16, String>,
}

/// What a crawl leaves behind besides its files.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The last snapshot.
    pub last: Snapshot,
    /// Start of the job's first run.
    pub started: Time,
    /// Runs of the job, this one included.
    pub runs: u64,
    /// Filter checkpoints published over all runs.
    pub checkpoints: u64,
    /// Longest time that insertion stood still for a checkpoint.
    pub checkpoint_pause_max: Duration,
    /// CPU seconds over all runs.
    pub cpu_s: f64,
    /// Largest resident memory over all runs, bytes.
    pub peak_rss: u64,
    /// What became of each seed.
    pub seeds: Vec<SeedOutcome>,
}

/// What can end a crawl early. Each has its exit code (CONTRACT) and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrawlError {
    /// A write failed; the job can be resumed once the cause is gone.
    #[error("cannot write {what}: {source}; the job's state is kept: free space or fix the folder, then run the same command again")]
    Write {
        /// The file or store.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The job's state cannot be used as it is.
    #[error("{0}")]
    State(String),
    /// The settings cannot be used.
    #[error("{0}")]
    Usage(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl CrawlError {
    /// The process's exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Write { .. } => 3,
            Self::Usage(_) => 2,
            Self::State(_) | Self::Other(_) => 1,
        }
    }
}
