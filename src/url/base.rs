//! What the links of a page are resolved against, and the short way for plain links.
//!
//! Most links are a path, or an address of a host with a plain name, written in characters that the URL Standard's parser
//! leaves alone. Those are put together from the base and the text in one pass; all others go through the parser.
//! A property test holds the two ways equal.

use std::borrow::Cow;

use encoding_rs::Encoding;

use super::canonical::Parts;
use super::identity::Identity;
use super::normalize::{CrawlUrl, MAX_URL_BYTES, Scheme, host_start};
use super::query;
use super::whatwg::Parsed;

/// What relative addresses of a page are resolved against (its own address, or its first `<base href>`).
#[derive(Debug, Clone)]
pub struct Base {
    parsed: Parsed,
    plain: Option<Plain>,
    /// What queries are written in, if not in UTF-8.
    encoding: Option<&'static Encoding>,
}

/// A base in the form that the short way needs.
#[derive(Debug, Clone)]
struct Plain {
    /// The address up to the last `/` of its path.
    folder: String,
    parts: Parts,
    scheme: Scheme,
    port: u16,
}

impl Base {
    /// The base of a page: `base_href` (raw, from the first `<base href>`) resolved against the page's own address.
    /// A base that cannot be parsed is ignored, and so is one with `data:` or `javascript:`, as browsers do.
    #[must_use]
    pub fn of(page: &CrawlUrl, base_href: Option<&str>) -> Self {
        Base::in_page(page, base_href, None)
    }

    /// The same for a page in this encoding (its name in the Encoding Standard): queries, that of the base too, are
    /// percent-encoded from the bytes they have in it (URL Standard, section 4.4).
    #[must_use]
    pub fn in_page(page: &CrawlUrl, base_href: Option<&str>, encoding: Option<&str>) -> Self {
        let own = Base::page(page).in_encoding(encoding);
        let Some(raw) = base_href else { return own };
        if let Ok(url) = CrawlUrl::join(&own, raw, &Identity::default()) {
            let encoding = own.encoding;
            return Base {
                encoding,
                ..Base::page(&url)
            };
        }
        match Parsed::parse(raw, Some(&own.parsed)) {
            Ok(parsed) if !matches!(parsed.scheme(), "data" | "javascript") => Base {
                parsed,
                plain: None,
                encoding: own.encoding,
            },
            _ => own,
        }
    }

    /// The same base for links whose page is in this encoding.
    #[must_use]
    pub fn in_encoding(self, name: Option<&str>) -> Self {
        Base {
            encoding: name.and_then(query::output_encoding),
            ..self
        }
    }

    fn page(page: &CrawlUrl) -> Self {
        let parsed = match Parsed::parse(page.href(), None) {
            Ok(parsed) => parsed,
            // CrawlUrl is made by this parser, and what it writes it reads: a property test says so
            Err(error) => unreachable!("{} does not parse again: {error}", page.href()),
        };
        Base {
            parsed,
            plain: Some(Plain::of(page)),
            encoding: None,
        }
    }

    pub(super) fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    /// A link as the parser is to see it: its query in the page's encoding.
    pub(super) fn spelled<'a>(&self, raw: &'a str) -> Cow<'a, str> {
        self.encoding
            .map_or(Cow::Borrowed(raw), |encoding| query::encoded(raw, encoding))
    }

    /// The address of a link that needs no parser; `None` sends it there.
    pub(super) fn join_plain(&self, raw: &str, identity: &Identity) -> Option<CrawlUrl> {
        let plain = self.plain.as_ref()?;
        if !identity.rules.any() {
            return plain.join(raw);
        }
        if identity.rules.keep_hashbang && memchr::memmem::find(raw.as_bytes(), b"#!").is_some() {
            return None;
        }
        let mut url = plain.join(raw)?;
        url.fold(None, identity);
        Some(url)
    }
}

impl Plain {
    fn of(page: &CrawlUrl) -> Self {
        let path_start = page.origin().len();
        let folder_len = page.path().rfind('/').map_or(0, |slash| slash + 1);
        let host_start = host_start(page.scheme());
        let parts = Parts {
            host_start,
            host_end: host_start + page.host().len(),
            path_start,
        };
        let folder = page
            .href()
            .get(..path_start + folder_len)
            .unwrap_or_default()
            .to_owned();
        Plain {
            folder,
            parts,
            scheme: page.scheme(),
            port: page.port(),
        }
    }

    fn join(&self, raw: &str) -> Option<CrawlUrl> {
        let origin = self.folder.get(..self.parts.path_start)?;
        let (prefix, tail) = match raw.strip_prefix(origin) {
            Some(rest) if rest.starts_with('/') => (origin, rest),
            _ => match raw.as_bytes() {
                [b'h', b't', b't', b'p', b':' | b's', ..] => return absolute(raw),
                [b'/', b'/', ..] | [] => return None,
                [b'/', ..] => (origin, raw),
                [b'.', b'.', b'/', ..] => self.climb(raw),
                [first, ..] if first.is_ascii_alphanumeric() || *first == b'_' => (self.folder.as_str(), raw),
                _ => return None,
            },
        };
        // without a `/` at its start the tail may hold a scheme
        let len = plain_len(tail, tail.starts_with('/'))?;
        let mut href = String::with_capacity(prefix.len() + len);
        href.push_str(prefix);
        href.push_str(tail.get(..len)?);
        CrawlUrl::assemble(href, self.scheme, self.port, self.parts.host_end, self.parts.path_start).ok()
    }

    /// The folder that the `../` at the start of a link lead up to, not above the top, and what follows them.
    fn climb<'a>(&'a self, raw: &'a str) -> (&'a str, &'a str) {
        let (mut folder, mut rest) = (self.folder.as_str(), raw);
        while let Some(further) = rest.strip_prefix("../") {
            rest = further;
            let inside = folder
                .strip_suffix('/')
                .and_then(|folder| folder.get(self.parts.path_start..));
            if let Some(slash) = inside.and_then(|path| path.rfind('/')) {
                folder = folder.get(..=self.parts.path_start + slash).unwrap_or(folder);
            }
        }
        (folder, rest)
    }
}

/// Longest host name that takes the short way, bytes. Longer ones are no better, only rarer.
const PLAIN_HOST: usize = 128;

/// The address of a text that needs no parser and no base: `http` or `https`, a plain name, no port, a plain path.
pub(super) fn absolute(raw: &str) -> Option<CrawlUrl> {
    if raw.len() > MAX_URL_BYTES {
        return None; // the parser's way says why
    }
    let (scheme, rest) = match raw.strip_prefix("http") {
        Some(rest) => match rest.strip_prefix("s://") {
            Some(rest) => (Scheme::Https, rest),
            None => (Scheme::Http, rest.strip_prefix("://")?),
        },
        None => return None,
    };
    let host_len = plain_host_len(rest.as_bytes())?;
    let host_start = raw.len() - rest.len();
    let path_start = host_start + host_len;
    let len = plain_len(rest.get(host_len..)?, true)?;
    let href = raw.get(..path_start + len)?.to_owned();
    CrawlUrl::assemble(href, scheme, scheme.default_port(), path_start, path_start).ok()
}

/// The length of the host in front of a `/`, if it is a name in small letters, digits, single hyphens and dots that no rule for
/// names (IDNA, numbers, empty labels) says anything about.
fn plain_host_len(bytes: &[u8]) -> Option<usize> {
    // before each byte stands as it were a dot
    let (mut before, mut label_start) = (b'.', 0);
    for (at, &byte) in bytes.iter().take(PLAIN_HOST).enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => {}
            b'-' if before.is_ascii_alphanumeric() => {}
            b'.' if before.is_ascii_alphanumeric() => label_start = at + 1,
            // a last label that begins with a letter is no number
            b'/' if before.is_ascii_alphanumeric() => {
                return bytes
                    .get(label_start)
                    .filter(|byte| byte.is_ascii_lowercase())
                    .map(|_| at);
            }
            _ => return None,
        }
        if at + 1 - label_start > 63 {
            return None;
        }
        before = byte;
    }
    None
}

/// What the parser does with a byte of a path or query.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Leaves it as it is.
    Keep,
    /// Leaves it, but what it starts may be changed: `.`, `%`.
    Watch,
    /// `/`
    Slash,
    /// `:`, which may end a scheme.
    Colon,
    /// `?`
    Query,
    /// `#`
    Fragment,
    /// Changes it, or may.
    Parse,
}

#[expect(clippy::indexing_slicing, reason = "at compile time, and below 256")]
const KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Parse; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let b = byte as u8;
        kinds[byte] = match b {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => Kind::Keep,
            b'-' | b'_' | b'~' | b'!' | b'$' | b'&' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=' | b'@' => {
                Kind::Keep
            }
            b'.' | b'%' => Kind::Watch,
            b'/' => Kind::Slash,
            b':' => Kind::Colon,
            b'?' => Kind::Query,
            b'#' => Kind::Fragment,
            _ => Kind::Parse,
        };
        byte += 1;
    }
    kinds
};

/// The length of `tail` without its fragment, if the parser would leave every byte of it as it is.
fn plain_len(tail: &str, colon_is_plain: bool) -> Option<usize> {
    let bytes = tail.as_bytes();
    let mut colon_is_plain = colon_is_plain;
    let mut segment_start = true;
    let mut in_query = false;
    for (at, &byte) in bytes.iter().enumerate() {
        let starts_segment = std::mem::replace(&mut segment_start, false);
        match KINDS.get(usize::from(byte))? {
            Kind::Keep => {}
            Kind::Watch if in_query => {}
            // `/.` may be a dot segment, and so may `%2e` anywhere after a dot or a slash
            Kind::Watch => {
                let dot = byte == b'.' && starts_segment;
                let encoded_dot = matches!(bytes.get(at..at + 3), Some([b'%', b'2', b'e' | b'E']));
                if dot || encoded_dot {
                    return None;
                }
            }
            Kind::Slash => {
                segment_start = !in_query;
                colon_is_plain = true;
            }
            Kind::Colon if colon_is_plain => {}
            Kind::Query => {
                in_query = true;
                colon_is_plain = true;
            }
            Kind::Fragment => return Some(at),
            Kind::Colon | Kind::Parse => return None,
        }
    }
    Some(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Reject;
    use proptest::prelude::*;

    fn page(raw: &str) -> CrawlUrl {
        CrawlUrl::parse(raw, &Identity::default()).unwrap()
    }

    fn join(base: &Base, raw: &str) -> Result<CrawlUrl, Reject> {
        CrawlUrl::join(base, raw, &Identity::default())
    }

    #[test]
    fn links_are_resolved_against_the_page() {
        let base = Base::of(&page("http://h.example:81/a/b.html?q"), None);
        for (raw, href) in [
            ("c.html#x", "http://h.example:81/a/c.html"),
            ("/c?d=e/../f", "http://h.example:81/c?d=e/../f"),
            ("../c", "http://h.example:81/c"),
            ("", "http://h.example:81/a/b.html?q"),
            ("#x", "http://h.example:81/a/b.html?q"),
            ("?r", "http://h.example:81/a/b.html?r"),
            ("//other/x", "http://other/x"),
            ("///other/x", "http://other/x"),
            ("http://h.example:81/x", "http://h.example:81/x"),
            ("http://h.example:81x/", "malformed"),
            ("http://h.example:811/", "http://h.example:811/"),
            ("https://h.example:81/x", "https://h.example:81/x"),
            ("x:y", "malformed"),
            ("a b", "http://h.example:81/a/a%20b"),
            ("a/%2e./b", "http://h.example:81/a/b"),
            ("%7ea", "http://h.example:81/a/%7ea"),
        ] {
            match join(&base, raw) {
                Ok(url) => assert_eq!(url.href(), href, "{raw}"),
                Err(_) => assert_eq!(href, "malformed", "{raw}"),
            }
        }
    }

    #[test]
    fn the_first_base_element_moves_the_base_if_it_can_be_one() {
        let own = page("http://h/a/b");
        for (base_href, resolved) in [
            (Some("/x/y"), "http://h/x/l"),
            (Some("https://cdn.example/z/"), "https://cdn.example/z/l"),
            (Some("http://["), "http://h/a/l"),
            (Some("data:text/html,x"), "http://h/a/l"),
            (Some("javascript:x"), "http://h/a/l"),
            (Some(""), "http://h/a/l"),
            (None, "http://h/a/l"),
        ] {
            assert_eq!(
                join(&Base::of(&own, base_href), "l").unwrap().href(),
                resolved,
                "{base_href:?}"
            );
        }
        let ftp = Base::of(&own, Some("ftp://h/x/"));
        assert_eq!(join(&ftp, "l"), Err(Reject::Scheme("ftp".to_owned())));
        assert_eq!(join(&ftp, "http://h/l").unwrap().href(), "http://h/l");
    }

    #[test]
    fn the_short_way_is_taken_for_plain_links() {
        let base = Base::of(&page("http://h/a/b"), None);
        for plain in [
            "c",
            "/c/d.html?x=1&y=/.",
            "http://h/c",
            "c/d:e",
            "c%20d#\u{e9}",
            "_x?y:z",
            "../c",
            "../../../c#d",
            "../",
            "http://hh/",
            "https://a-b.1c.example/x?y#z",
        ] {
            assert!(base.join_plain(plain, &Identity::default()).is_some(), "{plain}");
        }
        for other in [
            "",
            "..",
            "../..",
            "../x:y",
            "c/.d",
            "//c",
            "mailto:x",
            "c\\d",
            "c d",
            "c'",
            "/%2e",
            "http://h:80/",
            "http://hh",
            "http://Hh/",
            "http://h./",
            "http://.h/",
            "http://a..b/",
            "http://a-/",
            "http://a.1/",
            "http://xn--a/",
            "http://a.0x1/",
            "http://u@h/",
            "http:/hh/",
            "http://hh/./",
        ] {
            assert!(base.join_plain(other, &Identity::default()).is_none(), "{other}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8_000))]

        #[test]
        fn the_short_way_leads_where_the_parser_leads(
            at in prop::sample::select(vec![
                "http://h/", "https://h.example:8443/a/b/c?d", "http://h./x/", "http://xn--a/b/c", "http://[::1]/a", "http://h/%41/b",
            ]),
            pieces in prop::collection::vec(prop_oneof![
                3 => "[a-zA-Z0-9_~-]{1,3}",
                3 => prop::sample::select(vec![
                    "/", ".", "..", "../", ":", "?", "#", "%", "%2e", "%2E", "%41", "&", "=", "@", "//", "\\", " ", "'", "!", "$", "*", "+",
                    ",", ";", "(", ")", "http:", "http://h/", "https://h.example:8443", "\n", "\u{e9}", "http://", "https://", "-",
                    "xn--", "0x1", "www.", ".example/", "1.2.3.4", "localhost/",
                ]).prop_map(str::to_owned),
                1 => any::<char>().prop_map(String::from),
            ], 0..8),
            scheme in prop::sample::select(vec!["", "", "http://", "https://"]),
        ) {
            let raw = scheme.to_owned() + &pieces.concat();
            let base = Base::of(&page(at), None);
            let by_parser = Parsed::parse(&raw, Some(&base.parsed)).ok().map(|mut parsed| { parsed.strip(); parsed.into_href() });
            if let Some(url) = base.join_plain(&raw, &Identity::default()) {
                prop_assert_eq!(Some(url.href()), by_parser.as_deref(), "{:?}", raw);
                let again = Parsed::parse(url.href(), None).unwrap();
                prop_assert_eq!(Ok(url), CrawlUrl::from_parsed(again, &Identity::default()));
            }
        }
    }
}
