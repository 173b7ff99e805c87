//! The seen-set's share of what lasts: the admission log, and for an exact set the table of its keys.

use std::io::{self, Read};

use super::{ADMITTED, Admissions, BATCH_ROWS, FORGOTTEN_PREFIX, Ledger, Naming, WriteError, encode, numbered};
use crate::disk::Disk;
use crate::hash::Fingerprint;
use crate::seen::Kind;
use crate::store::{Batch, Store, Table};

impl Ledger {
    pub(super) fn admit(&mut self, prints: &[Fingerprint]) -> Result<(), WriteError> {
        self.prints.clear();
        for print in prints {
            self.prints.extend_from_slice(&print.to_bytes());
            if self.kind == Kind::Exact {
                self.batch.put(Table::Seen, &print.to_bytes(), Vec::new());
            }
        }
        if self.prints.is_empty() {
            Ok(())
        } else {
            self.admitted.append(&self.prints).naming(ADMITTED)
        }
    }

    /// Takes keys out again that were admitted: records of the log that say so, with the next batch. A fact that admits
    /// one of them anew goes after it.
    ///
    /// # Errors
    /// If the log cannot be written; the ledger must not be used afterwards.
    pub fn forget(&mut self, prints: &[Fingerprint]) -> Result<(), WriteError> {
        let mut bytes = Vec::with_capacity(prints.len() * Fingerprint::BYTES);
        for print in prints {
            bytes.extend_from_slice(&print.to_bytes());
            if self.kind == Kind::Exact {
                self.batch.remove(Table::Seen, &print.to_bytes());
            }
        }
        let record = self.admitted.len() / Fingerprint::BYTES as u64;
        self.batch.put(
            Table::Meta,
            &numbered(FORGOTTEN_PREFIX, record),
            encode(&(prints.len() as u64)),
        );
        self.admitted.append(&bytes).naming(ADMITTED)
    }

    /// Which of these keys the store has, for a seen-set that is exact. Best asked in order. What is not durable yet is
    /// not known here.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn has(&self, keys: &[Fingerprint]) -> Result<Vec<bool>, WriteError> {
        has(self.store.as_ref(), keys).naming("state/store")
    }
}

/// Which of these keys are in the table of an exact seen-set.
///
/// # Errors
/// If the store cannot be read.
pub fn has(store: &dyn Store, keys: &[Fingerprint]) -> io::Result<Vec<bool>> {
    let has = |key: &Fingerprint| Ok(store.get(Table::Seen, &key.to_bytes())?.is_some());
    keys.iter().map(has).collect()
}

/// Makes the table of an exact seen-set out of the admission log. It may be there in part, from a fill that was cut short or from
/// a time when the set was exact: only what no record speaks of is not touched, and there is none.
///
/// # Errors
/// If the log cannot be read, or the store not be written.
pub fn fill(store: &mut dyn Store, disk: &dyn Disk, admissions: &Admissions) -> io::Result<()> {
    let Some(log) = disk.read(ADMITTED)? else {
        return Ok(());
    };
    let mut log = io::BufReader::with_capacity(1 << 20, log);
    let mut bytes = [0; Fingerprint::BYTES];
    let mut batch = Batch::default();
    for record in 0..admissions.records {
        log.read_exact(&mut bytes)?;
        if admissions.takes_out(record) {
            batch.remove(Table::Seen, &bytes);
        } else {
            batch.put(Table::Seen, &bytes, Vec::new());
        }
        if batch.len() >= BATCH_ROWS {
            store.commit(std::mem::take(&mut batch), false)?;
        }
    }
    // the row that says the set is exact comes with a later batch
    store.commit(batch, true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Memory;
    use crate::store::MemoryStore;

    #[test]
    fn the_table_is_what_the_log_says() {
        let (disk, mut store) = (Memory::default(), MemoryStore::default());
        let key = |n| Fingerprint { high: n, low: n };
        let mut file = disk.append(ADMITTED).unwrap();
        for n in [1, 2, 3, 2, 3, 4, 3, 99] {
            file.append(&key(n).to_bytes()).unwrap();
        }
        let admissions = Admissions {
            records: 7,
            forgotten: vec![(3, 2)],
        };
        fill(&mut store, &disk, &admissions).unwrap();
        fill(&mut store, &disk, &admissions).unwrap();
        let there = has(&store, &[1, 2, 3, 4, 99].map(key)).unwrap();
        assert_eq!(there, [true, false, true, true, false]);
        assert!(admissions.takes_out_from(4) && !admissions.takes_out_from(5));
    }
}
