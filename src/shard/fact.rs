//! What the shard says of a finished piece of work: the changes that must survive.

use std::net::IpAddr;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::host::HostRow;
use crate::cookies::Change;
use crate::extract::LinkKind;
use crate::frontier::{HostId, Item, Path, Place};
use crate::hash::Fingerprint;
use crate::robots::Robots;
use crate::stats::{Delta, Left, LinkCounts};
use crate::survey::Met;
use crate::traps::{Content, Dropped, Rule};
use crate::url::{CrawlUrl, Scheme};

/// A request to be made now.
#[derive(Debug, Clone)]
pub struct Work {
    /// Whose turn it is.
    pub host: HostId,
    /// What to fetch.
    pub what: What,
    /// Which way to go.
    pub way: Way,
    /// The `Cookie` header that goes with it.
    pub cookie: Option<String>,
    /// Time since the end of the host's previous response in this run, microseconds.
    pub gap_us: Option<u64>,
    /// That time is shorter than the host is owed. Never true; looked at so that a defect shows in the report.
    pub too_early: bool,
    /// How long its host rests between two requests.
    pub rest: std::time::Duration,
    /// The shard wants to know what a page says: its host is watched.
    pub read: bool,
}

impl Work {
    /// The address of the request.
    #[must_use]
    pub fn url(&self) -> &CrawlUrl {
        match &self.what {
            What::Page { item, .. } => &item.url,
            What::Robots(errand) => &errand.url,
            What::Address(url) => url,
        }
    }
}

/// Which way a request goes.
#[derive(Debug, Clone)]
pub enum Way {
    /// To any address of the host's name.
    Any,
    /// To this address, whose turn it is.
    To(IpAddr),
    /// Nowhere: the name has no address that may be asked. The request ends like this without being made.
    Nowhere(Box<End>),
}

impl Way {
    /// The address to connect to, if it must be this one.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        match self {
            Self::To(ip) => Some(*ip),
            Self::Any | Self::Nowhere(_) => None,
        }
    }
}

/// What is to be done.
#[derive(Debug, Clone)]
pub enum What {
    /// An admitted URL.
    Page {
        /// Its place in the queue.
        place: Place,
        /// It.
        item: Item,
    },
    /// A robots.txt, or where it redirected to.
    Robots(Errand),
    /// The address of the host of this URL is to be looked up. No request is made.
    Address(CrawlUrl),
}

/// A robots.txt to be fetched for an origin, perhaps from another host.
#[derive(Debug, Clone)]
pub struct Errand {
    /// The address.
    pub url: CrawlUrl,
    /// The host whose rules it holds.
    pub owner: HostId,
    /// The scheme of the owner's origin.
    pub scheme: Scheme,
    /// Redirects followed so far.
    pub hop: u8,
    /// The sitemaps it names are wanted.
    pub sitemaps: bool,
    /// Navigation hops from a seed of the URL that it is fetched for: its sitemaps stand as deep.
    pub depth: u16,
    /// The seed under whose rules that URL stands.
    pub origin: u64,
}

impl Errand {
    /// The robots.txt as the page on which its sitemaps are found.
    #[must_use]
    pub fn page(&self) -> Item {
        Item {
            url: self.url.clone(),
            path: Path {
                depth: self.depth,
                origin: self.origin,
                seed: None,
                ..Path::seed(0)
            },
        }
    }
}

/// A link that is in scope, ready for the seen-set.
#[derive(Debug, Clone)]
pub struct Link {
    /// The address.
    pub url: CrawlUrl,
    /// Its fingerprint under the job's key.
    pub print: Fingerprint,
    /// What it is to its page.
    pub kind: LinkKind,
    /// Navigation hops from a seed.
    pub depth: u16,
    /// Requisite hops in a row.
    pub requisites: u8,
    /// Redirects in a row.
    pub redirects: u8,
    /// Outside the scope: a requisite of a page inside, or a page that a few hops out of it lead to.
    pub outside: bool,
    /// Hops out of the scope.
    pub offsite: u8,
    /// The seed's number, for a seed and what it redirects to.
    pub seed: Option<u64>,
    /// When it changed last, seconds since 1970, if a sitemap or feed says so.
    pub lastmod: Option<NonZeroU32>,
    /// The number of the seed under whose own rules it stands, or zero.
    pub origin: u64,
}

/// How a request ended.
#[derive(Debug, Clone)]
pub enum End {
    /// A response came.
    Answered {
        /// Its status.
        status: u16,
        /// Its media type.
        mime: String,
        /// The connection ended before the body did.
        cut_short: bool,
        /// The Retry-After it asked for.
        retry_after: Option<std::time::Duration>,
        /// Body bytes as received.
        received: u64,
        /// Body bytes after decoding.
        decoded: u64,
    },
    /// An address was looked up.
    Found(IpAddr),
    /// None came.
    Failed {
        /// Why, as a short word.
        reason: &'static str,
        /// Why, for a person.
        detail: String,
        /// The code of crawl.log.
        code: i32,
        /// What it is a fault of.
        fault: Fault,
    },
}

/// What a request that brought no answer is a fault of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Of the address: another try is of no use.
    Final,
    /// Of the look-up of its name.
    Name,
    /// Of the host, or of what lies before it.
    Host,
    /// Of the way in which it was asked: to ask in another one is no retry.
    Form,
    /// Of the proxy that leads to every host, which was not reached.
    Proxy,
}

/// What a robots.txt answer holds beyond its status.
#[derive(Debug, Clone)]
pub enum RobotsBody {
    /// A file of rules.
    Rules {
        /// Parsed.
        rules: Robots,
        /// As received and decoded, cut at what is parsed.
        bytes: Vec<u8>,
    },
    /// A redirect to an address that can be fetched.
    Redirect(CrawlUrl),
}

/// A finished piece of work, as the visit hands it to the shard.
#[derive(Debug)]
pub struct Done {
    /// What was asked for.
    pub work: Work,
    /// How it ended.
    pub end: End,
    /// When it ended: the host rests from here.
    pub at: crate::clock::Time,
    /// From its start to its end; the host rests by it if an answer came.
    pub took: std::time::Duration,
    /// Links in scope.
    pub links: Vec<Link>,
    /// All links: `seen` and `admitted` are still zero.
    pub counts: LinkCounts,
    /// What bounds kept out of `links`.
    pub left: Left,
    /// The links for the survey, in scope or not.
    pub met: Met,
    /// Links that a blocklist names; `counts` has them as out of scope.
    pub blocked: u64,
    /// The links are a sitemap's.
    pub listed: bool,
    /// Why its body was not read, if so.
    pub skipped: Option<&'static str>,
    /// For a robots.txt.
    pub robots: Option<RobotsBody>,
    /// The `Set-Cookie` headers of the answer, in order, if cookies are kept.
    pub set_cookies: Vec<String>,
    /// What the page says, if it is one to be read and that was wanted.
    pub content: Option<Content>,
    /// Links that were traps by themselves, counted by rule.
    pub traps: Vec<(Rule, u64)>,
    /// The request was sent twice at once: the server had certainly not looked at the first one.
    pub repeated: bool,
}

impl Done {
    /// A finished piece of work that brought no links.
    #[must_use]
    pub fn new(work: Work, end: End, at: crate::clock::Time) -> Self {
        Self {
            work,
            end,
            at,
            took: std::time::Duration::ZERO,
            links: Vec::new(),
            counts: LinkCounts::default(),
            left: Left::default(),
            met: Met::default(),
            blocked: 0,
            listed: false,
            skipped: None,
            robots: None,
            set_cookies: Vec::new(),
            content: None,
            traps: Vec::new(),
            repeated: false,
        }
    }
}

/// What came of a seed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeedResult {
    /// A response of this status was recorded.
    Answered(u16),
    /// It failed, and why.
    Failed(String),
    /// robots.txt forbids it.
    Robots,
}

/// The changes of one step that must survive, all or none.
#[derive(Debug, Default)]
pub struct Fact {
    /// Number of the fact, rising by one.
    pub number: u64,
    /// A row of the queue that is done with.
    pub remove: Option<(HostId, Place)>,
    /// New rows of the queue (a retry has a new place).
    pub put: Vec<(HostId, Place, Vec<u8>)>,
    /// Fingerprints of the admitted URLs, in order.
    pub prints: Vec<Fingerprint>,
    /// Hosts that changed.
    pub hosts: Vec<(HostId, HostRow)>,
    /// A robots.txt to be kept.
    pub robots: Option<(HostId, Scheme, Vec<u8>)>,
    /// Rows of sites whose cookies changed.
    pub cookies: Vec<Change>,
    /// What came of a seed.
    pub seed: Option<(u64, SeedResult)>,
    /// URLs admitted from sitemaps in the whole job, if it has become more.
    pub listed: Option<u64>,
    /// Links of a sitemap that were left because the job has had its share.
    pub listed_left: u64,
    /// The seeds have been offered.
    pub seeds_offered: bool,
    /// An address that widens the scope: where a seed redirected to; and the seed whose own rules it widens, or zero.
    pub widen: Option<(String, u64)>,
    /// URLs fetched under a seed with rules of its own, if it has become more.
    pub seed_pages: Option<(u64, u64)>,
    /// The URL that was settled and the attempts it took, for the log.
    pub tries: u8,
    /// How long the host rests from the end of the request, and by which rule, for the log; none if it was given up.
    pub rest: Option<(std::time::Duration, crate::politeness::Rule)>,
    /// What is known of a host's traps.
    pub traps: Option<(HostId, Vec<u8>)>,
    /// The page's links, for the survey.
    pub met: Met,
    /// Shapes of the admitted URLs, for the survey.
    pub shapes: Vec<String>,
    /// Addresses dropped as traps, for the log.
    pub dropped: Vec<Dropped>,
    /// The counters' change.
    pub delta: Delta,
}
