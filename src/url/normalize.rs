//! Text + base → [`CrawlUrl`].

use serde::{Deserialize, Serialize};

/// The longest address that is crawled, in bytes of its parsed form.
pub const MAX_URL_BYTES: usize = 8_190;

/// The two schemes that are crawled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// `http`, port 80 unless said otherwise.
    Http,
    /// `https`, port 443 unless said otherwise.
    Https,
}

/// Why a text is not an address that can be crawled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// The URL Standard refuses it.
    #[error("not a URL: {0}")]
    Malformed(String),
    /// It is longer than [`MAX_URL_BYTES`].
    #[error("longer than {MAX_URL_BYTES} bytes: {0} bytes")]
    TooLong(usize),
    /// A URL, but of a scheme that is not fetched (`mailto:`, `javascript:`, `data:`, `ftp:` ...).
    #[error("the scheme {0} is not crawled")]
    Scheme(String),
}

/// The rules of identity. Their `version` is stored with the job; a resumed crawl refuses to change them silently.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Version of the rules in this file.
    pub version: u32,
}

impl Default for Identity {
    fn default() -> Self {
        Self { version: 1 }
    }
}

/// What relative addresses of a page are resolved against (its own address, or its first `<base href>`).
#[derive(Debug, Clone)]
pub struct Base(());

impl Base {
    /// The base of a page: `base_href` (raw, from the first `<base href>`) resolved against the page's own address.
    /// A base that cannot be parsed is ignored, as browsers do.
    #[must_use]
    pub fn of(_page: &CrawlUrl, _base_href: Option<&str>) -> Self {
        todo!()
    }
}

/// An address that can be crawled.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CrawlUrl(());

impl CrawlUrl {
    /// Parses an absolute address.
    ///
    /// # Errors
    /// [`Reject`] says why the text is not one.
    pub fn parse(_raw: &str, _identity: &Identity) -> Result<Self, Reject> {
        todo!()
    }
    /// Parses an address of a page, absolute or relative.
    ///
    /// # Errors
    /// [`Reject`] says why the text is not one.
    pub fn join(_base: &Base, _raw: &str, _identity: &Identity) -> Result<Self, Reject> {
        todo!()
    }
    /// The address as fetched: WHATWG-serialized, no fragment, no user information.
    #[must_use]
    pub fn href(&self) -> &str {
        todo!()
    }
    /// The identity: what two spellings of one page share.
    #[must_use]
    pub fn canonical(&self) -> &str {
        todo!()
    }
    /// `http` or `https`.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        todo!()
    }
    /// The host as in the address: a domain in A-labels, an IPv4 address, or an IPv6 address in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        todo!()
    }
    /// The port, the scheme's default if none is written.
    #[must_use]
    pub fn port(&self) -> u16 {
        todo!()
    }
    /// The key of the queue and of politeness: the canonical host, with `:port` unless the port is the scheme's own.
    /// `http://h/` and `https://h/` share one key: they are one machine's patience.
    #[must_use]
    pub fn host_key(&self) -> &str {
        todo!()
    }
    /// `scheme://host[:port]`: what one robots.txt speaks for.
    #[must_use]
    pub fn origin(&self) -> &str {
        todo!()
    }
    /// Path and query as sent in a request line: starts with `/`.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        todo!()
    }
    /// The path alone.
    #[must_use]
    pub fn path(&self) -> &str {
        todo!()
    }
    /// The origin's `/robots.txt`.
    #[must_use]
    pub fn robots_txt(&self) -> CrawlUrl {
        todo!()
    }
    /// The host's registrable domain (public suffix list), or the host itself where there is none (addresses,
    /// single labels, public suffixes).
    #[must_use]
    pub fn registrable_domain(&self) -> &str {
        todo!()
    }
}
