//! Every kind of seen-set in whole crawls; forgetting; saved filters.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crawler::seen::Kind;

use crate::harness::{Done, Job};
use crate::site::{Answer, Asked, Site};

/// Pages that link to those behind them and back, so that most links are repeats.
const PAGES: u64 = 40;

fn site() -> Site {
    Site::start(1, |_| {
        |asked: &Asked| match asked.path.strip_prefix("/p").and_then(|n| n.parse::<u64>().ok()) {
            Some(n) if n < PAGES => {
                let links = (0..PAGES).filter(|to| *to <= 3 * n + 3);
                let links: Vec<_> = links.map(|to| format!("<a href=/p{to}>{to}</a>")).collect();
                let links = links.join(" ");
                Answer::html(format!("page {n} {links}"))
            }
            _ => Answer::not_found(),
        }
    })
}

fn job(site: &Site, kind: &str) -> Job {
    let job = Job::new(&[site.url(0, "/p0")]).flag("--delay", "0ms");
    job.flag("--seen", kind)
        .flag("--capacity", "1000")
        .flag("--fp-rate", "0.000001")
}

fn times(site: &Site, path: &str) -> usize {
    site.log().of(0).iter().filter(|exchange| exchange.path == path).count()
}

fn all_pages() -> BTreeSet<String> {
    (0..PAGES).map(|n| format!("/p{n}")).collect()
}

fn asked(site: &Site) -> Vec<String> {
    let log = site.log();
    let paths = log.of(0).into_iter().map(|exchange| exchange.path.clone());
    paths.filter(|path| path != "/robots.txt").collect()
}

fn assert_each_once(site: &Site, kind: &str) {
    let asked = asked(site);
    assert_eq!(asked.len() as u64, PAGES, "{kind}: {asked:?}");
    assert_eq!(asked.into_iter().collect::<BTreeSet<_>>(), all_pages(), "{kind}");
}

fn forget(job: &Job, args: &[&str]) -> Done {
    job.command(&[&["forget", "job"], args].concat())
}

fn newest_filter(job: &Job) -> PathBuf {
    let names = fs::read_dir(job.dir().join("state")).unwrap();
    let snaps = names
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "snap"));
    snaps.max().unwrap()
}

#[test]
fn every_kind_crawls_and_says_what_it_is() {
    for kind in Kind::ALL {
        let site = site();
        let job = job(&site, kind.name());
        job.run().assert_code(0);
        assert_each_once(&site, kind.name());
        job.assert_balanced();
        assert_eq!(job.report()["seen"]["kind"], kind.name());
        assert_eq!(job.count("/seen/items"), PAGES);
        let info = job.command(&["filter", "info", newest_filter(&job).to_str().unwrap()]);
        info.assert_code(0);
        info.assert_says(kind.name());
        info.assert_says("all whole");
    }
}

#[test]
fn an_exact_set_behind_a_filter_that_says_yes_to_most_loses_nothing() {
    const ROWS: u64 = 60;
    const LEAVES: u64 = 10;
    let site = Site::start(1, |_| {
        |asked: &Asked| {
            let row = asked.path.strip_prefix("/p").and_then(|row| row.parse().ok());
            match row {
                Some(row @ 0..ROWS) => {
                    let leaves = (0..LEAVES).map(|n| format!("<a href=/leaf{row}-{n}>l</a> "));
                    Answer::html(format!("<a href=/p{}>next</a> {}", row + 1, leaves.collect::<String>()))
                }
                _ => Answer::html("<a href=/p0>up</a>"),
            }
        }
    });
    // at the end the filter calls every second new URL seen
    let job = job(&site, "exact").flag("--capacity", "670").flag("--fp-rate", "0.5");
    job.run().assert_code(0);
    assert_eq!(site.log().fetched().len() as u64, ROWS * (LEAVES + 1) + 1);
    job.assert_balanced();
    assert!(job.count("/seen/saved") > 20, "{:#}", job.report()["seen"]);
    assert_eq!(job.report()["seen"]["lost_estimate"], 0.0);
}

#[test]
fn a_job_goes_on_with_another_kind_and_keeps_it() {
    let site = site();
    let first = job(&site, "bloom").flag("--max-pages", "5");
    first.run().assert_code(0);
    for (kind, more) in [("exact", "10"), ("tags", "15"), ("exact", "20"), ("cuckoo", "25")] {
        let run = first.start_with(&["--seen", kind, "--max-pages", more]).wait();
        run.assert_code(0);
        assert_eq!(first.report()["seen"]["kind"], kind);
    }
    let log = fs::read_to_string(first.dir().join("logs/crawler.log")).unwrap();
    assert!(log.contains("of another kind from now on"), "{log}");
    first
        .start_with(&["--seen", "quotient", "--max-pages", "1000"])
        .wait()
        .assert_code(0);
    assert_each_once(&site, "all of them");
    first.assert_balanced();
}

#[test]
fn what_is_forgotten_by_name_is_fetched_once_more() {
    for kind in ["counting", "cuckoo", "quotient", "tags", "exact", "hashset"] {
        let site = site();
        let job = job(&site, kind);
        job.run().assert_code(0);
        job.run().assert_code(2);
        let again = site.url(0, "/p7");
        let done = forget(&job, &[&again, &site.url(0, "/never")]);
        done.assert_code(0);
        done.assert_says("forgotten: 1 URL\n");
        done.assert_says("never admitted: ");
        done.assert_says("pending again: 1;");
        let twice = forget(&job, &[&again]);
        twice.assert_says("pending anyway: 1 URL");
        twice.assert_says("forgotten: 0 URLs");
        job.run().assert_code(0);
        assert_eq!(times(&site, "/p7"), 2, "{kind}");
        assert_eq!(asked(&site).len() as u64, PAGES + 1, "{kind}");
        job.assert_balanced();
        assert_eq!(job.report()["state"], "finished");
        assert_eq!(job.count("/seen/items"), PAGES, "{kind}");
        // and it can be forgotten again
        forget(&job, &[&again]).assert_says("forgotten: 1 URL\n");
        job.run().assert_code(0);
        assert_eq!(times(&site, "/p7"), 3, "{kind}");
    }
}

#[test]
fn kinds_that_share_bits_say_why_not_and_what_can() {
    let site = site();
    let url = site.url(0, "/p3");
    for kind in ["bloom", "classic", "scalable"] {
        let site = &site;
        let job = job(site, kind);
        job.run().assert_code(0);
        let before = fs::read(job.dir().join("state/admitted.log")).unwrap();
        let refused = forget(&job, &[&url]);
        refused.assert_code(2);
        refused.assert_says(&format!("of kind {kind}, which cannot forget"));
        refused.assert_says("--seen tags");
        assert_eq!(fs::read(job.dir().join("state/admitted.log")).unwrap(), before);
        job.run().assert_code(2);
    }
    let job = Job::new(&[site.url(0, "/p0")]).flag("--delay", "0ms");
    job.run().assert_code(0);
    let before = times(&site, "/p3");
    forget(&job, &[&url, "--seen", "tags"]).assert_says("forgotten: 1 URL\n");
    // the same command as at the beginning, which names no kind
    job.run().assert_code(0);
    assert_eq!(times(&site, "/p3"), before + 1);
    assert_eq!(job.report()["seen"]["kind"], "tags");
    let explained = job.command(&["explain", &url, "--job", "job"]);
    explained.assert_says("yes: admitted");
}

#[test]
fn patterns_prefixes_and_dates_choose_what_is_forgotten() {
    let site = site();
    let job = job(&site, "tags");
    job.run().assert_code(0);
    let nothing = forget(&job, &[]);
    nothing.assert_code(2);
    nothing.assert_says("nothing to forget");
    forget(&job, &["--pattern", "["]).assert_code(2);
    forget(&job, &["--older-than", "soon"]).assert_code(2);
    forget(&job, &["--older-than", "2001-01-01"]).assert_says("forgotten: 0 URLs");
    job.run().assert_code(2);
    // /p30 to /p39
    forget(&job, &["--pattern", "/p3[0-9]$", "--older-than", "2999-01-01"]).assert_says("forgotten: 10 URLs");
    job.run().assert_code(0);
    assert_eq!(asked(&site).len() as u64, PAGES + 10);
    // /p2 and /p20 to /p29, only where a page that is fetched again links to them
    forget(&job, &["--prefix", &site.url(0, "/p2"), "--when-linked"]).assert_says("forgotten: 11 URLs");
    job.run().assert_code(0);
    assert_eq!(
        asked(&site).len() as u64,
        PAGES + 10,
        "no page is fetched, so none links to them"
    );
    forget(&job, &[&site.url(0, "/p39")]).assert_says("forgotten: 1 URL\n");
    job.run().assert_code(0);
    assert_eq!(asked(&site).len() as u64, PAGES + 10 + 1 + 11);
    job.assert_balanced();
}

#[test]
fn a_job_that_is_crawled_or_is_none_is_left_alone() {
    let site = Site::start(1, |_| |_: &Asked| Answer::html("late").after(Duration::from_secs(3)));
    let job = job(&site, "tags");
    let running = job.start();
    while site.log().of(0).is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let refused = forget(&job, &[&site.url(0, "/p0")]);
    refused.assert_code(2);
    refused.assert_says("is being crawled by process");
    running.signal("KILL");
    running.wait();
    let none = job.command(&["forget", "nowhere", "http://a/"]);
    none.assert_code(1);
    none.assert_says("nowhere is no job");
    assert!(!job.dir().with_file_name("nowhere").exists());
}

#[test]
fn a_kill_while_it_forgets_leaves_all_or_nothing() {
    let site = site();
    let job = job(&site, "quotient");
    job.run().assert_code(0);
    let mut done = 0;
    for round in 0..12_u64 {
        let mut child = Command::new(env!("CARGO_BIN_EXE_crawler"))
            .args(["forget", job.dir().to_str().unwrap(), "--pattern", "/p1"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(4 * round));
        let _ = child.kill();
        child.wait().unwrap();
        let before = asked(&site).len();
        let run = job.run();
        // finished all the time, or with something to do, or with nothing left
        assert!(matches!(run.status.code(), Some(0 | 2)), "{}", run.text());
        let fetched = asked(&site).len() - before;
        assert!(
            fetched == 0 || fetched == 11,
            "round {round}: {fetched} of /p1 and /p10 to /p19"
        );
        done += usize::from(fetched > 0);
        job.assert_balanced();
    }
    forget(&job, &["--pattern", "/p1"]).assert_says("forgotten: 11 URLs");
    assert!(done <= 12);
}

fn check(job: &Job, args: &[&str], lines: &str) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_crawler"))
        .current_dir(job.dir())
        .args(["filter", "check"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code(), text)
}

#[test]
fn saved_filters_are_read_asked_and_refused_when_damaged() {
    let site = site();
    let job = job(&site, "bloom").flag("--capacity", "500000");
    job.run().assert_code(0);
    let file = newest_filter(&job);
    let name = file.to_str().unwrap();
    let (code, said) = check(
        &job,
        &[name],
        &format!("{}\n{}\n", site.url(0, "/p1#x"), site.url(0, "/never")),
    );
    assert_eq!(code, Some(0), "{said}");
    let words: Vec<_> = said.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(words, ["seen", "new"], "{said}");
    // a filter with itself is itself; with that of another job it is nothing
    let out = job.dir().join("union.snap");
    let merge = |other: &str| job.command(&["filter", "merge", name, other, "-o", out.to_str().unwrap()]);
    merge(name).assert_code(0);
    merge(name).assert_says("is there already");
    let (_, same) = check(&job, &[out.to_str().unwrap()], &format!("{}\n", site.url(0, "/p1")));
    assert!(same.starts_with("seen\t"), "{same}");
    fs::remove_file(&out).unwrap();
    let second = self::job(&site, "bloom").flag("--capacity", "500000");
    second.run().assert_code(0);
    let refused = merge(newest_filter(&second).to_str().unwrap());
    refused.assert_code(2);
    refused.assert_says("the keys differ");
    assert!(!out.exists());
    // one bit of a chunk
    let mut bytes = fs::read(&file).unwrap();
    bytes[4096 + (1 << 20) + 4 + 77] ^= 1;
    fs::write(&file, bytes).unwrap();
    let info = job.command(&["filter", "info", name]);
    info.assert_code(5);
    info.assert_says("the checksum of chunk 1 does not fit");
    let (code, said) = check(&job, &[name], "x\n");
    assert_eq!(code, Some(5), "{said}");
    assert!(said.contains("chunk 1"), "{said}");
    merge(name).assert_code(5);
    for (file, words) in [("nowhere", "nowhere"), ("report.json", "not a filter snapshot")] {
        let refused = job.command(&["filter", "info", job.dir().join(file).to_str().unwrap()]);
        assert!(
            refused.text().contains(words) || refused.text().contains("cut short"),
            "{}",
            refused.text()
        );
        assert_ne!(refused.status.code(), Some(0));
    }
}

#[test]
fn a_bench_tells_the_observed_rate() {
    let site = site();
    let job = job(&site, "bloom");
    let done = job.command(&["filter", "bench", "--items", "20000", "--fp", "0.01", "--kind", "tags"]);
    done.assert_code(0);
    done.assert_says("tags");
    done.assert_says("observed");
    job.command(&["filter", "bench", "--kind", "exact"]).assert_code(2);
}
