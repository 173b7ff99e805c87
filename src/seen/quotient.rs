//! A quotient filter (Bender et al.: Don't Thrash: How to Cache Your Hash on Flash, 2012): a hash table of remainders whose
//! place says the rest of the fingerprint. It can forget a key, and two filters can be merged exactly.
//!
//! A key's quotient is its home slot, its remainder stands there or, if others came first, behind it. Remainders of one
//! quotient stand together, in order (a run); runs in the order of their quotients; runs that touch make a cluster. Three bits a
//! slot say how to read it: a quotient with this home is there (`HOME`), this remainder goes on the run before it
//! (`MORE`), this remainder is not at home (`AWAY`).

use super::kernel::prefetch;
use super::lines::{Line, Lines};
use super::packed;
use super::part::{self, Part};
use super::sizing::{LINE_BITS, float};
use crate::hash::Fingerprint;

/// A quotient whose home this slot is, is in the filter.
const HOME: u64 = 1;
/// The remainder here belongs to the same run as the one before.
const MORE: u64 = 2;
/// The remainder here is not in its home slot.
const AWAY: u64 = 4;
/// All three.
const MARKS: u64 = HOME | MORE | AWAY;
/// Bits of the marks.
const MARK_BITS: u32 = 3;
/// Keys over slots for which it is made: clusters stay short, and ways with them.
const LOAD: f64 = 0.9;
/// Slots that stay free at least, of each so many.
const FREE_ONE_IN: u64 = 20;
/// Bits of a remainder, least and most.
const WIDTHS: std::ops::RangeInclusive<u32> = 1..=32;
/// Keys whose home slots are on their way from memory.
const AHEAD: usize = 16;

/// A quotient filter.
pub(super) struct Quotient {
    lines: Lines,
    /// Bits of a slot: remainder and marks.
    width: u32,
    slots: usize,
    used: u64,
}

/// The rate at a load: the keys of the quotient asked for are Poisson, and each has one of 2^r remainders.
fn rate_at_load(remainder: u32, load: f64) -> f64 {
    -(-load / 2_f64.powi(i32::try_from(remainder).unwrap_or(i32::MAX))).exp_m1()
}

/// Lines for `items` keys at rate `fp`.
pub(super) fn lines_for(items: u64, fp: f64) -> u64 {
    let enough = |width: &u32| rate_at_load(*width, LOAD) <= fp;
    let remainder = WIDTHS.clone().find(enough).unwrap_or(*WIDTHS.end());
    let slots = part::count((float(items) / LOAD).ceil()).max(2);
    let bits = u128::from(slots) * u128::from(remainder + MARK_BITS);
    u64::try_from(bits.div_ceil(u128::from(LINE_BITS))).unwrap_or(u64::MAX)
}

/// The rate when it holds as many keys as it is made for.
pub(super) fn full_rate(capacity: u64, lines: u64) -> f64 {
    rate_at_load(remainder_bits(capacity, lines), LOAD)
}

/// The bits of a remainder that fit a capacity into so many lines.
fn remainder_bits(capacity: u64, lines: u64) -> u32 {
    let bits = float(lines) * float(LINE_BITS);
    let width = (bits * LOAD / float(capacity.max(1)) + 1e-6).floor();
    let width = u32::try_from(part::count(width)).unwrap_or(u32::MAX);
    width.saturating_sub(MARK_BITS).clamp(*WIDTHS.start(), *WIDTHS.end())
}

impl Quotient {
    pub(super) fn on(lines: Lines, capacity: u64) -> Self {
        let count = lines.as_slice().len();
        let width = remainder_bits(capacity, count as u64) + MARK_BITS;
        Self {
            lines,
            width,
            slots: count * 512 / width as usize,
            used: 0,
        }
    }

    fn home(&self, key: Fingerprint) -> usize {
        part::place(key.high, self.slots)
    }

    fn remainder(&self, key: Fingerprint) -> u64 {
        key.low & packed::mask(self.width - MARK_BITS)
    }

    fn slot(&self, at: usize) -> u64 {
        packed::get(self.lines.as_slice().as_flattened(), self.width, at)
    }

    fn set(&mut self, at: usize, slot: u64) {
        packed::set(self.lines.as_mut_slice().as_flattened_mut(), self.width, at, slot);
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 == self.slots { 0 } else { at + 1 }
    }

    fn before(&self, at: usize) -> usize {
        if at == 0 { self.slots - 1 } else { at - 1 }
    }

    /// The first slot of a cluster that covers `at`: the nearest at or before it whose remainder is at home.
    fn cluster(&self, mut at: usize) -> usize {
        // a filter is never full, so there is one; a file that says otherwise must not hang us
        for _ in 0..self.slots {
            if self.slot(at) & AWAY == 0 {
                break;
            }
            at = self.before(at);
        }
        at
    }

    /// Where the run of a home slot begins, if a quotient with this home is there; else where it would begin. The home
    /// slot must not be empty.
    fn run(&self, home: usize) -> usize {
        // as many runs begin behind the cluster's start as homes are marked from there on
        let mut marked = self.cluster(home);
        let mut run = marked;
        while marked != home {
            if self.slot(marked) & HOME != 0 {
                run = self.behind_run(run);
            }
            marked = self.next(marked);
        }
        run
    }

    fn behind_run(&self, mut at: usize) -> usize {
        for _ in 0..self.slots {
            at = self.next(at);
            if self.slot(at) & MORE == 0 {
                break;
            }
        }
        at
    }

    /// Is this remainder in the run of this home?
    fn has(&self, home: usize, remainder: u64) -> bool {
        if self.slot(home) & HOME == 0 {
            return false;
        }
        let mut at = self.run(home);
        for _ in 0..self.slots {
            let there = self.slot(at) >> MARK_BITS;
            if there >= remainder {
                return there == remainder;
            }
            at = self.next(at);
            if self.slot(at) & MORE == 0 {
                break;
            }
        }
        false
    }

    fn room(&self) -> bool {
        self.used + 1 < self.cells() - self.cells() / FREE_ONE_IN
    }

    /// Puts a remainder in that is not there. There must be room.
    fn put(&mut self, home: usize, remainder: u64) {
        self.used += 1;
        let there = self.slot(home);
        if there & MARKS == 0 {
            self.set(home, remainder << MARK_BITS | HOME);
            return;
        }
        let start = self.run(home);
        let mut at = start;
        let mut mark = 0;
        if there & HOME != 0 {
            // behind the smaller ones of its run
            for _ in 0..self.slots {
                if self.slot(at) >> MARK_BITS >= remainder {
                    break;
                }
                mark = MORE;
                at = self.next(at);
                if self.slot(at) & MORE == 0 {
                    break;
                }
            }
            if at == start {
                // it goes before the first one, which goes on the run now
                let first = self.slot(start);
                self.set(start, first | MORE);
            }
        } else {
            self.set(home, there | HOME);
        }
        let away = if at == home { 0 } else { AWAY };
        self.shift_in(at, remainder << MARK_BITS | mark | away);
    }

    /// Puts a slot's remainder, `MORE` and `AWAY` at a place, and moves what stands there and behind it on by one. `HOME`
    /// speaks of the place and stays.
    fn shift_in(&mut self, mut at: usize, mut coming: u64) {
        for _ in 0..self.slots {
            let there = self.slot(at);
            self.set(at, coming & !HOME | there & HOME);
            if there & MARKS == 0 {
                return;
            }
            coming = there | AWAY;
            at = self.next(at);
        }
    }

    /// All that stands in a cluster that begins at `start`: home and remainder, in order.
    fn unroll(&self, start: usize, out: &mut Vec<(usize, u64)>) -> usize {
        out.clear();
        let mut home = start;
        let mut at = start;
        for _ in 0..self.slots {
            let slot = self.slot(at);
            if at != start && slot & MORE == 0 {
                // the next marked home
                for _ in 0..self.slots {
                    home = self.next(home);
                    if self.slot(home) & HOME != 0 {
                        break;
                    }
                }
            }
            out.push((home, slot >> MARK_BITS));
            at = self.next(at);
            if self.slot(at) & AWAY == 0 {
                break;
            }
        }
        at
    }

    /// Every home and remainder.
    fn all(&self, mut each: impl FnMut(usize, u64) -> bool) -> bool {
        let mut cluster = Vec::new();
        let starts = |slot: u64| slot & MARKS != 0 && slot & AWAY == 0;
        (0..self.slots).filter(|at| starts(self.slot(*at))).all(|at| {
            self.unroll(at, &mut cluster);
            cluster.iter().all(|(home, remainder)| each(*home, *remainder))
        })
    }

    fn fetch(&self, key: Option<&Fingerprint>) {
        if let Some(key) = key
            && let Some(line) = self.lines.as_slice().get(self.home(*key) * self.width as usize / 512)
        {
            prefetch(line);
        }
    }
}

impl Part for Quotient {
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) -> usize {
        for key in keys.iter().take(AHEAD) {
            self.fetch(Some(key));
        }
        for (at, (key, new)) in keys.iter().zip(new).enumerate() {
            self.fetch(keys.get(at + AHEAD));
            let (home, remainder) = (self.home(*key), self.remainder(*key));
            *new = !self.has(home, remainder);
            if *new {
                if !self.room() {
                    return at;
                }
                self.put(home, remainder);
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
            *seen |= self.has(self.home(*key), self.remainder(*key));
        }
    }

    /// The cluster is taken apart and put together again without the key: clusters are short.
    fn remove(&mut self, key: Fingerprint) -> bool {
        let (home, remainder) = (self.home(key), self.remainder(key));
        if !self.has(home, remainder) {
            return false;
        }
        let start = self.cluster(home);
        let mut all = Vec::new();
        let end = self.unroll(start, &mut all);
        let mut at = start;
        loop {
            self.set(at, 0);
            at = self.next(at);
            if at == end {
                break;
            }
        }
        self.used -= all.len() as u64;
        for (home_of, remainder_of) in all {
            if (home_of, remainder_of) != (home, remainder) {
                self.put(home_of, remainder_of);
            }
        }
        true
    }

    fn absorb(&mut self, other: &[Line]) -> Result<(), &'static str> {
        let mut lines = Lines::zeroed(other.len() as u64).map_err(|_| "there is no memory")?;
        lines.as_mut_slice().copy_from_slice(other);
        let other = Self {
            lines,
            width: self.width,
            slots: self.slots,
            used: 0,
        };
        let fits = other.all(|home, remainder| {
            let there = self.has(home, remainder);
            if !there && self.room() {
                self.put(home, remainder);
                return true;
            }
            there
        });
        if fits {
            Ok(())
        } else {
            Err("there is no room for the keys of both")
        }
    }

    fn recount(&mut self) {
        self.used = (0..self.slots).filter(|at| self.slot(*at) & MARKS != 0).count() as u64;
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
        self.slots as u64
    }

    fn used(&self) -> u64 {
        self.used
    }

    fn predicted(&self) -> f64 {
        rate_at_load(self.width - MARK_BITS, float(self.used) / float(self.cells()))
    }

    fn keys(&self) -> u64 {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn key(set: &Quotient, home: usize, remainder: u64) -> Fingerprint {
        // the lowest hash of a home slot, rounded up
        let high = ((home as u128) << 64).div_ceil(set.slots as u128);
        Fingerprint {
            high: u64::try_from(high).unwrap(),
            low: remainder,
        }
    }

    proptest! {
        /// So few slots that clusters are long, run together and around the end.
        #[test]
        fn it_is_a_set_of_homes_and_remainders(steps in proptest::collection::vec((any::<bool>(), 0_usize..85, 0_u64..6), 0..300)) {
            let mut set = Quotient::on(Lines::zeroed(1).unwrap(), 76);
            prop_assert_eq!((set.slots, set.width), (85, 6));
            let mut model = BTreeSet::new();
            for (put, home, remainder) in steps {
                // most keys in a third of the homes
                let home = if home < 60 { (70 + home / 2) % 85 } else { home };
                let key = key(&set, home, remainder);
                prop_assert_eq!(set.home(key), home);
                if put {
                    let mut new = [false];
                    if set.insert_batch(&[key], &mut new) == 1 {
                        prop_assert_eq!(new[0], model.insert((home, remainder)));
                    } else {
                        prop_assert!(model.len() >= 79);
                    }
                } else {
                    prop_assert_eq!(set.remove(key), model.remove(&(home, remainder)));
                }
                let mut found = BTreeSet::new();
                set.all(|home, remainder| found.insert((home, remainder)));
                prop_assert_eq!(&found, &model);
                prop_assert_eq!(set.used, model.len() as u64);
            }
            for home in 0..85 {
                for remainder in 0..6 {
                    prop_assert_eq!(set.has(home, remainder), model.contains(&(home, remainder)));
                }
            }
            let used = set.used;
            set.recount();
            prop_assert_eq!(set.used, used);
        }
    }

    #[test]
    fn the_remainder_is_the_one_the_size_was_made_for() {
        for fp in [0.5, 0.1, 0.01, 0.001, 1e-4, 1e-6] {
            let wanted = WIDTHS.clone().find(|width| rate_at_load(*width, LOAD) <= fp).unwrap();
            for items in [1, 2, 7, 100, 1_000, 12_345, 1_000_000, 1_000_000_000] {
                let bits = remainder_bits(items, lines_for(items, fp));
                assert!(bits >= wanted, "{items} at {fp}: {bits} for {wanted}");
                assert!(
                    items < 100_000 || bits == wanted,
                    "{items} at {fp}: {bits} for {wanted}"
                );
            }
        }
    }
}
