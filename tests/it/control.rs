//! `crawler pause|resume|stop`: what a running crawl is told, it does, and loses nothing.

use std::thread;
use std::time::Duration;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

const PAGES: usize = 150;

fn site() -> Site {
    Site::start(1, |_| {
        |asked: &Asked| match asked.path.trim_start_matches('/').parse::<usize>() {
            Ok(0) => Answer::html((1..PAGES).fold(String::new(), |html, page| {
                html + &format!("<a href=/{page}>{page}</a>")
            })),
            Ok(page) if page < PAGES => Answer::html(format!("page {page}")),
            _ => Answer::not_found(),
        }
    })
}

fn fetched(site: &Site) -> usize {
    site.log().fetched().len()
}

/// Waits until more pages than so many came.
fn after(site: &Site, pages: usize) {
    for _ in 0..1_000 {
        if fetched(site) > pages {
            return;
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("no more than {} pages came", fetched(site));
}

fn is_still(site: &Site) {
    let before = fetched(site);
    thread::sleep(Duration::from_millis(400));
    assert_eq!(fetched(site), before, "something was started");
}

#[test]
fn a_paused_crawl_starts_nothing_until_it_goes_on() {
    let site = site();
    let job = Job::new(&[site.url(0, "/0")]).flag("--delay", "15ms");
    for command in ["pause", "resume", "stop"] {
        job.command(&[command, "job"]).assert_code(2);
    }
    let running = job.start();
    after(&site, 5);
    job.command(&["pause", "job"]).assert_code(0);
    is_still(&site);
    job.command(&["status", "job"]).assert_says("paused");
    job.command(&["resume", "job"]).assert_code(0);
    let paused = fetched(&site);
    after(&site, paused + 5);
    // the same by signals
    let pid = rustix::process::Pid::from_raw(i32::try_from(running.pid()).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::USR1).unwrap();
    while !job.dir().join("control/pause").exists() {
        thread::sleep(Duration::from_millis(10));
    }
    job.command(&["pause", "job"]).assert_code(0);
    is_still(&site);
    rustix::process::kill_process(pid, rustix::process::Signal::USR2).unwrap();
    running.wait().assert_code(0);
    assert_eq!(fetched(&site), PAGES);
    job.command(&["audit", "job"]).assert_code(0);
    job.command(&["pause", "job"]).assert_code(2);
}

#[test]
fn a_crawl_that_is_told_to_stop_can_go_on() {
    let site = site();
    let job = Job::new(&[site.url(0, "/0")]).flag("--delay", "15ms");
    let running = job.start();
    after(&site, 5);
    job.command(&["stop", "job"]).assert_code(0);
    let ended = running.wait();
    ended.assert_code(0);
    ended.assert_says("crawl stopped: crawler stop");
    assert_eq!(job.report()["state"], "stopped");
    assert!(job.count("/urls/pending") > 0);
    // a stop that nobody heard is not meant for the next run
    std::fs::write(job.dir().join("control/stop"), "").unwrap();
    job.run().assert_code(0);
    assert_eq!((fetched(&site), job.count("/urls/pending")), (PAGES, 0));
    assert!(site.log().duplicates().is_empty());
}

#[test]
fn a_pause_outlasts_a_kill() {
    let site = site();
    let job = Job::new(&[site.url(0, "/0")]).flag("--delay", "15ms");
    let running = job.start();
    after(&site, 5);
    job.command(&["pause", "job"]).assert_code(0);
    assert!(running.kill_after(Duration::ZERO).is_none());
    let running = job.start();
    while !job.command(&["status", "job"]).stdout.contains("paused") {
        thread::sleep(Duration::from_millis(50));
    }
    is_still(&site);
    job.command(&["resume", "job"]).assert_code(0);
    running.wait().assert_code(0);
    assert_eq!(fetched(&site), PAGES);
}
