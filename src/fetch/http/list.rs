//! A list of seeds from the Web, as `wget -i` takes one: read before a crawl begins, by a plain client, under the same
//! guard of addresses.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Response, Url, retry};

use super::super::dns::{AddressPolicy, Cidr, NameError, Names};
use super::auth::Auth;
use super::dial;
use super::fault;
use super::proxy::Proxy;
use super::tls;

/// Longest list, bytes.
pub const MAX_LIST_BYTES: usize = 64 << 20;
/// Redirects followed from the address of a list to the list.
pub const MAX_LIST_REDIRECTS: usize = 10;

/// How lists are fetched. What is not named here (robots.txt, cookies, the delay) is for pages that a crawl finds.
#[derive(Debug, Clone)]
pub struct ListSettings {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// Further headers on every request.
    pub headers: Vec<(String, String)>,
    /// User and password for hosts.
    pub auth: Vec<Auth>,
    /// Time for a connection, and the longest silence.
    pub header_timeout: Duration,
    /// Time for the whole.
    pub timeout: Duration,
    /// Host, port and address pinned by `--resolve`.
    pub pins: Vec<(String, u16, SocketAddr)>,
    /// Which addresses may be connected to.
    pub addresses: AddressPolicy,
    /// A proxy, as in [`super::HttpSettings`].
    pub proxy: Option<String>,
    /// Believe every certificate.
    pub insecure_tls: bool,
    /// Time between a redirect and the request that follows it.
    pub pause: Duration,
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// What is there is no list that can be used, or may not be asked for.
    #[error("{0}")]
    Unusable(String),
    /// The network or the server has none now.
    #[error("{0}")]
    Unreached(String),
}

/// Fetches a list, of [`MAX_LIST_BYTES`] at most.
///
/// # Errors
/// [`ListError`]: a name or an address that is no public one, no answer in time, any status but 200, a page, a coded or
/// cut body, too many bytes.
pub async fn fetch(address: &str, settings: &ListSettings) -> Result<Vec<u8>, ListError> {
    let mut url = Url::parse(address).map_err(|e| ListError::Unusable(e.to_string()))?;
    let guard = Arc::new(Guard::new(settings).map_err(ListError::Unusable)?);
    let client = client(settings, &guard).map_err(ListError::Unusable)?;
    for hop in 0..=MAX_LIST_REDIRECTS {
        if hop > 0 {
            tokio::time::sleep(settings.pause).await;
        }
        guard.judge(&url).map_err(ListError::Unusable)?;
        let answer = ask(&client, &url, settings, &guard).await?;
        let Some(next) = target(&answer) else {
            judge_head(&answer)?;
            return body(answer).await;
        };
        url = next.map_err(ListError::Unusable)?;
    }
    Err(ListError::Unusable(format!("more than {MAX_LIST_REDIRECTS} redirects")))
}

async fn ask(client: &Client, url: &Url, settings: &ListSettings, guard: &Guard) -> Result<Response, ListError> {
    let mut request = client.get(url.clone());
    let known = settings.auth.iter().filter(|auth| auth.is_for(url));
    if let Some(auth) = known.max_by_key(|auth| auth.exactness()) {
        request = request.basic_auth(&auth.user, Some(&auth.password));
    }
    let answer = request.send().await.map_err(|e| why(&e))?;
    match answer.remote_addr() {
        // the net below the look-up: what the kernel says
        Some(remote) if guard.proxy.is_none() && !guard.addresses.allows(remote.ip()) => {
            Err(ListError::Unusable(NameError::Private(remote.ip()).to_string()))
        }
        _ => Ok(answer),
    }
}

/// Where a redirect leads, if the answer is one.
fn target(answer: &Response) -> Option<Result<Url, String>> {
    if !matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let to = answer.headers().get(LOCATION)?.to_str();
    Some(match to {
        Ok(to) => answer.url().join(to).map_err(|e| format!("redirected to {to}: {e}")),
        Err(_) => Err("redirected to what is no address".to_owned()),
    })
}

fn judge_head(answer: &Response) -> Result<(), ListError> {
    if answer.status() != 200 {
        return Err(ListError::Unreached(format!("the server says {}", answer.status())));
    }
    let value = |name| answer.headers().get(name).and_then(|value| value.to_str().ok());
    let kind = value(CONTENT_TYPE).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if matches!(kind.as_str(), "text/html" | "application/xhtml+xml") {
        return Err(ListError::Unusable(
            "a page, not a list with one URL a line: to crawl from it give it by --seed".to_owned(),
        ));
    }
    match value(CONTENT_ENCODING).unwrap_or("identity") {
        "" | "identity" => Ok(()),
        coding => Err(ListError::Unusable(format!(
            "coded as {coding}, which was not asked for"
        ))),
    }
}

async fn body(mut answer: Response) -> Result<Vec<u8>, ListError> {
    let mut bytes = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|e| why(&e))? {
        if bytes.len() + piece.len() > MAX_LIST_BYTES {
            return Err(ListError::Unusable(format!(
                "longer than {MAX_LIST_BYTES} bytes: split it, or save it as a file"
            )));
        }
        bytes.extend_from_slice(&piece);
    }
    Ok(bytes)
}

fn client(settings: &ListSettings, guard: &Arc<Guard>) -> Result<Client, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|e| e.to_string())?;
        headers.append(name, HeaderValue::try_from(value.as_str()).map_err(|e| e.to_string())?);
    }
    let builder = ClientBuilder::new()
        .user_agent(&settings.user_agent)
        .default_headers(headers)
        .tls_backend_preconfigured(tls::config(&[b"http/1.1"], settings.insecure_tls)?)
        .connect_timeout(settings.header_timeout)
        .read_timeout(settings.header_timeout)
        .timeout(settings.timeout)
        .redirect(Policy::none())
        .retry(retry::never())
        .referer(false)
        .no_proxy()
        .dns_resolver(Arc::clone(guard));
    let builder = match &settings.proxy {
        Some(proxy) => builder.proxy(reqwest::Proxy::all(proxy).map_err(|e| words(&e))?),
        None => builder,
    };
    builder.build().map_err(|e| words(&e))
}

/// Judges every host, and looks names up as the crawl does.
struct Guard {
    addresses: AddressPolicy,
    names: Names,
    proxy: Option<Proxy>,
    /// Looks up the proxy's own name: the user chose it, any address will do.
    proxy_names: Names,
}

impl Guard {
    fn new(settings: &ListSettings) -> Result<Self, String> {
        let everywhere = AddressPolicy {
            allow: vec![Cidr::ALL_V4, Cidr::ALL_V6],
        };
        Ok(Self {
            addresses: settings.addresses.clone(),
            names: Names::new(settings.addresses.clone(), &settings.pins),
            proxy: settings.proxy.as_deref().map(Proxy::parse).transpose()?,
            proxy_names: Names::new(everywhere, &[]),
        })
    }

    /// Judges a host that no look-up will judge, and the scheme.
    fn judge(&self, url: &Url) -> Result<(), String> {
        if !url.username().is_empty() || url.password().is_some() {
            return Err("no password may stand in an address: give it by [[auth]]".to_owned());
        }
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{url}: only http and https are fetched"));
        }
        let blind = self.proxy.as_ref().is_some_and(Proxy::looks_up);
        dial::judge_host(&self.addresses, blind, url.host_str().unwrap_or_default()).map_err(|e| e.to_string())
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let of_proxy = self.proxy.as_ref().is_some_and(|proxy| proxy.host == name.as_str());
        let names = if of_proxy { &self.proxy_names } else { &self.names }.clone();
        Box::pin(async move {
            let found = names.look_up(name.as_str(), None).await;
            let found = found.map_err(|e| Refused(e.to_string()))?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}

/// A reason of ours on its way through the client.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Refused(String);

fn why(error: &reqwest::Error) -> ListError {
    ListError::Unreached(words(error))
}

fn words(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    fault::words(error)
}
