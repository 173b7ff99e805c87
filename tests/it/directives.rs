//! What pages say to crawlers: recorded by default, obeyed if asked.

use std::collections::BTreeSet;

use crate::harness::Job;
use crate::reader::assert_holds_exactly;
use crate::site::{Answer, Site};

fn urls(site: &Site, paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| site.url(0, path)).collect()
}

fn notes(job: &Job, url: &str) -> Vec<String> {
    let lines = job.log();
    let line = lines.iter().find(|line| line.uri == url).unwrap();
    line.annotations.split(',').map(str::to_owned).collect()
}

const ALL: &[&str] = &[
    "/",
    "/meta",
    "/header",
    "/ours",
    "/theirs",
    "/by-rel",
    "/by-both",
    "/of-meta",
    "/of-header",
    "/of-ours",
    "/of-theirs",
    "/i.png",
    "/s.css",
    "/moved",
    "/target",
];

fn site() -> Site {
    Site::table(vec![
        (
            "/",
            Answer::html(
                "<a href=/meta>m</a><a href=/header>h</a><a href=/ours>o</a><a href=/theirs>t</a>\
                 <a rel='ugc nofollow' href=/by-rel>r</a><a rel=nofollow href=/by-both>n</a><a href=/by-both>f</a>\
                 <a rel=nofollow href=/moved>w</a><a href=/moved>w</a>",
            ),
        ),
        (
            "/meta",
            Answer::html(
                "<meta name=robots content='noindex, nofollow'><a href=/of-meta>x</a><img src=/i.png>\
                 <link rel=stylesheet href=/s.css>",
            ),
        ),
        (
            "/header",
            Answer::html("<a href=/of-header>x</a>")
                .with("X-Robots-Tag", "noindex")
                .with("X-Robots-Tag", "nofollow"),
        ),
        (
            "/ours",
            Answer::html("<meta name=TestBot content=nofollow><a href=/of-ours>x</a>")
                .with("X-Robots-Tag", "testbot: noindex"),
        ),
        (
            "/theirs",
            Answer::html("<meta name=otherbot content=none><a href=/of-theirs>x</a>")
                .with("X-Robots-Tag", "otherbot: none"),
        ),
        ("/by-rel", Answer::html("r")),
        ("/by-both", Answer::html("b")),
        ("/of-meta", Answer::html("1")),
        ("/of-header", Answer::html("2")),
        ("/of-ours", Answer::html("3")),
        ("/of-theirs", Answer::html("4")),
        ("/i.png", Answer::new(200, "image/png", "png")),
        ("/s.css", Answer::new(200, "text/css", "p{}")),
        (
            "/moved",
            Answer::redirect(302, "/target").with("X-Robots-Tag", "nofollow"),
        ),
        ("/target", Answer::html("t")),
    ])
}

fn job(site: &Site) -> Job {
    Job::new(&[site.url(0, "/")]).flag("--user-agent", "testbot/1.0")
}

#[test]
fn by_default_what_a_page_says_is_recorded_and_not_obeyed() {
    let site = site();
    let job = job(&site);
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), urls(&site, ALL));
    assert_holds_exactly(&job.records(), &urls(&site, ALL));
    let both = ["robots:noindex", "robots:nofollow"];
    for path in ["/meta", "/header", "/ours"] {
        assert_eq!(notes(&job, &site.url(0, path)), both, "{path}");
    }
    for path in ["/", "/theirs", "/by-rel"] {
        assert_eq!(notes(&job, &site.url(0, path)), ["-"], "{path}");
    }
    // the archive has it with the page
    let records = job.records();
    let metadata = records
        .iter()
        .find(|r| r.kind() == "metadata" && r.uri().ends_with("/meta"));
    let said = String::from_utf8_lossy(&metadata.unwrap().block).into_owned();
    assert!(said.contains("robots:noindex"), "{said}");
    job.assert_balanced();
}

#[test]
fn nofollow_is_obeyed_if_asked_but_for_what_a_page_is_made_of() {
    let site = site();
    let job = job(&site).switch("--obey-nofollow");
    job.run().assert_code(0);
    let left = ["/by-rel", "/of-meta", "/of-header", "/of-ours"];
    let expected: Vec<&str> = ALL.iter().copied().filter(|path| !left.contains(path)).collect();
    assert_eq!(site.log().fetched(), urls(&site, &expected));
    assert_holds_exactly(&job.records(), &urls(&site, &expected));
    assert_eq!(notes(&job, &site.url(0, "/")), ["nofollow:3"]);
    assert_eq!(
        notes(&job, &site.url(0, "/meta")),
        ["robots:noindex", "robots:nofollow", "nofollow:1"]
    );
    assert_eq!(job.count("/links/out_of_scope"), 6);
    job.assert_balanced();
}

#[test]
fn noindex_is_obeyed_if_asked_and_its_links_are_followed() {
    let site = site();
    let job = job(&site).switch("--obey-noindex");
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), urls(&site, ALL));
    let left = ["/meta", "/header", "/ours"];
    let expected: Vec<&str> = ALL.iter().copied().filter(|path| !left.contains(path)).collect();
    assert_holds_exactly(&job.records(), &urls(&site, &expected));
    assert!(
        job.index()
            .iter()
            .all(|line| !format!("{:?}", line.fields).contains("/meta\"")),
        "{:?}",
        job.index()
    );
    let log = std::fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
    for path in left {
        let url = format!(" {} ", site.url(0, path));
        let line = log.lines().find(|line| line.contains(&url)).unwrap();
        assert!(line.contains("robots:noindex"), "{line}");
        assert!(
            line.contains("\"notArchived\":\"noindex\"") && !line.contains("warcFilename"),
            "{line}"
        );
    }
    assert_eq!(job.count("/urls/fetched"), ALL.len() as u64);
    job.assert_balanced();
}

#[test]
fn fields_of_a_page_that_is_not_to_be_kept_are_not_kept() {
    let site = Site::table(vec![
        ("/", Answer::html("<title>one</title><a href=/no>x</a>")),
        (
            "/no",
            Answer::html("<meta name=robots content=noindex><title>two</title>"),
        ),
    ]);
    let job = Job::new(&[site.url(0, "/")]).switch("--obey-noindex");
    let settings = job.dir().with_file_name("crawler.toml");
    std::fs::write(
        settings,
        "[[extract.field]]\nname = \"heading\"\nselector = \"title\"\n",
    )
    .unwrap();
    job.run().assert_code(0);
    let pages = job.rows("pages.jsonl.zst");
    let headings: Vec<_> = pages.iter().map(|row| row["heading"].as_str()).collect();
    assert_eq!(headings, [Some("one")]);
}
