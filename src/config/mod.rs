//! Settings: crawler.toml < `CRAWLER_*` environment < flags → one checked [`Config`]. An unknown key is an error with a hint.
//!
//! # Layout
//! [`table`] is the one list of settings, a [`setting::Setting`] each: flag, key, variable, help and default stand in one
//! row, and every other part reads it: `flags` (clap), `file` (crawler.toml), [`mod@load`] (who wins, and where a value came from), [`sample`]
//! (crawler.toml as written by `crawler config init`, and what `crawler config show` prints). [`value`] reads and writes
//! sizes, durations and numbers.

mod checks;
mod fields;
mod file;
pub mod flags;
pub mod load;
mod hosts;
mod overrides;
pub mod seed;
pub mod sample;
pub mod setting;
pub mod table;
pub mod value;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::fetch::dns::Cidr;
use crate::scope::ScopeKind;

pub use load::{ConfigError, Loaded, Origin, load};

/// The file that is read from the working folder if no `--config` names another.
pub const DEFAULT_FILE: &str = "crawler.toml";

/// The effective settings of a crawl, checked. Every field has its flag, its key and its default in one table.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own that a user sets"
)]
pub struct Config {
    /// Seed files in order; `-` is standard input.
    pub seeds: Vec<PathBuf>,
    /// Seeds given by `--seed`.
    pub seed: Vec<String>,
    /// The job folder.
    pub job: PathBuf,
    /// Start over in a new folder beside the job's.
    pub fresh: bool,
    /// How far the crawl reaches.
    pub scope: ScopeKind,
    /// Prefixes of SURT keys that are in scope besides.
    pub scope_surts: Vec<String>,
    /// Hops from a page in scope to pages that are not.
    pub offsite_hops: u8,
    /// Only addresses that match one of these.
    pub include: Vec<String>,
    /// No address that matches one of these.
    pub exclude: Vec<String>,
    /// Lists of hosts and URL prefixes that are never asked.
    pub blocklist: Vec<PathBuf>,
    /// What counts as one page, besides the default rules.
    pub rules: crate::url::Rules,
    /// Navigation hops from a seed.
    pub max_depth: Option<u16>,
    /// Stop after so many fetched URLs.
    pub max_pages: Option<u64>,
    /// Stop after so many received bytes.
    pub max_bytes: Option<u64>,
    /// Stop after so long (over all runs of the job).
    pub max_time: Option<Duration>,
    /// Fetch at most so many URLs of one host.
    pub max_pages_per_host: Option<u64>,
    /// `[[host]]`: budgets and pauses of single hosts.
    pub hosts: Vec<crate::politeness::HostRule>,
    /// Fetch images, styles, scripts and frames of a page, one hop beyond the scope too.
    pub page_requisites: bool,
    /// Follow guesses, one hop.
    pub speculative: bool,
    /// Do not follow links that say `nofollow`, or whose page says so.
    pub obey_nofollow: bool,
    /// Do not archive pages that say `noindex`.
    pub obey_noindex: bool,
    /// Read the sitemaps that robots.txt names and those at the usual place of the seeds' hosts.
    pub sitemaps: bool,
    /// Fetch nothing but the seeds, their hosts' sitemaps and what these list.
    pub sitemaps_only: bool,
    /// URLs taken from sitemaps in the whole job.
    pub max_sitemap_urls: u64,
    /// Requests in flight over all hosts.
    pub concurrency: usize,
    /// Requests in flight to one host.
    pub per_host_connections: usize,
    /// Least time between the end of a response and the next request to its host.
    pub delay: Duration,
    /// A response is followed by a pause of at least so many times what it took.
    pub delay_factor: f64,
    /// Longest pause after a slow response, and longest Crawl-delay or Retry-After obeyed.
    pub max_wait: Duration,
    /// Names that share an address share one pause.
    pub delay_per_address: bool,
    /// Requests a second over all hosts.
    pub rate: Option<f64>,
    /// Obey robots.txt.
    pub robots: bool,
    /// The whole User-Agent header.
    pub user_agent: String,
    /// Who answers for the crawl: a URL or a mail address.
    pub contact: Option<String>,
    /// Tries after the first.
    pub retries: u32,
    /// Failures of a host in a row after which it is retired.
    pub max_host_failures: u32,
    /// Time for look-up, connection and head.
    pub header_timeout: Duration,
    /// Time for a whole exchange.
    pub timeout: Duration,
    /// Slowest rate of a body, bytes a second.
    pub min_rate: u64,
    /// Cap on a body as received and as decoded, bytes.
    pub max_body: u64,
    /// Bodies that are not read: by type, by length.
    pub filter: crate::fetch::filter::BodyFilter,
    /// Keep the cookies of answers and send them back.
    pub keep_cookies: bool,
    /// A cookies.txt to begin with.
    pub cookies: Option<PathBuf>,
    /// A proxy for all requests, perhaps with a password in it.
    pub proxy: Option<String>,
    /// Further request headers: name and value.
    pub header: Vec<(String, String)>,
    /// User and password for hosts.
    pub auth: Vec<crate::fetch::http::Auth>,
    /// Speak HTTP/2 where a server offers it.
    pub http2: bool,
    /// Believe every certificate.
    pub insecure_tls: bool,
    /// Resume without the passwords that the job was begun with.
    pub no_secrets: bool,
    /// `--resolve HOST:PORT:ADDR`.
    pub resolve: Vec<(String, u16, SocketAddr)>,
    /// `--allow-address CIDR`.
    pub allow_address: Vec<Cidr>,
    /// URLs the filter is made for.
    pub capacity: u64,
    /// False-positive rate at capacity.
    pub fp_rate: f64,
    /// Which seen-set.
    pub seen: Option<crate::seen::Kind>,
    /// Time between filter checkpoints.
    pub checkpoint_every: Duration,
    /// Write WARC files and their index.
    pub archive: bool,
    /// A WARC file is closed at this size, bytes.
    pub warc_size: u64,
    /// Start of WARC file names.
    pub warc_prefix: String,
    /// The rules against traps: one switch, and `[[trap]]` for single hosts.
    pub traps: crate::traps::Settings,
    /// Built-in fields for pages.jsonl.zst.
    pub builtins: Vec<crate::extract::fields::Builtin>,
    /// CSS-selector fields for pages.jsonl.zst.
    pub fields: Vec<crate::extract::fields::Field>,
    /// Write links.jsonl.zst.
    pub links: bool,
    /// Write what is in those two as Parquet, too, at the end.
    pub parquet: bool,
    /// Pack the archive as one WACZ file at the end.
    pub wacz: bool,
    /// No progress, errors only.
    pub quiet: bool,
    /// `-v`, `-vv`: more in the log.
    pub verbose: u8,
    /// The log as JSON lines.
    pub log_json: bool,
}

impl Default for Config {
    /// What a crawl does when nothing is said: polite, one request at a time to a host, about 20 MB of filter.
    fn default() -> Self {
        Self {
            seeds: Vec::new(),
            seed: Vec::new(),
            job: PathBuf::from("crawl"),
            fresh: false,
            scope: ScopeKind::Host,
            scope_surts: Vec::new(),
            offsite_hops: 0,
            include: Vec::new(),
            exclude: Vec::new(),
            blocklist: Vec::new(),
            rules: crate::url::Rules::default(),
            max_depth: None,
            max_pages: None,
            max_bytes: None,
            max_time: None,
            max_pages_per_host: None,
            hosts: Vec::new(),
            page_requisites: true,
            speculative: false,
            obey_nofollow: false,
            obey_noindex: false,
            sitemaps: false,
            sitemaps_only: false,
            max_sitemap_urls: 10_000_000,
            concurrency: 64,
            per_host_connections: 1,
            delay: Duration::from_secs(1),
            delay_factor: 1.0,
            max_wait: Duration::from_secs(30),
            delay_per_address: false,
            rate: None,
            robots: true,
            user_agent: user_agent(None),
            contact: None,
            retries: 2,
            max_host_failures: 5,
            header_timeout: Duration::from_secs(20),
            timeout: Duration::from_secs(120),
            min_rate: 64,
            max_body: 100 << 20,
            filter: crate::fetch::filter::BodyFilter::default(),
            keep_cookies: false,
            cookies: None,
            proxy: None,
            header: Vec::new(),
            auth: Vec::new(),
            http2: true,
            insecure_tls: false,
            no_secrets: false,
            resolve: Vec::new(),
            allow_address: Vec::new(),
            capacity: 10_000_000,
            fp_rate: 0.001,
            seen: None,
            checkpoint_every: Duration::from_secs(60),
            archive: true,
            warc_size: 1 << 30,
            warc_prefix: "crawl".to_owned(),
            traps: crate::traps::Settings::default(),
            builtins: Vec::new(),
            fields: Vec::new(),
            links: false,
            parquet: false,
            wacz: false,
            quiet: false,
            verbose: 0,
            log_json: false,
        }
    }
}

/// The User-Agent header that goes with a contact.
#[must_use]
pub fn user_agent(contact: Option<&str>) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match contact {
        Some(contact) => format!("Mozilla/5.0 (compatible; crawler/{version}; +{contact})"),
        None => format!("Mozilla/5.0 (compatible; crawler/{version})"),
    }
}
