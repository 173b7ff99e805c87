//! What a payload is by its own first bytes: `WARC-Identified-Payload-Type` (WARC 1.1 section 5.15).
//!
//! A short table of signatures in the manner of the WHATWG MIME Sniffing Standard. What it does not know it leaves
//! unsaid: the field is there to find content whose server calls it something else.

use std::cell::RefCell;

use flate2::{Decompress, FlushDecompress};

/// How many decoded bytes are looked at.
pub const PREFIX: usize = 512;
/// How many bytes of a body are enough to decode so many of it.
pub const ENOUGH: usize = 4 * 1024;

/// Signatures at the very start.
const MAGIC: [(&[u8], &str); 24] = [
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"\x00\x00\x01\x00", "image/x-icon"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b\x08", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"\xfd7zXZ\x00", "application/x-xz"),
    (b"BZh", "application/x-bzip2"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"Rar!\x1a\x07", "application/x-rar-compressed"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
    (b"OTTO", "font/otf"),
    (b"\x00\x01\x00\x00\x00", "font/ttf"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"OggS\x00", "application/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"%!PS-Adobe-", "application/postscript"),
    (b"{\\rtf", "application/rtf"),
    (b"\x00asm", "application/wasm"),
];

/// Signatures after the first bytes: offset of the second, the first, the second, the type.
const CONTAINERS: [(&[u8], usize, &[u8], &str); 5] = [
    (b"RIFF", 8, b"WEBP", "image/webp"),
    (b"RIFF", 8, b"WAVE", "audio/wav"),
    (b"RIFF", 8, b"AVI ", "video/avi"),
    (b"", 4, b"ftypavif", "image/avif"),
    (b"", 4, b"ftyp", "video/mp4"),
];

/// Tags that begin an HTML page, in lower case; each must end at a space or `>`.
const HTML: [&[u8]; 12] = [
    b"<!doctype html",
    b"<html",
    b"<head",
    b"<body",
    b"<title",
    b"<meta",
    b"<script",
    b"<style",
    b"<div",
    b"<table",
    b"<p",
    b"<a",
];

thread_local! {
    /// Kept between bodies: a new one costs more than the decoding of [`PREFIX`] bytes.
    static INFLATE: RefCell<Decompress> = RefCell::new(Decompress::new(false));
}

/// The media type of a body as its bytes show it; the first [`ENOUGH`] of them are as good as all. A body that is gzip by its content coding (`gzipped`) is looked at
/// after decoding; `None` if the bytes say nothing.
#[must_use]
pub fn identify(body: &[u8], gzipped: bool) -> Option<&'static str> {
    if !gzipped || !body.starts_with(b"\x1f\x8b") {
        return by_prefix(body.get(..PREFIX).unwrap_or(body));
    }
    // servers send none of the optional fields of a gzip header (RFC 1952 section 2.3): a body that has some stays unnamed
    let deflated = body.strip_prefix(b"\x1f\x8b\x08\x00")?.get(6..)?;
    let mut decoded = [0; PREFIX];
    let length = INFLATE.with_borrow_mut(|inflate| {
        inflate.reset(false);
        // a fault in the stream leaves what was decoded before it
        let _ = inflate.decompress(deflated, &mut decoded, FlushDecompress::None);
        usize::try_from(inflate.total_out()).unwrap_or(0)
    });
    by_prefix(decoded.get(..length)?)
}

fn by_prefix(bytes: &[u8]) -> Option<&'static str> {
    if let Some((_, media_type)) = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(media_type);
    }
    let container = CONTAINERS.iter().find(|(first, at, second, _)| {
        bytes.starts_with(first) && bytes.get(*at..).is_some_and(|rest| rest.starts_with(second))
    });
    if let Some((.., media_type)) = container {
        return Some(media_type);
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
    let html = HTML.iter().any(|tag| {
        text.get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag))
            && matches!(text.get(tag.len()), Some(b' ' | b'\t' | b'\r' | b'\n' | b'\x0c' | b'>'))
    });
    if html {
        return Some("text/html");
    }
    text.starts_with(b"<?xml").then_some("text/xml")
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn known_starts_are_named() {
        for (bytes, expected) in [
            (b"<!DOCTYPE html><title>x</title>".as_slice(), Some("text/html")),
            (b"\xef\xbb\xbf \r\n<HTML lang=de>", Some("text/html")),
            (b"<pre>", None),
            (b"<p", None),
            (b"<?xml version='1.0'?>", Some("text/xml")),
            (b"\x89PNG\r\n\x1a\n....", Some("image/png")),
            (b"RIFF\x10\x00\x00\x00WEBPVP8 ", Some("image/webp")),
            (b"\x00\x00\x00\x1cftypavif", Some("image/avif")),
            (b"\x00\x00\x00\x1cftypisom", Some("video/mp4")),
            (b"RIFF", None),
            (b"plain words", None),
            (b"", None),
        ] {
            assert_eq!(identify(bytes, false), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn a_gzipped_page_is_looked_at_after_decoding_and_a_gzip_file_is_not() {
        let page = gzip(&b"<!doctype html><p>words</p>".repeat(1_000));
        assert_eq!(identify(&page, true), Some("text/html"));
        assert_eq!(identify(&page, false), Some("application/gzip"));
        assert_eq!(
            identify(&page[..page.len() - 9], true),
            Some("text/html"),
            "what was decoded before the cut counts"
        );
        assert_eq!(identify(b"<html>not gzip at all", true), Some("text/html"));
        assert_eq!(identify(b"\x1f\x8b\x08 broken", true), None);
        assert_eq!(
            identify(&page, true),
            Some("text/html"),
            "a broken stream leaves nothing behind"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..600), gzipped: bool) {
            let _ = identify(&bytes, gzipped);
            let _ = identify(&[b"\x1f\x8b\x08\x00".as_slice(), &bytes].concat(), gzipped);
        }
    }
}
