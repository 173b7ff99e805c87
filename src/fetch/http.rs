//! HTTP through `reqwest`, its own redirects, retries and decoding off.

use std::net::SocketAddr;
use std::time::Duration;

use super::dns::AddressPolicy;
use super::{FetchError, Fetcher, Request, Response};

/// The settings of the network.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// The `User-Agent` header.
    pub user_agent: String,
    /// The `From` header, if the contact is a mail address.
    pub from: Option<String>,
    /// Further headers on every request, in order.
    pub headers: Vec<(String, String)>,
    /// Time for name look-up, connection and head.
    pub header_timeout: Duration,
    /// Time for the whole exchange.
    pub timeout: Duration,
    /// Below this rate, averaged over `slow_after`, a body is cut off as too slow; bytes a second.
    pub min_rate: u64,
    /// How long a body may be slow before it is cut off.
    pub slow_after: Duration,
    /// Cap on a body as received, bytes.
    pub max_body: u64,
    /// Idle connections kept to one host.
    pub per_host_connections: usize,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
    /// Host, port and address pinned by `--resolve`.
    pub pins: Vec<(String, u16, SocketAddr)>,
    /// Which addresses may be connected to.
    pub addresses: AddressPolicy,
    /// An HTTP proxy for all requests.
    pub proxy: Option<String>,
}

/// The network.
#[derive(Debug)]
pub struct HttpFetcher(());

impl HttpFetcher {
    /// Builds the client.
    ///
    /// # Errors
    /// A header or proxy that cannot be used, in words for the user.
    pub fn new(_settings: HttpSettings) -> Result<Self, String> {
        todo!()
    }
}

impl Fetcher for HttpFetcher {
    async fn fetch(&self, _request: Request) -> Result<Response, FetchError> {
        todo!()
    }
}
