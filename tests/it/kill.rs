//! Kill -9 at random moments, then the same command again, until the crawl is done: the archive must hold every
//! reachable address exactly once, and the server's log must show no gap broken across the kills.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

use crate::harness::Job;
use crate::reader::{Record, assert_holds_exactly, assert_index_matches, assert_sound};
use crate::site::Log;
use crate::web::{Dice, Plan, Web};

/// Kills over all crawls of the test.
const KILLS: usize = 50;
/// Kills of one crawl; then it is let to its end.
const KILLS_A_CRAWL: usize = 18;
/// A process is killed so long after its start, ms.
const LIFE_MS: (u64, u64) = (30, 400);
const DELAY: Duration = Duration::from_millis(15);
/// The two clocks are read at different ends of a socket.
const SLACK: Duration = Duration::from_millis(1);

#[test]
fn fifty_kills_lose_nothing_repeat_nothing_and_break_no_gap() {
    let mut dice = Dice::new(0x006B_696C_6C39);
    let mut kills = 0;
    let mut crawls = 0;
    let began = Instant::now();
    while kills < KILLS {
        crawls += 1;
        kills += one_crawl(crawls, KILLS_A_CRAWL.min(KILLS - kills).max(5), &mut dice);
        assert!(
            crawls <= 12,
            "{kills} kills in {crawls} crawls: the processes end too soon to be killed"
        );
    }
    println!(
        "{kills} kills in {crawls} crawls, {:.1} s",
        began.elapsed().as_secs_f64()
    );
}

fn one_crawl(number: u64, kills: usize, dice: &mut Dice) -> usize {
    let slow_host = Duration::from_millis(120);
    let plan = Plan {
        seed: number,
        hosts: 4,
        pages: 160,
        answer_ms: (20, 50),
        crawl_delay: BTreeMap::from([(3, slow_host)]),
    };
    let (site, web) = Web::serve(&plan);
    let job = Job::new(&web.seeds)
        .flag("--delay", &format!("{}ms", DELAY.as_millis()))
        .flag("--fields", "title,h1,links")
        .switch("--output-links")
        .switch("--parquet")
        .flag("--checkpoint-every", "200ms");

    let mut done = 0;
    let mut ended = None;
    // when each killed process was surely dead; a process says its number with every request
    let mut deaths = Vec::new();
    while done < kills && ended.is_none() {
        let life = Duration::from_millis(dice.between(LIFE_MS.0, LIFE_MS.1));
        ended = job.start_with(&["--user-agent", &agent(deaths.len())]).kill_after(life);
        deaths.push(site.time());
        done += usize::from(ended.is_none());
    }
    ended.unwrap_or_else(|| job.run()).assert_code(0);

    let records = job.records();
    assert_holds_exactly(&records, &web.reachable);
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);
    assert_rows(&job, &records);
    job.assert_balanced();
    assert_eq!(job.count("/urls/fetched"), web.reachable.len() as u64);
    assert_eq!(job.count("/urls/robots"), web.forbidden.len() as u64);
    assert_eq!(job.count("/urls/pending"), 0);
    assert_eq!(job.count("/politeness/violations"), 0);
    let mut log = site.log();
    log.end_at_death(|exchange| {
        let mut runs = deaths.iter().enumerate();
        let asked_by = exchange
            .headers
            .get("user-agent")
            .map(String::as_str)
            .unwrap_or_default();
        runs.find(|(run, _)| agent(*run) == asked_by).map(|(_, death)| *death)
    });
    assert_polite(&log, &plan);
    // what the job's own files say of it, over all its kills
    let audit = job.command(&["audit", "job"]);
    assert!(audit.status.success(), "{}", audit.text());
    done
}

/// Every HTML page of the archive has one row, and every link one: as many as each page says, and as the report counts.
fn assert_rows(job: &Job, records: &[Record]) {
    let pages = job.rows("pages.jsonl.zst");
    let urls: BTreeSet<&str> = pages.iter().map(|row| row["url"].as_str().unwrap()).collect();
    let answers = records
        .iter()
        .filter(|record| record.is_answer() && !record.is_robots());
    let html = answers.filter(|record| {
        let head = String::from_utf8_lossy(&record.block).to_ascii_lowercase();
        head.split("\r\n\r\n")
            .next()
            .unwrap()
            .contains("content-type: text/html")
    });
    let archived: BTreeSet<&str> = html.map(Record::uri).collect();
    assert_eq!(urls, archived);
    assert_eq!(pages.len(), urls.len(), "a page has two rows");
    let links = job.rows("links.jsonl.zst");
    let mut of_page: BTreeMap<&str, u64> = BTreeMap::new();
    for link in &links {
        *of_page.entry(link["from"].as_str().unwrap()).or_default() += 1;
    }
    for page in &pages {
        let url = page["url"].as_str().unwrap();
        let found = of_page.get(url).copied().unwrap_or(0);
        assert_eq!(page["links"]["found"].as_u64(), Some(found), "{url}");
    }
    let seeds = fs::read_to_string(job.dir().with_file_name("seeds.txt")).unwrap();
    assert_eq!(
        links.len() as u64,
        job.count("/links/found") - seeds.lines().count() as u64
    );
}

fn agent(run: usize) -> String {
    format!("crawler/run-{run}")
}

/// Never two requests of a host at once, never one sooner than its delay after the last answer's end (or abort).
///
/// A request for robots.txt itself is held to the general delay only: the host's own is not known before it.
fn assert_polite(log: &Log, plan: &Plan) {
    for host in 0..plan.hosts {
        assert_eq!(log.in_flight_max(host), 1, "two requests of host {host} at once");
        let own = plan.crawl_delay.get(&host).map_or(DELAY, |own| DELAY.max(*own));
        for gap in log.gaps(host) {
            let least = if gap.later.path == "/robots.txt" { DELAY } else { own };
            let least = i64::try_from(least.saturating_sub(SLACK).as_micros()).unwrap();
            assert!(
                gap.micros >= least,
                "host {host}: {} µs where {least} are due: {gap:?}",
                gap.micros
            );
        }
    }
}
