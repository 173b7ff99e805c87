//! Judges what the runs of a case left behind: exit codes, crawl.log, archive, index, report.

use std::collections::BTreeMap;
use std::fs;
use std::panic::{self, AssertUnwindSafe};

use data_encoding::HEXLOWER;
use regex::Regex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::expect::strings;
use super::format::Case;
use super::parts::{Fill, whole};
use super::run::{self, Ran};
use super::serve::{Event, Happened};
use crate::reader::{self, Record};

/// The expectations that this part judges.
pub(crate) const KEYS: &[&str] = &[
    "exit_code",
    "first_exit_code",
    "within_s",
    "statuses",
    "archive_records",
    "archive_valid",
    "archive_member_per_record",
    "cdxj_valid",
    "archive_header_regex",
    "archive_text_absent",
    "stats",
    "stats_monotonic",
    "stats_requests_equal_log",
    "stats_no_nan",
    "max_rss_mb",
    "stderr_names_file",
];

/// A process may take so much longer than its requests, seconds: start, close, and a machine that does other things.
const START_AND_END_S: f64 = 5.0;

/// The complaints about a case's runs; `expect` has its placeholders filled.
pub(crate) fn complaints(case: &Case, expect: &Value, ran: &Ran<'_>, requests: &[Event], port: u16) -> Vec<String> {
    let mut bad = ran.complaints.clone();
    bad.extend(process(expect, ran));
    let log = fs::read_to_string(ran.job.join("logs/crawl.log")).unwrap_or_default();
    bad.extend(guarded("crawl.log", || statuses(expect, &log)));
    bad.extend(guarded("archive", || archive(case, expect, ran, port)));
    bad.extend(guarded("report", || numbers(expect, ran, &log, requests)));
    bad
}

/// A panic of a strict reader is a complaint like any other.
pub(crate) fn guarded(what: &str, judge: impl FnOnce() -> Vec<String>) -> Vec<String> {
    panic::catch_unwind(AssertUnwindSafe(judge)).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        vec![format!("{what}: {}", text.unwrap_or_default())]
    })
}

fn process(expect: &Value, ran: &Ran<'_>) -> Vec<String> {
    let mut bad = Vec::new();
    let mut exit = |wanted: &Value, got: Option<&Option<i32>>| {
        let fits = match wanted.as_i64() {
            Some(code) => got.copied().flatten().map(i64::from) == Some(code),
            None => got.copied().flatten().is_some_and(|code| code != 0),
        };
        if !wanted.is_null() && !fits {
            bad.push(format!("exit code {got:?}, expected {wanted}:\n{}", ran.said()));
        }
    };
    exit(&expect["exit_code"], ran.exits.last());
    exit(&expect["first_exit_code"], ran.exits.first());
    if let Some(most) = expect["within_s"].as_f64().map(|s| s + START_AND_END_S)
        && ran.wall.as_secs_f64() > most
    {
        bad.push(format!("took {:?}, at most {most} s", ran.wall));
    }
    let most = expect["max_rss_mb"].as_u64().map_or(u64::MAX, |mb| mb << 20);
    let peak = ran
        .peak_rss
        .max(run::report(&ran.job)["peak_rss_bytes"].as_u64().unwrap_or(0));
    if peak > most {
        bad.push(format!("{} MiB of memory, at most {} MiB", peak >> 20, most >> 20));
    }
    if expect["stderr_names_file"] == true {
        let name = ran.damaged.as_deref().unwrap_or("a damaged file");
        if !ran.said().contains(name) {
            bad.push(format!("{name} is not named:\n{}", ran.said()));
        }
    }
    bad
}

/// The last line of each address, in the words of the cases.
fn statuses(expect: &Value, log: &str) -> Vec<String> {
    let mut last = BTreeMap::new();
    for line in log.lines() {
        let (address, words) = said(line);
        last.insert(address, words);
    }
    let wrong = |(url, wanted): (&String, &Value)| {
        let got = last.get(url).map_or("no line", String::as_str);
        (wanted != got).then(|| format!("{url}: {got:?}, expected {wanted}"))
    };
    expect["statuses"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(wrong)
        .collect()
}

/// The address of a line of crawl.log and what it says of it.
fn said(line: &str) -> (String, String) {
    let columns: Vec<&str> = line.split(' ').filter(|column| !column.is_empty()).collect();
    let json: Value = line
        .find(" {")
        .map_or(Value::Null, |at| serde_json::from_str(&line[at..]).unwrap());
    let detail = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    let status: i32 = columns[1].parse().unwrap();
    let notes: Vec<&str> = columns[11].split(',').collect();
    let words = match status {
        200.. => {
            let mut words = status.to_string();
            for note in notes {
                match note {
                    "lenTrunc" => words += " truncated:length",
                    "timeTrunc" => words += " truncated:time",
                    "midFetchTrunc" => words += " truncated:disconnect",
                    note if note.starts_with("decode:") => words.extend([" ", note]),
                    _ => {}
                }
            }
            words
        }
        -1 => "error:dns".to_owned(),
        -2 if detail("error").contains("TLS") => "error:tls".to_owned(),
        -2 => "error:connect".to_owned(),
        -3 => "error:protocol".to_owned(),
        -4 => "error:timeout".to_owned(),
        -5001 => "skip:private-address".to_owned(),
        -61 => "skip:robots-unreachable".to_owned(),
        -9998 => "skip:robots".to_owned(),
        other => format!("{other} {}", detail("reason")),
    };
    (columns[3].to_owned(), words)
}

fn archive(case: &Case, expect: &Value, ran: &Ran<'_>, port: u16) -> Vec<String> {
    let wanted = ["archive_valid", "archive_member_per_record", "cdxj_valid"]
        .iter()
        .any(|key| expect[*key] == true);
    let read = ["archive_records", "archive_header_regex", "archive_text_absent"];
    if !wanted && read.iter().all(|key| expect[*key].is_null()) {
        return Vec::new();
    }
    // panics unless each record is one whole member
    let records = reader::records(&ran.job.join("archive"));
    if wanted {
        reader::assert_sound(&records);
        reader::assert_index_matches(&reader::index(&ran.job.join("indexes/index.cdxj")), &records);
        assert_linked(&records);
    }
    let mut bad = Vec::new();
    for wanted in expect["archive_records"].as_array().into_iter().flatten() {
        bad.extend(records_like(case, wanted, &records, port));
    }
    for (name, pattern) in expect["archive_header_regex"].as_object().into_iter().flatten() {
        let regex = Regex::new(pattern.as_str().unwrap()).unwrap();
        let values = records
            .iter()
            .filter_map(|record| record.headers.get(&name.to_lowercase()));
        bad.extend(
            values
                .filter(|value| !regex.is_match(value))
                .map(|value| format!("{name}: {value}")),
        );
    }
    let absent: Vec<&str> = match &expect["archive_text_absent"] {
        Value::String(text) => vec![text],
        texts => strings(texts).collect(),
    };
    for text in absent {
        let lines = |record: &&Record| {
            let headers = record.headers.values().any(|value| value.contains(text));
            headers || record.block.windows(text.len()).any(|part| part == text.as_bytes())
        };
        bad.extend(
            records
                .iter()
                .filter(lines)
                .map(|record| format!("{text:?} in a {} record", record.kind())),
        );
        let files = run::texts(&ran.job)
            .into_iter()
            .filter(|(_, content)| content.contains(text));
        bad.extend(files.map(|(file, _)| format!("{text:?} in {}", file.display())));
    }
    bad
}

/// Each file begins with its warcinfo; each answer names its request; dates are UTC.
fn assert_linked(records: &[Record]) {
    let mut file = "";
    for record in records {
        if record.file != file {
            assert_eq!(record.kind(), "warcinfo", "first record of {}", record.file);
            file = &record.file;
        }
        assert!(record.headers["warc-date"].ends_with('Z'), "{:?}", record.headers);
        if record.kind() == "request" {
            let answer = &record.headers["warc-concurrent-to"];
            assert!(
                records
                    .iter()
                    .any(|other| other.is_answer() && other.headers["warc-record-id"] == *answer),
                "a request without its answer: {:?}",
                record.headers
            );
        }
    }
}

fn records_like(case: &Case, wanted: &Value, records: &[Record], port: u16) -> Vec<String> {
    let uris: Vec<&str> = match wanted["uri"].as_str() {
        Some(uri) => vec![uri],
        None => strings(&wanted["uri_any"]).collect(),
    };
    let found: Vec<&Record> = records
        .iter()
        .filter(|record| record.kind() == wanted["type"] && uris.contains(&record.uri()))
        .collect();
    let mut bad = Vec::new();
    let count = wanted["count"].as_u64();
    let least = wanted["count_at_least"].as_u64().unwrap_or(1);
    let number = found.len() as u64;
    if count.map_or(number < least, |count| number != count) {
        bad.push(format!("{number} records like {wanted}"));
    }
    for (key, value) in wanted.as_object().unwrap() {
        let wrong = |record: &&&Record| match key.as_str() {
            "uri" | "uri_any" | "type" | "count" | "count_at_least" => false,
            "http_status" => record.status().parse().ok() != value.as_u64(),
            "truncated" => record.headers.get("warc-truncated").map(String::as_str) != value.as_str(),
            "payload_sha256" => {
                let payload = payload_of(record, records);
                let sent = sent_compressed(case, uris[0], port);
                let sha = |bytes: &[u8]| HEXLOWER.encode(&Sha256::digest(bytes));
                let wanted = sent.map_or_else(|| value.as_str().unwrap().to_owned(), |sent| sha(&sent));
                payload.is_none_or(|payload| sha(payload) != wanted)
            }
            "payload_len" => payload_of(record, records).map(|payload| payload.len() as u64) != value.as_u64(),
            "payload_text" => payload_of(record, records) != value.as_str().map(str::as_bytes),
            "refers_to" => record.headers.contains_key("warc-refers-to") != value.as_bool().unwrap(),
            "profile" => !record
                .headers
                .get("warc-profile")
                .is_some_and(|own| own.contains(value.as_str().unwrap())),
            "header_hex" => {
                let bytes = HEXLOWER.decode(value.as_str().unwrap().as_bytes()).unwrap();
                let head = &record.block[..record.block.len() - record.payload().len()];
                !head.windows(bytes.len()).any(|part| part == bytes)
            }
            "http_length_matches" => {
                let head = String::from_utf8_lossy(&record.block).to_lowercase();
                let said = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                said.map(str::trim) != Some(record.payload().len().to_string().as_str())
            }
            other => panic!("unknown expectation of a record: {other}"),
        };
        let wrong = found.iter().filter(wrong);
        bad.extend(wrong.map(|record| format!("{key} is not {value}: {:?}", record.headers)));
    }
    bad
}

/// The payload of a record; of a revisit that of the response with its digest.
fn payload_of<'a>(record: &'a Record, records: &'a [Record]) -> Option<&'a [u8]> {
    if record.kind() != "revisit" {
        return Some(record.payload());
    }
    let digest = record.headers.get("warc-payload-digest");
    let same = |other: &&Record| other.kind() == "response" && other.headers.get("warc-payload-digest") == digest;
    records.iter().find(same).map(Record::payload)
}

/// What this player sent for an address, if a compressor had a hand in it: another one makes other bytes.
fn sent_compressed(case: &Case, uri: &str, port: u16) -> Option<Vec<u8>> {
    let fill = Fill::of(case, port);
    let rest = uri.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/')?;
    let target = format!("/{path}");
    let host = case
        .hosts
        .iter()
        .find(|(key, host)| super::parts::authority(host, key, port) == authority)?
        .0;
    let route = case
        .serve
        .iter()
        .find(|route| route.host == *host && route.groups(&route.asked_for(&target)).is_some())?;
    let body = &route.responses[0].body;
    let text = body.to_string();
    ["\"gzip\"", "\"zlib\"", "\"rawdeflate\""]
        .iter()
        .any(|word| text.contains(word))
        .then(|| whole(body, &fill))
}

/// Numbers of the report, and what crawl.log adds up to, in the words of the cases.
fn numbers(expect: &Value, ran: &Ran<'_>, log: &str, requests: &[Event]) -> Vec<String> {
    let mut bad = Vec::new();
    let report = run::report(&ran.job);
    let tally = Tally::of(log, &report);
    for (name, wanted) in expect["stats"].as_object().into_iter().flatten() {
        let got = tally.number(name);
        if Some(got) != wanted.as_u64() {
            bad.push(format!("{name} is {got}, expected {wanted}"));
        }
    }
    let growing: Vec<&str> = strings(&expect["stats_monotonic"]).collect();
    if !growing.is_empty() {
        let mut before = Tally::default();
        for length in ran.log_lengths.iter().map(|length| usize::try_from(*length).unwrap()) {
            let now = Tally::of(log.get(..length).unwrap_or_default(), &report);
            for name in &growing {
                let (least, number) = (before.number(name), now.number(name));
                if number < least {
                    bad.push(format!("{name} shrank from {least} to {number}"));
                }
            }
            before = now;
        }
    }
    if expect["stats_requests_equal_log"] == true {
        let made = requests.iter().filter(|event| event.what == Happened::Request).count() as u64;
        if tally.requests != made {
            bad.push(format!("{} requests counted, {made} made", tally.requests));
        }
        let (ok, error, redirect) = (tally.ok, tally.http_error, tally.redirect);
        let of = |class: char| -> u64 {
            let codes = report["status"].as_object().into_iter().flatten();
            codes
                .filter(|(code, _)| code.starts_with(class))
                .map(|(_, count)| count.as_u64().unwrap())
                .sum()
        };
        if (ok, redirect, error) != (of('2'), of('3'), of('4') + of('5')) {
            bad.push(format!(
                "crawl.log and report differ: {tally:?}, {:#}",
                report["status"]
            ));
        }
    }
    if expect["stats_no_nan"] == true {
        bad.extend(odd_numbers("report", &report));
        if report["state"].is_null() {
            bad.push("no report".to_owned());
        }
    }
    bad
}

/// What crawl.log and the report add up to.
#[derive(Debug, Default)]
struct Tally {
    ok: u64,
    http_error: u64,
    redirect: u64,
    bytes: u64,
    requests: u64,
    retries: u64,
    skipped_robots: u64,
    queued: u64,
    in_flight: u64,
    distinct_urls: u64,
}

impl Tally {
    fn of(log: &str, report: &Value) -> Self {
        let urls = |name: &str| report["urls"][name].as_u64().unwrap_or(u64::MAX);
        let mut tally = Self {
            skipped_robots: urls("robots"),
            queued: urls("pending"),
            in_flight: 0, // of the report that ends a run nothing is in flight, or the account would not add up
            distinct_urls: urls("admitted"),
            ..Self::default()
        };
        let mut last = BTreeMap::new();
        for line in log.lines() {
            let columns: Vec<&str> = line.split(' ').filter(|column| !column.is_empty()).collect();
            let Some(span) = columns.get(8) else { continue };
            tally.requests += u64::from(*span != "-");
            tally.bytes += columns[2].parse::<u64>().unwrap_or(0);
            if columns[4] != "P" && last.insert(columns[3], columns[1]).is_some() {
                tally.retries += 1;
            }
        }
        for status in last.values() {
            match status.as_bytes()[0] {
                b'2' => tally.ok += 1,
                b'3' => tally.redirect += 1,
                b'4' | b'5' => tally.http_error += 1,
                _ => {}
            }
        }
        tally
    }

    fn number(&self, name: &str) -> u64 {
        match name {
            "ok" => self.ok,
            "http_error" => self.http_error,
            "redirect" => self.redirect,
            "bytes" => self.bytes,
            "requests" => self.requests,
            "retries" => self.retries,
            "skipped_robots" => self.skipped_robots,
            "queued" => self.queued,
            "in_flight" => self.in_flight,
            "distinct_urls" => self.distinct_urls,
            other => panic!("unknown number: {other}"),
        }
    }
}

/// Numbers that are negative, or words that should be numbers.
fn odd_numbers(place: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Number(number) if number.as_f64().is_none_or(|number| number < 0.0 || !number.is_finite()) => {
            vec![format!("{place} is {number}")]
        }
        Value::Null => vec![format!("{place} is nothing")],
        Value::Array(items) => items.iter().flat_map(|item| odd_numbers(place, item)).collect(),
        Value::Object(map) => map
            .iter()
            .flat_map(|(key, item)| odd_numbers(&format!("{place}.{key}"), item))
            .collect(),
        _ => Vec::new(),
    }
}
