//! The door to the network: one request, one answer. It follows nothing, repeats nothing and decodes nothing by itself.

mod address;
pub mod body;
pub mod decode;
pub mod dns;
pub mod filter;
pub mod http;

use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;

use body::Body;

use crate::clock::Time;
use crate::url::CrawlUrl;

/// One request to be made.
#[derive(Debug, Clone)]
pub struct Request {
    /// What to fetch.
    pub url: CrawlUrl,
    /// The page it was found on, sent as `Referer` if the settings say so.
    pub via: Option<String>,
    /// The only address to connect to, as [`Fetcher::look_up`] gave it, even if the name has others by now; it is judged
    /// again. `None` for any. A proxy that looks names up itself is not told.
    pub to: Option<IpAddr>,
    /// The value of the `Cookie` header.
    pub cookie: Option<String>,
    /// The body may be left out for what the head says ([`filter::BodyFilter`]).
    pub filter: bool,
    /// How long its host is owed rest before the request is sent a second time ([`Repeat`]).
    pub rest: Duration,
}

/// Why a body was not asked for to its end, although an answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Skipped {
    /// Its media type is not wanted.
    Type,
    /// It says that it is too long.
    Size,
}

impl Skipped {
    /// A short word for counters and logs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::Size => "size",
        }
    }
}

/// Why a body is shorter than what the server had to say (WARC 1.1 section 5.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Truncated {
    /// The cap on the body's size was reached.
    Length,
    /// The cap on the time was reached, or the server fell below the minimum rate.
    Time,
    /// The connection ended before the message did.
    Disconnect,
}

impl Truncated {
    /// The word in a `WARC-Truncated` header.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Length => "length",
            Self::Time => "time",
            Self::Disconnect => "disconnect",
        }
    }
}

/// An answer of a server, whatever its status.
#[derive(Debug, Clone, Default)]
pub struct Response {
    /// 100 to 999.
    pub status: u16,
    /// Status line, header lines and the closing empty line as they came, for the archive.
    pub head: Vec<u8>,
    /// Header names (lower case) and values in the order received.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The body as received, chunk framing removed, content coding kept.
    pub body: Body,
    /// Set if the body is not whole.
    pub truncated: Option<Truncated>,
    /// Set if the body was left out on purpose; then it is empty here.
    pub skipped: Option<Skipped>,
    /// The address actually connected to.
    pub remote: Option<IpAddr>,
    /// The request head as sent, for the archive: request line, header lines, closing empty line. Passwords are redacted.
    pub request_head: Vec<u8>,
    /// The protocols it came through as `WARC-Protocol` names them, the outermost first: `http/1.1`, `tls/1.3`.
    pub protocols: Vec<&'static str>,
    /// The TLS cipher suite by its name in IANA's registry, if known.
    pub cipher: Option<&'static str>,
    /// When the request began (name look-up and connection included).
    pub started: Time,
    /// From there to the last byte.
    pub took: Duration,
    /// The request had to be sent a second time, on a connection of its own.
    pub repeated: Option<Repeat>,
}

impl Response {
    /// The first value of a header; `name` in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_slice())
    }

    /// All values of a header in order; `name` in lower case.
    pub fn header_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.headers
            .iter()
            .filter(move |(n, _)| n == name)
            .map(|(_, v)| v.as_slice())
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error, serde::Serialize, serde::Deserialize)]
pub enum FetchErrorKind {
    /// The name has no address.
    #[error("name look-up failed")]
    Dns,
    /// No connection could be made.
    #[error("connection refused or unreachable")]
    Connect,
    /// The connection ended before a whole head came.
    #[error("connection broken")]
    Broken,
    /// No connection or no head in time.
    #[error("timed out")]
    Timeout,
    /// The TLS handshake failed.
    #[error("TLS failed")]
    Tls,
    /// What came is not HTTP.
    #[error("not HTTP")]
    Protocol,
    /// The proxy that leads to every host was not reached.
    #[error("proxy not reached")]
    Proxy,
    /// The server chose HTTP/2, and what it has to say cannot be had so: the next request is over HTTP/1.1.
    #[error("HTTP/1.1 is to be asked")]
    Old,
    /// The address is private, loopback or otherwise not public, and not allowed by `--allow-address`.
    #[error("private address")]
    PrivateAddress,
    /// The body that came could not be written down here: no fault of the page, and the end of the run.
    #[error("the body cannot be kept")]
    Spool,
}

impl FetchErrorKind {
    /// A short word that is the same for like cases, for counters and reports.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Connect => "connect",
            Self::Proxy => "proxy",
            Self::Broken => "broken",
            Self::Timeout => "timeout",
            Self::Tls => "tls",
            Self::Protocol => "protocol",
            Self::Old => "http1-required",
            Self::PrivateAddress => "private-address",
            Self::Spool => "spool",
        }
    }

    /// The Heritrix status code of a crawl.log line.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            Self::Dns => -1,
            Self::Connect | Self::Proxy | Self::Tls => -2,
            Self::Broken | Self::Protocol | Self::Old => -3,
            Self::Timeout => -4,
            Self::PrivateAddress => -5001,
            Self::Spool => -5,
        }
    }
}

/// A request that brought no answer.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{kind}: {detail}")]
pub struct FetchError {
    /// The kind, which decides what happens next.
    pub kind: FetchErrorKind,
    /// What a person wants to know: the address, the system's own words.
    pub detail: String,
    /// When the request began.
    pub started: Time,
    /// How long it took.
    pub took: Duration,
    /// As in a [`Response`].
    pub repeated: Option<Repeat>,
}

/// Why a request was sent twice, as soon as its host had rested: the server had certainly not looked at the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// A kept connection ended before a byte of an answer (RFC 9112 section 9.3.1, RFC 9113 section 8.7).
    Dropped,
    /// The server said so.
    Refused,
}

impl Repeat {
    /// The annotation in crawl.log.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dropped => "repeat:dropped",
            Self::Refused => "repeat:refused",
        }
    }
}

/// Something that makes requests: the network, or a web made of arithmetic in tests.
pub trait Fetcher: Send + Sync + 'static {
    /// Makes one request.
    fn fetch(&self, request: Request) -> impl Future<Output = Result<Response, FetchError>> + Send;

    /// Looks up the address that a request for this URL would try first, and judges it. Makes no request.
    fn look_up(&self, url: &CrawlUrl) -> impl Future<Output = Result<IpAddr, FetchError>> + Send;
}
