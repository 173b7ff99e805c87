//! Filter checkpoints: a copy of the live filter, published by rename, which shortens the replay at the next start.
//!
//! The owner notes the log position P, copies the filter chunk by chunk while insertion goes on, and notes E. The
//! ledger writes the chunks; it makes its facts durable through E before it publishes the file. Bits only go from 0 to
//! 1, so the copy is exact after a replay of the admission log from P. Everything here can be lost: the log alone is
//! enough to make the filter again.

use std::collections::HashMap;
use std::io::{self, Read};
use std::sync::Arc;

use crate::disk::{Append, Disk};
use crate::hash::{Fingerprint, HashKey};
use crate::ledger::{ADMITTED, Admissions};
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

/// Makes the filter of a job again: the newest sound checkpoint, then the records of the log behind it. `kind` is the kind that
/// is wanted: a checkpoint of another one does not serve. Without it the newest checkpoint decides, or the default.
///
/// # Errors
/// If the log cannot be read, or a checkpoint is of a version that this program does not know.
pub fn restore(
    disk: &dyn Disk,
    key: HashKey,
    identity: u32,
    kind: Option<Kind>,
    size: (u64, f64),
    admissions: &Admissions,
) -> io::Result<Restored> {
    let mut notes = Vec::new();
    let mut serials: Vec<u64> = disk.list(FOLDER)?.iter().filter_map(|name| serial_of(name)).collect();
    serials.sort_unstable();
    let mut found = None;
    for serial in serials.into_iter().rev() {
        let path = format!("{FOLDER}/{}", name(serial));
        let Some(file) = disk.read(&path)? else { continue };
        match snapshot::restore(io::BufReader::new(file), Some(&key)) {
            Ok((_, restored)) if restored.log_end > admissions.records || restored.identity != identity => {
                notes.push(format!(
                    "{path}: does not belong to the admission log; made again from the log"
                ));
            }
            Ok((seen, restored)) => {
                let (from, there) = (restored.replay_from(), seen.account().kind);
                if !restored.damaged.is_empty() {
                    let count = restored.damaged.len();
                    notes.push(format!(
                        "{path}: {count} damaged chunks; their keys are read from the log again"
                    ));
                }
                if let Some(kind) = kind.filter(|kind| *kind != there) {
                    let (kind, there) = (kind.name(), there.name());
                    notes.push(format!(
                        "{path}: is of kind {there}; a seen-set of kind {kind} is made from the log"
                    ));
                } else if admissions.takes_out_from(from) && !(there.forgets() && restored.damaged.is_empty()) {
                    notes.push(format!("{path}: URLs were forgotten since; made again from the log"));
                } else {
                    found = Some((seen, from));
                }
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
    let fresh = found.is_none();
    let (mut seen, from) = match found {
        Some(found) => found,
        None => (
            seen::make(kind.unwrap_or_default(), key, size.0.max(admissions.records), size.1)?,
            0,
        ),
    };
    replay(disk, seen.as_mut(), from, fresh, admissions)?;
    Ok(Restored { seen, notes })
}

/// Sets the keys of the admission log from a record on, and takes out those that were forgotten. A set that is empty is
/// not given what is taken out later: it need not be able to forget.
///
/// # Errors
/// If the log cannot be read or is shorter.
pub fn replay(
    disk: &dyn Disk,
    seen: &mut dyn SeenSet,
    from: u64,
    fresh: bool,
    admissions: &Admissions,
) -> io::Result<()> {
    let mut gone: HashMap<Fingerprint, u64> = HashMap::new();
    if fresh && admissions.takes_out_from(from) {
        records(disk, from, admissions.records, |record, key| {
            if admissions.takes_out(record) {
                gone.insert(key, record);
            }
            Ok(())
        })?;
    }
    let mut keys = Vec::with_capacity(KEYS_AT_ONCE);
    records(disk, from, admissions.records, |record, key| {
        let out = admissions.takes_out(record);
        if out && !fresh {
            set(seen, &mut keys)?;
            seen.remove(key);
        } else if !out && gone.get(&key).is_none_or(|last| *last < record) {
            keys.push(key);
            if keys.len() == KEYS_AT_ONCE {
                set(seen, &mut keys)?;
            }
        }
        Ok(())
    })?;
    set(seen, &mut keys)
}

fn set(seen: &mut dyn SeenSet, keys: &mut Vec<Fingerprint>) -> io::Result<()> {
    if seen.is_full() && !keys.is_empty() {
        seen.add_layer()?;
    }
    seen.replay(keys);
    keys.clear();
    Ok(())
}

/// Reads the records `from..to` of the admission log, in order.
///
/// # Errors
/// If the log cannot be read or is shorter, or `each` fails.
pub fn records(
    disk: &dyn Disk,
    from: u64,
    to: u64,
    mut each: impl FnMut(u64, Fingerprint) -> io::Result<()>,
) -> io::Result<()> {
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
    let mut bytes = [0; Fingerprint::BYTES];
    for record in from..to {
        file.read_exact(&mut bytes)?;
        each(record, Fingerprint::from_bytes(bytes))?;
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
        seen.freeze();
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let mut writing = Writing::begin(disk, &seen.shape(), start, 1).unwrap();
        for index in 0..seen.chunks() {
            let mut bytes = Vec::new();
            seen.copy_chunk(index, &mut bytes);
            writing.chunk(&mut bytes).unwrap();
            during(seen);
        }
        seen.thaw();
        writing.publish(seen.account().items, &seen.sample()).unwrap();
    }

    fn restored(disk: &Memory, records: u64) -> Restored {
        let admissions = Admissions {
            records,
            forgotten: Vec::new(),
        };
        restore(disk, KEY, 1, Some(Kind::Bloom), (2_000_000, 0.001), &admissions).unwrap()
    }

    #[test]
    fn what_was_forgotten_stays_forgotten_whatever_the_kind_and_the_checkpoint() {
        for kind in Kind::ALL {
            for checkpointed in [None, Some(600), Some(900), Some(1_000)] {
                let disk = Memory::default();
                let all = keys(0, 2_000);
                let mut seen = seen::make(kind, KEY, 5_000, 1e-6).unwrap();
                let mut make = |to: usize| {
                    seen.replay(&all[..to]);
                    checkpoint(&disk, seen.as_mut(), |_| {});
                };
                if let Some(at) = checkpointed {
                    make(at);
                }
                // 1,000 admitted, 100 of them taken out, one of those admitted again, and some more
                log(&disk, &all[..1_000]);
                log(&disk, &all[300..400]);
                log(&disk, &all[350..351]);
                log(&disk, &all[1_000..1_500]);
                let admissions = Admissions {
                    records: 1_601,
                    forgotten: vec![(1_000, 100)],
                };
                for wanted in [Some(kind), Some(Kind::Tags), Some(Kind::Bloom)] {
                    let back = restore(&disk, KEY, 1, wanted, (5_000, 1e-6), &admissions).unwrap();
                    let seen = back.seen;
                    assert_eq!(seen.account().kind, wanted.unwrap());
                    assert!(all[..300].iter().chain(&all[400..1_500]).all(|key| seen.contains(*key)));
                    assert!(seen.contains(all[350]), "{kind:?}: admitted again");
                    let gone = all[300..350].iter().chain(&all[351..400]);
                    let still = gone.filter(|key| seen.contains(**key)).count();
                    // the filter of an exact set keeps its bits, and the table says no
                    let kept = wanted == Some(Kind::Exact) && checkpointed.is_some();
                    assert_eq!(still, if kept { 99 } else { 0 }, "{kind:?} {checkpointed:?} {wanted:?}");
                    assert_eq!(seen.account().items, 1_401, "{kind:?} {checkpointed:?} {wanted:?}");
                }
            }
        }
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
