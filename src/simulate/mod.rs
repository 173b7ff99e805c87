//! A crawl without a network: the crawler's own judge, seen-set, queues and politeness over a web of arithmetic, in virtual
//! time, with its process killed now and then.
//!
//! What differs from a crawl is what stands outside: [`web`] answers at once (the time that an answer takes is virtual),
//! and [`rows`] keeps the queue's rows in eight bytes each instead of in a store. Since a page is a number, one bit a page
//! tells the truth: every URL that the seen-set loses is counted, not estimated.

mod met;
pub mod page;
pub mod rows;
mod setup;
pub mod web;
mod workers;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io;
use std::time::Duration;

use met::Met;
use rows::QueueRows;
use setup::{everywhere, key, of_shard};
use web::{MAX_PAGES, Web};
use workers::{Answer, Ask, Workers};

use crate::clock::Time;
use crate::hash::HashKey;
use crate::seen::{self, Account, Kind};
use crate::shard::{Done, Fact, HostRow, Link, Next, Shard, What, Work};
use crate::stats::LinkCounts;
use crate::url::Identity;

/// Most URLs of a simulated crawl.
pub const MAX_URLS: u64 = 2_000_000_000;
/// Most hosts.
pub const MAX_HOSTS: u64 = 5_000_000;
/// Most requests in flight.
pub const MAX_CONCURRENCY: u32 = 1_000_000;
/// Points of the curves.
pub const POINTS: u64 = 200;
/// Virtual time at which the crawl begins: 2026-01-01.
const BEGIN: Time = Time(1_767_225_600_000_000);
/// Answers between two looks at the clock.
const LOOK_EVERY: u64 = 4_096;

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The crawl ends when so many different URLs were met.
    pub urls: u64,
    /// The seen-set.
    pub kind: Kind,
    /// Keys it is made for.
    pub capacity: u64,
    /// Its rate when it holds them.
    pub fp: f64,
    /// Hosts of the web.
    pub hosts: u64,
    /// Requests in flight.
    pub concurrency: u32,
    /// Rest of a host after each answer.
    pub delay: Duration,
    /// How often the process is killed on the way.
    pub crashes: u64,
    /// Chooses the web and the key of the hash.
    pub seed: u64,
    /// Threads that answer.
    pub threads: usize,
}

/// Where a crawl stands.
#[derive(Debug, Clone, Default)]
pub struct Point {
    /// Different URLs met.
    pub urls: u64,
    /// Links handed to normalize.
    pub links: u64,
    /// Pages fetched.
    pub fetched: u64,
    /// Pending URLs.
    pub queued: u64,
    /// URLs that the seen-set took for seen when they were met first: counted.
    pub lost: u64,
    /// URLs met since the last point, and those of them that were lost.
    pub step: (u64, u64),
    /// Hosts met.
    pub hosts: u64,
    /// The account of the seen-set.
    pub seen: Option<Account>,
    /// Its memory, bytes.
    pub seen_bytes: u64,
    /// Memory of the process, bytes.
    pub resident: u64,
    /// Real time since the start.
    pub elapsed: Duration,
    /// Virtual time since the start.
    pub virtual_time: Duration,
}

/// How it ended.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The curve; the last point is the end.
    pub points: Vec<Point>,
    /// All links of the web were followed before so many URLs were met.
    pub exhausted: bool,
    /// Kills.
    pub crashes: u64,
    /// Requests that a kill cut off; they were made again.
    pub cut_off: u64,
    /// Pages answered more than once: those that a kill cut off between their answer and its record. None, since an answer is
    /// its record here.
    pub twice: u64,
    /// Shortest time from the end of an answer to the next request to its host, over kills too.
    pub min_gap: Option<Duration>,
    /// Requests that came too early.
    pub violations: u64,
    /// The counts of links.
    pub counts: LinkCounts,
}

/// Real time and memory, and who wants to see the crawl go on.
pub trait Watch {
    /// Real time since the start.
    fn elapsed(&self) -> Duration;
    /// Memory of the process, bytes.
    fn resident(&self) -> u64;
    /// Called some times a second.
    fn look(&mut self, point: &Point);
}

/// Runs to the end.
///
/// # Errors
/// If the seen-set cannot be made (the text says which sizes are possible).
pub fn run(settings: &Settings, watch: &mut dyn Watch) -> io::Result<Outcome> {
    let key = key(settings.seed);
    let seen = seen::make(settings.kind, key, settings.capacity, settings.fp)?;
    let web = Web {
        seed: settings.seed,
        hosts: settings.hosts,
    };
    std::thread::scope(|threads| {
        let workers = Workers::start(threads, settings.threads, web, key, everywhere()?);
        let mut crawl = Crawl {
            settings,
            web,
            identity: Identity::default(),
            shard: Shard::new(of_shard(settings), seen, 1, BEGIN),
            rows: QueueRows::default(),
            host_rows: Vec::new(),
            met: Met::default(),
            fetched: Met::default(),
            workers,
            events: BinaryHeap::new(),
            in_flight: HashMap::new(),
            tickets: 0,
            now: BEGIN,
            rested: HashMap::new(),
            next_sequence: 1,
            point: Point::default(),
            outcome: Outcome::default(),
            answers: Vec::new(),
        };
        crawl.offer_first(key)?;
        crawl.go_on(watch)?;
        Ok(crawl.outcome)
    })
}

/// A request that is under way.
struct Flight {
    host: u32,
    /// The answer, once a worker has made it.
    answer: Option<Answer>,
}

struct Crawl<'s> {
    settings: &'s Settings,
    web: Web,
    identity: Identity,
    shard: Shard,
    rows: QueueRows,
    host_rows: Vec<HostRow>,
    met: Met,
    fetched: Met,
    workers: Workers,
    /// When answers come: time and ticket.
    events: BinaryHeap<Reverse<(Time, u64)>>,
    in_flight: HashMap<u64, Flight>,
    tickets: u64,
    now: Time,
    /// When each host's last answer ended: kept apart from the shard, to judge it.
    rested: HashMap<u32, Time>,
    next_sequence: u64,
    point: Point,
    outcome: Outcome,
    answers: Vec<seen::Answer>,
}

impl Crawl<'_> {
    fn offer_first(&mut self, key: HashKey) -> io::Result<()> {
        let first = rows::item(0, 0, &self.web, &self.identity).ok_or_else(|| io::Error::other("no first page"))?;
        let print = key.fingerprint(first.url.canonical().as_bytes());
        let link = Link {
            url: first.url,
            print,
            kind: crate::extract::LinkKind::Navigation,
            depth: 0,
            requisites: 0,
            redirects: 0,
            outside: false,
            offsite: 0,
            seed: Some(print.high),
            lastmod: None,
            origin: 0,
        };
        let counts = LinkCounts {
            found: 1,
            ..LinkCounts::default()
        };
        self.met.add(0);
        self.shard.seen_mut().told(&[print], &[false]);
        let fact = self.shard.offer_seeds(vec![link], counts, self.now);
        self.keep(&fact);
        Ok(())
    }

    fn go_on(&mut self, watch: &mut dyn Watch) -> io::Result<()> {
        let step = (self.settings.urls / POINTS).max(1);
        let (mut next_point, mut answered) = (step, 0_u64);
        let between_crashes = self.settings.urls / (self.settings.crashes + 1);
        let mut next_crash = if self.settings.crashes > 0 {
            between_crashes.max(1)
        } else {
            u64::MAX
        };
        while self.met.len < self.settings.urls {
            if !self.step()? {
                self.outcome.exhausted = true;
                break;
            }
            answered += 1;
            if answered.is_multiple_of(LOOK_EVERY) {
                self.measure(watch);
                watch.look(&self.point);
            }
            if self.met.len >= next_point {
                next_point = self.met.len + step;
                self.mark(watch);
            }
            if self.met.len >= next_crash && self.outcome.crashes < self.settings.crashes {
                next_crash += between_crashes.max(1);
                self.crash()?;
            }
        }
        self.mark(watch);
        watch.look(&self.point);
        Ok(())
    }

    /// Starts what may start, and takes in the next answer. Tells whether anything is left to do.
    fn step(&mut self) -> io::Result<bool> {
        let mut wake = None;
        while self.in_flight.len() < self.settings.concurrency as usize {
            match self.shard.next(self.now) {
                Next::Start(work) => self.start(*work),
                Next::Refill {
                    host,
                    after,
                    most,
                    robots,
                } => {
                    let rows = after.map(|after| self.rows.after(host, after, most, &self.web, &self.identity));
                    // there is none to be had: every robots.txt is missing
                    let robots = robots.map(|scheme| (scheme, None));
                    self.shard.refilled(host, rows, robots);
                }
                Next::Settle(settlement) => self.keep(&settlement.fact),
                Next::Move(fact) => self.keep(&fact),
                Next::NotBefore(due) => {
                    wake = Some(due);
                    break;
                }
                Next::Blocked => break,
                // this web has no proxy
                Next::Lost(_) | Next::Empty => return Ok(false),
            }
        }
        let answer_at = self.events.peek().map(|Reverse((at, _))| *at);
        match (answer_at, wake) {
            (Some(at), wake) if wake.is_none_or(|due| at <= due) => self.take_answer(at)?,
            (_, Some(due)) => self.now = self.now.max(due),
            (_, None) => return Ok(false),
        }
        Ok(true)
    }

    fn start(&mut self, work: Work) {
        let host = work.host;
        if let Some(end) = self.rested.get(&host) {
            let gap = self.now.since(*end);
            self.outcome.min_gap = Some(self.outcome.min_gap.map_or(gap, |least| least.min(gap)));
            self.outcome.violations += u64::from(gap < self.settings.delay);
        }
        self.tickets += 1;
        let page = match &work.what {
            What::Page { item, .. } => Web::page(&item.url),
            What::Robots(_) | What::Address(_) => None,
        };
        let dice = seen::mixed(page.unwrap_or(u64::from(host)) ^ self.settings.seed);
        let took = Duration::from_micros(50_000 + dice % 500_000);
        let at = self.now + took;
        self.events.push(Reverse((at, self.tickets)));
        self.in_flight.insert(self.tickets, Flight { host, answer: None });
        self.workers.ask(Ask {
            ticket: self.tickets,
            work,
            page,
            at,
            took,
        });
    }

    fn take_answer(&mut self, at: Time) -> io::Result<()> {
        let Some(Reverse((_, ticket))) = self.events.pop() else {
            return Ok(());
        };
        self.now = self.now.max(at);
        let lost = || io::Error::other("a thread of the simulation ended before its time");
        loop {
            let flight = self.in_flight.get_mut(&ticket).ok_or_else(lost)?;
            if let Some(answer) = flight.answer.take() {
                let host = flight.host;
                self.in_flight.remove(&ticket);
                self.rested.insert(host, at);
                return self.finish(answer);
            }
            for answer in self.workers.next().ok_or_else(lost)? {
                // what was asked before a kill comes too, and is nobody's
                if let Some(flight) = self.in_flight.get_mut(&answer.ticket) {
                    flight.answer = Some(answer);
                }
            }
        }
    }

    fn finish(&mut self, answer: Answer) -> io::Result<()> {
        let Answer { page, done, links, .. } = answer;
        self.tell(&done);
        let before = self.met.len;
        for to in links {
            self.met.add(to);
        }
        let met = self.met.len - before;
        if let Some(page) = page {
            self.outcome.twice += u64::from(!self.fetched.add(page));
        }
        let fact = self.shard.finish(done, self.now);
        let admitted = fact.delta.links.admitted;
        self.point.lost += met.saturating_sub(admitted);
        self.point.step.0 += met;
        self.point.step.1 += met.saturating_sub(admitted);
        self.keep(&fact);
        if self.shard.seen().is_full() {
            self.shard.seen_mut().add_layer()?;
        }
        Ok(())
    }

    /// An exact set asks its table: here the truth.
    fn tell(&mut self, done: &Done) {
        if self.settings.kind != Kind::Exact {
            return;
        }
        let prints: Vec<_> = done.links.iter().map(|link| link.print).collect();
        self.shard.seen().ask(&prints, &mut self.answers);
        let there = done.links.iter().zip(&self.answers).map(|(link, answer)| match answer {
            seen::Answer::New => false,
            seen::Answer::Seen => true,
            seen::Answer::Ask => Web::page(&link.url).is_some_and(|page| self.met.has(page)),
        });
        let there: Vec<_> = there.collect();
        self.shard.seen_mut().told(&prints, &there);
    }

    /// What a ledger would make last.
    fn keep(&mut self, fact: &Fact) {
        if let Some((host, place)) = fact.remove {
            self.rows.remove(host, place);
        }
        for (host, place, row) in &fact.put {
            if let Some(page) = rows::page_of_row(row) {
                self.rows.put(*host, *place, page);
            }
            self.next_sequence = self.next_sequence.max(place.sequence + 1);
        }
        for (id, row) in &fact.hosts {
            let id = *id as usize;
            match self.host_rows.get_mut(id) {
                Some(known) => *known = row.clone(),
                None => self.host_rows.push(row.clone()),
            }
        }
        add(&mut self.outcome.counts, &fact.delta.links);
        self.point.fetched = self.fetched.len;
        self.shard.durable(fact.number);
        let admitted = self.outcome.counts.admitted;
        self.shard.seen_mut().durable(admitted);
    }

    /// The process dies: what is in flight and all that is in memory is gone, and another takes over what was kept.
    fn crash(&mut self) -> io::Result<()> {
        self.outcome.crashes += 1;
        self.outcome.cut_off += self.in_flight.len() as u64;
        for flight in self.in_flight.values() {
            // the host worked for us until now
            self.rested.insert(flight.host, self.now);
        }
        self.in_flight.clear();
        self.events.clear();
        // as a checkpoint and the admission log bring it back: the same keys
        let nothing = seen::make(Kind::HashSet, key(self.settings.seed), 1, self.settings.fp)?;
        let seen = self.shard.replace_seen(nothing);
        let hold_until = self.now + self.settings.delay;
        self.shard = Shard::new(of_shard(self.settings), seen, self.next_sequence, hold_until);
        self.shard.resume(self.now);
        for (id, row) in (0..).zip(&self.host_rows) {
            self.shard.load_host(row.clone(), self.rows.has(id), self.now);
        }
        Ok(())
    }

    fn measure(&mut self, watch: &dyn Watch) {
        self.point.urls = self.met.len;
        self.point.links = self.outcome.counts.found;
        self.point.queued = self.rows.len();
        self.point.hosts = self.shard.hosts() as u64;
        self.point.seen = Some(self.shard.seen().account());
        self.point.seen_bytes = self.shard.seen().memory_bytes();
        self.point.resident = watch.resident();
        self.point.elapsed = watch.elapsed();
        self.point.virtual_time = self.now.since(BEGIN);
    }

    /// A point of the curves.
    fn mark(&mut self, watch: &dyn Watch) {
        self.measure(watch);
        self.outcome.points.push(self.point.clone());
        self.point.step = (0, 0);
    }
}

fn add(sum: &mut LinkCounts, more: &LinkCounts) {
    sum.found += more.found;
    sum.malformed += more.malformed;
    sum.out_of_scope += more.out_of_scope;
    sum.trap += more.trap;
    sum.seen += more.seen;
    sum.admitted += more.admitted;
}

const _: () = assert!(MAX_URLS < MAX_PAGES);
