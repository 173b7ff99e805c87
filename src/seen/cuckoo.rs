//! A cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher: Cuckoo Filter, 2014): fingerprints of a few bits in buckets of
//! four, each in one of two buckets. It can forget a key, and grows full at 92 %.
//!
//! Which is a key's other bucket follows from the fingerprint and the bucket it is in. With a number of buckets that is
//! no power of two that is the difference from the fingerprint's hash. A key for which no way can be made is not taken, and what was
//! moved for it is moved back: nothing is ever lost.

use super::kernel::prefetch;
use super::lines::{Line, Lines};
use super::packed;
use super::part::{self, Part};
use super::sizing::{LINE_BITS, float};
use crate::hash::Fingerprint;

/// Fingerprints in a bucket.
const BUCKET: usize = 4;
/// Keys over slots for which it is made; beyond 0.95 ways become hard to find.
const LOAD: f64 = 0.92;
/// Bits of a fingerprint, least and most.
const WIDTHS: std::ops::RangeInclusive<u32> = 4..=32;
/// Fingerprints moved for one key at most.
const MAX_KICKS: usize = 500;
/// Keys whose buckets are on their way from memory.
const AHEAD: usize = 16;

/// A cuckoo filter.
pub(super) struct Cuckoo {
    lines: Lines,
    width: u32,
    buckets: usize,
    used: u64,
    /// What was moved for the present key: slot and what stood there.
    moved: Vec<(usize, u64)>,
}

/// The rate at a load: eight slots are compared with one of 2^f − 1 fingerprints.
fn rate_at_load(width: u32, load: f64) -> f64 {
    -(8.0 * load * (-1.0 / float(packed::mask(width))).ln_1p()).exp_m1()
}

/// Lines for `items` keys at rate `fp`.
pub(super) fn lines_for(items: u64, fp: f64) -> u64 {
    let enough = |width: &u32| rate_at_load(*width, LOAD) <= fp;
    let width = WIDTHS.clone().find(enough).unwrap_or(*WIDTHS.end());
    let buckets = part::count((float(items) / LOAD / float(BUCKET as u64)).ceil()).max(1);
    let bits = u128::from(buckets) * u128::from(width) * BUCKET as u128;
    u64::try_from(bits.div_ceil(u128::from(LINE_BITS))).unwrap_or(u64::MAX)
}

/// The rate when it holds as many keys as it is made for.
pub(super) fn full_rate(capacity: u64, lines: u64) -> f64 {
    rate_at_load(width(capacity, lines), LOAD)
}

/// The width that fits a capacity into so many lines.
fn width(capacity: u64, lines: u64) -> u32 {
    let bits = float(lines) * float(LINE_BITS);
    // what floating point loses must not cost a bit of the width
    let width = (bits * LOAD / float(capacity.max(1)) + 1e-6).floor();
    u32::try_from(part::count(width))
        .unwrap_or(u32::MAX)
        .clamp(*WIDTHS.start(), *WIDTHS.end())
}

impl Cuckoo {
    pub(super) fn on(lines: Lines, capacity: u64) -> Self {
        let count = lines.as_slice().len();
        let width = width(capacity, count as u64);
        Self {
            lines,
            width,
            buckets: (count * 512 / (BUCKET * width as usize)).max(1),
            used: 0,
            moved: Vec::new(),
        }
    }

    fn words(&self) -> &[u64] {
        self.lines.as_slice().as_flattened()
    }

    /// The fingerprint of a key; 0 is an empty slot.
    fn print(&self, key: Fingerprint) -> u64 {
        (key.low & packed::mask(self.width)).max(1)
    }

    fn first(&self, key: Fingerprint) -> usize {
        part::place(key.high, self.buckets)
    }

    /// The other bucket of a fingerprint that is, or would be, in this one. Asked twice, it gives the first back.
    fn other(&self, bucket: usize, print: u64) -> usize {
        let sum = part::place(part::mix(print), self.buckets);
        if sum >= bucket {
            sum - bucket
        } else {
            sum + self.buckets - bucket
        }
    }

    fn slot_of(&self, bucket: usize, print: u64) -> Option<usize> {
        (bucket * BUCKET..(bucket + 1) * BUCKET).find(|slot| packed::get(self.words(), self.width, *slot) == print)
    }

    fn find(&self, bucket: usize, print: u64) -> Option<usize> {
        self.slot_of(bucket, print)
            .or_else(|| self.slot_of(self.other(bucket, print), print))
    }

    fn set(&mut self, slot: usize, print: u64) {
        packed::set(self.lines.as_mut_slice().as_flattened_mut(), self.width, slot, print);
    }

    /// Puts a fingerprint in, moving others if it must. False if there is no way; then nothing is changed.
    fn put(&mut self, bucket: usize, print: u64) -> bool {
        let other = self.other(bucket, print);
        if let Some(slot) = self.slot_of(bucket, 0).or_else(|| self.slot_of(other, 0)) {
            self.set(slot, print);
            self.used += 1;
            return true;
        }
        self.moved.clear();
        let mut dice = part::mix(print ^ (bucket as u64) << 32);
        let (mut at, mut print) = (if dice & 1 == 0 { bucket } else { other }, print);
        for _ in 0..MAX_KICKS {
            dice = part::mix(dice.wrapping_add(1));
            let slot = at * BUCKET + part::place(dice, BUCKET);
            let turned_out = packed::get(self.words(), self.width, slot);
            self.moved.push((slot, turned_out));
            self.set(slot, print);
            print = turned_out;
            at = self.other(at, print);
            if let Some(slot) = self.slot_of(at, 0) {
                self.set(slot, print);
                self.used += 1;
                return true;
            }
        }
        while let Some((slot, print)) = self.moved.pop() {
            self.set(slot, print);
        }
        false
    }

    fn fetch(&self, key: Option<&Fingerprint>) {
        let Some(key) = key else { return };
        let bucket = self.first(*key);
        for bucket in [bucket, self.other(bucket, self.print(*key))] {
            if let Some(line) = self.lines.as_slice().get(bucket * BUCKET * self.width as usize / 512) {
                prefetch(line);
            }
        }
    }

    fn load(&self) -> f64 {
        float(self.used) / float(self.cells())
    }
}

impl Part for Cuckoo {
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) -> usize {
        for key in keys.iter().take(AHEAD) {
            self.fetch(Some(key));
        }
        for (at, (key, new)) in keys.iter().zip(new).enumerate() {
            self.fetch(keys.get(at + AHEAD));
            let (bucket, print) = (self.first(*key), self.print(*key));
            *new = self.find(bucket, print).is_none();
            if *new && !self.put(bucket, print) {
                return at;
            }
        }
        keys.len()
    }

    fn contains_batch(&self, keys: &[Fingerprint], seen: &mut [bool]) {
        for key in keys.iter().take(AHEAD) {
            self.fetch(Some(key));
        }
        for (at, (key, seen)) in keys.iter().zip(seen).enumerate() {
            self.fetch(keys.get(at + AHEAD));
            *seen |= self.find(self.first(*key), self.print(*key)).is_some();
        }
    }

    fn remove(&mut self, key: Fingerprint) -> bool {
        let Some(slot) = self.find(self.first(key), self.print(key)) else {
            return false;
        };
        self.set(slot, 0);
        self.used -= 1;
        true
    }

    fn absorb(&mut self, other: &[Line]) -> Result<(), &'static str> {
        for slot in 0..self.buckets * BUCKET {
            let print = packed::get(other.as_flattened(), self.width, slot);
            let bucket = slot / BUCKET;
            if print != 0 && self.find(bucket, print).is_none() && !self.put(bucket, print) {
                return Err("there is no room for the keys of both");
            }
        }
        Ok(())
    }

    fn recount(&mut self) {
        let slots = 0..self.buckets * BUCKET;
        self.used = slots
            .filter(|slot| packed::get(self.words(), self.width, *slot) != 0)
            .count() as u64;
    }

    fn lines(&self) -> &Lines {
        &self.lines
    }

    fn lines_mut(&mut self) -> &mut Lines {
        &mut self.lines
    }

    fn hashes(&self) -> u32 {
        1
    }

    fn cells(&self) -> u64 {
        (self.buckets * BUCKET) as u64
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn predicted(&self) -> f64 {
        rate_at_load(self.width, self.load())
    }

    fn keys(&self) -> u64 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::testing::keys;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_other_bucket_of_the_other_is_the_first(buckets in 1_usize..1_000, at in any::<prop::sample::Index>(), print: u64) {
            let mut set = Cuckoo::on(Lines::zeroed(1).unwrap(), 1);
            set.buckets = buckets;
            let bucket = at.index(buckets);
            let other = set.other(bucket, print);
            prop_assert!(other < buckets);
            prop_assert_eq!(set.other(other, print), bucket);
        }
    }

    #[test]
    fn a_key_that_finds_no_way_changes_nothing() {
        let lines = lines_for(1_000, 0.01);
        let mut set = Cuckoo::on(Lines::zeroed(lines).unwrap(), 1_000);
        let all = keys(0..3_000);
        let mut new = vec![false; all.len()];
        let taken = set.insert_batch(&all, &mut new);
        assert!((1_000..1_200).contains(&taken), "{taken}");
        let before = set.lines.as_slice().to_vec();
        assert_eq!(set.insert_batch(&all[taken..=taken], &mut [false]), 0);
        assert!(set.lines.as_slice() == before);
        let mut seen = vec![false; taken];
        set.contains_batch(&all[..taken], &mut seen);
        assert!(seen.iter().all(|seen| *seen));
    }

    #[test]
    fn the_width_is_the_one_the_size_was_made_for() {
        for fp in [0.5, 0.1, 0.01, 0.001, 1e-4, 1e-6] {
            let wanted = WIDTHS.clone().find(|width| rate_at_load(*width, LOAD) <= fp).unwrap();
            for items in [1, 2, 7, 100, 1_000, 12_345, 1_000_000, 1_000_000_000] {
                let width = width(items, lines_for(items, fp));
                assert!(width >= wanted, "{items} at {fp}: {width} for {wanted}");
                assert!(
                    items < 100_000 || width == wanted,
                    "{items} at {fp}: {width} for {wanted}"
                );
            }
        }
    }
}
