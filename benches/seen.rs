//! Keys a second into the seen-set: beside fastbloom, beside the memory's own limit, and every kind beside each other.
//!
//! `cargo bench --bench seen` measures filters made for 10^6 and 10^8 keys; `SEEN_BENCH_MAX=1000000000` adds 10^9 (up to 6 GB at a
//! time), `SEEN_BENCH_MIN` leaves smaller ones out. `SEEN_BENCH_RATE=1` fills each filter to its capacity instead and measures its rate.
//!
//! Time is CPU time of the thread, taken over windows of 65,536 keys; the contenders take turns, each with the same keys. Printed
//! is the best window and, in brackets, the median: on a busy machine others take the caches and the memory away, so the best one
//! says what the code can do, and only the ratios of one run mean much. Keys are made from a counter outside the time. All are given
//! the hash. The windows fill a large filter to a few per cent; after a warm-up its memory is resident, and what a key costs does
//! not depend on how many bits are set.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints rounded figures, and stops where something is amiss"
)]

use std::hint::black_box;
use std::time::Duration;

use crawler::hash::{Fingerprint, HashKey};
use crawler::seen::bloom::Bloom;
use crawler::seen::{self, Kind, SeenSet, sizing};

const KEY: HashKey = HashKey([7; 16]);
/// Keys in a window.
const WINDOW: u64 = 1 << 16;
/// Windows of a measurement, at most, and before it.
const WINDOWS: u64 = 240;
const WARM_UP: u64 = 160;
/// Absent keys asked for a measured rate.
const ABSENT: u64 = 4_000_000;
/// The largest filter, bytes.
const MOST_BYTES: u64 = 6 << 30;

fn main() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let least = number("SEEN_BENCH_MIN").unwrap_or(0);
    let most = number("SEEN_BENCH_MAX").unwrap_or(100_000_000);
    let sizes = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
    let fill = number("SEEN_BENCH_RATE").is_some();
    hash();
    for capacity in sizes.into_iter().filter(|size| (least..=most).contains(size)) {
        if fill {
            rates(capacity);
        } else if capacity != 10_000_000 {
            race(capacity, 0.01);
            race(capacity, 0.001);
            shards(capacity);
            kinds(capacity);
        }
    }
}

/// A contender: what it does with a window's keys.
type Contender<'a> = (String, Box<dyn FnMut(&[Fingerprint]) + 'a>);

/// Lets the contenders take turns, and gives the speed of each: best and median, million keys a second.
fn take_turns(contenders: &mut [Contender], first: u64, windows: u64) -> Vec<(f64, f64)> {
    let mut speeds = vec![Vec::new(); contenders.len()];
    for window in 0..windows {
        let keys = keys(first + window * WINDOW..first + (window + 1) * WINDOW);
        for ((_, work), speeds) in contenders.iter_mut().zip(&mut speeds) {
            speeds.push(WINDOW as f64 / timed(|| work(&keys)).as_secs_f64() / 1e6);
        }
    }
    let both = |mut speeds: Vec<f64>| {
        speeds.sort_by(f64::total_cmp);
        (speeds[speeds.len() - 1], speeds[speeds.len() / 2])
    };
    speeds.into_iter().map(both).collect()
}

/// Windows that a filter of this capacity takes without being overfilled.
fn windows(capacity: u64, wanted: u64) -> u64 {
    wanted.min(capacity / WINDOW / 2).max(4)
}

/// Beside fastbloom and the memory.
fn race(capacity: u64, fp: f64) {
    println!("{capacity} keys at {} %", fp * 100.0);
    let lines = sizing::lines_for(capacity, fp).unwrap();
    let mut peer = fastbloom::BloomFilter::with_false_pos(fp).expected_items(usize::try_from(capacity).unwrap());
    let mut flags = vec![false; 4096];
    let mut contenders: Vec<Contender> = vec![(
        "fastbloom".to_owned(),
        Box::new(move |keys| {
            black_box(keys.iter().filter(|key| peer.insert_hash(key.high)).count());
        }),
    )];
    let mut limit = Bloom::new(capacity, lines).unwrap();
    contenders.push((
        "memory: a random line read, changed, written, 128 on their way".to_owned(),
        Box::new(move |keys| limit.bump(keys)),
    ));
    for batch in [1, 64, 256, 1024, 4096] {
        let mut bare = Bloom::new(capacity, lines).unwrap();
        let mut flags = std::mem::take(&mut flags);
        flags.resize(4096, false);
        contenders.push((
            format!("filter alone, batch {batch}"),
            Box::new(move |keys| keys.chunks(batch).for_each(|keys| bare.insert_batch(keys, &mut flags))),
        ));
    }
    for batch in [1, 64, 256, 1024] {
        let mut set = seen::make(Kind::Bloom, KEY, capacity, fp).unwrap();
        let mut new = Vec::new();
        contenders.push((
            format!("seen-set, batch {batch}"),
            Box::new(move |keys| keys.chunks(batch).for_each(|keys| set.insert_batch(keys, &mut new))),
        ));
    }
    let warm = windows(capacity, WARM_UP);
    take_turns(&mut contenders, 0, warm);
    let speeds = take_turns(&mut contenders, warm * WINDOW, windows(capacity, WINDOWS));
    let (peer, memory) = (speeds[0], speeds[1]);
    for ((name, _), (best, median)) in contenders.iter().zip(&speeds) {
        println!(
            "  {best:7.1} ({median:6.1}) M/s  {:5.1} ({:5.1}) x fastbloom  {:3.0} % of memory  {name}",
            best / peer.0,
            median / peer.1,
            best / memory.0 * 100.0
        );
    }
}

/// Two owners of half the keys each, on two threads, against one of all.
fn shards(capacity: u64) {
    let run = |threads: u64| {
        let works: Vec<_> = (0..threads)
            .map(|thread| {
                std::thread::spawn(move || {
                    let mut set = seen::make(Kind::Bloom, KEY, capacity / threads, 0.01).unwrap();
                    let mut new = Vec::new();
                    let mut contenders: Vec<Contender> = vec![(
                        String::new(),
                        Box::new(move |keys| keys.chunks(1024).for_each(|keys| set.insert_batch(keys, &mut new))),
                    )];
                    let (warm, base) = (windows(capacity / threads, WARM_UP), thread << 50);
                    take_turns(&mut contenders, base, warm);
                    take_turns(
                        &mut contenders,
                        base + warm * WINDOW,
                        windows(capacity / threads, WINDOWS),
                    )[0]
                })
            })
            .collect();
        let speeds: Vec<_> = works.into_iter().map(|work| work.join().unwrap()).collect();
        (
            speeds.iter().map(|(best, _)| best).sum::<f64>(),
            speeds.iter().map(|(_, median)| median).sum::<f64>(),
        )
    };
    let (one, two) = (run(1), run(2));
    println!(
        "  one shard {:.1} ({:.1}) M/s, two {:.1} ({:.1}): x {:.2} ({:.2})",
        one.0,
        one.1,
        two.0,
        two.1,
        two.0 / one.0,
        two.1 / one.1
    );
}

/// Every kind: new keys, the same again, absent ones.
fn kinds(capacity: u64) {
    for fp in [0.01, 0.001, 1e-6] {
        println!("{capacity} keys at {} %, every kind, batches of 256", fp * 100.0);
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Exact) {
            if seen::first_bytes(kind, capacity, fp) > MOST_BYTES || kind == Kind::HashSet && capacity > 100_000_000 {
                println!("  {:<9} does not fit", kind.name());
                continue;
            }
            let mut set = seen::make(kind, KEY, capacity, fp).unwrap();
            let mut new = Vec::new();
            let warm = windows(capacity, WARM_UP);
            let count = windows(capacity, WINDOWS);
            let mut insert = |first: u64, count: u64| {
                let mut one: Vec<Contender> = vec![(
                    String::new(),
                    Box::new(|keys| keys.chunks(256).for_each(|keys| set.insert_batch(keys, &mut new))),
                )];
                take_turns(&mut one, first, count)[0]
            };
            insert(0, warm);
            let fresh = insert(warm * WINDOW, count);
            let again = insert(warm * WINDOW, count);
            let mut ask: Vec<Contender> = vec![(
                String::new(),
                Box::new(|keys| {
                    black_box(keys.iter().filter(|key| set.contains(**key)).count());
                }),
            )];
            let absent = take_turns(&mut ask, 1 << 60, count.min(40))[0];
            drop(ask);
            let bytes = seen::first_bytes(kind, capacity, fp);
            println!(
                "  {:<9} {:6.2} bits a key  new {:6.1} ({:6.1})  again {:6.1} ({:6.1})  absent, one by one {:6.1} ({:6.1}) M/s",
                kind.name(),
                bytes as f64 * 8.0 / capacity as f64,
                fresh.0,
                fresh.1,
                again.0,
                again.1,
                absent.0,
                absent.1
            );
        }
    }
}

/// Fills to capacity, and compares what is lost and the rate with what was told.
fn rates(capacity: u64) {
    for fp in [0.01, 0.001] {
        println!("{capacity} keys at {} %: filled to capacity", fp * 100.0);
        for kind in Kind::ALL
            .into_iter()
            .filter(|kind| !matches!(kind, Kind::Exact | Kind::HashSet))
        {
            let mut set = seen::make(kind, KEY, capacity, fp).unwrap();
            let mut new = Vec::new();
            for start in (0..capacity).step_by(WINDOW as usize) {
                let keys = keys(start..(start + WINDOW).min(capacity));
                keys.chunks(1024).for_each(|keys| set.insert_batch(keys, &mut new));
            }
            let absent = keys(1 << 60..(1 << 60) + ABSENT);
            let wrong = absent.iter().filter(|key| set.contains(**key)).count();
            let account = set.account();
            println!(
                "  {:<9} rate {:.5} %, told {:.5} %; lost {} of {capacity}, estimated {:.0} ({:.0} to {:.0}); observed {:.5} % \
                 ({:.5} to {:.5}) of {}",
                kind.name(),
                wrong as f64 / ABSENT as f64 * 100.0,
                account.fp_predicted * 100.0,
                capacity - account.items,
                account.lost_estimate,
                account.lost_low,
                account.lost_high,
                account.fp_observed * 100.0,
                account.fp_observed_low * 100.0,
                account.fp_observed_high * 100.0,
                account.fp_observed_of
            );
            pauses(set.as_mut());
        }
    }
}

/// How long an insert waits for a snapshot.
fn pauses(set: &mut dyn SeenSet) {
    let mut chunk = Vec::new();
    let frozen = timed(|| set.freeze());
    let worst = (0..set.chunks())
        .map(|index| timed(|| set.copy_chunk(index, &mut chunk)))
        .max();
    set.thaw();
    let sample = timed(|| drop(set.sample()));
    println!(
        "            begun in {frozen:?}; longest chunk {:?}; sample {sample:?}",
        worst.unwrap_or_default()
    );
}

fn hash() {
    let urls: Vec<String> = (0..100_000)
        .map(|n| {
            format!(
                "https://www.example.com/section/article-{n:010}.html?page={}&sort=date",
                n % 7
            )
        })
        .collect();
    let mut sum = 0;
    let all = || urls.iter().for_each(|url| sum ^= KEY.fingerprint(url.as_bytes()).low);
    let best = [all].into_iter().map(timed).min().unwrap();
    println!(
        "hash of an address of {} bytes: {:.1} ns ({sum:016x})",
        urls[0].len(),
        best.as_secs_f64() * 1e9 / urls.len() as f64
    );
}

/// CPU time of this thread.
fn timed(work: impl FnOnce()) -> Duration {
    let before = cpu_time();
    work();
    cpu_time().saturating_sub(before)
}

#[expect(unsafe_code, reason = "the standard library has no CPU time of a thread")]
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live value of the type that the call fills.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

fn keys(range: std::ops::Range<u64>) -> Vec<Fingerprint> {
    let key = |n: u64| Fingerprint {
        high: seen::mixed(2 * n),
        low: seen::mixed(2 * n + 1),
    };
    range.map(key).collect()
}
