//! A TLS server with a certificate of its own making, over HTTP/1.1 byte scripts or HTTP/2.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use futures_util::StreamExt;
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::{ServerConfig, SupportedProtocolVersion, crypto, version};
use tokio_rustls::server::TlsStream;

/// What the server says it speaks, and what it is like.
#[derive(Clone)]
pub(crate) struct Manner {
    /// Offered by ALPN, the first choice first.
    pub(crate) protocols: Vec<&'static str>,
    pub(crate) versions: Vec<&'static SupportedProtocolVersion>,
    /// Sends `close_notify` before it closes.
    pub(crate) polite: bool,
    /// Says that it speaks HTTP/2 and then does not.
    pub(crate) lies: bool,
    /// What is said over HTTP/1.1 after each request head; the connection is then closed.
    pub(crate) answer: Vec<u8>,
    /// What is done with each stream of HTTP/2.
    pub(crate) h2: fn(&Seen) -> H2Step,
    /// Frames that are sent as they are once a stream is begun, instead of all that. Then the connection is kept, or, if
    /// there is nothing, dropped.
    pub(crate) raw: Option<fn(&Seen) -> Vec<u8>>,
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) connection: usize,
    /// Number on its connection, from 0.
    pub(crate) turn: usize,
    pub(crate) path: String,
    pub(crate) protocol: &'static str,
    pub(crate) headers: http::HeaderMap,
    pub(crate) at: Instant,
}

/// What becomes of a stream.
pub(crate) enum H2Step {
    Answer(u16, Vec<(&'static str, &'static str)>, Vec<Bytes>),
    /// Half a body, then a reset.
    Cut,
    Reset(h2::Reason),
    /// The connection is told to go away, without an answer.
    GoAway,
    /// The connection is told to go away with an error, without an answer.
    GoAwayWith(h2::Reason),
    /// The connection is dropped, without a word of TLS.
    Drop,
    /// Nothing is said.
    Silence,
}

/// A frame of HTTP/2 as it is sent.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

pub(crate) fn manner(protocols: &[&'static str]) -> Manner {
    Manner {
        protocols: protocols.to_vec(),
        versions: vec![&version::TLS12, &version::TLS13],
        polite: true,
        lies: false,
        answer: b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecure".to_vec(),
        h2: |_| {
            H2Step::Answer(
                200,
                vec![("content-type", "text/html")],
                vec![Bytes::from_static(b"second")],
            )
        },
        raw: None,
    }
}

/// Frames for a stream that is begun.
pub(crate) type Raw = Arc<dyn Fn(&Seen) -> Vec<u8> + Send + Sync>;

/// The running server. It ends with the test's runtime.
pub(crate) struct SecureServer {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Seen>>>,
}

impl SecureServer {
    pub(crate) async fn start(manner: Manner) -> Self {
        let raw = manner.raw.map(|raw| -> Raw { Arc::new(raw) });
        Self::start_with(manner, raw).await
    }

    /// As [`Self::start`], with frames made by something that knows more.
    pub(crate) async fn start_with(manner: Manner, raw: Option<Raw>) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&key).unwrap().der().clone();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
            .with_protocol_versions(&manner.versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        config.alpn_protocols = manner.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&log);
        tokio::spawn(async move {
            for connection in 0.. {
                let (tcp, _) = listener.accept().await.unwrap();
                let (acceptor, manner, log) = (acceptor.clone(), manner.clone(), Arc::clone(&requests));
                let raw = raw.clone();
                tokio::spawn(async move {
                    // who does not believe the certificate hangs up here
                    if let Ok(stream) = acceptor.accept(tcp).await {
                        let h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2") && !manner.lies;
                        if let Some(raw) = raw.filter(|_| h2) {
                            frames(stream, connection, &*raw, &log).await;
                        } else if h2 {
                            second(stream, connection, &manner, &log).await;
                        } else {
                            first(stream, connection, &manner, &log).await;
                        }
                    }
                });
            }
        });
        Self { address, log }
    }

    pub(crate) fn url(&self, target: &str) -> String {
        format!("https://{}{target}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }
}

async fn first(mut stream: TlsStream<TcpStream>, connection: usize, manner: &Manner, log: &Mutex<Vec<Seen>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let path = String::from_utf8_lossy(&head)
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .to_owned();
    log.lock().unwrap().push(Seen {
        connection,
        turn: 0,
        path,
        protocol: "http/1.1",
        headers: http::HeaderMap::new(),
        at: Instant::now(),
    });
    let _ = stream.write_all(&manner.answer).await;
    let _ = stream.flush().await;
    if manner.polite {
        let _ = stream.shutdown().await;
    } else {
        let _ = stream.get_mut().0.shutdown().await;
    }
}

async fn second(stream: TlsStream<TcpStream>, connection: usize, manner: &Manner, log: &Mutex<Vec<Seen>>) {
    let Ok(mut streams) = h2::server::handshake(stream).await else {
        return;
    };
    let mut turn = 0;
    let mut held = Vec::new();
    while let Some(Ok((request, mut respond))) = streams.accept().await {
        let seen = Seen {
            connection,
            turn,
            path: request.uri().path().to_owned(),
            protocol: "h2",
            headers: request.headers().clone(),
            at: Instant::now(),
        };
        turn += 1;
        log.lock().unwrap().push(seen.clone());
        match (manner.h2)(&seen) {
            H2Step::Answer(status, headers, pieces) => {
                let mut response = http::Response::builder().status(status);
                for (name, value) in headers {
                    response = response.header(name, value);
                }
                let mut body = respond.send_response(response.body(()).unwrap(), false).unwrap();
                for piece in pieces {
                    body.send_data(piece, false).unwrap();
                }
                body.send_data(Bytes::new(), true).unwrap();
            }
            H2Step::Cut => {
                let response = http::Response::new(());
                let mut body = respond.send_response(response, false).unwrap();
                body.send_data(Bytes::from_static(b"half"), false).unwrap();
                // the half is on its way before the stream breaks
                tokio::spawn(async move {
                    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                    body.send_reset(h2::Reason::INTERNAL_ERROR);
                });
            }
            H2Step::Reset(reason) => respond.send_reset(reason),
            H2Step::GoAway => {
                streams.abrupt_shutdown(h2::Reason::NO_ERROR);
                held.push(respond);
            }
            H2Step::GoAwayWith(reason) => {
                streams.abrupt_shutdown(reason);
                held.push(respond);
            }
            H2Step::Drop => return,
            H2Step::Silence => held.push(respond),
        }
    }
}

async fn frames(
    mut stream: TlsStream<TcpStream>,
    connection: usize,
    raw: &(dyn Fn(&Seen) -> Vec<u8> + Send + Sync),
    log: &Mutex<Vec<Seen>>,
) {
    let mut preface = [0; 24];
    if stream.read_exact(&mut preface).await.is_err() {
        return;
    }
    let mut codec = h2::Codec::<_, Bytes>::new(stream);
    let mut turn = 0;
    while let Some(Ok(frame)) = codec.next().await {
        let h2::frame::Frame::Headers(head) = frame else {
            continue;
        };
        let (pseudo, headers) = head.into_parts();
        let seen = Seen {
            connection,
            turn,
            path: pseudo.path.unwrap().to_string(),
            protocol: "h2",
            headers,
            at: Instant::now(),
        };
        turn += 1;
        log.lock().unwrap().push(seen.clone());
        let bytes = raw(&seen);
        if bytes.is_empty() {
            return;
        }
        codec.get_mut().write_all(&bytes).await.unwrap();
        codec.get_mut().flush().await.unwrap();
    }
}
