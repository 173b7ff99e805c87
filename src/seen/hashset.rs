//! A plain exact set in memory (`--seen hashset`): no wrong answers, some 20 times the memory of a filter.

use std::io;

use hashbrown::HashTable;

use super::snapshot::{CHUNK_BYTES, Sample, Shape};
use super::{Account, Kind, SeenSet};
use crate::hash::{Fingerprint, HashKey};

/// Keys in a chunk of a snapshot.
const CHUNK_KEYS: usize = CHUNK_BYTES / Fingerprint::BYTES;

/// All keys, in the order they came, and a table of their places.
pub struct ExactSet {
    key: HashKey,
    keys: Vec<Fingerprint>,
    places: HashTable<usize>,
}

impl ExactSet {
    /// An empty set. `key` is only kept for the snapshot.
    #[must_use]
    pub fn new(key: HashKey) -> Self {
        Self {
            key,
            keys: Vec::new(),
            places: HashTable::new(),
        }
    }

    /// Bytes that a set of `items` keys takes at least: 16 for the key, 9 for each bucket of the table, which is at most 7/8 full.
    #[must_use]
    pub fn bytes_for(items: u64) -> u64 {
        let buckets = (u128::from(items) * 8 / 7).next_power_of_two();
        u64::try_from(buckets * 9 + u128::from(items) * 16).unwrap_or(u64::MAX)
    }

    /// Adds a key; false if it was there.
    fn insert(&mut self, key: Fingerprint) -> bool {
        let Self { keys, places, .. } = self;
        let at = |place: &usize| keys.get(*place).copied().unwrap_or_default();
        // the fingerprint is a keyed hash already
        if places.find(key.high, |place| at(place) == key).is_some() {
            return false;
        }
        places.insert_unique(key.high, keys.len(), |place| at(place).high);
        keys.push(key);
        true
    }
}

impl SeenSet for ExactSet {
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut Vec<bool>) {
        new.clear();
        new.extend(keys.iter().map(|key| self.insert(*key)));
    }

    fn contains(&self, key: Fingerprint) -> bool {
        self.places
            .find(key.high, |place| self.keys.get(*place) == Some(&key))
            .is_some()
    }

    /// The last key takes its place in the order.
    fn remove(&mut self, key: Fingerprint) -> bool {
        let Self { keys, places, .. } = self;
        let at = |place: usize| keys.get(place).copied().unwrap_or_default();
        let Ok(found) = places.find_entry(key.high, |place| at(*place) == key) else {
            return false;
        };
        let (place, _) = found.remove();
        let last = keys.len() - 1;
        if place != last
            && let Some(moved) = places.find_mut(at(last).high, |place| *place == last)
        {
            *moved = place;
        }
        keys.swap_remove(place);
        true
    }

    fn account(&self) -> Account {
        let items = self.keys.len() as u64;
        Account {
            kind: Kind::HashSet,
            capacity: u64::MAX,
            items,
            bits: self.memory_bytes() * 8,
            hashes: 1,
            fill: 0.0,
            fp_target: 0.0,
            fp_predicted: 0.0,
            fp_observed: 0.0,
            fp_observed_of: items,
            fp_observed_low: 0.0,
            fp_observed_high: 0.0,
            lost_estimate: 0.0,
            lost_low: 0.0,
            lost_high: 0.0,
            saved: 0,
            layers: 1,
        }
    }

    fn is_full(&self) -> bool {
        false
    }

    fn add_layer(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn next_layer_bytes(&self) -> u64 {
        0
    }

    fn memory_bytes(&self) -> u64 {
        (self.keys.capacity() * Fingerprint::BYTES + self.places.allocation_size()) as u64
    }

    fn chunks(&self) -> usize {
        self.keys.len().div_ceil(CHUNK_KEYS)
    }

    fn freeze(&mut self) {}

    fn thaw(&mut self) {}

    fn copy_chunk(&self, index: usize, out: &mut Vec<u8>) {
        out.clear();
        let keys = self.keys.iter().skip(index.saturating_mul(CHUNK_KEYS)).take(CHUNK_KEYS);
        out.extend(keys.flat_map(|key| key.to_bytes()));
    }

    fn shape(&self) -> Shape {
        Shape {
            kind: Kind::HashSet,
            key: self.key,
            fp_target: 0.0,
            layers: Vec::new(),
            items: self.keys.len() as u64,
        }
    }

    fn sample(&self) -> Sample {
        Sample::default()
    }

    fn load_chunk(&mut self, _index: usize, bytes: &[u8]) -> io::Result<()> {
        let (keys, rest) = bytes.as_chunks::<{ Fingerprint::BYTES }>();
        if !rest.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "a chunk that ends inside a key",
            ));
        }
        for key in keys {
            self.insert(Fingerprint::from_bytes(*key));
        }
        Ok(())
    }

    fn restore_sample(&mut self, _sample: Sample) {}

    fn replay(&mut self, keys: &[Fingerprint]) {
        for key in keys {
            self.insert(*key);
        }
    }

    fn set_items(&mut self, _items: u64) {}

    fn absorb(&mut self, other: &dyn SeenSet) -> Result<(), String> {
        if let Some(what) = self.shape().differs(&other.shape()) {
            return Err(what);
        }
        let mut chunk = Vec::new();
        for index in 0..other.chunks() {
            other.copy_chunk(index, &mut chunk);
            self.load_chunk(index, &chunk).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::testing::keys;
    use std::collections::HashSet;

    #[test]
    fn it_answers_as_the_model_does() {
        let mut set = ExactSet::new(HashKey([1; 16]));
        let mut model = HashSet::new();
        let mut new = Vec::new();
        for range in [0..10, 5..200_000, 100..300] {
            let batch = keys(range);
            set.insert_batch(&batch, &mut new);
            let expected: Vec<bool> = batch.iter().map(|key| model.insert(*key)).collect();
            assert_eq!(new, expected);
        }
        let twice = [keys(300_000..300_001), keys(300_000..300_001)].concat();
        set.insert_batch(&twice, &mut new);
        assert_eq!(new, [true, false]);
        assert!(!set.contains(keys(400_000..400_001)[0]));
        assert_eq!(set.account().items, 200_001);
        assert!(set.memory_bytes() >= ExactSet::bytes_for(200_001));
    }

    #[test]
    fn its_chunks_make_it_again() {
        let mut set = ExactSet::new(HashKey([1; 16]));
        set.replay(&keys(0..150_000));
        assert_eq!(set.chunks(), 3);
        let mut copy = ExactSet::new(HashKey([1; 16]));
        let mut bytes = Vec::new();
        for index in 0..set.chunks() {
            set.copy_chunk(index, &mut bytes);
            copy.load_chunk(index, &bytes).unwrap();
        }
        assert_eq!(copy.keys, set.keys);
        assert!(copy.load_chunk(0, &[0; 17]).is_err());
    }
}
