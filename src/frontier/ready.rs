//! Hosts by the time they come due: a heap, ties in the order of scheduling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::HostId;
use crate::clock::Time;

/// The heap. A host stands in it at most once: the shard schedules a host only when it is not scheduled.
#[derive(Debug, Default)]
pub struct Ready {
    heap: BinaryHeap<Reverse<(Time, u64, HostId)>>,
    turn: u64,
}

impl Ready {
    /// Puts a host in, to come due at `due`.
    pub fn schedule(&mut self, host: HostId, due: Time) {
        self.turn += 1;
        self.heap.push(Reverse((due, self.turn, host)));
    }

    /// Puts a host in before all others that come due at the same time: what was fetched for its turn must not have left
    /// memory again when the turn comes.
    pub fn schedule_first(&mut self, host: HostId, due: Time) {
        self.heap.push(Reverse((due, 0, host)));
    }

    /// The host that comes due first.
    #[must_use]
    pub fn peek(&self) -> Option<(Time, HostId)> {
        self.heap.peek().map(|Reverse((due, _, host))| (*due, *host))
    }

    /// Takes out the first host if it is due at `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<HostId> {
        let (due, _) = self.peek()?;
        if due > now {
            return None;
        }
        self.heap.pop().map(|Reverse((_, _, host))| host)
    }

    /// How often a host was put in, ever.
    #[cfg(test)]
    pub(crate) fn turns(&self) -> u64 {
        self.turn
    }

    /// Hosts in the heap.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Is no host in it?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_come_out_by_due_time_then_turn() {
        let mut ready = Ready::default();
        ready.schedule(1, Time(20));
        ready.schedule(2, Time(10));
        ready.schedule(3, Time(10));
        assert_eq!(ready.peek(), Some((Time(10), 2)));
        assert_eq!(ready.pop_due(Time(9)), None);
        assert_eq!(ready.pop_due(Time(10)), Some(2));
        assert_eq!(ready.pop_due(Time(15)), Some(3));
        assert_eq!(ready.pop_due(Time(15)), None);
        assert_eq!(ready.len(), 1);
        ready.schedule_first(4, Time(20));
        assert_eq!(ready.pop_due(Time(20)), Some(4));
        assert_eq!(ready.pop_due(Time(20)), Some(1));
        assert!(ready.is_empty());
    }
}
