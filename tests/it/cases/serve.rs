//! Plays a case on loopback addresses, byte for byte, and logs every request.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};

use super::format::{Asked, Case, Reply};
use super::parts::{Fill, LONGEST_STALL, Pressed, Step, steps};

/// A request head longer than this is no request.
const MAX_HEAD: usize = 4 << 20;
/// An idle connection is kept so long.
const IDLE: Duration = Duration::from_secs(30);
/// Base ports are taken from here, below the ports that systems give out by themselves.
const FIRST_PORT: u16 = 18_080;
const PORTS: u16 = 12_000;
/// A case uses its base port and one more; there is room for more to come.
const PORTS_A_CASE: u16 = 4;

static NEXT_PORT: AtomicU16 = AtomicU16::new(0);

/// What happened, in order.
#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// Since the player began.
    pub(crate) at: Duration,
    pub(crate) what: Happened,
    pub(crate) ip: IpAddr,
    pub(crate) port: u16,
    /// Key of the host; empty where no request was read.
    pub(crate) host: String,
    pub(crate) target: String,
    pub(crate) head_bytes: usize,
    /// Names as they came.
    pub(crate) headers: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// A request was read.
    Request,
    /// Its answer is over, whatever the way.
    End,
    /// A further request of a connection was dropped.
    Dropped,
    /// Bytes that are no request.
    Noise,
}

impl Event {
    /// `host target`, as the cases write it.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.host, self.target)
    }
}

/// A running player. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Player {
    pub(crate) port: u16,
    inner: Arc<Inner>,
    _runtime: Runtime,
}

#[derive(Debug)]
struct Inner {
    case: Case,
    port: u16,
    began: Instant,
    pressed: Pressed,
    hits: Mutex<HashMap<usize, usize>>,
    log: Mutex<Vec<Event>>,
    connections: AtomicUsize,
}

impl Player {
    /// Compresses what is to be compressed, then listens.
    pub(crate) fn start(case: &Case) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (port, listeners) = runtime.block_on(bind(case));
        let inner = Arc::new(Inner {
            case: case.clone(),
            port,
            began: Instant::now(),
            pressed: Pressed::default(),
            hits: Mutex::default(),
            log: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        inner.press();
        for listener in listeners {
            runtime.spawn(accept(listener, Arc::clone(&inner)));
        }
        Self {
            port,
            inner,
            _runtime: runtime,
        }
    }

    pub(crate) fn log(&self) -> Vec<Event> {
        self.inner.log.lock().unwrap().clone()
    }

    pub(crate) fn requests(&self) -> usize {
        let log = self.inner.log.lock().unwrap();
        log.iter().filter(|event| event.what == Happened::Request).count()
    }
}

/// The first free base port.
async fn bind(case: &Case) -> (u16, Vec<TcpListener>) {
    for _ in 0..PORTS / PORTS_A_CASE {
        // two runs of the tests at once begin at different places
        let start = u16::try_from(std::process::id() % u32::from(PORTS / PORTS_A_CASE)).unwrap();
        let turn = start.wrapping_add(NEXT_PORT.fetch_add(1, Relaxed)) % (PORTS / PORTS_A_CASE);
        let base = FIRST_PORT + turn * PORTS_A_CASE;
        if let Ok(listeners) = bind_at(case, base).await {
            return (base, listeners);
        }
    }
    panic!("no free port");
}

async fn bind_at(case: &Case, base: u16) -> io::Result<Vec<TcpListener>> {
    let open = case.hosts.values().filter(|host| !host.closed);
    let addresses: BTreeSet<SocketAddr> = open
        .map(|host| SocketAddr::new(host.ip.into(), base + host.port))
        .collect();
    let mut listeners = Vec::new();
    for address in addresses {
        assert!(
            address.ip().is_loopback(),
            "{address}: only loopback addresses are served"
        );
        listeners.push(TcpListener::bind(address).await?);
    }
    Ok(listeners)
}

async fn accept(listener: TcpListener, inner: Arc<Inner>) {
    while let Ok((stream, _)) = listener.accept().await {
        inner.connections.fetch_add(1, Relaxed);
        let inner = Arc::clone(&inner);
        tokio::spawn(async move {
            let _ = inner.converse(stream).await;
        });
    }
}

impl Inner {
    /// Makes what is compressed and the same for every request.
    fn press(&self) {
        for route in &self.case.serve {
            for reply in &route.responses {
                // of requests with groups nothing is known yet
                if reply_text(reply).contains("gzip") || reply_text(reply).contains("deflate") {
                    let groups: Vec<String> = vec!["0".to_owned(); 9];
                    steps(reply, &self.fill("/", &groups, 1));
                }
            }
        }
    }

    fn fill<'a>(&'a self, target: &'a str, groups: &'a [String], hit: usize) -> Fill<'a> {
        Fill {
            hosts: &self.case.hosts,
            port: self.port,
            target,
            groups,
            hit,
            pressed: self.pressed.clone(),
        }
    }

    fn note(&self, what: Happened, local: SocketAddr, asked: Option<&Asked>, headers: &[(String, String)]) {
        let event = Event {
            at: self.began.elapsed(),
            what,
            ip: local.ip(),
            port: local.port(),
            host: asked.map(|asked| asked.host.clone()).unwrap_or_default(),
            target: asked.map(|asked| asked.target.clone()).unwrap_or_default(),
            head_bytes: asked.map_or(0, |asked| asked.head_bytes),
            headers: headers.to_vec(),
        };
        self.log.lock().unwrap().push(event);
    }

    async fn converse(&self, mut stream: TcpStream) -> io::Result<()> {
        let local = stream.local_addr()?;
        stream.set_nodelay(true)?;
        let mut buffer = Vec::new();
        for turn in 0.. {
            let Some(head) = read_head(&mut stream, &mut buffer).await? else {
                if !buffer.is_empty() {
                    self.note(Happened::Noise, local, None, &[]);
                }
                break;
            };
            let (asked, headers) = self.asked(&head, local);
            let host = self.case.hosts.get(&asked.host);
            if turn > 0 && host.is_some_and(|host| host.drop_reused) {
                self.note(Happened::Dropped, local, Some(&asked), &headers);
                break;
            }
            self.note(Happened::Request, local, Some(&asked), &headers);
            let steps = self.answer(&asked);
            let after = send(&mut stream, steps).await;
            self.note(Happened::End, local, Some(&asked), &[]);
            let closes = asked
                .headers
                .get("connection")
                .is_some_and(|value| value.eq_ignore_ascii_case("close"));
            match after {
                Ok(After::Kept) if !closes => {}
                Ok(After::Reset) => return Ok(()),
                _ => break,
            }
        }
        // let the peer read what was sent before the close
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        while timeout(Duration::from_millis(500), stream.read(&mut rest))
            .await
            .is_ok_and(|n| n.is_ok_and(|n| n > 0))
        {}
        Ok(())
    }

    fn asked(&self, head: &[u8], local: SocketAddr) -> (Asked, Vec<(String, String)>) {
        let text: String = head.iter().map(|byte| char::from(*byte)).collect();
        let mut lines = text.trim_end_matches("\r\n").split("\r\n");
        let line = lines.next().unwrap();
        let target = line.split_once(' ').map_or("", |(_, rest)| rest);
        let target = target.rsplit_once(' ').map_or("", |(target, _)| target);
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap_or((line, "")))
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let by_name: BTreeMap<String, String> = headers
            .iter()
            .map(|(name, value)| (name.to_lowercase(), value.clone()))
            .collect();
        let asked = Asked {
            host: self.logical(local, by_name.get("host").map_or("", String::as_str)),
            target: target.to_owned(),
            headers: by_name,
            head_bytes: head.len(),
        };
        (asked, headers)
    }

    /// The key of the host that is meant: of those at this address the one that `Host` names.
    fn logical(&self, local: SocketAddr, header: &str) -> String {
        let lower = header.trim().to_lowercase();
        let name = match lower.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => &lower,
        };
        let name = name.trim_end_matches('.');
        let here = |(_, host): &(&String, &super::format::Host)| {
            IpAddr::from(host.ip) == local.ip() && self.port + host.port == local.port()
        };
        let here: Vec<_> = self.case.hosts.iter().filter(here).collect();
        let named = here
            .iter()
            .find(|(key, host)| host.name.as_ref().unwrap_or(key) == name);
        named
            .or(here.first())
            .map_or_else(|| name.to_owned(), |(key, _)| (*key).clone())
    }

    fn answer(&self, asked: &Asked) -> Vec<Step> {
        for (number, route) in self.case.serve.iter().enumerate() {
            let Some(groups) = route.groups(asked) else { continue };
            let hit = {
                let mut hits = self.hits.lock().unwrap();
                let hit = hits.entry(number).or_default();
                *hit += 1;
                *hit
            };
            let reply = &route.responses[hit.min(route.responses.len()) - 1];
            return steps(reply, &self.fill(&asked.target, &groups, hit));
        }
        let reply: Reply = serde_json::from_value(serde_json::json!({
            "status": 404, "headers": [["Content-Type", "text/plain"]], "body": "not found\n"
        }))
        .unwrap();
        steps(&reply, &self.fill(&asked.target, &[], 1))
    }
}

fn reply_text(reply: &Reply) -> String {
    format!("{} {:?}", reply.body, reply.wire)
}

/// A request head with its empty line; `None` at the end of the connection or if it is none.
async fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            return Ok(Some(buffer.drain(..end + 4).collect()));
        }
        if buffer.len() > MAX_HEAD || buffer.first().is_some_and(|byte| !byte.is_ascii_uppercase()) {
            return Ok(None);
        }
        let read = timeout(IDLE, stream.read_buf(buffer)).await;
        if read.map_err(|_| io::ErrorKind::TimedOut)?? == 0 {
            return Ok(None);
        }
    }
}

enum After {
    Kept,
    Closed,
    Reset,
}

async fn send(stream: &mut TcpStream, steps: Vec<Step>) -> io::Result<After> {
    let mut after = After::Closed;
    for step in steps {
        match step {
            Step::Send(bytes) => stream.write_all(&bytes).await?,
            Step::Sleep(span) => sleep(span).await,
            Step::Stall(span) => {
                // nothing is said, but the peer's leaving is noticed
                let _ = timeout(span, stream.read(&mut [0])).await;
                return Ok(After::Closed);
            }
            Step::Drip { unit, every, times } => {
                let end = Instant::now() + LONGEST_STALL;
                for _ in 0..times {
                    stream.write_all(&unit).await?;
                    if Instant::now() > end {
                        return Ok(After::Closed);
                    }
                    sleep(every).await;
                }
            }
            Step::Flood { unit, bytes } => {
                let mut sent = 0;
                while sent < bytes {
                    stream.write_all(&unit).await?;
                    sent += unit.len();
                }
            }
            Step::Reset => {
                sleep(Duration::from_millis(50)).await; // what was sent goes out first
                stream.set_zero_linger()?;
                return Ok(After::Reset);
            }
            Step::Close => return Ok(After::Closed),
            Step::Keep => after = After::Kept,
        }
    }
    Ok(after)
}
