//! What a job promised, derived again from what it left behind: logs, archive, accounts. Nothing is believed that can be
//! counted, nothing is allowed for, and nothing in the job is changed.
//!
//! `pace` judges pauses, `rules` robots.txt, `shelf` holds the log against the archive; `sorted` brings together what
//! belongs together in bounded memory. Of a host about 200 bytes are held (its robots.txt and where it lies).

mod line;
mod pace;
mod rules;
mod shelf;
mod sorted;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use crate::config::Config;
use crate::ledger::{CRAWL_LOG, Found};
use crate::robots::product_token;
use crate::shard::{Own, ROBOTS_PRECLUDED, ROBOTS_UNREACHABLE};
use crate::stats::Counters;
use crate::url::{CrawlUrl, Identity};
use line::Line;
use pace::{Asked, Broken, Pace};
use rules::{Rules, Said};
use shelf::Shelf;
use sorted::{Folder, Pile};

/// Faults that are named; further ones are counted.
pub const MAX_NAMED: usize = 1_000;
/// Longest line of a log, bytes.
const MAX_LINE: u64 = 1 << 20;

/// What was promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// Pauses are kept, and no more requests are in flight to a host than were asked for.
    Politeness,
    /// Nothing is asked for that robots.txt forbids.
    Robots,
    /// What crawl.log says is archived, and nothing else is.
    Archive,
    /// A URL that has its answer is not asked for again.
    Once,
    /// The accounts add up, and are what the log says.
    Accounts,
}

impl Promise {
    /// All of them.
    pub const ALL: [Promise; 5] = [
        Self::Politeness,
        Self::Robots,
        Self::Archive,
        Self::Once,
        Self::Accounts,
    ];

    /// A short word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Politeness => "politeness",
            Self::Robots => "robots",
            Self::Archive => "archive",
            Self::Once => "once",
            Self::Accounts => "accounts",
        }
    }
}

/// A promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Which.
    pub promise: Promise,
    /// The line of crawl.log that shows it.
    pub line: Option<u64>,
    /// How, in words.
    pub text: String,
}

/// What an audit found.
#[derive(Debug, Default)]
pub struct Audit {
    /// Lines of crawl.log.
    pub lines: u64,
    /// Requests that were made.
    pub requests: u64,
    /// Hosts that were asked.
    pub hosts: u64,
    /// The shortest pause between an answer's end and the next request to its host, microseconds.
    pub shortest_gap_us: Option<u64>,
    /// Answers judged by the robots.txt of their origin.
    pub by_robots: u64,
    /// Answers whose robots.txt is not in the archive, so that nobody can say.
    pub robots_unknown: u64,
    /// WARC files.
    pub files: u64,
    /// Records by type.
    pub records: BTreeMap<String, u64>,
    /// URLs with a line.
    pub urls: u64,
    /// What could not be judged, and why.
    pub notes: Vec<String>,
    /// Broken promises, the first [`MAX_NAMED`].
    pub faults: Vec<Fault>,
    /// How many there are, by promise.
    pub broken: BTreeMap<Promise, u64>,
}

impl Audit {
    fn fault(&mut self, promise: Promise, line: Option<u64>, text: String) {
        *self.broken.entry(promise).or_default() += 1;
        if self.faults.len() < MAX_NAMED {
            self.faults.push(Fault { promise, line, text });
        }
    }

    /// Was every promise kept?
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.broken.is_empty()
    }
}

/// Audits a job that nobody crawls. `found` is what its store says, `config` the settings it was crawled with last.
///
/// # Errors
/// If its files cannot be read.
pub fn audit(job: &Path, config: &Config, found: &Found) -> io::Result<Audit> {
    let folder = Folder::new()?;
    let mut reading = Reading {
        audit: Audit::default(),
        rules: Rules::new(job, product_token(&config.user_agent), Identity::default()),
        shelf: Shelf::open(&job.join("archive"), found.tail.archive.as_ref())?,
        requests: folder.pile("hosts")?,
        by_address: folder.pile("addresses")?,
        urls: folder.pile("urls")?,
        own: Own {
            hosts: config.hosts.clone(),
            ..Own::default()
        },
        // what earlier runs were told is not known: their lines say what they kept to
        known: found.tail.runs <= 1,
        config,
    };
    if found.tail.log > 0 {
        let log = File::open(job.join(CRAWL_LOG))?.take(found.tail.log);
        reading.all(BufReader::with_capacity(1 << 18, log))?;
    }
    reading.finish(found)
}

struct Reading<'a> {
    audit: Audit,
    rules: Rules,
    shelf: Shelf,
    requests: Pile,
    by_address: Pile,
    urls: Pile,
    own: Own,
    known: bool,
    config: &'a Config,
}

impl Reading<'_> {
    fn all(&mut self, mut log: impl BufRead) -> io::Result<()> {
        let mut text = Vec::new();
        loop {
            text.clear();
            if log.by_ref().take(MAX_LINE).read_until(b'\n', &mut text)? == 0 {
                return Ok(());
            }
            self.audit.lines += 1;
            let number = self.audit.lines;
            let text = String::from_utf8_lossy(&text);
            match Line::read(text.trim_end_matches('\n')) {
                Some(line) => self.line(number, &line)?,
                None => self
                    .audit
                    .fault(Promise::Accounts, Some(number), "it is no line of crawl.log".to_owned()),
            }
        }
    }

    fn line(&mut self, number: u64, line: &Line<'_>) -> io::Result<()> {
        let Ok(url) = CrawlUrl::parse(line.url, &Identity::default()) else {
            let text = format!("{} is no URL", line.url);
            self.audit.fault(Promise::Accounts, Some(number), text);
            return Ok(());
        };
        let mut wrong = Vec::new();
        self.shelf.find(line, &mut wrong)?;
        for text in wrong {
            self.audit.fault(Promise::Archive, Some(number), text);
        }
        if line.is_robots {
            self.rules.learn(line, &url)?;
        } else {
            self.judge_by_robots(number, line, &url)?;
            let last = u8::from(line.is_final());
            self.urls
                .add(format_args!("{} {number:020} {} {last}", line.url, line.status))?;
        }
        self.note_request(number, line, &url)
    }

    fn judge_by_robots(&mut self, number: u64, line: &Line<'_>, url: &CrawlUrl) -> io::Result<()> {
        let (Some((start, _)), true, true) = (line.span, self.config.robots, self.config.archive) else {
            return Ok(());
        };
        let text = match self.rules.judge(url, start)? {
            Said::Allowed => {
                self.audit.by_robots += 1;
                return Ok(());
            }
            Said::Unknown => {
                self.audit.robots_unknown += 1;
                return Ok(());
            }
            Said::Forbidden(by) => format!("{} was asked for against {by}", line.url),
            Said::NeverAsked => format!("{} was asked for before the robots.txt of its host", line.url),
        };
        self.audit.fault(Promise::Robots, Some(number), text);
        Ok(())
    }

    fn note_request(&mut self, number: u64, line: &Line<'_>, url: &CrawlUrl) -> io::Result<()> {
        let Some((start, took)) = line.span else {
            return Ok(());
        };
        self.audit.requests += 1;
        let host = url.host_key();
        let setting = self.own.host(host).and_then(|rule| rule.delay);
        let least = Duration::from_micros(u64::try_from(self.config.max_wait.as_micros()).unwrap_or(u64::MAX));
        let crawl_delay = self.rules.delay(host).min(least);
        let setting = setting.unwrap_or(self.config.delay);
        let owed = if self.known {
            setting.max(crawl_delay)
        } else {
            crawl_delay
        };
        if let Some(rest) = line.rest.filter(|rest| *rest < owed) {
            let text = format!("{host} is given a rest of {rest:?} and is owed {owed:?}");
            self.audit.fault(Promise::Politeness, Some(number), text);
        }
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (end, rest) = (start + took, micros(line.rest.unwrap_or(owed)));
        self.requests
            .add(format_args!("{host} {:020} {} {rest} {number}", start.0, end.0))?;
        if self.config.delay_per_address
            && let Some(ip) = &line.ip
        {
            let rest = micros(owed);
            self.by_address
                .add(format_args!("{ip} {:020} {} {rest} {number}", start.0, end.0))?;
        }
        Ok(())
    }

    fn finish(mut self, found: &Found) -> io::Result<Audit> {
        let mut wrong = Vec::new();
        self.shelf.finish(&mut wrong)?;
        for text in wrong {
            self.audit.fault(Promise::Archive, None, text);
        }
        self.audit.files = self.shelf.count as u64;
        self.audit.records = std::mem::take(&mut self.shelf.records);
        let at_once = self.config.per_host_connections.max(1);
        let audit = &mut self.audit;
        (audit.hosts, audit.shortest_gap_us) = paces(self.requests, at_once, "", audit)?;
        paces(self.by_address, at_once, "the address ", audit)?;
        once(self.urls, found, audit)?;
        accounts(&found.tail.counters, audit);
        if !self.config.robots {
            audit
                .notes
                .push("robots.txt was not obeyed, as was asked for (--no-robots)".to_owned());
        } else if !self.config.archive {
            audit
                .notes
                .push("without an archive nobody can say what robots.txt said".to_owned());
        }
        Ok(self.audit)
    }
}

/// Judges the pauses of each host (or address). Gives how many there are and the shortest pause.
fn paces(pile: Pile, at_once: usize, kind: &str, audit: &mut Audit) -> io::Result<(u64, Option<u64>)> {
    let (mut count, mut shortest) = (0, None::<u64>);
    let mut of: Option<(String, Pace)> = None;
    pile.read(|words| {
        let [host, start, end, rest, line] = words else { return };
        let [start, end, rest, line] = [start, end, rest, line].map(|word| word.parse::<u64>().unwrap_or(0));
        if of.as_ref().is_none_or(|(other, _)| other != host) {
            count += 1;
            of = Some(((*host).to_owned(), Pace::new(at_once)));
        }
        let Some((_, pace)) = &mut of else { return };
        let broken = pace.ask(Asked {
            start: crate::clock::Time(start),
            end: crate::clock::Time(end),
            rest,
            line,
        });
        shortest = [shortest, pace.shortest].into_iter().flatten().min();
        let text = match broken {
            None => return,
            Some(Broken::TooEarly { line, gap, rest }) => format!(
                "{kind}{host} was asked {gap} µs after the answer of line {line}, which was to be followed by {rest} µs"
            ),
            Some(Broken::TooMany { line, at_once }) => {
                format!("{kind}{host} had {at_once} requests at once, that of line {line} among them")
            }
        };
        audit.fault(Promise::Politeness, Some(line), text);
    })?;
    Ok((count, shortest))
}

/// Counts the URLs by their last lines, and finds those that were asked for though they had their answer.
fn once(pile: Pile, found: &Found, audit: &mut Audit) -> io::Result<()> {
    let forgotten = !found.forgotten.is_empty();
    if forgotten {
        audit.notes.push(
            "URLs were forgotten (crawler forget) and asked for again: they are not counted against the job".to_owned(),
        );
    }
    let mut last: Option<(String, i32, Option<u64>)> = None;
    let mut by_status: BTreeMap<u16, u64> = BTreeMap::new();
    let mut robots = 0;
    let mut count = |status: i32| {
        match u16::try_from(status) {
            Ok(status) if status > 0 => *by_status.entry(status).or_default() += 1,
            _ => {}
        }
        robots += u64::from(matches!(status, ROBOTS_PRECLUDED | ROBOTS_UNREACHABLE));
    };
    pile.read(|words| {
        let [url, line, status, is_final] = words else { return };
        let (line, status) = (line.parse().unwrap_or(0), status.parse().unwrap_or(0));
        let answered = (*is_final == "1").then_some(line);
        match &mut last {
            Some((before, was, at)) if before == url => {
                if let (Some(at), false) = (*at, forgotten) {
                    let text = format!("{url} was asked for again though line {at} has its answer");
                    audit.fault(Promise::Once, Some(line), text);
                }
                (*was, *at) = (status, answered.or(*at));
            }
            _ => {
                if let Some((_, status, _)) = last.replace(((*url).to_owned(), status, answered)) {
                    count(status);
                }
                audit.urls += 1;
            }
        }
    })?;
    if let Some((_, status, _)) = last {
        count(status);
    }
    let urls = &found.tail.counters.urls;
    let settled = urls.fetched + urls.failed + urls.robots;
    if forgotten {
        return Ok(());
    }
    // a URL that waits for another try has lines, and is none of those
    if audit.urls < settled || audit.urls > settled + urls.pending {
        let text = format!(
            "crawl.log has lines of {} URLs, the accounts say {settled} are settled and {} pending",
            audit.urls, urls.pending
        );
        audit.fault(Promise::Accounts, None, text);
    }
    if urls.pending == 0 {
        if by_status != found.tail.counters.status {
            let text = format!(
                "answers by status are {by_status:?} in crawl.log and {:?} in the accounts",
                found.tail.counters.status
            );
            audit.fault(Promise::Accounts, None, text);
        }
        if robots != urls.robots {
            let text = format!(
                "crawl.log leaves {robots} URLs for robots.txt, the accounts {}",
                urls.robots
            );
            audit.fault(Promise::Accounts, None, text);
        }
    }
    Ok(())
}

fn accounts(counters: &Counters, audit: &mut Audit) {
    if !counters.balanced() {
        let text = format!("they do not add up: {:?}, {:?}", counters.links, counters.urls);
        audit.fault(Promise::Accounts, None, text);
    }
    let kept = &counters.records;
    let said = [
        ("response", kept.response),
        ("request", kept.request),
        ("revisit", kept.revisit),
        ("warcinfo", kept.warcinfo),
        ("metadata", kept.metadata),
    ];
    for (kind, said) in said {
        let counted = audit.records.get(kind).copied().unwrap_or(0);
        if counted != said {
            let text = format!("the archive holds {counted} {kind} records, the accounts say {said}");
            audit.fault(Promise::Accounts, None, text);
        }
    }
}
