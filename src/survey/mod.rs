//! How many different links, hosts and contents a crawl has met, and which hosts and shapes it met most: estimates in
//! fixed memory, with their bounds. Pure.
//!
//! Different things are counted by [`hll`], frequent ones by [`heavy`]. Both take their bits from the job's keyed
//! fingerprint, so no site can aim at them.

pub mod heavy;
pub mod hll;

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use crate::hash::{Fingerprint, HashKey};
use heavy::Heavy;
use hll::Hll;

/// The names of each list that a report has.
pub const LISTED: usize = 20;
/// The form of the stored row.
const FORMAT: u8 = 1;
/// Level of zstd for the stored row: most of it are zeros, or numbers that no level makes shorter.
const LEVEL: i32 = 1;

/// What a page has shown: its links, each once as it is spelled there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Met {
    /// The links' fingerprints, in scope or not.
    pub links: Vec<Fingerprint>,
    /// How many of them lead to each host.
    pub hosts: BTreeMap<String, u32>,
}

impl Met {
    /// Adds a link.
    pub fn add(&mut self, link: Fingerprint, host: &str) {
        self.links.push(link);
        if let Some(count) = self.hosts.get_mut(host) {
            *count += 1;
        } else {
            self.hosts.insert(host.to_owned(), 1);
        }
    }
}

/// The estimates of a job.
#[derive(Debug, Clone)]
pub struct Survey {
    key: HashKey,
    links: Hll,
    hosts: Hll,
    contents: Hll,
    linked: Heavy,
    shapes: Heavy,
}

/// The estimates as a report has them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Different links met, in scope or not.
    pub links: u64,
    /// Different hosts that they lead to.
    pub hosts: u64,
    /// Different contents archived.
    pub contents: u64,
    /// Standard error of these three, as a share: two of three estimates are nearer than this, 19 of 20 nearer than
    /// twice this.
    pub error: f64,
    /// The hosts that most links lead to.
    pub most_linked_hosts: Top,
    /// The shapes that most admitted URLs have.
    pub most_common_shapes: Top,
}

/// The most frequent names.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Top {
    /// Names and counts, the largest first. No count is too low.
    pub top: Vec<(String, u64)>,
    /// All that was counted.
    pub of: u64,
    /// A count is too high by more than this with a chance of 2 % at most.
    pub over_at_most: u64,
}

impl Survey {
    /// Nothing met yet.
    #[must_use]
    pub fn new(key: HashKey) -> Self {
        Self {
            key,
            links: Hll::default(),
            hosts: Hll::default(),
            contents: Hll::default(),
            linked: Heavy::default(),
            shapes: Heavy::default(),
        }
    }

    /// Counts what a page has shown.
    pub fn page(&mut self, met: &Met) {
        for link in &met.links {
            self.links.add(*link);
        }
        for (host, count) in &met.hosts {
            let print = self.key.fingerprint(host.as_bytes());
            self.hosts.add(print);
            self.linked.add(print, host, *count);
        }
    }

    /// Counts the shape of an admitted URL.
    pub fn shape(&mut self, shape: &str) {
        self.shapes.add(self.key.fingerprint(shape.as_bytes()), shape, 1);
    }

    /// Counts an archived content by its digest.
    pub fn content(&mut self, digest: &[u8]) {
        self.contents.add(self.key.fingerprint(digest));
    }

    /// The estimates now.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            links: self.links.estimate(),
            hosts: self.hosts.estimate(),
            contents: self.contents.estimate(),
            error: hll::STANDARD_ERROR,
            most_linked_hosts: self.linked.top(LISTED),
            most_common_shapes: self.shapes.top(LISTED),
        }
    }

    /// The row that keeps it: 330 KiB at most, and little while little was met.
    ///
    /// # Errors
    /// If the system gives no memory.
    pub fn to_row(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for hll in [&self.links, &self.hosts, &self.contents] {
            hll.write(&mut bytes);
        }
        for heavy in [&self.linked, &self.shapes] {
            heavy.write(&mut bytes);
        }
        let mut row = vec![FORMAT];
        row.extend(zstd::bulk::compress(&bytes, LEVEL)?);
        Ok(row)
    }

    /// The inverse of [`Survey::to_row`].
    ///
    /// # Errors
    /// If the row is of another form, or damaged.
    pub fn from_row(key: HashKey, row: &[u8]) -> io::Result<Self> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("the survey: {what}"));
        let packed = row.strip_prefix(&[FORMAT]).ok_or_else(|| damaged("another form"))?;
        let most = 3 * hll::REGISTERS + 2 * heavy::MOST_BYTES;
        let bytes = zstd::bulk::decompress(packed, most)?;
        let mut rest = bytes.as_slice();
        let survey = Self {
            key,
            links: Hll::read(&mut rest)?,
            hosts: Hll::read(&mut rest)?,
            contents: Hll::read(&mut rest)?,
            linked: Heavy::read(&mut rest)?,
            shapes: Heavy::read(&mut rest)?,
        };
        if rest.is_empty() {
            Ok(survey)
        } else {
            Err(damaged("too long"))
        }
    }
}

/// Names with their counts, as they are stored.
#[derive(Debug, Serialize, Deserialize)]
struct Names {
    total: u64,
    names: Vec<(String, [u64; 2], u32)>,
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> io::Result<&'a [u8]> {
    let (taken, left) = rest
        .split_at_checked(length)
        .ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "the survey: too short"))?;
    *rest = left;
    Ok(taken)
}

fn take_length(rest: &mut &[u8]) -> io::Result<usize> {
    let mut bytes = [0; 4];
    take(rest, 4)?.read_exact(&mut bytes)?;
    usize::try_from(u32::from_le_bytes(bytes)).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: HashKey = HashKey([3; 16]);

    #[test]
    fn a_survey_goes_on_where_it_was() {
        let mut survey = Survey::new(KEY);
        let empty = survey.to_row().unwrap();
        assert!(empty.len() < 2_000, "{}", empty.len());
        assert_eq!(Survey::from_row(KEY, &empty).unwrap().summary(), survey.summary());
        for n in 0..5_000_u32 {
            let mut met = Met::default();
            for link in 0..10 {
                let text = format!("http://h{}.test/{}", n % 300, n + link);
                met.add(KEY.fingerprint(text.as_bytes()), &format!("h{}.test", n % 300));
            }
            met.add(KEY.fingerprint(b"http://top.test/"), "top.test");
            survey.page(&met);
            survey.shape(if n % 3 == 0 { "top.test/0" } else { "h.test/0/a" });
            survey.content(&(n % 1_000).to_le_bytes());
        }
        let row = survey.to_row().unwrap();
        assert!(row.len() < 330 << 10, "{}", row.len());
        let back = Survey::from_row(KEY, &row).unwrap();
        assert!(back.to_row().unwrap() == row, "it is written as it was");
        assert_eq!(back.summary(), survey.summary());
        let said = back.summary();
        let near = |found: u64, real: u64| found.abs_diff(real) * 100 <= real * 4;
        assert!(near(said.hosts, 301) && near(said.contents, 1_000), "{said:?}");
        assert!(near(said.links, 50_001), "{said:?}");
        assert_eq!(said.most_linked_hosts.of, 55_000);
        assert_eq!(said.most_linked_hosts.top.len(), LISTED);
        assert_eq!(said.most_linked_hosts.top[0], ("top.test".to_owned(), 5_000));
        assert_eq!(said.most_common_shapes.top.len(), 2);
        assert_eq!(said.most_common_shapes.top[0].0, "h.test/0/a");
        // damage is an error and nothing else
        for cut in [0, 1, 2, row.len() / 2, row.len() - 1] {
            assert!(Survey::from_row(KEY, &row[..cut]).is_err(), "{cut}");
        }
        assert!(Survey::from_row(KEY, b"\x02").is_err());
    }
}
