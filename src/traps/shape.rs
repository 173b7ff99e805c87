//! The shape of an address: what stays of it when everything that a machine counts up is folded.
//!
//! A run of digits becomes `#`, and so does a run of letters and digits that looks drawn (a hash, a session id). Of the
//! query only the names are kept, sorted. `/p/12?s=9` and `/p/7?s=x` share the shape `/p/#?s`.

use crate::url::CrawlUrl;

/// A run of letters and digits at least this long, with digits before its end, is a drawn one.
const DRAWN_LETTERS: usize = 8;
/// A run of hexadecimal digits at least this long is a drawn one wherever its digits stand.
const DRAWN_HEX: usize = 10;
/// Parameters that are looked at, from the start.
pub(super) const MAX_NAMES: usize = 64;

/// The hashes that two addresses of a kind share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Path and names of the query, folded.
    pub(super) whole: u64,
    /// The folded path.
    pub(super) path: u64,
    /// The path up to its first folded segment, if something follows it.
    pub(super) stem: Option<u64>,
    /// The names of the query, if it has any.
    pub(super) names: Option<u64>,
    /// It looks like an address of a calendar: the path before the date.
    pub(super) date: Option<u64>,
    /// How deep it stands, under which first folder, and how its name ends: a picture is not on the level of its page.
    pub(super) level: u64,
}

/// FNV-1a, 64 bit, finished by a multiplication so that every 16 bits of it are well mixed. Shapes need no secret: whoever
/// makes two of them collide has two of his own addresses counted as one.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    mix(bytes.iter().fold(START, |hash, byte| step(hash, *byte)))
}

pub(super) const START: u64 = 0xcbf2_9ce4_8422_2325;

pub(super) fn step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}

/// The finish of `SplitMix64`.
pub(super) fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

impl Shape {
    /// The shape of an address.
    #[must_use]
    pub fn of(url: &CrawlUrl) -> Self {
        let (path, query) = parts(url);
        let mut folded = String::with_capacity(path.len());
        fold(path, &mut folded);
        let stem = stem(&folded);
        let names = names(query);
        let path_hash = hash(folded.as_bytes());
        let names_hash = (!names.is_empty()).then(|| hash(names.join("&").as_bytes()));
        Self {
            whole: mix(path_hash ^ names_hash.unwrap_or(0).rotate_left(17)),
            path: path_hash,
            stem: stem
                .filter(|stem| folded.len() > stem.len() + 1)
                .map(|stem| hash(stem.as_bytes())),
            names: names_hash,
            date: is_date(path, &folded, &names).then(|| hash(before_date(&folded).as_bytes())),
            level: level(path),
        }
    }

    /// The shape as text, for people.
    #[must_use]
    pub fn text(url: &CrawlUrl) -> String {
        let (path, query) = parts(url);
        let mut text = String::with_capacity(path.len());
        fold(path, &mut text);
        let names = names(query);
        if !names.is_empty() {
            text.push('?');
            text.push_str(&names.join("&"));
        }
        text
    }

    /// Does it look like an address of a calendar?
    #[must_use]
    pub fn is_date(&self) -> bool {
        self.date.is_some()
    }
}

fn parts(url: &CrawlUrl) -> (&str, &str) {
    let text = url.path_and_query();
    text.split_once('?').unwrap_or((text, ""))
}

/// The names of a query, sorted, each once.
pub(super) fn names(query: &str) -> Vec<&str> {
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let mut names: Vec<&str> = parameters
        .take(MAX_NAMES)
        .map(|parameter| parameter.split('=').next().unwrap_or(parameter))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn fold(path: &str, out: &mut String) {
    let mut rest = path;
    while !rest.is_empty() {
        let run = rest.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let (word, after) = rest.split_at_checked(run).unwrap_or((rest, ""));
        if is_drawn(word) {
            out.push('#');
        } else {
            let mut in_digits = false;
            for letter in word.chars() {
                if !letter.is_ascii_digit() {
                    out.push(letter);
                } else if !in_digits {
                    out.push('#');
                }
                in_digits = letter.is_ascii_digit();
            }
        }
        let mut after = after.chars();
        out.extend(after.next());
        rest = after.as_str();
    }
}

/// Does this run of letters and digits look drawn rather than named? `3f0e1d2c` and `Ab3xY9q2` do, `chapter12` does not.
pub(super) fn is_drawn(word: &str) -> bool {
    let named = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
    if word.len() >= DRAWN_HEX && named.len() < word.len() && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return true;
    }
    word.len() >= DRAWN_LETTERS && (named.is_empty() || named.bytes().any(|byte| byte.is_ascii_digit()))
}

/// Up to and including the first segment with a fold.
fn stem(folded: &str) -> Option<&str> {
    let fold = folded.find('#')?;
    let end = folded
        .get(fold..)
        .and_then(|rest| rest.find('/'))
        .map_or(folded.len(), |len| fold + len);
    folded.get(..end)
}

fn level(path: &str) -> u64 {
    let mut folders = path.split('/').skip(1);
    let first = folders.next().unwrap_or_default();
    let deeper = folders.clone().count();
    let name = folders.last().unwrap_or(first);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let folder = if deeper == 0 { 0 } else { hash(first.as_bytes()) };
    mix(folder ^ hash(ending.as_bytes()).rotate_left(32) ^ deeper as u64)
}

fn before_date(folded: &str) -> &str {
    folded.split('#').next().unwrap_or(folded)
}

/// A year and a month side by side, a day written in one word, a parameter that names a time, or a calendar by name.
fn is_date(path: &str, folded: &str, names: &[&str]) -> bool {
    const TIMES: [&str; 9] = [
        "date",
        "day",
        "month",
        "year",
        "week",
        "cal_date",
        "calendar",
        "yearmonth",
        "start_date",
    ];
    const SHORT: [&str; 7] = ["y", "m", "d", "w", "yr", "mo", "wk"];
    const CALENDARS: [&str; 4] = ["calendar", "cal", "kalender", "agenda"];
    let known = |list: &[&str], name: &str| list.iter().any(|known| known.eq_ignore_ascii_case(name));
    if names.iter().any(|name| known(&TIMES, name)) || names.iter().filter(|name| known(&SHORT, name)).count() > 1 {
        return true;
    }
    let varies = folded.contains('#') || !names.is_empty();
    if varies && path.split(['/', '.']).any(|segment| known(&CALENDARS, segment)) {
        return true;
    }
    let mut numbers = path.split(['/', '-', '_', '.']).peekable();
    while let Some(number) = numbers.next() {
        let month = numbers
            .peek()
            .is_some_and(|next| matches!(next.len(), 1..=2) && (1..=12).contains(&next.parse().unwrap_or(0)));
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let year = |text: Option<&str>| {
            text.and_then(|text| text.parse().ok())
                .is_some_and(|year: u32| (1000..3000).contains(&year))
        };
        if is_number && number.len() == 4 && year(Some(number)) && month {
            return true;
        }
        let within = |from, to, most| {
            let value = number.get(from..to).and_then(|text| text.parse::<u32>().ok());
            value.is_some_and(|value| (1..=most).contains(&value))
        };
        if is_number && number.len() == 8 && year(number.get(..4)) && within(4, 6, 12) && within(6, 8, 31) {
            return true;
        }
    }
    false
}
