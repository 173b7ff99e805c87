//! The file of a filter checkpoint.
//!
//! It is written while keys are inserted (a fuzzy copy): the log position P is noted, the chunks are copied one by one
//! from the live array, then position E is noted. Bits only go from 0 to 1, so after the keys of the log from P on are set
//! again the filter is exactly what it was. A bit whose key is not in the log would lose a page, so the file counts only
//! once the log is durable up to E: the owner publishes it by rename after that.
//!
//! All numbers are little-endian; all checksums are CRC-32C.
//!
//! ```text
//! header, 4096 bytes
//!     0  "SEENSNAP"          8  version u32 = 1       12  layout u32: 1 bloom, 2 hashset (a list of fingerprints),
//!                                                         3 classic, 4 scalable, 5 counting, 6 cuckoo, 7 quotient, 8 tags, 9 exact
//!    16  hash u32: 1 = SipHash-1-3-128               20  version of the rules of identity u32
//!    24  key, 16 bytes      40  key check u64 (high half of the fingerprint of KEY_CHECK)
//!    48  target rate f64    56  items u64            64  log start P u64
//!    72  chunk size u32     76  number of layers u32 80  for each layer: capacity u64, lines u64
//!  4092  checksum of what stands before
//! chunks: layer after layer, each cut into pieces of 1 MiB (the last of a layer is shorter); behind each its checksum u32
//! tail, 64 bytes
//!     0  "SEENTAIL"          8  log end E u64        16  items of the sample u64     24  estimate of losses f64
//!    32  shift u32          36  keys u32             40  wrong u32                   44  checksum of the sample's keys u32
//!    48  checksum of the header u32                  60  checksum of what stands before
//! sample: keys, then the wrong ones, 16 bytes each
//! ```
//! A file that ends earlier, or goes on, is not valid. In a line word `i` of a key's pattern has the bit that bits
//! `6i..6i+6` of `low` name; the line is `high * lines >> 64`; a layer of at most 24 keys a line has a second bit in each word, from
//! bits 48.. of `low` and the low half of `high` behind them.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::header::{CRC_BYTES, Fields, Header, seal, sealed};
use super::layers::MAX_LAYERS;
use super::sample::MAX_SAMPLE_KEYS;
use super::sizing::{LINE_BYTES, MAX_FP, MAX_LINES, MIN_FP};
use super::{Kind, SeenSet, header};
use crate::hash::{Fingerprint, HashKey};

/// Size of a chunk in bytes; the last one of a layer may be shorter.
pub const CHUNK_BYTES: usize = 1 << 20;
/// Version of the file format.
pub const VERSION: u32 = 1;
/// Size of the header in bytes.
pub const HEADER_BYTES: usize = 4096;
/// Size of the tail in bytes.
const TAIL_BYTES: usize = 64;
const TAIL_MAGIC: &[u8; 8] = b"SEENTAIL";

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

impl Shape {
    /// Is this a shape that this version makes? To be asked before memory is taken for one that was read from a file.
    ///
    /// # Errors
    /// Names what is out of its bounds.
    pub fn check(&self) -> io::Result<()> {
        let refused = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if self.kind == Kind::HashSet {
            return if self.layers.is_empty() {
                Ok(())
            } else {
                refused("an exact set with layers".to_owned())
            };
        }
        if !(MIN_FP..=MAX_FP).contains(&self.fp_target) {
            return refused(format!(
                "a filter with a target rate of {} (from {MIN_FP} to {MAX_FP})",
                self.fp_target
            ));
        }
        if self.layers.is_empty() || self.layers.len() > MAX_LAYERS {
            return refused(format!(
                "a filter of {} layers (from 1 to {MAX_LAYERS})",
                self.layers.len()
            ));
        }
        for &(capacity, lines) in &self.layers {
            // the lowest rate of any layer takes less than a line a key
            if lines == 0 || lines > MAX_LINES || lines > capacity {
                let most = MAX_LINES.min(capacity);
                return refused(format!(
                    "a layer of {lines} lines for {capacity} keys (from 1 to {most})"
                ));
            }
        }
        Ok(())
    }

    /// In what another shape differs from this one, or nothing: two sets of one shape can be merged.
    #[must_use]
    pub fn differs(&self, other: &Self) -> Option<String> {
        let sizes = |shape: &Self| {
            let layers = shape.layers.iter();
            let layers: Vec<_> = layers
                .map(|(keys, lines)| format!("{lines} lines for {keys} keys"))
                .collect();
            layers.join(" and ")
        };
        if self.kind != other.kind {
            Some(format!(
                "the kinds differ: {} and {}",
                self.kind.name(),
                other.kind.name()
            ))
        } else if self.key != other.key {
            Some("the keys differ: they are of two jobs, whose hashes of one URL have nothing in common".to_owned())
        } else if self.layers != other.layers {
            Some(format!("the sizes differ: {}; {}", sizes(self), sizes(other)))
        } else {
            None
        }
    }

    /// The lengths of a snapshot's chunks, in bytes.
    pub fn chunk_lengths(&self) -> impl Iterator<Item = usize> + use<> {
        let parts: Vec<u64> = match self.kind {
            Kind::HashSet => vec![self.items.saturating_mul(Fingerprint::BYTES as u64)],
            _ => self
                .layers
                .iter()
                .map(|(_, lines)| lines.saturating_mul(LINE_BYTES))
                .collect(),
        };
        parts.into_iter().flat_map(|bytes| {
            let rest = usize::try_from(bytes % CHUNK_BYTES as u64).unwrap_or(0);
            (0..bytes / CHUNK_BYTES as u64)
                .map(|_| CHUNK_BYTES)
                .chain((rest > 0).then_some(rest))
        })
    }
}

/// The exact sample behind the observed rate, and the estimate of losses that goes with it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// One key in 2^shift is sampled.
    pub shift: u32,
    /// Items of the filter when the sample was taken.
    pub items: u64,
    /// Keys estimated to have been lost to false positives until then.
    pub lost: f64,
    /// The sampled keys (all that were ever asked), in no order.
    pub keys: Vec<Fingerprint>,
    /// Those of them that the filter called seen when they were new.
    pub wrong: Vec<Fingerprint>,
}

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The file begins with something else.
    #[error("not a filter snapshot")]
    NotASnapshot,
    /// Written by another version: refused, never overwritten.
    #[error("a filter snapshot of format version {0}, this program knows version {VERSION}")]
    UnknownVersion(u32),
    /// A layout or hash that this version does not know.
    #[error("a filter snapshot with an unknown {0}")]
    UnknownLayout(&'static str),
    /// The key does not fit its check value, or is not the job's.
    #[error("a filter snapshot of another key")]
    WrongKey,
    /// A checksum does not fit, and not only that of a chunk.
    #[error("the {0} of the filter snapshot is damaged")]
    Damaged(&'static str),
    /// The file ends before its end.
    #[error("the filter snapshot is cut short")]
    Truncated,
    /// A chunk that does not belong where it is handed in.
    #[error("chunk {index} of the filter snapshot {what}")]
    Chunk {
        /// Its number.
        index: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The header describes a filter that cannot be, or the sample is too large.
    #[error("the filter snapshot describes {0}")]
    Shape(String),
    /// Reading failed, or there was no memory.
    #[error("cannot read the filter snapshot: {0}")]
    Io(#[from] io::Error),
}

/// Writes a snapshot: it makes the pieces, the caller puts them into a file one after the other.
pub struct Writer {
    lengths: Box<dyn Iterator<Item = usize> + Send>,
    next: usize,
    header_crc: u32,
}

impl Writer {
    /// Begins with the shape as it is now and the log position P (count of admitted keys), and gives the header.
    ///
    /// # Errors
    /// If the shape is none that could be read again.
    pub fn begin(shape: &Shape, log_start: u64, identity: u32) -> Result<(Self, Vec<u8>), SnapshotError> {
        shape.check().map_err(|error| SnapshotError::Shape(error.to_string()))?;
        let header = Header {
            shape: shape.clone(),
            log_start,
            identity,
        }
        .encode();
        let lengths = Box::new(shape.chunk_lengths());
        Ok((
            Self {
                lengths,
                next: 0,
                header_crc: header::checksum(&header),
            },
            header,
        ))
    }

    /// Takes the next chunk as [`SeenSet::copy_chunk`] gave it and makes of it the piece to write: cut to what was there at the
    /// beginning, with its checksum behind it.
    ///
    /// # Errors
    /// If the chunk is too short or there should be no further one.
    pub fn chunk(&mut self, bytes: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let index = self.next;
        let Some(length) = self.lengths.next() else {
            return Err(SnapshotError::Chunk {
                index,
                what: "is beyond the last one",
            });
        };
        if bytes.len() < length {
            return Err(SnapshotError::Chunk {
                index,
                what: "is too short",
            });
        }
        bytes.truncate(length);
        bytes.extend(crc32c::crc32c(bytes).to_le_bytes());
        self.next += 1;
        Ok(())
    }

    /// Ends with the log position E after the last chunk was copied and the sample as it is then, and gives the last piece.
    ///
    /// # Errors
    /// If a chunk is missing or the sample is too large.
    pub fn finish(mut self, log_end: u64, sample: &Sample) -> Result<Vec<u8>, SnapshotError> {
        if self.lengths.next().is_some() {
            return Err(SnapshotError::Chunk {
                index: self.next,
                what: "is missing",
            });
        }
        let count = |keys: &[Fingerprint]| {
            let within = u32::try_from(keys.len()).ok().filter(|_| keys.len() <= MAX_SAMPLE_KEYS);
            within.ok_or_else(|| SnapshotError::Shape(format!("a sample of {} keys", keys.len())))
        };
        let mut out = Vec::with_capacity(TAIL_BYTES + (sample.keys.len() + sample.wrong.len()) * Fingerprint::BYTES);
        out.extend(TAIL_MAGIC);
        out.extend(log_end.to_le_bytes());
        out.extend(sample.items.to_le_bytes());
        out.extend(sample.lost.to_le_bytes());
        out.extend(sample.shift.to_le_bytes());
        out.extend(count(&sample.keys)?.to_le_bytes());
        out.extend(count(&sample.wrong)?.to_le_bytes());
        let keys: Vec<u8> = sample
            .keys
            .iter()
            .chain(&sample.wrong)
            .flat_map(|key| key.to_bytes())
            .collect();
        out.extend(crc32c::crc32c(&keys).to_le_bytes());
        out.extend(self.header_crc.to_le_bytes());
        seal(&mut out, TAIL_BYTES);
        out.extend(keys);
        Ok(out)
    }
}

/// What a snapshot says besides its chunks.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// Log position P: keys admitted before the first chunk was copied.
    pub log_start: u64,
    /// Log position E: keys admitted before the last chunk was copied. The log must reach it.
    pub log_end: u64,
    /// Version of the rules of identity that the keys were made by.
    pub identity: u32,
    /// The sample at E.
    pub sample: Sample,
    /// Chunks whose checksum does not fit. They were left out: what they held comes back with the whole log.
    pub damaged: Vec<usize>,
}

impl Restored {
    /// The log position from which keys must be set again: P, or 0 if a chunk is damaged.
    #[must_use]
    pub fn replay_from(&self) -> u64 {
        if self.damaged.is_empty() { self.log_start } else { 0 }
    }
}

/// Reads a snapshot, a chunk at a time.
pub struct Reader<R> {
    input: R,
    header: Header,
    header_crc: u32,
}

impl<R: Read> Reader<R> {
    /// Reads and checks the header; with `key`, also that it is that job's.
    ///
    /// # Errors
    /// Each cause has its own.
    pub fn open(mut input: R, key: Option<&HashKey>) -> Result<Self, SnapshotError> {
        let mut bytes = [0; HEADER_BYTES];
        fill(&mut input, &mut bytes)?;
        let header = Header::decode(&bytes)?;
        if key.is_some_and(|key| *key != header.shape.key) {
            return Err(SnapshotError::WrongKey);
        }
        Ok(Self {
            input,
            header,
            header_crc: header::checksum(&bytes),
        })
    }

    /// The shape to make a set of.
    pub fn shape(&self) -> &Shape {
        &self.header.shape
    }

    /// Reads the rest, and hands each sound chunk to `on_chunk`.
    ///
    /// # Errors
    /// If the file is cut short or its tail or sample is damaged, or `on_chunk` fails. A damaged chunk is none.
    pub fn read(mut self, mut on_chunk: impl FnMut(usize, &[u8]) -> io::Result<()>) -> Result<Restored, SnapshotError> {
        let mut damaged = Vec::new();
        let mut chunk = Vec::new();
        for (index, length) in self.header.shape.chunk_lengths().enumerate() {
            chunk.resize(length, 0);
            let mut crc = [0; CRC_BYTES];
            fill(&mut self.input, &mut chunk)?;
            fill(&mut self.input, &mut crc)?;
            if crc32c::crc32c(&chunk) == u32::from_le_bytes(crc) {
                on_chunk(index, &chunk)?;
            } else {
                damaged.push(index);
            }
        }
        let (log_end, sample) = self.read_tail()?;
        Ok(Restored {
            log_start: self.header.log_start,
            log_end,
            identity: self.header.identity,
            sample,
            damaged,
        })
    }

    fn read_tail(&mut self) -> Result<(u64, Sample), SnapshotError> {
        let mut tail = [0; TAIL_BYTES];
        fill(&mut self.input, &mut tail)?;
        let mut fields = Fields(sealed(&tail).ok_or(SnapshotError::Damaged("tail"))?);
        if fields.bytes() != *TAIL_MAGIC {
            return Err(SnapshotError::Damaged("tail"));
        }
        let log_end = fields.u64();
        let (items, lost, shift) = (fields.u64(), f64::from_bits(fields.u64()), fields.u32());
        let counts = [fields.u32() as usize, fields.u32() as usize];
        let (crc, header_crc) = (fields.u32(), fields.u32());
        if header_crc != self.header_crc || counts.iter().any(|count| *count > MAX_SAMPLE_KEYS) {
            return Err(SnapshotError::Damaged("tail"));
        }
        let [keys, wrong] = counts;
        let mut bytes = vec![0; (keys + wrong) * Fingerprint::BYTES];
        fill(&mut self.input, &mut bytes)?;
        if crc32c::crc32c(&bytes) != crc {
            return Err(SnapshotError::Damaged("sample"));
        }
        if self.input.read(&mut [0])? != 0 {
            return Err(SnapshotError::Damaged("end"));
        }
        let mut all = bytes.as_chunks().0.iter().copied().map(Fingerprint::from_bytes);
        let keys = all.by_ref().take(keys).collect();
        Ok((
            log_end,
            Sample {
                shift,
                items,
                lost,
                keys,
                wrong: all.collect(),
            },
        ))
    }
}

/// Makes the set that a snapshot holds, with its sample, ready for the replay of the log from [`Restored::replay_from`] on.
///
/// # Errors
/// As [`Reader::open`] and [`Reader::read`].
pub fn restore(input: impl Read, key: Option<&HashKey>) -> Result<(Box<dyn SeenSet>, Restored), SnapshotError> {
    let reader = Reader::open(input, key)?;
    let shape = reader.shape().clone();
    let mut set = super::from_shape(&shape)?;
    let restored = reader.read(|index, bytes| set.load_chunk(index, bytes))?;
    let sound = restored.damaged.is_empty();
    if !sound && shape.kind.moves() {
        // what is left of such a structure means nothing without the rest
        set = super::from_shape(&shape)?;
    }
    set.restore_sample(restored.sample.clone());
    set.set_items(if sound { shape.items } else { 0 });
    Ok((set, restored))
}

fn fill(input: &mut impl Read, buffer: &mut [u8]) -> Result<(), SnapshotError> {
    input.read_exact(buffer).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => SnapshotError::Truncated,
        _ => SnapshotError::Io(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seen::header::MAGIC;
    use crate::seen::testing::keys;
    use proptest::prelude::*;

    const KEY: HashKey = HashKey([5; 16]);
    const IDENTITY: u32 = 7;

    /// An owner with its log: inserts, grows, and notes what it admitted.
    struct Owner {
        set: Box<dyn SeenSet>,
        log: Vec<Fingerprint>,
        next: u64,
    }

    impl Owner {
        fn new(kind: Kind, capacity: u64, fp: f64) -> Self {
            Self {
                set: super::super::make(kind, KEY, capacity, fp).unwrap(),
                log: Vec::new(),
                next: 0,
            }
        }

        fn admit(&mut self, count: u64) {
            let mut new = Vec::new();
            for batch in keys(self.next..self.next + count).chunks(64) {
                if self.set.is_full() {
                    self.set.add_layer().unwrap();
                }
                self.set.insert_batch(batch, &mut new);
                self.log
                    .extend(batch.iter().zip(&new).filter(|(_, new)| **new).map(|(key, _)| *key));
            }
            self.next += count;
        }

        /// A snapshot during which `meanwhile` keys come in before each chunk and before the end.
        fn snapshot(&mut self, meanwhile: u64) -> Vec<u8> {
            let (mut writer, mut file) = Writer::begin(&self.set.shape(), self.log.len() as u64, IDENTITY).unwrap();
            let mut chunk = Vec::new();
            for index in 0..self.set.chunks() {
                self.admit(meanwhile);
                self.set.copy_chunk(index, &mut chunk);
                writer.chunk(&mut chunk).unwrap();
                file.extend_from_slice(&chunk);
            }
            self.admit(meanwhile);
            file.extend(writer.finish(self.log.len() as u64, &self.set.sample()).unwrap());
            file
        }

        /// What a restart makes of the file and the log.
        fn restart(&self, file: &[u8]) -> (Box<dyn SeenSet>, Restored) {
            let (mut set, restored) = restore(file, Some(&KEY)).unwrap();
            for keys in self.log[usize::try_from(restored.replay_from()).unwrap()..].chunks(64) {
                if set.is_full() {
                    set.add_layer().unwrap();
                }
                set.replay(keys);
            }
            (set, restored)
        }
    }

    fn contents(set: &dyn SeenSet) -> Vec<Vec<u8>> {
        let copy = |index| {
            let mut chunk = Vec::new();
            set.copy_chunk(index, &mut chunk);
            chunk
        };
        (0..set.chunks()).map(copy).collect()
    }

    fn same_account(a: &dyn SeenSet, b: &dyn SeenSet) {
        let (a, b) = (a.account(), b.account());
        assert_eq!((a.items, a.fill, a.fp_predicted), (b.items, b.fill, b.fp_predicted));
        assert_eq!((a.fp_observed, a.fp_observed_of), (b.fp_observed, b.fp_observed_of));
        assert!(
            (a.lost_estimate - b.lost_estimate).abs() <= 0.01 * a.lost_estimate,
            "{a:?} {b:?}"
        );
    }

    #[test]
    fn a_fuzzy_copy_and_the_log_give_the_very_filter_back() {
        // 3 MiB: three chunks
        let mut owner = Owner::new(Kind::Bloom, 2_000_000, 0.01);
        owner.admit(300_000);
        let file = owner.snapshot(50_000);
        owner.admit(100_000);
        let (set, restored) = owner.restart(&file);
        assert_eq!(
            (restored.log_start, restored.identity),
            (300_000.min(restored.log_start), IDENTITY)
        );
        assert!(restored.log_start < restored.log_end && restored.log_end < owner.log.len() as u64);
        assert!(contents(set.as_ref()) == contents(owner.set.as_ref()));
        same_account(set.as_ref(), owner.set.as_ref());
    }

    #[test]
    fn growth_between_snapshot_and_crash_is_made_up_for() {
        let mut owner = Owner::new(Kind::Bloom, 20_000, 0.01);
        owner.admit(15_000);
        let file = owner.snapshot(4_000);
        owner.admit(60_000);
        let (set, _) = owner.restart(&file);
        assert!(owner.log.iter().all(|key| set.contains(*key)));
        let (now, then) = (set.account(), owner.set.account());
        assert_eq!(
            (now.items, now.layers, now.capacity),
            (then.items, then.layers, then.capacity)
        );
        assert!((now.fp_predicted / then.fp_predicted - 1.0).abs() < 0.05);
    }

    #[test]
    fn an_exact_set_comes_back_too() {
        let mut owner = Owner::new(Kind::HashSet, 1, 0.01);
        owner.admit(100_000);
        let file = owner.snapshot(1_000);
        owner.admit(1_000);
        let (set, restored) = owner.restart(&file);
        assert_eq!((restored.log_start, restored.log_end), (100_000, 103_000));
        assert!(owner.log.iter().all(|key| set.contains(*key)));
        assert_eq!(set.account().items, owner.log.len() as u64);
    }

    #[test]
    fn a_damaged_chunk_is_named_and_comes_back_with_the_whole_log() {
        let mut owner = Owner::new(Kind::Bloom, 2_000_000, 0.01);
        owner.admit(100_000);
        let mut file = owner.snapshot(1_000);
        file[HEADER_BYTES + CHUNK_BYTES + CRC_BYTES + 12_345] ^= 1;
        let (set, restored) = owner.restart(&file);
        assert_eq!(
            (restored.damaged.as_slice(), restored.replay_from()),
            ([1].as_slice(), 0)
        );
        assert!(contents(set.as_ref()) == contents(owner.set.as_ref()));
        same_account(set.as_ref(), owner.set.as_ref());
    }

    fn small() -> Vec<u8> {
        let mut owner = Owner::new(Kind::Bloom, 1_000, 0.01);
        owner.admit(500);
        owner.snapshot(1)
    }

    fn error_of(file: &[u8]) -> SnapshotError {
        restore(file, Some(&KEY)).err().unwrap()
    }

    /// The file with a number of its header changed, and the checksum made right again.
    fn header_with(at: usize, bytes: &[u8]) -> Vec<u8> {
        let mut file = small();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        let crc = crc32c::crc32c(&file[..HEADER_BYTES - CRC_BYTES]);
        file[HEADER_BYTES - CRC_BYTES..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        file
    }

    #[test]
    fn what_is_not_ours_is_refused_each_with_its_reason() {
        let file = small();
        assert!(matches!(error_of(b"{}"), SnapshotError::Truncated));
        assert!(matches!(error_of(&[0; 5000]), SnapshotError::NotASnapshot));
        assert!(matches!(
            error_of(&header_with(8, &[2])),
            SnapshotError::UnknownVersion(2)
        ));
        assert!(matches!(
            error_of(&header_with(12, &[99])),
            SnapshotError::UnknownLayout("layout")
        ));
        assert!(matches!(
            error_of(&header_with(16, &[9])),
            SnapshotError::UnknownLayout("hash")
        ));
        assert!(matches!(
            error_of(&header_with(72, &[9])),
            SnapshotError::UnknownLayout("chunk size")
        ));
        assert!(matches!(error_of(&header_with(24, &[9])), SnapshotError::WrongKey));
        assert!(matches!(
            restore(file.as_slice(), Some(&HashKey([6; 16]))),
            Err(SnapshotError::WrongKey)
        ));
        assert!(restore(file.as_slice(), None).is_ok());
        assert!(matches!(
            error_of(&header_with(48, &2_f64.to_le_bytes())),
            SnapshotError::Shape(_)
        ));
        assert!(matches!(error_of(&header_with(76, &[17])), SnapshotError::Shape(_)));
        assert!(matches!(
            error_of(&header_with(76, &u32::MAX.to_le_bytes())),
            SnapshotError::Shape(_)
        ));
        assert!(matches!(
            error_of(&header_with(88, &u64::MAX.to_le_bytes())),
            SnapshotError::Shape(_)
        ));
        // a header that belongs to another tail
        assert!(matches!(
            error_of(&header_with(64, &[1])),
            SnapshotError::Damaged("tail")
        ));
    }

    #[test]
    fn a_file_that_is_cut_anywhere_or_goes_on_is_refused() {
        let mut file = small();
        for length in (0..file.len()).step_by(97).chain([file.len() - 1]) {
            assert!(
                matches!(error_of(&file[..length]), SnapshotError::Truncated),
                "{length}"
            );
        }
        file.push(0);
        assert!(matches!(error_of(&file), SnapshotError::Damaged("end")));
    }

    #[test]
    fn a_snapshot_out_of_order_is_refused_when_it_is_written() {
        let set = super::super::make(Kind::Bloom, KEY, 1_000, 0.01).unwrap();
        let begin = || Writer::begin(&set.shape(), 0, IDENTITY).unwrap().0;
        assert!(matches!(
            begin().finish(0, &Sample::default()),
            Err(SnapshotError::Chunk {
                index: 0,
                what: "is missing"
            })
        ));
        assert!(matches!(
            begin().chunk(&mut vec![0; 10]),
            Err(SnapshotError::Chunk {
                index: 0,
                what: "is too short"
            })
        ));
        let mut writer = begin();
        let mut chunk = Vec::new();
        set.copy_chunk(0, &mut chunk);
        writer.chunk(&mut chunk).unwrap();
        assert!(matches!(
            writer.chunk(&mut chunk),
            Err(SnapshotError::Chunk {
                index: 1,
                what: "is beyond the last one"
            })
        ));
        let large = Sample {
            keys: vec![Fingerprint::default(); MAX_SAMPLE_KEYS + 1],
            ..Sample::default()
        };
        assert!(matches!(writer.finish(0, &large), Err(SnapshotError::Shape(_))));
    }

    proptest! {
        #[test]
        fn no_flipped_bit_goes_unnoticed(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
            let mut file = small();
            let at = at.index(file.len());
            file[at] ^= 1 << bit;
            if let Ok((_, restored)) = restore(file.as_slice(), Some(&KEY)) {
                prop_assert_eq!(restored.damaged, [0]);
            }
        }

        #[test]
        fn any_bytes_give_an_answer(mut bytes in proptest::collection::vec(any::<u8>(), 0..6000), version: bool) {
            if version && bytes.len() > 12 {
                bytes[..8].copy_from_slice(MAGIC);
                bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
            }
            prop_assert!(restore(bytes.as_slice(), None).is_err());
        }

        #[test]
        fn a_copy_taken_at_any_time_is_made_whole_by_the_log(
            before in 0_u64..2_000,
            meanwhile in 0_u64..300,
            after in 0_u64..300,
            tight: bool,
        ) {
            let mut owner = Owner::new(Kind::Bloom, 5_000, if tight { 1e-5 } else { 0.05 });
            owner.admit(before);
            let file = owner.snapshot(meanwhile);
            owner.admit(after);
            let (set, restored) = owner.restart(&file);
            prop_assert!(restored.log_end <= owner.log.len() as u64);
            prop_assert!(contents(set.as_ref()) == contents(owner.set.as_ref()));
            prop_assert_eq!(set.account().items, owner.log.len() as u64);
        }
    }
}
