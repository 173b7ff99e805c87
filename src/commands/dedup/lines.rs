//! A block of input, cut into lines.

use std::io;

use memchr::memchr_iter;

use super::input::Reader;

/// Bytes read before they are cut, hashed and asked. About 3,700 lines of 70 bytes: enough for the batches of the
/// filter, and small enough for the second cache.
pub(super) const BLOCK_BYTES: usize = 256 << 10;
/// Longest line, bytes without its end. What is longer is no line of a list: most often a file of another kind.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

/// What was read and not yet let go. Whole lines stand at its start, the begun one behind them.
#[derive(Debug)]
pub(super) struct Block {
    buffer: Vec<u8>,
    /// Bytes of the buffer that hold input.
    filled: usize,
    /// Behind the end of each whole line.
    ends: Vec<usize>,
    end_byte: u8,
}

impl Block {
    pub(super) fn new(end_byte: u8) -> Self {
        Self {
            buffer: Vec::new(),
            filled: 0,
            ends: Vec::new(),
            end_byte,
        }
    }

    /// A new input begins.
    pub(super) fn begin(&mut self, bytes: usize) {
        self.buffer.resize(self.buffer.len().max(bytes), 0);
        self.filled = 0;
        self.ends.clear();
    }

    /// Lets the lines go, and reads until there is at least one more, or the input has ended; the last line is given
    /// the end that it may lack. Returns whether there may be more.
    ///
    /// # Errors
    /// If the input cannot be read, or a line is longer than [`MAX_LINE_BYTES`]. The lines before are there then.
    pub(super) fn fill(&mut self, reader: &mut dyn Reader) -> io::Result<bool> {
        let used = self.ends.last().copied().unwrap_or(0);
        self.buffer.copy_within(used..self.filled, 0);
        self.filled -= used;
        self.ends.clear();
        let mut scanned = self.filled;
        loop {
            if self.filled == self.buffer.len() {
                self.buffer.resize(self.filled * 2, 0);
            }
            let free = self.buffer.get_mut(self.filled..).unwrap_or_default();
            let read = match reader.read_block(free) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if read == 0 {
                self.end_last_line();
                return Ok(false);
            }
            self.filled += read;
            let fresh = self.buffer.get(scanned..self.filled).unwrap_or_default();
            self.ends
                .extend(memchr_iter(self.end_byte, fresh).map(|at| scanned + at + 1));
            scanned = self.filled;
            let begun = self.filled - self.ends.last().copied().unwrap_or(0);
            if begun > MAX_LINE_BYTES {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!(
                        "a line of more than {} MiB: is this a list of lines?",
                        MAX_LINE_BYTES >> 20
                    ),
                ));
            }
            if !self.ends.is_empty() {
                return Ok(true);
            }
        }
    }

    fn end_last_line(&mut self) {
        if self.filled > self.ends.last().copied().unwrap_or(0) {
            self.buffer.resize(self.buffer.len().max(self.filled + 1), 0);
            if let Some(end) = self.buffer.get_mut(self.filled) {
                *end = self.end_byte;
            }
            self.filled += 1;
            self.ends.push(self.filled);
        }
    }

    /// The lines, without their ends.
    pub(super) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let line = self.buffer.get(start..end - 1).unwrap_or_default();
            start = end;
            line
        })
    }

    /// How many lines there are.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all lines with their ends.
    pub(super) fn bytes(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Mean length of the lines with their ends, at least 1.
    pub(super) fn mean_line(&self) -> usize {
        (self.bytes() / self.len().max(1)).max(1)
    }

    /// The lines for which `keep` is true, with their ends, in pieces as long as they stand together.
    pub(super) fn runs<'a>(&'a self, keep: &'a [bool]) -> impl Iterator<Item = &'a [u8]> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = at + keep.get(at..)?.iter().position(|keep| *keep)?;
            let length = keep.get(first..)?.iter().take_while(|keep| **keep).count();
            at = first + length;
            let start = first
                .checked_sub(1)
                .map_or(Some(0), |before| self.ends.get(before).copied())?;
            self.buffer.get(start..*self.ends.get(at.checked_sub(1)?)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives a text in pieces of these lengths.
    struct Pieces<'a> {
        rest: &'a [u8],
        lengths: std::iter::Cycle<std::slice::Iter<'a, usize>>,
    }

    impl Reader for Pieces<'_> {
        fn read_block(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = (*self.lengths.next().unwrap()).min(buffer.len()).min(self.rest.len());
            let (now, later) = self.rest.split_at(length);
            buffer[..length].copy_from_slice(now);
            self.rest = later;
            Ok(length)
        }

        fn is_live(&self) -> bool {
            false
        }
    }

    proptest! {
        #[test]
        fn any_cut_of_the_input_gives_the_same_lines(text in "[ab\n]{0,200}", lengths in proptest::collection::vec(1_usize..9, 1..5)) {
            let mut block = Block::new(b'\n');
            block.begin(4);
            let mut reader = Pieces { rest: text.as_bytes(), lengths: lengths.iter().cycle() };
            let (mut lines, mut kept, mut all) = (Vec::new(), Vec::new(), Vec::new());
            loop {
                let more = block.fill(&mut reader).unwrap();
                let keep: Vec<bool> = block.lines().map(|line| line.len() % 2 == 0).collect();
                lines.extend(block.lines().map(<[u8]>::to_vec));
                kept.extend(block.runs(&keep).flatten().copied());
                all.extend(block.runs(&vec![true; keep.len()]).flatten().copied());
                if !more {
                    break;
                }
            }
            let expected: Vec<&str> = text.lines().collect();
            let found: Vec<&str> = lines.iter().map(|line| std::str::from_utf8(line).unwrap()).collect();
            prop_assert_eq!(found, expected.clone());
            let whole = |lines: &mut dyn Iterator<Item = &str>| lines.flat_map(|line| [line, "\n"]).collect::<String>();
            let even = whole(&mut expected.iter().copied().filter(|line| line.len() % 2 == 0));
            prop_assert_eq!(String::from_utf8(kept).unwrap(), even);
            let whole = whole(&mut expected.iter().copied());
            prop_assert_eq!(String::from_utf8(all).unwrap(), whole);
        }
    }

    #[test]
    fn the_longest_line_passes_and_one_byte_more_does_not() {
        for (length, passes) in [(MAX_LINE_BYTES, true), (MAX_LINE_BYTES + 1, false)] {
            let mut text = b"first\n".to_vec();
            text.resize(text.len() + length, b'x');
            let mut block = Block::new(b'\n');
            block.begin(1 << 10);
            let lengths = [1 << 10];
            let mut reader = Pieces {
                rest: &text,
                lengths: lengths.iter().cycle(),
            };
            assert!(block.fill(&mut reader).unwrap());
            assert_eq!(block.lines().collect::<Vec<_>>(), [b"first"]);
            let end = block.fill(&mut reader);
            assert_eq!(end.is_ok(), passes, "{length}");
            if passes {
                assert_eq!(block.lines().next().unwrap().len(), length);
            }
        }
    }
}
