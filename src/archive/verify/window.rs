//! A stream seen through a window that is filled as it is needed.

use std::io::{self, Read};

/// Bytes read at a time.
const STEP: usize = 64 * 1024;

pub(super) struct Window<R> {
    input: R,
    bytes: Vec<u8>,
    start: usize,
    /// Where the window begins in the stream.
    pub(super) position: u64,
    ended: bool,
}

impl<R: Read> Window<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            bytes: Vec::with_capacity(STEP),
            start: 0,
            position: 0,
            ended: false,
        }
    }

    /// What is in the window.
    pub(super) fn seen(&self) -> &[u8] {
        self.bytes.get(self.start..).unwrap_or_default()
    }

    /// Reads more; false at the end.
    pub(super) fn more(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let len = self.bytes.len();
        self.bytes.resize(len + STEP, 0);
        let read = loop {
            match self.input.read(self.bytes.get_mut(len..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        self.bytes.truncate(len + read.as_ref().copied().unwrap_or(0));
        self.ended = read? == 0;
        Ok(!self.ended)
    }

    /// Passes over bytes of the window.
    pub(super) fn pass(&mut self, count: usize) {
        let count = count.min(self.seen().len());
        self.start += count;
        self.position += count as u64;
    }

    /// So many bytes are in the window, unless the stream ends before.
    pub(super) fn fill(&mut self, count: usize) -> io::Result<bool> {
        while self.seen().len() < count {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What is below.
    pub(super) fn into_input(self) -> R {
        self.input
    }
}
