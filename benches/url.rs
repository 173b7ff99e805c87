//! What a link costs from its text to its identity, beside `Url::join` alone: `cargo bench --bench url`.
//!
//! The links are written in the proportions of news and shop pages: most on the page's own host, by path or in full;
//! some to other hosts; some with what only the parser can settle.

#![expect(clippy::expect_used, reason = "a bench has nobody to report to")]

use crawler::robots::Robots;
use crawler::url::{Base, CrawlUrl, Identity, Rules};
use divan::{Bencher, black_box, counter::ItemsCount};

const PAGE: &str = "https://www.example.com/news/2026/11/some-long-headline-of-the-day-4711.html";

fn main() {
    divan::main();
}

fn links() -> Vec<String> {
    let mut links = Vec::new();
    for n in 0..25 {
        links.push(format!("/news/2026/11/another-headline-that-goes-on-{n}.html"));
        links.push(format!(
            "https://www.example.com/shop/category-{n}/product-{n}?color=red&size={n}"
        ));
        links.push(format!("/static/img/{n}/picture-{n}.jpg?w=640&h=480&fit=crop"));
        links.push(format!("story-{n}.html#comments"));
    }
    for n in 0..10 {
        links.push(format!(
            "https://social.example.net/share?u=https%3A%2F%2Fwww.example.com%2Fnews%2F{n}"
        ));
        links.push(format!("//cdn.example.org/assets/js/bundle.{n}.min.js"));
        links.push(format!("../../archive/{n}/"));
        links.push(format!("/wiki/M%c3%bcnchen_{n}"));
    }
    links.extend((0..5).flat_map(|n| {
        [
            format!("#section-{n}"),
            format!("/search?q=a b {n}"),
            "javascript:void(0)".to_owned(),
        ]
    }));
    links
}

#[divan::bench]
fn url_join_alone(bencher: Bencher) {
    let (links, base) = (links(), url::Url::parse(PAGE).expect("a good address"));
    bencher.counter(ItemsCount::new(links.len())).bench(|| {
        for link in &links {
            let _ = black_box(base.join(black_box(link)));
        }
    });
}

#[divan::bench]
fn crawl_url_join(bencher: Bencher) {
    let identity = Identity::default();
    let page = CrawlUrl::parse(PAGE, &identity).expect("a good address");
    let (links, base) = (links(), Base::of(&page, None));
    bencher.counter(ItemsCount::new(links.len())).bench(|| {
        for link in &links {
            let _ = black_box(CrawlUrl::join(&base, black_box(link), &identity));
        }
    });
}

/// With every optional rule but `drop_params`.
#[divan::bench]
fn crawl_url_join_all_rules(bencher: Bencher) {
    let rules = Rules {
        strip_session_ids: true,
        strip_tracking: true,
        sort_query: true,
        drop_empty_query: true,
        fold_www: true,
        fold_scheme: true,
        fold_path_case: true,
        fold_trailing_slash: true,
        fold_index: true,
        keep_hashbang: true,
        ..Rules::default()
    };
    let identity = Identity::with(rules);
    let page = CrawlUrl::parse(PAGE, &identity).expect("a good address");
    let (links, base) = (links(), Base::of(&page, None));
    bencher.counter(ItemsCount::new(links.len())).bench(|| {
        for link in &links {
            let _ = black_box(CrawlUrl::join(&base, black_box(link), &identity));
        }
    });
}

#[divan::bench]
fn crawl_url_parse(bencher: Bencher) {
    let identity = Identity::default();
    bencher.bench(|| CrawlUrl::parse(black_box(PAGE), &identity));
}

/// 26 KB, a large robots.txt.
#[divan::bench]
fn robots_parse(bencher: Bencher) {
    let file = robots_txt();
    bencher.bench(|| Robots::parse(black_box(&file), "crawler"));
}

#[divan::bench]
fn robots_allows(bencher: Bencher) {
    let robots = Robots::parse(&robots_txt(), "crawler");
    bencher.bench(|| {
        robots.allows(black_box(
            "/news/2026/11/some-long-headline-of-the-day-4711.html?page=2",
        ))
    });
}

fn robots_txt() -> Vec<u8> {
    let rules = (0..700).map(|n| match n % 5 {
        0 => format!("Disallow: /*?sort={n}&filter=\n"),
        1 => format!("Allow: /shop/category-{n}/*.html$\n"),
        _ => format!("Disallow: /private/folder-{n}/sub/folder\n"),
    });
    format!("User-agent: *\n{}", rules.collect::<String>()).into_bytes()
}
