//! A file whose small appends are held back and written together.

use std::io;

use crate::disk::Append;

/// Bytes held back, at most: a line or a WARC record alone is not worth a call of the system.
pub(super) const HELD_BYTES: usize = 64 << 10;

/// An append-only file with its newest bytes in memory. They are written when there are [`HELD_BYTES`] of them, and by
/// [`Held::sync`]: whatever is lost with the process was not covered by a batch, and so is cut away anyway.
pub(super) struct Held {
    file: Box<dyn Append>,
    bytes: Vec<u8>,
    loose: bool,
}

impl Held {
    pub(super) fn new(file: Box<dyn Append>) -> Self {
        Self {
            file,
            bytes: Vec::new(),
            loose: true,
        }
    }

    /// Length in bytes, with what is held.
    pub(super) fn len(&self) -> u64 {
        self.file.len() + self.bytes.len() as u64
    }

    pub(super) fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.loose = true;
        if self.bytes.len() + bytes.len() > HELD_BYTES {
            self.write()?;
        }
        if bytes.len() > HELD_BYTES {
            return self.file.append(bytes);
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    /// Makes everything appended so far survive a power cut.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if !self.loose {
            return Ok(());
        }
        self.write()?;
        self.file.sync()?;
        self.loose = false;
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        if !self.bytes.is_empty() {
            self.file.append(&self.bytes)?;
            self.bytes.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::{Disk, Memory};

    #[test]
    fn bytes_arrive_in_order_however_large_they_come() {
        let disk = Memory::default();
        let mut held = Held::new(disk.append("f").unwrap());
        let mut all = Vec::new();
        for (n, len) in [1, HELD_BYTES, 10, HELD_BYTES - 10, 1, HELD_BYTES + 1, 3]
            .into_iter()
            .enumerate()
        {
            let bytes = vec![u8::try_from(n).unwrap(); len];
            held.append(&bytes).unwrap();
            all.extend_from_slice(&bytes);
            assert_eq!(held.len(), all.len() as u64);
            let written = disk.bytes("f").unwrap_or_default();
            assert!(all.starts_with(&written));
            assert!(all.len() - written.len() <= HELD_BYTES, "no more is held than said");
        }
        held.sync().unwrap();
        assert_eq!(disk.after_power_cut(|_| 0).bytes("f"), Some(all));
    }
}
