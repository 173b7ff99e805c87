//! Sitemaps and feeds: bytes in pieces → entries, by a streaming reader that takes what is usable.
//!
//! ```text
//! pieces ─► unpack (gzip, by content, twice at most) ─► text (encoding) ─┬─► xml ─► forms ─► entries
//!                                                                        └─► lines ─────────►
//! ```
//!
//! Read are `urlset` and `sitemapindex` (sitemaps.org), RSS 0.9 to 2.0, RDF, Atom 0.3 and 1.0, and text with one URL a
//! line; which of them is told by the content, whatever the name and the type say. Elements go by their local names, so
//! a missing, old or misspelt namespace does not matter. What is broken costs as little as can be: an `&` that is none,
//! an element that is not closed, a file that ends early (its entries so far count).
//!
//! Of entities only the five of XML and the numeric ones are decoded; nothing is ever expanded or fetched. A reference
//! to an external entity is empty, one to an entity that the file declares itself makes its entry unusable.
//!
//! Whatever the pieces, the entries are the same. Memory: the largest tag or address, and buffers of fixed size.

mod date;
mod forms;
mod lines;
mod reference;
mod text;
mod unpack;
mod xml;

use std::num::NonZeroU32;

use super::{LinkKind, Links, RawLink};
use forms::Forms;
use lines::Lines;
use text::Text;
use unpack::Unpack;
use xml::Scanner;

/// Entries (pages and sitemaps) taken from one file, as sitemaps.org allows; what is beyond is counted.
pub const MAX_ENTRIES: u64 = 50_000;
/// Pictures, films and other languages' pages taken from one file beside its entries; what is beyond is counted.
pub const MAX_EXTRAS: u64 = 50_000;
/// Bytes of one file that are read, unpacked, as sitemaps.org allows.
pub const MAX_BYTES: u64 = 50 << 20;
/// Sitemaps in a row that lead to an entry: an index, an index in it, and the sitemap in that. (The standard knows two.)
pub const MAX_NESTING: usize = 3;

/// One thing that a file names.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry<'a> {
    /// What it is.
    pub kind: EntryKind,
    /// The address as written, references decoded, white space around it removed.
    pub loc: &'a str,
    /// When it changed last, seconds since 1970.
    pub lastmod: Option<NonZeroU32>,
    /// How often it changes, in the sitemap's own words (`daily`).
    pub changefreq: Option<&'a str>,
    /// From 0.0 to 1.0.
    pub priority: Option<f32>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A page: `url`, `item`, `entry`, a line of text.
    Page,
    /// A further sitemap, of an index.
    Sitemap,
    /// A page's other language or form (`xhtml:link rel=alternate`).
    Alternate,
    /// A picture or film of a page, an enclosure: `image:loc`, `video:content_loc`, `enclosure`.
    Media,
    /// The page that a feed belongs to.
    Home,
    /// A further page of a feed (RFC 5005).
    Next,
    /// The style sheet that shows the file.
    Style,
}

/// The forms that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// `urlset`.
    UrlSet,
    /// `sitemapindex`.
    Index,
    /// RSS and RDF.
    Rss,
    /// Atom.
    Atom,
    /// One URL a line.
    Text,
}

impl Form {
    /// The word in a crawl.log annotation (`sitemap:urlset`).
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UrlSet => "urlset",
            Self::Index => "index",
            Self::Rss => "rss",
            Self::Atom => "atom",
            Self::Text => "text",
        }
    }

    /// A feed rather than a sitemap.
    #[must_use]
    pub fn is_feed(self) -> bool {
        matches!(self, Self::Rss | Self::Atom)
    }
}

/// What was read of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Its form; `None` if it is none of them: an error page, a picture, nothing at all.
    pub form: Option<Form>,
    /// Entries given: pages and sitemaps.
    pub entries: u64,
    /// Other things given.
    pub extras: u64,
    /// Entries and other things beyond [`MAX_ENTRIES`] and [`MAX_EXTRAS`].
    pub dropped: u64,
    /// Entries without a usable address: too long, or made of an entity that is not expanded.
    pub unusable: u64,
    /// Lines of a text that are no addresses.
    pub other_lines: u64,
    /// It is longer than [`MAX_BYTES`]; the rest was not read.
    pub too_large: bool,
    /// Its gzip stream is broken or cut.
    pub broken: bool,
    /// The root's `xml:base`, against which relative addresses of a feed stand.
    pub base: Option<String>,
}

/// Reads one file, fed in pieces.
#[derive(Debug)]
pub struct Reader {
    unpack: Unpack,
    text: Text,
    body: Body,
    out: Out,
}

/// What the text turned out to be.
#[derive(Debug)]
enum Body {
    /// Nothing but white space so far.
    Unknown,
    Lines(Lines),
    Xml(Box<(Scanner, Forms)>),
}

/// Where entries go: counted, bounded, handed on.
#[derive(Debug, Default)]
struct Out {
    summary: Summary,
    /// Nothing more of the file is of use.
    over: bool,
}

impl Out {
    fn give(&mut self, entry: Entry<'_>, each: &mut dyn FnMut(Entry<'_>)) {
        let (given, most) = match entry.kind {
            EntryKind::Page | EntryKind::Sitemap => (&mut self.summary.entries, MAX_ENTRIES),
            _ => (&mut self.summary.extras, MAX_EXTRAS),
        };
        if *given < most {
            *given += 1;
            each(entry);
        } else {
            self.summary.dropped += 1;
        }
    }
}

impl Reader {
    /// A reader for one file. `content_type` is the header's value; of it only the charset counts.
    #[must_use]
    pub fn new(content_type: Option<&[u8]>) -> Self {
        Self {
            unpack: Unpack::new(MAX_BYTES),
            text: Text::new(content_type),
            body: Body::Unknown,
            out: Out::default(),
        }
    }

    /// Takes the next piece, of any length, and hands on what is complete. `false`: nothing more is of use.
    pub fn feed(&mut self, piece: &[u8], each: &mut dyn FnMut(Entry<'_>)) -> bool {
        let Self {
            unpack,
            text,
            body,
            out,
        } = self;
        if !out.over {
            unpack.feed(piece, &mut |bytes| {
                text.feed(bytes, &mut |part| body.feed(part, out, each));
                !out.over
            });
        }
        if unpack.is_full() {
            out.over = true;
        }
        !out.over
    }

    /// The file has ended: hands on what was still open and says what it was.
    pub fn finish(mut self, each: &mut dyn FnMut(Entry<'_>)) -> Summary {
        let Self {
            unpack,
            text,
            body,
            out,
        } = &mut self;
        if !out.over {
            unpack.finish(&mut |bytes| {
                text.feed(bytes, &mut |part| body.feed(part, out, each));
                !out.over
            });
        }
        out.summary.too_large = unpack.is_full();
        out.summary.broken = unpack.is_broken();
        text.finish(&mut |part| body.feed(part, out, each));
        body.finish(out, each);
        std::mem::take(&mut out.summary)
    }
}

impl Body {
    fn feed(&mut self, part: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        if out.over {
            return;
        }
        let mut part = part;
        if matches!(self, Self::Unknown) {
            part = part.trim_start_matches(is_blank);
            match part.chars().next() {
                None => return,
                Some('<') => *self = Self::xml(),
                Some(_) => *self = Self::Lines(Lines::default()),
            }
        }
        if let Self::Lines(lines) = self {
            // what stood before the markup (a warning of the server's program, say) is no list of addresses
            let Some(markup) = lines.feed(part, out, each) else {
                return;
            };
            let (scanner, forms) = (Scanner::default(), Forms::default());
            let mut parts = Box::new((scanner, forms));
            parts.0.feed(&markup, &mut parts.1, out, each);
            *self = Self::Xml(parts);
        } else if let Self::Xml(parts) = self {
            let (scanner, forms) = parts.as_mut();
            scanner.feed(part, forms, out, each);
        }
    }

    fn xml() -> Self {
        Self::Xml(Box::default())
    }

    fn finish(&mut self, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        match self {
            Self::Unknown => {}
            Self::Lines(lines) => lines.finish(out, each),
            Self::Xml(parts) => parts.1.finish(out, each),
        }
    }
}

/// White space as people paste it: Unicode's, the byte order mark, and the zero-width space.
fn is_blank(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}' | '\0')
}

/// Reads a whole file: the entry point for tests and fuzzing.
pub fn read(content_type: Option<&[u8]>, bytes: &[u8], each: &mut dyn FnMut(Entry<'_>)) -> Summary {
    let mut reader = Reader::new(content_type);
    reader.feed(bytes, each);
    reader.finish(each)
}

/// Reads a file from a stream, in pieces of 64 KiB.
///
/// # Errors
/// If the stream cannot be read.
pub fn read_from(
    content_type: Option<&[u8]>,
    mut bytes: impl std::io::Read,
    each: &mut dyn FnMut(Entry<'_>),
) -> std::io::Result<Summary> {
    const PIECE: usize = 64 << 10;
    let mut piece = vec![0; PIECE];
    let mut reader = Reader::new(content_type);
    loop {
        let len = match bytes.read(&mut piece) {
            Ok(0) => break,
            Ok(len) => len,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if !reader.feed(piece.get(..len).unwrap_or_default(), each) {
            break;
        }
    }
    Ok(reader.finish(each))
}

/// Is this the start of a file that is clearly a sitemap, or packed, so that it need not be read as anything else?
#[must_use]
pub fn is_plain_to_see(start: &[u8]) -> bool {
    let has = |mark: &[u8]| memchr::memmem::find(start, mark).is_some();
    start.starts_with(&[0x1f, 0x8b]) || has(b"<urlset") || has(b"<sitemapindex")
}

/// Gathers the entries of a file as links: the newest first where it is said when they changed, then the others in
/// their own order, then pictures and the like.
#[derive(Debug)]
pub struct Gather {
    reader: Reader,
    entries: Vec<RawLink<'static>>,
    extras: Vec<RawLink<'static>>,
    feed: bool,
}

impl Gather {
    /// For a sitemap; for a feed that is met as a page with `feed`, whose home and further pages are links too.
    #[must_use]
    pub fn new(content_type: Option<&[u8]>, feed: bool) -> Self {
        Self {
            reader: Reader::new(content_type),
            entries: Vec::new(),
            extras: Vec::new(),
            feed,
        }
    }

    /// Takes the next piece; `false`: nothing more is of use.
    pub fn feed(&mut self, piece: &[u8]) -> bool {
        let Self {
            reader,
            entries,
            extras,
            feed,
        } = self;
        reader.feed(piece, &mut |entry| gather(&entry, *feed, entries, extras))
    }

    /// Adds the links of the whole file. If it was none of the forms, nothing is added.
    pub fn finish(self, links: &mut Links<'_>) -> Summary {
        let Self {
            reader,
            mut entries,
            mut extras,
            feed,
        } = self;
        let summary = reader.finish(&mut |entry| gather(&entry, feed, &mut entries, &mut extras));
        if summary.form.is_some() {
            // stable: what has no date, and what has the same, stays in order
            entries.sort_by_key(|link| std::cmp::Reverse(link.lastmod));
            links.links.extend(entries);
            links.links.extend(extras);
            links.dropped += summary.dropped;
            if links.base.is_none() {
                links.base = summary.base.clone().map(Into::into);
            }
        }
        summary
    }
}

fn gather(entry: &Entry<'_>, feed: bool, entries: &mut Vec<RawLink<'static>>, extras: &mut Vec<RawLink<'static>>) {
    let (kind, list) = match entry.kind {
        EntryKind::Page => (LinkKind::Navigation, entries),
        EntryKind::Sitemap => (LinkKind::Sitemap, entries),
        EntryKind::Alternate => (LinkKind::Navigation, extras),
        EntryKind::Home | EntryKind::Next if feed => (LinkKind::Navigation, extras),
        EntryKind::Home | EntryKind::Next => return,
        EntryKind::Media => (LinkKind::Requisite, extras),
        EntryKind::Style => (LinkKind::Stylesheet, extras),
    };
    list.push(RawLink {
        nofollow: false,
        header: false,
        raw: entry.loc.to_owned().into(),
        kind,
        lastmod: entry.lastmod,
    });
}

#[cfg(test)]
mod tests;
