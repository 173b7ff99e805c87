//! Cases collected from other crawlers and the standards, used where they lie.

use std::collections::BTreeSet;

use crawler::extract::sitemap::{self, EntryKind};
use crawler::robots::Robots;
use serde_json::Value;

use crate::shared;

#[path = "../../examples/conform/crawls.rs"]
mod crawls;
#[path = "../../examples/conform/pages.rs"]
mod pages;

/// The rows of a set that lie beside the repository, if they do, and our own.
fn rows(set: &str, own: &str) -> Vec<Value> {
    let theirs = shared::path(&format!("conformance/{set}.jsonl")).map(|file| std::fs::read_to_string(file).unwrap());
    let texts = [theirs.unwrap_or_default(), own.to_owned()];
    let lines = texts.iter().flat_map(|text| text.lines());
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Fails unless each row of these tiers is answered as it says in these fields.
fn hold(set: &str, own: &str, tiers: &[&str], fields: &[&str], answer: fn(&Value) -> Value) {
    let mut judged = 0;
    let mut wrong = Vec::new();
    for row in rows(set, own) {
        if !tiers.iter().any(|tier| row["tier"] == *tier) {
            continue;
        }
        judged += 1;
        let answer = answer(&row);
        for field in fields.iter().filter(|field| row.get(**field).is_some()) {
            let expected = &row[field];
            if answer[field] != *expected && expected != "any" {
                wrong.push(format!("{}: {field} {} and not {expected}", row["id"], answer[field]));
            }
        }
    }
    assert!(judged >= own.lines().count(), "{set}: only {judged} rows");
    assert!(wrong.is_empty(), "{set}, of {judged}:\n{}", wrong.join("\n"));
}

#[test]
fn an_answer_for_robots_txt_means_what_the_standard_says() {
    let own = include_str!("../data/conformance/robots_fetch.jsonl");
    hold(
        "robots_fetch",
        own,
        &["must", "should"],
        &["mode"],
        crawls::robots_fetch,
    );
}

#[test]
fn what_a_page_says_to_crawlers_is_understood() {
    let own = include_str!("../data/conformance/robots_meta.jsonl");
    hold(
        "robots_meta",
        own,
        &["core"],
        &["noindex", "nofollow"],
        crawls::robots_meta,
    );
}

#[test]
fn chains_of_redirects_end_where_they_should() {
    let own = include_str!("../data/conformance/redirects.jsonl");
    hold("redirects", own, &["core"], &["final_url"], crawls::redirects);
}

#[test]
fn dates_and_waits_are_read_as_others_read_them() {
    let own = include_str!("../data/conformance/dates.jsonl");
    hold("dates", own, &["core", "lenient"], &["epoch", "delay_s"], crawls::dates);
}

/// As the answers of a set without an order of their own are compared.
fn sorted(values: &Value) -> Vec<String> {
    let list = values.as_array().into_iter().flatten();
    let mut texts: Vec<String> = list
        .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
        .collect();
    texts.sort();
    texts.dedup();
    texts
}

/// Fails unless `is_right` says so of each core row and its answer.
fn judge_rows(set: &str, own: &str, answer: fn(&Value) -> Value, is_right: impl Fn(&Value, &Value) -> bool) {
    let rows = rows(set, own);
    let core: Vec<&Value> = rows.iter().filter(|row| row["tier"] == "core").collect();
    let wrong = core.iter().filter_map(|row| {
        let answer = answer(row);
        (!is_right(row, &answer)).then(|| format!("{}: {answer}", row["id"]))
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(core.len() >= own.lines().count(), "{set}: only {} rows", core.len());
    assert!(wrong.is_empty(), "{set}, of {}:\n{}", core.len(), wrong.join("\n"));
}

#[test]
fn pages_give_the_links_that_they_have() {
    let own = include_str!("../data/conformance/html_links.jsonl");
    judge_rows("html_links", own, pages::html_links, |row, answer| {
        let found = sorted(&answer["links"]);
        let has = |url: &String| found.contains(url);
        sorted(&row["expected_links"]).iter().all(has) && !sorted(&row["not_links"]).iter().any(has)
    });
}

#[test]
fn srcsets_are_read_as_browsers_read_them() {
    let own = include_str!("../data/conformance/srcset.jsonl");
    judge_rows("srcset", own, pages::srcset, |row, answer| {
        let urls = answer["urls"]
            .as_array()
            .unwrap()
            .iter()
            .map(|url| url.as_str().unwrap().trim());
        match row["urls"].as_array() {
            Some(want) => urls
                .filter(|url| !url.starts_with("data:"))
                .eq(want.iter().map(|url| url.as_str().unwrap())),
            None => row["chosen"] == "" || urls.into_iter().any(|url| row["chosen"] == url),
        }
    });
}

#[test]
fn style_sheets_give_their_addresses() {
    let own = include_str!("../data/conformance/css_links.jsonl");
    judge_rows("css_links", own, pages::css_links, |row, answer| {
        let all = |of: &Value| {
            let both = [sorted(&of["urls"]), sorted(&of["imports"])].concat();
            let mut all: Vec<String> = both.iter().map(|url| url.trim().to_owned()).collect();
            all.sort();
            all.dedup();
            all
        };
        all(row) == all(answer)
    });
}

#[test]
fn refreshes_are_read_as_browsers_read_them() {
    let own = include_str!("../data/conformance/meta_refresh.jsonl");
    judge_rows("meta_refresh", own, pages::meta_refresh, |row, answer| {
        let whole = |delay: &Value| delay.as_f64().map(f64::trunc);
        whole(&row["delay"]) == whole(&answer["delay"]) && (row["delay"].is_null() || row["url"] == answer["url"])
    });
}

#[test]
fn link_headers_give_their_links() {
    let own = include_str!("../data/conformance/link_header.jsonl");
    judge_rows("link_header", own, pages::link_header, |row, answer| {
        let pairs = |of: &Value| {
            let mut pairs = Vec::new();
            for link in of["links"].as_array().into_iter().flatten() {
                let rel = link["rel"].as_str().unwrap_or_default().to_lowercase();
                let url = link["url"].as_str().unwrap_or_default();
                let before = pairs.len();
                pairs.extend(rel.split_whitespace().map(|rel| format!("{url} {rel}")));
                if pairs.len() == before {
                    pairs.push(url.to_owned());
                }
            }
            pairs.sort();
            pairs
        };
        pairs(row) == pairs(answer)
    });
}

#[test]
fn encodings_and_types_are_found_as_browsers_find_them() {
    let lower = |value: &Value| value.as_str().map(str::to_lowercase);
    let own = include_str!("../data/conformance/charset.jsonl");
    judge_rows("charset", own, pages::charset, |row, answer| {
        lower(&row["encoding"]) == lower(&answer["encoding"])
    });
    let own = include_str!("../data/conformance/content_type.jsonl");
    judge_rows("content_type", own, pages::content_type, |row, answer| {
        let same = |field: &str| row.get(field).is_none_or(|want| lower(want) == lower(&answer[field]));
        same("essence") && same("charset")
    });
}

/// The core tier of the robots.txt cases: the sources and the two reference programs agree about each.
#[test]
fn robots_txt_is_read_as_the_reference_programs_read_it() {
    let Some(file) = shared::path("conformance/robots.jsonl") else {
        println!("no shared test data on this machine");
        return;
    };
    let text = std::fs::read_to_string(file).unwrap();
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut judged = 0;
    let mut wrong = Vec::new();
    for case in cases.filter(|case| case["tier"] == "core" && case["kind"] == "allowed") {
        let Some(robots_txt) = robots_bytes(&case) else {
            continue;
        };
        let Ok(url) = url::Url::parse(case["url"].as_str().unwrap()) else {
            continue;
        };
        let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let rules = Robots::parse(&robots_txt, case["user_agent"].as_str().unwrap());
        judged += 1;
        if Some(rules.allows(path)) != case["allowed"].as_bool() {
            wrong.push(case["id"].as_str().unwrap().to_owned());
        }
    }
    assert!(judged > 500, "only {judged} cases");
    assert!(wrong.is_empty(), "{} of {judged} wrong: {wrong:?}", wrong.len());
}

fn robots_bytes(case: &Value) -> Option<Vec<u8>> {
    if let Some(text) = case["robots_txt"].as_str() {
        return Some(text.as_bytes().to_vec());
    }
    data_encoding::BASE64
        .decode(case["robots_txt_b64"].as_str()?.as_bytes())
        .ok()
}

/// The core tier of the sitemap cases: their addresses, as a set.
#[test]
fn sitemaps_give_the_addresses_that_their_sources_expect() {
    let Some(file) = shared::path("conformance/sitemaps.jsonl") else {
        println!("no shared test data on this machine");
        return;
    };
    let text = std::fs::read_to_string(file).unwrap();
    let cases = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut judged = 0;
    let mut wrong = Vec::new();
    for case in cases.filter(|case| case["tier"] == "core") {
        let bytes = match case["content"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => data_encoding::BASE64
                .decode(case["content_b64"].as_str().unwrap().as_bytes())
                .unwrap(),
        };
        let mut found = BTreeSet::new();
        sitemap::read(case["content_type"].as_str().map(str::as_bytes), &bytes, &mut |entry| {
            if matches!(entry.kind, EntryKind::Page | EntryKind::Sitemap) {
                found.insert(entry.loc.to_owned());
            }
        });
        let urls = case["urls"].as_array().unwrap().iter();
        let expected: BTreeSet<String> = urls.map(|url| url.as_str().unwrap().trim().to_owned()).collect();
        judged += 1;
        if found != expected {
            wrong.push(case["id"].as_str().unwrap().to_owned());
        }
    }
    assert!(judged > 50, "only {judged} cases");
    assert!(wrong.is_empty(), "{} of {judged} wrong: {wrong:?}", wrong.len());
}
