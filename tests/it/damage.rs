//! Jobs that someone or something broke: a clear word, the right exit code, and nothing lost that was there.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::harness::Job;
use crate::reader::{assert_holds_exactly, assert_index_matches, assert_sound};
use crate::site::{Answer, Asked, Site};
use crate::web::{Plan, Web};

fn plan(seed: u64) -> Plan {
    Plan {
        seed,
        hosts: 2,
        pages: 120,
        answer_ms: (10, 20),
        crawl_delay: BTreeMap::new(),
    }
}

/// Every file below a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

/// What a damaged job must keep: all but the lock, its own settings and log, and the store, which opens itself.
fn kept(job: &Job) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = files(&job.dir());
    files.retain(|path, _| {
        let name = path.strip_prefix(job.dir()).unwrap();
        let own = ["state/lock", "config.toml", "logs/crawler.log"];
        !name.starts_with("state/store") && !own.iter().any(|own| name == Path::new(own))
    });
    files
}

/// A job that was killed with something in its archive, and in each of its files something that its store vouches for.
fn killed(web: &Web) -> Job {
    const COVERED: u64 = 5_000;
    let job = Job::new(&web.seeds);
    loop {
        let ended = job.start().kill_after(Duration::from_millis(250));
        assert!(ended.is_none(), "it ended before it was killed");
        if fs::metadata(job.dir().join("logs/crawl.log")).is_ok_and(|log| log.len() > COVERED) {
            return job;
        }
    }
}

#[test]
fn a_job_whose_store_is_lost_keeps_its_archive_and_logs() {
    let (_site, web) = Web::serve(&plan(21));
    let job = killed(&web);
    fs::remove_dir_all(job.dir().join("state/store")).unwrap();
    let before = kept(&job);
    assert!(before.keys().any(|path| path.to_string_lossy().contains(".warc.gz")));
    // and again: the empty store that the first look left must not be taken for a new job's
    for _ in 0..2 {
        let done = job.run();
        done.assert_code(1);
        done.assert_says("state/store knows nothing of it");
        done.assert_says("--fresh");
        assert!(kept(&job) == before, "a file was changed");
    }
}

#[test]
fn a_file_that_lost_bytes_is_named_before_any_is_cut() {
    for lost in ["state/admitted.log", "state/index.lines", "logs/crawl.log", "archive"] {
        let (_site, web) = Web::serve(&plan(22));
        let job = killed(&web);
        let path = match lost {
            "archive" => files(&job.dir().join("archive")).into_keys().next_back().unwrap(),
            name => job.dir().join(name),
        };
        fs::remove_file(&path).unwrap();
        let before = kept(&job);
        let done = job.run();
        done.assert_code(1);
        done.assert_says(lost);
        done.assert_says("damaged and nothing was changed");
        assert!(kept(&job) == before, "without {lost} a file was changed");
    }
}

#[test]
fn another_prefix_or_no_archive_leaves_no_open_file_of_a_killed_run() {
    let (_site, web) = Web::serve(&plan(23));
    let mut job = killed(&web);
    for prefix in ["a", "b", "c"] {
        job = job.flag("--warc-prefix", prefix);
        let ended = job.start().kill_after(Duration::from_millis(60));
        assert!(ended.is_none(), "it ended before it was killed");
    }
    // as a kill between the file's opening and its first batch leaves it
    fs::write(job.dir().join("archive/x-20110623171208-90000.warc.gz.open"), b"half").unwrap();
    job.run().assert_code(0);
    let open = files(&job.dir().join("archive"))
        .into_keys()
        .find(|path| path.extension().is_some_and(|end| end == "open"));
    assert_eq!(open, None);
    let records = job.records();
    assert_holds_exactly(&records, &web.reachable);
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);
    job.assert_balanced();
}

#[test]
fn a_run_without_an_archive_gives_the_archive_before_it_its_index() {
    let (_site, web) = Web::serve(&plan(25));
    let job = killed(&web).switch("--no-archive");
    job.run().assert_code(0);
    let records = job.records();
    assert!(!records.is_empty());
    assert_index_matches(&job.index(), &records);
    job.assert_balanced();
}

#[test]
fn a_checkpoint_that_cannot_be_written_is_said_with_exit_code_3() {
    let (_site, web) = Web::serve(&plan(24));
    let job = Job::new(&web.seeds).flag("--checkpoint-every", "50ms");
    fs::create_dir_all(job.dir().join("state")).unwrap();
    job.start().kill_after(Duration::from_millis(60));
    let blocked = job.dir().join("state/filter.tmp");
    if blocked.is_file() {
        fs::remove_file(&blocked).unwrap();
    }
    fs::create_dir(&blocked).unwrap();
    let done = job.run();
    done.assert_code(3);
    done.assert_says("cannot write state/filter.tmp");
    fs::remove_dir(&blocked).unwrap();
    job.run().assert_code(0);
    assert_holds_exactly(&job.records(), &web.reachable);
    job.assert_balanced();
}

#[test]
fn a_limit_of_bytes_does_not_wait_for_the_disk() {
    const PAGE: usize = 20_000;
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path[1..].parse::<u64>() {
            Ok(number) => {
                let link = format!("<a href='/{}'>", number + 1);
                Answer::html(link + &"x".repeat(PAGE))
            }
            Err(_) => Answer::not_found(),
        }
    });
    let job = Job::new(&[site.url(0, "/0")])
        .flag("--delay", "0ms")
        .flag("--max-bytes", "100KB");
    job.run().assert_code(0);
    assert_eq!(job.report()["reason"], "max-bytes");
    let received = job.count("/bytes/received");
    assert!(
        (100_000..100_000 + 2 * PAGE as u64).contains(&received),
        "{received} bytes"
    );
    job.assert_balanced();
}

#[test]
fn a_filter_that_cannot_be_made_is_a_mistake_of_its_flags() {
    let job = Job::new(&["http://127.0.0.1:1/"]).flag("--fp-rate", "1e-300");
    let done = job.run();
    done.assert_code(2);
    done.assert_says("--fp-rate");
}

#[test]
fn killed_runs_count_towards_the_limit_of_time() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path[1..].parse::<u64>() {
            Ok(number) => Answer::html(format!("<a href='/{}'>", number + 1)),
            Err(_) => Answer::not_found(),
        }
    });
    // a chain without end, which the rules against traps would end
    let job = Job::new(&[site.url(0, "/0")])
        .flag("--max-time", "1500ms")
        .flag("--traps", "no");
    for _ in 0..3 {
        job.start().kill_after(Duration::from_millis(800));
    }
    let began = std::time::Instant::now();
    job.run().assert_code(0);
    assert!(job.report()["wall_s"].as_f64().unwrap() >= 1.5);
    assert!(began.elapsed() < Duration::from_millis(1400), "{:?}", began.elapsed());
}
