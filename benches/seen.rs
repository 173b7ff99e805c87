//! Inserts a second into the seen-set, beside fastbloom in the same run.
//!
//! `cargo bench --bench seen` fills filters of 10^6, 10^7 and 10^8 keys at 0.1 % and 1 %; `SEEN_BENCH_MAX=1000000000`
//! adds 10^9 (five filters of 1.2 to 2 GB); `SEEN_BENCH_MIN` leaves smaller ones out. Time is CPU time of this thread, so work beside it disturbs less. Keys are made from a counter
//! outside the measured time. Each figure is over the whole fill, from empty to capacity; both fill with the same keys,
//! a stretch of each in turn, and both are given the hash.

#![expect(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark prints rounded figures, and stops where something is amiss"
)]

use std::time::Duration;

use crawler::hash::{Fingerprint, HashKey};
use crawler::seen::bloom::Bloom;
use crawler::seen::layers::Layered;
use crawler::seen::{Kind, SeenSet, sizing};

/// Keys in a batch: a page's links, and those of a few pages.
const BATCHES: [usize; 3] = [64, 256, 1024];
/// Keys made at a time.
const STRETCH: u64 = 1 << 16;
/// Absent keys asked for the measured rate.
const ABSENT: u64 = 4_000_000;

fn main() {
    let number = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let least = number("SEEN_BENCH_MIN").unwrap_or(0);
    let most = number("SEEN_BENCH_MAX").unwrap_or(100_000_000);
    let sizes = [1_000_000, 10_000_000, 100_000_000, 1_000_000_000];
    print_hash();
    for capacity in sizes.into_iter().filter(|size| (least..=most).contains(size)) {
        for fp in [0.01, 0.001] {
            measure(capacity, fp);
        }
    }
}

fn measure(capacity: u64, fp: f64) {
    println!("{capacity} keys at {} %", fp * 100.0);
    let mut peer = fastbloom::BloomFilter::with_false_pos(fp).expected_items(usize::try_from(capacity).unwrap());
    let mut peer_time = Duration::ZERO;
    let mut bare = Bloom::new(capacity, sizing::lines_for(capacity, fp).unwrap()).unwrap();
    let mut bare_time = Duration::ZERO;
    let mut sets: Vec<_> = BATCHES
        .map(|size| {
            (
                size,
                Layered::new(Kind::Bloom, HashKey([7; 16]), capacity, fp).unwrap(),
                Duration::ZERO,
            )
        })
        .into();
    let mut flags = vec![false; 1024];
    let mut new = Vec::new();
    let mut lost = 0;
    for start in (0..capacity).step_by(usize::try_from(STRETCH).unwrap()) {
        let keys = keys(start..(start + STRETCH).min(capacity));
        peer_time += timed(|| lost += keys.iter().filter(|key| peer.insert_hash(key.high)).count());
        bare_time += timed(|| keys.chunks(1024).for_each(|keys| bare.insert_batch(keys, &mut flags)));
        for (size, set, time) in &mut sets {
            *time += timed(|| keys.chunks(*size).for_each(|keys| set.insert_batch(keys, &mut new)));
        }
    }
    let absent = keys(1 << 60..(1 << 60) + ABSENT);
    let rate = |seen: usize| seen as f64 / ABSENT as f64 * 100.0;
    let peer_speed = speed(capacity, peer_time);
    println!(
        "  fastbloom             {peer_speed:7.1} M/s         rate {:.4} %",
        rate(absent.iter().filter(|key| peer.contains_hash(key.high)).count())
    );
    let bare_speed = speed(capacity, bare_time);
    println!(
        "  filter alone, 1024    {bare_speed:7.1} M/s  {:5.1} x",
        bare_speed / peer_speed
    );
    for (size, set, time) in &sets {
        let ours = speed(capacity, *time);
        let rate = rate(absent.iter().filter(|key| set.contains(**key)).count());
        println!(
            "  seen-set, batch {size:<5} {ours:7.1} M/s  {:5.1} x  rate {rate:.4} %",
            ours / peer_speed
        );
    }
    let (_, set, _) = sets.last_mut().unwrap();
    let mut again = Duration::ZERO;
    for start in (0..capacity).step_by(usize::try_from(STRETCH).unwrap()) {
        let keys = keys(start..(start + STRETCH).min(capacity));
        again += timed(|| keys.chunks(1024).for_each(|keys| set.insert_batch(keys, &mut new)));
    }
    println!("  the same keys again   {:7.1} M/s", speed(capacity, again));
    let account = set.account();
    println!(
        "  lost {} of {capacity}: estimated {:.0}, fastbloom lost {lost}; observed {:.5} % of {}; {:.2} bits a key",
        capacity - account.items,
        account.lost_estimate,
        account.fp_observed * 100.0,
        account.fp_observed_of,
        account.bits as f64 / capacity as f64,
    );
    let mut chunk = Vec::new();
    let worst = (0..set.chunks())
        .map(|index| timed(|| set.copy_chunk(index, &mut chunk)))
        .max()
        .unwrap();
    let sample = timed(|| drop(set.sample()));
    println!(
        "  {} chunks copied, longest {worst:?}; sample taken in {sample:?}",
        set.chunks()
    );
}

fn print_hash() {
    let key = HashKey([7; 16]);
    let urls: Vec<String> = (0..100_000)
        .map(|n| {
            format!(
                "https://www.example.com/section/article-{n:010}.html?page={}&sort=date",
                n % 7
            )
        })
        .collect();
    let mut sum = 0;
    let time = timed(|| urls.iter().for_each(|url| sum ^= key.fingerprint(url.as_bytes()).low));
    println!(
        "hash of an address of {} bytes: {:.1} ns ({sum:016x})",
        urls[0].len(),
        time.as_secs_f64() * 1e9 / urls.len() as f64
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

fn speed(keys: u64, time: Duration) -> f64 {
    keys as f64 / time.as_secs_f64() / 1e6
}

fn keys(range: std::ops::Range<u64>) -> Vec<Fingerprint> {
    range
        .map(|n| Fingerprint {
            high: mix(2 * n),
            low: mix(2 * n + 1),
        })
        .collect()
}

/// `SplitMix64`.
fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}
