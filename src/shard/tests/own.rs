//! Pauses and budgets of single hosts and seeds.

use super::*;
use crate::politeness::HostRule;

fn under(url: &str, origin: u64) -> Link {
    Link { origin, ..link(url) }
}

fn unruly(own: Own) -> Shard {
    shard(Settings {
        robots: false,
        own,
        ..settings()
    })
}

/// Runs to the end; what was fetched, in order.
fn run(shard: &mut Shard, answer: impl Fn(&str) -> End) -> Vec<String> {
    let (mut now, mut fetched) = (at(0.0), Vec::new());
    for _ in 0..1_000 {
        match shard.next(now) {
            Next::Start(work) => {
                let url = work.url().href().to_owned();
                let end = answer(&url);
                if matches!(end, End::Answered { .. }) {
                    fetched.push(url);
                }
                finish(shard, *work, end, now, None);
            }
            Next::Move(fact) => {
                assert_eq!((fact.put.len(), fact.delta.links.admitted), (1, 0));
                assert!(fact.remove.is_some());
                shard.durable(fact.number);
            }
            Next::NotBefore(due) => now = due,
            Next::Settle(_) => {}
            Next::Empty => return fetched,
            other => panic!("{other:?}"),
        }
    }
    panic!("no end: {fetched:?}");
}

#[test]
fn a_seed_without_pages_left_stands_in_nobodys_way() {
    let own = Own {
        budgets: [(7, 2)].into(),
        ..Own::default()
    };
    let mut shard = unruly(own);
    let links = [
        ("http://h/1", 7),
        ("http://h/2", 7),
        ("http://h/3", 7),
        ("http://h/4", 7),
        ("http://h/5", 0),
        ("http://h/6", 8),
    ];
    let links = links.iter().map(|(url, origin)| under(url, *origin)).collect();
    shard.offer_seeds(links, LinkCounts::default(), Time(0));
    let fetched = run(&mut shard, |_| end(200));
    assert_eq!(fetched, ["http://h/1", "http://h/2", "http://h/5", "http://h/6"]);
    assert!(shard.any_seed_spent() && !shard.any_spent());
}

#[test]
fn a_page_that_failed_leaves_its_place_to_another_even_on_another_host() {
    let own = Own {
        budgets: [(7, 2)].into(),
        ..Own::default()
    };
    let mut shard = shard(Settings {
        robots: false,
        retries: 0,
        own,
        ..settings()
    });
    let links = ["http://h/1", "http://bad/2", "http://i/3", "http://i/4"].map(|url| under(url, 7));
    shard.offer_seeds(links.into(), LinkCounts::default(), Time(0));
    let bad = |url: &str| if url.contains("bad") { refused() } else { end(200) };
    let first = started(&mut shard, at(0.0));
    let second = started(&mut shard, at(0.0));
    // both places are taken: what waits on the third host is parked
    loop {
        match shard.next(at(0.0)) {
            Next::Move(fact) => shard.durable(fact.number),
            Next::Blocked => break,
            other => panic!("{other:?}"),
        }
    }
    assert!(shard.any_seed_spent());
    for work in [first, second] {
        let answer = bad(work.url().href());
        finish(&mut shard, work, answer, at(0.0), None);
    }
    let fetched = run(&mut shard, bad);
    assert_eq!(fetched.len(), 1, "{fetched:?}");
    assert!(shard.any_seed_spent(), "one is left");
}

#[test]
fn what_earlier_runs_fetched_counts() {
    let own = Own {
        budgets: [(7, 2)].into(),
        ..Own::default()
    };
    let mut shard = unruly(own);
    shard.load_origin(7, 1);
    let links = ["http://h/1", "http://h/2"].map(|url| under(url, 7));
    let fact = shard.offer_seeds(links.into(), LinkCounts::default(), Time(0));
    assert_eq!(fact.seed_pages, None);
    let work = started(&mut shard, at(0.0));
    let fact = finish(&mut shard, work, end(200), at(0.0), None);
    assert_eq!(fact.seed_pages, Some((7, 2)));
    assert!(run(&mut shard, |_| end(200)).is_empty());
}

#[test]
fn a_host_has_its_own_budget_and_pause() {
    let rule = |host: &str, max_pages, delay_s| HostRule {
        host: host.to_owned(),
        max_pages,
        delay: Some(SECOND * delay_s),
    };
    let own = Own {
        hosts: vec![rule("*.h.test", Some(1), 5), rule("h.test", None, 9)],
        delays: [("i.test".to_owned(), SECOND * 3)].into(),
        ..Own::default()
    };
    let mut shard = unruly(own);
    offer(
        &mut shard,
        &[
            "http://a.h.test/1",
            "http://a.h.test/2",
            "http://i.test/1",
            "http://i.test/2",
        ],
    );
    for _ in 0..2 {
        let work = started(&mut shard, at(0.0));
        finish(&mut shard, work, end(200), at(0.0), None);
    }
    assert_eq!(not_before(&mut shard, at(1.0)), at(3.0));
    let work = started(&mut shard, at(3.0));
    assert_eq!(work.url().host(), "i.test");
    finish(&mut shard, work, end(200), at(3.0), None);
    assert_eq!(not_before(&mut shard, at(4.0)), at(5.0));
    assert!(matches!(shard.next(at(5.0)), Next::Empty));
    assert!(shard.any_spent() && !shard.any_seed_spent());
}

#[test]
fn a_host_that_is_new_to_a_resumed_run_waits_its_own_pause() {
    let own = Own {
        delays: [("h.test".to_owned(), SECOND * 4)].into(),
        ..Own::default()
    };
    let mut shard = unruly(own);
    shard.resume(at(10.0));
    offer(&mut shard, &["http://h.test/1"]);
    assert_eq!(not_before(&mut shard, at(10.0)), at(14.0));
}
