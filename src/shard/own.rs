//! What holds for single hosts and seeds: pauses and budgets of pages.
//!
//! A URL whose seed has no pages left is parked: it goes to the very end of its host's queue and stays pending, so that
//! a later run with more pages goes on. A host is done for this run when all that is left in its queue is parked and was
//! found without pages since anything changed.

use std::collections::HashMap;
use std::time::Duration;

use super::host::Host;
use super::{HostRow, Next, Settings, Shard};
use crate::clock::Time;
use crate::frontier::{HostId, Place};
use crate::hash::HashKey;
use crate::politeness::{self, HostRule, Patience};
use crate::scope::reach::Seed;
use crate::url::{CrawlUrl, covers_host};

/// Settings for single hosts and seeds.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// `[[host]]`: the first that covers a host counts.
    pub hosts: Vec<HostRule>,
    /// Pauses that seeds ask for their hosts, by host key.
    pub delays: HashMap<String, Duration>,
    /// URLs fetched under a seed at most, by its number.
    pub budgets: HashMap<u64, u64>,
}

/// The number of a seed: half of its fingerprint, and never zero.
#[must_use]
pub fn seed_number(seed: &CrawlUrl, key: &HashKey) -> u64 {
    key.fingerprint(seed.canonical().as_bytes()).high.max(1)
}

impl Own {
    /// Takes in what seeds ask for. Of several seeds on one host the longest pause holds, of one that is named twice
    /// the first line.
    pub fn add_seeds(&mut self, seeds: &[Seed], key: &HashKey) {
        for seed in seeds {
            let Some(rules) = &seed.rules else { continue };
            if let Some(delay) = rules.delay {
                let longest = self.delays.entry(seed.url.host_key().to_owned()).or_default();
                *longest = delay.max(*longest);
            }
            if let Some(most) = rules.max_pages {
                self.budgets.entry(seed_number(&seed.url, key)).or_insert(most);
            }
        }
    }

    /// The entry of a host, by its key.
    #[must_use]
    pub fn host(&self, key: &str) -> Option<&HostRule> {
        self.hosts.iter().find(|rule| covers_host(&rule.host, key))
    }
}

/// What is fetched under a seed that has rules of its own.
#[derive(Debug, Default)]
pub(super) struct Origin {
    fetched: u64,
    in_flight: u64,
}

impl Settings {
    /// Gives a host its own pause and budget.
    pub(super) fn furnish(&self, host: &mut Host) {
        let rule = self.own.host(&host.name);
        let delay = self.own.delays.get(&host.name).copied();
        host.pace = delay.or_else(|| rule.and_then(|rule| rule.delay));
        host.most = rule.and_then(|rule| rule.max_pages).or(self.max_pages_per_host);
    }

    /// The settings of patience with a host's own pause.
    pub(super) fn patience_with(&self, pace: Option<Duration>) -> Patience {
        Patience {
            delay: pace.unwrap_or(self.patience.delay),
            ..self.patience.clone()
        }
    }
}

impl Shard {
    /// The hosts are those of an earlier run, which may have asked any of them a moment ago.
    pub fn resume(&mut self, now: Time) {
        self.resumed = Some(now);
    }

    /// Takes in a host of an earlier run, in order of their ids. It is held its own delay first, and not longer than
    /// the longest wait, whatever the clock did meanwhile.
    pub fn load_host(&mut self, row: HostRow, has_rows: bool, now: Time) {
        let id = self.id(self.hosts.len());
        let row_due = row.due;
        let mut host = Host::from_row(row, has_rows, now);
        self.settings.furnish(&mut host);
        let patience = self.settings.patience_with(host.pace);
        let delay = politeness::host_delay(&patience, host.crawl_delay());
        let longest = now + self.settings.patience.max_wait.max(delay);
        host.due = row_due.min(longest).max(now + delay);
        if self.settings.per_address {
            // which names share an address is not known yet: a gap that one is owed holds for all
            self.hold_until = self.hold_until.max(host.due);
        }
        host.due = host.due.max(self.hold_until);
        self.names.insert(host.name.as_str().into(), id);
        self.hosts.push(host);
        self.schedule(id);
    }

    /// A host that is met for the first time.
    pub(super) fn new_host(&mut self, name: &str, now: Time) -> Host {
        let mut host = Host::new(name.to_owned(), now.max(self.hold_until));
        self.settings.furnish(&mut host);
        if let (Some(resumed), Some(pace)) = (self.resumed, host.pace) {
            // the run before may have asked it, and died before that was durable
            host.due = host.due.max(resumed + pace);
        }
        host
    }

    /// Takes in how many URLs earlier runs fetched under a seed.
    pub fn load_origin(&mut self, number: u64, fetched: u64) {
        self.origins.entry(number).or_default().fetched = fetched;
    }

    /// Has the seed of this number used up its pages?
    pub(super) fn is_spent(&self, origin: u64) -> bool {
        if origin == 0 {
            return false;
        }
        let Some(most) = self.settings.own.budgets.get(&origin) else {
            return false;
        };
        let used = self.origins.get(&origin).map_or(0, |of| of.fetched + of.in_flight);
        used >= *most
    }

    pub(super) fn started_under(&mut self, origin: u64) {
        if origin != 0 {
            self.origins.entry(origin).or_default().in_flight += 1;
        }
    }

    /// Counts a URL that was fetched under a seed, and says what is to be stored.
    pub(super) fn fetched_under(&mut self, origin: u64) -> Option<(u64, u64)> {
        if origin == 0 {
            return None;
        }
        let of = self.origins.entry(origin).or_default();
        of.fetched += 1;
        Some((origin, of.fetched))
    }

    /// A request under a seed has ended. If it brought no page, another URL may have its place.
    pub(super) fn landed_under(&mut self, origin: u64) {
        let before = self.is_spent(origin);
        let Some(of) = self.origins.get_mut(&origin) else {
            return;
        };
        of.in_flight = of.in_flight.saturating_sub(1);
        if before && !self.is_spent(origin) {
            for id in std::mem::take(&mut self.parked) {
                let host = self.host(id);
                host.spent = false;
                host.parked_from = None;
                self.schedule(id);
            }
        }
    }

    /// Parks the first URL of a host, whose seed has no pages left; nothing if all that is left is parked.
    pub(super) fn park(&mut self, id: HostId) -> Option<Next> {
        let sequence = self.next_sequence;
        let host = self.host(id);
        let (place, _) = host.queue.front()?;
        let parked = place.priority == Place::PARKED;
        if parked && host.parked_from.is_some_and(|from| place.sequence >= from) {
            host.spent = true;
            self.parked.insert(id);
            return None;
        }
        host.parked_from.get_or_insert(sequence);
        let (place, item) = host.queue.pop()?;
        host.queue.settled(place);
        self.window = self.window.saturating_sub(1);
        let mut fact = self.new_fact();
        fact.remove = Some((id, place));
        self.push(id, item, Place::PARKED, &mut fact.put);
        self.prefetch(id);
        self.schedule(id);
        Some(Next::Move(Box::new(fact)))
    }

    /// Has a seed used up its pages with URLs left?
    #[must_use]
    pub fn any_seed_spent(&self) -> bool {
        !self.parked.is_empty()
    }
}
