//! Cookies with the real binary: kept with the job, sent to their own site alone, bounded.

use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::Job;
use crate::reader::assert_sound;
use crate::site::{Answer, Asked, Exchange, Site};

fn cookie(exchange: &Exchange) -> &str {
    exchange.headers.get("cookie").map_or("", String::as_str)
}

/// The cookies that came with the requests of a path, in order.
fn sent(site: &Site, host: usize, path: &str) -> Vec<String> {
    let log = site.log();
    let of_path = log.of(host).into_iter().filter(|exchange| exchange.path == path);
    of_path.map(|exchange| cookie(exchange).to_owned()).collect()
}

fn links(paths: &[String]) -> Answer {
    let links: Vec<String> = paths.iter().map(|path| format!("<a href='{path}'>x</a>")).collect();
    Answer::html(links.concat())
}

/// Who comes without the cookie gets it from the front page, which redirects to itself, and nothing from the others.
fn members(pages: usize) -> Site {
    let inside: Vec<String> = (0..pages).map(|n| format!("/p{n}")).collect();
    Site::start(1, move |_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/" if asked.cookie.is_empty() => {
                Answer::redirect(302, "/").with("Set-Cookie", "login=s3cret; Path=/; Max-Age=3600; HttpOnly")
            }
            "/" => links(&inside),
            path if path.starts_with("/p") && !asked.cookie.is_empty() => {
                Answer::html("inside").after(Duration::from_millis(15))
            }
            _ => Answer::not_found(),
        }
    })
}

#[test]
fn a_page_behind_a_cookie_is_reached_through_a_redirect_to_itself() {
    let site = members(3);
    let job = Job::new(&[site.url(0, "/")]).switch("--keep-cookies").switch("-vv");
    job.run().assert_code(0);
    assert_eq!(sent(&site, 0, "/robots.txt"), [""]);
    assert_eq!(sent(&site, 0, "/"), ["", "login=s3cret"]);
    assert_eq!(sent(&site, 0, "/p2"), ["login=s3cret"]);
    job.assert_balanced();
    assert_eq!(job.count("/urls/fetched"), 5);
    let records = job.records();
    assert_sound(&records);
    // the archive holds what was sent; the log is for people
    let log = fs::read_to_string(job.dir().join("logs/crawler.log")).unwrap();
    assert!(!log.contains("s3cret"), "{log}");
}

#[test]
fn without_the_switch_no_cookie_is_kept() {
    let site = members(3);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    assert_eq!(
        sent(&site, 0, "/"),
        [""],
        "the same request again would bring the same answer"
    );
    job.assert_balanced();
}

#[test]
fn a_killed_crawl_is_still_logged_in() {
    let site = members(60);
    let job = Job::new(&[site.url(0, "/")]).switch("--keep-cookies");
    for requests in [5, 20, 40] {
        let running = job.start();
        let began = Instant::now();
        while site.log().of(0).len() < requests {
            assert!(began.elapsed() < Duration::from_secs(60), "the crawl does not get on");
            thread::sleep(Duration::from_millis(2));
        }
        assert!(
            running.kill_after(Duration::ZERO).is_none(),
            "it ended before it was killed"
        );
    }
    job.run().assert_code(0);
    assert_eq!(job.count("/urls/fetched"), 62);
    job.assert_balanced();
    assert_eq!(job.report()["status"], serde_json::json!({"200": 61, "302": 1}));
}

#[test]
fn another_host_gets_none() {
    let site = Site::start(2, |origins| {
        let away = format!("{}/landing", origins[1]);
        move |asked: &Asked| match (asked.host, asked.path.as_str()) {
            (0, "/") => links(&["/away".to_owned(), "/home".to_owned()])
                .with("Set-Cookie", "a=1")
                .with("Set-Cookie", "suffix=1; Domain=0.0.2"),
            (0, "/away") => Answer::redirect(302, &away),
            (0, "/home") | (1, "/landing") => Answer::html("there"),
            _ => Answer::not_found(),
        }
    });
    let job = Job::new(&[site.url(0, "/")])
        .flag("--scope", "any")
        .switch("--keep-cookies");
    job.run().assert_code(0);
    assert_eq!(sent(&site, 0, "/home"), ["a=1"]);
    assert_eq!(sent(&site, 1, "/landing"), [""]);
    let log = site.log();
    assert!(
        log.of(1)
            .iter()
            .all(|exchange| !exchange.headers.contains_key("cookie"))
    );
}

#[test]
fn names_share_what_their_domain_may_share() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/" => Answer::html("front")
                .with("Set-Cookie", "own=1; Domain=shop.co.uk")
                .with("Set-Cookie", "all=1; Domain=co.uk")
                .with("Set-Cookie", "other=1; Domain=b.shop.co.uk")
                .with("Set-Cookie", "safe=1; Secure"),
            "/next" => Answer::html("next"),
            _ => Answer::not_found(),
        }
    });
    let origin = site.origin(0).trim_start_matches("http://").to_owned();
    let (address, port) = origin.split_once(':').unwrap();
    let names = ["a.shop.co.uk", "b.shop.co.uk", "bank.co.uk"];
    let seeds: Vec<String> = std::iter::once(format!("http://{}:{port}/", names[0]))
        .chain(names.iter().map(|name| format!("http://{name}:{port}/next?{name}")))
        .collect();
    let mut job = Job::new(&seeds).switch("--keep-cookies").flag("--concurrency", "1");
    for name in names {
        job = job.switch(&format!("--resolve={name}:{port}:{address}"));
    }
    // the front page first: a host that takes its time over robots.txt rests longer, so order alone decides nothing
    let list = job.dir().parent().unwrap().join("seeds.txt");
    fs::write(&list, &seeds[0]).unwrap();
    job.start_with(&["--max-pages", "1"]).wait().assert_code(0);
    fs::write(&list, seeds.join("\n")).unwrap();
    job.run().assert_code(0);
    assert_eq!(sent(&site, 0, "/next?a.shop.co.uk"), ["own=1"]);
    assert_eq!(sent(&site, 0, "/next?b.shop.co.uk"), ["own=1"]);
    assert_eq!(sent(&site, 0, "/next?bank.co.uk"), [""]);
}

#[test]
fn cookies_txt_is_sent_and_what_sites_change_stays_changed() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/" => links(&["/a".to_owned(), "/b/c".to_owned(), "/d".to_owned()]),
            "/a" => Answer::html("a").with("Set-Cookie", "id=new; Path=/"),
            "/b/c" | "/d" => Answer::html("b"),
            _ => Answer::not_found(),
        }
    });
    let origin = site.origin(0).trim_start_matches("http://").to_owned();
    let host = origin.split(':').next().unwrap();
    let job = Job::new(&[site.url(0, "/")]).flag("--cookies", "cookies.txt");
    let file = job.dir().parent().unwrap().join("cookies.txt");
    let text = |id: &str| {
        format!(
            "# Netscape HTTP Cookie File\n#HttpOnly_{host}\tFALSE\t/\tFALSE\t0\tid\t{id}\n\
             {host}\tFALSE\t/b\tFALSE\t4000000000\tb\t2\n{host}\tFALSE\t/\tFALSE\t1\told\t3\n\
             {host}\tFALSE\t/\tTRUE\t0\tsafe\t4\nother.test\tTRUE\t/\tFALSE\t0\tother\t5\n"
        )
    };
    fs::write(&file, text("old")).unwrap();
    job.start_with(&["--max-pages", "2"]).wait().assert_code(0);
    assert_eq!(sent(&site, 0, "/robots.txt"), ["id=old"]);
    assert_eq!(sent(&site, 0, "/a"), ["id=old"]);
    // the same file says nothing new
    job.start_with(&["--max-pages", "3"]).wait().assert_code(0);
    assert_eq!(sent(&site, 0, "/b/c"), ["b=2; id=new"]);
    // another one does
    fs::write(&file, text("newest")).unwrap();
    job.run().assert_code(0);
    assert_eq!(sent(&site, 0, "/d"), ["id=newest"]);
    job.assert_balanced();
}

#[test]
fn a_mistake_in_cookies_txt_is_named_with_its_line() {
    let job = Job::new(&["http://127.0.0.1/"]).flag("--cookies", "cookies.txt");
    let refused = job.run();
    refused.assert_code(2);
    refused.assert_says("--cookies: cookies.txt: cannot be read");
    let file = job.dir().parent().unwrap().join("cookies.txt");
    fs::write(&file, "# fine\nh.test\tFALSE\t/\tFALSE\tnever\tk\ts3cret\n").unwrap();
    let refused = job.run();
    refused.assert_code(2);
    refused.assert_says("cookies.txt:2: expected an expiry in seconds since 1970, found \"never\"");
    assert!(!refused.text().contains("s3cret"));
    assert!(!job.dir().exists(), "nothing was begun");
}

#[test]
fn a_flood_of_cookies_is_bounded() {
    let site = Site::start(1, |_| {
        |asked: &Asked| {
            let Some(number) = asked.path.strip_prefix("/p") else {
                return if asked.path == "/" {
                    links(&["/p0".to_owned()])
                } else {
                    Answer::not_found()
                };
            };
            let number: usize = number.parse().unwrap();
            let mut page = String::from("more");
            if number < 20 {
                write!(page, "<a href='/p{}'>x</a>", number + 1).unwrap();
            }
            // 10,000 small ones, then some as long as they may be
            let value = "v".repeat(if number < 10 { 20 } else { 4_000 });
            (0..1_000)
                .filter(|n| number < 10 || *n < 10)
                .fold(Answer::html(page), |answer, n| {
                    answer.with("Set-Cookie", &format!("c{number}-{n}={value}; Path=/; Max-Age=9999"))
                })
        }
    });
    let job = Job::new(&[site.url(0, "/")]).switch("--keep-cookies");
    job.run().assert_code(0);
    job.assert_balanced();
    assert_eq!(job.count("/urls/fetched"), 22);
    let log = site.log();
    let longest = log
        .of(0)
        .into_iter()
        .map(|exchange| cookie(exchange).len())
        .max()
        .unwrap();
    assert!((4_000..=8_000).contains(&longest), "{longest}");
}
