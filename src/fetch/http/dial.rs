//! New connections: addresses judged, tried in turn (RFC 8305), led through a proxy, wrapped in TLS.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use reqwest::Url;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::super::FetchErrorKind;
use super::super::dns::{AddressPolicy, Cidr, NameError, Names, local, loopback};
use super::HttpSettings;
use super::fault::{self, Fault};
use super::h1::exchange::NoHead;
use super::h2::session::Session;
use super::pool::Line;
use super::proxy::{Proxy, Target};
use super::stream::{Connection, Stream};
use super::tls;

/// An address gets so long before the next one is tried beside it (RFC 8305 section 5).
const STAGGER: Duration = Duration::from_millis(250);
/// How long a proxy may take to accept a connection: less than what a host has for its answer, so that the fault is told
/// from one of the host.
const PROXY_PATIENCE: Duration = Duration::from_secs(8);

/// Makes connections.
pub(super) struct Dialer {
    addresses: AddressPolicy,
    names: Names,
    pub(super) proxy: Option<Proxy>,
    /// Looks up the proxy's own name: the user chose it, any address will do.
    proxy_names: Names,
    /// Offers HTTP/2 and HTTP/1.1.
    any: TlsConnector,
    /// Offers HTTP/1.1 alone.
    old: TlsConnector,
    agent: String,
}

impl Dialer {
    pub(super) fn new(settings: &HttpSettings, names: &Names) -> Result<Self, String> {
        let everywhere = AddressPolicy {
            allow: vec![Cidr::ALL_V4, Cidr::ALL_V6],
        };
        let connector = |protocols: &[&[u8]]| -> Result<TlsConnector, String> {
            Ok(Arc::new(tls::config(protocols, settings.insecure_tls)?).into())
        };
        Ok(Self {
            addresses: settings.addresses.clone(),
            names: names.clone(),
            proxy: settings.proxy.as_deref().map(Proxy::parse).transpose()?,
            proxy_names: Names::new(everywhere, &[]),
            any: connector(&[b"h2", b"http/1.1"])?,
            old: connector(&[b"http/1.1"])?,
            agent: settings.user_agent.clone(),
        })
    }

    /// Does a proxy look names up, so that no address is known here?
    pub(super) fn is_blind(&self) -> bool {
        self.proxy.as_ref().is_some_and(Proxy::looks_up)
    }

    /// Judges a host that no look-up will judge: see the head of `dns.rs`.
    pub(super) fn judge_host(&self, host: &str) -> Result<(), Fault> {
        judge_host(&self.addresses, self.is_blind(), host).map_err(|error| Fault::name(host, &error))
    }

    /// The addresses of a host that may be connected to, in the order in which they are tried; `to` leaves one.
    pub(super) async fn addresses(
        &self,
        host: &str,
        port: u16,
        to: Option<IpAddr>,
    ) -> Result<VecDeque<SocketAddr>, Fault> {
        self.judge_host(host)?;
        let found = match literal(host) {
            Some(address) => vec![SocketAddr::new(address, port)],
            None => self
                .names
                .look_up(host, Some(port))
                .await
                .map_err(|e| Fault::name(host, &e))?,
        };
        let mut found = interleaved(found, port);
        if let Some(to) = to {
            // an address that the name has no more keeps its turn, if it may be connected to
            if !self.addresses.allows(to) {
                return Err(Fault::name(host, &NameError::Private(to)));
            }
            let known = found.into_iter().find(|address| address.ip() == to);
            found = [known.unwrap_or_else(|| SocketAddr::new(to, port))].into();
        }
        Ok(found)
    }

    /// A new connection to the host of `url`. `connecting` is set for as long as it is not made.
    pub(super) async fn dial(
        &self,
        url: &Url,
        to: Option<IpAddr>,
        http2: bool,
        connecting: &AtomicBool,
    ) -> Result<Line, Fault> {
        connecting.store(true, Relaxed);
        let host = url.host_str().unwrap_or_default();
        let port = url.port_or_known_default().unwrap_or(80);
        let secure = url.scheme() == "https";
        let (stream, remote) = match &self.proxy {
            None => {
                let addresses = self.addresses(host, port, to).await?;
                let stream = race(addresses)
                    .await
                    .map_err(|e| Fault::new(FetchErrorKind::Connect, format!("{host}: {}", fault::words(&e))))?;
                let remote = stream.peer_addr().ok().map(|peer| peer.ip());
                // the net below both checks: what the kernel says
                if let Some(ip) = remote.filter(|ip| !self.addresses.allows(*ip)) {
                    return Err(Fault::name(host, &NameError::Private(ip)));
                }
                (stream, remote)
            }
            Some(proxy) => self.through(proxy, host, port, to, secure).await?,
        };
        let mut connection = Connection {
            stream: Stream::Plain(stream),
            remote,
            tls: None,
            cipher: None,
        };
        if secure {
            connection = self.secure(connection, host, http2).await?;
            if let Stream::Tls(stream) = &connection.stream
                && stream.get_ref().1.alpn_protocol() == Some(b"h2")
            {
                let session = Session::open(connection).await;
                let session = session.map_err(|e| Fault::no_head(host, &NoHead::Dropped(e)))?;
                connecting.store(false, Relaxed);
                return Ok(Line::H2(Box::new(session)));
            }
        }
        connecting.store(false, Relaxed);
        Ok(Line::H1(connection))
    }

    async fn through(
        &self,
        proxy: &Proxy,
        host: &str,
        port: u16,
        to: Option<IpAddr>,
        secure: bool,
    ) -> Result<(TcpStream, Option<IpAddr>), Fault> {
        let target = if self.is_blind() {
            self.judge_host(host)?;
            match literal(host) {
                Some(ip) => Target::Address(SocketAddr::new(ip, port)),
                None => Target::Name(host.to_owned(), port),
            }
        } else {
            let first = self.addresses(host, port, to).await?.pop_front();
            Target::Address(first.ok_or_else(|| Fault::name(host, &NameError::Failed("no address".to_owned())))?)
        };
        let unreachable = |why: &str| {
            let detail = format!("{host}: the proxy {}:{} is not reached: {why}", proxy.host, proxy.port);
            Fault::new(FetchErrorKind::Proxy, detail)
        };
        let found = match literal(&proxy.host) {
            Some(ip) => vec![SocketAddr::new(ip, proxy.port)],
            None => self
                .proxy_names
                .look_up(&proxy.host, None)
                .await
                .map_err(|e| unreachable(&e.to_string()))?,
        };
        let stream = tokio::time::timeout(PROXY_PATIENCE, race(interleaved(found, proxy.port)))
            .await
            .map_err(|_| unreachable("it does not answer"))?
            .map_err(|e| unreachable(&fault::words(&e)))?;
        if proxy.kind == super::proxy::Kind::Http && !secure {
            return Ok((stream, None)); // it takes whole addresses
        }
        let stream = proxy
            .lead(stream, &target, &self.agent)
            .await
            .map_err(|fault| Fault::new(fault.kind, format!("{host}: {}", fault.detail)))?;
        let remote = match target {
            Target::Address(address) => Some(address.ip()),
            Target::Name(..) => None,
        };
        Ok((stream, remote))
    }

    async fn secure(&self, connection: Connection, host: &str, http2: bool) -> Result<Connection, Fault> {
        let Stream::Plain(tcp) = connection.stream else {
            return Ok(connection);
        };
        let fault = |why: &str| Fault::new(FetchErrorKind::Tls, format!("{host}: TLS failed: {why}"));
        let name = match literal(host) {
            Some(ip) => ServerName::from(ip),
            None => ServerName::try_from(host.strip_suffix('.').unwrap_or(host).to_owned())
                .map_err(|_| fault("no certificate can hold such a name"))?,
        };
        let connector = if http2 { &self.any } else { &self.old };
        let stream = connector.connect(name, tcp).await.map_err(|e| {
            fault(&match fault::find::<rustls::Error>(&e) {
                Some(error) => tls::words(error),
                None => format!("handshake failure: {}", fault::words(&e)),
            })
        })?;
        let session = stream.get_ref().1;
        Ok(Connection {
            tls: tls::version(session.protocol_version()),
            cipher: session
                .negotiated_cipher_suite()
                .and_then(|suite| tls::cipher(suite.suite())),
            stream: Stream::Tls(Box::new(stream)),
            ..connection
        })
    }
}

/// Judges a host that no look-up will judge: an address, or any name if the way is `blind`, where a proxy looks it up.
pub(super) fn judge_host(addresses: &AddressPolicy, blind: bool, host: &str) -> Result<(), NameError> {
    match literal(host) {
        Some(address) if !addresses.allows(address) => Err(NameError::Private(address)),
        Some(_) => Ok(()),
        None if !blind => Ok(()),
        None => match loopback(host) {
            Some(address) if !addresses.allows(address) => Err(NameError::Private(address)),
            None if local(host) && !addresses.allows_private() => Err(NameError::Local(host.to_owned())),
            _ => Ok(()),
        },
    }
}

/// The address that a host is, if it is one.
fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

/// The families in turn, beginning with the first one's (RFC 8305 section 4). A pin brings its own port.
fn interleaved(found: Vec<SocketAddr>, port: u16) -> VecDeque<SocketAddr> {
    let first_is_v6 = found.first().is_some_and(SocketAddr::is_ipv6);
    let (mut own, mut other): (VecDeque<_>, VecDeque<_>) = found
        .into_iter()
        .map(|mut address| {
            if address.port() == 0 {
                address.set_port(port);
            }
            address
        })
        .partition(|address| address.is_ipv6() == first_is_v6);
    let mut order = VecDeque::with_capacity(own.len() + other.len());
    while !own.is_empty() || !other.is_empty() {
        order.extend(own.pop_front());
        order.extend(other.pop_front());
    }
    order
}

/// The first connection that is made; the next address begins when the one before failed or took its time.
async fn race(mut waiting: VecDeque<SocketAddr>) -> io::Result<TcpStream> {
    let mut running = FuturesUnordered::new();
    let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
    loop {
        match waiting.pop_front() {
            Some(address) => running.push(TcpStream::connect(address)),
            None if running.is_empty() => return Err(failed),
            None => {}
        }
        let last = waiting.is_empty();
        tokio::select! {
            Some(done) = running.next() => match done {
                Ok(stream) => {
                    let _ = stream.set_nodelay(true); // slower, but no fault
                    return Ok(stream);
                }
                Err(e) => failed = e,
            },
            () = tokio::time::sleep(STAGGER), if !last => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_take_turns() {
        let order = |found: &[&str]| -> Vec<String> {
            let found = found.iter().map(|text| text.parse().unwrap()).collect();
            interleaved(found, 80).iter().map(ToString::to_string).collect()
        };
        assert_eq!(
            order(&["[::1]:0", "[::2]:0", "[::3]:0", "1.1.1.1:0", "2.2.2.2:99"]),
            ["[::1]:80", "1.1.1.1:80", "[::2]:80", "2.2.2.2:99", "[::3]:80"]
        );
        assert_eq!(order(&["1.1.1.1:0", "[::1]:0"]), ["1.1.1.1:80", "[::1]:80"]);
    }

    #[tokio::test]
    async fn the_next_address_does_not_wait_for_a_dead_one() {
        let open = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = open.local_addr().unwrap();
        // a refusal starts the next one at once
        let closed: SocketAddr = "127.0.0.1:1".parse().unwrap();
        let began = std::time::Instant::now();
        let stream = race([closed, address].into()).await.unwrap();
        assert_eq!(stream.peer_addr().unwrap(), address);
        assert!(began.elapsed() < STAGGER);
        let refused = race([closed].into()).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(race(VecDeque::new()).await.is_err());
    }
}
