//! What comes back from the store: rows beyond a queue's head, and robots.txt files whose parsed form left memory.

use std::sync::Arc;

use super::host::Access;
use super::{ROBOTS_CACHE_BYTES, Shard, WINDOW_ITEMS};
use crate::frontier::queue::REFILL_ROWS;
use crate::frontier::{HostId, Item, Place};
use crate::robots::Robots;
use crate::url::Scheme;

/// Rows that a host's head may have however many hosts there are.
pub(super) const LEAST_SHARE: usize = 8;

impl Shard {
    /// Rows that a host's head is filled to: its share of the memory that all heads have.
    pub(super) fn share(&self) -> usize {
        let heads = self.scheduled() + self.in_flight + self.refilling + 1;
        (WINDOW_ITEMS / heads).clamp(LEAST_SHARE, REFILL_ROWS)
    }

    pub(super) fn prefetch(&mut self, id: HostId) {
        let low = self.share() / 2;
        if let Some(after) = self.host(id).queue.wants_refill(low) {
            self.wishes.push((id, Some(after), None));
        }
    }

    /// Asks the store for rows (if the head ran low) and for a robots.txt.
    pub(super) fn refill(&mut self, id: HostId, robots: Option<Scheme>) {
        let low = self.share() / 2;
        let after = self.host(id).queue.wants_refill(low);
        if after.is_some() || robots.is_some() {
            self.wishes.push((id, after, robots));
        }
    }

    /// The store's answer to [`Next::Refill`](super::Next::Refill): rows in order (`None` if none were asked for), whether they were all,
    /// and the robots.txt that was asked for (`None` also if the store has none).
    pub fn refilled(
        &mut self,
        id: HostId,
        rows: Option<(Vec<(Place, Item)>, bool)>,
        robots: Option<(Scheme, Option<Vec<u8>>)>,
    ) {
        self.refilling -= 1;
        let agent = self.settings.agent.clone();
        let mut cached = None;
        let host = self.host(id);
        let before = host.queue.in_memory();
        if let Some((rows, complete)) = rows {
            host.queue.refilled(rows, complete);
        }
        let after = host.queue.in_memory();
        if let Some((scheme, bytes)) = robots {
            match (host.access(scheme).clone(), bytes) {
                (Access::Rules { at, delay, .. }, Some(bytes)) => {
                    let rules = Robots::parse(&bytes, &agent);
                    cached = Some((scheme, rules.memory_bytes()));
                    host.set_access(
                        scheme,
                        Access::Rules {
                            at,
                            rules: Some(Arc::new(rules)),
                            delay,
                        },
                    );
                }
                (Access::Rules { .. }, None) => host.set_access(scheme, Access::Due(0)),
                _ => {}
            }
        }
        self.window = (self.window + after).saturating_sub(before);
        if let Some((scheme, bytes)) = cached {
            self.remember_robots(id, scheme, bytes);
            self.schedule_first(id);
        } else {
            self.schedule(id);
        }
    }

    /// Counts parsed rules against the cache's bound and lets the oldest go.
    pub(super) fn remember_robots(&mut self, id: HostId, scheme: Scheme, bytes: usize) {
        self.robots_bytes += bytes;
        self.robots_order.push_back((id, scheme));
        while self.robots_bytes > ROBOTS_CACHE_BYTES && self.robots_order.len() > 1 {
            let Some((old, scheme)) = self.robots_order.pop_front() else {
                break;
            };
            let host = self.host(old);
            if let Access::Rules {
                at,
                rules: Some(rules),
                delay,
            } = host.access(scheme).clone()
            {
                host.set_access(scheme, Access::Rules { at, rules: None, delay });
                self.robots_bytes = self.robots_bytes.saturating_sub(rules.memory_bytes());
            }
        }
    }
}
