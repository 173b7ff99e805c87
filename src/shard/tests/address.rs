//! Names that share an address.

use std::net::IpAddr;

use super::*;
use crate::stats::Settled;

const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

fn by_address() -> Settings {
    Settings {
        robots: false,
        per_address: true,
        ..settings()
    }
}

fn seeds(shard: &mut Shard, hosts: usize, pages: usize) {
    let urls: Vec<String> = (0..pages)
        .flat_map(|page| (0..hosts).map(move |host| format!("http://h{host}/{page}")))
        .collect();
    offer(shard, &urls.iter().map(String::as_str).collect::<Vec<_>>());
}

/// Answers look-ups by `address` until something else comes of `next`.
fn next_beyond_look_ups(shard: &mut Shard, now: Time, address: impl Fn(&str) -> Option<IpAddr>) -> Next {
    loop {
        match shard.next(now) {
            Next::Start(work) if matches!(work.what, What::Address(_)) => {
                let end = address(work.url().host()).map_or_else(refused, End::Found);
                finish(shard, *work, end, now, None);
            }
            other => return other,
        }
    }
}

#[test]
fn the_address_is_the_first_errand_and_no_request() {
    let mut shard = shard(Settings {
        robots: true,
        ..by_address()
    });
    offer(&mut shard, &["http://h/a"]);
    let work = started(&mut shard, at(0.0));
    assert!(matches!(work.what, What::Address(_)), "{work:?}");
    assert!(matches!(shard.next(at(0.0)), Next::Blocked));
    let fact = finish(&mut shard, work, End::Found(ONE), at(0.5), None);
    assert!(fact.hosts.is_empty() && fact.delta.settled == Settled::Nothing && fact.rest.is_none());
    let work = started(&mut shard, at(0.5));
    assert_eq!(work.url().path(), "/robots.txt");
    assert_eq!(work.way.address(), Some(ONE));
}

#[test]
fn two_names_on_one_address_share_its_gap_and_a_third_elsewhere_does_not() {
    let mut shard = shard(by_address());
    seeds(&mut shard, 3, 2);
    let address = |host: &str| {
        if host == "h2" {
            "192.0.2.9".parse().ok()
        } else {
            Some(ONE)
        }
    };
    let (mut now, mut asked) = (at(0.0), Vec::new());
    loop {
        match next_beyond_look_ups(&mut shard, now, address) {
            Next::Start(work) => {
                assert!(!work.too_early);
                asked.push((now.since(at(0.0)).as_secs(), work.url().host().to_owned()));
                finish(&mut shard, *work, end(200), now, None);
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    let of = |hosts: &[&str]| {
        let mine = asked.iter().filter(|(_, host)| hosts.contains(&host.as_str()));
        mine.map(|(at, _)| *at).collect::<Vec<_>>()
    };
    assert_eq!(shard.scheduled(), 0);
    assert_eq!(of(&["h0", "h1"]), [0, 1, 2, 3]);
    assert_eq!(of(&["h2"]), [0, 1]);
    assert_eq!(of(&["h0"]), [0, 2], "in turns");
}

#[test]
fn an_address_has_no_more_in_flight_than_a_host_may() {
    let mut shard = shard(Settings {
        per_host: 2,
        ..by_address()
    });
    seeds(&mut shard, 5, 2);
    let first = next_beyond_look_ups(&mut shard, at(0.0), |_| Some(ONE));
    assert!(matches!(first, Next::Start(_)), "{first:?}");
    assert_eq!(not_before(&mut shard, at(0.0)), at(1.0));
    let second = started(&mut shard, at(1.0));
    assert!(matches!(shard.next(at(50.0)), Next::Blocked), "two are in flight");
    finish(&mut shard, second, end(200), at(50.0), None);
    assert_eq!(not_before(&mut shard, at(50.0)), at(51.0));
}

#[test]
fn a_request_moves_few_hosts_however_many_share_its_address() {
    let mut shard = shard(by_address());
    seeds(&mut shard, 2_000, 1);
    let mut now = at(0.0);
    let mut asked = 0;
    let mut before = 0;
    loop {
        match next_beyond_look_ups(&mut shard, now, |_| Some(ONE)) {
            Next::Start(work) => {
                asked += 1;
                finish(&mut shard, *work, end(200), now, None);
                if asked == 1 {
                    // the others have now looked up where they are and stand in line
                    while let Next::Start(work) = shard.next(now) {
                        finish(&mut shard, *work, End::Found(ONE), now, None);
                    }
                    before = shard.ready.turns();
                    assert_eq!(shard.scheduled(), 1_999, "all but the one that is done");
                }
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((asked, now), (2_000, at(1_999.0)));
    let moved = shard.ready.turns() - before;
    assert!(moved < 3 * 2_000, "{moved} hosts were moved for 2,000 requests");
}

#[test]
fn a_crawl_delay_of_one_name_holds_for_the_gap_after_it() {
    let mut shard = shard(Settings {
        robots: true,
        ..by_address()
    });
    offer(&mut shard, &["http://slow/a", "http://quick/a"]);
    let mut now = at(0.0);
    let mut ends: Vec<(Time, bool)> = Vec::new();
    loop {
        match next_beyond_look_ups(&mut shard, now, |_| Some(ONE)) {
            Next::Start(work) => {
                if let Some((end, slow)) = ends.last() {
                    let owed = if *slow { 7 } else { 1 };
                    assert!(now.since(*end) >= SECOND * owed, "{ends:?} {now:?}");
                }
                let slow = work.url().host() == "slow";
                ends.push((now, slow));
                let robots = slow.then(|| rules("User-agent: *\nCrawl-delay: 7\n"));
                let robots = robots.filter(|_| matches!(work.what, What::Robots(_)));
                let status = if slow { 200 } else { 404 };
                finish(&mut shard, *work, end(status), now, robots);
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ends.len(), 4);
}

#[test]
fn a_name_without_an_address_fails_like_any_request_and_is_looked_up_again() {
    let mut shard = shard(by_address());
    offer(&mut shard, &["http://h/a", "http://h/b"]);
    let work = started(&mut shard, at(0.0));
    finish(&mut shard, work, refused(), at(0.0), None);
    let work = started(&mut shard, at(0.0));
    let Way::Nowhere(why) = work.way.clone() else {
        panic!("{work:?}")
    };
    let fact = finish(&mut shard, work, *why, at(0.0), None);
    assert_eq!(fact.delta.settled, Settled::Retry);
    let work = started(&mut shard, at(1.0));
    assert!(matches!(work.what, What::Address(_)), "{work:?}");
    finish(&mut shard, work, End::Found(ONE), at(1.0), None);
    assert_eq!(started(&mut shard, at(1.0)).way.address(), Some(ONE));
}

#[test]
fn an_address_is_looked_up_again_in_time_and_those_left_are_forgotten() {
    let mut shard = shard(by_address());
    seeds(&mut shard, 2, 50);
    let mut now = at(0.0);
    let (mut asked, mut addresses) = (0, std::collections::BTreeSet::new());
    loop {
        let hour = u8::try_from(u128::from(now.0) / ADDRESS_LIFE.as_micros()).unwrap();
        match next_beyond_look_ups(&mut shard, now, |_| Some(IpAddr::from([192, 0, 2, hour]))) {
            Next::Start(work) => {
                asked += 1;
                addresses.extend(work.way.address());
                now = now + Duration::from_secs(300);
                finish(&mut shard, *work, end(200), now, None);
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
        assert!(shard.groups.len() <= 2, "no more groups than hosts");
    }
    assert_eq!(asked, 100);
    assert!(addresses.len() > 5, "{addresses:?}");
}

#[test]
fn after_a_resume_no_address_is_asked_before_all_its_names_might_be() {
    let now = at(1_000_000.0);
    let row = |name: &str, due: Time| HostRow {
        name: name.to_owned(),
        due,
        failures: 0,
        retired: None,
        fetched: 1,
        low: Place {
            priority: 0,
            sequence: 1,
        },
        access: [StoredAccess::AllowAll(now), StoredAccess::Unknown],
        forbidden: 0,
    };
    let mut shard = shard(by_address());
    shard.load_host(row("quick", now), true, now);
    shard.load_host(row("slow", now + SECOND * 20), true, now);
    // `quick` alone may have work, and its own due is long over
    let mut time = now;
    loop {
        match next_beyond_look_ups(&mut shard, time, |_| Some(ONE)) {
            Next::Start(_) => break,
            Next::NotBefore(due) => time = due,
            Next::Refill { host, .. } => {
                let rows = (host == 0).then(|| {
                    let url = CrawlUrl::parse("http://quick/a", &Identity::default()).unwrap();
                    let path = crate::frontier::Path::seed(0);
                    let place = Place {
                        priority: 0,
                        sequence: 1,
                    };
                    vec![(place, Item { url, path })]
                });
                shard.refilled(host, Some((rows.unwrap_or_default(), true)), None);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(time, now + SECOND * 20);
}

#[test]
fn a_request_too_soon_for_another_name_of_the_address_is_counted() {
    let mut shard = shard(by_address());
    seeds(&mut shard, 2, 1);
    let Next::Start(work) = next_beyond_look_ups(&mut shard, at(0.0), |_| Some(ONE)) else {
        panic!("nothing starts")
    };
    finish(&mut shard, *work, end(200), at(0.0), None);
    assert_eq!(not_before_beyond_look_ups(&mut shard, at(0.5)), at(1.0));
    shard.forget_dues();
    for host in 0..2 {
        shard.host(host).due = at(0.0);
        shard.host(host).scheduled = false;
        shard.host(host).in_line = false;
    }
    shard.ready = Ready::default();
    (0..2).for_each(|host| shard.schedule(host));
    assert!(started(&mut shard, at(0.5)).too_early);
}

fn not_before_beyond_look_ups(shard: &mut Shard, now: Time) -> Time {
    match next_beyond_look_ups(shard, now, |_| Some(ONE)) {
        Next::NotBefore(due) => due,
        other => panic!("{other:?}"),
    }
}

proptest! {
    /// Whatever comes back, and whenever: no address has more in flight than a host may, none is asked before its gap
    /// is over, and every URL ends once.
    #[test]
    fn no_schedule_breaks_the_pace_of_an_address(
        seed in any::<u64>(),
        per_host in 1_usize..4,
        rate in prop_oneof![Just(None), Just(Some(3.0_f64))],
    ) {
        let mut settings = by_address();
        settings.robots = true;
        settings.per_host = per_host;
        settings.patience.global_rate = rate;
        let mut shard = shard(settings);
        seeds(&mut shard, 6, 5);
        let mut dice = seed;
        let mut roll = move |n: u64| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) % n
        };
        let mut flying: Vec<Work> = Vec::new();
        let mut rested: BTreeMap<IpAddr, Time> = BTreeMap::new();
        let mut now = at(0.0);
        let mut ended = 0;
        for _ in 0..10_000 {
            match shard.next(now) {
                Next::Start(work) => {
                    if let Some(ip) = work.way.address() {
                        let others = flying.iter().filter(|other| other.way.address() == Some(ip)).count();
                        prop_assert!(others < per_host);
                        prop_assert!(!work.too_early);
                        if let Some(end) = rested.get(&ip) {
                            prop_assert!(now.since(*end) >= SECOND, "{:?} after {:?}", now, end);
                        }
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
            prop_assert!(!flying.is_empty(), "nothing is in flight and nothing comes due");
            let index = usize::try_from(roll(flying.len() as u64)).unwrap();
            let work = flying.swap_remove(index);
            now = now + Duration::from_millis(roll(300));
            if matches!(work.what, What::Address(_)) {
                let end = match roll(5) {
                    0 => refused(),
                    n => End::Found(IpAddr::from([192, 0, 2, u8::try_from(n).unwrap() % 2])),
                };
                finish(&mut shard, work, end, now, None);
                continue;
            }
            if let Some(ip) = work.way.address() {
                rested.insert(ip, now);
            }
            let answer = match (work.way.clone(), roll(8)) {
                (Way::Nowhere(why), _) => *why,
                (_, 0) => refused(),
                (_, 1) => end(503),
                (_, 2) => end(403),
                _ => end(200),
            };
            let robots = Some(rules("User-agent: *\nDisallow: /3")).filter(|_| matches!(work.what, What::Robots(_)));
            let fact = finish(&mut shard, work, answer, now, robots);
            ended += usize::from(matches!(fact.delta.settled, Settled::Fetched { .. } | Settled::Failed { .. }));
        }
        prop_assert_eq!(ended, 30);
        prop_assert_eq!((shard.in_flight(), shard.scheduled()), (0, 0));
    }
}
