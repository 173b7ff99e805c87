//! A TCP server that plays byte scripts: what it sends is exactly what a test wrote down, however wrong.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// One thing the server does in answer to a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    /// Sends bytes as they are.
    Send(Vec<u8>),
    /// Says nothing for a while.
    Sleep(Duration),
    /// Sends bytes so many times, with a pause after each.
    Repeat {
        bytes: Vec<u8>,
        times: usize,
        every: Duration,
    },
    /// Closes the connection in good order. Without it the connection is kept and the next request read.
    Close,
    /// Breaks the connection off (TCP RST).
    Reset,
}

/// Bytes as they are.
pub(crate) fn send(bytes: impl AsRef<[u8]>) -> Step {
    Step::Send(bytes.as_ref().to_vec())
}

/// A request as the script sees it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The request target.
    pub(crate) target: String,
    /// Number of the connection, from 0.
    pub(crate) connection: usize,
    /// Number of the request on its connection, from 0.
    pub(crate) turn: usize,
    /// The head as received.
    pub(crate) head: Vec<u8>,
}

/// The running server. It ends with the test's runtime.
pub(crate) struct RawServer {
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Seen>>>,
    open: Arc<AtomicUsize>,
}

impl RawServer {
    /// Listens on 127.0.0.1 and answers each request by the script's steps.
    pub(crate) async fn start(script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::start_at("127.0.0.1:0", script).await
    }

    /// The same at an address.
    pub(crate) async fn start_at(at: &str, script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (log, open) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (requests, connections, script) = (Arc::clone(&log), Arc::clone(&open), Arc::new(script));
        tokio::spawn(async move {
            for number in 0.. {
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                let (requests, connections, script) = (requests.clone(), connections.clone(), script.clone());
                tokio::spawn(async move {
                    connections.fetch_add(1, SeqCst);
                    converse(stream, number, &requests, &*script).await;
                    connections.fetch_sub(1, SeqCst);
                });
            }
        });
        Self { address, log, open }
    }

    /// Plays the same steps to every request.
    pub(crate) async fn always(steps: Vec<Step>) -> Self {
        Self::start(move |_| steps.clone()).await
    }

    /// An address on this server.
    pub(crate) fn url(&self, target: &str) -> String {
        format!("http://{}{target}", self.address)
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.log.lock().unwrap().clone()
    }

    /// Connections open now, as the server sees it.
    pub(crate) fn open_connections(&self) -> usize {
        self.open.load(SeqCst)
    }
}

async fn converse(
    mut stream: TcpStream,
    connection: usize,
    log: &Mutex<Vec<Seen>>,
    script: &(dyn Fn(&Seen) -> Vec<Step> + Sync),
) {
    for turn in 0.. {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => return,
            }
        }
        let line = String::from_utf8_lossy(&head)
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned();
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let seen = Seen {
            target,
            connection,
            turn,
            head,
        };
        let steps = script(&seen);
        log.lock().unwrap().push(seen);
        for step in steps {
            let done = match step {
                Step::Send(bytes) => stream.write_all(&bytes).await,
                Step::Sleep(span) => {
                    tokio::time::sleep(span).await;
                    Ok(())
                }
                Step::Repeat { bytes, times, every } => repeat(&mut stream, &bytes, times, every).await,
                Step::Close => {
                    let _ = stream.shutdown().await;
                    return;
                }
                Step::Reset => {
                    stream.set_zero_linger().unwrap();
                    return;
                }
            };
            if done.is_err() {
                return;
            }
        }
    }
}

async fn repeat(stream: &mut TcpStream, bytes: &[u8], times: usize, every: Duration) -> std::io::Result<()> {
    for _ in 0..times {
        stream.write_all(bytes).await?;
        if !every.is_zero() {
            tokio::time::sleep(every).await;
        }
    }
    Ok(())
}
