//! The pace of the whole crawl, and hosts that stand in for others.

use super::*;

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
                assert!(settled.robots, "{}", settled.why);
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
