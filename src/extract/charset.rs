//! A body as text: its encoding is found (HTML Standard, section 13.2.3) and the bytes transcoded if they must be.
//!
//! Byte order mark, then the header, then `meta` (or the XML declaration) in the first 1,024 bytes. Without any of
//! them: UTF-8 if the bytes are and not all of them ASCII, windows-1252 if they are all ASCII (the standard's default,
//! which shows only in the queries of links), else what a detector makes of them.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE, WINDOWS_1252};

use super::mime;

/// Bytes in which a declaration must stand.
const PRESCAN: usize = 1024;
/// Bytes the detector is given: 0.1 ms for 16 KiB.
const DETECT: usize = 16 * 1024;

/// The encoding of a page.
#[must_use]
pub fn encoding(content_type: Option<&[u8]>, body: &[u8]) -> &'static Encoding {
    if let Some(sure) = by_mark_or_header(content_type, body) {
        return sure;
    }
    let head = body.get(..PRESCAN).unwrap_or(body);
    prescan(head)
        .or_else(|| xml_declaration(head))
        .unwrap_or_else(|| guess(body))
}

/// The encoding of a page, and its text without a byte order mark. Borrowed unless it had to be transcoded.
#[must_use]
pub fn decode<'a>(content_type: Option<&[u8]>, body: &'a [u8]) -> (&'static Encoding, Cow<'a, str>) {
    text(encoding(content_type, body), body)
}

/// The same for a style sheet (CSS Syntax 3, section 3.2): `@charset` stands for `meta`, UTF-8 is the default.
#[must_use]
pub fn decode_css<'a>(content_type: Option<&[u8]>, body: &'a [u8]) -> (&'static Encoding, Cow<'a, str>) {
    let encoding = by_mark_or_header(content_type, body)
        .or_else(|| at_charset(body))
        .unwrap_or(UTF_8);
    text(encoding, body)
}

/// The encoding of an XML file by its first bytes (RFC 7303 section 3): mark, header, declaration, else UTF-8. White
/// space before the declaration is no matter.
#[must_use]
pub(super) fn of_xml(content_type: Option<&[u8]>, head: &[u8]) -> &'static Encoding {
    by_mark_or_header(content_type, head)
        .or_else(|| xml_declaration(head.trim_ascii_start()))
        .unwrap_or(UTF_8)
}

fn text<'a>(encoding: &'static Encoding, body: &'a [u8]) -> (&'static Encoding, Cow<'a, str>) {
    let mark = Encoding::for_bom(body).map_or(0, |(_, len)| len);
    let (text, _) = encoding.decode_without_bom_handling(body.get(mark..).unwrap_or_default());
    (encoding, text)
}

fn by_mark_or_header(content_type: Option<&[u8]>, body: &[u8]) -> Option<&'static Encoding> {
    if let Some((encoding, _)) = Encoding::for_bom(body) {
        return Some(encoding);
    }
    let label = content_type.and_then(mime::parse)?.charset?;
    Encoding::for_label(label.as_bytes())
}

/// What a page says nothing about.
fn guess(body: &[u8]) -> &'static Encoding {
    match std::str::from_utf8(body) {
        Ok(text) if text.is_ascii() => WINDOWS_1252,
        Ok(_) => UTF_8,
        // only cut off inside its last character
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => UTF_8,
        Err(error) => {
            // around the first bytes that matter
            let from = error.valid_up_to().saturating_sub(DETECT / 2);
            let part = body.get(from..).unwrap_or_default();
            let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
            detector.feed(part.get(..DETECT).unwrap_or(part), part.len() <= DETECT);
            detector.guess(None, Utf8Detection::Deny)
        }
    }
}

/// A label found inside the text: it cannot be UTF-16, since it was read as ASCII.
fn for_inner_label(label: &[u8]) -> Option<&'static Encoding> {
    match Encoding::for_label(label)? {
        encoding if encoding == UTF_16BE || encoding == UTF_16LE => Some(UTF_8),
        encoding if encoding == encoding_rs::X_USER_DEFINED => Some(WINDOWS_1252),
        encoding => Some(encoding),
    }
}

/// `@charset "label";`, byte for byte.
fn at_charset(body: &[u8]) -> Option<&'static Encoding> {
    let label = body.get(..PRESCAN).unwrap_or(body).strip_prefix(b"@charset \"")?;
    let end = label.iter().position(|&b| b == b'"')?;
    (label.get(end + 1) == Some(&b';'))
        .then(|| for_inner_label(label.get(..end)?))
        .flatten()
}

/// "Get an XML encoding", and UTF-16 told by the first characters.
fn xml_declaration(head: &[u8]) -> Option<&'static Encoding> {
    if head.starts_with(b"<\0?\0x\0") {
        return Some(UTF_16LE);
    }
    if head.starts_with(b"\0<\0?\0x") {
        return Some(UTF_16BE);
    }
    let declaration = head.strip_prefix(b"<?xml")?;
    let declaration = declaration.get(..declaration.iter().position(|&b| b == b'>')?)?;
    let at = memchr::memmem::find(declaration, b"encoding")? + b"encoding".len();
    let mut rest = Bytes(declaration.get(at..)?);
    rest.skip(|b| b <= b' ');
    rest.take(b'=')?;
    rest.skip(|b| b <= b' ');
    let quote = rest.next().filter(|b| matches!(b, b'"' | b'\''))?;
    let label = rest.0.get(..rest.0.iter().position(|&b| b == quote)?)?;
    (!label.iter().any(|&b| b <= b' '))
        .then(|| for_inner_label(label))
        .flatten()
}

/// "Prescan a byte stream to determine its encoding".
fn prescan(head: &[u8]) -> Option<&'static Encoding> {
    let mut rest = Bytes(head);
    loop {
        match rest.0 {
            [] => return None,
            [b'<', b'!', b'-', b'-', ..] => {
                let after = rest.0.get(2..)?;
                rest = Bytes(after.get(memchr::memmem::find(after, b"-->")? + 3..)?);
            }
            [b'<', name @ ..] if is_meta(name) => {
                rest = Bytes(rest.0.get(5..)?);
                if let Some(found) = meta(&mut rest)? {
                    return Some(found);
                }
            }
            [b'<', b'/', letter, ..] | [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
                rest.skip(|b| !is_space(b) && b != b'>');
                while rest.attribute()?.is_some() {}
            }
            [b'<', b'!' | b'/' | b'?', ..] => {
                rest.skip(|b| b != b'>');
                rest.next();
            }
            _ => drop(rest.next()),
        }
    }
}

fn is_meta(name: &[u8]) -> bool {
    name.get(..4).is_some_and(|start| start.eq_ignore_ascii_case(b"meta"))
        && name.get(4).is_some_and(|&b| is_space(b) || b == b'/')
}

/// The attributes of one `meta`. Outer `None`: the bytes ended inside it.
#[expect(clippy::option_option, reason = "ended and found nothing are different answers")]
fn meta(rest: &mut Bytes<'_>) -> Option<Option<&'static Encoding>> {
    let mut names: Vec<Vec<u8>> = Vec::new();
    let mut got_pragma = false;
    // whether the encoding came from `content`, and then needs http-equiv
    let mut need_pragma = None;
    let mut found = None;
    while let Some((name, value)) = rest.attribute()? {
        if names.contains(&name) {
            continue;
        }
        match name.as_slice() {
            b"http-equiv" => got_pragma |= value == b"content-type",
            b"content" if found.is_none() => {
                found = content_charset(&value);
                if found.is_some() {
                    need_pragma = Some(true);
                }
            }
            b"charset" => {
                found = for_inner_label(&value);
                need_pragma = Some(false);
            }
            _ => {}
        }
        names.push(name);
    }
    Some(match need_pragma {
        Some(need) if !need || got_pragma => found,
        _ => None,
    })
}

/// "Extracting a character encoding from a meta element", of a value in lower case.
fn content_charset(value: &[u8]) -> Option<&'static Encoding> {
    let mut rest = value;
    loop {
        rest = rest.get(memchr::memmem::find(rest, b"charset")? + b"charset".len()..)?;
        let mut after = Bytes(rest);
        after.skip(is_space);
        if after.take(b'=').is_none() {
            continue;
        }
        after.skip(is_space);
        let label = match after.0.first()? {
            quote @ (b'"' | b'\'') => {
                let quoted = after.0.get(1..)?;
                quoted.get(..quoted.iter().position(|b| b == quote)?)?
            }
            _ => after.0.split(|&b| is_space(b) || b == b';').next()?,
        };
        return for_inner_label(label);
    }
}

/// Bytes not yet read.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    fn skip(&mut self, mut skipped: impl FnMut(u8) -> bool) {
        let len = self.0.iter().take_while(|&&b| skipped(b)).count();
        self.0 = self.0.get(len..).unwrap_or_default();
    }

    /// "Get an attribute": name and value in lower case. Inner `None`: the tag ends; outer `None`: the bytes do.
    #[expect(
        clippy::option_option,
        reason = "the tag's end and the bytes' end are different answers"
    )]
    fn attribute(&mut self) -> Option<Option<(Vec<u8>, Vec<u8>)>> {
        self.skip(|b| is_space(b) || b == b'/');
        if *self.0.first()? == b'>' {
            self.next();
            return Some(None);
        }
        let mut name = Vec::new();
        loop {
            match *self.0.first()? {
                b'=' if !name.is_empty() => break,
                b if is_space(b) => {
                    self.skip(is_space);
                    break;
                }
                b'/' | b'>' => break,
                b => name.push(b.to_ascii_lowercase()),
            }
            self.next();
        }
        if *self.0.first()? != b'=' {
            return Some(Some((name, Vec::new())));
        }
        self.next();
        self.skip(is_space);
        let mut value = Vec::new();
        match *self.0.first()? {
            quote @ (b'"' | b'\'') => {
                self.next();
                loop {
                    match self.next()? {
                        b if b == quote => break,
                        b => value.push(b.to_ascii_lowercase()),
                    }
                }
            }
            b'>' => {}
            _ => {
                while !matches!(*self.0.first()?, b'>') && !is_space(*self.0.first()?) {
                    value.extend(self.next().map(|b| b.to_ascii_lowercase()));
                }
            }
        }
        Some(Some((name, value)))
    }
}

fn is_space(b: u8) -> bool {
    matches!(b, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name(content_type: &str, body: &[u8]) -> &'static str {
        encoding((!content_type.is_empty()).then_some(content_type.as_bytes()), body).name()
    }

    #[test]
    fn mark_then_header_then_meta() {
        let meta = b"<meta charset=koi8-r>";
        assert_eq!(
            name("text/html; charset=windows-1251", b"\xef\xbb\xbf<meta charset=koi8-r>"),
            "UTF-8"
        );
        assert_eq!(name("text/html; charset=windows-1251", b"\xff\xfe<\0"), "UTF-16LE");
        assert_eq!(name("text/html; charset=windows-1251", meta), "windows-1251");
        assert_eq!(name("text/html; charset=nonsense", meta), "KOI8-R");
        assert_eq!(name("", meta), "KOI8-R");
        assert_eq!(name("text/html; charset=utf-16be", b"\0<"), "UTF-16BE");
    }

    #[test]
    fn meta_in_its_forms() {
        for (page, want) in [
            (
                "<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>",
                "KOI8-R",
            ),
            (
                "<meta content='text/html; charset=koi8-r' http-equiv=content-type>",
                "KOI8-R",
            ),
            ("<meta content='charset=koi8-r'>", "windows-1252"),
            (
                "<meta http-equiv=content-type content='charsetcharset = \"koi8-r\"'>",
                "KOI8-R",
            ),
            (
                "<meta http-equiv=content-type content='charset=\"koi8-r'>",
                "windows-1252",
            ),
            ("<meta charset=nonsense><meta charset=koi8-r>", "KOI8-R"),
            ("<meta charset=utf-16le>", "UTF-8"),
            ("<meta charset=x-user-defined>", "windows-1252"),
            ("<!-- <meta charset=koi8-r> --><meta charset=big5>", "Big5"),
            ("<!--><meta charset=koi8-r>-->", "KOI8-R"),
            (
                "<p title='><meta charset=koi8-r>'><!x><?y?></z a='>'><meta/charset=big5>",
                "Big5",
            ),
            ("<meta charset=koi8-r charset=big5>", "KOI8-R"),
            ("<meta charset=koi8-r", "windows-1252"),
            ("<metacharset=koi8-r>", "windows-1252"),
            ("<?xml version='1.0' encoding='koi8-r'?>", "KOI8-R"),
            ("<?xml encoding='koi8-r'", "windows-1252"),
        ] {
            assert_eq!(name("", page.as_bytes()), want, "{page}");
        }
    }

    #[test]
    fn a_declaration_must_stand_in_the_first_kilobyte() {
        let at = |len: usize| format!("{}<meta charset=koi8-r>", " ".repeat(len));
        let tag = "<meta charset=koi8-r>".len();
        assert_eq!(name("", at(PRESCAN - tag).as_bytes()), "KOI8-R");
        assert_eq!(name("", at(PRESCAN - tag + 1).as_bytes()), "windows-1252");
    }

    #[test]
    fn without_a_word_the_bytes_decide() {
        assert_eq!(name("", b"plain"), "windows-1252");
        assert_eq!(name("", "<p>путь".as_bytes()), "UTF-8");
        assert_eq!(name("", b"<p>\xd0\xbf\xd1"), "UTF-8");
        let cyrillic =
            b"<p>\xcf\xf0\xe8\xe2\xe5\xf2, \xea\xe0\xea \xe4\xe5\xeb\xe0? \xdd\xf2\xee \xf2\xe5\xea\xf1\xf2.";
        assert_eq!(name("", cyrillic), "windows-1251");
        let late = [vec![b' '; 3 * DETECT], cyrillic.to_vec()].concat();
        assert_eq!(name("", &late), "windows-1251");
    }

    #[test]
    fn text_is_copied_only_if_it_must_be() {
        assert!(matches!(decode(None, "<p>путь".as_bytes()).1, Cow::Borrowed("<p>путь")));
        assert!(matches!(
            decode(Some(b"text/html;charset=windows-1251"), b"abc").1,
            Cow::Borrowed("abc")
        ));
        assert!(matches!(decode(None, b"\xef\xbb\xbfabc").1, Cow::Borrowed("abc")));
        assert_eq!(decode(Some(b"text/html;charset=utf-8"), b"a\xffb").1, "a\u{fffd}b");
        assert_eq!(decode(None, b"\xff\xfe<\0a\0>\0").1, "<a>");
    }

    #[test]
    fn style_sheets_have_their_own_rule() {
        assert_eq!(
            decode_css(None, b"@charset \"windows-1251\";\xef").1,
            "@charset \"windows-1251\";п"
        );
        assert_eq!(decode_css(None, b"@charset 'windows-1251';\xef").0, UTF_8);
        assert_eq!(
            decode_css(Some(b"text/css;charset=koi8-r"), b"@charset \"utf-8\";")
                .0
                .name(),
            "KOI8-R"
        );
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_outcome(body in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'<'), Just(b'"'), Just(b'=')], 0..200)) {
            let declared = [b"<meta charset=".as_slice(), &body].concat();
            for body in [&declared, &body] {
                let _ = (decode(None, body), decode_css(None, body));
            }
        }
    }
}
