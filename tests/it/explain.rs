//! `crawler explain`: before a crawl, during one, and after it; and the job stays as it was.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

/// The exit code and what was said, with and without `--json`.
fn explain(args: &[&str]) -> (Option<i32>, String, Value) {
    let empty = tempfile::tempdir().unwrap();
    let run = |further: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_crawler"))
            .current_dir(empty.path())
            .arg("explain")
            .args(args)
            .args(further)
            .output()
            .unwrap()
    };
    let (text, json) = (run(&[]), run(&["--json"]));
    assert_eq!(text.status.code(), json.status.code());
    let said = String::from_utf8([text.stdout, text.stderr].concat()).unwrap();
    (
        text.status.code(),
        said,
        serde_json::from_slice(&json.stdout).unwrap_or(Value::Null),
    )
}

/// Every file of a folder with its bytes.
fn files(folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
}

fn site() -> Site {
    Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/" => {
                Answer::html("<a href=/a>a</a><a href=/private/x>x</a><a href=/a/b/a/b/a/b>t</a><a href=/late>l</a>")
            }
            "/robots.txt" => Answer::text("User-agent: *\nDisallow: /private/\n"),
            "/a" => Answer::html("a page"),
            "/late" => Answer::html("late").after(Duration::from_millis(200)),
            _ => Answer::not_found(),
        }
    })
}

#[test]
fn before_a_crawl_the_rules_are_tried() {
    let seed = ["--seed", "http://a.test/docs/", "--scope", "prefix"];
    let (code, said, json) = explain(&[&["http://A.test:80/docs/x%41#part"], &seed[..]].concat());
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(json["identity"], "http://a.test/docs/xA", "{said}");
    assert_eq!(json["scope"]["verdict"], "in");
    assert_eq!(json["trap"]["rule"], Value::Null);
    let (_, said, json) = explain(&[&["http://a.test/other"], &seed[..]].concat());
    assert_eq!(json["scope"]["rule"], "scope", "{said}");
    let (_, said, json) = explain(&[&["http://a.test/docs/x?print=1", "--exclude", "print="], &seed[..]].concat());
    assert!(said.contains("--exclude print="), "{said}");
    assert_eq!(json["scope"]["rule"], "pattern");
    let (_, said, json) = explain(&[&["http://a.test/docs/a/b/a/b/a/b"], &seed[..]].concat());
    assert_eq!(json["trap"]["rule"], "repeated-segments", "{said}");
    let (_, said, _) = explain(&["http://a.test/1"]);
    assert!(said.contains("not known without seeds"), "{said}");
}

#[test]
fn a_mistake_is_named_with_exit_code_2() {
    let (code, said, _) = explain(&["mailto:me@example.com"]);
    assert_eq!(code, Some(2), "{said}");
    let (code, said, _) = explain(&["http://a.test/", "--job", "nowhere"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nowhere is no job"), "{said}");
}

#[test]
fn after_a_crawl_every_rule_answers_and_nothing_changes() {
    let site = site();
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let mut before = BTreeMap::new();
    files(&job.dir(), &mut before);
    let dir = job.dir();
    let ask = |path: &str| {
        explain(&[
            &site.url(0, path),
            "--job",
            dir.to_str().unwrap(),
            "--seed",
            &site.url(0, "/"),
        ])
    };

    let (code, said, json) = ask("/a");
    assert_eq!(code, Some(0), "{said}");
    assert!(json["seen"]["admitted"].is_u64(), "{said}");
    assert_eq!(json["robots"]["allowed"], true, "{said}");
    assert_eq!(json["attempts"][0]["status"], 200, "{said}");
    assert!(json["archive"][0]["offset"].is_string(), "{said}");
    assert_eq!(json["queue"], Value::Null);

    let (_, said, json) = ask("/private/x");
    assert_eq!(json["robots"]["allowed"], false, "{said}");
    assert_eq!(json["robots"]["line"]["text"], "Disallow: /private/", "{said}");
    assert_eq!(json["attempts"][0]["status"], -9998);
    assert_eq!(json["archive"], serde_json::json!([]));

    let (_, said, json) = ask("/a/b/a/b/a/b");
    assert_eq!(json["trap"]["rule"], "repeated-segments", "{said}");
    assert!(
        json["left"][0].as_str().unwrap().contains("repeated-segments"),
        "{said}"
    );
    assert_eq!(json["seen"]["admitted"], Value::Null);

    let (_, said, json) = ask("/never");
    assert_eq!(json["seen"]["filter"], false, "{said}");
    assert_eq!(json["attempts"], serde_json::json!([]));

    let mut after = BTreeMap::new();
    files(&job.dir(), &mut after);
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    assert!(before == after, "a file of the job changed");
}

#[test]
fn of_a_stopped_job_the_queue_answers_and_of_a_running_one_the_files() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/" => Answer::html((0..30).fold(String::new(), |html, n| format!("{html}<a href=/p{n}>p</a>"))),
            "/robots.txt" => Answer::not_found(),
            path => Answer::html(path.to_owned()).after(Duration::from_millis(300)),
        }
    });
    let job = Job::new(&[site.url(0, "/")]);
    let running = job.start();
    let dir = job.dir();
    let ask = |path: &str| explain(&[&site.url(0, path), "--job", dir.to_str().unwrap()]);
    while site.log().fetched().len() < 3 {
        std::thread::sleep(Duration::from_millis(10));
    }
    let (code, said, json) = ask("/");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(json["job"]["running"], true, "{said}");
    assert!(said.contains(&running.pid().to_string()), "{said}");
    running.signal("INT");
    running.wait().assert_code(130);
    let (_, said, json) = ask("/p29");
    assert_eq!(json["job"]["finished"], false, "{said}");
    assert!(json["queue"]["before"].as_u64().unwrap() > 5, "{said}");
    assert_eq!(json["queue"]["via"], site.url(0, "/"));
    job.run().assert_code(0);
}
