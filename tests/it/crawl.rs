//! Whole crawls with the real binary over local webs. The server's log says what was asked and when; an independent
//! reader says what the archive holds.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::time::Duration;

use crate::harness::Job;
use crate::reader::{assert_holds_exactly, assert_index_matches, assert_sound};
use crate::site::{Answer, Asked, Site, Step};
use crate::web::{Plan, Web};

fn plan(seed: u64) -> Plan {
    Plan {
        seed,
        hosts: 3,
        pages: 90,
        answer_ms: (0, 3),
        crawl_delay: BTreeMap::new(),
    }
}

fn urls(site: &Site, host: usize, paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| site.url(host, path)).collect()
}

fn links(paths: &[&str]) -> Answer {
    let links: Vec<String> = paths
        .iter()
        .map(|path| format!("<a href='{path}'>{path}</a>"))
        .collect();
    Answer::html(links.join("\n"))
}

/// An address of loopback on which nothing listens.
fn dead_origin() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[test]
fn a_whole_web_is_fetched_once() {
    let (site, web) = Web::serve(&plan(1));
    let job = Job::new(&web.seeds);
    job.run().assert_code(0);

    let log = site.log();
    assert_eq!(log.fetched(), web.reachable);
    assert_eq!(log.duplicates(), Vec::<String>::new());
    for host in 0..3 {
        assert_eq!(log.in_flight_max(host), 1);
        let shortest = log.gaps(host).into_iter().min_by_key(|gap| gap.micros).unwrap();
        assert!(shortest.micros >= 9_000, "{shortest:?}");
    }

    let records = job.records();
    assert_holds_exactly(&records, &web.reachable);
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);

    job.assert_balanced();
    assert_eq!(job.count("/urls/fetched"), web.reachable.len() as u64);
    assert_eq!(job.count("/urls/robots"), web.forbidden.len() as u64);
    assert_eq!(job.count("/hosts"), 3);
    assert_eq!(job.report()["state"], "finished");

    let mut lines: BTreeMap<String, i32> = BTreeMap::new();
    for line in job
        .log()
        .into_iter()
        .filter(|line| line.status > 0 && !line.uri.ends_with("/robots.txt"))
    {
        assert!(
            lines.insert(line.uri.clone(), line.status).is_none(),
            "two lines of {}",
            line.uri
        );
    }
    assert_eq!(lines.into_keys().collect::<BTreeSet<_>>(), web.reachable);
}

#[test]
fn every_request_says_who_asks() {
    let site = Site::table(vec![("/", links(&["/a"])), ("/a", Answer::html("a"))]);
    let job = Job::new(&[site.url(0, "/")])
        .flag("--user-agent", "tester/1.0")
        .flag("--contact", "who@example.com");
    job.run().assert_code(0);
    let log = site.log();
    assert_eq!(log.of(0).len(), 3);
    for exchange in log.of(0) {
        assert!(exchange.headers["user-agent"].starts_with("tester/1.0"), "{exchange:?}");
        assert_eq!(exchange.headers["from"], "who@example.com");
        assert_eq!(exchange.headers["host"], site.origin(0).trim_start_matches("http://"));
    }
}

#[test]
fn one_seed_reaches_every_host_when_every_host_is_in_scope() {
    let (site, web) = Web::serve(&plan(2));
    let job = Job::new(&web.seeds[..1]).flag("--scope", "any");
    job.run().assert_code(0);
    let fetched = site.log().fetched();
    assert!(fetched.is_subset(&web.reachable));
    for host in 0..3 {
        assert!(
            fetched.iter().any(|url| url.starts_with(site.origin(host))),
            "host {host} was not reached"
        );
    }
    assert_holds_exactly(&job.records(), &fetched);
}

#[test]
fn without_robots_the_forbidden_pages_are_fetched_too() {
    let (site, web) = Web::serve(&plan(3));
    let job = Job::new(&web.seeds).switch("--no-robots");
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), web.reachable_without_robots);
    assert_eq!(job.count("/urls/robots"), 0);
    assert!(site.log().of(0).iter().all(|exchange| exchange.path != "/robots.txt"));
}

#[test]
fn a_crawl_delay_is_kept_by_its_host_alone() {
    let own = Duration::from_millis(250);
    let plan = Plan {
        pages: 12,
        hosts: 2,
        crawl_delay: BTreeMap::from([(1, own)]),
        ..plan(4)
    };
    let (site, web) = Web::serve(&plan);
    let job = Job::new(&web.seeds);
    job.run().assert_code(0);
    let log = site.log();
    assert!(log.min_gap(1).unwrap() >= 249_000, "{:?}", log.min_gap(1));
    assert!(log.min_gap(0).unwrap() < 249_000, "{:?}", log.min_gap(0));
    assert_eq!(log.fetched(), web.reachable);
}

#[test]
fn a_retry_after_is_waited_for_and_the_page_is_had_in_the_end() {
    for status in [429, 503] {
        let site = Site::start(1, |_| {
            move |asked: &Asked| match asked.path.as_str() {
                "/" => links(&["/busy"]),
                "/busy" if asked.before == 0 => Answer::new(status, "text/plain", "later").with("Retry-After", "1"),
                "/busy" => links(&["/a", "/b"]),
                "/a" | "/b" => Answer::html(format!("<p>{}", asked.path)),
                _ => Answer::not_found(),
            }
        });
        let job = Job::new(&[site.url(0, "/")]);
        job.run().assert_code(0);
        let log = site.log();
        let after_busy = log.gaps(0).into_iter().find(|gap| gap.earlier.path == "/busy").unwrap();
        assert!(after_busy.micros >= 999_000, "{status}: {after_busy:?}");
        assert_holds_exactly(&job.records(), &urls(&site, 0, &["/", "/busy", "/a", "/b"]));
        assert_eq!(job.count("/status/200"), 4, "{:#}", job.report());
        job.assert_balanced();
    }
}

#[test]
fn a_dead_host_does_not_hold_up_the_others() {
    let dead = dead_origin();
    let to_dead: Vec<String> = (0..20).map(|number| format!("{dead}/{number}")).collect();
    let mut paths: Vec<&str> = to_dead.iter().map(String::as_str).collect();
    paths.push("/alive");
    let site = Site::table(vec![("/", links(&paths)), ("/alive", Answer::html("here"))]);
    let job = Job::new(&[site.url(0, "/")])
        .flag("--scope", "any")
        .flag("--retries", "1");
    job.run().assert_code(0);
    assert_eq!(job.count("/urls/fetched"), 2);
    assert_eq!(job.count("/urls/pending"), 0);
    assert_eq!(job.count("/urls/failed") + job.count("/urls/robots"), 20);
    job.assert_balanced();
    assert!(
        job.log()
            .iter()
            .any(|line| line.status == -2 && line.uri.starts_with(&dead)),
        "{:?}",
        job.log()
    );
}

#[test]
fn when_no_seed_can_be_fetched_each_is_named_and_the_exit_code_is_4() {
    let seeds = [
        format!("{}/one", dead_origin()),
        "http://no-such-host.invalid/two".to_owned(),
    ];
    let job = Job::new(&seeds).flag("--retries", "0");
    let done = job.run();
    done.assert_code(4);
    for seed in &seeds {
        assert!(
            done.text().lines().any(|line| line.contains(seed)),
            "{seed} is not named:\n{}",
            done.text()
        );
    }
    job.assert_balanced();
}

#[test]
fn redirects_are_archived_and_followed_as_links() {
    let site = Site::table(vec![
        ("/", links(&["/old", "/ring", "/away"])),
        ("/old", Answer::redirect(301, "d/older")),
        ("/d/older", Answer::redirect(302, "../new?x=1#part")),
        ("/new?x=1", Answer::html("arrived")),
        ("/ring", Answer::redirect(307, "/gnir")),
        ("/gnir", Answer::redirect(308, "/ring")),
        ("/away", Answer::redirect(303, "http://elsewhere.invalid/")),
    ]);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let expected = urls(
        &site,
        0,
        &["/", "/old", "/d/older", "/new?x=1", "/ring", "/gnir", "/away"],
    );
    assert_eq!(site.log().fetched(), expected);
    assert_eq!(site.log().duplicates(), Vec::<String>::new());
    assert_holds_exactly(&job.records(), &expected);
    job.assert_balanced();
    let log = job.log();
    let arrived = log.iter().find(|line| line.uri.ends_with("/new?x=1")).unwrap();
    assert_eq!(
        (arrived.hops.as_str(), arrived.via.as_str()),
        ("LRR", site.url(0, "/d/older").as_str())
    );
}

/// Host 0 is the seed's; host 1 holds what its page is made of, and a page of its own.
fn site_with_requisites() -> Site {
    Site::start(2, |origins| {
        let other = origins[1].clone();
        move |asked: &Asked| match (asked.host, asked.path.as_str()) {
            (0, "/") => Answer::html(format!(
                "<link rel=stylesheet href='{other}/s.css'><img src='{other}/i.png'><a href='{other}/page'>page</a>"
            )),
            (1, "/s.css") => Answer::new(200, "text/css", "@import 'more.css'; p { background: url(bg.png) }"),
            (1, "/more.css") => Answer::new(200, "text/css", "p { color: red }"),
            (1, "/i.png" | "/bg.png") => Answer::new(200, "image/png", asked.path.clone()),
            (1, "/page") => Answer::html("not to be fetched"),
            _ => Answer::not_found(),
        }
    })
}

#[test]
fn what_a_page_is_made_of_is_fetched_beyond_the_scope() {
    let site = site_with_requisites();
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let mut expected = urls(&site, 1, &["/s.css", "/more.css", "/i.png", "/bg.png"]);
    expected.insert(site.url(0, "/"));
    assert_eq!(site.log().fetched(), expected);
    assert_holds_exactly(&job.records(), &expected);
    job.assert_balanced();
}

#[test]
fn page_requisites_can_be_left_out() {
    let site = site_with_requisites();
    let job = Job::new(&[site.url(0, "/")]).flag("--page-requisites", "no");
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), urls(&site, 0, &["/"]));
    job.assert_balanced();
}

/// A chain of pages without end: `/0` links to `/1`, and so on.
fn endless() -> Site {
    Site::start(1, |_| {
        |asked: &Asked| match asked.path[1..].parse::<u64>() {
            Ok(number) => links(&[&format!("/{}", number + 1)]),
            Err(_) => Answer::not_found(),
        }
    })
}

#[test]
fn a_limit_of_pages_ends_the_crawl_in_order() {
    let site = endless();
    let job = Job::new(&[site.url(0, "/0")]).flag("--max-pages", "5");
    job.run().assert_code(0);
    assert_eq!(job.report()["state"], "limit");
    assert_holds_exactly(&job.records(), &urls(&site, 0, &["/0", "/1", "/2", "/3", "/4"]));
    assert_eq!(job.count("/urls/pending"), 1);
    job.assert_balanced();
}

#[test]
fn a_limit_of_depth_counts_links_from_the_seed() {
    let site = endless();
    let job = Job::new(&[site.url(0, "/0")]).flag("--max-depth", "2");
    job.run().assert_code(0);
    assert_eq!(job.report()["state"], "finished");
    assert_eq!(site.log().fetched(), urls(&site, 0, &["/0", "/1", "/2"]));
    assert_eq!(job.count("/links/out_of_scope"), 1);
    job.assert_balanced();
}

#[test]
fn a_limit_of_pages_per_host_leaves_the_other_hosts_alone() {
    let plan = Plan { pages: 60, ..plan(5) };
    let (site, web) = Web::serve(&plan);
    let job = Job::new(&web.seeds).flag("--max-pages-per-host", "4");
    job.run().assert_code(0);
    for host in 0..3 {
        let pages = site
            .log()
            .of(host)
            .iter()
            .filter(|exchange| exchange.path != "/robots.txt")
            .count();
        assert_eq!(pages, 4, "host {host}");
    }
    job.assert_balanced();
}

#[test]
fn a_signal_drains_and_the_same_command_goes_on() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let (site, web) = Web::serve(&Plan {
            answer_ms: (5, 15),
            ..plan(6)
        });
        let job = Job::new(&web.seeds);
        let running = job.start();
        while site.log().fetched().len() < 10 {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.signal(signal);
        running.wait().assert_code(code);
        assert_eq!(job.report()["state"], "stopped");
        assert!(job.count("/urls/pending") > 0, "{:#}", job.report());
        job.assert_balanced();

        let done = job.run();
        done.assert_code(0);
        assert!(done.text().to_lowercase().contains("resum"), "{}", done.text());
        assert_holds_exactly(&job.records(), &web.reachable);
        assert_sound(&job.records());
        assert_index_matches(&job.index(), &job.records());
        // nothing was in flight at a clean stop, so nothing is asked for again
        assert_eq!(site.log().duplicates(), Vec::<String>::new());
        assert_eq!(job.count("/runs"), 2);
        job.assert_balanced();
    }
}

#[test]
fn a_finished_job_is_refused_until_a_fresh_one_is_asked_for() {
    let site = Site::table(vec![("/", Answer::html("all there is"))]);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let again = job.run();
    again.assert_code(2);
    again.assert_says("--fresh");
    assert_eq!(site.log().duplicates(), Vec::<String>::new());
    job.switch("--fresh").run().assert_code(0);
    assert_eq!(site.log().duplicates(), [site.url(0, "/")]);
}

#[test]
fn a_job_has_one_process_at_a_time() {
    let site = Site::start(1, |_| |_: &Asked| Answer::html("slow").after(Duration::from_secs(20)));
    let job = Job::new(&[site.url(0, "/")]);
    let running = job.start();
    while site.log().of(0).is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let second = job.run();
    assert_ne!(second.status.code(), Some(0));
    second.assert_says(&running.pid().to_string());
    assert!(running.kill_after(Duration::ZERO).is_none());
}

#[test]
fn loopback_is_refused_unless_allowed_and_the_message_names_the_flag() {
    let site = Site::table(vec![("/", Answer::html("private"))]);
    let done = Job::without_permission(&[site.url(0, "/")])
        .flag("--retries", "0")
        .run();
    done.assert_code(4);
    done.assert_says("--allow-address");
    assert!(site.log().of(0).is_empty(), "a request was made all the same");
}

#[test]
fn a_payload_that_was_seen_before_becomes_a_revisit() {
    let same = Answer::html("<p>the same under three addresses");
    let site = Site::table(vec![
        ("/", links(&["/a", "/b", "/c"])),
        ("/a", same.clone()),
        ("/b", same.clone()),
        ("/c", same),
    ]);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let records = job.records();
    assert_holds_exactly(&records, &urls(&site, 0, &["/", "/a", "/b", "/c"]));
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);
    assert_eq!(
        records
            .iter()
            .filter(|record| record.kind() == "revisit" && !record.is_robots())
            .count(),
        2
    );
    let noted = job
        .log()
        .iter()
        .filter(|line| line.annotations.contains("duplicate:digest"))
        .count();
    assert_eq!(noted, 2, "{:?}", job.log());
}

#[test]
fn without_an_archive_the_crawl_is_the_same() {
    let (site, web) = Web::serve(&Plan { pages: 40, ..plan(7) });
    let job = Job::new(&web.seeds).switch("--no-archive");
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), web.reachable);
    assert_eq!(job.count("/urls/fetched"), web.reachable.len() as u64);
    assert_eq!(job.count("/archive/files"), 0);
    let files = std::fs::read_dir(job.dir().join("archive")).map_or(0, Iterator::count);
    assert_eq!(files, 0, "an archive was written");
    job.assert_balanced();
}

#[test]
fn broken_answers_are_an_outcome_each_and_end_nothing() {
    let say = |text: &str| Answer::script(vec![Step::Send(text.as_bytes().to_vec())]);
    let pause = Step::Wait(Duration::from_millis(30));
    let slow_head = Answer::script(vec![
        Step::Send(b"HTTP/1.1 200 OK\r\nContent-".to_vec()),
        pause,
        Step::Send(b"Type: text/html\r\nContent-Length: 2\r\n\r\nok".to_vec()),
    ]);
    let paths = [
        "/garbage",
        "/nothing",
        "/cut",
        "/cut-chunk",
        "/no-length",
        "/slow-head",
        "/after",
    ];
    let site = Site::table(vec![
        ("/", links(&paths)),
        ("/garbage", say("\u{1}\u{2} what is this\r\n\r\n")),
        ("/nothing", say("")),
        (
            "/cut",
            say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 900\r\n\r\n<a href=/from-cut>x</a>"),
        ),
        (
            "/cut-chunk",
            say("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n<p>half"),
        ),
        (
            "/no-length",
            say("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<a href=/from-no-length>x</a>"),
        ),
        ("/slow-head", slow_head),
        ("/after", Answer::html("still here")),
    ]);
    let job = Job::new(&[site.url(0, "/")]).flag("--retries", "1");
    job.run().assert_code(0);
    let fetched = site.log().fetched();
    for path in paths.iter().chain(&["/from-cut", "/from-no-length"]) {
        assert!(fetched.contains(&site.url(0, path)), "{path} was not asked for");
    }
    job.assert_balanced();
    assert_eq!(job.count("/urls/pending"), 0);
    assert_eq!(job.count("/urls/failed"), 2, "{:#}", job.report());
    let records = job.records();
    assert_sound(&records);
    let cut = records.iter().find(|record| record.uri().ends_with("/cut")).unwrap();
    assert_eq!(cut.headers["warc-truncated"], "disconnect");
}

#[test]
fn a_bad_seed_line_is_named_by_its_number_and_the_rest_goes_on() {
    let site = Site::table(vec![("/", Answer::html("fine"))]);
    let job = Job::new(&["# a comment", "http://[not-an-address/", "", &site.url(0, "/")]);
    let done = job.run();
    done.assert_code(0);
    done.assert_says("seeds.txt:2");
    assert_eq!(job.count("/urls/fetched"), 1);
    job.assert_balanced();
}

#[test]
fn links_lead_out_of_the_scope_as_far_as_is_said() {
    let origins: std::sync::Arc<std::sync::OnceLock<Vec<String>>> = std::sync::Arc::default();
    let known = std::sync::Arc::clone(&origins);
    let site = Site::start(3, move |_| {
        move |asked: &Asked| {
            let origin = |host: usize| known.get().map_or_else(String::new, |all| all[host].clone());
            match (asked.host, asked.path.as_str()) {
                (0, "/") => Answer::html(format!("<a href='{}/one'>1</a>", origin(1))),
                (1, "/one") => Answer::html(format!(
                    "<img src=/i.png><a href='{}/two'>2</a><a href='{}/home'>h</a>",
                    origin(2),
                    origin(0)
                )),
                (1, "/i.png") => Answer::new(200, "image/png", "i"),
                (2, "/two") => Answer::html(format!("<a href='{}/three'>3</a>", origin(1))),
                (0, "/home") => Answer::html(format!("<a href='{}/four'>4</a>", origin(2))),
                (1, "/three") | (2, "/four") => Answer::html("end"),
                _ => Answer::not_found(),
            }
        }
    });
    origins
        .set((0..3).map(|host| site.origin(host).to_owned()).collect())
        .unwrap();
    let crawled = |hops: &str| {
        let job = Job::new(&[site.url(0, "/")]).flag("--offsite-hops", hops);
        job.run().assert_code(0);
        job.assert_balanced();
        let lines = job.log().into_iter().filter(|line| line.status == 200);
        let paths: BTreeSet<String> = lines.map(|line| line.uri).collect();
        paths
    };
    assert_eq!(crawled("0"), urls(&site, 0, &["/"]));
    let one = crawled("1");
    // from /home, which is in scope, it is one hop again
    let inside = &urls(&site, 0, &["/", "/home"]) | &urls(&site, 2, &["/four"]);
    let expected = &inside | &urls(&site, 1, &["/one", "/i.png"]);
    assert_eq!(one, expected);
    let two = crawled("2");
    let more = urls(&site, 2, &["/two"]);
    assert_eq!(two, &expected | &more);
}
