//! What a body is: the media type it came with, or the one its first bytes show (MIME Sniffing Standard).

use super::headers::quoted_string;

/// Bytes of a body that are looked at (section 5.2).
const HEAD: usize = 1445;

/// A media type (section 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaType {
    /// `type/subtype` in lower case.
    pub essence: String,
    /// The first `charset` parameter as written; it may be no known label.
    pub charset: Option<String>,
}

/// Reads a `Content-Type` (section 4.4). `None` if it is not one media type.
#[must_use]
pub fn parse(value: &[u8]) -> Option<MediaType> {
    let value = encoding_rs::mem::decode_latin1(value);
    let value = value.trim_matches(is_space);
    let (essence, parameters) = value.split_once(';').unwrap_or((value, ""));
    let essence = essence.trim_end_matches(is_space);
    let (kind, subtype) = essence.split_once('/')?;
    if !is_token(kind) || !is_token(subtype) {
        return None;
    }
    Some(MediaType {
        essence: essence.to_ascii_lowercase(),
        charset: charset(parameters),
    })
}

/// The value of the first parameter `charset` that is valid.
fn charset(mut rest: &str) -> Option<String> {
    while !rest.is_empty() {
        rest = rest.trim_start_matches(is_space);
        let end = rest.find([';', '=']).unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let Some(after) = after.strip_prefix('=') else {
            rest = after.strip_prefix(';').unwrap_or_default();
            continue;
        };
        let quoted = after.starts_with('"');
        let (value, behind) = if quoted {
            let (value, behind) = quoted_string(after.get(1..).unwrap_or_default());
            (value.into_owned(), behind)
        } else {
            let (value, behind) = after.split_at(after.find(';').unwrap_or(after.len()));
            (value.trim_end_matches(is_space).to_owned(), behind)
        };
        // what stands behind a quoted value is dropped
        rest = behind.split_once(';').map_or("", |(_, next)| next);
        let valid = value
            .chars()
            .all(|c| c == '\t' || (' '..='~').contains(&c) || ('\u{80}'..='\u{ff}').contains(&c));
        if name.eq_ignore_ascii_case("charset") && valid && (quoted || !value.is_empty()) {
            return Some(value);
        }
    }
    None
}

/// The essence of a body's type: the one given, corrected where the standard does (pictures, sound, feeds sent as
/// HTML), or found by the first bytes if none is given or it cannot be read.
#[must_use]
pub fn sniff(content_type: Option<&[u8]>, body: &[u8]) -> String {
    let head = body.get(..HEAD).unwrap_or(body);
    let Some(given) = content_type.and_then(parse) else {
        return unknown(head).to_owned();
    };
    match given.essence.as_str() {
        "unknown/unknown" | "application/unknown" | "*/*" => return unknown(head).to_owned(),
        "text/html" => return feed(head).map_or(given.essence, str::to_owned),
        // a drawing is text: its first bytes say nothing
        "image/svg+xml" => return given.essence,
        _ => {}
    }
    let corrected = match given.essence.split('/').next() {
        Some("image") => image(head),
        Some("audio" | "video") => sound_or_film(head),
        _ => None,
    };
    corrected.map_or(given.essence, str::to_owned)
}

/// Section 7.1.
fn unknown(head: &[u8]) -> &'static str {
    const TAGS: [&[u8]; 17] = [
        b"<!DOCTYPE HTML",
        b"<HTML",
        b"<HEAD",
        b"<SCRIPT",
        b"<IFRAME",
        b"<H1",
        b"<DIV",
        b"<FONT",
        b"<TABLE",
        b"<A",
        b"<STYLE",
        b"<TITLE",
        b"<B",
        b"<BODY",
        b"<BR",
        b"<P",
        b"<!--",
    ];
    const STARTS: [(&[u8], &str); 6] = [
        (b"%PDF-", "application/pdf"),
        (b"%!PS-Adobe-", "application/postscript"),
        (b"\xfe\xff", "text/plain"),
        (b"\xff\xfe", "text/plain"),
        (b"\xef\xbb\xbf", "text/plain"),
        (b"<?xml", "text/xml"),
    ];
    let text = trim_start(head);
    let starts_html = TAGS.iter().any(|tag| {
        text.get(..tag.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(tag))
            && matches!(text.get(tag.len()), Some(b' ' | b'>'))
    });
    if starts_html {
        return "text/html";
    }
    let known = STARTS.iter().find(|(start, essence)| {
        // only markup may have white space before it
        if *essence == "text/xml" {
            text.starts_with(start)
        } else {
            head.starts_with(start)
        }
    });
    known
        .map(|(_, essence)| *essence)
        .or_else(|| image(head))
        .or_else(|| sound_or_film(head))
        .or_else(|| archive(head))
        .unwrap_or_else(|| {
            if head.iter().any(|&b| is_binary(b)) {
                "application/octet-stream"
            } else {
                "text/plain"
            }
        })
}

/// Section 6.1.
fn image(head: &[u8]) -> Option<&'static str> {
    const STARTS: [(&[u8], &str); 7] = [
        (b"\0\0\x01\0", "image/x-icon"),
        (b"\0\0\x02\0", "image/x-icon"),
        (b"BM", "image/bmp"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
    ];
    let webp = head.starts_with(b"RIFF") && head.get(8..14) == Some(b"WEBPVP");
    first_of(head, &STARTS).or(webp.then_some("image/webp"))
}

/// Section 6.2.
fn sound_or_film(head: &[u8]) -> Option<&'static str> {
    const STARTS: [(&[u8], &str); 4] = [
        (b"ID3", "audio/mpeg"),
        (b"OggS\0", "application/ogg"),
        (b"MThd\0\0\0\x06", "audio/midi"),
        (b"\x1a\x45\xdf\xa3", "video/webm"),
    ];
    let form = match (head.get(..4), head.get(8..12)) {
        (Some(b"FORM"), Some(b"AIFF")) => Some("audio/aiff"),
        (Some(b"RIFF"), Some(b"AVI ")) => Some("video/avi"),
        (Some(b"RIFF"), Some(b"WAVE")) => Some("audio/wave"),
        _ => None,
    };
    let mp4 = head.get(4..8) == Some(b"ftyp") && head.get(8..11) == Some(b"mp4");
    first_of(head, &STARTS).or(form).or(mp4.then_some("video/mp4"))
}

/// Section 6.4.
fn archive(head: &[u8]) -> Option<&'static str> {
    const STARTS: [(&[u8], &str); 3] = [
        (b"\x1f\x8b\x08", "application/x-gzip"),
        (b"PK\x03\x04", "application/zip"),
        (b"Rar!\x1a\x07\0", "application/x-rar-compressed"),
    ];
    first_of(head, &STARTS)
}

fn first_of(head: &[u8], starts: &[(&[u8], &'static str)]) -> Option<&'static str> {
    starts
        .iter()
        .find(|(start, _)| head.starts_with(start))
        .map(|&(_, essence)| essence)
}

/// A feed that was sent as HTML (section 7.4, without RDF): its root element says so.
fn feed(head: &[u8]) -> Option<&'static str> {
    let mut rest = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    loop {
        rest = trim_start(rest);
        let end: &[u8] = match rest {
            [b'<', b'!', b'-', b'-', ..] => b"-->",
            [b'<', b'!', ..] => b">",
            [b'<', b'?', ..] => b"?>",
            _ => break,
        };
        rest = rest
            .get(memchr::memmem::find(rest, end)? + end.len()..)
            .unwrap_or_default();
    }
    if rest.starts_with(b"<rss") {
        Some("application/rss+xml")
    } else if rest.starts_with(b"<feed") {
        Some("application/atom+xml")
    } else {
        None
    }
}

fn trim_start(bytes: &[u8]) -> &[u8] {
    let blank = bytes
        .iter()
        .take_while(|b| matches!(b, b'\t' | b'\n' | b'\x0c' | b'\r' | b' '))
        .count();
    bytes.get(blank..).unwrap_or_default()
}

/// A byte that no text holds (section 3).
fn is_binary(b: u8) -> bool {
    matches!(b, 0..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f)
}

/// White space of HTTP.
fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' ')
}

/// A token of HTTP (RFC 9110, section 5.6.2).
fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn media_types_are_read_as_browsers_do() {
        let read = |value: &str| parse(value.as_bytes()).map(|t| (t.essence, t.charset));
        let html = |charset: Option<&str>| Some(("text/html".to_owned(), charset.map(str::to_owned)));
        for (value, want) in [
            (" Text/HTML ; x ; charset=utf-8 ", html(Some("utf-8"))),
            ("text/html;charset=\"a\\\"b\"c;charset=d", html(Some("a\"b"))),
            ("text/html;charset =gbk", html(None)),
            ("text/html;charset=;charset=gbk", html(Some("gbk"))),
            ("text/html;charset=\"\"", html(Some(""))),
            ("text/html;CHARSET='gbk'", html(Some("'gbk'"))),
            ("text/html;x=(;charset=gbk", html(Some("gbk"))),
            ("text/html;charset=\"unclosed", html(Some("unclosed"))),
            ("text/html(;x", None),
            ("text", None),
            ("/html", None),
            ("text/html,text/plain", None),
            ("", None),
        ] {
            assert_eq!(read(value), want, "{value}");
        }
    }

    #[test]
    fn the_first_bytes_speak_only_when_the_type_does_not() {
        assert_eq!(sniff(Some(b"text/plain"), b"<html>"), "text/plain");
        assert_eq!(sniff(Some(b"bogus"), b" \n<hTml >"), "text/html");
        assert_eq!(sniff(Some(b"*/*"), b"<!DOCTYPE html>"), "text/html");
        assert_eq!(sniff(None, b"<htmlx>"), "text/plain");
        assert_eq!(sniff(None, b"  <?xml version='1.0'?>"), "text/xml");
        assert_eq!(sniff(None, b"\0\x01"), "application/octet-stream");
        assert_eq!(sniff(None, b"%PDF-1.7"), "application/pdf");
        assert_eq!(sniff(None, b"PK\x03\x04"), "application/zip");
        assert_eq!(sniff(None, b"\0\0\0\x18ftypmp42"), "video/mp4");
        assert_eq!(sniff(Some(b"image/png"), b"GIF89a"), "image/gif");
        assert_eq!(sniff(Some(b"image/svg+xml"), b"BM"), "image/svg+xml");
        assert_eq!(
            sniff(Some(b"text/html"), b"<?xml?><!-- --><rss>"),
            "application/rss+xml"
        );
        assert_eq!(
            sniff(Some(b"text/html"), b"<!doctype html><rss>"),
            "application/rss+xml"
        );
        assert_eq!(sniff(Some(b"text/html"), b"<p><feed>"), "text/html");
        assert_eq!(sniff(None, b""), "text/plain");
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_outcome(value in prop::collection::vec(any::<u8>(), 0..60), body in prop::collection::vec(any::<u8>(), 0..60)) {
            prop_assert!(sniff(Some(&value), &body).contains('/'));
            prop_assert!(sniff(None, &body).contains('/'));
        }
    }
}
