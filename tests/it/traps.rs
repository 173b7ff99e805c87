//! Spaces without end, each beside a finite part: of the one little is fetched, of the other everything. And large sites
//! that look like such spaces and are none.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

/// More than this is fetched of no space without end.
const MOST: usize = 500;
/// Pages of the finite part of each site.
const GOOD: usize = 40;

/// A number that looks drawn.
fn drawn(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(7)
    })
}

fn anchors(paths: impl IntoIterator<Item = String>) -> String {
    paths.into_iter().fold(String::new(), |mut html, path| {
        let _ = write!(html, "<a href='{path}'>on</a> ");
        html
    })
}

/// A word of letters for a number, so that pages differ in more than their digits.
fn word(mut number: usize) -> String {
    let mut word = String::from("w");
    loop {
        word.push(char::from(b'a' + u8::try_from(number % 26).unwrap()));
        number /= 26;
        if number == 0 {
            return word;
        }
    }
}

/// Crawls a site whose home page leads to `GOOD` pages and to `entry`, behind which `space` answers for ever.
fn crawl(entry: &'static str, space: fn(&Asked) -> Option<String>) -> Job {
    let site = Site::start(1, move |_| {
        move |asked: &Asked| {
            if asked.path == "/" {
                let good = (0..GOOD).map(|n| format!("/good/{}", word(n)));
                return Answer::html(anchors(good.chain([entry.to_owned()])));
            }
            if let Some(name) = asked.path.strip_prefix("/good/") {
                let deeper = (!name.ends_with("/more")).then(|| format!("/good/{name}/more"));
                return Answer::html(format!("<p>all about {}{}", name, anchors(deeper)));
            }
            match space(asked) {
                Some(html) => Answer::html(html),
                None => Answer::not_found(),
            }
        }
    });
    let job = Job::new(&[site.url(0, "/")]).flag("--delay", "0ms");
    job.run().assert_code(0);
    let fetched = site.log().fetched();
    let good = fetched.iter().filter(|url| url.contains("/good/")).count();
    assert_eq!(good, 2 * GOOD, "{entry}: the finite part is whole");
    let endless = fetched.len() - good - 1;
    assert!(endless <= MOST, "{entry}: {endless} pages of a space without end");
    assert!(endless > 1, "{entry}: {endless} pages, so the site is wrong");
    job.assert_balanced();
    let traps = &job.report()["traps"];
    assert!(traps.as_object().is_some_and(|traps| !traps.is_empty()), "{traps}");
    eprintln!("{entry}: {endless} fetched, {traps}");
    job
}

/// The rule did its work, is counted, and is named in the log.
fn assert_rule(job: &Job, rule: &str) {
    let counted = job.report()["traps"][rule].as_u64().unwrap_or(0);
    assert!(counted > 0, "{rule}: {:#}", job.report());
    let log = std::fs::read_to_string(job.dir().join("logs/crawler.log")).unwrap();
    let crawl_log = std::fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
    assert!(
        log.contains(&format!("rule=\"{rule}\"")) || crawl_log.contains(&format!("trap: {rule} ")),
        "{rule} is not named"
    );
}

fn month(path: &str) -> Option<(i64, i64)> {
    let mut parts = path.strip_prefix("/calendar/")?.split('/');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

#[test]
fn a_calendar_with_its_days() {
    let job = crawl("/calendar/2026/6", |asked| {
        let (year, month) = month(&asked.path)?;
        let name = MONTHS[usize::try_from(month - 1).ok()?];
        if asked.path.matches('/').count() == 4 {
            return Some(format!("<h1>No events in {name} {year}</h1><a href='/'>home</a>"));
        }
        let step = |by: i64| {
            let months = year * 12 + month - 1 + by;
            format!("/calendar/{}/{}", months / 12, months % 12 + 1)
        };
        let days = (1..=28).map(|day| format!("/calendar/{year}/{month}/{day}"));
        let mut html = format!("<h1>{name} {year}</h1>{}", anchors([step(-1), step(1)]));
        for (day, path) in (1..).zip(days) {
            let _ = write!(html, "<a href='{path}'>{day}</a>");
        }
        Some(html)
    });
    assert_rule(&job, "calendar");
}

#[test]
fn a_calendar_by_query_with_next_and_previous() {
    for (entry, texts) in [("/cal?month=600", true), ("/events?m=600", false)] {
        let space: fn(&Asked) -> Option<String> = if texts {
            |asked| {
                let month: i64 = asked.path.strip_prefix("/cal?month=")?.parse().ok()?;
                let around = [month - 1, month + 1].map(|month| format!("/cal?month={month}"));
                Some(format!("<h1>Month number {month}</h1>{}", anchors(around)))
            }
        } else {
            |asked| {
                let month = asked.path.strip_prefix("/events?m=")?;
                if let Some(month) = month.strip_suffix("&view=day") {
                    return Some(format!("<h1>Day of {month}</h1>"));
                }
                let month: i64 = month.parse().ok()?;
                let around = [month - 1, month + 1].map(|month| format!("/events?m={month}"));
                Some(anchors(
                    around.into_iter().chain([format!("/events?m={month}&view=day")]),
                ))
            }
        };
        crawl(entry, space);
    }
}

#[test]
fn session_ids_in_the_query() {
    let job = crawl("/shop/home?sid=0", |asked| {
        let name = asked.path.strip_prefix("/shop/")?.split('?').next()?;
        let names = ["home", "about", "cart", "help", "terms", "jobs", "news"];
        names.contains(&name).then_some(())?;
        let fresh = |to: &str| format!("/shop/{to}?sid={:016x}", drawn(&format!("{}{to}", asked.path)));
        Some(format!("<h1>The page of {name}</h1>{}", anchors(names.map(fresh))))
    });
    assert_rule(&job, "same-content");
}

#[test]
fn session_ids_in_the_path() {
    let job = crawl("/s/0f0f0f0f0f/home", |asked| {
        let name = asked.path.strip_prefix("/s/")?.split_once('/')?.1;
        let fresh = |to: &str| format!("/s/{:016x}/{to}", drawn(&format!("{}{to}", asked.path)));
        let html = anchors(["home", "about", "cart", "help"].map(fresh));
        Some(format!("<h1>The page of {name}</h1>{html}"))
    });
    assert_rule(&job, "same-content");
}

#[test]
fn a_search_with_facets() {
    let job = crawl("/search?q=all", |asked| {
        let query = asked.path.strip_prefix("/search?")?;
        let facets = ["color", "size", "brand", "price", "stock", "sort", "origin", "age"];
        let left = facets.into_iter().filter(|facet| !query.contains(&format!("{facet}=")));
        let links =
            left.flat_map(|facet| ["one", "two", "three"].map(|value| format!("/search?{query}&{facet}={value}")));
        // every page says something of its own
        let text = word(usize::try_from(drawn(query) % 1_000_000_007).unwrap());
        Some(format!("<h1>{text} {text}</h1>{}", anchors(links)))
    });
    assert_rule(&job, "query-explosion");
}

#[test]
fn links_that_are_relative_by_mistake_and_echo_their_path() {
    let job = crawl("/menu/", |asked| {
        asked.path.starts_with("/menu/").then_some(())?;
        let menu = [
            "about/",
            "contact/",
            "products/",
            "jobs/",
            "press/",
            "imprint/",
            "team/",
            "blog/",
        ];
        Some(format!(
            "<h1>Nothing at {}</h1>{}",
            asked.path,
            anchors(menu.map(str::to_owned))
        ))
    });
    assert_rule(&job, "same-content");
}

#[test]
fn alternating_segments_and_paths_that_count() {
    let job = crawl("/a/b/", |asked| {
        asked.path.starts_with("/a/").then_some(())?;
        Some(format!("<p>{}</p><a href='a/b/'>on</a>", asked.path.len()))
    });
    assert_rule(&job, "repeated-segments");
    let job = crawl("/deep/1/", |asked| {
        let last: usize = asked
            .path
            .strip_prefix("/deep/")?
            .trim_end_matches('/')
            .rsplit('/')
            .next()?
            .parse()
            .ok()?;
        Some(format!(
            "<p>level {last} {}</p><a href='{}/'>deeper</a>",
            word(last),
            last + 1
        ))
    });
    assert_rule(&job, "path-depth");
}

#[test]
fn numbered_pages_beyond_the_last() {
    // the same on every page, and the same but for the number
    let job = crawl("/results?page=1", |asked| {
        let page: u64 = asked.path.strip_prefix("/results?page=")?.parse().ok()?;
        Some(format!(
            "<p>No results.</p><a href='/results?page={}'>next</a>",
            page + 1
        ))
    });
    assert_rule(&job, "same-content");
    let job = crawl("/results?page=1", |asked| {
        let page: u64 = asked.path.strip_prefix("/results?page=")?.parse().ok()?;
        Some(format!(
            "<p>Page {page}: no results.</p><a href='/results?page={}'>next</a>",
            page + 1
        ))
    });
    assert_rule(&job, "endless-chain");
    // something new on every page, but never anything else to go to
    let job = crawl("/story/1", |asked| {
        let page: usize = asked.path.strip_prefix("/story/")?.parse().ok()?;
        Some(format!(
            "<p>{} {}</p><a href='/story/{}'>next</a>",
            word(page * 7919),
            word(page),
            page + 1
        ))
    });
    assert_rule(&job, "endless-chain");
}

/// Names of letters only: nothing in the address looks drawn.
#[test]
fn names_without_digits_hide_nothing() {
    fn named(text: &str) -> String {
        word(usize::try_from(drawn(text) % 1_000_000_007).unwrap())
    }
    let job = crawl("/gone/a.html", |asked| {
        asked.path.strip_prefix("/gone/")?;
        let links = (0..8).map(|n| format!("/gone/{}.html", named(&format!("{}{n}", asked.path))));
        Some(format!("<h1>Nothing found. Try these:</h1>{}", anchors(links)))
    });
    assert_rule(&job, "same-content");
    let job = crawl("/s/a/home", |asked| {
        let name = asked.path.strip_prefix("/s/")?.split_once('/')?.1;
        let fresh = |to: &str| format!("/s/{}/{to}", named(&format!("{}{to}", asked.path)));
        let html = anchors(["home", "about", "cart", "help"].map(fresh));
        Some(format!("<h1>The page of {name}</h1>{html}"))
    });
    assert_rule(&job, "same-content");
}

/// No row of pages, for each leads to several more, and each has another number.
#[test]
fn pages_of_numbers_that_lead_to_several_more() {
    let job = crawl("/map/0/0", |asked| {
        let mut place = asked.path.strip_prefix("/map/")?.split('/');
        let (x, y): (i64, i64) = (place.next()?.parse().ok()?, place.next()?.parse().ok()?);
        let around = [(x + 1, y), (x - 1, y), (x, y + 1), (x, y - 1)];
        Some(format!(
            "<h1>Tile {x} {y}</h1>{}",
            anchors(around.map(|(x, y)| format!("/map/{x}/{y}")))
        ))
    });
    assert_rule(&job, "endless-chain");
    let job = crawl("/s/0f0f0f0f0f/home", |asked| {
        let name = asked.path.strip_prefix("/s/")?.split_once('/')?.1;
        let fresh = |to: &str| format!("/s/{:016x}/{to}", drawn(&format!("{}{to}", asked.path)));
        let html = anchors(["home", "about", "cart", "help"].map(fresh));
        let visitors = drawn(&asked.path) % 1_000_000;
        Some(format!("<h1>The page of {name}</h1>You are visitor {visitors}.{html}"))
    });
    assert_rule(&job, "endless-chain");
}

#[test]
fn a_calendar_of_weeks_in_several_views() {
    let job = crawl("/plan?y=2026&w=1&view=list", |asked| {
        let query = asked.path.strip_prefix("/plan?")?;
        let value = |name: &str| query.split('&').find_map(|part| part.strip_prefix(name));
        let (year, week): (u32, u32) = (value("y=")?.parse().ok()?, value("w=")?.parse().ok()?);
        let next = if week == 52 { (year + 1, 1) } else { (year, week + 1) };
        let links = ["list", "grid", "table"]
            .iter()
            .flat_map(|view| [(year, week), next].map(|(year, week)| format!("/plan?y={year}&w={week}&view={view}")));
        Some(format!(
            "<h1>Week {week} of {year}</h1>Nothing planned.{}",
            anchors(links)
        ))
    });
    assert_rule(&job, "calendar");
}

/// Pages that say the same but for a name are no trap if they are many of many kinds, and neither are numbered ones that
/// a list leads to.
#[test]
fn stubs_beside_pages_lose_nothing() {
    let site = Site::start(1, |_| {
        |asked: &Asked| {
            if asked.path == "/" {
                return Answer::html(anchors((0..40).map(|n| format!("/wiki/{}", word(n)))));
            }
            let Some(name) = asked.path.strip_prefix("/wiki/") else {
                return Answer::not_found();
            };
            if let Some(stub) = name.strip_prefix("stub-") {
                // every stub knows one more, and the last none
                let more = stub.strip_suffix("-a").map(|of| format!("/wiki/stub-{of}-b"));
                return Answer::html(format!("<p>Nothing is written yet.</p>{}", anchors(more)));
            }
            let stubs = (0..5).map(|n| format!("/wiki/stub-{name}{n}-a"));
            let said = word(usize::try_from(drawn(name) % 1_000_000_007).unwrap());
            Answer::html(format!("<p>What is meant by that: {said}</p>{}", anchors(stubs)))
        }
    });
    let job = Job::new(&[site.url(0, "/")]).flag("--delay", "0ms");
    job.run().assert_code(0);
    let lost: Vec<String> = (0..40)
        .flat_map(|page| (0..5).map(move |n| format!("/wiki/stub-{}{n}-a", word(page))))
        .map(|path| site.url(0, &path))
        .filter(|url| !site.log().fetched().contains(url))
        .collect();
    eprintln!("{:#}", job.report()["traps"]);
    assert!(lost.is_empty(), "{lost:?}");
}

/// Pages without a word, each with a picture and the next page, under names of letters only.
#[test]
fn a_gallery_of_names_loses_nothing() {
    let site = Site::start(1, |_| {
        |asked: &Asked| {
            let name = |n: usize| word(n * 7_919);
            if asked.path == "/" {
                return Answer::html(anchors([format!("/photos/{}.html", name(1))]));
            }
            let Some(n) = (1..=300).find(|n| asked.path == format!("/photos/{}.html", name(*n))) else {
                return Answer::not_found();
            };
            let next = (n < 300).then(|| format!("/photos/{}.html", name(n + 1)));
            Answer::html(format!("<img src='/photos/{}.jpg'>{}", name(n), anchors(next)))
        }
    });
    let job = Job::new(&[site.url(0, "/")]).flag("--delay", "0ms");
    job.run().assert_code(0);
    assert_eq!(job.report()["traps"], serde_json::json!({}));
    assert_eq!(job.count("/links/trap"), 0);
}

/// An index in many pages without a word of their own, each with pictures' pages that say nothing either.
#[test]
fn a_long_index_without_words_loses_nothing() {
    const ROWS: usize = 80;
    let site = Site::start(1, |_| {
        |asked: &Asked| {
            let row = asked
                .path
                .strip_prefix("/row-")
                .and_then(|row| row.parse::<usize>().ok());
            match row {
                Some(row) if row < ROWS => {
                    let leaves = (0..5).map(|n| format!("/{}.html", word((row * 5 + n) * 7_919)));
                    Answer::html(anchors(leaves.chain([format!("/row-{}", row + 1)])))
                }
                _ => Answer::html("<a href=/row-0>on</a>"),
            }
        }
    });
    let job = Job::new(&[site.url(0, "/row-0")]).flag("--delay", "0ms");
    job.run().assert_code(0);
    assert_eq!(site.log().fetched().len(), ROWS * 6 + 1);
    assert_eq!(job.report()["traps"], serde_json::json!({}));
}

#[test]
fn ever_new_ids_with_one_content() {
    let job = crawl("/item/5", |asked| {
        asked.path.strip_prefix("/item/")?;
        let links = (0..20).map(|n| format!("/item/{}", drawn(&format!("{}{n}", asked.path)) % 1_000_000_000));
        Some(format!("<h1>An item</h1>{}", anchors(links)))
    });
    assert_rule(&job, "same-content");
}

/// Three thousand posts of one shape that differ in numbers only, reached by pages of a list, each with links to its
/// neighbours.
fn forum(posts: usize) -> Site {
    Site::start(1, move |_| {
        move |asked: &Asked| {
            if asked.path == "/" {
                return Answer::html(anchors(["/list?page=1".to_owned()]));
            }
            if let Some(page) = asked.path.strip_prefix("/list?page=") {
                let page: usize = page.parse().unwrap();
                let shown = (page * 10 - 9..=page * 10).filter(|n| *n <= posts);
                let next = (page * 10 < posts).then(|| format!("/list?page={}", page + 1));
                return Answer::html(format!(
                    "<h1>Page {page}</h1>{}",
                    anchors(shown.map(|n| format!("/p/{n}")).chain(next))
                ));
            }
            let Some(Ok(post)) = asked.path.strip_prefix("/p/").map(str::parse::<usize>) else {
                return Answer::not_found();
            };
            let around = [post - 1, post + 1].into_iter().filter(|n| (1..=posts).contains(n));
            Answer::html(format!(
                "<h1>Post {post}</h1>{}",
                anchors(around.map(|n| format!("/p/{n}")))
            ))
        }
    })
}

#[test]
fn a_large_site_of_one_shape_loses_nothing() {
    let site = forum(3_000);
    let job = Job::new(&[site.url(0, "/")]).flag("--delay", "0ms");
    job.run().assert_code(0);
    let posts: BTreeSet<String> = (1..=3_000).map(|n| site.url(0, &format!("/p/{n}"))).collect();
    let fetched = site.log().fetched();
    let lost: Vec<_> = posts.difference(&fetched).collect();
    assert!(
        lost.is_empty(),
        "{} lost, such as {:?}: {:#}",
        lost.len(),
        lost.first(),
        job.report()["traps"]
    );
    assert_eq!(job.count("/links/trap"), 0);
    assert_eq!(job.report()["traps"], serde_json::json!({}));
}

#[test]
fn a_killed_crawl_does_not_begin_its_evidence_anew() {
    let site = Site::start(1, |_| {
        |asked: &Asked| {
            if asked.path == "/robots.txt" {
                return Answer::not_found();
            }
            let links = (0..4).map(|n| format!("/item/{}", drawn(&format!("{}{n}", asked.path)) % 1_000_000_000));
            Answer::html(format!("<h1>An item</h1>{}", anchors(links)))
        }
    });
    let job = Job::new(&[site.url(0, "/")]).flag("--delay", "4ms");
    let mut ended = None;
    for _ in 0..8 {
        ended = job.start().kill_after(Duration::from_millis(400));
        if ended.is_some() {
            break;
        }
    }
    if ended.is_none() {
        job.run().assert_code(0);
    }
    job.assert_balanced();
    let fetched = site.log().fetched().len();
    assert!(fetched <= MOST, "{fetched}");
    assert!(
        job.report()["traps"]["same-content"].as_u64() > Some(0),
        "{:#}",
        job.report()
    );
}

#[test]
fn a_host_can_be_let_off_and_given_a_budget() {
    let chain = |asked: &Asked| match asked.path.strip_prefix("/n/").map(str::parse::<u32>) {
        Some(Ok(n)) if n < 200 => Answer::html(format!("<p>No results</p><a href=/n/{}>next</a>", n + 1)),
        Some(Ok(_)) => Answer::html("<p>No results</p>"),
        _ => Answer::not_found(),
    };
    let site = Site::start(1, move |_| chain);
    let key = site.origin(0).trim_start_matches("http://").to_owned();
    let pages = |settings: &str, flags: &[&str]| {
        let job = Job::new(&[site.url(0, "/n/1")])
            .flag("--delay", "0ms")
            .flag("--config", "own.toml");
        std::fs::write(job.dir().parent().unwrap().join("own.toml"), settings).unwrap();
        job.start_with(flags).wait().assert_code(0);
        job.count("/urls/fetched")
    };
    assert!(pages("", &[]) < 150);
    assert_eq!(pages("", &["--traps", "no"]), 200);
    assert_eq!(pages(&format!("[[trap]]\nhost = \"{key}\"\noff = true\n"), &[]), 200);
    let without = format!("[[trap]]\nhost = \"{key}\"\nwithout = [\"same-content\", \"endless-chain\"]\n");
    assert_eq!(pages(&without, &[]), 200);
}

#[test]
fn a_space_that_begins_with_the_site_and_branches_widely() {
    for links in [3, 30, 100] {
        let site = Site::start(1, move |_| {
            move |asked: &Asked| {
                if asked.path == "/robots.txt" {
                    return Answer::not_found();
                }
                let ids = (0..links).map(|n| drawn(&format!("{}{n}", asked.path)) % 1_000_000_000);
                Answer::html(format!(
                    "<h1>An item</h1>{}",
                    anchors(ids.map(|id| format!("/item/{id}")))
                ))
            }
        });
        let job = Job::new(&[site.url(0, "/")]).flag("--delay", "0ms");
        job.run().assert_code(0);
        job.assert_balanced();
        let fetched = site.log().fetched().len();
        assert!(fetched <= MOST, "{links} links a page: {fetched}");
    }
}
