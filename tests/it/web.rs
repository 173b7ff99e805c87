//! Random but seeded webs, with the set of addresses a crawler must find in them.
//!
//! A web has several hosts of pages that link within and across hosts, redirects, missing pages, images and styles, a
//! robots.txt that forbids `/private/`, islands nobody links to, and payloads that occur more than once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crate::site::{Answer, Asked, Site};

/// Random numbers from a seed (SplitMix64): the same on every machine.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number in `low..high`.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(len).unwrap()).unwrap()
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}

/// What kind of web to grow.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) hosts: usize,
    /// HTML pages over all hosts; images, redirects and the rest come on top.
    pub(crate) pages: usize,
    /// Shortest and longest wait of the server before an answer, ms.
    pub(crate) answer_ms: (u64, u64),
    /// Crawl-delay in the robots.txt of a host.
    pub(crate) crawl_delay: BTreeMap<usize, Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Page,
    Redirect,
    Missing,
    Image,
    Style,
    Forbidden,
}

#[derive(Debug)]
struct Node {
    kind: Kind,
    host: usize,
    path: String,
    edges: Vec<usize>,
}

/// A grown web.
#[derive(Debug)]
pub(crate) struct Web {
    answers: BTreeMap<(usize, String), Answer>,
    /// The home page of each host.
    pub(crate) seeds: Vec<String>,
    /// What a crawl of all hosts must fetch once each, robots.txt aside.
    pub(crate) reachable: BTreeSet<String>,
    /// What is linked but forbidden by robots.txt.
    pub(crate) forbidden: BTreeSet<String>,
    /// `--no-robots` reaches this.
    pub(crate) reachable_without_robots: BTreeSet<String>,
}

impl Web {
    /// Grows the web and serves it.
    pub(crate) fn serve(plan: &Plan) -> (Site, Arc<Web>) {
        let mut grown = None;
        let site = Site::start(plan.hosts, |origins| {
            let web = Arc::new(Self::grow(plan, origins));
            grown = Some(Arc::clone(&web));
            move |asked: &Asked| web.answer(asked)
        });
        (site, grown.unwrap())
    }

    fn answer(&self, asked: &Asked) -> Answer {
        let key = (asked.host, asked.path.clone());
        self.answers.get(&key).cloned().unwrap_or_else(Answer::not_found)
    }

    fn grow(plan: &Plan, origins: &[String]) -> Self {
        let mut dice = Dice::new(plan.seed);
        let nodes = graph(plan, &mut dice);
        let url = |node: &Node| format!("{}{}", origins[node.host], node.path);
        let mut answers = BTreeMap::new();
        for (number, node) in nodes.iter().enumerate() {
            let (low, high) = plan.answer_ms;
            let delay = Duration::from_millis(dice.between(low, high + 1));
            let answer = write_node(&nodes, number, origins, &mut dice).after(delay);
            answers.insert((node.host, node.path.clone()), answer);
        }
        for host in 0..plan.hosts {
            let mut robots = "User-agent: *\nDisallow: /private/\n".to_owned();
            if let Some(delay) = plan.crawl_delay.get(&host) {
                writeln!(robots, "Crawl-delay: {}", delay.as_secs_f64()).unwrap();
            }
            answers.insert((host, "/robots.txt".to_owned()), Answer::text(robots));
        }
        let walk = |through: bool| -> BTreeSet<usize> { reach(&nodes, plan.hosts, through) };
        let obedient = walk(false);
        let all = walk(true);
        let urls = |set: &BTreeSet<usize>| set.iter().map(|number| url(&nodes[*number])).collect();
        let linked: BTreeSet<usize> = obedient
            .iter()
            .flat_map(|number| nodes[*number].edges.clone())
            .collect();
        let forbidden = linked
            .into_iter()
            .filter(|number| nodes[*number].kind == Kind::Forbidden)
            .collect();
        Self {
            answers,
            seeds: origins.iter().map(|origin| format!("{origin}/")).collect(),
            reachable: urls(&obedient),
            forbidden: urls(&forbidden),
            reachable_without_robots: urls(&all),
        }
    }
}

/// Nodes reachable from the home pages (the first `hosts` nodes).
fn reach(nodes: &[Node], hosts: usize, through_forbidden: bool) -> BTreeSet<usize> {
    let mut found: BTreeSet<usize> = (0..hosts).collect();
    let mut queue: Vec<usize> = found.iter().copied().collect();
    while let Some(number) = queue.pop() {
        for next in &nodes[number].edges {
            let open = through_forbidden || nodes[*next].kind != Kind::Forbidden;
            if open && found.insert(*next) {
                queue.push(*next);
            }
        }
    }
    found
}

fn graph(plan: &Plan, dice: &mut Dice) -> Vec<Node> {
    let mut nodes: Vec<Node> = (0..plan.hosts)
        .map(|host| Node {
            kind: Kind::Page,
            host,
            path: "/".to_owned(),
            edges: Vec::new(),
        })
        .collect();
    let mut pages: Vec<usize> = (0..plan.hosts).collect();
    while pages.len() < plan.pages {
        let parent = pages[dice.index(pages.len())];
        let page = add(&mut nodes, Kind::Page, plan, dice);
        // one page in 16 is an island: it links out, nobody links in
        if !dice.one_in(16) {
            let through = if dice.one_in(8) {
                add(&mut nodes, Kind::Redirect, plan, dice)
            } else {
                page
            };
            nodes[parent].edges.push(through);
            if through != page {
                nodes[through].edges.push(page);
            }
            pages.push(page);
        }
        for _ in 0..dice.between(0, 5) {
            let to = pages[dice.index(pages.len())];
            nodes[page].edges.push(to);
        }
        if dice.one_in(5) {
            let kind = [Kind::Missing, Kind::Image, Kind::Style, Kind::Forbidden][dice.index(4)];
            let extra = add(&mut nodes, kind, plan, dice);
            nodes[page].edges.push(extra);
            if kind == Kind::Style {
                let image = add(&mut nodes, Kind::Image, plan, dice);
                nodes[extra].edges.push(image);
            }
        }
    }
    nodes
}

fn add(nodes: &mut Vec<Node>, kind: Kind, plan: &Plan, dice: &mut Dice) -> usize {
    let number = nodes.len();
    let folder = dice.between(0, 4);
    let path = match kind {
        Kind::Page if dice.one_in(6) => format!("/d{folder}/page.php?id={number}"),
        Kind::Page => format!("/d{folder}/p{number}.html"),
        Kind::Redirect => format!("/d{folder}/moved{number}"),
        Kind::Missing => format!("/d{folder}/gone{number}.html"),
        Kind::Image => format!("/d{folder}/i{number}.png"),
        Kind::Style => format!("/d{folder}/s{number}.css"),
        Kind::Forbidden => format!("/private/f{number}.html"),
    };
    nodes.push(Node {
        kind,
        host: dice.index(plan.hosts),
        path,
        edges: Vec::new(),
    });
    number
}

fn write_node(nodes: &[Node], number: usize, origins: &[String], dice: &mut Dice) -> Answer {
    let node = &nodes[number];
    let target = |edge: usize, dice: &mut Dice| address(node, &nodes[edge], origins, dice);
    match node.kind {
        Kind::Page => {
            let mut html = format!("<!doctype html><title>page {number}</title><p>This is page {number}.\n");
            for edge in &node.edges {
                let to = target(*edge, dice);
                match nodes[*edge].kind {
                    Kind::Image => writeln!(html, "<img alt=x src='{to}'>").unwrap(),
                    Kind::Style => writeln!(html, "<link href=\"{to}\" rel=stylesheet>").unwrap(),
                    _ if dice.one_in(4) => writeln!(html, "<a href=\"{to}#part{number}\">on</a>").unwrap(),
                    _ => writeln!(html, "<a href={to}>on</a>").unwrap(),
                }
            }
            Answer::html(html)
        }
        Kind::Redirect => {
            let status = [301, 302, 303, 307, 308][dice.index(5)];
            Answer::redirect(status, &target(node.edges[0], dice))
        }
        Kind::Missing => Answer::new(404, "text/html", format!("<p>nothing at {}", node.path)),
        // few payloads for many images, so that some occur again
        Kind::Image => Answer::new(200, "image/png", vec![b'i'; 40 + dice.index(3)]),
        Kind::Style => Answer::new(
            200,
            "text/css",
            format!(
                "/* {number} */ p {{ background: url({}) }}",
                target(node.edges[0], dice)
            ),
        ),
        Kind::Forbidden => Answer::html(format!("<p>private {number}")),
    }
}

/// One of the ways to write a link from one node to another.
fn address(from: &Node, to: &Node, origins: &[String], dice: &mut Dice) -> String {
    if from.host != to.host {
        return format!("{}{}", origins[to.host], to.path);
    }
    // the home pages lie at the root, the others one folder down
    let up = if from.path == "/" { "." } else { ".." };
    match dice.index(4) {
        0 => format!("{}{}", origins[to.host], to.path),
        1 => format!("{up}{}", to.path),
        2 => format!("{up}/./x/..{}", to.path),
        _ => to.path.clone(),
    }
}

mod tests {
    use super::*;

    #[test]
    fn the_same_seed_grows_the_same_web_with_all_kinds_of_things() {
        let plan = Plan {
            seed: 7,
            hosts: 3,
            pages: 200,
            answer_ms: (0, 0),
            crawl_delay: BTreeMap::new(),
        };
        let origins: Vec<String> = (0..3).map(|host| format!("http://h{host}.test")).collect();
        let (one, two) = (Web::grow(&plan, &origins), Web::grow(&plan, &origins));
        assert_eq!(one.reachable, two.reachable);
        assert!(one.reachable.len() >= 200, "{}", one.reachable.len());
        assert!(one.forbidden.len() >= 2);
        assert!(one.forbidden.is_disjoint(&one.reachable));
        assert!(one.forbidden.is_subset(&one.reachable_without_robots));
        for part in ["moved", "gone", ".png", ".css", "?id="] {
            assert!(one.reachable.iter().any(|url| url.contains(part)), "no {part}");
        }
        // islands are served but not reachable
        assert!(one.answers.len() > one.reachable_without_robots.len() + 3);
        let other = Web::grow(&Plan { seed: 8, ..plan }, &origins);
        assert_ne!(one.reachable, other.reachable);
    }
}
