//! The owner of a set of hosts: seen-set, queues and politeness in one place, without a lock.
//!
//! Pure: no clock, no I/O, no async. The loop asks [`Shard::next`] what may start now, hands back what came of it to
//! [`Shard::finish`], and gives the [`Fact`] that this returns to the ledger. Every request of any kind passes `next`:
//! robots.txt is the first work of a host, redirects come back as links, retries as pending work.
//!
//! Invariants: a host has at most `per_host` requests in flight; none starts before the host is due; a host that
//! waits for anything but time (an answer in flight, a refill) is not in the heap and enters it when that arrives.

mod admit;
pub mod fact;
mod finish;
mod group;
mod host;
mod outlet;
mod own;
mod refill;
mod settings;
mod settle;
mod trap;
mod view;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

pub use fact::{Done, End, Errand, Fact, Fault, Link, RobotsBody, SeedResult, Way, What, Work};
pub use group::ADDRESS_LIFE;
use group::{Gate, Groups};
use host::{Access, Host, Mood, TRAPPED};
pub use host::{HostRow, ROBOTS_LIFE, ROBOTS_PRECLUDED, ROBOTS_UNREACHABLE, Retired, StoredAccess};
use outlet::Outlet;
pub use outlet::{AWAY, NEVER_THERE};
pub use own::{Own, seed_number};
pub use settings::Settings;

use crate::clock::Time;
use crate::cookies::Jar;
use crate::frontier::ready::Ready;
use crate::frontier::{HostId, Item, Path, Place};
use crate::politeness::{self, GlobalPace, Patience};
use crate::scope::{Sitemaps, blocklist::Blocklist};
use crate::seen::SeenSet;
use crate::url::{CrawlUrl, Scheme};

/// Items of all queues kept in memory (about 300 bytes each): so many as they are found, and so many again that come back from the
/// store. Beyond 12,500 hosts with something to fetch these have eight each.
pub const WINDOW_ITEMS: usize = 100_000;
/// Bytes of parsed robots.txt kept in memory; beyond it they are read from the store again when they are needed.
pub const ROBOTS_CACHE_BYTES: usize = 16 << 20;
/// Redirects followed from a robots.txt (RFC 9309 section 2.3.1.2).
pub const ROBOTS_REDIRECTS: u8 = 5;
/// Requests to a host in one run that may be made again in another way without being counted as retries: as many as can
/// be in flight to it when the first of them tells that it must be so.
pub const MAX_DETOURS: u32 = 64;
/// How long a host waits for a fact to become durable before it is looked at again.
const HOLD_STEP: Duration = Duration::from_millis(20);

/// What the loop does next.
#[derive(Debug)]
pub enum Next {
    /// Make this request.
    Start(Box<Work>),
    /// Ask the store for this host's rows after this place, and for its robots.txt files if said.
    Refill {
        /// The host.
        host: HostId,
        /// Rows after this place; `None` if only robots.txt is wanted.
        after: Option<Place>,
        /// So many rows at most.
        most: usize,
        /// The origins whose robots.txt is wanted.
        robots: Option<Scheme>,
    },
    /// A URL was settled without a request.
    Settle(Box<Settlement>),
    /// A URL has another place now: this is to be stored, and nothing else happened.
    Move(Box<Fact>),
    /// Nothing may start before this time.
    NotBefore(Time),
    /// Nothing may start before something in flight comes back.
    Blocked,
    /// The one way to all hosts is not there and was waited for long enough; why, for a person.
    Lost(String),
    /// Nothing is left.
    Empty,
}

/// A URL settled without a request.
#[derive(Debug)]
pub struct Settlement {
    /// The change to be stored.
    pub fact: Fact,
    /// The URL.
    pub item: Item,
    /// Why, for the log.
    pub why: String,
    /// The code of crawl.log.
    pub code: i32,
}

/// The owner of a set of hosts.
pub struct Shard {
    settings: Settings,
    seen: Box<dyn SeenSet>,
    hosts: Vec<Host>,
    names: HashMap<Box<str>, HostId>,
    ready: Ready,
    pace: GlobalPace,
    /// Nothing starts before this: the global pace said so. Kept apart from the hosts' own times, because to move every
    /// host that is due from one request's turn to the next takes longer than the turn when there are many.
    paced_until: Time,
    /// Refills to ask for before anything else.
    wishes: Vec<(HostId, Option<Place>, Option<Scheme>)>,
    next_sequence: u64,
    facts: u64,
    durable: u64,
    in_flight: usize,
    refilling: usize,
    window: usize,
    robots_bytes: usize,
    robots_order: std::collections::VecDeque<(HostId, Scheme)>,
    /// After a resume no host is asked before this time: the run before may have asked it a moment ago.
    hold_until: Time,
    /// The hosts by address, if names that share one share its gap.
    groups: Groups,
    /// Hosts that stand in the lines of their addresses.
    in_lines: usize,
    new_flags: Vec<bool>,
    /// The cookies, if they are kept.
    jar: Option<Jar>,
    /// URLs admitted from sitemaps so far.
    listed: u64,
    /// Hosts that are watched for traps, the one watched longest first.
    watched: std::collections::VecDeque<HostId>,
    /// What is fetched under each seed that has rules of its own.
    origins: HashMap<u64, own::Origin>,
    /// Hosts where all that is left waits for a seed to have more pages.
    parked: std::collections::BTreeSet<HostId>,
    /// When this run took over the hosts of the one before, if there was one.
    resumed: Option<Time>,
    /// What is settled without a request, if the run has a list.
    blocklist: Option<Arc<Blocklist>>,
    outlet: Outlet,
}

impl Shard {
    /// A shard without hosts. Sequence numbers and host ids go on from what the store holds.
    #[must_use]
    pub fn new(settings: Settings, seen: Box<dyn SeenSet>, next_sequence: u64, hold_until: Time) -> Self {
        let pace = GlobalPace::new(settings.patience.global_rate);
        Self {
            settings,
            seen,
            hosts: Vec::new(),
            names: HashMap::new(),
            ready: Ready::default(),
            pace,
            paced_until: Time(0),
            wishes: Vec::new(),
            next_sequence: next_sequence.max(1),
            facts: 0,
            durable: 0,
            in_flight: 0,
            refilling: 0,
            window: 0,
            robots_bytes: 0,
            robots_order: std::collections::VecDeque::new(),
            hold_until,
            groups: Groups::new(),
            in_lines: 0,
            new_flags: Vec::new(),
            listed: 0,
            jar: None,
            watched: std::collections::VecDeque::new(),
            origins: HashMap::new(),
            parked: std::collections::BTreeSet::new(),
            resumed: None,
            blocklist: None,
            outlet: Outlet::default(),
        }
    }

    /// Keeps and sends cookies from now on, beginning with these.
    pub fn keep_cookies(&mut self, jar: Jar) {
        self.jar = Some(jar);
    }

    /// Takes in how many URLs earlier runs admitted from sitemaps.
    pub fn load_listed(&mut self, urls: u64) {
        self.listed = urls;
    }

    #[expect(clippy::unused_self, reason = "reads as what it is")]
    fn id(&self, index: usize) -> HostId {
        #[expect(clippy::expect_used, reason = "2^32 hosts do not fit into memory")]
        HostId::try_from(index).expect("fewer than 2^32 hosts")
    }

    fn host(&mut self, id: HostId) -> &mut Host {
        #[expect(
            clippy::expect_used,
            reason = "ids are handed out by this shard and never taken back"
        )]
        self.hosts.get_mut(id as usize).expect("a host of this shard")
    }

    fn schedule(&mut self, id: HostId) {
        if let Some(due) = self.host(id).stand_in_line() {
            self.ready.schedule(id, due);
        }
    }

    fn schedule_first(&mut self, id: HostId) {
        if let Some(due) = self.host(id).stand_in_line() {
            self.ready.schedule_first(id, due);
        }
    }

    /// What may start at `now`.
    pub fn next(&mut self, now: Time) -> Next {
        loop {
            if let Some((host, after, robots)) = self.wishes.pop() {
                self.refilling += 1;
                let most = self.share();
                return Next::Refill {
                    host,
                    after,
                    most,
                    robots,
                };
            }
            if self.ready.peek().is_some()
                && let Some(bar) = self.outlet.bars(now, self.in_flight)
            {
                return bar;
            }
            if let Some((due, _)) = self.ready.peek()
                && now < self.paced_until
            {
                return Next::NotBefore(due.max(self.paced_until));
            }
            let Some(id) = self.ready.pop_due(now) else {
                return match self.ready.peek() {
                    Some((due, _)) => Next::NotBefore(due),
                    None if self.in_flight + self.refilling > 0 => Next::Blocked,
                    None => Next::Empty,
                };
            };
            self.host(id).scheduled = false;
            let next = self.turn(id, now);
            if self.settings.per_address {
                self.had_its_turn(id, now);
            }
            if let Some(next) = next {
                return next;
            }
        }
    }

    /// One host's turn. `None` if it has nothing to start now; it is then scheduled for when it may have.
    fn turn(&mut self, id: HostId, now: Time) -> Option<Next> {
        let (durable, sitemaps) = (self.durable, self.settings.sitemaps);
        let (obey, per_host) = (self.settings.robots, self.settings.per_host);
        if self.host(id).in_flight >= per_host {
            return None;
        }
        if let Some(line) = self.first_is_blocked(id) {
            return Some(self.settle_blocked(id, &line));
        }
        let host = self.host(id);
        if let Some(Retired { code, why }) = host.first_is_silent().cloned() {
            return Some(self.settle(id, why, code));
        }
        if host.due > now {
            self.schedule(id);
            return None;
        }
        if host.hold > durable {
            // what this host asked of us is not on disk yet: a kill now would make us forget it
            host.due = now + HOLD_STEP;
            self.schedule(id);
            return None;
        }
        if let Some(errand) = host.errands.front().cloned() {
            let blocked = self.is_blocked(&errand.url); // where a robots.txt has moved to
            let host = self.host(id);
            let silent = blocked || matches!(host.access(errand.url.scheme()), Access::Silent(_));
            if silent || matches!(host.mood, Mood::Retired(_)) {
                host.errands.pop_front();
                self.fail_errand(&errand, now);
                self.schedule(id);
                return None;
            }
            if let Gate::Closed(instead) = self.gate(id, now) {
                return instead;
            }
            return self.start(id, now, |host| {
                host.errands.pop_front();
                What::Robots(errand)
            });
        }
        let Some((_, item)) = host.queue.front() else {
            self.refill(id, None);
            return None;
        };
        let scheme = item.url.scheme();
        if let Mood::Retired(retired) = &host.mood {
            let Retired { code, why } = retired.clone();
            return Some(self.settle(id, why, code));
        }
        if let Some(rule) = host.first_is_trap() {
            return Some(self.settle_trap(id, rule));
        }
        let origin = item.path.origin;
        if self.is_spent(origin) {
            return self.park(id);
        }
        let host = self.host(id);
        let (_, item) = host.queue.front()?;
        if !obey {
            return self.start_page(id, now);
        }
        let path = item.url.path_and_query().to_owned();
        let believed = |at: Time| now.since(at) < ROBOTS_LIFE;
        match host.access(scheme) {
            // settled above
            Access::Fetching(_) | Access::Silent(_) => None,
            Access::AllowAll(at) if believed(*at) => self.start_page(id, now),
            Access::DisallowAll(at) if believed(*at) => {
                Some(self.settle(id, "robots.txt could not be had".to_owned(), ROBOTS_UNREACHABLE))
            }
            Access::Rules {
                at, rules: Some(rules), ..
            } if believed(*at) => {
                let rules = Arc::clone(rules);
                if rules.allows(&path) {
                    return self.start_page(id, now);
                }
                let line = rules
                    .deciding_line(&path)
                    .map(|(n, line)| format!("robots.txt:{n}: {line}"));
                Some(self.settle(id, line.unwrap_or_else(|| "robots.txt".to_owned()), ROBOTS_PRECLUDED))
            }
            Access::Rules { at, rules: None, .. } if believed(*at) => {
                self.refill(id, Some(scheme));
                None
            }
            Access::Due(_) | Access::AllowAll(_) | Access::DisallowAll(_) | Access::Rules { .. } => {
                let tries = if let Access::Due(tries) = host.access(scheme) {
                    *tries
                } else {
                    0
                };
                let (_, item) = host.queue.front()?;
                let errand = Errand {
                    url: item.url.robots_txt(),
                    owner: id,
                    scheme,
                    hop: 0,
                    sitemaps: wants_sitemaps(sitemaps, &item.path),
                    depth: item.path.depth,
                    origin: item.path.origin,
                };
                let held = match host.access(scheme) {
                    Access::Rules { rules: Some(rules), .. } => rules.memory_bytes(),
                    _ => 0,
                };
                if let Gate::Closed(instead) = self.gate(id, now) {
                    return instead;
                }
                let next = self.start(id, now, |host| {
                    host.set_access(scheme, Access::Fetching(tries));
                    What::Robots(errand)
                })?;
                if held > 0 {
                    // what was believed until now leaves memory with its place in the cache
                    self.robots_bytes = self.robots_bytes.saturating_sub(held);
                    self.robots_order.retain(|place| *place != (id, scheme));
                }
                Some(next)
            }
        }
    }

    fn start_page(&mut self, id: HostId, now: Time) -> Option<Next> {
        if let Some(most) = self.host(id).most {
            let host = self.host(id);
            if host.fetched + host.in_flight as u64 >= most {
                if host.in_flight == 0 {
                    host.spent = true;
                }
                return None;
            }
        }
        self.host(id).queue.front()?;
        if let Gate::Closed(instead) = self.gate(id, now) {
            return instead;
        }
        let next = self.start(id, now, |host| {
            #[expect(clippy::expect_used, reason = "the front was there three lines above")]
            let (place, item) = host.queue.pop().expect("a front");
            What::Page { place, item }
        })?;
        if let Next::Start(work) = &next
            && let What::Page { item, .. } = &work.what
        {
            self.started_under(item.path.origin);
        }
        self.window = self.window.saturating_sub(1);
        self.prefetch(id);
        Some(next)
    }

    /// Starts a request of a host that is due, unless the global pace says later.
    fn start(&mut self, id: HostId, now: Time, take: impl FnOnce(&mut Host) -> What) -> Option<Next> {
        if let Err(due) = self.pace.take(now) {
            self.paced_until = due;
            self.schedule(id);
            return None;
        }
        let delay = self.delay(id);
        let per_host = self.settings.per_host;
        let host = self.host(id);
        let what = take(host);
        let gap = host.rested_from.map(|end| now.since(end));
        let gap_us = gap.map(|gap| u64::try_from(gap.as_micros()).unwrap_or(u64::MAX));
        // several at once are paced from start to start
        let owed = delay.max(host.pause);
        let too_early = per_host == 1 && gap.is_some_and(|gap| gap < owed);
        host.in_flight += 1;
        if host.in_flight < per_host {
            host.due = now + delay;
            self.schedule(id);
        }
        self.in_flight += 1;
        let (way, too_early_for_others) = if self.settings.per_address {
            self.depart(id, now, delay)
        } else {
            (Way::Any, false)
        };
        let mut work = Work {
            host: id,
            what,
            way,
            cookie: None,
            gap_us,
            too_early: too_early || too_early_for_others,
            rest: owed,
            read: false,
        };
        work.read = self.wants_to_read(id, &work.what);
        work.cookie = self.cookie(work.url(), now);
        Some(Next::Start(Box::new(work)))
    }

    /// The `Cookie` header of a request.
    fn cookie(&self, url: &CrawlUrl, now: Time) -> Option<String> {
        self.jar.as_ref()?.header(url, now)
    }

    fn delay(&mut self, id: HostId) -> Duration {
        let crawl_delay = self.host(id).crawl_delay();
        politeness::host_delay(&self.patience(id), crawl_delay)
    }

    /// The settings of patience for a host.
    fn patience(&mut self, id: HostId) -> Patience {
        let pace = self.host(id).pace;
        self.settings.patience_with(pace)
    }

    fn new_fact(&mut self) -> Fact {
        self.facts += 1;
        Fact {
            number: self.facts,
            ..Fact::default()
        }
    }

    /// All facts up to this number survive a crash now.
    pub fn durable(&mut self, number: u64) {
        self.durable = number;
    }
}

/// Are the sitemaps of a host wanted whose robots.txt is fetched for this URL? Not of a host beyond the scope, which has
/// a page's picture only; where a seed redirected to is within.
fn wants_sitemaps(sitemaps: Sitemaps, path: &Path) -> bool {
    match sitemaps {
        Sitemaps::No => false,
        Sitemaps::Yes => !path.outside || path.seed.is_some(),
        Sitemaps::Only => path.seed.is_some(),
    }
}

#[cfg(test)]
mod tests;
