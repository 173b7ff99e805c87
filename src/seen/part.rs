//! What a layer of the chain is made of: one structure of fixed size, its storage whole cache lines.
//!
//! Every kind of filter is one of these; growth, the account, the exact sample and the snapshot are the chain's
//! ([`super::layers`]) and the same for all.

use std::io;

use super::Kind;
use super::bloom::Bloom;
use super::classic::{self, Classic};
use super::counting::{self, Counting};
use super::cuckoo::{self, Cuckoo};
use super::lines::{Line, Lines};
use super::quotient::{self, Quotient};
use super::sizing::{self, LINE_BITS, MAX_LINES};
use super::tags::{self, Tags};
use crate::hash::Fingerprint;

/// A structure of fixed size that remembers keys.
pub(super) trait Part: Send {
    /// Tests and sets keys in order: `new[i]` tells whether `keys[i]` was not there. Returns how many keys were taken: all,
    /// or fewer if there is no room for the next one.
    fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut [bool]) -> usize;
    /// Sets `seen[i]` where `keys[i]` is there, and leaves the others as they are.
    fn contains_batch(&self, keys: &[Fingerprint], seen: &mut [bool]);
    /// Takes a key out that was put in. False if it is not there, or this structure cannot.
    fn remove(&mut self, _key: Fingerprint) -> bool {
        false
    }
    /// Adds what stands in the lines of another part of the same kind and size: then the union is here.
    ///
    /// # Errors
    /// Why that cannot be.
    fn absorb(&mut self, other: &[Line]) -> Result<(), &'static str>;
    /// Counts anew after the storage was written from outside.
    fn recount(&mut self);
    /// The storage.
    fn lines(&self) -> &Lines;
    /// The storage, to be written; [`Part::recount`] goes after it.
    fn lines_mut(&mut self) -> &mut Lines;
    /// Cells set per key.
    fn hashes(&self) -> u32;
    /// Cells it has (bits, counters, slots), of which the fill is a share.
    fn cells(&self) -> u64;
    /// Cells in use.
    fn used(&self) -> u64;
    /// The rate that follows from the present fill.
    fn predicted(&self) -> f64;
    /// Keys it holds, as its fill tells: counted where a key has a cell of its own, estimated elsewhere.
    fn keys(&self) -> u64;
}

/// The cache lines that a part of this kind takes for `items` keys at rate `fp`; `None` if that passes [`MAX_LINES`].
pub(super) fn lines_for(kind: Kind, items: u64, fp: f64) -> Option<u64> {
    let lines = match kind {
        Kind::Bloom | Kind::Scalable | Kind::Exact => return sizing::lines_for(items, fp),
        Kind::Classic => classic::lines_for(items, fp),
        Kind::Counting => counting::lines_for(items, fp),
        Kind::Tags => tags::lines_for(items),
        Kind::Cuckoo => cuckoo::lines_for(items, fp),
        Kind::Quotient => quotient::lines_for(items, fp),
        Kind::HashSet => return None,
    };
    (lines <= MAX_LINES).then_some(lines)
}

/// An empty part. With `touch` all its memory is resident when this returns.
///
/// # Errors
/// If the system gives no memory, or there are no such lines.
pub(super) fn make(kind: Kind, capacity: u64, lines: u64, touch: bool) -> io::Result<Box<dyn Part>> {
    let mut storage = Lines::zeroed(lines)?;
    if touch {
        storage.touch();
    }
    Ok(match kind {
        Kind::Bloom | Kind::Scalable | Kind::Exact => Box::new(Bloom::on(storage, capacity)),
        Kind::Classic => Box::new(Classic::on(storage, capacity)),
        Kind::Counting => Box::new(Counting::on(storage, capacity)),
        Kind::Tags => Box::new(Tags::on(storage)),
        Kind::Cuckoo => Box::new(Cuckoo::on(storage, capacity)),
        Kind::Quotient => Box::new(Quotient::on(storage, capacity)),
        Kind::HashSet => return Err(io::Error::new(io::ErrorKind::InvalidInput, "a hash set has no layers")),
    })
}

/// Cells set per key, and the rate when it holds as many keys as it is made for.
pub(super) fn full(kind: Kind, capacity: u64, lines: u64) -> (u32, f64) {
    let cells = lines * LINE_BITS;
    match kind {
        Kind::Bloom | Kind::Scalable | Kind::Exact => {
            let hashes = sizing::hashes(capacity, lines);
            (hashes, sizing::rate(hashes, capacity, lines))
        }
        Kind::Classic => classic::full(capacity, cells),
        Kind::Counting => classic::full(capacity, cells / 4),
        Kind::Tags => (1, tags::FULL_RATE),
        Kind::Cuckoo => (1, cuckoo::full_rate(capacity, lines)),
        Kind::Quotient => (1, quotient::full_rate(capacity, lines)),
        Kind::HashSet => (1, 0.0),
    }
}

/// A count of keys out of an estimate.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of keys, never negative; a cast saturates"
)]
pub(super) fn count(keys: f64) -> u64 {
    keys.round() as u64
}

/// 64 bits well mixed: every bit of the result depends on every bit of `n` (the finalizer of `SplitMix64`).
#[inline]
pub(super) fn mix(n: u64) -> u64 {
    let z = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

/// A place among `count` by the high bits of `hash`, whatever the count.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "less than `count`")]
pub(super) fn place(hash: u64, count: usize) -> usize {
    ((u128::from(hash) * count as u128) >> 64) as usize
}
