//! The closing summary on the terminal: how it ended, what came home, where it lies.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::Verdict;
use super::words::{bytes, per_second, percent, rate, span, thousands};
use crate::crawl::Outcome;
use crate::stats::Counters;

/// Most failed seeds that are named one by one.
pub const MAX_SEEDS_NAMED: usize = 100;
/// Most reasons of failures that are shown.
const MAX_REASONS: usize = 6;

/// One line for each seed that brought no response: `seed http://... failed: name look-up failed (...)`.
#[must_use]
pub fn failed_seeds(outcome: &Outcome) -> Vec<String> {
    let failed = outcome
        .seeds
        .iter()
        .filter_map(|seed| seed.result.as_ref().err().map(|reason| (&seed.url, reason)))
        // a crawl that was stopped has not come to these
        .filter(|(_, reason)| reason.as_str() != crate::crawl::NOT_YET);
    let count = failed.clone().count();
    let mut lines: Vec<String> = failed
        .take(MAX_SEEDS_NAMED)
        .map(|(url, reason)| format!("seed {url} failed: {reason}{}", advice(reason)))
        .collect();
    if count > MAX_SEEDS_NAMED {
        lines.push(format!(
            "{} more seeds failed",
            thousands((count - MAX_SEEDS_NAMED) as u64)
        ));
    }
    lines
}

fn advice(reason: &str) -> &'static str {
    if reason.contains("private address") && !reason.contains("--allow-address") {
        "; --allow-address permits it"
    } else {
        ""
    }
}

/// The summary, several lines. `job` is the folder as the user named it.
#[must_use]
pub fn text(outcome: &Outcome, verdict: &Verdict, job: &Path) -> String {
    let counters = &outcome.last.counters;
    let (urls, links, seen) = (&counters.urls, &counters.links, &outcome.last.seen);
    let state = if verdict.state == "limit" {
        "stopped at a limit"
    } else {
        verdict.state
    };
    let mut out = format!("crawl {state}: {} ({}", verdict.reason, span(outcome.last.wall));
    if outcome.runs > 1 {
        let _ = write!(out, " in {} runs", outcome.runs);
    }
    out.push_str(")\n");
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<9} {text}");
    };
    line(
        "pages",
        format!(
            "{} fetched ({}/s), {} failed, {} forbidden by robots.txt, {} pending; {} host{}",
            thousands(urls.fetched),
            rate(per_second(urls.fetched, outcome.last.wall)),
            thousands(urls.failed),
            thousands(urls.robots),
            thousands(urls.pending),
            thousands(counters.hosts),
            if counters.hosts == 1 { "" } else { "s" },
        ),
    );
    if !counters.failures.is_empty() {
        line("failures", reasons(&counters.failures));
    }
    if !counters.skipped.is_empty() {
        line("left out", reasons(&counters.skipped));
    }
    line(
        "links",
        format!(
            "{} found = {} new + {} seen + {} out of scope + {} malformed + {} traps",
            thousands(links.found),
            thousands(links.admitted),
            thousands(links.seen),
            thousands(links.out_of_scope),
            thousands(links.malformed),
            thousands(links.trap),
        ),
    );
    let left: Vec<String> = left(counters)
        .iter()
        .map(|(name, count)| format!("{} {name}", thousands(*count)))
        .collect();
    if !left.is_empty() {
        line("left", left.join(", "));
    }
    line(
        "received",
        format!(
            "{}, {} decoded",
            bytes(counters.bytes.received),
            bytes(counters.bytes.decoded)
        ),
    );
    line(
        "filter",
        format!(
            "{} of {} URLs; taken for seen wrongly: {} predicted, about {:.1} URLs lost{}",
            thousands(seen.items),
            thousands(seen.capacity),
            percent(seen.fp_predicted),
            super::finite(seen.lost_estimate),
            super::words::span_of_lost(seen),
        ),
    );
    if counters.archive_files > 0 {
        let size = bytes(counters.bytes.archived);
        let files = counters.archive_files;
        let noun = if files == 1 { "file" } else { "files" };
        line(
            "archive",
            format!("{} ({files} {noun}, {size})", job.join("archive").display()),
        );
    }
    line("report", job.join("report.html").display().to_string());
    out.push_str(match verdict.state {
        "stopped" => "the same command goes on from here\n",
        "limit" => "the same command with a higher limit goes on from here\n",
        _ => "",
    });
    out
}

/// What bounds kept out of the accounts: what it is, and how many there were. Only what there was.
pub(super) fn left(counters: &Counters) -> Vec<(&'static str, u64)> {
    [
        (
            "links beyond a page's cap or the job's for sitemaps",
            counters.links_dropped,
        ),
        ("sitemap entries beyond those of one file", counters.entries_dropped),
        ("pages read for links in part only", counters.texts_cut),
    ]
    .into_iter()
    .filter(|(_, count)| *count > 0)
    .collect()
}

/// The commonest reasons with their numbers.
fn reasons(failures: &BTreeMap<String, u64>) -> String {
    let mut sorted: Vec<(&String, &u64)> = failures.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1).then(a.0.cmp(b.0)));
    let mut shown: Vec<String> = sorted
        .iter()
        .take(MAX_REASONS)
        .map(|(reason, count)| format!("{reason} {}", thousands(**count)))
        .collect();
    let others: u64 = sorted.iter().skip(MAX_REASONS).map(|(_, count)| **count).sum();
    if others > 0 {
        shown.push(format!("others {}", thousands(others)));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::outcome;
    use super::*;
    use crate::crawl::{End, SeedOutcome};

    #[test]
    fn a_finished_crawl_says_where_everything_is() {
        let outcome = outcome();
        insta::assert_snapshot!(text(&outcome, &Verdict::of(&outcome), Path::new("crawl")), @r"
        crawl finished: every URL in scope has its answer (10 s in 2 runs)
          pages     40 fetched (4.00/s), 3 failed, 7 forbidden by robots.txt, 0 pending; 4 hosts
          failures  timeout 2, dns 1
          links     100 found = 50 new + 26 seen + 20 out of scope + 1 malformed + 3 traps
          received  1.4 MiB, 3.8 MiB decoded
          filter    50 of 1,000 URLs; taken for seen wrongly: < 0.01 % predicted, about 0.0 URLs lost
          archive   crawl/archive (1 file, 878.9 KiB)
          report    crawl/report.html
        ");
    }

    #[test]
    fn what_bounds_kept_out_is_said_if_there_is_any() {
        let mut outcome = outcome();
        let said = |outcome: &Outcome| {
            let (verdict, job) = (Verdict::of(outcome), Path::new("crawl"));
            (
                text(outcome, &verdict, job),
                super::super::html::page(outcome, &verdict),
            )
        };
        let (summary, page) = said(&outcome);
        assert!(!summary.contains("  left ") && !page.contains("Beyond the bounds"));
        outcome.last.counters.entries_dropped = 1_234;
        outcome.last.counters.texts_cut = 2;
        let (summary, page) = said(&outcome);
        let line = "  left      1,234 sitemap entries beyond those of one file, 2 pages read for links in part only\n";
        assert!(summary.contains(line), "{summary}");
        assert!(
            page.contains("sitemap entries beyond those of one file</td><td class=\"n\">1,234<"),
            "{page}"
        );
        assert!(!page.contains("page's cap"));
    }

    #[test]
    fn a_stopped_crawl_says_how_to_go_on() {
        let mut outcome = outcome();
        outcome.end = End::Stopped(libc::SIGINT);
        let text = text(&outcome, &Verdict::of(&outcome), Path::new("crawl"));
        assert!(text.starts_with("crawl stopped: SIGINT (10 s in 2 runs)\n"), "{text}");
        assert!(text.ends_with("the same command goes on from here\n"), "{text}");
        outcome.end = End::Limit("--max-pages 40".to_owned());
        let text = self::text(&outcome, &Verdict::of(&outcome), Path::new("crawl"));
        assert!(text.starts_with("crawl stopped at a limit: --max-pages 40 ("), "{text}");
        assert!(text.ends_with("with a higher limit goes on from here\n"), "{text}");
    }

    #[test]
    fn each_failed_seed_has_its_line_up_to_a_bound() {
        let mut outcome = outcome();
        let seed = |reason: &str| SeedOutcome {
            url: "http://x/".to_owned(),
            result: Err(reason.to_owned()),
        };
        outcome.seeds.push(seed("name look-up failed: x"));
        outcome.seeds.push(seed("private address: 127.0.0.1"));
        outcome.seeds.push(seed(crate::crawl::NOT_YET));
        assert_eq!(
            failed_seeds(&outcome),
            [
                "seed http://x/ failed: name look-up failed: x",
                "seed http://x/ failed: private address: 127.0.0.1; --allow-address permits it",
            ]
        );
        outcome.seeds = vec![seed("timed out"); MAX_SEEDS_NAMED + 7];
        let lines = failed_seeds(&outcome);
        assert_eq!(lines.len(), MAX_SEEDS_NAMED + 1);
        assert_eq!(lines.last().unwrap(), "7 more seeds failed");
    }

    #[test]
    fn the_commonest_reasons_come_first() {
        let failures = (1..=8).map(|n| (format!("r{n}"), n)).collect();
        assert_eq!(reasons(&failures), "r8 8, r7 7, r6 6, r5 5, r4 4, r3 3, others 3");
    }
}
