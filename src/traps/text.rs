//! What is read on a page, as two digests: to the letter, and but for numbers and dates.
//!
//! Mark-up, scripts and styles do not count, so that two pages that differ only in where their links lead (with a new
//! session id in each) are the same. Words of the page's own address do not count either: "there is no /a/b here".

use super::shape::{START, is_drawn, mix};
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
            own_lengths: own.iter().fold(0, |lengths, word| lengths | 1 << word.len().min(63)),
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
    let behind = |found: Option<usize>, len| tag.get(found.map_or(tag.len(), |at| at + len)..).unwrap_or_default();
    let after = |end: &[u8]| behind(memchr::memmem::find(tag, end), end.len());
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
        Some(next) if next.is_ascii_alphabetic() || matches!(next, b'/' | b'!' | b'?') => {
            behind(memchr::memchr(b'>', tag), 1)
        }
        _ => tag.get(1..).unwrap_or_default(),
    }
}

struct Reader<'a> {
    own: Vec<&'a str>,
    /// A bit for each length that one of them has.
    own_lengths: u64,
    same: u64,
    alike: u64,
}

/// A byte of a word. Words are made of letters, digits, and what is not ASCII.
const LETTER: u8 = 1;
/// A digit of a word.
const DIGIT: u8 = 2;

/// What each byte is to a word; 0 for what stands between words.
#[expect(clippy::indexing_slicing, reason = "at compile time, and below 256")]
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        let b = byte as u8;
        classes[byte] = if b.is_ascii_digit() {
            DIGIT
        } else if b.is_ascii_alphabetic() || !b.is_ascii() {
            LETTER
        } else {
            0
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> u8 {
    CLASSES.get(usize::from(byte)).copied().unwrap_or(0)
}

impl Reader<'_> {
    fn words(&mut self, text: &[u8]) {
        let (mut start, mut classes) = (0, 0);
        for (at, byte) in text.iter().enumerate() {
            match class(*byte) {
                0 if classes == 0 => {}
                0 => {
                    self.word(text.get(start..at).unwrap_or_default(), classes);
                    classes = 0;
                }
                class => {
                    if classes == 0 {
                        start = at;
                    }
                    classes |= class;
                }
            }
        }
        if classes != 0 {
            self.word(text.get(start..).unwrap_or_default(), classes);
        }
    }

    /// A word with the classes of its bytes.
    fn word(&mut self, word: &[u8], classes: u8) {
        let is_own = |own: &&str| own.as_bytes().eq_ignore_ascii_case(word);
        let may_be_own = self.own_lengths >> word.len().min(63) & 1 == 1;
        if word.len() >= DRAWN_WORD && std::str::from_utf8(word).is_ok_and(is_drawn)
            || may_be_own && self.own.iter().any(is_own)
        {
            return;
        }
        let hash = hash(word);
        self.same = add(self.same, hash);
        if classes & DIGIT == 0 && !names_time(word) {
            self.alike = add(self.alike, hash);
        }
    }
}

/// Of a word, eight bytes at a time.
fn hash(word: &[u8]) -> u64 {
    let (eights, rest) = word.as_chunks::<8>();
    let mut last = [0; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let hash = eights
        .iter()
        .fold(word.len() as u64, |hash, eight| add(hash, u64::from_le_bytes(*eight)));
    mix(add(hash, u64::from_le_bytes(last)))
}

/// A hash with one more number behind it.
fn add(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}

/// A month or a day of the week, whole or by its first three letters.
fn names_time(word: &[u8]) -> bool {
    const SHORT: [&str; 19] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "mon", "tue", "wed", "thu",
        "fri", "sat", "sun",
    ];
    // by length: nearly every word of a page comes here
    let names: &[&str] = match word.len() {
        3 => &SHORT,
        4 => &["june", "july"],
        5 => &["march", "april"],
        6 => &["august", "monday", "friday", "sunday"],
        7 => &["january", "october", "tuesday"],
        8 => &["february", "november", "december", "thursday", "saturday"],
        9 => &["september", "wednesday"],
        _ => return false,
    };
    let first = word.first().map_or(0, u8::to_ascii_lowercase);
    b"jfmasondtw".contains(&first) && names.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_and_days_are_told_whole_and_short_in_any_case() {
        const NAMES: &str = "january february march april may june july august september october november december \
                             monday tuesday wednesday thursday friday saturday sunday";
        for name in NAMES.split(' ') {
            for word in [name.to_owned(), name.to_uppercase(), name[..3].to_owned()] {
                assert!(names_time(word.as_bytes()), "{word}");
            }
            if name.len() > 4 {
                assert!(!names_time(&name.as_bytes()[..4]), "{name}");
            }
            assert!(!names_time(format!("{name}s").as_bytes()), "{name}");
        }
        for word in ["", "a", "the", "and", "son", "junk", "marched", "mondays"] {
            assert!(!names_time(word.as_bytes()), "{word}");
        }
    }

    #[test]
    fn words_are_letters_digits_and_what_is_not_ascii() {
        for byte in 0..=255_u8 {
            assert_eq!(class(byte) != 0, !byte.is_ascii() || byte.is_ascii_alphanumeric());
            assert_eq!(class(byte) == DIGIT, byte.is_ascii_digit());
        }
    }
}
