//! SURT keys: the sort key of a CDXJ line. Lossy by design (case, `www.`, session ids ...) and never the identity.
//!
//! The rules were found by asking the reference implementation (PyPI `surt`), which pywb and `cdxj-indexer` use:
//! percent-encoding undone until nothing changes, then written anew for controls, space, `#`, `%` and everything that
//! is not ASCII; dot segments, doubled and closing slashes removed; session ids dropped; all in lower case; the query
//! sorted by name, then value; the host reversed.

use super::canonical::octet;
use super::whatwg::to_ascii;

/// What can be asked of a key besides the default. The default is what archives index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "four independent switches of the reference, under its names")]
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
        Self { with_scheme: false, trailing_comma: false, host_massage: true, reverse_ipaddr: true }
    }
}

/// The key of an address as PyPI `surt` and `cdxj-indexer` write it: `com,example)/path?query`.
///
/// Addresses without a host (`dns:example.com`, `urn:...`) are their own keys; an empty text has the key `-`.
#[must_use]
pub fn surt(href: &str) -> String {
    surt_with(href, Options::default())
}

/// The key in another form.
#[must_use]
pub fn surt_with(href: &str, options: Options) -> String {
    let text: String = href.trim().chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).collect();
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
    push_escaped(&mut key, &path_of_key(path));
    let query = query_of_key(query);
    if !query.is_empty() {
        key.push('?');
        push_escaped(&mut key, &query);
    }
    key
}

fn split_scheme(text: &str) -> Option<(String, &str)> {
    let (name, rest) = text.split_once(':')?;
    let well_formed = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'));
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

fn path_of_key(path: &str) -> Vec<u8> {
    let mut path = unescaped(path);
    path.make_ascii_lowercase();
    let mut segments: Vec<&[u8]> = Vec::new();
    for segment in path.split(|&b| b == b'/').skip(1) {
        match segment {
            b"." => {}
            b".." => {
                // above the root the reference keeps the dots
                if segments.pop().is_none() {
                    segments.push(segment);
                }
            }
            other => segments.push(other),
        }
    }
    segments.retain(|segment| !segment.is_empty());
    drop_aspx_session(&mut segments);
    let mut key = vec![b'/'];
    key.extend(segments.join(&b'/'));
    key
}

/// Drops the last segment such as `(S(24 characters))` or `(24 characters)` before an `.aspx`.
fn drop_aspx_session(segments: &mut Vec<&[u8]>) {
    let before_page = |at: usize, segments: &[&[u8]]| {
        let rest = segments.get(at + 1..).unwrap_or_default().join(&b'/');
        let first_question = rest.iter().position(|&b| b == b'?').unwrap_or(rest.len());
        let page = rest.windows(5).position(|five| five == b".aspx");
        page.is_some_and(|page| page > 0 && page < first_question)
    };
    let session = segments.iter().rposition(|segment| is_aspx_session(segment));
    if let Some(at) = session
        && before_page(at, segments)
    {
        segments.remove(at);
    }
}

fn is_aspx_session(segment: &[u8]) -> bool {
    const ID: usize = 24;
    let Some(mut inner) = segment.strip_prefix(b"(").and_then(|s| s.strip_suffix(b")")) else { return false };
    let is_id = |text: &[u8]| text.len() == ID && text.iter().all(u8::is_ascii_alphanumeric);
    if is_id(inner) {
        return true;
    }
    // one or more of `S(24 characters)`
    while let [letter, b'(', rest @ ..] = inner {
        let Some((id, after)) = rest.split_at_checked(ID) else { return false };
        let Some(after) = after.strip_prefix(b")") else { return false };
        if !letter.is_ascii_alphabetic() || !is_id(id) {
            return false;
        }
        if after.is_empty() {
            return true;
        }
        inner = after;
    }
    false
}

fn query_of_key(query: &str) -> Vec<u8> {
    let mut query = unescaped(query);
    query.make_ascii_lowercase();
    for name in [&b"jsessionid="[..], b"phpsessid=", b"sid="] {
        drop_last_parameter(&mut query, |text| text.strip_prefix(name).and_then(|id| skip(id, 32, u8::is_ascii_alphanumeric)));
    }
    drop_last_parameter(&mut query, |text| {
        let name = skip(text.strip_prefix(b"aspsessionid")?, 8, u8::is_ascii_alphabetic)?;
        skip(name.strip_prefix(b"=")?, 24, u8::is_ascii_alphabetic)
    });
    drop_last_parameter(&mut query, |text| {
        let token = until_ampersand(text.strip_prefix(b"cfid=")?)?.strip_prefix(b"&cftoken=")?;
        until_ampersand(token)
    });
    if query.is_empty() {
        return query;
    }
    let mut parameters: Vec<&[u8]> = query.split(|&b| b == b'&').collect();
    parameters.sort_by_key(|parameter| {
        let name_len = parameter.iter().position(|&b| b == b'=').unwrap_or(parameter.len());
        parameter.split_at_checked(name_len)
    });
    parameters.join(&b'&')
}

/// Removes the last stretch that `matches` (which returns what follows it), if `&` or the end follows; the `&` goes too.
fn drop_last_parameter(query: &mut Vec<u8>, matches: impl Fn(&[u8]) -> Option<&[u8]>) {
    for start in (0..query.len()).rev() {
        let Some(rest) = query.get(start..).and_then(&matches) else { continue };
        let after = match rest {
            [] => 0,
            [b'&', tail @ ..] => tail.len(),
            _ => continue,
        };
        query.drain(start..query.len() - after);
        return;
    }
}

/// What follows the first `count` bytes, if all of them are of the class.
fn skip(text: &[u8], count: usize, class: fn(&u8) -> bool) -> Option<&[u8]> {
    text.split_at_checked(count).filter(|(head, _)| head.iter().all(class)).map(|(_, tail)| tail)
}

/// What follows a value of at least one byte.
fn until_ampersand(text: &[u8]) -> Option<&[u8]> {
    let len = text.iter().position(|&b| b == b'&').unwrap_or(text.len());
    text.get(len..).filter(|_| len > 0)
}

/// Percent-encoding undone until nothing is left of it (`%2541` is `A`), in one pass.
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

fn push_escaped(key: &mut String, text: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| HEX.get(usize::from(value)).map_or('0', |&b| char::from(b));
    for &byte in text {
        if byte <= b' ' || byte >= 0x7f || matches!(byte, b'#' | b'%') {
            key.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        } else {
            key.push(char::from(byte));
        }
    }
}
