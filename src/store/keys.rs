//! A table of fingerprints on disk, for lists that no memory holds: asked in sorted batches, grown by sorted runs.

use std::io;
use std::path::Path;

use super::other;
use crate::hash::Fingerprint;

/// Bytes of the block cache.
const CACHE_BYTES: u64 = 32 << 20;

/// The table. What [`KeyTable::add`] took in survives a power cut when it returns; it takes in all of a run or nothing.
pub struct KeyTable {
    _database: fjall::Database,
    keys: fjall::Keyspace,
}

impl KeyTable {
    /// Opens the table in a folder, made if it is not there. `None` if another process has it open.
    ///
    /// # Errors
    /// If the folder cannot be used or holds a damaged table.
    pub fn open(folder: &Path) -> io::Result<Option<Self>> {
        let opened = fjall::Database::builder(folder)
            .cache_size(CACHE_BYTES)
            .worker_threads(1)
            .open();
        let database = match opened {
            Ok(database) => database,
            Err(fjall::Error::Locked) => return Ok(None),
            Err(error) => return Err(other(error)),
        };
        let keys = database
            .keyspace("keys", fjall::KeyspaceCreateOptions::default)
            .map_err(other)?;
        Ok(Some(Self {
            _database: database,
            keys,
        }))
    }

    /// Is the key there?
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn contains(&self, key: Fingerprint) -> io::Result<bool> {
        self.keys.contains_key(key.to_bytes()).map_err(other)
    }

    /// Takes in a run of keys. They are sorted here by their written form; none may stand twice or be there already.
    ///
    /// # Errors
    /// If the table cannot be written. It must not be used afterwards.
    pub fn add(&mut self, keys: &mut [Fingerprint]) -> io::Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        sort_as_written(keys);
        let mut run = self.keys.start_ingestion().map_err(other)?;
        for key in keys {
            run.write(key.to_bytes(), []).map_err(other)?;
        }
        run.finish().map_err(other)
    }

    /// About how many keys it holds, and never fewer.
    #[must_use]
    pub fn about(&self) -> u64 {
        self.keys.approximate_len() as u64
    }

    /// Bytes on disk.
    #[must_use]
    pub fn disk_bytes(&self) -> u64 {
        self.keys.disk_space()
    }

    /// Hands all keys to `take`, in pieces of at most `piece`.
    ///
    /// # Errors
    /// If the table cannot be read.
    pub fn for_all(&self, piece: usize, mut take: impl FnMut(&[Fingerprint])) -> io::Result<()> {
        let mut held = Vec::with_capacity(piece);
        for guard in self.keys.iter() {
            let key = guard.key().map_err(other)?;
            let bytes = <[u8; Fingerprint::BYTES]>::try_from(&*key)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a key of another length"))?;
            held.push(Fingerprint::from_bytes(bytes));
            if held.len() == piece {
                take(&held);
                held.clear();
            }
        }
        take(&held);
        Ok(())
    }
}

/// In the order of the table, so that neighbours are read together.
pub fn sort_as_written(keys: &mut [Fingerprint]) {
    keys.sort_unstable_by_key(|key| u128::from_be_bytes(key.to_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashKey;

    #[test]
    fn runs_are_found_again_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let key = |n: u32| HashKey([7; 16]).fingerprint(&n.to_le_bytes());
        let mut table = KeyTable::open(folder.path()).unwrap().unwrap();
        assert!(KeyTable::open(folder.path()).unwrap().is_none(), "it is in use");
        for run in 0..5_u32 {
            let mut keys: Vec<_> = (run * 1000..(run + 1) * 1000).map(key).collect();
            table.add(&mut keys).unwrap();
        }
        table.add(&mut []).unwrap();
        drop(table);
        let table = KeyTable::open(folder.path()).unwrap().unwrap();
        assert!((0..5000).all(|n| table.contains(key(n)).unwrap()));
        assert!((5000..6000).all(|n| !table.contains(key(n)).unwrap()));
        assert!(table.about() >= 5000);
        let mut all = Vec::new();
        table.for_all(300, |keys| all.extend_from_slice(keys)).unwrap();
        let mut expected: Vec<_> = (0..5000).map(key).collect();
        sort_as_written(&mut expected);
        assert_eq!(all, expected);
    }
}
