//! Was anything asked that robots.txt forbids? Judged by the files as they lie in the archive.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::line::Line;
use crate::archive::{naming, read};
use crate::clock::Time;
use crate::fetch::decode::{self, DecodeFault};
use crate::robots::{self, Robots};
use crate::shard::ROBOTS_REDIRECTS;
use crate::url::{Base, CrawlUrl, Identity, Scheme};

/// Parsed rules kept in memory, bytes; beyond it they are read again from the archive.
const MAX_RULES_BYTES: usize = 64 << 20;
/// A robots.txt as it came and its head are kept up to so many bytes.
const KEPT: usize = 4 << 20;
/// What a body becomes at most, bytes.
const MAX_DECODED: u64 = 64 << 20;

/// File and offset of a record.
type Place = (String, u64);

/// What an origin's robots.txt allows.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Access {
    Everything,
    Nothing,
    As(Place),
    /// The file is not in the archive, so nobody can say.
    Unknown,
}

#[derive(Debug, Clone)]
struct Origin {
    now: Access,
    /// What held before, and until when: what was in flight then was judged by it.
    before: Option<(Access, Time)>,
    /// Its Crawl-delay.
    delay: Option<Duration>,
}

type Key = (String, Scheme);

/// What is said of a page.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    Allowed,
    /// By this line, or because robots.txt could not be had.
    Forbidden(String),
    /// Its robots.txt was never asked for.
    NeverAsked,
    Unknown,
}

/// The rules of all origins while the log goes by.
pub(super) struct Rules {
    archive: PathBuf,
    agent: String,
    identity: Identity,
    origins: HashMap<Key, Origin>,
    /// Whose robots.txt has moved to this address, in the order in which they found out.
    moved: HashMap<String, VecDeque<(Key, u8)>>,
    /// The first record of a body.
    bodies: HashMap<String, Place>,
    parsed: HashMap<Place, Arc<Robots>>,
    parsed_bytes: usize,
}

impl Rules {
    pub(super) fn new(job: &Path, agent: &str, identity: Identity) -> Self {
        Self {
            archive: job.join("archive"),
            agent: agent.to_owned(),
            identity,
            origins: HashMap::new(),
            moved: HashMap::new(),
            bodies: HashMap::new(),
            parsed: HashMap::new(),
            parsed_bytes: 0,
        }
    }

    /// The Crawl-delay of a host, zero if it has none.
    pub(super) fn delay(&self, host: &str) -> Duration {
        let of = |scheme| self.origins.get(&(host.to_owned(), scheme))?.delay;
        of(Scheme::Http).max(of(Scheme::Https)).unwrap_or_default()
    }

    /// Takes in the answer for a robots.txt.
    pub(super) fn learn(&mut self, line: &Line<'_>, url: &CrawlUrl) -> io::Result<()> {
        let waiting = self.moved.get_mut(url.href()).and_then(VecDeque::pop_front);
        let (key, hops) = waiting.unwrap_or_else(|| ((url.host_key().to_owned(), url.scheme()), 0));
        if let (Some(sha1), Some(place)) = (line.sha1, &line.place)
            && !line.has("duplicate:digest")
        {
            self.bodies.entry(sha1.to_owned()).or_insert_with(|| place.clone());
        }
        let cut = ["midFetchTrunc", "timeTrunc", "decode:incomplete"];
        let access = match line.status {
            200..=299 if cut.iter().any(|note| line.has(note)) => Access::Nothing,
            200..=299 => {
                let place = line.sha1.and_then(|sha1| self.bodies.get(sha1)).cloned();
                place.map_or(Access::Unknown, Access::As)
            }
            300..=399 => match self.target(line, url)? {
                Some(target) if hops < ROBOTS_REDIRECTS => {
                    self.moved.entry(target).or_default().push_back((key, hops + 1));
                    return Ok(());
                }
                _ => Access::Everything,
            },
            429 | 500.. => Access::Nothing,
            status if status > 0 => Access::Everything,
            _ => Access::Nothing,
        };
        let now = line.end().unwrap_or(Time(0));
        let delay = match &access {
            Access::As(place) => self.rules(place)?.and_then(|rules| rules.crawl_delay()),
            _ => None,
        };
        let before = self.origins.get(&key).map(|origin| (origin.now.clone(), now));
        let origin = Origin {
            now: access,
            before,
            delay,
        };
        self.origins.insert(key, origin);
        Ok(())
    }

    /// Where a robots.txt has moved to.
    fn target(&self, line: &Line<'_>, url: &CrawlUrl) -> io::Result<Option<String>> {
        let Some(place) = &line.place else { return Ok(None) };
        let Some(record) = self.record(place)? else {
            return Ok(None);
        };
        let location = field(record.http_head(), "location").next().map(str::to_owned);
        let base = Base::of(url, None);
        let target = location.and_then(|to| CrawlUrl::join(&base, &to, &self.identity).ok());
        Ok(target.map(|target| target.href().to_owned()))
    }

    /// What is said of a page that was asked for at this time.
    pub(super) fn judge(&mut self, url: &CrawlUrl, start: Time) -> io::Result<Said> {
        let key = (url.host_key().to_owned(), url.scheme());
        let Some(origin) = self.origins.get(&key).cloned() else {
            return Ok(Said::NeverAsked);
        };
        let said = self.said(&origin.now, url)?;
        match (&said, origin.before) {
            (Said::Forbidden(_), Some((access, until))) if start < until => self.said(&access, url),
            _ => Ok(said),
        }
    }

    fn said(&mut self, access: &Access, url: &CrawlUrl) -> io::Result<Said> {
        Ok(match access {
            Access::Everything => Said::Allowed,
            Access::Nothing => Said::Forbidden("robots.txt could not be had".to_owned()),
            Access::Unknown => Said::Unknown,
            Access::As(place) => match self.rules(place)? {
                None => Said::Unknown,
                Some(rules) if rules.allows(url.path_and_query()) => Said::Allowed,
                Some(rules) => {
                    let line = rules.deciding_line(url.path_and_query());
                    Said::Forbidden(line.map_or("robots.txt".to_owned(), |(n, text)| format!("robots.txt:{n}: {text}")))
                }
            },
        })
    }

    fn rules(&mut self, place: &Place) -> io::Result<Option<Arc<Robots>>> {
        if let Some(rules) = self.parsed.get(place) {
            return Ok(Some(Arc::clone(rules)));
        }
        let Some(record) = self.record(place)? else {
            return Ok(None);
        };
        let encodings: Vec<&[u8]> = field(record.http_head(), "content-encoding")
            .map(str::as_bytes)
            .collect();
        let cut = record.payload_length > record.payload().len() as u64;
        let decoded = decode::small(&encodings, record.payload(), MAX_DECODED);
        let (bytes, whole) = match &decoded {
            Some(decoded) => (&*decoded.bytes, !cut && decoded.fault != Some(DecodeFault::Limit)),
            None if encodings.is_empty() => (record.payload(), !cut),
            None => return Ok(None),
        };
        let whole = whole && record.header("WARC-Truncated") != Some("length");
        let rules = Arc::new(Robots::parse(robots::read_of(bytes, whole), &self.agent));
        if self.parsed_bytes > MAX_RULES_BYTES {
            self.parsed.clear();
            self.parsed_bytes = 0;
        }
        self.parsed_bytes += rules.memory_bytes();
        self.parsed.insert(place.clone(), Arc::clone(&rules));
        Ok(Some(rules))
    }

    /// The record at a place; none if the file or the record is not there, which is told elsewhere.
    fn record(&self, (name, offset): &Place) -> io::Result<Option<read::Record>> {
        let closed = self.archive.join(name);
        let path = if closed.exists() {
            closed
        } else {
            self.archive.join(naming::open_name(name))
        };
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(*offset))?;
        Ok(read::members(BufReader::new(file), KEPT).next().and_then(Result::ok))
    }
}

/// The values of a field of a response head.
fn field<'a>(head: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a str> {
    head.split(|byte| *byte == b'\n').filter_map(move |line| {
        let (found, value) = std::str::from_utf8(line).ok()?.split_once(':')?;
        found.trim_end().eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
