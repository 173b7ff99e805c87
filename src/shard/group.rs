//! Names that share an address share one gap (`--delay-per-address`): the groups of hosts and their lines.
//!
//! The address of a host is its first errand, a look-up without a request. From then on it belongs to the group of its
//! address, and a request starts only when host and group are both due. A host that is due while its group is not stands
//! in the group's line, out of the heap; the first of the line is *called*: it alone goes back into the heap, for when
//! the group is due. So a request moves one host, however many names an address has.
//!
//! Invariant: while a line is not empty, either one of its hosts has been called, or a request of the group is in
//! flight whose end calls the next.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use super::fact::{End, Way, What, Work};
use super::{Next, Shard};
use crate::clock::Time;
use crate::frontier::HostId;
use crate::politeness;

/// How long a host keeps to the address that was found for it.
pub const ADDRESS_LIFE: Duration = Duration::from_secs(3600);

/// What is known of a host's address.
#[derive(Debug, Clone, Default)]
pub(super) enum Address {
    /// Nothing.
    #[default]
    Unknown,
    /// It is being looked up.
    Asked,
    /// It, and since when.
    Known(IpAddr, Time),
    /// The look-up failed: the next request fails with it.
    Failed(Box<End>),
}

impl Address {
    pub(super) fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Known(ip, _) => Some(*ip),
            _ => None,
        }
    }
}

/// The hosts on one address. There are never more groups than hosts.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// No request to the address starts before.
    due: Time,
    in_flight: usize,
    /// End of the last response, and the gap that is owed after it.
    rested_from: Option<(Time, Duration)>,
    /// Hosts whose present address it is.
    members: usize,
    /// Hosts that are due and wait for the group.
    line: VecDeque<HostId>,
    /// The host that was called last and has not had its turn yet.
    called: Option<HostId>,
}

pub(super) type Groups = HashMap<IpAddr, Group>;

/// What the group says to a host that wants to start a request.
pub(super) enum Gate {
    /// It may.
    Open,
    /// It may not; this is to be done instead, if anything.
    Closed(Option<Next>),
}

impl Shard {
    /// May a host that is due start a request? If not, it stands in its group's line, or its address is looked up.
    pub(super) fn gate(&mut self, id: HostId, now: Time) -> Gate {
        if !self.settings.per_address {
            return Gate::Open;
        }
        let per_host = self.settings.per_host;
        let host = self.host(id);
        let idle = host.in_flight == 0;
        match host.address.clone() {
            Address::Asked => Gate::Closed(None),
            Address::Failed(_) => Gate::Open,
            Address::Unknown => Gate::Closed(self.look_up(id)),
            Address::Known(ip, at) => {
                let group = self.groups.entry(ip).or_default();
                let called = group.called == Some(id);
                let others_first = group.called.is_some() && !called;
                if group.due > now || group.in_flight >= per_host || others_first {
                    if called {
                        group.called = None;
                        group.line.push_front(id);
                    } else {
                        group.line.push_back(id);
                    }
                    self.host(id).in_line = true;
                    self.in_lines += 1;
                    return Gate::Closed(None);
                }
                if idle && now.since(at) >= ADDRESS_LIFE {
                    self.leave(id, ip);
                    return Gate::Closed(self.look_up(id));
                }
                Gate::Open
            }
        }
    }

    fn look_up(&mut self, id: HostId) -> Option<Next> {
        let host = self.host(id);
        let errand = host.errands.front().map(|errand| errand.url.clone());
        let url = errand.or_else(|| host.queue.front().map(|(_, item)| item.url.clone()))?;
        host.address = Address::Asked;
        host.in_flight += 1;
        self.in_flight += 1;
        Some(Next::Start(Box::new(Work {
            host: id,
            what: What::Address(url),
            cookie: None,
            way: Way::Any,
            gap_us: None,
            too_early: false,
            rest: Duration::ZERO,
            read: false,
        })))
    }

    /// A look-up has ended. Nothing of it needs to survive: a restart looks up again.
    pub(super) fn settle_address(&mut self, id: HostId, end: End, now: Time) {
        if let End::Found(ip) = end {
            self.host(id).address = Address::Known(ip, now);
            let start = self.hold_until;
            let group = self.groups.entry(ip).or_insert_with(|| Group {
                // who on this address was asked last by the run before is not known: so none is, until all might be
                due: start,
                ..Group::default()
            });
            group.members += 1;
        } else {
            self.host(id).address = Address::Failed(Box::new(end));
        }
        self.schedule(id);
    }

    fn leave(&mut self, id: HostId, ip: IpAddr) {
        self.host(id).address = Address::Unknown;
        let Some(group) = self.groups.get_mut(&ip) else { return };
        if group.called == Some(id) {
            group.called = None;
        }
        group.members -= 1;
        if group.members == 0 {
            // due, and without anything in flight: nobody is owed anything here
            self.groups.remove(&ip);
        } else {
            self.call(ip);
        }
    }

    /// How a request of this host goes, and whether it comes too early for the others on its address.
    pub(super) fn depart(&mut self, id: HostId, now: Time, delay: Duration) -> (Way, bool) {
        let per_host = self.settings.per_host;
        let host = self.host(id);
        let ip = match std::mem::take(&mut host.address) {
            Address::Known(ip, at) => {
                host.address = Address::Known(ip, at);
                ip
            }
            Address::Failed(end) => return (Way::Nowhere(end), false),
            other => {
                host.address = other;
                return (Way::Any, false);
            }
        };
        let group = self.groups.entry(ip).or_default();
        let early = group.rested_from.is_some_and(|(end, owed)| now.since(end) < owed);
        group.in_flight += 1;
        if group.called == Some(id) {
            group.called = None;
        }
        if group.in_flight < per_host {
            group.due = now + delay;
        }
        (Way::To(ip), early && per_host == 1)
    }

    /// A request to an address has ended: all its hosts rest the gap of the one that was asked. What a host asks for
    /// itself (Retry-After) and what its failures cost is its own.
    pub(super) fn arrive(&mut self, id: HostId, ip: IpAddr, at: Time) {
        let gap = self.delay(id).max(self.host(id).pause);
        if let Some(group) = self.groups.get_mut(&ip) {
            group.in_flight -= 1;
            group.due = group.due.max(politeness::next_due(at, gap));
            group.rested_from = Some((group.rested_from.map_or(at, |(end, _)| end.max(at)), gap));
        }
        self.call(ip);
    }

    /// A host has had its turn: if it was called and did not start, the next is.
    pub(super) fn had_its_turn(&mut self, id: HostId, now: Time) {
        let host = self.host(id);
        let Some(ip) = host.address.ip() else { return };
        // kept by the pace of the whole crawl alone: still the one that was called
        let still_waits = host.scheduled && host.due <= now;
        if let Some(group) = self.groups.get_mut(&ip)
            && group.called == Some(id)
            && !still_waits
        {
            group.called = None;
        }
        self.call(ip);
    }

    /// Calls the first of the line, if the group has room for a request.
    fn call(&mut self, ip: IpAddr) {
        let per_host = self.settings.per_host;
        while let Some(group) = self.groups.get_mut(&ip) {
            if group.called.is_some() || group.in_flight >= per_host {
                return;
            }
            let Some(id) = group.line.pop_front() else { return };
            let due = group.due;
            group.called = Some(id);
            let host = self.host(id);
            host.in_line = false;
            host.due = host.due.max(due);
            self.in_lines -= 1;
            self.schedule(id);
            if !self.host(id).scheduled
                && let Some(group) = self.groups.get_mut(&ip)
            {
                // nothing is left for it to do
                group.called = None;
            }
        }
    }
}

#[cfg(test)]
impl Shard {
    /// Makes every group due at once: what a defect would do.
    pub(super) fn forget_dues(&mut self) {
        for group in self.groups.values_mut() {
            group.due = Time(0);
            group.line.clear();
            group.called = None;
        }
    }
}
