//! What robots.txt means for a host's turn.

use super::*;
use crate::stats::Settled;

#[test]
fn a_forbidden_url_is_settled_without_a_request() {
    let mut shard = shard(settings());
    offer(&mut shard, &["http://h/no/a"]);
    let work = started(&mut shard, at(0.0));
    finish(
        &mut shard,
        work,
        end(200),
        at(0.0),
        Some(rules("User-agent: *\nDisallow: /no/")),
    );
    let Next::Settle(settlement) = shard.next(at(1.0)) else {
        panic!("not settled")
    };
    assert_eq!(settlement.fact.delta.settled, Settled::Robots);
    assert!(settlement.why.contains("Disallow: /no/"), "{}", settlement.why);
    assert_eq!(settlement.fact.delta.settled, Settled::Robots);
    assert!(matches!(settlement.fact.seed, Some((_, SeedResult::Robots))));
    assert!(matches!(shard.next(at(1.0)), Next::Empty));
}

#[test]
fn a_crawl_delay_is_obeyed_once_it_is_durable_and_cut_to_the_longest_wait() {
    for (asked, owed) in [("5", 5.0), ("1000", 30.0), ("0.2", 1.0)] {
        let mut shard = shard(settings());
        offer(&mut shard, &["http://h/a", "http://h/b"]);
        let work = started(&mut shard, at(0.0));
        let done = Done {
            robots: Some(rules(&format!("User-agent: *\nCrawl-delay: {asked}"))),
            ..Done::new(work, end(200), at(0.0))
        };
        let fact = shard.finish(done, at(0.0));
        if owed > 1.0 {
            assert!(
                matches!(shard.next(at(owed)), Next::NotBefore(_)),
                "a kill now would make us forget the delay"
            );
        }
        shard.durable(fact.number);
        let work = started(&mut shard, at(owed + 1.0));
        finish(&mut shard, work, end(200), at(100.0), None);
        assert_eq!(
            not_before(&mut shard, at(100.0)),
            at(100.0 + owed),
            "Crawl-delay: {asked}"
        );
    }
}

#[test]
fn a_host_that_never_answered_its_robots_txt_is_retired_and_a_broken_one_forbids() {
    let mut dead = shard(settings());
    offer(&mut dead, &["http://h/a"]);
    for turn in [0.0, 10.0] {
        let work = started(&mut dead, at(turn));
        finish(&mut dead, work, refused(), at(turn), None);
    }
    let Next::Settle(settlement) = dead.next(at(50.0)) else {
        panic!("not settled")
    };
    assert!(settlement.fact.delta.settled != Settled::Robots && settlement.why.contains("refused"));

    let mut broken = shard(settings());
    offer(&mut broken, &["http://h/a"]);
    for turn in [0.0, 10.0] {
        let work = started(&mut broken, at(turn));
        finish(&mut broken, work, end(500), at(turn), None);
    }
    let Next::Settle(settlement) = broken.next(at(50.0)) else {
        panic!("not settled")
    };
    assert_eq!(settlement.fact.delta.settled, Settled::Robots);
}

#[test]
fn a_moved_robots_txt_is_asked_for_at_its_new_host_in_that_host_s_turn() {
    let mut shard = shard(settings());
    offer(&mut shard, &["http://h/a"]);
    let work = started(&mut shard, at(0.0));
    let moved = CrawlUrl::parse("http://other/r.txt", &Identity::default()).unwrap();
    let fact = finish(&mut shard, work, end(301), at(0.0), Some(RobotsBody::Redirect(moved)));
    assert!(
        fact.hosts.iter().any(|(_, row)| row.name == "other"),
        "its number is taken: it must be stored"
    );
    let work = started(&mut shard, at(0.0));
    assert_eq!(work.url().href(), "http://other/r.txt");
    finish(
        &mut shard,
        work,
        end(200),
        at(0.1),
        Some(rules("User-agent: *\nDisallow: /")),
    );
    assert!(matches!(shard.next(at(1.0)), Next::Settle(_)));
}

#[test]
fn redirects_of_robots_txt_end() {
    let mut shard = shard(settings());
    offer(&mut shard, &["http://h/a"]);
    let again = CrawlUrl::parse("http://h/robots.txt", &Identity::default()).unwrap();
    let mut requests = 0;
    loop {
        let work = started(&mut shard, at(f64::from(requests) * 2.0));
        if work.url().path() == "/a" {
            break;
        }
        requests += 1;
        let now = at(f64::from(requests) * 2.0 - 1.5);
        finish(
            &mut shard,
            work,
            end(302),
            now,
            Some(RobotsBody::Redirect(again.clone())),
        );
    }
    assert_eq!(
        requests,
        1 + i32::from(ROBOTS_REDIRECTS),
        "then it is taken for one that is not there"
    );
}

#[test]
fn robots_txt_is_asked_for_again_after_a_day() {
    let mut shard = shard(settings());
    offer(&mut shard, &["http://h/a", "http://h/b"]);
    let work = started(&mut shard, at(0.0));
    finish(
        &mut shard,
        work,
        end(200),
        at(0.0),
        Some(rules("User-agent: *\nAllow: /")),
    );
    let work = started(&mut shard, at(2.0));
    assert_eq!(work.url().path(), "/a");
    finish(&mut shard, work, end(200), at(2.0), None);
    let held = shard.robots_bytes;
    assert!(held > 0);
    let work = started(&mut shard, at(24.0 * 3600.0 + 1.0));
    assert_eq!(work.url().path(), "/robots.txt");
    assert_eq!(shard.robots_bytes, 0, "the old rules are gone");
    let again = Some(rules("User-agent: *\nAllow: /"));
    finish(&mut shard, work, end(200), at(24.0 * 3600.0 + 1.0), again);
    assert_eq!((shard.robots_bytes, shard.robots_order.len()), (held, 1));
}

#[test]
fn a_link_to_robots_txt_asks_for_nothing_more() {
    let mut shard = shard(settings());
    let fact = offer(&mut shard, &["http://h/robots.txt", "http://h/a", "http://h/a"]);
    assert_eq!((fact.delta.links.seen, fact.delta.links.admitted), (2, 1));
}

#[test]
fn parsed_rules_leave_memory_when_there_are_too_many_and_come_back() {
    let mut shard = shard(settings());
    let text: String = (0..20_000).fold("User-agent: *\n".to_owned(), |text, n| {
        text + &format!("Disallow: /{n}/x\n")
    });
    let hosts = 40;
    for host in 0..hosts {
        offer(
            &mut shard,
            &[
                format!("http://h{host}/1").as_str(),
                format!("http://h{host}/2/x").as_str(),
            ],
        );
    }
    for _ in 0..hosts {
        let work = started(&mut shard, at(0.0));
        finish(&mut shard, work, end(200), at(0.0), Some(rules(&text)));
    }
    assert!(shard.robots_bytes <= ROBOTS_CACHE_BYTES);
    let mut asked = 0;
    let mut now = at(1.0);
    let mut forbidden = 0;
    loop {
        match shard.next(now) {
            Next::Start(work) => drop(finish(&mut shard, *work, end(200), now, None)),
            Next::Settle(_) => forbidden += 1,
            Next::NotBefore(due) => now = due,
            Next::Refill {
                host,
                after,
                most: _,
                robots: Some(scheme),
            } => {
                asked += 1;
                assert!(after.is_none());
                shard.refilled(host, None, Some((scheme, Some(text.clone().into_bytes()))));
            }
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(asked > 0, "the cache is larger than all the rules");
    assert_eq!(forbidden, hosts);
}

#[test]
fn a_site_without_tls_is_still_had_in_the_clear() {
    let mut shard = shard(settings());
    offer(&mut shard, &["https://h/", "http://h/", "https://h/2"]);
    let mut now = at(0.0);
    let (mut asked, mut failed, mut last) = (Vec::new(), 0, None);
    loop {
        match shard.next(now) {
            Next::Start(work) => {
                assert!(!work.too_early);
                assert!(last.is_none_or(|end| now >= end + SECOND));
                last = Some(now);
                asked.push(work.url().href().to_owned());
                let end = if work.url().scheme() == Scheme::Https {
                    refused()
                } else {
                    end(404)
                };
                finish(&mut shard, *work, end, now, None);
            }
            Next::Settle(settled) => {
                assert_eq!((settled.code, settled.why.as_str()), (-2, "h: refused"));
                failed += 1;
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    let tls = "https://h/robots.txt";
    assert_eq!(asked, [tls, tls, "http://h/robots.txt", "http://h/"]);
    assert_eq!(failed, 2);
}

#[test]
fn the_sitemaps_of_a_robots_txt_come_in_one_fact_with_its_rules() {
    let mut shard = shard(settings());
    offer(&mut shard, &["http://h/a"]);
    let work = started(&mut shard, at(0.0));
    let What::Robots(errand) = &work.what else {
        panic!("{work:?}")
    };
    assert!(errand.sitemaps);
    let sitemap = |url: &str| Link {
        kind: LinkKind::Sitemap,
        seed: None,
        ..link(url)
    };
    let done = Done {
        robots: Some(rules("User-agent: *\nDisallow:")),
        links: vec![
            sitemap("http://h/s.xml"),
            Link {
                outside: true,
                offsite: 0,
                ..sitemap("http://other/s.xml")
            },
        ],
        counts: LinkCounts {
            found: 2,
            ..LinkCounts::default()
        },
        ..Done::new(work, end(200), at(0.0))
    };
    let fact = shard.finish(done, at(0.0));
    assert!(fact.robots.is_some());
    assert_eq!((fact.put.len(), fact.delta.links.admitted), (2, 2));
    let hosts: Vec<_> = fact.hosts.iter().map(|(id, row)| (*id, row.name.as_str())).collect();
    assert_eq!(hosts, [(1, "other"), (0, "h")]);
    let mut hops = Vec::new();
    let mut now = at(0.0);
    loop {
        match shard.next(now) {
            Next::Start(work) => {
                match &work.what {
                    What::Page { item, .. } => {
                        hops.push((
                            item.url.href().to_owned(),
                            item.path.hops.clone(),
                            item.path.via.clone(),
                        ));
                    }
                    // a host that only has another's sitemap is not asked for its own
                    What::Robots(errand) => assert!(!errand.sitemaps || errand.url.host() == "h"),
                    What::Address(_) => panic!("{work:?}"),
                }
                finish(&mut shard, *work, end(404), now, None);
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    hops.sort();
    let via = Some("http://h/robots.txt".to_owned());
    assert_eq!(
        hops,
        [
            ("http://h/a".to_owned(), String::new(), None),
            ("http://h/s.xml".to_owned(), "M".to_owned(), via.clone()),
            ("http://other/s.xml".to_owned(), "M".to_owned(), via),
        ]
    );
}

#[test]
fn a_host_beyond_the_scope_or_with_sitemaps_switched_off_is_not_asked_for_sitemaps() {
    for (sitemaps, outside, seed, wanted) in [
        (Sitemaps::No, false, true, false),
        (Sitemaps::Yes, false, false, true),
        (Sitemaps::Yes, true, false, false),
        (Sitemaps::Yes, true, true, true),
        (Sitemaps::Only, false, false, false),
        (Sitemaps::Only, false, true, true),
    ] {
        let mut shard = shard(Settings { sitemaps, ..settings() });
        let mut first = link("http://h/a");
        first.outside = outside;
        first.seed = first.seed.filter(|_| seed);
        shard.offer_seeds(vec![first], LinkCounts::default(), Time(0));
        let work = started(&mut shard, at(0.0));
        let What::Robots(errand) = work.what else {
            panic!("{work:?}")
        };
        assert_eq!(errand.sitemaps, wanted, "{sitemaps:?} outside {outside} seed {seed}");
    }
}

#[test]
fn a_job_takes_its_share_of_sitemaps_and_counts_what_it_leaves() {
    let mut shard = shard(Settings {
        robots: false,
        max_sitemap_urls: 3,
        ..settings()
    });
    offer(&mut shard, &["http://h/s.xml", "http://h/1"]);
    shard.load_listed(1);
    let work = started(&mut shard, at(0.0));
    let done = Done {
        listed: true,
        links: ["1", "2", "2", "3", "4", "5"]
            .map(|page| link(&format!("http://h/{page}")))
            .into(),
        counts: LinkCounts {
            found: 7,
            malformed: 1,
            ..LinkCounts::default()
        },
        ..Done::new(work, end(200), at(0.0))
    };
    let fact = shard.finish(done, at(0.0));
    let links = fact.delta.links;
    assert_eq!((links.found, links.malformed, links.seen, links.admitted), (5, 1, 2, 2));
    assert_eq!((fact.listed, fact.listed_left, fact.delta.left.links), (Some(3), 2, 2));
}
