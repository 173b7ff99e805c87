//! The queue of one host: the head in memory, the rest in the store.
//!
//! Invariant: `head` holds every pending row at or before `edge` that is not in flight, and nothing after it. Without an
//! edge the whole queue is in memory. While a refill is under way, rows that come in beyond the edge are kept in `late`
//! too, because the store's answer may or may not hold them already; if there are too many, the answer is thrown away
//! and asked for again. What is in flight stands in `out`: its row is still in the store, and an answer may bring it.

use std::collections::{BTreeMap, BTreeSet};

use super::{Item, Place};

/// Items of one host kept in memory at most.
pub const HEAD_MAX: usize = 1_024;
/// Rows asked of the store at once, at most.
pub const REFILL_ROWS: usize = 512;
/// Items that come in beyond the edge during one refill and are remembered.
const LATE_MAX: usize = 1_024;

/// Rows of one host, in order, with their places.
pub type Rows = Vec<(Place, Item)>;

/// The pending URLs of one host.
#[derive(Debug, Default)]
pub struct Queue {
    head: BTreeMap<Place, Item>,
    edge: Option<Place>,
    out: BTreeSet<Place>,
    refill: Refill,
}

#[derive(Debug, Default)]
enum Refill {
    #[default]
    None,
    Asked {
        late: BTreeMap<Place, Item>,
        out: BTreeSet<Place>,
        overflowed: bool,
    },
}

impl Queue {
    /// A queue of which only the store knows what is in it; nothing stands before `low`.
    #[must_use]
    pub fn in_store(low: Place) -> Self {
        let before = Place {
            priority: low.priority,
            sequence: low.sequence.saturating_sub(1),
        };
        Self {
            edge: Some(before),
            ..Self::default()
        }
    }

    /// Items in memory.
    #[must_use]
    pub fn in_memory(&self) -> usize {
        let late = match &self.refill {
            Refill::Asked { late, .. } => late.len(),
            Refill::None => 0,
        };
        self.head.len() + late
    }

    /// Nothing waits, in memory or in the store. (Something may be in flight.)
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head.is_empty() && self.edge.is_none()
    }

    /// Takes a new item, which the caller also writes to the store. `keep` says whether memory has room for it.
    pub fn push(&mut self, place: Place, item: Item, keep: bool) {
        if self.edge.is_some_and(|edge| place > edge) {
            if let Refill::Asked { late, overflowed, .. } = &mut self.refill {
                if late.len() < LATE_MAX {
                    late.insert(place, item);
                } else {
                    *overflowed = true;
                }
            }
            return;
        }
        if !keep && self.edge.is_none() && self.head.keys().next_back().is_none_or(|last| place > *last) {
            // the first item beyond the memory's bound: from here on the store alone knows
            self.edge = Some(self.head.keys().next_back().copied().unwrap_or(Place::FIRST));
            return;
        }
        self.head.insert(place, item);
        if self.head.len() > HEAD_MAX {
            self.shrink();
        }
    }

    /// Leaves the later half of the head to the store.
    fn shrink(&mut self) {
        let middle = self.head.keys().nth(HEAD_MAX / 2).copied();
        let Some(middle) = middle else { return };
        let beyond = self.head.split_off(&middle);
        self.edge = self.head.keys().next_back().copied();
        if let Refill::Asked { late, overflowed, .. } = &mut self.refill {
            // a refill asked from the old edge must not skip what was just left to the store
            late.clear();
            *overflowed = true;
        }
        drop(beyond);
    }

    /// The first item, left in place.
    #[must_use]
    pub fn front(&self) -> Option<(Place, &Item)> {
        self.head.first_key_value().map(|(place, item)| (*place, item))
    }

    /// Takes the first item: it is in flight until [`Queue::settled`].
    pub fn pop(&mut self) -> Option<(Place, Item)> {
        let (place, item) = self.head.pop_first()?;
        self.out.insert(place);
        Some((place, item))
    }

    /// The item of this place is done with, and the removal of its row is on its way to the store.
    pub fn settled(&mut self, place: Place) {
        self.out.remove(&place);
    }

    /// Should the store be asked now, because fewer than `low` items are in memory (or none)? If so the place after which it shall
    /// read; the refill is then under way.
    pub fn wants_refill(&mut self, low: usize) -> Option<Place> {
        let edge = self.edge?;
        if self.head.len() >= low.max(1) || matches!(self.refill, Refill::Asked { .. }) {
            return None;
        }
        self.refill = Refill::Asked {
            late: BTreeMap::new(),
            out: self.out.clone(),
            overflowed: false,
        };
        Some(edge)
    }

    /// Is an answer of the store awaited?
    #[must_use]
    pub fn is_refilling(&self) -> bool {
        matches!(self.refill, Refill::Asked { .. })
    }

    /// The store's answer: all rows after the edge, up to as many as were asked for; `complete` if there were no more.
    pub fn refilled(&mut self, rows: Rows, complete: bool) {
        let Refill::Asked { late, out, overflowed } = std::mem::take(&mut self.refill) else {
            unreachable!("the store answers only when it was asked");
        };
        if overflowed {
            return;
        }
        let edge = if complete {
            None
        } else {
            rows.last().map(|(place, _)| *place)
        };
        self.head
            .extend(rows.into_iter().filter(|(place, _)| !out.contains(place)));
        self.head.extend(
            late.into_iter()
                .filter(|(place, _)| edge.is_none_or(|edge| *place <= edge)),
        );
        self.edge = edge;
        if self.head.len() > HEAD_MAX {
            self.shrink();
        }
    }

    /// The lowest place that may still be pending, for the cursor of a later run.
    #[must_use]
    pub fn low(&self) -> Option<Place> {
        let waiting = self.head.keys().next().copied().or(self.edge);
        let out = self.out.first().copied();
        waiting.into_iter().chain(out).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::Path;
    use crate::url::{CrawlUrl, Identity};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn item() -> Item {
        Item {
            url: CrawlUrl::parse("http://h/", &Identity::default()).unwrap(),
            path: Path::seed(0),
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Push(u16),
        Pop,
        Settle,
        Ask,
        Answer,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            6 => (0..4_u16).prop_map(Step::Push),
            3 => Just(Step::Pop),
            2 => Just(Step::Settle),
            2 => Just(Step::Ask),
            2 => Just(Step::Answer),
        ];
        prop::collection::vec(step, 0..300)
    }

    proptest! {
        /// Against a model that is a plain sorted set: everything pushed comes out once, whatever memory could hold.
        #[test]
        fn everything_pushed_comes_out_once(steps in steps(), keep_until in 0..40_usize) {
            let mut queue = Queue::default();
            let mut store: BTreeSet<Place> = BTreeSet::new();
            let mut committed: BTreeSet<Place> = BTreeSet::new();
            let mut asked: Option<Place> = None;
            let mut popped = BTreeSet::new();
            let mut out: Vec<Place> = Vec::new();
            let mut pushed = 0;
            let answer = |queue: &mut Queue, asked: &mut Option<Place>, committed: &BTreeSet<Place>| {
                if let Some(after) = asked.take() {
                    let rows: Vec<_> = committed.iter().filter(|p| **p > after).take(5).map(|p| (*p, item())).collect();
                    let complete = rows.len() < 5;
                    queue.refilled(rows, complete);
                }
            };
            for step in steps {
                match step {
                    Step::Push(priority) => {
                        pushed += 1;
                        let place = Place { priority, sequence: pushed };
                        store.insert(place);
                        queue.push(place, item(), queue.in_memory() < keep_until);
                    }
                    Step::Pop => if let Some((place, _)) = queue.pop() {
                        prop_assert!(popped.insert(place), "twice");
                        out.push(place);
                    },
                    Step::Settle => if let Some(place) = out.pop() {
                        queue.settled(place);
                        store.remove(&place);
                    },
                    // the store sees everything written before it was asked
                    Step::Ask => if let Some(after) = queue.wants_refill(256) {
                        committed = store.clone();
                        asked = Some(after);
                    },
                    Step::Answer => answer(&mut queue, &mut asked, &committed),
                }
            }
            for _ in 0..10_000 {
                answer(&mut queue, &mut asked, &committed);
                if let Some(after) = queue.wants_refill(256) {
                    committed = store.clone();
                    asked = Some(after);
                }
                if let Some((place, _)) = queue.pop() {
                    prop_assert!(popped.insert(place), "twice");
                    queue.settled(place);
                    store.remove(&place);
                }
                if queue.is_empty() { break; }
            }
            prop_assert!(queue.is_empty());
            prop_assert_eq!(popped.len() as u64, pushed);
        }
    }

    #[test]
    fn a_head_never_passes_its_bound() {
        let mut queue = Queue::default();
        for sequence in 0..10_000 {
            queue.push(Place { priority: 0, sequence }, item(), true);
            assert!(queue.in_memory() <= HEAD_MAX);
        }
        for sequence in 0..10_000 {
            if queue.wants_refill(256).is_some() {
                break;
            }
            assert_eq!(queue.pop().unwrap().0.sequence, sequence);
        }
        assert!(queue.is_refilling());
        for sequence in 10_000..20_000 {
            queue.push(Place { priority: 0, sequence }, item(), true);
        }
        assert!(queue.in_memory() <= HEAD_MAX + LATE_MAX);
    }
}
