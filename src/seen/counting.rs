//! A counting Bloom filter: the textbook's layout with a counter of 4 bits in the place of each bit, so that a key can be
//! taken out again (Fan, Cao, Almeida, Broder: Summary Cache, 2000). It takes four times the memory.
//!
//! A counter that reached its end stays there for ever: how often it was passed is not known, and one that went down
//! too far would make keys forgotten. A key that is there already is not counted a second time.

use super::classic::{self, places};
use super::kernel::prefetch;
use super::lines::{Line, Lines};
use super::part::Part;
use super::sizing::float;
use crate::hash::Fingerprint;

/// Counters in a line.
const LINE_COUNTERS: usize = 128;
/// Counters in a word.
const WORD_COUNTERS: usize = 16;
/// A counter at its end.
const SATURATED: u64 = 15;
/// Keys whose lines are fetched together.
const GROUP: usize = 16;

/// A counting Bloom filter.
pub(super) struct Counting {
    lines: Lines,
    hashes: u32,
    used: u64,
}

/// Lines for `items` keys at rate `fp`.
pub(super) fn lines_for(items: u64, fp: f64) -> u64 {
    classic::cells_for(items, fp).div_ceil(LINE_COUNTERS as u64)
}

impl Counting {
    pub(super) fn on(lines: Lines, capacity: u64) -> Self {
        let cells = (lines.as_slice().len() * LINE_COUNTERS) as u64;
        Self {
            hashes: classic::hashes(capacity, cells),
            lines,
            used: 0,
        }
    }

    fn counters(&self) -> usize {
        self.lines.as_slice().len() * LINE_COUNTERS
    }

    fn fetch(&self, keys: &[Fingerprint]) {
        let (lines, counters) = (self.lines.as_slice(), self.counters());
        for place in keys.iter().flat_map(|key| places(*key, self.hashes, counters)) {
            if let Some(line) = lines.get(place / LINE_COUNTERS) {
                prefetch(line);
            }
        }
    }

    fn has(&self, key: Fingerprint) -> bool {
        let words = self.lines.as_slice().as_flattened();
        let counted = |place: usize| {
            words
                .get(place / WORD_COUNTERS)
                .is_some_and(|word| counter(*word, place) > 0)
        };
        places(key, self.hashes, self.counters()).all(counted)
    }
}

fn counter(word: u64, place: usize) -> u64 {
    word >> (place % WORD_COUNTERS * 4) & SATURATED
}

fn one(place: usize) -> u64 {
    1 << (place % WORD_COUNTERS * 4)
}

impl Part for Counting {
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) -> usize {
        let (hashes, counters) = (self.hashes, self.counters());
        for (keys, new) in keys.chunks(GROUP).zip(new.chunks_mut(GROUP)) {
            if keys.len() > 1 {
                self.fetch(keys);
            }
            for (key, new) in keys.iter().zip(new) {
                *new = !self.has(*key);
                if !*new {
                    continue;
                }
                let words = self.lines.as_mut_slice().as_flattened_mut();
                for place in places(*key, hashes, counters) {
                    if let Some(word) = words.get_mut(place / WORD_COUNTERS) {
                        let count = counter(*word, place);
                        self.used += u64::from(count == 0);
                        if count < SATURATED {
                            *word += one(place);
                        }
                    }
                }
            }
        }
        keys.len()
    }

    fn contains_batch(&self, keys: &[Fingerprint], seen: &mut [bool]) {
        for (keys, seen) in keys.chunks(GROUP).zip(seen.chunks_mut(GROUP)) {
            if keys.len() > 1 {
                self.fetch(keys);
            }
            for (key, seen) in keys.iter().zip(seen) {
                *seen |= self.has(*key);
            }
        }
    }

    fn remove(&mut self, key: Fingerprint) -> bool {
        if !self.has(key) {
            return false;
        }
        let (hashes, counters) = (self.hashes, self.counters());
        let words = self.lines.as_mut_slice().as_flattened_mut();
        for place in places(key, hashes, counters) {
            if let Some(word) = words.get_mut(place / WORD_COUNTERS) {
                let count = counter(*word, place);
                if (1..SATURATED).contains(&count) {
                    *word -= one(place);
                    self.used -= u64::from(count == 1);
                }
            }
        }
        true
    }

    /// The sum, so that a key of either side can be taken out. One that was in both must be taken out twice.
    fn absorb(&mut self, other: &[Line]) -> Result<(), &'static str> {
        let mine = self.lines.as_mut_slice().as_flattened_mut();
        for (mine, theirs) in mine.iter_mut().zip(other.as_flattened()) {
            *mine = (0..WORD_COUNTERS).fold(0, |word, at| {
                word | (counter(*mine, at) + counter(*theirs, at)).min(SATURATED) << (4 * at)
            });
        }
        self.recount();
        Ok(())
    }

    fn recount(&mut self) {
        let low = 0x1111_1111_1111_1111;
        let used = |word: &u64| u64::from(((word | word >> 1 | word >> 2 | word >> 3) & low).count_ones());
        self.used = self.lines.as_slice().as_flattened().iter().map(used).sum();
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
        self.counters() as u64
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn predicted(&self) -> f64 {
        classic::rate_at_fill(self.hashes, float(self.used) / float(self.cells()))
    }

    fn keys(&self) -> u64 {
        classic::keys_at_fill(self.hashes, self.used, self.cells())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::testing::keys;

    #[test]
    fn a_counter_that_reached_its_end_never_goes_down() {
        let mut set = Counting::on(Lines::zeroed(1).unwrap(), 1_000);
        assert_eq!(set.hashes, 1, "one counter a key, 128 counters");
        let all = keys(0..10_000);
        let same: Vec<_> = all
            .iter()
            .copied()
            .filter(|key| places(*key, 1, LINE_COUNTERS).eq([7]))
            .take(20)
            .collect();
        // a key that is there is not counted again, so the counter is driven by hand
        set.insert_batch(&same[..1], &mut [false]);
        set.absorb(&[[0; 8]]).unwrap();
        for _ in 0..4 {
            let copy = set.lines.as_slice().to_vec();
            set.absorb(&copy).unwrap();
        }
        let at = |set: &Counting| counter(set.lines.as_slice()[0][0], 7);
        assert_eq!(at(&set), SATURATED, "1, 2, 4, 8, 16");
        for key in same.iter().cycle().take(40) {
            assert!(set.remove(*key));
        }
        assert_eq!((at(&set), set.used()), (SATURATED, 1));
        assert!(same.iter().all(|key| set.has(*key)));
    }
}
