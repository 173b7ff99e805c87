//! Speed of taking links out of pages: `cargo bench --bench extract -- FOLDER...` (HTML files of the folders and below,
//! all of them held in memory). Without a folder, a page made here. Thread time of the best of five rounds.

#![expect(clippy::print_stdout, reason = "a bench reports to whoever runs it")]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use crawler::extract::{charset, extract};

/// Rounds over all pages; the best counts.
const ROUNDS: usize = 5;
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

fn report(name: &str, pages: &[Vec<u8>], mut work: impl FnMut(&[u8]) -> usize) {
    let bytes: usize = pages.iter().map(Vec::len).sum();
    let (mut best, mut found) = (f64::MAX, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        found = pages.iter().map(|page| work(black_box(page))).sum();
        best = best.min(start.elapsed().as_secs_f64());
    }
    #[expect(clippy::cast_precision_loss, reason = "sizes of test data")]
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
