use std::io::Write;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use proptest::prelude::*;

use super::*;

const CAP: usize = 1 << 20;

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zlib(data: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn raw(data: &[u8]) -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn zstd(data: &[u8]) -> Vec<u8> {
    ::zstd::bulk::compress(data, 3).unwrap()
}

/// Brotli of stored blocks only (RFC 7932 section 9.2): there is no encoder among our crates, and none is needed.
fn brotli(data: &[u8]) -> Vec<u8> {
    let mut bits: Vec<bool> = vec![false]; // a window of 16 bits
    let put = |value: usize, count: u32, bits: &mut Vec<bool>| {
        for i in 0..count {
            bits.push(value >> i & 1 == 1);
        }
    };
    let mut out = Vec::new();
    for chunk in data.chunks(1 << 16) {
        put(0, 1, &mut bits); // not the last
        put(0, 2, &mut bits); // four nibbles of length
        put(chunk.len() - 1, 16, &mut bits);
        put(1, 1, &mut bits); // stored
        while !bits.len().is_multiple_of(8) {
            bits.push(false);
        }
        out.extend(
            bits.chunks(8)
                .map(|b| b.iter().rev().fold(0u8, |byte, bit| byte << 1 | u8::from(*bit))),
        );
        bits.clear();
        out.extend_from_slice(chunk);
    }
    put(3, 2, &mut bits); // the last, empty
    while !bits.len().is_multiple_of(8) {
        bits.push(false);
    }
    out.extend(
        bits.chunks(8)
            .map(|b| b.iter().rev().fold(0u8, |byte, bit| byte << 1 | u8::from(*bit))),
    );
    out
}

/// [`REAL_TEXT`] by a real encoder at its best, to see compressed blocks and the static dictionary at work.
const REAL_BROTLI: &[u8] = &[
    0x1b, 0xa2, 0x00, 0x00, 0x8c, 0xd3, 0x25, 0xb2, 0xd7, 0x9a, 0xab, 0x5f, 0xc2, 0xc8, 0xe0, 0xa4, 0x0f, 0x4f, 0x19,
    0xc8, 0xe4, 0x02, 0xe6, 0xda, 0xb2, 0x04, 0x13, 0xff, 0x0e, 0x18, 0x60, 0xba, 0xc3, 0x73, 0xfe, 0x31, 0x35, 0xe9,
    0xab, 0xc8, 0xc8, 0x84, 0xdd, 0x48, 0xb9, 0x86, 0x95, 0x2f, 0x44, 0xe2, 0xaa, 0x80, 0xe9, 0xe2, 0x5e, 0x9b, 0x6b,
    0x84, 0x1e, 0x63, 0x99, 0xd9, 0xf2, 0xf4, 0xc4, 0x6a, 0x05,
];
const REAL_TEXT: &str = "<!doctype html><html><head><title>The time of the year</title></head><body><p>information \
                         about the time of the year and the history of the world</p></body></html>";

fn page() -> Vec<u8> {
    (0..400)
        .flat_map(|i| format!("<p><a href=\"/page/{i}\">entry {}</a></p>\n", i * i % 997).into_bytes())
        .collect()
}

fn check(encodings: &[&str], body: &[u8], cap: usize) -> (Vec<u8>, Option<DecodeFault>) {
    let lines: Vec<&[u8]> = encodings.iter().map(|line| line.as_bytes()).collect();
    let whole = large(&lines, &Body::from(body.to_vec()), cap as u64, Keep::ALL, &spool()).unwrap();
    assert_eq!((whole.len, whole.cut), (whole.bytes.len() as u64, false));
    if let Some(decoded) = small(&lines, body, cap as u64) {
        assert!(decoded.bytes == whole.bytes, "both ways give the same");
        assert_eq!(
            (decoded.len, decoded.cut, decoded.fault),
            (whole.len, false, whole.fault)
        );
    }
    (whole.bytes.into_owned(), whole.fault)
}

/// A spool without room in memory, so that all between two codings goes through files.
fn spool() -> Arc<Spool> {
    static SPOOL: OnceLock<(tempfile::TempDir, Arc<Spool>)> = OnceLock::new();
    let (_, spool) = SPOOL.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::with_room(home.path(), 0).unwrap();
        (home, spool)
    });
    Arc::clone(spool)
}

#[test]
fn every_coding_gives_the_page_back() {
    let page = page();
    for (name, body) in [
        ("gzip", gzip(&page)),
        ("x-gzip", gzip(&page)),
        ("GZip", gzip(&page)),
        ("deflate", zlib(&page)),
        ("deflate", raw(&page)),
        ("deflate", gzip(&page)),
        ("br", brotli(&page)),
        ("zstd", zstd(&page)),
        ("identity", page.clone()),
        ("", page.clone()),
    ] {
        assert_eq!(check(&[name], &body, CAP), (page.clone(), None), "{name}");
        assert_eq!(
            check(&[name], &body, page.len()),
            (page.clone(), None),
            "{name}: a cap of exactly the size"
        );
        let (short, fault) = check(&[name], &body, page.len() - 1);
        assert!(
            short == page[..page.len() - 1] && fault == Some(DecodeFault::Limit),
            "{name}: {fault:?}"
        );
    }
    assert_eq!(check(&[], &page, CAP), (page, None));
}

#[test]
fn an_empty_body_is_whole_under_any_label() {
    for name in ["gzip", "deflate", "br", "zstd", "compress", "gzip, br"] {
        assert_eq!(check(&[name], b"", CAP), (Vec::new(), None), "{name}");
    }
    for (name, body) in [
        ("gzip", gzip(b"")),
        ("deflate", zlib(b"")),
        ("deflate", raw(b"")),
        ("zstd", zstd(b"")),
    ] {
        assert_eq!(check(&[name], &body, CAP), (Vec::new(), None), "{name}");
    }
}

#[test]
fn codings_are_undone_from_the_last_in_one_line_or_several() {
    let page = page();
    assert_eq!(check(&["gzip, gzip"], &gzip(&gzip(&page)), CAP), (page.clone(), None));
    assert_eq!(
        check(&["deflate", "gzip"], &gzip(&zlib(&page)), CAP),
        (page.clone(), None)
    );
    assert_eq!(
        check(&["br,identity ,", " zstd"], &zstd(&brotli(&page)), CAP),
        (page.clone(), None)
    );
    assert_eq!(
        check(&["gzip, gzip"], &gzip(&page), CAP),
        (page.clone(), None),
        "it says twice and is once"
    );
    assert_eq!(
        check(&["gzip,gzip,gzip,gzip,gzip,gzip"], &gzip(&page), CAP),
        (page.clone(), None)
    );
    let five = gzip(&gzip(&gzip(&gzip(&gzip(&page)))));
    assert_eq!(
        check(&["gzip,gzip,gzip,gzip,gzip"], &five, CAP),
        (gzip(&page), Some(DecodeFault::Unsupported))
    );
}

#[test]
fn gzip_is_read_over_all_members_and_padding() {
    let page = page();
    let twice = [gzip(&page), gzip(&page)].concat();
    assert_eq!(
        check(&["gzip"], &twice, CAP),
        ([page.clone(), page.clone()].concat(), None),
        "equal members too"
    );
    let three = [gzip(b"a"), gzip(b""), gzip(b"bc")].concat();
    assert_eq!(check(&["gzip"], &three, CAP), (b"abc".to_vec(), None));
    for tail in [
        &b"\n"[..],
        b"\0\0\0\0\0\0\0\0\0\0",
        b"<!-- served in 3 ms -->",
        b"\x1f",
        b"\x1f\x8b\x01\0\0",
    ] {
        let padded = [gzip(&page), tail.to_vec()].concat();
        assert_eq!(check(&["gzip"], &padded, CAP), (page.clone(), None), "{tail:?}");
    }
    let cut = [gzip(&page), b"\x1f\x8b\x08\0".to_vec()].concat();
    assert_eq!(check(&["gzip"], &cut, CAP), (page, Some(DecodeFault::Incomplete)));
}

#[test]
fn every_field_of_a_gzip_header_is_skipped() {
    let plain = gzip(b"text");
    let mut rich = vec![0x1f, 0x8b, 8, 2 | 4 | 8 | 16, 0, 0, 0, 0, 0, 3];
    rich.extend_from_slice(&[3, 0, 1, 2, 3]);
    rich.extend_from_slice(b"name.html\0a comment\0\x12\x34");
    let header = rich.len();
    rich.extend_from_slice(&plain[10..]);
    // twice, so that the streaming way is taken
    assert_eq!(
        check(&["gzip"], &[rich.clone(), plain].concat(), CAP),
        (b"texttext".to_vec(), None)
    );
    for end in 2..header {
        assert_eq!(
            check(&["gzip"], &rich[..end], CAP),
            (Vec::new(), Some(DecodeFault::Incomplete)),
            "{end}"
        );
    }
}

#[test]
fn what_is_labelled_but_plain_is_given_as_it_is() {
    for text in [
        &b"<!doctype html><title>page</title><p><a href=\"/a\">0</a></p>"[..],
        b"x<!doctype html>",
        b";",
        b"K",
        b"c@ @ @",
    ] {
        for label in [
            "gzip",
            "deflate",
            "br",
            "zstd",
            "gzip, br",
            "none",
            "utf-8",
            "compress",
            "x-unknown",
        ] {
            if (label, text) == ("br", b";") || (label, text) == ("gzip, br", b";") {
                continue; // this one byte is a whole brotli stream of nothing
            }
            assert_eq!(check(&[label], text, CAP), (text.to_vec(), None), "{label} {text:?}");
        }
    }
    let binary = [0x89, b'P', b'N', b'G', 0, 1, 2, 3];
    assert_eq!(check(&["gzip"], &binary, CAP), (binary.to_vec(), None));
    assert_eq!(
        check(&["compress"], &binary, CAP),
        (binary.to_vec(), Some(DecodeFault::Unsupported))
    );
    assert_eq!(check(&["none"], &binary, CAP), (binary.to_vec(), None));
}

#[test]
fn a_cut_stream_gives_what_came() {
    let page = page();
    for (name, body) in [
        ("gzip", gzip(&page)),
        ("deflate", zlib(&page)),
        ("deflate", raw(&page)),
        ("br", brotli(&page)),
        ("zstd", zstd(&page)),
    ] {
        let (some, fault) = check(&[name], &body[..body.len() - 1], CAP);
        assert_eq!(fault, Some(DecodeFault::Incomplete), "{name}");
        assert!(page.starts_with(&some), "{name}");
        if name != "zstd" {
            let (half, _) = check(&[name], &body[..body.len() / 2], CAP);
            assert!(
                page.starts_with(&half) && half.len() > page.len() / 4,
                "{name}: {}",
                half.len()
            );
        }
    }
    let whole = gzip(&page);
    let no_trailer = check(&["gzip"], &whole[..whole.len() - 8], CAP);
    assert_eq!(no_trailer, (page, Some(DecodeFault::Incomplete)));
}

#[test]
fn a_broken_stream_gives_what_came_before_the_fault() {
    let page = page();
    let mut body = gzip(&page);
    let middle = body.len() / 2;
    body[middle..middle + 40].fill(0xff);
    let (some, fault) = check(&["gzip"], &body, CAP);
    assert_eq!(fault, Some(DecodeFault::Incomplete));
    assert!(
        some.len() > page.len() / 4 && page[..page.len() / 4] == some[..page.len() / 4],
        "{}",
        some.len()
    );

    let mut wrong_sum = gzip(&page);
    let at = wrong_sum.len() - 8;
    wrong_sum[at] ^= 1;
    assert_eq!(
        check(&["gzip"], &wrong_sum, CAP),
        (page.clone(), Some(DecodeFault::Incomplete))
    );

    let mut lying_size = gzip(&page);
    let at = lying_size.len() - 1;
    lying_size[at] = 0x7f;
    assert_eq!(
        check(&["gzip"], &lying_size, CAP),
        (page, None),
        "a wrong size costs nothing"
    );
}

#[test]
fn real_brotli_is_read() {
    assert_eq!(check(&["br"], REAL_BROTLI, CAP), (REAL_TEXT.as_bytes().to_vec(), None));
    let (some, fault) = check(&["br"], &REAL_BROTLI[..REAL_BROTLI.len() - 9], CAP);
    assert_eq!(fault, Some(DecodeFault::Incomplete));
    assert!(
        REAL_TEXT.as_bytes().starts_with(&some) && some.len() > 80,
        "{}",
        some.len()
    );
}

/// A bomb is small on the wire and stops at the cap, however much is behind it.
#[test]
fn bombs_stop_at_the_cap_quickly() {
    static MEGABYTE: [u8; 1 << 20] = [0; 1 << 20];
    let mut gz = GzEncoder::new(Vec::new(), Compression::new(9));
    let mut zst = ::zstd::stream::write::Encoder::new(Vec::new(), 3).unwrap();
    for _ in 0..256 {
        gz.write_all(&MEGABYTE).unwrap();
        zst.write_all(&MEGABYTE).unwrap();
    }
    let (gz, zst) = (gz.finish().unwrap(), zst.finish().unwrap());
    for (name, body) in [
        ("gzip", &gz),
        ("zstd", &zst),
        ("gzip, gzip", &gzip(&gz)),
        ("deflate", &gz),
    ] {
        let began = Instant::now();
        let (bytes, fault) = check(&[name], body, CAP);
        assert_eq!((bytes.len(), fault), (CAP, Some(DecodeFault::Limit)), "{name}");
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{name}: {:?}",
            began.elapsed()
        );
    }
}

#[test]
fn a_zstd_window_beyond_the_webs_is_refused() {
    let mut encoder = ::zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(24).unwrap();
    encoder.include_contentsize(false).unwrap();
    encoder.write_all(&page()).unwrap();
    let body = encoder.finish().unwrap();
    assert_eq!(
        check(&["zstd"], &body, CAP),
        (Vec::new(), Some(DecodeFault::Incomplete))
    );
}

#[test]
fn zstd_is_read_over_all_frames() {
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 9, 9, 9];
    let body = [&skippable[..], &zstd(b"one "), &zstd(b"two"), b"\n"].concat();
    assert_eq!(check(&["zstd"], &body, CAP), (b"one two".to_vec(), None));
}

#[test]
fn of_a_large_body_the_start_is_kept_if_it_is_wanted_and_the_rest_counted() {
    let text = page().repeat(300);
    let len = text.len() as u64;
    assert!(text.len() > 2 * SMALL);
    let noise: Vec<u8> = (0..3_000_000_u32)
        .map(|i| i.wrapping_mul(2_654_435_761).to_be_bytes()[0])
        .collect();
    for (label, coded) in [
        ("gzip", gzip(&text)),
        ("deflate", zlib(&text)),
        ("deflate", raw(&text)),
        ("br", brotli(&text)),
        ("zstd", zstd(&text)),
        ("gzip, br", brotli(&gzip(&text))),
        ("gzip", text.clone()),
        ("identity", text.clone()),
    ] {
        assert!(small(&[label.as_bytes()], &coded, u64::MAX).is_none(), "{label}");
        let coded = Sink::kept(&spool(), coded).unwrap();
        let decoded = |most, cap, wanted: bool| {
            let wants = |start: &[u8]| {
                assert!(
                    text.starts_with(start) && start.len() >= 1_445,
                    "{label}: {}",
                    start.len()
                );
                wanted
            };
            let keep = Keep { most, wants: &wants };
            large(&[label.as_bytes()], &coded, cap, keep, &spool()).unwrap()
        };
        for (most, kept, cut) in [(100_000, 100_000, true), (text.len(), text.len(), false)] {
            let some = decoded(most, u64::MAX, true);
            assert!(*some.bytes == text[..kept], "{label}: {}", some.bytes.len());
            assert_eq!((some.len, some.cut, some.fault), (len, cut, None), "{label}");
        }
        let unwanted = decoded(100_000, u64::MAX, false);
        assert!(
            unwanted.bytes.len() <= stream::LOOK_AT && unwanted.len == len && !unwanted.cut,
            "{label}"
        );
        let capped = decoded(100_000, len - 1, true);
        assert_eq!(
            (capped.len, capped.fault),
            (len - 1, Some(DecodeFault::Limit)),
            "{label}"
        );
        assert_eq!(capped.bytes.len(), 100_000, "{label}");
    }
    let capped = large(&[], &Body::from(noise), 5_000, Keep::ALL, &spool()).unwrap();
    assert_eq!(
        (capped.bytes.len(), capped.len, capped.fault),
        (5_000, 5_000, Some(DecodeFault::Limit))
    );
}

proptest! {
    #[test]
    fn any_bytes_under_any_label_give_an_outcome_within_the_cap(
        body in proptest::collection::vec(any::<u8>(), 0..2_000),
        label in "(gzip|x-gzip|deflate|br|zstd|identity|compress|[ ,;a-z]{0,5})(,(gzip|deflate|br|zstd)){0,5}",
        cap in 0usize..5_000,
        head in prop_oneof![Just(&b""[..]), Just(&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..]), Just(&b"\x28\xb5\x2f\xfd"[..]), Just(&b"\x78\x9c"[..])],
    ) {
        let body = [head, &body].concat();
        prop_assert!(check(&[&label], &body, cap).0.len() <= cap);
    }

    #[test]
    fn a_coded_page_comes_back_and_a_flipped_byte_is_survived(
        data in proptest::collection::vec(prop_oneof![Just(b'a'), Just(b'<'), any::<u8>()], 0..5_000),
        flip in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
    ) {
        for (label, body) in [("gzip", gzip(&data)), ("deflate", zlib(&data)), ("br", brotli(&data)), ("zstd", zstd(&data))] {
            prop_assert_eq!(check(&[label], &body, CAP), (data.clone(), None));
            let mut hurt = body.clone();
            let at = flip.index(hurt.len());
            hurt[at] ^= 0x55;
            prop_assert!(check(&[label], &hurt, 3_000).0.len() <= 3_000);
            check(&[label], &body[..cut.index(body.len())], CAP);
        }
    }
}
