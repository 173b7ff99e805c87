//! What a crawl has met, by estimate: in the report, across stops and kills.

use std::time::Duration;

use serde_json::Value;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

/// Pages of the site, each with [`OWN`] links that no other page has, and one to the second host.
const PAGES: usize = 40;
const OWN: usize = 25;
/// Different links: the pages but the first (which no page links to), those of their own, and the second host.
const LINKS: u64 = (PAGES - 1 + PAGES * OWN + 1) as u64;

/// Pages in a row, each with links out of the scope.
fn site() -> Site {
    Site::start(2, |origins: &[String]| {
        let other = origins[1].clone();
        move |asked: &Asked| {
            let Some(page) = asked.path.strip_prefix("/p").and_then(|n| n.parse::<usize>().ok()) else {
                return Answer::not_found();
            };
            let own = (0..OWN)
                .map(|n| format!("<a href=http://h{n}.test/{page}>o</a>"))
                .collect::<Vec<_>>()
                .concat();
            let next = (page + 1 < PAGES).then(|| format!("<a href=/p{}>next</a>", page + 1));
            Answer::html(format!(
                "{own}{}<a href={other}/>other</a> page {page}",
                next.unwrap_or_default()
            ))
        }
    })
}

fn near(value: &Value, real: u64) -> bool {
    // five times the standard error of 0.81 %
    value
        .as_u64()
        .is_some_and(|found| found.abs_diff(real) * 1_000 <= real * 41)
}

fn top(list: &Value) -> Vec<(String, u64)> {
    let pair = |entry: &Value| (entry[0].as_str().unwrap().to_owned(), entry[1].as_u64().unwrap());
    list["top"].as_array().unwrap().iter().map(pair).collect()
}

#[test]
fn the_report_says_what_was_met_also_after_a_stop() {
    let site = site();
    let job = Job::new(&[site.url(0, "/p0")]).flag("--delay", "0ms");
    job.start_with(&["--max-pages", "15"]).wait().assert_code(0);
    let half = job.report()["met"].clone();
    assert!(near(&half["links"], (15 * (OWN + 1) + 1) as u64), "{half}");
    job.run().assert_code(0);
    let met = job.report()["met"].clone();
    assert!(near(&met["links"], LINKS), "{met}");
    // the site itself, the other host, and those of the links
    assert!(near(&met["hosts"], 2 + OWN as u64), "{met}");
    assert!(near(&met["contents"], PAGES as u64), "{met}");
    assert!((0.008..0.0082).contains(&met["error"].as_f64().unwrap()), "{met}");
    let hosts = top(&met["most_linked_hosts"]);
    assert_eq!(hosts.len(), 20);
    // 40 pages link to each; 39 to the site itself
    assert!(hosts.iter().all(|(_, count)| *count >= PAGES as u64), "{hosts:?}");
    assert_eq!(met["most_linked_hosts"]["of"], LINKS + PAGES as u64 - 1);
    assert_eq!(met["most_linked_hosts"]["over_at_most"], 1);
    let shapes = top(&met["most_common_shapes"]);
    assert_eq!(shapes.len(), 1, "{shapes:?}");
    assert_eq!(shapes[0].1, PAGES as u64);
    let html = std::fs::read_to_string(job.dir().join("report.html")).unwrap();
    for words in [
        "different links, in scope or not",
        "Most linked hosts",
        "never too low",
        &shapes[0].0,
    ] {
        assert!(html.contains(words), "{words:?} is not in the report");
    }
}

#[test]
fn a_kill_costs_estimates_and_nothing_else() {
    let site = site();
    let job = Job::new(&[site.url(0, "/p0")]).flag("--delay", "5ms");
    if let Some(done) = job.start().kill_after(Duration::from_millis(400)) {
        done.assert_code(0);
        return;
    }
    job.run().assert_code(0);
    job.assert_balanced();
    assert_eq!(job.count("/urls/fetched"), PAGES as u64);
    let met = job.report()["met"].clone();
    // links of pages that were read before the kill may be missing, none is counted that is not there
    let links = met["links"].as_u64().unwrap();
    assert!(links * 1_000 <= LINKS * 1_041, "{met}");
    assert!(
        top(&met["most_linked_hosts"])
            .iter()
            .all(|(_, count)| *count <= 2 * PAGES as u64),
        "{met}"
    );
}
