//! `crawler demo`: a small web of its own on loopback, crawled by the real crawl. It needs no network.
//!
//! What must come home is known beforehand (the web is made of arithmetic), so the demo judges its own crawl: the
//! index must name every page once and nothing else.

mod server;
mod web;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use serde::Deserialize;

use self::server::Door;
use self::web::DemoWeb;
use crate::config::Config;

/// Most hosts of the demo.
pub const MAX_HOSTS: u16 = 100;
/// Most pages of a demo host.
pub const MAX_PAGES: u32 = 10_000;
/// The calendar has no end: the crawl goes this many links deep and no further.
const MAX_DEPTH: u16 = 12;
/// The demo asks its own server, which does not mind.
const DELAY: Duration = Duration::from_millis(50);
/// Folders tried before the first is given to the crawl, which then says that it is taken.
const MAX_JOBS: u32 = 10_000;
/// Addresses shown of a list that should be empty.
const SHOWN: usize = 5;
/// The exit code of a crawl whose accounts do not add up.
const UNBALANCED: u8 = 5;

/// The flags of `crawler demo`.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct DemoArgs {
    /// Hosts of the demo's web.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=i64::from(MAX_HOSTS)))]
    pub hosts: u16,
    /// Pages of each host (images, redirects and the rest come on top).
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_PAGES)))]
    pub pages: u32,
    /// The job folder; if it is taken, a new one beside it.
    #[arg(long, short = 'o', value_name = "DIR", default_value = "demo")]
    pub job: PathBuf,
}

/// Serves the web, crawls it, says where things are and whether all of it came home.
///
/// Exit code: the crawl's own; 5 if the crawl ended well but the archive is not exactly the web.
#[must_use]
pub fn run(args: &DemoArgs) -> ExitCode {
    match demo(args) {
        Ok(code) => code,
        Err(error) => {
            let _ = writeln!(io::stderr(), "crawler demo: {error}");
            ExitCode::FAILURE
        }
    }
}

fn demo(args: &DemoArgs) -> io::Result<ExitCode> {
    let door = Door::open()?;
    let hosts = usize::from(args.hosts);
    let pages = usize::try_from(args.pages).map_err(io::Error::other)?;
    let web = DemoWeb::new(hosts, pages, door.address().port());
    let config = settings(&web, hosts, &door, free_folder(&args.job))?;
    let job = config.job.clone();
    let truth = web.reachable(usize::from(MAX_DEPTH));
    say(&format!(
        "serving {hosts} hosts with {} addresses on {}; the calendar of {} has no end: the crawl goes {MAX_DEPTH} links deep",
        truth.len(),
        door.address(),
        DemoWeb::name(0),
    ))?;
    door.serve(web);

    let code = super::crawl::run(config);
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    let faults = faults(&truth, &indexed(&job.join("indexes/index.cdxj"))?);
    if faults.is_empty() {
        say(&format!("all {} pages in the archive, each once", truth.len()))?;
        return Ok(code);
    }
    say(&faults.join("\n"))?;
    Ok(ExitCode::from(UNBALANCED))
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

fn settings(web: &DemoWeb, hosts: usize, door: &Door, job: PathBuf) -> io::Result<Config> {
    let loopback = "127.0.0.0/8".parse().map_err(io::Error::other::<String>)?;
    let address = door.address();
    Ok(Config {
        seed: (0..hosts).map(|host| web.url(host, "/")).collect(),
        job,
        max_depth: Some(MAX_DEPTH),
        sitemaps: true,
        delay: DELAY,
        resolve: (0..hosts)
            .map(|host| (DemoWeb::name(host), address.port(), address))
            .collect(),
        allow_address: vec![loopback],
        warc_prefix: "demo".to_owned(),
        ..Config::default()
    })
}

/// `job` if it is not there or empty, else the first free of `job-2`, `job-3` and so on: nothing is overwritten.
fn free_folder(job: &Path) -> PathBuf {
    let free = |path: &Path| fs::read_dir(path).map_or(!path.exists(), |mut entries| entries.next().is_none());
    if free(job) {
        return job.to_owned();
    }
    let name = job
        .file_name()
        .map_or_else(|| "demo".into(), |name| name.to_string_lossy().into_owned());
    (2..=MAX_JOBS)
        .map(|number| job.with_file_name(format!("{name}-{number}")))
        .find(|path| free(path))
        .unwrap_or_else(|| job.to_owned())
}

/// What the demo reads of an index line.
#[derive(Deserialize)]
struct IndexLine {
    url: String,
    status: String,
}

/// The addresses of the index with their statuses, robots.txt aside.
fn indexed(index: &Path) -> io::Result<Vec<(String, u16)>> {
    let mut found = Vec::new();
    for line in fs::read_to_string(index)?.lines() {
        let json = line.find('{').and_then(|at| line.get(at..)).unwrap_or_default();
        let line: IndexLine = serde_json::from_str(json)?;
        if !line.url.ends_with("/robots.txt") {
            found.push((line.url, line.status.parse().unwrap_or(0)));
        }
    }
    Ok(found)
}

/// In what the index differs from the web; empty if in nothing.
fn faults(truth: &BTreeMap<String, u16>, indexed: &[(String, u16)]) -> Vec<String> {
    let mut counts: BTreeMap<(&str, u16), usize> = BTreeMap::new();
    for (url, status) in indexed {
        *counts.entry((url, *status)).or_default() += 1;
    }
    let missing = truth
        .iter()
        .filter(|(url, status)| !counts.contains_key(&(url.as_str(), **status)));
    let extra = counts.keys().filter(|(url, status)| truth.get(*url) != Some(status));
    let twice = counts.iter().filter(|(_, count)| **count > 1);
    [
        ("missing", missing.map(|(url, _)| url.clone()).collect::<Vec<_>>()),
        (
            "not of this web",
            extra.map(|(url, status)| format!("{url} ({status})")).collect(),
        ),
        ("more than once", twice.map(|((url, _), _)| (*url).to_owned()).collect()),
    ]
    .into_iter()
    .filter(|(_, urls)| !urls.is_empty())
    .map(|(what, urls)| {
        let shown: Vec<&str> = urls.iter().take(SHOWN).map(String::as_str).collect();
        format!("{} {what}: {}", urls.len(), shown.join(" "))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn truth() -> BTreeMap<String, u16> {
        BTreeMap::from([("http://a/".to_owned(), 200), ("http://a/x".to_owned(), 404)])
    }

    #[test]
    fn a_whole_archive_has_no_faults() {
        let index = [("http://a/x".to_owned(), 404), ("http://a/".to_owned(), 200)];
        assert_eq!(faults(&truth(), &index), Vec::<String>::new());
    }

    #[test]
    fn what_is_missing_strange_or_there_twice_is_named() {
        let index = [
            ("http://a/".to_owned(), 200),
            ("http://a/".to_owned(), 200),
            ("http://b/".to_owned(), 200),
        ];
        assert_eq!(
            faults(&truth(), &index),
            [
                "1 missing: http://a/x",
                "1 not of this web: http://b/ (200)",
                "1 more than once: http://a/"
            ]
        );
        let wrong_status = [("http://a/".to_owned(), 200), ("http://a/x".to_owned(), 200)];
        assert_eq!(faults(&truth(), &wrong_status).len(), 2);
    }

    #[test]
    fn a_taken_folder_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let job = home.path().join("demo");
        assert_eq!(free_folder(&job), job);
        fs::create_dir(&job).unwrap();
        assert_eq!(free_folder(&job), job, "an empty folder is free");
        fs::write(job.join("file"), "").unwrap();
        fs::write(home.path().join("demo-2"), "").unwrap();
        assert_eq!(free_folder(&job), home.path().join("demo-3"));
    }

    #[test]
    fn an_index_is_read_without_its_robots_lines() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("index.cdxj");
        let line = |url: &str| format!("key 20261130181136 {{\"url\": \"{url}\", \"status\": \"200\"}}\n");
        fs::write(&file, line("http://a/") + &line("http://a/robots.txt")).unwrap();
        assert_eq!(indexed(&file).unwrap(), [("http://a/".to_owned(), 200)]);
    }
}
