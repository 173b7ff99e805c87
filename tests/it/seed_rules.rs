//! What single seeds and hosts bring of their own: options behind an address in seeds.txt, and `[[host]]`.

use std::collections::BTreeSet;
use std::fs;

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

/// A tree on every host: each page leads to two below it, and to the other hosts' home pages.
fn tree(hosts: usize) -> Site {
    Site::start(hosts, move |addresses| {
        let homes: Vec<String> = addresses
            .iter()
            .map(|host| format!("<a href='{host}/'>h</a>"))
            .collect();
        let homes = homes.concat();
        move |asked: &Asked| {
            let path = asked.path.trim_end_matches('/');
            if asked.path == "/robots.txt" || path.matches('/').count() > 4 {
                return Answer::not_found();
            }
            Answer::html(format!("<a href='{path}/a/'>a</a> <a href='{path}/b/'>b</a> {homes}"))
        }
    })
}

fn paths(site: &Site, host: usize) -> BTreeSet<String> {
    let start = site.url(host, "");
    let fetched = site.log().fetched();
    let paths = fetched.iter().filter_map(|url| url.strip_prefix(&start));
    paths.filter(|path| *path != "/robots.txt").map(str::to_owned).collect()
}

fn set(paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| (*path).to_owned()).collect()
}

#[test]
fn each_seed_is_crawled_by_its_own_rules() {
    let site = tree(4);
    let seeds = [
        format!("{}  depth=0", site.url(0, "/a/")),
        format!("{} scope=prefix exclude=/b/$ depth=3 # a comment", site.url(1, "/a/")),
        format!("{}\tinclude=/b/ depth=2", site.url(2, "/")),
        site.url(3, "/"),
    ];
    let job = Job::new(&seeds).flag("--delay", "0ms").flag("--max-depth", "1");
    job.run().assert_code(0);
    assert_eq!(paths(&site, 0), set(&["/a/"]));
    assert_eq!(paths(&site, 1), set(&["/a/", "/a/a/", "/a/a/a/", "/a/a/a/a/"]));
    assert_eq!(paths(&site, 2), set(&["/", "/b/", "/b/a/", "/b/b/"]));
    assert_eq!(paths(&site, 3), set(&["/", "/a/", "/b/"]));
    job.assert_balanced();
    let explain = |path: &str, host| {
        let url = site.url(host, path);
        let done = job.command(&["explain", &url, "--seeds", "seeds.txt", "--max-depth", "1"]);
        done.assert_code(0);
        done.stdout
    };
    let inside = explain("/a/x/", 1);
    assert!(
        inside.contains("by the rules of its seed") && inside.contains(&site.url(1, "/a/")),
        "{inside}"
    );
    assert!(explain("/x/", 1).contains("out: "));
    assert!(explain("/a/b/", 1).contains("out: "));
}

#[test]
fn a_seed_stops_at_its_pages_and_goes_on_with_more() {
    let site = tree(2);
    let seeds = |most: usize| format!("{} max-pages={most}\n{}\n", site.url(0, "/"), site.url(1, "/"));
    let job = Job::new(&[seeds(4)]).flag("--delay", "0ms");
    let done = job.run();
    done.assert_code(0);
    done.assert_says("max-pages of a seed");
    assert_eq!(paths(&site, 0).len(), 4);
    let all = paths(&site, 1).len();
    assert!(all > 20, "the other seed is not held up: {all}");
    job.assert_balanced();
    assert!(job.count("/urls/pending") > 0);

    fs::write(job.dir().with_file_name("seeds.txt"), seeds(10)).unwrap();
    job.run().assert_code(0);
    assert_eq!(paths(&site, 0).len(), 10);
    fs::write(job.dir().with_file_name("seeds.txt"), seeds(1_000)).unwrap();
    job.run().assert_code(0);
    assert_eq!(paths(&site, 0).len(), all);
    assert_eq!(job.count("/urls/pending"), 0);
    assert_eq!(job.report()["state"], "finished");
    job.assert_balanced();
}

#[test]
fn a_seed_and_a_host_have_their_own_pause_and_budget() {
    let site = tree(3);
    let seeds = [
        format!("{} delay=120ms depth=2", site.url(0, "/")),
        format!("{} depth=2", site.url(1, "/")),
        format!("{} depth=9", site.url(2, "/")),
    ];
    let key = |host| site.url(host, "").trim_start_matches("http://").to_owned();
    let job = Job::new(&seeds)
        .flag("--delay", "1ms")
        .flag("--config", "own.toml")
        .flag("--delay-factor", "0");
    let text = format!(
        "[[host]]\nhost = \"{}\"\ndelay = \"90ms\"\n\n[[host]]\nhost = \"{}\"\nmax_pages = 5\n",
        key(1),
        key(2)
    );
    fs::write(job.dir().with_file_name("own.toml"), text).unwrap();
    let done = job.run();
    done.assert_code(0);
    done.assert_says("max-pages-per-host");
    let least = |host| {
        let gaps = site.log().gaps(host);
        gaps.iter().map(|gap| gap.micros).min().unwrap()
    };
    assert!(least(0) >= 120_000, "{}", least(0));
    assert!((90_000..120_000).contains(&least(1)), "{}", least(1));
    assert_eq!(paths(&site, 0).len(), 7);
    assert_eq!(paths(&site, 2).len(), 5);
    let kept = fs::read_to_string(job.dir().join("config.toml")).unwrap();
    assert!(kept.contains("[[host]]") && kept.contains("max_pages = 5"), "{kept}");
    let url = site.url(1, "/x");
    let done = job.command(&["explain", &url, "--config", "own.toml", "--seeds", "seeds.txt"]);
    done.assert_says("90ms between requests, by [[host]]");
}

#[test]
fn a_wrong_option_ends_the_run_before_it_begins() {
    let job = Job::new(&["http://127.0.0.9:1/", "http://127.0.0.9:1/x dept=2 delay=soon"]);
    let done = job.run();
    done.assert_code(2);
    done.assert_says("seeds.txt:2: dept: unknown option of a seed; did you mean depth?");
    done.assert_says("seeds.txt:2: delay: expected a duration");
    assert!(!job.dir().exists(), "no job is made");
}
