//! Answers the cases of a conformance set with the product's own functions: JSON lines in, JSON lines out.
//!
//! `cargo run --release --example conform -- SET < cases.jsonl > answers.jsonl`

#[path = "conform/crawls.rs"]
mod crawls;
#[path = "conform/pages.rs"]
mod pages;

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use crawler::archive::verify;
use crawler::extract::sitemap::{self, EntryKind};
use crawler::robots::Robots;
use crawler::url::surt::plain::{self, Form};
use crawler::url::{Base, CrawlUrl, Identity, Rules, surt, to_ascii, whatwg_href};
use serde_json::{Value, json};

/// The answer fields of one case.
type Answer = fn(&Value) -> Value;

fn main() -> ExitCode {
    let set = std::env::args().nth(1).unwrap_or_default();
    let answer: Answer = match set.as_str() {
        "charset" => pages::charset,
        "content_type" => pages::content_type,
        "css_links" => pages::css_links,
        "dates" => crawls::dates,
        "html_links" => pages::html_links,
        "link_header" => pages::link_header,
        "meta_refresh" => pages::meta_refresh,
        "redirects" => crawls::redirects,
        "robots" => robots,
        "robots_fetch" => crawls::robots_fetch,
        "robots_meta" => crawls::robots_meta,
        "robots_real" => robots_real,
        "sitemaps" => sitemap,
        "srcset" => pages::srcset,
        "surt" => surt_key,
        "url_equiv" => url_equiv,
        "url_canon" => url_canon,
        "url_parse" => url_parse,
        "url_toascii" => url_to_ascii,
        "warc" | "wacz" => archived,
        _ => return usage(&set),
    };
    match answer_all(answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "conform: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage(set: &str) -> ExitCode {
    let _ = writeln!(
        io::stderr(),
        "conform: no such set: {set:?}; usage: conform SET < cases.jsonl"
    );
    ExitCode::from(2)
}

fn answer_all(answer: Answer) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let mut answer = answer(&case);
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("id".to_owned(), case.get("id").cloned().unwrap_or_default());
        }
        writeln!(out, "{answer}")?;
    }
    out.flush()
}

/// Is the file sound?
fn archived(case: &Value) -> Value {
    let path = std::path::Path::new(text(case, "file"));
    let found = verify::Kind::of(path).and_then(|kind| {
        let kind = kind.unwrap_or(verify::Kind::Warc);
        verify::file(path, kind, None, &mut verify::Ids::default())
    });
    match found {
        Ok(found) => {
            let problems: Vec<String> = found
                .faults
                .iter()
                .map(|fault| format!("{}: {}", fault.place, fault.text))
                .collect();
            json!({"ok": found.is_sound(), "problems": problems})
        }
        Err(error) => json!({"ok": false, "problems": [error.to_string()]}),
    }
}

fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_default()
}

fn parsed(case: &Value, field: &str) -> Option<CrawlUrl> {
    CrawlUrl::parse(text(case, field), &Identity::default()).ok()
}

fn robots_txt(case: &Value) -> Vec<u8> {
    match case["robots_txt_b64"].as_str() {
        Some(encoded) => data_encoding::BASE64.decode(encoded.as_bytes()).unwrap_or_default(),
        None => text(case, "robots_txt").as_bytes().to_vec(),
    }
}

/// May `question["url"]` be fetched by `question["user_agent"]`? Some addresses are longer than the crawler takes.
fn allowed(robots_txt: &[u8], question: &Value) -> Value {
    let robots = Robots::parse(robots_txt, text(question, "user_agent"));
    let Some(href) = whatwg_href(text(question, "url"), None) else {
        return Value::Null;
    };
    let sent = href.split('#').next().unwrap_or_default();
    let path = sent.splitn(4, '/').nth(3).unwrap_or_default();
    Value::Bool(robots.allows(&format!("/{path}")))
}

fn robots(case: &Value) -> Value {
    let file = robots_txt(case);
    match text(case, "kind") {
        "allowed" => json!({ "allowed": allowed(&file, case) }),
        "delay" => {
            let delay = Robots::parse(&file, text(case, "user_agent")).crawl_delay();
            json!({ "crawl_delay": delay.map(|delay| delay.as_secs_f64()) })
        }
        _ => json!({ "sitemaps": sitemaps(&file, case) }),
    }
}

/// The `Sitemap` lines as written; relative ones resolved against the robots.txt.
fn sitemaps(robots_txt: &[u8], case: &Value) -> Vec<String> {
    let identity = Identity::default();
    let base = parsed(case, "robots_url").map(|url| Base::of(&url, None));
    let absolute = |written: &String| match &base {
        Some(base) if CrawlUrl::parse(written, &identity).is_err() => {
            CrawlUrl::join(base, written, &identity).map_or_else(|_| written.clone(), |url| url.href().to_owned())
        }
        _ => written.clone(),
    };
    Robots::parse(robots_txt, "").sitemaps().iter().map(absolute).collect()
}

/// The pages and sitemaps of a file. Its pictures and the like are apart.
fn sitemap(case: &Value) -> Value {
    let bytes = match case["content_b64"].as_str() {
        Some(encoded) => data_encoding::BASE64.decode(encoded.as_bytes()).unwrap_or_default(),
        None => text(case, "content").as_bytes().to_vec(),
    };
    let mut urls = Vec::new();
    let mut lastmod = Vec::new();
    let content_type = case["content_type"].as_str().map(str::as_bytes);
    let summary = sitemap::read(content_type, &bytes, &mut |entry| {
        if matches!(entry.kind, EntryKind::Page | EntryKind::Sitemap) {
            urls.push(entry.loc.to_owned());
            lastmod.push(entry.lastmod.map(std::num::NonZeroU32::get));
        }
    });
    let kind = match summary.form {
        None => "error",
        Some(sitemap::Form::Index) => "index",
        Some(_) => "urlset",
    };
    json!({ "kind": kind, "urls": urls, "lastmod": lastmod })
}

fn robots_real(case: &Value) -> Value {
    let file = robots_txt(case);
    let checks = case["checks"].as_array().into_iter().flatten();
    json!({ "allowed": checks.map(|check| allowed(&file, check)).collect::<Vec<_>>() })
}

fn url_parse(case: &Value) -> Value {
    match whatwg_href(text(case, "input"), case["base"].as_str()) {
        Some(href) => json!({ "href": href }),
        None => json!({ "failure": true }),
    }
}

fn url_to_ascii(case: &Value) -> Value {
    json!({ "output": to_ascii(text(case, "input")) })
}

/// By the default rules, or by the optional ones that a second argument names: `url_equiv sort_query,drop_empty_query`.
fn url_equiv(case: &Value) -> Value {
    let argument = std::env::args().nth(2).unwrap_or_default();
    let switches: Vec<&str> = argument.split(',').filter(|name| !name.is_empty()).collect();
    let rules: Rules = serde_json::from_value(json!([switches, []])).unwrap_or_default();
    let identity = Identity::with(rules);
    let parsed = |field| CrawlUrl::parse(text(case, field), &identity).ok();
    let same = match (parsed("a"), parsed("b")) {
        (Some(a), Some(b)) => a.canonical() == b.canonical(),
        _ => false,
    };
    json!({ "same": same })
}

fn url_canon(case: &Value) -> Value {
    json!({ "output": parsed(case, "input").map(|url| url.canonical().to_owned()) })
}

/// The keys of indexes, or the forms that change nothing.
fn surt_key(case: &Value) -> Value {
    let plain = match text(case, "form") {
        "urlcanon.surt" => Some(Form::Surt),
        "urlcanon.surtWithoutScheme" => Some(Form::WithoutScheme),
        "urlcanon.surtWithoutTrailingComma" => Some(Form::WithoutTrailingComma),
        "urlcanon.ssurt" => Some(Form::HostFirst),
        _ => None,
    };
    if let Some(form) = plain {
        return json!({ "surt": plain::key(text(case, "url"), form) });
    }
    let flag = |name: &str, default: bool| {
        case.get("options")
            .and_then(|options| options.get(name))
            .and_then(Value::as_bool)
            .unwrap_or(default)
    };
    let standard = surt::Options::default();
    let options = surt::Options {
        with_scheme: flag("with_scheme", standard.with_scheme),
        trailing_comma: flag("trailing_comma", standard.trailing_comma),
        host_massage: flag("host_massage", standard.host_massage),
        reverse_ipaddr: flag("reverse_ipaddr", standard.reverse_ipaddr),
    };
    json!({ "surt": surt::surt_with(text(case, "url"), options) })
}
