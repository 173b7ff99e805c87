//! The demo's web: every page is a pure function of its host and path, so nothing is stored and each run serves the same.
//!
//! A host has a home page, sections that list its pages, pages that link on and across to the next host, images and a
//! style sheet (the same bytes on every host), two print versions with one payload, redirects, a dead link, a
//! sitemap.xml with a page to which nothing else leads, a robots.txt that forbids `/private/`, and on the first host a
//! calendar without end.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

/// Pages that one section lists.
const PAGES_A_SECTION: usize = 10;
/// Different images; the hosts share them, so most are found again under another address.
const IMAGES: usize = 4;
/// The style sheet of every host.
const STYLE: &str = "body { font-family: sans-serif; background: url(/img/paper.gif) } a { color: #0645ad }\n";

/// What a page answers and what it links to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    /// HTTP status.
    pub(super) status: u16,
    /// Media type.
    pub(super) mime: &'static str,
    /// The `Location` of a redirect.
    pub(super) location: Option<String>,
    /// The payload.
    pub(super) body: Vec<u8>,
    /// Where its links lead: host and path.
    links: Vec<(usize, String)>,
}

impl Page {
    fn html(title: &str, body: &str, links: Vec<(usize, String)>) -> Self {
        let text = format!(
            "<!doctype html>\n<html lang=en><head><meta charset=utf-8><title>{title}</title>\
             <link rel=stylesheet href=/style.css></head>\n<body><h1>{title}</h1>\n{body}</body></html>\n"
        );
        let mut links = links;
        links.push((SAME_HOST, "/style.css".to_owned()));
        Self {
            status: 200,
            mime: "text/html; charset=utf-8",
            location: None,
            body: text.into_bytes(),
            links,
        }
    }

    fn plain(mime: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: 200,
            mime,
            location: None,
            body: body.into(),
            links: Vec::new(),
        }
    }

    fn redirect(to: &str) -> Self {
        let links = vec![(SAME_HOST, to.to_owned())];
        Self {
            status: 301,
            mime: "text/html",
            location: Some(to.to_owned()),
            body: Vec::new(),
            links,
        }
    }

    fn missing() -> Self {
        Self {
            status: 404,
            ..Self::plain("text/html; charset=utf-8", "<!doctype html><title>Not here</title>\n")
        }
    }
}

/// Stands in a list of links for the page's own host.
const SAME_HOST: usize = usize::MAX;

/// The demo's web.
#[derive(Debug, Clone)]
pub(super) struct DemoWeb {
    hosts: usize,
    pages: usize,
    port: u16,
}

impl DemoWeb {
    /// `hosts` hosts of `pages` pages each, all served on one port.
    #[must_use]
    pub(super) fn new(hosts: usize, pages: usize, port: u16) -> Self {
        Self { hosts, pages, port }
    }

    /// The name of a host: `site1.demo` is number 0.
    #[must_use]
    pub(super) fn name(host: usize) -> String {
        format!("site{}.demo", host + 1)
    }

    /// `http://site1.demo:8080/path`
    #[must_use]
    pub(super) fn url(&self, host: usize, path: &str) -> String {
        format!("http://{}:{}{path}", Self::name(host), self.port)
    }

    /// The number of the host that a `Host` header names.
    #[must_use]
    pub(super) fn host_of(&self, header: &str) -> Option<usize> {
        (0..self.hosts).find(|host| header == format!("{}:{}", Self::name(*host), self.port))
    }

    /// What a host answers for a path.
    #[must_use]
    pub(super) fn page(&self, host: usize, path: &str) -> Page {
        let name = Self::name(host);
        match path {
            "/" => self.home(host),
            "/robots.txt" => Page::plain("text/plain", self.robots(host)),
            "/sitemap.xml" => self.sitemap(host),
            "/unlinked" => Page::html("Unlinked", "<p>Only the sitemap names this page.\n", Vec::new()),
            "/style.css" => {
                let links = vec![(SAME_HOST, "/img/paper.gif".to_owned())];
                Page {
                    links,
                    ..Page::plain("text/css", STYLE)
                }
            }
            "/img/paper.gif" => Page::plain("image/gif", gif(0)),
            "/moved" => Page::redirect("/old/1"),
            "/old/1" => Page::redirect("/page/1"),
            "/print/1" | "/print/2" => Page::html("Print version", "<p>One text under two addresses.\n", Vec::new()),
            "/private/notes" => Page::html("Private", "<p>robots.txt asks crawlers to stay away.\n", Vec::new()),
            _ => self.numbered(host, path, &name).unwrap_or_else(Page::missing),
        }
    }

    fn numbered(&self, host: usize, path: &str, name: &str) -> Option<Page> {
        let (kind, number) = path.strip_prefix('/')?.split_once('/')?;
        let number: usize = number.strip_suffix(".gif").unwrap_or(number).parse().ok()?;
        match kind {
            "section" if number < self.sections() => Some(self.section(number)),
            "page" if (1..=self.pages).contains(&number) => Some(self.article(host, number, name)),
            "img" if number < IMAGES => Some(Page::plain("image/gif", gif(number + 1))),
            "calendar" if host == 0 => Some(Self::calendar(number)),
            _ => None,
        }
    }

    fn sections(&self) -> usize {
        self.pages.div_ceil(PAGES_A_SECTION)
    }

    fn home(&self, host: usize) -> Page {
        let mut links = Links::default();
        for section in 0..self.sections() {
            links.to(&format!("/section/{section}"), &format!("Section {section}"));
        }
        for (path, text) in [
            ("/moved", "An address that moved twice"),
            ("/gone", "An address that is gone"),
            ("/private/notes", "Private notes"),
            ("/print/1", "Print version"),
            ("/print/2", "Print version again"),
            ("/sitemap.xml", "Sitemap"),
        ] {
            links.to(path, text);
        }
        if host == 0 {
            links.to("/calendar/1", "Calendar");
        }
        links.across((host + 1) % self.hosts, self, "/");
        Page::html(&Self::name(host), &links.html, links.targets)
    }

    fn section(&self, number: usize) -> Page {
        let first = number * PAGES_A_SECTION + 1;
        let mut links = Links::default();
        for page in first..(first + PAGES_A_SECTION).min(self.pages + 1) {
            links.to(&format!("/page/{page}"), &format!("Page {page}"));
        }
        links.to("/", "Home");
        Page::html(&format!("Section {number}"), &links.html, links.targets)
    }

    fn article(&self, host: usize, number: usize, name: &str) -> Page {
        let mut links = Links::default();
        links.image(&format!("/img/{}.gif", number % IMAGES));
        if number < self.pages {
            links.to(&format!("/page/{}#top", number + 1), "Next");
        }
        links.across(
            (host + 1) % self.hosts,
            self,
            &format!("/page/{}", number * 7 % self.pages + 1),
        );
        links.to("/", "Home");
        Page::html(&format!("Page {number} of {name}"), &links.html, links.targets)
    }

    /// A trap: each day links to the next, for ever.
    fn calendar(day: usize) -> Page {
        let mut links = Links::default();
        links.to(&format!("/calendar/{}", day.saturating_add(1)), "The day after");
        links.to("/", "Home");
        Page::html(&format!("Day {day}"), &links.html, links.targets)
    }

    fn robots(&self, host: usize) -> String {
        format!(
            "User-agent: *\nDisallow: /private/\n\nSitemap: {}\n",
            self.url(host, "/sitemap.xml")
        )
    }

    fn sitemap(&self, host: usize) -> Page {
        let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
                       <urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">\n"
            .to_owned();
        let pages = (1..=self.pages).map(|page| format!("/page/{page}"));
        let links: Vec<(usize, String)> = pages
            .chain(["/unlinked".to_owned()])
            .map(|path| (SAME_HOST, path))
            .collect();
        for (_, path) in &links {
            // writing to a String cannot fail
            let _ = writeln!(xml, "<url><loc>{}</loc></url>", self.url(host, path));
        }
        xml.push_str("</urlset>\n");
        Page {
            links,
            ..Page::plain("application/xml", xml)
        }
    }

    /// Every address a crawl from the home pages and the sitemaps must bring home once, with its status, when it goes
    /// `max_depth` links deep and obeys robots.txt. robots.txt itself is not among them.
    #[must_use]
    pub(super) fn reachable(&self, max_depth: usize) -> BTreeMap<String, u16> {
        let mut queue: VecDeque<(usize, String, usize)> = ["/", "/sitemap.xml"]
            .into_iter()
            .flat_map(|path| (0..self.hosts).map(move |host| (host, path.to_owned(), 0)))
            .collect();
        let mut found: BTreeMap<String, u16> = BTreeMap::new();
        while let Some((host, path, depth)) = queue.pop_front() {
            let url = self.url(host, &path);
            if path.starts_with("/private/") || found.contains_key(&url) {
                continue;
            }
            let page = self.page(host, &path);
            found.insert(url, page.status);
            if depth < max_depth {
                for (to, path) in page.links {
                    queue.push_back((if to == SAME_HOST { host } else { to }, path, depth + 1));
                }
            }
        }
        found
    }
}

/// A list of links: as HTML and as targets.
#[derive(Debug, Default)]
struct Links {
    html: String,
    targets: Vec<(usize, String)>,
}

impl Links {
    fn to(&mut self, path: &str, text: &str) {
        // writing to a String cannot fail
        let _ = writeln!(self.html, "<p><a href=\"{path}\">{text}</a>");
        let path = path.split('#').next().unwrap_or(path);
        self.targets.push((SAME_HOST, path.to_owned()));
    }

    fn image(&mut self, path: &str) {
        let _ = writeln!(self.html, "<p><img alt=\"\" src=\"{path}\">");
        self.targets.push((SAME_HOST, path.to_owned()));
    }

    fn across(&mut self, host: usize, web: &DemoWeb, path: &str) {
        let _ = writeln!(
            self.html,
            "<p><a href=\"{}\">{}</a>",
            web.url(host, path),
            DemoWeb::name(host)
        );
        self.targets.push((host, path.to_owned()));
    }
}

/// A GIF of one pixel; the number chooses its colour.
fn gif(number: usize) -> Vec<u8> {
    let shade = u8::try_from(number * 40 % 256).unwrap_or(0);
    let mut bytes = b"GIF89a\x01\x00\x01\x00\x80\x00\x00".to_vec();
    bytes.extend([shade, 128, 255 - shade, 0, 0, 0]);
    bytes.extend(b"\x2c\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02\x44\x01\x00\x3b");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reachable_set_is_finite_and_has_everything_a_crawl_should_meet() {
        let web = DemoWeb::new(3, 25, 8080);
        let found = web.reachable(12);
        for (path, status) in [
            ("/", 200),
            ("/section/2", 200),
            ("/page/25", 200),
            ("/moved", 301),
            ("/old/1", 301),
            ("/gone", 404),
            ("/img/paper.gif", 200),
            ("/sitemap.xml", 200),
            ("/unlinked", 200),
        ] {
            assert_eq!(found.get(&web.url(2, path)), Some(&status), "{path}");
        }
        assert!(!found.keys().any(|url| url.contains("/private/")));
        assert_eq!(
            found.keys().filter(|url| url.contains("/calendar/")).count(),
            12,
            "one day a link deeper"
        );
    }

    #[test]
    fn every_link_the_truth_follows_is_written_in_its_page() {
        let web = DemoWeb::new(2, 12, 8080);
        for path in [
            "/",
            "/section/0",
            "/page/3",
            "/calendar/4",
            "/style.css",
            "/moved",
            "/sitemap.xml",
        ] {
            let page = web.page(0, path);
            let text = format!(
                "{}{}",
                String::from_utf8_lossy(&page.body),
                page.location.unwrap_or_default()
            );
            assert!(!page.links.is_empty());
            for (host, to) in page.links {
                let written = if host == SAME_HOST { to } else { web.url(host, &to) };
                assert!(text.contains(&written), "{path} does not name {written}");
            }
        }
    }

    #[test]
    fn hosts_are_told_apart_by_name_and_port() {
        let web = DemoWeb::new(2, 1, 8080);
        assert_eq!(web.host_of("site2.demo:8080"), Some(1));
        assert_eq!(web.host_of("site3.demo:8080"), None);
        assert_eq!(web.host_of("site1.demo"), None);
    }

    #[test]
    fn two_print_versions_have_one_payload() {
        let web = DemoWeb::new(1, 1, 80);
        assert_eq!(web.page(0, "/print/1"), web.page(0, "/print/2"));
        assert_eq!(
            web.page(0, "/img/0.gif").body.len(),
            web.page(0, "/img/paper.gif").body.len()
        );
    }
}
