//! Content codings undone, with a cap on what comes out.
//!
//! Servers label wrongly in every way there is, and browsers show the page all the same. So: a body that is labelled
//! but not coded is given as it is, `deflate` means zlib or raw (RFC 9110 section 8.4.1.2 knows both), a coded body
//! that is cut or broken gives what could be had of it, and a word that names no coding is no coding.

//!
//! Two ways: [`small`] has everything in memory and is fast, [`large`] reads a body from its file and keeps only what
//! is of use. Both go by the same rules and the same decoders.

mod inflate;
mod stream;
mod windowed;

use std::borrow::Cow;
use std::io;
use std::sync::Arc;

use super::body::{Body, Sink, Spool};
pub use stream::Keep;
use stream::{Closed, Out, Source, Start};

/// Codings that are undone at most, one on top of the other; more are an attack or a mistake.
const MAX_CODINGS: usize = 4;
/// Bytes looked at to tell text from a coded stream.
const LOOK_AT: usize = 512;
/// Bytes decoded at a time.
const SCRATCH: usize = 64 * 1024;
/// What [`small`] makes of a body at most, bytes.
pub const SMALL: usize = 1 << 20;

/// What came out of a body.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The bytes without their content coding, as far as they could be had and were kept.
    pub bytes: Cow<'a, [u8]>,
    /// Bytes that came out, kept or not.
    pub len: u64,
    /// There was more of what was wanted than was kept.
    pub cut: bool,
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
///
/// `None` if more than [`SMALL`] bytes came out of any coding: that is work for [`large`].
#[must_use]
pub fn small<'a>(content_encodings: &[&[u8]], body: &'a [u8], cap: u64) -> Option<Decoded<'a>> {
    let most = cap.min(SMALL as u64);
    if body.len() > SMALL {
        return None;
    }
    let undone = layers(
        content_encodings,
        Cow::Borrowed(body),
        |_| Out::start(most, Keep::ALL),
        |out| match out.close()? {
            Closed::Start(start) => Ok(Cow::Owned(start.bytes)),
            Closed::Whole(body) => Ok(Cow::Owned(body.bytes()?.into())),
        },
    );
    // nothing is read from a file and nothing written to one
    let Undoing {
        last: mut bytes,
        mut fault,
        full,
    } = undone.ok()?;
    if full && most < cap {
        return None;
    }
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if bytes.len() > most {
        fault = fault.or(Some(DecodeFault::Limit));
        match &mut bytes {
            Cow::Borrowed(whole) => *whole = whole.get(..most).unwrap_or_default(),
            Cow::Owned(whole) => whole.truncate(most),
        }
    }
    Some(Decoded {
        len: bytes.len() as u64,
        bytes,
        cut: false,
        fault,
    })
}

/// As [`small`], for a body of any size: of what comes out `keep` says what is kept, the rest is only counted. What lies
/// between two codings goes through the spool.
///
/// # Errors
/// If the body cannot be read, or the spool cannot be written.
pub fn large(
    content_encodings: &[&[u8]],
    body: &Body,
    cap: u64,
    keep: Keep<'_>,
    spool: &Arc<Spool>,
) -> io::Result<Decoded<'static>> {
    let undone = layers(
        content_encodings,
        Stage::Body(body.clone()),
        |last| {
            if last {
                Out::start(cap, keep)
            } else {
                Out::whole(cap, Sink::new(spool, None))
            }
        },
        Stage::of,
    )?;
    let mut fault = undone.fault;
    let (bytes, len, cut) = match undone.last {
        Stage::Start(start) => (start.bytes, start.len, start.cut),
        Stage::Body(body) => {
            let wanted = (keep.wants)(&body.start(stream::LOOK_AT)?);
            let most = if wanted { keep.most } else { stream::LOOK_AT };
            let most = usize::try_from(cap).map_or(most, |cap| most.min(cap));
            if body.len() > cap {
                fault = fault.or(Some(DecodeFault::Limit));
            }
            let len = body.len().min(cap);
            (body.start(most)?.into_owned(), len, wanted && len > most as u64)
        }
    };
    Ok(Decoded {
        bytes: Cow::Owned(bytes),
        len,
        cut,
        fault,
    })
}

/// As [`large`], but nothing is kept in memory: what comes out is a body of its own, for whoever reads it in pieces. Also
/// whether the codings could be undone to their end.
///
/// # Errors
/// If the body cannot be read, or the spool cannot be written.
pub fn whole(
    content_encodings: &[&[u8]],
    body: &Body,
    cap: u64,
    spool: &Arc<Spool>,
) -> io::Result<(Body, Option<DecodeFault>)> {
    let undone = layers(
        content_encodings,
        Stage::Body(body.clone()),
        |_| Out::whole(cap, Sink::new(spool, None)),
        Stage::of,
    )?;
    let Stage::Body(body) = undone.last else {
        unreachable!("every output is whole")
    };
    let too_long = (body.len() > cap).then_some(DecodeFault::Limit);
    Ok((body, undone.fault.or(too_long)))
}

/// A body between two codings of the large way.
enum Stage {
    Body(Body),
    /// What the last coding gave.
    Start(Start),
}

impl Stage {
    fn of(out: Out<'_>) -> io::Result<Self> {
        match out.close()? {
            Closed::Start(start) => Ok(Self::Start(start)),
            Closed::Whole(body) => Ok(Self::Body(body)),
        }
    }
}

/// What can be looked at as bytes to be undone.
trait AsSource {
    fn source(&self) -> Source<'_>;
}

impl AsSource for Cow<'_, [u8]> {
    fn source(&self) -> Source<'_> {
        Source::Slice(self)
    }
}

impl AsSource for Stage {
    fn source(&self) -> Source<'_> {
        match self {
            Self::Body(body) => Source::Body(body),
            Self::Start(start) => Source::Slice(&start.bytes),
        }
    }
}

/// What is left when all codings are undone.
struct Undoing<S> {
    last: S,
    fault: Option<DecodeFault>,
    /// A coding gave more than its output took.
    full: bool,
}

/// Undoes one coding after the other. `output` makes an output and is told whether it is the last one's, `input` makes
/// of it what the next coding reads.
fn layers<'k, S: AsSource>(
    content_encodings: &[&[u8]],
    first: S,
    output: impl Fn(bool) -> Out<'k>,
    input: impl Fn(Out<'k>) -> io::Result<S>,
) -> io::Result<Undoing<S>> {
    let mut undoing = Undoing {
        last: first,
        fault: None,
        full: false,
    };
    let words: Vec<&[u8]> = codings(content_encodings).collect();
    for (round, coding) in words.iter().rev().enumerate() {
        let source = undoing.last.source();
        let mut out = output(round + 1 == words.len());
        let undone = if round < MAX_CODINGS {
            undo(coding, source, &mut out)?
        } else {
            Undone::Unknown
        };
        match undone {
            Undone::Plain => {}
            Undone::Stream(ending) => {
                undoing.fault = undoing.fault.or(ending.fault());
                undoing.full |= ending == Ending::Full;
                undoing.last = input(out)?;
            }
            Undone::Unknown if looks_like_text(source)? => {}
            Undone::Unknown => {
                undoing.fault = undoing.fault.or(Some(DecodeFault::Unsupported));
                break;
            }
        }
    }
    Ok(undoing)
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
    /// There was a stream of this coding; what it gave is in the output.
    Stream(Ending),
    /// The bytes are not of this coding, whatever the label says; what is in the output is chance.
    Plain,
    /// No coding that we know.
    Unknown,
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

/// The codings that are undone.
pub const CODINGS: [&str; 5] = ["gzip", "x-gzip", "deflate", "br", "zstd"];

fn undo(coding: &[u8], source: Source<'_>, out: &mut Out<'_>) -> io::Result<Undone> {
    let is = |name: &str| coding.eq_ignore_ascii_case(name.as_bytes());
    if source.len() == 0 {
        return Ok(Undone::Plain); // 304, HEAD, or nothing to say: no stream is no fault
    }
    let signed = if is("gzip") || is("x-gzip") {
        inflate::gzip(source, out)?
    } else if is("zstd") {
        windowed::zstd(source, out)?
    } else if is("deflate") {
        // seen in the wild: gzip under this name
        match inflate::gzip(source, out)? {
            Some(ending) => Some(ending),
            None => match inflate::zlib(source, out)? {
                Some(ending) => Some(ending),
                None => return unsigned(source, inflate::raw(source, out)?, out.len()),
            },
        }
    } else if is("br") {
        return unsigned(source, windowed::brotli(source, out)?, out.len());
    } else {
        return Ok(Undone::Unknown);
    };
    Ok(signed.map_or(Undone::Plain, Undone::Stream))
}

/// Judges what a coding without a signature gave: text that was never coded may decode to a few bytes by chance.
fn unsigned(source: Source<'_>, ending: Ending, made: u64) -> io::Result<Undone> {
    Ok(match ending {
        Ending::Whole | Ending::Full => Undone::Stream(ending),
        _ if looks_like_text(source)? => Undone::Plain,
        Ending::Broken if made == 0 => Undone::Plain,
        Ending::Early | Ending::Cut | Ending::Broken => Undone::Stream(ending),
    })
}

/// No "binary data byte" (MIME Sniffing Standard section 3) near the start.
fn looks_like_text(source: Source<'_>) -> io::Result<bool> {
    let start = source.start(LOOK_AT)?;
    let binary = start
        .iter()
        .any(|b| matches!(b, 0x00..=0x08 | 0x0b | 0x0e..=0x1a | 0x1c..=0x1f));
    Ok(!binary)
}

#[cfg(test)]
mod tests;
