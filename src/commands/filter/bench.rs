//! `crawler filter bench`: speed and observed rate on this machine, a line a kind.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;

use super::{grouped, percent};
use crate::commands::{USAGE, fail, print};
use crate::config::value;
use crate::hash::{Fingerprint, HashKey};
use crate::seen::bloom::Bloom;
use crate::seen::sizing::float;
use crate::seen::{self, Kind, SeenSet, layers};

/// Keys in a batch: the links of a few pages.
const BATCH: usize = 256;
/// Keys made at a time, outside the time that is taken.
const STRETCH: u64 = 1 << 16;
/// Absent keys asked for the observed rate.
const ABSENT: u64 = 1 << 20;
/// Most keys that a bench fills a filter with.
const MAX_ITEMS: u64 = 2_000_000_000;

/// Most times that a filter is overfilled.
const MAX_OVERFILL: u64 = 100;

/// What `bench` is asked.
#[derive(Debug, Args)]
pub(in crate::commands) struct BenchArgs {
    /// URLs that each filter is filled with
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = items)]
    items: u64,
    /// False-positive rate
    #[arg(long, value_name = "P", default_value = "0.001", value_parser = share)]
    fp: f64,
    /// Only this kind
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
    /// Instead: a bloom filter of fixed size, filled with up to N times the URLs it is made for
    #[arg(long, value_name = "N", value_parser = times, conflicts_with = "kind")]
    overfill: Option<u64>,
}

fn times(text: &str) -> Result<u64, String> {
    value::whole(text, 1..=MAX_OVERFILL)
}

fn items(text: &str) -> Result<u64, String> {
    value::whole(text, 1..=MAX_ITEMS)
}

fn share(text: &str) -> Result<f64, String> {
    value::real(text, 0.0, 1.0)
}

fn kind(text: &str) -> Result<Kind, String> {
    value::word(text)
}

pub(in crate::commands) fn run(args: &BenchArgs) -> ExitCode {
    if let Some(times) = args.overfill {
        return match overfill(args, times) {
            Ok(text) => print(&text),
            Err(why) => fail(&why, USAGE),
        };
    }
    if args.kind == Some(Kind::Exact) {
        return fail(
            "exact is as fast as its table: see docs/seen.md; its filter is a bloom",
            USAGE,
        );
    }
    let mut text = format!(
        "{} keys at {}, batches of {BATCH}, million keys a second by the clock\n  {:<9} {:>9} {:>8} {:>8} {:>8}  rate when full\n",
        grouped(args.items),
        percent(args.fp),
        "kind",
        "bits/key",
        "insert",
        "present",
        "absent"
    );
    for kind in Kind::ALL
        .into_iter()
        .filter(|kind| *kind != Kind::Exact && args.kind.is_none_or(|one| one == *kind))
    {
        match measure(kind, args) {
            Ok(line) => text.push_str(&line),
            Err(why) => return fail(&format!("{}: {why}", kind.name()), USAGE),
        }
    }
    print(&text)
}

/// What a filter does that is too small and does not grow: a line for each time that as many keys come as it is made for.
fn overfill(args: &BenchArgs, times: u64) -> Result<String, String> {
    let lines = layers::check_and_size(Kind::Bloom, args.items, args.fp)?;
    let mut bloom = Bloom::new(args.items, lines).map_err(|error| error.to_string())?;
    let mut text = format!(
        "a bloom filter of fixed size for {} keys at {}\n  {:>6} {:>9} {:>12} {:>12} {:>16}\n",
        grouped(args.items),
        percent(args.fp),
        "filled",
        "bits set",
        "predicted",
        "observed",
        "new keys lost"
    );
    let mut new = vec![false; BATCH];
    for time in 1..=times {
        let (mut lost, mut start) = (0, (time - 1) * args.items);
        let end = time * args.items;
        while start < end {
            let keys = keys(start, STRETCH.min(end - start));
            for batch in keys.chunks(BATCH) {
                let new = new.get_mut(..batch.len()).unwrap_or_default();
                bloom.insert_batch(batch, new);
                lost += new.iter().filter(|new| !**new).count() as u64;
            }
            start += STRETCH;
        }
        let absent = keys(1 << 60, ABSENT);
        let wrong = absent.iter().filter(|key| bloom.contains(**key)).count() as u64;
        let _ = writeln!(
            text,
            "  {:>4} x {:>9} {:>12} {:>12} {:>16}",
            time,
            percent(float(bloom.ones()) / float(bloom.bits())),
            percent(bloom.predicted()),
            percent(float(wrong) / float(ABSENT)),
            percent(float(lost) / float(args.items)),
        );
    }
    Ok(text)
}

fn measure(kind: Kind, args: &BenchArgs) -> Result<String, String> {
    let mut set = seen::make(kind, HashKey([0; 16]), args.items, args.fp).map_err(|error| error.to_string())?;
    let mut new = Vec::new();
    let insert = pass(args.items, |keys| set.insert_batch(keys, &mut new));
    let bits = set.memory_bytes() * 8;
    let again = pass(args.items, |keys| set.insert_batch(keys, &mut new));
    let mut wrong = 0_u64;
    let mut asked = Duration::ZERO;
    for start in (0..ABSENT).step_by(usize::try_from(STRETCH).unwrap_or(usize::MAX)) {
        let keys = keys((1 << 60) + start, STRETCH);
        let began = Instant::now();
        wrong += seen_of(set.as_ref(), &keys);
        asked += began.elapsed();
    }
    let account = set.account();
    let mut line = format!(
        "  {:<9} {:>9.2} {:>8.1} {:>8.1} {:>8.1}  {} observed, {} predicted",
        kind.name(),
        float(bits) / float(args.items),
        speed(args.items, insert),
        speed(args.items, again),
        speed(ABSENT, asked),
        percent(float(wrong) / float(ABSENT)),
        percent(account.fp_predicted)
    );
    if account.layers > 1 {
        let _ = write!(line, " ({} layers)", account.layers);
    }
    line.push('\n');
    Ok(line)
}

fn seen_of(set: &dyn SeenSet, keys: &[Fingerprint]) -> u64 {
    keys.iter().map(|key| u64::from(set.contains(*key))).sum()
}

fn pass(items: u64, mut work: impl FnMut(&[Fingerprint])) -> Duration {
    let mut time = Duration::ZERO;
    let mut start = 0;
    while start < items {
        let keys = keys(start, STRETCH.min(items - start));
        let began = Instant::now();
        for batch in keys.chunks(BATCH) {
            work(batch);
        }
        time += began.elapsed();
        start += STRETCH;
    }
    time
}

fn speed(keys: u64, time: Duration) -> f64 {
    float(keys) / time.as_secs_f64().max(1e-9) / 1e6
}

/// Keys that no two numbers share, spread as a hash spreads them.
fn keys(start: u64, count: u64) -> Vec<Fingerprint> {
    let key = |n: u64| Fingerprint {
        high: seen::mixed(2 * n),
        low: seen::mixed(2 * n + 1),
    };
    (start..start + count).map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overfilled_filter_goes_bad_as_predicted() {
        let args = BenchArgs {
            items: 2_000,
            fp: 0.01,
            kind: None,
            overfill: Some(10),
        };
        let text = overfill(&args, 10).unwrap();
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .map(|line| line.split_whitespace().filter_map(|word| word.parse().ok()).collect())
            .collect();
        assert_eq!(rows.len(), 10);
        for row in &rows {
            let [_, _, predicted, observed, _] = row[..] else {
                panic!("{text}")
            };
            assert!((observed / predicted - 1.0).abs() < 0.15, "{text}");
        }
        assert!(rows[0][3] < 1.2 && rows[4][3] > 60.0 && rows[9][3] > 90.0, "{text}");
    }

    #[test]
    fn every_kind_has_a_line_with_its_rate() {
        let args = BenchArgs {
            items: 20_000,
            fp: 0.01,
            kind: None,
            overfill: None,
        };
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Exact) {
            let line = measure(kind, &args).unwrap();
            assert!(line.contains(kind.name()) && line.contains("observed"), "{line}");
        }
    }
}
