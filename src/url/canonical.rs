//! The identity of an address under the default rules: the spelling that all spellings of one page share. What a user
//! can switch on besides stands in `rules.rs`.
//!
//! On top of what the URL Standard's parser already does (case of scheme and host, default port, empty path, dot
//! segments, A-labels, numbers as IPv4 addresses) these rules apply, and no others:
//! - percent-encoded octets are written in upper case, and unreserved ones (RFC 3986 section 2.3) are decoded;
//! - one dot at the end of the host is dropped.
//!
//! An empty query (`?` at the end) is kept: an empty part is not a missing one (RFC 3986 section 6.2.3).
//! All of them are idempotent together: the identity of an identity is itself.

use super::whatwg::Parsed;

/// Where the parts of an address stand in its text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts {
    /// First byte of the host.
    pub(super) host_start: usize,
    /// Byte after the host.
    pub(super) host_end: usize,
    /// First byte of the path.
    pub(super) path_start: usize,
}

/// The identity of `href`, or `None` if `href` is its own identity, which most are.
pub(super) fn of(href: &str, parts: Parts) -> Option<String> {
    let host_dot = ends_in_one_dot(href.get(parts.host_start..parts.host_end)?);
    let tail = href.get(parts.path_start..)?;
    let escapes = memchr::memchr(b'%', tail.as_bytes()).is_some();
    if !(host_dot || escapes) {
        return None;
    }

    let mut identity = Vec::with_capacity(href.len());
    identity.extend_from_slice(href.get(..parts.host_end - usize::from(host_dot))?.as_bytes());
    identity.extend_from_slice(href.get(parts.host_end..parts.path_start)?.as_bytes());
    let path_start = identity.len();
    push_decoded(&mut identity, tail.as_bytes());
    // ASCII came in and ASCII was written
    let identity = without_dot_segments(String::from_utf8(identity).ok()?, path_start);
    (identity != href).then_some(identity)
}

/// A name such as `host.`, but not `host..`, which is no name that could lose its dot twice.
fn ends_in_one_dot(host: &str) -> bool {
    host.strip_suffix('.')
        .is_some_and(|name| !name.is_empty() && !name.ends_with('.'))
}

/// Decodes the unreserved octets and writes the others in upper case. A decoded octet can complete a further escape
/// (`%%341` is `%41` is `A`), so the last three bytes are looked at after each byte written.
fn push_decoded(out: &mut Vec<u8>, text: &[u8]) {
    let floor = out.len();
    for &byte in text {
        out.push(byte);
        if byte.is_ascii_hexdigit() {
            settle_escape(out, floor);
        }
    }
}

fn settle_escape(out: &mut Vec<u8>, floor: usize) {
    while let Some(&[b'%', high, low]) = out.get(floor..).and_then(<[u8]>::last_chunk::<3>) {
        let Some(value) = octet(high, low) else { return };
        out.truncate(out.len() - 3);
        if !is_unreserved(value) {
            out.extend_from_slice(&[b'%', high.to_ascii_uppercase(), low.to_ascii_uppercase()]);
            return;
        }
        out.push(value);
    }
}

/// A piece of an address with its unreserved octets decoded and its other escapes in upper case.
pub(super) fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    push_decoded(&mut out, text.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// Decoding `%%32e` can bring a dot segment to light that the parser could not see.
pub(super) fn without_dot_segments(identity: String, path_start: usize) -> String {
    let path = identity.get(path_start..).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    if !path.split('/').any(|segment| matches!(segment, "." | "..")) {
        return identity;
    }
    Parsed::parse(&identity, None).map_or(identity, Parsed::into_href)
}

/// The octet that two hexadecimal digits stand for.
pub(super) fn octet(high: u8, low: u8) -> Option<u8> {
    let high = char::from(high).to_digit(16)?;
    let low = char::from(low).to_digit(16)?;
    u8::try_from(high * 16 + low).ok()
}

/// RFC 3986 section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

#[cfg(test)]
mod tests {
    use crate::url::{CrawlUrl, Identity};

    fn canonical(raw: &str) -> String {
        CrawlUrl::parse(raw, &Identity::default())
            .unwrap()
            .canonical()
            .to_owned()
    }

    #[test]
    fn spellings_of_one_page_share_an_identity() {
        for (raw, identity) in [
            ("http://h", "http://h/"),
            ("HTTPS://H:443/A", "https://h/A"),
            ("http://h/a/../b/./%2e%2e/c", "http://h/c"),
            ("http://h/%7ea%2fb%c3%a9", "http://h/~a%2Fb%C3%A9"),
            ("http://h/?%61=%5f%26", "http://h/?a=_%26"),
            ("http://h/a?#x", "http://h/a?"),
            ("http://h/a#x?y", "http://h/a"),
            ("http://h.:8080/a", "http://h:8080/a"),
            ("http://\u{fc}.example/", "http://xn--tda.example/"),
            ("http://0x7f.1/", "http://127.0.0.1/"),
            ("http://[0::1]/", "http://[::1]/"),
            ("http://u:p@h/", "http://h/"),
            // a decoded octet may complete a further escape, or a dot segment
            ("http://h/%%341/%%%33%30", "http://h/A/%0"),
            ("http://h/a/%%32e%%32E/b", "http://h/b"),
        ] {
            assert_eq!(canonical(raw), identity, "{raw}");
        }
    }

    #[test]
    fn addresses_a_server_may_answer_differently_stay_apart() {
        for (a, b) in [
            ("http://h/a", "http://h/A"),
            ("http://h/a", "http://h/a/"),
            ("http://h/a", "https://h/a"),
            ("http://h/?a&b", "http://h/?b&a"),
            ("http://h/a%2Fb", "http://h/a/b"),
            ("http://h/a%20b", "http://h/a+b"),
            ("http://h/a%3F", "http://h/a"),
            ("http://h/a?", "http://h/a"),
            ("http://h/a??", "http://h/a?"),
            ("http://h/a?x?", "http://h/a?x"),
            ("http://h//a", "http://h/a"),
            ("http://h/%2541", "http://h/%41"),
            ("http://h/", "http://www.h/"),
            ("http://h:81/", "http://h/"),
            ("http://h../", "http://h./"),
        ] {
            assert_ne!(canonical(a), canonical(b), "{a} {b}");
        }
    }
}
