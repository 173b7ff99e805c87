//! What stands on a page: links, what it says to crawlers, the user's fields.

use super::Settings;
use super::judge::Judged;
use crate::extract::directives::Directives;
use crate::extract::{self, charset, mime};
use crate::fetch::Response;
use crate::fetch::decode::Decoded;
use crate::frontier::Item;

/// What a page holds.
#[derive(Default)]
pub(super) struct PageReading {
    pub(super) judged: Judged,
    pub(super) links_dropped: u64,
    pub(super) directives: Directives,
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
        said.chain(left).chain(redirect).collect()
    }
}

/// Links and fields of a page.
pub(super) fn read_page(item: &Item, response: &Response, decoded: &Decoded<'_>, settings: &Settings) -> PageReading {
    let content_type = response.header("content-type");
    let mut text = String::new();
    let links = extract::extract_for(
        &settings.agent,
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
