//! The one writer. Archive bytes first, then the batch of facts that covers them.
//!
//! A fact's bytes (WARC members, log line, index lines, admitted fingerprints) are appended as it comes, small ones held
//! and written together. Every [`SYNC_EVERY`] the files are synced, and then one atomic batch says what they hold: rows
//! of the queue removed and added, hosts, digests, counters, and the [`Tail`]: the length of each file that is covered.
//! After a crash the files are cut to the tail: a page is wholly there (archived, its links admitted, marked done) or
//! not at all. What was in flight is simply still pending.

mod archive;
mod check;
mod held;
mod keys;
mod row;
mod rows;
mod seen;
mod survey;

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::archive::warc::{Original, WarcInfo};
use crate::clock::Time;
use crate::cookies::Change;
use crate::disk::Disk;
use crate::frontier::queue::Rows;
use crate::frontier::{HostId, Item, Place};
use crate::hash::Fingerprint;
use crate::seen::Kind;
use crate::shard::{Fact, SeedResult};
use crate::store::{Batch, Store, Table};
use crate::url::{Identity, Scheme};
pub use check::check;
use held::Held;
use keys::{
    BLOCKED_KEY, ENTRIES_DROPPED_KEY, FORGOTTEN_PREFIX, IMPORTED_KEY, JOB_KEY, KIND_KEY, LINKS_KEY, LISTED_KEY,
    ORIGIN_PREFIX, PAGES_KEY, REPEATS_KEY, RULES_KEY, SECRETS_KEY, SEED_PREFIX, SKIPPED_KEY, TAIL_KEY, TEXTS_CUT_KEY,
    TRAP_COUNTS_KEY, TRAP_PREFIX, WIDEN_PREFIX,
};
pub use row::{Admissions, Entry, Found, JobRow, LogEntry, Tail, cookies, hosts, look, robots_txt, traps};
use row::{decode, encode, put_total};
use rows::RowFile;
pub use rows::{FRAME_BYTES, Lines, PageRows};
pub use seen::{fill, has};
use survey::Counted;

/// Time between two syncs, at most, while there is something to sync.
pub const SYNC_EVERY: Duration = Duration::from_millis(100);
/// Rows in a batch at which it is committed without waiting for the time: it holds at most so many and those of one fact.
pub const BATCH_ROWS: usize = 20_000;

/// Admitted fingerprints, 16 bytes each, in order.
pub const ADMITTED: &str = "state/admitted.log";
/// Index lines, unsorted.
pub const INDEX_LINES: &str = "state/index.lines";
/// Heritrix's crawl.log.
pub const CRAWL_LOG: &str = "logs/crawl.log";
/// The folder of bodies and records on their way; nothing in it outlives a run.
pub const SPOOL: &str = "state/spool";
/// Fields of pages, in zstd frames.
pub const PAGES: &str = "pages.jsonl.zst";
/// Fields of pages, plain, in jobs that began so.
pub const PLAIN_PAGES: &str = "pages.jsonl";
/// Links of pages, in zstd frames.
pub const LINKS: &str = "links.jsonl.zst";

/// The settings of the archive; `None` in [`Ledger`] for no archive.
#[derive(Debug, Clone)]
pub struct ArchiveSettings {
    /// Start of file names.
    pub prefix: String,
    /// A file is closed at this size, bytes.
    pub size: u64,
    /// For the warcinfo records.
    pub info: WarcInfo,
}

/// A failed write: what could not be written, and why.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {source}")]
pub struct WriteError {
    /// The file or store.
    pub what: String,
    /// The system's error.
    #[source]
    pub source: io::Error,
}

trait Naming<T> {
    fn naming(self, what: &str) -> Result<T, WriteError>;
}

impl<T> Naming<T> for io::Result<T> {
    fn naming(self, what: &str) -> Result<T, WriteError> {
        self.map_err(|source| WriteError {
            what: what.to_owned(),
            source,
        })
    }
}

struct WarcFile {
    name: String,
    file: Held,
}

/// The answer to a refill.
#[derive(Debug)]
pub struct Refilled {
    /// The host.
    pub host: HostId,
    /// Its rows and whether they are all, if rows were asked for.
    pub rows: Option<(Rows, bool)>,
    /// The robots.txt asked for.
    pub robots: Option<(Scheme, Option<Vec<u8>>)>,
}

/// The writer of a job.
pub struct Ledger {
    store: Box<dyn Store>,
    disk: Arc<dyn Disk>,
    archive: Option<ArchiveSettings>,
    identity: Identity,
    /// The kind of the seen-set; an exact one has its keys in the store.
    kind: Kind,
    tail: Tail,
    batch: Batch,
    /// Digests in the batch.
    digests: HashMap<[u8; 20], Original>,
    warc: Option<WarcFile>,
    admitted: Held,
    log: Held,
    index: Held,
    pages: RowFile,
    links: RowFile,
    prints: Vec<u8>,
    written: u64,
    /// The counts of traps have changed since the last batch.
    traps_counted: bool,
    /// The counts of bodies left out have.
    skips_counted: bool,
    survey: Counted,
}

impl Ledger {
    /// Opens the files of a job and cuts them to what the store covers. `job` is written with the first batch of a new
    /// job, the kind of its seen-set with the first batch since it is another.
    ///
    /// # Errors
    /// If a file cannot be opened or cut, or is shorter than the store says: then it was damaged from outside.
    pub fn open(
        store: Box<dyn Store>,
        disk: Arc<dyn Disk>,
        archive: Option<ArchiveSettings>,
        found: &Found,
        job: &JobRow,
        kind: Kind,
    ) -> Result<Self, WriteError> {
        let tail = found.tail.clone();
        let open = |name: &str, len: u64| {
            let mut file = disk.append(name).naming(name)?;
            file.truncate(len).naming(name)?;
            Ok(Held::new(file))
        };
        let admitted = open(ADMITTED, tail.admitted)?;
        let log = open(CRAWL_LOG, tail.log)?;
        let index = open(INDEX_LINES, tail.index)?;
        // a file of lines that has begun plain stays so
        let pages = if tail.pages > 0 {
            RowFile::at(disk.as_ref(), PLAIN_PAGES, false, tail.pages)?
        } else {
            RowFile::at(disk.as_ref(), PAGES, true, found.pages)?
        };
        let links = RowFile::at(disk.as_ref(), LINKS, true, found.links)?;
        let mut batch = Batch::default();
        if found.job.is_none() {
            job.put(&mut batch);
        }
        if found.kind != Some(kind) {
            batch.put(Table::Meta, KIND_KEY, kind.name().as_bytes().to_vec());
        }
        let mut ledger = Self {
            store,
            disk,
            archive,
            identity: job.identity.clone(),
            kind,
            tail,
            batch,
            digests: HashMap::new(),
            warc: None,
            admitted,
            log,
            index,
            pages,
            links,
            prints: Vec::new(),
            written: 0,
            traps_counted: false,
            skips_counted: false,
            survey: Counted::new(found.survey(job), found.tail.started),
        };
        ledger.mend_archive()?;
        Ok(ledger)
    }

    /// The totals so far, durable or not.
    #[must_use]
    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Adds to the totals of the runs; written with the next batch.
    pub fn note(&mut self, change: impl FnOnce(&mut Tail)) {
        change(&mut self.tail);
    }

    /// Number of the last fact written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Is there anything that is not durable yet?
    #[must_use]
    pub fn is_loose(&self) -> bool {
        !self.batch.is_empty()
    }

    /// Appends a fact's bytes and adds its changes to the batch, which is committed if it has become large.
    ///
    /// # Errors
    /// If a file cannot be written; the ledger must not be used afterwards.
    pub fn write(&mut self, entry: Entry, now: Time) -> Result<(), WriteError> {
        let Entry {
            fact,
            members,
            log,
            rows,
        } = entry;
        debug_assert_eq!(fact.number, self.written + 1, "facts come in order");
        self.written = fact.number;
        let digest = members.as_ref().map(|members| members.meta.payload_sha1);
        let archived = match members {
            Some(members) if self.archive.is_some() => Some(self.archive(&members, now)?),
            _ => None,
        };
        if let Some(log) = log {
            let line = log.line(archived.as_ref());
            self.log.append(line.as_bytes()).naming(CRAWL_LOG)?;
        }
        self.pages.append(&self.disk, &rows.fields)?;
        self.links.append(&self.disk, &rows.links)?;
        self.admit(&fact.prints)?;
        self.survey.count(&fact, digest.filter(|_| archived.is_some()), now);
        self.batch_fact(&fact);
        self.tail.counters.add(&fact.delta);
        // only now: closing a file commits, and a commit must cover whole facts
        let size = self.archive.as_ref().map_or(u64::MAX, |archive| archive.size);
        if self.warc.as_ref().is_some_and(|warc| warc.file.len() >= size) {
            self.close_archive()?;
        }
        // of pages with very many links a few are as much as a batch may hold in memory
        if self.batch.len() >= BATCH_ROWS {
            self.sync()?;
        }
        Ok(())
    }

    /// Adds changed rows of cookies to the batch.
    pub fn keep_cookies(&mut self, changes: &[Change]) {
        for (site, row) in changes {
            match row {
                Some(row) => self.batch.put(Table::Cookies, site.as_bytes(), row.clone()),
                None => self.batch.remove(Table::Cookies, site.as_bytes()),
            }
        }
    }

    /// Notes that a cookies.txt was taken, in the batch that holds its cookies.
    pub fn cookies_imported(&mut self, file: Fingerprint) {
        self.batch.put(Table::Meta, IMPORTED_KEY, encode(&file));
    }

    /// Notes the names of the passwords that the job is crawled with.
    pub fn keep_secrets(&mut self, names: &[String]) {
        self.batch.put(Table::Meta, SECRETS_KEY, encode(&names));
    }

    fn batch_fact(&mut self, fact: &Fact) {
        for (host, place, row) in &fact.put {
            self.tail.next_sequence = self.tail.next_sequence.max(place.sequence + 1);
            self.batch.put(Table::Queue, &place.row_key(*host), row.clone());
        }
        if let Some((host, place)) = fact.remove {
            let key = place.row_key(host);
            if !self.batch.cancel(Table::Queue, &key) {
                self.batch.remove(Table::Queue, &key);
            }
        }
        for (host, row) in &fact.hosts {
            self.batch.put(Table::Hosts, &host.to_be_bytes(), row.to_bytes());
        }
        if let Some((host, scheme, bytes)) = &fact.robots {
            self.batch
                .put(Table::Robots, &robots_key(*host, *scheme), bytes.clone());
        }
        self.keep_cookies(&fact.cookies);
        if let Some(urls) = fact.listed {
            self.batch.put(Table::Meta, LISTED_KEY, encode(&urls));
        }
        if let Some((number, result)) = &fact.seed {
            self.batch
                .put(Table::Meta, &numbered(SEED_PREFIX, *number), encode(result));
        }
        if let Some((address, origin)) = &fact.widen {
            let key = [WIDEN_PREFIX, address.as_bytes()].concat();
            self.batch.put(Table::Meta, &key, widened(address, *origin));
        }
        if let Some((origin, pages)) = fact.seed_pages {
            self.batch
                .put(Table::Meta, &numbered(ORIGIN_PREFIX, origin), encode(&pages));
        }
        let (before, left) = (&self.tail.counters, fact.delta.left);
        for (key, before, more) in [
            (TEXTS_CUT_KEY, before.texts_cut, left.texts),
            (ENTRIES_DROPPED_KEY, before.entries_dropped, left.entries),
            (REPEATS_KEY, before.repeats, fact.delta.repeats),
            (BLOCKED_KEY, before.blocked, fact.delta.blocked),
        ] {
            put_total(&mut self.batch, key, before, more);
        }
        if let Some((host, row)) = &fact.traps {
            let key = [TRAP_PREFIX, &host.to_be_bytes()].concat();
            self.batch.put(Table::Meta, &key, row.clone());
        }
        self.skips_counted |= fact.delta.skipped.is_some();
        self.traps_counted |= !fact.delta.traps.is_empty();
        self.tail.seeds_offered |= fact.seeds_offered;
        // a batch is never empty after a fact: counters and tail change with every one
        self.batch.put(Table::Meta, TAIL_KEY, Vec::new());
    }

    /// Makes everything written durable: files first, then the batch.
    ///
    /// # Errors
    /// If a file or the store cannot be synced; the ledger must not be used afterwards.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        if self.batch.is_empty() {
            return Ok(());
        }
        if let Some(warc) = &mut self.warc {
            warc.file.sync().naming(&warc.name)?;
        }
        let files = [
            (&mut self.admitted, ADMITTED),
            (&mut self.log, CRAWL_LOG),
            (&mut self.index, INDEX_LINES),
        ];
        for (file, name) in files {
            file.sync().naming(name)?;
        }
        self.tail.admitted = self.admitted.len();
        self.tail.log = self.log.len();
        self.tail.index = self.index.len();
        let mut batch = std::mem::take(&mut self.batch);
        match self.pages.sync()? {
            Some(len) if self.pages.is_packed() => batch.put(Table::Meta, PAGES_KEY, encode(&len)),
            Some(len) => self.tail.pages = len,
            None => {}
        }
        if let Some(len) = self.links.sync()? {
            batch.put(Table::Meta, LINKS_KEY, encode(&len));
        }
        batch.put(Table::Meta, TAIL_KEY, encode(&self.tail));
        if std::mem::take(&mut self.traps_counted) {
            batch.put(Table::Meta, TRAP_COUNTS_KEY, encode(&self.tail.counters.traps));
        }
        if std::mem::take(&mut self.skips_counted) {
            batch.put(Table::Meta, SKIPPED_KEY, encode(&self.tail.counters.skipped));
        }
        self.survey.save(&mut batch).naming("state/store")?;
        self.store.commit(batch, true).naming("state/store")?;
        self.digests.clear();
        Ok(())
    }

    /// Commits the tail even if no fact is waiting (totals of the run, closed files).
    ///
    /// # Errors
    /// As [`Ledger::sync`].
    pub fn sync_tail(&mut self) -> Result<(), WriteError> {
        self.survey.keep_now();
        self.batch.put(Table::Meta, TAIL_KEY, Vec::new());
        self.sync()
    }

    /// Reads so many of a host's rows after a place at most, and its robots.txt. The answer holds every fact that came before the
    /// question, whether it was committed or stands in the batch.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn refill(
        &self,
        host: HostId,
        after: Option<Place>,
        most: usize,
        robots: Option<Scheme>,
    ) -> Result<Refilled, WriteError> {
        let rows = after.map(|after| self.rows(host, after, most)).transpose()?;
        let robots = match robots {
            Some(scheme) => Some((
                scheme,
                self.batch
                    .get_over(self.store.as_ref(), Table::Robots, &robots_key(host, scheme))
                    .naming("state/store")?,
            )),
            None => None,
        };
        Ok(Refilled { host, rows, robots })
    }

    fn rows(&self, host: HostId, after: Place, most: usize) -> Result<(Rows, bool), WriteError> {
        let (prefix, after) = (host.to_be_bytes(), after.row_key(host));
        let found = self
            .batch
            .range_over(self.store.as_ref(), Table::Queue, &after, &prefix, most);
        let (found, complete) = found.naming("state/store")?;
        let mut rows = Vec::with_capacity(found.len());
        for (key, value) in found {
            let place = Place::from_row_key(&key).map(|(_, place)| place);
            let item = Item::from_row(&value, &self.identity);
            match (place, item) {
                (Some(place), Ok(item)) => rows.push((place, item)),
                (_, item) => {
                    let why = item.err().unwrap_or_else(|| "a key of another form".to_owned());
                    let source = io::Error::new(io::ErrorKind::InvalidData, why);
                    return Err(WriteError {
                        what: "state/store: queue".to_owned(),
                        source,
                    });
                }
            }
        }
        Ok((rows, complete))
    }

    /// The outcome of each seed that has one.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn seeds(&mut self) -> Result<HashMap<u64, SeedResult>, WriteError> {
        self.sync()?;
        let rows = self
            .store
            .range(Table::Meta, SEED_PREFIX, true, SEED_PREFIX, usize::MAX)
            .naming("state/store")?;
        let mut seeds = HashMap::new();
        for (key, value) in rows {
            let number = key
                .get(SEED_PREFIX.len()..)
                .and_then(|n| n.try_into().ok())
                .map(u64::from_be_bytes);
            if let (Some(number), Ok(result)) = (number, decode(&value)) {
                seeds.insert(number, result);
            }
        }
        Ok(seeds)
    }
}

/// The row of an address that widens the scope, and behind a space the seed whose own rules it widens.
fn widened(address: &str, origin: u64) -> Vec<u8> {
    match origin {
        0 => address.as_bytes().to_vec(),
        _ => format!("{address} {origin}").into_bytes(),
    }
}

fn robots_key(host: HostId, scheme: Scheme) -> [u8; 5] {
    let [a, b, c, d] = host.to_be_bytes();
    [a, b, c, d, u8::from(scheme == Scheme::Https)]
}

fn numbered(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Memory;
    use crate::hash::HashKey;
    use crate::store::MemoryStore;

    fn ledger(disk: &Memory, store: &MemoryStore) -> Ledger {
        let found = look(store).unwrap();
        let job = JobRow {
            key: HashKey([1; 16]),
            identity: Identity::default(),
        };
        Ledger::open(
            Box::new(store.clone()),
            Arc::new(disk.clone()),
            None,
            &found,
            &job,
            Kind::Bloom,
        )
        .unwrap()
    }

    fn page(ledger: &mut Ledger, number: u64, line: &str) {
        let mut fields = Lines::default();
        fields.push(line.as_bytes()).unwrap();
        let entry = Entry {
            fact: Fact {
                number,
                ..Fact::default()
            },
            members: None,
            log: None,
            rows: PageRows {
                links: fields.clone(),
                fields,
            },
        };
        ledger.write(entry, Time(0)).unwrap();
    }

    fn unpacked(disk: &Memory, name: &str) -> String {
        let bytes = disk.bytes(name).unwrap();
        String::from_utf8(zstd::decode_all(bytes.as_slice()).unwrap()).unwrap()
    }

    #[test]
    fn lines_that_no_batch_covers_are_cut_and_those_it_covers_stay() {
        let (disk, store) = (Memory::default(), MemoryStore::default());
        ledger(&disk, &store).sync_tail().unwrap();
        for name in [PAGES, LINKS, PLAIN_PAGES] {
            assert_eq!(disk.bytes(name), None, "no fields, no file");
        }
        for name in [PAGES, LINKS] {
            disk.append(name).unwrap().append(b"left by a kill\n").unwrap();
        }
        let mut first = ledger(&disk, &store);
        page(&mut first, 1, "one");
        first.sync().unwrap();
        for name in [PAGES, LINKS] {
            disk.append(name).unwrap().append(b"left by another\n").unwrap();
        }
        let mut second = ledger(&disk, &store);
        page(&mut second, 1, "two");
        second.sync().unwrap();
        for name in [PAGES, LINKS] {
            assert_eq!(unpacked(&disk, name), "one\ntwo\n");
        }
    }

    #[test]
    fn a_job_that_began_with_plain_lines_goes_on_with_them() {
        let (disk, store) = (Memory::default(), MemoryStore::default());
        let mut old = ledger(&disk, &store);
        disk.append(PLAIN_PAGES).unwrap().append(b"one\nleft").unwrap();
        old.note(|tail| tail.pages = 4);
        old.sync_tail().unwrap();
        for line in ["two", "three"] {
            let mut now = ledger(&disk, &store);
            page(&mut now, 1, line);
            now.sync().unwrap();
            disk.append(PLAIN_PAGES).unwrap().append(b"left by a kill").unwrap();
        }
        ledger(&disk, &store);
        assert_eq!(disk.bytes(PLAIN_PAGES).unwrap(), b"one\ntwo\nthree\n");
        assert_eq!(disk.bytes(PAGES), None);
        assert_eq!(unpacked(&disk, LINKS), "two\nthree\n");
    }

    #[test]
    fn a_batch_holds_no_more_than_its_bound_and_one_fact() {
        let (disk, store) = (Memory::default(), MemoryStore::default());
        let mut ledger = ledger(&disk, &store);
        ledger.sync_tail().unwrap();
        let half = BATCH_ROWS as u64 / 2 + 1;
        for number in 1..=4 {
            let place = |n| Place {
                priority: 0,
                sequence: number * half + n,
            };
            let fact = Fact {
                number,
                put: (0..half).map(|n| (7, place(n), vec![1])).collect(),
                ..Fact::default()
            };
            let (members, log) = (None, None);
            let entry = Entry {
                fact,
                members,
                log,
                rows: PageRows::default(),
            };
            ledger.write(entry, Time(0)).unwrap();
            assert_eq!(ledger.is_loose(), number % 2 == 1, "{number}");
        }
        let rows = store.range(Table::Queue, &[], true, &[], usize::MAX).unwrap();
        assert_eq!(rows.len() as u64, 4 * half);
    }
}
