//! Parsing as the URL Standard says: the `url` crate, mended where it differs from the standard.
//!
//! Version 2.5.8 of the crate differs in three ways that matter here:
//! - it refuses a host in ASCII with a label that looks like an A-label but is not one (`xn--a`): the standard
//!   lower-cases it;
//! - it refuses a relative address that starts with three slashes or more (`///host/path`): the standard skips them;
//! - it leaves `^` in a path: the standard writes `%5E`.
//!
//! The first two mends run only after the crate has refused an address, so a good one pays nothing for them.

use std::borrow::Cow;

use url::{ParseError, Position, Url};

/// Stands for `xn--` while the crate parses a host whose A-labels it refuses. Of equal length, so that the true
/// host can be put back in place, and starting with the same letter, so that it is no number either.
const STAND_IN: &str = "xn__";
const ACE_PREFIX: &str = "xn--";

/// An address as the standard parses it.
#[derive(Debug, Clone)]
pub(super) struct Parsed {
    /// What the crate made of it, with a stand-in for the host if `true_host` is set.
    url: Url,
    /// The host's text, if the crate refuses it. As long as the stand-in.
    true_host: Option<String>,
}

impl Parsed {
    /// Parses `raw` against `base`.
    pub(super) fn parse(raw: &str, base: Option<&Parsed>) -> Result<Parsed, ParseError> {
        match Url::options().base_url(base.map(|b| &b.url)).parse(raw) {
            Ok(url) => {
                let true_host = base.and_then(|b| b.host_inherited_by(&url, raw));
                Ok(Parsed { url, true_host })
            }
            Err(ParseError::EmptyHost) => match base.and_then(|b| surplus_slashes(raw, b.scheme())) {
                Some(absolute) => Parsed::parse(&absolute, None),
                None => Err(ParseError::EmptyHost),
            },
            Err(ParseError::IdnaError) => ascii_host(raw, base).ok_or(ParseError::IdnaError),
            Err(other) => Err(other),
        }
    }

    /// The scheme, lower case, without its colon.
    pub(super) fn scheme(&self) -> &str {
        self.url.scheme()
    }

    /// The port, if one other than the scheme's own is written.
    pub(super) fn port(&self) -> Option<u16> {
        self.url.port()
    }

    /// Does it have a host that is not empty?
    pub(super) fn has_host(&self) -> bool {
        self.url.host_str().is_some_and(|host| !host.is_empty())
    }

    /// The fragment, without its `#`.
    pub(super) fn fragment(&self) -> Option<String> {
        self.url.fragment().map(str::to_owned)
    }

    /// Drops what is never sent: the fragment and the user information.
    pub(super) fn strip(&mut self) {
        self.url.set_fragment(None);
        if !self.url.username().is_empty() || self.url.password().is_some() {
            // both fail only for addresses without a host, which have no user information either
            let _ = self.url.set_username("");
            let _ = self.url.set_password(None);
        }
    }

    /// The serialization.
    pub(super) fn into_href(self) -> String {
        let stand_in = self.true_host.as_ref().and(self.url.host_str()).map(str::to_owned);
        let path = &self.url[Position::BeforePath..Position::AfterPath];
        let mended_path = (path.starts_with('/') && path.contains('^')).then(|| {
            (
                self.url[..Position::BeforePath].len(),
                path.len(),
                path.replace('^', "%5E"),
            )
        });
        let mut href = String::from(self.url);
        if let Some((start, len, path)) = mended_path {
            href.replace_range(start..start + len, &path);
        }
        if let (Some(stand_in), Some(true_host)) = (stand_in, self.true_host) {
            // user information cannot hold the stand-in's text before the host: `@` would end it there
            if let Some(at) = host_position(&href, &stand_in) {
                href.replace_range(at..at + stand_in.len(), &true_host);
            }
        }
        href
    }

    /// The true host of `self`, if `url` was resolved against it and took its (stand-in) host over.
    fn host_inherited_by(&self, url: &Url, raw: &str) -> Option<String> {
        let true_host = self.true_host.as_ref()?;
        (url.host_str() == self.url.host_str() && !raw.contains(STAND_IN)).then(|| true_host.clone())
    }
}

/// Where `host` stands in a serialized address.
fn host_position(href: &str, host: &str) -> Option<usize> {
    let authority = href.find("//")? + 2;
    let rest = href.get(authority..)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let after_user = rest.get(..end)?.rfind('@').map_or(0, |at| at + 1);
    let at = authority + after_user;
    href.get(at..)?.starts_with(host).then_some(at)
}

/// Parses and serializes an address, of any scheme, as the URL Standard says: the reference behind
/// [`CrawlUrl`](super::CrawlUrl), fragment and user information still there. `None` if the standard refuses `raw` or `base`.
#[must_use]
pub fn whatwg_href(raw: &str, base: Option<&str>) -> Option<String> {
    let base = match base {
        Some(text) => Some(Parsed::parse(text, None).ok()?),
        None => None,
    };
    Parsed::parse(raw, base.as_ref()).ok().map(Parsed::into_href)
}

/// A host name as it stands in an `http` address: A-labels in lower case, or an address in its shortest form
/// (URL Standard, "host parsing"). `None` if the standard refuses it.
#[must_use]
pub fn to_ascii(host: &str) -> Option<String> {
    match url::Host::parse(host) {
        Ok(parsed) => Some(parsed.to_string()),
        Err(ParseError::IdnaError) => {
            let plain = plain_ascii_host(host)?;
            url::Host::parse(&stand_in(&plain)).ok()?;
            Some(plain)
        }
        Err(_) => None,
    }
}

/// Whether the standard treats the scheme as special and knows authorities for it.
fn is_special(scheme: &str) -> bool {
    matches!(scheme, "http" | "https" | "ws" | "wss" | "ftp")
}

/// Removes what the standard removes before it parses: C0 controls and spaces around, tabs and line ends inside.
fn cleaned(raw: &str) -> Cow<'_, str> {
    let trimmed = raw.trim_matches(|c: char| c <= ' ');
    if trimmed.contains(['\t', '\n', '\r']) {
        Cow::Owned(trimmed.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect())
    } else {
        Cow::Borrowed(trimmed)
    }
}

/// `///host/path`, made absolute with the base's scheme: the standard skips all slashes before the host.
fn surplus_slashes(raw: &str, scheme: &str) -> Option<String> {
    let text = cleaned(raw);
    let slashes = text.bytes().take_while(|b| matches!(b, b'/' | b'\\')).count();
    (is_special(scheme) && slashes > 2).then(|| format!("{scheme}:{text}"))
}

/// Parses an address whose host is in ASCII but has labels that are no A-labels although they look so.
fn ascii_host(raw: &str, base: Option<&Parsed>) -> Option<Parsed> {
    let text = cleaned(raw);
    let (before, host, after) = split_at_host(&text)?;
    let true_host = plain_ascii_host(host)?;
    let mended = format!("{before}{}{after}", stand_in(&true_host));
    let url = Url::options().base_url(base.map(|b| &b.url)).parse(&mended).ok()?;
    // a host that the crate changes further is none that the standard would take as it is
    (url.host_str()? == stand_in(&true_host)).then_some(Parsed {
        url,
        true_host: Some(true_host),
    })
}

/// The host, percent-decoded and in lower case, if it is in ASCII and a label of it starts with `xn--`.
fn plain_ascii_host(host: &str) -> Option<String> {
    let mut plain = String::with_capacity(host.len());
    let mut bytes = host.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => super::canonical::octet(bytes.next()?, bytes.next()?)?,
            other => other,
        };
        // a `%` left over would be decoded a second time
        if !byte.is_ascii() || byte == b'%' {
            return None;
        }
        plain.push(char::from(byte.to_ascii_lowercase()));
    }
    plain
        .split('.')
        .any(|label| label.starts_with(ACE_PREFIX))
        .then_some(plain)
}

/// The host with the stand-in before each label that starts with `xn--`.
fn stand_in(host: &str) -> String {
    let labels = host.split('.').map(|label| match label.strip_prefix(ACE_PREFIX) {
        Some(rest) => Cow::Owned(format!("{STAND_IN}{rest}")),
        None => Cow::Borrowed(label),
    });
    labels.collect::<Vec<_>>().join(".")
}

/// Splits an address into what stands before its host, the host, and what follows (port, path ...).
fn split_at_host(text: &str) -> Option<(&str, &str, &str)> {
    let scheme_end = match text.find([':', '/', '\\', '?', '#']) {
        Some(at) if text.as_bytes().get(at) == Some(&b':') => at + 1,
        _ => 0,
    };
    let after_scheme = text.get(scheme_end..)?;
    let slashes = after_scheme.len() - after_scheme.trim_start_matches(['/', '\\']).len();
    let authority_start = scheme_end + slashes;
    let rest = text.get(authority_start..)?;
    let authority_end = authority_start + rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let authority = text.get(authority_start..authority_end)?;
    let host_start = authority_start + authority.rfind('@').map_or(0, |at| at + 1);
    let host_and_port = text.get(host_start..authority_end)?;
    let host_end = host_start + host_and_port.rfind(':').unwrap_or(host_and_port.len());
    Some((
        text.get(..host_start)?,
        text.get(host_start..host_end)?,
        text.get(host_end..)?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_address_is_serialized_as_the_standard_says() {
        for (raw, base, expected) in [
            (
                "HTTP://User@Example.ORG:80/a/../b?q#f",
                None,
                "http://User@example.org/b?q#f",
            ),
            ("../c", Some("http://h/a/b"), "http://h/c"),
            ("mailto:a^@b", None, "mailto:a^@b"),
            ("http://h/^/x^?^#^", None, "http://h/%5E/x%5E?^#^"),
            ("//other/x", Some("https://h/"), "https://other/x"),
        ] {
            assert_eq!(whatwg_href(raw, base).as_deref(), Some(expected), "{raw}");
        }
        assert_eq!(whatwg_href("http://", None), None);
        assert_eq!(whatwg_href("x", None), None);
        assert_eq!(whatwg_href("x", Some("nonsense")), None);
    }

    #[test]
    fn surplus_slashes_before_a_host_are_skipped() {
        for (raw, expected) in [
            ("///h2/p", "http://h2/p"),
            (r"/\/\h2/p/../q", "http://h2/q"),
            (" \t////h2", "http://h2/"),
            ("//h2", "http://h2/"),
        ] {
            assert_eq!(
                whatwg_href(raw, Some("http://h1/x")).as_deref(),
                Some(expected),
                "{raw:?}"
            );
        }
        assert_eq!(whatwg_href("///", Some("http://h1/x")), None);
        assert_eq!(whatwg_href("///h/p", Some("foo:x")), None);
    }

    #[test]
    fn an_ascii_host_with_a_bad_a_label_is_taken_in_lower_case() {
        for (raw, expected) in [
            ("http://XN--zz99zz9.example:81/P", "http://xn--zz99zz9.example:81/P"),
            ("http://u:p@xn--a/", "http://u:p@xn--a/"),
            ("http://xn--%41/", "http://xn--a/"),
            ("http:xn--a/x", "http://xn--a/x"),
        ] {
            assert_eq!(whatwg_href(raw, None).as_deref(), Some(expected), "{raw}");
        }
        for refused in [
            "http://xn--a\u{e9}/",
            "http://xn--a%2541/",
            "http://xn--a<b/",
            "http://xn--a%/",
            "http://xn--a.1.2.3.999/",
        ] {
            assert_eq!(whatwg_href(refused, None), None, "{refused}");
        }
    }

    #[test]
    fn a_bad_a_label_is_inherited_from_the_base() {
        let base = Some("http://xn--a.example/dir/page");
        assert_eq!(
            whatwg_href("other?q", base).as_deref(),
            Some("http://xn--a.example/dir/other?q")
        );
        assert_eq!(
            whatwg_href("http://b.example/", base).as_deref(),
            Some("http://b.example/")
        );
        assert_eq!(
            whatwg_href("//xn__a.example/", base).as_deref(),
            Some("http://xn__a.example/")
        );
        assert_eq!(whatwg_href("//xn--b/", base).as_deref(), Some("http://xn--b/"));
    }

    #[test]
    fn host_names_become_ascii() {
        assert_eq!(
            to_ascii("B\u{fc}cher.example").as_deref(),
            Some("xn--bcher-kva.example")
        );
        assert_eq!(to_ascii("XN--zz99zz9").as_deref(), Some("xn--zz99zz9"));
        assert_eq!(to_ascii("0x7f.1").as_deref(), Some("127.0.0.1"));
        assert_eq!(to_ascii("a b"), None);
        assert_eq!(to_ascii(""), None);
    }
}
