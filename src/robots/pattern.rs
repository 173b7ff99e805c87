//! The path of a rule: one spelling for paths and patterns, and matching in linear time.

use std::borrow::Cow;

/// The value of an `Allow` or `Disallow` line.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// Normalized; `*` stands for any octets (a literal one is `%2A`). Does not end in `*`.
    text: Box<[u8]>,
    /// Ended in `$`: the path must end where the pattern does.
    anchored: bool,
    /// Octets of the pattern with its wildcards: the longer of two that match wins.
    precedence: u32,
}

impl Pattern {
    pub(super) fn new(value: &[u8]) -> Self {
        let (body, anchored) = match value.strip_suffix(b"$") {
            Some(body) => (body, true),
            None => (value, false),
        };
        let normalized = normalize(body, true);
        let precedence = normalized.len() + usize::from(anchored);
        let stars = normalized.iter().rev().take_while(|&&b| b == b'*').count();
        let text = normalized.get(..normalized.len() - stars).unwrap_or_default();
        Self {
            text: text.into(),
            // `/a*$` ends wherever the path does
            anchored: anchored && stars == 0,
            precedence: u32::try_from(precedence).unwrap_or(u32::MAX),
        }
    }

    /// Who allows `/a/index.html` means `/a/` too, as large search engines take it: the pattern `/a/$`.
    pub(super) fn folder_of_index(value: &[u8]) -> Option<Self> {
        let slash = value.iter().rposition(|&b| b == b'/')?;
        let (folder, page) = value.split_at_checked(slash + 1)?;
        page.starts_with(b"index.htm")
            .then(|| Self::new(&[folder, b"$"].concat()))
    }

    pub(super) fn precedence(&self) -> u32 {
        self.precedence
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.text.len()
    }

    /// Does the pattern match the start of a normalized path (all of it, if anchored)?
    ///
    /// The pieces between the wildcards are searched one after the other, each at its first place after the one
    /// before: if any arrangement matches, this one does, and no octet is looked at for more than one piece.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let mut pieces = self.text.split(|&b| b == b'*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = path.strip_prefix(first) else {
            return false;
        };
        let Some(last) = pieces.next_back() else {
            return !self.anchored || rest.is_empty();
        };
        for piece in pieces {
            match memchr::memmem::find(rest, piece) {
                Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
                None => return false,
            }
        }
        if self.anchored {
            rest.ends_with(last)
        } else {
            memchr::memmem::find(rest, last).is_some()
        }
    }
}

/// A path (with its query) in the one spelling in which paths and patterns are compared (RFC 9309 section 2.2.2):
/// unreserved octets plain, what may not stand in a URI encoded, hexadecimal digits in upper case, and `*` and `$`,
/// which mean something in a pattern, encoded too.
pub(super) fn normalized(path: &[u8]) -> Cow<'_, [u8]> {
    if path.iter().all(|&b| is_plain(b)) {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(normalize(path, false))
    }
}

fn normalize(text: &[u8], star_is_wildcard: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match (*byte, tail) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest = after;
                let octet = hex(*high) * 16 + hex(*low);
                if is_unreserved(octet) {
                    out.push(octet);
                } else {
                    push_encoded(&mut out, octet);
                }
            }
            (b'*', _) if star_is_wildcard => out.push(b'*'),
            (b'%', _) => out.push(b'%'),
            (octet, _) if is_plain(octet) => out.push(octet),
            (octet, _) => push_encoded(&mut out, octet),
        }
    }
    out
}

fn push_encoded(out: &mut Vec<u8>, octet: u8) {
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'A' + value - 10 };
    out.extend_from_slice(&[b'%', digit(octet >> 4), digit(octet & 15)]);
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// Octets that stay as they are.
fn is_plain(octet: u8) -> bool {
    is_unreserved(octet)
        || matches!(
            octet,
            b'/' | b'?'
                | b'&'
                | b'='
                | b':'
                | b'@'
                | b'!'
                | b'\''
                | b'('
                | b')'
                | b'+'
                | b','
                | b';'
                | b'['
                | b']'
                | b'#'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, path: &str) -> bool {
        Pattern::new(pattern.as_bytes()).matches(&normalized(path.as_bytes()))
    }

    #[test]
    fn a_pattern_matches_the_start_of_a_path() {
        for (pattern, hits, misses) in [
            ("/", vec!["/", "/a?b"], vec!["x"]),
            ("/a", vec!["/a", "/ab", "/a/b", "/a?b"], vec!["/", "/A", "/b/a"]),
            ("/a/", vec!["/a/", "/a/b"], vec!["/a", "/ab"]),
            ("/a$", vec!["/a"], vec!["/ab", "/a?b", "/a$"]),
            (
                "/*.php",
                vec!["/x.php", "/x.php?y", "/.php", "/a/b.phps"],
                vec!["/x.PHP", "/php"],
            ),
            ("/*.php$", vec!["/x.php", "/x.php.php"], vec!["/x.php?y", "/x.php5"]),
            ("/a*b*c", vec!["/abc", "/axbxcx", "/abbc"], vec!["/acb", "/ab"]),
            ("/a*a$", vec!["/aa", "/aba"], vec!["/a", "/aab"]),
            ("*", vec!["/", ""], vec![]),
            ("/a*$", vec!["/a", "/abc"], vec!["/b"]),
            ("$", vec![""], vec!["/"]),
            ("/a***b", vec!["/ab", "/axb"], vec!["/b"]),
            ("/a$b", vec!["/a$b", "/a%24bc"], vec!["/a", "/ab"]),
        ] {
            for hit in hits {
                assert!(matches(pattern, hit), "{pattern} {hit}");
            }
            for miss in misses {
                assert!(!matches(pattern, miss), "{pattern} {miss}");
            }
        }
    }

    #[test]
    fn octets_are_compared_in_one_spelling() {
        for (pattern, path) in [
            ("/%7ejoe", "/~joe"),
            ("/~joe", "/%7Ejoe"),
            ("/\u{e9}", "/%c3%A9"),
            ("/a%3cb", "/a%3Cb"),
            ("/a<b", "/a%3Cb"),
            ("/%2A%24", "/*$"),
            ("/*%2a", "/x%2A"),
            ("/100%", "/100%"),
            ("/a b", "/a%20b"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("/a%2fb", "/a/b"),
            ("/a/b", "/a%2Fb"),
            ("/%2A", "/x"),
            ("/a%26", "/a&"),
            ("/%3f", "/?"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn the_longer_pattern_has_precedence() {
        let precedence = |pattern: &str| Pattern::new(pattern.as_bytes()).precedence();
        assert!(precedence("/a*") > precedence("/a"));
        assert!(precedence("/a$") > precedence("/a"));
        assert_eq!(precedence("/%61"), precedence("/a"));
        assert_eq!(precedence("/\u{e9}"), 7);
    }

    #[test]
    fn many_wildcards_take_linear_time() {
        let path = "a".repeat(8_000);
        for pattern in [
            "*a".repeat(4_000) + "b",
            "*a".repeat(4_000) + "b$",
            "*aaaaaaaaab".repeat(800),
            "*a*".repeat(3_000) + "$b$",
        ] {
            let pattern = Pattern::new(pattern.as_bytes());
            // backtracking would take longer than the universe has been there
            assert!(!pattern.matches(path.as_bytes()));
        }
    }

    /// The definition, word for word, at any cost.
    fn reference(pattern: &[u8], path: &[u8]) -> bool {
        match pattern {
            [] => true,
            b"$" => path.is_empty(),
            [b'*', rest @ ..] => (0..=path.len()).any(|skip| reference(rest, &path[skip..])),
            [octet, rest @ ..] => path.first() == Some(octet) && reference(rest, &path[1..]),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn it_matches_what_the_definition_matches(pattern in "[ab/*]{0,8}\\$?", path in "[ab/]{0,10}") {
            let found = Pattern::new(pattern.as_bytes()).matches(path.as_bytes());
            prop_assert_eq!(found, reference(pattern.as_bytes(), path.as_bytes()));
        }

        #[test]
        fn the_one_spelling_is_a_spelling_of_itself(mut path in any::<Vec<u8>>(), escape in any::<u8>()) {
            // a `%` that starts no escape may come to stand before two digits; a second look is not part of the rule
            path.retain(|&octet| octet != b'%');
            path.extend_from_slice(format!("%{escape:02x}").as_bytes());
            let once = normalized(&path).into_owned();
            prop_assert_eq!(normalized(&once).into_owned(), once);
        }
    }
}
