//! What decoders read from and write to: a window over the input, and an output with a cap that keeps what is wanted.

use std::borrow::Cow;
use std::io::{self, Read, Write};

use super::super::body::{Body, Sink};
use super::SCRATCH;

/// Bytes of input that are read at a time.
const WINDOW: usize = 64 * 1024;
/// Bytes that tell what a body is: they are kept of every body, also of one that is not wanted.
pub(super) const LOOK_AT: usize = 2 * 1024;

/// Bytes that can be read from their start as often as needed.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    Slice(&'a [u8]),
    Body(&'a Body),
}

impl<'a> Source<'a> {
    pub(super) fn len(self) -> u64 {
        match self {
            Self::Slice(bytes) => bytes.len() as u64,
            Self::Body(body) => body.len(),
        }
    }

    /// The first bytes, at most `most`.
    pub(super) fn start(self, most: usize) -> io::Result<Cow<'a, [u8]>> {
        match self {
            Self::Slice(bytes) => Ok(Cow::Borrowed(bytes.get(..most).unwrap_or(bytes))),
            Self::Body(body) => body.start(most),
        }
    }

    pub(super) fn open(self) -> Input<'a> {
        let reader: Box<dyn Read + 'a> = match self {
            Self::Slice(bytes) => Box::new(bytes),
            Self::Body(body) => Box::new(body.reader()),
        };
        let window = usize::try_from(self.len()).map_or(WINDOW, |len| len.min(WINDOW));
        Input {
            reader,
            window: vec![0; window],
            from: 0,
            to: 0,
            taken: 0,
        }
    }
}

/// A reader with a window over what comes next.
pub(super) struct Input<'a> {
    reader: Box<dyn Read + 'a>,
    window: Vec<u8>,
    from: usize,
    to: usize,
    taken: u64,
}

impl Input<'_> {
    /// The next bytes: `least` of them or more, fewer only at the end. `least` is far below [`WINDOW`].
    pub(super) fn peek(&mut self, least: usize) -> io::Result<&[u8]> {
        if self.to - self.from < least {
            self.window.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
            while self.to < least {
                let read = self.reader.read(self.window.get_mut(self.to..).unwrap_or_default())?;
                if read == 0 {
                    break;
                }
                self.to += read;
            }
        }
        Ok(self.window.get(self.from..self.to).unwrap_or_default())
    }

    /// Goes on by `count` bytes of what was peeked at.
    pub(super) fn consume(&mut self, count: usize) {
        let count = count.min(self.to - self.from);
        self.from += count;
        self.taken += count as u64;
    }

    /// Bytes gone by so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// The next `N` bytes, if there are so many.
    pub(super) fn array<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        let array = self.peek(N)?.first_chunk::<N>().copied();
        if array.is_some() {
            self.consume(N);
        }
        Ok(array)
    }

    /// Goes on by `count` bytes; false if there are not so many.
    pub(super) fn skip(&mut self, mut count: usize) -> io::Result<bool> {
        while count > 0 {
            let there = self.peek(1)?.len().min(count);
            if there == 0 {
                return Ok(false);
            }
            self.consume(there);
            count -= there;
        }
        Ok(true)
    }

    /// Goes on behind the next `byte`; false if there is none.
    pub(super) fn skip_behind(&mut self, byte: u8) -> io::Result<bool> {
        loop {
            let next = self.peek(1)?;
            if next.is_empty() {
                return Ok(false);
            }
            if let Some(at) = memchr::memchr(byte, next) {
                self.consume(at + 1);
                return Ok(true);
            }
            let all = next.len();
            self.consume(all);
        }
    }
}

/// What of the decoded bytes is of use.
#[derive(Clone, Copy)]
pub struct Keep<'a> {
    /// So many bytes from the start, at most.
    pub most: usize,
    /// Asked once with the first bytes: is it of use at all?
    pub wants: &'a dyn Fn(&[u8]) -> bool,
}

impl Keep<'_> {
    /// Everything.
    pub(super) const ALL: Keep<'static> = Keep {
        most: usize::MAX,
        wants: &|_| true,
    };
}

/// Takes decoded bytes up to a cap.
pub(super) struct Out<'k> {
    cap: u64,
    len: u64,
    hold: Hold<'k>,
}

enum Hold<'k> {
    /// The start, for whoever reads the text.
    Start {
        bytes: Vec<u8>,
        keep: Keep<'k>,
        /// How much is kept, once that is known.
        most: Option<usize>,
    },
    /// All of it, for the next decoder.
    Whole(Sink),
}

/// The start of what was decoded.
pub(super) struct Start {
    pub(super) bytes: Vec<u8>,
    pub(super) len: u64,
    /// It was wanted, and is longer than what is kept.
    pub(super) cut: bool,
}

impl<'k> Out<'k> {
    pub(super) fn start(cap: u64, keep: Keep<'k>) -> Self {
        let hold = Hold::Start {
            bytes: Vec::new(),
            keep,
            most: None,
        };
        Self { cap, len: 0, hold }
    }

    pub(super) fn whole(cap: u64, sink: Sink) -> Self {
        Self {
            cap,
            len: 0,
            hold: Hold::Whole(sink),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn cap(&self) -> u64 {
        self.cap
    }

    /// Takes bytes; false when they pass the cap, up to which they are taken.
    pub(super) fn put(&mut self, bytes: &[u8]) -> io::Result<bool> {
        let room = usize::try_from(self.cap - self.len).unwrap_or(usize::MAX);
        let part = bytes.get(..room).unwrap_or(bytes);
        let fits = part.len() == bytes.len();
        self.len += part.len() as u64;
        match &mut self.hold {
            Hold::Whole(sink) => sink.write_all(part)?,
            Hold::Start {
                bytes: kept,
                keep,
                most,
            } => {
                if most.is_none() && kept.len() + part.len() >= LOOK_AT {
                    let look = part.get(..LOOK_AT - kept.len()).unwrap_or(part);
                    *most = Some(judged(kept, look, keep));
                }
                let most = most.unwrap_or(LOOK_AT);
                let part = part.get(..most.saturating_sub(kept.len())).unwrap_or(part);
                let len = kept.len() + part.len();
                if len > kept.capacity() {
                    let room = (2 * kept.capacity()).max(SCRATCH).min(most).max(len);
                    kept.reserve_exact(room - kept.len());
                }
                kept.extend_from_slice(part);
            }
        }
        Ok(fits)
    }

    /// Takes all there is at once, without copying it: at most the cap, and everything is kept.
    pub(super) fn give(&mut self, all: Vec<u8>) -> io::Result<()> {
        match &mut self.hold {
            Hold::Start { bytes, keep, most } if keep.most == usize::MAX => {
                self.len = all.len() as u64;
                *most = Some(usize::MAX);
                *bytes = all;
            }
            _ => {
                self.put(&all)?;
            }
        }
        Ok(())
    }

    /// What is kept.
    pub(super) fn close(self) -> io::Result<Closed> {
        match self.hold {
            Hold::Whole(sink) => sink.close().map(Closed::Whole),
            Hold::Start { mut bytes, keep, most } => {
                let most = most.unwrap_or_else(|| judged(&bytes, &[], &keep));
                bytes.truncate(most);
                let cut = most == keep.most && self.len > bytes.len() as u64;
                Ok(Closed::Start(Start {
                    bytes,
                    len: self.len,
                    cut,
                }))
            }
        }
    }
}

/// What an output kept.
pub(super) enum Closed {
    Start(Start),
    Whole(Body),
}

/// How much of a body is kept that begins with `kept` and `next`.
fn judged(kept: &[u8], next: &[u8], keep: &Keep<'_>) -> usize {
    let wanted = if next.is_empty() {
        (keep.wants)(kept)
    } else {
        (keep.wants)(&[kept, next].concat())
    };
    if wanted { keep.most } else { LOOK_AT.min(keep.most) }
}
