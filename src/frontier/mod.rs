//! What waits to be fetched: a queue a host, and the hosts by the time they come due.
//!
//! Every pending URL is a row of the store, keyed host | priority | sequence. Memory holds the hot head of a queue:
//! all rows up to a key. What lies beyond that key is in the store alone and comes back by a refill. The frontier always
//! accepts, so the cycle of links cannot lock up.

pub mod queue;
pub mod ready;

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::extract::LinkKind;
use crate::hash::HashKey;
use crate::traps::Lineage;
use crate::url::{CrawlUrl, Identity, Reject};

/// A host's number: handed out in order of first admission, never reused within a job.
pub type HostId = u32;

/// The place of a URL in its host's queue: priority (lower first), then order of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default)]
pub struct Place {
    /// Navigation hops from a seed, and [`Place::BACK`] at the back of the queue.
    pub priority: u16,
    /// Order of admission within the job.
    pub sequence: u64,
}

impl Place {
    /// Added to the priority of what goes to the back of its queue.
    pub const BACK: u16 = 0x8000;
    /// The priority of what waits for its seed to have more pages, behind everything else.
    pub const PARKED: u16 = u16::MAX;

    /// The priority of a URL so many hops from a seed, at the back of the queue if said.
    #[must_use]
    pub fn priority(depth: u16, back: bool) -> u16 {
        depth.min(Self::BACK - 2) + if back { Self::BACK } else { 0 }
    }

    /// Before every place.
    pub const FIRST: Place = Place {
        priority: 0,
        sequence: 0,
    };
    /// After every place.
    pub const LAST: Place = Place {
        priority: u16::MAX,
        sequence: u64::MAX,
    };

    /// The key of the row in the store's queue table: sorts as (host, place).
    #[must_use]
    pub fn row_key(self, host: HostId) -> [u8; 14] {
        let mut key = [0; 14];
        let (id, rest) = key.split_at_mut(4);
        let (priority, sequence) = rest.split_at_mut(2);
        id.copy_from_slice(&host.to_be_bytes());
        priority.copy_from_slice(&self.priority.to_be_bytes());
        sequence.copy_from_slice(&self.sequence.to_be_bytes());
        key
    }

    /// The inverse of [`Place::row_key`]; `None` for a key of another form.
    #[must_use]
    pub fn from_row_key(key: &[u8]) -> Option<(HostId, Self)> {
        let (host, rest) = key.split_first_chunk::<4>()?;
        let (priority, rest) = rest.split_first_chunk::<2>()?;
        let sequence: &[u8; 8] = rest.try_into().ok()?;
        let place = Self {
            priority: u16::from_be_bytes(*priority),
            sequence: u64::from_be_bytes(*sequence),
        };
        Some((u32::from_be_bytes(*host), place))
    }
}

/// A pending URL and how it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What to fetch.
    pub url: CrawlUrl,
    /// What is stored beside it.
    pub path: Path,
}

/// How a URL was found, and what was tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Navigation hops from a seed.
    pub depth: u16,
    /// Hop letters from the seed (`L`, `E`, `R`, `M`, `X`), the last [`MAX_HOPS_SHOWN`] of them.
    pub hops: String,
    /// The page it was found on.
    pub via: Option<String>,
    /// What the last link was.
    pub kind: LinkKind,
    /// Requisite hops in a row up to here.
    pub requisites: u8,
    /// Redirects in a row up to here.
    pub redirects: u8,
    /// It lies outside the scope: a requisite of a page inside.
    pub outside: bool,
    /// The seed's number (half of its fingerprint), for a seed and what it redirects to.
    pub seed: Option<u64>,
    /// Requests that were made for it.
    pub tries: u8,
    /// When it changed last, seconds since 1970, if a sitemap or feed says so. Its row has it behind everything else,
    /// so that rows without it are as they were before there was one.
    #[serde(skip)]
    pub lastmod: Option<NonZeroU32>,
    /// The requests of the redirects up to here, the first one first; empty unless a redirect led here. In its row
    /// behind `lastmod`.
    #[serde(skip)]
    pub chain: Vec<Asked>,
    /// What it inherits from the pages that led to it. Stored behind the chain, where earlier rows end.
    #[serde(skip)]
    pub lineage: Lineage,
    /// Hops out of the scope up to here. Stored behind the lineage.
    #[serde(skip)]
    pub offsite: u8,
    /// The number of the seed under whose own rules it stands; zero under those of the settings. Stored last.
    #[serde(skip)]
    pub origin: u64,
}

/// A request of a chain of redirects, remembered so that the chain may come back to a page by another request and
/// never by the same one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// Stands for the page's identity.
    pub page: u64,
    /// Stands for what was sent: the address as spelled, and the cookies.
    pub request: u64,
}

impl Asked {
    /// Of a request of `url` with this `Cookie` header. The hash has no secret: who makes two requests look alike on
    /// purpose only ends a chain of redirects of their own.
    #[must_use]
    pub fn of(url: &CrawlUrl, cookie: Option<&str>) -> Self {
        let key = HashKey([0; 16]);
        let sent = format!("{}\n{}", url.href(), cookie.unwrap_or_default());
        Self {
            page: key.fingerprint(url.canonical().as_bytes()).high,
            request: key.fingerprint(sent.as_bytes()).high,
        }
    }
}

/// Hop letters kept of a path; Heritrix shows as many.
pub const MAX_HOPS_SHOWN: usize = 50;

impl Path {
    /// The path of a seed.
    #[must_use]
    pub fn seed(number: u64) -> Self {
        Self {
            depth: 0,
            hops: String::new(),
            via: None,
            kind: LinkKind::Navigation,
            requisites: 0,
            redirects: 0,
            outside: false,
            seed: Some(number),
            tries: 0,
            lastmod: None,
            chain: Vec::new(),
            lineage: Lineage::default(),
            offsite: 0,
            origin: 0,
        }
    }

    /// It is to be read as a sitemap: the last hop, redirects aside, says so.
    #[must_use]
    pub fn is_sitemap(&self) -> bool {
        self.nesting() > 0
    }

    /// Sitemaps in a row up to here, redirects aside.
    #[must_use]
    pub fn nesting(&self) -> usize {
        let hops = self
            .hops
            .chars()
            .rev()
            .filter(|hop| *hop != LinkKind::Redirect.letter());
        hops.take_while(|hop| *hop == LinkKind::Sitemap.letter()).count()
    }

    /// It is a guess, or a part of one: since the last link that was none there is a speculative hop.
    #[must_use]
    pub fn is_speculative(&self) -> bool {
        let sure = |hop: &char| {
            [LinkKind::Navigation, LinkKind::Sitemap]
                .iter()
                .any(|kind| kind.letter() == *hop)
        };
        let mut since = self.hops.chars().rev().take_while(|hop| !sure(hop));
        since.any(|hop| hop == LinkKind::Speculative.letter())
    }

    /// The hop letters one hop further on.
    #[must_use]
    pub fn hops_to(&self, kind: LinkKind) -> String {
        let skip = (self.hops.len() + 1).saturating_sub(MAX_HOPS_SHOWN);
        self.hops.chars().skip(skip).chain([kind.letter()]).collect()
    }
}

impl Item {
    /// The row as stored: address and path; then, if there is either, when it changed last (four bytes, zero for not
    /// known) and the chain of redirects.
    #[must_use]
    pub fn to_row(&self) -> Vec<u8> {
        #[expect(clippy::expect_used, reason = "plain data always encodes")]
        let mut row = postcard::to_stdvec(&(self.url.href(), &self.path)).expect("a row encodes");
        let Path {
            lastmod,
            chain,
            lineage,
            offsite,
            origin,
            ..
        } = &self.path;
        let inherits = *lineage != Lineage::default() || *offsite > 0 || *origin != 0;
        if lastmod.is_some() || !chain.is_empty() || inherits {
            row.extend_from_slice(&lastmod.map_or(0, NonZeroU32::get).to_le_bytes());
        }
        if !chain.is_empty() || inherits {
            #[expect(clippy::expect_used, reason = "plain data always encodes")]
            row.extend(postcard::to_stdvec(chain).expect("a chain encodes"));
        }
        if inherits {
            row.extend_from_slice(&lineage.to_bytes());
            row.push(*offsite);
        }
        if *origin != 0 {
            row.extend_from_slice(&origin.to_le_bytes());
        }
        row
    }

    /// The inverse of [`Item::to_row`].
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn from_row(bytes: &[u8], identity: &Identity) -> Result<Self, String> {
        let failed = |error: postcard::Error| error.to_string();
        let ((href, mut path), rest): ((String, Path), _) = postcard::take_from_bytes(bytes).map_err(failed)?;
        if let Some((lastmod, rest)) = rest.split_first_chunk() {
            path.lastmod = NonZeroU32::new(u32::from_le_bytes(*lastmod));
            if !rest.is_empty() {
                let (chain, rest) = postcard::take_from_bytes(rest).map_err(failed)?;
                path.chain = chain;
                if let Some((lineage, offsite)) = rest.split_first_chunk() {
                    path.lineage = Lineage::from_bytes(*lineage);
                    if let Some((offsite, origin)) = offsite.split_first() {
                        path.offsite = *offsite;
                        path.origin = origin.first_chunk().map_or(0, |origin| u64::from_le_bytes(*origin));
                    }
                }
            }
        }
        let url = CrawlUrl::parse(&href, identity).map_err(|reject: Reject| format!("{href}: {reject}"))?;
        Ok(Self { url, path })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_keys_sort_as_places() {
        let places = [
            Place::FIRST,
            Place {
                priority: 0,
                sequence: 1,
            },
            Place {
                priority: 0,
                sequence: 256,
            },
            Place {
                priority: 1,
                sequence: 0,
            },
            Place {
                priority: 256,
                sequence: 0,
            },
            Place::LAST,
        ];
        for pair in places.windows(2) {
            assert!(pair[0].row_key(7) < pair[1].row_key(7));
            assert!(pair[1].row_key(7) < pair[0].row_key(8));
        }
        for place in places {
            assert_eq!(Place::from_row_key(&place.row_key(9)), Some((9, place)));
        }
        assert_eq!(Place::from_row_key(b"short"), None);
    }

    #[test]
    fn rows_come_back_with_and_without_a_chain() {
        let identity = Identity::default();
        let url = CrawlUrl::parse("http://h/a", &identity).unwrap();
        let mut item = Item {
            url: url.clone(),
            path: Path::seed(7),
        };
        for lastmod in [None, NonZeroU32::new(1_780_315_200)] {
            item.path.lastmod = lastmod;
            item.path.chain = vec![Asked::of(&url, None), Asked::of(&url, Some("a=1"))];
            assert_eq!(item.path.chain[0].page, item.path.chain[1].page);
            assert_ne!(item.path.chain[0].request, item.path.chain[1].request);
            let row = item.to_row();
            assert_eq!(Item::from_row(&row, &identity).as_ref(), Ok(&item));
            assert!(Item::from_row(&row[..row.len() - 1], &identity).is_err());
        }
    }

    #[test]
    fn a_row_keeps_the_seed_whose_rules_hold() {
        let identity = Identity::default();
        let mut item = Item {
            url: CrawlUrl::parse("http://h/a", &identity).unwrap(),
            path: Path::seed(7),
        };
        for (offsite, origin) in [(0, 9), (3, u64::MAX), (3, 0)] {
            item.path.offsite = offsite;
            item.path.origin = origin;
            assert_eq!(Item::from_row(&item.to_row(), &identity).as_ref(), Ok(&item));
        }
    }

    #[test]
    fn a_row_keeps_the_date_and_is_read_without_one() {
        let mut item = Item {
            url: CrawlUrl::parse("http://a.test/", &Identity::default()).unwrap(),
            path: Path::seed(7),
        };
        let plain = item.to_row();
        assert_eq!(Item::from_row(&plain, &Identity::default()).as_ref(), Ok(&item));
        item.path.lastmod = NonZeroU32::new(1_780_315_200);
        let dated = item.to_row();
        assert_eq!(dated.len(), plain.len() + 4);
        assert!(dated.starts_with(&plain));
        assert_eq!(Item::from_row(&dated, &Identity::default()), Ok(item));
    }

    #[test]
    fn the_hops_tell_a_sitemap() {
        let path = |hops: &str| Path {
            hops: hops.to_owned(),
            ..Path::seed(0)
        };
        for (hops, is_one, nesting) in [
            ("", false, 0),
            ("M", true, 1),
            ("MMR", true, 2),
            ("MRMR", true, 2),
            ("ML", false, 0),
            ("MLER", false, 0),
            ("LM", true, 1),
        ] {
            assert_eq!(
                (path(hops).is_sitemap(), path(hops).nesting()),
                (is_one, nesting),
                "{hops}"
            );
        }
    }

    #[test]
    fn hops_are_the_last_fifty() {
        let mut path = Path::seed(0);
        for _ in 0..60 {
            path.hops = path.hops_to(LinkKind::Navigation);
        }
        path.hops = path.hops_to(LinkKind::Redirect);
        assert_eq!(path.hops.len(), MAX_HOPS_SHOWN);
        assert!(path.hops.ends_with("LR"));
    }
}
