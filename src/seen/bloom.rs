//! One Bloom filter of fixed size: a cache line a key, 8 words, one bit in each (two in a filter of a very low rate).
//!
//! Storage is a plain array of words. The hot path works on them raw; everything that counts or compares looks at them
//! through `bitvec`.

use std::io;

use bitvec::prelude::{BitSlice, Lsb0};

use super::kernel::{self, Level};
use super::lines::{Line, Lines};
use super::part::Part;
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
        Ok(Self::on(Lines::zeroed(lines)?, capacity))
    }

    /// An empty filter on lines of zeros.
    pub(super) fn on(lines: Lines, capacity: u64) -> Self {
        Self {
            hashes: sizing::hashes(capacity, lines.as_slice().len() as u64),
            lines,
            level: Level::best(),
            ones: 0,
        }
    }

    /// Tests and sets a batch in order: `new[i]` tells whether `keys[i]` lacked a bit. Keys beyond the length of `new` are left out.
    pub fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) {
        self.ones += kernel::insert(self.level, self.hashes == 16, self.lines.as_mut_slice(), keys, new);
    }

    /// Reads, changes and writes one word in the line of each key, and nothing else: what the memory can do at best, for a
    /// benchmark to compare with. The filter is spoilt by it.
    pub fn bump(&mut self, keys: &[Fingerprint]) {
        kernel::bump(self.lines.as_mut_slice(), keys);
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
    pub fn line_count(&self) -> u64 {
        self.lines.as_slice().len() as u64
    }

    /// Size in bits.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.line_count() * LINE_BITS
    }

    /// Bits set: counted as they are set, so this costs nothing.
    #[must_use]
    pub fn ones(&self) -> u64 {
        self.ones
    }

    /// The rate that follows from the present fill.
    #[must_use]
    pub fn predicted(&self) -> f64 {
        sizing::rate_at_fill(self.hashes, float(self.ones) / float(self.bits()), self.line_count())
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
}

impl Part for Bloom {
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) -> usize {
        Self::insert_batch(self, keys, new);
        keys.len()
    }

    fn contains_batch(&self, keys: &[Fingerprint], seen: &mut [bool]) {
        Self::contains_batch(self, keys, seen);
    }

    fn absorb(&mut self, other: &[Line]) -> Result<(), &'static str> {
        self.lines.unite(other);
        self.recount();
        Ok(())
    }

    fn recount(&mut self) {
        self.ones = self.lines.bits().count_ones() as u64;
    }

    fn lines(&self) -> &Lines {
        &self.lines
    }

    fn lines_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn hashes(&self) -> u32 {
        self.hashes
    }

    fn cells(&self) -> u64 {
        self.bits()
    }

    fn used(&self) -> u64 {
        self.ones
    }

    fn predicted(&self) -> f64 {
        Self::predicted(self)
    }

    fn keys(&self) -> u64 {
        sizing::keys_at_fill(self.hashes, float(self.ones) / float(self.bits()), self.line_count())
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

    /// Who knows the key makes a handful of addresses that set just the bits of an address they wish lost. Under another key they
    /// are a handful of addresses.
    #[test]
    fn addresses_crafted_against_a_known_key_hide_a_page_and_under_a_random_key_they_do_not() {
        use crate::hash::HashKey;
        const CAPACITY: u64 = 1_000;
        const VICTIM: &str = "https://news.example/2026/what-they-do-not-want-archived.html";
        let bits_of = |keys: &[Fingerprint]| {
            let mut filter = filter(CAPACITY, 0.01);
            filter.insert_batch(keys, &mut vec![false; keys.len()]);
            filter.as_bits().iter_ones().collect::<HashSet<_>>()
        };
        let known = HashKey([0; 16]);
        let print = |key: &HashKey, url: &str| key.fingerprint(url.as_bytes());
        let mut open = bits_of(&[print(&known, VICTIM)]);
        let mut crafted: Vec<String> = Vec::new();
        for n in 0.. {
            let url = format!("https://spam.example/{n}");
            let bits = bits_of(&[print(&known, &url)]);
            if open.iter().any(|bit| bits.contains(bit)) {
                open.retain(|bit| !bits.contains(bit));
                crafted.push(url);
            }
            if open.is_empty() {
                break;
            }
        }
        assert!(
            crafted.len() <= 8,
            "a page of ours may have as many links: {}",
            crafted.len()
        );
        let is_lost = |key: &HashKey| {
            let mut filter = filter(CAPACITY, 0.01);
            let keys: Vec<_> = crafted.iter().map(|url| print(key, url)).collect();
            filter.insert_batch(&keys, &mut vec![false; keys.len()]);
            filter.contains(print(key, VICTIM))
        };
        assert!(is_lost(&known));
        // the chance is below 1 in 10^9 for each
        for _ in 0..100 {
            assert!(!is_lost(&HashKey::random().unwrap()));
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
        let mut copy = Bloom::new(10_000, bloom.line_count()).unwrap();
        for range in [0..100, 100..end] {
            let mut bytes = Vec::new();
            bloom.lines.copy(range.clone(), &mut bytes);
            copy.lines.load(range.clone(), &bytes).unwrap();
            copy.lines.load(range, &bytes).unwrap();
        }
        copy.recount();
        assert_eq!(copy.as_bits(), bloom.as_bits());
        assert_eq!(copy.ones(), bloom.ones());
        assert!(copy.lines.load(0..1, &[0; 63]).is_err());
        assert!(copy.lines.load(end..end + 1, &[0; 64]).is_err());
    }
}
