//! Rows and lines: what the ledger writes, in the form in which it is read again.

use std::io;

use serde::{Deserialize, Serialize};

use super::survey::SURVEY_KEY;
use super::{
    BLOCKED_KEY, ENTRIES_DROPPED_KEY, FORGOTTEN_PREFIX, IMPORTED_KEY, JOB_KEY, KIND_KEY, LINKS_KEY, LISTED_KEY,
    ORIGIN_PREFIX, PAGES_KEY, PageRows, REPEATS_KEY, RULES_KEY, SECRETS_KEY, SKIPPED_KEY, TAIL_KEY, TEXTS_CUT_KEY,
    TRAP_COUNTS_KEY, TRAP_PREFIX, WIDEN_PREFIX,
};
use crate::archive::warc::Members;
use crate::clock::Time;
use crate::cookies::Jar;
use crate::frontier::HostId;
use crate::hash::Fingerprint;
use crate::seen::Kind;
use crate::shard::{Fact, HostRow};
use crate::stats::Counters;
use crate::store::{Batch, Store, Table};
use crate::survey::Survey;
use crate::url::{Identity, Rules, Scheme};

/// What the files hold that the store vouches for, and the totals up to there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail {
    /// Covered bytes of the admission log.
    pub admitted: u64,
    /// Covered bytes of crawl.log.
    pub log: u64,
    /// Covered bytes of the index lines.
    pub index: u64,
    /// Covered bytes of the plain pages.jsonl that earlier versions wrote.
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    /// Key of the fingerprints.
    pub key: crate::hash::HashKey,
    /// The rules of identity.
    pub identity: Identity,
}

impl JobRow {
    /// Two rows: the switches have one of their own, because the first jobs had none.
    pub(super) fn put(&self, batch: &mut Batch) {
        batch.put(Table::Meta, JOB_KEY, encode(&(self.key, self.identity.version)));
        batch.put(Table::Meta, RULES_KEY, encode(&self.identity.rules));
    }

    fn read(job: &[u8], rules: Option<&[u8]>) -> io::Result<Self> {
        let (key, version) = decode(job)?;
        let rules: Rules = rules.map(decode).transpose()?.unwrap_or_default();
        let identity = Identity { version, rules };
        Ok(Self { key, identity })
    }
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
    /// What is written of a page besides.
    pub rows: PageRows,
}

/// What a ledger finds in the store when it opens.
#[derive(Debug)]
pub struct Found {
    /// The job's constants, if the job is not new.
    pub job: Option<JobRow>,
    /// The tail, empty for a new job.
    pub tail: Tail,
    /// Addresses that widened the scope, and the seeds whose own rules they widened, or zero.
    pub widened: Vec<(String, u64)>,
    /// URLs fetched under seeds with rules of their own, by the number of the seed.
    pub origins: Vec<(u64, u64)>,
    /// The cookies.txt that was taken last.
    pub imported: Option<Fingerprint>,
    /// URLs admitted from sitemaps.
    pub listed: u64,
    /// The names of the passwords that the job was crawled with last; none of a job of a version that did not note them.
    pub secrets: Vec<String>,
    /// Covered bytes of [`super::PAGES`].
    pub pages: u64,
    /// Covered bytes of [`super::LINKS`].
    pub links: u64,
    /// The kind of the job's seen-set; a job of before there were several has none.
    pub kind: Option<Kind>,
    /// Which records of the admission log take a key out again: where they begin, and how many.
    pub forgotten: Vec<(u64, u64)>,
    /// The survey, as it was kept last.
    pub survey: Option<Vec<u8>>,
}

impl Found {
    /// The admission log as the store vouches for it.
    #[must_use]
    pub fn admissions(&self) -> Admissions {
        Admissions {
            records: self.tail.admitted / Fingerprint::BYTES as u64,
            forgotten: self.forgotten.clone(),
        }
    }

    /// The survey to go on with. One that cannot be read, or none, begins anew: it is worth no job.
    pub(super) fn survey(&self, job: &JobRow) -> Survey {
        let kept = self.survey.as_deref().map(|row| Survey::from_row(job.key, row));
        match kept {
            Some(Ok(survey)) => survey,
            Some(Err(error)) => {
                tracing::warn!("{error}; it begins anew");
                Survey::new(job.key)
            }
            None => Survey::new(job.key),
        }
    }
}

/// The admission log: 16 bytes a record, in order. A record is an admitted URL, or one that was forgotten again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Admissions {
    /// Records, of both kinds.
    pub records: u64,
    /// Where records begin that take a key out, and how many there are, in order.
    pub forgotten: Vec<(u64, u64)>,
}

impl Admissions {
    /// Does this record take its key out?
    #[must_use]
    pub fn takes_out(&self, record: u64) -> bool {
        let before = self.forgotten.partition_point(|(start, _)| *start <= record);
        let range = before.checked_sub(1).and_then(|at| self.forgotten.get(at));
        range.is_some_and(|(start, count)| record - start < *count)
    }

    /// Does any record from this one on take its key out?
    #[must_use]
    pub fn takes_out_from(&self, record: u64) -> bool {
        self.forgotten.iter().any(|(start, count)| start + count > record)
    }
}

/// Reads what the store says of a job, before anything is changed.
///
/// # Errors
/// If the store cannot be read, or a row is not what this version writes.
pub fn look(store: &dyn Store) -> io::Result<Found> {
    let read = |key: &[u8]| store.get(Table::Meta, key);
    let rules = read(RULES_KEY)?;
    let job = read(JOB_KEY)?.map(|bytes| JobRow::read(&bytes, rules.as_deref()));
    let job = job.transpose()?;
    let mut tail: Tail = read(TAIL_KEY)?
        .map(|bytes| decode(&bytes))
        .transpose()?
        .unwrap_or_default();
    // not in the tail, because jobs of earlier versions have none
    if let Some(bytes) = read(TEXTS_CUT_KEY)? {
        tail.counters.texts_cut = decode(&bytes)?;
    }
    if let Some(bytes) = read(REPEATS_KEY)? {
        tail.counters.repeats = decode(&bytes)?;
    }
    if let Some(bytes) = read(ENTRIES_DROPPED_KEY)? {
        tail.counters.entries_dropped = decode(&bytes)?;
    }
    if let Some(bytes) = read(BLOCKED_KEY)? {
        tail.counters.blocked = decode(&bytes)?;
    }
    let traps = read(TRAP_COUNTS_KEY)?.map(|bytes| decode(&bytes)).transpose()?;
    tail.counters.traps = traps.unwrap_or_default();
    let skipped = read(SKIPPED_KEY)?.map(|bytes| decode(&bytes)).transpose()?;
    tail.counters.skipped = skipped.unwrap_or_default();
    let rows = store.range(Table::Meta, WIDEN_PREFIX, true, WIDEN_PREFIX, usize::MAX)?;
    let widened = rows
        .into_iter()
        .map(|(_, value)| {
            let row = String::from_utf8_lossy(&value).into_owned();
            // an address has no space in it
            match row.split_once(' ') {
                Some((address, origin)) => (address.to_owned(), origin.parse().unwrap_or(0)),
                None => (row, 0),
            }
        })
        .collect();
    let rows = store.range(Table::Meta, ORIGIN_PREFIX, true, ORIGIN_PREFIX, usize::MAX)?;
    let mut origins = Vec::with_capacity(rows.len());
    for (key, value) in rows {
        let number = key.get(ORIGIN_PREFIX.len()..).and_then(|number| number.try_into().ok());
        if let Some(number) = number.map(u64::from_be_bytes) {
            origins.push((number, decode(&value)?));
        }
    }
    let imported = read(IMPORTED_KEY)?.map(|bytes| decode(&bytes)).transpose()?;
    let kind = read(KIND_KEY)?.map(|name| kind_of(&name)).transpose()?;
    let rows = store.range(Table::Meta, FORGOTTEN_PREFIX, true, FORGOTTEN_PREFIX, usize::MAX)?;
    let mut forgotten = Vec::with_capacity(rows.len());
    for (key, count) in rows {
        let start = key
            .get(FORGOTTEN_PREFIX.len()..)
            .and_then(|start| start.try_into().ok());
        let start = start.ok_or_else(|| invalid("a row of forgotten URLs with another key"))?;
        forgotten.push((u64::from_be_bytes(start), decode(&count)?));
    }
    let number = |key| -> io::Result<u64> { read(key)?.map_or(Ok(0), |bytes| decode(&bytes)) };
    let (listed, pages, links) = (number(LISTED_KEY)?, number(PAGES_KEY)?, number(LINKS_KEY)?);
    Ok(Found {
        job,
        tail,
        widened,
        origins,
        imported,
        listed,
        secrets: read(SECRETS_KEY)?
            .map(|bytes| decode(&bytes))
            .transpose()?
            .unwrap_or_default(),
        pages,
        links,
        kind,
        forgotten,
        survey: read(SURVEY_KEY)?,
    })
}

fn kind_of(name: &[u8]) -> io::Result<Kind> {
    let known = Kind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name);
    known.ok_or_else(|| {
        let name = String::from_utf8_lossy(name);
        invalid(&format!("a seen-set of kind {name}, which this program does not know"))
    })
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

pub(super) fn decode<T: for<'a> Deserialize<'a>>(bytes: &[u8]) -> io::Result<T> {
    postcard::from_bytes(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

/// Puts a counter that has a row of its own, if it has grown.
pub(super) fn put_total(batch: &mut Batch, key: &[u8], before: u64, more: u64) {
    if more > 0 {
        batch.put(Table::Meta, key, encode(&(before + more)));
    }
}

pub(super) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "plain data always encodes")]
    postcard::to_stdvec(value).expect("a row encodes")
}

/// The cookies of the job so far.
///
/// # Errors
/// If the store cannot be read, or a row is not what this version writes.
pub fn cookies(store: &dyn Store) -> io::Result<Jar> {
    const AT_ONCE: usize = 1_000;
    let invalid = |text: String| io::Error::new(io::ErrorKind::InvalidData, text);
    let mut jar = Jar::default();
    let mut after = Vec::new();
    loop {
        let rows = store.range(Table::Cookies, &after, false, &[], AT_ONCE)?;
        for (site, row) in &rows {
            let site = String::from_utf8_lossy(site);
            jar.load(&site, row)
                .map_err(|error| invalid(format!("cookies of {site}: {error}")))?;
        }
        match rows.last() {
            Some((site, _)) if rows.len() == AT_ONCE => after.clone_from(site),
            _ => return Ok(jar),
        }
    }
}

/// What earlier runs knew of hosts' traps.
///
/// # Errors
/// If the store cannot be read.
pub fn traps(store: &dyn Store, mut each: impl FnMut(HostId, &[u8])) -> io::Result<()> {
    const AT_ONCE: usize = 1_000;
    let mut after = TRAP_PREFIX.to_vec();
    loop {
        let rows = store.range(Table::Meta, &after, false, TRAP_PREFIX, AT_ONCE)?;
        for (key, row) in &rows {
            let host = key.get(TRAP_PREFIX.len()..).and_then(|host| host.try_into().ok());
            if let Some(host) = host.map(HostId::from_be_bytes) {
                each(host, row);
            }
        }
        match rows.last() {
            Some((key, _)) if rows.len() == AT_ONCE => after.clone_from(key),
            _ => return Ok(()),
        }
    }
}

/// The robots.txt of an origin, as it was received.
///
/// # Errors
/// If the store cannot be read.
pub fn robots_txt(store: &dyn Store, host: HostId, scheme: Scheme) -> io::Result<Option<Vec<u8>>> {
    store.get(Table::Robots, &super::robots_key(host, scheme))
}

/// Hosts in order of their ids, each with whether the queue holds rows of it.
///
/// # Errors
/// If the store cannot be read, a row is not what this version writes, or a host is missing.
pub fn hosts(store: &dyn Store, mut each: impl FnMut(HostRow, bool)) -> io::Result<()> {
    const AT_ONCE: usize = 1_000;
    let mut next: HostId = 0;
    loop {
        let rows = store.range(Table::Hosts, &next.to_be_bytes(), true, &[], AT_ONCE)?;
        for (key, value) in &rows {
            if *key != next.to_be_bytes() {
                let text = format!("host {next} is missing");
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            let row = HostRow::from_bytes(value);
            let row = row.map_err(|why| io::Error::new(io::ErrorKind::InvalidData, format!("host {next}: {why}")))?;
            let has_rows = !store
                .range(Table::Queue, &row.low.row_key(next), true, key, 1)?
                .is_empty();
            each(row, has_rows);
            next += 1;
        }
        if rows.len() < AT_ONCE {
            return Ok(());
        }
    }
}
