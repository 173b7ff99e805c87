//! Exact without the memory of a hash set (`--seen exact`): a Bloom filter in front of a table on disk.
//!
//! What the filter does not know is new, and the disk is not asked. What it may know has to be looked up: the owner asks
//! ([`SeenSet::ask`]), reads the table for the answers [`Answer::Ask`], and tells what it found ([`SeenSet::told`]) right before it
//! inserts. This set itself does no I/O. Keys admitted lately, which the table may not have yet, stand in memory until the owner says
//! that they are durable; keys found lately stand in a cache, because pages of a site repeat each other's links.

use std::collections::{HashMap, HashSet, VecDeque};
use std::io;

use super::layers::Layered;
use super::snapshot::{Sample, Shape};
use super::{Account, Answer, Kind, SeenSet};
use crate::hash::{Fingerprint, HashKey};

/// Keys in each half of the cache of keys found lately. When the younger half is full it becomes the older one (16 bytes a key and
/// the table: at most about 12 MiB in all).
pub const CACHED_KEYS: usize = 1 << 17;

/// The filter, and what is known besides it.
pub struct Exact {
    front: Layered,
    /// Admitted and perhaps not in the table yet, in order.
    order: VecDeque<Fingerprint>,
    recent: HashSet<Fingerprint>,
    /// How many were admitted and left `order` again.
    settled: u64,
    younger: HashSet<Fingerprint>,
    older: HashSet<Fingerprint>,
    /// What the owner found in the table for the batches that come next.
    told: HashMap<Fingerprint, bool>,
    /// Keys that the filter called seen and the table did not have: each a page that a filter alone had lost.
    saved: u64,
}

impl Exact {
    /// An empty set whose filter is made for `capacity` keys at a rate of `fp`: so many look-ups are in vain when it is full.
    ///
    /// # Errors
    /// As [`Layered::new`].
    pub fn new(key: HashKey, capacity: u64, fp: f64) -> io::Result<Self> {
        Ok(Self::behind(Layered::new(Kind::Exact, key, capacity, fp)?))
    }

    /// The same with a filter of this shape.
    ///
    /// # Errors
    /// As [`Layered::from_shape`].
    pub fn from_shape(shape: &Shape) -> io::Result<Self> {
        Ok(Self::behind(Layered::from_shape(shape)?))
    }

    fn behind(front: Layered) -> Self {
        Self {
            front,
            order: VecDeque::new(),
            recent: HashSet::new(),
            settled: 0,
            younger: HashSet::new(),
            older: HashSet::new(),
            told: HashMap::new(),
            saved: 0,
        }
    }

    fn known(&self, key: &Fingerprint) -> bool {
        self.recent.contains(key) || self.younger.contains(key) || self.older.contains(key)
    }

    fn cache(&mut self, key: Fingerprint) {
        if self.younger.len() >= CACHED_KEYS {
            self.older = std::mem::take(&mut self.younger);
        }
        self.younger.insert(key);
    }

    /// Is a key that the filter may know new?
    fn is_new(&self, key: &Fingerprint) -> bool {
        if self.known(key) {
            return false;
        }
        let told = self.told.get(key).copied();
        debug_assert!(told.is_some(), "the owner asks before it inserts");
        // rather fetched twice than never
        !told.unwrap_or(false)
    }
}

impl SeenSet for Exact {
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut Vec<bool>) {
        new.clear();
        let mut maybe = vec![false; keys.len()];
        self.front.contains_batch(keys, &mut maybe);
        let mut admitted = Vec::new();
        for (key, maybe) in keys.iter().zip(maybe) {
            // twice in one batch: the filter does not have it yet
            let is_new = if maybe {
                self.is_new(key)
            } else {
                !self.recent.contains(key)
            };
            if is_new {
                self.saved += u64::from(maybe);
                self.recent.insert(*key);
                self.order.push_back(*key);
                admitted.push(*key);
            }
            new.push(is_new);
        }
        self.front.replay(&admitted);
    }

    fn ask(&self, keys: &[Fingerprint], answers: &mut Vec<Answer>) {
        let mut maybe = vec![false; keys.len()];
        self.front.contains_batch(keys, &mut maybe);
        answers.clear();
        answers.extend(
            keys.iter()
                .zip(maybe)
                .map(|(key, maybe)| match (maybe, self.known(key)) {
                    (_, true) => Answer::Seen,
                    (false, false) => Answer::New,
                    (true, false) => Answer::Ask,
                }),
        );
    }

    fn told(&mut self, keys: &[Fingerprint], there: &[bool]) {
        self.told.clear();
        for (key, there) in keys.iter().zip(there) {
            self.told.insert(*key, *there);
            if *there {
                self.cache(*key);
            }
        }
    }

    fn durable(&mut self, admitted: u64) {
        while self.settled < admitted {
            let Some(key) = self.order.pop_front() else { break };
            self.settled += 1;
            self.recent.remove(&key);
            self.cache(key);
        }
    }

    /// The answer of the filter: a key that it may know can be new all the same.
    fn contains(&self, key: Fingerprint) -> bool {
        self.front.contains(key)
    }

    /// The table forgets; the filter goes on asking it.
    fn remove(&mut self, key: Fingerprint) -> bool {
        self.recent.remove(&key);
        self.younger.remove(&key);
        self.older.remove(&key);
        let there = self.front.contains(key);
        if there {
            self.front.uncount();
        }
        there
    }

    fn account(&self) -> Account {
        let account = self.front.account();
        Account {
            fp_predicted: 0.0,
            fp_observed: 0.0,
            fp_observed_of: account.items,
            lost_estimate: 0.0,
            lost_low: 0.0,
            lost_high: 0.0,
            fp_observed_low: 0.0,
            fp_observed_high: 0.0,
            saved: self.saved,
            ..account
        }
    }

    fn is_full(&self) -> bool {
        self.front.is_full()
    }

    fn add_layer(&mut self) -> io::Result<()> {
        self.front.add_layer()
    }

    fn next_layer_bytes(&self) -> u64 {
        self.front.next_layer_bytes()
    }

    fn memory_bytes(&self) -> u64 {
        let keys = self.recent.capacity() + self.younger.capacity() + self.older.capacity() + self.order.capacity();
        self.front.memory_bytes() + (keys * (Fingerprint::BYTES + 1)) as u64
    }

    fn chunks(&self) -> usize {
        self.front.chunks()
    }

    fn freeze(&mut self) {
        self.front.freeze();
    }

    fn thaw(&mut self) {
        self.front.thaw();
    }

    fn copy_chunk(&self, index: usize, out: &mut Vec<u8>) {
        self.front.copy_chunk(index, out);
    }

    fn shape(&self) -> Shape {
        self.front.shape()
    }

    fn sample(&self) -> Sample {
        Sample {
            items: self.front.account().items,
            ..Sample::default()
        }
    }

    fn load_chunk(&mut self, index: usize, bytes: &[u8]) -> io::Result<()> {
        self.front.load_chunk(index, bytes)
    }

    fn restore_sample(&mut self, _sample: Sample) {}

    /// What the log says is in the table already.
    fn replay(&mut self, keys: &[Fingerprint]) {
        self.front.replay(keys);
    }

    fn set_items(&mut self, items: u64) {
        self.front.set_items(items);
    }

    fn absorb(&mut self, _other: &dyn SeenSet) -> Result<(), String> {
        Err("filters of kind exact cannot be merged: their keys are in the stores of two jobs".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::testing::keys;
    use proptest::prelude::*;

    /// An owner with its table, which keys reach some time after they were admitted.
    struct Owner {
        set: Exact,
        table: HashSet<Fingerprint>,
        log: Vec<Fingerprint>,
        asked: usize,
    }

    impl Owner {
        fn new(capacity: u64) -> Self {
            Self {
                set: Exact::new(HashKey([1; 16]), capacity, 0.3).unwrap(),
                table: HashSet::new(),
                log: Vec::new(),
                asked: 0,
            }
        }

        fn ask(&mut self, keys: &[Fingerprint]) -> Vec<bool> {
            let mut answers = Vec::new();
            self.set.ask(keys, &mut answers);
            self.asked += answers.iter().filter(|answer| **answer == Answer::Ask).count();
            let there = |(key, answer): (&Fingerprint, &Answer)| match answer {
                Answer::New => false,
                Answer::Seen => true,
                Answer::Ask => self.table.contains(key),
            };
            keys.iter().zip(&answers).map(there).collect()
        }

        fn insert(&mut self, keys: &[Fingerprint], there: &[bool]) -> Vec<bool> {
            self.set.told(keys, there);
            let mut new = Vec::new();
            self.set.insert_batch(keys, &mut new);
            self.log
                .extend(keys.iter().zip(&new).filter(|(_, new)| **new).map(|(key, _)| *key));
            new
        }

        fn sync(&mut self, upto: usize) {
            self.table.extend(&self.log[..upto.min(self.log.len())]);
            self.set.durable(upto.min(self.log.len()) as u64);
        }
    }

    proptest! {
        /// Two pages at a time: the second is taken in while the first waits for its answers.
        #[test]
        fn it_is_a_set_whenever_the_answers_come(
            pages in proptest::collection::vec((proptest::collection::vec(0_usize..400, 0..40), proptest::collection::vec(0_usize..400, 0..40), 0_usize..500), 0..30),
            capacity in 1_u64..300,
        ) {
            let mut owner = Owner::new(capacity);
            let pool = keys(0..400);
            let mut model = HashSet::new();
            for (first, second, upto) in pages {
                let first: Vec<_> = first.iter().map(|n| pool[*n]).collect();
                let second: Vec<_> = second.iter().map(|n| pool[*n]).collect();
                let waiting = owner.ask(&first);
                let there = owner.ask(&second);
                for (keys, there) in [(&second, there), (&first, waiting)] {
                    let expected: Vec<_> = keys.iter().map(|key| model.insert(*key)).collect();
                    prop_assert_eq!(owner.insert(keys, &there), expected);
                }
                owner.sync(upto);
            }
            prop_assert_eq!(owner.set.account().items, model.len() as u64);
        }
    }

    #[test]
    fn what_is_new_or_was_met_lately_is_not_asked_for() {
        let mut owner = Owner::new(100_000);
        let all = keys(0..10_000);
        for batch in all.chunks(100) {
            let there = owner.ask(batch);
            assert!(owner.insert(batch, &there).iter().all(|new| *new));
        }
        assert_eq!(owner.asked, 0, "an almost empty filter knows what is new");
        owner.sync(10_000);
        assert!(owner.ask(&all).iter().all(|there| *there));
        assert_eq!(owner.asked, 0, "they were met lately");
        let mut back = Owner::new(100_000);
        back.set.replay(&all);
        back.table.extend(&all);
        for _ in 0..2 {
            let there = back.ask(&all);
            assert!(back.insert(&all, &there).iter().all(|new| !new));
        }
        assert_eq!(back.asked, 10_000, "once, and not again");
        assert!(back.set.memory_bytes() < 2 << 20);
    }

    #[test]
    fn the_cache_is_bounded() {
        let mut set = Exact::new(HashKey([1; 16]), 10, 0.5).unwrap();
        for key in keys(0..5 * CACHED_KEYS as u64) {
            set.cache(key);
        }
        assert!(set.younger.len() + set.older.len() <= 2 * CACHED_KEYS);
        assert!(set.memory_bytes() < 20 << 20);
    }
}
