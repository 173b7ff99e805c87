//! Filter checkpoints: a copy of the live filter, published by rename, which shortens the replay at the next start.
//!
//! The owner notes the log position P, copies the filter chunk by chunk while insertion goes on, and notes E. The
//! ledger writes the chunks; it makes its facts durable through E before it publishes the file. Bits only go from 0 to
//! 1, so the copy is exact after a replay of the admission log from P. Everything here can be lost: the log alone is
//! enough to make the filter again.

use std::io::{self, Read};
use std::sync::Arc;

use crate::disk::{Append, Disk};
use crate::hash::{Fingerprint, HashKey};
use crate::ledger::ADMITTED;
use crate::seen::snapshot::{self, Sample, Shape, SnapshotError};
use crate::seen::{self, Kind, SeenSet};

/// Checkpoints kept: the newest and the one before it.
pub const KEPT: usize = 2;
/// Keys read of the admission log at once.
const KEYS_AT_ONCE: usize = 64 * 1024;

const FOLDER: &str = "state";
const TEMPORARY: &str = "state/filter.tmp";

fn name(serial: u64) -> String {
    format!("filter-{serial:08}.snap")
}

fn serial_of(name: &str) -> Option<u64> {
    name.strip_prefix("filter-")?.strip_suffix(".snap")?.parse().ok()
}

/// A checkpoint being written.
pub struct Writing {
    disk: Arc<dyn Disk>,
    file: Box<dyn Append>,
    writer: snapshot::Writer,
}

fn invalid(error: SnapshotError) -> io::Error {
    match error {
        SnapshotError::Io(error) => error,
        error => io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    }
}

impl Writing {
    /// Begins a file beside the published ones.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn begin(disk: Arc<dyn Disk>, shape: &Shape, log_start: u64, identity: u32) -> io::Result<Self> {
        disk.remove(TEMPORARY)?;
        let mut file = disk.append(TEMPORARY)?;
        let (writer, header) = snapshot::Writer::begin(shape, log_start, identity).map_err(invalid)?;
        file.append(&header)?;
        Ok(Self { disk, file, writer })
    }

    /// Adds a chunk as it was copied.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn chunk(&mut self, bytes: &mut Vec<u8>) -> io::Result<()> {
        self.writer.chunk(bytes).map_err(invalid)?;
        self.file.append(bytes)
    }

    /// Ends and publishes the file. The facts must be durable through `log_end` when this is called.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn publish(mut self, log_end: u64, sample: &Sample) -> io::Result<()> {
        let tail = self.writer.finish(log_end, sample).map_err(invalid)?;
        self.file.append(&tail)?;
        self.file.sync()?;
        drop(self.file);
        let mut serials: Vec<u64> = self
            .disk
            .list(FOLDER)?
            .iter()
            .filter_map(|name| serial_of(name))
            .collect();
        serials.sort_unstable();
        let next = serials.last().map_or(1, |last| last + 1);
        self.disk.rename(TEMPORARY, &format!("{FOLDER}/{}", name(next)))?;
        serials.push(next);
        let old = serials.len().saturating_sub(KEPT);
        for serial in serials.into_iter().take(old) {
            self.disk.remove(&format!("{FOLDER}/{}", name(serial)))?;
        }
        Ok(())
    }
}

/// What a restart found.
pub struct Restored {
    /// The filter, exact up to the end of the log.
    pub seen: Box<dyn SeenSet>,
    /// What a person should know (a damaged checkpoint, a long replay).
    pub notes: Vec<String>,
}

/// Makes the filter of a job again: the newest sound checkpoint, then the keys of the log from there to `admitted`.
///
/// # Errors
/// If the log cannot be read, or a checkpoint is of a version that this program does not know.
pub fn restore(
    disk: &dyn Disk,
    key: HashKey,
    identity: u32,
    kind: Kind,
    size: (u64, f64),
    admitted: u64,
) -> io::Result<Restored> {
    let mut notes = Vec::new();
    let mut serials: Vec<u64> = disk.list(FOLDER)?.iter().filter_map(|name| serial_of(name)).collect();
    serials.sort_unstable();
    let mut found = None;
    for serial in serials.into_iter().rev() {
        let path = format!("{FOLDER}/{}", name(serial));
        let Some(file) = disk.read(&path)? else { continue };
        match snapshot::restore(io::BufReader::new(file), Some(&key)) {
            Ok((_, restored)) if restored.log_end > admitted || restored.identity != identity => {
                notes.push(format!(
                    "{path}: does not belong to the admission log; made again from the log"
                ));
            }
            Ok((seen, restored)) => {
                if !restored.damaged.is_empty() {
                    let count = restored.damaged.len();
                    notes.push(format!(
                        "{path}: {count} damaged chunks; their keys are read from the log again"
                    ));
                }
                found = Some((seen, restored.replay_from()));
                break;
            }
            Err(error @ SnapshotError::UnknownVersion(_)) => {
                let text = format!("{path}: {error}");
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
            Err(error) => notes.push(format!(
                "{path}: {error}; an older checkpoint or the log serves instead"
            )),
        }
    }
    let (mut seen, from) = match found {
        Some(found) => found,
        None => (seen::make(kind, key, size.0.max(admitted), size.1)?, 0),
    };
    replay(disk, seen.as_mut(), from, admitted)?;
    Ok(Restored { seen, notes })
}

/// Sets the keys `from..to` of the admission log.
///
/// # Errors
/// If the log cannot be read or is shorter.
pub fn replay(disk: &dyn Disk, seen: &mut dyn SeenSet, from: u64, to: u64) -> io::Result<()> {
    if from >= to {
        return Ok(());
    }
    let file = disk
        .read(ADMITTED)?
        .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
    let mut file = io::BufReader::with_capacity(1 << 20, file);
    io::copy(
        &mut file.by_ref().take(from * Fingerprint::BYTES as u64),
        &mut io::sink(),
    )?;
    let mut left = to - from;
    let mut keys = Vec::with_capacity(KEYS_AT_ONCE);
    let mut bytes = [0; Fingerprint::BYTES];
    while left > 0 {
        keys.clear();
        while left > 0 && keys.len() < KEYS_AT_ONCE {
            file.read_exact(&mut bytes)?;
            keys.push(Fingerprint::from_bytes(bytes));
            left -= 1;
        }
        if seen.is_full() {
            seen.add_layer()?;
        }
        seen.replay(&keys);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Memory;

    const KEY: HashKey = HashKey([3; 16]);

    fn keys(from: u64, to: u64) -> Vec<Fingerprint> {
        (from..to).map(|n| KEY.fingerprint(&n.to_le_bytes())).collect()
    }

    fn log(disk: &Memory, keys: &[Fingerprint]) {
        let mut file = disk.append(ADMITTED).unwrap();
        for key in keys {
            file.append(&key.to_bytes()).unwrap();
        }
    }

    fn checkpoint(disk: &Memory, seen: &mut dyn SeenSet, mut during: impl FnMut(&mut dyn SeenSet)) {
        let start = seen.account().items;
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let mut writing = Writing::begin(disk, &seen.shape(), start, 1).unwrap();
        for index in 0..seen.chunks() {
            let mut bytes = Vec::new();
            seen.copy_chunk(index, &mut bytes);
            writing.chunk(&mut bytes).unwrap();
            during(seen);
        }
        writing.publish(seen.account().items, &seen.sample()).unwrap();
    }

    fn restored(disk: &Memory, admitted: u64) -> Restored {
        restore(disk, KEY, 1, Kind::Bloom, (2_000_000, 0.001), admitted).unwrap()
    }

    #[test]
    fn a_checkpoint_taken_while_keys_come_in_is_exact_after_replay() {
        let disk = Memory::default();
        let mut seen = seen::make(Kind::Bloom, KEY, 2_000_000, 0.001).unwrap();
        let mut new = Vec::new();
        let mut logged = keys(0, 1_000);
        seen.insert_batch(&logged, &mut new);
        checkpoint(&disk, seen.as_mut(), |seen| {
            let from = logged.len() as u64;
            let more = keys(from, from + 500);
            seen.insert_batch(&more, &mut new);
            logged.extend(more);
        });
        let more = keys(1_000_000, 1_000_300);
        seen.insert_batch(&more, &mut new);
        logged.extend(more);
        log(&disk, &logged);
        let back = restored(&disk, logged.len() as u64);
        assert!(back.notes.is_empty(), "{:?}", back.notes);
        assert!(logged.iter().all(|key| back.seen.contains(*key)));
        assert_eq!(back.seen.account().items, logged.len() as u64);
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for index in 0..seen.chunks() {
            seen.copy_chunk(index, &mut a);
            back.seen.copy_chunk(index, &mut b);
            assert!(a == b, "chunk {index}");
        }
    }

    #[test]
    fn damage_falls_back_to_an_older_checkpoint_and_then_to_the_log() {
        let disk = Memory::default();
        let mut seen = seen::make(Kind::Bloom, KEY, 2_000_000, 0.001).unwrap();
        let logged = keys(0, 5_000);
        log(&disk, &logged);
        let mut new = Vec::new();
        for half in logged.chunks(2_500) {
            seen.insert_batch(half, &mut new);
            checkpoint(&disk, seen.as_mut(), |_| {});
        }
        for (serial, at) in [(2, 20_000), (2, 30), (1, 20_000), (1, 30)] {
            let path = format!("state/{}", name(serial));
            let mut bytes = disk.bytes(&path).unwrap();
            bytes[at] ^= 1;
            disk.remove(&path).unwrap();
            disk.append(&path).unwrap().append(&bytes).unwrap();
            let back = restored(&disk, 5_000);
            assert!(!back.notes.is_empty());
            assert!(logged.iter().all(|key| back.seen.contains(*key)));
            assert_eq!(back.seen.account().items, 5_000);
        }
    }

    #[test]
    fn a_checkpoint_ahead_of_the_log_is_not_believed() {
        let disk = Memory::default();
        let mut seen = seen::make(Kind::Bloom, KEY, 2_000_000, 0.001).unwrap();
        let logged = keys(0, 100);
        let mut new = Vec::new();
        seen.insert_batch(&logged, &mut new);
        checkpoint(&disk, seen.as_mut(), |_| {});
        log(&disk, &logged[..50]);
        let back = restored(&disk, 50);
        assert!(!back.seen.contains(logged[99]), "its page would be lost");
        assert!(back.seen.contains(logged[49]));
    }

    #[test]
    fn so_many_are_kept() {
        let disk = Memory::default();
        let mut seen = seen::make(Kind::Bloom, KEY, 1_000, 0.01).unwrap();
        for _ in 0..5 {
            checkpoint(&disk, seen.as_mut(), |_| {});
        }
        assert_eq!(disk.list("state").unwrap(), [name(4), name(5)]);
    }
}
