//! Cases from the field: what a server sends, and what a correct crawler then does, played and judged with the real
//! binary. The shared cases are used where they lie; a few of our own run everywhere.

mod expect;
mod format;
mod judge;
mod parts;
mod run;
mod serve;
mod settings;
mod vectors;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use serde_json::json;

use self::format::Reply;
use self::format::{Case, Kind};
use self::parts::{Fill, Step, steps};
use self::serve::{Event, Player};
use crate::shared;

/// Names a single case to be run.
const ONE_CASE: &str = "CRAWLER_CASE";

const OUR_OWN: &str = include_str!("../../data/cases.jsonl");

/// Cases that are played at once. Most of their time is waiting.
const AT_ONCE: usize = 8;

/// Shared cases that do not pass, and what is missing. The test fails when one of them passes, so that the list is
/// always what is so.
const NOT_YET: &[(&str, &str)] = &[];

/// Cases whose bytes are compared: chunks, hex, base64, counts, repetitions, pauses, placeholders. (What is compressed
/// is not: another compressor makes other bytes of the same text.)
const COMPARED: &[&str] = &[
    "http-chunk-trailers",
    "http-early-hints",
    "http-folded-header",
    "http-many-headers",
    "http-no-reason-phrase",
    "redir-utf8-bytes",
    "redir-out-of-scope",
    "robots-long",
    "cs-utf16-page",
];

#[test]
fn our_own_cases_end_as_they_should() {
    let cases = format::read(OUR_OWN);
    let bad = judged(&cases);
    assert!(bad.is_empty(), "{}", listed(&bad));
}

#[test]
fn cases_from_the_field_end_as_they_should() {
    let Some(file) = shared::path("cases/cases.jsonl") else {
        return say("no shared cases on this machine: only our own cases are run");
    };
    let cases = format::read(&std::fs::read_to_string(file).unwrap());
    let bad = judged(&cases);
    let known: BTreeMap<&str, &str> = NOT_YET.iter().copied().collect();
    let mut news: Vec<String> = Vec::new();
    for (id, complaints) in &bad {
        if !known.contains_key(id.as_str()) {
            news.push(format!("{id} fails:\n{}", complaints.join("\n")));
        }
    }
    for (id, missing) in &known {
        if !bad.contains_key(*id) {
            news.push(format!("{id} passes now; take it off the list ({missing})"));
        }
    }
    assert!(news.is_empty(), "of {} cases:\n{}", cases.len(), news.join("\n"));
}

/// The reference player's bytes of some responses, a few of each kind of part and step.
#[test]
fn the_player_sends_what_the_reference_player_sends() {
    let (Some(program), Some(list)) = (shared::path("cases/serve.py"), shared::path("cases/cases.jsonl")) else {
        return say("no reference player on this machine: the player's bytes are not compared");
    };
    let cases = format::read(&std::fs::read_to_string(list).unwrap());
    let mut compared = 0;
    for case in cases.iter().filter(|case| COMPARED.contains(&case.id.as_str())) {
        for route in &case.serve {
            let Some(target) = route.path_alone() else { continue };
            let asked = route.asked_for(target);
            let first = case.serve.iter().find(|other| other.groups(&asked).is_some()).unwrap();
            let reference = Command::new("python3")
                .arg(&program)
                .args(["show", &case.id, target, "--host", &route.host, "--port", "18080"])
                .output()
                .unwrap();
            let complaint = String::from_utf8_lossy(&reference.stderr);
            assert!(reference.status.success(), "{complaint}");
            let fill = Fill {
                target,
                ..Fill::of(case, 18_080)
            };
            assert_eq!(
                sent(&first.responses[0], &fill),
                reference.stdout,
                "{} {target}",
                case.id
            );
            compared += 1;
        }
    }
    assert!(compared >= COMPARED.len(), "only {compared} responses");
}

/// What is expected wrongly is complained about, each thing by itself.
#[test]
fn the_judges_can_say_no() {
    let cases = format::read(OUR_OWN);
    let trap = cases.iter().find(|case| case.id == "own-trap").unwrap();
    for (key, wrong) in [
        ("fetched", json!(["one.test /nowhere"])),
        ("not_fetched", json!(["one.test /good"])),
        ("not_fetched_regex", json!(["good$"])),
        ("at_most", json!({"one.test /good": 0})),
        ("max_requests", json!(2)),
        ("only_hosts", json!([])),
        ("min_gap_ms", json!({"one.test": 60_000})),
        ("before", json!([["one.test /good", "one.test /"]])),
        ("first", json!({"within": 1, "urls": ["one.test /good"]})),
        ("max_head_bytes", json!(20)),
        ("absent_headers", json!({"one.test": ["user-agent"]})),
        ("within_s", json!(0)),
        ("exit_code", json!("nonzero")),
        ("max_rss_mb", json!(1)),
        ("stderr_names_file", json!(true)),
        ("statuses", json!({"http://{@one.test}/good": "404"})),
        (
            "archive_records",
            json!([{"uri": "http://{@one.test}/good", "type": "response", "count": 2}]),
        ),
        (
            "archive_records",
            json!([{"uri": "http://{@one.test}/good", "type": "response", "payload_text": "leaves"}]),
        ),
        (
            "archive_records",
            json!([{"uri": "http://{@one.test}/good", "type": "response", "truncated": "time"}]),
        ),
        ("archive_header_regex", json!({"WARC-Target-URI": "^ftp:"})),
        ("archive_text_absent", json!(["leaf"])),
        ("stats", json!({"ok": 0})),
    ] {
        let mut case = trap.clone();
        case.expect = json!({ key: wrong });
        assert_eq!(play(&case).len().min(1), 1, "{key} {wrong} is let pass");
    }
}

/// The bytes of a response, without its pauses.
fn sent(reply: &Reply, fill: &Fill<'_>) -> Vec<u8> {
    let bytes = steps(reply, fill).into_iter().filter_map(|step| match step {
        Step::Send(bytes) => Some(bytes),
        _ => None,
    });
    bytes.flatten().collect()
}

/// Complaints by case; a case without complaints is not among them. [`ONE_CASE`] names a single one.
fn judged(cases: &[Case]) -> BTreeMap<String, Vec<String>> {
    let only = std::env::var(ONE_CASE).ok();
    let cases = cases
        .iter()
        .filter(|case| only.as_ref().is_none_or(|only| case.id == *only));
    // a kill at a moment that counts, and memory, are measured without the others' noise
    let alone = |case: &&Case| !case.run.is_empty() || !case.expect["max_rss_mb"].is_null();
    let (alone, together): (Vec<&Case>, Vec<&Case>) = cases.partition(alone);
    let (next, bad) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let judge = |case: &Case| {
        let complaints = judge::guarded("the test itself", || play(case));
        if !complaints.is_empty() {
            bad.lock().unwrap().insert(case.id.clone(), complaints);
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(case) = together.get(next.fetch_add(1, Relaxed)) {
                    judge(case);
                }
            });
        }
    });
    alone.into_iter().for_each(judge);
    bad.into_inner().unwrap()
}

/// Says it on the test's standard error, whoever captures what tests print.
fn say(words: &str) {
    let _ = writeln!(io::stderr(), "{words}");
}

fn listed(bad: &BTreeMap<String, Vec<String>>) -> String {
    let case = |(id, complaints): (&String, &Vec<String>)| format!("{id}:\n{}", complaints.join("\n"));
    bad.iter().map(case).collect::<Vec<_>>().join("\n")
}

/// Plays one case and judges it.
fn play(case: &Case) -> Vec<String> {
    for key in case.expect.as_object().unwrap().keys() {
        let known = key == "notes" || expect::KEYS.contains(&key.as_str()) || judge::KEYS.contains(&key.as_str());
        assert!(known, "unknown expectation {key:?}");
    }
    if case.kind != Kind::Crawl {
        return vectors::complaints(case);
    }
    let player = Player::start(case);
    let expected = Fill::of(case, player.port).all(&case.expect);
    let ran = run::run(case, &player);
    let log: Vec<Event> = player.log();
    let mut bad = expect::complaints(case, &expected, &log, player.port);
    bad.extend(judge::complaints(case, &expected, &ran, &log, player.port));
    if !bad.is_empty() {
        let report = run::report(&ran.job);
        bad.push(format!(
            "the report has {} and failures {}",
            report["urls"], report["failures"]
        ));
    }
    bad
}
