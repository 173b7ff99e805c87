//! A local web for tests: several hosts (one loopback address each), pages by a function, and a log of its own that
//! judges politeness. It knows nothing of the crawler.
//!
//! Times are microseconds since the site began, on the server's own clock. An answer's *end* is read just before its
//! last bytes are written (or when the client's connection ends first), so it is never later than the moment at which
//! the client can have had the whole answer: a gap seen here is never shorter than the client's own.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// The first host has this last byte in its address; 127.0.0.1 is left to others.
const FIRST_HOST: u8 = 2;
/// A request head longer than this ends the connection, bytes.
const MAX_REQUEST_HEAD: usize = 64 * 1024;

/// One request as the page function sees it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Index of the host.
    pub(crate) host: usize,
    /// Path with its query.
    pub(crate) path: String,
    /// How often this path of this host was asked for before.
    pub(crate) before: usize,
    /// The cookies that came with it.
    pub(crate) cookie: String,
}

/// One step of an answer that is written byte by byte.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Wait(Duration),
}

/// What the server says.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    delay: Duration,
    script: Option<Vec<Step>>,
}

impl Answer {
    pub(crate) fn new(status: u16, mime: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("Content-Type".to_owned(), mime.to_owned())];
        Self {
            status,
            headers,
            body: body.into(),
            delay: Duration::ZERO,
            script: None,
        }
    }

    pub(crate) fn html(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/html; charset=utf-8", body)
    }

    pub(crate) fn text(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/plain", body)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(404, "text/html", "<p>no such page</p>")
    }

    pub(crate) fn redirect(status: u16, to: &str) -> Self {
        Self::new(status, "text/html", "").with("Location", to)
    }

    /// Bytes as they are, then the connection is closed.
    pub(crate) fn script(steps: Vec<Step>) -> Self {
        Self {
            script: Some(steps),
            ..Self::new(0, "", "")
        }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Waits before the first byte.
    pub(crate) fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    fn into_steps(self) -> Vec<Step> {
        let mut steps = vec![Step::Wait(self.delay)];
        if let Some(script) = self.script {
            steps.extend(script);
            return steps;
        }
        let mut bytes = format!("HTTP/1.1 {} Said\r\n", self.status);
        for (name, value) in &self.headers {
            write!(bytes, "{name}: {value}\r\n").unwrap();
        }
        write!(bytes, "Content-Length: {}\r\n\r\n", self.body.len()).unwrap();
        let mut bytes = bytes.into_bytes();
        bytes.extend(self.body);
        steps.push(Step::Send(bytes));
        steps
    }
}

/// One request and its answer.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) host: usize,
    pub(crate) path: String,
    /// Header lines, names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// When the request head was whole.
    pub(crate) arrived: u64,
    /// When the answer ended; `None` while it is going on.
    pub(crate) ended: Option<u64>,
    /// The client went away before the answer was whole.
    pub(crate) aborted: bool,
}

/// Two requests of one host, one after the other.
#[derive(Debug)]
pub(crate) struct Gap {
    pub(crate) earlier: Exchange,
    pub(crate) later: Exchange,
    /// From the end of the earlier to the arrival of the later; negative if they overlap.
    pub(crate) micros: i64,
}

/// What was asked, in order of arrival.
#[derive(Debug, Clone)]
pub(crate) struct Log {
    origins: Vec<String>,
    exchanges: Vec<Exchange>,
}

impl Log {
    /// Ends exchanges earlier than the server saw it: `death` says when the process that asked was surely dead. A busy
    /// server may read and answer a request long after.
    pub(crate) fn end_at_death(&mut self, death: impl Fn(&Exchange) -> Option<u64>) {
        for exchange in &mut self.exchanges {
            if let Some(death) = death(exchange) {
                exchange.ended = Some(exchange.ended.map_or(death, |ended| ended.min(death)));
                exchange.arrived = exchange.arrived.min(death);
            }
        }
    }

    /// The exchanges of one host in order of arrival.
    pub(crate) fn of(&self, host: usize) -> Vec<&Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.host == host).collect()
    }

    fn url(&self, exchange: &Exchange) -> String {
        format!("{}{}", self.origins[exchange.host], exchange.path)
    }

    /// Addresses asked for at least once, robots.txt aside.
    pub(crate) fn fetched(&self) -> BTreeSet<String> {
        self.pages().map(|exchange| self.url(exchange)).collect()
    }

    /// Addresses asked for more than once, robots.txt aside.
    pub(crate) fn duplicates(&self) -> Vec<String> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for exchange in self.pages() {
            *counts.entry(self.url(exchange)).or_default() += 1;
        }
        counts
            .into_iter()
            .filter(|(_, count)| *count > 1)
            .map(|(url, _)| url)
            .collect()
    }

    fn pages(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.path != "/robots.txt")
    }

    pub(crate) fn gaps(&self, host: usize) -> Vec<Gap> {
        let of_host = self.of(host);
        let pairs = of_host.iter().zip(of_host.iter().skip(1));
        pairs
            .map(|(earlier, later)| {
                let end = earlier.ended.unwrap_or(u64::MAX / 2);
                let micros = i64::try_from(later.arrived).unwrap() - i64::try_from(end).unwrap();
                Gap {
                    earlier: (*earlier).clone(),
                    later: (*later).clone(),
                    micros,
                }
            })
            .collect()
    }

    /// The shortest gap of a host in microseconds, if it was asked at least twice.
    pub(crate) fn min_gap(&self, host: usize) -> Option<i64> {
        self.gaps(host).iter().map(|gap| gap.micros).min()
    }

    /// The most exchanges of a host that were going on at one moment.
    pub(crate) fn in_flight_max(&self, host: usize) -> usize {
        let of_host = self.of(host);
        let open_at = |time: u64| {
            of_host
                .iter()
                .filter(|e| e.arrived <= time && e.ended.is_none_or(|end| end > time))
                .count()
        };
        of_host
            .iter()
            .map(|exchange| open_at(exchange.arrived))
            .max()
            .unwrap_or(0)
    }
}

type Page = dyn Fn(&Asked) -> Answer + Send + Sync;

struct Shared {
    began: Instant,
    page: Box<Page>,
    log: Mutex<Log>,
    asked: Mutex<BTreeMap<(usize, String), usize>>,
    closing: AtomicBool,
}

impl Shared {
    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_micros()).unwrap()
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap()
    }
}

/// A running local web. Dropping it frees its ports.
pub(crate) struct Site {
    origins: Vec<String>,
    shared: Arc<Shared>,
}

impl Site {
    /// Starts `hosts` hosts. `web` is told their origins (`http://127.0.0.2:40001`) and gives the page function.
    pub(crate) fn start<P>(hosts: usize, web: impl FnOnce(&[String]) -> P) -> Self
    where
        P: Fn(&Asked) -> Answer + Send + Sync + 'static,
    {
        let listeners: Vec<TcpListener> = (0..hosts)
            .map(|host| {
                let last = FIRST_HOST + u8::try_from(host).unwrap();
                TcpListener::bind((Ipv4Addr::new(127, 0, 0, last), 0)).unwrap()
            })
            .collect();
        let origins: Vec<String> = listeners
            .iter()
            .map(|listener| format!("http://{}", listener.local_addr().unwrap()))
            .collect();
        let shared = Arc::new(Shared {
            began: Instant::now(),
            page: Box::new(web(&origins)),
            log: Mutex::new(Log {
                origins: origins.clone(),
                exchanges: Vec::new(),
            }),
            asked: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        for (host, listener) in listeners.into_iter().enumerate() {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, host, &shared));
        }
        Self { origins, shared }
    }

    /// Pages from a table of one host; what is not in it is a 404.
    pub(crate) fn table(pages: Vec<(&str, Answer)>) -> Self {
        let table: BTreeMap<String, Answer> = pages.into_iter().map(|(path, page)| (path.to_owned(), page)).collect();
        Self::start(1, |_| {
            move |asked: &Asked| table.get(&asked.path).cloned().unwrap_or_else(Answer::not_found)
        })
    }

    pub(crate) fn origin(&self, host: usize) -> &str {
        &self.origins[host]
    }

    pub(crate) fn url(&self, host: usize, path: &str) -> String {
        format!("{}{path}", self.origins[host])
    }

    /// What was asked so far.
    pub(crate) fn log(&self) -> Log {
        self.shared.log().clone()
    }

    /// The log's time now, microseconds.
    pub(crate) fn time(&self) -> u64 {
        self.shared.now()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::SeqCst);
        for origin in &self.origins {
            // wakes the accepting thread, which then lets go of its port
            drop(TcpStream::connect(origin.trim_start_matches("http://")));
        }
    }
}

fn accept(listener: &TcpListener, host: usize, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.closing.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // a client that goes away ends its connection's thread: not a fault of the server
        thread::spawn(move || drop(converse(stream, host, &shared)));
    }
}

/// Answers the requests of one connection until either side ends it.
fn converse(mut stream: TcpStream, host: usize, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    while let Some((path, headers)) = read_request(&mut stream, &mut buffer)? {
        let cookie = headers.get("cookie").cloned().unwrap_or_default();
        let number = arrived(shared, host, &path, headers);
        let before = {
            let mut asked = shared.asked.lock().unwrap();
            let count = asked.entry((host, path.clone())).or_default();
            *count += 1;
            *count - 1
        };
        let answer = (shared.page)(&Asked {
            host,
            path,
            before,
            cookie,
        });
        let closes = answer.script.is_some();
        let written = write_steps(&mut stream, answer.into_steps(), shared, number);
        if written.is_err() {
            let now = shared.now();
            let exchange = &mut shared.log().exchanges[number];
            exchange.ended = Some(now);
            exchange.aborted = true;
        }
        if written.is_err() || closes {
            break;
        }
    }
    Ok(())
}

fn arrived(shared: &Shared, host: usize, path: &str, headers: BTreeMap<String, String>) -> usize {
    let mut log = shared.log();
    let exchange = Exchange {
        host,
        path: path.to_owned(),
        headers,
        // read under the lock, so that the log is in order of arrival
        arrived: shared.now(),
        ended: None,
        aborted: false,
    };
    log.exchanges.push(exchange);
    log.exchanges.len() - 1
}

fn write_steps(stream: &mut TcpStream, steps: Vec<Step>, shared: &Shared, number: usize) -> io::Result<()> {
    let last = steps.iter().rposition(|step| matches!(step, Step::Send(_)));
    for (place, step) in steps.into_iter().enumerate() {
        match step {
            Step::Wait(span) => wait(stream, span)?,
            Step::Send(bytes) => {
                if Some(place) == last {
                    shared.log().exchanges[number].ended = Some(shared.now());
                }
                stream.write_all(&bytes)?;
            }
        }
    }
    if last.is_none() {
        shared.log().exchanges[number].ended = Some(shared.now());
    }
    Ok(())
}

/// Waits, but notices at once if the client goes away.
fn wait(stream: &TcpStream, span: Duration) -> io::Result<()> {
    let until = Instant::now() + span;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return stream.set_read_timeout(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.peek(&mut [0]) {
            Ok(0) => return Err(io::ErrorKind::ConnectionAborted.into()),
            // a client that sends its next request early is left waiting
            Ok(_) => thread::sleep(left),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
}

type Head = (String, BTreeMap<String, String>);

/// The next request's path and headers, or `None` when the client is done. Bodies are not expected.
fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<Head>> {
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        let mut chunk = [0; 4096];
        let read = stream.read(&mut chunk)?;
        if read == 0 || buffer.len() > MAX_REQUEST_HEAD {
            return Ok(None);
        }
        buffer.extend_from_slice(&chunk[..read]);
    };
    let rest = buffer.split_off(end + 4);
    let head = String::from_utf8_lossy(&std::mem::replace(buffer, rest)).into_owned();
    let mut lines = head.lines();
    let path = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .unwrap_or("/")
        .to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Ok(Some((path, headers)))
}

/// The judge is judged first: by hand-made conversations with known gaps.
mod tests {
    use super::*;

    fn ask(site: &Site, paths: &[&str], pause: Duration) -> Vec<String> {
        let mut stream = TcpStream::connect(site.origin(0).trim_start_matches("http://")).unwrap();
        let mut answers = Vec::new();
        for path in paths {
            write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
            let mut bytes = [0; 4096];
            let read = stream.read(&mut bytes).unwrap();
            answers.push(String::from_utf8_lossy(&bytes[..read]).into_owned());
            thread::sleep(pause);
        }
        answers
    }

    #[test]
    fn a_kept_connection_gets_its_pages_and_the_log_has_the_gap() {
        let site = Site::table(vec![("/", Answer::html("home")), ("/a", Answer::redirect(301, "/"))]);
        let answers = ask(&site, &["/", "/a", "/none"], Duration::from_millis(20));
        assert!(
            answers[0].starts_with("HTTP/1.1 200 ") && answers[0].ends_with("\r\n\r\nhome"),
            "{answers:?}"
        );
        assert!(answers[1].contains("Location: /\r\n"), "{answers:?}");
        assert!(answers[2].starts_with("HTTP/1.1 404 "), "{answers:?}");
        let log = site.log();
        assert!(log.min_gap(0).unwrap() >= 20_000, "{log:?}");
        assert_eq!(log.in_flight_max(0), 1);
        assert_eq!(log.fetched().len(), 3);
        assert!(log.duplicates().is_empty());
    }

    #[test]
    fn two_at_once_and_one_too_soon_are_seen() {
        let site = Site::start(1, |_| |_: &Asked| Answer::html("slow").after(Duration::from_millis(50)));
        thread::scope(|scope| {
            scope.spawn(|| ask(&site, &["/same"], Duration::ZERO));
            scope.spawn(|| ask(&site, &["/same"], Duration::ZERO));
        });
        let log = site.log();
        assert_eq!(log.in_flight_max(0), 2);
        assert!(log.min_gap(0).unwrap() < 0);
        assert_eq!(log.duplicates(), [site.url(0, "/same")]);
    }

    #[test]
    fn a_client_that_goes_away_ends_its_exchange() {
        let site = Site::start(1, |_| |_: &Asked| Answer::html("late").after(Duration::from_secs(30)));
        let mut stream = TcpStream::connect(site.origin(0).trim_start_matches("http://")).unwrap();
        write!(stream, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        thread::sleep(Duration::from_millis(20));
        drop(stream);
        let until = Instant::now() + Duration::from_secs(5);
        while site.log().of(0).first().is_none_or(|exchange| exchange.ended.is_none()) {
            assert!(Instant::now() < until, "the abort was not noticed");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(site.log().of(0)[0].aborted);
    }
}
