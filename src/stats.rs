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
    /// Links beyond a page's cap.
    pub links_dropped: u64,
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
