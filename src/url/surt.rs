//! SURT keys: the sort key of a CDXJ line. Lossy by design (case, `www.`, session ids ...) and never the identity.
//!
//! The rules were found by asking the reference implementation (`surt` of the Python package index), which pywb and `cdxj-indexer` use:
//! percent-encoding undone until nothing changes, then written anew for controls, space, `#`, `%` and everything that
//! is not ASCII; dot segments, doubled and closing slashes removed; session ids dropped; all in lower case; the query
//! sorted by name, then value; the host reversed. `plain` has the forms that change nothing.

pub mod plain;

use super::canonical::octet;
use super::whatwg::to_ascii;

/// What can be asked of a key besides the default. The default is what archives index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent switches of the reference, under its names"
)]
pub struct Options {
    /// `http://(com,example)/` instead of `com,example)/`.
    pub with_scheme: bool,
    /// `com,example,)/`: a prefix of it covers subdomains and nothing else.
    pub trailing_comma: bool,
    /// Drop one leading `www.` (also `www2.` and the like).
    pub host_massage: bool,
    /// Reverse the numbers of an IPv4 address too.
    pub reverse_ipaddr: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            with_scheme: false,
            trailing_comma: false,
            host_massage: true,
            reverse_ipaddr: true,
        }
    }
}

/// The key of an address as the reference `surt` and `cdxj-indexer` write it: `com,example)/path?query`.
///
/// Addresses without a host (`dns:example.com`, `urn:...`) are their own keys; an empty text has the key `-`.
#[must_use]
pub fn surt(href: &str) -> String {
    surt_with(href, Options::default())
}

/// The key in another form.
#[must_use]
pub fn surt_with(href: &str, options: Options) -> String {
    let text: String = href
        .trim()
        .chars()
        .filter(|c| !matches!(c, '\t' | '\n' | '\r'))
        .collect();
    if text.is_empty() {
        return "-".to_owned();
    }
    let (scheme, rest) = match split_scheme(&text) {
        Some((scheme, rest)) if rest.starts_with("//") || matches!(scheme.as_str(), "http" | "https") => (scheme, rest),
        Some(_) => return text.strip_suffix('/').unwrap_or(&text).to_owned(),
        None => ("http".to_owned(), text.as_str()),
    };
    let rest = rest.trim_start_matches('/');
    let rest = rest.split('#').next().unwrap_or_default();
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, tail) = rest.split_at(authority_end);
    let (path, query) = tail.split_once('?').unwrap_or((tail, ""));

    let mut key = String::with_capacity(text.len() + 8);
    if options.with_scheme {
        key.push_str(&scheme);
        key.push_str("://(");
    }
    push_host(&mut key, authority, &scheme, options);
    key.push(')');
    key.push_str(&path_of_key(path));
    let query = query_of_key(query);
    if !query.is_empty() {
        key.push('?');
        key.push_str(&query);
    }
    key
}

fn split_scheme(text: &str) -> Option<(String, &str)> {
    let (name, rest) = text.split_once(':')?;
    let well_formed = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
    well_formed.then(|| (name.to_ascii_lowercase(), rest))
}

/// `user@www.example.com:8080` → `com,example:8080`
fn push_host(key: &mut String, authority: &str, scheme: &str, options: Options) {
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match host_and_port.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => (host, port),
        _ => (host_and_port, ""),
    };
    let host = to_ascii(host).unwrap_or_else(|| host.to_ascii_lowercase());
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let host = if options.host_massage { without_www(host) } else { host };

    let is_ipv4 = host.parse::<std::net::Ipv4Addr>().is_ok();
    if is_ipv4 && !options.reverse_ipaddr {
        key.push_str(host);
    } else {
        let labels = host.rsplit('.').filter(|label| !label.is_empty());
        key.push_str(&labels.collect::<Vec<_>>().join(","));
        if options.trailing_comma {
            key.push(',');
        }
    }
    let port = port.trim_start_matches('0');
    let is_default = matches!((scheme, port), (_, "") | ("http", "80") | ("https", "443"));
    if !is_default {
        key.push(':');
        key.push_str(port);
    }
}

/// Without `www.`, `www2.` ..., unless nothing would be left.
fn without_www(host: &str) -> &str {
    host.strip_prefix("www")
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()))
        .and_then(|rest| rest.strip_prefix('.'))
        .filter(|rest| !rest.is_empty())
        .unwrap_or(host)
}

fn path_of_key(path: &str) -> String {
    let path = rewritten(path);
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                // above the root the reference keeps the dots
                if segments.pop().is_none() {
                    segments.push(segment);
                }
            }
            other => segments.push(other),
        }
    }
    segments.retain(|segment| !segment.is_empty());
    drop_last_before_aspx(&mut segments, is_session_id);
    drop_last_before_aspx(&mut segments, is_named_session_ids);
    format!("/{}", segments.join("/"))
}

/// Drops the last segment of a kind that an `.aspx` page follows.
fn drop_last_before_aspx(segments: &mut Vec<&str>, kind: fn(&str) -> bool) {
    let page_follows = |at: usize| {
        let rest = segments.get(at + 1..).unwrap_or_default().join("/");
        let before_question = rest.split('?').next().unwrap_or_default();
        before_question.rfind(".aspx").is_some_and(|page| page > 0)
    };
    let ids = segments.iter().enumerate().rev().filter(|(_, segment)| kind(segment));
    // a page that does not follow the second last does not follow the ones before it either, but for `id/id/.aspx`
    if let Some(at) = ids.map(|(at, _)| at).take(2).find(|&at| page_follows(at)) {
        segments.remove(at);
    }
}

/// `(24 characters)`
fn is_session_id(segment: &str) -> bool {
    after_id(segment).is_some_and(str::is_empty)
}

/// `(S(24 characters))`, `(A(24 characters)F(24 characters))` ...
fn is_named_session_ids(segment: &str) -> bool {
    let Some(mut ids) = segment.strip_prefix('(').and_then(|s| s.strip_suffix(')')) else {
        return false;
    };
    while let Some(rest) = ids.strip_prefix(|c: char| c.is_ascii_alphabetic()).and_then(after_id) {
        if rest.is_empty() {
            return true;
        }
        ids = rest;
    }
    false
}

/// What follows `(24 characters)`.
fn after_id(text: &str) -> Option<&str> {
    skip(text.strip_prefix('(')?, 24, u8::is_ascii_alphanumeric)?.strip_prefix(')')
}

fn query_of_key(query: &str) -> String {
    let mut query = rewritten(query);
    for name in ["jsessionid=", "phpsessid=", "sid="] {
        drop_last_parameter(&mut query, |text| {
            skip(text.strip_prefix(name)?, 32, u8::is_ascii_alphanumeric)
        });
    }
    drop_last_parameter(&mut query, |text| {
        let name = skip(text.strip_prefix("aspsessionid")?, 8, u8::is_ascii_alphabetic)?;
        skip(name.strip_prefix('=')?, 24, u8::is_ascii_alphabetic)
    });
    drop_last_parameter(&mut query, |text| {
        let token = until_ampersand(text.strip_prefix("cfid=")?)?.strip_prefix("&cftoken=")?;
        until_ampersand(token)
    });
    let mut parameters: Vec<&str> = query.split('&').collect();
    parameters.sort_by_key(|parameter| parameter.split_at(parameter.find('=').unwrap_or(parameter.len())));
    parameters.join("&")
}

/// Removes the last stretch that `matches` (which returns what follows it), if `&` or the end follows; the `&` goes too.
fn drop_last_parameter(query: &mut String, matches: impl Fn(&str) -> Option<&str>) {
    for start in (0..query.len()).rev() {
        let Some(rest) = query.get(start..).and_then(&matches) else {
            continue;
        };
        let Some(after) = rest.strip_prefix('&').or(rest.is_empty().then_some("")) else {
            continue;
        };
        query.replace_range(start..query.len() - after.len(), "");
        return;
    }
}

/// What follows the first `count` bytes, if all of them are of the class.
fn skip(text: &str, count: usize, class: fn(&u8) -> bool) -> Option<&str> {
    text.split_at_checked(count)
        .filter(|(head, _)| head.as_bytes().iter().all(class))
        .map(|(_, tail)| tail)
}

/// What follows a value of at least one byte.
fn until_ampersand(text: &str) -> Option<&str> {
    let len = text.find('&').unwrap_or(text.len());
    text.get(len..).filter(|_| len > 0)
}

/// A path or query in the one spelling of keys: percent-encoding undone until nothing is left of it (`%2541` is `A`),
/// in lower case, and what must not stand in a key encoded anew.
fn rewritten(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| HEX.get(usize::from(value)).map_or('0', |&b| char::from(b));
    let mut rewritten = String::with_capacity(text.len());
    for byte in unescaped(text) {
        if byte <= b' ' || byte >= 0x7f || matches!(byte, b'#' | b'%') {
            rewritten.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            rewritten.push(char::from(byte.to_ascii_lowercase()));
        }
    }
    rewritten
}

/// In one pass: a byte that comes out may complete a further escape.
fn unescaped(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text.bytes() {
        out.push(byte);
        while let Some(&[b'%', high, low]) = out.last_chunk::<3>()
            && let Some(value) = octet(high, low)
        {
            out.truncate(out.len() - 3);
            out.push(value);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_those_of_the_reference() {
        for (href, key) in [
            ("http://shop.example.net", "net,example,shop)/"),
            ("https://www3.Example.net:443/A//b/./c/../?", "net,example)/a/b"),
            ("http://www.net/", "net)/"),
            ("http://www/", "www)/"),
            ("http://www.www2.example.net/", "net,example,www2)/"),
            ("http://u:p@example.net:8080#top", "net,example:8080)/"),
            ("http://example.net:0080/x", "net,example)/x"),
            ("https://example.net:80/x", "net,example:80)/x"),
            ("ftp://example.net:21/x", "net,example:21)/x"),
            ("http://192.0.2.7:81/", "7,2,0,192:81)/"),
            ("http://[2001:db8::7]:81/", "2001:db8::7:81)/"),
            ("http://\u{e4}.example/\u{e4}", "example,xn--4ca)/%c3%a4"),
            ("http://example..net./", "net,example)/"),
            ("http://example.net/../x", "net,example)/../x"),
            ("http://example.net/%2541%25%2523%2520", "net,example)/a%25%23%20"),
            ("http://example.net/a%3Fb?c", "net,example)/a?b?c"),
            (
                "http://example.net/?b=2&B=1&a=%26&&x-=1&x",
                "net,example)/?&&a=&b=1&b=2&x&x-=1",
            ),
            ("http://example.net/?\u{e9}&z", "net,example)/?%c3%a9&z"),
            ("//example.net/x", "net,example)/x"),
            ("example.net", "net,example)/"),
            ("dns:example.net", "dns:example.net"),
            ("urn:x:http://example.net/", "urn:x:http://example.net"),
            ("", "-"),
        ] {
            assert_eq!(surt(href), key, "{href}");
        }
    }

    #[test]
    fn session_ids_are_dropped_where_the_reference_drops_them() {
        let id32 = "0123456789aBcDeF0123456789abcdef";
        let id24 = "abcdefghijklmnopqrstuvwx";
        for (tail, key_tail) in [
            (format!("a?sid={id32}"), "a".to_owned()),
            (format!("a?x=1&jsessionid={id32}&b"), "a?b&x=1".to_owned()),
            (format!("a?x=1&PHPSESSID={id32}"), "a?&x=1".to_owned()),
            (
                format!("a?sid={id32}0"),
                format!("a?sid={}0", id32.to_ascii_lowercase()),
            ),
            (format!("a?aspsessionidABCDEFGH={id24}&b"), "a?b".to_owned()),
            ("a?cfid=1&cftoken=2&b".to_owned(), "a?b".to_owned()),
            ("a?cfid=&cftoken=2".to_owned(), "a?cfid=&cftoken=2".to_owned()),
            (format!("(S({id24}))/p.aspx"), "p.aspx".to_owned()),
            (format!("(A({id24})f({id24}))/x/p.aspx"), "x/p.aspx".to_owned()),
            (format!("({id24})/p.aspx"), "p.aspx".to_owned()),
            (format!("({id24})/.aspx"), format!("({id24})/.aspx")),
            (format!("({id24})/p.html"), format!("({id24})/p.html")),
            (format!("(1({id24}))/p.aspx"), format!("(1({id24}))/p.aspx")),
        ] {
            assert_eq!(
                surt(&format!("http://example.net/{tail}")),
                format!("net,example)/{key_tail}"),
                "{tail}"
            );
        }
    }

    #[test]
    fn the_other_forms() {
        let href = "https://www.example.net/";
        let standard = Options::default();
        assert_eq!(
            surt_with(
                href,
                Options {
                    with_scheme: true,
                    ..standard
                }
            ),
            "https://(net,example)/"
        );
        assert_eq!(
            surt_with(
                href,
                Options {
                    trailing_comma: true,
                    ..standard
                }
            ),
            "net,example,)/"
        );
        assert_eq!(
            surt_with(
                href,
                Options {
                    host_massage: false,
                    ..standard
                }
            ),
            "net,example,www)/"
        );
        assert_eq!(
            surt_with(
                "http://192.0.2.7/",
                Options {
                    reverse_ipaddr: false,
                    ..standard
                }
            ),
            "192.0.2.7)/"
        );
    }

    proptest! {
        #[test]
        fn any_text_has_a_key_without_white_space(text in any::<String>()) {
            let key = surt(&format!("http://example.net/{text}"));
            prop_assert!(key.bytes().all(|b| b > b' ' && b < 0x7f), "{key:?}");
            let _ = surt(&text);
        }
    }
}
