//! Quoted texts in scripts that look like addresses: guesses, all of them ([`super::LinkKind::Speculative`]).
//!
//! A script is not parsed. A text counts if it runs from one quote to the next of its kind without anything that no
//! address has, and begins like an address or ends like the name of a file. The two quotes of a text are looked at once
//! each as a beginning, so one odd quote (in a comment, in a pattern) costs no more than the text behind it.

use std::borrow::Cow;

use memchr::memchr3;

use super::address::{is_address, names_file};

/// Bytes of scripts that are looked through, a page.
pub(super) const MAX_BYTES: usize = 4 << 20;

/// The longest text between quotes that is taken for an address, bytes as written.
const MAX_TEXT: usize = 2_048;

/// Calls `found` with each text that looks like an address, escapes resolved.
pub(super) fn scan<'a>(script: &'a str, mut found: impl FnMut(Cow<'a, str>)) {
    let bytes = script.as_bytes();
    let mut at = 0;
    while let Some(quote_at) = bytes
        .get(at..)
        .and_then(|rest| memchr3(b'"', b'\'', b'`', rest))
        .map(|next| at + next)
    {
        let quote = bytes.get(quote_at).copied();
        let from = quote_at + 1;
        let rest = bytes.get(from..).unwrap_or_default();
        let near = rest.get(..MAX_TEXT + 1).unwrap_or(rest);
        let len = near.iter().position(|&b| ends_text(b)).unwrap_or(near.len());
        at = from + len;
        if near.get(len).copied() != quote {
            continue;
        }
        if let Some(text) = script.get(from..at).and_then(plain)
            && is_likely(&text)
        {
            found(text);
        }
    }
}

/// The source map of a script or style sheet, by the comment at its end (ECMA-426, section 11.1.2): what developer tools
/// alone ask for.
pub(super) fn source_map(text: &str) -> Option<&str> {
    const MARK: &str = "# sourceMappingURL=";
    let at = memchr::memmem::rfind(text.as_bytes(), MARK.as_bytes())?;
    let rest = text.get(at + MARK.len()..)?;
    let len = rest
        .bytes()
        .take(MAX_TEXT + 1)
        .position(ends_text)
        .unwrap_or(rest.len());
    rest.get(..len).filter(|url| !url.is_empty() && len <= MAX_TEXT)
}

/// A byte that no address in a script has.
fn ends_text(b: u8) -> bool {
    b <= b' '
        || matches!(
            b,
            b'"' | b'\'' | b'`' | b'<' | b'>' | b'{' | b'}' | b'|' | b'^' | b'(' | b')' | b'*'
        )
}

/// Whether a text between quotes is an address rather than a word, a selector, a media type or a pattern.
fn is_likely(text: &str) -> bool {
    let path = text.trim_start_matches(['.', '/']);
    let begins = path.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '~' | '-' | '%'));
    if let Some(rest) = text.strip_prefix("//") {
        // another host; a comment has no dot so early
        let host = rest.split('/').next().unwrap_or_default();
        return begins && host.contains('.') && !host.starts_with('.') && !host.ends_with('.');
    }
    let plain = text.split('?').next().unwrap_or_default();
    begins && (is_address(text) || !plain.contains([':', ',', ';', '=', '\\', '$', '@']) && names_file(text))
}

/// The text with `\/`, `\xHH` and `\uHHHH` resolved; `None` if it has other escapes.
fn plain(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('\\') {
        return Some(Cow::Borrowed(text));
    }
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        resolved.push_str(before);
        let digits = match after.chars().next()? {
            '/' => {
                resolved.push('/');
                rest = after.get(1..)?;
                continue;
            }
            'x' => 2,
            'u' => 4,
            _ => return None,
        };
        let code = u32::from_str_radix(after.get(1..=digits)?, 16).ok()?;
        resolved.push(char::from_u32(code)?);
        rest = after.get(digits + 1..)?;
    }
    resolved.push_str(rest);
    Some(Cow::Owned(resolved))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    fn words(script: &str) -> String {
        let mut words = Vec::new();
        scan(script, |url| words.push(url.into_owned()));
        words.join(" ")
    }

    #[test]
    fn texts_that_look_like_addresses_are_found() {
        for (script, want) in [
            ("fetch('/api/v1/items?page=2')", "/api/v1/items?page=2"),
            (
                r#"a="https:\/\/a.test\/b";c="\u002fd\x2ehtml""#,
                "https://a.test/b /d.html",
            ),
            ("load(`./x`);load(\"../y/z.js\")", "./x ../y/z.js"),
            ("i.src='img/a.png?v=1';", "img/a.png?v=1"),
            ("u = '//cdn.test/a.js'", "//cdn.test/a.js"),
            ("// don't\nx('/a')", "/a"),
            ("x = /['\"]/; y='/b'", "/b"),
            ("'/a'+id+'/b.html'", "/a /b.html"),
        ] {
            assert_eq!(words(script), want, "{script}");
        }
    }

    #[test]
    fn other_texts_are_not() {
        for script in [
            "'text/html'",
            "'use strict'",
            "'/'",
            "'//'",
            "'// a comment'",
            "'./'",
            "'#id.class'",
            "'a.length'",
            "`/a/${id}`",
            "'/^[a-z]+$/'",
            "'http://'",
            "'\\n/a'",
            "'/a\n'",
            "'jquery.js",
            "'a b.html'",
            "'.html'",
            "'1.5'",
            "'mailto:a@b.html'",
        ] {
            assert_eq!(words(script), "", "{script}");
        }
    }

    #[test]
    fn a_text_may_be_so_long() {
        let quoted = |len: usize| words(&format!("'/{}'", "x".repeat(len - 1))).len();
        assert_eq!(quoted(MAX_TEXT), MAX_TEXT);
        assert_eq!(quoted(MAX_TEXT + 1), 0);
    }

    #[test]
    fn hostile_scripts_take_linear_time() {
        for bit in ["'", "\"'`", "'/a\\", "'/a", "\\'", "'//a.b"] {
            let script = bit.repeat((1 << 20) / bit.len());
            let began = Instant::now();
            scan(&script, drop);
            assert!(
                began.elapsed() < Duration::from_secs(5),
                "{bit} took {:?}",
                began.elapsed()
            );
        }
    }

    proptest! {
        #[test]
        fn any_text_has_an_outcome(script in "(['\"`/.\\\\]|u00|x2f|http:|a|\u{e9}|\n| |html){0,60}") {
            let _ = words(&script);
        }
    }
}
