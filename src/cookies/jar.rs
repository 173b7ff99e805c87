//! What is kept of cookies: by site, bounded, and told to whoever stores it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::cookie::Cookie;
use crate::clock::Time;
use crate::url::{CrawlUrl, Scheme, registrable_domain};

/// Cookies of one site (registrable domain); beyond it the one that was set longest ago goes. Browsers keep as many.
pub const MAX_SITE_COOKIES: usize = 180;
/// Cookies in the jar; beyond it the site that set none for the longest time goes.
pub const MAX_JAR_COOKIES: usize = 100_000;
/// Bytes that all cookies take in memory; beyond it the same happens.
pub const MAX_JAR_BYTES: usize = 32 << 20;
/// Bytes of a `Cookie` header; what does not fit any more is left out. Common servers refuse a longer line.
pub const MAX_HEADER_BYTES: usize = 8_000;

/// A site's row as it is to be stored, or `None` if it is to be removed.
pub type Change = (String, Option<Vec<u8>>);

/// Cookies by site.
#[derive(Debug, Default)]
pub struct Jar {
    sites: HashMap<String, Site>,
    /// Sites by when they last set a cookie.
    by_age: BTreeMap<u64, String>,
    cookies: usize,
    bytes: usize,
    /// The last number given.
    number: u64,
    changed: BTreeSet<String>,
    limits: Limits,
}

/// The cookies of one registrable domain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Site {
    /// The number of the cookie that was set last.
    last: u64,
    cookies: Vec<Cookie>,
}

#[derive(Debug, Clone, Copy)]
struct Limits {
    cookies: usize,
    bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cookies: MAX_JAR_COOKIES,
            bytes: MAX_JAR_BYTES,
        }
    }
}

impl Jar {
    /// Takes in a stored row.
    ///
    /// # Errors
    /// What is wrong with the row.
    pub fn load(&mut self, site: &str, row: &[u8]) -> Result<(), String> {
        let row: Site = postcard::from_bytes(row).map_err(|error| error.to_string())?;
        self.number = self.number.max(row.last);
        self.take_out(site);
        self.put_in(site.to_owned(), row);
        Ok(())
    }

    /// The value of the `Cookie` header of a request, if any cookie goes with it: longer paths first, then older cookies
    /// (RFC 6265 section 5.4).
    #[must_use]
    pub fn header(&self, url: &CrawlUrl, now: Time) -> Option<String> {
        let site = self.sites.get(url.registrable_domain())?;
        let mut going: Vec<&Cookie> = site
            .cookies
            .iter()
            .filter(|cookie| cookie.goes_with(url, now))
            .collect();
        going.sort_by_key(|cookie| (std::cmp::Reverse(cookie.path.len()), cookie.created));
        let mut header = String::new();
        for cookie in going {
            let before = header.len();
            if before > 0 {
                header.push_str("; ");
            }
            if !cookie.name.is_empty() {
                header.push_str(&cookie.name);
                header.push('=');
            }
            header.push_str(&cookie.value);
            if header.len() > MAX_HEADER_BYTES {
                header.truncate(before);
                break;
            }
        }
        (!header.is_empty()).then_some(header)
    }

    /// Takes the `Set-Cookie` headers of an answer from `url`, in order, and says which sites' rows changed.
    pub fn receive(&mut self, url: &CrawlUrl, lines: &[String], now: Time) -> Vec<Change> {
        for line in lines {
            if let Some(cookie) = Cookie::received(url, line, now) {
                self.set(cookie, url.scheme() == Scheme::Https, now);
            }
        }
        self.changes()
    }

    /// Takes cookies that a person gave, in order, and says which sites' rows changed.
    pub fn import(&mut self, cookies: Vec<Cookie>, now: Time) -> Vec<Change> {
        for cookie in cookies {
            self.set(cookie, true, now);
        }
        self.changes()
    }

    /// Number of cookies kept.
    #[must_use]
    pub fn len(&self) -> usize {
        self.cookies
    }

    /// Is nothing kept?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.cookies == 0
    }

    fn set(&mut self, mut cookie: Cookie, over_https: bool, now: Time) {
        let name = registrable_domain(&cookie.domain).to_owned();
        let kept = self.sites.get(&name).map_or(&[][..], |site| &site.cookies);
        let mut alive = kept.iter().filter(|other| !other.is_expired(now));
        if !over_https && alive.clone().any(|other| cookie.hides(other)) {
            return;
        }
        let before = alive.find(|other| cookie.replaces(other));
        let gone = cookie.is_expired(now);
        let same = before.is_some_and(|before| {
            (&before.value, before.secure, before.expires) == (&cookie.value, cookie.secure, cookie.expires)
        });
        if same || (gone && before.is_none()) {
            return;
        }
        self.number += 1;
        cookie.created = before.map_or(self.number, |before| before.created);
        cookie.set = self.number;

        let mut site = self.take_out(&name);
        site.last = self.number;
        site.cookies
            .retain(|other| !cookie.replaces(other) && !other.is_expired(now));
        if !gone {
            site.cookies.push(cookie);
        }
        if site.cookies.len() > MAX_SITE_COOKIES {
            let oldest = site.cookies.iter().map(|cookie| cookie.set).min();
            site.cookies.retain(|cookie| Some(cookie.set) != oldest);
        }
        self.changed.insert(name.clone());
        self.put_in(name, site);
        while self.cookies > self.limits.cookies || self.bytes > self.limits.bytes {
            let Some((_, oldest)) = self.by_age.first_key_value() else {
                break;
            };
            let oldest = oldest.clone();
            self.take_out(&oldest);
            self.changed.insert(oldest);
        }
    }

    fn take_out(&mut self, name: &str) -> Site {
        let site = self.sites.remove(name).unwrap_or_default();
        self.by_age.remove(&site.last);
        self.cookies -= site.cookies.len();
        self.bytes -= site.memory_bytes();
        site
    }

    fn put_in(&mut self, name: String, site: Site) {
        if site.cookies.is_empty() {
            return;
        }
        self.cookies += site.cookies.len();
        self.bytes += site.memory_bytes();
        self.by_age.insert(site.last, name.clone());
        self.sites.insert(name, site);
    }

    fn changes(&mut self) -> Vec<Change> {
        let changed = std::mem::take(&mut self.changed);
        let row = |name: String| {
            let row = self.sites.get(&name).map(|site| {
                #[expect(clippy::expect_used, reason = "plain data always encodes")]
                postcard::to_stdvec(site).expect("a row encodes")
            });
            (name, row)
        };
        changed.into_iter().map(row).collect()
    }
}

impl Site {
    fn memory_bytes(&self) -> usize {
        self.cookies.iter().map(Cookie::memory_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cookies::MAX_COOKIE_BYTES;
    use crate::url::Identity;
    use proptest::prelude::*;
    use std::time::Duration;

    const NOW: Time = Time(1_700_000_000_000_000);

    fn url(raw: &str) -> CrawlUrl {
        CrawlUrl::parse(raw, &Identity::default()).unwrap()
    }

    fn receive(jar: &mut Jar, from: &str, line: &str) -> Vec<Change> {
        jar.receive(&url(from), &[line.to_owned()], NOW)
    }

    fn sent(jar: &Jar, to: &str) -> String {
        jar.header(&url(to), NOW).unwrap_or_default()
    }

    #[test]
    fn longer_paths_come_first_then_older_cookies() {
        let mut jar = Jar::default();
        for line in ["b=1", "a=2", "deep=3; path=/x/y", "mid=4; path=/x", "b=5"] {
            receive(&mut jar, "http://h.test/", line);
        }
        assert_eq!(sent(&jar, "http://h.test/x/y"), "deep=3; mid=4; b=5; a=2");
        assert_eq!(sent(&jar, "http://h.test/"), "b=5; a=2", "b kept its place");
        assert_eq!(sent(&jar, "http://other.test/x/y"), "");
        receive(&mut jar, "http://h.test/", "nameless");
        assert_eq!(sent(&jar, "http://h.test/"), "b=5; a=2; nameless");
    }

    #[test]
    fn an_expired_cookie_goes_and_takes_its_row_along() {
        let mut jar = Jar::default();
        assert!(
            receive(&mut jar, "http://h.test/", "a=1; max-age=0").is_empty(),
            "nothing was there"
        );
        let [(site, Some(_))] = &receive(&mut jar, "http://h.test/", "a=1")[..] else {
            panic!("a row was expected");
        };
        assert_eq!(site, "h.test");
        assert!(
            receive(&mut jar, "http://h.test/", "a=1").is_empty(),
            "nothing has changed"
        );
        assert_eq!(
            receive(&mut jar, "http://h.test/", "a=; max-age=-1"),
            [("h.test".to_owned(), None)]
        );
        assert!(jar.is_empty() && jar.bytes == 0 && jar.by_age.is_empty());
    }

    #[test]
    fn http_does_not_hide_what_https_keeps() {
        let mut jar = Jar::default();
        receive(&mut jar, "https://a.h.test/", "k=mine; secure; path=/p; domain=h.test");
        for line in [
            "k=theirs; path=/p",
            "k=theirs; path=/p/q",
            "k=theirs; path=/p; domain=h.test",
        ] {
            assert!(receive(&mut jar, "http://a.h.test/", line).is_empty(), "{line}");
        }
        for line in ["k=theirs; path=/", "other=theirs; path=/p"] {
            assert!(!receive(&mut jar, "http://a.h.test/", line).is_empty(), "{line}");
        }
        receive(&mut jar, "https://a.h.test/", "k=new; path=/p; domain=h.test");
        assert_eq!(sent(&jar, "http://a.h.test/p"), "k=new; other=theirs; k=theirs");
    }

    #[test]
    fn rows_bring_the_jar_back() {
        let mut jar = Jar::default();
        let mut rows = BTreeMap::new();
        for (from, line) in [
            ("http://a.one.test/", "a=1; domain=one.test"),
            ("http://b.one.test/", "b=2"),
            ("https://two.test/", "c=3; secure"),
            ("http://a.one.test/", "a=9; domain=one.test"),
        ] {
            for (site, row) in receive(&mut jar, from, line) {
                rows.insert(site, row.unwrap());
            }
        }
        assert_eq!(rows.keys().collect::<Vec<_>>(), ["one.test", "two.test"]);
        let mut again = Jar::default();
        for (site, row) in &rows {
            again.load(site, row).unwrap();
            again.load(site, row).unwrap();
        }
        for to in [
            "http://a.one.test/",
            "http://b.one.test/",
            "https://two.test/",
            "http://two.test/",
        ] {
            assert_eq!(sent(&again, to), sent(&jar, to), "{to}");
        }
        assert_eq!(
            (again.len(), again.bytes, again.number),
            (jar.len(), jar.bytes, jar.number)
        );
        assert!(again.load("x", b"\xff\xff").is_err());
    }

    #[test]
    fn a_site_has_so_many_cookies_and_the_one_set_longest_ago_goes() {
        let mut jar = Jar::default();
        for n in 0..MAX_SITE_COOKIES {
            receive(
                &mut jar,
                &format!("http://h{}.site.test/", n % 7),
                &format!("k{n}={n}; domain=site.test"),
            );
        }
        receive(&mut jar, "http://site.test/", "k0=again; domain=site.test");
        receive(&mut jar, "http://site.test/", "one=more");
        assert_eq!(jar.len(), MAX_SITE_COOKIES);
        let header = sent(&jar, "http://site.test/");
        assert!(header.starts_with("k0=again; k2=2;"), "{header}");
        for n in 0..10_000 {
            receive(&mut jar, "http://site.test/", &format!("flood{n}=x"));
        }
        assert_eq!(jar.len(), MAX_SITE_COOKIES);
        assert!(
            receive(&mut jar, "http://other.test/", "a=1").len() == 1,
            "others are left alone"
        );
    }

    #[test]
    fn a_header_has_so_many_bytes() {
        let mut jar = Jar::default();
        for n in 0..3 {
            receive(
                &mut jar,
                "http://h.test/",
                &format!("{n}={}", "v".repeat(MAX_COOKIE_BYTES - 1)),
            );
        }
        receive(&mut jar, "http://h.test/", "small=1");
        let header = sent(&jar, "http://h.test/");
        assert_eq!(header.len(), MAX_COOKIE_BYTES + 1, "the second one did not fit");
        let mut jar = Jar::default();
        let value = "v".repeat(MAX_HEADER_BYTES / 2 - 3);
        receive(&mut jar, "http://h.test/", &format!("a={value}"));
        receive(&mut jar, "http://h.test/", &format!("b={value}"));
        assert_eq!(sent(&jar, "http://h.test/").len(), MAX_HEADER_BYTES);
    }

    #[test]
    fn the_jar_is_bounded_and_the_site_that_set_none_for_longest_goes() {
        for limits in [
            Limits {
                cookies: 3,
                bytes: usize::MAX,
            },
            Limits {
                cookies: usize::MAX,
                bytes: 3 * 180,
            },
        ] {
            let mut jar = Jar {
                limits,
                ..Jar::default()
            };
            for site in ["one", "two", "three", "one"] {
                let line = format!("a={}", jar.number);
                receive(&mut jar, &format!("http://{site}.test/"), &line);
            }
            let changes = receive(&mut jar, "http://four.test/", "a=1");
            let names: Vec<_> = changes
                .iter()
                .map(|(site, row)| (site.as_str(), row.is_some()))
                .collect();
            assert_eq!(names, [("four.test", true), ("two.test", false)]);
            assert_eq!((jar.len(), jar.sites.len(), jar.by_age.len()), (3, 3, 3));
        }
        let limits = Jar::default().limits;
        assert_eq!((limits.cookies, limits.bytes), (MAX_JAR_COOKIES, MAX_JAR_BYTES));
    }

    /// The rules again, over one list and without any order of sites: what RFC 6265 says, word by word.
    #[derive(Default)]
    struct Model(Vec<Kept>);

    struct Kept {
        name: String,
        value: String,
        domain: String,
        host_only: bool,
        path: String,
        secure: bool,
        expires: Option<u64>,
    }

    #[derive(Debug, Clone)]
    struct Setting {
        https: bool,
        host: &'static str,
        at: &'static str,
        name: &'static str,
        value: u8,
        domain: Option<&'static str>,
        path: Option<&'static str>,
        secure: bool,
        max_age: Option<i64>,
        now: u64,
    }

    impl Setting {
        fn line(&self) -> String {
            let attributes = [
                self.domain.map(|domain| format!("; Domain={domain}")),
                self.path.map(|path| format!("; Path={path}")),
                self.max_age.map(|age| format!("; Max-Age={age}")),
                self.secure.then(|| "; Secure".to_owned()),
            ];
            let attributes: String = attributes.into_iter().flatten().collect();
            format!("{}={}{attributes}", self.name, self.value)
        }

        fn url(&self) -> CrawlUrl {
            url(&format!(
                "http{}://{}{}",
                if self.https { "s" } else { "" },
                self.host,
                self.at
            ))
        }
    }

    fn below(host: &str, domain: &str) -> bool {
        host == domain || host.ends_with(&format!(".{domain}"))
    }

    fn covers(path: &str, of_cookie: &str) -> bool {
        path == of_cookie || path.starts_with(&format!("{}/", of_cookie.trim_end_matches('/')))
    }

    impl Model {
        fn set(&mut self, s: &Setting) {
            let suffixes = ["test", "co.uk"];
            if s.secure && !s.https {
                return;
            }
            let (domain, host_only) = match s.domain {
                None => (s.host, true),
                Some(domain) if suffixes.contains(&domain) => return,
                Some(domain) if !below(s.host, domain) => return,
                Some(domain) => (domain, false),
            };
            let folder = s.at.rsplit_once('/').unwrap().0;
            let path = s.path.unwrap_or(if folder.is_empty() { "/" } else { folder });
            let hidden = self.0.iter().any(|kept| {
                kept.secure
                    && !s.secure
                    && kept.name == s.name
                    && (below(domain, &kept.domain) || below(&kept.domain, domain))
                    && covers(path, &kept.path)
                    && kept.expires.is_none_or(|at| at > s.now)
            });
            if hidden && !s.https {
                return;
            }
            let kept = Kept {
                name: s.name.to_owned(),
                value: s.value.to_string(),
                domain: domain.to_owned(),
                host_only,
                path: path.to_owned(),
                secure: s.secure,
                expires: s
                    .max_age
                    .map(|age| if age > 0 { s.now + age.unsigned_abs() } else { 0 }),
            };
            self.0.retain(|other| other.expires.is_none_or(|at| at > s.now));
            let place = self.0.iter().position(|other| {
                other.name == kept.name
                    && other.domain == kept.domain
                    && other.host_only == kept.host_only
                    && other.path == kept.path
            });
            match (place, s.max_age.is_some_and(|age| age <= 0)) {
                (Some(at), true) => {
                    self.0.remove(at);
                }
                (Some(at), false) => self.0[at] = kept,
                (None, true) => {}
                (None, false) => self.0.push(kept),
            }
        }

        fn header(&self, s: &Setting) -> String {
            let mut going: Vec<&Kept> = self
                .0
                .iter()
                .filter(|kept| {
                    (if kept.host_only {
                        s.host == kept.domain
                    } else {
                        below(s.host, &kept.domain)
                    }) && covers(s.at, &kept.path)
                        && (s.https || !kept.secure)
                        && kept.expires.is_none_or(|at| at > s.now)
                })
                .collect();
            going.sort_by_key(|kept| usize::MAX - kept.path.len());
            let pairs: Vec<String> = going
                .iter()
                .map(|kept| format!("{}={}", kept.name, kept.value))
                .collect();
            pairs.join("; ")
        }
    }

    fn setting() -> impl Strategy<Value = Setting> {
        let hosts = vec![
            "one.test",
            "a.one.test",
            "b.a.one.test",
            "two.test",
            "shop.co.uk",
            "x.shop.co.uk",
        ];
        let domains = vec![
            "one.test",
            "a.one.test",
            "two.test",
            "test",
            "co.uk",
            "shop.co.uk",
            "ne.test",
        ];
        (
            (
                any::<bool>(),
                prop::sample::select(hosts),
                prop::sample::select(vec!["/", "/p", "/p/q", "/p/q/r", "/px"]),
            ),
            (
                prop::sample::select(vec!["a", "b", "c"]),
                0..3_u8,
                prop::option::of(prop::sample::select(domains)),
            ),
            (
                prop::option::of(prop::sample::select(vec!["/", "/p", "/p/", "/p/q"])),
                prop::bool::weighted(0.3),
                prop::option::of(-1..20_i64),
                0..4_u64,
            ),
        )
            .prop_map(
                |((https, host, at), (name, value, domain), (path, secure, max_age, now))| Setting {
                    https,
                    host,
                    at,
                    name,
                    value,
                    domain,
                    path,
                    secure,
                    max_age,
                    now,
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(3_000))]

        /// A jar that is stored and loaded again after any step sends what the model sends.
        #[test]
        fn the_jar_does_what_the_rules_say(settings in prop::collection::vec(setting(), 1..30), restart in 0..30_usize) {
            let (mut jar, mut model, mut rows) = (Jar::default(), Model::default(), BTreeMap::new());
            let mut clock = 1_700_000_000;
            for (step, mut s) in settings.into_iter().enumerate() {
                clock += s.now;
                s.now = clock;
                let now = Time(0) + Duration::from_secs(clock);
                for (site, row) in jar.receive(&s.url(), &[s.line()], now) {
                    match row {
                        Some(row) => rows.insert(site, row),
                        None => rows.remove(&site),
                    };
                }
                model.set(&s);
                if step == restart {
                    jar = Jar::default();
                    for (site, row) in &rows {
                        jar.load(site, row).unwrap();
                    }
                }
                let to = Setting { at: "/p/q/r", ..s.clone() };
                prop_assert_eq!(jar.header(&to.url(), now).unwrap_or_default(), model.header(&to));
                prop_assert_eq!(jar.header(&s.url(), now).unwrap_or_default(), model.header(&s));
            }
        }

        #[test]
        fn any_line_gets_an_answer(lines in prop::collection::vec(any::<String>(), 0..4)) {
            let mut jar = Jar::default();
            jar.receive(&url("https://a.example.com/x"), &lines, NOW);
            let header = sent(&jar, "https://a.example.com/x");
            prop_assert!(!header.bytes().any(|byte| byte < b' ' && byte != b'\t'));
        }
    }
}
