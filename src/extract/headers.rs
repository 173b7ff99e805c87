//! Links in a response's head, and the small formats that headers share with `meta` elements.

use std::borrow::Cow;

use encoding_rs::mem::decode_latin1;

use super::directives::Directives;
use super::rel::kind_of_rel;
use super::{LinkKind, Links};

/// Adds the links of a head: `Link` (RFC 8288), `Location` (a redirect if the status says so; else the place of what
/// was made), `Refresh`, `Content-Location`. Notes `X-Robots-Tag`. A `Link` without a relation is none (section 3.3).
pub(super) fn links<'a>(status: u16, headers: &'a [(String, Vec<u8>)], links: &mut Links<'a>) {
    for (name, value) in headers {
        match name.as_str() {
            "link" => match text(value) {
                Cow::Borrowed(value) => push_link_header(value, |kind, url, rel| {
                    links.push_with_rel(kind, Cow::Borrowed(url), rel);
                }),
                Cow::Owned(value) => push_link_header(&value, |kind, url, rel| {
                    links.push_with_rel(kind, Cow::Owned(url.to_owned()), rel);
                }),
            },
            "location" => {
                let kind = if (300..400).contains(&status) {
                    LinkKind::Redirect
                } else {
                    LinkKind::Navigation
                };
                links.push(kind, text(value));
            }
            "sourcemap" | "x-sourcemap" => links.push(LinkKind::Speculative, text(value)),
            "content-location" => links.push(LinkKind::Navigation, text(value)),
            "refresh" => links.push_refresh(LinkKind::Redirect, text(value)),
            "x-robots-tag" => {
                let said = Directives::of(&text(value), links.agent);
                links.directives.add(said);
            }
            _ => {}
        }
    }
}

/// A header's bytes as text: UTF-8 if they are, else one character a byte (RFC 9110, section 5.5).
fn text(value: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(value).map_or_else(|_| decode_latin1(value), Cow::Borrowed)
}

fn push_link_header<'a>(value: &'a str, mut found: impl FnMut(LinkKind, &'a str, &str)) {
    for link in link_header(value) {
        let kind = link
            .rel
            .as_deref()
            .and_then(|rel| kind_of_rel(rel, link.role.as_deref().unwrap_or_default()));
        if let Some(kind) = kind {
            found(kind, link.target, link.rel.as_deref().unwrap_or_default());
        }
    }
}

/// One link of a `Link` header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderLink<'a> {
    /// The reference between the angle brackets.
    pub target: &'a str,
    /// The first `rel`: relations with white space between them.
    pub rel: Option<Cow<'a, str>>,
    /// The first `as`.
    pub role: Option<Cow<'a, str>>,
}

/// The links of a `Link` header (RFC 8288, appendix B.2). What is malformed is stepped over.
#[must_use]
pub fn link_header(value: &str) -> Vec<HeaderLink<'_>> {
    let mut links = Vec::new();
    let mut rest = value;
    loop {
        rest = rest.trim_start_matches([',', ' ', '\t']);
        let Some(open) = rest.strip_prefix('<') else {
            // not a link: on behind the next comma
            match rest.split_once(',') {
                Some((_, after)) => rest = after,
                None => return links,
            }
            continue;
        };
        let Some((target, parameters)) = open.split_once('>') else {
            return links;
        };
        let mut link = HeaderLink {
            target: target.trim(),
            rel: None,
            role: None,
        };
        rest = parameters;
        while let Some(after) = next_parameter(rest) {
            let (name, value, behind) = parameter(after);
            rest = behind;
            let slot = match name {
                _ if name.eq_ignore_ascii_case("rel") => &mut link.rel,
                _ if name.eq_ignore_ascii_case("as") => &mut link.role,
                _ => continue,
            };
            slot.get_or_insert(value);
        }
        links.push(link);
    }
}

/// Behind the next semicolon, unless a comma or the end comes first.
fn next_parameter(text: &str) -> Option<&str> {
    let at = text.find([';', ','])?;
    text.get(at..)?.strip_prefix(';')
}

/// Name and value of a parameter, and what follows.
fn parameter(text: &str) -> (&str, Cow<'_, str>, &str) {
    let name_end = text.find(['=', ';', ',']).unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    let name = name.trim();
    let Some(rest) = rest.strip_prefix('=') else {
        return (name, Cow::Borrowed(""), rest);
    };
    let rest = rest.trim_start();
    if let Some(quoted) = rest.strip_prefix('"') {
        let (value, rest) = quoted_string(quoted);
        return (name, value, rest);
    }
    let end = rest.find([';', ',']).unwrap_or(rest.len());
    let (value, rest) = rest.split_at(end);
    (name, Cow::Borrowed(value.trim()), rest)
}

/// The value of a quoted string whose opening quote has been read (RFC 9110, section 5.6.4), and what follows.
pub(super) fn quoted_string(text: &str) -> (Cow<'_, str>, &str) {
    let mut value = String::new();
    let mut rest = text;
    loop {
        let at = rest.find(['"', '\\']).unwrap_or(rest.len());
        let (plain, after) = rest.split_at(at);
        let mut after = after.chars();
        match after.next() {
            Some('\\') => {
                value.push_str(plain);
                value.extend(after.next());
                rest = after.as_str();
            }
            _ if value.is_empty() => return (Cow::Borrowed(plain), after.as_str()),
            _ => {
                value.push_str(plain);
                return (Cow::Owned(value), after.as_str());
            }
        }
    }
}

/// What a `Refresh` header or a meta refresh says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refresh<'a> {
    /// Seconds to wait, whole; the largest number if there were too many digits.
    pub delay_s: u64,
    /// Where to; `None` for the page itself.
    pub url: Option<&'a str>,
}

/// Reads a refresh value (HTML Standard, "shared declarative refresh steps"). `None` if it is none.
#[must_use]
pub fn refresh(value: &str) -> Option<Refresh<'_>> {
    let rest = value.trim_start_matches(is_space);
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = rest.split_at(digits);
    if number.is_empty() && !rest.starts_with('.') {
        return None;
    }
    let delay_s = number.bytes().fold(0_u64, |sum, digit| {
        sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    let rest = rest.trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    if !rest.is_empty() && !rest.starts_with(|c: char| c == ';' || c == ',' || is_space(c)) {
        return None;
    }
    let rest = rest.trim_start_matches(is_space);
    let rest = rest
        .strip_prefix([';', ','])
        .unwrap_or(rest)
        .trim_start_matches(is_space);
    let url = (!rest.is_empty()).then(|| refresh_url(rest));
    Some(Refresh { delay_s, url })
}

/// The address of a refresh: `url=` is optional, quotes too.
fn refresh_url(text: &str) -> &str {
    let named = text
        .get(..3)
        .filter(|name| name.eq_ignore_ascii_case("url"))
        .and_then(|_| text.get(3..)?.trim_start_matches(is_space).strip_prefix('='))
        .map(|value| value.trim_start_matches(is_space));
    // `ur` and `url` without an equals sign are the start of an address, quotes in it and all
    let url = match named {
        Some(value) => value,
        None if text.starts_with(['u', 'U']) => return text,
        None => text,
    };
    for quote in ['"', '\''] {
        if let Some(quoted) = url.strip_prefix(quote) {
            return quoted.split(quote).next().unwrap_or_default();
        }
    }
    url
}

/// ASCII white space of the Infra Standard.
fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn head(status: u16, headers: &[(&str, &[u8])]) -> Vec<(LinkKind, String)> {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_vec()))
            .collect();
        let mut found = Links::default();
        links(status, &headers, &mut found);
        found
            .links
            .iter()
            .map(|link| (link.kind, link.raw.to_string()))
            .collect()
    }

    #[test]
    fn each_header_has_its_kind() {
        assert_eq!(head(302, &[("location", b" /a ")]), [(LinkKind::Redirect, "/a".into())]);
        assert_eq!(head(201, &[("location", b"/a")]), [(LinkKind::Navigation, "/a".into())]);
        assert_eq!(
            head(200, &[("refresh", b"5; url=/a")]),
            [(LinkKind::Redirect, "/a".into())]
        );
        assert_eq!(
            head(200, &[("content-location", b"/a")]),
            [(LinkKind::Navigation, "/a".into())]
        );
        assert_eq!(
            head(200, &[("link", b"<a>; rel=stylesheet"), ("link", b"<b>;rel=next, <c>")]),
            [(LinkKind::Stylesheet, "a".into()), (LinkKind::Navigation, "b".into())]
        );
        assert_eq!(
            head(302, &[("location", b"/\xc3\xa9")]),
            [(LinkKind::Redirect, "/é".into())]
        );
        assert_eq!(
            head(302, &[("location", b"/\xe9")]),
            [(LinkKind::Redirect, "/é".into())]
        );
        assert_eq!(
            head(200, &[("refresh", b"5"), ("location", b""), ("etag", b"<x>; rel=next")]),
            [(LinkKind::Navigation, String::new())]
        );
    }

    #[test]
    fn link_headers() {
        let read = |value: &'static str| -> Vec<(&str, Option<String>)> {
            link_header(value)
                .into_iter()
                .map(|link| (link.target, link.rel.map(Cow::into_owned)))
                .collect()
        };
        let rel = |rel: &str| Some(rel.to_owned());
        assert_eq!(
            read("</a,b>; rel=\"next\"; title=\"x, <y>; \\\"z\", < c >; REL = prev"),
            [("/a,b", rel("next")), ("c", rel("prev"))]
        );
        assert_eq!(read("<a>; rel=next; rel=prev, <b>"), [("a", rel("next")), ("b", None)]);
        assert_eq!(read(",, junk, <a>;;x; rel=\"a b\""), [("a", rel("a b"))]);
        assert_eq!(read("<>; rel=self"), [("", rel("self"))]);
        assert_eq!(read("<unclosed; rel=next"), []);
        assert_eq!(read("<a>; rel=\"unclosed"), [("a", rel("unclosed"))]);
        assert_eq!(read("<a>; rel=\"e\\scaped\""), [("a", rel("escaped"))]);
    }

    #[test]
    fn refresh_values() {
        let read = |value: &'static str| refresh(value).map(|refresh| (refresh.delay_s, refresh.url));
        for (value, want) in [
            ("5", Some((5, None))),
            (" 5 ; url = x ", Some((5, Some("x ")))),
            ("5,x", Some((5, Some("x")))),
            ("5 x", Some((5, Some("x")))),
            ("5.9.1;URL='a b'c", Some((5, Some("a b")))),
            (".5; \"a'", Some((0, Some("a'")))),
            ("5; url\"x\"", Some((5, Some("url\"x\"")))),
            ("5; urlx", Some((5, Some("urlx")))),
            ("5; u", Some((5, Some("u")))),
            ("5; url=", Some((5, Some("")))),
            ("99999999999999999999999", Some((u64::MAX, None))),
            ("5x;url=a", None),
            ("-5;url=a", None),
            ("; url=a", None),
            ("", None),
        ] {
            assert_eq!(read(value), want, "{value}");
        }
    }

    proptest! {
        #[test]
        fn any_value_has_an_outcome(value in "[<>;,=\"\\\\ relasu\u{e9}0-9.'\t]{0,60}") {
            let _ = (link_header(&value), refresh(&value));
        }
    }
}
