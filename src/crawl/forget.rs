//! Forgetting: URLs that were admitted are taken out of the seen-set again, so that they are fetched once more.
//!
//! It is done between two runs, under the job's lock. What is forgotten, and what is pending again, is one batch of the ledger:
//! records at the end of the admission log that take keys out, and behind them the records and the rows of what is admitted anew. Killed
//! before the batch nothing was done; killed after it all is. The filter on disk is not touched: the next start takes the keys
//! out of it, as the log says.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path as FilePath;
use std::sync::Arc;

use regex::Regex;
use tokio::time::Instant;

use super::drive::Clock;
use super::{CrawlError, open_store, restore, start, wall_clock};
use crate::checkpoint;
use crate::config::Config;
use crate::disk::{Disk, Folder};
use crate::extract::LinkKind;
use crate::frontier::{HostId, Item, Place};
use crate::hash::Fingerprint;
use crate::job::Job;
use crate::ledger::{self, Entry, Found, JobRow, Ledger, PageRows};
use crate::seen::Kind;
use crate::shard::Link;
use crate::stats::LinkCounts;
use crate::store::{Store, Table};
use crate::url::{CrawlUrl, Identity};

/// Most URLs forgotten at once: they are one batch.
pub const MAX_FORGOTTEN: usize = 1_000_000;
/// Longest line of crawl.log that is looked at, bytes.
const MAX_LINE: u64 = 1 << 20;
/// Rows read of the store at once.
const ROWS_AT_ONCE: usize = 1_000;

/// What is to be forgotten. Without names, patterns and prefixes everything that is old enough is.
#[derive(Debug, Default)]
pub struct Request {
    /// URLs by name.
    pub urls: Vec<String>,
    /// URLs that one of these finds.
    pub patterns: Vec<Regex>,
    /// URLs that begin like this.
    pub prefixes: Vec<String>,
    /// URLs whose last attempt is older than this time, as crawl.log writes it.
    pub older_than: Option<String>,
    /// The kind of seen-set that the job goes on with.
    pub kind: Option<Kind>,
    /// Do not queue them: they are fetched again when a page links to them.
    pub when_linked: bool,
}

impl Request {
    fn asks_the_log(&self) -> bool {
        !self.patterns.is_empty() || !self.prefixes.is_empty() || self.older_than.is_some()
    }

    fn wants(&self, url: &str) -> bool {
        self.patterns.is_empty() && self.prefixes.is_empty()
            || self.patterns.iter().any(|pattern| pattern.is_match(url))
            || self.prefixes.iter().any(|prefix| url.starts_with(prefix.as_str()))
    }

    fn is_old(&self, time: &str) -> bool {
        // both are UTC in one form, so their texts are in order like their times
        self.older_than.as_deref().is_none_or(|limit| time < limit)
    }
}

/// What was done.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// URLs taken out.
    pub forgotten: u64,
    /// Those of them that are pending again.
    pub queued: u64,
    /// URLs that are pending anyway: they were left alone.
    pub pending: u64,
    /// Named URLs that were never admitted.
    pub unknown: Vec<String>,
}

/// A URL to be forgotten.
struct Candidate {
    url: CrawlUrl,
    /// Hops from a seed, as crawl.log has them.
    hops: String,
    named: bool,
    /// Time of the last attempt.
    last: String,
}

type Candidates = HashMap<Fingerprint, Candidate>;

/// Forgets URLs of a job.
///
/// # Errors
/// [`CrawlError::Usage`] if the kind of the job's seen-set cannot forget, or too much is asked for; others as a crawl's.
pub fn forget(job: &Job, request: &Request) -> Result<Forgotten, CrawlError> {
    let dir = job.dir.as_path();
    let state = |error: std::io::Error| CrawlError::State(format!("{}: {error}", dir.join("state").display()));
    let mut store: Box<dyn Store> = Box::new(open_store(dir)?);
    let disk: Arc<dyn Disk> = Arc::new(Folder::new(dir.to_owned()));
    let found = ledger::look(store.as_ref()).map_err(state)?;
    ledger::check(disk.as_ref(), &found)
        .map_err(|error| CrawlError::State(format!("{error}; the job's state is damaged and nothing was changed")))?;
    let Some(row) = found.job.clone() else {
        return Err(CrawlError::Usage(format!("{}: the job has not begun", dir.display())));
    };
    let mut plan = start::plan(&Config::default(), &[], None, None, dir)?;
    plan.seen = request.kind.or(found.kind);
    let now = wall_clock();
    let clock = Clock {
        anchor: now,
        started: Instant::now(),
    };
    let mut shard = restore::shard(&plan, &found, &row, store.as_ref(), disk.as_ref(), clock, true)?;
    let kind = shard.seen().account().kind;
    if !kind.forgets() {
        return Err(CrawlError::Usage(cannot(kind)));
    }
    let mut candidates = candidates(dir, request, &row)?;
    let mut done = Forgotten::default();
    keep_admitted(disk.as_ref(), &found, &mut candidates, &mut done).map_err(state)?;
    leave_pending(store.as_ref(), &row, &mut candidates, &mut done).map_err(state)?;
    if candidates.is_empty() {
        return Ok(done);
    }
    restore::fill(kind, &found, store.as_mut(), disk.as_ref())?;
    let mut chosen: Vec<_> = candidates.into_iter().collect();
    // by name, so that the same question has the same answer
    chosen.sort_unstable_by(|(_, a), (_, b)| a.url.href().cmp(b.url.href()));
    let prints: Vec<_> = chosen.iter().map(|(print, _)| *print).collect();
    // from here on a finished job has something left to do
    job.unmark_finished()
        .map_err(|error| CrawlError::State(error.to_string()))?;
    let mut ledger = Ledger::open(store, disk, None, &found, &row, kind)?;
    ledger.forget(&prints)?;
    done.forgotten = prints.len() as u64;
    if !request.when_linked {
        for print in &prints {
            shard.seen_mut().remove(*print);
        }
        shard.seen_mut().told(&prints, &vec![false; prints.len()]);
        let links: Vec<_> = chosen
            .into_iter()
            .map(|(print, candidate)| link(print, candidate))
            .collect();
        let counts = LinkCounts {
            found: links.len() as u64,
            ..LinkCounts::default()
        };
        let fact = shard.offer_seeds(links, counts, now);
        done.queued = fact.delta.links.admitted;
        let entry = Entry {
            fact,
            members: None,
            log: None,
            rows: PageRows::default(),
        };
        ledger.write(entry, now)?;
    }
    ledger.sync_tail()?;
    Ok(done)
}

/// Why a kind cannot, and what can.
fn cannot(kind: Kind) -> String {
    format!(
        "the job's seen-set is of kind {}, which cannot forget: the bits of a URL are bits of other URLs too, and to clear them \
         would make those unseen; make it one that can out of the job's admission log, with --seen tags (5 bytes a URL; also \
         counting, cuckoo, quotient, exact, hashset)",
        kind.name()
    )
}

/// What is named, and what crawl.log says of the rest.
fn candidates(dir: &FilePath, request: &Request, job: &JobRow) -> Result<Candidates, CrawlError> {
    let mut candidates = Candidates::new();
    for name in &request.urls {
        let url = CrawlUrl::parse(name, &job.identity)
            .map_err(|why| CrawlError::Usage(format!("{name}: is no URL that can be crawled: {why}")))?;
        let print = job.key.fingerprint(url.canonical().as_bytes());
        let (hops, last) = (String::new(), String::new());
        candidates.insert(
            print,
            Candidate {
                url,
                hops,
                named: true,
                last,
            },
        );
    }
    each_attempt(&dir.join(ledger::CRAWL_LOG), |time, address, hops| {
        let wanted = request.asks_the_log() && request.wants(address);
        if !wanted && request.urls.is_empty() {
            return Ok(());
        }
        let Ok(url) = CrawlUrl::parse(address, &job.identity) else {
            return Ok(());
        };
        let print = job.key.fingerprint(url.canonical().as_bytes());
        if let Some(known) = candidates.get_mut(&print) {
            time.clone_into(&mut known.last);
            hops.clone_into(&mut known.hops);
        } else if wanted {
            let (hops, last) = (hops.to_owned(), time.to_owned());
            candidates.insert(
                print,
                Candidate {
                    url,
                    hops,
                    named: false,
                    last,
                },
            );
        }
        if candidates.len() > MAX_FORGOTTEN {
            return Err(CrawlError::Usage(format!(
                "more than {MAX_FORGOTTEN} URLs are asked for: forget them in parts, by --prefix or an earlier --older-than"
            )));
        }
        Ok(())
    })?;
    candidates.retain(|_, candidate| candidate.named || request.is_old(&candidate.last));
    Ok(candidates)
}

/// Time, address and hops of each line of crawl.log. Lines of robots.txt say nothing of an admitted URL.
fn each_attempt(
    path: &FilePath,
    mut each: impl FnMut(&str, &str, &str) -> Result<(), CrawlError>,
) -> Result<(), CrawlError> {
    let unreadable = |error: std::io::Error| CrawlError::State(format!("{}: {error}", path.display()));
    let mut file = match std::fs::File::open(path) {
        Ok(file) => BufReader::with_capacity(1 << 16, file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unreadable(error)),
    };
    let mut line = Vec::new();
    loop {
        line.clear();
        if file
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut line)
            .map_err(unreadable)?
            == 0
        {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            file.skip_until(b'\n').map_err(unreadable)?;
        }
        let text = String::from_utf8_lossy(&line);
        let mut columns = text.split_ascii_whitespace();
        let (time, address, hops) = (columns.next(), columns.nth(2), columns.next());
        if let (Some(time), Some(address), Some(hops)) = (time, address, hops) {
            each(time, address, if hops == "-" { "" } else { hops })?;
        }
    }
}

/// Leaves those that the admission log has, and that no record took out since.
fn keep_admitted(
    disk: &dyn Disk,
    found: &Found,
    candidates: &mut Candidates,
    done: &mut Forgotten,
) -> std::io::Result<()> {
    let admissions = found.admissions();
    let mut admitted = HashSet::new();
    checkpoint::records(disk, 0, admissions.records, |record, print| {
        if candidates.contains_key(&print) {
            if admissions.takes_out(record) {
                admitted.remove(&print);
            } else {
                admitted.insert(print);
            }
        }
        Ok(())
    })?;
    candidates.retain(|print, candidate| {
        let there = admitted.contains(print);
        if !there && candidate.named {
            done.unknown.push(candidate.url.href().to_owned());
        }
        there
    });
    done.unknown.sort_unstable();
    Ok(())
}

/// Leaves out what is pending: it will be fetched, and must not stand in the queue twice.
fn leave_pending(
    store: &dyn Store,
    job: &JobRow,
    candidates: &mut Candidates,
    done: &mut Forgotten,
) -> std::io::Result<()> {
    let names: HashSet<String> = candidates.values().map(|one| one.url.host_key().to_owned()).collect();
    let mut hosts: Vec<HostId> = Vec::new();
    let mut id: HostId = 0;
    ledger::hosts(store, |row, has_rows| {
        if has_rows && names.contains(row.name.as_str()) {
            hosts.push(id);
        }
        id += 1;
    })?;
    for host in hosts {
        let prefix = host.to_be_bytes();
        let mut after = Place::FIRST.row_key(host).to_vec();
        loop {
            let rows = store.range(Table::Queue, &after, false, &prefix, ROWS_AT_ONCE)?;
            for (_, row) in &rows {
                let print = print_of(row, &job.identity, job)?;
                done.pending += u64::from(candidates.remove(&print).is_some());
            }
            match rows.last() {
                Some((key, _)) if rows.len() == ROWS_AT_ONCE => after.clone_from(key),
                _ => break,
            }
        }
    }
    Ok(())
}

fn print_of(row: &[u8], identity: &Identity, job: &JobRow) -> std::io::Result<Fingerprint> {
    let item = Item::from_row(row, identity).map_err(std::io::Error::other)?;
    Ok(job.key.fingerprint(item.url.canonical().as_bytes()))
}

/// The URL as it was found: as deep, and what it was to its page.
fn link(print: Fingerprint, candidate: Candidate) -> Link {
    let hops = candidate.hops.trim_end_matches('R');
    let depth = hops.chars().filter(|hop| *hop == 'L').count();
    let requisite = hops.ends_with('E');
    Link {
        url: candidate.url,
        print,
        kind: match hops.chars().last() {
            Some('E') => LinkKind::Requisite,
            Some('M') => LinkKind::Sitemap,
            Some('X') => LinkKind::Speculative,
            _ => LinkKind::Navigation,
        },
        depth: u16::try_from(depth).unwrap_or(u16::MAX),
        requisites: u8::from(requisite),
        redirects: 0,
        // what it leads to must be a part of it too, wherever it is
        outside: requisite,
        offsite: 0,
        seed: None,
        lastmod: None,
        origin: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_is_told_from_name_and_time() {
        let request = Request {
            patterns: vec![Regex::new("/a[0-9]").unwrap()],
            prefixes: vec!["http://b/".to_owned()],
            older_than: Some("2011-06-23".to_owned()),
            ..Request::default()
        };
        assert!(request.asks_the_log());
        assert!(request.wants("http://x/a7") && request.wants("http://b/x") && !request.wants("http://x/b"));
        assert!(request.is_old("2011-06-22T23:59:59.999Z") && !request.is_old("2011-06-23T00:00:00.000Z"));
        let all = Request::default();
        assert!(!all.asks_the_log() && all.wants("http://x/") && all.is_old("2011-06-22T23:59:59.999Z"));
    }

    #[test]
    fn a_forgotten_url_is_as_deep_as_it_was() {
        let candidate = |hops: &str| Candidate {
            url: CrawlUrl::parse("http://example.com/", &Identity::default()).unwrap(),
            hops: hops.to_owned(),
            named: true,
            last: String::new(),
        };
        let made = |hops| {
            let link = link(Fingerprint::default(), candidate(hops));
            (link.kind, link.depth, link.outside)
        };
        assert_eq!(made(""), (LinkKind::Navigation, 0, false));
        assert_eq!(made("LLR"), (LinkKind::Navigation, 2, false));
        assert_eq!(made("LE"), (LinkKind::Requisite, 1, true));
        assert_eq!(made("M"), (LinkKind::Sitemap, 0, false));
    }
}
