//! Transfer codings other than chunked (RFC 9112 section 7.2): nobody asks for them, few servers send them. They are part
//! of the message and not of the page, so they are undone here, on the way to the archive.

use std::io::Write;

use flate2::write::{MultiGzDecoder, ZlibDecoder};

use super::head::Head;

/// Codings laid over one another that are undone: as many as of content codings. A body with more is kept as it came.
pub const MAX_TRANSFER_CODINGS: usize = 4;
/// Coded bytes undone in one step: what comes out of it, 1,032 times as much at worst, is in memory before the next layer
/// or the body's bound is asked.
const STEP: usize = 1_024;

/// Undoes the transfer codings of a body.
pub(in super::super) struct Undo {
    /// The outermost first. None if there is none, or one that is not known: the bytes are the body.
    layers: Vec<Layer>,
    /// A coded stream was broken.
    broken: bool,
}

/// One coding, and what is to be undone of it.
struct Layer {
    decoder: Decoder,
    input: Vec<u8>,
    /// So much of `input` is done.
    done: usize,
}

enum Decoder {
    /// Announced, but the first byte said otherwise.
    None,
    /// Announced; the first byte tells whether it is true.
    Gzip,
    /// Announced; the first byte tells whether it is true.
    Deflate,
    Gunzip(Box<MultiGzDecoder<Vec<u8>>>),
    Inflate(Box<ZlibDecoder<Vec<u8>>>),
}

impl Undo {
    pub(in super::super) fn of(head: &Head) -> Self {
        let codings = head
            .words("transfer-encoding")
            .filter(|coding| !matches!(coding.as_slice(), b"chunked" | b"identity"));
        let layers: Option<Vec<Layer>> = codings.map(|coding| Layer::of(&coding)).collect();
        let mut layers = layers
            .filter(|layers| layers.len() <= MAX_TRANSFER_CODINGS)
            .unwrap_or_default();
        layers.reverse(); // named in the order in which they were applied
        Self { layers, broken: false }
    }

    /// Takes the next bytes of the body. What comes out is to be asked for before more is given.
    pub(in super::super) fn push(&mut self, coded: &[u8]) {
        if let Some(outermost) = self.layers.first_mut() {
            outermost.add(coded);
        }
    }

    /// The next of what comes out, and whether the coded stream is broken behind it; none if more must be pushed.
    pub(in super::super) fn pull(&mut self) -> Option<(Vec<u8>, bool)> {
        // the innermost first: so no layer has more waiting than one step brought it
        let Some(at) = self.layers.iter().rposition(Layer::has_input) else {
            return self.broken.then(|| (Vec::new(), true));
        };
        let (out, broken) = self.layers.get_mut(at)?.step();
        if broken {
            // what came out before is read to its end, and nothing more is taken in
            self.broken = true;
            self.layers.drain(..=at);
            let Some(inner) = self.layers.first_mut() else {
                return Some((out, true));
            };
            inner.add(&out);
            return Some((Vec::new(), false));
        }
        let Some(inner) = self.layers.get_mut(at + 1) else {
            return Some((out, false));
        };
        inner.add(&out);
        Some((Vec::new(), false))
    }

    /// Are the bytes the body?
    pub(in super::super) fn is_plain(&self) -> bool {
        self.layers.is_empty() && !self.broken
    }
}

impl Layer {
    fn of(coding: &[u8]) -> Option<Self> {
        let decoder = match coding {
            b"gzip" | b"x-gzip" => Decoder::Gzip,
            b"deflate" => Decoder::Deflate,
            _ => return None,
        };
        Some(Self {
            decoder,
            input: Vec::new(),
            done: 0,
        })
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.done == self.input.len() {
            self.input.clear();
            self.done = 0;
        }
        self.input.extend_from_slice(bytes);
    }

    fn has_input(&self) -> bool {
        self.done < self.input.len()
    }

    fn step(&mut self) -> (Vec<u8>, bool) {
        let rest = self.input.get(self.done..).unwrap_or_default();
        let coded = rest.get(..STEP).unwrap_or(rest);
        self.done += coded.len();
        self.decoder.undo(coded)
    }
}

impl Decoder {
    fn undo(&mut self, coded: &[u8]) -> (Vec<u8>, bool) {
        let Some(first) = coded.first() else {
            return (Vec::new(), false);
        };
        match self {
            Self::Gzip if *first == 0x1f => *self = Self::Gunzip(Box::new(MultiGzDecoder::new(Vec::new()))),
            Self::Deflate if first & 0x0f == 8 => *self = Self::Inflate(Box::new(ZlibDecoder::new(Vec::new()))),
            Self::Gzip | Self::Deflate => *self = Self::None,
            Self::None | Self::Gunzip(_) | Self::Inflate(_) => {}
        }
        match self {
            Self::Gunzip(decoder) => {
                let done = decoder.write_all(coded).and_then(|()| decoder.flush());
                (std::mem::take(decoder.get_mut()), done.is_err())
            }
            Self::Inflate(decoder) => {
                let done = decoder.write_all(coded).and_then(|()| decoder.flush());
                (std::mem::take(decoder.get_mut()), done.is_err())
            }
            Self::None | Self::Gzip | Self::Deflate => (coded.to_vec(), false),
        }
    }
}
