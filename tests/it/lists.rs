//! `--seeds https://...`: a list from the Web is fetched once, kept with the job, and guarded like any page.

use crawler::fetch::http::list::{MAX_LIST_BYTES, MAX_LIST_REDIRECTS};

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

/// Lists and pages: `/list.txt` names `/1` and `/2`, each page leads to two more.
fn site() -> Site {
    Site::start(1, |addresses| {
        let home = addresses[0].clone();
        move |asked: &Asked| match asked.path.as_str() {
            "/list.txt" => Answer::text(format!("# ours\n{home}/1 depth=1\nnot an address\n{home}/2  # two\n")),
            "/moved" => Answer::redirect(302, "/list.txt"),
            "/round" => Answer::redirect(301, "/round"),
            "/inside" => Answer::redirect(302, "http://127.0.0.9:1/list.txt"),
            "/page" => Answer::html("<a href=/1>one</a>"),
            "/long" => Answer::text(vec![b'#'; MAX_LIST_BYTES + 1]),
            "/packed" => Answer::text("x").with("Content-Encoding", "gzip"),
            "/robots.txt" | "/gone" => Answer::not_found(),
            path => Answer::html(format!("<a href={path}/a>a</a><a href={path}/b>b</a>")),
        }
    })
}

fn asked(site: &Site, path: &str) -> usize {
    site.log().of(0).iter().filter(|exchange| exchange.path == path).count()
}

#[test]
fn a_list_from_the_web_is_fetched_once_and_kept_with_the_job() {
    for list in ["/list.txt", "/moved"] {
        let site = site();
        let job = Job::new::<&str>(&[])
            .flag("--seeds", &site.url(0, list))
            .flag("--delay", "50ms");
        let job = job.flag("--max-depth", "0");
        let first = job.start_with(&["--max-pages", "1"]).wait();
        first.assert_code(0);
        first.assert_says(":3: \"not an address\"");
        let (url, list) = (site.url(0, "/1/a"), site.url(0, list));
        let args = ["explain", &url, "--seeds", &list];
        let known = job.command(&[&args[..], &["--job", "job"]].concat()).stdout;
        assert!(known.contains("in: --scope host"), "{known}");
        let unknown = job.command(&args).stdout;
        assert!(unknown.contains("was not fetched yet"), "{unknown}");
        job.run().assert_code(0);
        assert_eq!(asked(&site, "/list.txt"), 1, "a resumed job asks nobody for its seeds");
        assert_eq!(
            job.report()["urls"]["fetched"],
            6,
            "two seeds and their links: the rule of one lets its host in"
        );
        job.assert_balanced();
        let gap = site.log().min_gap(0).unwrap();
        assert!(gap >= 50_000, "{gap} µs: the list is a request like any other");
    }
}

#[test]
fn what_is_no_list_ends_before_there_is_a_job() {
    let site = site();
    let cases = [
        ("/gone", 4, "the server says 404"),
        ("/round", 2, &*format!("more than {MAX_LIST_REDIRECTS} redirects")),
        ("/page", 2, "a page, not a list"),
        ("/long", 2, &*format!("longer than {MAX_LIST_BYTES} bytes")),
        ("/packed", 2, "coded as gzip"),
    ];
    for (path, code, words) in cases {
        let job = Job::new::<&str>(&[]).flag("--seeds", &site.url(0, path));
        let done = job.run();
        done.assert_code(code);
        done.assert_says(words);
        assert!(!job.dir().exists(), "{path}");
    }
    let job = Job::new::<&str>(&[]).flag("--seeds", "http://me:secret@127.0.0.1:1/list.txt");
    let done = job.run();
    done.assert_code(2);
    done.assert_says("[[auth]]");
}

#[test]
fn a_list_is_guarded_like_a_page() {
    let site = site();
    let stranger = Job::without_permission::<&str>(&[]).flag("--seeds", &site.url(0, "/list.txt"));
    let done = stranger.run();
    done.assert_code(2);
    done.assert_says("127.0.0.2 is not a public address (to crawl it: --allow-address");
    let name = Job::without_permission::<&str>(&[]).flag("--seeds", "http://localhost:1/list.txt");
    let done = name.run();
    done.assert_code(4);
    done.assert_says("is not a public address");
    assert!(site.log().of(0).is_empty());
    let led = Job::without_permission::<&str>(&[])
        .flag("--allow-address", "127.0.0.2/32")
        .flag("--seeds", &site.url(0, "/inside"));
    let done = led.run();
    done.assert_code(2);
    done.assert_says("127.0.0.9 is not a public address");
}
