//! Speed of taking links out of pages: `cargo bench --bench extract -- FOLDER...` (HTML files of the folders and below,
//! all of them held in memory). Without a folder, a page made here. Thread time of the best of five rounds.

#![expect(clippy::print_stdout, reason = "a bench reports to whoever runs it")]

use std::hint::black_box;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

use crawler::extract::{charset, extract};

/// Rounds over all pages; the best counts.
const ROUNDS: usize = 5;
/// Bytes worked through in a round at least: the system counts a thread's time in steps of some milliseconds.
const ROUND_BYTES: usize = 400 << 20;
/// Bytes of pages read at most.
const MAX_BYTES: usize = 256 << 20;

fn read_below(folder: &Path, pages: &mut Vec<Vec<u8>>, bytes: &mut usize) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_below(&path, pages, bytes);
        } else if path.extension().is_some_and(|end| end == "html" || end == "htm") && *bytes < MAX_BYTES {
            let page = std::fs::read(&path).unwrap_or_default();
            *bytes += page.len();
            pages.push(page);
        }
    }
}

/// Time this thread has run, so that a busy machine does not count; the clock's where the system does not say.
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of one run")]
fn cpu_seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    let on_cpu = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = on_cpu.and_then(|line| line.split(' ').next()?.parse::<u64>().ok());
    nanoseconds.map_or_else(
        || START.get_or_init(Instant::now).elapsed().as_secs_f64(),
        |ns| ns as f64 / 1e9,
    )
}

#[expect(clippy::cast_precision_loss, reason = "sizes of test data")]
fn report(name: &str, pages: &[Vec<u8>], mut work: impl FnMut(&[u8]) -> usize) {
    let bytes: usize = pages.iter().map(Vec::len).sum();
    let repeats = ROUND_BYTES.div_ceil(bytes.max(1));
    let (mut best, mut found) = (f64::MAX, 0);
    for _ in 0..ROUNDS {
        let start = cpu_seconds();
        for _ in 0..repeats {
            found = pages.iter().map(|page| work(black_box(page))).sum();
        }
        best = best.min((cpu_seconds() - start) / repeats as f64);
    }
    let (megabytes, count) = (bytes as f64 / 1e6, pages.len() as f64);
    println!(
        "{name:16} {:8.1} us/page {:8.1} MB/s {found} found",
        best * 1e6 / count,
        megabytes / best
    );
}

fn main() {
    let folders: Vec<_> = std::env::args()
        .skip(1)
        .filter(|argument| !argument.starts_with("--"))
        .collect();
    let mut sets = Vec::new();
    for folder in &folders {
        let (mut pages, mut bytes) = (Vec::new(), 0);
        read_below(Path::new(folder), &mut pages, &mut bytes);
        sets.push((folder.clone(), pages));
    }
    if folders.is_empty() {
        let row =
            "<tr class=row><td><a href=\"/item?id=1&amp;x=2\" title=t>An item</a></td><td>Some words about it.</td>";
        sets.push(("a table made here".into(), vec![row.repeat(1000).into_bytes()]));
    }
    for (name, pages) in &sets {
        println!(
            "{name}: {} pages, {} bytes",
            pages.len(),
            pages.iter().map(Vec::len).sum::<usize>()
        );
        report("charset", pages, |page| charset::decode(None, page).1.len());
        report("links", pages, |page| {
            let mut text = String::new();
            extract(200, Some(b"text/html; charset=utf-8"), &[], page, &mut text)
                .links
                .len()
        });
    }
}
