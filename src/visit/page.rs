//! What stands on a page: links, what it says to crawlers, the user's fields.

use super::Settings;
use super::judge::Judged;
use crate::extract::directives::Directives;
use crate::extract::sitemap::{Form, Summary};
use crate::extract::{self, Links, Role, Wanted, charset, mime};
use crate::fetch::decode::{DecodeFault, Decoded};
use crate::fetch::{Response, Truncated};
use crate::frontier::{Item, Path};
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
    /// Its line of pages.jsonl.
    pub(super) fields: Option<String>,
}

impl PageReading {
    /// What the page says to crawlers, how many of its links were left for it, and why a redirect is not followed.
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
        let redirect = self.judged.redirect.map(|why| format!("redirect:{why}"));
        let sitemap = self.sitemap.iter().flat_map(sitemap_notes);
        said.chain(left).chain(redirect).chain(sitemap).collect()
    }
}

/// Links and fields of a page.
pub(super) fn read_page(item: &Item, response: &Response, decoded: &Decoded<'_>, settings: &Settings) -> PageReading {
    let content_type = response.header("content-type");
    let mut text = String::new();
    let wanted = Wanted {
        agent: &settings.agent,
        role: role(&item.path, settings),
        speculative: settings.judge.speculative && !item.path.is_speculative(),
    };
    let links = extract::extract_for(
        wanted,
        response.status,
        content_type,
        &response.headers,
        &decoded.bytes,
        &mut text,
    );
    let mut page = PageReading {
        judged: settings.judge.judge(item, &links),
        left: left_of(&links),
        directives: links.directives,
        sitemap: links.sitemap,
        fields: None,
    };
    settings.judge.name_left(&page.left, item.url.href());
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
            // where we stopped reading, a line is cut; where the server did, it is the file's last
            let stopped = matches!(response.truncated, Some(Truncated::Length | Truncated::Time));
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
