//! `--exact DIR`: a table on disk that loses nothing, with a Bloom filter in front.
//!
//! "No" of the filter is final and touches no disk. "Maybe" is looked up: among the keys that are not in the table yet,
//! then among those met lately, then in the table, in sorted order. New keys go into the table in sorted runs, and each
//! run only after its lines are written: a kill makes lines come again, never get lost.
//!
//! A key is a 128-bit hash under a secret key: two lines of 10^12 share one with a chance of about 10^-15.

use std::fs;
use std::io;
use std::path::Path;

use hashbrown::HashTable;
use serde::{Deserialize, Serialize};

use super::{NOT_WRITABLE, USAGE};
use crate::disk::{self, Disk, Folder};
use crate::hash::{Fingerprint, HashKey};
use crate::seen::{self, Account, Kind, SeenSet};
use crate::store::{KeyTable, sort_as_written};

/// Bytes of input in a batch: large, so that look-ups stand close together when they are sorted.
pub(super) const BLOCK_BYTES: usize = 1 << 20;
/// Keys that wait for the table (4 MiB, and 6 to 10 with the set that finds them).
const RUN_KEYS: usize = 1 << 18;
/// Keys met lately that are found without the disk, in each of two generations (24 to 40 MiB each).
const LATELY_KEYS: usize = 1 << 20;
/// The rate of the filter in front: one look-up of a thousand new lines is in vain.
const FRONT_FP: f64 = 0.001;
/// Keys the filter in front is made for at least.
const FRONT_CAPACITY: u64 = 1 << 20;
/// Keys taken from the table at once when the filter is made anew.
const PIECE: usize = 4096;
/// The file that says what the folder is.
const ABOUT: &str = "dedup.json";
/// The version of the folder's form.
const FORMAT: u32 = 1;

/// What `dedup.json` says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct About {
    format: u32,
    key: HashKey,
    normalize: bool,
    crlf: bool,
}

/// Why a folder cannot be used, and with which exit code.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) text: String,
    pub(super) code: u8,
}

/// The table, and what spares its disk.
pub(super) struct ExactTable {
    key: HashKey,
    table: KeyTable,
    front: Box<dyn SeenSet>,
    /// New keys, in the order they came.
    waiting: Vec<Fingerprint>,
    waiting_set: HashTable<Fingerprint>,
    lately: [HashTable<Fingerprint>; 2],
    /// Keys that the table held when it was opened.
    before: u64,
    looked_up: u64,
}

impl ExactTable {
    /// Opens the table in `folder`, or makes one, and makes the filter from what it holds.
    pub(super) fn open(folder: &Path, normalize: bool, crlf: bool) -> Result<Self, Refusal> {
        let refuse = |what: String, code: u8| Refusal {
            text: format!("--exact {}: {what}", folder.display()),
            code,
        };
        let broken = |error: io::Error| refuse(error.to_string(), NOT_WRITABLE);
        let about = about(folder, normalize, crlf)?;
        let table = KeyTable::open(&folder.join("keys"))
            .map_err(broken)?
            .ok_or_else(|| refuse("another process uses it".to_owned(), USAGE))?;
        let capacity = (table.about() + table.about() / 2).max(FRONT_CAPACITY);
        let mut front = seen::make(Kind::Bloom, about.key, capacity, FRONT_FP).map_err(broken)?;
        let mut before = 0;
        table
            .for_all(PIECE, |keys| {
                before += keys.len() as u64;
                front.replay(keys);
            })
            .map_err(broken)?;
        Ok(Self {
            key: about.key,
            table,
            front,
            waiting: Vec::new(),
            waiting_set: HashTable::new(),
            lately: [HashTable::new(), HashTable::new()],
            before,
            looked_up: 0,
        })
    }

    pub(super) fn hash_key(&self) -> HashKey {
        self.key
    }

    /// Tests and sets a batch, as a [`SeenSet`] does, but always rightly.
    pub(super) fn insert_batch(&mut self, keys: &[Fingerprint], new: &mut Vec<bool>) -> io::Result<()> {
        self.front.insert_batch(keys, new);
        let mut maybe = Vec::new();
        for (at, (key, new)) in keys.iter().zip(new.iter()).enumerate() {
            if *new {
                self.wait(*key);
            } else if !self.is_near(*key) {
                maybe.push((at, *key));
            }
        }
        let there = self.look_up(maybe.iter().map(|(_, key)| *key).collect())?;
        // in the order of the input, for a key that the filter took for another's may stand twice
        for (at, key) in maybe {
            if self.is_near(key) {
                continue;
            }
            if find(&there, key) {
                self.met(key);
            } else {
                self.wait(key);
                if let Some(new) = new.get_mut(at) {
                    *new = true;
                }
            }
        }
        Ok(())
    }

    /// Which of these are in the table?
    fn look_up(&mut self, mut keys: Vec<Fingerprint>) -> io::Result<HashTable<Fingerprint>> {
        sort_as_written(&mut keys);
        keys.dedup();
        self.looked_up += keys.len() as u64;
        let mut there = HashTable::new();
        for key in keys {
            if self.table.contains(key)? {
                add(&mut there, key);
            }
        }
        Ok(there)
    }

    /// Is it known without the disk?
    fn is_near(&self, key: Fingerprint) -> bool {
        find(&self.waiting_set, key) || self.lately.iter().any(|keys| find(keys, key))
    }

    fn wait(&mut self, key: Fingerprint) {
        self.waiting.push(key);
        add(&mut self.waiting_set, key);
    }

    fn met(&mut self, key: Fingerprint) {
        let [young, old] = &mut self.lately;
        if young.len() >= LATELY_KEYS {
            std::mem::swap(young, old);
            young.clear();
        }
        add(young, key);
    }

    /// Do enough keys wait?
    pub(super) fn is_due(&self) -> bool {
        self.waiting.len() >= RUN_KEYS
    }

    /// Puts what waits into the table. Its lines must have been written.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        self.table.add(&mut self.waiting)?;
        self.waiting.clear();
        // the set of what waited is the youngest of what was met lately
        let [young, old] = &mut self.lately;
        std::mem::swap(young, old);
        std::mem::swap(young, &mut self.waiting_set);
        self.waiting_set.clear();
        Ok(())
    }

    /// The account of the filter in front. It loses nothing.
    pub(super) fn account(&self) -> Account {
        Account {
            lost_estimate: 0.0,
            ..self.front.account()
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        let near: usize = self
            .lately
            .iter()
            .chain([&self.waiting_set])
            .map(HashTable::allocation_size)
            .sum();
        self.front.memory_bytes() + (near + self.waiting.capacity() * Fingerprint::BYTES) as u64
    }

    /// Keys that were there when it was opened.
    pub(super) fn before(&self) -> u64 {
        self.before
    }

    /// Keys that were looked up on disk.
    pub(super) fn looked_up(&self) -> u64 {
        self.looked_up
    }

    pub(super) fn disk_bytes(&self) -> u64 {
        self.table.disk_bytes()
    }
}

// the fingerprint is a keyed hash already

fn find(keys: &HashTable<Fingerprint>, key: Fingerprint) -> bool {
    keys.find(key.high, |other| *other == key).is_some()
}

fn add(keys: &mut HashTable<Fingerprint>, key: Fingerprint) {
    keys.insert_unique(key.high, key, |key| key.high);
}

/// What the folder is, made if it is new.
fn about(folder: &Path, normalize: bool, crlf: bool) -> Result<About, Refusal> {
    let refuse = |what: &str, code: u8| Refusal {
        text: format!("--exact {}: {what}", folder.display()),
        code,
    };
    let broken = |error: io::Error| refuse(&error.to_string(), NOT_WRITABLE);
    let made = fs::create_dir_all(folder).and_then(|()| fs::read_dir(folder));
    let is_empty = made.map_err(broken)?.next().is_none();
    match fs::read(folder.join(ABOUT)) {
        Ok(text) => {
            let found: About =
                serde_json::from_slice(&text).map_err(|error| refuse(&format!("{ABOUT}: {error}"), USAGE))?;
            if found.format != FORMAT {
                return Err(refuse(
                    &format!("has format {}, this program knows {FORMAT}", found.format),
                    USAGE,
                ));
            }
            for (flag, had, has) in [
                ("--normalize", found.normalize, normalize),
                ("--crlf", found.crlf, crlf),
            ] {
                if had != has {
                    let word = if had { "with" } else { "without" };
                    return Err(refuse(
                        &format!("was made {word} {flag}: go on so, or use another folder"),
                        USAGE,
                    ));
                }
            }
            Ok(found)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_empty => {
            let about = About {
                format: FORMAT,
                key: HashKey::random().map_err(broken)?,
                normalize,
                crlf,
            };
            let text = serde_json::to_vec(&about).map_err(|error| broken(error.into()))?;
            let folder = Folder::new(folder.to_owned());
            disk::publish(&folder as &dyn Disk, ABOUT, &text).map_err(broken)?;
            Ok(about)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(refuse(
            "holds other files and no table of dedup: name a folder of its own",
            USAGE,
        )),
        Err(error) => Err(broken(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(n: u64) -> Fingerprint {
        // one line of a filter, so that it fills and answers "maybe"
        Fingerprint { high: n << 1, low: n }
    }

    #[test]
    fn it_is_right_where_the_filter_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let mut table = ExactTable::open(&folder.path().join("t"), false, false).unwrap();
        let mut new = Vec::new();
        // all keys fall into the first line, which is full long before the end
        for batch in 0..40_u64 {
            let keys: Vec<_> = (batch * 50..batch * 50 + 100).map(key).collect();
            table.insert_batch(&keys, &mut new).unwrap();
            let expected: Vec<bool> = (0..100).map(|n| batch == 0 || n >= 50).collect();
            assert_eq!(new, expected, "{batch}");
            if batch % 7 == 0 {
                table.settle().unwrap();
            }
        }
        assert!(table.looked_up() > 500, "{}", table.looked_up());
        table.insert_batch(&[key(99_999), key(99_999)], &mut new).unwrap();
        assert_eq!(new, [true, false]);
    }
}
