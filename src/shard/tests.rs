//! The shard alone, told the time: what may start when, and what a finished request changes.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::extract::LinkKind;
use crate::hash::HashKey;
use crate::robots::Robots;
use crate::seen::{self, Kind};
use crate::stats::LinkCounts;
use crate::stats::Settled;
use crate::url::{CrawlUrl, Identity};

mod address;
mod own;
mod pace;
mod robots;

const KEY: HashKey = HashKey([5; 16]);
const SECOND: Duration = Duration::from_secs(1);

fn settings() -> Settings {
    Settings {
        patience: Patience {
            delay: SECOND,
            delay_factor: 1.0,
            max_wait: Duration::from_secs(30),
            backoff_base: SECOND,
            max_failures: 3,
            global_rate: None,
        },
        robots: true,
        agent: "crawler".to_owned(),
        per_host: 1,
        retries: 1,
        max_pages_per_host: None,
        own: Own::default(),
        per_address: false,
        sitemaps: Sitemaps::Yes,
        max_sitemap_urls: u64::MAX,
        traps: crate::traps::Settings::default(),
    }
}

fn shard(settings: Settings) -> Shard {
    Shard::new(settings, seen::make(Kind::HashSet, KEY, 0, 0.01).unwrap(), 1, Time(0))
}

fn link(url: &str) -> Link {
    let url = CrawlUrl::parse(url, &Identity::default()).unwrap();
    let print = KEY.fingerprint(url.canonical().as_bytes());
    Link {
        url,
        print,
        kind: LinkKind::Navigation,
        depth: 0,
        requisites: 0,
        redirects: 0,
        outside: false,
        offsite: 0,
        seed: Some(print.high),
        lastmod: None,
        origin: 0,
    }
}

fn offer(shard: &mut Shard, urls: &[&str]) -> Fact {
    let links = urls.iter().map(|url| link(url)).collect();
    shard.offer_seeds(links, LinkCounts::default(), Time(0))
}

fn at(seconds: f64) -> Time {
    Time::default() + Duration::from_secs_f64(seconds)
}

fn started(shard: &mut Shard, now: Time) -> Work {
    match shard.next(now) {
        Next::Start(work) => *work,
        other => panic!("at {now:?}: {other:?}"),
    }
}

fn not_before(shard: &mut Shard, now: Time) -> Time {
    match shard.next(now) {
        Next::NotBefore(due) => due,
        other => panic!("at {now:?}: {other:?}"),
    }
}

fn end(status: u16) -> End {
    End::Answered {
        status,
        mime: "text/html".to_owned(),
        cut_short: false,
        retry_after: None,
        received: 0,
        decoded: 0,
    }
}

fn refused() -> End {
    End::Failed {
        reason: "connect",
        detail: "h: refused".to_owned(),
        fault: Fault::Host,
        code: -2,
    }
}

fn finish(shard: &mut Shard, work: Work, end: End, at: Time, robots: Option<RobotsBody>) -> Fact {
    let done = Done {
        robots,
        ..Done::new(work, end, at)
    };
    let fact = shard.finish(done, at);
    shard.durable(fact.number);
    fact
}

fn rules(text: &str) -> RobotsBody {
    RobotsBody::Rules {
        rules: Robots::parse(text.as_bytes(), "crawler"),
        bytes: text.as_bytes().to_vec(),
    }
}

#[test]
fn robots_txt_comes_first_and_the_delay_runs_from_the_end_of_each_answer() {
    let mut shard = shard(settings());
    offer(&mut shard, &["http://h/a", "http://h/b"]);
    let work = started(&mut shard, at(0.0));
    assert_eq!(work.url().href(), "http://h/robots.txt");
    assert!(
        matches!(shard.next(at(0.1)), Next::Blocked),
        "one request in flight to a host"
    );
    finish(&mut shard, work, end(404), at(5.0), None);
    assert_eq!(not_before(&mut shard, at(5.0)), at(6.0));
    let work = started(&mut shard, at(6.0));
    assert_eq!(work.url().href(), "http://h/a");
    finish(&mut shard, work, end(200), at(6.2), None);
    assert_eq!(not_before(&mut shard, at(6.3)), at(7.2));
    let work = started(&mut shard, at(7.2));
    let fact = finish(&mut shard, work, end(200), at(7.3), None);
    assert_eq!(fact.delta.gap_us, Some(1_000_000));
    assert!(matches!(shard.next(at(9.0)), Next::Empty));
}

#[test]
fn both_schemes_of_a_host_share_its_patience_but_not_its_robots_txt() {
    let mut shard = shard(settings());
    offer(&mut shard, &["http://h/a", "https://h/b"]);
    let mut asked = Vec::new();
    for turn in 0..4_u32 {
        let work = started(&mut shard, at(f64::from(turn) * 2.0));
        assert!(matches!(shard.next(at(100.0)), Next::Blocked));
        asked.push(work.url().href().to_owned());
        finish(&mut shard, work, end(404), at(f64::from(turn) * 2.0), None);
    }
    assert_eq!(
        asked,
        [
            "http://h/robots.txt",
            "http://h/a",
            "https://h/robots.txt",
            "https://h/b"
        ]
    );
}

#[test]
fn a_busy_host_is_left_alone_as_long_as_it_asks_and_the_url_comes_back() {
    let mut shard = shard(Settings {
        robots: false,
        ..settings()
    });
    offer(&mut shard, &["http://h/a"]);
    let work = started(&mut shard, at(0.0));
    let busy = End::Answered {
        status: 429,
        mime: "text/html".to_owned(),
        cut_short: false,
        retry_after: Some(Duration::from_secs(12)),
        received: 0,
        decoded: 0,
    };
    let fact = finish(&mut shard, work, busy, at(0.0), None);
    assert_eq!(fact.delta.settled, Settled::Retry);
    assert_eq!(fact.put.len(), 1);
    assert_eq!(not_before(&mut shard, at(1.0)), at(12.0));
    let work = started(&mut shard, at(12.0));
    let fact = finish(&mut shard, work, end(429), at(12.0), None);
    assert_eq!(fact.tries, 2, "the retries are used up: the answer stands");
    assert!(matches!(fact.delta.settled, Settled::Fetched { status: 429, .. }));
}

#[test]
fn a_dead_host_is_retired_with_its_queue_and_never_holds_up_the_end() {
    let mut shard = shard(Settings {
        robots: false,
        ..settings()
    });
    let urls: Vec<String> = (0..10).map(|n| format!("http://h/{n}")).collect();
    offer(&mut shard, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    let mut now = at(0.0);
    let mut requests = 0;
    let mut given_up = 0;
    loop {
        match shard.next(now) {
            Next::Start(work) => {
                requests += 1;
                let fact = finish(&mut shard, *work, refused(), now, None);
                given_up += u32::from(matches!(fact.delta.settled, Settled::Failed { .. }));
            }
            Next::Settle(settlement) => {
                assert!(settlement.why.contains("refused"), "{}", settlement.why);
                given_up += 1;
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((requests, given_up), (3, 10));
    assert_eq!(now, at(1.0 + 2.0), "1 s, then 2 s");
}

#[test]
fn the_page_budget_of_a_host_is_exact() {
    let mut shard = shard(Settings {
        robots: false,
        max_pages_per_host: Some(2),
        per_host: 3,
        ..settings()
    });
    offer(&mut shard, &["http://h/a", "http://h/b", "http://h/c", "http://i/a"]);
    let mut now = at(0.0);
    let mut fetched = BTreeMap::new();
    loop {
        match shard.next(now) {
            Next::Start(work) => {
                *fetched.entry(work.url().host().to_owned()).or_insert(0) += 1;
                finish(&mut shard, *work, end(200), now, None);
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(fetched, BTreeMap::from([("h".to_owned(), 2), ("i".to_owned(), 1)]));
    assert!(shard.any_spent());
}

#[test]
fn several_connections_start_a_delay_apart() {
    let mut shard = shard(Settings {
        robots: false,
        per_host: 2,
        ..settings()
    });
    offer(&mut shard, &["http://h/a", "http://h/b", "http://h/c"]);
    let first = started(&mut shard, at(0.0));
    assert_eq!(not_before(&mut shard, at(0.5)), at(1.0));
    let _second = started(&mut shard, at(1.0));
    assert!(matches!(shard.next(at(9.0)), Next::Blocked), "two in flight are enough");
    finish(&mut shard, first, end(200), at(9.5), None);
    assert_eq!(not_before(&mut shard, at(9.6)), at(10.5));
}

#[test]
fn the_global_rate_holds_over_all_hosts() {
    let mut settings = settings();
    settings.robots = false;
    settings.patience.global_rate = Some(2.0);
    let mut shard = shard(settings);
    offer(&mut shard, &["http://a/", "http://b/", "http://c/"]);
    let mut starts = Vec::new();
    let mut now = at(0.0);
    while starts.len() < 3 {
        match shard.next(now) {
            Next::Start(_) => starts.push(now),
            Next::NotBefore(due) => now = due,
            other => panic!("{other:?}"),
        }
    }
    assert!(
        starts
            .windows(2)
            .all(|pair| pair[1].since(pair[0]) >= Duration::from_millis(500)),
        "{starts:?}"
    );
}

#[test]
fn memory_holds_a_window_of_the_queues_and_the_store_the_rest() {
    let mut shard = shard(Settings {
        robots: false,
        ..settings()
    });
    let hosts = 1_000;
    let mut put = Vec::new();
    for host in 0..hosts {
        let links = (0..150).map(|n| link(&format!("http://h{host}/{n}"))).collect();
        put.extend(shard.offer_seeds(links, LinkCounts::default(), at(0.0)).put);
    }
    assert_eq!(put.len(), hosts * 150);
    assert!(shard.window <= WINDOW_ITEMS);
    let held: usize = shard.hosts.iter().map(|host| host.queue.in_memory()).sum();
    assert_eq!(held, shard.window, "the count is what is held");
    assert!(matches!(shard.next(at(0.0)), Next::Start(_)));
    let mut refills = 0;
    while !matches!(shard.next(at(0.0)), Next::Blocked) {
        refills += 1;
        assert!(refills < 3 * hosts);
    }
    assert!(shard.refilling > 0, "hosts beyond the window ask the store");
}

#[test]
fn many_hosts_share_the_window_when_the_store_answers_too() {
    let mut shard = shard(Settings {
        robots: false,
        ..settings()
    });
    let hosts = 5_000;
    let mut rows: std::collections::BTreeMap<(HostId, Place), Item> = std::collections::BTreeMap::new();
    for host in 0..hosts {
        let links = (0..60).map(|n| link(&format!("http://h{host}/{n}"))).collect();
        let fact = shard.offer_seeds(links, LinkCounts::default(), at(0.0));
        rows.extend(fact.put.into_iter().map(|(id, place, row)| {
            let item = Item::from_row(&row, &Identity::default()).unwrap();
            ((id, place), item)
        }));
    }
    let (mut now, mut fetched, mut most_held) = (at(0.0), 0, 0);
    // every host has some turns; what it fetches leads nowhere
    while fetched < 8 * hosts {
        match shard.next(now) {
            Next::Start(work) => {
                let What::Page { place, .. } = &work.what else {
                    unreachable!()
                };
                assert!(rows.remove(&(work.host, *place)).is_some(), "once, and it was there");
                let end = End::Answered {
                    status: 200,
                    mime: "text/html".to_owned(),
                    cut_short: false,
                    retry_after: None,
                    received: 0,
                    decoded: 0,
                };
                shard.finish(Done::new(*work, end, now), now);
                fetched += 1;
            }
            Next::Refill { host, after, most, .. } => {
                let after = after.unwrap();
                let found: Vec<_> = rows
                    .range((host, after)..=(host, Place::LAST))
                    .filter(|((_, place), _)| *place > after)
                    .map(|((_, place), item)| (*place, item.clone()))
                    .take(most)
                    .collect();
                let complete = found.len() < most;
                shard.refilled(host, Some((found, complete)), None);
            }
            Next::NotBefore(due) => now = due,
            other => unreachable!("{other:?}"),
        }
        most_held = most_held.max(shard.window);
    }
    let held: usize = shard.hosts.iter().map(|host| host.queue.in_memory()).sum();
    assert_eq!(held, shard.window, "the count is what is held");
    assert!(most_held <= 2 * WINDOW_ITEMS, "{most_held}");
}

#[test]
fn a_resumed_host_is_held_its_own_delay_and_no_longer_than_the_longest_wait() {
    let now = at(1_000_000.0);
    let row = |due: Time, delay: Option<u64>| HostRow {
        name: "h".to_owned(),
        due,
        failures: 0,
        retired: None,
        fetched: 1,
        low: Place {
            priority: 0,
            sequence: 1,
        },
        access: [StoredAccess::Rules(now, delay), StoredAccess::Unknown],
        forbidden: 0,
    };
    // (due as stored, Crawl-delay) → held for
    for (due, delay, held) in [
        (at(0.0), None, 1.0),
        (at(0.0), Some(7_000_000), 7.0),
        (now + Duration::from_secs(20), None, 20.0),
        (now + Duration::from_secs(900_000), None, 30.0),
    ] {
        let mut shard = shard(settings());
        shard.load_host(row(due, delay), true, now);
        assert_eq!(not_before(&mut shard, now), now + Duration::from_secs_f64(held));
    }
}

proptest! {
    /// Whatever comes back, and whenever: no host has more in flight than it may, none is asked before it is due, and
    /// every URL ends once.
    #[test]
    fn no_schedule_breaks_the_pace(
        seed in any::<u64>(),
        per_host in 1_usize..4,
        delay_ms in prop_oneof![Just(0_u64), 1_u64..2_000],
    ) {
        let mut settings = settings();
        settings.per_host = per_host;
        settings.patience.delay = Duration::from_millis(delay_ms);
        let delay = settings.patience.delay;
        let mut shard = shard(settings);
        let urls: Vec<String> = (0..30).map(|n| format!("http://h{}/{n}", n % 4)).collect();
        offer(&mut shard, &urls.iter().map(String::as_str).collect::<Vec<_>>());
        let mut dice = seed;
        let mut roll = move |n: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % n
        };
        let mut flying: Vec<Work> = Vec::new();
        let mut rested: BTreeMap<HostId, Time> = BTreeMap::new();
        let mut now = at(0.0);
        let mut ended = 0;
        for _ in 0..10_000 {
            match shard.next(now) {
                Next::Start(work) => {
                    let others = flying.iter().filter(|other| other.host == work.host).count();
                    prop_assert!(others < per_host);
                    if let Some(end) = rested.get(&work.host) {
                        prop_assert!(now.since(*end) >= delay, "{:?} after {:?}", now, end);
                    }
                    flying.push(*work);
                    continue;
                }
                Next::Settle(_) => { ended += 1; continue; }
                Next::Empty => break,
                Next::NotBefore(due) if flying.is_empty() || roll(2) == 0 => { now = due; continue; }
                Next::NotBefore(_) | Next::Blocked => {}
                Next::Refill { .. } | Next::Move(_) | Next::Lost(_) => {
                    unreachable!("all fits into memory, and no seed has a budget")
                }
            }
            let index = usize::try_from(roll(flying.len() as u64)).unwrap();
            let work = flying.swap_remove(index);
            now = now + Duration::from_millis(roll(300));
            rested.insert(work.host, now);
            let (answer, robots) = match roll(8) {
                0 => (refused(), None),
                1 => (end(503), None),
                2 => (end(500), None),
                _ => (end(200), Some(rules("User-agent: *\nDisallow: /7"))),
            };
            let robots = robots.filter(|_| matches!(work.what, What::Robots(_)));
            let fact = finish(&mut shard, work, answer, now, robots);
            ended += usize::from(matches!(fact.delta.settled, Settled::Fetched { .. } | Settled::Failed { .. }));
        }
        prop_assert_eq!(ended, 30);
        prop_assert_eq!(shard.in_flight(), 0);
    }
}
