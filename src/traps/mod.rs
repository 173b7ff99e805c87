//! Spaces of addresses without end: how they are told from large sites, and what is left of them.
//!
//! ```text
//! address ──► address: repeated parts, depth, length, parameters   (one address alone; asked in the visit)
//! page ──► text: digests of what is read on it                     (asked only for hosts that are watched)
//! page + links ──► shape, kin ──► host: same-content, endless-chain, calendar, query-explosion, shape-budget
//! ```
//!
//! Size is no evidence: a forum with a million posts is real. What is bounded is a space that feeds itself: pages that
//! lead to more pages of the same kind and bring nothing that was not there before. Each rule names its evidence, each
//! can be put out of force for a host, and what it drops is counted and named.

pub mod address;
pub mod host;
pub mod kin;
pub mod settings;
pub mod shape;
mod sketch;
pub mod text;

use std::fmt;

pub use host::HostTraps;
pub use kin::Lineage;
pub use settings::{Policy, Settings};
pub use shape::Shape;
pub use text::Content;

/// Redirects in a row that are followed.
pub const MAX_REDIRECTS: u8 = 10;

/// A rule that drops addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Parts of the address stand in it again and again.
    RepeatedSegments,
    /// Too many segments, or a path that is too long.
    PathDepth,
    /// Too many parameters, or one of them too often.
    QueryGrowth,
    /// Too many redirects in a row.
    Redirects,
    /// Too many sitemaps in a row, each of which lists the next.
    NestedSitemaps,
    /// Pages that all say the same lead to more of their kind.
    SameContent,
    /// Each page leads to the next of its kind and to nothing else.
    EndlessChain,
    /// Pages of a calendar that say the same but for their date.
    Calendar,
    /// One path under ever new combinations of parameters.
    QueryExplosion,
    /// More of one shape than the settings allow for this host.
    ShapeBudget,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Rule; 10] = [
        Self::RepeatedSegments,
        Self::PathDepth,
        Self::QueryGrowth,
        Self::Redirects,
        Self::NestedSitemaps,
        Self::SameContent,
        Self::EndlessChain,
        Self::Calendar,
        Self::QueryExplosion,
        Self::ShapeBudget,
    ];

    /// The word for it in settings, logs and reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::RepeatedSegments => "repeated-segments",
            Self::PathDepth => "path-depth",
            Self::QueryGrowth => "query-growth",
            Self::Redirects => "redirects",
            Self::NestedSitemaps => "nested-sitemaps",
            Self::SameContent => "same-content",
            Self::EndlessChain => "endless-chain",
            Self::Calendar => "calendar",
            Self::QueryExplosion => "query-explosion",
            Self::ShapeBudget => "shape-budget",
        }
    }

    /// The rule of a word.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.word() == word)
    }

    /// What it found, in words.
    #[must_use]
    pub fn says(self) -> String {
        match self {
            Self::RepeatedSegments => format!(
                "more than {} repeated parts, or a group of parts {} times in a row",
                address::MAX_REPEATS,
                address::MAX_GROUPS
            ),
            Self::PathDepth => format!(
                "more than {} segments, or {} in a path longer than {} bytes",
                address::MAX_SEGMENTS,
                address::MAX_SEGMENTS_OF_LONG,
                address::MAX_PATH_BYTES
            ),
            Self::QueryGrowth => format!(
                "more than {} parameters, or one of them more than {} times",
                address::MAX_PARAMETERS,
                address::MAX_SAME_PARAMETER
            ),
            Self::Redirects => format!("more than {MAX_REDIRECTS} redirects in a row"),
            Self::NestedSitemaps => format!("more than {} sitemaps in a row", crate::extract::sitemap::MAX_NESTING),
            Self::SameContent => "pages that say the same lead to ever more of their kind".to_owned(),
            Self::EndlessChain => "a long row of pages, each of which leads only to the next".to_owned(),
            Self::Calendar => "pages of a calendar that differ only in their date".to_owned(),
            Self::QueryExplosion => "one path under ever new combinations of parameters".to_owned(),
            Self::ShapeBudget => "more of this shape than max_per_shape allows".to_owned(),
        }
    }

    fn bit(self) -> u16 {
        1 << (self as u16)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// An address that a rule dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped {
    /// The address.
    pub url: crate::url::CrawlUrl,
    /// The rule.
    pub rule: Rule,
}

#[cfg(test)]
// in tests.rs
mod tests;
