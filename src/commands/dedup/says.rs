//! What `dedup` says: a line while it runs, the summary, and the same as JSON.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write as _};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::sift::{Keys, Sieve};
use crate::config::value::thousands;
use crate::seen::Kind;
use crate::seen::sizing::float;

/// How often the line on the terminal is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// The line on a terminal. Nowhere else, and not where the lines themselves go to one.
pub(super) struct Progress {
    started: Instant,
    drawn: Option<Instant>,
    on: bool,
    total: Option<u64>,
}

impl Progress {
    pub(super) fn new(quiet: bool, total: Option<u64>) -> Self {
        Self {
            started: Instant::now(),
            drawn: None,
            on: !quiet && io::stderr().is_terminal() && !io::stdout().is_terminal(),
            total,
        }
    }

    pub(super) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Draws the line, if it is time to.
    pub(super) fn show(&mut self, sieve: &Sieve, keys: &Keys) {
        if !self.on || self.drawn.unwrap_or(self.started).elapsed() < DRAW_EVERY {
            return;
        }
        self.drawn = Some(Instant::now());
        let share = self
            .total
            .filter(|total| *total > 0)
            .map(|total| format!("{} % of the input, ", (sieve.bytes_in * 100 / total).min(100)))
            .unwrap_or_default();
        let line = format!(
            "{share}{} lines, {} unique, {} lines/s, {}",
            thousands(sieve.lines),
            thousands(sieve.unique),
            thousands(rate(sieve.lines, self.seconds())),
            mebibytes(keys.memory_bytes()),
        );
        // nobody can be told that standard error is gone
        let _ = write!(io::stderr(), "\r\x1b[K{line}");
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        if self.drawn.take().is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// The figures at the end.
pub(super) struct Summary {
    value: Value,
    text: String,
}

impl Summary {
    pub(super) fn new(sieve: &Sieve, keys: Option<&Keys>, seconds: f64) -> Self {
        let (lines, unique) = (sieve.lines, sieve.unique);
        let dropped = lines - unique;
        let mut value = json!({
            "schema": 1,
            "lines": lines,
            "unique": unique,
            "dropped": dropped,
            "bytes_in": sieve.bytes_in,
            "bytes_out": sieve.bytes_out,
            "no_url": sieve.no_url,
            "seconds": seconds,
            "lines_per_s": rate(lines, seconds),
        });
        let mut text = format!(
            "{} lines = {} unique + {} dropped ({} in, {} out) in {seconds:.2} s, {} lines/s\n",
            thousands(lines),
            thousands(unique),
            thousands(dropped),
            mebibytes(sieve.bytes_in),
            mebibytes(sieve.bytes_out),
            thousands(rate(lines, seconds)),
        );
        if let Some(keys) = keys {
            remembered(keys, &mut value, &mut text);
        }
        Self { value, text }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn json(&self) -> String {
        format!("{}\n", self.value)
    }
}

/// What the set says of itself.
fn remembered(keys: &Keys, value: &mut Value, text: &mut String) {
    let account = keys.account();
    let memory = keys.memory_bytes();
    let wrong = (account.fp_observed * float(account.fp_observed_of)).round();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("filter".to_owned(), json!(account));
        fields.insert("filter_bytes".to_owned(), json!(memory));
        fields.insert(
            "false_positives".to_owned(),
            json!({"expected": account.lost_estimate, "observed": wrong, "observed_of": account.fp_observed_of}),
        );
    }
    // writing to a String cannot fail
    let _ = match keys {
        Keys::Exact(table) => {
            if let Some(fields) = value.as_object_mut() {
                fields.insert(
                    "false_positives".to_owned(),
                    json!({"expected": 0.0, "observed": 0.0, "observed_of": 0}),
                );
                fields.insert(
                    "exact".to_owned(),
                    json!({"before": table.before(), "looked_up": table.looked_up(), "disk_bytes": table.disk_bytes()}),
                );
            }
            writeln!(
                text,
                "exact: {} lines of earlier runs, {} looked up on disk ({}); {} in memory",
                thousands(table.before()),
                thousands(table.looked_up()),
                mebibytes(table.disk_bytes()),
                mebibytes(memory),
            )
        }
        Keys::Filter(_) if account.kind == Kind::HashSet => {
            writeln!(text, "hashset: {}, no false positives", mebibytes(memory))
        }
        Keys::Filter(_) => {
            let grown = if account.layers > 1 {
                format!(", grown to {} layers", account.layers)
            } else {
                String::new()
            };
            writeln!(
                text,
                "filter: {} for {} lines{grown}; dropped by mistake: {:.1} expected, {wrong} of {} sampled observed",
                mebibytes(memory),
                thousands(account.capacity),
                account.lost_estimate,
                thousands(account.fp_observed_of),
            )
        }
    };
}

fn rate(lines: u64, seconds: f64) -> u64 {
    // to the millisecond, so that no time at all gives no endless rate
    let millis = Duration::from_secs_f64(seconds).as_millis().max(1);
    u64::try_from(u128::from(lines) * 1000 / millis).unwrap_or(u64::MAX)
}

/// `1.3 MiB`.
fn mebibytes(bytes: u64) -> String {
    let tenths = bytes.saturating_mul(10) >> 20;
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}
