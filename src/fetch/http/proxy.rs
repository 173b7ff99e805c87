//! Ways through a proxy: HTTP (RFC 9110 section 9.3.6) and SOCKS 5 (RFC 1928, RFC 1929).

use std::net::{IpAddr, SocketAddr};

use bytes::BytesMut;
use data_encoding::BASE64;
use reqwest::Url;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::super::FetchErrorKind;
use super::fault::{self, Fault};
use super::h1::exchange::{self, NoHead};
use super::stream::Stream;

/// How a proxy is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `http://`: whole addresses for `http`, `CONNECT` for `https`.
    Http,
    /// `socks5://`: we look names up.
    Socks5,
    /// `socks5h://`: the proxy looks names up.
    Socks5Names,
}

/// A proxy that the user named.
#[derive(Clone)]
pub(super) struct Proxy {
    pub(super) kind: Kind,
    pub(super) host: String,
    pub(super) port: u16,
    /// User and password.
    login: Option<(Vec<u8>, Vec<u8>)>,
}

/// Checks a proxy's address as the user gives it.
///
/// # Errors
/// What was expected.
pub fn proxy(text: &str) -> Result<String, String> {
    Proxy::parse(text).map(|_| text.to_owned())
}

/// Does this proxy look names up, so that no address of a host is known here?
#[must_use]
pub fn looks_up_names(text: &str) -> bool {
    Proxy::parse(text).is_ok_and(|proxy| proxy.looks_up())
}

/// A proxy's address as it may be shown: without its password, and without a user that has none.
#[must_use]
pub fn shown_proxy(text: &str) -> String {
    match Url::parse(text) {
        // neither can fail where there was one
        Ok(mut url) if url.password().is_some() => {
            let _ = url.set_password(Some("redacted"));
            url.into()
        }
        // alone it may be a token
        Ok(mut url) if !url.username().is_empty() => {
            let _ = url.set_username("redacted");
            url.into()
        }
        _ => text.to_owned(),
    }
}

/// Where a connection through a proxy is to lead.
#[derive(Debug, Clone)]
pub(super) enum Target {
    Name(String, u16),
    Address(SocketAddr),
}

impl Proxy {
    /// Reads `http://`, `socks5://` or `socks5h://`, with `user:password@` if need be.
    ///
    /// # Errors
    /// What was expected, for the user; without the password.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected = "expected http://, socks5:// or socks5h:// with host and port, such as socks5h://127.0.0.1:9050";
        let wrong = || format!("the proxy cannot be used: {expected}");
        let url = Url::parse(text).map_err(|_| wrong())?;
        let (kind, port) = match url.scheme() {
            "http" => (Kind::Http, 80),
            "socks5" => (Kind::Socks5, 1080),
            "socks5h" => (Kind::Socks5Names, 1080),
            other => return Err(format!("the proxy cannot be used: {expected}, found {other}://")),
        };
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        if !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some() {
            return Err(format!(
                "the proxy cannot be used: {expected}, and nothing behind the port"
            ));
        }
        if url.port() == Some(0) {
            return Err(format!("the proxy cannot be used: {expected}; there is no port 0"));
        }
        let login = (!url.username().is_empty() || url.password().is_some())
            .then(|| (unescape(url.username()), unescape(url.password().unwrap_or_default())));
        if kind != Kind::Http
            && login
                .as_ref()
                .is_some_and(|(user, password)| user.len() > 255 || password.len() > 255)
        {
            return Err(
                "the proxy cannot be used: user and password have at most 255 bytes each (RFC 1929)".to_owned(),
            );
        }
        Ok(Self {
            kind,
            host: host.to_owned(),
            port: url.port().unwrap_or(port),
            login,
        })
    }

    /// Does the proxy look names up?
    pub(super) fn looks_up(&self) -> bool {
        self.kind != Kind::Socks5
    }

    /// The value of `Proxy-Authorization`.
    pub(super) fn authorization(&self) -> Option<String> {
        let (user, password) = self.login.as_ref()?;
        Some(basic(user, password))
    }

    /// Asks the proxy, over a connection to it, for a way to `target`.
    pub(super) async fn lead(&self, stream: TcpStream, target: &Target, agent: &str) -> Result<TcpStream, Fault> {
        match self.kind {
            Kind::Http => self.connect(stream, target, agent).await,
            Kind::Socks5 | Kind::Socks5Names => self.socks(stream, target).await,
        }
    }

    async fn connect(&self, stream: TcpStream, target: &Target, agent: &str) -> Result<TcpStream, Fault> {
        let authority = match target {
            Target::Name(host, port) => format!("{host}:{port}"),
            Target::Address(address) => address.to_string(),
        };
        let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: {agent}\r\n");
        if let Some(value) = self.authorization() {
            request.extend(["Proxy-Authorization: ", &value, "\r\n"]);
        }
        request.push_str("\r\n");
        let mut stream = Stream::Plain(stream);
        let mut buffer = BytesMut::new();
        let head = match exchange::ask(&mut stream, request.as_bytes(), &mut buffer).await {
            Ok(head) => head,
            Err(NoHead::Dropped(e) | NoHead::Cut(e)) => {
                return Err(refused(&format!("it closed the connection: {}", fault::words(&e))));
            }
            Err(NoHead::NotHttp(why)) => return Err(refused(&format!("it does not speak HTTP: {}", why.0))),
        };
        match (head.status, stream) {
            (200..=299, Stream::Plain(stream)) if buffer.is_empty() => Ok(stream),
            (200..=299, _) => Err(refused("it talks before it is asked")),
            (407, _) => Err(refused("407: it wants a user and a password, or other ones")),
            (status, _) => Err(refused(&format!("{status} for the way to {authority}"))),
        }
    }

    async fn socks(&self, mut stream: TcpStream, target: &Target) -> Result<TcpStream, Fault> {
        let broken = |e: std::io::Error| refused(&format!("it closed the connection: {}", fault::words(&e)));
        let greeting: &[u8] = if self.login.is_some() {
            &[5, 2, 0, 2]
        } else {
            &[5, 1, 0]
        };
        stream.write_all(greeting).await.map_err(broken)?;
        let mut chosen = [0; 2];
        stream.read_exact(&mut chosen).await.map_err(broken)?;
        match (chosen, &self.login) {
            ([5, 0], _) => {}
            ([5, 2], Some((user, password))) => {
                let mut login = vec![1];
                for text in [user, password] {
                    login.push(u8::try_from(text.len()).unwrap_or(u8::MAX)); // at most 255: see `parse`
                    login.extend_from_slice(text);
                }
                stream.write_all(&login).await.map_err(broken)?;
                let mut verdict = [0; 2];
                stream.read_exact(&mut verdict).await.map_err(broken)?;
                if verdict != [1, 0] {
                    return Err(refused("it does not accept the user or the password"));
                }
            }
            ([5, _], _) => return Err(refused("it wants a user and a password, or a login we do not know")),
            _ => return Err(refused("it does not speak SOCKS 5")),
        }
        stream.write_all(&socks_request(target)?).await.map_err(broken)?;
        let mut reply = [0; 4];
        stream.read_exact(&mut reply).await.map_err(broken)?;
        let [version, code, _, kind] = reply;
        if version != 5 {
            return Err(refused("it does not speak SOCKS 5"));
        }
        if code != 0 {
            return Err(refused(socks_words(code)));
        }
        // the address it uses: of no use here, but it stands before the first byte of the server
        let length = match kind {
            1 => 4,
            3 => usize::from(stream.read_u8().await.map_err(broken)?),
            4 => 16,
            _ => return Err(refused("it does not speak SOCKS 5")),
        };
        let mut bound = vec![0; length + 2];
        stream.read_exact(&mut bound).await.map_err(broken)?;
        // what follows at once would be taken for an answer to a request that was not made yet
        match stream.try_read(&mut [0]) {
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Ok(stream),
            Err(e) => Err(broken(e)),
            Ok(0) => Err(broken(std::io::ErrorKind::UnexpectedEof.into())),
            Ok(_) => Err(refused("it talks before it is asked")),
        }
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {}:{}", self.kind, self.host, self.port)
    }
}

fn refused(why: &str) -> Fault {
    Fault::new(FetchErrorKind::Connect, format!("the proxy refuses: {why}"))
}

fn socks_request(target: &Target) -> Result<Vec<u8>, Fault> {
    let mut request = vec![5, 1, 0];
    let port = match target {
        Target::Name(name, port) => {
            let length = u8::try_from(name.len()).map_err(|_| refused("the name is longer than 255 bytes"))?;
            request.extend_from_slice(&[3, length]);
            request.extend_from_slice(name.as_bytes());
            *port
        }
        Target::Address(address) => {
            match address.ip() {
                IpAddr::V4(ip) => {
                    request.push(1);
                    request.extend_from_slice(&ip.octets());
                }
                IpAddr::V6(ip) => {
                    request.push(4);
                    request.extend_from_slice(&ip.octets());
                }
            }
            address.port()
        }
    };
    request.extend_from_slice(&port.to_be_bytes());
    Ok(request)
}

/// RFC 1928 section 6.
fn socks_words(code: u8) -> &'static str {
    match code {
        2 => "its rules do not allow the connection",
        3 => "network unreachable",
        4 => "host unreachable",
        5 => "the server refused the connection",
        6 => "the way is too long",
        7 | 8 => "it cannot do what was asked",
        _ => "general failure",
    }
}

/// The value of an `Authorization` header (RFC 7617).
pub(super) fn basic(user: &[u8], password: &[u8]) -> String {
    format!("Basic {}", BASE64.encode(&[user, b":", password].concat()))
}

/// `%XX` undone.
fn unescape(text: &str) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        match (first, tail) {
            (b'%', [a, b, after @ ..]) if hex(*a).is_some() && hex(*b).is_some() => {
                plain.push(hex(*a).unwrap_or(0) << 4 | hex(*b).unwrap_or(0));
                rest = after;
            }
            _ => {
                plain.push(*first);
                rest = tail;
            }
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_are_read_with_their_login() {
        let proxy = Proxy::parse("http://us%65r:p%40ss@proxy.test:8080").unwrap();
        assert_eq!(
            (proxy.kind, proxy.host.as_str(), proxy.port),
            (Kind::Http, "proxy.test", 8080)
        );
        assert_eq!(proxy.authorization().unwrap(), basic(b"user", b"p@ss"));
        assert!(!format!("{proxy:?}").contains("p@ss"));
        assert_eq!(shown_proxy("http://user:p%40ss@h:1"), "http://user:redacted@h:1/");
        assert_eq!(shown_proxy("socks5h://h:1"), "socks5h://h:1");
        assert_eq!(shown_proxy("http://token@h:1"), "http://redacted@h:1/");
        assert_eq!(shown_proxy("http://:p@h:1"), "http://:redacted@h:1/");
        assert!(looks_up_names("socks5h://h:1") && !looks_up_names("socks5://h:1"));
        let proxy = Proxy::parse("socks5://127.0.0.1").unwrap();
        assert_eq!((proxy.kind, proxy.port, proxy.looks_up()), (Kind::Socks5, 1080, false));
        assert!(Proxy::parse("socks5h://[::1]:9050").unwrap().looks_up());
        let long = format!("socks5://u:{}@h", "p".repeat(256));
        for text in [
            "::",
            "proxy:8080",
            "https://secret:secret@p:1",
            "ftp://p",
            "socks5:///",
            "socks5://h:0",
            "http://h:0",
            "http://h:1/path",
            "http://h:1?query",
            "socks5h://h:1#fragment",
            "socks5h://h:1/x",
            &long,
        ] {
            let error = Proxy::parse(text).unwrap_err();
            assert!(
                error.starts_with("the proxy cannot be used") && !error.contains("secret:"),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn names_and_addresses_are_asked_for_by_their_bytes() {
        let name = socks_request(&Target::Name("a.test".to_owned(), 443)).unwrap();
        assert_eq!(name, b"\x05\x01\x00\x03\x06a.test\x01\xbb");
        let address = socks_request(&Target::Address("[::1]:80".parse().unwrap())).unwrap();
        assert_eq!((address.len(), address[3]), (22, 4));
        assert!(socks_request(&Target::Name("x".repeat(256), 1)).is_err());
    }
}
