//! HTTP through `reqwest`, its own redirects, retries and decoding off.
//!
//! What is asked for leaves once and what comes back is handed on as it is: redirects are links, retries are the
//! crawl's business, content codings are undone by `decode.rs` from the bytes that the archive also gets. The one
//! thing repeated here is a request that a server dropped by closing a kept-alive connection at the moment of its
//! reuse (RFC 9112 section 9.3.1): it is sent once more on a connection of its own, and no page is lost to it.
//!
//! What the client hides, for those who read `Response::head`: the spelling of header names (written here in their
//! usual form, `Content-Type`), the place of a repeated header among others (repeats stand together at the first),
//! folds and stray lines among the headers (unfolded and left out), interim 1xx answers, and chunk framing with its
//! trailers; a reason phrase with bytes outside ASCII comes out empty. All other values are byte-exact.

mod body;
mod connect;
mod fault;
mod head;
mod pool;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::{Client, Method, Proxy, Url};

use super::body::Spool;
use super::dns::{AddressPolicy, Cidr, NameError, Names};
use super::{FetchError, FetchErrorKind, Fetcher, Request, Response};
use crate::clock::Time;
use crate::url::CrawlUrl;
use connect::Attempt;
use fault::Fault;
use head::RequestHead;
use pool::Pool;

/// Header lines of one answer; hyper keeps room for as many per answer read (64 bytes each).
const MAX_HEADER_LINES: usize = 1_024;

/// The settings of the network.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The `From` header, if the contact is a mail address.
    pub from: Option<String>,
    /// Further headers on every request, in order. One of our own names (`Accept`, say) replaces ours.
    pub headers: Vec<(String, String)>,
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
    /// An HTTP proxy for all requests. Names are then looked up by the proxy, which has to guard its own network;
    /// addresses in URLs and names of loopback are refused here all the same.
    pub proxy: Option<String>,
}

/// The network.
pub struct HttpFetcher {
    settings: HttpSettings,
    head: RequestHead,
    names: Names,
    /// Keeps connections.
    pool: Pool,
    /// Keeps none: for the repeat of a request that a kept connection swallowed.
    fresh: Client,
    clock: Clock,
}

impl HttpFetcher {
    /// Builds the client. Opens nothing yet.
    ///
    /// # Errors
    /// A header or proxy that cannot be used, in words for the user.
    pub fn new(settings: HttpSettings) -> Result<Self, String> {
        let head = RequestHead::new(&settings)?;
        let names = names(&settings);
        let pool = Pool::new(&settings, &names)?;
        let fresh = client(&settings, &names, 0)?;
        Ok(Self {
            settings,
            head,
            names,
            pool,
            fresh,
            clock: Clock::new(),
        })
    }

    /// Fetches an absolute `http` or `https` address.
    ///
    /// # Errors
    /// [`FetchError`] where no head of an answer came.
    pub async fn fetch_href(&self, href: &str, via: Option<&str>) -> Result<Response, FetchError> {
        self.fetch_with(href, via, None, None).await
    }

    async fn fetch_with(
        &self,
        href: &str,
        via: Option<&str>,
        to: Option<IpAddr>,
        cookie: Option<&str>,
    ) -> Result<Response, FetchError> {
        let began = Instant::now();
        let exchange = self.exchange(href, via, to, cookie, began).await;
        let (started, took) = (self.clock.at(began), began.elapsed());
        match exchange {
            Ok(response) => Ok(Response {
                started,
                took,
                ..response
            }),
            Err(Fault { kind, detail }) => Err(FetchError {
                kind,
                detail,
                started,
                took,
            }),
        }
    }

    async fn exchange(
        &self,
        href: &str,
        via: Option<&str>,
        to: Option<IpAddr>,
        cookie: Option<&str>,
        began: Instant,
    ) -> Result<Response, Fault> {
        let url = Url::parse(href).map_err(|e| Fault::new(FetchErrorKind::Protocol, format!("{href}: {e}")))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        self.judge_host(&host)?;
        let headers = self.head.headers(&url, via, cookie);
        let request_head = head::written(&url, &headers, self.settings.proxy.is_some());

        let attempt = Attempt::new(url.port_or_known_default(), to);
        let request = |url: Url| {
            let mut request = reqwest::Request::new(Method::GET, url);
            request.headers_mut().clone_from(&headers);
            request
        };
        let patience = self.settings.header_timeout.min(self.settings.timeout);
        let head = async {
            let client = self.pool.client();
            let outcome = connect::noting(&attempt, client.execute(request(url.clone()))).await;
            if !attempt.reused() {
                self.pool.opened();
            }
            match outcome {
                Err(e) if attempt.reused() && fault::before_any_answer(&e) => {
                    connect::noting(&attempt, self.fresh.execute(request(url))).await
                }
                outcome => outcome,
            }
        };
        let Ok(outcome) = tokio::time::timeout(patience, head).await else {
            return Err(Fault::timeout(&host, &attempt, patience));
        };
        let mut response = outcome.map_err(|e| Fault::of(&e, &host, &attempt, patience))?;
        let remote = self.judge_remote(&host, response.remote_addr())?;

        let status = response.status().as_u16();
        let (head, headers) = head::received(&response);
        let deadline = began + self.settings.timeout;
        let gathered = body::gather(&mut response, &self.settings, deadline).await;
        let (body, truncated) = gathered.map_err(|error| Fault::new(FetchErrorKind::Spool, error.to_string()))?;
        let (started, took) = (Time::default(), Duration::ZERO); // the caller's: they span the whole exchange
        Ok(Response {
            status,
            head,
            headers,
            body,
            truncated,
            remote,
            request_head,
            started,
            took,
        })
    }

    async fn address_of(&self, url: &CrawlUrl) -> Result<IpAddr, Fault> {
        self.judge_host(url.host())?;
        let bare = url.host().trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse() {
            return Ok(address);
        }
        let found = self.names.look_up(url.host(), Some(url.port()));
        let found = tokio::time::timeout(self.settings.header_timeout, found).await;
        let found = found.map_err(|_| Fault::new(FetchErrorKind::Timeout, format!("{}: no address", url.host())))?;
        let found = found.map_err(|error| Fault::name(url.host(), &error))?;
        let first = found.first().map(SocketAddr::ip);
        first.ok_or_else(|| Fault::new(FetchErrorKind::Dns, format!("{}: no address", url.host())))
    }

    /// Judges a host that no look-up will judge: see the head of `dns.rs`.
    fn judge_host(&self, host: &str) -> Result<(), Fault> {
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
        let address = bare.parse::<IpAddr>().ok();
        let private = match address {
            Some(address) => (!self.settings.addresses.allows(address)).then_some(address),
            None if self.settings.proxy.is_some() => {
                super::dns::loopback(host).filter(|address| !self.settings.addresses.allows(*address))
            }
            None => None,
        };
        private.map_or(Ok(()), |address| Err(Fault::name(host, &NameError::Private(address))))
    }

    /// Judges the address that the connection really goes to. Behind a proxy that is the proxy's, which says nothing.
    fn judge_remote(&self, host: &str, remote: Option<SocketAddr>) -> Result<Option<IpAddr>, Fault> {
        match remote.map(|r| r.ip()) {
            _ if self.settings.proxy.is_some() => Ok(None),
            Some(ip) if !self.settings.addresses.allows(ip) => Err(Fault::name(host, &NameError::Private(ip))),
            ip => Ok(ip),
        }
    }
}

impl fmt::Debug for HttpFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpFetcher")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Fetcher for HttpFetcher {
    async fn fetch(&self, request: Request) -> Result<Response, FetchError> {
        let Request { url, via, to, cookie } = request;
        self.fetch_with(url.href(), via.as_deref(), to, cookie.as_deref()).await
    }

    async fn look_up(&self, url: &CrawlUrl) -> Result<IpAddr, FetchError> {
        let began = Instant::now();
        let found = self.address_of(url).await;
        found.map_err(|Fault { kind, detail }| FetchError {
            kind,
            detail,
            started: self.clock.at(began),
            took: began.elapsed(),
        })
    }
}

fn client(settings: &HttpSettings, names: &Names, idle_per_host: usize) -> Result<Client, String> {
    let mut builder = Client::builder()
        .tls_backend_preconfigured(tls()?)
        .dns_resolver(connect::Resolver(names.clone()))
        .connector_layer(connect::NoteLayer)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        // names with several addresses share this time among them, so that a dead one does not eat it all
        .connect_timeout(settings.header_timeout)
        .pool_max_idle_per_host(idle_per_host)
        .pool_idle_timeout(settings.idle_timeout)
        .http1_title_case_headers()
        .http1_max_headers(MAX_HEADER_LINES)
        // what browsers read, we read
        .http1_ignore_invalid_headers_in_responses(true)
        .http1_allow_obsolete_multiline_headers_in_responses(true)
        .http1_allow_spaces_after_header_name_in_responses(true);
    if let Some(proxy) = &settings.proxy {
        builder = builder.proxy(Proxy::all(proxy).map_err(|e| format!("proxy {proxy:?}: {}", fault::words(&e)))?);
    }
    builder
        .build()
        .map_err(|e| format!("the HTTP client cannot be set up: {}", fault::words(&e)))
}

/// The public roots of the Web, TLS 1.2 and 1.3, HTTP/1.1 alone.
fn tls() -> Result<rustls::ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.to_vec(),
    };
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Behind a proxy the only name that is looked up is the proxy's own, which the user chose: any address will do.
fn names(settings: &HttpSettings) -> Names {
    if settings.proxy.is_none() {
        return Names::new(settings.addresses.clone(), &settings.pins);
    }
    Names::new(
        AddressPolicy {
            allow: vec![Cidr::ALL_V4, Cidr::ALL_V6],
        },
        &[],
    )
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
