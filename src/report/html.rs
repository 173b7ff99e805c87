//! report.html: one page that needs nothing else, readable on a phone.

use std::fmt::{Display, Write as _};

use super::Verdict;
use super::words::{bytes, finite, per_second, percent, rate, share, span, thousands};
use crate::crawl::Outcome;
use crate::survey::Summary;

/// Most rows of a table; the rest is summed up.
const MAX_ROWS: usize = 50;

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--bar:#4a7fd6;--good:#2a8a4a;--bad:#c0392b}\
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:0 auto;padding:1rem}\
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.1rem;margin:2em 0 .5em}\
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.6rem;margin:1rem 0}\
.tile{border:1px solid var(--line);border-radius:.5rem;padding:.6rem .8rem}\
.tile b{display:block;font-size:1.3rem}\
table{border-collapse:collapse;width:100%}td,th{padding:.25rem .5rem .25rem 0;text-align:left;border-bottom:1px solid var(--line);overflow-wrap:anywhere}\
td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}td.b{width:35%}\
.bar{background:var(--bar);height:.7rem;border-radius:.2rem;min-width:1px}\
.good{color:var(--good)}.bad{color:var(--bad)}small{opacity:.75}";

/// The page.
pub(super) fn page(outcome: &Outcome, verdict: &Verdict) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n");
    out.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n");
    let _ = write!(
        out,
        "<title>Crawl {}</title>\n<style>{STYLE}</style></head><body>\n",
        verdict.state
    );
    head(&mut out, outcome, verdict);
    accounts(&mut out, outcome);
    let counters = &outcome.last.counters;
    left(&mut out, outcome);
    counts(&mut out, "Status", counters.status.iter());
    counts(&mut out, "Media types", counters.mime.iter());
    if !counters.traps.is_empty() {
        counts(&mut out, "Traps", counters.traps.iter());
    }
    if !counters.skipped.is_empty() {
        counts(&mut out, "Bodies left out", counters.skipped.iter());
    }
    if !counters.failures.is_empty() {
        counts(&mut out, "Failures", counters.failures.iter());
    }
    if let Some(survey) = &outcome.survey {
        met(&mut out, survey);
    }
    failed_seeds(&mut out, outcome);
    filter(&mut out, outcome);
    rest(&mut out, outcome);
    let _ = write!(
        out,
        "<p><small>crawler {}; the same numbers stand in report.json</small></p>\n</body></html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

fn head(out: &mut String, outcome: &Outcome, verdict: &Verdict) {
    let counters = &outcome.last.counters;
    let class = if verdict.exit == 0 { "good" } else { "bad" };
    let _ = write!(
        out,
        "<h1>Crawl <span class=\"{class}\">{}</span></h1>\n<p>{}<br><small>{} to {}, {} of crawling in {} run{}</small></p>\n<div class=\"tiles\">\n",
        verdict.state,
        escape(&verdict.reason),
        outcome.started.rfc3339(0),
        outcome.last.now.rfc3339(0),
        span(outcome.last.wall),
        outcome.runs,
        if outcome.runs == 1 { "" } else { "s" },
    );
    for (name, value) in [
        ("pages fetched", thousands(counters.urls.fetched)),
        (
            "pages a second",
            rate(per_second(counters.urls.fetched, outcome.last.wall)),
        ),
        ("failed", thousands(counters.urls.failed)),
        ("pending", thousands(counters.urls.pending)),
        ("hosts", thousands(counters.hosts)),
        ("received", bytes(counters.bytes.received)),
        ("archived", bytes(counters.bytes.archived)),
    ] {
        let _ = writeln!(out, "<div class=\"tile\"><b>{value}</b>{name}</div>");
    }
    out.push_str("</div>\n");
}

fn accounts(out: &mut String, outcome: &Outcome) {
    let counters = &outcome.last.counters;
    let (links, urls) = (&counters.links, &counters.urls);
    let verdict = if counters.balanced() {
        "<span class=\"good\">They add up.</span>"
    } else {
        "<span class=\"bad\">They do not add up.</span>"
    };
    let _ = writeln!(
        out,
        "<h2>Accounts</h2>\n<p>Every link and every URL has its answer. {verdict}</p>"
    );
    bars(
        out,
        &format!("{} links found", thousands(links.found)),
        &[
            ("new", links.admitted),
            ("already seen", links.seen),
            ("out of scope", links.out_of_scope),
            ("trap", links.trap),
            ("malformed", links.malformed),
        ],
    );
    bars(
        out,
        &format!("{} URLs admitted", thousands(urls.admitted)),
        &[
            ("fetched", urls.fetched),
            ("failed", urls.failed),
            ("forbidden by robots.txt", urls.robots),
            ("pending", urls.pending),
        ],
    );
}

/// What bounds kept out of the accounts, if there is any.
fn left(out: &mut String, outcome: &Outcome) {
    let rows: Vec<(&str, String)> = super::summary::left(&outcome.last.counters)
        .into_iter()
        .map(|(name, count)| (name, thousands(count)))
        .collect();
    if !rows.is_empty() {
        table(out, "Beyond the bounds", &rows);
    }
}

/// A table of a map, the largest first.
fn counts<'a, K: Display + Ord + 'a>(out: &mut String, title: &str, counts: impl Iterator<Item = (&'a K, &'a u64)>) {
    let mut sorted: Vec<(&K, u64)> = counts.map(|(key, count)| (key, *count)).collect();
    sorted.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let names: Vec<(String, u64)> = sorted
        .iter()
        .take(MAX_ROWS)
        .map(|(key, count)| (key.to_string(), *count))
        .collect();
    let mut rows: Vec<(&str, u64)> = names.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    if let Some(rest) = sorted.get(MAX_ROWS..).filter(|rest| !rest.is_empty()) {
        rows.push(("others", rest.iter().map(|(_, count)| count).sum()));
    }
    let _ = writeln!(out, "<h2>{title}</h2>");
    bars(out, "", &rows);
}

fn bars(out: &mut String, caption: &str, rows: &[(&str, u64)]) {
    let most = rows.iter().map(|(_, count)| *count).max().unwrap_or(0);
    out.push_str("<table>\n");
    if !caption.is_empty() {
        let _ = writeln!(out, "<tr><th colspan=\"3\">{caption}</th></tr>");
    }
    for (name, count) in rows {
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"b\"><div class=\"bar\" style=\"width:{:.1}%\"></div></td></tr>",
            escape(name),
            thousands(*count),
            share(*count, most) * 100.0,
        );
    }
    out.push_str("</table>\n");
}

fn failed_seeds(out: &mut String, outcome: &Outcome) {
    let lines = super::summary::failed_seeds(outcome);
    if lines.is_empty() {
        return;
    }
    out.push_str("<h2>Seeds without an answer</h2>\n<ul>\n");
    for line in lines {
        let _ = writeln!(out, "<li>{}</li>", escape(&line));
    }
    out.push_str("</ul>\n");
}

fn filter(out: &mut String, outcome: &Outcome) {
    let seen = &outcome.last.seen;
    let observed = if seen.fp_observed_of == 0 {
        "no key of the sample yet".to_owned()
    } else {
        format!(
            "{} of {} sampled (95 %: {} to {})",
            percent(seen.fp_observed),
            thousands(seen.fp_observed_of),
            percent(finite(seen.fp_observed_low)),
            percent(finite(seen.fp_observed_high))
        )
    };
    table(
        out,
        "Seen-set",
        &[
            ("kind", crate::config::value::show_word(seen.kind)),
            (
                "URLs",
                format!("{} of {}", thousands(seen.items), thousands(seen.capacity)),
            ),
            (
                "size",
                format!(
                    "{}, {} bits a URL, {} layers",
                    bytes(seen.bits / 8),
                    seen.hashes,
                    seen.layers
                ),
            ),
            ("bits set", percent(seen.fill)),
            ("taken for seen wrongly: asked for", percent(seen.fp_target)),
            ("predicted from the fill", percent(seen.fp_predicted)),
            ("observed", observed),
            (
                "URLs lost to it, estimated",
                format!("{:.2}{}", finite(seen.lost_estimate), super::words::span_of_lost(seen)),
            ),
            ("found in the table behind it to be new", thousands(seen.saved)),
        ],
    );
}

/// What the crawl has met, by estimate.
fn met(out: &mut String, survey: &Summary) {
    let about = |count: u64| format!("about {} (\u{b1} {})", thousands(count), percent(survey.error));
    table(
        out,
        "Met",
        &[
            ("different links, in scope or not", about(survey.links)),
            ("different hosts they lead to", about(survey.hosts)),
            ("different contents archived", about(survey.contents)),
        ],
    );
    for (title, top) in [
        ("Most linked hosts", &survey.most_linked_hosts),
        ("Most common shapes of URLs", &survey.most_common_shapes),
    ] {
        if top.top.is_empty() {
            continue;
        }
        counts(out, title, top.top.iter().map(|(name, count)| (name, count)));
        let _ = writeln!(
            out,
            "<p><small>of {}; counts may be too high by {}, never too low</small></p>",
            thousands(top.of),
            thousands(top.over_at_most)
        );
    }
}

fn rest(out: &mut String, outcome: &Outcome) {
    let counters = &outcome.last.counters;
    let records = &counters.records;
    let gap = counters.min_gap_us.map_or_else(
        || "no host was asked twice".to_owned(),
        |gap| format!("{:.3} s", std::time::Duration::from_micros(gap).as_secs_f64()),
    );
    table(
        out,
        "Politeness",
        &[
            ("shortest pause between two requests to a host", gap),
            ("requests before their time", thousands(counters.politeness_violations)),
            (
                "requests sent twice, as the server had not looked at the first",
                thousands(counters.repeats),
            ),
            ("robots.txt read", thousands(counters.robots_fetched)),
            ("retries", thousands(counters.retries)),
            ("hosts given up", thousands(counters.hosts_retired)),
        ],
    );
    table(
        out,
        "Archive and machine",
        &[
            (
                "WARC files",
                format!(
                    "{}, {}",
                    thousands(counters.archive_files),
                    bytes(counters.bytes.archived)
                ),
            ),
            (
                "records",
                format!(
                    "{} responses, {} revisits, {} requests, {} metadata",
                    thousands(records.response),
                    thousands(records.revisit),
                    thousands(records.request),
                    thousands(records.metadata)
                ),
            ),
            ("decoded", bytes(counters.bytes.decoded)),
            ("largest memory", bytes(outcome.peak_rss)),
            ("processor time", format!("{:.2} s", finite(outcome.cpu_s))),
            ("checkpoints", thousands(outcome.checkpoints)),
        ],
    );
}

fn table(out: &mut String, title: &str, rows: &[(&str, String)]) {
    let _ = writeln!(out, "<h2>{title}</h2>\n<table>");
    for (name, value) in rows {
        let _ = writeln!(out, "<tr><td>{name}</td><td class=\"n\">{}</td></tr>", escape(value));
    }
    out.push_str("</table>\n");
}

/// Text as HTML: media types and addresses come from strangers.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::tests::outcome;
    use super::*;
    use crate::crawl::SeedOutcome;

    #[test]
    fn the_page_needs_nothing_else_and_holds_the_numbers() {
        let outcome = outcome();
        let page = page(&outcome, &Verdict::of(&outcome));
        for outside in ["http://", "https://", "src=", "href=", "@import", "url(", "<script"] {
            assert!(!page.contains(outside), "{outside}");
        }
        for number in [
            "100 links found",
            "50 URLs admitted",
            "text/html",
            "1.4 MiB",
            "They add up",
            "1.000 s",
        ] {
            assert!(page.contains(number), "{number}");
        }
        for wrong in ["NaN", "inf"] {
            assert!(!page.contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_strangers_wrote_stays_text() {
        let mut outcome = outcome();
        outcome.last.counters.mime = BTreeMap::from([("<script>alert('x')</script>".to_owned(), 1)]);
        outcome.seeds = vec![SeedOutcome {
            url: "http://a/?\"<b>".to_owned(),
            result: Err("<i>".to_owned()),
        }];
        let page = page(&outcome, &Verdict::of(&outcome));
        for markup in ["<script", "<b>\"", "<i>"] {
            assert!(!page.contains(markup), "{markup}");
        }
        assert!(page.contains("seed http://a/?&quot;&lt;b&gt; failed: &lt;i&gt;"));
    }

    #[test]
    fn long_tables_end_with_the_others() {
        let mut outcome = outcome();
        outcome.last.counters.mime = (0..MAX_ROWS + 3).map(|n| (format!("x/{n:03}"), 1)).collect();
        let page = page(&outcome, &Verdict::of(&outcome));
        assert!(page.contains("x/049") && !page.contains("x/050"));
        assert!(page.contains("<td>others</td><td class=\"n\">3</td>"));
    }
}
