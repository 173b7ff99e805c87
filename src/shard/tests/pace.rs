//! The pace of the whole crawl, and hosts that stand in for others.

use super::*;
use crate::stats::Settled;

fn moved_to(url: &str) -> Option<RobotsBody> {
    CrawlUrl::parse(url, &Identity::default())
        .ok()
        .map(RobotsBody::Redirect)
}

#[test]
fn the_pace_of_the_crawl_does_not_move_each_host() {
    let mut settings = settings();
    settings.robots = false;
    settings.patience.global_rate = Some(10.0);
    let mut shard = shard(settings);
    let urls: Vec<String> = (0..500).map(|n| format!("http://h{n}.test/")).collect();
    offer(&mut shard, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    for turn in 0..20 {
        let now = at(0.0) + Duration::from_millis(100) * turn;
        started(&mut shard, now);
        let before = shard.ready.turns();
        assert_eq!(not_before(&mut shard, now), now + Duration::from_millis(100));
        let moved = shard.ready.turns() - before;
        assert!(moved <= 1, "{moved} hosts were moved for one request");
    }
}

#[test]
fn nothing_is_asked_of_a_host_that_never_answers_for_others() {
    let mut settings = settings();
    settings.retries = 0;
    let mut shard = shard(settings);
    let urls: Vec<String> = (0..10).map(|n| format!("http://h{n}.test/")).collect();
    offer(&mut shard, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    let mut now = at(0.0);
    let (mut asked, mut forbidden, mut retired) = (0, 0, 0);
    loop {
        match shard.next(now) {
            Next::Start(work) if work.url().host() == "dead.test" => {
                asked += 1;
                let fact = finish(&mut shard, *work, refused(), now, None);
                retired += u32::from(fact.delta.retired);
            }
            Next::Start(work) => {
                let robots = moved_to("http://dead.test/robots.txt");
                finish(&mut shard, *work, end(301), now, robots);
            }
            Next::Settle(settled) => {
                assert_eq!(settled.fact.delta.settled, Settled::Robots, "{}", settled.why);
                forbidden += 1;
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((asked, forbidden, retired), (3, 10, 1));
    assert!(now < at(10.0), "{now:?}");
}

#[test]
fn a_crawl_delay_that_comes_from_elsewhere_holds_from_the_first_page() {
    let mut shard = shard(settings());
    offer(&mut shard, &["http://h.test/"]);
    let work = started(&mut shard, at(0.0));
    finish(
        &mut shard,
        work,
        end(301),
        at(0.0),
        moved_to("http://other.test/robots.txt"),
    );
    let work = started(&mut shard, at(0.0));
    assert_eq!(work.url().host(), "other.test");
    let robots = Some(rules("User-agent: *\nCrawl-delay: 7\n"));
    finish(&mut shard, work, end(200), at(0.0), robots);
    let mut now = at(0.0);
    let work = loop {
        match shard.next(now) {
            Next::NotBefore(due) => now = due,
            Next::Start(work) => break work,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(now, at(7.0));
    assert!(!work.too_early);
}

#[test]
fn a_request_that_comes_too_soon_is_counted() {
    let mut shard = shard(Settings {
        robots: false,
        ..settings()
    });
    offer(&mut shard, &["http://h.test/", "http://h.test/2"]);
    let work = started(&mut shard, at(0.0));
    finish(&mut shard, work, end(200), at(0.0), None);
    shard.host(0).due = at(0.0);
    shard.ready = Ready::default();
    shard.host(0).scheduled = false;
    shard.schedule(0);
    let work = started(&mut shard, at(0.0));
    let fact = finish(&mut shard, work, end(200), at(0.0), None);
    assert_eq!(fact.delta.violations, 1);
}

fn finish_after(shard: &mut Shard, work: Work, end: End, at: Time, took: Duration) -> Fact {
    let done = Done {
        took,
        ..Done::new(work, end, at)
    };
    let fact = shard.finish(done, at);
    shard.durable(fact.number);
    fact
}

fn without_robots() -> Settings {
    Settings {
        robots: false,
        ..settings()
    }
}

#[test]
fn a_host_rests_as_long_as_its_answer_took_and_a_restart_remembers() {
    let mut shard = shard(without_robots());
    offer(&mut shard, &["http://h/a", "http://h/b", "http://h/c"]);
    let work = started(&mut shard, at(0.0));
    let fact = finish_after(&mut shard, work, end(200), at(5.0), SECOND * 5);
    assert_eq!(fact.rest, Some((SECOND * 5, politeness::Rule::Factor)));
    assert_eq!(not_before(&mut shard, at(5.0)), at(10.0));
    let (_, row) = fact.hosts.last().unwrap();
    let mut resumed = super::shard(without_robots());
    resumed.load_host(row.clone(), true, at(6.0));
    assert_eq!(not_before(&mut resumed, at(6.0)), at(10.0));

    // what never came has no length
    let work = started(&mut shard, at(10.0));
    let fact = finish_after(&mut shard, work, refused(), at(40.0), SECOND * 30);
    assert_eq!(fact.rest, Some((SECOND, politeness::Rule::Delay)));
}

#[test]
fn a_pause_cut_short_is_counted() {
    let mut shard = shard(without_robots());
    offer(&mut shard, &["http://h/a", "http://h/b"]);
    let work = started(&mut shard, at(0.0));
    finish_after(&mut shard, work, end(200), at(5.0), SECOND * 5);
    shard.host(0).due = at(7.0);
    shard.ready = Ready::default();
    shard.host(0).scheduled = false;
    shard.schedule(0);
    assert!(
        started(&mut shard, at(7.0)).too_early,
        "the delay is over, the pause is not"
    );
}

#[test]
fn each_of_several_connections_rests_its_part() {
    let mut shard = shard(Settings {
        per_host: 4,
        ..without_robots()
    });
    offer(&mut shard, &["http://h/a", "http://h/b"]);
    let work = started(&mut shard, at(0.0));
    finish_after(&mut shard, work, end(200), at(8.0), SECOND * 8);
    assert_eq!(not_before(&mut shard, at(8.0)), at(10.0));
}

#[test]
fn a_storm_of_403_slows_its_host_until_something_else_comes() {
    let mut shard = shard(without_robots());
    let urls: Vec<String> = (0..12).map(|n| format!("http://h/{n}")).collect();
    offer(&mut shard, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    let mut now = at(0.0);
    let mut waits = Vec::new();
    let mut row = None;
    for status in [403, 403, 403, 403, 503, 403, 200, 403, 403, 403, 404, 403] {
        let work = loop {
            match shard.next(now) {
                Next::NotBefore(due) => now = due,
                Next::Start(work) => break *work,
                other => panic!("{other:?}"),
            }
        };
        let fact = finish(&mut shard, work, end(status), now, None);
        if status == 403 {
            assert!(matches!(fact.delta.settled, Settled::Fetched { status: 403, .. }));
        }
        waits.push(fact.rest.unwrap().0.as_secs());
        if waits.len() == 4 {
            row = fact.hosts.into_iter().next_back();
        }
    }
    assert_eq!(waits, [1, 1, 1, 2, 2, 4, 1, 1, 1, 1, 1, 1]);

    // a restart goes on counting
    let (_, row) = row.unwrap();
    let row = HostRow::from_bytes(&row.to_bytes()).unwrap();
    assert_eq!(row.forbidden, 4);
    let older = postcard::to_stdvec(&row).unwrap();
    assert_eq!(
        HostRow::from_bytes(&older).unwrap().forbidden,
        0,
        "a row without the count"
    );
    assert!(HostRow::from_bytes(&older[..older.len() - 1]).is_err());
}

#[test]
fn a_403_that_says_when_to_come_again_is_listened_to() {
    let mut shard = shard(without_robots());
    offer(&mut shard, &["http://h/a", "http://h/b"]);
    let work = started(&mut shard, at(0.0));
    let mut answer = end(403);
    if let End::Answered { retry_after, .. } = &mut answer {
        *retry_after = Some(SECOND * 9);
    }
    let fact = finish(&mut shard, work, answer, at(0.0), None);
    assert!(matches!(fact.delta.settled, Settled::Fetched { status: 403, .. }));
    assert_eq!(fact.rest, Some((SECOND * 9, politeness::Rule::RetryAfter)));
}

#[test]
fn a_host_is_never_given_up_for_403_alone() {
    let mut shard = shard(without_robots());
    let urls: Vec<String> = (0..40).map(|n| format!("http://h/{n}")).collect();
    offer(&mut shard, &urls.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut now, mut asked) = (at(0.0), 0);
    loop {
        match shard.next(now) {
            Next::Start(work) => {
                asked += 1;
                finish(&mut shard, *work, end(403), now, None);
            }
            Next::NotBefore(due) => now = due,
            Next::Empty => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(asked, 40);
    assert!(now.since(at(0.0)) > SECOND * 30 * 30, "{now:?}");
}
