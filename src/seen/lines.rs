//! The memory of a filter: cache lines in an anonymous mapping, on huge pages where the system gives them.
//!
//! A random access into 1.2 GB of 4 KiB pages misses the page tables too: huge pages make batches 1.5 times faster.

use std::io;
use std::ops::Range;

use bitvec::prelude::{BitSlice, Lsb0};
use memmap2::{MmapMut, MmapOptions};

use super::sizing::{LINE_BYTES, MAX_LINES};

/// One cache line: 8 words.
pub(super) type Line = [u64; 8];

/// Size and alignment of a huge page, bytes.
const HUGE_PAGE: usize = 2 << 20;
/// Size of a small page, bytes (where pages are larger, a page is touched more than once).
const PAGE: usize = 4 << 10;

/// Zeroed lines, aligned to 64 bytes or more.
pub(super) struct Lines {
    map: MmapMut,
    /// Bytes before the first line.
    start: usize,
    count: usize,
}

impl Lines {
    /// `count` lines of zeros (1 to [`MAX_LINES`]). They take memory as they are touched.
    pub(super) fn zeroed(count: u64) -> io::Result<Self> {
        let refused = || {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a filter of {count} lines (at most {MAX_LINES})"),
            )
        };
        if count == 0 || count > MAX_LINES {
            return Err(refused());
        }
        let bytes = usize::try_from(count * LINE_BYTES).map_err(|_| refused())?;
        let count = usize::try_from(count).map_err(|_| refused())?;
        // small filters do not pay for a whole huge page; large ones are aligned to one
        let align = if bytes < HUGE_PAGE { PAGE } else { HUGE_PAGE };
        let size = bytes.next_multiple_of(align);
        let map = MmapOptions::new().len(size + align).map_anon()?;
        let start = map.as_ptr().align_offset(align);
        // only a hint: without it the filter is slower and just as right
        #[cfg(target_os = "linux")]
        if align == HUGE_PAGE {
            let _ = map.advise_range(memmap2::Advice::HugePage, start, size);
        }
        Ok(Self { map, start, count })
    }

    /// Writes to each page, so that all of it is resident and no page fault falls into an insert later.
    pub(super) fn touch(&mut self) {
        for line in self.as_mut_slice().iter_mut().step_by(PAGE / size_of::<Line>()) {
            // a plain `|= 0` is no write to the compiler
            *line = std::hint::black_box(*line);
        }
    }

    /// The lines.
    #[expect(unsafe_code, reason = "the mapping is bytes; the hot loops want words")]
    #[expect(clippy::cast_ptr_alignment, reason = "aligned to a page")]
    pub(super) fn as_slice(&self) -> &[Line] {
        // SAFETY: `zeroed` mapped `start + count * 64` bytes at least, `start` is aligned to a page, every bit pattern is a
        // valid `u64`, and the mapping lives and stays unchanged as long as the borrow of `self`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.start).cast::<Line>(), self.count) }
    }

    /// Sets every bit that is set there.
    pub(super) fn unite(&mut self, other: &[Line]) {
        let mine = self.as_mut_slice().as_flattened_mut();
        for (mine, theirs) in mine.iter_mut().zip(other.as_flattened()) {
            *mine |= theirs;
        }
    }

    /// The lines, to be changed.
    #[expect(unsafe_code, reason = "the mapping is bytes; the hot loops want words")]
    #[expect(clippy::cast_ptr_alignment, reason = "aligned to a page")]
    pub(super) fn as_mut_slice(&mut self) -> &mut [Line] {
        // SAFETY: as in `as_slice`; the borrow of `self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().add(self.start).cast::<Line>(), self.count) }
    }

    /// Appends the words of `range` (counted in lines) to `out`, little-endian. Lines beyond the end are left out.
    pub(super) fn copy(&self, range: Range<usize>, out: &mut Vec<u8>) {
        let lines = self.as_slice();
        let words = lines
            .get(range.start..range.end.min(lines.len()))
            .unwrap_or_default()
            .as_flattened();
        let before = out.len();
        out.resize(before + size_of_val(words), 0);
        let (_, fresh) = out.split_at_mut(before);
        for (bytes, word) in fresh.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
    }

    /// Puts back what [`Lines::copy`] copied; what stood there is overwritten.
    pub(super) fn load(&mut self, range: Range<usize>, bytes: &[u8]) -> io::Result<()> {
        let Some(lines) = self.as_mut_slice().get_mut(range) else {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a chunk beyond the end of the filter",
            ));
        };
        let words = lines.as_flattened_mut();
        if bytes.len() != size_of_val(words) {
            let what = format!("a chunk of {} bytes where {} belong", bytes.len(), size_of_val(words));
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(())
    }

    /// The same memory as bits: bit `i` of word `w` is bit `64 w + i`.
    pub(super) fn bits(&self) -> &BitSlice<u64, Lsb0> {
        BitSlice::from_slice(self.as_slice().as_flattened())
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> u64 {
        let bytes = self.count * size_of::<Line>();
        let align = if bytes < HUGE_PAGE { PAGE } else { HUGE_PAGE };
        bytes.next_multiple_of(align) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_zero_and_aligned() {
        for count in [1, 7, 64, 32_768, 32_769, 100_000] {
            let mut lines = Lines::zeroed(count).unwrap();
            lines.touch();
            assert_eq!(lines.as_slice().len() as u64, count);
            assert_eq!(lines.as_slice().as_ptr() as usize % 64, 0);
            assert!(lines.bits().not_any());
            if count >= 32_768 {
                assert_eq!(lines.as_slice().as_ptr() as usize % HUGE_PAGE, 0);
            }
            lines.as_mut_slice().last_mut().unwrap()[7] = 1 << 63;
            assert_eq!(lines.bits().count_ones(), 1);
            assert_eq!(lines.bits().last_one(), Some(lines.bits().len() - 1));
            assert!(lines.memory_bytes() >= count * 64);
        }
    }

    #[test]
    fn sizes_beyond_the_bounds_are_refused() {
        assert!(Lines::zeroed(0).is_err());
        assert!(Lines::zeroed(MAX_LINES + 1).is_err());
        assert!(Lines::zeroed(u64::MAX).is_err());
    }
}
