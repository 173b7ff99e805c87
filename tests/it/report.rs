//! `crawler report`: what a job came to, also one that was killed before it could say so.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

fn site(pages: u32) -> Site {
    Site::start(1, move |_| {
        move |asked: &Asked| match asked.path.trim_start_matches('/').parse::<u32>() {
            Ok(0) => Answer::html((1..pages).fold(String::new(), |mut html, page| {
                let _ = write!(html, "<a href=/{page}>{page}</a>");
                html
            })),
            Ok(page) if page < pages => Answer::html(format!("page {page}")),
            _ => Answer::not_found(),
        }
    })
}

#[test]
fn a_finished_job_has_its_report_as_it_was_written() {
    let site = site(5);
    let job = Job::new(&[site.url(0, "/0")]);
    job.command(&["report", "job"]).assert_code(2);
    job.run().assert_code(0);
    let written = fs::read_to_string(job.dir().join("report.json")).unwrap();
    let printed = job.command(&["report", "job", "--json"]);
    printed.assert_code(0);
    assert_eq!(printed.stdout, written);
    let page = job.command(&["report", "job", "--html"]);
    assert_eq!(page.stdout, fs::read_to_string(job.dir().join("report.html")).unwrap());
    let text = job.command(&["report", "job"]);
    text.assert_says("crawl finished: every URL in scope has its answer");
    text.assert_says("job/report.html");
}

#[test]
fn a_killed_job_gets_the_report_that_it_could_not_write() {
    let site = site(2_000);
    let job = Job::new(&[site.url(0, "/0")]).flag("--delay", "5ms");
    let running = job.start();
    let fetched = |job: &Job| {
        let said = job.command(&["report", "job", "--json"]);
        let report: Option<Value> = serde_json::from_str(&said.stdout).ok();
        report
            .and_then(|report| report["urls"]["fetched"].as_u64())
            .unwrap_or(0)
    };
    while !job.dir().join("state/now.json").exists() || fetched(&job) < 3 {
        std::thread::sleep(Duration::from_millis(50));
    }
    job.command(&["report", "job"]).assert_code(2);
    assert!(running.kill_after(Duration::ZERO).is_none());
    assert!(!job.dir().join("report.json").exists());
    job.command(&["report", "job"]).assert_says("its last run was killed");
    let report: Value = serde_json::from_str(&fs::read_to_string(job.dir().join("report.json")).unwrap()).unwrap();
    assert_eq!(
        (&report["state"], &report["balanced"]),
        (&"stopped".into(), &true.into())
    );
    assert!(report["urls"]["pending"].as_u64() > Some(1_000), "{report:#}");
    assert_eq!(report["seen"]["items"], report["urls"]["admitted"]);
    assert!(report["seen"]["fill"].as_f64() > Some(0.0));
    // the next run goes on and reports by itself
    job.start_with(&["--max-pages", "40"]).wait().assert_code(0);
    job.command(&["report", "job"]).assert_says("stopped at a limit");
}
