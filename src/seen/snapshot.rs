//! The file of a filter checkpoint: header, then chunks with a checksum each.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::hash::HashKey;

/// Size of a chunk in bytes; the last one may be shorter.
pub const CHUNK_BYTES: usize = 1 << 20;

/// What makes two filters the same shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Which structure.
    pub kind: Kind,
    /// The job's hash key.
    pub key: HashKey,
    /// The rate asked for.
    pub fp_target: f64,
    /// Capacity (keys) and size (cache lines) of each layer.
    pub layers: Vec<(u64, u64)>,
    /// Keys it answered "new" for.
    pub items: u64,
}

/// The exact sample behind the observed rate.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// One key in 2^shift is sampled.
    pub shift: u32,
    /// New keys of the sample that the filter called seen.
    pub wrong: u64,
    /// New keys asked in the sample.
    pub asked: u64,
    /// The sampled keys, sorted, 16 bytes each.
    pub keys: Vec<crate::hash::Fingerprint>,
}
