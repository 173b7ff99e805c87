//! How gently hosts are asked, as their own log tells it: pauses, refusals, waits that are asked for, shared addresses.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::harness::Job;
use crate::reader::assert_holds_exactly;
use crate::site::{Answer, Asked, Log, Site, Step};

/// The two clocks are read at different ends of a socket.
const SLACK_MICROS: i64 = 1_000;

fn links(paths: &[&str]) -> Answer {
    let links: Vec<String> = paths
        .iter()
        .map(|path| format!("<a href='{path}'>{path}</a>"))
        .collect();
    Answer::html(links.join("\n"))
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap()
}

/// The pause after a path's first answer, microseconds.
fn pause_after(log: &Log, path: &str) -> i64 {
    let gaps = log.gaps(0);
    let gap = gaps.iter().find(|gap| gap.earlier.path == path);
    gap.unwrap_or_else(|| panic!("nothing came after {path}: {log:?}"))
        .micros
}

/// `restBy` and `restMicros` of an address's line in crawl.log.
fn rest_of(job: &Job, url: &str) -> (String, u64) {
    let text = std::fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
    let line = text.lines().find(|line| line.contains(&format!(" {url} "))).unwrap();
    let extra: serde_json::Value = serde_json::from_str(&line[line.find('{').unwrap()..]).unwrap();
    (
        extra["restBy"].as_str().unwrap().to_owned(),
        extra["restMicros"].as_u64().unwrap(),
    )
}

fn slow_site(slow: Duration) -> Site {
    Site::start(1, move |_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/" => links(&["/slow", "/next"]),
            "/slow" => Answer::html("at last").after(slow),
            "/next" => Answer::html("next"),
            _ => Answer::not_found(),
        }
    })
}

#[test]
fn a_slow_answer_is_followed_by_a_pause_as_long() {
    let slow = Duration::from_millis(300);
    for (factor, least, most) in [("1", 300, 3_000), ("2.5", 750, 3_000), ("0", 10, 290)] {
        let site = slow_site(slow);
        let job = Job::new(&[site.url(0, "/")]).flag("--delay-factor", factor);
        job.run().assert_code(0);
        let pause = pause_after(&site.log(), "/slow");
        assert!(pause >= least * 1_000 - SLACK_MICROS, "{factor}: {pause}");
        assert!(pause < most * 1_000, "{factor}: {pause}");
        let (by, micros) = rest_of(&job, &site.url(0, "/slow"));
        assert_eq!(by, if factor == "0" { "delay" } else { "delay-factor" });
        assert!(micros >= u64::try_from(least).unwrap() * 1_000, "{factor}: {micros}");
        assert_eq!(job.count("/politeness/violations"), 0);
    }
}

#[test]
fn the_pause_after_a_slow_answer_is_cut_to_the_longest_wait() {
    let site = slow_site(Duration::from_millis(400));
    let job = Job::new(&[site.url(0, "/")])
        .flag("--delay-factor", "1000")
        .flag("--max-wait", "100ms");
    job.run().assert_code(0);
    let pause = pause_after(&site.log(), "/slow");
    assert!((99_000..5_000_000).contains(&pause), "{pause}");
}

#[test]
fn with_several_connections_each_rests_its_part() {
    let site = slow_site(Duration::from_millis(400));
    let job = Job::new(&[site.url(0, "/")])
        .flag("--per-host-connections", "4")
        .flag("--delay-factor", "2");
    job.run().assert_code(0);
    let (by, micros) = rest_of(&job, &site.url(0, "/slow"));
    assert_eq!(by, "delay-factor");
    assert!((200_000..390_000).contains(&micros), "{micros}");
    assert!(site.log().in_flight_max(0) <= 4);
}

#[test]
fn a_factor_that_is_none_is_refused() {
    for wrong in ["-1", "lots", "NaN", "1001"] {
        let flag = format!("--delay-factor={wrong}");
        let done = Job::new(&["http://h.test/"]).start_with(&[&flag]).wait();
        done.assert_code(2);
        done.assert_says("delay-factor");
        done.assert_says("from 0 to 1000");
    }
}

#[test]
fn a_pause_after_a_slow_answer_survives_kill_9() {
    let site = slow_site(Duration::from_millis(700));
    let job = Job::new(&[site.url(0, "/")]).flag("--delay-factor", "3");
    let running = job.start();
    let ended = || {
        site.log()
            .of(0)
            .iter()
            .any(|asked| asked.path == "/slow" && asked.ended.is_some())
    };
    while !ended() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // long enough for the answer to be written down, short enough to fall into the pause
    std::thread::sleep(Duration::from_millis(600));
    assert!(running.kill_after(Duration::ZERO).is_none());
    job.run().assert_code(0);
    assert!(
        pause_after(&site.log(), "/slow") >= 2_100_000 - SLACK_MICROS,
        "{:?}",
        site.log()
    );
    assert_eq!(site.log().duplicates(), Vec::<String>::new());
}

#[test]
fn a_host_that_forbids_again_and_again_is_asked_ever_more_slowly_and_never_given_up() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/" => links(&["/0", "/1", "/2", "/3", "/4", "/5", "/6"]),
            "/4" => Answer::html("welcome back"),
            "/robots.txt" => Answer::not_found(),
            _ => Answer::new(403, "text/html", "<p>no</p>"),
        }
    });
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let log = site.log();
    assert_eq!(
        log.duplicates(),
        Vec::<String>::new(),
        "a 403 is an answer and is not tried again"
    );
    assert_eq!(job.count("/status/403"), 6);
    let second = 1_000_000;
    assert!(pause_after(&log, "/1") < second / 2, "two may be chance");
    assert!(pause_after(&log, "/2") >= second - SLACK_MICROS);
    assert!(pause_after(&log, "/3") >= 2 * second - SLACK_MICROS);
    assert!(pause_after(&log, "/4") < second / 2, "another answer ends it");
    assert!(pause_after(&log, "/5") < second / 2);
    assert_eq!(rest_of(&job, &site.url(0, "/3")), ("forbidden".to_owned(), 2_000_000));
    job.assert_balanced();
    let archived = ["/", "/0", "/1", "/2", "/3", "/4", "/5", "/6"].iter();
    assert_holds_exactly(&job.records(), &archived.map(|path| site.url(0, path)).collect());
}

#[test]
fn the_wait_of_a_storm_is_cut_to_the_longest_wait() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/" => links(&["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8"]),
            _ => Answer::new(403, "text/html", "<p>no</p>"),
        }
    });
    let job = Job::new(&[site.url(0, "/")]).flag("--max-wait", "50ms");
    job.run().assert_code(0);
    assert_eq!(job.count("/status/403"), 9);
    assert!(pause_after(&site.log(), "/7") < 1_000_000);
}

/// `/busy` answers once with this Retry-After.
fn busy_site(status: u16, retry_after: String) -> Site {
    Site::start(1, move |_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/" => links(&["/busy"]),
            "/busy" if asked.before == 0 => {
                Answer::new(status, "text/plain", "later").with("Retry-After", &retry_after)
            }
            "/busy" => Answer::html("here you are"),
            _ => Answer::not_found(),
        }
    })
}

fn http_date(ahead: i64) -> String {
    let now = jiff::Timestamp::now().as_second();
    let date = jiff::Timestamp::from_second(now + ahead).unwrap();
    date.to_zoned(jiff::tz::TimeZone::UTC)
        .strftime("%a, %d %b %Y %H:%M:%S GMT")
        .to_string()
}

#[test]
fn a_retry_after_of_any_form_is_a_wait_within_bounds() {
    let (short, cut) = (Duration::from_millis(990), Duration::from_millis(1_990));
    // (value, least, most): the own back-off is one second, the longest wait two
    let own = (short, Duration::from_millis(1_900));
    for (value, (least, most)) in [
        ("2".to_owned(), (cut, Duration::from_secs(6))),
        ("999999".to_owned(), (cut, Duration::from_secs(6))),
        (format!("1{}", "0".repeat(30)), own),
        ("-5".to_owned(), own),
        ("1.5".to_owned(), own),
        ("soon".to_owned(), own),
        (String::new(), own),
        ("0".to_owned(), own),
        (http_date(-3_600), own),
        (http_date(3_600), (cut, Duration::from_secs(6))),
        ("Thu, 01 Jan 1970 00:00:00 GMT".to_owned(), own),
        (
            "Fri, 31 Dec 9999 23:59:59 GMT".to_owned(),
            (cut, Duration::from_secs(6)),
        ),
    ] {
        let site = busy_site(503, value.clone());
        let job = Job::new(&[site.url(0, "/")]).flag("--max-wait", "2s");
        job.run().assert_code(0);
        let pause = pause_after(&site.log(), "/busy");
        assert!(pause >= millis(least), "{value:?}: {pause}");
        assert!(pause <= millis(most), "{value:?}: {pause}");
        assert_eq!(job.count("/status/200"), 2, "{value:?}");
    }
}

#[test]
fn a_retry_after_survives_kill_9() {
    for status in [429, 503] {
        let site = busy_site(status, "3".to_owned());
        let job = Job::new(&[site.url(0, "/")]);
        let running = job.start();
        while !site
            .log()
            .of(0)
            .iter()
            .any(|asked| asked.path == "/busy" && asked.ended.is_some())
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(600));
        assert!(running.kill_after(Duration::ZERO).is_none());
        // and once more while it waits
        assert!(job.start().kill_after(Duration::from_millis(300)).is_none());
        job.run().assert_code(0);
        let pause = pause_after(&site.log(), "/busy");
        assert!(pause >= 3_000_000 - SLACK_MICROS, "{status}: {pause}");
        assert_eq!(job.count("/status/200"), 2);
    }
}

/// Two or more names on one address of loopback, and the flags that say so.
fn named(site: &Site, names: &[&str]) -> (Job, Vec<String>) {
    let (ip, port) = site.origin(0).trim_start_matches("http://").split_once(':').unwrap();
    let seeds: Vec<String> = names.iter().map(|name| format!("http://{name}:{port}/")).collect();
    let pins = names.iter().map(|name| format!("{name}:{port}:{ip}")).collect();
    (Job::new(&seeds), pins)
}

fn with_pins<'a>(pins: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    let pins = pins.iter().flat_map(|pin| ["--resolve", pin.as_str()]);
    pins.chain(more.iter().copied()).collect()
}

/// Requests by the name that was asked for.
fn by_name(log: &Log) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for exchange in log.of(0) {
        *names.entry(exchange.headers["host"].clone()).or_insert(0) += 1;
    }
    names
}

fn small_site() -> Site {
    Site::table(vec![
        ("/", links(&["/a", "/b"])),
        ("/a", Answer::html("a")),
        ("/b", Answer::html("b").after(Duration::from_millis(150))),
    ])
}

#[test]
fn names_on_one_address_share_one_pause_if_asked_to() {
    let names = ["one.test", "two.test", "three.test"];
    let site = small_site();
    let (job, pins) = named(&site, &names);
    let job = job.flag("--delay", "100ms");
    job.start_with(&with_pins(&pins, &["--delay-per-address"]))
        .wait()
        .assert_code(0);
    let log = site.log();
    assert_eq!(log.in_flight_max(0), 1);
    assert!(
        log.min_gap(0).unwrap() >= 100_000 - SLACK_MICROS,
        "{:?}",
        log.min_gap(0)
    );
    assert_eq!(by_name(&log).len(), 3);
    assert!(by_name(&log).values().all(|count| *count == 4), "{:?}", by_name(&log));
    // the answer that took 150 ms is rested from by all of them
    for gap in log.gaps(0).iter().filter(|gap| gap.earlier.path == "/b") {
        assert!(gap.micros >= 150_000 - SLACK_MICROS, "{gap:?}");
    }
    assert_eq!(job.count("/politeness/violations"), 0);
    job.assert_balanced();

    // without the switch each name has its own
    let site = small_site();
    let (job, pins) = named(&site, &names);
    let job = job.flag("--delay", "100ms");
    job.start_with(&with_pins(&pins, &[])).wait().assert_code(0);
    assert!(site.log().min_gap(0).unwrap() < 90_000, "{:?}", site.log().min_gap(0));
}

#[test]
fn the_shared_pause_holds_across_kills() {
    let names = ["one.test", "two.test", "three.test"];
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/robots.txt" => Answer::text("User-agent: *\nCrawl-delay: 0.2\n"),
            "/" => links(&["/a", "/b", "/c"]),
            _ => Answer::html("leaf"),
        }
    });
    let (job, pins) = named(&site, &names);
    let job = job.flag("--delay", "50ms");
    let flags = with_pins(&pins, &["--delay-per-address"]);
    // when each killed process was surely dead; a process says its number with every request
    let mut deaths = Vec::new();
    for (run, life) in [300, 700, 500, 900, 450].into_iter().enumerate() {
        let agent = format!("crawler/run-{run}");
        let flags = [flags.as_slice(), &["--user-agent", &agent]].concat();
        let _ = job.start_with(&flags).kill_after(Duration::from_millis(life));
        deaths.push((agent, site.time()));
    }
    let done = job.start_with(&flags).wait();
    // it may have been done before
    assert!(matches!(done.status.code(), Some(0 | 2)), "{}", done.text());
    let mut log = site.log();
    log.end_at_death(|exchange| {
        let own = exchange.headers.get("user-agent");
        deaths
            .iter()
            .find(|(agent, _)| Some(agent) == own)
            .map(|(_, death)| *death)
    });
    for gap in log.gaps(0) {
        // a Crawl-delay is known once it is written down: what is asked next may be for a robots.txt
        let robots = gap.earlier.path == "/robots.txt" || gap.later.path == "/robots.txt";
        let owed = if robots { 50_000 } else { 200_000 };
        assert!(gap.micros >= owed - SLACK_MICROS, "{gap:?}");
    }
    assert_eq!(log.in_flight_max(0), 1);
    assert_eq!(job.count("/urls/fetched"), 12);
}

#[test]
fn a_name_that_has_no_address_fails_as_it_does_without_the_switch() {
    let site = small_site();
    let mut outcomes = Vec::new();
    for more in [&["--delay-per-address"][..], &[]] {
        let job = Job::new(&[site.url(0, "/a"), "http://no-such-name.invalid/x".to_owned()]).flag("--retries", "1");
        job.start_with(more).wait().assert_code(0);
        job.assert_balanced();
        let log = job.log();
        let lines = log.iter().filter(|line| line.uri.contains("no-such-name"));
        outcomes.push(lines.map(|line| (line.status, line.uri.clone())).collect::<Vec<_>>());
    }
    assert_eq!(outcomes[0], outcomes[1]);
    assert!(outcomes[0].iter().any(|(status, _)| *status == -1), "{outcomes:?}");
}

#[test]
fn a_private_address_is_not_asked_with_the_switch_either() {
    let site = small_site();
    let (_, pins) = named(&site, &["one.test"]);
    let port = site.origin(0).rsplit(':').next().unwrap();
    for seed in [format!("http://one.test:{port}/"), site.url(0, "/")] {
        let job = Job::without_permission(&[seed]).flag("--retries", "0");
        let done = job.start_with(&with_pins(&pins, &["--delay-per-address"])).wait();
        done.assert_code(4);
        done.assert_says("--allow-address");
    }
    assert!(site.log().of(0).is_empty());
}

#[test]
fn a_robots_txt_that_was_cut_is_asked_for_again_and_forbids_all_if_it_stays_so() {
    for healed in [true, false] {
        let site = Site::start(1, move |_| {
            move |asked: &Asked| {
                match asked.path.as_str() {
                "/robots.txt" if healed && asked.before > 0 => Answer::text("User-agent: *\nDisallow: /secret\n"),
                // the rule that matters stands behind the cut
                "/robots.txt" => Answer::script(vec![Step::Send(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 400\r\n\r\nUser-agent: *\nDisallow: /x\n".to_vec(),
                )]),
                _ => Answer::html("<a href=/secret>s</a><a href=/open>o</a>"),
            }
            }
        });
        let job = Job::new(&[site.url(0, "/")]).flag("--retries", "1");
        job.run().assert_code(if healed { 0 } else { 4 });
        let log = site.log();
        let asked = |path: &str| log.of(0).iter().filter(|exchange| exchange.path == path).count();
        assert_eq!(asked("/robots.txt"), 2);
        assert_eq!((asked("/"), asked("/open")), if healed { (1, 1) } else { (0, 0) });
        assert_eq!(asked("/secret"), 0);
        job.assert_balanced();
    }
}
