//! ONE URL's visit, straight down: fetch → decode → extract → normalize → scope → encode for the archive.
//!
//! A visit changes nothing: it hands what it found to the loop. A bad page is data.

pub mod judge;
pub mod log;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::archive::warc::{self, Members, Provenance};
use crate::clock::Time;
use crate::extract::directives::Directives;
use crate::extract::fields::Fields;
use crate::extract::sitemap::{Form, Summary};
use crate::extract::{self, Role, charset, mime};
use crate::fetch::decode::{self, DecodeFault, Decoded};
use crate::fetch::{FetchError, Fetcher, Request, Response};
use crate::frontier::{Item, Path};
use crate::ledger::LogEntry;
use crate::politeness;
use crate::robots::{MAX_ROBOTS_BYTES, Robots};
use crate::scope::Sitemaps;
use crate::shard::{Done, End, RobotsBody, Way, What, Work};
use crate::url::{Base, CrawlUrl};
use judge::{Judge, Judged};

/// A body longer than this is worked on off the runtime's threads, bytes.
const LARGE_BODY: usize = 256 * 1024;

/// A byte of a sitemap is so many times the work of one of a page: it may be packed, and holds nothing but addresses.
const SITEMAP_WORK: usize = 32;

/// What all visits share.
pub struct Settings {
    /// Judges links.
    pub judge: Judge,
    /// Encode WARC members.
    pub archive: bool,
    /// Cap on a decoded body, bytes.
    pub max_decoded: usize,
    /// Do not archive a page that says `noindex`.
    pub obey_noindex: bool,
    /// The product token that robots.txt speaks to.
    pub agent: String,
    /// Fields for pages.jsonl.
    pub fields: Option<Fields>,
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
    /// For pages.jsonl.
    pub page: Option<String>,
    /// The address, for people.
    pub address: String,
}

/// Makes a request and reads what came. `started` is the loop's time at the moment `began`: read together, because an end
/// that is dated too early lets its host be asked again too soon.
pub async fn visit<F: Fetcher>(
    work: Work,
    started: Time,
    began: tokio::time::Instant,
    web: Arc<F>,
    settings: Arc<Settings>,
) -> Visited {
    let via = match &work.what {
        What::Page { item, .. } => item.path.via.clone(),
        What::Robots(_) => None,
        What::Address(url) => {
            let found = web.look_up(url).await;
            return looked_up(work, found, started + began.elapsed());
        }
    };
    if let Way::Nowhere(end) = work.way.clone() {
        let code = match &*end {
            End::Failed { code, .. } => *code,
            _ => log::INTERNAL,
        };
        return unanswered(work, *end, code, None, started);
    }
    let answer = web
        .fetch(Request {
            url: work.url().clone(),
            via,
            to: work.way.address(),
            cookie: work.cookie.clone(),
        })
        .await;
    let took = began.elapsed();
    // rounded up: the host rests from here
    let at = started + took + Duration::from_micros(1);
    let mut visited = match answer {
        Err(error) => failed(work, error, at),
        Ok(response) if response.body.len() > large(&work) => {
            let task = tokio::task::spawn_blocking(move || answered(work, &response, at, &settings));
            match task.await {
                Ok(visited) => visited,
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
            }
        }
        Ok(response) => answered(work, &response, at, &settings),
    };
    visited.done.took = took;
    visited
}

fn looked_up(work: Work, found: Result<IpAddr, FetchError>, at: Time) -> Visited {
    let address = work.url().href().to_owned();
    let end = found.map_or_else(no_answer, End::Found);
    Visited {
        done: Done::new(work, end, at),
        members: None,
        log: None,
        page: None,
        address,
    }
}

fn no_answer(error: FetchError) -> End {
    End::Failed {
        reason: error.kind.word(),
        detail: error.detail,
        code: error.kind.code(),
        retryable: error.kind.retryable(),
    }
}

/// The size of a body from which it is worked on elsewhere. A small sitemap may hold very many addresses.
fn large(work: &Work) -> usize {
    if path_of(work).is_some_and(Path::is_sitemap) {
        LARGE_BODY / SITEMAP_WORK
    } else {
        LARGE_BODY
    }
}

fn failed(work: Work, error: FetchError, at: Time) -> Visited {
    let span = Some((error.started, error.took));
    let code = error.kind.code();
    unanswered(work, no_answer(error), code, span, at)
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
        page: None,
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

fn answered(work: Work, response: &Response, at: Time, settings: &Settings) -> Visited {
    let Some(reading) = guarded(|| read(&work, response, at, settings)) else {
        let detail = format!(
            "{}: a defect of this program met by this page; please report it",
            work.url()
        );
        tracing::error!("{detail}");
        let end = End::Failed {
            reason: "internal",
            detail,
            retryable: false,
            code: log::INTERNAL,
        };
        return unanswered(work, end, log::INTERNAL, Some((response.started, response.took)), at);
    };
    Visited {
        done: Done {
            links: reading.judged.links,
            counts: reading.judged.counts,
            links_dropped: reading.links_dropped,
            listed: reading.listed,
            robots: reading.robots,
            set_cookies: if settings.cookies {
                set_cookies(response)
            } else {
                Vec::new()
            },
            ..Done::new(work, reading.end, at)
        },
        members: reading.members,
        log: Some(reading.log),
        page: reading.page,
        address: reading.address,
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
    links_dropped: u64,
    listed: bool,
    robots: Option<RobotsBody>,
    page: Option<String>,
    address: String,
}

fn read(work: &Work, response: &Response, at: Time, settings: &Settings) -> Reading {
    let encodings: Vec<&[u8]> = response.header_all("content-encoding").collect();
    let decoded = decode::decode(&encodings, &response.body, settings.max_decoded);
    let mime = response
        .header("content-type")
        .and_then(mime::parse)
        .map_or_else(|| "unk".to_owned(), |mime| mime.essence);
    let end = End::Answered {
        status: response.status,
        mime: mime.clone(),
        cut_short: response.truncated == Some(crate::fetch::Truncated::Disconnect),
        retry_after: response
            .header("retry-after")
            .and_then(|value| politeness::retry_after(value, at)),
        received: response.body.len() as u64,
        decoded: decoded.bytes.len() as u64,
    };
    let address = work.url().href().to_owned();
    let mut annotations = tries(path_of(work));
    annotations.extend(response.truncated.map(|why| annotation(why).to_owned()));
    annotations.extend(decoded.fault.map(|fault| format!("decode:{}", word(fault))));
    let (page, robots) = match &work.what {
        What::Page { item, .. } => (read_page(item, response, &decoded, settings), None),
        What::Robots(errand) => {
            let robots = read_robots(&errand.url, response, &decoded, settings);
            let mut page = PageReading::default();
            if let Some(RobotsBody::Rules { rules, .. }) = &robots {
                page.judged = settings.judge.judge_robots(errand, rules.sitemaps());
            }
            (page, robots)
        }
        What::Address(_) => (PageReading::default(), None),
    };
    annotations.extend(page.annotations());
    let left_out = settings.obey_noindex && page.directives.noindex;
    let members =
        (settings.archive && !left_out).then(|| warc::encode(&address, response, &provenance(work, &annotations)));
    let sha1 = members.as_ref().map(|members| members.meta.payload_sha1);
    let path = path_of(work);
    let line = log::Line {
        at,
        status: i32::from(response.status),
        size: Some(response.body.len() as u64),
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
    Reading {
        end,
        members,
        log,
        judged: page.judged,
        links_dropped: page.links_dropped,
        robots,
        page: page.fields.filter(|_| !left_out),
        listed: page.sitemap.is_some(),
        address,
    }
}

/// Heritrix's annotation for a body that is not whole.
fn annotation(why: crate::fetch::Truncated) -> &'static str {
    match why {
        crate::fetch::Truncated::Length => "lenTrunc",
        crate::fetch::Truncated::Time => "timeTrunc",
        crate::fetch::Truncated::Disconnect => "midFetchTrunc",
    }
}

fn word(fault: DecodeFault) -> &'static str {
    match fault {
        DecodeFault::Incomplete => "incomplete",
        DecodeFault::Limit => "limit",
        DecodeFault::Unsupported => "unsupported",
    }
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

/// What a page holds.
#[derive(Default)]
struct PageReading {
    judged: Judged,
    links_dropped: u64,
    directives: Directives,
    /// It was read as a sitemap.
    sitemap: Option<Summary>,
    /// Its line of pages.jsonl.
    fields: Option<String>,
}

impl PageReading {
    /// What the page says to crawlers, how many of its links were left for it, and why a redirect is not followed.
    fn annotations(&self) -> Vec<String> {
        let said = [
            (self.directives.noindex, "robots:noindex"),
            (self.directives.nofollow, "robots:nofollow"),
        ];
        let said = said
            .iter()
            .filter(|(said, _)| *said)
            .map(|(_, word)| (*word).to_owned());
        let left = (self.judged.nofollow > 0).then(|| format!("nofollow:{}", self.judged.nofollow));
        let redirect = self.judged.redirect.map(|why| format!("redirect:{why}"));
        let sitemap = self.sitemap.iter().flat_map(sitemap_notes);
        said.chain(left).chain(redirect).chain(sitemap).collect()
    }
}

/// Links and fields of a page.
fn read_page(item: &Item, response: &Response, decoded: &Decoded<'_>, settings: &Settings) -> PageReading {
    let content_type = response.header("content-type");
    let mut text = String::new();
    let links = extract::extract_for(
        &settings.agent,
        role(&item.path, settings),
        response.status,
        content_type,
        &response.headers,
        &decoded.bytes,
        &mut text,
    );
    let mut page = PageReading {
        judged: settings.judge.judge(item, &links),
        links_dropped: links.dropped,
        directives: links.directives,
        sitemap: links.sitemap,
        fields: None,
    };
    let Some(fields) = &settings.fields else { return page };
    let html = ["text/html", "application/xhtml+xml"];
    if !html.contains(&mime::sniff(content_type, &decoded.bytes).as_str()) {
        return page;
    }
    let mut line = serde_json::Map::new();
    line.insert("url".to_owned(), item.url.href().into());
    line.insert("time".to_owned(), response.started.rfc3339(3).into());
    line.insert("status".to_owned(), response.status.into());
    line.extend(fields.extract(&charset::decode(content_type, &decoded.bytes).1));
    page.fields = Some(format!("{}\n", serde_json::Value::Object(line)));
    page
}

/// What the body of this URL may be.
fn role(path: &Path, settings: &Settings) -> Role {
    if path.is_sitemap() {
        Role::Sitemap
    } else if path.seed.is_some() {
        Role::Seed
    } else if settings.judge.sitemaps == Sitemaps::Yes {
        Role::Either
    } else {
        Role::Page
    }
}

/// What crawl.log says of a sitemap.
fn sitemap_notes(found: &Summary) -> Vec<String> {
    let form = found.form.map_or("none", Form::as_str);
    [(true, form), (found.broken, "broken"), (found.too_large, "limit")]
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, word)| format!("sitemap:{word}"))
        .collect()
}

fn read_robots(url: &CrawlUrl, response: &Response, decoded: &Decoded<'_>, settings: &Settings) -> Option<RobotsBody> {
    match response.status {
        200..=299 => {
            let bytes = decoded.bytes.get(..MAX_ROBOTS_BYTES).unwrap_or(&decoded.bytes).to_vec();
            Some(RobotsBody::Rules {
                rules: Robots::parse(&bytes, &settings.agent),
                bytes,
            })
        }
        300..=399 => {
            let location = String::from_utf8_lossy(response.header("location")?);
            let base = Base::of(url, None);
            CrawlUrl::join(&base, &location, &settings.judge.identity)
                .ok()
                .map(RobotsBody::Redirect)
        }
        _ => None,
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
