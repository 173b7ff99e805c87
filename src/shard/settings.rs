//! What a shard is told once.

use super::own::Own;
use crate::politeness::Patience;
use crate::scope::Sitemaps;
use crate::traps;

/// The settings of a shard.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Pace and patience.
    pub patience: Patience,
    /// Obey robots.txt.
    pub robots: bool,
    /// The product token that robots.txt speaks to.
    pub agent: String,
    /// Requests in flight to one host.
    pub per_host: usize,
    /// Tries after the first.
    pub retries: u32,
    /// URLs fetched of one host at most.
    pub max_pages_per_host: Option<u64>,
    /// What holds for single hosts and seeds.
    pub own: Own,
    /// Names that share an address share one gap.
    pub per_address: bool,
    /// Read sitemaps.
    pub sitemaps: Sitemaps,
    /// URLs admitted from sitemaps in the whole job at most.
    pub max_sitemap_urls: u64,
    /// The rules against traps.
    pub traps: traps::Settings,
}
