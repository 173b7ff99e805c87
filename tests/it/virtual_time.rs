//! Whole crawls in virtual time over a web made of arithmetic, killed at numbered steps.
//!
//! The real shard, ledger, checkpoint and loop run over a disk and a store in memory that know what a kill and what a
//! power cut leave behind. A schedule is a seed: it chooses the web, the number of workers and the steps at which the
//! process dies. After the last run the archive must hold every reachable URL exactly once, and no host may ever have
//! been asked too early, over all runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crawler::archive::read::members;
use crawler::archive::warc::WarcInfo;
use crawler::clock::Time;
use crawler::crawl::{self, Doors, End, Outcome, Place, Plan};
use crawler::disk::{Append, Disk, Memory};
use crawler::extract::fields::{Builtin, Fields};
use crawler::fetch::body::{BODIES_IN_MEMORY, Sink, Spool};
use crawler::fetch::{FetchError, FetchErrorKind, Fetcher, Request, Response};
use crawler::ledger::{ArchiveSettings, LINKS, PAGES};
use crawler::politeness::Patience;
use crawler::scope::reach::SeedRules;
use crawler::scope::{Scope, ScopeKind, Sitemaps};
use crawler::seen::Kind;
use crawler::shard::Settings;
use crawler::store::{Batch, MemoryStore, Row, Store, Table};
use crawler::url::{CrawlUrl, Identity};
use tokio::sync::{Notify, watch};

/// Sent by the pages of hosts that ask for a cookie, and by nothing else.
const LOG_IN: u16 = 303;

/// A small generator, so that a schedule is one number.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }
}

// ---------------------------------------------------------------- the web

const DELAY: Duration = Duration::from_millis(100);
const SLOW_HOST_DELAY: Duration = Duration::from_millis(1_500);

/// Bytes that a large page has more: its record is copied into the archive in several pieces.
const LARGE: usize = 300_000;

/// Pages `0..pages` spread over hosts; links, statuses and robots.txt follow from the numbers.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a trait of its own")]
struct Web {
    seed: u64,
    pages: u64,
    hosts: u64,
    /// The robots.txt of the first host has moved to a host that is asked for nothing else.
    moved: bool,
    /// That of the last host has moved to a host that never answers.
    lost: bool,
    /// `--delay-factor` of the crawl.
    factor: u32,
    /// `--delay-per-address`; the hosts with even numbers share an address.
    per_address: bool,
    /// A page answers who has no cookie of its host with one, and with a redirect to itself.
    members: bool,
    /// Pages behind the others to which nothing leads but the sitemaps that each robots.txt names.
    orphans: u64,
    /// Room for bodies in memory, bytes. If there is none, some pages are large too.
    room: usize,
    spool: Option<Arc<Spool>>,
    log: Arc<Mutex<Vec<Visit>>>,
    tries: Arc<Mutex<BTreeMap<String, u32>>>,
    /// The process that asks is dead: what it still does in memory never leaves the machine.
    dead: Arc<AtomicBool>,
    anchor: Time,
    started: tokio::time::Instant,
}

#[derive(Clone, Debug)]
struct Visit {
    host: String,
    url: String,
    /// When the process that asked began: its number.
    run: Time,
    start: Time,
    end: Option<Time>,
    /// An answer came.
    answered: bool,
}

impl Web {
    fn url(&self, page: u64) -> String {
        format!("http://h{}.test/p{page}", page % self.hosts)
    }

    fn anchors(&self, page: u64) -> String {
        let mut html = String::new();
        for link in self.links(page) {
            let _ = write!(html, "<a href='{}'>{link}</a>", self.url(link));
        }
        html
    }

    fn links(&self, page: u64) -> Vec<u64> {
        let mut dice = Dice(self.seed ^ page.wrapping_mul(77));
        (0..dice.below(5))
            .map(|_| dice.below(self.pages))
            .chain([page + 1].into_iter().filter(|n| *n < self.pages))
            .collect()
    }

    /// Where the sitemap of a host is.
    fn map(host: u64) -> String {
        format!("http://h{host}.test/map.xml")
    }

    /// What the sitemap of a host lists.
    fn mapped(&self, host: u64) -> impl Iterator<Item = u64> {
        (self.pages..self.pages + self.orphans).filter(move |page| self.host(*page) == host)
    }

    fn is_disallowed(page: u64) -> bool {
        page % 11 == 7
    }

    fn is_redirect(page: u64) -> bool {
        page % 9 == 4
    }

    /// Fails once with 503, then answers.
    fn is_shy(page: u64) -> bool {
        page % 13 == 6
    }

    fn host(&self, page: u64) -> u64 {
        page % self.hosts
    }

    /// A page that is not asked for: its robots.txt says so, or cannot be had.
    fn is_forbidden(&self, page: u64) -> bool {
        Self::is_disallowed(page) || (self.lost && self.host(page) == self.hosts - 1)
    }

    /// What a whole crawl archives, by plain search.
    fn reachable(&self) -> BTreeSet<String> {
        let mut seen = BTreeSet::from([0]);
        let mut queue = vec![0];
        let mut archived = BTreeSet::new();
        if self.orphans > 0 {
            archived.insert("http://h0.test/sitemap.xml".to_owned());
        }
        while let Some(page) = queue.pop() {
            let host = self.host(page);
            // the robots.txt of a host is asked for whatever becomes of the page
            if self.orphans > 0 && !(self.lost && host == self.hosts - 1) && archived.insert(Self::map(host)) {
                queue.extend(self.mapped(host).filter(|orphan| seen.insert(*orphan)));
            }
            if self.is_forbidden(page) {
                continue;
            }
            archived.insert(self.url(page));
            for link in self.links(page) {
                if seen.insert(link) {
                    queue.push(link);
                }
            }
        }
        archived
    }

    fn delay(host: &str) -> Duration {
        if host == "h0.test" { SLOW_HOST_DELAY } else { DELAY }
    }

    fn address(host: &str) -> IpAddr {
        let number: u8 = host
            .trim_start_matches('h')
            .trim_end_matches(".test")
            .parse()
            .unwrap_or(99);
        let last = if number.is_multiple_of(2) { 0 } else { number };
        IpAddr::from([192, 0, 2, last])
    }

    fn now(&self) -> Time {
        self.anchor + self.started.elapsed()
    }

    fn answer(&self, url: &CrawlUrl, cookie: Option<&str>) -> (u16, Vec<(String, Vec<u8>)>, String) {
        let html = vec![("content-type".to_owned(), b"text/html".to_vec())];
        let moved_to = match url.host() {
            "h0.test" if self.moved => Some("http://moved.test/h0/robots.txt"),
            last if self.lost && last == format!("h{}.test", self.hosts - 1) => Some("http://dead.test/robots.txt"),
            _ => None,
        };
        if let (Some(target), "/robots.txt") = (moved_to, url.path()) {
            return (301, vec![("location".to_owned(), target.into())], String::new());
        }
        let host = if url.host() == "moved.test" {
            "h0.test"
        } else {
            url.host()
        };
        if url.path().ends_with("/robots.txt") {
            let mut rules = String::new();
            for page in (0..self.pages + self.orphans).filter(|page| Self::is_disallowed(*page)) {
                if host == format!("h{}.test", page % self.hosts) {
                    let _ = writeln!(rules, "Disallow: /p{page}$");
                }
            }
            let delay = if host == "h0.test" { "Crawl-delay: 1.5\n" } else { "" };
            let map = if self.orphans > 0 {
                format!("Sitemap: http://{host}/map.xml\n")
            } else {
                String::new()
            };
            return (200, Vec::new(), format!("User-agent: *\n{delay}{rules}{map}"));
        }
        if url.path() == "/sitemap.xml" {
            return (
                200,
                Vec::new(),
                "<sitemapindex><sitemap><loc>/map.xml</loc></sitemap></sitemapindex>".to_owned(),
            );
        }
        if url.path() == "/map.xml" {
            let number = url
                .host()
                .trim_start_matches('h')
                .trim_end_matches(".test")
                .parse()
                .unwrap();
            let lines: Vec<String> = self.mapped(number).map(|page| self.url(page)).collect();
            return (200, Vec::new(), lines.join("\n"));
        }
        if self.members && cookie != Some("member=1") {
            let headers = vec![
                ("location".to_owned(), url.href().into()),
                ("set-cookie".to_owned(), b"member=1; Path=/; Max-Age=99999".to_vec()),
            ];
            return (LOG_IN, headers, String::new());
        }
        let page: u64 = url.path().trim_start_matches("/p").parse().unwrap_or(0);
        if Self::is_shy(page) {
            let mut tries = self.tries.lock().unwrap();
            let tries = tries.entry(url.href().to_owned()).or_default();
            *tries += 1;
            if *tries == 1 {
                return (503, vec![("retry-after".to_owned(), b"1".to_vec())], String::new());
            }
        }
        if Self::is_redirect(page) {
            // a redirect has one link, its target; the others hang on the page after
            let target = self.url(self.links(page).first().copied().unwrap_or(0));
            let body = self.anchors(page);
            let mut headers = html;
            headers.push(("location".to_owned(), target.into_bytes()));
            return (302, headers, body);
        }
        let links = self.anchors(page);
        (200, html, format!("<title>{page}</title>{links}"))
    }
}

impl Fetcher for Web {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let url = request.url;
        let started = self.now();
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        let meant = self.per_address.then(|| Self::address(url.host()));
        assert_eq!(request.to, meant, "{url:?}");
        let number = {
            let mut log = self.log.lock().unwrap();
            log.push(Visit {
                host: url.host().to_owned(),
                url: url.href().to_owned(),
                run: self.anchor,
                start: started,
                end: None,
                answered: false,
            });
            log.len() - 1
        };
        let took = Duration::from_millis(1 + url.href().len() as u64 % 7 * 5);
        tokio::time::sleep(took).await;
        if self.dead.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        self.log.lock().unwrap()[number].end = Some(self.now());
        if url.host() == "dead.test" {
            let detail = "dead.test: refused".to_owned();
            return Err(FetchError {
                kind: FetchErrorKind::Connect,
                detail,
                started,
                took,
                repeated: None,
            });
        }
        self.log.lock().unwrap()[number].answered = true;
        let (status, headers, body) = self.answer(&url, request.cookie.as_deref());
        let mut head = format!("HTTP/1.1 {status} X\r\n").into_bytes();
        for (name, value) in &headers {
            head.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
        }
        head.extend(b"\r\n");
        let mut body = body.into_bytes();
        if self.room == 0 && status == 200 && url.href().len().is_multiple_of(3) {
            let mut dice = Dice(self.seed ^ body.len() as u64);
            body.extend((0..LARGE / 8).flat_map(|_| dice.roll().to_le_bytes()));
        }
        let body = match &self.spool {
            Some(spool) => Sink::kept(spool, body).unwrap(),
            None => body.into(),
        };
        Ok(Response {
            status,
            head,
            headers,
            body,
            truncated: None,
            remote: None,
            skipped: None,
            request_head: format!("GET {} HTTP/1.1\r\n\r\n", url.path_and_query()).into_bytes(),
            protocols: Vec::new(),
            cipher: None,
            started,
            took,
            repeated: None,
        })
    }

    async fn look_up(&self, url: &CrawlUrl) -> Result<IpAddr, FetchError> {
        assert!(self.per_address, "nobody wants to know");
        let started = self.now();
        let took = Duration::from_millis(7);
        tokio::time::sleep(took).await;
        // each name is unknown at times, that of the dead host always
        let unlucky = Dice(self.seed ^ started.0).below(20) == 0;
        if unlucky || url.host() == "dead.test" {
            return Err(FetchError {
                kind: FetchErrorKind::Dns,
                detail: format!("{}: unknown", url.host()),
                started,
                took,
                repeated: None,
            });
        }
        Ok(Self::address(url.host()))
    }
}

// ---------------------------------------------------------------- a disk and a store that die at a step

/// Counts the steps of disk and store together; at a chosen one keeps what a crash would leave.
struct Fuse {
    disk: Memory,
    store: MemoryStore,
    steps: AtomicUsize,
    at: usize,
    kind: Death,
    left: Mutex<Option<(Memory, MemoryStore)>>,
    blown: Notify,
    dead: Arc<AtomicBool>,
}

/// What happens at the chosen step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Death {
    Kill,
    /// Of what is not synced a part is left that this number chooses.
    PowerCut(u64),
    /// From here on nothing can be written.
    FullDisk,
}

impl Fuse {
    /// Called before each change.
    fn step(&self) -> io::Result<()> {
        let step = self.steps.fetch_add(1, Ordering::SeqCst);
        if self.kind == Death::FullDisk {
            return if step < self.at {
                Ok(())
            } else {
                Err(io::ErrorKind::StorageFull.into())
            };
        }
        if step != self.at {
            return Ok(());
        }
        let left = match self.kind {
            Death::PowerCut(seed) => {
                let mut dice = Dice(seed);
                let keep = |loose: usize| usize::try_from(dice.below(loose as u64 + 1)).unwrap();
                (self.disk.after_power_cut(keep), self.store.after_power_cut())
            }
            Death::Kill | Death::FullDisk => (self.disk.after_kill(), self.store.after_kill()),
        };
        *self.left.lock().unwrap() = Some(left);
        self.dead.store(true, Ordering::SeqCst);
        self.blown.notify_one();
        Ok(())
    }
}

struct FusedFile(Box<dyn Append>, Arc<Fuse>);

impl Append for FusedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        // a kill can fall between two parts of one write
        let (first, second) = bytes.split_at(bytes.len() / 2);
        self.1.step()?;
        self.0.append(first)?;
        self.1.step()?;
        self.0.append(second)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.1.step()?;
        self.0.sync()
    }
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.1.step()?;
        self.0.truncate(len)
    }
}

struct FusedDisk(Arc<Fuse>);

impl Disk for FusedDisk {
    fn append(&self, name: &str) -> io::Result<Box<dyn Append>> {
        self.0.step()?;
        Ok(Box::new(FusedFile(self.0.disk.append(name)?, Arc::clone(&self.0))))
    }
    fn read(&self, name: &str) -> io::Result<Option<Box<dyn Read + Send>>> {
        self.0.disk.read(name)
    }
    fn size(&self, name: &str) -> io::Result<Option<u64>> {
        self.0.disk.size(name)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.step()?;
        self.0.disk.rename(from, to)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.step()?;
        self.0.disk.remove(name)
    }
    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        self.0.disk.list(folder)
    }
    fn root(&self) -> Option<&Path> {
        None
    }
}

struct FusedStore(MemoryStore, Arc<Fuse>);

impl Store for FusedStore {
    fn get(&self, table: Table, key: &[u8]) -> io::Result<Option<Vec<u8>>> {
        self.0.get(table, key)
    }
    fn range(&self, table: Table, after: &[u8], inclusive: bool, prefix: &[u8], limit: usize) -> io::Result<Vec<Row>> {
        self.0.range(table, after, inclusive, prefix, limit)
    }
    fn commit(&mut self, batch: Batch, sync: bool) -> io::Result<()> {
        self.1.step()?;
        self.0.commit(batch, sync)?;
        self.1.step()?;
        Ok(())
    }
}

// ---------------------------------------------------------------- a schedule

fn plan(dice: &mut Dice, seeds: &[&str]) -> Plan {
    let identity = Identity::default();
    Plan {
        shard: Settings {
            patience: Patience {
                delay: DELAY,
                delay_factor: 1.0,
                max_wait: Duration::from_secs(30),
                backoff_base: Duration::from_millis(200),
                max_failures: 5,
                global_rate: None,
            },
            robots: true,
            agent: "crawler".to_owned(),
            per_host: 1,
            // more than the look-ups of one page fail in a row, by any schedule
            retries: 6,
            max_pages_per_host: None,
            own: crawler::shard::Own::default(),
            per_address: false,
            sitemaps: Sitemaps::Yes,
            max_sitemap_urls: u64::MAX,
            traps: crawler::traps::Settings::default(),
        },
        concurrency: usize::try_from(1 + dice.below(8)).unwrap(),
        identity: identity.clone(),
        seeds: seeds
            .iter()
            .map(|seed| CrawlUrl::parse(seed, &identity).unwrap().into())
            .collect(),
        scope: Scope::new(ScopeKind::Any, &[], &[], None).unwrap(),
        secrets: Vec::new(),
        no_secrets: false,
        keep_cookies: true,
        cookies: None,
        requisites: true,
        obey_nofollow: false,
        speculative: false,
        obey_noindex: false,
        archive: Some(ArchiveSettings {
            prefix: "t".to_owned(),
            size: 4_000,
            info: WarcInfo::default(),
        }),
        fields: None,
        links: false,
        max_decoded: 1 << 20,
        seen: Some(Kind::Bloom),
        // so small that it grows on the way
        seen_size: (10 + dice.below(60), 1e-6),
        checkpoint_every: Duration::from_millis(200 + dice.below(2_000)),
        max_pages: None,
        max_bytes: None,
        max_time: None,
    }
}

fn in_turn(number: u64) -> Kind {
    let kinds = Kind::ALL.len() as u64;
    Kind::ALL[usize::try_from(number % kinds).unwrap()]
}

struct Run {
    outcome: Option<Outcome>,
    end: Time,
    disk: Memory,
    store: MemoryStore,
}

/// One run of the process, from what the last one left to its end or its death at a step.
fn run(plan: Plan, web: &Web, disk: Memory, store: MemoryStore, start: Time, death: Option<(usize, Death)>) -> Run {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let (at, kind) = death.unwrap_or((usize::MAX, Death::Kill));
    let fuse = Arc::new(Fuse {
        disk: disk.clone(),
        store: store.clone(),
        steps: AtomicUsize::new(0),
        at,
        kind,
        left: Mutex::new(None),
        blown: Notify::new(),
        dead: Arc::default(),
    });
    let spool = tempfile::tempdir().unwrap();
    let (outcome, end) = runtime.block_on(async {
        let mut web = web.clone();
        web.anchor = start;
        web.started = tokio::time::Instant::now();
        web.dead = Arc::clone(&fuse.dead);
        let spool = Spool::with_room(spool.path(), web.room).unwrap();
        web.spool = Some(Arc::clone(&spool));
        let doors = Doors {
            web: Arc::new(web.clone()),
            store: Box::new(FusedStore(store.clone(), Arc::clone(&fuse))),
            disk: Arc::new(FusedDisk(Arc::clone(&fuse))),
            spool,
            place: Place::Task,
            now: start,
        };
        let (view, _watch) = watch::channel(None);
        let (_stop, stop) = watch::channel(crawler::crawl::Wish::default());
        let outcome = tokio::select! {
            biased;
            () = fuse.blown.notified() => None,
            () = tokio::time::sleep(MAX_RUN) => panic!("no end in sight: {:#?}", *view.borrow()),
            outcome = crawl::crawl(plan, doors, &view, stop) => match outcome {
                Ok(outcome) => Some(outcome),
                Err(error) => {
                    assert!(kind == Death::FullDisk, "{error}");
                    assert_eq!(error.exit_code(), 3, "{error}");
                    None
                }
            },
        };
        (outcome, web.now())
    });
    drop(runtime);
    let left = fuse.left.lock().unwrap().take();
    let (disk, store) = match (&outcome, left) {
        (None, Some(left)) => left,
        (Some(_), _) => (disk, store),
        // a full disk: what is there is what is left
        (None, None) => (disk.after_kill(), store.after_kill()),
    };
    Run {
        outcome,
        end,
        disk,
        store,
    }
}

/// What is archived: pages, and the redirects that set a cookie.
fn archived(disk: &Memory) -> (Vec<String>, Vec<String>) {
    let (mut urls, mut log_ins) = (Vec::new(), Vec::new());
    for name in disk.list("archive").unwrap() {
        assert!(name.strip_suffix(".open").is_none(), "{name} is not closed");
        let bytes = disk.bytes(&format!("archive/{name}")).unwrap();
        for record in members(io::Cursor::new(bytes), 1 << 20) {
            let record = record.unwrap_or_else(|damage| panic!("{name}: {damage:?}"));
            assert!(record.wrong_digests().is_empty(), "{name}: digests");
            if matches!(record.kind(), "response" | "revisit") {
                let url = record.header("WARC-Target-URI").unwrap().to_owned();
                let is_log_in = record.block.starts_with(format!("HTTP/1.1 {LOG_IN}").as_bytes());
                if is_log_in { &mut log_ins } else { &mut urls }.push(url);
            }
        }
    }
    (urls, log_ins)
}

/// The rows of a file of JSON lines in zstd frames.
fn rows(disk: &Memory, name: &str) -> Vec<serde_json::Value> {
    let frames = disk.bytes(name).unwrap_or_default();
    let text = String::from_utf8(zstd::decode_all(frames.as_slice()).unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every HTML page that is archived has its row once, with its title; and the rows of links are those that the account
/// has, but for the seeds and the sitemap at its usual place, which stand on no page.
fn check_rows(disk: &Memory, web: &Web, pages: &BTreeSet<String>, found: u64, context: &str) {
    let mut rows_of = BTreeMap::new();
    for row in rows(disk, PAGES) {
        let url = row["url"].as_str().unwrap().to_owned();
        let page: u64 = url.rsplit_once("/p").unwrap().1.parse().unwrap();
        let title = (!Web::is_redirect(page)).then(|| page.to_string());
        // a redirect of who has no cookie yet is no HTML
        assert_eq!(row["title"].as_str(), title.as_deref(), "{context}: {row}");
        assert!(rows_of.insert(url, row).is_none(), "{context}: a page has two rows");
    }
    let html = pages.iter().filter(|url| !url.contains(".xml"));
    assert!(
        html.eq(rows_of.keys()),
        "{context}: pages without a row, or rows without a page"
    );
    let links = rows(disk, LINKS).len() as u64;
    let usual = u64::from(web.orphans > 0);
    assert_eq!(links, found - 1 - usual, "{context}: rows of links");
}

/// The smallest room between requests, as the web saw it, against what each host was owed: one at a time from end to
/// start, several at once from start to start. The length of an answer counts within one run: what a killed process had
/// not yet written down of an answer it never had.
fn check_politeness(log: &[Visit], per_host: usize, factor: u32, context: &str) {
    let mut last: BTreeMap<&str, &Visit> = BTreeMap::new();
    for visit in log {
        if let Some(before) = last.insert(&visit.host, visit) {
            // a host's own delay stands in its robots.txt: it is known before the first page, not before the file
            let owed = if visit.url.ends_with("/robots.txt") {
                DELAY
            } else {
                Web::delay(&visit.host)
            };
            let end = before.end.expect("every visit has its end");
            let from = if per_host == 1 { end } else { before.start };
            let stretched = end.since(before.start) * factor;
            let owed = if per_host == 1 && before.answered && before.run == visit.run {
                owed.max(stretched)
            } else {
                owed
            };
            assert!(
                visit.start >= from && visit.start.since(from) >= owed,
                "{context}: {visit:?} came too soon after {before:?}"
            );
        }
    }
}

/// The same of each address: whatever name is asked next, it waits for what the last one is owed.
fn check_addresses(log: &[Visit], per_host: usize, factor: u32, context: &str) {
    let mut last: BTreeMap<IpAddr, &Visit> = BTreeMap::new();
    for visit in log {
        let Some(before) = last.insert(Web::address(&visit.host), visit) else {
            continue;
        };
        let end = before.end.expect("every visit has its end");
        let owed = if before.url.ends_with("/robots.txt") {
            DELAY
        } else {
            Web::delay(&before.host)
        };
        let stretched = end.since(before.start) * factor;
        let owed = if per_host == 1 && before.answered && before.run == visit.run {
            owed.max(stretched)
        } else {
            owed
        };
        let from = if per_host == 1 { end } else { before.start };
        assert!(
            visit.start >= from && visit.start.since(from) >= owed,
            "{context}: {visit:?} came too soon after {before:?} on their address"
        );
    }
}

/// A crawl that is not done by then (in virtual time) never will be.
const MAX_RUN: Duration = Duration::from_secs(7_200);

/// Plays a schedule; returns how often the process died.
fn play(schedule: u64) -> usize {
    let mut dice = Dice(schedule);
    let mut web = Web {
        seed: dice.roll(),
        pages: 10 + dice.below(50),
        hosts: 1 + dice.below(4),
        moved: dice.below(3) == 0,
        lost: false,
        factor: 0,
        per_address: false,
        members: false,
        orphans: dice.below(3) * 4,
        room: if schedule % 8 == 5 { 0 } else { BODIES_IN_MEMORY },
        spool: None,
        log: Arc::default(),
        tries: Arc::default(),
        dead: Arc::default(),
        anchor: Time(0),
        started: {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_time()
                .build()
                .unwrap();
            runtime.block_on(async { tokio::time::Instant::now() })
        },
    };
    web.lost = web.hosts > 1 && dice.below(4) == 0;
    let context = format!("schedule {schedule}");
    let (mut disk, mut store) = (Memory::default(), MemoryStore::default());
    let mut now = Time(1_700_000_000_000_000);
    let mut deaths = 0;
    let planned = dice.below(5);
    let first = plan(&mut dice, &["http://h0.test/p0"]);
    let (concurrency, seen_size, every) = (first.concurrency, first.seen_size, first.checkpoint_every);
    let per_host = if dice.below(4) == 0 { 3 } else { 1 };
    // the seed has rules of its own, and at first perhaps few pages
    let own = Dice(schedule ^ 0x6F77_6E73).below(3);
    let mut budget = (own == 2).then(|| 1 + Dice(schedule).below(8));
    // an answer takes 1 to 31 ms here
    web.factor = if dice.below(2) == 0 { 0 } else { 9 };
    web.per_address = dice.below(2) == 0;
    // by dice of its own; not with look-ups that fail, because a redirect more meets more of them
    web.members = !web.per_address && Dice(schedule ^ 0x6D65_6D62).below(2) == 0;
    // not of the large pages, which are noise and take long to read
    let writes_rows = schedule.is_multiple_of(2);
    let found = loop {
        let mut plan = plan(&mut dice.clone(), &["http://h0.test/p0"]);
        (plan.concurrency, plan.seen_size, plan.checkpoint_every) = (concurrency, seen_size, every);
        // every other schedule the default, the others each kind in turn
        plan.seen = Some(if schedule.is_multiple_of(2) {
            Kind::Bloom
        } else {
            in_turn(schedule / 2)
        });
        plan.shard.per_host = per_host;
        if writes_rows {
            plan.fields = Some(Fields::compile(&[Builtin::Title], &[]).unwrap());
            plan.links = true;
        }
        plan.shard.patience.delay_factor = f64::from(web.factor);
        plan.shard.per_address = web.per_address;
        if own > 0 {
            plan.scope = Scope::new(ScopeKind::Host, &[], &[], Some(0)).unwrap();
            plan.seeds[0].rules = Some(Box::new(SeedRules {
                scope: Some(ScopeKind::Any),
                depth: Some(u16::MAX),
                max_pages: budget,
                ..SeedRules::default()
            }));
        }
        plan.shard.sitemaps = if web.orphans > 0 { Sitemaps::Yes } else { Sitemaps::No };
        let death = (deaths < planned).then(|| {
            let at = usize::try_from(dice.below(400)).unwrap();
            let kind = match dice.below(6) {
                0 | 1 => Death::PowerCut(dice.roll()),
                2 => Death::FullDisk,
                _ => Death::Kill,
            };
            (at, kind)
        });
        let run = run(plan, &web, disk, store, now, death);
        for visit in web.log.lock().unwrap().iter_mut() {
            visit.end.get_or_insert(run.end);
        }
        (disk, store) = (run.disk, run.store);
        now = run.end + Duration::from_micros(1 + dice.below(50_000));
        if let Some(outcome) = run.outcome {
            let fetched = outcome.last.counters.urls.fetched;
            let counted = crawler::ledger::look(&store).unwrap().origins;
            let counted: u64 = counted.iter().map(|(_, pages)| pages).sum();
            assert_eq!(counted, if own > 0 { fetched } else { 0 }, "{context}");
            if let Some(most) = budget.take().filter(|_| outcome.end != End::Finished) {
                assert_eq!(outcome.end, End::Limit("max-pages of a seed".to_owned()), "{context}");
                assert!(outcome.last.counters.balanced(), "{context}");
                assert_eq!(fetched, most, "{context}");
                continue;
            }
            assert_eq!(outcome.end, End::Finished, "{context}");
            assert!(
                outcome.last.counters.balanced(),
                "{context}: {:?}",
                outcome.last.counters
            );
            assert_eq!(outcome.last.counters.urls.pending, 0, "{context}");
            assert_eq!(outcome.last.counters.politeness_violations, 0, "{context}");
            break outcome.last.counters.links.found;
        }
        deaths += 1;
    };
    let (urls, log_ins) = archived(&disk);
    let pages: Vec<&String> = urls.iter().filter(|url| !url.ends_with("/robots.txt")).collect();
    let once: BTreeSet<String> = pages.iter().map(|url| (*url).clone()).collect();
    let reachable = web.reachable();
    let missing: Vec<_> = reachable.difference(&once).collect();
    let extra: Vec<_> = once.difference(&reachable).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "{context}: missing {missing:?}, extra {extra:?}"
    );
    assert_eq!(pages.len(), once.len(), "{context}: a page is archived twice");
    if writes_rows {
        check_rows(&disk, &web, &once, found, &context);
    }
    // a host's cookie is durable with the answer that set it: whatever was killed, nobody is asked for it twice
    let hosts: BTreeSet<&str> = log_ins.iter().map(|url| url.rsplit_once('/').unwrap().0).collect();
    assert!(
        per_host > 1 || hosts.len() == log_ins.len(),
        "{context}: a cookie was lost: {log_ins:?}"
    );
    assert_eq!(hosts.is_empty(), !web.members || reachable.is_empty(), "{context}");
    check_politeness(&web.log.lock().unwrap(), per_host, web.factor, &context);
    if web.per_address {
        check_addresses(&web.log.lock().unwrap(), per_host, web.factor, &context);
    }
    usize::try_from(deaths).unwrap()
}

/// Schedules played in one run of the tests.
const SCHEDULES: u64 = 1_500;

#[test]
fn thousands_of_deaths_lose_nothing_and_fetch_nothing_twice() {
    let deaths = AtomicUsize::new(0);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let schedule = next.fetch_add(1, Ordering::SeqCst) as u64;
                    if schedule >= SCHEDULES {
                        return;
                    }
                    deaths.fetch_add(play(schedule), Ordering::SeqCst);
                }
            });
        }
    });
    let deaths = deaths.into_inner();
    println!("{SCHEDULES} schedules, {deaths} deaths");
    assert!(deaths > 2_000, "only {deaths} deaths: the schedules are too tame");
}
