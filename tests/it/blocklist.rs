//! `--blocklist`: what it names is never asked, however a crawl comes to it, and every link has its answer.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

/// The good host, the bad one, and a list in `folder`.
fn list(folder: &Path, text: &str) -> String {
    let path = folder.join("list.txt");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn host_of(site: &Site, host: usize) -> String {
    let origin = site.url(host, "");
    let host = origin.trim_start_matches("http://").trim_end_matches('/');
    host.rsplit_once(':').unwrap().0.to_owned()
}

/// Host 0 leads to host 1 in every way there is, host 2 is good.
fn site() -> Site {
    Site::start(3, |origins: &[String]| {
        let (own, bad, good) = (origins[0].clone(), origins[1].clone(), origins[2].clone());
        move |asked: &Asked| match (asked.host, asked.path.as_str()) {
            (0, "/robots.txt") => Answer::text(format!("User-agent: *\nAllow: /\nSitemap: {bad}/map.xml\n")),
            (0, "/") => Answer::html(format!(
                "<a href={bad}/page>p</a><img src={bad}/i.png><link rel=stylesheet href={bad}/s.css>\
                 <a href=/redirect>r</a><a href=/folder/x>x</a><a href=/folder>f</a><a href={good}/>g</a>"
            )),
            (0, "/redirect") => Answer::redirect(302, &format!("{bad}/from-redirect")),
            (0, _) => Answer::html(format!("a page of {own}")),
            // its robots.txt has moved to the bad host
            (2, "/robots.txt") => Answer::redirect(301, &format!("{bad}/robots.txt")),
            _ => Answer::html("a page"),
        }
    })
}

#[test]
fn no_way_leads_to_a_blocked_host() {
    let site = site();
    let folder = tempfile::tempdir().unwrap();
    let own = site.url(0, "/folder/");
    let list = list(
        folder.path(),
        &format!(
            "# list\n0.0.0.0 bad.test\nnot a host\n{own}\n||{}^\nbad.test\n",
            host_of(&site, 1)
        ),
    );
    let job = Job::new(&[site.url(0, "/")])
        .flag("--scope", "any")
        .flag("--sitemaps", "yes")
        .flag("--retries", "0")
        .flag("--blocklist", &list);
    let done = job.run();
    done.assert_code(0);
    let log = site.log();
    assert_eq!(log.of(1).len(), 0, "the blocked host was asked: {:?}", log.of(1));
    assert!(!log.fetched().contains(&site.url(0, "/folder/x")));
    for asked in [site.url(0, "/"), site.url(0, "/redirect"), site.url(0, "/folder")] {
        assert!(log.fetched().contains(&asked), "{asked} is not blocked");
    }
    job.assert_balanced();
    // the page, the picture, the style and the folder of the first page; the redirect; the sitemap of robots.txt
    assert_eq!(job.count("/blocked"), 6);
    assert!(job.count("/links/out_of_scope") >= 6);
    let lines = job.log();
    let notes = |path: &str| {
        let url = site.url(0, path);
        lines.iter().find(|line| line.uri == url).unwrap().annotations.clone()
    };
    assert!(notes("/").contains("blocklist:4"), "{}", notes("/"));
    assert!(
        notes("/redirect").contains("redirect:blocklist"),
        "{}",
        notes("/redirect")
    );
    let said = fs::read_to_string(job.dir().join("logs/crawler.log")).unwrap();
    for words in [
        "list.txt:3: ",
        "blocklist: 3 hosts and prefixes of 6 lines, 1 lines that cannot be used",
    ] {
        assert!(said.contains(words), "{words:?} is not said:\n{said}");
    }
}

#[test]
fn a_blocked_seed_is_said_and_a_list_without_use_is_refused() {
    let site = site();
    let folder = tempfile::tempdir().unwrap();
    let bad = host_of(&site, 1);
    let blocked = list(folder.path(), &format!("{bad}\n"));
    let job = Job::new(&[site.url(1, "/a"), site.url(2, "/"), site.url(1, "/b")])
        .flag("--blocklist", &blocked)
        .switch("--no-robots");
    let done = job.run();
    done.assert_code(0);
    done.assert_says(&format!("seed {} is left: --blocklist {blocked}:1", site.url(1, "/a")));
    assert_eq!(site.log().of(1).len(), 0);
    assert_eq!(job.count("/blocked"), 2);
    assert_eq!(job.count("/urls/fetched"), 1);
    job.assert_balanced();

    for (text, seeds, words) in [
        (
            format!("{bad}\n"),
            vec![site.url(1, "/")],
            "every seed is named by --blocklist",
        ),
        (
            "two words\n".to_owned(),
            vec![site.url(2, "/")],
            "no line of it is a host or a URL prefix",
        ),
    ] {
        let list = list(folder.path(), &text);
        let job = Job::new(&seeds).flag("--blocklist", &list);
        let done = job.run();
        done.assert_code(2);
        done.assert_says(words);
        assert!(!job.dir().exists(), "{words}");
    }
    let job = Job::new(&[site.url(2, "/")]).flag("--blocklist", "/no/such/list");
    job.run().assert_code(2);
    assert!(!job.dir().exists());
}

#[test]
fn what_was_queued_is_settled_without_a_request() {
    let site = Site::start(2, |origins: &[String]| {
        let bad = origins[1].clone();
        move |asked: &Asked| match (asked.host, asked.path.as_str()) {
            (0, "/") => {
                let links = (0..10)
                    .map(|n| format!("<a href={bad}/{n}>n</a>"))
                    .collect::<Vec<_>>()
                    .concat();
                Answer::html(format!("{links}<a href=/a>a</a><a href=/b>b</a>"))
            }
            _ => Answer::html("a page"),
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let list = list(folder.path(), &format!("\n{}\n", host_of(&site, 1)));
    let job = Job::new(&[site.url(0, "/")])
        .flag("--scope", "any")
        .flag("--concurrency", "1")
        .flag("--per-host-connections", "1");
    job.start_with(&["--max-pages", "1"]).wait().assert_code(0);
    assert_eq!(job.count("/urls/pending"), 12);
    let before = site.log().of(1).len();
    job.start_with(&["--blocklist", &list]).wait().assert_code(0);
    assert_eq!(
        site.log().of(1).len(),
        before,
        "the host that the list names now was asked"
    );
    assert_eq!(job.count("/failures/blocklist"), 10);
    assert_eq!(job.count("/urls/fetched"), 3);
    assert_eq!(job.count("/urls/pending"), 0);
    job.assert_balanced();
    let lines = job.log();
    let settled: Vec<_> = lines.iter().filter(|line| line.status == -5003).collect();
    assert_eq!(settled.len(), 10);
    for line in settled {
        assert_eq!(line.extra["reason"], format!("blocklist: {list}:2"));
    }
}

#[test]
fn explain_names_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let list = list(folder.path(), "a.test\nbad.test\n");
    let output = Command::new(env!("CARGO_BIN_EXE_crawler"))
        .current_dir(folder.path())
        .args([
            "explain",
            "https://www.bad.test/x",
            "--seed",
            "http://seed.test/",
            "--scope",
            "any",
        ])
        .args(["--blocklist", &list, "--json"])
        .output()
        .unwrap();
    let said: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(said["scope"]["rule"], "blocklist", "{said}");
    assert_eq!(said["scope"]["why"], format!("--blocklist {list}:2"));
}
