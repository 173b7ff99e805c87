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
    let line = memchr::memchr(b'#', line).map_or(line, |comment| line.get(..comment).unwrap_or(line));
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
    const NAMES: [(&[u8], Field); 8] = [
        (b"disallow", Field::Disallow),
        (b"allow", Field::Allow),
        (b"user-agent", Field::UserAgent),
        (b"sitemap", Field::Sitemap),
        (b"site-map", Field::Sitemap),
        (b"crawl-delay", Field::CrawlDelay),
        (b"crawldelay", Field::CrawlDelay),
        (b"crawl delay", Field::CrawlDelay),
    ];
    if let Some((_, field)) = NAMES.iter().find(|(spelling, _)| name.eq_ignore_ascii_case(spelling)) {
        return Some(*field);
    }
    let name = name.to_ascii_lowercase();
    if is_near(&name, b"disallow") {
        Some(Field::Disallow)
    } else if is_near(&name, b"user-agent") {
        Some(Field::UserAgent)
    } else {
        None
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_field_and_a_value() {
        for (line, field, value) in [
            ("User-agent: a", Field::UserAgent, "a"),
            ("\tUSER-AGENT : a b # c", Field::UserAgent, "a b"),
            ("useragent:a", Field::UserAgent, "a"),
            ("Allow:", Field::Allow, ""),
            ("disallow: /a:b", Field::Disallow, "/a:b"),
            ("Disalow: /", Field::Disallow, "/"),
            ("Desallow: /", Field::Disallow, "/"),
            ("Dissallow /a", Field::Disallow, "/a"),
            ("disallow /a", Field::Disallow, "/a"),
            ("\0Crawl-Delay: 5\0", Field::CrawlDelay, "5"),
            ("site-map: http://h/", Field::Sitemap, "http://h/"),
            ("Disallow: /x<BR>", Field::Disallow, "/x"),
            ("Disallow: /x <br />", Field::Disallow, "/x"),
        ] {
            assert_eq!(parse(line.as_bytes()), Some((field, value.as_bytes())), "{line:?}");
        }
        for junk in [
            "",
            "#",
            "# Disallow: /",
            "Disallow",
            ": /",
            "disallow / a",
            "disallow-all-of-it: /",
            "Host: h",
            "allow-from: x",
            "fallow: /",
            "<p>Disallow: /",
            "\u{fffd}User-agent: a",
        ] {
            assert_eq!(parse(junk.as_bytes()), None, "{junk:?}");
        }
    }

    #[test]
    fn near_misses_are_counted_as_insertions_deletions_and_changes() {
        for (name, near) in [
            ("disallow", true),
            ("diasllow", true),
            ("dissalow", true),
            ("disalw", true),
            ("disallowed", true),
            ("disal", false),
            ("dis4llow", false),
            ("allow", false),
            ("xxxallow", false),
        ] {
            assert_eq!(is_near(name.as_bytes(), b"disallow"), near, "{name}");
        }
    }

    #[test]
    fn a_long_line_is_cut() {
        let line = format!("Disallow: /{}", "a".repeat(2 * MAX_LINE_BYTES));
        let (field, value) = parse(line.as_bytes()).unwrap();
        assert_eq!(
            (field, value.len()),
            (Field::Disallow, MAX_LINE_BYTES - "Disallow: ".len())
        );
    }

    #[test]
    fn a_delay_is_a_number_of_seconds() {
        for (value, millis) in [
            ("5", Some(5_000)),
            ("0", Some(0)),
            ("0.25", Some(250)),
            (".5", Some(500)),
            ("10 s", Some(10_000)),
            ("1e99", Some(86_400_000)),
            ("inf", Some(86_400_000)),
            ("-1", None),
            ("NaN", None),
            ("1,5", None),
            ("10s", None),
            ("", None),
        ] {
            assert_eq!(seconds(value.as_bytes()), millis.map(Duration::from_millis), "{value}");
        }
    }
}
