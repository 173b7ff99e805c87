//! The exact sample beside a filter: it sees the filter's wrong answers.
//!
//! A share of the key space, chosen by the hash, is also kept exactly. A key of the sample that is asked for the first
//! time and that the filter calls seen is a wrong answer: an address lost. The first keys are all in the sample; when it
//! reaches its bound the share is halved and what no longer belongs is dropped, counts included, so the keys that are
//! left are an even choice of all keys ever asked.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::sizing::float;
use super::snapshot::Sample;
use crate::hash::Fingerprint;

/// Most keys the sample holds (4 MiB of keys, up to 9 MiB with the table).
pub const MAX_SAMPLE_KEYS: usize = 1 << 18;
/// Keys of the sample to expect when a filter reaches its first capacity.
const EXPECTED_KEYS: u64 = 1 << 17;
/// The share is not halved more often than this.
const MAX_SHIFT: u32 = 63;

/// 95 of 100 cases lie within so many standard deviations.
const Z95: f64 = 1.96;

/// The interval of a count of rare events of which `expected` are expected: a Poisson count by its two Wilson-like ends.
pub(super) fn count_interval(expected: f64) -> (f64, f64) {
    let half = Z95 * expected.max(0.0).sqrt();
    if expected <= 0.0 {
        return (0.0, 0.0);
    }
    ((expected - half).max(0.0), expected + half + Z95 * Z95 / 2.0)
}

/// The sample and what it has seen.
pub(super) struct Observer {
    shift: u32,
    keys: HashTable<Fingerprint>,
    /// Those of `keys` for which the filter's first answer was "seen".
    wrong: Vec<Fingerprint>,
}

impl Observer {
    /// A sample for a filter of `capacity` keys.
    pub(super) fn new(capacity: u64) -> Self {
        let shift = (capacity / EXPECTED_KEYS).checked_ilog2().map_or(0, |log| log + 1);
        Self {
            shift,
            keys: HashTable::new(),
            wrong: Vec::new(),
        }
    }

    /// Goes on from a saved sample.
    pub(super) fn restored(sample: &Sample) -> Self {
        let mut observer = Self {
            shift: sample.shift.min(MAX_SHIFT),
            keys: HashTable::new(),
            wrong: sample.wrong.clone(),
        };
        for key in &sample.keys {
            observer.add(*key);
        }
        observer
    }

    /// Writes the sample into `sample`.
    pub(super) fn save(&self, sample: &mut Sample) {
        sample.shift = self.shift;
        sample.keys = self.keys.iter().copied().collect();
        sample.wrong.clone_from(&self.wrong);
    }

    /// Compares a batch with the filter's answers.
    pub(super) fn observe(&mut self, keys: &[Fingerprint], new: &[bool]) {
        let mut mask = self.mask();
        for (key, new) in keys.iter().zip(new) {
            if chosen(*key, mask) && self.add(*key) {
                if !new {
                    self.wrong.push(*key);
                }
                mask = self.mask();
            }
        }
    }

    /// Takes in keys that were answered "new" in an earlier run.
    pub(super) fn learn(&mut self, keys: &[Fingerprint]) {
        let mut mask = self.mask();
        for key in keys {
            if chosen(*key, mask) && self.add(*key) {
                mask = self.mask();
            }
        }
    }

    /// Takes out a key that the filter forgot: it may come again as a new one.
    pub(super) fn forget(&mut self, key: Fingerprint) {
        if let Ok(place) = self.keys.find_entry(key.high, |other| *other == key) {
            place.remove();
            self.wrong.retain(|other| *other != key);
        }
    }

    /// The rate observed, and over how many keys.
    pub(super) fn observed(&self) -> (f64, u64) {
        let (wrong, asked) = (self.wrong.len() as u64, self.keys.len() as u64);
        (if asked == 0 { 0.0 } else { float(wrong) / float(asked) }, asked)
    }

    /// The interval of the rate: Wilson's, which holds also where few or no answers were wrong.
    pub(super) fn interval(&self) -> (f64, f64) {
        let (wrong, asked) = (self.wrong.len() as u64, self.keys.len() as u64);
        if asked == 0 {
            return (0.0, 1.0);
        }
        let (n, p) = (float(asked), float(wrong) / float(asked));
        let z2 = Z95 * Z95;
        let middle = p + z2 / (2.0 * n);
        let half = Z95 * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        let end = |value: f64| (value / (1.0 + z2 / n)).clamp(0.0, 1.0);
        // rounding must not make a rate out of nothing
        let low = if wrong == 0 { 0.0 } else { end(middle - half) };
        (low, end(middle + half))
    }

    /// Bytes of memory held.
    pub(super) fn memory_bytes(&self) -> u64 {
        (self.keys.allocation_size() + self.wrong.capacity() * size_of::<Fingerprint>()) as u64
    }

    /// Adds a key of the sample; false if it was there.
    fn add(&mut self, key: Fingerprint) -> bool {
        // the fingerprint is a keyed hash already
        match self.keys.entry(key.high, |other| *other == key, |key| key.high) {
            Entry::Occupied(_) => return false,
            Entry::Vacant(place) => place.insert(key),
        };
        while self.keys.len() >= MAX_SAMPLE_KEYS && self.shift < MAX_SHIFT {
            self.shift += 1;
            let mask = self.mask();
            self.keys.retain(|key| chosen(*key, mask));
            self.wrong.retain(|key| chosen(*key, mask));
        }
        true
    }

    fn mask(&self) -> u64 {
        (1 << self.shift) - 1
    }
}

/// Is the key in the sample? Both halves take part, so the choice says nothing about the key's line or any one of its bits.
fn chosen(key: Fingerprint, mask: u64) -> bool {
    (key.high ^ key.low) & mask == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::testing::keys;

    #[test]
    fn the_sample_is_bounded_and_stays_an_even_choice() {
        let mut observer = Observer::new(1);
        let all = keys(0..1_000_000);
        // one answer in a hundred is wrong, more and more often
        let new: Vec<bool> = (0..all.len()).map(|n| n % 100 != 0 || n < 500_000).collect();
        for (keys, new) in all.chunks(1000).zip(new.chunks(1000)) {
            observer.observe(keys, new);
            assert!(observer.keys.len() < MAX_SAMPLE_KEYS);
        }
        assert_eq!(observer.shift, 2);
        let (rate, asked) = observer.observed();
        assert!((245_000..255_000).contains(&asked), "{asked}");
        assert!((0.0045..0.0055).contains(&rate), "{rate}");
        assert!(observer.memory_bytes() < 16 << 20);
    }

    #[test]
    fn a_large_filter_begins_with_a_small_share() {
        assert_eq!(Observer::new(100_000).shift, 0);
        assert_eq!(Observer::new(1_000_000).shift, 3);
        assert_eq!(Observer::new(1_000_000_000).shift, 13);
        assert_eq!(Observer::new(u64::MAX).shift, 47);
    }

    #[test]
    fn the_interval_holds_the_rate() {
        // 95 of 100 samples of a true rate of 1 %
        let mut held = 0;
        for round in 0..200_u64 {
            let mut observer = Observer::new(1);
            let all = keys(round << 32..(round << 32) + 2_000);
            let new: Vec<bool> = all.iter().map(|key| key.low % 100 != 0).collect();
            observer.observe(&all, &new);
            let (low, high) = observer.interval();
            held += u32::from((low..=high).contains(&0.01));
        }
        assert!((180..=199).contains(&held), "{held} of 200");
        assert_eq!(Observer::new(1).interval(), (0.0, 1.0));
        let mut observer = Observer::new(1);
        observer.observe(&keys(0..1_000), &[true; 1_000]);
        let (low, high) = observer.interval();
        // the rule of three: none in a thousand says less than 3.8 in a thousand
        assert!(low == 0.0 && (0.003..0.004).contains(&high), "{low} {high}");
        assert_eq!(count_interval(0.0), (0.0, 0.0));
        let (low, high) = count_interval(100.0);
        assert!((80.0..81.0).contains(&low) && (121.0..122.0).contains(&high));
    }

    #[test]
    fn a_saved_sample_goes_on_where_it_was() {
        let mut observer = Observer::new(1);
        let all = keys(0..2000);
        observer.observe(&all[..1000], &[vec![false; 10], vec![true; 990]].concat());
        let mut saved = Sample::default();
        observer.save(&mut saved);
        let mut back = Observer::restored(&saved);
        assert_eq!(back.observed(), (0.01, 1000));
        // known keys count nothing, new ones do
        back.observe(&all[..1000], &[false; 1000]);
        back.learn(&all[..1500]);
        back.observe(&all[1000..], &[false; 1000]);
        assert_eq!(back.observed(), (510.0 / 2000.0, 2000));
        // a share that no version of ours writes is taken for the smallest there is
        assert_eq!(
            Observer::restored(&Sample {
                shift: u32::MAX,
                ..saved
            })
            .shift,
            MAX_SHIFT
        );
    }
}
