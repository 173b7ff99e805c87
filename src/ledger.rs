//! The one writer. Archive bytes first, then the batch of facts that covers them.
//!
//! A fact's bytes (WARC members, log line, index lines, admitted fingerprints) are appended as it comes. Every
//! [`SYNC_EVERY`] the files are synced, and then one atomic batch says what they hold: rows of the queue removed and
//! added, hosts, digests, counters, and the [`Tail`]: the length of each file that is covered. After a crash the files are cut
//! to the tail: a page is wholly there (archived, its links admitted, marked done) or not at all. What was in flight is
//! simply still pending.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::archive::warc::{Members, Original, WarcInfo};
use crate::archive::{cdxj, naming, warc};
use crate::clock::Time;
use crate::disk::{Append, Disk};
use crate::frontier::queue::{REFILL_ROWS, Rows};
use crate::frontier::{HostId, Item, Place};
use crate::hash::Fingerprint;
use crate::shard::{Fact, HostRow, SeedResult};
use crate::stats::Counters;
use crate::store::{Batch, Store, Table};
use crate::url::{Identity, Scheme};

/// Time between two syncs, at most, while there is something to sync.
pub const SYNC_EVERY: Duration = Duration::from_millis(100);
/// Rows in a batch after which it is committed without waiting for the time.
pub const BATCH_ROWS: usize = 20_000;

/// Admitted fingerprints, 16 bytes each, in order.
pub const ADMITTED: &str = "state/admitted.log";
/// Index lines, unsorted.
pub const INDEX_LINES: &str = "state/index.lines";
/// Heritrix's crawl.log.
pub const CRAWL_LOG: &str = "logs/crawl.log";
/// Fields of pages.
pub const PAGES: &str = "pages.jsonl";

const TAIL_KEY: &[u8] = b"tail";
const JOB_KEY: &[u8] = b"job";
const SEED_PREFIX: &[u8] = b"seed/";
const WIDEN_PREFIX: &[u8] = b"widen/";

/// What the files hold that the store vouches for, and the totals up to there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Covered bytes of the admission log.
    pub admitted: u64,
    /// Covered bytes of crawl.log.
    pub log: u64,
    /// Covered bytes of the index lines.
    pub index: u64,
    /// Covered bytes of pages.jsonl.
    pub pages: u64,
    /// Name of the newest WARC file and its covered bytes.
    pub archive: Option<(String, u64)>,
    /// Serial of the next WARC file.
    pub serial: u32,
    /// The next sequence number of a place.
    pub next_sequence: u64,
    /// The seeds have been offered.
    pub seeds_offered: bool,
    /// Totals.
    pub counters: Counters,
    /// Start of the first run.
    pub started: Time,
    /// Runs, the present one included.
    pub runs: u64,
    /// Time spent crawling over all runs, microseconds.
    pub wall_us: u64,
    /// CPU time over all runs, microseconds.
    pub cpu_us: u64,
    /// Largest resident memory over all runs, bytes.
    pub peak_rss: u64,
    /// Filter checkpoints published.
    pub checkpoints: u64,
    /// Longest time that insertion stood still for a checkpoint, microseconds.
    pub checkpoint_pause_us: u64,
}

/// The constants of a job, written once with its first batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRow {
    /// Key of the fingerprints.
    pub key: crate::hash::HashKey,
    /// The rules of identity.
    pub identity: Identity,
}

/// One line of crawl.log, but for what only the ledger knows.
#[derive(Debug, Clone)]
pub struct LogEntry {
    /// Columns 1 to 11 as they are written.
    pub columns: String,
    /// Annotations.
    pub annotations: Vec<String>,
    /// Further keys of the JSON column.
    pub extra: serde_json::Map<String, serde_json::Value>,
}

/// A fact with the bytes that go with it.
#[derive(Debug)]
pub struct Entry {
    /// The fact.
    pub fact: Fact,
    /// The WARC members, if the exchange is archived.
    pub members: Option<Members>,
    /// The log line, if there is one.
    pub log: Option<LogEntry>,
    /// A line of pages.jsonl with its line end.
    pub page: Option<String>,
}

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
        self.map_err(|source| WriteError { what: what.to_owned(), source })
    }
}

struct WarcFile {
    name: String,
    file: Box<dyn Append>,
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
    tail: Tail,
    batch: Batch,
    /// Digests in the batch.
    digests: HashMap<[u8; 20], Original>,
    warc: Option<WarcFile>,
    admitted: Box<dyn Append>,
    log: Box<dyn Append>,
    index: Box<dyn Append>,
    pages: Box<dyn Append>,
    prints: Vec<u8>,
    written: u64,
}

/// What a ledger finds in the store when it opens.
#[derive(Debug)]
pub struct Found {
    /// The job's constants, if the job is not new.
    pub job: Option<JobRow>,
    /// The tail, empty for a new job.
    pub tail: Tail,
    /// Addresses that widened the scope.
    pub widened: Vec<String>,
}

/// Reads what the store says of a job, before anything is changed.
///
/// # Errors
/// If the store cannot be read, or a row is not what this version writes.
pub fn look(store: &dyn Store) -> io::Result<Found> {
    let read = |key: &[u8]| store.get(Table::Meta, key);
    let job = read(JOB_KEY)?.map(|bytes| decode(&bytes)).transpose()?;
    let tail = read(TAIL_KEY)?.map(|bytes| decode(&bytes)).transpose()?.unwrap_or_default();
    let rows = store.range(Table::Meta, WIDEN_PREFIX, true, WIDEN_PREFIX, usize::MAX)?;
    let widened = rows.into_iter().map(|(_, value)| String::from_utf8_lossy(&value).into_owned()).collect();
    Ok(Found { job, tail, widened })
}

fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data always encodes")]
    postcard::to_stdvec(value).expect("a row encodes")
}

impl Ledger {
    /// Opens the files of a job and cuts them to what the store covers. `job` is written with the first batch of a new
    /// job.
    ///
    /// # Errors
    /// If a file cannot be opened or cut, or is shorter than the store says: then it was damaged from outside.
    pub fn open(
        store: Box<dyn Store>,
        disk: Arc<dyn Disk>,
        archive: Option<ArchiveSettings>,
        found: &Found,
        job: &JobRow,
    ) -> Result<Self, WriteError> {
        let tail = found.tail.clone();
        let open = |name: &str, len: u64| {
            let mut file = disk.append(name).naming(name)?;
            file.truncate(len).naming(name)?;
            Ok(file)
        };
        let admitted = open(ADMITTED, tail.admitted)?;
        let log = open(CRAWL_LOG, tail.log)?;
        let index = open(INDEX_LINES, tail.index)?;
        let pages = open(PAGES, tail.pages)?;
        let mut batch = Batch::default();
        if found.job.is_none() {
            batch.put(Table::Meta, JOB_KEY, encode(job));
        }
        let mut ledger = Self {
            store,
            disk,
            archive,
            identity: job.identity.clone(),
            tail,
            batch,
            digests: HashMap::new(),
            warc: None,
            admitted,
            log,
            index,
            pages,
            prints: Vec::new(),
            written: 0,
        };
        ledger.mend_archive()?;
        Ok(ledger)
    }

    /// Cuts the newest WARC file to its covered bytes and removes files that are not covered at all.
    fn mend_archive(&mut self) -> Result<(), WriteError> {
        let covered = self.tail.archive.clone();
        for name in self.disk.list("archive").naming("archive")? {
            let Some(archive) = &self.archive else { break };
            let Some(serial) = naming::serial(&archive.prefix, &name) else { continue };
            if serial >= self.tail.serial {
                self.disk.remove(&format!("archive/{name}")).naming(&name)?;
            }
        }
        let Some((name, len)) = covered else { return Ok(()) };
        let open = format!("archive/{}", naming::open_name(&name));
        let closed = format!("archive/{name}");
        if self.disk.read(&open).naming(&open)?.is_some() {
            let mut file = self.disk.append(&open).naming(&open)?;
            file.truncate(len).naming(&open)?;
            self.warc = Some(WarcFile { name, file });
        } else {
            let mut file = self.disk.append(&closed).naming(&closed)?;
            file.truncate(len).naming(&closed)?;
            self.tail.archive = None;
        }
        Ok(())
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

    /// Is the batch so large that it must not wait?
    #[must_use]
    pub fn is_heavy(&self) -> bool {
        self.batch.len() >= BATCH_ROWS
    }

    /// Appends a fact's bytes and adds its changes to the batch.
    ///
    /// # Errors
    /// If a file cannot be written; the ledger must not be used afterwards.
    pub fn write(&mut self, entry: Entry, now: Time) -> Result<(), WriteError> {
        let Entry { fact, members, log, page } = entry;
        debug_assert_eq!(fact.number, self.written + 1, "facts come in order");
        self.written = fact.number;
        let archived = match members {
            Some(members) if self.archive.is_some() => Some(self.archive(&members, now)?),
            _ => None,
        };
        if let Some(log) = log {
            let line = log.line(archived.as_ref());
            self.log.append(line.as_bytes()).naming(CRAWL_LOG)?;
        }
        if let Some(page) = page {
            self.pages.append(page.as_bytes()).naming(PAGES)?;
        }
        self.admit(&fact.prints)?;
        self.batch_fact(&fact);
        self.tail.counters.add(&fact.delta);
        // only now: closing a file commits, and a commit must cover whole facts
        let size = self.archive.as_ref().map_or(u64::MAX, |archive| archive.size);
        if self.warc.as_ref().is_some_and(|warc| warc.file.len() >= size) {
            self.close_archive()?;
        }
        Ok(())
    }

    fn admit(&mut self, prints: &[Fingerprint]) -> Result<(), WriteError> {
        self.prints.clear();
        for print in prints {
            self.prints.extend_from_slice(&print.to_bytes());
        }
        if self.prints.is_empty() { Ok(()) } else { self.admitted.append(&self.prints).naming(ADMITTED) }
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
            self.batch.put(Table::Hosts, &host.to_be_bytes(), encode(row));
        }
        if let Some((host, scheme, bytes)) = &fact.robots {
            self.batch.put(Table::Robots, &robots_key(*host, *scheme), bytes.clone());
        }
        if let Some((number, result)) = &fact.seed {
            self.batch.put(Table::Meta, &numbered(SEED_PREFIX, *number), encode(result));
        }
        if let Some(address) = &fact.widen {
            self.batch.put(Table::Meta, &[WIDEN_PREFIX, address.as_bytes()].concat(), address.clone().into_bytes());
        }
        self.tail.seeds_offered |= fact.seeds_offered;
        // a batch is never empty after a fact: counters and tail change with every one
        self.batch.put(Table::Meta, TAIL_KEY, Vec::new());
    }

    /// Appends the members of an exchange: a response, or a revisit if its payload is in the archive already.
    fn archive(&mut self, members: &Members, now: Time) -> Result<Archived, WriteError> {
        let original = self.original(members)?;
        let revisit = original.as_ref().map(|original| warc::revisit(members, original));
        let (name, mut offset) = self.warc_file(now)?;
        let first = offset;
        let main = revisit.as_deref().unwrap_or(&members.response);
        let parts = [main, members.request.as_slice(), members.metadata.as_slice()];
        let Some(warc) = &mut self.warc else { unreachable!("opened one line above") };
        for part in parts {
            warc.file.append(part).naming(&name)?;
            offset += part.len() as u64;
        }
        let line = cdxj::line(&members.meta, revisit.is_some(), &name, first, main.len() as u64);
        self.index.append(format!("{line}\n").as_bytes()).naming(INDEX_LINES)?;
        let records = &mut self.tail.counters.records;
        records.request += 1;
        records.metadata += 1;
        if revisit.is_some() {
            records.revisit += 1;
        } else {
            records.response += 1;
            self.remember_digest(members);
        }
        self.tail.counters.bytes.archived += offset - first;
        self.cover(&name, offset);
        Ok(Archived { file: name, offset: first, revisit: revisit.is_some() })
    }

    fn cover(&mut self, name: &str, len: u64) {
        self.tail.archive = Some((name.to_owned(), len));
    }

    fn original(&self, members: &Members) -> Result<Option<Original>, WriteError> {
        if members.meta.payload_len == 0 || members.truncated.is_some() {
            return Ok(None);
        }
        let digest = &members.meta.payload_sha1;
        if let Some(original) = self.digests.get(digest) {
            return Ok(Some(original.clone()));
        }
        let row = self.store.get(Table::Digests, digest).naming("state/store")?;
        row.map(|bytes| decode(&bytes)).transpose().naming("state/store")
    }

    fn remember_digest(&mut self, members: &Members) {
        let meta = &members.meta;
        if meta.payload_len == 0 || members.truncated.is_some() {
            return;
        }
        let original = Original { record_id: meta.record_id.clone(), uri: meta.uri.clone(), date: meta.date };
        self.batch.put(Table::Digests, &meta.payload_sha1, encode(&original));
        self.digests.insert(meta.payload_sha1, original);
    }

    /// The open WARC file (its final name) and its length; opened with a warcinfo record if none is.
    fn warc_file(&mut self, now: Time) -> Result<(String, u64), WriteError> {
        if let Some(warc) = &self.warc {
            return Ok((warc.name.clone(), warc.file.len()));
        }
        let Some(archive) = &self.archive else { unreachable!("called only with an archive") };
        let name = naming::file_name(&archive.prefix, now, self.tail.serial);
        let path = format!("archive/{}", naming::open_name(&name));
        let mut file = self.disk.append(&path).naming(&path)?;
        let opening = warc::warcinfo(&archive.info, &name, now);
        file.append(&opening).naming(&path)?;
        let len = file.len();
        self.tail.serial += 1;
        self.tail.counters.records.warcinfo += 1;
        self.tail.counters.archive_files += 1;
        self.tail.counters.bytes.archived += opening.len() as u64;
        self.cover(&name, len);
        self.warc = Some(WarcFile { name: name.clone(), file });
        Ok((name, len))
    }

    /// Closes the open WARC file: synced, renamed, covered by the next batch.
    ///
    /// # Errors
    /// If the system cannot.
    pub fn close_archive(&mut self) -> Result<(), WriteError> {
        // what the file holds is covered before it gets its final name, so that a name without `.open` is a whole file
        self.sync()?;
        let Some(WarcFile { name, .. }) = self.warc.take() else { return Ok(()) };
        let open = naming::open_name(&name);
        self.disk.rename(&format!("archive/{open}"), &format!("archive/{name}")).naming(&name)?;
        self.tail.archive = None;
        Ok(())
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
        let files = [(&mut self.admitted, ADMITTED), (&mut self.log, CRAWL_LOG), (&mut self.index, INDEX_LINES)];
        for (file, name) in files.into_iter().chain([(&mut self.pages, PAGES)]) {
            file.sync().naming(name)?;
        }
        self.tail.admitted = self.admitted.len();
        self.tail.log = self.log.len();
        self.tail.index = self.index.len();
        self.tail.pages = self.pages.len();
        let mut batch = std::mem::take(&mut self.batch);
        batch.put(Table::Meta, TAIL_KEY, encode(&self.tail));
        self.store.commit(batch, true).naming("state/store")?;
        self.digests.clear();
        Ok(())
    }

    /// Commits the tail even if no fact is waiting (totals of the run, closed files).
    ///
    /// # Errors
    /// As [`Ledger::sync`].
    pub fn sync_tail(&mut self) -> Result<(), WriteError> {
        self.batch.put(Table::Meta, TAIL_KEY, Vec::new());
        self.sync()
    }

    /// Reads a host's rows after a place and its robots.txt. What was written before is committed first, so that the
    /// answer holds every fact that came before the question.
    ///
    /// # Errors
    /// If the store cannot be written or read.
    pub fn refill(
        &mut self,
        host: HostId,
        after: Option<Place>,
        robots: Option<Scheme>,
    ) -> Result<Refilled, WriteError> {
        self.sync()?;
        let rows = after.map(|after| self.rows(host, after)).transpose()?;
        let robots = match robots {
            Some(scheme) => {
                Some((scheme, self.store.get(Table::Robots, &robots_key(host, scheme)).naming("state/store")?))
            }
            None => None,
        };
        Ok(Refilled { host, rows, robots })
    }

    fn rows(&self, host: HostId, after: Place) -> Result<(Rows, bool), WriteError> {
        let prefix = host.to_be_bytes();
        let found = self.store.range(Table::Queue, &after.row_key(host), false, &prefix, REFILL_ROWS);
        let found = found.naming("state/store")?;
        let complete = found.len() < REFILL_ROWS;
        let mut rows = Vec::with_capacity(found.len());
        for (key, value) in found {
            let place = Place::from_row_key(&key).map(|(_, place)| place);
            let item = Item::from_row(&value, &self.identity);
            match (place, item) {
                (Some(place), Ok(item)) => rows.push((place, item)),
                (_, item) => {
                    let why = item.err().unwrap_or_else(|| "a key of another form".to_owned());
                    let source = io::Error::new(io::ErrorKind::InvalidData, why);
                    return Err(WriteError { what: "state/store: queue".to_owned(), source });
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
        let rows = self.store.range(Table::Meta, SEED_PREFIX, true, SEED_PREFIX, usize::MAX).naming("state/store")?;
        let mut seeds = HashMap::new();
        for (key, value) in rows {
            let number = key.get(SEED_PREFIX.len()..).and_then(|n| n.try_into().ok()).map(u64::from_be_bytes);
            if let (Some(number), Ok(result)) = (number, decode(&value)) {
                seeds.insert(number, result);
            }
        }
        Ok(seeds)
    }
}

/// Hosts in order of their ids, each with whether the queue holds rows of it.
///
/// # Errors
/// If the store cannot be read or a row is not what this version writes.
pub fn hosts(store: &dyn Store, mut each: impl FnMut(HostRow, bool)) -> io::Result<()> {
    const AT_ONCE: usize = 1_000;
    let mut after: Option<Vec<u8>> = None;
    loop {
        let start = after.as_deref().unwrap_or(&[]);
        let rows = store.range(Table::Hosts, start, after.is_none(), &[], AT_ONCE)?;
        let last = rows.last().map(|(key, _)| key.clone());
        for (key, value) in &rows {
            let row: HostRow = decode(value)?;
            let id = key.as_slice().try_into().map_or(HostId::MAX, HostId::from_be_bytes);
            let has_rows = !store.range(Table::Queue, &row.low.row_key(id), true, key, 1)?.is_empty();
            each(row, has_rows);
        }
        if rows.len() < AT_ONCE {
            return Ok(());
        }
        after = last;
    }
}

fn robots_key(host: HostId, scheme: Scheme) -> [u8; 5] {
    let [a, b, c, d] = host.to_be_bytes();
    [a, b, c, d, u8::from(scheme == Scheme::Https)]
}

fn numbered(prefix: &[u8], number: u64) -> Vec<u8> {
    [prefix, &number.to_be_bytes()].concat()
}

/// Where an exchange went.
#[derive(Debug)]
struct Archived {
    file: String,
    offset: u64,
    revisit: bool,
}

impl LogEntry {
    fn line(mut self, archived: Option<&Archived>) -> String {
        if let Some(archived) = archived {
            if archived.revisit {
                self.annotations.push("duplicate:digest".to_owned());
            }
            self.extra.insert("warcFilename".to_owned(), archived.file.clone().into());
            self.extra.insert("warcFileOffset".to_owned(), archived.offset.into());
        }
        let annotations = if self.annotations.is_empty() { "-".to_owned() } else { self.annotations.join(",") };
        format!("{} {annotations} {}\n", self.columns, serde_json::Value::Object(self.extra))
    }
}
