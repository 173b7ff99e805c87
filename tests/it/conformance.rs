//! Cases collected from other crawlers and the standards, used where they lie.

use crawler::robots::Robots;
use serde_json::Value;

use crate::shared;

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
