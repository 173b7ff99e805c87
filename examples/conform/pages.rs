//! Sets that ask what is read out of one page, style sheet, header or attribute.

use crawler::extract::{self, LinkKind, Links, css, headers};
use crawler::url::{Base, CrawlUrl, Identity, whatwg_href};
use serde_json::{Value, json};

/// The bytes of a field, or of its form in Base64.
fn bytes(case: &Value, field: &str) -> Vec<u8> {
    match case[&format!("{field}_b64")].as_str() {
        Some(encoded) => data_encoding::BASE64.decode(encoded.as_bytes()).unwrap_or_default(),
        None => case[field].as_str().unwrap_or_default().as_bytes().to_vec(),
    }
}

/// What a crawler that obeys `nofollow` of whole pages leads to from this one. A crawl drops fragments and counts what is
/// not crawled; the set wants both, so they are put there again. The sources contradict each other about single links
/// with `rel=nofollow`: they are left out where the case says that its source does.
pub(crate) fn html_links(case: &Value) -> Value {
    let Some((page, content_type)) = page_of(case) else {
        return json!({ "links": [] });
    };
    let mut text = String::new();
    let body = bytes(case, "html");
    let links = extract::extract(200, Some(content_type.as_bytes()), &[], &body, &mut text);
    let obeys = case["note"]
        .as_str()
        .is_some_and(|note| note.starts_with("rel=nofollow"));
    let mut found = Vec::new();
    resolved(&page, &links, links.directives.nofollow, obeys, &mut found);
    json!({ "links": found })
}

fn page_of(case: &Value) -> Option<(CrawlUrl, &str)> {
    let page = CrawlUrl::parse(case["base_url"].as_str()?, &Identity::default()).ok()?;
    Some((page, case["content_type"].as_str().unwrap_or("text/html")))
}

fn resolved(page: &CrawlUrl, links: &Links<'_>, whole: bool, obeys: bool, found: &mut Vec<String>) {
    let identity = Identity::default();
    let base = Base::in_page(page, links.base.as_deref(), links.encoding);
    let around = CrawlUrl::join(&base, "", &identity);
    for link in &links.links {
        if (whole || obeys && link.nofollow) && link.kind == LinkKind::Navigation {
            continue;
        }
        let fragment = link.raw.split_once('#').map_or("", |(_, fragment)| fragment);
        let mark = if fragment.is_empty() { "" } else { "#" };
        match CrawlUrl::join(&base, &link.raw, &identity) {
            Ok(url) => found.push(format!("{}{mark}{fragment}", url.href())),
            // a scheme that is not crawled
            Err(_) => found.extend(whatwg_href(&link.raw, None)),
        }
    }
    for frame in &links.frames {
        resolved(around.as_ref().unwrap_or(page), frame, whole, obeys, found);
    }
}

/// The candidates of a srcset.
pub(crate) fn srcset(case: &Value) -> Value {
    let mut urls = Vec::new();
    extract::srcset::scan(case["srcset"].as_str().unwrap_or_default(), |url| urls.push(url));
    json!({ "urls": urls })
}

/// The addresses of a style sheet or a style attribute.
pub(crate) fn css_links(case: &Value) -> Value {
    let place = if case["inline"] == true {
        css::Place::Attribute
    } else {
        css::Place::Sheet
    };
    let (mut urls, mut imports) = (Vec::new(), Vec::new());
    css::scan(case["css"].as_str().unwrap_or_default(), place, |kind, url| {
        if kind == LinkKind::Stylesheet {
            imports.push(url.into_owned());
        } else {
            urls.push(url.into_owned());
        }
    });
    json!({ "urls": urls, "imports": imports })
}

/// A refresh as the value of `content`, or as a page has it. A browser drops tabs and line ends inside an address.
pub(crate) fn meta_refresh(case: &Value) -> Value {
    if let Some(content) = case["content"].as_str() {
        let read = headers::refresh(content);
        let url = read
            .and_then(|read| read.url)
            .map(|url| url.trim().replace(['\t', '\n', '\r'], ""));
        return json!({ "delay": read.map(|read| read.delay_s), "url": url });
    }
    let Some((page, content_type)) = page_of(case) else {
        return json!({ "delay": null });
    };
    let mut text = String::new();
    let body = bytes(case, "html");
    let links = extract::extract(200, Some(content_type.as_bytes()), &[], &body, &mut text);
    let base = Base::in_page(&page, links.base.as_deref(), links.encoding);
    let redirect = links.links.iter().find(|link| link.kind == LinkKind::Redirect);
    let url = redirect.and_then(|link| CrawlUrl::join(&base, &link.raw, &Identity::default()).ok());
    json!({ "delay": links.refresh_s, "url": url.map(|url| url.href().to_owned()) })
}

/// The links of a `Link` header that have a relation; without one they are none (RFC 8288, section 3.3), but the set
/// lists them.
pub(crate) fn link_header(case: &Value) -> Value {
    let base = case["base_url"].as_str();
    let value = case["value"].as_str().unwrap_or_default();
    let links = headers::link_header(value).into_iter().filter_map(|link| {
        let url = whatwg_href(link.target, base)?;
        Some(json!({ "url": url, "rel": link.rel }))
    });
    json!({ "links": links.collect::<Vec<_>>() })
}

/// The encoding that a page is read in.
pub(crate) fn charset(case: &Value) -> Value {
    let content_type = case["content_type"].as_str().map(str::as_bytes);
    let encoding = extract::charset::encoding(content_type, &bytes(case, "body"));
    json!({ "encoding": encoding.name() })
}

/// A media type read, or found by the first bytes.
pub(crate) fn content_type(case: &Value) -> Value {
    if case["kind"] == "parse" {
        let parsed = extract::mime::parse(case["input"].as_str().unwrap_or_default().as_bytes());
        let label = parsed.as_ref().and_then(|parsed| parsed.charset.as_deref());
        let encoding = label.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
        let charset = encoding.map(encoding_rs::Encoding::name);
        return json!({ "essence": parsed.map(|parsed| parsed.essence), "charset": charset });
    }
    let content_type = case["content_type"].as_str().map(str::as_bytes);
    json!({ "essence": extract::mime::sniff(content_type, &bytes(case, "body")) })
}
