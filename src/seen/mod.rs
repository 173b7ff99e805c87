//! The seen-set: has this URL been admitted before? Single owner, no locks: two racing owners would both answer "new".

pub mod bloom;
pub mod exact;
pub mod layers;
pub mod sizing;
pub mod snapshot;

use serde::{Deserialize, Serialize};

use crate::hash::Fingerprint;

/// A kind of seen-set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// One cache line a key, 8 words of one bit each.
    #[default]
    Bloom,
    /// A plain exact set in memory, to compare.
    HashSet,
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
    /// Estimated number of URLs lost to false positives so far.
    pub lost_estimate: f64,
    /// Layers in use.
    pub layers: u32,
}

/// A set that may answer "seen" wrongly at a known rate, and "new" never wrongly.
pub trait SeenSet: Send {
    /// Tests and sets a batch: `new[i]` tells whether `keys[i]` was not there (a key that stands twice in the batch is
    /// new once). `new` is cleared first.
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut Vec<bool>);
    /// Asks without setting.
    fn contains(&self, key: Fingerprint) -> bool;
    /// The account now.
    fn account(&self) -> Account;
    /// Does the next key pass the capacity? Then the owner grows the set before it goes on.
    fn is_full(&self) -> bool;
    /// Adds a layer at once: the bridge until a larger set is rebuilt from the admission log.
    fn add_layer(&mut self);
    /// Bytes of memory held.
    fn memory_bytes(&self) -> u64;
    /// Number of chunks of a snapshot as the set stands now (fixed until a layer is added).
    fn chunks(&self) -> usize;
    /// Copies chunk `index` (at most [`snapshot::CHUNK_BYTES`]) into `out` (cleared first).
    fn copy_chunk(&self, index: usize, out: &mut Vec<u8>);
    /// What a snapshot's header says of this set, enough to make an empty one of the same shape.
    fn shape(&self) -> snapshot::Shape;
    /// The exact sample behind `fp_observed`, for the snapshot.
    fn sample(&self) -> snapshot::Sample;
}
