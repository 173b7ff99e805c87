//! The queue's rows as the store has them, in eight bytes each: what is known of a page follows from its number.

use std::collections::{BTreeMap, HashMap, VecDeque};

use super::web::Web;
use crate::frontier::queue::Rows;
use crate::frontier::{HostId, Item, Path, Place};
use crate::url::{CrawlUrl, Identity};

/// Rows of a block. Blocks are dropped whole when their rows are done with.
const BLOCK_ROWS: usize = 512;

/// Rows of one host and one priority, in order.
type Line = VecDeque<Block>;

/// Rows that follow each other.
struct Block {
    /// The sequence number of the first.
    first: u64,
    rows: Vec<Row>,
    /// Rows that are done with.
    gone: usize,
}

#[derive(Clone, Copy)]
struct Row {
    /// The sequence number, counted from the block's first one.
    after: u32,
    /// The page; [`GONE`] once it is done with.
    page: u32,
}

/// A row that is done with. Page numbers stay below.
const GONE: u32 = u32::MAX;

/// The rows of all hosts.
#[derive(Default)]
pub struct QueueRows {
    lines: HashMap<HostId, BTreeMap<u16, Line>>,
    len: u64,
}

impl QueueRows {
    /// Rows there are.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Is none left?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Has a host any?
    #[must_use]
    pub fn has(&self, host: HostId) -> bool {
        self.lines.contains_key(&host)
    }

    /// Puts a row behind those of its host and priority: sequence numbers rise.
    pub fn put(&mut self, host: HostId, place: Place, page: u32) {
        debug_assert!(page != GONE);
        let line = self.lines.entry(host).or_default().entry(place.priority).or_default();
        let after = line.back().and_then(|block| {
            let after = place.sequence.checked_sub(block.first)?;
            u32::try_from(after).ok().filter(|_| block.rows.len() < BLOCK_ROWS)
        });
        let row = |after| Row { after, page };
        match (line.back_mut(), after) {
            (Some(block), Some(after)) => block.rows.push(row(after)),
            _ => line.push_back(Block {
                first: place.sequence,
                // most lines are short
                rows: vec![row(0)],
                gone: 0,
            }),
        }
        self.len += 1;
    }

    /// Takes a row out, if it is there.
    pub fn remove(&mut self, host: HostId, place: Place) {
        let Some(lines) = self.lines.get_mut(&host) else { return };
        let Some(line) = lines.get_mut(&place.priority) else {
            return;
        };
        let before = line.partition_point(|block| block.first <= place.sequence);
        let Some(at) = before.checked_sub(1) else { return };
        let Some(block) = line.get_mut(at) else { return };
        let after = place.sequence - block.first;
        let Ok(found) = block.rows.binary_search_by_key(&after, |row| u64::from(row.after)) else {
            return;
        };
        let Some(row) = block.rows.get_mut(found).filter(|row| row.page != GONE) else {
            return;
        };
        row.page = GONE;
        block.gone += 1;
        self.len -= 1;
        if block.gone == block.rows.len() {
            line.remove(at);
        }
        if line.is_empty() {
            lines.remove(&place.priority);
        }
        if lines.is_empty() {
            self.lines.remove(&host);
        }
    }

    /// The next rows of a host after a place, `most` at most, and whether they are all.
    #[must_use]
    pub fn after(&self, host: HostId, place: Place, most: usize, web: &Web, identity: &Identity) -> (Rows, bool) {
        let mut rows = Rows::new();
        let Some(lines) = self.lines.get(&host) else {
            return (rows, true);
        };
        for (priority, line) in lines.range(place.priority..) {
            let start = if *priority == place.priority {
                line.partition_point(|block| block.first <= place.sequence)
                    .saturating_sub(1)
            } else {
                0
            };
            for block in line.range(start.min(line.len())..) {
                for row in block.rows.iter().filter(|row| row.page != GONE) {
                    let at = Place {
                        priority: *priority,
                        sequence: block.first + u64::from(row.after),
                    };
                    if at <= place {
                        continue;
                    }
                    if rows.len() == most {
                        return (rows, false);
                    }
                    if let Some(item) = item(u64::from(row.page), *priority, web, identity) {
                        rows.push((at, item));
                    }
                }
            }
        }
        (rows, true)
    }
}

/// The page of a row as the shard writes it: its address stands in front.
pub(super) fn page_of_row(row: &[u8]) -> Option<u32> {
    const MARK: &[u8] = b"/page-";
    let start = memchr::memmem::find(row, MARK)? + MARK.len();
    let digits = row.get(start..)?.split(|byte| *byte == b'.').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// A page as the queue has it.
pub(super) fn item(page: u64, depth: u16, web: &Web, identity: &Identity) -> Option<Item> {
    let mut text = String::with_capacity(80);
    web.write_url(page, &mut text);
    let url = CrawlUrl::parse(&text, identity).ok()?;
    let path = Path {
        depth,
        seed: None,
        ..Path::seed(0)
    };
    Some(Item { url, path })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WEB: Web = Web { seed: 1, hosts: 10 };

    proptest! {
        /// The model is a map in order of host, priority and sequence.
        #[test]
        fn it_is_a_map_in_order(steps in proptest::collection::vec((0_u32..3, 0_u16..3, any::<bool>(), 0_usize..5_000), 1..3_000)) {
            let mut rows = QueueRows::default();
            let mut model: BTreeMap<(HostId, Place), u32> = BTreeMap::new();
            let identity = Identity::default();
            for (sequence, (host, priority, put, pick)) in (1_u64..).zip(steps) {
                let place = Place { priority, sequence };
                if put || model.is_empty() {
                    let page = u32::try_from(sequence * 3).unwrap();
                    rows.put(host, place, page);
                    model.insert((host, place), page);
                } else {
                    let gone = *model.keys().nth(pick % model.len()).unwrap();
                    model.remove(&gone);
                    rows.remove(gone.0, gone.1);
                    rows.remove(gone.0, gone.1);
                }
                prop_assert_eq!(rows.len(), model.len() as u64);
            }
            for host in 0..3 {
                let mut at = Place::FIRST;
                let mut all = Vec::new();
                loop {
                    let (more, complete) = rows.after(host, at, 7, &WEB, &identity);
                    all.extend(more.iter().map(|(place, item)| (*place, Web::page(&item.url).unwrap())));
                    if complete {
                        break;
                    }
                    at = more.last().unwrap().0;
                }
                let expected: Vec<_> = model
                    .iter()
                    .filter(|((of, _), _)| *of == host)
                    .map(|((_, place), page)| (*place, u64::from(*page)))
                    .collect();
                prop_assert_eq!(all, expected);
            }
        }
    }
}
