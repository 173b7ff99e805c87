//! Content codings undone, with a cap on what comes out.
//!
//! Servers label wrongly in every way there is, and browsers show the page all the same. So: a body that is labelled
//! but not coded is given as it is, `deflate` means zlib or raw (RFC 9110 section 8.4.1.2 knows both), a coded body
//! that is cut or broken gives what could be had of it, and a word that names no coding is no coding.

mod inflate;
mod windowed;

use std::borrow::Cow;

/// Codings that are undone at most, one on top of the other; more are an attack or a mistake.
const MAX_CODINGS: usize = 4;
/// Bytes looked at to tell text from a coded stream.
const LOOK_AT: usize = 512;
/// First room for what comes out, bytes. Room doubles from here.
const FIRST_ROOM: usize = 64 * 1024;
/// Largest step by which room grows, bytes.
const MAX_STEP: usize = 4 * 1024 * 1024;

/// What came out of a body.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The bytes without their content coding, as far as they could be had.
    pub bytes: Cow<'a, [u8]>,
    /// Set if the coding could not be undone to its end.
    pub fault: Option<DecodeFault>,
}

/// Why a decoded body is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecodeFault {
    /// The coded stream ended or broke early.
    Incomplete,
    /// The cap on the decoded size was reached.
    Limit,
    /// A coding that we do not know.
    Unsupported,
}

impl DecodeFault {
    /// The word in a crawl.log annotation (`decode:limit`).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::Limit => "limit",
            Self::Unsupported => "unsupported",
        }
    }
}

/// Undoes the codings named in the values of `Content-Encoding` (last applied first), giving at most `cap` bytes.
/// `gzip`, `x-gzip`, `deflate` (zlib or raw), `br`, `zstd`, `identity`; multi-member gzip is read whole; a body that is
/// labelled but plain is given as it is. The first fault from the outside in is the one reported.
#[must_use]
pub fn decode<'a>(content_encodings: &[&[u8]], body: &'a [u8], cap: usize) -> Decoded<'a> {
    let mut bytes = Cow::Borrowed(body);
    let mut fault = None;
    for (round, coding) in codings(content_encodings).rev().enumerate() {
        let undone = if round < MAX_CODINGS {
            undo(coding, &bytes, cap)
        } else {
            Undone::Unknown
        };
        match undone {
            Undone::Plain => {}
            Undone::Bytes(stream) => {
                fault = fault.or(stream.ending.fault());
                bytes = Cow::Owned(stream.bytes);
            }
            Undone::Unknown if looks_like_text(&bytes) => {}
            Undone::Unknown => {
                fault = fault.or(Some(DecodeFault::Unsupported));
                break;
            }
        }
    }
    if bytes.len() > cap {
        fault = fault.or(Some(DecodeFault::Limit));
        match &mut bytes {
            Cow::Borrowed(whole) => *whole = whole.get(..cap).unwrap_or_default(),
            Cow::Owned(whole) => whole.truncate(cap),
        }
    }
    Decoded { bytes, fault }
}

/// The words of all header lines in order, without those that say "not coded".
fn codings<'h>(lines: &'h [&'h [u8]]) -> impl DoubleEndedIterator<Item = &'h [u8]> {
    let words = lines
        .iter()
        .flat_map(|line| line.split(|b| *b == b','))
        .map(<[u8]>::trim_ascii);
    words.filter(|w| !w.is_empty() && !w.eq_ignore_ascii_case(b"identity") && !w.eq_ignore_ascii_case(b"none"))
}

/// One coding undone.
enum Undone {
    /// There was a stream of this coding.
    Bytes(Stream),
    /// The bytes are not of this coding, whatever the label says.
    Plain,
    /// No coding that we know.
    Unknown,
}

/// What a stream gave.
struct Stream {
    bytes: Vec<u8>,
    ending: Ending,
}

/// How a stream ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// At its own end.
    Whole,
    /// Whole, but most of the input was not part of it: for a coding without a signature, a sign of chance.
    Early,
    /// The input ended first.
    Cut,
    /// A rule of the coding was broken.
    Broken,
    /// The cap was reached.
    Full,
}

impl Ending {
    fn fault(self) -> Option<DecodeFault> {
        match self {
            Self::Whole | Self::Early => None,
            Self::Cut | Self::Broken => Some(DecodeFault::Incomplete),
            Self::Full => Some(DecodeFault::Limit),
        }
    }
}

fn undo(coding: &[u8], body: &[u8], cap: usize) -> Undone {
    let is = |name: &str| coding.eq_ignore_ascii_case(name.as_bytes());
    if body.is_empty() {
        return Undone::Plain; // 304, HEAD, or nothing to say: no stream is no fault
    }
    if is("gzip") || is("x-gzip") {
        return inflate::gzip(body, cap).map_or(Undone::Plain, Undone::Bytes);
    }
    if is("deflate") {
        // seen in the wild: gzip under this name
        return inflate::gzip(body, cap)
            .or_else(|| inflate::zlib(body, cap))
            .map_or_else(|| unsigned(body, inflate::raw(body, cap)), Undone::Bytes);
    }
    if is("br") {
        return unsigned(body, windowed::brotli(body, cap));
    }
    if is("zstd") {
        return windowed::zstd(body, cap).map_or(Undone::Plain, Undone::Bytes);
    }
    Undone::Unknown
}

/// Judges what a coding without a signature gave: text that was never coded may decode to a few bytes by chance.
fn unsigned(body: &[u8], stream: Stream) -> Undone {
    match stream.ending {
        Ending::Whole | Ending::Full => Undone::Bytes(stream),
        _ if looks_like_text(body) => Undone::Plain,
        Ending::Broken if stream.bytes.is_empty() => Undone::Plain,
        Ending::Early | Ending::Cut | Ending::Broken => Undone::Bytes(stream),
    }
}

/// No "binary data byte" (MIME Sniffing Standard section 3) near the start.
fn looks_like_text(body: &[u8]) -> bool {
    let start = body.get(..LOOK_AT).unwrap_or(body);
    !start
        .iter()
        .any(|b| matches!(b, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f))
}

/// Makes room for more output, never beyond one byte past the cap (the byte that tells "full" from "exactly").
fn make_room(out: &mut Vec<u8>, cap: usize) {
    let step = out.len().clamp(FIRST_ROOM, MAX_STEP);
    out.reserve_exact(step.min(cap.saturating_add(1).saturating_sub(out.len())));
}

#[cfg(test)]
mod tests;
