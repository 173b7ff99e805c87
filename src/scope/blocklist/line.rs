//! One line of a blocklist, in the forms that people have.

use std::borrow::Cow;
use std::net::IpAddr;

use crate::url::{CrawlUrl, Identity};

/// Names in hosts files that stand for the machine itself.
const OWN_NAMES: [&str; 9] = [
    "localhost",
    "localhost.localdomain",
    "local",
    "broadcasthost",
    "ip6-localhost",
    "ip6-loopback",
    "ip6-localnet",
    "ip6-allnodes",
    "ip6-allrouters",
];
/// Options of adblock rules that leave nothing out of a rule.
const WHOLE_OPTIONS: [&str; 4] = ["all", "document", "doc", "important"];
/// Longest piece of a bad line that is shown, characters.
const SHOWN_CHARS: usize = 60;

/// What a line blocks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Parsed<'a> {
    /// A host, canonical, perhaps with a port, and all below it.
    Host(Cow<'a, str>),
    /// `host/path`, canonical.
    Prefix(String),
}

/// Hands what a line blocks to `take`, and says whether that was anything. Comments and blank lines block nothing.
///
/// # Errors
/// Why the line cannot be used.
pub(super) fn parse(line: &[u8], first: bool, mut take: impl FnMut(Parsed<'_>)) -> Result<bool, String> {
    let line = line.strip_prefix(b"\xEF\xBB\xBF").filter(|_| first).unwrap_or(line);
    let text = std::str::from_utf8(line).map_err(|_| "not UTF-8".to_owned())?.trim();
    if text.is_empty() || text.starts_with(['#', '!']) && !is_cosmetic(text) || text.starts_with('[') && first {
        return Ok(false);
    }
    let text = text
        .find(" #")
        .or_else(|| text.find("\t#"))
        .and_then(|at| text.get(..at))
        .unwrap_or(text);
    let mut words = text.split_whitespace();
    let (word, rest) = (words.next().unwrap_or_default(), words);
    let mut names = rest.peekable();
    if names.peek().is_none() {
        return one(word).map(|parsed| {
            take(parsed);
            true
        });
    }
    if word.parse::<IpAddr>().is_err() {
        return Err(format!("{}: one name a line, or a line of a hosts file", shown(text)));
    }
    let mut took = false;
    for name in names.filter(|name| !OWN_NAMES.contains(name) && name.parse::<IpAddr>().is_err()) {
        take(host(name).ok_or_else(|| format!("{}: no host", shown(name)))?);
        took = true;
    }
    Ok(took)
}

/// A rule that hides parts of pages (`##.banner`) begins like a comment.
fn is_cosmetic(text: &str) -> bool {
    text.starts_with("##") && text.get(2..).is_some_and(|rest| rest.starts_with(['.', '[', '*']))
}

fn one(word: &str) -> Result<Parsed<'_>, String> {
    if ["##", "#@#", "#?#", "#$#"].iter().any(|mark| word.contains(mark)) {
        return Err(format!("{}: hides parts of pages, blocks no address", shown(word)));
    }
    if word.starts_with("@@") {
        return Err(format!("{}: exceptions are not known here", shown(word)));
    }
    let (word, adblock) = word.strip_prefix("||").map_or((word, false), |rest| (rest, true));
    let (word, options) = match word.split_once('$') {
        Some((word, options)) if adblock => (word, options),
        _ => (word, ""),
    };
    if let Some(option) = options
        .split(',')
        .find(|option| !option.is_empty() && !WHOLE_OPTIONS.contains(option))
    {
        return Err(format!(
            "{}: the option {option} makes it block a part only",
            shown(word)
        ));
    }
    let word = word.trim_end_matches('*');
    let word = word.strip_suffix('^').unwrap_or(word);
    let word = word
        .strip_prefix("*.")
        .or_else(|| word.strip_prefix('.'))
        .unwrap_or(word);
    if word.contains(['*', '|', '^']) {
        return Err(format!("{}: patterns are not known here (see --exclude)", shown(word)));
    }
    address(word).ok_or_else(|| format!("{}: no host and no URL", shown(word)))
}

/// A host, or a URL with or without its scheme.
fn address(word: &str) -> Option<Parsed<'_>> {
    if let Some(plain) = plain_host(word) {
        return Some(Parsed::Host(plain));
    }
    let url = match word.split_once("://") {
        Some(_) => CrawlUrl::parse(word, &Identity::default()),
        None if word.starts_with('/') || word.contains('@') => return None,
        None => CrawlUrl::parse(&format!("http://{word}"), &Identity::default()),
    };
    let url = url.ok()?;
    let identity = url.standard();
    let from_host = identity.split_once("://").map_or(identity, |(_, rest)| rest);
    let host = url.host_key();
    Some(match from_host.get(host.len()..) {
        // a URL without a path is its host
        None | Some("" | "/") => Parsed::Host(host.to_owned().into()),
        Some(_) => Parsed::Prefix(from_host.to_owned()),
    })
}

fn host(name: &str) -> Option<Parsed<'_>> {
    match address(name)? {
        Parsed::Prefix(_) => None,
        host @ Parsed::Host(_) => Some(host),
    }
}

/// A host that is canonical as it stands, but for capitals: nearly every line of a long list.
fn plain_host(word: &str) -> Option<Cow<'_, str>> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let (first, last) = (word.bytes().next()?, word.bytes().next_back()?);
    let outer = |byte: u8| byte != b'.' && byte != b'-';
    let fits = word.len() <= 253 && word.bytes().all(plain) && outer(first) && outer(last);
    // what ends in a digit may be an address in one of its many spellings, and A-labels may be wrong
    if !fits || last.is_ascii_digit() || word.contains("..") || word.contains("xn--") || word.contains("XN--") {
        return None;
    }
    if word.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return plain_host_ends(word).then(|| Cow::Owned(word.to_ascii_lowercase()));
    }
    plain_host_ends(word).then_some(Cow::Borrowed(word))
}

/// A last label such as `0xa` is a number to the URL Standard.
fn plain_host_ends(word: &str) -> bool {
    let label = word.rsplit('.').next().unwrap_or_default();
    !label.bytes().next().is_some_and(|first| first.is_ascii_digit())
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(SHOWN_CHARS).collect();
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("{short:?}{dots}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(line: &str) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        parse(line.as_bytes(), true, |parsed| {
            found.push(match parsed {
                Parsed::Host(host) => host.into_owned(),
                Parsed::Prefix(prefix) => format!("prefix {prefix}"),
            });
        })?;
        Ok(found)
    }

    #[test]
    fn the_forms_that_people_have() {
        for (line, expected) in [
            ("", &[][..]),
            ("# comment", &[]),
            ("! comment", &[]),
            ("[Adblock Plus 2.0]", &[]),
            ("\u{FEFF}Bad.Test.\r\n", &["bad.test"]),
            ("bad.test # why", &["bad.test"]),
            ("0.0.0.0 bad.test", &["bad.test"]),
            ("127.0.0.1\tlocalhost a.test b.test # two", &["a.test", "b.test"]),
            ("::1 localhost ip6-localhost", &[]),
            ("0.0.0.0 0.0.0.0", &[]),
            ("||bad.test^", &["bad.test"]),
            ("||bad.test^$all,important", &["bad.test"]),
            ("||bad.test/ads/*", &["prefix bad.test/ads/"]),
            ("*.bad.test", &["bad.test"]),
            (".bad.test", &["bad.test"]),
            ("https://bad.test", &["bad.test"]),
            ("https://bad.test/%7Ea/../b?c", &["prefix bad.test/b?c"]),
            ("bad.test/a", &["prefix bad.test/a"]),
            ("bad.test:8080", &["bad.test:8080"]),
            ("under_score.test", &["under_score.test"]),
            ("0x7f.1", &["127.0.0.1"]),
            ("[2001:DB8::1]:81", &["[2001:db8::1]:81"]),
        ] {
            // the head of an adblock file stands on its first line only, and an IPv6 address looks like it
            if line.starts_with("[2001") {
                let mut found = Vec::new();
                parse(line.as_bytes(), false, |parsed| {
                    if let Parsed::Host(host) = parsed {
                        found.push(host.into_owned());
                    }
                })
                .unwrap();
                assert_eq!(found, expected, "{line:?}");
                continue;
            }
            assert_eq!(all(line).unwrap(), expected, "{line:?}");
        }
    }

    #[test]
    fn what_blocks_only_a_part_is_refused() {
        for line in [
            "two words",
            "@@||bad.test^",
            "bad.test##.banner",
            "##.banner",
            "||bad.test^$third-party",
            "||bad.*.test^",
            "/ads/",
            "me@bad.test",
            "ftp://bad.test/",
            "0.0.0.0 bad.test/path",
            "||^",
        ] {
            assert!(all(line).is_err(), "{line:?}: {:?}", all(line));
        }
    }
}
