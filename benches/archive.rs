//! What it costs to make the records of one page, and to sort an index. Figures: `docs/archive.md`.
//!
//! `cargo bench --bench archive`

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench may stop at what cannot be, as a test may"
)]

use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use crawler::archive::{cdxj, read, warc};
use crawler::clock::Time;
use crawler::fetch::Response;
use crawler::fetch::body::Spool;
use divan::Bencher;
use divan::counter::BytesCount;

fn main() {
    divan::main();
}

/// Length of an ordinary page in bytes.
const PAGE: usize = 27 * 1024;

/// Length of a page that packs to about 20 KB.
const LONG_PAGE: usize = 110 * 1024;

const WORDS: [&str; 40] = [
    "the",
    "method",
    "returns",
    "a",
    "value",
    "of",
    "type",
    "that",
    "is",
    "used",
    "when",
    "stream",
    "buffer",
    "reads",
    "an",
    "object",
    "class",
    "from",
    "its",
    "parent",
    "and",
    "throws",
    "if",
    "index",
    "element",
    "list",
    "in",
    "order",
    "to",
    "interface",
    "implements",
    "default",
    "string",
    "character",
    "sequence",
    "thread",
    "lock",
    "waits",
    "until",
    "closed",
];

/// A page like those of a documentation site: tags, links and words from a small generator.
fn page(length: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let mut next = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut html = b"<!doctype html><html><head><title>Page</title></head><body>\n".to_vec();
    while html.len() < length {
        write!(
            html,
            "<p class=\"p{}\"><a href=\"/api/java.base/{:x}.html#m{}\">",
            next(9),
            next(1 << 20),
            next(50)
        )
        .unwrap();
        for _ in 0..6 + next(20) {
            let word = WORDS[usize::try_from(next(40)).unwrap()];
            write!(
                html,
                "{word}{} ",
                if next(8) == 0 {
                    next(1000).to_string()
                } else {
                    String::new()
                }
            )
            .unwrap();
        }
        html.extend_from_slice(b"</a></p>\n");
    }
    html.truncate(length);
    html
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn response(body: Vec<u8>, gzipped: bool) -> Response {
    let coding = if gzipped { "Content-Encoding: gzip\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 30 Nov 2026 00:53:20 GMT\r\nContent-Type: text/html\r\n\
         Content-Length: {}\r\nLast-Modified: Tue, 01 Sep 2026 10:00:00 GMT\r\nConnection: keep-alive\r\n\
         ETag: \"66d44a00-6c00\"\r\n{coding}Accept-Ranges: bytes\r\n\r\n",
        body.len()
    );
    let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
    Response {
        status: 200,
        headers: headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.as_bytes().to_vec()))
            .collect(),
        head: head.into_bytes(),
        body: body.into(),
        truncated: None,
        remote: Some("192.0.2.1".parse().unwrap()),
        skipped: None,
        request_head: b"GET /api/java.base/java/lang/String.html HTTP/1.1\r\nHost: docs.example.com\r\n\
            User-Agent: Mozilla/5.0 (compatible; crawler/0.1; +https://example.com/bot)\r\nAccept: */*\r\n\
            Accept-Encoding: gzip, br, zstd, deflate\r\n\r\n"
            .to_vec(),
        protocols: Vec::new(),
        cipher: None,
        started: Time(1_796_000_000_123_456),
        took: Duration::from_millis(7),
        repeated: None,
    }
}

fn provenance() -> warc::Provenance {
    warc::Provenance {
        via: Some("http://docs.example.com/api/index.html".to_owned()),
        hops: "LL".to_owned(),
        notes: vec![],
    }
}

/// For records that are too large for memory: none here is.
fn spool() -> Arc<Spool> {
    Spool::open(tempfile::tempdir().unwrap().path()).unwrap()
}

const URI: &str = "http://docs.example.com/api/java.base/java/lang/String.html";

fn encode(bencher: Bencher, response: &Response) {
    let (provenance, spool) = (provenance(), spool());
    bencher
        .counter(BytesCount::new(response.body.len()))
        .bench_local(|| black_box(warc::encode(black_box(URI), black_box(response), &provenance, &spool).unwrap()));
}

/// A page that arrived plain: it is deflated.
#[divan::bench]
fn plain_page_of_27_kb(bencher: Bencher) {
    encode(bencher, &response(page(PAGE), false));
}

/// A page that arrived gzipped: it is stored.
#[divan::bench]
fn gzipped_page_of_20_kb(bencher: Bencher) {
    encode(bencher, &response(gzip(&page(LONG_PAGE)), true));
}

/// What every exchange costs beside its body: heads, ids, dates and two small records.
#[divan::bench]
fn empty_page(bencher: Bencher) {
    encode(bencher, &response(Vec::new(), false));
}

#[divan::bench]
fn revisit(bencher: Bencher) {
    let members = warc::encode(URI, &response(page(PAGE), false), &provenance(), &spool()).unwrap();
    let original = warc::Original {
        record_id: members.meta.record_id.clone(),
        uri: URI.to_owned(),
        date: members.meta.date,
    };
    bencher.bench_local(|| black_box(warc::revisit(&members, &original)));
}

/// Reading a file of 200 gzipped pages back, digests checked.
#[divan::bench]
fn read_back(bencher: Bencher) {
    let response = response(gzip(&page(LONG_PAGE)), true);
    let file = (0..200)
        .flat_map(|_| {
            warc::encode(URI, &response, &provenance(), &spool())
                .unwrap()
                .response
                .bytes()
                .unwrap()
        })
        .collect::<Vec<u8>>();
    bencher.counter(BytesCount::new(file.len())).bench_local(|| {
        for record in read::members(file.as_slice(), 0) {
            assert!(record.unwrap().wrong_digests().is_empty());
        }
    });
}

/// Sorting 200,000 lines in 8 MiB of memory.
#[divan::bench(sample_count = 5, sample_size = 1)]
fn sort_an_index(bencher: Bencher) {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from"), folder.path().join("to"));
    let meta = warc::encode(URI, &response(page(PAGE), false), &provenance(), &spool())
        .unwrap()
        .meta;
    let mut lines = Vec::new();
    for number in 0..200_000_u32 {
        let key = format!("com,example,docs)/{:08x}", number.wrapping_mul(2_654_435_761));
        writeln!(
            lines,
            "{}",
            cdxj::line_with_key(
                &key,
                &meta,
                false,
                "crawl-20261130005320-00000.warc.gz",
                number.into(),
                900
            )
        )
        .unwrap();
    }
    std::fs::write(&from, &lines).unwrap();
    bencher
        .counter(BytesCount::new(lines.len()))
        .bench_local(|| cdxj::sort_file(&from, &to, 8 << 20).unwrap());
}
