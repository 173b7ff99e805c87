//! Sitemaps, with the real binary: where they are found, what is taken from them, and what never is.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::harness::Job;
use crate::reader::{LogLine, assert_holds_exactly};
use crate::site::{Answer, Asked, Site};

fn xml(body: impl Into<Vec<u8>>) -> Answer {
    Answer::new(200, "application/xml", body)
}

fn urlset(locs: &[&str]) -> String {
    let entries: Vec<String> = locs.iter().map(|loc| format!("<url><loc>{loc}</loc></url>")).collect();
    format!("<urlset>{}</urlset>", entries.concat())
}

fn index(locs: &[&str]) -> String {
    let entries: Vec<String> = locs
        .iter()
        .map(|loc| format!("<sitemap><loc>{loc}</loc></sitemap>"))
        .collect();
    format!("<sitemapindex>{}</sitemapindex>", entries.concat())
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn urls(site: &Site, host: usize, paths: &[&str]) -> BTreeSet<String> {
    paths.iter().map(|path| site.url(host, path)).collect()
}

fn line(job: &Job, path: &str) -> LogLine {
    let lines = job.log();
    let found = lines.into_iter().find(|line| line.uri.ends_with(path));
    found.unwrap_or_else(|| panic!("no line of {path}"))
}

/// Two hosts. The robots.txt of the first names sitemaps of every form, good, dead and wrong, one of them on the second.
fn site() -> Site {
    Site::start(2, |origins| {
        let [own, other] = [origins[0].clone(), origins[1].clone()];
        move |asked: &Asked| {
            let foreign = asked.host == 1;
            match asked.path.as_str() {
                "/robots.txt" if foreign => Answer::text(format!("Sitemap: {other}/unasked.xml\n")),
                "/foreign.xml" if foreign => xml(urlset(&[&format!("{own}/from-foreign"), &format!("{other}/x")])),
                _ if foreign => Answer::not_found(),
                "/robots.txt" => Answer::text(format!(
                    "User-agent: *\nDisallow: /forbidden\nSitemap: {own}/index.xml\nSitemap: /packed.xml.gz\n\
                     Sitemap: {own}/list.txt\nSitemap: {own}/feed\nSitemap: {own}/dead.xml\nSitemap: {own}/error.xml\n\
                     Sitemap: {own}/moved.xml\nSitemap: {other}/foreign.xml\n"
                )),
                "/index.xml" => xml(index(&[&format!("{own}/index.xml"), "/inner.xml", "/sitemap.xml"])),
                "/inner.xml" => xml(index(&["/index.xml", "/deep.xml"])),
                "/deep.xml" => xml(urlset(&["/deep", "/forbidden"])),
                "/sitemap.xml" => Answer::html(urlset(&["/usual"])),
                "/packed.xml.gz" => Answer::new(200, "application/x-gzip", packed(urlset(&["/packed"]).as_bytes())),
                "/list.txt" => Answer::text(format!("{own}/listed\n{own}/listed?2\n")),
                "/feed" => Answer::new(
                    200,
                    "application/rss+xml",
                    "<rss><channel><link>/home</link><item><link>/item</link><enclosure url='/item.mp3'/></item></channel></rss>",
                ),
                "/error.xml" => Answer::html("<html><body><a href='/wrong'>not a sitemap</a></body></html>"),
                "/moved.xml" => Answer::redirect(301, "/target.xml"),
                "/target.xml" => xml(urlset(&["/from-moved"])),
                "/" => Answer::html("<a href='/linked'>x</a>"),
                "/dead.xml" | "/wrong" => Answer::not_found(),
                _ => Answer::html("a page"),
            }
        }
    })
}

const SITEMAPS: [&str; 10] = [
    "/index.xml",
    "/inner.xml",
    "/deep.xml",
    "/sitemap.xml",
    "/packed.xml.gz",
    "/list.txt",
    "/feed",
    "/dead.xml",
    "/error.xml",
    "/moved.xml",
];
const LISTED: [&str; 9] = [
    "/target.xml",
    "/deep",
    "/usual",
    "/packed",
    "/listed",
    "/listed?2",
    "/item",
    "/item.mp3",
    "/from-moved",
];

#[test]
fn everything_that_sitemaps_list_is_fetched_once_and_archived() {
    let site = site();
    let job = Job::new(&[site.url(0, "/")]).flag("--sitemaps", "yes");
    job.run().assert_code(0);
    let mut expected = urls(&site, 0, &SITEMAPS);
    expected.extend(urls(&site, 0, &LISTED));
    expected.extend(urls(&site, 0, &["/", "/linked", "/from-foreign"]));
    expected.extend(urls(&site, 1, &["/foreign.xml"]));
    let log = site.log();
    assert_eq!(log.fetched(), expected);
    assert_eq!(log.duplicates(), Vec::<String>::new());
    assert_holds_exactly(&job.records(), &expected);
    job.assert_balanced();
    assert_eq!(job.count("/urls/robots"), 1, "/forbidden");
    for (path, hops, note) in [
        ("/index.xml", "M", "sitemap:index"),
        ("/inner.xml", "MM", "sitemap:index"),
        ("/deep.xml", "MMM", "sitemap:urlset"),
        ("/list.txt", "M", "sitemap:text"),
        ("/feed", "M", "sitemap:rss"),
        ("/error.xml", "M", "sitemap:none"),
        ("/target.xml", "MR", "sitemap:urlset"),
    ] {
        let line = line(&job, path);
        assert_eq!(line.hops, hops, "{path}");
        assert!(
            line.annotations.split(',').any(|found| found == note),
            "{path}: {:?}",
            line.annotations
        );
    }
    assert_eq!(line(&job, "/deep").hops, "MMML");
}

#[test]
fn sitemaps_are_not_read_unless_asked_for_but_for_a_seed_that_is_one() {
    let site = site();
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    assert_eq!(site.log().fetched(), urls(&site, 0, &["/", "/linked"]));

    let site = self::site();
    let seeds = [
        site.url(0, "/inner.xml"),
        site.url(0, "/list.txt"),
        site.url(0, "/packed.xml.gz"),
    ];
    let job = Job::new(&seeds);
    job.run().assert_code(0);
    let sitemaps = [
        "/inner.xml",
        "/index.xml",
        "/deep.xml",
        "/sitemap.xml",
        "/list.txt",
        "/packed.xml.gz",
    ];
    let mut expected = urls(&site, 0, &sitemaps);
    expected.extend(urls(&site, 0, &["/deep", "/usual", "/listed", "/listed?2", "/packed"]));
    assert_eq!(site.log().fetched(), expected);
    job.assert_balanced();
}

#[test]
fn sitemaps_only_leaves_the_links_of_pages() {
    let site = Site::table(vec![
        ("/", Answer::html("<a href='/linked'>x</a><img src='/seed.png'>")),
        ("/sitemap.xml", xml(urlset(&["/a"]))),
        ("/a", Answer::html("<a href='/linked'>x</a><img src='/a.png'>")),
        ("/linked", Answer::html("no")),
    ]);
    let job = Job::new(&[site.url(0, "/")]).switch("--sitemaps-only");
    job.run().assert_code(0);
    assert_eq!(
        site.log().fetched(),
        urls(&site, 0, &["/", "/seed.png", "/sitemap.xml", "/a", "/a.png"])
    );
    job.assert_balanced();
}

#[test]
fn indexes_in_indexes_end() {
    // /i0.xml lists /i1.xml and /p0, and so on
    let site = Site::start(1, |origins| {
        let own = origins[0].clone();
        move |asked: &Asked| {
            let number = asked.path.strip_prefix("/i").and_then(|rest| rest.strip_suffix(".xml"));
            match (asked.path.as_str(), number.and_then(|n| n.parse::<u32>().ok())) {
                ("/robots.txt", _) => Answer::text(format!("Sitemap: {own}/i0.xml")),
                (_, Some(n)) => xml(format!(
                    "<sitemapindex><sitemap><loc>/i{}.xml</loc></sitemap><url><loc>/p{n}</loc></url></sitemapindex>",
                    n + 1
                )),
                ("/sitemap.xml", _) => Answer::not_found(),
                _ => Answer::html("a page"),
            }
        }
    });
    let job = Job::new(&[site.url(0, "/")]).flag("--sitemaps", "yes");
    job.run().assert_code(0);
    let expected = [
        "/",
        "/sitemap.xml",
        "/i0.xml",
        "/i1.xml",
        "/i2.xml",
        "/p0",
        "/p1",
        "/p2",
    ];
    assert_eq!(site.log().fetched(), urls(&site, 0, &expected));
    assert_eq!(job.count("/links/trap"), 1);
    job.assert_balanced();
}

#[test]
fn the_newest_pages_come_first_and_the_log_keeps_their_dates() {
    let mut text = String::from("<urlset>");
    for (path, date) in [
        ("/old", "2001-01-01"),
        ("/none", ""),
        ("/new", "2024-06-01T12:00:00Z"),
        ("/middle", "2010"),
    ] {
        let _ = write!(text, "<url><loc>{path}</loc><lastmod>{date}</lastmod></url>");
    }
    text.push_str("</urlset>");
    let page = || Answer::html("a page");
    let site = Site::table(vec![
        ("/", page()),
        ("/sitemap.xml", xml(text)),
        ("/old", page()),
        ("/none", page()),
        ("/new", page()),
        ("/middle", page()),
    ]);
    let job = Job::new(&[site.url(0, "/")]).flag("--sitemaps", "yes");
    job.run().assert_code(0);
    let order: Vec<String> = site.log().of(0).iter().map(|exchange| exchange.path.clone()).collect();
    assert_eq!(
        order,
        ["/robots.txt", "/", "/sitemap.xml", "/new", "/middle", "/old", "/none"]
    );
    assert_eq!(line(&job, "/new").extra["lastmod"], "2024-06-01T12:00:00Z");
    assert!(line(&job, "/none").extra.get("lastmod").is_none());
}

#[test]
fn exclude_and_depth_hold_for_sitemaps_and_include_for_what_they_list() {
    let pages = || {
        Site::table(vec![
            ("/docs/", Answer::html("x")),
            ("/sitemap.xml", xml(urlset(&["/docs/a", "/other"]))),
            ("/docs/a", Answer::html("x")),
            ("/other", Answer::html("x")),
        ])
    };
    for (flag, value, expected) in [
        ("--include", "/docs/", &["/docs/", "/sitemap.xml", "/docs/a"][..]),
        ("--scope", "prefix", &["/docs/", "/sitemap.xml", "/docs/a"]),
        ("--exclude", r"\.xml$", &["/docs/"]),
        ("--max-depth", "0", &["/docs/"]),
    ] {
        let site = pages();
        let job = Job::new(&[site.url(0, "/docs/")])
            .flag("--sitemaps", "yes")
            .flag(flag, value);
        job.run().assert_code(0);
        assert_eq!(site.log().fetched(), urls(&site, 0, expected), "{flag} {value}");
        job.assert_balanced();
    }
}

#[test]
fn a_seed_that_moved_to_another_host_has_its_sitemap_there() {
    let site = Site::start(2, |origins| {
        let new = origins[1].clone();
        move |asked: &Asked| match (asked.host, asked.path.as_str()) {
            (0, "/") => Answer::redirect(301, &format!("{new}/")),
            (1, "/sitemap.xml") => xml(urlset(&["/a"])),
            (1, "/" | "/a") => Answer::html("x"),
            _ => Answer::not_found(),
        }
    });
    let job = Job::new(&[site.url(0, "/")]).flag("--sitemaps", "yes");
    job.run().assert_code(0);
    let mut expected = urls(&site, 0, &["/", "/sitemap.xml"]);
    expected.extend(urls(&site, 1, &["/", "/sitemap.xml", "/a"]));
    assert_eq!(site.log().fetched(), expected);
    job.assert_balanced();
}

/// The job's share is counted over its runs, and what is left is counted too.
#[test]
fn the_share_of_sitemaps_is_kept_over_runs() {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/robots.txt" => Answer::text("Sitemap: /one.xml\nSitemap: /two.xml\n"),
            "/one.xml" => xml(urlset(&["/", "/a", "/b", "/a"])),
            "/two.xml" => xml(urlset(&["/a", "/c", "/d", "/e"])),
            "/sitemap.xml" => Answer::not_found(),
            _ => Answer::html("x"),
        }
    });
    let job = Job::new(&[site.url(0, "/")])
        .flag("--sitemaps", "yes")
        .flag("--max-sitemap-urls", "3");
    job.start_with(&["--max-pages", "3"]).wait().assert_code(0);
    job.run().assert_code(0);
    assert_eq!(
        site.log().fetched(),
        urls(
            &site,
            0,
            &["/", "/sitemap.xml", "/one.xml", "/two.xml", "/a", "/b", "/c"]
        )
    );
    // 1 seed, its sitemap, 2 of robots.txt, 4 entries, 2 of 4 entries
    assert_eq!(job.count("/links/found"), 10);
    assert_eq!(job.count("/links_dropped"), 2, "counted over both runs");
    job.assert_balanced();
    let said = std::fs::read_to_string(job.dir().join("logs/crawler.log")).unwrap();
    assert!(said.contains("--max-sitemap-urls is reached"), "{said}");
}

#[test]
fn fifty_thousand_entries_of_a_file_count_and_a_fifty_megabyte_file_takes_little_memory() {
    const ENTRIES: usize = 50_001;
    let mut text = String::from("<urlset>");
    for n in 0..ENTRIES {
        // together a little less than what is read of one file
        let _ = write!(
            text,
            "<url><loc>http://elsewhere.test/{n}</loc><!-- {:0>960} --></url>",
            ""
        );
    }
    assert!(text.len() > 48 << 20 && text.len() < 50 << 20, "{}", text.len());
    let file = packed(text.as_bytes());
    drop(text);
    let site = Site::table(vec![("/", Answer::html("x")), ("/sitemap.xml", xml(file))]);
    let job = Job::new(&[site.url(0, "/")])
        .flag("--sitemaps", "yes")
        .flag("--capacity", "1000000");
    job.run().assert_code(0);
    let extra = line(&job, "/sitemap.xml").extra;
    assert_eq!(
        (&extra["sitemapEntries"], &extra["sitemapLeft"]),
        (&50_000.into(), &1.into())
    );
    assert_eq!(job.count("/links/found"), 50_002);
    assert_eq!(job.count("/links/out_of_scope"), 50_000);
    assert_eq!(job.count("/sitemap_entries_dropped"), 1);
    let said = std::fs::read_to_string(job.dir().join("logs/crawler.log")).unwrap();
    assert_eq!(
        said.matches("a sitemap has more than 50000 entries").count(),
        1,
        "{said}"
    );
    job.assert_balanced();
    let peak = job.count("/peak_rss_bytes");
    assert!(peak < 80 << 20, "{} MiB", peak >> 20);
}

/// What a crawl of one page and a sitemap of this text has resident at most, bytes. All entries are in scope.
fn peak_of(text: String, seed: bool, most: &str) -> (Job, u64) {
    let site = Site::table(vec![("/", Answer::html("x")), ("/sitemap.xml", xml(text))]);
    let start = site.url(0, if seed { "/sitemap.xml" } else { "/" });
    let job = Job::new(&[start])
        .flag("--sitemaps", if seed { "no" } else { "yes" })
        .flag("--scope", "any")
        .flag("--max-pages", most)
        .flag("--capacity", "1000000")
        .flag("--fp-rate", "0.000001");
    job.run().assert_code(0);
    job.assert_balanced();
    let peak = job.count("/peak_rss_bytes");
    (job, peak)
}

fn entries(count: usize, padding: usize) -> String {
    let padding = "x".repeat(padding);
    let mut text = String::from("<urlset>");
    for n in 0..count {
        let _ = write!(text, "<url><loc>http://elsewhere.test/{n}</loc><!--{padding}--></url>");
    }
    text + "</urlset>"
}

#[test]
fn the_text_of_a_large_sitemap_is_never_held() {
    const MIB: u64 = 1 << 20;
    let (_, idle) = peak_of(entries(5, 10), true, "1");
    let (job, few) = peak_of(entries(50, 1_000_000), true, "1");
    assert_eq!(job.count("/links/admitted"), 51);
    assert!(few < idle + 8 * MIB, "{} and {} MiB", few / MIB, idle / MIB);
    // its own addresses, as links and as rows of the queue, are there for a moment
    let (job, many) = peak_of(entries(50_000, 960), false, "2");
    assert_eq!(job.count("/links/admitted"), 50_002);
    assert!(many < idle + 40 * MIB, "{} and {} MiB", many / MIB, idle / MIB);
    println!(
        "{} MiB idle, {} with few entries, {} with many",
        idle / MIB,
        few / MIB,
        many / MIB
    );
}

#[test]
fn feeds_that_are_met_on_the_way_lead_on() {
    let feed = |kind: &str, body: &str| Answer::new(200, kind, body);
    let page = || Answer::html("x");
    let site = Site::table(vec![
        (
            "/",
            Answer::html(
                "<link rel=alternate href=/rss><link rel=alternate href=/atom><a href=/json>x</a><a href=/s.xml>y</a>",
            ),
        ),
        (
            "/rss",
            feed(
                "text/xml",
                "<rss><channel><link>/home</link><item><link>/r1</link><enclosure url='/r1.mp3'/></item></channel></rss>",
            ),
        ),
        (
            "/atom",
            feed(
                "application/atom+xml",
                "<feed xml:base='/sub/'><entry><link href='a1'/></entry></feed>",
            ),
        ),
        ("/json", feed("application/feed+json", r#"{"items": [{"url": "/j1"}]}"#)),
        ("/s.xml", xml(urlset(&["/not-asked-for"]))),
        ("/home", page()),
        ("/r1", page()),
        ("/r1.mp3", page()),
        ("/sub/a1", page()),
        ("/j1", page()),
    ]);
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let expected = [
        "/", "/rss", "/atom", "/json", "/s.xml", "/home", "/r1", "/r1.mp3", "/sub/a1", "/j1",
    ];
    assert_eq!(site.log().fetched(), urls(&site, 0, &expected));
    job.assert_balanced();
}
