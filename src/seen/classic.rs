//! The textbook's Bloom filter: m bits, k of them set per key, anywhere. Here to compare: k cache misses a key where
//! [`super::bloom`] has one, for 5 to 9 % fewer bits.
//!
//! The positions are drawn from the key's 128 bits one after the other, each mixed: with the usual `h1 + i·h2 mod m` a
//! second hash of 0, or one that shares a factor with m, makes positions equal.

use super::kernel::prefetch;
use super::lines::{Line, Lines};
use super::part::{self, Part};
use super::sizing::{self, LINE_BITS, float};
use crate::hash::Fingerprint;

/// Most bits set per key: a rate of 2^-32.
const MAX_HASHES: u32 = 32;
/// No filter has as many cells.
const MAX_CELLS: u64 = sizing::MAX_LINES * LINE_BITS;
/// Keys whose lines are fetched together.
const GROUP: usize = 16;

/// A classic Bloom filter.
pub(super) struct Classic {
    lines: Lines,
    hashes: u32,
    ones: u64,
}

/// The smallest number of lines whose rate by the formula is at most `fp`, within 0.1 %.
pub(super) fn lines_for(items: u64, fp: f64) -> u64 {
    cells_for(items, fp).div_ceil(LINE_BITS)
}

/// The same in cells. A whole number of hashes is never quite the best one, so a little more than the formula's m is needed.
pub(super) fn cells_for(items: u64, fp: f64) -> u64 {
    let mut cells = sizing::classic(items, fp).bits.max(1);
    // what no filter can hold need not be exact
    while cells < MAX_CELLS && rate(hashes(items, cells), items, cells) > fp {
        cells += (cells / 1000).max(1);
    }
    cells
}

/// k = m/n·ln 2, rounded.
pub(super) fn hashes(capacity: u64, cells: u64) -> u32 {
    let best = float(cells) / float(capacity.max(1)) * std::f64::consts::LN_2;
    u32::try_from(part::count(best))
        .unwrap_or(MAX_HASHES)
        .clamp(1, MAX_HASHES)
}

/// Hashes, and the rate when full, of so many cells.
pub(super) fn full(capacity: u64, cells: u64) -> (u32, f64) {
    let hashes = hashes(capacity, cells);
    (hashes, rate(hashes, capacity, cells))
}

/// (1 − e^(−kn/m))^k.
fn rate(hashes: u32, items: u64, cells: u64) -> f64 {
    rate_at_fill(hashes, -(-f64::from(hashes) * float(items) / float(cells)).exp_m1())
}

/// The rate that follows from the share of cells in use.
pub(super) fn rate_at_fill(hashes: u32, fill: f64) -> f64 {
    fill.powi(i32::try_from(hashes).unwrap_or(i32::MAX))
}

/// The number of keys that a fill speaks of: n = −m/k·ln(1 − X/m).
pub(super) fn keys_at_fill(hashes: u32, used: u64, cells: u64) -> u64 {
    let cells_of = float(cells.max(1));
    let free = ((cells_of - float(used)) / cells_of).max(1.0 / cells_of);
    part::count(-free.ln() * cells_of / f64::from(hashes.max(1)))
}

/// The places of a key among `cells`.
#[inline]
pub(super) fn places(key: Fingerprint, hashes: u32, cells: usize) -> impl Iterator<Item = usize> {
    let step = key.low | 1;
    (0..u64::from(hashes)).map(move |i| part::place(part::mix(key.high.wrapping_add(step.wrapping_mul(i + 1))), cells))
}

impl Classic {
    pub(super) fn on(lines: Lines, capacity: u64) -> Self {
        let cells = lines.as_slice().len() as u64 * LINE_BITS;
        Self {
            hashes: hashes(capacity, cells),
            lines,
            ones: 0,
        }
    }

    fn bits(&self) -> usize {
        self.lines.as_slice().len() * 512
    }

    fn fetch(&self, keys: &[Fingerprint]) {
        let (lines, bits) = (self.lines.as_slice(), self.bits());
        for place in keys.iter().flat_map(|key| places(*key, self.hashes, bits)) {
            if let Some(line) = lines.get(place / 512) {
                prefetch(line);
            }
        }
    }
}

impl Part for Classic {
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) -> usize {
        let (hashes, bits) = (self.hashes, self.bits());
        for (keys, new) in keys.chunks(GROUP).zip(new.chunks_mut(GROUP)) {
            if keys.len() > 1 {
                self.fetch(keys);
            }
            let words = self.lines.as_mut_slice().as_flattened_mut();
            for (key, new) in keys.iter().zip(new) {
                *new = false;
                for place in places(*key, hashes, bits) {
                    if let Some(word) = words.get_mut(place / 64) {
                        let bit = 1 << (place % 64);
                        let lacking = *word & bit == 0;
                        *word |= bit;
                        self.ones += u64::from(lacking);
                        *new |= lacking;
                    }
                }
            }
        }
        keys.len()
    }

    fn contains_batch(&self, keys: &[Fingerprint], seen: &mut [bool]) {
        let (hashes, bits) = (self.hashes, self.bits());
        let words = self.lines.as_slice().as_flattened();
        for (keys, seen) in keys.chunks(GROUP).zip(seen.chunks_mut(GROUP)) {
            if keys.len() > 1 {
                self.fetch(keys);
            }
            for (key, seen) in keys.iter().zip(seen) {
                let set = |place: usize| words.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1);
                *seen |= places(*key, hashes, bits).all(set);
            }
        }
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
        self.bits() as u64
    }

    fn used(&self) -> u64 {
        self.ones
    }

    fn predicted(&self) -> f64 {
        rate_at_fill(self.hashes, float(self.ones) / float(self.cells()))
    }

    fn keys(&self) -> u64 {
        keys_at_fill(self.hashes, self.ones, self.cells())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Places `h1 + i * h2` are all one place if `h2` is 0, and fall into a few if it shares a divisor with their number: the key then
    /// has one bit, or two. An odd step and a mix behind it leave no such key.
    #[test]
    fn a_second_hash_of_zero_does_not_set_one_bit_alone() {
        let (hashes, cells) = (7, 1 << 16);
        for high in [0_u64, 1, 0xdead_beef, u64::MAX] {
            for low in [0_u64, 1, 1 << 15, 1 << 16, 1 << 40] {
                let textbook: HashSet<u64> = (0..u64::from(hashes))
                    .map(|i| high.wrapping_add(low.wrapping_mul(i)) % (1 << 16))
                    .collect();
                let ours: HashSet<usize> = places(Fingerprint { high, low }, hashes, cells).collect();
                assert!(ours.len() >= 6, "{high} {low}: {ours:?}");
                if low == 0 || low >= 1 << 16 {
                    assert_eq!(textbook.len(), 1);
                }
            }
        }
    }
}
