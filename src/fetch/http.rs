//! HTTP: our own HTTP/1.1 (`h1`), and HTTP/2 over the frames of the `h2` package (`h2`).
//!
//! What is asked for leaves once and what comes back is handed on as it is: redirects are links, retries are the
//! crawl's business, content codings are undone by `decode.rs` from the bytes that the archive also gets. One thing
//! alone is repeated here, once, on a new connection, and when the host has rested as between any two requests: a request
//! that the server has not looked at. It said so (RFC 9113 section 8.7), or it closed a kept connection at the moment of
//! its reuse without a byte of an answer (RFC 9112 section 9.3.1). [`Response::repeated`] tells of it. All else, a server
//! that wants HTTP/1.1 among it, is a failed request: the next one comes when its host has rested.
//!
//! [`Response::head`] is verbatim: order, case, repeats, folds, stray lines, the reason phrase, line ends. Left out are
//! only what precedes the status line, interim 1xx answers, chunk framing and trailers. Of HTTP/2, which has no such
//! head, one is written: see `h2`.
//!
//! # The parts
//! - `dial` makes connections (judged addresses, happy eyeballs, `proxy`, `tls`), `pool` keeps them, `stream` is one.
//! - `head` writes requests; `h1` reads answers; `body` gathers their bodies within bounds; `fault` says why not.
//!
//! # TLS
//! A connection over TLS whose end was not announced (no `close_notify`) ends a body that has no length of its own, as
//! in browsers: RFC 9112 section 9.8 calls it incomplete, but servers close so every day, and nothing could tell a whole
//! page from a cut one. A body with a length, or in chunks, is judged by those.
//!
//! # Secrets
//! The values of `Authorization` and `Proxy-Authorization` are sent, but [`Response::request_head`], which goes into the
//! archive, has `[redacted]` in their place: archives are passed on. Cookies stay, as they decide what page came.
//!
//! # Proxies
//! Behind a proxy HTTP/1.1 alone is spoken. An `http://` proxy and `socks5h://` look names up themselves, and have to guard
//! their own network; addresses in URLs and names of loopback are refused here all the same. With `socks5://` names are
//! looked up and judged here. The proxy's own address may be any: the user named it.

mod answer;
mod auth;
mod body;
mod dial;
mod fault;
pub mod h1;
mod h2;
mod head;
pub mod list;
mod pool;
mod proxy;
mod stream;
mod tls;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::BytesMut;
use reqwest::Url;

use super::body::Spool;
use super::dns::{AddressPolicy, Names};
use super::filter::BodyFilter;
use super::{FetchError, FetchErrorKind, Fetcher, Repeat, Request, Response};
use crate::clock::Time;
use crate::url::CrawlUrl;
use dial::Dialer;
use fault::Fault;
use h1::exchange::NoHead;
use h1::head::Head;
use h2::OldOrigins;
use h2::session::{self, Answer, NoAnswer, Session};
use head::{Extra, RequestHead};
use pool::{Line, Pool};
use stream::Connection;

pub use auth::Auth;
pub use h1::MAX_HEAD_BYTES;
pub use h2::MAX_KNOWN_ORIGINS;
pub use head::{header, secrets, shown_header};
pub use proxy::{looks_up_names, proxy, shown_proxy};

/// The settings of the network.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The `From` header, if the contact is a mail address.
    pub from: Option<String>,
    /// Further headers on every request, in order. One of our own names (`Accept`, say) replaces ours.
    pub headers: Vec<(String, String)>,
    /// User and password for hosts.
    pub auth: Vec<Auth>,
    /// Time for name look-up, connection and head.
    pub header_timeout: Duration,
    /// Time for the whole exchange.
    pub timeout: Duration,
    /// Below this rate, averaged over `slow_after`, a body is cut off as too slow; bytes a second. 0 allows any.
    pub min_rate: u64,
    /// How long a body may be slow before it is cut off.
    pub slow_after: Duration,
    /// Cap on a body as received, bytes.
    pub max_body: u64,
    /// Bodies that are not read, where a request allows it.
    pub filter: BodyFilter,
    /// Where large bodies go while they are worked on.
    pub spool: Arc<Spool>,
    /// Idle connections kept to one host.
    pub per_host_connections: usize,
    /// Idle connections kept over all hosts, at most; each is an open file.
    pub idle_connections: usize,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// Host, port and address pinned by `--resolve`.
    pub pins: Vec<(String, u16, SocketAddr)>,
    /// Which addresses may be connected to.
    pub addresses: AddressPolicy,
    /// A proxy for all requests: `http://`, `socks5://` or `socks5h://`, with `user:password@` if need be.
    pub proxy: Option<String>,
    /// Speak HTTP/2 where a server offers it.
    pub http2: bool,
    /// Believe every certificate.
    pub insecure_tls: bool,
}

/// The network.
pub struct HttpFetcher {
    settings: HttpSettings,
    head: RequestHead,
    dialer: Dialer,
    pool: Pool,
    /// HTTP/2 is offered to servers.
    http2: bool,
    old: OldOrigins,
    clock: Clock,
}

/// A body that is not wanted is read all the same if it says that it is no longer than this: the connection then serves
/// the next request. Bytes.
pub const MAX_DRAINED_BYTES: u64 = 16 << 10;

/// What is asked for.
struct Asked<'a> {
    href: &'a str,
    via: Option<&'a str>,
    /// The only address connected to.
    to: Option<IpAddr>,
    /// The value of the `Cookie` header.
    cookie: Option<&'a str>,
    filter: bool,
    /// Before it is asked a second time.
    rest: Duration,
}

/// One request on its way.
struct Ask<'a> {
    url: &'a Url,
    host: &'a str,
    /// Scheme, host and port.
    origin: String,
    to: Option<IpAddr>,
    extra: Extra,
    began: Instant,
    /// The body may be left out.
    filter: bool,
    /// Time for connection and head.
    patience: Duration,
    /// A connection is being made.
    connecting: AtomicBool,
    /// The request was sent twice.
    repeated: Option<Repeat>,
}

/// Why there is no head.
enum NoHeadYet {
    /// The server has certainly not looked at the request: it may be sent once more, on a new connection.
    Again(Repeat),
    Fault(Fault),
}

impl From<Fault> for NoHeadYet {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The head of an answer and the connection that its body comes on.
enum Begun {
    H1(Head, Connection, BytesMut),
    H2(Answer, Box<Session>),
}

impl HttpFetcher {
    /// Builds the client. Opens nothing yet.
    ///
    /// # Errors
    /// A header or proxy that cannot be used, in words for the user.
    pub fn new(settings: HttpSettings) -> Result<Self, String> {
        let names = Names::new(settings.addresses.clone(), &settings.pins);
        let dialer = Dialer::new(&settings, &names)?;
        let login = dialer.proxy.as_ref().and_then(proxy::Proxy::authorization);
        let head = RequestHead::new(&settings, login)?;
        Ok(Self {
            pool: Pool::new(
                settings.per_host_connections,
                settings.idle_connections,
                settings.idle_timeout,
            ),
            http2: settings.http2 && settings.proxy.is_none(),
            old: OldOrigins::default(),
            settings,
            head,
            dialer,
            clock: Clock::new(),
        })
    }

    /// Fetches an absolute `http` or `https` address.
    ///
    /// # Errors
    /// [`FetchError`] where no head of an answer came.
    pub async fn fetch_href(&self, href: &str, via: Option<&str>) -> Result<Response, FetchError> {
        let asked = Asked {
            href,
            via,
            to: None,
            cookie: None,
            filter: false,
            rest: Duration::ZERO,
        };
        self.fetch_from(&asked).await
    }

    async fn fetch_from(&self, asked: &Asked<'_>) -> Result<Response, FetchError> {
        let began = Instant::now();
        let mut repeated = None;
        let outcome = match parse(asked.href) {
            Ok(url) => self.exchange(&url, asked, began, &mut repeated).await,
            Err(fault) => Err(fault),
        };
        let (started, took) = (self.clock.at(began), began.elapsed());
        match outcome {
            Ok(response) => Ok(Response {
                started,
                took,
                repeated,
                ..response
            }),
            Err(fault) => Err(fault.told(started, took, repeated)),
        }
    }

    async fn exchange(
        &self,
        url: &Url,
        asked: &Asked<'_>,
        began: Instant,
        repeated: &mut Option<Repeat>,
    ) -> Result<Response, Fault> {
        let host = url.host_str().unwrap_or_default();
        self.dialer.judge_host(host)?;
        let mut ask = Ask {
            url,
            host,
            origin: origin(url),
            to: asked.to,
            extra: self.head.extra(url, asked.via, asked.cookie),
            began,
            filter: asked.filter,
            patience: self.settings.header_timeout.min(self.settings.timeout),
            connecting: AtomicBool::new(false),
            repeated: None,
        };
        let forwarded = url.scheme() == "http"
            && self
                .dialer
                .proxy
                .as_ref()
                .is_some_and(|proxy| proxy.kind == proxy::Kind::Http);
        let written = self.head.written(url, &ask.extra, forwarded);
        let head = loop {
            let due = ask.began + ask.patience;
            match tokio::time::timeout_at(due.into(), self.begin(&ask, &written.sent)).await {
                Ok(Ok(head)) => break Ok(head),
                Ok(Err(NoHeadYet::Fault(fault))) => break Err(fault),
                Err(_) => break Err(Fault::timeout(host, ask.connecting.load(Relaxed), ask.patience)),
                // once: what is sent then is on a new connection, and no second refusal comes here
                Ok(Err(NoHeadYet::Again(why))) => {
                    ask.repeated = Some(why);
                    *repeated = ask.repeated;
                    // to the host it is a request like any other
                    tokio::time::sleep(asked.rest).await;
                    ask.began = Instant::now();
                }
            }
        };
        match head.map_err(|fault| fault.instead_of_h2(self.old.why(&ask.origin)))? {
            Begun::H1(head, _, _) if forwarded && head.status == 407 => {
                let detail = format!("{host}: the proxy refuses: 407: it wants a user and a password, or other ones");
                Err(Fault::new(FetchErrorKind::Connect, detail))
            }
            Begun::H1(head, connection, buffer) => self.read_h1(&ask, head, connection, buffer, written).await,
            Begun::H2(answer, session) => self.read_h2(&ask, &answer, session, written).await,
        }
    }

    /// Sends the request over a kept connection or a new one, and reads the head of the answer.
    async fn begin(&self, ask: &Ask<'_>, request: &[u8]) -> Result<Begun, NoHeadYet> {
        let first = ask.repeated.is_none();
        let kept = if first {
            self.pool.take(&ask.origin, ask.to)
        } else {
            None
        };
        let mut buffer = self.pool.buffer();
        let reused = kept.is_some();
        let line = if let Some(line) = kept {
            line
        } else {
            let http2 = self.http2 && self.old.why(&ask.origin).is_none();
            self.dialer.dial(ask.url, ask.to, http2, &ask.connecting).await?
        };
        match line {
            Line::H1(mut connection) => match h1::exchange::ask(&mut connection.stream, request, &mut buffer).await {
                Ok(head) => Ok(Begun::H1(head, connection, buffer)),
                Err(NoHead::Dropped(_)) if reused => Err(NoHeadYet::Again(Repeat::Dropped)),
                Err(why) => Err(Fault::no_head(ask.host, &why).into()),
            },
            Line::H2(mut session) => match session.ask(self.h2_request(ask)).await {
                Ok(answer) => Ok(Begun::H2(answer, session)),
                Err(NoAnswer::Dropped(_)) if reused => Err(NoHeadYet::Again(Repeat::Dropped)),
                Err(NoAnswer::Refused(_)) if first => Err(NoHeadYet::Again(Repeat::Refused)),
                Err(why) => {
                    let fault = Fault::no_answer(ask.host, &why);
                    if let NoAnswer::Old(why) = why {
                        self.old.learn(&ask.origin, &why);
                    }
                    Err(fault.into())
                }
            },
        }
    }

    fn h2_request(&self, ask: &Ask<'_>) -> session::Request {
        session::Request {
            authority: head::authority(ask.url),
            path: head::target(ask.url),
            headers: self.head.map(&ask.extra),
        }
    }

    async fn first_address(&self, url: &Url) -> Result<IpAddr, Fault> {
        let host = url.host_str().unwrap_or_default();
        self.dialer.judge_host(host)?;
        if self.dialer.is_blind() {
            let detail = format!("{host}: its address is known to the proxy alone");
            return Err(Fault::new(FetchErrorKind::Dns, detail));
        }
        let port = url.port_or_known_default().unwrap_or(80);
        let patience = self.settings.header_timeout;
        match tokio::time::timeout(patience, self.dialer.addresses(host, port, None)).await {
            Ok(found) => {
                let first = found?.front().map(SocketAddr::ip);
                first.ok_or_else(|| Fault::new(FetchErrorKind::Dns, format!("{host}: no address")))
            }
            Err(_) => Err(Fault::timeout(host, true, patience)),
        }
    }
}

impl fmt::Debug for HttpFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFetcher")
            .field("user_agent", &self.settings.user_agent)
            .finish_non_exhaustive()
    }
}

impl Fetcher for HttpFetcher {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let asked = Asked {
            href: request.url.href(),
            via: request.via.as_deref(),
            to: request.to,
            cookie: request.cookie.as_deref(),
            filter: request.filter,
            rest: request.rest,
        };
        self.fetch_from(&asked).await
    }

    async fn look_up(&self, url: &CrawlUrl) -> Result<IpAddr, FetchError> {
        let began = Instant::now();
        let found = match parse(url.href()) {
            Ok(url) => self.first_address(&url).await,
            Err(fault) => Err(fault),
        };
        found.map_err(|fault| fault.told(self.clock.at(began), began.elapsed(), None))
    }
}

fn parse(href: &str) -> Result<Url, Fault> {
    let fault = |why: &str| Fault::new(FetchErrorKind::Protocol, format!("{href}: {why}"));
    let url = Url::parse(href).map_err(|e| fault(&e.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(fault("neither http nor https"));
    }
    Ok(url)
}

/// Scheme, host and port.
fn origin(url: &Url) -> String {
    let port = url.port_or_known_default().unwrap_or(80);
    format!("{}://{}:{port}", url.scheme(), url.host_str().unwrap_or_default())
}

/// The system's time, read once, and a clock that never steps back from there on.
struct Clock {
    epoch: Time,
    anchor: Instant,
}

impl Clock {
    fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            epoch: Time::default() + since_epoch,
            anchor: Instant::now(),
        }
    }

    fn at(&self, instant: Instant) -> Time {
        self.epoch + instant.saturating_duration_since(self.anchor)
    }
}
