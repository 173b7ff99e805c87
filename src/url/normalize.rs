//! Text + base → [`CrawlUrl`].

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::base::Base;
use super::canonical::{self, Parts};
use super::identity::Identity;
use super::rules;
use super::suffix;
use super::whatwg::Parsed;

/// The longest address that is crawled, in bytes of its parsed form.
pub const MAX_URL_BYTES: usize = 8_190;

/// The longest text that is parsed at all, in bytes. Longer than an address may be, because white space, a fragment
/// and dot segments do not count; bounded, because parsing takes time and memory.
const MAX_RAW_BYTES: usize = 8 * MAX_URL_BYTES;

/// The longest name of a scheme that a [`Reject`] repeats, in bytes.
const MAX_SCHEME_BYTES: usize = 32;

/// The two schemes that are crawled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// `http`, port 80 unless said otherwise.
    Http,
    /// `https`, port 443 unless said otherwise.
    Https,
}

impl Scheme {
    /// The name, lower case.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port where none is written.
    #[must_use]
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    fn of(name: &str) -> Option<Self> {
        match name {
            "http" => Some(Self::Http),
            "https" => Some(Self::Https),
            _ => None,
        }
    }
}

/// Why a text is not an address that can be crawled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// The URL Standard refuses it.
    #[error("not a URL: {0}")]
    Malformed(String),
    /// It is longer than [`MAX_URL_BYTES`] (or, before parsing, than eight times that).
    #[error("longer than {MAX_URL_BYTES} bytes: {0} bytes")]
    TooLong(usize),
    /// A URL, but of a scheme that is not fetched (`mailto:`, `javascript:`, `data:`, `ftp:` ...).
    #[error("the scheme {0} is not crawled")]
    Scheme(String),
}

/// An address that can be crawled.
///
/// 80 bytes and its text; a second text only where the identity is spelled otherwise than the address, a third where the
/// optional rules change that further.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CrawlUrl {
    href: String,
    /// Under the default rules, if that differs from `href`.
    standard: Option<Box<str>>,
    /// Under the optional rules too, if that differs from `standard`.
    folded: Option<Box<str>>,
    // offsets into `href`; MAX_URL_BYTES fits into 16 bits
    host_end: u16,
    path_start: u16,
    path_end: u16,
    port: u16,
    scheme: Scheme,
}

impl CrawlUrl {
    /// Parses an absolute address.
    ///
    /// # Errors
    /// [`Reject`] says why the text is not one.
    pub fn parse(raw: &str, identity: &Identity) -> Result<Self, Reject> {
        if !identity.rules.keep_hashbang
            && let Some(mut url) = super::base::absolute(raw)
        {
            url.fold(None, identity);
            return Ok(url);
        }
        let raw = without_line_separators(raw);
        reject_unread(raw)?;
        Self::from_parsed(Parsed::parse(raw, None).map_err(malformed)?, identity)
    }

    /// Parses an address of a page, absolute or relative.
    ///
    /// # Errors
    /// [`Reject`] says why the text is not one.
    pub fn join(base: &Base, raw: &str, identity: &Identity) -> Result<Self, Reject> {
        if let Some(url) = base.join_plain(raw, identity) {
            return Ok(url);
        }
        let raw = without_line_separators(raw);
        reject_unread(raw)?;
        let spelled = base.spelled(raw.trim_matches(|c: char| c <= ' '));
        Self::from_parsed(
            Parsed::parse(&spelled, Some(base.parsed())).map_err(malformed)?,
            identity,
        )
    }

    pub(super) fn from_parsed(mut parsed: Parsed, identity: &Identity) -> Result<Self, Reject> {
        let Some(scheme) = Scheme::of(parsed.scheme()) else {
            return Err(Reject::Scheme(shortened(parsed.scheme())));
        };
        if !parsed.has_host() {
            return Err(Reject::Malformed("empty host".to_owned()));
        }
        let fragment = identity.rules.keep_hashbang.then(|| parsed.fragment()).flatten();
        parsed.strip();
        let port = parsed.port();
        let href = parsed.into_href();

        let host_start = host_start(scheme);
        let path_start = host_start
            + href
                .bytes()
                .skip(host_start)
                .position(|b| b == b'/')
                .unwrap_or_default();
        let authority = href.get(host_start..path_start).unwrap_or_default();
        let host_len = if port.is_some() {
            authority.rfind(':').unwrap_or(authority.len())
        } else {
            authority.len()
        };
        let port = port.unwrap_or(scheme.default_port());
        let mut url = Self::assemble(href, scheme, port, host_start + host_len, path_start)?;
        url.fold(fragment.as_deref(), identity);
        Ok(url)
    }

    /// Applies the rules that are switched on.
    pub(super) fn fold(&mut self, fragment: Option<&str>, identity: &Identity) {
        if identity.rules.any() {
            self.folded = rules::apply(self.standard(), fragment, &identity.rules).map(String::into_boxed_str);
        }
    }

    /// Makes the value from a serialized address and the places of its parts; the default rules alone are applied.
    pub(super) fn assemble(
        href: String,
        scheme: Scheme,
        port: u16,
        host_end: usize,
        path_start: usize,
    ) -> Result<Self, Reject> {
        if href.len() > MAX_URL_BYTES {
            return Err(Reject::TooLong(href.len()));
        }
        let path = href.as_bytes().get(path_start..).unwrap_or_default();
        let path_end = path_start + memchr::memchr(b'?', path).unwrap_or(path.len());
        let parts = Parts {
            host_start: host_start(scheme),
            host_end,
            path_start,
        };
        let standard = canonical::of(&href, parts).map(String::into_boxed_str);
        Ok(Self {
            standard,
            folded: None,
            host_end: offset(host_end),
            path_start: offset(path_start),
            path_end: offset(path_end),
            port,
            scheme,
            href,
        })
    }

    /// The address as fetched: WHATWG-serialized, no fragment, no user information.
    #[must_use]
    pub fn href(&self) -> &str {
        &self.href
    }

    /// The identity: what two spellings of one page share. Nothing is fetched by it.
    #[must_use]
    pub fn canonical(&self) -> &str {
        self.folded.as_deref().unwrap_or_else(|| self.standard())
    }

    /// The identity under the default rules alone: what scope and queues go by. Folding `/docs/` to `/docs` must not
    /// widen a scope, nor `www.` share one robots.txt among two hosts.
    #[must_use]
    pub fn standard(&self) -> &str {
        self.standard.as_deref().unwrap_or(&self.href)
    }

    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host as in the address: a domain in A-labels, an IPv4 address, or an IPv6 address in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        self.part(host_start(self.scheme), self.host_end)
    }

    /// The port, the scheme's default if none is written.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The key of the queue and of politeness: the canonical host, with `:port` unless the port is the scheme's own.
    /// `http://h/` and `https://h/` share one key: they are one machine's patience.
    #[must_use]
    pub fn host_key(&self) -> &str {
        let identity = self.standard();
        let from_host = identity.get(host_start(self.scheme)..).unwrap_or_default();
        from_host.split('/').next().unwrap_or_default()
    }

    /// `scheme://host[:port]`: what one robots.txt speaks for.
    #[must_use]
    pub fn origin(&self) -> &str {
        self.part(0, self.path_start)
    }

    /// Path and query as sent in a request line: starts with `/`.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        self.href.get(usize::from(self.path_start)..).unwrap_or_default()
    }

    /// The path alone.
    #[must_use]
    pub fn path(&self) -> &str {
        self.part(usize::from(self.path_start), self.path_end)
    }

    /// The origin's `/robots.txt`, whose identity follows the default rules.
    #[must_use]
    pub fn robots_txt(&self) -> CrawlUrl {
        const ROBOTS_TXT: &str = "/robots.txt";
        let keep = |text: &str, end: usize| text.get(..end).map(|origin| format!("{origin}{ROBOTS_TXT}"));
        let href = format!("{}{ROBOTS_TXT}", self.origin());
        let key_end = host_start(self.scheme) + self.host_key().len();
        let standard = keep(self.standard(), key_end).filter(|identity| *identity != href);
        Self {
            standard: standard.map(String::into_boxed_str),
            folded: None,
            path_end: offset(href.len()),
            href,
            ..*self
        }
    }

    /// The host's registrable domain (public suffix list), or the host itself where there is none (addresses,
    /// single labels, public suffixes). Without the dot that may end a host.
    #[must_use]
    pub fn registrable_domain(&self) -> &str {
        suffix::registrable_domain(self.host())
    }

    fn part(&self, start: usize, end: u16) -> &str {
        self.href.get(start..usize::from(end)).unwrap_or_default()
    }
}

impl fmt::Display for CrawlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.href)
    }
}

/// As its `href`.
impl Serialize for CrawlUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.href)
    }
}

/// From its `href`; the identity is derived anew by the default rules.
impl<'de> Deserialize<'de> for CrawlUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let href = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&href, &Identity::default()).map_err(serde::de::Error::custom)
    }
}

/// Where the host starts: after `scheme://`.
pub(super) fn host_start(scheme: Scheme) -> usize {
    scheme.as_str().len() + "://".len()
}

fn offset(at: usize) -> u16 {
    // an address is at most MAX_URL_BYTES long; a robots.txt is as long as its origin and 11 bytes more
    u16::try_from(at).unwrap_or(u16::MAX)
}

/// Drops the line and paragraph separators of Unicode around an address. They come from pasting; the standard would
/// make `%E2%80%A8` of one, which names no page.
fn without_line_separators(raw: &str) -> &str {
    raw.trim_matches(['\u{2028}', '\u{2029}'])
}

/// Refuses, before any parsing, what can be told from its first bytes (`data:` with its megabytes) or its length.
fn reject_unread(raw: &str) -> Result<(), Reject> {
    let text = raw.trim_start_matches(|c: char| c <= ' ');
    if let Some(colon) = text
        .bytes()
        .position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.')))
        && let Some((name, rest)) = text.split_at_checked(colon)
        && rest.starts_with(':')
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && !(name.eq_ignore_ascii_case("http") || name.eq_ignore_ascii_case("https"))
    {
        return Err(Reject::Scheme(shortened(name)));
    }
    if text.len() > MAX_RAW_BYTES {
        return Err(Reject::TooLong(text.len()));
    }
    Ok(())
}

fn shortened(scheme: &str) -> String {
    scheme.get(..MAX_SCHEME_BYTES).unwrap_or(scheme).to_ascii_lowercase()
}

fn malformed(error: url::ParseError) -> Reject {
    Reject::Malformed(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(raw: &str) -> CrawlUrl {
        CrawlUrl::parse(raw, &Identity::default()).unwrap()
    }

    fn reject(raw: &str) -> Reject {
        CrawlUrl::parse(raw, &Identity::default()).unwrap_err()
    }

    #[test]
    fn the_parts_of_an_address() {
        let u = url(" HTTP://user:pw@WWW.Example.CO.UK.:8080/a/b%41?q=1#f ");
        assert_eq!(u.href(), "http://www.example.co.uk.:8080/a/b%41?q=1");
        assert_eq!(u.canonical(), "http://www.example.co.uk:8080/a/bA?q=1");
        assert_eq!(
            (u.scheme(), u.host(), u.port()),
            (Scheme::Http, "www.example.co.uk.", 8080)
        );
        assert_eq!(u.host_key(), "www.example.co.uk:8080");
        assert_eq!(u.origin(), "http://www.example.co.uk.:8080");
        assert_eq!((u.path_and_query(), u.path()), ("/a/b%41?q=1", "/a/b%41"));
        assert_eq!(u.registrable_domain(), "example.co.uk");
        assert_eq!(u.robots_txt(), url("http://www.example.co.uk.:8080/robots.txt"));
        assert_eq!(u.to_string(), u.href());

        let v = url("https://[2001:db8::1]");
        assert_eq!(v.href(), "https://[2001:db8::1]/");
        assert_eq!(
            (v.scheme(), v.host(), v.port(), v.host_key()),
            (Scheme::Https, "[2001:db8::1]", 443, "[2001:db8::1]")
        );
        assert_eq!(
            (v.path_and_query(), v.path(), v.origin()),
            ("/", "/", "https://[2001:db8::1]")
        );
        assert_eq!(v.robots_txt(), url("https://[2001:db8::1]/robots.txt"));
        assert_eq!(v.registrable_domain(), "[2001:db8::1]");
        assert_eq!(url("https://[::1]:444/?x").host_key(), "[::1]:444");
        assert_eq!(url("https://[::1]:444/?x").host(), "[::1]");
    }

    #[test]
    fn both_schemes_of_a_host_share_its_key() {
        assert_eq!(url("http://h/").host_key(), url("https://h./x").host_key());
        assert_ne!(url("http://h:443/").host_key(), url("https://h/").host_key());
    }

    #[test]
    fn a_registrable_domain_or_else_the_host() {
        for (raw, domain) in [
            ("http://a.b.example.com/", "example.com"),
            ("http://b.github.io/", "b.github.io"),
            ("http://co.uk/", "co.uk"),
            ("http://localhost/", "localhost"),
            ("http://192.0.2.1/", "192.0.2.1"),
            ("http://x.y.internal-zone/", "y.internal-zone"),
        ] {
            assert_eq!(url(raw).registrable_domain(), domain, "{raw}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_page_is_refused_with_the_reason() {
        for raw in [
            "",
            "a/b",
            "http://",
            "http://a b/",
            "http://h:99999/",
            "//h/",
            "http://[::1/",
        ] {
            assert!(matches!(reject(raw), Reject::Malformed(_)), "{raw}");
        }
        for (raw, scheme) in [
            ("mailto:a@b", "mailto"),
            (" JavaScript:void(0)", "javascript"),
            ("da\tta:,x", "data"),
            ("ftp://h/", "ftp"),
            ("file:///x", "file"),
        ] {
            assert_eq!(reject(raw), Reject::Scheme(scheme.to_owned()), "{raw}");
        }
        assert_eq!(
            reject(&format!("{}:x", "a".repeat(100))),
            Reject::Scheme("a".repeat(MAX_SCHEME_BYTES))
        );
        assert_eq!(
            reject(&format!("data:,{}", "x".repeat(MAX_RAW_BYTES))),
            Reject::Scheme("data".to_owned())
        );
    }

    #[test]
    fn the_longest_address_is_taken_and_one_byte_more_is_not() {
        let path = "p".repeat(MAX_URL_BYTES - "http://h/".len());
        assert_eq!(url(&format!("http://h/{path}#{path}")).href().len(), MAX_URL_BYTES);
        assert_eq!(reject(&format!("http://h/{path}p")), Reject::TooLong(MAX_URL_BYTES + 1));
        let raw = format!("http://h/#{}", "f".repeat(MAX_RAW_BYTES));
        assert_eq!(reject(&raw), Reject::TooLong(raw.len()));
        assert_eq!(url(&raw[..MAX_RAW_BYTES]).href(), "http://h/");
        let longest = url(&format!("http://h/{path}"));
        assert_eq!(longest.robots_txt().href(), "http://h/robots.txt");
    }

    #[test]
    fn white_space_is_dropped_as_the_standard_says_and_line_separators_with_it() {
        assert_eq!(url("\u{0}\t http://h/a\tb\r\nc d \u{1}").href(), "http://h/abc%20d");
        assert_eq!(url("\u{2028}http://h/\u{2029}").href(), "http://h/");
        assert_eq!(url("http://h/a\u{2028}b").href(), "http://h/a%E2%80%A8b");
    }

    #[test]
    fn it_is_stored_as_its_href() {
        let u = url("http://h./%41");
        let json = serde_json::to_string(&u).unwrap();
        assert_eq!(json, "\"http://h./%41\"");
        assert_eq!(serde_json::from_str::<CrawlUrl>(&json).unwrap(), u);
        assert!(serde_json::from_str::<CrawlUrl>("\"mailto:x\"").is_err());
        let bytes = postcard::to_allocvec(&u).unwrap();
        assert_eq!(postcard::from_bytes::<CrawlUrl>(&bytes).unwrap(), u);
    }

    /// Pieces that an address may be broken at.
    fn any_address() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => "[a-zA-Z0-9]{1,4}",
            4 => prop::sample::select(vec![
                "/", "//", ".", "..", "/../", "%", "%4", "%41", "%2e", "%2F", "%%341", "%25", "?", "#", "&", "=", ":", "@", "\\",
                " ", "\t", "xn--", "xn--a", "\u{e9}", "\u{2028}", "'", "\"", "|", "[", "]", ":80", ":443", "1.2.3", "0x1", ".", "-", "~", "{",
            ]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        (
            prop::sample::select(vec![
                "http://",
                "https://",
                "http:",
                "HTTP:\\\\",
                "http:///",
                "http://h/",
                "http://h.",
            ]),
            prop::collection::vec(piece, 0..12),
        )
            .prop_map(|(start, pieces)| format!("{start}{}", pieces.concat()))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]

        #[test]
        fn the_identity_of_an_identity_is_itself(raw in any_address()) {
            if let Ok(u) = CrawlUrl::parse(&raw, &Identity::default()) {
                let again = url(u.href());
                prop_assert_eq!(&again, &u);
                let identity = url(u.canonical());
                prop_assert_eq!(identity.canonical(), u.canonical());
                prop_assert_eq!(identity.href(), u.canonical());
                prop_assert_eq!(identity.host_key(), u.host_key());
                prop_assert_eq!(&format!("{}{}", u.origin(), u.path_and_query()), u.href());
                prop_assert!(u.path().starts_with('/') && u.href().is_ascii());
                prop_assert_eq!(u.robots_txt(), url(&format!("{}/robots.txt", u.origin())));
                prop_assert!(u.host().contains(u.registrable_domain()));
            }
        }

        #[test]
        fn any_text_gets_an_answer(raw in any::<String>()) {
            let _ = CrawlUrl::parse(&raw, &Identity::default());
        }
    }
}
