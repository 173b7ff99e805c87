//! Transfer codings other than chunked (RFC 9112 section 7.2): nobody asks for them, few servers send them. They are part
//! of the message and not of the page, so they are undone here, on the way to the archive.

use std::io::Write;

use flate2::write::{MultiGzDecoder, ZlibDecoder};

use super::head::Head;

/// Coded bytes undone in one step: what comes out of it, 1,032 times as much at worst, is in memory before the body's
/// bound is asked.
const STEP: usize = 1_024;

/// Undoes the transfer coding of a body.
pub(in super::super) enum Undo {
    /// There is none, or one that is not known: the bytes are the body.
    Plain,
    /// Announced; the first byte tells whether it is true.
    Gzip,
    /// Announced; the first byte tells whether it is true.
    Deflate,
    Gunzip(Box<MultiGzDecoder<Vec<u8>>>),
    Inflate(Box<ZlibDecoder<Vec<u8>>>),
}

impl Undo {
    pub(in super::super) fn of(head: &Head) -> Self {
        let mut codings = head
            .words("transfer-encoding")
            .filter(|coding| !matches!(coding.as_slice(), b"chunked" | b"identity"));
        match (codings.next().as_deref(), codings.next()) {
            (Some(b"gzip" | b"x-gzip"), None) => Self::Gzip,
            (Some(b"deflate"), None) => Self::Deflate,
            _ => Self::Plain,
        }
    }

    /// At most so many bytes are given to [`Self::next`] at a time.
    pub(in super::super) fn step(&self) -> usize {
        match self {
            Self::Plain => usize::MAX,
            _ => STEP,
        }
    }

    /// What comes out of the next bytes of the body, and whether the coded stream is broken behind it.
    pub(in super::super) fn next<'a>(&'a mut self, coded: &'a [u8]) -> (&'a [u8], bool) {
        let Some(first) = coded.first() else {
            return (coded, false);
        };
        match self {
            Self::Gzip if *first == 0x1f => *self = Self::Gunzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Self::Deflate if first & 0x0f == 8 => *self = Self::Inflate(Box::new(ZlibDecoder::new(Vec::new()))),
            Self::Gzip | Self::Deflate => *self = Self::Plain,
            Self::Plain | Self::Gunzip(_) | Self::Inflate(_) => {}
        }
        match self {
            Self::Gunzip(decoder) => {
                decoder.get_mut().clear();
                let done = decoder.write_all(coded).and_then(|()| decoder.flush());
                (decoder.get_ref(), done.is_err())
            }
            Self::Inflate(decoder) => {
                decoder.get_mut().clear();
                let done = decoder.write_all(coded).and_then(|()| decoder.flush());
                (decoder.get_ref(), done.is_err())
            }
            Self::Plain | Self::Gzip | Self::Deflate => (coded, false),
        }
    }
}
