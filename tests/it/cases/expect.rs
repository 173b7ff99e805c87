//! Judges the traffic: the player's own log of requests against what a case expects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use regex::Regex;
use serde_json::Value;

use super::format::Case;
use super::serve::{Event, Happened};

/// The expectations that this part judges.
pub(crate) const KEYS: &[&str] = &[
    "fetched",
    "not_fetched",
    "not_fetched_regex",
    "at_most",
    "max_requests",
    "repeats_at_most",
    "only_hosts",
    "min_gap_ms",
    "quiet",
    "before",
    "first",
    "max_head_bytes",
    "absent_headers",
    "within_s",
];

/// What the traffic of a case is held against.
struct Traffic<'a> {
    expect: &'a Value,
    requests: Vec<&'a Event>,
    /// Requests by `host target`.
    counts: BTreeMap<String, usize>,
    bad: Vec<String>,
}

/// The complaints about a log; `expect` has its placeholders filled.
pub(crate) fn complaints(case: &Case, expect: &Value, log: &[Event], port: u16) -> Vec<String> {
    let requests: Vec<&Event> = log.iter().filter(|event| event.what == Happened::Request).collect();
    let mut counts = BTreeMap::new();
    for event in &requests {
        *counts.entry(event.key()).or_default() += 1;
    }
    let mut traffic = Traffic {
        expect,
        requests,
        counts,
        bad: Vec::new(),
    };
    traffic.visits();
    traffic.numbers();
    traffic.silence(case, log, port);
    traffic.pauses(log);
    traffic.order();
    traffic.heads();
    traffic.bad
}

pub(crate) fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value
        .as_array()
        .into_iter()
        .flatten()
        .map(|item| item.as_str().unwrap())
}

fn number(value: &Value) -> Option<usize> {
    value.as_u64().map(|number| usize::try_from(number).unwrap())
}

impl<'a> Traffic<'a> {
    fn say(&mut self, complaint: String) {
        self.bad.push(complaint);
    }

    fn pages(&self) -> impl Iterator<Item = &'a Event> {
        self.requests
            .iter()
            .copied()
            .filter(|event| event.target != "/robots.txt")
    }

    fn visits(&mut self) {
        let expect = self.expect;
        for url in strings(&expect["fetched"]) {
            if !self.counts.contains_key(url) {
                self.say(format!("not fetched: {}", short(url)));
            }
        }
        for url in strings(&expect["not_fetched"]) {
            if self.counts.contains_key(url) {
                self.say(format!("must not be fetched: {}", short(url)));
            }
        }
        for pattern in strings(&expect["not_fetched_regex"]) {
            let regex = Regex::new(pattern).unwrap();
            let found: Vec<String> = self.counts.keys().filter(|url| regex.is_match(url)).cloned().collect();
            for url in found {
                self.say(format!("must not be fetched ({pattern}): {}", short(&url)));
            }
        }
    }

    fn numbers(&mut self) {
        let expect = self.expect;
        for (url, most) in expect["at_most"].as_object().into_iter().flatten() {
            let count = self.counts.get(url).copied().unwrap_or(0);
            if Some(count) > number(most) {
                self.say(format!("fetched {count} times, at most {most}: {}", short(url)));
            }
        }
        let pages = self.pages().count();
        if let Some(most) = number(&expect["max_requests"]).filter(|most| pages > *most) {
            self.say(format!("{pages} requests besides robots.txt, at most {most}"));
        }
        let of_pages = self.counts.iter().filter(|(url, _)| !url.ends_with(" /robots.txt"));
        let repeats: usize = of_pages.map(|(_, count)| count - 1).sum();
        if let Some(most) = number(&expect["repeats_at_most"]).filter(|most| repeats > *most) {
            self.say(format!("{repeats} repeated fetches, at most {most}"));
        }
    }

    fn silence(&mut self, case: &Case, log: &[Event], port: u16) {
        if self.expect["only_hosts"].is_null() {
            return;
        }
        let allowed: BTreeSet<&str> = strings(&self.expect["only_hosts"]).collect();
        let places: BTreeSet<_> = allowed
            .iter()
            .map(|name| {
                (
                    std::net::IpAddr::from(case.hosts[*name].ip),
                    port + case.hosts[*name].port,
                )
            })
            .collect();
        for event in log {
            let loud = match event.what {
                Happened::Request | Happened::Dropped => !allowed.contains(event.host.as_str()),
                Happened::Noise => !places.contains(&(event.ip, event.port)),
                Happened::End => false,
            };
            if loud {
                self.say(format!(
                    "bytes at a host that must stay silent: {} ({})",
                    event.key(),
                    event.ip
                ));
            }
        }
    }

    fn pauses(&mut self, log: &[Event]) {
        let expect = self.expect;
        for (hosts, least) in expect["min_gap_ms"].as_object().into_iter().flatten() {
            let hosts: Vec<&str> = hosts.split(',').collect();
            let mut times: Vec<Duration> = self
                .requests
                .iter()
                .filter(|event| hosts.contains(&event.host.as_str()))
                .map(|event| event.at)
                .collect();
            times.sort();
            let gap = times.windows(2).map(|pair| pair[1].abs_diff(pair[0])).min();
            let least = Duration::from_millis(least.as_u64().unwrap());
            if let Some(gap) = gap.filter(|gap| *gap < least) {
                self.say(format!("requests to {hosts:?} only {gap:?} apart, at least {least:?}"));
            }
        }
        for quiet in expect["quiet"].as_array().into_iter().flatten() {
            let (host, after) = (quiet["host"].as_str().unwrap(), quiet["after"].as_str().unwrap());
            let span = Duration::from_millis(quiet["ms"].as_u64().unwrap());
            let Some(end) = log
                .iter()
                .find(|event| event.what == Happened::End && event.key() == after)
            else {
                continue;
            };
            let early = |event: &&&Event| event.host == host && event.at > end.at && event.at < end.at + span;
            let count = self.requests.iter().filter(early).count();
            if count > 0 {
                self.say(format!("{count} requests to {host} within {span:?} after {after}"));
            }
        }
        if let (Some(most), Some(first), Some(last)) =
            (expect["within_s"].as_f64(), self.requests.first(), self.requests.last())
        {
            let span = last.at.abs_diff(first.at).as_secs_f64();
            if span > most {
                self.say(format!("requests spread over {span:.1} s, at most {most} s"));
            }
        }
    }

    fn order(&mut self) {
        let expect = self.expect;
        let first = |url: &str| {
            self.requests
                .iter()
                .find(|event| event.key() == url)
                .map(|event| event.at)
        };
        let mut bad = Vec::new();
        for pair in expect["before"].as_array().into_iter().flatten() {
            let (a, b) = (pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
            if let (Some(at_a), Some(at_b)) = (first(a), first(b))
                && at_a > at_b
            {
                bad.push(format!("{a} must be fetched before {b}"));
            }
        }
        if let Some(within) = number(&expect["first"]["within"]) {
            let early: BTreeSet<String> = self.pages().take(within).map(Event::key).collect();
            let late = strings(&expect["first"]["urls"]).filter(|url| !early.contains(*url));
            bad.extend(late.map(|url| format!("not among the first {within} requests: {url}")));
        }
        self.bad.extend(bad);
    }

    fn heads(&mut self) {
        let expect = self.expect;
        let mut bad = Vec::new();
        for event in &self.requests {
            if number(&expect["max_head_bytes"]).is_some_and(|most| event.head_bytes > most) {
                bad.push(format!(
                    "request head of {} bytes: {}",
                    event.head_bytes,
                    short(&event.key())
                ));
            }
            for name in strings(&expect["absent_headers"][&event.host]) {
                if event.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)) {
                    bad.push(format!("{name} sent to {}", event.host));
                }
            }
        }
        self.bad.extend(bad);
    }
}

/// A long address is cut for the eye.
fn short(url: &str) -> String {
    if url.len() <= 120 {
        return url.to_owned();
    }
    let start: String = url.chars().take(80).collect();
    format!("{start}... ({} bytes)", url.len())
}
