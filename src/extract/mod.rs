//! A body's links, by its type: HTML, CSS, feeds, sitemaps, headers. Pure; nothing here fetches or resolves.
//!
//! ```text
//! headers ──► headers (Link, Location, Refresh, Content-Location)
//! body ─► mime (what is it?) ─┬─► charset (as text) ─┬─► html ─► html/elements ─► srcset, css, headers::refresh
//!                             │                      └─► css
//!                             └─► sitemap (also RSS and Atom), feed (JSON Feed)
//! ```
//!
//! Every pass is linear in the length of the body and takes memory for the links only. A link is left as it was
//! written; only what can never be fetched or names the page itself is left out: an empty address of a requisite,
//! `data:`, `javascript:`, and a pure fragment (`#x`).

pub mod charset;
pub mod css;
pub mod directives;
mod feed;
pub mod fields;
pub mod headers;
pub mod html;
pub mod mime;
mod rel;
pub mod sitemap;
pub mod srcset;

use std::borrow::Cow;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use directives::{Directives, is_nofollow};

/// Links taken from one page at most; what is beyond is counted, not kept.
pub const MAX_LINKS_PER_PAGE: usize = 100_000;

/// First status of an error: pages from here on give what they need to be shown, but no places to go to.
const FIRST_ERROR_STATUS: u16 = 400;

/// What a link is to its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LinkKind {
    /// A place to go to: `a`, `area`, GET forms, `link rel=next` ... (hop letter `L`).
    Navigation,
    /// Needed to show the page: images, styles, scripts, frames, fonts ... (`E`).
    Requisite,
    /// A stylesheet (or an import of one): a requisite whose own requisites belong to the same page (`E`).
    Stylesheet,
    /// `Location`, `Refresh`, meta refresh (`R`).
    Redirect,
    /// A sitemap: of a robots.txt, of an index, or at its usual place (`M`).
    Sitemap,
}

impl LinkKind {
    /// The letter of a crawl.log hop path.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Navigation => 'L',
            Self::Requisite | Self::Stylesheet => 'E',
            Self::Redirect => 'R',
            Self::Sitemap => 'M',
        }
    }
}

/// A link as written, entities decoded, white space around it removed, not resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLink<'a> {
    /// The text.
    pub raw: Cow<'a, str>,
    /// What it is to the page.
    pub kind: LinkKind,
    /// Its `rel` says `nofollow`.
    pub nofollow: bool,
    /// When its page changed last, seconds since 1970, if a sitemap or feed says so.
    pub lastmod: Option<NonZeroU32>,
}

/// What one body gave.
#[derive(Debug, Default)]
pub struct Links<'a> {
    /// In document order.
    pub links: Vec<RawLink<'a>>,
    /// The first `<base href>`, as written.
    pub base: Option<Cow<'a, str>>,
    /// Links beyond [`MAX_LINKS_PER_PAGE`].
    pub dropped: u64,
    /// What the page says to crawlers (meta robots, `X-Robots-Tag`), to all or to `agent`.
    pub directives: Directives,
    /// Links of documents inside this one (`iframe srcdoc`) that have a base of their own; that base is relative to
    /// this document's. Documents without one have their links among `links`.
    pub frames: Vec<Links<'a>>,
    /// Name of the encoding the body was read in (Encoding Standard, e.g. `windows-1251`); `None` if it was not read
    /// as text. Queries of links are percent-encoded in it (URL Standard, section 4.4).
    pub encoding: Option<&'static str>,
    /// Seconds of the first refresh, by header or meta, whether it names an address or not.
    pub refresh_s: Option<u64>,
    /// The product token that directives may name.
    agent: &'a str,
    /// The body was read as a sitemap, and this is what was found.
    pub sitemap: Option<sitemap::Summary>,
    /// Links that count against the bound and are kept elsewhere: in `frames`, or in the document around this one.
    outside: usize,
}

impl<'a> Links<'a> {
    /// Takes a link unless it can never be fetched, or names the page itself, or the page has too many.
    fn push(&mut self, kind: LinkKind, raw: Cow<'a, str>) {
        let raw = trim(raw);
        // where a redirect leads that can never be fetched is for the judge to say
        let idle = is_idle(&raw) && (kind != LinkKind::Redirect || raw.starts_with('#'));
        if raw.is_empty() && kind != LinkKind::Navigation || idle {
            return;
        }
        if self.counted() >= MAX_LINKS_PER_PAGE {
            self.dropped += 1;
        } else {
            let nofollow = false;
            self.links.push(RawLink {
                raw,
                kind,
                nofollow,
                lastmod: None,
            });
        }
    }

    /// Takes a link whose `rel` may say that it is not to be followed.
    fn push_with_rel(&mut self, kind: LinkKind, raw: Cow<'a, str>, rel: &str) {
        let before = self.links.len();
        self.push(kind, raw);
        if let Some(link) = self.links.get_mut(before) {
            link.nofollow = is_nofollow(rel);
        }
    }

    /// Links that count against the bound.
    fn counted(&self) -> usize {
        self.links.len() + self.outside
    }

    /// Takes in the links of a document inside this one, whose count began at this one's.
    fn adopt(&mut self, inside: Links<'a>) {
        self.dropped += inside.dropped;
        if inside.base.is_some() {
            self.outside = inside.counted() - self.links.len();
            self.frames.push(inside);
        } else {
            self.outside += inside.outside - self.counted();
            self.links.extend(inside.links);
            self.frames.extend(inside.frames);
        }
    }

    /// Notes a refresh and takes its address.
    fn push_refresh(&mut self, kind: LinkKind, value: Cow<'a, str>) {
        let read = match value {
            Cow::Borrowed(text) => headers::refresh(text).map(|read| (read.delay_s, read.url.map(Cow::Borrowed))),
            Cow::Owned(text) => {
                headers::refresh(&text).map(|read| (read.delay_s, read.url.map(|url| Cow::Owned(url.to_owned()))))
            }
        };
        let Some((delay_s, url)) = read else { return };
        self.refresh_s.get_or_insert(delay_s);
        if let Some(url) = url {
            self.push(kind, url);
        }
    }

    /// The addresses of a style sheet or of a style attribute.
    fn push_css(&mut self, text: Cow<'a, str>, place: css::Place) {
        match text {
            Cow::Borrowed(text) => css::scan(text, place, |kind, url| self.push(kind, url)),
            Cow::Owned(text) => css::scan(&text, place, |kind, url| self.push(kind, Cow::Owned(url.into_owned()))),
        }
    }

    /// The addresses of a srcset attribute.
    fn push_srcset(&mut self, text: Cow<'a, str>) {
        match text {
            Cow::Borrowed(text) => srcset::scan(text, |url| self.push(LinkKind::Requisite, Cow::Borrowed(url))),
            Cow::Owned(text) => srcset::scan(&text, |url| self.push(LinkKind::Requisite, Cow::Owned(url.to_owned()))),
        }
    }

    /// Leaves out the places to go to, but for the first `kept` links.
    fn drop_places(&mut self, kept: usize) {
        let mut at = 0;
        self.links.retain(|link| {
            at += 1;
            at <= kept || !matches!(link.kind, LinkKind::Navigation | LinkKind::Sitemap)
        });
        self.frames.iter_mut().for_each(|frame| frame.drop_places(0));
    }

    /// The same links, free of the text they came from.
    fn into_owned(self) -> Links<'static> {
        Links {
            links: self
                .links
                .into_iter()
                .map(|link| RawLink {
                    raw: Cow::Owned(link.raw.into_owned()),
                    kind: link.kind,
                    nofollow: link.nofollow,
                    lastmod: link.lastmod,
                })
                .collect(),
            base: self.base.map(|base| Cow::Owned(base.into_owned())),
            dropped: self.dropped,
            directives: self.directives,
            frames: self.frames.into_iter().map(Links::into_owned).collect(),
            encoding: self.encoding,
            refresh_s: self.refresh_s,
            agent: "",
            sitemap: self.sitemap,
            outside: self.outside,
        }
    }
}

/// Without the C0 controls and spaces around it, as the URL parser would (URL Standard, section 4.4, step 1).
fn trim(raw: Cow<'_, str>) -> Cow<'_, str> {
    let edge = |c: char| c <= ' ';
    match raw {
        Cow::Borrowed(text) => Cow::Borrowed(text.trim_matches(edge)),
        Cow::Owned(text) if text.starts_with(edge) || text.ends_with(edge) => {
            Cow::Owned(text.trim_matches(edge).to_owned())
        }
        owned @ Cow::Owned(_) => owned,
    }
}

/// A pure fragment, or a scheme that is seen often and never fetched. What is left is for the URL parser to judge.
fn is_idle(raw: &str) -> bool {
    let scheme = |name: &str| {
        raw.get(..name.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(name))
    };
    match raw.as_bytes().first() {
        Some(b'#') => true,
        Some(b'd' | b'D') => scheme("data:"),
        Some(b'j' | b'J') => scheme("javascript:"),
        _ => false,
    }
}

/// The links of a body and of its headers.
///
/// `content_type` is the header's value if there was one; `body` is decoded (no content coding) but not transcoded.
/// `headers` are names in lower case with their values (`Link`, `Location`, `Refresh`, `Content-Location`,
/// `X-Robots-Tag` matter). `text` is scratch space that outlives the links: a body that is not UTF-8 is transcoded
/// into it (three bytes for one at most).
///
/// HTML, XHTML, SVG and other XML, CSS and feeds are read; of anything else only the headers are. A body without a
/// usable type is sniffed (MIME Sniffing Standard). The body of an error (status 400 and above) gives no
/// [`LinkKind::Navigation`]: relative links of "not found" pages are a well known trap.
///
/// Directives that name a crawler are not for anybody here: see [`extract_for`].
#[must_use]
pub fn extract<'a>(
    status: u16,
    content_type: Option<&[u8]>,
    headers: &'a [(String, Vec<u8>)],
    body: &'a [u8],
    text: &'a mut String,
) -> Links<'a> {
    extract_for("", Role::Page, status, content_type, headers, body, text)
}

/// As [`extract`], and directives that name this product token count, too. `role` says whether the body may be, or should
/// be, a sitemap.
#[must_use]
pub fn extract_for<'a>(
    agent: &'a str,
    role: Role,
    status: u16,
    content_type: Option<&[u8]>,
    headers: &'a [(String, Vec<u8>)],
    body: &'a [u8],
    text: &'a mut String,
) -> Links<'a> {
    let mut links = Links {
        agent,
        ..Links::default()
    };
    headers::links(status, headers, &mut links);
    let before = links.links.len();
    let essence = mime::sniff(content_type, body);
    let read = FINE.contains(&status) && read_listing(&essence, content_type, body, role, &mut links);
    if links.sitemap.is_some() || role == Role::Sitemap {
        // what should be a sitemap and is none (an error page, say) leads nowhere; nor do the headers of one that is
        let mut at = 0;
        links.links.retain(|link| {
            at += 1;
            at > before || link.kind == LinkKind::Redirect
        });
    } else if read {
        // a feed
    } else if essence == feed::TYPE {
        feed::json(body, &mut links);
    } else if let Some(kind) = Body::of(&essence) {
        let (encoding, decoded) = match kind {
            Body::Css => charset::decode_css(content_type, body),
            Body::Html | Body::Xml => charset::decode(content_type, body),
        };
        links.encoding = Some(encoding.name());
        let decoded: &'a str = match decoded {
            Cow::Borrowed(same) => same,
            Cow::Owned(other) => {
                *text = other;
                text
            }
        };
        match kind {
            Body::Html => html::links(decoded, html::Syntax::Html, &mut links),
            Body::Xml => html::links(decoded, html::Syntax::Xml, &mut links),
            Body::Css => links.push_css(Cow::Borrowed(decoded), css::Place::Sheet),
        }
    }
    if status >= FIRST_ERROR_STATUS {
        links.drop_places(before);
    }
    links
}

/// Statuses whose body is what was asked for.
const FINE: std::ops::RangeInclusive<u16> = 200..=299;

/// What a body is expected to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Role {
    /// A page. Feeds are read as feeds, sitemaps are not read.
    #[default]
    Page,
    /// A page; should it be an XML sitemap, it is read as one.
    Either,
    /// What a user named: a page, or a sitemap or feed in whatever form. Text is one if it has nothing but addresses.
    Seed,
    /// A sitemap in whatever form and under whatever type; anything else is not read at all.
    Sitemap,
}

/// Reads a sitemap or an XML feed, if the body is one and `role` wants it read. Tells whether it was.
fn read_listing(essence: &str, content_type: Option<&[u8]>, body: &[u8], role: Role, links: &mut Links<'_>) -> bool {
    let may_be = match role {
        Role::Sitemap => true,
        Role::Seed if essence == "text/plain" || body.starts_with(&[0x1f, 0x8b]) => true,
        Role::Seed | Role::Either | Role::Page => matches!(Body::of(essence), Some(Body::Xml)),
    };
    if !may_be {
        return false;
    }
    let mut gather = sitemap::Gather::new(content_type, role != Role::Sitemap);
    gather.feed(body);
    let mut found = Links::default();
    let summary = gather.finish(&mut found);
    let wanted = match (role, summary.form) {
        (_, None) => false,
        (Role::Page, Some(form)) => form.is_feed(),
        // prose may have an address on a line of its own
        (Role::Seed, Some(sitemap::Form::Text)) => summary.other_lines == 0,
        (Role::Either | Role::Seed | Role::Sitemap, Some(_)) => true,
    };
    if wanted {
        let room = MAX_LINKS_PER_PAGE.saturating_sub(links.counted());
        links.dropped += found.dropped + found.links.len().saturating_sub(room) as u64;
        links.links.extend(found.links.into_iter().take(room));
        links.base = links.base.take().or(found.base);
    }
    // a feed that is met as a page stays one
    let listing = wanted && (role == Role::Seed || summary.form.is_some_and(|form| !form.is_feed()));
    if listing || role == Role::Sitemap {
        links.sitemap = Some(summary);
    }
    wanted
}

/// Is a body of this kind read for links? By its type and first bytes, of which 1,445 are enough.
#[must_use]
pub fn is_read(content_type: Option<&[u8]>, start: &[u8]) -> bool {
    let essence = mime::sniff(content_type, start);
    essence == feed::TYPE || Body::of(&essence).is_some()
}

/// May [`is_read`] say yes, for some first bytes?
#[must_use]
pub fn may_be_read(content_type: Option<&[u8]>) -> bool {
    // what begins with a tag is as much like a page as bytes can be
    is_read(content_type, b"") || is_read(content_type, b"<html>")
}

/// The kinds of body that are read.
#[derive(Clone, Copy)]
enum Body {
    Html,
    Xml,
    Css,
}

impl Body {
    /// By the essence of a media type, in lower case.
    fn of(essence: &str) -> Option<Self> {
        match essence {
            "text/html" => Some(Self::Html),
            "text/css" => Some(Self::Css),
            "text/xml" | "application/xml" => Some(Self::Xml),
            other if other.ends_with("+xml") => Some(Self::Xml),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(status: u16, content_type: Option<&str>, headers: &[(&str, &str)], body: &[u8]) -> Vec<(LinkKind, String)> {
        let headers: Vec<_> = headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), v.as_bytes().to_vec()))
            .collect();
        let mut text = String::new();
        let content_type = content_type.map(str::as_bytes);
        let links = extract(status, content_type, &headers, body, &mut text);
        links.links.iter().map(|l| (l.kind, l.raw.to_string())).collect()
    }

    fn html(body: &str) -> Vec<String> {
        all(200, Some("text/html"), &[], body.as_bytes())
            .into_iter()
            .map(|(_, raw)| raw)
            .collect()
    }

    #[test]
    fn the_type_decides_how_a_body_is_read() {
        let body = b"<a href=x>url(y)";
        assert_eq!(
            all(200, Some("text/html; charset=utf-8"), &[], body),
            [(LinkKind::Navigation, "x".into())]
        );
        assert_eq!(all(200, None, &[], body), [(LinkKind::Navigation, "x".into())]);
        assert_eq!(
            all(200, Some("text/css"), &[], body),
            [(LinkKind::Requisite, "y".into())]
        );
        assert_eq!(
            all(200, Some("application/xhtml+xml"), &[], body),
            [(LinkKind::Navigation, "x".into())]
        );
        assert_eq!(all(200, Some("text/plain"), &[], body), []);
        assert_eq!(all(200, Some("image/png"), &[], body), []);
    }

    #[test]
    fn what_is_never_fetched_is_left_out_and_the_rest_is_not_judged() {
        let page =
            "<a href=' #x '><a href=data:,x><a href=\" JavaScript:x\"><a href=''><a href=mailto:a@b><img src=''>";
        assert_eq!(html(page), ["", "mailto:a@b"]);
    }

    #[test]
    fn white_space_around_an_address_goes() {
        assert_eq!(html("<a href='\n\u{1f} /a b\t '><a href=' &#32;/c '>"), ["/a b", "/c"]);
    }

    #[test]
    fn an_error_page_gives_requisites_but_no_places_to_go() {
        let page = b"<a href=x><img src=i><link rel=stylesheet href=s>";
        let link = [("link", "</h>; rel=next")];
        let got = all(404, Some("text/html"), &link, page);
        assert_eq!(
            got,
            [
                (LinkKind::Navigation, "/h".into()),
                (LinkKind::Requisite, "i".into()),
                (LinkKind::Stylesheet, "s".into())
            ]
        );
        assert_eq!(all(399, Some("text/html"), &link, page).len(), 4);
        let mut text = String::new();
        let framed = b"<iframe srcdoc='<base href=/b/><a href=x><img src=i>'></iframe>";
        let links = extract(404, Some(b"text/html"), &[], framed, &mut text);
        assert_eq!(links.frames[0].links.len(), 1);
    }

    #[test]
    fn a_body_in_another_encoding_is_transcoded_and_says_which() {
        let mut text = String::new();
        let body = b"<a href=/\xef\xf3\xf2\xfc>";
        let links = extract(200, Some(b"text/html; charset=windows-1251"), &[], body, &mut text);
        assert_eq!(links.links[0].raw, "/путь");
        assert_eq!(links.encoding, Some("windows-1251"));
    }

    #[test]
    fn links_beyond_the_bound_are_counted() {
        let page = "<a href=x>".repeat(MAX_LINKS_PER_PAGE + 3);
        let mut text = String::new();
        let links = extract(200, Some(b"text/html"), &[], page.as_bytes(), &mut text);
        assert_eq!((links.links.len(), links.dropped), (MAX_LINKS_PER_PAGE, 3));
    }
}
