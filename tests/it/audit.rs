//! `crawler audit`: a job that kept its promises says so, and one whose files were changed by hand says which it broke.

use std::fs;
use std::time::Duration;

use serde_json::Value;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

const LOG: &str = "logs/crawl.log";

/// A job of two hosts with rules, a redirect, a page missing, a body that stands twice, and a page that fails at first.
fn job() -> (Site, Job) {
    let site = Site::start(2, |origins| {
        let other = origins[1].clone();
        let tries = std::sync::atomic::AtomicUsize::new(0);
        move |asked: &Asked| match asked.path.as_str() {
            "/robots.txt" => Answer::text("User-agent: *\nDisallow: /hidden\nCrawl-delay: 0.03\n"),
            "/" => Answer::html(format!(
                "<a href=/public1>1</a><a href=/public2>2</a><a href=/hidden9>no</a><a href=/gone>gone</a>\
                 <a href=/moved>moved</a><a href=/weak>weak</a><a href={other}/public3>3</a>"
            )),
            "/moved" => Answer::redirect(302, "/public4"),
            "/weak" if tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0 => {
                Answer::new(503, "text/plain", "later")
            }
            "/gone" => Answer::not_found(),
            path => Answer::html(format!("<p>page {}", path.len())),
        }
    });
    let job = Job::new(&[site.url(0, "/"), site.url(1, "/")]);
    job.run().assert_code(0);
    (site, job)
}

fn audit(job: &Job, code: i32) -> Value {
    let done = job.command(&["audit", "job", "--json"]);
    done.assert_code(code);
    serde_json::from_str(&done.stdout).unwrap()
}

/// The promises that are broken once this was done to a file of the job, which is put right again afterwards.
fn broken_by(job: &Job, file: &str, change: impl FnOnce(String) -> String) -> Vec<String> {
    let path = job.dir().join(file);
    let before = fs::read(&path).unwrap();
    // byte for byte: an archive is no text
    let text: String = before.iter().map(|byte| char::from(*byte)).collect();
    let after: Vec<u8> = change(text)
        .chars()
        .map(|c| u8::try_from(u32::from(c)).unwrap())
        .collect();
    assert_ne!(after, before, "nothing was changed");
    fs::write(&path, after).unwrap();
    let found = audit(job, 1);
    let text = job.command(&["audit", "job"]);
    text.assert_code(1);
    text.assert_says("BROKEN");
    fs::write(&path, before).unwrap();
    let broken = found["broken"].as_object().unwrap();
    let broken: Vec<String> = broken
        .iter()
        .filter(|(_, count)| count.as_u64() > Some(0))
        .map(|(promise, _)| promise.clone())
        .collect();
    for promise in &broken {
        text.assert_says(&format!("{promise}: "));
    }
    broken
}

/// The line of crawl.log that ends with a request for this path, changed.
fn in_line(log: &str, path: &str, change: impl Fn(&str) -> String) -> String {
    let lines = log.lines().map(|line| {
        let url = line.split_whitespace().nth(3).unwrap();
        if url.ends_with(path) {
            change(line)
        } else {
            line.to_owned()
        }
    });
    lines.map(|line| line + "\n").collect()
}

#[test]
fn a_job_that_kept_its_promises_says_so_and_each_that_is_broken_by_hand_is_named() {
    let (_site, job) = job();
    let found = audit(&job, 0);
    assert_eq!(
        (&found["clean"], &found["hosts"]),
        (&true.into(), &2.into()),
        "{found:#}"
    );
    assert_eq!(found["urls"], job.count("/urls/admitted"));
    assert!(found["judged_by_robots"].as_u64() >= Some(8), "{found:#}");
    assert!(found["shortest_gap_us"].as_u64() >= Some(30_000), "{found:#}");
    assert_eq!(found["records"]["revisit"], job.count("/archive/records/revisit"));
    job.command(&["audit", "job"]).assert_says("politeness  kept");

    // a request five milliseconds sooner than it was
    let sooner = |line: &str| {
        let (before, after) = line.split_once("\"startMicros\":").unwrap();
        let (start, after) = after.split_once(',').unwrap();
        let start: u64 = start.parse().unwrap();
        format!("{before}\"startMicros\":{},{after}", start - 5_000)
    };
    assert_eq!(
        broken_by(&job, LOG, |log| in_line(&log, "/public2", sooner)),
        ["politeness"]
    );
    // a rest that is shorter than the Crawl-delay
    let shorter = |line: &str| line.replace("\"restMicros\":30000", "\"restMicros\":29999");
    assert_eq!(
        broken_by(&job, LOG, |log| in_line(&log, "/public1", shorter)),
        ["politeness"]
    );
    // what robots.txt forbids
    let forbidden = broken_by(&job, LOG, |log| {
        in_line(&log, "/public2", |line| line.replace("/public2", "/hidden2"))
    });
    assert_eq!(forbidden, ["archive", "robots"]);
    // a page that was asked for twice
    let twice = broken_by(&job, LOG, |log| {
        in_line(&log, "/public2", |line| line.replace("/public2", "/public1"))
    });
    assert_eq!(twice, ["accounts", "archive", "once"]);
    // an answer that was another
    let other = broken_by(&job, LOG, |log| {
        in_line(&log, "/gone", |line| line.replace("   404 ", "   200 "))
    });
    assert_eq!(other, ["accounts"]);
    // an archive that is damaged: what follows is not there
    let name = fs::read_dir(job.dir().join("archive"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let file = format!("archive/{}", name.file_name().to_string_lossy());
    let damaged = broken_by(&job, &file, |bytes| {
        let mut bytes: Vec<char> = bytes.chars().collect();
        let at = bytes.len() - 20;
        bytes[at] = if bytes[at] == 'x' { 'y' } else { 'x' };
        bytes.into_iter().collect()
    });
    assert!(damaged.contains(&"archive".to_owned()), "{damaged:?}");
    assert_eq!(audit(&job, 0)["clean"], true, "all was put right again");
}

#[test]
fn an_audit_wants_a_job_that_stands_still() {
    let site = Site::start(1, |_| |_: &Asked| Answer::html("<p>slow").after(Duration::from_secs(5)));
    let job = Job::new(&[site.url(0, "/")]);
    job.command(&["audit", "job"]).assert_code(2);
    let running = job.start();
    while !job.dir().join("state/now.json").exists() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = job.command(&["audit", "job"]);
    refused.assert_code(2);
    refused.assert_says("is being crawled by process");
    assert!(running.kill_after(Duration::ZERO).is_none());
    assert_eq!(audit(&job, 0)["requests"], 0, "nothing is durable yet");
}
