//! The seen-set: has this URL been admitted before? Single owner, no locks: two racing owners would both answer "new".
//!
//! The order of a restart: [`snapshot::restore`] makes the set as the snapshot has it; then the owner replays the admission
//! log from [`snapshot::Restored::replay_from`] on with [`SeenSet::replay`]. One key of the log is one answer "new", so the
//! count of items is the position in the log.

pub mod bloom;
mod classic;
mod counting;
mod cuckoo;
pub mod exact;
pub mod hashset;
mod header;
mod kernel;
pub mod layers;
mod lines;
mod packed;
mod part;
mod quotient;
pub mod sample;
pub mod sizing;
pub mod snapshot;
mod tags;

use std::io;

use serde::{Deserialize, Serialize};

use crate::hash::{Fingerprint, HashKey};

/// A kind of seen-set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A Bloom filter of one cache line a key: 8 words, one bit in each.
    #[default]
    Bloom,
    /// The textbook's Bloom filter, to compare.
    Classic,
    /// A chain of ever tighter Bloom filters that is never made anew.
    Scalable,
    /// The textbook's filter with counters of 4 bits: it can forget.
    Counting,
    /// Fingerprints of a few bits in one of two buckets: it can forget.
    Cuckoo,
    /// A table of remainders: it can forget, and merges exactly.
    Quotient,
    /// A table of 32-bit tags, nearly exact: it can forget.
    Tags,
    /// A Bloom filter in front of a table on disk: it loses nothing.
    Exact,
    /// A plain exact set in memory, to compare.
    HashSet,
}

/// What is known of a key before its owner has looked it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Never admitted.
    New,
    /// Admitted.
    Seen,
    /// The table has to be asked.
    Ask,
}

impl Kind {
    /// All kinds, in the order in which they are explained.
    pub const ALL: [Self; 9] = [
        Self::Bloom,
        Self::Classic,
        Self::Scalable,
        Self::Counting,
        Self::Cuckoo,
        Self::Quotient,
        Self::Tags,
        Self::Exact,
        Self::HashSet,
    ];

    /// The word that a user writes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bloom => "bloom",
            Self::Classic => "classic",
            Self::Scalable => "scalable",
            Self::Counting => "counting",
            Self::Cuckoo => "cuckoo",
            Self::Quotient => "quotient",
            Self::Tags => "tags",
            Self::Exact => "exact",
            Self::HashSet => "hashset",
        }
    }

    /// Can it forget a single key? Where bits are shared between keys it cannot.
    #[must_use]
    pub fn forgets(self) -> bool {
        match self {
            Self::Bloom | Self::Classic | Self::Scalable => false,
            Self::Counting | Self::Cuckoo | Self::Quotient | Self::Tags | Self::Exact | Self::HashSet => true,
        }
    }

    /// Does an insert move or count up what is there already? Then a copy must be of one moment, not made while keys come in.
    #[must_use]
    pub fn moves(self) -> bool {
        matches!(self, Self::Counting | Self::Cuckoo | Self::Quotient)
    }

    /// Is one larger filter made from the admission log after it grew?
    #[must_use]
    pub fn is_rebuilt(self) -> bool {
        !matches!(self, Self::Scalable | Self::Exact | Self::HashSet)
    }
}

/// The filter's account, as the report shows it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Account {
    /// Which structure.
    pub kind: Kind,
    /// Keys it is made for, over all layers.
    pub capacity: u64,
    /// Keys it answered "new" for.
    pub items: u64,
    /// Size in bits.
    pub bits: u64,
    /// Bits set per key.
    pub hashes: u32,
    /// Share of bits set, 0 to 1.
    pub fill: f64,
    /// The rate asked for.
    pub fp_target: f64,
    /// The rate that follows from the present fill.
    pub fp_predicted: f64,
    /// The rate observed on the exact sample: wrong "seen" answers over keys of the sample that were new.
    pub fp_observed: f64,
    /// How many new keys the sample holds.
    pub fp_observed_of: u64,
    /// The ends of the interval that holds the true rate in 95 of 100 cases.
    pub fp_observed_low: f64,
    /// See `fp_observed_low`.
    pub fp_observed_high: f64,
    /// Estimated number of URLs lost to false positives so far, from the fill on the way here.
    pub lost_estimate: f64,
    /// The ends of the interval that holds the true number in 95 of 100 cases, as the estimate has it.
    pub lost_low: f64,
    /// See `lost_low`.
    pub lost_high: f64,
    /// URLs that the filter called seen and the table behind it did not know: an exact set loses none of them.
    pub saved: u64,
    /// Layers in use.
    pub layers: u32,
}

/// A set that may answer "seen" wrongly at a known rate, and "new" never wrongly.
pub trait SeenSet: Send {
    /// Tests and sets a batch: `new[i]` tells whether `keys[i]` was not there (a key that stands twice in the batch is
    /// new once). `new` is cleared first.
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut Vec<bool>);
    /// Says of each key what is known without a look into the owner's table; nothing at all if there is no such table. The owner
    /// looks up what is to be asked, and says what it found with [`SeenSet::told`] right before it inserts.
    fn ask(&self, _keys: &[Fingerprint], answers: &mut Vec<Answer>) {
        answers.clear();
    }
    /// Which keys of the batches that come next were admitted before the owner asked; it holds until it is told again.
    fn told(&mut self, _keys: &[Fingerprint], _there: &[bool]) {}
    /// So many of the keys answered "new" for since this set was made are in the owner's table.
    fn durable(&mut self, _admitted: u64) {}
    /// Asks without setting.
    fn contains(&self, key: Fingerprint) -> bool;
    /// Takes out a key that was answered "new" for. False if it is not there or the kind cannot ([`Kind::forgets`]). A key
    /// that was never put in must not be handed in: if the set calls it seen, another key goes with it.
    fn remove(&mut self, key: Fingerprint) -> bool;
    /// The account now.
    fn account(&self) -> Account;
    /// Does the next key pass the capacity? Then the owner grows the set before it goes on, and makes a larger one. (A set
    /// that its owner leaves full grows by itself at the next batch, as long as it can.)
    fn is_full(&self) -> bool;
    /// Adds a layer at once: the bridge until a larger set is rebuilt from the admission log.
    ///
    /// # Errors
    /// If the set cannot grow further or the system gives no memory. The set goes on as it is, at a rising rate.
    fn add_layer(&mut self) -> io::Result<()>;
    /// Bytes that [`SeenSet::add_layer`] will take; 0 if that is no layer, or there can be none.
    fn next_layer_bytes(&self) -> u64;
    /// Bytes of memory held.
    fn memory_bytes(&self) -> u64;
    /// Number of chunks of a snapshot as the set stands now. Chunks keep their number and place while the set grows.
    fn chunks(&self) -> usize;
    /// Begins a copy: what [`SeenSet::copy_chunk`] gives until [`SeenSet::thaw`] is of now, for kinds that move what they hold
    /// ([`Kind::moves`]; their memory is doubled until then). The others go on changing under the copy.
    fn freeze(&mut self);
    /// Ends a copy.
    fn thaw(&mut self);
    /// Copies chunk `index` (at most [`snapshot::CHUNK_BYTES`]; nothing if there is none) into `out` (cleared first).
    fn copy_chunk(&self, index: usize, out: &mut Vec<u8>);
    /// What a snapshot's header says of this set, enough to make an empty one of the same shape.
    fn shape(&self) -> snapshot::Shape;
    /// The exact sample behind `fp_observed`, for the snapshot.
    fn sample(&self) -> snapshot::Sample;
    /// Puts back a chunk that [`SeenSet::copy_chunk`] copied.
    ///
    /// # Errors
    /// If there is no such chunk, or it has another length.
    fn load_chunk(&mut self, index: usize, bytes: &[u8]) -> io::Result<()>;
    /// Takes over the sample, and with it the estimate of losses, of a snapshot or of the set that this one replaces.
    fn restore_sample(&mut self, sample: snapshot::Sample);
    /// Sets keys of the admission log again. Each counts as an item, whether its bits were there already or not, and none
    /// as an observation.
    fn replay(&mut self, keys: &[Fingerprint]);
    /// Sets the count of items, after the chunks were loaded and before a replay.
    fn set_items(&mut self, items: u64);
    /// Takes in all keys of a set of the same kind, shape and key: then this is the union. The sample begins anew.
    ///
    /// # Errors
    /// What differs, or why the kind cannot.
    fn absorb(&mut self, other: &dyn SeenSet) -> Result<(), String>;
}

/// An empty set of this kind for `capacity` keys at a false-positive rate of `fp` (both mean nothing to an exact set).
///
/// # Errors
/// If the sizes are out of range (the text says which and what is possible), or the system gives no memory.
pub fn make(kind: Kind, key: HashKey, capacity: u64, fp: f64) -> io::Result<Box<dyn SeenSet>> {
    Ok(match kind {
        Kind::HashSet => Box::new(hashset::ExactSet::new(key)),
        Kind::Exact => Box::new(exact::Exact::new(key, capacity, fp)?),
        kind => Box::new(layers::Layered::new(kind, key, capacity, fp)?),
    })
}

/// A number well mixed, for keys that are no hashes.
#[must_use]
pub fn mixed(number: u64) -> u64 {
    part::mix(number.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// Bytes that [`make`] takes for the filter; 0 for a set that has no size of its own, or cannot be made.
#[must_use]
pub fn first_bytes(kind: Kind, capacity: u64, fp: f64) -> u64 {
    match kind {
        Kind::HashSet => 0,
        kind => layers::check_and_size(kind, capacity, fp).map_or(0, |lines| lines * sizing::LINE_BYTES),
    }
}

/// An empty set of this shape, ready for [`SeenSet::load_chunk`].
///
/// # Errors
/// If the shape is not one that this version makes (nothing was allocated then), or the system gives no memory.
pub fn from_shape(shape: &snapshot::Shape) -> io::Result<Box<dyn SeenSet>> {
    shape.check()?;
    Ok(match shape.kind {
        Kind::HashSet => Box::new(hashset::ExactSet::new(shape.key)),
        Kind::Exact => Box::new(exact::Exact::from_shape(shape)?),
        _ => Box::new(layers::Layered::from_shape(shape)?),
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) mod testing {
    use crate::hash::Fingerprint;

    /// Evenly spread 128-bit values, one for each number of the range (`SplitMix64` twice).
    pub(crate) fn keys(range: std::ops::Range<u64>) -> Vec<Fingerprint> {
        range
            .map(|n| Fingerprint {
                high: mix(2 * n),
                low: mix(2 * n + 1),
            })
            .collect()
    }

    fn mix(n: u64) -> u64 {
        let mut z = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }
}
