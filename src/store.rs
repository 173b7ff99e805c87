//! The embedded store: sorted tables changed by atomic batches. Holds `fjall`.
//!
//! What a group of finished visits changes is one batch: all of it is there after a crash, or none. The trait is small
//! so that a segment log could replace the store; [`MemoryStore`] is the one that tests kill by the thousand.

mod keys;

use std::collections::BTreeMap;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use keys::{KeyTable, sort_as_written};

/// The tables of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// Pending URLs: host, priority, sequence → item.
    Queue,
    /// Hosts: id → row.
    Hosts,
    /// robots.txt bodies: host id, scheme → bytes.
    Robots,
    /// Payload digests: SHA-1 → the first response that had it.
    Digests,
    /// Cookies: site (registrable domain) → its cookies.
    Cookies,
    /// Admitted fingerprints, for a job whose seen-set is exact.
    Seen,
    /// The tail (what the append-only files hold), the job's constants, the seeds' outcomes.
    Meta,
}

impl Table {
    const ALL: [Table; 7] = [
        Self::Queue,
        Self::Hosts,
        Self::Robots,
        Self::Digests,
        Self::Cookies,
        Self::Seen,
        Self::Meta,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Hosts => "hosts",
            Self::Robots => "robots",
            Self::Digests => "digests",
            Self::Cookies => "cookies",
            Self::Seen => "seen",
            Self::Meta => "meta",
        }
    }
}

/// Changes that happen together. A later change of a key replaces an earlier one.
#[derive(Debug, Default)]
pub struct Batch {
    changes: BTreeMap<(Table, Vec<u8>), Option<Vec<u8>>>,
}

impl Batch {
    /// Sets a row.
    pub fn put(&mut self, table: Table, key: &[u8], value: Vec<u8>) {
        self.changes.insert((table, key.to_vec()), Some(value));
    }

    /// Removes a row.
    pub fn remove(&mut self, table: Table, key: &[u8]) {
        self.changes.insert((table, key.to_vec()), None);
    }

    /// Removes a row that this batch itself may have made and the store does not hold: then nothing is left to do.
    /// Returns whether it was so.
    pub fn cancel(&mut self, table: Table, key: &[u8]) -> bool {
        matches!(self.changes.remove(&(table, key.to_vec())), Some(Some(_)))
    }

    /// The row as it will be once this batch is applied to the store.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn get_over(&self, store: &dyn Store, table: Table, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        match self.changes.get(&(table, key.to_vec())) {
            Some(change) => Ok(change.clone()),
            None => store.get(table, key),
        }
    }

    /// Rows with `after < key` that start with `prefix`, at most `limit`, as they will be once this batch is applied to the
    /// store; and whether these are all. Where they are not, there is at least one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn range_over(
        &self,
        store: &dyn Store,
        table: Table,
        after: &[u8],
        prefix: &[u8],
        limit: usize,
    ) -> io::Result<(Vec<Row>, bool)> {
        let mut after = after.to_vec();
        loop {
            let stored = store.range(table, &after, false, prefix, limit)?;
            let last = (stored.len() >= limit)
                .then(|| stored.last().map(|(key, _)| key.clone()))
                .flatten();
            let mut rows: BTreeMap<Vec<u8>, Vec<u8>> = stored.into_iter().collect();
            let from = (Bound::Excluded((table, after.clone())), Bound::Unbounded);
            for ((_, key), change) in self
                .changes
                .range(from)
                .take_while(|((of, key), _)| *of == table && last.as_ref().is_none_or(|last| key <= last))
                .filter(|((_, key), _)| key.starts_with(prefix))
            {
                match change {
                    Some(value) => rows.insert(key.clone(), value.clone()),
                    None => rows.remove(key),
                };
            }
            match last {
                // all that were read are removed by the batch: there may be more behind them
                Some(last) if rows.is_empty() => after = last,
                last => {
                    let complete = last.is_none() && rows.len() <= limit;
                    return Ok((rows.into_iter().take(limit).collect(), complete));
                }
            }
        }
    }

    /// Number of rows it changes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Does it change nothing?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

/// A row: key and value.
pub type Row = (Vec<u8>, Vec<u8>);

/// Sorted tables.
pub trait Store: Send {
    /// Reads one row.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn get(&self, table: Table, key: &[u8]) -> io::Result<Option<Vec<u8>>>;
    /// Reads at most `limit` rows with `after < key` (or `after <= key` if `inclusive`) that start with `prefix`.
    ///
    /// # Errors
    /// If the store cannot be read.
    fn range(&self, table: Table, after: &[u8], inclusive: bool, prefix: &[u8], limit: usize) -> io::Result<Vec<Row>>;
    /// Applies a batch, whole or not at all; with `sync` it survives a power cut when this returns.
    ///
    /// # Errors
    /// If the store cannot be written; it must not be used afterwards.
    fn commit(&mut self, batch: Batch, sync: bool) -> io::Result<()>;
}

/// Bytes of a table's memory before it goes to disk. fjall's own cap over all tables is not enforced by it, so the
/// tables are few and small.
const MEMTABLE_BYTES: u64 = 8 << 20;
/// Bytes of the block cache.
const CACHE_BYTES: u64 = 32 << 20;
/// Files of tables kept open, of the files that the process may open: one in so many,
const FILES_ONE_IN: u64 = 8;
/// and never more or less than this.
const FILES: std::ops::RangeInclusive<u64> = 32..=256;

/// Files of tables that are kept open where the process may open so many; further ones are opened anew each time.
#[must_use]
pub fn kept_open(limit: u64) -> u64 {
    (limit / FILES_ONE_IN).clamp(*FILES.start(), *FILES.end())
}
/// Bytes of journals before a flush is forced.
const JOURNAL_BYTES: u64 = 128 << 20;

/// The store on disk.
pub struct Fjall {
    database: fjall::Database,
    tables: BTreeMap<Table, fjall::Keyspace>,
}

fn other(error: fjall::Error) -> io::Error {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => error,
        error => io::Error::other(error.to_string()),
    }
}

impl Fjall {
    /// Opens the store in a folder, made if it is not there.
    ///
    /// # Errors
    /// If the folder cannot be used or holds a damaged store.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let files = usize::try_from(kept_open(limit.unwrap_or(u64::MAX))).ok();
        let database = fjall::Database::builder(folder)
            .cache_size(CACHE_BYTES)
            .max_cached_files(files)
            .max_journaling_size(JOURNAL_BYTES)
            .worker_threads(1)
            .manual_journal_persist(true)
            .open()
            .map_err(other)?;
        let mut tables = BTreeMap::new();
        for table in Table::ALL {
            let options = || fjall::KeyspaceCreateOptions::default().max_memtable_size(MEMTABLE_BYTES);
            tables.insert(table, database.keyspace(table.name(), options).map_err(other)?);
        }
        Ok(Self { database, tables })
    }

    fn table(&self, table: Table) -> io::Result<&fjall::Keyspace> {
        self.tables
            .get(&table)
            .ok_or_else(|| io::Error::other("a table that was not opened"))
    }
}

impl Store for Fjall {
    fn get(&self, table: Table, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.table(table)?.get(key).map_err(other)?.map(|value| value.to_vec()))
    }

    fn range(&self, table: Table, after: &[u8], inclusive: bool, prefix: &[u8], limit: usize) -> io::Result<Vec<Row>> {
        let start = if inclusive {
            Bound::Included(after)
        } else {
            Bound::Excluded(after)
        };
        let mut rows = Vec::new();
        for guard in self
            .table(table)?
            .range::<&[u8], _>((start, Bound::Unbounded))
            .take(limit)
        {
            let (key, value) = guard.into_inner().map_err(other)?;
            if !key.starts_with(prefix) {
                break;
            }
            rows.push((key.to_vec(), value.to_vec()));
        }
        Ok(rows)
    }

    fn commit(&mut self, batch: Batch, sync: bool) -> io::Result<()> {
        let mut write = fjall::OwnedWriteBatch::with_capacity(self.database.clone(), batch.len());
        for ((table, key), value) in batch.changes {
            let keyspace = self.table(table)?.clone();
            match value {
                Some(value) => write.insert(&keyspace, key, value),
                None => write.remove(&keyspace, key),
            }
        }
        write
            .durability(Some(if sync {
                fjall::PersistMode::SyncData
            } else {
                fjall::PersistMode::Buffer
            }))
            .commit()
            .map_err(other)
    }
}

/// The store in memory. Clones share it. A batch is durable when `commit` with `sync` returns.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<MemoryState>>,
}

#[derive(Debug, Clone, Default)]
struct MemoryState {
    rows: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
    synced: BTreeMap<(Table, Vec<u8>), Vec<u8>>,
}

impl MemoryStore {
    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store as a kill leaves it.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        Self {
            state: Arc::new(Mutex::new(self.lock().clone())),
        }
    }

    /// The store as a power cut leaves it: up to the last synced batch.
    #[must_use]
    pub fn after_power_cut(&self) -> Self {
        let synced = self.lock().synced.clone();
        Self {
            state: Arc::new(Mutex::new(MemoryState {
                rows: synced.clone(),
                synced,
            })),
        }
    }
}

impl Store for MemoryStore {
    fn get(&self, table: Table, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        Ok(self.lock().rows.get(&(table, key.to_vec())).cloned())
    }

    fn range(&self, table: Table, after: &[u8], inclusive: bool, prefix: &[u8], limit: usize) -> io::Result<Vec<Row>> {
        let start = (table, after.to_vec());
        let start = if inclusive {
            Bound::Included(start)
        } else {
            Bound::Excluded(start)
        };
        let state = self.lock();
        let rows = state.rows.range((start, Bound::Unbounded));
        let rows = rows
            .take_while(|((t, key), _)| *t == table && key.starts_with(prefix))
            .take(limit);
        Ok(rows.map(|((_, key), value)| (key.clone(), value.clone())).collect())
    }

    fn commit(&mut self, batch: Batch, sync: bool) -> io::Result<()> {
        let mut state = self.lock();
        for (key, value) in batch.changes {
            match value {
                Some(value) => state.rows.insert(key, value),
                None => state.rows.remove(&key),
            };
        }
        if sync {
            state.synced = state.rows.clone();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// Reading through a batch is reading after it was committed.
        #[test]
        fn a_batch_is_read_as_if_it_were_committed(
            there in proptest::collection::btree_map(0_u8..40, 0_u8..9, 0..40),
            changes in proptest::collection::vec((0_u8..40, proptest::option::of(0_u8..9)), 0..40),
            after in 0_u8..40,
            limit in 1_usize..6,
        ) {
            let mut store = MemoryStore::default();
            let mut first = Batch::default();
            for (key, value) in &there {
                first.put(Table::Queue, &[key % 3, *key], vec![*value]);
            }
            store.commit(first, true).unwrap();
            let (mut over, mut batch) = (Batch::default(), Batch::default());
            for (key, value) in &changes {
                for batch in [&mut over, &mut batch] {
                    match value {
                        Some(value) => batch.put(Table::Queue, &[key % 3, *key], vec![*value]),
                        None => batch.remove(Table::Queue, &[key % 3, *key]),
                    }
                    batch.put(Table::Hosts, &[key % 3, 0], vec![1]);
                }
            }
            let mut committed = store.after_kill();
            committed.commit(batch, true).unwrap();
            for host in 0..3_u8 {
                let all = committed.range(Table::Queue, &[host, after], false, &[host], 100).unwrap();
                let mut rows = Vec::new();
                let mut from = vec![host, after];
                loop {
                    let (more, complete) = over.range_over(&store, Table::Queue, &from, &[host], limit).unwrap();
                    proptest::prop_assert!(more.len() <= limit && (complete || !more.is_empty()));
                    from = more.last().map_or(from, |(key, _)| key.clone());
                    rows.extend(more);
                    if complete {
                        break;
                    }
                }
                proptest::prop_assert_eq!(rows, all);
                let key = [host, after];
                proptest::prop_assert_eq!(
                    over.get_over(&store, Table::Queue, &key).unwrap(),
                    committed.get(Table::Queue, &key).unwrap()
                );
            }
        }
    }

    fn exercise(store: &mut dyn Store) {
        let mut batch = Batch::default();
        for n in 0..10_u8 {
            batch.put(Table::Queue, &[1, n], vec![n]);
        }
        batch.put(Table::Queue, &[2, 0], vec![99]);
        batch.put(Table::Hosts, &[1], vec![7]);
        store.commit(batch, true).unwrap();
        assert_eq!(store.get(Table::Queue, &[1, 3]).unwrap(), Some(vec![3]));
        assert_eq!(store.get(Table::Meta, &[1, 3]).unwrap(), None);
        let rows = store.range(Table::Queue, &[1, 6], false, &[1], 100).unwrap();
        assert_eq!(
            rows,
            [(vec![1, 7], vec![7]), (vec![1, 8], vec![8]), (vec![1, 9], vec![9])]
        );
        assert_eq!(store.range(Table::Queue, &[1], true, &[1], 2).unwrap().len(), 2);
        let mut batch = Batch::default();
        batch.remove(Table::Queue, &[1, 7]);
        batch.put(Table::Queue, &[1, 8], vec![80]);
        batch.put(Table::Queue, &[1, 11], vec![11]);
        assert!(batch.cancel(Table::Queue, &[1, 11]));
        assert!(!batch.cancel(Table::Queue, &[1, 9]));
        store.commit(batch, true).unwrap();
        let rows = store.range(Table::Queue, &[1, 6], false, &[1], 100).unwrap();
        assert_eq!(rows, [(vec![1, 8], vec![80]), (vec![1, 9], vec![9])]);
    }

    #[test]
    fn both_stores_behave_alike() {
        exercise(&mut MemoryStore::default());
        let folder = tempfile::tempdir().unwrap();
        exercise(&mut Fjall::open(&folder.path().join("db")).unwrap());
        let again = Fjall::open(&folder.path().join("db")).unwrap();
        assert_eq!(again.get(Table::Queue, &[1, 8]).unwrap(), Some(vec![80]));
    }

    #[test]
    fn a_power_cut_takes_what_was_not_synced() {
        let mut store = MemoryStore::default();
        let mut batch = Batch::default();
        batch.put(Table::Meta, b"a", vec![1]);
        store.commit(batch, true).unwrap();
        let mut batch = Batch::default();
        batch.put(Table::Meta, b"a", vec![2]);
        store.commit(batch, false).unwrap();
        assert_eq!(store.after_kill().get(Table::Meta, b"a").unwrap(), Some(vec![2]));
        assert_eq!(store.after_power_cut().get(Table::Meta, b"a").unwrap(), Some(vec![1]));
    }
}
