//! Which addresses belong to the crawl. Pure: the same address, the same answer.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::url::CrawlUrl;

/// How far the crawl reaches from its seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    /// The hosts (and ports) of the seeds.
    #[default]
    Host,
    /// The registrable domains of the seeds.
    Domain,
    /// The path prefixes of the seeds (up to their last `/`), on either scheme.
    Prefix,
    /// Every address.
    Any,
}

/// Why an address is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OutReason {
    /// No seed's host, domain or prefix covers it.
    Scope,
    /// `--exclude` matches, or there are `--include` patterns and none matches.
    Pattern,
    /// Deeper than `--max-depth`.
    Depth,
}

/// The answer for one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Crawl it.
    In,
    /// Leave it; a page requisite may still be fetched one hop beyond the scope when the reason is [`OutReason::Scope`].
    Out(OutReason),
}

/// The rules of scope, made once from the settings and the seeds.
#[derive(Debug, Clone)]
pub struct Scope {
    kind: ScopeKind,
    keys: BTreeSet<String>,
    include: Option<regex::RegexSet>,
    exclude: Option<regex::RegexSet>,
    max_depth: Option<u16>,
}

impl Scope {
    /// Compiles the patterns.
    ///
    /// # Errors
    /// The pattern that is not a regular expression, with the reason.
    pub fn new(kind: ScopeKind, include: &[String], exclude: &[String], max_depth: Option<u16>) -> Result<Self, regex::Error> {
        let _ = (kind, include, exclude, max_depth);
        todo!()
    }
    /// Widens the scope to a seed (or to where a seed redirected).
    pub fn add_seed(&mut self, _seed: &CrawlUrl) {
        todo!()
    }
    /// Judges an address found `depth` navigation hops from a seed.
    #[must_use]
    pub fn judge(&self, _url: &CrawlUrl, _depth: u16) -> Verdict {
        todo!()
    }
}
