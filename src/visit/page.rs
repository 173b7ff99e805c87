//! What stands on a page: links, what it says to crawlers, the user's fields.

use std::io;

use serde_json::{Map, Value};

use super::Settings;
use super::edges::Edges;
use super::judge::Judged;
use crate::extract::directives::Directives;
use crate::extract::fields::{Fields, Page};
use crate::extract::sitemap::{Form, Gather, Summary};
use crate::extract::{self, LinkKind, Links, RawLink, Role, Wanted, charset, mime};
use crate::fetch::decode::{DecodeFault, Decoded};
use crate::fetch::{Response, Truncated};
use crate::frontier::{Item, Path};
use crate::ledger::PageRows;
use crate::robots::{self, Robots};
use crate::scope::Sitemaps;
use crate::shard::RobotsBody;
use crate::stats::Left;
use crate::traps::Content;
use crate::url::{Base, CrawlUrl};

/// What a page holds.
#[derive(Default)]
pub(super) struct PageReading {
    pub(super) judged: Judged,
    pub(super) left: Left,
    pub(super) directives: Directives,
    /// It was read as a sitemap.
    pub(super) sitemap: Option<Summary>,
    /// Its lines of pages.jsonl.zst and links.jsonl.zst.
    pub(super) rows: PageRows,
}

impl PageReading {
    /// What the page says to crawlers, how many of its links were left for it or for a blocklist, and why a redirect is not followed.
    pub(super) fn annotations(&self) -> Vec<String> {
        let said = [
            (self.directives.noindex, "robots:noindex"),
            (self.directives.nofollow, "robots:nofollow"),
        ];
        let said = said
            .iter()
            .filter(|(said, _)| *said)
            .map(|(_, word)| (*word).to_owned());
        let left = (self.judged.nofollow > 0).then(|| format!("nofollow:{}", self.judged.nofollow));
        let blocked = (self.judged.blocked > 0).then(|| format!("blocklist:{}", self.judged.blocked));
        let redirect = self.judged.redirect.map(|why| format!("redirect:{why}"));
        let sitemap = self.sitemap.iter().flat_map(sitemap_notes);
        said.chain(left).chain(blocked).chain(redirect).chain(sitemap).collect()
    }
}

/// Links and fields of a page.
pub(super) fn read_page(
    item: &Item,
    response: &Response,
    decoded: &Decoded<'_>,
    gathered: Option<Gather>,
    settings: &Settings,
) -> io::Result<PageReading> {
    let content_type = response.header("content-type");
    let mut text = String::new();
    let wanted = Wanted {
        agent: &settings.agent,
        role: role(&item.path, settings),
        speculative: settings.judge.speculative && !item.path.is_speculative(),
        details: settings.links,
    };
    let links = extract::extract_listing(
        wanted,
        response.status,
        content_type,
        &response.headers,
        &decoded.bytes,
        gathered,
        &mut text,
    );
    let mut edges = settings
        .links
        .then(|| Edges::new(item.url.href(), links.directives.nofollow));
    let judged = settings.judge.judge_with(item, &links, edges.as_mut());
    let mut rows = PageRows {
        links: edges.map(Edges::finish).transpose()?.unwrap_or_default(),
        ..PageRows::default()
    };
    if let Some(fields) = &settings.fields
        && let Some(row) = row(fields, item, response, decoded, &links, &judged, settings)
    {
        rows.fields.push(row.to_string().as_bytes())?;
    }
    let left = left_of(&links);
    settings.judge.name_left(&left, item.url.href());
    Ok(PageReading {
        judged,
        left,
        directives: links.directives,
        sitemap: links.sitemap,
        rows,
    })
}

/// The fields of an HTML page.
fn row(
    fields: &Fields,
    item: &Item,
    response: &Response,
    decoded: &Decoded<'_>,
    links: &Links<'_>,
    judged: &Judged,
    settings: &Settings,
) -> Option<Value> {
    let content_type = response.header("content-type");
    let essence = mime::sniff(content_type, &decoded.bytes);
    let xhtml = essence == "application/xhtml+xml";
    if !xhtml && essence != "text/html" {
        return None;
    }
    let base = Base::in_page(&item.url, links.base.as_deref(), links.encoding);
    let language = response.header("content-language");
    let page = Page {
        text: &charset::decode(content_type, &decoded.bytes).1,
        xhtml,
        host: item.url.host_key(),
        language: language.and_then(|value| std::str::from_utf8(value).ok()),
        resolve: &|raw| {
            let url = CrawlUrl::join(&base, raw, &settings.judge.identity).ok()?;
            Some(url.href().to_owned())
        },
        links: &|| counts(links, judged),
    };
    let mut line = Map::new();
    line.insert("url".to_owned(), item.url.href().into());
    line.insert("time".to_owned(), response.started.rfc3339(3).into());
    line.insert("status".to_owned(), response.status.into());
    line.extend(fields.extract(&page));
    Some(Value::Object(line))
}

/// The numbers of the built-in field `links`.
pub const LINK_COUNTS: [&str; 8] = [
    "found",
    "navigation",
    "requisite",
    "nofollow",
    "in_scope",
    "out_of_scope",
    "malformed",
    "dropped",
];

/// How many links a page has, by kind and by what came of them.
fn counts(links: &Links<'_>, judged: &Judged) -> Value {
    fn of(links: &Links<'_>, which: &dyn Fn(&RawLink<'_>) -> bool) -> usize {
        let own = links.links.iter().filter(|link| which(link)).count();
        own + links.frames.iter().map(|frame| of(frame, which)).sum::<usize>()
    }
    let requisite = |link: &RawLink<'_>| matches!(link.kind, LinkKind::Requisite | LinkKind::Stylesheet);
    let counts = [
        of(links, &|_| true) as u64,
        of(links, &|link| link.kind == LinkKind::Navigation) as u64,
        of(links, &requisite) as u64,
        of(links, &|link| link.nofollow || links.directives.nofollow) as u64,
        judged.links.len() as u64,
        judged.counts.out_of_scope,
        judged.counts.malformed,
        links.dropped,
    ];
    let named = LINK_COUNTS.into_iter().zip(counts);
    Value::Object(named.map(|(name, count)| (name.to_owned(), count.into())).collect())
}

/// What bounds kept out of a page's links.
fn left_of(links: &Links<'_>) -> Left {
    let sitemap = links.sitemap.as_ref();
    Left {
        links: links.dropped,
        entries: sitemap.map_or(0, |found| found.dropped),
        texts: sitemap.map_or(0, |found| u64::from(found.too_large)),
    }
}

/// What a robots.txt says, or where it has moved to.
pub(super) fn read_robots(
    url: &CrawlUrl,
    response: &Response,
    decoded: &Decoded<'_>,
    settings: &Settings,
) -> Option<RobotsBody> {
    match response.status {
        200..=299 => {
            // where we stopped reading, a line is cut; what was cut otherwise is not believed (the shard asks again)
            let stopped = response.truncated == Some(Truncated::Length);
            let whole = !stopped && decoded.fault != Some(DecodeFault::Limit);
            let bytes = robots::read_of(&decoded.bytes, whole).to_vec();
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

/// What an HTML page says. A redirect says nothing. If nobody asks, or if the page shares nothing with the one it was found
/// on, it is not read.
pub(super) fn content(item: &Item, asked: bool, response: &Response, decoded: &Decoded<'_>) -> Option<Content> {
    let redirects = (300..400).contains(&response.status);
    let html = ["text/html", "application/xhtml+xml"];
    let is_html = || html.contains(&mime::sniff(response.header("content-type"), &decoded.bytes).as_str());
    (!redirects && is_html()).then(|| {
        if asked && !item.path.lineage.kin.is_none() {
            Content::of(&decoded.bytes, &item.url)
        } else {
            Content::UNREAD
        }
    })
}

/// What the body of this URL may be.
pub(super) fn role(path: &Path, settings: &Settings) -> Role {
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
