//! What a crawl says at its end: report.json (schema 1), report.html, and the closing summary.

pub(crate) mod html;
pub mod summary;
pub mod words;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use self::words::{finite, per_second};
use crate::crawl::{End, Outcome};
use crate::disk::{Folder, publish};
use crate::seen::Account;
use crate::stats::{ByteCounts, LinkCounts, RecordCounts, UrlCounts};
use crate::survey::Summary;

/// Version of report.json.
pub const SCHEMA: u32 = 1;

/// The exit code of a crawl that fetched no seed.
pub const NO_SEED: u8 = 4;
/// The exit code of what should not have happened.
const UNEXPECTED: u8 = 1;
/// The exit code of a crawl whose accounts do not add up.
pub const UNBALANCED: u8 = 5;

/// Largest report.json that is read back, bytes.
const MAX_REPORT_BYTES: u64 = 4 << 20;

/// How the crawl is judged: the report's state and reason, and the process's exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// `finished`, `stopped`, `limit` or `failed`.
    pub state: &'static str,
    /// Why, in words.
    pub reason: String,
    /// The exit code (README): 0, 4 if no seed could be fetched, 5 if the accounts do not add up, 130 or 143 after a
    /// signal.
    pub exit: u8,
}

impl Verdict {
    /// Judges an outcome.
    #[must_use]
    pub fn of(outcome: &Outcome) -> Self {
        let verdict = |state, reason: &str, exit| Self {
            state,
            reason: reason.to_owned(),
            exit,
        };
        if !outcome.last.counters.balanced() {
            return verdict("failed", "the accounts do not add up", UNBALANCED);
        }
        match &outcome.end {
            End::Stopped(signal) => verdict("stopped", signal_name(*signal), signal_exit(*signal)),
            End::Limit(limit) => verdict("limit", limit, 0),
            End::Asked => verdict("stopped", "crawler stop", 0),
            End::Lost(why) => {
                let exit = if outcome.last.counters.urls.fetched == 0 {
                    NO_SEED
                } else {
                    UNEXPECTED
                };
                verdict("stopped", &format!("{why}; what waits stays pending"), exit)
            }
            End::Finished if outcome.last.counters.urls.pending > 0 => verdict(
                "failed",
                "URLs are pending that no queue holds: the job's state is damaged",
                UNBALANCED,
            ),
            End::Finished if no_seed_fetched(outcome) && outcome.last.counters.urls.robots > 0 => {
                verdict("finished", "robots.txt forbids what was asked for", NO_SEED)
            }
            End::Finished if no_seed_fetched(outcome) => verdict("failed", "no seed could be fetched", NO_SEED),
            End::Finished => verdict("finished", "every URL in scope has its answer", 0),
        }
    }

    /// The verdict on a crawl that an error ended.
    #[must_use]
    pub fn error(reason: String, exit: u8) -> Self {
        Self {
            state: "failed",
            reason,
            exit,
        }
    }

    /// Is nothing left to resume?
    #[must_use]
    pub fn is_final(&self) -> bool {
        self.state == "finished"
    }
}

/// The shell's exit code for a process that a signal ended.
#[must_use]
pub fn signal_exit(signal: i32) -> u8 {
    u8::try_from(signal).map_or(1, |signal| 128_u8.saturating_add(signal))
}

/// The name of a signal that stops a crawl.
#[must_use]
pub fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGINT => "SIGINT",
        libc::SIGTERM => "SIGTERM",
        _ => "a signal",
    }
}

/// Every seed failed, for reasons of the network or because robots.txt forbids it.
fn no_seed_fetched(outcome: &Outcome) -> bool {
    let all_failed = !outcome.seeds.is_empty() && outcome.seeds.iter().all(|seed| seed.result.is_err());
    all_failed && outcome.last.counters.urls.fetched == 0
}

/// report.json. The names and their order are the contract's.
#[derive(Debug, Serialize)]
struct Report<'a> {
    schema: u32,
    state: &'static str,
    reason: &'a str,
    started: String,
    ended: String,
    wall_s: f64,
    runs: u64,
    links: LinkCounts,
    /// Links that a blocklist names, among those out of scope.
    blocked: u64,
    urls: UrlCounts,
    balanced: bool,
    status: &'a BTreeMap<u16, u64>,
    mime: &'a BTreeMap<String, u64>,
    failures: &'a BTreeMap<String, u64>,
    traps: &'a BTreeMap<String, u64>,
    skipped: &'a BTreeMap<String, u64>,
    hosts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    met: &'a Option<Summary>,
    bytes: ByteCounts,
    seen: Account,
    politeness: Politeness,
    archive: Archive,
    peak_rss_bytes: u64,
    cpu_s: f64,
    pages_per_s: f64,
    checkpoints: u64,
    checkpoint_pause_ms_max: f64,
    links_dropped: u64,
    sitemap_entries_dropped: u64,
    texts_cut: u64,
}

#[derive(Debug, Serialize)]
struct Politeness {
    min_gap_s: f64,
    violations: u64,
    repeats: u64,
}

#[derive(Debug, Serialize)]
struct Archive {
    files: u64,
    records: RecordCounts,
    bytes: u64,
}

impl<'a> Report<'a> {
    fn new(outcome: &'a Outcome, verdict: &'a Verdict) -> Self {
        let counters = &outcome.last.counters;
        Self {
            schema: SCHEMA,
            state: verdict.state,
            reason: &verdict.reason,
            started: outcome.started.rfc3339(3),
            ended: outcome.last.now.rfc3339(3),
            wall_s: seconds(outcome.last.wall),
            runs: outcome.runs,
            links: counters.links,
            blocked: counters.blocked,
            urls: counters.urls,
            balanced: counters.balanced(),
            status: &counters.status,
            mime: &counters.mime,
            failures: &counters.failures,
            traps: &counters.traps,
            skipped: &counters.skipped,
            hosts: counters.hosts,
            met: &outcome.survey,
            bytes: counters.bytes,
            seen: clean(outcome.last.seen),
            politeness: Politeness {
                min_gap_s: counters
                    .min_gap_us
                    .map_or(0.0, |gap| seconds(Duration::from_micros(gap))),
                violations: counters.politeness_violations,
                repeats: counters.repeats,
            },
            archive: Archive {
                files: counters.archive_files,
                records: counters.records,
                bytes: counters.bytes.archived,
            },
            peak_rss_bytes: outcome.peak_rss,
            cpu_s: rounded(outcome.cpu_s),
            pages_per_s: rounded(per_second(counters.urls.fetched, outcome.last.wall)),
            checkpoints: outcome.checkpoints,
            checkpoint_pause_ms_max: rounded(seconds(outcome.checkpoint_pause_max) * 1_000.0),
            links_dropped: counters.links_dropped,
            sitemap_entries_dropped: counters.entries_dropped,
            texts_cut: counters.texts_cut,
        }
    }
}

/// The account with only finite numbers, which is all that JSON can hold.
fn clean(account: Account) -> Account {
    Account {
        fill: finite(account.fill),
        fp_target: finite(account.fp_target),
        fp_predicted: finite(account.fp_predicted),
        fp_observed: finite(account.fp_observed),
        fp_observed_low: finite(account.fp_observed_low),
        fp_observed_high: finite(account.fp_observed_high),
        lost_estimate: finite(account.lost_estimate),
        lost_low: finite(account.lost_low),
        lost_high: finite(account.lost_high),
        ..account
    }
}

/// Seconds to the microsecond.
fn seconds(span: Duration) -> f64 {
    Duration::from_micros(u64::try_from(span.as_micros()).unwrap_or(u64::MAX)).as_secs_f64()
}

/// Three decimals, finite.
fn rounded(number: f64) -> f64 {
    (finite(number) * 1_000.0).round() / 1_000.0
}

/// report.json of an outcome.
#[must_use]
pub fn json(outcome: &Outcome, verdict: &Verdict) -> String {
    #[expect(clippy::expect_used, reason = "plain numbers and text always encode")]
    let text = serde_json::to_string_pretty(&Report::new(outcome, verdict)).expect("a report is plain data");
    text + "\n"
}

/// Where a running job says how it stands: as in report.json, and what it is about.
pub const NOW: &str = "state/now.json";

/// Says how a running job stands. Nothing rests on it: it is not synced, and may be missing.
///
/// # Errors
/// If the system cannot.
pub fn write_now(job: &Path, outcome: &Outcome) -> io::Result<()> {
    let verdict = Verdict::error("it is being crawled".to_owned(), 0);
    let last = &outcome.last;
    let now = Now {
        report: Report::new(outcome, &verdict),
        in_flight: last.in_flight,
        hosts_active: last.hosts_active,
        hosts_resting: last.hosts_resting,
        paused: last.paused,
        last: &last.last,
    };
    let beside = job.join(format!("{NOW}.tmp"));
    std::fs::write(&beside, serde_json::to_vec(&now)?)?;
    std::fs::rename(beside, job.join(NOW))
}

#[derive(Serialize)]
struct Now<'a> {
    #[serde(flatten)]
    report: Report<'a>,
    in_flight: usize,
    hosts_active: usize,
    hosts_resting: usize,
    paused: bool,
    last: &'a str,
}

/// Writes report.json and report.html into the job folder, each whole or not at all.
///
/// # Errors
/// If the system cannot; the reports of the run before are then still there.
pub fn write(job: &Path, outcome: &Outcome, verdict: &Verdict) -> io::Result<()> {
    let folder = Folder::new(job.to_path_buf());
    publish(&folder, "report.json", json(outcome, verdict).as_bytes())?;
    publish(&folder, "report.html", html::page(outcome, verdict).as_bytes())
}

/// The runs that the report of the run before counts; 0 if there is none.
#[must_use]
pub fn runs_before(job: &Path) -> u64 {
    let read = || -> Option<u64> {
        let file = File::open(job.join("report.json")).ok()?;
        let report: serde_json::Value = serde_json::from_reader(file.take(MAX_REPORT_BYTES)).ok()?;
        report.get("runs")?.as_u64()
    };
    read().unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock::Time;
    use crate::crawl::{SeedOutcome, Snapshot};
    use crate::seen::Kind;
    use crate::stats::Counters;
    use crate::survey::Top;

    /// An outcome with every account in use; also for the tests of the other views.
    pub(crate) fn outcome() -> Outcome {
        let counters = Counters {
            links: LinkCounts {
                found: 100,
                malformed: 1,
                out_of_scope: 20,
                trap: 3,
                seen: 26,
                admitted: 50,
            },
            urls: UrlCounts {
                admitted: 50,
                fetched: 40,
                failed: 3,
                robots: 7,
                pending: 0,
            },
            bytes: ByteCounts {
                received: 1_500_000,
                decoded: 4_000_000,
                archived: 900_000,
            },
            records: RecordCounts {
                response: 39,
                request: 40,
                revisit: 1,
                metadata: 40,
                warcinfo: 1,
            },
            status: BTreeMap::from([(200, 38), (404, 2)]),
            mime: BTreeMap::from([("text/html".to_owned(), 30), ("image/png".to_owned(), 10)]),
            failures: BTreeMap::from([("dns".to_owned(), 1), ("timeout".to_owned(), 2)]),
            traps: BTreeMap::from([("calendar".to_owned(), 3)]),
            blocked: 5,
            hosts: 4,
            archive_files: 1,
            min_gap_us: Some(1_000_250),
            ..Counters::default()
        };
        let seen = Account {
            kind: Kind::Bloom,
            capacity: 1_000,
            items: 50,
            bits: 16_000,
            hashes: 8,
            fill: 0.025,
            fp_target: 0.001,
            fp_predicted: 1e-9,
            fp_observed: f64::NAN,
            fp_observed_of: 0,
            fp_observed_low: 0.0,
            fp_observed_high: f64::NAN,
            lost_estimate: 0.0,
            lost_low: 0.0,
            lost_high: 0.0,
            saved: 0,
            layers: 1,
        };
        let last = Snapshot {
            counters,
            seen,
            in_flight: 0,
            hosts_active: 0,
            hosts_resting: 0,
            next_due: None,
            run_time: Duration::from_secs(8),
            wall: Duration::from_secs(10),
            now: Time(1_308_849_128_802_345),
            paused: false,
            last: "http://a.test/".to_owned(),
        };
        Outcome {
            end: End::Finished,
            last,
            started: Time(1_308_849_118_802_345),
            runs: 2,
            checkpoints: 3,
            checkpoint_pause_max: Duration::from_micros(1_250),
            cpu_s: 0.123_456,
            peak_rss: 50 << 20,
            survey: Some(Summary {
                links: 90,
                hosts: 5,
                contents: 38,
                error: 0.008,
                most_linked_hosts: Top {
                    top: vec![("a.test".to_owned(), 60), ("<b>.test".to_owned(), 30)],
                    of: 90,
                    over_at_most: 1,
                },
                most_common_shapes: Top {
                    top: vec![("a.test/0".to_owned(), 50)],
                    of: 50,
                    over_at_most: 1,
                },
            }),
            seeds: vec![SeedOutcome {
                url: "http://a.test/".to_owned(),
                result: Ok(200),
            }],
        }
    }

    #[test]
    fn the_report_has_exactly_the_names_of_the_schema() {
        let outcome = outcome();
        let text = json(&outcome, &Verdict::of(&outcome));
        insta::assert_snapshot!(text, @r#"
        {
          "schema": 1,
          "state": "finished",
          "reason": "every URL in scope has its answer",
          "started": "2011-06-23T17:11:58.802Z",
          "ended": "2011-06-23T17:12:08.802Z",
          "wall_s": 10.0,
          "runs": 2,
          "links": {
            "found": 100,
            "malformed": 1,
            "out_of_scope": 20,
            "trap": 3,
            "seen": 26,
            "admitted": 50
          },
          "blocked": 5,
          "urls": {
            "admitted": 50,
            "fetched": 40,
            "failed": 3,
            "robots": 7,
            "pending": 0
          },
          "balanced": true,
          "status": {
            "200": 38,
            "404": 2
          },
          "mime": {
            "image/png": 10,
            "text/html": 30
          },
          "failures": {
            "dns": 1,
            "timeout": 2
          },
          "traps": {
            "calendar": 3
          },
          "skipped": {},
          "hosts": 4,
          "met": {
            "links": 90,
            "hosts": 5,
            "contents": 38,
            "error": 0.008,
            "most_linked_hosts": {
              "top": [
                [
                  "a.test",
                  60
                ],
                [
                  "<b>.test",
                  30
                ]
              ],
              "of": 90,
              "over_at_most": 1
            },
            "most_common_shapes": {
              "top": [
                [
                  "a.test/0",
                  50
                ]
              ],
              "of": 50,
              "over_at_most": 1
            }
          },
          "bytes": {
            "received": 1500000,
            "decoded": 4000000,
            "archived": 900000
          },
          "seen": {
            "kind": "bloom",
            "capacity": 1000,
            "items": 50,
            "bits": 16000,
            "hashes": 8,
            "fill": 0.025,
            "fp_target": 0.001,
            "fp_predicted": 1e-9,
            "fp_observed": 0.0,
            "fp_observed_of": 0,
            "fp_observed_low": 0.0,
            "fp_observed_high": 0.0,
            "lost_estimate": 0.0,
            "lost_low": 0.0,
            "lost_high": 0.0,
            "saved": 0,
            "layers": 1
          },
          "politeness": {
            "min_gap_s": 1.00025,
            "violations": 0,
            "repeats": 0
          },
          "archive": {
            "files": 1,
            "records": {
              "response": 39,
              "request": 40,
              "revisit": 1,
              "metadata": 40,
              "warcinfo": 1
            },
            "bytes": 900000
          },
          "peak_rss_bytes": 52428800,
          "cpu_s": 0.123,
          "pages_per_s": 4.0,
          "checkpoints": 3,
          "checkpoint_pause_ms_max": 1.25,
          "links_dropped": 0,
          "sitemap_entries_dropped": 0,
          "texts_cut": 0
        }
        "#);
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["seen"]["fp_observed"], 0.0);
    }

    #[test]
    fn the_verdict_follows_the_contract() {
        let verdict = |change: fn(&mut Outcome)| {
            let mut outcome = outcome();
            change(&mut outcome);
            let verdict = Verdict::of(&outcome);
            (verdict.state, verdict.exit)
        };
        let no_seed = |outcome: &mut Outcome| {
            outcome.seeds[0].result = Err("name look-up failed".to_owned());
            outcome.last.counters.urls = UrlCounts {
                admitted: 50,
                fetched: 0,
                failed: 50,
                robots: 0,
                pending: 0,
            };
        };
        assert_eq!(verdict(|_| {}), ("finished", 0));
        assert_eq!(
            verdict(|outcome| outcome.end = End::Limit("--max-pages 40".to_owned())),
            ("limit", 0)
        );
        assert_eq!(
            verdict(|outcome| outcome.end = End::Stopped(libc::SIGINT)),
            ("stopped", 130)
        );
        assert_eq!(
            verdict(|outcome| outcome.end = End::Stopped(libc::SIGTERM)),
            ("stopped", 143)
        );
        assert_eq!(
            verdict(|outcome| outcome.last.counters.urls.pending += 1),
            ("failed", 5)
        );
        // balanced, but nothing will ever come of what is pending
        let lost = |outcome: &mut Outcome| {
            outcome.last.counters.urls.fetched -= 5;
            outcome.last.counters.urls.pending += 5;
        };
        assert_eq!(verdict(lost), ("failed", 5));
        assert_eq!(verdict(no_seed), ("failed", 4));
        // a seed that robots.txt forbids is no failure of the network, and asking again would not help; but a script
        // must see that nothing came of it
        let forbidden = |outcome: &mut Outcome| {
            outcome.seeds[0].result = Err("robots.txt".to_owned());
            outcome.last.counters.urls = UrlCounts {
                admitted: 50,
                fetched: 0,
                failed: 49,
                robots: 1,
                pending: 0,
            };
        };
        assert_eq!(verdict(forbidden), ("finished", 4));
    }

    #[test]
    fn both_reports_are_published_and_replace_the_ones_before() {
        let folder = tempfile::tempdir().unwrap();
        let outcome = outcome();
        let mut verdict = Verdict::of(&outcome);
        assert_eq!(runs_before(folder.path()), 0);
        write(folder.path(), &outcome, &verdict).unwrap();
        assert_eq!(runs_before(folder.path()), 2);
        verdict.reason = "again".to_owned();
        write(folder.path(), &outcome, &verdict).unwrap();
        let names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
        for name in ["report.json", "report.html"] {
            assert!(
                std::fs::read_to_string(folder.path().join(name))
                    .unwrap()
                    .contains("again")
            );
        }
    }
}
