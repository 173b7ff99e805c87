//! A table of 32-bit tags, nearly exact: 16 tags a cache line, a key's line by its high half, its tag from its low half.
//! A line that is full hands on to the next one. At a load of 0.8 that is 5 bytes a key, and an absent key is called seen
//! at a rate of about 5 · 10^-9: below a rate of 10^-5 smaller and faster than any Bloom filter of one line a key.
//!
//! A tag that was taken out leaves a mark in its place: the line still counts as full, or what it handed on would be lost.

use super::kernel::prefetch;
use super::lines::{Line, Lines};
use super::part::{self, Part};
use super::sizing::float;
use crate::hash::Fingerprint;

/// Tags in a line.
const LINE_TAGS: usize = 16;
/// Keys a line is made for, in tenths: a load of 0.8.
const TENTHS_PER_LINE: u64 = 128;
/// Share of the table, in 1/16, beyond which nothing more is taken: the ways to an empty place become too long.
const MOST_SIXTEENTHS: u64 = 15;
/// A place that never held a tag.
const EMPTY: u32 = 0;
/// A place whose tag was taken out.
const LEFT: u32 = 1;
/// Lines on their way from memory.
const AHEAD: usize = 32;
/// Lines from which the rate is told.
const PROBES: usize = 1024;

/// A line and a place in it.
type Place = (usize, usize);

/// A table of tags.
pub(super) struct Tags {
    lines: Lines,
    /// Places that are not empty, and those of them whose tag was taken out.
    taken: u64,
    left: u64,
}

/// Lines for `items` keys; the rate is what it is.
pub(super) fn lines_for(items: u64) -> u64 {
    items.saturating_mul(10).div_ceil(TENTHS_PER_LINE).max(1)
}

/// The rate at a load of 0.8: a tag has 2^32 values, and an absent key meets 22 tags on its way to an empty place.
pub(super) const FULL_RATE: f64 = 5.2e-9;

/// The tag of a key; the two marks are no tags.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
fn tag(key: Fingerprint) -> u32 {
    (key.low as u32).max(LEFT + 1)
}

/// The tags of a line.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "two tags a word")]
fn tags(line: &Line) -> impl Iterator<Item = u32> {
    line.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32])
}

/// Not zero if one of the two halves of a word is zero; then the lowest bit set tells which.
#[inline]
fn zero_half(word: u64) -> u64 {
    const ONES: u64 = 0x0000_0001_0000_0001;
    word.wrapping_sub(ONES) & !word & ONES << 31
}

/// Is a tag in a line? All its words are looked at, without a branch.
#[inline]
fn holds(line: &Line, tag: u32) -> bool {
    let twice = u64::from(tag) << 32 | u64::from(tag);
    line.iter().fold(0, |any, word| any | zero_half(word ^ twice)) != 0
}

/// The first place of a line that holds this.
#[inline]
fn place_of(line: &Line, tag: u32) -> Option<usize> {
    tags(line).position(|other| other == tag)
}

fn put(line: &mut Line, place: usize, tag: u32) -> u32 {
    let Some(word) = line.get_mut(place / 2) else {
        return EMPTY;
    };
    let shift = place % 2 * 32;
    #[expect(clippy::cast_possible_truncation, reason = "two tags a word")]
    let before = (*word >> shift) as u32;
    *word = *word & !(0xFFFF_FFFF << shift) | u64::from(tag) << shift;
    before
}

impl Tags {
    pub(super) fn on(lines: Lines) -> Self {
        Self {
            lines,
            taken: 0,
            left: 0,
        }
    }

    fn first(&self, key: Fingerprint) -> usize {
        part::place(key.high, self.lines.as_slice().len())
    }

    /// Where the key's tag is; or where it would go, if there is a place.
    fn find(&self, key: Fingerprint) -> (Option<Place>, Option<Place>) {
        let lines = self.lines.as_slice();
        let (start, tag) = (self.first(key), tag(key));
        let mut free = None;
        for at in (start..lines.len()).chain(0..start) {
            let Some(line) = lines.get(at) else { break };
            if holds(line, tag) {
                return (place_of(line, tag).map(|place| (at, place)), None);
            }
            if self.left > 0 && free.is_none() {
                free = place_of(line, LEFT).map(|place| (at, place));
            }
            if holds(line, EMPTY) {
                // nothing was handed on
                free = free.or_else(|| place_of(line, EMPTY).map(|place| (at, place)));
                break;
            }
        }
        (None, free)
    }

    fn has(&self, key: Fingerprint) -> bool {
        let lines = self.lines.as_slice();
        let (start, tag) = (self.first(key), tag(key));
        for at in (start..lines.len()).chain(0..start) {
            let Some(line) = lines.get(at) else { break };
            if holds(line, tag) {
                return true;
            }
            if holds(line, EMPTY) {
                break;
            }
        }
        false
    }

    fn room(&self) -> bool {
        self.taken - self.left < (self.cells() / 16 * MOST_SIXTEENTHS).max(1)
    }

    fn fetch(&self, key: Option<&Fingerprint>) {
        if let Some(line) = key.and_then(|key| self.lines.as_slice().get(self.first(*key))) {
            prefetch(line);
        }
    }
}

impl Part for Tags {
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) -> usize {
        for key in keys.iter().take(AHEAD) {
            self.fetch(Some(key));
        }
        for (at, (key, new)) in keys.iter().zip(new).enumerate() {
            self.fetch(keys.get(at + AHEAD));
            let (here, free) = self.find(*key);
            *new = here.is_none();
            if here.is_some() {
                continue;
            }
            let Some((line, place)) = free.filter(|_| self.room()) else {
                return at;
            };
            if let Some(line) = self.lines.as_mut_slice().get_mut(line) {
                match put(line, place, tag(*key)) {
                    LEFT => self.left -= 1,
                    _ => self.taken += 1,
                }
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
            *seen |= self.has(*key);
        }
    }

    fn remove(&mut self, key: Fingerprint) -> bool {
        let (Some((line, place)), _) = self.find(key) else {
            return false;
        };
        if let Some(line) = self.lines.as_mut_slice().get_mut(line) {
            // a line with an empty place never was full, so it handed nothing on
            if tags(line).any(|tag| tag == EMPTY) {
                put(line, place, EMPTY);
                self.taken -= 1;
            } else {
                put(line, place, LEFT);
                self.left += 1;
            }
        }
        true
    }

    fn absorb(&mut self, _other: &[Line]) -> Result<(), &'static str> {
        Err("a tag that its line handed on does not say which line was its own")
    }

    fn recount(&mut self) {
        let all = || self.lines.as_slice().iter().flat_map(tags);
        let taken = all().filter(|tag| *tag != EMPTY).count() as u64;
        let left = all().filter(|tag| *tag == LEFT).count() as u64;
        (self.taken, self.left) = (taken, left);
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
        (self.lines.as_slice().len() * LINE_TAGS) as u64
    }

    fn used(&self) -> u64 {
        self.taken - self.left
    }

    /// Told by the table itself: the tags that an absent key meets, from lines spread evenly.
    fn predicted(&self) -> f64 {
        let lines = self.lines.as_slice();
        let probes = lines.len().min(PROBES);
        let mut met = 0;
        for probe in 0..probes {
            let start = probe * lines.len() / probes;
            for line in lines.iter().skip(start).chain(lines.iter().take(start)) {
                met += tags(line).filter(|tag| *tag > LEFT).count() as u64;
                if tags(line).any(|tag| tag == EMPTY) {
                    break;
                }
            }
        }
        float(met) / float(probes as u64) / 4_294_967_296.0
    }

    fn keys(&self) -> u64 {
        self.used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::testing::keys;

    #[test]
    fn what_a_full_line_handed_on_is_found_after_removals() {
        let mut table = Tags::on(Lines::zeroed(4).unwrap());
        let all: Vec<_> = keys(0..1_000)
            .into_iter()
            .filter(|key| table.first(*key) == 3)
            .take(20)
            .collect();
        let mut new = vec![false; all.len()];
        assert_eq!(table.insert_batch(&all, &mut new), 20);
        assert!(new.iter().all(|new| *new));
        // 16 in the last line, 4 in the first
        assert_eq!(tags(&table.lines.as_slice()[0]).filter(|tag| *tag > LEFT).count(), 4);
        assert!(table.remove(all[0]) && !table.remove(all[0]));
        let mut seen = vec![false; all.len()];
        table.contains_batch(&all, &mut seen);
        assert!(!seen[0] && seen[1..].iter().all(|seen| *seen));
        // its place serves again, before the empty ones of the next line
        table.insert_batch(&all[..1], &mut new);
        assert!(new[0]);
        assert_eq!((table.used(), table.left), (20, 0));
        assert_eq!(tags(&table.lines.as_slice()[0]).filter(|tag| *tag > LEFT).count(), 4);
    }

    #[test]
    fn the_rate_is_told_by_the_table() {
        let mut table = Tags::on(Lines::zeroed(10_000).unwrap());
        let all = keys(0..128_000);
        table.insert_batch(&all, &mut vec![false; all.len()]);
        let told = table.predicted();
        assert!((told / FULL_RATE - 1.0).abs() < 0.15, "{told}");
        for key in &all {
            assert!(table.remove(*key));
        }
        assert_eq!((table.used(), table.predicted().to_bits()), (0, 0));
        assert!(table.left < 128_000 / 2, "lines that were never full are empty again");
    }

    #[test]
    fn a_table_takes_no_more_than_its_share() {
        let mut table = Tags::on(Lines::zeroed(2).unwrap());
        let all = keys(0..100);
        assert_eq!(table.insert_batch(&all, &mut [false; 100]), 30);
        // what is there is still known when there is no room
        assert_eq!(table.insert_batch(&all[..30], &mut [false; 30]), 30);
    }
}
