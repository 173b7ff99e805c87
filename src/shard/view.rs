//! What the loop and the report want to know of a shard.

use super::Shard;
use crate::clock::Time;
use crate::seen::SeenSet;

impl Shard {
    /// The seen-set.
    #[must_use]
    pub fn seen(&self) -> &dyn SeenSet {
        self.seen.as_ref()
    }

    /// The seen-set, to grow it.
    pub fn seen_mut(&mut self) -> &mut dyn SeenSet {
        self.seen.as_mut()
    }

    /// Puts a larger seen-set in place of the present one, which it gives back.
    pub fn replace_seen(&mut self, seen: Box<dyn SeenSet>) -> Box<dyn SeenSet> {
        std::mem::replace(&mut self.seen, seen)
    }

    /// Requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Hosts that wait for their time or for their address.
    #[must_use]
    pub fn scheduled(&self) -> usize {
        self.ready.len() + self.in_lines
    }

    /// Hosts known.
    #[must_use]
    pub fn hosts(&self) -> usize {
        self.hosts.len()
    }

    /// When the next host comes due, and which.
    #[must_use]
    pub fn next_due(&self) -> Option<(Time, &str)> {
        let (due, id) = self.ready.peek()?;
        self.hosts.get(id as usize).map(|host| (due, host.name.as_str()))
    }

    /// Has a host used up its page budget with URLs left?
    #[must_use]
    pub fn any_spent(&self) -> bool {
        self.hosts
            .iter()
            .any(|host| host.spent && host.most.is_some_and(|most| host.fetched >= most))
    }
}
