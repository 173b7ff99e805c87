//! One line of a robots.txt → its field and value.

use std::time::Duration;

use super::MAX_CRAWL_DELAY;

/// The fields that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    UserAgent,
    Allow,
    Disallow,
    CrawlDelay,
    Sitemap,
}

/// The longest name of a field, in bytes, so that a junk line is not read to its end for one.
const MAX_NAME_BYTES: usize = 32;

/// What is read of one line, in bytes: as much as the large search engines read (eight times the longest address that
/// old browsers took, 2,083). A rule that is cut there covers more than was written.
pub(super) const MAX_LINE_BYTES: usize = 8 * 2_083 - 1;

/// Slips of the pen in the name of a field after which it still counts.
const MAX_SLIPS: usize = 2;

/// Splits a line at its colon, or, if it has none, at the white space between its only two words.
pub(super) fn parse(line: &[u8]) -> Option<(Field, &[u8])> {
    let line = line.get(..MAX_LINE_BYTES).unwrap_or(line);
    let line = line.split(|&b| b == b'#').next().unwrap_or_default();
    let line = trimmed(line);
    let colon = line.iter().take(MAX_NAME_BYTES).position(|&b| b == b':');
    let (name, value) = match colon {
        Some(at) => (line.get(..at)?, line.get(at + 1..)?),
        None => two_words(line)?,
    };
    Some((field(trimmed(name))?, without_line_break(trimmed(value))))
}

fn two_words(line: &[u8]) -> Option<(&[u8], &[u8])> {
    if line.contains(&b':') {
        return None;
    }
    let mut words = line.split(|&b| is_space(b)).filter(|word| !word.is_empty());
    let (name, value) = (words.next()?, words.next()?);
    words.next().is_none().then_some((name, value))
}

/// The field of a name, whatever its case. The names that restrict a crawler are also known by near misses, such as
/// `dissalow` and `useragent`, which are seen on many sites.
fn field(name: &[u8]) -> Option<Field> {
    let name = name.to_ascii_lowercase();
    match name.as_slice() {
        b"user-agent" => Some(Field::UserAgent),
        b"allow" => Some(Field::Allow),
        b"disallow" => Some(Field::Disallow),
        b"crawl-delay" | b"crawldelay" | b"crawl delay" => Some(Field::CrawlDelay),
        b"sitemap" | b"site-map" => Some(Field::Sitemap),
        near if is_near(near, b"disallow") => Some(Field::Disallow),
        near if is_near(near, b"user-agent") => Some(Field::UserAgent),
        _ => None,
    }
}

/// Are at most [`MAX_SLIPS`] letters missing, surplus or wrong? (Levenshtein's distance.)
fn is_near(name: &[u8], word: &[u8]) -> bool {
    let is_of_name = |letter: &u8| letter.is_ascii_lowercase() || matches!(letter, b'-' | b'_' | b' ');
    if name.len().abs_diff(word.len()) > MAX_SLIPS || !name.iter().all(is_of_name) {
        return false;
    }
    // the distances of all starts of `word` from the start of `name` read so far
    let mut distances: Vec<usize> = (0..=word.len()).collect();
    for (read, letter) in name.iter().enumerate() {
        let mut diagonal = read;
        let mut left = read + 1;
        if let Some(first) = distances.first_mut() {
            *first = left;
        }
        for (above, wanted) in distances.iter_mut().skip(1).zip(word) {
            let here = (diagonal + usize::from(letter != wanted)).min(left + 1).min(*above + 1);
            diagonal = std::mem::replace(above, here);
            left = here;
        }
    }
    distances.last().is_some_and(|&slips| slips <= MAX_SLIPS)
}

/// The product token at the start of a `User-agent` value (RFC 9309 section 2.2.1): `examplebot` of `ExampleBot/1.0`.
pub(super) fn product_prefix(value: &[u8]) -> &[u8] {
    let len = value
        .iter()
        .take_while(|b| b.is_ascii_alphabetic() || matches!(b, b'-' | b'_'))
        .count();
    value.get(..len).unwrap_or_default()
}

/// The first word of a `User-agent` value, without a version: `bot9` of `bot9/1.0 (beta)`.
pub(super) fn first_word(value: &[u8]) -> &[u8] {
    value.split(|&b| b == b'/' || is_space(b)).next().unwrap_or_default()
}

/// The value of a `Crawl-delay` line: seconds, fractions allowed. `None` if it is no number or below zero.
pub(super) fn seconds(value: &[u8]) -> Option<Duration> {
    let number = value.split(|&b| is_space(b)).next()?;
    let seconds: f64 = std::str::from_utf8(number).ok()?.parse().ok()?;
    let cap = MAX_CRAWL_DELAY.as_secs_f64();
    (seconds >= 0.0).then(|| Duration::from_secs_f64(seconds.min(cap)))
}

/// A file that went through an HTML editor: without the `<br>` at the end of a line.
fn without_line_break(value: &[u8]) -> &[u8] {
    for tag in [&b"<br>"[..], b"<br/>", b"<br />"] {
        let at = value.len().saturating_sub(tag.len());
        if let Some((text, end)) = value.split_at_checked(at)
            && end.eq_ignore_ascii_case(tag)
        {
            return trimmed(text);
        }
    }
    value
}

fn trimmed(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_space(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_space(*last)
    {
        text = rest;
    }
    text
}

/// White space, and the NULs that some editors leave.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\x0b' | b'\x0c' | b'\0')
}
