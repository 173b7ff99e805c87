//! Files of JSON lines in zstd frames that stand on their own: `pages.jsonl.zst`, `links.jsonl.zst`.
//!
//! What one group of facts brought is one frame (more, if it is much), closed when the group is made durable. So a
//! covered length is always the end of a frame, a file that was cut there is whole, and any zstd reader takes the frames
//! behind one another for one stream. A job that began with plain lines in `pages.jsonl` goes on with them.

use std::io;
use std::sync::Arc;

use zstd::bulk::Compressor;

use super::{Held, Naming, WriteError};
use crate::disk::Disk;

/// Text of one frame, bytes at most, unless one line is longer. More of it would pack little better.
pub const FRAME_BYTES: usize = 1 << 20;
/// How hard zstd tries: its own default.
const LEVEL: i32 = 3;

/// Lines on their way to a file. Much text is packed where it was made, so that it need not wait as text.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Lines {
    frames: Vec<u8>,
    text: Vec<u8>,
}

impl Lines {
    /// Adds a line, without its end.
    ///
    /// # Errors
    /// If zstd cannot pack, which it says of no text.
    pub fn push(&mut self, line: &[u8]) -> io::Result<()> {
        if self.text.len() + line.len() >= FRAME_BYTES && !self.text.is_empty() {
            self.frames.extend(packer()?.compress(&self.text)?);
            self.text.clear();
        }
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        Ok(())
    }

    /// Is there no line?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.text.is_empty()
    }

    /// The lines, for tests.
    #[cfg(test)]
    pub(crate) fn lines(&self) -> String {
        let mut all = zstd::decode_all(self.frames.as_slice()).unwrap();
        all.extend_from_slice(&self.text);
        String::from_utf8(all).unwrap()
    }
}

/// What is written of one page besides archive and log.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct PageRows {
    /// Its line of [`super::PAGES`], if fields are asked for.
    pub fields: Lines,
    /// Its lines of [`super::LINKS`], if links are.
    pub links: Lines,
}

fn packer() -> io::Result<Compressor<'static>> {
    let mut packer = Compressor::new(LEVEL)?;
    packer.include_checksum(true)?;
    Ok(packer)
}

/// One such file. It is made with its first line.
pub(super) struct RowFile {
    name: &'static str,
    /// Lines are packed; else they are written as they are.
    packed: bool,
    covered: u64,
    /// Text of the next frame.
    text: Vec<u8>,
    open: Option<(Held, Compressor<'static>)>,
}

impl RowFile {
    /// The file of which so many bytes are covered. What is there beyond is cut away.
    ///
    /// # Errors
    /// If the file cannot be opened or cut.
    pub(super) fn at(disk: &dyn Disk, name: &'static str, packed: bool, covered: u64) -> Result<Self, WriteError> {
        let mut rows = Self {
            name,
            packed,
            covered,
            text: Vec::new(),
            open: None,
        };
        if covered > 0 || disk.size(name).naming(name)?.is_some() {
            rows.open(disk)?;
        }
        Ok(rows)
    }

    /// Are its lines packed?
    pub(super) fn is_packed(&self) -> bool {
        self.packed
    }

    fn open(&mut self, disk: &dyn Disk) -> Result<&mut (Held, Compressor<'static>), WriteError> {
        let name = self.name;
        match &mut self.open {
            Some(_) => {}
            open @ None => {
                let mut file = disk.append(name).naming(name)?;
                file.truncate(self.covered).naming(name)?;
                *open = Some((Held::new(file), packer().naming(name)?));
            }
        }
        match &mut self.open {
            Some(open) => Ok(open),
            None => unreachable!("opened above"),
        }
    }

    /// Adds lines.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn append(&mut self, disk: &Arc<dyn Disk>, rows: &Lines) -> Result<(), WriteError> {
        if rows.is_empty() {
            return Ok(());
        }
        self.open(disk.as_ref())?;
        if !rows.frames.is_empty() {
            self.close_frame()?;
            self.put(&rows.frames)?;
        }
        if self.text.len() + rows.text.len() > FRAME_BYTES {
            self.close_frame()?;
        }
        self.text.extend_from_slice(&rows.text);
        Ok(())
    }

    fn put(&mut self, frames: &[u8]) -> Result<(), WriteError> {
        let Some((file, _)) = &mut self.open else { return Ok(()) };
        if self.packed {
            return file.append(frames).naming(self.name);
        }
        let text = zstd::decode_all(frames).naming(self.name)?;
        file.append(&text).naming(self.name)
    }

    /// Writes the text that waits as one frame.
    fn close_frame(&mut self) -> Result<(), WriteError> {
        if self.text.is_empty() {
            return Ok(());
        }
        let Some((file, packer)) = &mut self.open else {
            unreachable!("text waits in an open file only")
        };
        if self.packed {
            let frame = packer.compress(&self.text).naming(self.name)?;
            file.append(&frame).naming(self.name)?;
        } else {
            file.append(&self.text).naming(self.name)?;
        }
        self.text.clear();
        Ok(())
    }

    /// Closes the frame and makes it durable; the new length if it has changed.
    ///
    /// # Errors
    /// If the file cannot be written or synced.
    pub(super) fn sync(&mut self) -> Result<Option<u64>, WriteError> {
        self.close_frame()?;
        let Some((file, _)) = &mut self.open else {
            return Ok(None);
        };
        file.sync().naming(self.name)?;
        let before = std::mem::replace(&mut self.covered, file.len());
        Ok((self.covered != before).then_some(self.covered))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Memory;

    fn rows(lines: &[&str]) -> Lines {
        let mut rows = Lines::default();
        for line in lines {
            rows.push(line.as_bytes()).unwrap();
        }
        rows
    }

    fn unpacked(disk: &Memory) -> String {
        String::from_utf8(zstd::decode_all(disk.bytes("f").unwrap().as_slice()).unwrap()).unwrap()
    }

    #[test]
    fn each_group_is_a_frame_and_a_covered_length_is_the_end_of_one() {
        let memory = Memory::default();
        let disk: Arc<dyn Disk> = Arc::new(memory.clone());
        let mut file = RowFile::at(disk.as_ref(), "f", true, 0).unwrap();
        assert_eq!(file.sync().unwrap(), None);
        assert_eq!(memory.bytes("f"), None, "no lines, no file");
        file.append(&disk, &rows(&["a", "b"])).unwrap();
        file.append(&disk, &rows(&["c"])).unwrap();
        let covered = file.sync().unwrap().unwrap();
        assert_eq!(file.sync().unwrap(), None, "nothing new");
        assert_eq!(unpacked(&memory), "a\nb\nc\n");
        file.append(&disk, &rows(&["lost"])).unwrap();
        file.sync().unwrap();
        // killed before the batch that covers it
        let mut again = RowFile::at(disk.as_ref(), "f", true, covered).unwrap();
        again.append(&disk, &rows(&["d"])).unwrap();
        again.sync().unwrap();
        assert_eq!(unpacked(&memory), "a\nb\nc\nd\n");
    }

    #[test]
    fn what_no_batch_covers_is_cut_though_no_line_follows() {
        let memory = Memory::default();
        memory.append("f").unwrap().append(b"left by a kill").unwrap();
        RowFile::at(&memory, "f", true, 0).unwrap();
        assert_eq!(memory.bytes("f").unwrap(), b"");
    }

    #[test]
    fn much_text_waits_packed_and_in_order() {
        let long = "x".repeat(FRAME_BYTES / 3);
        let mut many = rows(&["first"]);
        for n in 0..10 {
            many.push(format!("{n}{long}").as_bytes()).unwrap();
        }
        assert!(many.text.len() <= FRAME_BYTES && many.frames.len() < FRAME_BYTES);
        let huge = "y".repeat(2 * FRAME_BYTES);
        many.push(huge.as_bytes()).unwrap();
        many.push(b"last").unwrap();
        let want = format!("before\n{}after\n", many.lines());
        for packed in [true, false] {
            let memory = Memory::default();
            let disk: Arc<dyn Disk> = Arc::new(memory.clone());
            let mut file = RowFile::at(disk.as_ref(), "f", packed, 0).unwrap();
            for rows in [&rows(&["before"]), &many, &rows(&["after"])] {
                file.append(&disk, rows).unwrap();
                assert!(file.text.len() <= FRAME_BYTES);
            }
            file.sync().unwrap();
            let bytes = memory.bytes("f").unwrap();
            let text = if packed { unpacked(&memory).into_bytes() } else { bytes };
            assert_eq!(text, want.as_bytes(), "packed: {packed}");
        }
    }
}
