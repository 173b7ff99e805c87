//! One cookie, and which requests it goes with.

use serde::{Deserialize, Serialize};

use super::line::{self, MAX_ATTRIBUTE_BYTES};
use crate::clock::Time;
use crate::url::{CrawlUrl, Scheme, is_public_suffix, to_ascii};

/// What a cookie takes in memory besides its texts, bytes.
const OVERHEAD: usize = 160;

/// A cookie that is kept. Its `Debug` form does not show the value.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cookie {
    /// Name; may be empty.
    pub name: String,
    /// Value as the server wrote it.
    pub value: String,
    /// The host, or the domain whose hosts get it. In A-labels and lower case, without a dot at either end.
    pub domain: String,
    /// For that host alone.
    pub host_only: bool,
    /// For this path and what is below it.
    pub path: String,
    /// Over `https` only.
    pub secure: bool,
    /// Not sent from here on; `None` for as long as the job lasts.
    pub expires: Option<Time>,
    /// Rises with every cookie that is new; one that takes another's place keeps its number.
    pub created: u64,
    /// Rises with every cookie that is set.
    pub set: u64,
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookie")
            .field("name", &self.name)
            .field("domain", &self.domain)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Cookie {
    /// The cookie that an answer from `url` sets, if it may (RFC 6265bis section 5.7). Its numbers are zero.
    pub(super) fn received(url: &CrawlUrl, text: &str, now: Time) -> Option<Self> {
        let line = line::parse(text, now)?;
        let host = host_of(url);
        let (domain, host_only) = match line.domain {
            None => (host.to_owned(), true),
            Some(written) => match domain_of(written, host)? {
                Some(domain) => (domain, false),
                None => (host.to_owned(), true),
            },
        };
        let path = line.path.unwrap_or_else(|| default_path(url.path()));
        let secure_origin = url.scheme() == Scheme::Https;
        if path.len() > MAX_ATTRIBUTE_BYTES || (line.secure && !secure_origin) {
            return None;
        }
        // a cookie without a name must not look like one with a name that promises something
        let shown = if line.name.is_empty() { line.value } else { line.name };
        let has_prefix = |prefix: &str| {
            shown
                .get(..prefix.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
        };
        let kept = if has_prefix("__Secure-") {
            line.secure
        } else if has_prefix("__Host-") {
            line.secure && host_only && line.path == Some("/")
        } else {
            true
        };
        if !kept || (line.name.is_empty() && (has_prefix("__Secure-") || has_prefix("__Host-"))) {
            return None;
        }
        Some(Self {
            name: line.name.to_owned(),
            value: line.value.to_owned(),
            domain,
            host_only,
            path: path.to_owned(),
            secure: line.secure,
            expires: line.expires,
            created: 0,
            set: 0,
        })
    }

    /// Does it go with a request for `url`?
    pub(super) fn goes_with(&self, url: &CrawlUrl, now: Time) -> bool {
        let host = host_of(url);
        let domain = if self.host_only {
            host == self.domain
        } else {
            domain_matches(host, &self.domain)
        };
        domain
            && path_matches(url.path(), &self.path)
            && (!self.secure || url.scheme() == Scheme::Https)
            && !self.is_expired(now)
    }

    pub(super) fn is_expired(&self, now: Time) -> bool {
        self.expires.is_some_and(|at| at <= now)
    }

    /// Does it take the place of `other`?
    pub(super) fn replaces(&self, other: &Cookie) -> bool {
        self.name == other.name
            && self.domain == other.domain
            && self.host_only == other.host_only
            && self.path == other.path
    }

    /// Would it, set over `http`, hide a cookie that only goes over `https` (RFC 6265bis section 5.7, step 16)?
    pub(super) fn hides(&self, other: &Cookie) -> bool {
        other.secure
            && !self.secure
            && self.name == other.name
            && (domain_matches(&self.domain, &other.domain) || domain_matches(&other.domain, &self.domain))
            && path_matches(&self.path, &other.path)
    }

    /// Bytes it takes in memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.name.len() + self.value.len() + self.domain.len() + self.path.len() + OVERHEAD
    }
}

/// The host of an address, without the dot that may end it.
pub(super) fn host_of(url: &CrawlUrl) -> &str {
    let host = url.host();
    host.strip_suffix('.').unwrap_or(host)
}

/// The domain that a `Domain` attribute asks for, seen from `host`: `Some(None)` for the host alone, because the domain
/// is a public suffix and the host's own name; `None` if the cookie must be refused.
#[expect(
    clippy::option_option,
    reason = "refused, the host alone, or a domain: told in the line above"
)]
fn domain_of(written: &str, host: &str) -> Option<Option<String>> {
    let domain = if written.is_ascii() {
        written.to_ascii_lowercase()
    } else {
        to_ascii(written)?
    };
    if is_public_suffix(&domain) {
        return (domain == host).then_some(None);
    }
    domain_matches(host, &domain).then_some(Some(domain))
}

/// RFC 6265 section 5.1.3. A host that is an address matches itself alone.
fn domain_matches(host: &str, domain: &str) -> bool {
    host == domain
        || (host
            .strip_suffix(domain)
            .is_some_and(|rest| rest.ends_with('.') && !domain.is_empty())
            && !crate::url::is_address(host))
}

/// RFC 6265 section 5.1.4.
fn path_matches(path: &str, of_cookie: &str) -> bool {
    path.strip_prefix(of_cookie)
        .is_some_and(|rest| rest.is_empty() || of_cookie.ends_with('/') || rest.starts_with('/'))
}

/// Up to the last `/`, without it (RFC 6265 section 5.1.4).
fn default_path(path: &str) -> &str {
    match path.rfind('/') {
        None | Some(0) => "/",
        Some(slash) => path.get(..slash).unwrap_or("/"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Identity;

    const NOW: Time = Time(1_700_000_000_000_000);

    fn url(raw: &str) -> CrawlUrl {
        CrawlUrl::parse(raw, &Identity::default()).unwrap()
    }

    fn received(from: &str, line: &str) -> Option<Cookie> {
        Cookie::received(&url(from), line, NOW)
    }

    fn goes(from: &str, line: &str, to: &str) -> bool {
        received(from, line).is_some_and(|cookie| cookie.goes_with(&url(to), NOW))
    }

    #[test]
    fn without_a_domain_it_is_for_its_host_alone() {
        assert!(goes("http://a.example.com/", "k=v", "http://a.example.com:81/x"));
        assert!(goes("http://a.example.com./", "k=v", "http://a.example.com/x"));
        for other in [
            "http://example.com/",
            "http://b.a.example.com/",
            "http://xa.example.com/",
        ] {
            assert!(!goes("http://a.example.com/", "k=v", other), "{other}");
        }
        assert!(goes("http://[::1]/", "k=v", "http://[::1]/"));
    }

    #[test]
    fn with_a_domain_it_is_for_the_hosts_below() {
        let line = "k=v; Domain=.Example.COM";
        for to in [
            "http://example.com/",
            "http://a.example.com/",
            "http://x.y.example.com/",
        ] {
            assert!(goes("http://a.example.com/", line, to), "{to}");
        }
        for to in ["http://xexample.com/", "http://com/", "http://example.com.evil.test/"] {
            assert!(!goes("http://a.example.com/", line, to), "{to}");
        }
        assert!(goes(
            "http://b\u{fc}cher.example/",
            "k=v; domain=b\u{fc}cher.example",
            "http://a.xn--bcher-kva.example/"
        ));
    }

    #[test]
    fn a_domain_that_is_not_ones_own_is_refused() {
        for (from, domain) in [
            ("http://a.example.com/", "b.example.com"),
            ("http://a.example.com/", "x.a.example.com"),
            ("http://a.example.com/", "ple.com"),
            ("http://a.example.com/", "com"),
            ("http://a.example.com/", "example.com."),
            ("http://shop.co.uk/", "co.uk"),
            ("http://me.github.io/", "github.io"),
            ("http://192.0.2.1/", "2.1"),
            ("http://192.0.2.1/", "0.2.1"),
            ("http://a.localhost/", "localhost"),
            ("http://a.example.com/", "a b\u{e4}"),
        ] {
            assert_eq!(
                received(from, &format!("k=v; domain={domain}")),
                None,
                "{from} {domain}"
            );
        }
        // the suffix itself may keep one for itself, and an address too
        for (host, other) in [
            ("co.uk", "x.co.uk"),
            ("localhost", "a.localhost"),
            ("192.0.2.1", "192.0.2.11"),
        ] {
            let (from, line) = (format!("http://{host}/"), format!("k=v; domain={host}"));
            assert!(goes(&from, &line, &from), "{host}");
            assert!(!goes(&from, &line, &format!("http://{other}/")), "{host}");
        }
    }

    #[test]
    fn a_path_covers_what_is_below_it() {
        for (from, attribute, to, expected) in [
            ("/a/b/c", "", "/a/b", true),
            ("/a/b/c", "", "/a/b/x/y?z", true),
            ("/a/b/c", "", "/a/bx", false),
            ("/a/b/c", "", "/a", false),
            ("/a", "", "/anything", true),
            ("/x", "; path=/a/", "/a/b", true),
            ("/x", "; path=/a/", "/a", false),
            ("/x", "; path=/a", "/a", true),
            ("/x", "; path=/a", "/a?b", true),
            ("/x", "; path=/a", "/ab", false),
            ("/x/y", "; path=a", "/x/z", true),
            ("/x/y", "; path=", "/z", false),
        ] {
            let (from, to) = (format!("http://h.test{from}"), format!("http://h.test{to}"));
            assert_eq!(
                goes(&from, &format!("k=v{attribute}"), &to),
                expected,
                "{from} {attribute} {to}"
            );
        }
        let deep = format!("http://h.test/{}/x", "d".repeat(MAX_ATTRIBUTE_BYTES));
        assert_eq!(received(&deep, "k=v"), None);
        assert!(received(&deep, "k=v; path=/").is_some());
    }

    #[test]
    fn secure_means_https_both_ways() {
        assert_eq!(received("http://h.test/", "k=v; secure"), None);
        assert!(goes("https://h.test/", "k=v; secure", "https://h.test/"));
        assert!(!goes("https://h.test/", "k=v; secure", "http://h.test/"));
        assert!(goes("https://h.test/", "k=v", "http://h.test/"));
    }

    #[test]
    fn prefixes_promise_what_they_say() {
        for (line, kept) in [
            ("__Secure-k=v; secure", true),
            ("__Secure-k=v", false),
            ("__secure-k=v", false),
            ("__Host-k=v; secure; path=/", true),
            ("__Host-k=v; secure", false),
            ("__Host-k=v; path=/", false),
            ("__HOST-k=v; secure; path=/; domain=h.test", false),
            ("__Host-k=v; secure; path=/a", false),
            ("=__Host-k=v; secure; path=/", false),
            ("__Secure-k; secure", false),
        ] {
            assert_eq!(received("https://h.test/", line).is_some(), kept, "{line}");
        }
    }

    #[test]
    fn it_is_sent_until_it_expires() {
        let cookie = received("http://h.test/", "k=v; max-age=10").unwrap();
        let at = |seconds| NOW + std::time::Duration::from_secs(seconds);
        assert!(cookie.goes_with(&url("http://h.test/"), at(9)));
        assert!(!cookie.goes_with(&url("http://h.test/"), at(10)));
    }

    #[test]
    fn a_value_is_no_matter_for_a_log() {
        let cookie = received("http://h.test/", "k=secret").unwrap();
        assert!(!format!("{cookie:?}").contains("secret"));
    }
}
