//! ONE URL's visit, straight down: fetch → decode → extract → normalize → scope → encode for the archive.
//!
//! A page is read where it arrived if it is short and decodes to little. A larger one takes a share of the `room` for
//! large pages and is read on a thread that may wait for the disk.
//!
//! A visit changes nothing: it hands what it found to the loop. A bad page is data.

mod edges;
pub mod judge;
pub mod log;
mod page;
mod room;
mod text;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::archive::warc::{self, Members, Provenance};
use crate::clock::Time;
use crate::extract::fields::Fields;
use crate::extract::mime;
use crate::fetch::body::Spool;
use crate::fetch::decode::DecodeFault;
use crate::fetch::{FetchError, FetchErrorKind, Fetcher, Request, Response, Skipped, Truncated};
use crate::frontier::Path;
use crate::ledger::{LogEntry, PageRows, SPOOL, WriteError};
use crate::politeness;
use crate::shard::{Done, End, Fault, RobotsBody, Way, What, Work};
use crate::stats::Left;
use crate::traps::Content;
use edges::Edges;
use judge::{Judge, Judged};
pub use page::LINK_COUNTS;
use page::{PageReading, read_page, read_robots};
pub use room::{EXTRACT_BYTES, Room};
use text::{Size, Text, decoded, large, most};

/// What all visits share.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own that a user sets"
)]
pub struct Settings {
    /// Judges links.
    pub judge: Judge,
    /// Encode WARC members.
    pub archive: bool,
    /// Cap on a decoded body, bytes.
    pub max_decoded: u64,
    /// Where large records wait.
    pub spool: Arc<Spool>,
    /// Bounds the large pages that are read at once.
    pub room: Room,
    /// Do not archive a page that says `noindex`.
    pub obey_noindex: bool,
    /// The product token that robots.txt speaks to.
    pub agent: String,
    /// Fields for pages.jsonl.zst.
    pub fields: Option<Fields>,
    /// Rows of links for links.jsonl.zst.
    pub links: bool,
    /// Hand the cookies of answers to the shard.
    pub cookies: bool,
}

/// A finished visit.
pub struct Visited {
    /// For the shard.
    pub done: Done,
    /// For the archive.
    pub members: Option<Members>,
    /// For crawl.log; none if nothing was asked of a server.
    pub log: Option<LogEntry>,
    /// For pages.jsonl.zst and links.jsonl.zst.
    pub rows: PageRows,
    /// The address, for people.
    pub address: String,
}

/// Makes a request and reads what came. `started` is the loop's time at the moment `began`: read together, because an end
/// that is dated too early lets its host be asked again too soon.
///
/// # Errors
/// If a body could not be written down, or not be read again: that is no fault of its page, and ends the run.
pub async fn visit<F: Fetcher>(
    work: Work,
    started: Time,
    began: tokio::time::Instant,
    web: Arc<F>,
    settings: Arc<Settings>,
) -> Result<Visited, WriteError> {
    let via = match &work.what {
        What::Page { item, .. } => item.path.via.clone(),
        What::Robots(_) => None,
        What::Address(url) => {
            let found = web.look_up(url).await;
            return Ok(looked_up(work, found, started + began.elapsed()));
        }
    };
    if let Way::Nowhere(end) = work.way.clone() {
        let code = match &*end {
            End::Failed { code, .. } => *code,
            _ => log::INTERNAL,
        };
        return Ok(unanswered(work, *end, code, None, started));
    }
    let answer = web
        .fetch(Request {
            url: work.url().clone(),
            via,
            to: work.way.address(),
            cookie: work.cookie.clone(),
            filter: may_be_filtered(&work),
            rest: work.rest,
        })
        .await;
    let took = began.elapsed();
    // rounded up: the host rests from here
    let at = started + took + Duration::from_micros(1);
    let mut visited = match answer {
        Err(FetchError {
            kind: FetchErrorKind::Spool,
            detail,
            ..
        }) => return Err(spool_failed(io::Error::other(detail))),
        Err(error) => failed(work, error, at),
        Ok(response) => read_in_its_place(work, response, at, settings).await?,
    };
    visited.done.took = took;
    Ok(visited)
}

/// Reads a response here if it is small, and else with a share of the room on a thread that may wait.
async fn read_in_its_place(
    work: Work,
    response: Response,
    at: Time,
    settings: Arc<Settings>,
) -> Result<Visited, WriteError> {
    if response.body.len() <= large(&work)
        && let Some(reading) = answered(&work, &response, at, &settings, Size::Small)?
    {
        return Ok(reading.of(work, at));
    }
    let shared = Arc::clone(&settings);
    let _share = shared.room.share(&response, most(&work, &shared)).await;
    let task = tokio::task::spawn_blocking(move || {
        let reading = answered(&work, &response, at, &settings, Size::Any)?;
        Ok(reading.map(|reading| reading.of(work, at)))
    });
    let visited = match task.await {
        Ok(visited) => visited?,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    visited.ok_or_else(|| unreachable!("of any size, everything is read"))
}

/// May the body be left out for its type or length? Not that of a robots.txt, of a sitemap, or of a seed, which somebody
/// named.
fn may_be_filtered(work: &Work) -> bool {
    path_of(work).is_some_and(|path| path.seed.is_none() && !path.is_sitemap())
}

fn looked_up(work: Work, found: Result<IpAddr, FetchError>, at: Time) -> Visited {
    let address = work.url().href().to_owned();
    let end = found.map_or_else(no_answer, End::Found);
    Visited {
        done: Done::new(work, end, at),
        members: None,
        log: None,
        rows: PageRows::default(),
        address,
    }
}

fn fault(kind: &FetchErrorKind) -> Fault {
    match kind {
        FetchErrorKind::PrivateAddress => Fault::Final,
        FetchErrorKind::Dns => Fault::Name,
        FetchErrorKind::Old => Fault::Form,
        FetchErrorKind::Proxy => Fault::Proxy,
        FetchErrorKind::Connect
        | FetchErrorKind::Broken
        | FetchErrorKind::Timeout
        | FetchErrorKind::Tls
        | FetchErrorKind::Protocol
        | FetchErrorKind::Spool => Fault::Host,
    }
}

fn no_answer(error: FetchError) -> End {
    End::Failed {
        reason: error.kind.word(),
        detail: error.detail,
        code: error.kind.code(),
        fault: fault(&error.kind),
    }
}

fn spool_failed(source: io::Error) -> WriteError {
    WriteError {
        what: SPOOL.to_owned(),
        source,
    }
}

fn failed(work: Work, error: FetchError, at: Time) -> Visited {
    let span = Some((error.started, error.took));
    let code = error.kind.code();
    let repeated = error.repeated;
    let mut visited = unanswered(work, no_answer(error), code, span, at);
    visited.done.repeated = repeated.is_some();
    if let Some(log) = &mut visited.log {
        log.annotations.extend(log::of_repeat(repeated));
    }
    visited
}

/// A visit without a response to archive.
fn unanswered(work: Work, end: End, status: i32, span: Option<(Time, Duration)>, at: Time) -> Visited {
    let address = work.url().href().to_owned();
    let path = path_of(&work);
    let line = log::Line {
        at,
        status,
        size: None,
        url: &address,
        hops: &hops(&work),
        via: path.and_then(|path| path.via.as_deref()),
        mime: None,
        span,
        sha1: None,
        annotations: tries(path),
    };
    let mut log = line.entry();
    if let End::Failed { detail, .. } = &end {
        log.extra.insert("error".to_owned(), detail.clone().into());
    }
    Visited {
        done: Done::new(work, end, at),
        members: None,
        log: Some(log),
        rows: PageRows::default(),
        address,
    }
}

fn path_of(work: &Work) -> Option<&Path> {
    match &work.what {
        What::Page { item, .. } => Some(&item.path),
        What::Robots(_) | What::Address(_) => None,
    }
}

fn hops(work: &Work) -> String {
    path_of(work).map_or_else(|| "P".to_owned(), |path| path.hops.clone())
}

fn tries(path: Option<&Path>) -> Vec<String> {
    match path {
        Some(path) if path.tries > 0 => vec![format!("{}t", u32::from(path.tries) + 1)],
        _ => Vec::new(),
    }
}

/// Reads a response; `None` if it is larger than that.
fn answered(
    work: &Work,
    response: &Response,
    at: Time,
    settings: &Settings,
    size: Size,
) -> Result<Option<Read>, WriteError> {
    if let Some(reading) = guarded(|| read(work, response, at, settings, size)) {
        let reading = reading.map_err(spool_failed)?;
        return Ok(reading.map(|reading| Read::Page(Box::new(reading))));
    }
    let detail = format!(
        "{}: a defect of this program met by this page; please report it",
        work.url()
    );
    tracing::error!("{detail}");
    let end = End::Failed {
        reason: "internal",
        detail,
        fault: Fault::Final,
        code: log::INTERNAL,
    };
    Ok(Some(Read::Defect {
        end,
        span: (response.started, response.took),
    }))
}

/// What reading came to.
enum Read {
    Page(Box<Reading>),
    Defect { end: End, span: (Time, Duration) },
}

impl Read {
    fn of(self, work: Work, at: Time) -> Visited {
        match self {
            Self::Defect { end, span } => unanswered(work, end, log::INTERNAL, Some(span), at),
            Self::Page(reading) => Visited {
                done: Done {
                    links: reading.judged.links,
                    counts: reading.judged.counts,
                    left: reading.left,
                    blocked: reading.judged.blocked,
                    met: reading.judged.met,
                    listed: reading.listed,
                    skipped: reading.skipped,
                    robots: reading.robots,
                    set_cookies: reading.set_cookies,
                    content: reading.content,
                    traps: reading.judged.traps,
                    repeated: reading.repeated,
                    ..Done::new(work, reading.end, at)
                },
                members: reading.members,
                log: Some(reading.log),
                rows: reading.rows,
                address: reading.address,
            },
        }
    }
}

/// The `Set-Cookie` headers of an answer. One that is not UTF-8 is left out: it could not be sent back as it came.
fn set_cookies(response: &Response) -> Vec<String> {
    let lines = response.header_all("set-cookie");
    lines
        .filter_map(|line| std::str::from_utf8(line).ok())
        .map(str::to_owned)
        .collect()
}

/// Runs what reads bytes that a stranger sent. Should it ever panic, one page is lost and named, and the crawl goes on.
fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(read)).ok()
}

/// What a response holds.
struct Reading {
    end: End,
    members: Option<Members>,
    log: LogEntry,
    judged: Judged,
    left: Left,
    listed: bool,
    skipped: Option<&'static str>,
    robots: Option<RobotsBody>,
    set_cookies: Vec<String>,
    content: Option<Content>,
    repeated: bool,
    rows: PageRows,
    address: String,
}

/// Did the answer end before its end? Of a robots.txt whatever kept its end away counts, but for our own bound on its size.
fn is_cut_short(work: &Work, response: &Response, fault: Option<DecodeFault>) -> bool {
    let robots = matches!(work.what, What::Robots(_));
    match response.truncated {
        Some(Truncated::Disconnect) => true,
        Some(Truncated::Time) => robots,
        Some(_) => false,
        None => robots && fault == Some(DecodeFault::Incomplete),
    }
}

fn read(work: &Work, response: &Response, at: Time, settings: &Settings, size: Size) -> io::Result<Option<Reading>> {
    let Some(Text { decoded, gathered }) = decoded(work, response, settings, size)? else {
        return Ok(None);
    };
    let text_cut = decoded.cut && matches!(work.what, What::Page { .. });
    let mime = response
        .header("content-type")
        .and_then(mime::parse)
        .map_or_else(|| "unk".to_owned(), |mime| mime.essence);
    let end = End::Answered {
        status: response.status,
        mime: mime.clone(),
        cut_short: is_cut_short(work, response, decoded.fault),
        retry_after: response
            .header_all("retry-after")
            .filter_map(|value| politeness::retry_after(value, at))
            .max(),
        received: response.body.len(),
        decoded: decoded.len,
    };
    let address = work.url().href().to_owned();
    let mut annotations = tries(path_of(work));
    annotations.extend(log::of_repeat(response.repeated));
    annotations.extend(log::of_wire(response));
    annotations.extend(response.skipped.map(|_| "midFetchAbort".to_owned()));
    annotations.extend(decoded.fault.map(|fault| format!("decode:{}", fault.as_str())));
    annotations.extend(text_cut.then(|| "extract:limit".to_owned()));
    let (page, robots) = match &work.what {
        What::Page { item, .. } => (read_page(item, response, &decoded, gathered, settings)?, None),
        What::Robots(errand) => {
            let robots = read_robots(&errand.url, response, &decoded, settings);
            let mut page = PageReading::default();
            if let Some(RobotsBody::Rules { rules, .. }) = &robots {
                let mut edges = settings.links.then(|| Edges::new(errand.url.href(), false));
                page.judged = settings.judge.judge_robots(errand, rules.sitemaps(), edges.as_mut());
                page.rows.links = edges.map(Edges::finish).transpose()?.unwrap_or_default();
            }
            (page, robots)
        }
        What::Address(_) => (PageReading::default(), None),
    };
    let content = match &work.what {
        What::Page { item, .. } => page::content(item, work.read, response, &decoded),
        _ => None,
    };
    annotations.extend(page.annotations());
    let left_out = settings.obey_noindex && page.directives.noindex;
    // a record without the body would replay as an empty page
    let members = (settings.archive && !left_out && response.skipped.is_none())
        .then(|| warc::encode(&address, response, &provenance(work, &annotations), &settings.spool))
        .transpose()?;
    let sha1 = members.as_ref().map(|members| members.meta.payload_sha1);
    let path = path_of(work);
    let line = log::Line {
        at,
        status: i32::from(response.status),
        size: Some(response.body.len()),
        url: &address,
        hops: &hops(work),
        via: path.and_then(|path| path.via.as_deref()),
        mime: Some(&mime),
        span: Some((response.started, response.took)),
        sha1,
        annotations,
    };
    let mut log = line.entry();
    if let Some(ip) = response.remote {
        log.extra.insert("ip".to_owned(), ip.to_string().into());
    }
    if let Some(skipped) = response.skipped {
        log.extra.insert("notArchived".to_owned(), skipped.word().into());
    }
    if left_out {
        log.extra.insert("notArchived".to_owned(), "noindex".into());
    }
    if let Some(found) = &page.sitemap {
        log.extra.insert("sitemapEntries".to_owned(), found.entries.into());
        let left = found.dropped + found.unusable;
        if left > 0 {
            log.extra.insert("sitemapLeft".to_owned(), left.into());
        }
    }
    if let Some(lastmod) = path.and_then(|path| path.lastmod) {
        // for crawls to come: what has not changed since need not be asked for
        let time = Time(u64::from(lastmod.get()) * 1_000_000);
        log.extra.insert("lastmod".to_owned(), time.rfc3339(0).into());
    }
    Ok(Some(Reading {
        end,
        members,
        log,
        judged: page.judged,
        left: Left {
            texts: page.left.texts.max(u64::from(text_cut)),
            ..page.left
        },
        listed: page.sitemap.is_some(),
        skipped: response.skipped.map(Skipped::word),
        robots,
        set_cookies: if settings.cookies {
            set_cookies(response)
        } else {
            Vec::new()
        },
        content,
        repeated: response.repeated.is_some(),
        rows: if left_out { PageRows::default() } else { page.rows },
        address,
    }))
}

fn provenance(work: &Work, annotations: &[String]) -> Provenance {
    let path = path_of(work);
    Provenance {
        via: path.and_then(|path| path.via.clone()),
        hops: hops(work),
        notes: annotations
            .iter()
            .map(|note| ("annotation".to_owned(), note.clone()))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_defect_costs_one_page_and_not_the_crawl() {
        assert_eq!(guarded(|| 7), Some(7));
        assert_eq!(guarded(|| -> u8 { panic!("met by a page") }), None);
    }
}
