//! `crawler status`: where a job stands, while it runs, after a kill, and at its end.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

/// A chain of pages.
fn chain(pages: u32) -> Site {
    Site::start(1, move |_| {
        move |asked: &Asked| match asked.path.trim_start_matches('/').parse::<u32>() {
            Ok(page) if page < pages => Answer::html(format!("<a href=/{}>on</a>", page + 1)),
            Ok(_) => Answer::html("the end"),
            Err(_) => Answer::not_found(),
        }
    })
}

fn status(job: &Job) -> Value {
    let done = job.command(&["status", "job", "--json"]);
    done.assert_code(0);
    serde_json::from_str(&done.stdout).unwrap()
}

#[test]
fn a_job_says_where_it_stands_while_it_runs_after_a_kill_and_at_its_end() {
    const PAGES: u32 = 60;
    let site = chain(PAGES);
    let job = Job::new(&[site.url(0, "/0")]).flag("--delay", "60ms");
    let none = job.command(&["status", "job"]);
    none.assert_code(2);
    none.assert_says("job is no job");
    let running = job.start();
    let begun = Instant::now();
    let seen = loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "it never says that it runs");
        thread::sleep(Duration::from_millis(50));
        if !job.dir().join("state/VERSION").exists() {
            continue;
        }
        let status = status(&job);
        if status["state"] == "running" && status["urls"]["fetched"].as_u64().is_some_and(|pages| pages > 0) {
            break status;
        }
    };
    assert_eq!(seen["pid"].as_str().unwrap(), running.pid().to_string());
    assert!(seen["urls"]["fetched"].as_u64().unwrap() <= u64::from(PAGES));
    assert!(seen["in_flight"].as_u64().unwrap() <= 1);
    let text = job.command(&["status", "job"]);
    text.assert_says("running as process");
    text.assert_says("in flight");
    assert!(running.kill_after(Duration::ZERO).is_none());

    let killed = status(&job);
    assert_eq!(killed["state"], "can go on");
    assert_eq!(killed["balanced"], true);
    assert!(killed["urls"]["fetched"].as_u64().unwrap() <= site.log().fetched().len() as u64);
    job.command(&["status", "job"])
        .assert_says("can go on with the command");

    job.run().assert_code(0);
    let ended = status(&job);
    assert_eq!(ended["state"], "finished");
    let report = job.report();
    for part in ["urls", "links", "status", "hosts", "bytes", "failures"] {
        assert_eq!(ended[part], report[part], "{part}");
    }
    assert_eq!(ended["urls"]["fetched"], PAGES + 1);
    assert_eq!(ended["seen"]["items"], report["seen"]["items"]);
}
