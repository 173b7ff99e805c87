//! Cases collected from other crawlers and the standards, used where they lie.

use std::collections::BTreeSet;

use crawler::extract::sitemap::{self, EntryKind};
use crawler::robots::Robots;
use serde_json::Value;

use crate::shared;

#[path = "../../examples/conform/crawls.rs"]
mod crawls;

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
