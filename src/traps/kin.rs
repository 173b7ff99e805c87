//! What a link has in common with its page, and what an address inherits from the pages that led to it.

use super::shape::Shape;
use crate::url::CrawlUrl;

/// What a link and its page share, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kin(u8);

impl Kin {
    /// The whole shape.
    pub const SHAPE: Kin = Kin(1);
    /// The path up to a segment that is drawn anew.
    pub const STEM: Kin = Kin(2);
    /// The names of the query.
    pub const NAMES: Kin = Kin(4);
    /// The link grew out of its page: its folder with more behind it, or its query with more behind it.
    pub const GROWN: Kin = Kin(8);
    /// Both are addresses of one calendar.
    pub const DATE: Kin = Kin(16);
    /// One path under two queries.
    pub const QUERY: Kin = Kin(32);
    /// Both stand at one level: as deep, under the same first folder. Nearly all pages of a site share that with others,
    /// so alone it makes no kin.
    pub const LEVEL: Kin = Kin(64);

    /// What `link` shares with its page.
    #[must_use]
    pub fn of(page: (&CrawlUrl, &Shape), link: (&CrawlUrl, &Shape)) -> Self {
        let ((page, one), (link, two)) = (page, link);
        if page.host_key() != link.host_key() {
            return Self(0);
        }
        let mut kin = 0;
        let mut set = |bit: Self, is: bool| kin |= if is { bit.0 } else { 0 };
        set(Self::SHAPE, one.whole == two.whole);
        set(Self::STEM, one.stem.is_some() && one.stem == two.stem);
        set(Self::NAMES, one.names.is_some() && one.names == two.names);
        set(Self::DATE, one.date.is_some() && one.date == two.date);
        set(
            Self::QUERY,
            page.path() == link.path() && one.names.is_some() && two.names.is_some(),
        );
        set(Self::GROWN, grew(page, link));
        set(Self::LEVEL, one.level == two.level);
        Self(kin)
    }

    /// Is any of `bits` shared?
    #[must_use]
    pub fn has(self, bits: Self) -> bool {
        self.0 & bits.0 != 0
    }

    /// Nothing is shared.
    #[must_use]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Nothing is shared but the level.
    #[must_use]
    pub fn is_strange(self) -> bool {
        self.0 & !Self::LEVEL.0 == 0
    }
}

fn grew(page: &CrawlUrl, link: &CrawlUrl) -> bool {
    let (path, longer) = (page.path(), link.path());
    if path == longer {
        let (query, longer) = (page.path_and_query(), link.path_and_query());
        return query.len() > path.len() + 1 && longer.len() > query.len() && longer.starts_with(query);
    }
    let folder = path.rfind('/').and_then(|slash| path.get(..=slash)).unwrap_or("/");
    let depth = |path: &str| path.trim_end_matches('/').matches('/').count();
    folder.len() > 1 && longer.starts_with(folder) && depth(longer) > depth(path)
}

/// What an address inherits from the pages that led to it. Stored with it, so that a row of pages is as long after a
/// restart as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four answers about one page that do not exclude each other"
)]
pub struct Lineage {
    /// What it shares with its page.
    pub kin: Kin,
    /// Its page said what another had said, to the letter.
    pub same: bool,
    /// Its page said what another had said, but for numbers and dates.
    pub alike: bool,
    /// Its page said what another had said, to the letter, and led to nothing off its level.
    pub same_level: bool,
    /// Its page said what another had said, but for numbers and dates, and led to no stranger.
    pub numbered: bool,
    /// Pages in a row, each of which led only to the next one of its shape.
    pub run: u16,
    /// Those of them that were alike.
    pub run_alike: u16,
}

impl Lineage {
    /// Length of the written form in bytes.
    pub const BYTES: usize = 6;

    /// As it stands in a row.
    #[must_use]
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let ([a, b], [c, d]) = (self.run.to_le_bytes(), self.run_alike.to_le_bytes());
        let flags = [self.same, self.alike, self.same_level, self.numbered];
        let flags = flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag));
        [self.kin.0, flags, a, b, c, d]
    }

    /// The inverse of [`Lineage::to_bytes`].
    #[must_use]
    pub fn from_bytes([kin, flags, a, b, c, d]: [u8; Self::BYTES]) -> Self {
        Self {
            kin: Kin(kin),
            same: flags & 1 != 0,
            alike: flags & 2 != 0,
            same_level: flags & 4 != 0,
            numbered: flags & 8 != 0,
            run: u16::from_le_bytes([a, b]),
            run_alike: u16::from_le_bytes([c, d]),
        }
    }
}
