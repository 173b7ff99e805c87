//! One Bloom filter of fixed size: a cache line a key, 8 words, one bit in each (two in a filter of a very low rate).
//!
//! Storage is a plain array of words. The hot path works on them raw; everything that counts or compares looks at them
//! through `bitvec`.

use std::io;
use std::ops::Range;

use bitvec::prelude::{BitSlice, Lsb0};

use super::kernel::{self, Level};
use super::lines::Lines;
use super::sizing::{self, LINE_BITS, float};
use crate::hash::Fingerprint;

/// A Bloom filter. It never forgets a key, and calls a key seen that is not there at the rate [`Bloom::predicted`].
pub struct Bloom {
    lines: Lines,
    level: Level,
    hashes: u32,
    ones: u64,
}

impl Bloom {
    /// An empty filter of `lines` cache lines, made for `capacity` keys (which decides the bits per key). All its memory is
    /// resident when this returns.
    ///
    /// # Errors
    /// If `lines` is 0 or more than [`sizing::MAX_LINES`], or the system gives no memory.
    pub fn new(capacity: u64, lines: u64) -> io::Result<Self> {
        let mut bloom = Self::lazy(capacity, lines)?;
        bloom.lines.touch();
        Ok(bloom)
    }

    /// The same at once, however large: memory is taken as keys come in (a first touch costs up to 0.2 ms on a huge page).
    ///
    /// # Errors
    /// As [`Bloom::new`].
    pub fn lazy(capacity: u64, lines: u64) -> io::Result<Self> {
        let hashes = sizing::hashes(capacity, lines);
        Ok(Self {
            lines: Lines::zeroed(lines)?,
            level: Level::best(),
            hashes,
            ones: 0,
        })
    }

    /// Tests and sets a batch in order: `new[i]` tells whether `keys[i]` lacked a bit. Keys beyond the length of `new` are left out.
    pub fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) {
        self.ones += kernel::insert(self.level, self.hashes == 16, self.lines.as_mut_slice(), keys, new);
    }

    /// Asks for a batch: sets `seen[i]` where `keys[i]` is there, and leaves the others as they are.
    pub fn contains_batch(&self, keys: &[Fingerprint], seen: &mut [bool]) {
        kernel::contains(self.level, self.hashes == 16, self.lines.as_slice(), keys, seen);
    }

    /// Asks for one key.
    #[must_use]
    pub fn contains(&self, key: Fingerprint) -> bool {
        let mut seen = [false];
        self.contains_batch(&[key], &mut seen);
        seen == [true]
    }

    /// Bits set per key.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.hashes
    }

    /// Size in cache lines.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines.as_slice().len() as u64
    }

    /// Size in bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.lines() * LINE_BITS
    }

    /// Bits set: counted as they are set, so this costs nothing.
    #[must_use]
    pub fn ones(&self) -> u64 {
        self.ones
    }

    /// The rate that follows from the present fill.
    #[must_use]
    pub fn predicted(&self) -> f64 {
        sizing::rate_at_fill(self.hashes, float(self.ones) / float(self.bits()), self.lines())
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.lines.memory_bytes()
    }

    /// The storage as bits: bit `64 w + b` is bit `b` of word `w`, eight words a line.
    #[must_use]
    pub fn as_bits(&self) -> &BitSlice<u64, Lsb0> {
        self.lines.bits()
    }

    /// Appends the words of `range` (counted in lines) to `out`, little-endian. Lines beyond the end are left out.
    pub fn copy_lines(&self, range: Range<usize>, out: &mut Vec<u8>) {
        let lines = self.lines.as_slice();
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

    /// Puts back what [`Bloom::copy_lines`] copied; what stood there is overwritten.
    ///
    /// # Errors
    /// If `bytes` is not as long as the range, or the range passes the end.
    pub fn load_lines(&mut self, range: Range<usize>, bytes: &[u8]) -> io::Result<()> {
        let Some(lines) = self.lines.as_mut_slice().get_mut(range) else {
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
            let loaded = u64::from_le_bytes(*bytes);
            self.ones = self.ones + u64::from(loaded.count_ones()) - u64::from(word.count_ones());
            *word = loaded;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn filter(capacity: u64, fp: f64) -> Bloom {
        Bloom::new(capacity, sizing::lines_for(capacity, fp).unwrap()).unwrap()
    }

    fn keys_of(pairs: &[(u64, u64)]) -> Vec<Fingerprint> {
        pairs.iter().map(|&(high, low)| Fingerprint { high, low }).collect()
    }

    /// Far more keys in all than are on their way from memory at once, some of them twice.
    fn some_keys() -> impl Strategy<Value = Vec<Fingerprint>> {
        proptest::collection::vec(prop_oneof![(any::<u64>(), any::<u64>()), (0..4_u64, 0..4_u64)], 0..600)
            .prop_map(|pairs| keys_of(&pairs))
    }

    proptest! {
        #[test]
        fn no_key_is_forgotten_and_a_key_is_new_once(keys in some_keys(), tight: bool) {
            let mut bloom = filter(500, if tight { 1e-6 } else { 0.01 });
            let mut new = vec![false; keys.len()];
            bloom.insert_batch(&keys, &mut new);
            let mut model = HashSet::new();
            for (key, new) in keys.iter().zip(&new) {
                prop_assert!(bloom.contains(*key));
                // "new" is never wrong
                prop_assert!(model.insert(*key) || !new);
            }
            prop_assert_eq!(bloom.ones(), bloom.as_bits().count_ones() as u64);
        }

        #[test]
        fn a_batch_is_the_same_as_one_key_at_a_time(keys in some_keys(), tight: bool) {
            let fp = if tight { 1e-6 } else { 0.3 };
            let (mut whole, mut single) = (filter(300, fp), filter(300, fp));
            let mut new = vec![false; keys.len()];
            whole.insert_batch(&keys, &mut new);
            for (key, new) in keys.iter().zip(&new) {
                let mut alone = [false];
                single.insert_batch(&[*key], &mut alone);
                prop_assert_eq!(alone[0], *new);
            }
            prop_assert_eq!(whole.as_bits(), single.as_bits());
            prop_assert_eq!(whole.ones(), single.ones());
        }
    }

    #[test]
    fn lines_that_were_copied_can_be_loaded() {
        let mut bloom = filter(10_000, 0.01);
        let keys: Vec<_> = (1..5_000_u64)
            .map(|n| Fingerprint {
                high: n.wrapping_mul(0x9E37_79B9_7F4A_7C15),
                low: n << 20,
            })
            .collect();
        bloom.insert_batch(&keys, &mut vec![false; keys.len()]);
        let end = bloom.lines.as_slice().len();
        let mut copy = Bloom::new(10_000, bloom.lines()).unwrap();
        for range in [0..100, 100..end] {
            let mut bytes = Vec::new();
            bloom.copy_lines(range.clone(), &mut bytes);
            copy.load_lines(range.clone(), &bytes).unwrap();
            copy.load_lines(range, &bytes).unwrap();
        }
        assert_eq!(copy.as_bits(), bloom.as_bits());
        assert_eq!(copy.ones(), bloom.ones());
        assert!(copy.load_lines(0..1, &[0; 63]).is_err());
        assert!(copy.load_lines(end..end + 1, &[0; 64]).is_err());
    }
}
