//! robots.txt bytes → rules (RFC 9309). Pure.

use std::time::Duration;

/// The largest part of a robots.txt that is parsed, in bytes (RFC 9309 section 2.5 asks for at least 500 KiB).
pub const MAX_ROBOTS_BYTES: usize = 512 * 1024;

/// The rules of one origin for one user agent.
#[derive(Debug, Clone, Default)]
pub struct Robots {
    _rules: (),
}

impl Robots {
    /// Parses a robots.txt for the product token `agent` (compared without case).
    #[must_use]
    pub fn parse(_bytes: &[u8], _agent: &str) -> Self {
        todo!()
    }
    /// Everything may be fetched (4xx, RFC 9309 section 2.3.1.3).
    #[must_use]
    pub fn allow_all() -> Self {
        todo!()
    }
    /// Nothing may be fetched (5xx or unreachable, section 2.3.1.4).
    #[must_use]
    pub fn disallow_all() -> Self {
        todo!()
    }
    /// May this path (with its query, as in a request line) be fetched?
    #[must_use]
    pub fn allows(&self, _path_and_query: &str) -> bool {
        todo!()
    }
    /// The line that decides about this path, as written, with its 1-based number: for `explain` and logs.
    #[must_use]
    pub fn deciding_line(&self, _path_and_query: &str) -> Option<(usize, &str)> {
        todo!()
    }
    /// The Crawl-delay of the group in force.
    #[must_use]
    pub fn crawl_delay(&self) -> Option<Duration> {
        todo!()
    }
    /// The values of the `Sitemap` lines, as written.
    #[must_use]
    pub fn sitemaps(&self) -> &[String] {
        todo!()
    }
    /// Bytes of memory this value holds, for the cache's bound.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        todo!()
    }
}
