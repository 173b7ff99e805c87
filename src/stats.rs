//! Plain counters of the crawl. They are facts: the ledger stores them in the batch that changes them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What became of every link occurrence handed to normalize (seeds and redirects included).
/// `found == malformed + out_of_scope + trap + seen + admitted`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the report's")]
pub struct LinkCounts {
    pub found: u64,
    pub malformed: u64,
    pub out_of_scope: u64,
    pub trap: u64,
    pub seen: u64,
    pub admitted: u64,
}

/// What became of every admitted URL. `admitted == fetched + failed + robots + pending`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the report's")]
pub struct UrlCounts {
    pub admitted: u64,
    pub fetched: u64,
    pub failed: u64,
    pub robots: u64,
    pub pending: u64,
}

/// Bytes over the whole job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the report's")]
pub struct ByteCounts {
    pub received: u64,
    pub decoded: u64,
    pub archived: u64,
}

/// Records written, by type.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the report's")]
pub struct RecordCounts {
    pub response: u64,
    pub request: u64,
    pub revisit: u64,
    pub metadata: u64,
    pub warcinfo: u64,
}

/// All counters of a job, over all its runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are the report's")]
pub struct Counters {
    pub links: LinkCounts,
    pub urls: UrlCounts,
    pub bytes: ByteCounts,
    pub records: RecordCounts,
    pub status: BTreeMap<u16, u64>,
    pub mime: BTreeMap<String, u64>,
    /// Reasons of `urls.failed`, as in crawl.log.
    pub failures: BTreeMap<String, u64>,
    pub hosts: u64,
    pub hosts_retired: u64,
    pub robots_fetched: u64,
    pub retries: u64,
    pub archive_files: u64,
    /// Smallest gap seen between a response's end and the next request to its host, microseconds.
    pub min_gap_us: Option<u64>,
    /// Requests that began before their host was due. Always zero; counted so that a defect shows.
    pub politeness_violations: u64,
    /// As [`Left::links`].
    pub links_dropped: u64,
    /// As [`Left::texts`]. Not in the row of the others, whose form is older; see `ledger/row.rs`.
    #[serde(skip)]
    pub texts_cut: u64,
    /// Requests sent twice at once, because the server had certainly not looked at the first one: no pause lies between
    /// the two. Kept in a row of its own.
    #[serde(skip)]
    pub repeats: u64,
    /// As [`Left::entries`]. In a row of its own.
    #[serde(skip)]
    pub entries_dropped: u64,
    /// Links that a blocklist names, among those out of scope. Kept in a row of its own.
    #[serde(skip)]
    pub blocked: u64,
    /// What each rule against traps dropped. Kept in a row of its own.
    #[serde(skip)]
    pub traps: BTreeMap<String, u64>,
    /// Fetched URLs whose body was left out for its type or size. Kept in a row of its own.
    #[serde(skip)]
    pub skipped: BTreeMap<String, u64>,
}

/// Distinct media types counted by name; further ones are counted as `other`.
pub const MAX_MIME_NAMES: usize = 1_000;

impl Counters {
    /// Do both accounts add up?
    #[must_use]
    pub fn balanced(&self) -> bool {
        let l = &self.links;
        let u = &self.urls;
        l.found == l.malformed + l.out_of_scope + l.trap + l.seen + l.admitted
            && u.admitted == u.fetched + u.failed + u.robots + u.pending
            && u.admitted == l.admitted
    }
}

impl Counters {
    /// Adds what one fact changed. Gaps are compared, everything else is summed.
    pub fn add(&mut self, delta: &Delta) {
        let (l, d) = (&mut self.links, &delta.links);
        l.found += d.found;
        l.malformed += d.malformed;
        l.out_of_scope += d.out_of_scope;
        l.trap += d.trap;
        l.seen += d.seen;
        l.admitted += d.admitted;
        for (rule, count) in &delta.traps {
            *self.traps.entry((*rule).to_owned()).or_default() += count;
        }
        if let Some(why) = delta.skipped {
            *self.skipped.entry(why.to_owned()).or_default() += 1;
        }
        self.urls.admitted += d.admitted;
        self.urls.pending += d.admitted;
        self.hosts += delta.hosts;
        self.repeats += delta.repeats;
        self.links_dropped += delta.left.links;
        self.entries_dropped += delta.left.entries;
        self.texts_cut += delta.left.texts;
        self.blocked += delta.blocked;
        self.bytes.received += delta.received;
        self.bytes.decoded += delta.decoded;
        self.politeness_violations += delta.violations;
        if let Some(gap) = delta.gap_us {
            self.min_gap_us = Some(self.min_gap_us.map_or(gap, |least| least.min(gap)));
        }
        match &delta.settled {
            Settled::Nothing => {}
            Settled::Fetched { status, mime } => {
                self.urls.pending -= 1;
                self.urls.fetched += 1;
                *self.status.entry(*status).or_default() += 1;
                let known = self.mime.len() < MAX_MIME_NAMES || self.mime.contains_key(mime);
                *self
                    .mime
                    .entry(if known { mime.clone() } else { "other".to_owned() })
                    .or_default() += 1;
            }
            Settled::Failed { reason } => {
                self.urls.pending -= 1;
                self.urls.failed += 1;
                *self.failures.entry(reason.clone()).or_default() += 1;
            }
            Settled::Robots => {
                self.urls.pending -= 1;
                self.urls.robots += 1;
            }
            Settled::Retry => self.retries += 1,
            Settled::RobotsTxt => self.robots_fetched += 1,
        }
        if delta.retired {
            self.hosts_retired += 1;
        }
    }
}

/// What one fact changes in the counters.
#[derive(Debug, Clone, Default)]
pub struct Delta {
    /// Links of the page (`admitted` also counts as admitted and pending URLs).
    pub links: LinkCounts,
    /// What became of the URL.
    pub settled: Settled,
    /// Hosts met for the first time.
    pub hosts: u64,
    /// A host was retired.
    pub retired: bool,
    /// What bounds kept out.
    pub left: Left,
    /// Links that a blocklist names, among those out of scope.
    pub blocked: u64,
    /// Why the body was left out, if so.
    pub skipped: Option<&'static str>,
    /// Requests sent twice at once.
    pub repeats: u64,
    /// Body bytes as received.
    pub received: u64,
    /// Body bytes after decoding.
    pub decoded: u64,
    /// Time since the end of the host's previous response, microseconds.
    pub gap_us: Option<u64>,
    /// Requests that began before their host was due.
    pub violations: u64,
    /// What rules against traps dropped, by their words.
    pub traps: Vec<(&'static str, u64)>,
}

/// What a bound kept out of the account of links: it was counted and not looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// Links beyond a page's cap, and entries of sitemaps beyond `--max-sitemap-urls`.
    pub links: u64,
    /// Entries of sitemaps beyond what is taken of one file.
    pub entries: u64,
    /// Pages and sitemaps whose text went on beyond what is read.
    pub texts: u64,
}

/// What became of the URL that a fact is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Settled {
    /// No URL was settled (seeds, a robots.txt on its way).
    #[default]
    Nothing,
    /// A response was recorded.
    Fetched {
        /// Its status.
        status: u16,
        /// Its media type.
        mime: String,
    },
    /// Given up without a response.
    Failed {
        /// Why, as a short word that is the same for like cases.
        reason: String,
    },
    /// robots.txt forbids it.
    Robots,
    /// It goes back into its queue.
    Retry,
    /// It was a robots.txt, which no link asked for.
    RobotsTxt,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accounts_add_up_whatever_is_settled() {
        let mut counters = Counters::default();
        let links = LinkCounts {
            found: 10,
            malformed: 1,
            out_of_scope: 2,
            trap: 0,
            seen: 2,
            admitted: 5,
        };
        counters.add(&Delta {
            links,
            ..Delta::default()
        });
        let fetched = Settled::Fetched {
            status: 200,
            mime: "text/html".into(),
        };
        let failed = Settled::Failed { reason: "dns".into() };
        for settled in [fetched, failed, Settled::Robots, Settled::Retry, Settled::RobotsTxt] {
            counters.add(&Delta {
                settled,
                ..Delta::default()
            });
            assert!(counters.balanced());
        }
        assert_eq!(
            counters.urls,
            UrlCounts {
                admitted: 5,
                fetched: 1,
                failed: 1,
                robots: 1,
                pending: 2
            }
        );
        counters.urls.pending -= 1;
        assert!(!counters.balanced());
    }

    #[test]
    fn media_types_are_bounded() {
        let mut counters = Counters::default();
        counters.urls.pending = 2_000;
        for n in 0..2_000 {
            let settled = Settled::Fetched {
                status: 200,
                mime: format!("x/{n}"),
            };
            counters.add(&Delta {
                settled,
                ..Delta::default()
            });
        }
        assert_eq!(counters.mime.len(), MAX_MIME_NAMES + 1);
        assert_eq!(counters.mime["other"], 1_000);
    }

    #[test]
    fn the_smallest_gap_is_kept() {
        let mut counters = Counters::default();
        for gap in [30, 10, 20] {
            counters.add(&Delta {
                gap_us: Some(gap),
                ..Delta::default()
            });
        }
        assert_eq!(counters.min_gap_us, Some(10));
    }
}
