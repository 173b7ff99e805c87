//! What counts as one page, with the real binary: the optional rules, one by one, and what a resume makes of them.

use std::collections::BTreeSet;

use crate::harness::Job;
use crate::reader::assert_sound;
use crate::site::{Answer, Asked, Site};

fn links(paths: &[&str]) -> Answer {
    let links = paths.iter().map(|path| format!("<a href='{path}'>x</a>\n"));
    Answer::html(links.collect::<String>())
}

/// A site that answers every page.
fn site(front: &[&str]) -> Site {
    let front = links(front);
    Site::start(1, |_| {
        move |asked: &Asked| {
            if asked.path == "/" {
                front.clone()
            } else {
                Answer::html("a page")
            }
        }
    })
}

fn fetched(site: &Site) -> Vec<String> {
    let log = site.log();
    let paths = log.of(0).into_iter().map(|exchange| exchange.path.clone());
    paths.filter(|path| path != "/robots.txt" && path != "/").collect()
}

/// Each rule alone: of the spellings that it merges the first one met is fetched, as it was spelled.
#[test]
fn each_rule_has_its_flag() {
    let id = "0123456789abcdef0123456789abcdef";
    let (with_id, other_id) = (
        format!("/p?sid={id}&a"),
        format!("/p?a&PHPSESSID={}", id.replace('0', "f")),
    );
    for (flag, value, same, apart) in [
        (
            "--strip-session-ids",
            "yes",
            [with_id.as_str(), &other_id],
            "/p?sid=7&a",
        ),
        (
            "--strip-tracking",
            "yes",
            ["/p?utm_source=a", "/p?gclid=b"],
            "/p?utmsource=c",
        ),
        ("--drop-params", "ref", ["/p?ref=1&a", "/p?a&ref"], "/p?Ref=1&a"),
        ("--sort-query", "yes", ["/p?b=1&a=2", "/p?a=2&b=1"], "/p?a=1&b=2"),
        ("--drop-empty-query", "yes", ["/p?", "/p"], "/p??"),
        ("--fold-path-case", "yes", ["/P/a", "/p/A"], "/q/a"),
        ("--fold-trailing-slash", "yes", ["/p/", "/p"], "/p/q"),
        ("--fold-index", "yes", ["/p/index.html", "/p/"], "/p/index.txt"),
    ] {
        let all = [same[0], same[1], apart];
        let plain = site(&all);
        Job::new(&[plain.url(0, "/")]).run().assert_code(0);
        assert_eq!(fetched(&plain), all, "without {flag}");

        let folded = site(&all);
        let job = Job::new(&[folded.url(0, "/")]);
        job.start_with(&[&format!("{flag}={value}")]).wait().assert_code(0);
        assert_eq!(fetched(&folded), [same[0], apart], "{flag}");
        job.assert_balanced();
        assert_sound(&job.records());
    }
}

#[test]
fn a_hashbang_is_a_page_of_its_own_if_asked_for() {
    let front = ["/app#!one", "/app#!two", "/app#three"];
    let plain = site(&front);
    Job::new(&[plain.url(0, "/")]).run().assert_code(0);
    assert_eq!(fetched(&plain), ["/app"]);
    let kept = site(&front);
    let job = Job::new(&[kept.url(0, "/")]).switch("--keep-hashbang");
    job.run().assert_code(0);
    assert_eq!(fetched(&kept), ["/app"; 3], "no fragment is ever sent");
    job.assert_balanced();
}

/// The site itself says that the two are not one: by a redirect from the one to the other.
#[test]
fn a_redirect_to_the_other_spelling_of_a_page_is_followed() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/" => links(&["/docs", "/docs/", "/%7Eme", "/~me", "/round"]),
            "/docs" => Answer::redirect(301, "/docs/"),
            "/docs/" => Answer::html("the documents"),
            "/%7Eme" => Answer::redirect(301, "/~me"),
            "/~me" => Answer::html("me"),
            "/round" => Answer::redirect(302, "/round/"),
            "/round/" => Answer::redirect(302, "/round"),
            _ => Answer::not_found(),
        }
    });
    let job = Job::new(&[site.url(0, "/")]).switch("--fold-trailing-slash");
    job.run().assert_code(0);
    let paths: BTreeSet<String> = fetched(&site).into_iter().collect();
    let all = ["/docs", "/docs/", "/%7Eme", "/~me", "/round", "/round/"];
    assert_eq!(paths, all.map(str::to_owned).into());
    assert_eq!(site.log().duplicates(), Vec::<String>::new());
    job.assert_balanced();
    assert_eq!(job.count("/urls/fetched"), 7);
    assert_sound(&job.records());
}

#[test]
fn a_resume_with_other_rules_is_refused_and_changes_nothing() {
    let front: Vec<String> = (0..6).map(|n| format!("/p{n}?b&a")).collect();
    let site = site(&front.iter().map(String::as_str).collect::<Vec<_>>());
    let job = Job::new(&[site.url(0, "/")]);
    let rules = ["--sort-query", "--drop-params=x", "--drop-params=a"];
    job.start_with(&[&rules[..], &["--max-pages", "2"]].concat())
        .wait()
        .assert_code(0);
    let asked = site.log().of(0).len();
    let settings = || std::fs::read_to_string(job.dir().join("config.toml")).unwrap();
    let before = settings();
    for other in [
        &[][..],
        &["--sort-query"],
        &["--sort-query", "--drop-params=a", "--drop-params=x", "--fold-www"],
    ] {
        let refused = job.start_with(other).wait();
        refused.assert_code(2);
        refused.assert_says("sort_query, drop_params = [a, x]");
        refused.assert_says("--fresh");
    }
    assert_eq!((site.log().of(0).len(), settings()), (asked, before));
    // the order of the names says nothing
    job.start_with(&["--drop-params=a", "--drop-params=x", "--sort-query"])
        .wait()
        .assert_code(0);
    job.assert_balanced();
    assert_eq!(job.count("/urls/fetched"), 7);
    assert_eq!(site.log().duplicates(), Vec::<String>::new());
}

#[test]
fn a_name_that_no_parameter_has_is_a_mistake() {
    let job = Job::new(&["http://127.0.0.1/"]);
    let refused = job.start_with(&["--drop-params=a=1"]).wait();
    refused.assert_code(2);
    refused.assert_says("--drop-params: expected a parameter's name");
}
