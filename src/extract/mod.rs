//! A body's links, by its type: HTML, CSS, feeds, sitemaps, headers. Pure; nothing here fetches or resolves.
//!
//! ```text
//! headers ──► headers (Link, Location, Refresh, Content-Location)
//! body ─► mime ─► body (what is it?) ─┬─► charset (as text) ─┬─► html ─► html/elements ─► srcset, css, json, script
//!                                     │                      └─► css, json, playlist, dash, list, script
//!                                     └─► sitemap (also RSS and Atom), feed (JSON Feed), manifest, pdf
//! ```
//!
//! Every pass is linear in the length of the body and takes memory for the links only. A link is left as it was
//! written; only what can never be fetched or names the page itself is left out: an empty address of a requisite,
//! `data:`, `javascript:`, and a pure fragment (`#x`).

mod address;
mod body;
pub mod charset;
pub mod css;
mod dash;
pub mod detail;
pub mod directives;
mod feed;
pub mod fields;
mod fold;
pub mod headers;
pub mod html;
mod json;
mod list;
mod listing;
mod manifest;
pub mod mime;
mod pdf;
mod playlist;
mod rel;
mod script;
pub mod sitemap;
pub mod srcset;

use std::borrow::Cow;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use body::Body;
use detail::Detail;
use directives::{Directives, is_nofollow};
use html::Attribute;
pub use listing::listing_in_pieces;
use listing::read_listing;

/// Links taken from one page at most; what is beyond is counted, not kept.
pub const MAX_LINKS_PER_PAGE: usize = 100_000;

/// First status of an error: pages from here on give what they need to be shown, but no places to go to.
const FIRST_ERROR_STATUS: u16 = 400;

/// What a link is to its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LinkKind {
    /// A place to go to: `a`, `area`, GET forms, `link rel=next` ... (hop letter `L`).
    Navigation,
    /// Needed to show the page: images, styles, scripts, frames, fonts, what a playlist plays ... (`E`).
    Requisite,
    /// A stylesheet (or an import of one): a requisite whose own requisites belong to the same page (`E`).
    Stylesheet,
    /// `Location`, `Refresh`, meta refresh (`R`).
    Redirect,
    /// A sitemap: of a robots.txt, of an index, or at its usual place (`M`).
    Sitemap,
    /// A guess: what looks like an address in a script or in data, `ping`, the name of a namespace (`X`). Found only if
    /// asked for.
    Speculative,
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
            Self::Speculative => 'X',
        }
    }

    /// It leads on to another page, if it leads anywhere: it is no part of this one, and no redirect.
    #[must_use]
    pub fn is_place(self) -> bool {
        matches!(self, Self::Navigation | Self::Sitemap | Self::Speculative)
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
    /// A header has it: it is relative to the page's own address whatever base the page names, and its query is UTF-8.
    pub header: bool,
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
    /// Guesses are wanted.
    speculative: bool,
    /// Bytes of scripts that were looked through.
    scripts: usize,
    /// The body is a part of whatever page needs it, and what it needs is, too: a style sheet, a manifest, a playlist.
    pub is_part: bool,
    /// The body was read as a sitemap, and this is what was found.
    pub sitemap: Option<sitemap::Summary>,
    /// Links that count against the bound and are kept elsewhere: in `frames`, or in the document around this one.
    outside: usize,
    /// More of links that stand in HTML, if it is asked for, in the order of `links`.
    details: Option<Vec<Detail<'a>>>,
    /// The attribute that is being read; none in the text of an element.
    at: Option<Attribute>,
}

impl<'a> Links<'a> {
    /// Takes a link unless it can never be fetched, or names the page itself, or the page has too many.
    fn push(&mut self, kind: LinkKind, raw: Cow<'a, str>) {
        if kind == LinkKind::Speculative && !self.speculative {
            return;
        }
        let raw = trim(raw);
        // where a redirect leads that can never be fetched is for the judge to say
        let idle = is_idle(&raw) && (kind != LinkKind::Redirect || raw.starts_with('#'));
        if raw.is_empty() && kind != LinkKind::Navigation || idle {
            return;
        }
        if self.counted() >= MAX_LINKS_PER_PAGE {
            self.dropped += 1;
        } else {
            if let Some(details) = &mut self.details {
                details.push(Detail::of(self.links.len(), self.at));
            }
            self.links.push(RawLink {
                raw,
                kind,
                nofollow: false,
                header: false,
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
        self.scripts = inside.scripts;
        let before = self.links.len();
        if inside.base.is_some() {
            self.outside = inside.counted() - self.links.len();
            self.frames.push(inside);
        } else {
            self.outside += inside.outside - self.counted();
            self.links.extend(inside.links);
            self.frames.extend(inside.frames);
            if let (Some(own), Some(more)) = (&mut self.details, inside.details) {
                own.extend(more.into_iter().map(|detail| detail.behind(before)));
            }
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

    /// The addresses of JSON, or of an import map.
    fn push_json(&mut self, text: Cow<'a, str>, purpose: json::Use) {
        match text {
            Cow::Borrowed(text) => json::scan(text, purpose, &mut |kind, url| self.push(kind, url)),
            Cow::Owned(text) => json::scan(&text, purpose, &mut |kind, url| {
                self.push(kind, Cow::Owned(url.into_owned()));
            }),
        }
    }

    /// What looks like an address in a script, if that is wanted and the page has not had its share.
    fn push_script(&mut self, text: Cow<'a, str>) {
        let room = body::room_for_scripts(self.scripts);
        if !self.speculative || room == 0 {
            return;
        }
        let most = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let most = most.unwrap_or(0);
        self.scripts += most;
        let kind = LinkKind::Speculative;
        match text {
            Cow::Borrowed(text) => script::scan(text.get(..most).unwrap_or_default(), |url| self.push(kind, url)),
            Cow::Owned(text) => script::scan(text.get(..most).unwrap_or_default(), |url| {
                self.push(kind, Cow::Owned(url.into_owned()));
            }),
        }
    }

    /// A document inside this one: with its own links, and this one's rules and count.
    fn inside(&self) -> Links<'static> {
        Links {
            outside: self.counted(),
            speculative: self.speculative,
            scripts: self.scripts,
            details: self.details.as_ref().map(|_| Vec::new()),
            ..Links::default()
        }
    }

    /// Leaves out the places to go to, but for the first `kept` links.
    fn drop_places(&mut self, kept: usize) {
        let mut at = 0;
        let mut left = Vec::new();
        self.links.retain(|link| {
            at += 1;
            let keep = at <= kept || !link.kind.is_place();
            if !keep {
                left.push(at - 1);
            }
            keep
        });
        if let Some(details) = &mut self.details {
            detail::forget(details, &left);
        }
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
                    header: link.header,
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
            speculative: self.speculative,
            scripts: self.scripts,
            is_part: self.is_part,
            sitemap: self.sitemap,
            outside: self.outside,
            details: self
                .details
                .map(|details| details.into_iter().map(Detail::into_owned).collect()),
            at: None,
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
/// HTML, XHTML, SVG and other XML, CSS, feeds, JSON, web app manifests, playlists, PDF and plain lists of addresses are read;
/// of anything else only the headers are. A body without a
/// usable type is sniffed (MIME Sniffing Standard). The body of an error (status 400 and above) gives no
/// [`LinkKind::Navigation`]: relative links of "not found" pages are a well known trap.
///
/// Directives that name a crawler are not for anybody here, and guesses are left out: see [`extract_for`].
#[must_use]
pub fn extract<'a>(
    status: u16,
    content_type: Option<&[u8]>,
    headers: &'a [(String, Vec<u8>)],
    body: &'a [u8],
    text: &'a mut String,
) -> Links<'a> {
    extract_for(Wanted::default(), status, content_type, headers, body, text)
}

/// Who asks for links, and which.
#[derive(Debug, Clone, Copy, Default)]
pub struct Wanted<'a> {
    /// Directives that name this product token count, too.
    pub agent: &'a str,
    /// Whether the body may be, or should be, a sitemap.
    pub role: Role,
    /// Guesses are wanted, too ([`LinkKind::Speculative`]).
    pub speculative: bool,
    /// Where in the page's HTML each link stands, and its text, are wanted, too: [`Links::detail`].
    pub details: bool,
}

/// As [`extract`], for somebody.
#[must_use]
pub fn extract_for<'a>(
    wanted: Wanted<'a>,
    status: u16,
    content_type: Option<&[u8]>,
    headers: &'a [(String, Vec<u8>)],
    body: &'a [u8],
    text: &'a mut String,
) -> Links<'a> {
    extract_listing(wanted, status, content_type, headers, body, None, text)
}

/// As [`extract_for`]; a body that was read in pieces, as [`listing_in_pieces`] says, comes with what was gathered: of `body` the
/// first bytes are enough then.
#[must_use]
pub fn extract_listing<'a>(
    wanted: Wanted<'a>,
    status: u16,
    content_type: Option<&[u8]>,
    headers: &'a [(String, Vec<u8>)],
    body: &'a [u8],
    gathered: Option<sitemap::Gather>,
    text: &'a mut String,
) -> Links<'a> {
    let role = wanted.role;
    let mut links = Links {
        agent: wanted.agent,
        speculative: wanted.speculative,
        ..Links::default()
    };
    headers::links(status, headers, &mut links);
    links.links.iter_mut().for_each(|link| link.header = true);
    links.details = wanted.details.then(Vec::new);
    let before = links.links.len();
    let essence = mime::sniff(content_type, body);
    let read = FINE.contains(&status) && read_listing(&essence, content_type, body, gathered, role, &mut links);
    if links.sitemap.is_some() || role == Role::Sitemap {
        // what should be a sitemap and is none (an error page, say) leads nowhere; nor do the headers of one that is
        let mut at = 0;
        links.links.retain(|link| {
            at += 1;
            at > before || link.kind == LinkKind::Redirect
        });
    } else if read {
        // a feed
    } else if let Some(kind) = Body::of(&essence, body) {
        kind.read(content_type, body, text, &mut links);
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

/// Is a body of this kind read for links? By its type and first bytes, of which 1,445 are enough.
#[must_use]
pub fn is_read(content_type: Option<&[u8]>, start: &[u8]) -> bool {
    let essence = mime::sniff(content_type, start);
    Body::of(&essence, start).is_some()
}

/// May [`is_read`] say yes, for some first bytes?
#[must_use]
pub fn may_be_read(content_type: Option<&[u8]>) -> bool {
    // a tag is as much like a page as bytes can be; the others are told whatever type they come with
    let starts: [&[u8]; 4] = [b"", b"<html>", b"%PDF-", b"#EXTM3U"];
    starts.iter().any(|start| is_read(content_type, start))
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
    fn each_type_has_its_reader() {
        use LinkKind::{Navigation, Requisite};
        let hls: &[u8] = b"#EXTM3U\n#EXTINF:9,\na.ts";
        let list: &[u8] = b"http://a/\nhttp://b/";
        let manifest: &[u8] = br#"{"icons": [{"src": "a"}], "start_url": "b"}"#;
        let feed: &[u8] = br#"{"version": "https://jsonfeed.org/version/1", "items": [{"url": "a"}]}"#;
        let pdf: &[u8] = b"%PDF-1.4 <</S/URI/URI(a)>>\n%%EOF";
        let one = |kind: LinkKind, raw: &str| vec![(kind, raw.to_owned())];
        for (content_type, body, want) in [
            ("application/vnd.apple.mpegurl", hls, one(Requisite, "a.ts")),
            ("text/plain", hls, one(Requisite, "a.ts")),
            ("audio/x-mpegurl", b"a.mp3", one(Requisite, "a.mp3")),
            (
                "application/dash+xml",
                b"<MPD><BaseURL>a</BaseURL></MPD>",
                one(Requisite, "a"),
            ),
            ("application/pdf", pdf, one(Navigation, "a")),
            ("application/octet-stream", pdf, one(Navigation, "a")),
            ("application/octet-stream", &pdf[1..], vec![]),
            ("application/feed+json", feed, one(Navigation, "a")),
            ("application/json", feed, one(Navigation, "a")),
            (
                "application/ld+json",
                b"\xef\xbb\xbf{\"url\": \"/a\"}",
                one(Navigation, "/a"),
            ),
            ("application/json", br#"{"image": "/a"}"#, one(Requisite, "/a")),
            (
                "text/plain",
                list,
                [one(Navigation, "http://a/"), one(Navigation, "http://b/")].concat(),
            ),
            (
                "text/uri-list",
                list,
                [one(Navigation, "http://a/"), one(Navigation, "http://b/")].concat(),
            ),
            ("text/markdown", list, vec![]),
            ("text/javascript", b"'/a'", vec![]),
        ] {
            assert_eq!(all(200, Some(content_type), &[], body), want, "{content_type}");
        }
        for content_type in ["application/manifest+json", "application/json"] {
            let want = [one(Navigation, "b"), one(Requisite, "a")].concat();
            assert_eq!(all(200, Some(content_type), &[], manifest), want, "{content_type}");
        }
    }

    #[test]
    fn guesses_come_only_if_they_are_wanted_and_not_from_errors() {
        let guesses = |speculative: bool, status: u16, content_type: &str, body: &[u8]| {
            let wanted = Wanted {
                speculative,
                ..Wanted::default()
            };
            let mut text = String::new();
            let links = extract_for(wanted, status, Some(content_type.as_bytes()), &[], body, &mut text);
            links
                .links
                .iter()
                .filter(|link| link.kind == LinkKind::Speculative)
                .count()
        };
        for (content_type, body) in [
            ("text/javascript", b"a('/b')".as_slice()),
            ("application/x-javascript", b"a('/b')"),
            ("application/json", b"[\"http://a/\"]"),
            ("text/css", b"@namespace url(http://n/);"),
            ("text/plain", b"see\nhttp://a/"),
            ("text/html", b"<script>'/a'</script>"),
            ("text/html", b"<button formaction=/a>"),
            ("text/javascript", b"a()\n//# sourceMappingURL=a.js.map\n"),
            ("text/css", b"a{}/*# sourceMappingURL=a.css.map */"),
        ] {
            assert_eq!(guesses(true, 200, content_type, body), 1, "{content_type}");
            assert_eq!(guesses(false, 200, content_type, body), 0, "{content_type}");
            assert_eq!(guesses(true, 404, content_type, body), 0, "{content_type}");
        }
    }

    #[test]
    fn parts_and_headers_are_told_apart() {
        let headers = [("link".to_owned(), b"</h>; rel=next".to_vec())];
        for (content_type, is_part) in [
            ("text/css", true),
            ("application/manifest+json", true),
            ("application/dash+xml", true),
            ("application/x-mpegurl", true),
            ("text/html", false),
            ("application/pdf", false),
        ] {
            let mut text = String::new();
            let links = extract(200, Some(content_type.as_bytes()), &headers, b"<a href=b>", &mut text);
            assert_eq!(links.is_part, is_part, "{content_type}");
            let of_header: Vec<bool> = links.links.iter().map(|link| link.header).collect();
            assert!(of_header[0] && !of_header[1..].contains(&true), "{content_type}");
        }
    }

    #[test]
    fn pages_of_many_encodings_are_read() {
        let utf_16 = |text: &str, little: bool| {
            let unit = |unit: u16| if little { unit.to_le_bytes() } else { unit.to_be_bytes() };
            text.encode_utf16().flat_map(unit).collect::<Vec<u8>>()
        };
        let page = |word: &str| format!("<meta charset=x><p>{word}<a href='/{word}?{word}'>");
        let declared = |label: &str, word: &str| {
            let text = page(word).replace("charset=x", &format!("charset={label}"));
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
            encoding.encode(&text).0.into_owned()
        };
        let marked = |mark: &[u8], little: bool| [mark, &utf_16(&page("путь"), little)].concat();
        for (content_type, body, name, word) in [
            ("text/html", marked(b"\xff\xfe", true), "UTF-16LE", "путь"),
            ("text/html", marked(b"\xfe\xff", false), "UTF-16BE", "путь"),
            (
                "text/html; charset=utf-16le",
                utf_16(&page("путь"), true),
                "UTF-16LE",
                "путь",
            ),
            (
                "text/html; charset=utf-16be",
                utf_16(&page("путь"), false),
                "UTF-16BE",
                "путь",
            ),
            // a mark is stronger than the header
            ("text/html; charset=gbk", marked(b"\xff\xfe", true), "UTF-16LE", "путь"),
            ("text/html", declared("gb2312", "中文"), "GBK", "中文"),
            ("text/html", declared("shift_jis", "日本"), "Shift_JIS", "日本"),
            ("text/html", declared("euc-kr", "한글"), "EUC-KR", "한글"),
            ("text/html", declared("latin1", "naïve€"), "windows-1252", "naïve€"),
            ("text/html; charset=\"Big5\"", declared("big5", "中文"), "Big5", "中文"),
        ] {
            let mut text = String::new();
            let links = extract(200, Some(content_type.as_bytes()), &[], &body, &mut text);
            assert_eq!(links.encoding, Some(name), "{content_type}");
            assert_eq!(links.links[0].raw, format!("/{word}?{word}"), "{name}");
        }
    }

    #[test]
    fn undeclared_pages_are_told_by_their_bytes() {
        for (label, words) in [
            ("gbk", "这是一个没有声明编码的网页，里面有很多中文字。"),
            ("shift_jis", "これは文字コードの宣言がない日本語のページです。"),
            ("euc-kr", "이것은 문자 인코딩 선언이 없는 한국어 페이지입니다."),
            ("windows-1251", "Это страница без объявления кодировки."),
        ] {
            let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
            let page = format!("<title>{words}</title><p>{words}<a href='/?q={words}'>");
            let body = encoding.encode(&page).0.into_owned();
            let mut text = String::new();
            let links = extract(200, Some(b"text/html"), &[], &body, &mut text);
            assert_eq!(links.encoding, Some(encoding.name()));
            assert_eq!(links.links[0].raw, format!("/?q={words}"));
        }
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
