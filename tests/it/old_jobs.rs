//! Job folders that an earlier version left behind must go on: one is kept here for each version of the format.
//!
//! `format-1.tar.gz` was stopped by `--max-pages 3` with two URLs pending; its server is long gone.
//! `format-1-pages.tar.gz` was stopped by `--max-pages 2` with one pending, and wrote fields as plain lines.

use std::path::Path;
use std::process::Command;

use crate::harness::Job;
use crate::reader::{assert_index_matches, assert_sound};
use crate::site::{Answer, Asked, Site};

fn unpack(job: &Job, name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jobs");
    let archive = folder.join(name);
    let home = job.dir().parent().unwrap().to_owned();
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .arg("-C")
        .arg(&home)
        .status()
        .unwrap();
    assert!(status.success(), "{} cannot be unpacked", archive.display());
}

#[test]
fn a_job_of_format_1_goes_on() {
    // loopback is not allowed in this run, so what is pending is read back, asked for and refused, without a request
    let job = Job::without_permission(&["http://127.0.0.1:18977/p1.html"]);
    unpack(&job, "format-1.tar.gz");
    job.run().assert_code(0);
    job.assert_balanced();
    assert_eq!(job.report()["state"], "finished");
    assert_eq!(job.count("/runs"), 2);
    assert_eq!(job.count("/urls/admitted"), 6);
    assert_eq!(job.count("/urls/fetched"), 3, "what was fetched before stands");
    assert_eq!(job.count("/urls/failed"), 2);
    assert_eq!(job.count("/urls/robots"), 1, "its robots.txt is remembered");
    assert_eq!(job.count("/failures/private-address"), 1);
    let records = job.records();
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);
    assert_eq!(
        records
            .iter()
            .filter(|record| record.is_answer() && !record.is_robots())
            .count(),
        3
    );
}

#[test]
fn fields_that_began_as_plain_lines_go_on_as_such() {
    let page = |n: u32| Answer::html(format!("<h1>page {n}</h1><a href=/p{}.html>on</a>", n + 1));
    let site = Site::start(1, |_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/p3.html" => page(3),
            "/p4.html" => page(4),
            _ => Answer::not_found(),
        }
    });
    let address = site.origin(0).trim_start_matches("http://");
    let job = Job::new(&["http://old.test/p1.html"])
        .flag("--resolve", &format!("old.test:80:{address}"))
        .switch("--no-archive")
        .switch("--output-links")
        .switch("--parquet");
    let settings = "[[extract.field]]\nname = \"heading\"\nselector = \"h1\"\n";
    std::fs::write(job.dir().with_file_name("crawler.toml"), settings).unwrap();
    unpack(&job, "format-1-pages.tar.gz");
    let before = std::fs::read_to_string(job.dir().join("pages.jsonl")).unwrap();
    // what a kill leaves behind the last batch
    std::fs::write(job.dir().join("pages.jsonl"), format!("{before}{{\"heading\":\"ha")).unwrap();
    job.run().assert_code(0);
    let after = std::fs::read_to_string(job.dir().join("pages.jsonl")).unwrap();
    assert!(after.starts_with(&before));
    let rows: Vec<serde_json::Value> = after.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let headings: Vec<_> = rows.iter().map(|row| row["heading"].as_str()).collect();
    let [one, two, three, four] = ["page 1", "page 2", "page 3", "page 4"].map(Some);
    assert_eq!(headings, [one, two, three, four, None], "the last is a 404");
    assert!(!job.dir().join("pages.jsonl.zst").exists());
    let links = job.rows("links.jsonl.zst");
    let targets: Vec<_> = links.iter().map(|row| row["to"].as_str().unwrap()).collect();
    assert_eq!(targets, ["http://old.test/p4.html", "http://old.test/p5.html"]);
    assert!(job.dir().join("pages.parquet").exists() && job.dir().join("links.parquet").exists());
}
