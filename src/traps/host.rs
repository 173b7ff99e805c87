//! What is known of one host's spaces: which texts were read, which kinds of address feed themselves, how often a shape
//! was admitted. Bounded, whatever the host does, and only there for a host of which [`WATCH_FROM`] URLs were fetched.

use serde::{Deserialize, Serialize};

use super::kin::{Kin, Lineage};
use super::shape::{Shape, hash, mix, names};
use super::sketch::Sketch;
use super::text::Content;
use super::{Policy, Rule};
use crate::url::CrawlUrl;

/// A host is watched from so many fetched URLs on.
pub const WATCH_FROM: u64 = 16;
/// Texts of a host that are remembered, of each digest: 4 bytes each. A text has one place and gives way to a later one.
pub const TEXTS: usize = 256;
/// Kinds of address that feed themselves, remembered of a host; the one with the least evidence gives way.
pub const MAX_KINDS: usize = 256;
/// Pages that say the same, less ten for each that says something new, after which their kind is a trap.
pub const SAME_PAGES: u16 = 50;
/// From here on what a page of the kind leads to goes to the back of the queue.
const SAME_DEMOTED: u16 = SAME_PAGES / 2;
/// The same for pages of a calendar that differ only in their date.
pub const CALENDAR_PAGES: u16 = 60;
/// The same for pages that differ in numbers only, each of which leads to several more of its kind: no row, but a bush.
pub const NUMBERED_PAGES: u16 = 160;
/// A page that says something new takes back the evidence of so many.
const RELIEF: u16 = 10;
/// Pages in a row, each of which leads only to the next of its shape. (Two such rows can begin at one page: backwards and
/// forwards.)
pub const CHAIN_PAGES: u16 = 240;
/// The same if they are alike.
pub const CHAIN_ALIKE_PAGES: u16 = 120;
/// URLs of one shape after which the further ones go to the back of the queue.
pub const COMMON_SHAPE: u32 = 1_000;
/// URLs of one shape from which on, while nothing speaks against it, some of its pages are read and not all.
pub const VARIED_SHAPE: u32 = 300;
/// Of those pages one in so many. A space without end that begins there is noticed so much later: two pages that say the
/// same have to be among those that are read, and from then on all are.
pub const READ_ONE_IN: u64 = 8;
/// URLs of one path, found on it under other parameters, without which nothing explodes.
pub const EXPLOSION_URLS: u16 = 150;
/// Different combinations of parameters without which nothing explodes; and twice as many as there are parameters.
pub const EXPLOSION_COMBINATIONS: usize = 16;
/// Combinations and parameters of a path that are remembered.
const MAX_COMBINATIONS: usize = 128;
/// What was admitted before an explosion was seen is fetched, but not more of it than this.
const EXPLOSION_QUEUED: u16 = 400;
/// Paths whose combinations are remembered, of a host.
const MAX_PATHS: usize = 16;
/// Evidence that a kill may lose: the row is written when so much has come in,
const ROW_EVERY: u32 = 16;
/// or so many URLs were admitted.
const ROW_ADMISSIONS: u32 = 256;

/// The kinds that a page and its link can share, with the number under which each is remembered.
const KINDS: [(Kin, u64); 5] = [
    (Kin::SHAPE, 1),
    (Kin::STEM, 2),
    (Kin::NAMES, 3),
    (Kin::GROWN, 4),
    (Kin::QUERY, 5),
];
const DATES: u64 = 6;
const LEVEL: u64 = 7;
/// Kinds whose pages may differ in numbers only.
const NUMBERED: [(Kin, u64); 2] = [(Kin::SHAPE, 8), (Kin::STEM, 9)];

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Kind {
    key: u64,
    evidence: u16,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Combined {
    path: u64,
    urls: u16,
    lists: Vec<u32>,
    names: Vec<u32>,
}

impl Combined {
    fn explodes(&self) -> bool {
        self.urls >= EXPLOSION_URLS
            && self.lists.len() >= EXPLOSION_COMBINATIONS
            && (self.lists.len() >= 2 * self.names.len() || self.lists.len() == MAX_COMBINATIONS)
    }
}

/// How a page stands to the others of its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sameness {
    /// Its words were read before.
    pub same: bool,
    /// Its words but for numbers and dates were read before.
    pub alike: bool,
    /// It was read. One that was not is taken for the same, so that it does not stand in the way of evidence.
    pub read: bool,
}

impl Sameness {
    /// Of a page that nobody read.
    pub const UNREAD: Sameness = Sameness {
        same: true,
        alike: true,
        read: false,
    };
}

/// What a page's new links were to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fed {
    /// New URLs of its own shape.
    pub own: usize,
    /// New URLs that share neither its shape nor its calendar and did not grow out of it.
    pub others: usize,
    /// New URLs that share nothing with it but perhaps its level.
    pub strangers: usize,
    /// New URLs on its level.
    pub level: usize,
    /// New URLs that share nothing with it at all.
    pub foreign: usize,
}

impl Fed {
    /// Counts a new link.
    pub fn count(&mut self, kin: Kin) {
        self.own += usize::from(kin.has(Kin::SHAPE));
        self.others += usize::from(!(kin.has(Kin::SHAPE) || kin.has(Kin::DATE) || kin.has(Kin::GROWN)));
        self.strangers += usize::from(kin.is_strange());
        self.level += usize::from(kin.has(Kin::LEVEL));
        self.foreign += usize::from(kin.is_none());
    }

    /// It led to nothing new.
    fn is_nothing(self) -> bool {
        self.own == 0 && self.others == 0 && self.level == 0 && self.foreign == 0
    }

    /// It led to the next of its shape (or to one in each direction) and to nothing else.
    fn is_link_of_chain(self) -> bool {
        matches!(self.own, 1..=2) && self.others == 0
    }
}

/// The state of a host.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct HostTraps {
    #[serde(skip)]
    policy: Policy,
    #[serde(skip)]
    texts: Vec<u32>,
    #[serde(skip)]
    changes: u32,
    #[serde(skip)]
    admissions: u32,
    kinds: Vec<Kind>,
    paths: Vec<Combined>,
    shapes: Sketch,
    /// Some kind has evidence enough to drop.
    armed: bool,
}

impl HostTraps {
    /// Nothing known yet.
    #[must_use]
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }

    /// What an earlier run knew; `None` if the row is not one.
    #[must_use]
    pub fn from_row(row: &[u8], policy: Policy) -> Option<Self> {
        let state: Self = postcard::from_bytes(row).ok()?;
        Some(Self { policy, ..state })
    }

    /// The row to be stored, if enough has changed.
    pub fn row_if_due(&mut self) -> Option<Vec<u8>> {
        if self.changes < ROW_EVERY && self.admissions < ROW_ADMISSIONS {
            return None;
        }
        (self.changes, self.admissions) = (0, 0);
        postcard::to_stdvec(self).ok()
    }

    /// May anything be dropped at all? If not, there is no need to look at links before they are new.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.armed || self.policy.max_per_shape.is_some()
    }

    /// Is a page with this lineage, alike as said, at the end of a long row?
    #[must_use]
    pub fn is_long(&self, lineage: Lineage) -> bool {
        let half = if lineage.kin.has(Kin::DATE) { 2 } else { 1 };
        let alike = u32::from(lineage.run_alike) * 10 >= u32::from(lineage.run) * 9;
        let most = if alike { CHAIN_ALIKE_PAGES } else { CHAIN_PAGES };
        lineage.run >= most / half
    }

    /// Is the page at this place of the queue to be read? To read is a third of the work of a crawl without an archive.
    #[must_use]
    pub fn wants(&self, url: &CrawlUrl, sequence: u64) -> bool {
        if self.shapes.is_empty() {
            return true;
        }
        let shape = Shape::of(url);
        let suspect = || {
            let kinds = KINDS.iter().chain(&NUMBERED).map(|(_, kind)| *kind);
            let kinds = kinds.chain([DATES, LEVEL]);
            kinds.into_iter().any(|kind| self.evidence(key(kind, &shape)) > 0)
        };
        // not by the number itself: places repeat the order of links on their pages
        self.shapes.count(shape.whole) < VARIED_SHAPE || mix(sequence).is_multiple_of(READ_ONE_IN) || suspect()
    }

    /// Remembers what a page says.
    pub fn read(&mut self, content: Content) -> Sameness {
        if self.texts.is_empty() {
            self.texts = vec![0; 2 * TEXTS];
        }
        let mut met = |digest: u64, second: usize| {
            let place = usize::try_from(digest >> 32).unwrap_or(0) % TEXTS + second * TEXTS;
            #[expect(clippy::cast_possible_truncation, reason = "the lower half is what is kept")]
            let tag = (digest as u32).max(1);
            let Some(slot) = self.texts.get_mut(place) else {
                return false;
            };
            std::mem::replace(slot, tag) == tag
        };
        let (same, alike) = (met(content.same, 0), met(content.alike, 1));
        Sameness {
            same,
            alike: alike || same,
            read: true,
        }
    }

    /// Which rule drops an address of this lineage? `admitted` says that it waits in the queue already.
    #[must_use]
    pub fn drops(&self, shape: &Shape, lineage: Lineage, admitted: bool) -> Option<Rule> {
        let kin = lineage.kin;
        if kin.is_none() {
            return None;
        }
        if self.armed && lineage.same && self.policy.holds(Rule::SameContent) {
            let trap = |(bit, kind): &(Kin, u64)| kin.has(*bit) && self.evidence(key(*kind, shape)) >= SAME_PAGES;
            if KINDS.iter().any(trap) {
                return Some(Rule::SameContent);
            }
        }
        if self.armed
            && lineage.same_level
            && kin.has(Kin::LEVEL)
            && self.policy.holds(Rule::SameContent)
            && self.evidence(key(LEVEL, shape)) >= SAME_PAGES
        {
            return Some(Rule::SameContent);
        }
        if self.armed && lineage.alike && kin.has(Kin::DATE) && self.policy.holds(Rule::Calendar) {
            let evidence = self.evidence(key(DATES, shape));
            if evidence >= CALENDAR_PAGES {
                return Some(Rule::Calendar);
            }
        }
        if kin.has(Kin::SHAPE) && self.is_long(lineage) && self.policy.holds(Rule::EndlessChain) {
            return Some(Rule::EndlessChain);
        }
        let bush = |(bit, kind): &(Kin, u64)| kin.has(*bit) && self.evidence(key(*kind, shape)) >= NUMBERED_PAGES;
        if self.armed && lineage.numbered && self.policy.holds(Rule::EndlessChain) && NUMBERED.iter().any(bush) {
            return Some(Rule::EndlessChain);
        }
        let urls = if admitted { EXPLOSION_QUEUED } else { 0 };
        let explodes = |path: &Combined| path.path == shape.path && path.urls >= urls && path.explodes();
        if self.armed
            && kin.has(Kin::QUERY)
            && self.policy.holds(Rule::QueryExplosion)
            && self.paths.iter().any(explodes)
        {
            return Some(Rule::QueryExplosion);
        }
        None
    }

    /// Is there no room for another URL of this shape?
    #[must_use]
    pub fn is_over_budget(&self, shape: &Shape) -> bool {
        let most = self.policy.max_per_shape;
        most.is_some_and(|most| self.shapes.count(shape.whole) >= most) && self.policy.holds(Rule::ShapeBudget)
    }

    /// Takes in a page that was read, and what its new links were to it.
    pub fn learn(&mut self, shape: &Shape, lineage: Lineage, sameness: Sameness, fed: Fed) {
        if lineage.kin.is_none() {
            return;
        }
        let same = sameness.same && fed.strangers == 0;
        for (bit, kind) in KINDS {
            if lineage.kin.has(bit) {
                self.weigh(key(kind, shape), same, SAME_PAGES);
            }
        }
        if lineage.kin.has(Kin::DATE) {
            self.weigh(key(DATES, shape), sameness.alike && fed.others == 0, CALENDAR_PAGES);
        }
        // a level is wide, and has an end where pages lead to nothing new; once it is taken for endless that means nothing
        // any more, for then what they lead to is left
        let level = key(LEVEL, shape);
        let ends = sameness.same && fed.level == 0 && fed.foreign == 0;
        if lineage.kin.has(Kin::LEVEL) && !(ends && self.evidence(level) >= SAME_PAGES) {
            self.weigh(level, sameness.same && fed.foreign == 0 && !ends, SAME_PAGES);
        }
        // numbers are as wide: a page that leads to nothing new says nothing about them, only that it is a page
        for (bit, kind) in NUMBERED {
            if lineage.kin.has(bit) && !(sameness.alike && fed.is_nothing()) {
                self.weigh(key(kind, shape), sameness.alike && fed.strangers == 0, NUMBERED_PAGES);
            }
        }
    }

    /// What a link inherits from its page.
    #[must_use]
    pub fn inherit(page: Lineage, kin: Kin, sameness: Sameness, fed: Fed) -> Lineage {
        let chained = kin.has(Kin::SHAPE) && fed.is_link_of_chain();
        Lineage {
            kin,
            same: sameness.same && fed.strangers == 0,
            alike: sameness.alike && fed.others == 0,
            same_level: sameness.read && sameness.same && fed.foreign == 0,
            numbered: sameness.alike && fed.strangers == 0,
            run: if chained { page.run.saturating_add(1) } else { 0 },
            run_alike: if chained {
                page.run_alike.saturating_add(u16::from(sameness.alike))
            } else {
                0
            },
        }
    }

    /// Counts a URL that was admitted, and says whether it goes to the back of the queue.
    pub fn admit(&mut self, url: &CrawlUrl, shape: &Shape, lineage: Lineage) -> bool {
        self.admissions += 1;
        let common = self.shapes.add(shape.whole) > COMMON_SHAPE;
        if lineage.kin.has(Kin::QUERY) {
            self.combine(url, shape);
        }
        let stale =
            |(bit, kind): &(Kin, u64)| lineage.kin.has(*bit) && self.evidence(key(*kind, shape)) >= SAME_DEMOTED;
        let stale_level = || lineage.kin.has(Kin::LEVEL) && self.evidence(key(LEVEL, shape)) >= SAME_DEMOTED;
        common || lineage.same && KINDS.iter().any(stale) || lineage.same_level && stale_level()
    }

    fn combine(&mut self, url: &CrawlUrl, shape: &Shape) {
        let query = url.path_and_query().split_once('?').map_or("", |(_, query)| query);
        let parameters: Vec<&str> = query.split('&').filter(|text| !text.is_empty()).collect();
        if parameters.len() < 2 {
            return;
        }
        let name = |parameter: &str| parameter.split('=').next().unwrap_or_default().to_owned();
        let once = names(query).len() == parameters.len();
        // a name that stands twice is a list: then its values are what is combined
        let parts = parameters
            .iter()
            .map(|text| if once { name(text) } else { (*text).to_owned() });
        let parts: Vec<String> = parts.take(super::shape::MAX_NAMES).collect();
        if !self.paths.iter().any(|path| path.path == shape.path) {
            if self.paths.len() >= MAX_PATHS {
                let least = self.paths.iter().enumerate().min_by_key(|(_, path)| path.urls);
                if let Some((least, _)) = least {
                    self.paths.swap_remove(least);
                }
            }
            self.paths.push(Combined {
                path: shape.path,
                ..Combined::default()
            });
        }
        let Some(path) = self.paths.iter_mut().find(|path| path.path == shape.path) else {
            return;
        };
        path.urls = path.urls.saturating_add(1);
        remember(&mut path.lists, parts.join("&").as_bytes());
        for part in &parts {
            remember(&mut path.names, part.as_bytes());
        }
        if path.explodes() && !self.armed {
            self.armed = true;
            self.changes += ROW_EVERY;
        }
    }

    fn evidence(&self, key: u64) -> u16 {
        let found = self.kinds.iter().find(|kind| kind.key == key);
        found.map_or(0, |kind| kind.evidence)
    }

    /// One more page of a kind: for the trap or against it.
    fn weigh(&mut self, key: u64, trap: bool, enough: u16) {
        let at = self.kinds.iter().position(|kind| kind.key == key);
        let Some(at) = at else {
            if trap {
                self.changes += 1;
                self.make_room();
                self.kinds.push(Kind { key, evidence: 1 });
            }
            return;
        };
        let Some(kind) = self.kinds.get_mut(at) else { return };
        self.changes += 1;
        if trap {
            kind.evidence = kind.evidence.saturating_add(1).min(2 * enough);
            if kind.evidence == enough {
                self.armed = true;
                self.changes += ROW_EVERY;
            }
        } else if kind.evidence <= RELIEF {
            self.kinds.swap_remove(at);
        } else {
            kind.evidence -= RELIEF;
        }
    }

    fn make_room(&mut self) {
        if self.kinds.len() < MAX_KINDS {
            return;
        }
        let least = self.kinds.iter().enumerate().min_by_key(|(_, kind)| kind.evidence);
        if let Some((least, _)) = least {
            self.kinds.swap_remove(least);
        }
    }
}

fn key(kind: u64, shape: &Shape) -> u64 {
    let of = match kind {
        1 => shape.whole,
        2 => shape.stem.unwrap_or(0),
        3 => shape.names.unwrap_or(0),
        5 => shape.path,
        DATES => shape.date.unwrap_or(0),
        LEVEL => shape.level,
        8 => shape.whole,
        9 => shape.stem.unwrap_or(0),
        // whatever grows on a host grows by one mistake
        _ => 0,
    };
    mix(of ^ kind.rotate_left(56))
}

/// Adds a text to a small set.
fn remember(set: &mut Vec<u32>, text: &[u8]) {
    #[expect(clippy::cast_possible_truncation, reason = "a part of the hash is enough to count")]
    let tag = hash(text) as u32;
    if set.len() < MAX_COMBINATIONS && !set.contains(&tag) {
        set.push(tag);
    }
}
