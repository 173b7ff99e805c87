//! Character references in attribute values and texts (HTML Standard, section 13.2.5.72 and following).

use std::borrow::Cow;

use html5ever::data::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// The longest name of the standard's table (`CounterClockwiseContourIntegral;`), bytes.
const MAX_NAME: usize = 32;

/// A value as the tokenizer would give it: references decoded, line ends and NULs replaced. Borrowed if nothing
/// changes.
pub(super) fn decode(raw: &str) -> Cow<'_, str> {
    decode_in(raw, named)
}

/// The same of text, where a name needs no semicolon whatever follows it.
pub(super) fn decode_text(raw: &str) -> Cow<'_, str> {
    decode_in(raw, named_in_text)
}

type Named = for<'a> fn(&'a str, &mut String) -> Option<&'a str>;

fn decode_in(raw: &str, named: Named) -> Cow<'_, str> {
    let Some(first) = memchr::memchr3(b'&', b'\r', 0, raw.as_bytes()) else {
        return Cow::Borrowed(raw);
    };
    let (plain, mut rest) = raw.split_at(first);
    let mut out = String::with_capacity(raw.len());
    out.push_str(plain);
    while let Some(special) = rest.bytes().next() {
        rest = rest.get(1..).unwrap_or_default();
        match special {
            b'&' => rest = reference(rest, &mut out, named),
            b'\r' => {
                out.push('\n');
                rest = rest.strip_prefix('\n').unwrap_or(rest);
            }
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
        let next = memchr::memchr3(b'&', b'\r', 0, rest.as_bytes()).unwrap_or(rest.len());
        let (plain, after) = rest.split_at(next);
        out.push_str(plain);
        rest = after;
    }
    // most values only get shorter by `amp;`; a reference may also have been none
    if out == raw {
        Cow::Borrowed(raw)
    } else {
        Cow::Owned(out)
    }
}

/// Decodes the reference whose ampersand has been read; gives the text behind it.
fn reference<'a>(text: &'a str, out: &mut String, named: Named) -> &'a str {
    if let Some(rest) = text.strip_prefix("amp;") {
        out.push('&');
        return rest;
    }
    let decoded = match text.strip_prefix('#') {
        Some(number) => numeric(number, out),
        None => named(text, out),
    };
    decoded.unwrap_or_else(|| {
        out.push('&');
        text
    })
}

/// `#` has been read. `None` if no digit follows.
fn numeric<'a>(text: &'a str, out: &mut String) -> Option<&'a str> {
    let (radix, digits) = match text.strip_prefix(['x', 'X']) {
        Some(hex) => (16, hex),
        None => (10, text),
    };
    let len = digits.bytes().take_while(|&b| char::from(b).is_digit(radix)).count();
    if len == 0 {
        return None;
    }
    let (number, rest) = digits.split_at(len);
    let code = number.chars().fold(0_u32, |code, digit| {
        code.saturating_mul(radix)
            .saturating_add(digit.to_digit(radix).unwrap_or(0))
    });
    out.push(character(code));
    Some(rest.strip_prefix(';').unwrap_or(rest))
}

/// The character of a number; 0x80 to 0x9F mean windows-1252.
fn character(code: u32) -> char {
    let c1 = code
        .checked_sub(0x80)
        .and_then(|at| C1_REPLACEMENTS.get(at as usize).copied().flatten());
    c1.or_else(|| char::from_u32(code).filter(|&c| c != '\0'))
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The longest name of the table that `text` starts with, unless the rule for attributes forbids it: a name without
/// its semicolon, before `=` or a letter or digit, is text (`?a=1&copy=2`).
fn named<'a>(text: &'a str, out: &mut String) -> Option<&'a str> {
    let is_text = |name: &str, rest: &str| {
        let next = rest.bytes().next();
        !name.ends_with(';') && next.is_some_and(|b| b == b'=' || b.is_ascii_alphanumeric())
    };
    longest_name(text, out, is_text)
}

/// The same without that rule.
fn named_in_text<'a>(text: &'a str, out: &mut String) -> Option<&'a str> {
    longest_name(text, out, |_, _| false)
}

fn longest_name<'a>(text: &'a str, out: &mut String, is_text: impl Fn(&str, &str) -> bool) -> Option<&'a str> {
    let mut longest = None;
    for len in 1..=MAX_NAME {
        // the table holds the beginnings of names too, with no character
        let Some(&(first, second)) = text.get(..len).and_then(|name| NAMED_ENTITIES.get(name)) else {
            break;
        };
        if first != 0 {
            longest = Some((len, first, second));
        }
    }
    let (len, first, second) = longest?;
    let (name, rest) = text.split_at(len);
    if is_text(name, rest) {
        return None;
    }
    out.extend(char::from_u32(first));
    out.extend(char::from_u32(second).filter(|&c| c != '\0'));
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_references() {
        for (raw, want) in [
            ("a&amp;b", "a&b"),
            ("?a=1&amp;b=2&lt;&gt;", "?a=1&b=2<>"),
            ("&copy;", "©"),
            ("&copy", "©"),
            ("?a&copy=1", "?a&copy=1"),
            ("?a&copyx", "?a&copyx"),
            ("&copy/", "©/"),
            ("&notit;", "&notit;"),
            ("&notin;", "∉"),
            ("&not;in", "¬in"),
            ("&NotEqualTilde;", "≂̸"),
            ("&CounterClockwiseContourIntegral;", "∳"),
            ("&unknown;&", "&unknown;&"),
            ("&b=1&c", "&b=1&c"),
            ("&é;", "&é;"),
        ] {
            assert_eq!(decode(raw), want, "{raw}");
        }
    }

    #[test]
    fn names_in_text_need_no_semicolon() {
        for (raw, want) in [
            ("&notit;", "\u{ac}it;"),
            ("a&ampb&copy=", "a&b\u{a9}="),
            ("&unknown;", "&unknown;"),
        ] {
            assert_eq!(decode_text(raw), want, "{raw}");
        }
    }

    #[test]
    fn numeric_references() {
        for (raw, want) in [
            ("&#65;&#x41;&#X41", "AAA"),
            ("&#65b", "Ab"),
            ("&#x26;#65;", "&#65;"),
            ("&#;&#x;&#", "&#;&#x;&#"),
            ("&#146;&#x80;&#x81;", "\u{2019}\u{20ac}\u{81}"),
            (
                "&#0;&#xD800;&#x110000;&#99999999999999999999;",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("&#x10FFFF;", "\u{10ffff}"),
        ] {
            assert_eq!(decode(raw), want, "{raw}");
        }
    }

    #[test]
    fn line_ends_and_nuls_are_preprocessed() {
        assert_eq!(decode("a\r\nb\rc\0d"), "a\nb\nc\u{fffd}d");
    }

    #[test]
    fn nothing_is_copied_unless_something_changes() {
        assert!(matches!(decode("/plain?x=1"), Cow::Borrowed(_)));
        assert!(matches!(decode("/a?b=1&c=2"), Cow::Borrowed(_)));
    }

    #[test]
    fn the_whole_table_is_there() {
        let whole = NAMED_ENTITIES.entries().filter(|(_, (first, _))| *first != 0);
        let (mut names, mut bare) = (0, 0);
        for (name, (first, second)) in whole {
            let want: String = [*first, *second]
                .iter()
                .filter(|&&c| c != 0)
                .filter_map(|&c| char::from_u32(c))
                .collect();
            assert_eq!(decode(&format!("x&{name}")), format!("x{want}"), "{name}");
            assert!(name.len() <= MAX_NAME);
            names += 1;
            bare += usize::from(!name.ends_with(';'));
        }
        // the table of the standard: 2,231 names, 106 of them without a semicolon
        assert_eq!((names, bare), (2231, 106));
    }
}
