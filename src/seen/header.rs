//! The header of a filter snapshot (its layout stands in [`super::snapshot`]), and the sealed blocks it is one of.

use super::Kind;
use super::layers::MAX_LAYERS;
use super::snapshot::{CHUNK_BYTES, HEADER_BYTES, Shape, SnapshotError, VERSION};
use crate::hash::HashKey;

/// The first bytes of a snapshot.
pub(super) const MAGIC: &[u8; 8] = b"SEENSNAP";
/// Bytes of a checksum.
pub(super) const CRC_BYTES: usize = 4;
/// What the key check is the fingerprint of.
const KEY_CHECK: &[u8] = b"the key of this filter";
/// The one hash there is.
const SIPHASH_13_128: u32 = 1;

/// What the header says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    pub(super) shape: Shape,
    pub(super) log_start: u64,
    pub(super) identity: u32,
}

impl Header {
    /// The header as it is written.
    pub(super) fn encode(&self) -> Vec<u8> {
        let Self {
            shape,
            log_start,
            identity,
        } = self;
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(layout(shape.kind).to_le_bytes());
        out.extend(SIPHASH_13_128.to_le_bytes());
        out.extend(identity.to_le_bytes());
        out.extend(shape.key.0);
        out.extend(shape.key.fingerprint(KEY_CHECK).high.to_le_bytes());
        out.extend(shape.fp_target.to_le_bytes());
        out.extend(shape.items.to_le_bytes());
        out.extend(log_start.to_le_bytes());
        out.extend(u32::try_from(CHUNK_BYTES).unwrap_or(0).to_le_bytes());
        out.extend(u32::try_from(shape.layers.len()).unwrap_or(0).to_le_bytes());
        for (capacity, lines) in &shape.layers {
            out.extend(capacity.to_le_bytes());
            out.extend(lines.to_le_bytes());
        }
        seal(&mut out, HEADER_BYTES);
        out
    }

    /// Reads and checks a header.
    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, SnapshotError> {
        let mut fields = Fields(bytes);
        if fields.bytes() != *MAGIC {
            return Err(SnapshotError::NotASnapshot);
        }
        // another version may keep its checksum elsewhere, so this comes first
        let version = fields.u32();
        if version != VERSION {
            return Err(SnapshotError::UnknownVersion(version));
        }
        if sealed(bytes).is_none() {
            return Err(SnapshotError::Damaged("header"));
        }
        let found = fields.u32();
        let kind = Kind::ALL
            .into_iter()
            .find(|kind| layout(*kind) == found)
            .ok_or(SnapshotError::UnknownLayout("layout"))?;
        if fields.u32() != SIPHASH_13_128 {
            return Err(SnapshotError::UnknownLayout("hash"));
        }
        let identity = fields.u32();
        let key = HashKey(fields.bytes());
        if fields.u64() != key.fingerprint(KEY_CHECK).high {
            return Err(SnapshotError::WrongKey);
        }
        let (fp_target, items, log_start) = (f64::from_bits(fields.u64()), fields.u64(), fields.u64());
        if fields.u32() as usize != CHUNK_BYTES {
            return Err(SnapshotError::UnknownLayout("chunk size"));
        }
        // one more than there may be is enough for the check to refuse it
        let count = (fields.u32() as usize).min(MAX_LAYERS + 1);
        let layers = (0..count).map(|_| (fields.u64(), fields.u64())).collect();
        let shape = Shape {
            kind,
            key,
            fp_target,
            layers,
            items,
        };
        shape.check().map_err(|error| SnapshotError::Shape(error.to_string()))?;
        Ok(Header {
            shape,
            log_start,
            identity,
        })
    }
}

/// The checksum that stands at the end of a sealed block.
pub(super) fn checksum(block: &[u8]) -> u32 {
    block.last_chunk().map_or(0, |crc| u32::from_le_bytes(*crc))
}

fn layout(kind: Kind) -> u32 {
    match kind {
        Kind::Bloom => 1,
        Kind::HashSet => 2,
        Kind::Classic => 3,
        Kind::Scalable => 4,
        Kind::Counting => 5,
        Kind::Cuckoo => 6,
        Kind::Quotient => 7,
        Kind::Tags => 8,
        Kind::Exact => 9,
    }
}

/// Fills a block with zeros up to its last four bytes, and writes the checksum there.
pub(super) fn seal(block: &mut Vec<u8>, size: usize) {
    block.resize(size - CRC_BYTES, 0);
    block.extend(crc32c::crc32c(block).to_le_bytes());
}

/// What stands before the checksum of a block, if that fits.
pub(super) fn sealed(block: &[u8]) -> Option<&[u8]> {
    let (body, crc) = block.split_last_chunk()?;
    (crc32c::crc32c(body) == u32::from_le_bytes(*crc)).then_some(body)
}

/// Numbers out of a block, one after the other; zeros beyond its end.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    pub(super) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let Some((first, rest)) = self.0.split_first_chunk() else {
            return [0; N];
        };
        self.0 = rest;
        *first
    }

    pub(super) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes())
    }

    pub(super) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.bytes())
    }
}
