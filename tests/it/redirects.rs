//! Redirects of every kind, as the server sees them followed and crawl.log tells why they were not.

use std::collections::BTreeSet;
use std::time::Duration;

use crawler::visit::judge::MAX_REDIRECTS;

use crate::harness::Job;
use crate::reader::assert_holds_exactly;
use crate::site::{Answer, Asked, Site, Step};

fn links(paths: &[&str]) -> Answer {
    let links: Vec<String> = paths
        .iter()
        .map(|path| format!("<a href='{path}'>{path}</a>"))
        .collect();
    Answer::html(links.join("\n"))
}

fn urls(site: &Site, host: usize, paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| site.url(host, path)).collect()
}

/// Annotations of an address's last line in crawl.log.
fn notes(job: &Job, url: &str) -> String {
    let lines = job.log();
    let line = lines.iter().rev().find(|line| line.uri == url);
    line.unwrap_or_else(|| panic!("no line of {url}: {lines:?}"))
        .annotations
        .clone()
}

#[test]
fn every_status_that_redirects_is_followed_once() {
    let statuses = [300, 301, 302, 303, 305, 307, 308];
    let site = Site::start(1, move |_| {
        move |asked: &Asked| {
            let status = asked.path[1..].parse().ok().filter(|status| statuses.contains(status));
            match (asked.path.as_str(), status) {
                ("/", _) => links(&["/300", "/301", "/302", "/303", "/305", "/307", "/308", "/200", "/404"]),
                ("/200", _) => Answer::html("fine").with("Location", "/a-link-of-200"),
                ("/404", _) => Answer::not_found(),
                (_, Some(status)) => Answer::redirect(status, &format!("/to-{status}")),
                _ => Answer::html(asked.path.clone()),
            }
        }
    });
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    for status in statuses {
        let target = site.url(0, &format!("/to-{status}"));
        let line = job.log().into_iter().find(|line| line.uri == target).unwrap();
        assert_eq!(
            (line.hops.as_str(), line.via),
            ("LR", site.url(0, &format!("/{status}")))
        );
    }
    assert_eq!(site.log().duplicates(), Vec::<String>::new());
    job.assert_balanced();
}

#[test]
fn a_refresh_by_header_or_meta_is_followed_whatever_its_delay() {
    let site = Site::table(vec![
        ("/", links(&["/header", "/meta", "/later", "/self"])),
        ("/header", Answer::html("x").with("Refresh", "0; url=/by-header")),
        (
            "/meta",
            Answer::html("<meta http-equiv=refresh content='0;URL=by-meta'>"),
        ),
        (
            "/later",
            Answer::html("<meta http-equiv=refresh content='86400; url=\"/by-patience\"'>"),
        ),
        ("/self", Answer::html("<meta http-equiv=refresh content=5>")),
        ("/by-header", Answer::html("h")),
        ("/by-meta", Answer::html("m")),
        ("/by-patience", Answer::html("p")),
    ]);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let all = [
        "/",
        "/header",
        "/meta",
        "/later",
        "/self",
        "/by-header",
        "/by-meta",
        "/by-patience",
    ];
    assert_eq!(site.log().fetched(), urls(&site, 0, &all));
    assert_eq!(site.log().duplicates(), Vec::<String>::new());
    let line = job
        .log()
        .into_iter()
        .find(|line| line.uri.ends_with("/by-meta"))
        .unwrap();
    assert_eq!(line.hops, "LR");
    job.assert_balanced();
}

#[test]
fn loops_end_by_themselves() {
    let site = Site::table(vec![
        ("/", links(&["/self", "/a", "/fragment", "/meta"])),
        ("/self", Answer::redirect(302, "/self")),
        ("/a", Answer::redirect(302, "/b")),
        ("/b", Answer::redirect(302, "/c")),
        ("/c", Answer::redirect(302, "/a")),
        ("/fragment", Answer::redirect(302, "#there")),
        ("/meta", Answer::html("<meta http-equiv=refresh content='0;url=/meta'>")),
    ]);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let all = ["/", "/self", "/a", "/b", "/c", "/fragment", "/meta"];
    assert_eq!(site.log().fetched(), urls(&site, 0, &all));
    assert_eq!(site.log().duplicates(), Vec::<String>::new());
    assert_holds_exactly(&job.records(), &urls(&site, 0, &all));
    job.assert_balanced();
}

#[test]
fn a_chain_over_the_cap_is_cut_recorded_and_named() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path[1..].parse::<u64>() {
            Ok(number) => Answer::redirect(302, &format!("/{}", number + 1)),
            Err(_) => Answer::not_found(),
        }
    });
    let job = Job::new(&[site.url(0, "/0")]).switch("-v");
    job.run().assert_code(0);
    let most = usize::from(MAX_REDIRECTS);
    let expected: BTreeSet<String> = (0..=most).map(|number| site.url(0, &format!("/{number}"))).collect();
    assert_eq!(site.log().fetched(), expected);
    assert_holds_exactly(&job.records(), &expected);
    assert_eq!(job.count("/links/trap"), 1);
    assert_eq!(notes(&job, &site.url(0, &format!("/{most}"))), "redirect:too-many");
    assert_eq!(notes(&job, &site.url(0, "/0")), "-");
    let said = std::fs::read_to_string(job.dir().join("logs/crawler.log")).unwrap();
    assert!(said.contains("more than 10 redirects in a row"), "{said}");
    job.assert_balanced();
}

#[test]
fn any_spelling_of_a_target_is_resolved_as_a_browser_does() {
    let raw = |location: &[u8]| {
        let head = [
            b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ".as_slice(),
            location,
            b"\r\n\r\n",
        ];
        Answer::script(vec![Step::Send(head.concat())])
    };
    let site = Site::table(vec![
        (
            "/",
            links(&["/d/1", "/d/2", "/d/3", "/d/4", "/d/5", "/d/6", "/d/7", "/d/8"]),
        ),
        ("/d/1", raw(b"relative")),
        ("/d/2", raw(b"../up?q=1#part")),
        ("/d/3", raw(b"/with space")),
        ("/d/4", raw(b"  /around \t ")),
        ("/d/5", raw("/caf\u{e9}".as_bytes())),
        ("/d/6", raw(b"/latin\xe9")),
        ("/d/7", raw(b"\\back\\slash")),
        ("/d/8", raw(b"?query")),
    ]);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let fetched = site.log().fetched();
    for target in [
        "/d/relative",
        "/up?q=1",
        "/with%20space",
        "/around",
        "/caf%C3%A9",
        "/latin%C3%A9",
        "/back/slash",
        "/d/8?query",
    ] {
        assert!(fetched.contains(&site.url(0, target)), "{target} not in {fetched:?}");
    }
    assert_eq!(fetched.len(), 1 + 8 + 8);
    job.assert_balanced();
}

#[test]
fn what_cannot_be_followed_is_recorded_and_says_why() {
    let paths = [
        ("/mail", "mailto:a@example.com", "redirect:scheme"),
        ("/ftp", "ftp://example.com/", "redirect:scheme"),
        ("/file", "file:///etc/passwd", "redirect:scheme"),
        ("/script", "javascript:alert(1)", "redirect:scheme"),
        ("/data", "data:text/html,x", "redirect:scheme"),
        ("/broken", "http://[", "redirect:malformed"),
        ("/away", "http://elsewhere.invalid/", "redirect:out-of-scope"),
        ("/grows", "/x/x/x/x/x/x/", "redirect:trap"),
        ("/fine", "/", "-"),
    ];
    let site = Site::start(1, move |_| {
        move |asked: &Asked| {
            if asked.path == "/" {
                return links(&paths.map(|(path, _, _)| path));
            }
            let found = paths.iter().find(|(path, _, _)| *path == asked.path);
            found.map_or_else(Answer::not_found, |(_, target, _)| Answer::redirect(302, target))
        }
    });
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    for (path, _, why) in paths {
        assert_eq!(notes(&job, &site.url(0, path)), why, "{path}");
    }
    let all: Vec<&str> = paths.iter().map(|(path, _, _)| *path).chain(["/"]).collect();
    assert_holds_exactly(&job.records(), &urls(&site, 0, &all));
    job.assert_balanced();
}

#[test]
fn a_redirect_to_what_robots_txt_forbids_or_to_a_private_address_stops_there() {
    let site = Site::table(vec![
        ("/robots.txt", Answer::text("User-agent: *\nDisallow: /private/")),
        ("/", links(&["/to-forbidden", "/to-private"])),
        ("/to-forbidden", Answer::redirect(301, "/private/x")),
        ("/to-private", Answer::redirect(301, "http://10.255.255.1/")),
    ]);
    let job = Job::new(&[site.url(0, "/")]).flag("--scope", "any");
    job.run().assert_code(0);
    assert_eq!(
        site.log().fetched(),
        urls(&site, 0, &["/", "/to-forbidden", "/to-private"])
    );
    let log = job.log();
    let status = |url: &str| log.iter().find(|line| line.uri == url).unwrap().status;
    assert_eq!(status(&site.url(0, "/private/x")), -9998);
    assert_eq!(status("http://10.255.255.1/"), -5001);
    job.assert_balanced();
}

/// Host 0 sends its visitors to host 1; host 1 has pages of its own, and host 2 is linked from there.
fn moved_site(leaf: Duration) -> Site {
    Site::start(3, move |origins| {
        let (new, third) = (origins[1].clone(), origins[2].clone());
        move |asked: &Asked| match (asked.host, asked.path.as_str()) {
            (0, "/") => Answer::redirect(301, &format!("{new}/home")),
            (0, "/page") => links(&["/leads-away"]),
            (0, "/leads-away") => Answer::redirect(302, &format!("{third}/")),
            (1, "/home") => links(&["/1", "/2", "/3", "/4", &format!("{third}/")]),
            (1, "/1" | "/2" | "/3" | "/4") => Answer::html(asked.path.clone()).after(leaf),
            (2, "/") => links(&["/more"]),
            _ => Answer::not_found(),
        }
    })
}

#[test]
fn where_a_seed_redirects_to_is_crawled_like_the_seed() {
    let site = moved_site(Duration::ZERO);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let mut expected = urls(&site, 1, &["/home", "/1", "/2", "/3", "/4"]);
    expected.insert(site.url(0, "/"));
    assert_eq!(site.log().fetched(), expected);
    let said = std::fs::read_to_string(job.dir().join("logs/crawler.log")).unwrap();
    let line = said.lines().find(|line| line.contains("the scope now covers it"));
    assert!(line.is_some_and(|line| line.contains(&site.url(1, "/home"))), "{said}");
    job.assert_balanced();
}

#[test]
fn a_redirect_of_a_page_does_not_widen_the_scope() {
    let site = moved_site(Duration::ZERO);
    let job = Job::new(&[site.url(0, "/page")]);
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), urls(&site, 0, &["/page", "/leads-away"]));
    assert_eq!(notes(&job, &site.url(0, "/leads-away")), "redirect:out-of-scope");
    job.assert_balanced();
}

#[test]
fn a_seed_that_redirects_within_its_host_does_not_widen_a_prefix() {
    let site = Site::table(vec![
        ("/docs/", Answer::redirect(302, "/login")),
        ("/login", links(&["/shop", "/docs/in"])),
        ("/docs/in", links(&["/shop"])),
        ("/shop", Answer::html("not asked for")),
    ]);
    let job = Job::new(&[site.url(0, "/docs/")]).flag("--scope", "prefix");
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), urls(&site, 0, &["/docs/", "/login", "/docs/in"]));
    job.assert_balanced();
}

#[test]
fn a_widened_scope_survives_kill_9() {
    let site = moved_site(Duration::from_millis(200));
    let job = Job::new(&[site.url(0, "/")]);
    let mut kills = 0;
    for life in [500, 500, 500] {
        // the first life ends when the new home is known and its pages are not
        let running = job.start();
        while kills == 0 && site.log().of(1).len() < 3 {
            std::thread::sleep(Duration::from_millis(5));
        }
        kills += u32::from(running.kill_after(Duration::from_millis(life)).is_none());
    }
    let done = job.run();
    assert!(matches!(done.status.code(), Some(0 | 2)), "{}", done.text());
    assert!(kills > 0);
    let mut expected = urls(&site, 1, &["/home", "/1", "/2", "/3", "/4"]);
    expected.insert(site.url(0, "/"));
    assert_eq!(site.log().fetched(), expected);
    assert_holds_exactly(&job.records(), &expected);
    job.assert_balanced();
}

#[test]
fn a_seed_that_redirects_to_what_the_settings_forbid_stays_there() {
    for (flag, host) in [("--exclude", 1), ("--include", 0)] {
        let site = moved_site(Duration::ZERO);
        let pattern = site.origin(host).replace('.', "\\.");
        let job = Job::new(&[site.url(0, "/")]).flag(flag, &pattern);
        job.run().assert_code(0);
        assert_eq!(site.log().fetched(), urls(&site, 0, &["/"]), "{flag}");
        assert_eq!(notes(&job, &site.url(0, "/")), "redirect:out-of-scope", "{flag}");
        job.assert_balanced();
    }
}

#[test]
fn http_and_https_of_a_host_are_one_host_with_two_doors() {
    // nothing speaks TLS here: the redirect is followed to where it leads, and what comes of it is said
    let site = Site::start(1, |origins| {
        let secure = origins[0].replace("http://", "https://");
        move |asked: &Asked| match asked.path.as_str() {
            "/" => Answer::redirect(301, &format!("{secure}/")),
            _ => Answer::not_found(),
        }
    });
    let job = Job::new(&[site.url(0, "/")])
        .flag("--retries", "0")
        .flag("--header-timeout", "1s");
    job.run().assert_code(0);
    let secure = site.url(0, "/").replace("http://", "https://");
    let log = job.log();
    let line = log.iter().find(|line| line.uri == secure).unwrap();
    assert_eq!(
        (line.status, line.hops.as_str()),
        (-61, "R"),
        "its robots.txt cannot be had"
    );
    assert_eq!(job.count("/urls/admitted"), 2, "the two schemes are two addresses");
    job.assert_balanced();
}

#[test]
fn a_robots_txt_is_followed_five_redirects_far() {
    for (moves, forbidden) in [(5, true), (6, false)] {
        let site = Site::start(1, move |_| {
            move |asked: &Asked| {
                let number = match asked.path.as_str() {
                    "/robots.txt" => Some(0),
                    path => path.strip_prefix("/r").and_then(|number| number.parse::<u32>().ok()),
                };
                match number {
                    Some(number) if number < moves => Answer::redirect(301, &format!("/r{}", number + 1)),
                    Some(_) => Answer::text("User-agent: *\nDisallow: /no"),
                    None if asked.path == "/" => links(&["/no"]),
                    None => Answer::html("not for crawlers"),
                }
            }
        });
        let job = Job::new(&[site.url(0, "/")]);
        job.run().assert_code(0);
        let asked = site.log().fetched().contains(&site.url(0, "/no"));
        assert_eq!(asked, !forbidden, "{moves} moves");
        assert!(!site.log().fetched().contains(&site.url(0, "/r7")));
    }
}

#[test]
fn a_robots_txt_is_read_to_its_bound_and_no_further() {
    let filler = format!("# {}\n", "x".repeat(97));
    let lines = crawler::robots::MAX_ROBOTS_BYTES / filler.len();
    let text = move |more: usize| {
        let early = "User-agent: *\nDisallow: /early\n";
        format!("{early}{}Disallow: /late\n", filler.repeat(lines + more))
    };
    let site = Site::start(1, move |_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/robots.txt" => Answer::text(text(10)),
            "/" => links(&["/early", "/late"]),
            _ => Answer::html("x"),
        }
    });
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), urls(&site, 0, &["/", "/late"]));
}

#[test]
fn a_line_of_robots_txt_that_lies_across_the_bound_is_no_rule() {
    // the bound falls behind `Disallow: /`, which would forbid everything, or behind `Allow: /`
    for (line, start) in [("Disallow: /late", "Disallow: /"), ("Allow: /early/public", "Allow: /")] {
        let rules = "User-agent: *\nDisallow: /early\n";
        let room = crawler::robots::MAX_ROBOTS_BYTES - rules.len() - start.len();
        let text = format!("{rules}{}\n{line}\n", "#".repeat(room - 1));
        assert!(text[..crawler::robots::MAX_ROBOTS_BYTES].ends_with(start));
        let site = Site::start(1, move |_| {
            let text = text.clone();
            move |asked: &Asked| match asked.path.as_str() {
                "/robots.txt" => Answer::text(text.clone()),
                "/" => links(&["/early", "/late"]),
                _ => Answer::html("x"),
            }
        });
        let job = Job::new(&[site.url(0, "/")]);
        job.run().assert_code(0);
        assert_eq!(site.log().fetched(), urls(&site, 0, &["/", "/late"]), "{line}");
    }
}
