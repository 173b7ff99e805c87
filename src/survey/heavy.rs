//! Which names come most often, among any number of names: a count-min sketch with conservative update (Cormode and
//! Muthukrishnan, 2005; Estan and Varghese, 2002), and the names of the largest counts.

use std::collections::HashMap;
use std::io;

use super::{Names, Top, take, take_length};
use crate::hash::Fingerprint;

/// Counters in a row.
pub const WIDTH: usize = 1 << 13;
/// Rows. A count is too high by more than e/[`WIDTH`] of all counts with a chance of e^-4.
pub const ROWS: usize = 4;
/// Names that are known.
pub const KNOWN: usize = 128;
/// Longest piece of a name that is kept, bytes.
pub const NAME_BYTES: usize = 256;
/// Most bytes of the written form.
pub const MOST_BYTES: usize = WIDTH * ROWS * 4 + 16 + KNOWN * (NAME_BYTES + 32);

/// The counters, and the names that have the largest.
#[derive(Clone)]
pub struct Heavy {
    cells: Vec<u32>,
    known: HashMap<Fingerprint, (String, u32)>,
    /// The smallest count of a known name, once there are [`KNOWN`]; it may have grown since.
    least: u32,
    total: u64,
}

impl std::fmt::Debug for Heavy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Heavy({} of {})", self.known.len(), self.total)
    }
}

impl Default for Heavy {
    fn default() -> Self {
        Self {
            cells: vec![0; WIDTH * ROWS],
            known: HashMap::new(),
            least: 0,
            total: 0,
        }
    }
}

impl Heavy {
    /// Counts a name `times` times. `key` is its fingerprint. Returns its count, which is never too low.
    pub fn add(&mut self, key: Fingerprint, name: &str, times: u32) -> u32 {
        self.total = self.total.saturating_add(times.into());
        let now = self.count(key).saturating_add(times);
        for place in places(key) {
            if let Some(cell) = self.cells.get_mut(place) {
                // only the least are raised: the others were raised by other keys
                *cell = (*cell).max(now);
            }
        }
        if let Some((_, count)) = self.known.get_mut(&key) {
            *count = now;
        } else if self.known.len() < KNOWN {
            self.know(key, name, now);
        } else if now > self.least {
            self.make_room(key, name, now);
        }
        now
    }

    fn know(&mut self, key: Fingerprint, name: &str, count: u32) {
        let ends = name.char_indices().map(|(at, letter)| at + letter.len_utf8());
        let end = ends.take_while(|end| *end <= NAME_BYTES).last().unwrap_or(0);
        let short = name.get(..end).unwrap_or_default();
        self.known.insert(key, (short.to_owned(), count));
    }

    /// Puts a name in the place of the one with the smallest count, if it has more.
    fn make_room(&mut self, key: Fingerprint, name: &str, count: u32) {
        let smallest = self.known.iter().map(|(key, (_, count))| (*count, *key)).min();
        let Some((smallest, place)) = smallest else { return };
        self.least = smallest;
        if count > smallest {
            self.known.remove(&place);
            self.know(key, name, count);
        }
    }

    /// How often a name was counted; perhaps more, never less.
    #[must_use]
    pub fn count(&self, key: Fingerprint) -> u32 {
        let cells = places(key).filter_map(|place| self.cells.get(place));
        cells.min().copied().unwrap_or(0)
    }

    /// The `most` names with the largest counts.
    #[must_use]
    pub fn top(&self, most: usize) -> Top {
        let mut top: Vec<(String, u64)> = self
            .known
            .values()
            .map(|(name, count)| (name.clone(), u64::from(*count)))
            .collect();
        top.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        top.truncate(most);
        Top {
            top,
            of: self.total,
            over_at_most: over_at_most(self.total),
        }
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for cell in &self.cells {
            out.extend_from_slice(&cell.to_le_bytes());
        }
        let mut names: Vec<_> = self
            .known
            .iter()
            .map(|(key, (name, count))| (name.clone(), [key.high, key.low], *count))
            .collect();
        names.sort();
        let names = Names {
            total: self.total,
            names,
        };
        // plain data always encodes
        let names = postcard::to_stdvec(&names).unwrap_or_default();
        out.extend_from_slice(&u32::try_from(names.len()).unwrap_or(0).to_le_bytes());
        out.extend_from_slice(&names);
    }

    pub(super) fn read(rest: &mut &[u8]) -> io::Result<Self> {
        let cells = take(rest, WIDTH * ROWS * 4)?.as_chunks().0;
        let cells = cells.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
        let length = take_length(rest)?;
        let names: Names = postcard::from_bytes(take(rest, length)?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))?;
        let mut heavy = Self {
            cells,
            total: names.total,
            ..Self::default()
        };
        for (name, [high, low], count) in names.names.into_iter().take(KNOWN) {
            heavy.know(Fingerprint { high, low }, &name, count);
        }
        Ok(heavy)
    }
}

/// e/[`WIDTH`] of all counts, rounded up.
fn over_at_most(total: u64) -> u64 {
    let thousandths = u128::from(total) * 2_719 / 1_000;
    u64::try_from(thousandths.div_ceil(WIDTH as u128)).unwrap_or(u64::MAX)
}

/// A place in each row, each from bits of its own.
fn places(key: Fingerprint) -> impl Iterator<Item = usize> {
    [key.high, key.high >> 32, key.low, key.low >> 32]
        .into_iter()
        .enumerate()
        .map(|(row, bits)| row * WIDTH + usize::try_from(bits % WIDTH as u64).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::HashKey;

    const KEY: HashKey = HashKey([9; 16]);

    /// Host `n` of a web in which the n-th host has a share of links like 1/n.
    fn drawn(state: &mut u64, hosts: f64) -> u64 {
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a random number in its range"
        )]
        let host = hosts.powf((*state >> 11) as f64 / (1_u64 << 53) as f64) as u64;
        host
    }

    #[test]
    fn the_most_linked_are_found_and_no_count_is_too_low_or_beyond_its_bound() {
        // SURVEY_MOST=100000000 in the environment goes on to 10^8
        let most = std::env::var("SURVEY_MOST")
            .ok()
            .and_then(|most| most.parse().ok())
            .unwrap_or(1_000_000_u64);
        let mut heavy = Heavy::default();
        let mut model: HashMap<u64, u32> = HashMap::new();
        let mut state = 1;
        for _ in 0..most {
            let host = drawn(&mut state, 200_000.0);
            let name = format!("h{host}.test");
            let count = model.entry(host).or_default();
            *count += 1;
            assert!(heavy.add(KEY.fingerprint(name.as_bytes()), &name, 1) >= *count);
        }
        let bound = u32::try_from(over_at_most(most)).unwrap();
        let over = |host: &u64| heavy.count(KEY.fingerprint(format!("h{host}.test").as_bytes())) - model[host];
        let beyond = model.keys().filter(|host| over(host) > bound).count();
        eprintln!(
            "{most}: bound {bound}, worst {}",
            model.keys().map(&over).max().unwrap()
        );
        assert!(beyond * 50 < model.len(), "{beyond} of {}", model.len());
        let mut real: Vec<(u32, u64)> = model.iter().map(|(host, count)| (*count, *host)).collect();
        real.sort_by(|a, b| b.cmp(a));
        let top = heavy.top(20);
        assert_eq!(top.of, most);
        for (place, (name, count)) in top.top.iter().enumerate().take(10) {
            let (real_count, host) = real[place];
            assert_eq!(*name, format!("h{host}.test"));
            assert!(
                count.abs_diff(real_count.into()) <= u64::from(bound),
                "{name}: {count} for {real_count}"
            );
        }
        assert!(heavy.known.len() <= KNOWN);
    }

    #[test]
    fn names_are_cut_and_bounded() {
        let mut heavy = Heavy::default();
        let long = "ä".repeat(NAME_BYTES);
        for n in 0..1_000_u32 {
            let name = format!("{long}{n}");
            heavy.add(KEY.fingerprint(name.as_bytes()), &name, n + 1);
        }
        assert_eq!(heavy.known.len(), KNOWN);
        assert!(heavy.known.values().all(|(name, _)| name.len() == NAME_BYTES));
        let mut bytes = Vec::new();
        heavy.write(&mut bytes);
        assert!(bytes.len() <= MOST_BYTES, "{}", bytes.len());
        let top = heavy.top(3);
        assert_eq!(
            top.top.iter().map(|(_, count)| *count).collect::<Vec<_>>(),
            [1000, 999, 998]
        );
        // a count that is full stays full
        heavy.add(KEY.fingerprint(b"x"), "x", u32::MAX);
        assert_eq!(heavy.add(KEY.fingerprint(b"x"), "x", 1), u32::MAX);
    }
}
