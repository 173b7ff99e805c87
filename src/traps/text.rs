//! What is read on a page, as two digests: to the letter, and but for numbers and dates.
//!
//! Mark-up, scripts and styles do not count, so that two pages that differ only in where their links lead (with a new
//! session id in each) are the same. Words of the page's own address do not count either: "there is no /a/b here".

use super::shape::{START, is_drawn, mix, step};
use crate::url::CrawlUrl;

/// Words of the page's own address that are looked for.
const MAX_OWN_WORDS: usize = 32;
/// Shorter words of the address are words of the language.
const MIN_OWN_WORD: usize = 3;
/// A run of letters and digits at least this long that looks drawn does not count.
const DRAWN_WORD: usize = 16;
/// Bytes of a page that are read.
pub const MAX_TEXT_BYTES: usize = 1 << 20;

/// The digests of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// Of its words.
    pub same: u64,
    /// Of its words without numbers, months and days of the week.
    pub alike: u64,
}

impl Content {
    /// Of a page that was not read.
    pub const UNREAD: Content = Content { same: 0, alike: 0 };

    /// Reads an HTML page, or its first [`MAX_TEXT_BYTES`].
    #[must_use]
    pub fn of(body: &[u8], url: &CrawlUrl) -> Self {
        let own: Vec<&str> = url
            .path_and_query()
            .split(|letter: char| !letter.is_ascii_alphanumeric())
            .filter(|word| word.len() >= MIN_OWN_WORD && !word.bytes().all(|byte| byte.is_ascii_digit()))
            .take(MAX_OWN_WORDS)
            .collect();
        let mut reader = Reader {
            own,
            same: START,
            alike: START,
        };
        let mut rest = body.get(..MAX_TEXT_BYTES).unwrap_or(body);
        while let Some(at) = memchr::memchr(b'<', rest) {
            let (text, tag) = rest.split_at_checked(at).unwrap_or((rest, &[]));
            reader.words(text);
            rest = behind(tag);
        }
        reader.words(rest);
        Self {
            same: mix(reader.same),
            alike: mix(reader.alike),
        }
    }
}

/// What follows a tag or comment, a script or style with what is in it.
fn behind(tag: &[u8]) -> &[u8] {
    let after = |end: &[u8]| {
        let at = memchr::memmem::find(tag, end).map_or(tag.len(), |at| at + end.len());
        tag.get(at..).unwrap_or_default()
    };
    if tag.starts_with(b"<!--") {
        return after(b"-->");
    }
    let is = |name: &[u8]| {
        tag.get(1..=name.len())
            .is_some_and(|found| found.eq_ignore_ascii_case(name))
    };
    if is(b"script") {
        return after(b"</script");
    }
    if is(b"style") {
        return after(b"</style");
    }
    match tag.get(1) {
        Some(next) if next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?') => after(b">"),
        _ => tag.get(1..).unwrap_or_default(),
    }
}

struct Reader<'a> {
    own: Vec<&'a str>,
    same: u64,
    alike: u64,
}

impl Reader<'_> {
    fn words(&mut self, text: &[u8]) {
        let words = text.split(|byte| !byte.is_ascii_alphanumeric() && byte.is_ascii());
        for word in words.filter(|word| !word.is_empty()) {
            self.word(word);
        }
    }

    fn word(&mut self, word: &[u8]) {
        let text = std::str::from_utf8(word).unwrap_or_default();
        if text.len() >= DRAWN_WORD && is_drawn(text) || self.own.iter().any(|own| own.eq_ignore_ascii_case(text)) {
            return;
        }
        self.same = add(self.same, word);
        if !word.iter().any(u8::is_ascii_digit) && !names_time(text) {
            self.alike = add(self.alike, word);
        }
    }
}

fn add(hash: u64, word: &[u8]) -> u64 {
    step(word.iter().fold(hash, |hash, byte| step(hash, *byte)), b' ')
}

/// A month or a day of the week, by its first three letters.
fn names_time(word: &str) -> bool {
    const NAMES: [&str; 19] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ];
    let short = |name: &str| name.get(..3).is_some_and(|short| short.eq_ignore_ascii_case(word));
    matches!(word.len(), 3..=9) && NAMES.iter().any(|name| name.eq_ignore_ascii_case(word) || short(name))
}
