//! A crawl from settings to outcome. The loop itself is in `drive`, the ledger's task in `keep`.

mod columns;
mod copy;
mod drive;
mod end;
mod filter;
pub mod forget;
mod grow;
mod keep;
mod restore;
mod start;
mod taken;
mod usage;
mod wish;

use std::path::Path as FilePath;
use std::sync::{Arc, RwLock};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::Time;
use crate::config::Config;
use crate::cookies::txt::Imported;
use crate::disk::{Disk, Folder};
use crate::extract::fields::Fields;
use crate::fetch::Fetcher;
use crate::fetch::body::Spool;
use crate::fetch::http::HttpFetcher;
use crate::ledger::{self, ArchiveSettings, Ledger, Tail};
use crate::scope::Scope;
use crate::scope::blocklist::Blocklist;
use crate::scope::reach::{Reach, Seed};
use crate::seen::{Account, Kind};
use crate::shard::{self, SeedResult, seed_number};
use crate::stats::Counters;
use crate::store::{Fjall, Store};
use crate::survey::Summary;
use crate::url::{CrawlUrl, Identity};
use crate::visit;
use crate::visit::judge::Judge;
use drive::{Clock, Crawl, Ended, Limits};
pub use drive::{DRAIN, Place};
pub use grow::REMEMBERED_KEYS;
pub use start::own_files;
pub use usage::resident;
pub use wish::{End, Stop, Wish};

/// What the crawl looks like at one moment: for the progress line and, at the end, the report.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// The counters of the job so far.
    pub counters: Counters,
    /// The filter's account.
    pub seen: Account,
    /// Requests in flight.
    pub in_flight: usize,
    /// Hosts that have something to do now or later.
    pub hosts_active: usize,
    /// Hosts waiting for their next due time.
    pub hosts_resting: usize,
    /// When the next host comes due, if all rest: "waiting 12 s for example.com".
    pub next_due: Option<(Time, String)>,
    /// Time spent crawling in this run.
    pub run_time: Duration,
    /// Time spent crawling in all runs of the job.
    pub wall: Duration,
    /// The clock's time of this snapshot.
    pub now: Time,
    /// Nothing new is started for now.
    pub paused: bool,
    /// Last finished address.
    pub last: String,
}

/// A seed and what came of it, for the closing summary.
#[derive(Debug, Clone)]
pub struct SeedOutcome {
    /// The seed as parsed.
    pub url: String,
    /// `Ok(status)` if it brought a response, or why it did not.
    pub result: Result<u16, String>,
}

/// What a crawl leaves behind besides its files.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The last snapshot.
    pub last: Snapshot,
    /// Start of the job's first run.
    pub started: Time,
    /// Runs of the job, this one included.
    pub runs: u64,
    /// Filter checkpoints published over all runs.
    pub checkpoints: u64,
    /// Longest time that insertion stood still for a checkpoint.
    pub checkpoint_pause_max: Duration,
    /// CPU seconds over all runs.
    pub cpu_s: f64,
    /// Largest resident memory over all runs, bytes.
    pub peak_rss: u64,
    /// What became of each seed.
    pub seeds: Vec<SeedOutcome>,
    /// What the job has met; none if the run was ended early.
    pub survey: Option<Summary>,
}

/// What can end a crawl early. Each has its exit code (README) and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CrawlError {
    /// A write failed; the job can be resumed once the cause is gone.
    #[error(
        "cannot write {what}: {source}; the job's state is kept: free space or mend the folder, then run the same command again"
    )]
    Write {
        /// The file or store.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The job's state cannot be used as it is.
    #[error("{0}")]
    State(String),
    /// The settings cannot be used.
    #[error("{0}")]
    Usage(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl CrawlError {
    /// The process's exit code.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Write { .. } => 3,
            Self::Usage(_) => 2,
            Self::State(_) | Self::Other(_) => 1,
        }
    }
}

impl From<ledger::WriteError> for CrawlError {
    fn from(error: ledger::WriteError) -> Self {
        // what is not there or not as it was written is damage, and no fault of the disk's space
        match error.source.kind() {
            std::io::ErrorKind::UnexpectedEof | std::io::ErrorKind::InvalidData => Self::State(format!(
                "{}: {}; the job's state is damaged; start over beside it with --fresh",
                error.what, error.source
            )),
            _ => Self::Write {
                what: error.what,
                source: error.source,
            },
        }
    }
}

/// A crawl without its doors to the outside: what stays the same whatever it fetches from and writes to.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own that a user sets"
)]
pub struct Plan {
    /// Pace, robots, retries.
    pub shard: shard::Settings,
    /// Requests in flight.
    pub concurrency: usize,
    /// What counts as one page; the seeds are parsed under it.
    pub identity: Identity,
    /// The seeds in order.
    pub seeds: Vec<Seed>,
    /// The scope without the seeds.
    pub scope: Scope,
    /// The names of the passwords of this run.
    pub secrets: Vec<String>,
    /// Those that the job was begun with need not be among them.
    pub no_secrets: bool,
    /// Keep cookies and send them.
    pub keep_cookies: bool,
    /// Cookies that a person gave.
    pub cookies: Option<Imported>,
    /// Follow page requisites.
    pub requisites: bool,
    /// Leave links that say `nofollow`, or whose page says so.
    pub obey_nofollow: bool,
    /// Follow guesses, one hop.
    pub speculative: bool,
    /// Do not archive pages that say `noindex`.
    pub obey_noindex: bool,
    /// How to archive, if at all.
    pub archive: Option<ArchiveSettings>,
    /// Fields for pages.jsonl.zst.
    pub fields: Option<Fields>,
    /// Write links.jsonl.zst.
    pub links: bool,
    /// Cap on decoded bodies, bytes.
    pub max_decoded: u64,
    /// Which seen-set; without it a job keeps its own, and a new one has the default.
    pub seen: Option<Kind>,
    /// Keys it is made for, and its error rate there.
    pub seen_size: (u64, f64),
    /// Time between checkpoints.
    pub checkpoint_every: Duration,
    /// Stop after so many fetched URLs.
    pub max_pages: Option<u64>,
    /// Stop after so many received bytes.
    pub max_bytes: Option<u64>,
    /// Stop after so long.
    pub max_time: Option<Duration>,
}

/// The doors to the outside.
pub struct Doors<F> {
    /// The network.
    pub web: Arc<F>,
    /// The store.
    pub store: Box<dyn Store>,
    /// The files.
    pub disk: Arc<dyn Disk>,
    /// Where large bodies and records wait.
    pub spool: Arc<Spool>,
    /// Where the ledger runs.
    pub place: Place,
    /// The wall clock at the start.
    pub now: Time,
}

/// Runs a crawl in a job folder.
///
/// # Errors
/// See [`CrawlError`]; whatever the cause, the job's state stays as the last batch left it.
pub async fn run(
    config: &Config,
    seeds: &[Seed],
    cookies: Option<Imported>,
    blocklist: Option<Arc<Blocklist>>,
    job: &FilePath,
    view: watch::Sender<Option<Snapshot>>,
    stop: watch::Receiver<Wish>,
) -> Result<Outcome, CrawlError> {
    let plan = start::plan(config, seeds, cookies, blocklist, job)?;
    let store = open_store(job)?;
    let spool = Spool::open(&job.join(ledger::SPOOL)).map_err(|source| CrawlError::Write {
        what: ledger::SPOOL.to_owned(),
        source,
    })?;
    let settings = start::http_settings(config, Arc::clone(&spool));
    let web = Arc::new(HttpFetcher::new(settings).map_err(CrawlError::Usage)?);
    let disk: Arc<dyn Disk> = Arc::new(Folder::new(job.to_owned()));
    let doors = Doors {
        web,
        store: Box::new(store),
        disk: Arc::clone(&disk),
        spool,
        place: Place::Thread,
        now: wall_clock(),
    };
    let outcome = Box::pin(crawl(plan, doors, &view, stop)).await?;
    let lines = job.join(ledger::INDEX_LINES);
    // a run without an archive still owes the one before it its index
    let archived = disk
        .size(ledger::INDEX_LINES)
        .is_ok_and(|size| size.is_some_and(|size| size > 0));
    if config.archive || archived {
        let index = job.join("indexes/index.cdxj");
        let sorted = tokio::task::spawn_blocking(move || crate::archive::cdxj::sort_file(&lines, &index, SORT_MEMORY));
        let sorted = sorted.await.map_err(|error| CrawlError::Other(error.to_string()))?;
        sorted.map_err(|source| CrawlError::Write {
            what: "indexes/index.cdxj".to_owned(),
            source,
        })?;
    }
    if config.parquet {
        let config = config.clone();
        let written = tokio::task::spawn_blocking(move || columns::write_tables(disk.as_ref(), &config));
        let written = written.await.map_err(|error| CrawlError::Other(error.to_string()))?;
        written.map_err(|source| CrawlError::Write {
            what: "pages.parquet or links.parquet".to_owned(),
            source,
        })?;
    }
    Ok(outcome)
}

/// Opens the store of a job.
fn open_store(job: &FilePath) -> Result<Fjall, CrawlError> {
    Fjall::open(&job.join("state/store")).map_err(|source| {
        use std::io::ErrorKind::{PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
        // anything else is wrong with the store's own files
        let damaged = !matches!(
            source.kind(),
            StorageFull | QuotaExceeded | ReadOnlyFilesystem | PermissionDenied
        );
        if damaged {
            CrawlError::State(format!(
                "{}: the store cannot be opened: {source}",
                job.join("state/store").display()
            ))
        } else {
            CrawlError::Write {
                what: job.join("state/store").display().to_string(),
                source,
            }
        }
    })
}

/// Memory for sorting the index, bytes.
const SORT_MEMORY: usize = 32 << 20;

fn wall_clock() -> Time {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    Time(u64::try_from(now.as_micros()).unwrap_or(0))
}

/// Runs a plan through given doors, from whatever their store and files hold.
///
/// # Errors
/// See [`CrawlError`].
pub async fn crawl<F: Fetcher>(
    plan: Plan,
    doors: Doors<F>,
    view: &watch::Sender<Option<Snapshot>>,
    stop: watch::Receiver<Wish>,
) -> Result<Outcome, CrawlError> {
    let Doors {
        web,
        mut store,
        disk,
        spool,
        place,
        now,
    } = doors;
    let clock = Clock {
        anchor: now,
        started: Instant::now(),
    };
    let identity = plan.identity.clone();
    let found = ledger::look(store.as_ref())
        .map_err(|error| CrawlError::State(format!("state/store: {error}; start over beside it with --fresh")))?;
    ledger::check(disk.as_ref(), &found).map_err(|error| {
        CrawlError::State(format!(
            "{error}; the job's state is damaged and nothing was changed; start over beside it with --fresh"
        ))
    })?;
    let job = restore::job_row(&found, &identity)?;
    restore::check_secrets(&plan, &found)?;
    let resumed = found.job.is_some();
    let mut shard = restore::shard(&plan, &found, &job, store.as_ref(), disk.as_ref(), clock, resumed)?;
    let mut scope = Reach::new(plan.scope.clone());
    for seed in &plan.seeds {
        let number = seed_number(&seed.url, &job.key);
        scope.add_seed(seed, number).map_err(CrawlError::Usage)?;
    }
    for (address, origin) in &found.widened {
        if let Ok(url) = CrawlUrl::parse(address, &identity) {
            scope.widen(*origin, &url);
        }
    }
    if let Some(list) = scope.blocklist() {
        shard.leave_blocked(list);
    }
    let jar = restore::jar(&plan, store.as_ref())?;
    let offered = resumed && found.tail.seeds_offered;
    let kind = shard.seen().account().kind;
    restore::fill(kind, &found, store.as_mut(), disk.as_ref())?;
    // what an exact set may know its table decides; what cannot be read now cannot be read two lines below
    let is_known = |print| {
        let there = || ledger::has(store.as_ref(), &[print]).is_ok_and(|there| there == [true]);
        shard.seen().contains(print) && (kind != Kind::Exact || there())
    };
    let mut seeds = start::seed_links(&plan, &scope, &job.key, offered, is_known);
    let prints: Vec<_> = seeds.links.iter().map(|link| link.print).collect();
    let there =
        ledger::has(store.as_ref(), &prints).map_err(|error| CrawlError::State(format!("state/store: {error}")))?;
    shard.seen_mut().told(&prints, &there);
    let mut ledger = Box::new(Ledger::open(
        store,
        Arc::clone(&disk),
        plan.archive.clone(),
        &found,
        &job,
        kind,
    )?);
    ledger.note(|tail| {
        tail.runs += 1;
        if tail.runs == 1 {
            tail.started = now;
        }
    });
    if let Some(mut jar) = jar {
        // the same file again says nothing new: sites may have changed its cookies since
        if let Some(file) = plan.cookies.filter(|file| found.imported != Some(file.print)) {
            ledger.keep_cookies(&jar.import(file.cookies, now));
            ledger.cookies_imported(file.print);
        }
        shard.keep_cookies(jar);
    }
    if plan.secrets != found.secrets {
        ledger.keep_secrets(&plan.secrets);
    }
    ledger.sync_tail()?;
    let before = ledger.tail().clone();
    shard.durable(0);
    let settings = visit::Settings {
        judge: Judge {
            scope: RwLock::new(scope),
            identity,
            key: job.key,
            requisites: plan.requisites,
            obey_nofollow: plan.obey_nofollow,
            speculative: plan.speculative,
            sitemaps: plan.shard.sitemaps,
            traps: plan.shard.traps.clone(),
            said: visit::judge::Said::default(),
        },
        archive: plan.archive.is_some(),
        obey_noindex: plan.obey_noindex,
        max_decoded: plan.max_decoded,
        spool,
        room: visit::Room::default(),
        agent: plan.shard.agent.clone(),
        fields: plan.fields,
        links: plan.links,
        cookies: plan.keep_cookies,
    };
    let parts = Crawl {
        shard,
        web,
        visits: Arc::new(settings),
        disk,
        clock,
        concurrency: plan.concurrency.max(1),
        limits: Limits {
            pages: plan.max_pages,
            bytes: plan.max_bytes,
            time: plan.max_time,
        },
        checkpoint_every: plan.checkpoint_every,
        growth: grow::Growth::new(kind, job.key, plan.seen_size.1, found.admissions()),
        before,
    };
    let numbers = std::mem::take(&mut seeds.numbers);
    let offered = (!seeds.links.is_empty()).then_some(seeds);
    let ended = drive::drive(parts, ledger, place, offered, view, stop).await?;
    outcome(ended, numbers)
}

fn outcome(ended: Ended, numbers: Vec<(u64, String)>) -> Result<Outcome, CrawlError> {
    let Ended { end, mut ledger, last } = ended;
    let results = ledger.seeds()?;
    let tail: &Tail = ledger.tail();
    #[expect(clippy::cast_precision_loss, reason = "microseconds of CPU time fit")]
    let cpu_s = tail.cpu_us as f64 / 1e6;
    let seeds = numbers.into_iter().map(|(number, url)| {
        let result = match results.get(&number) {
            Some(SeedResult::Answered(status)) => Ok(*status),
            Some(SeedResult::Failed(why)) => Err(why.clone()),
            Some(SeedResult::Robots) => Err(FORBIDDEN.to_owned()),
            None => Err(NOT_YET.to_owned()),
        };
        SeedOutcome { url, result }
    });
    Ok(Outcome {
        end,
        started: tail.started,
        runs: tail.runs,
        checkpoints: tail.checkpoints,
        checkpoint_pause_max: Duration::from_micros(tail.checkpoint_pause_us),
        cpu_s,
        peak_rss: tail.peak_rss,
        seeds: seeds.collect(),
        survey: Some(ledger.survey()),
        last,
    })
}

/// The outcome of a seed that robots.txt forbids.
pub const FORBIDDEN: &str = "robots.txt forbids it";
/// The outcome of a seed that has not been fetched yet.
pub const NOT_YET: &str = "not fetched yet";
