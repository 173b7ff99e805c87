//! Queries in the encoding of their page (URL Standard, sections 1.3 and 4.4).
//!
//! A link's path is always UTF-8, but its query is percent-encoded from the bytes it has in its page's encoding: that is
//! what old sites expect. The `url` crate has a hook for this that loses one rule (a character that the encoding lacks
//! becomes `&#NNN;`, percent-encoded whole), so the query is spelled in ASCII before the crate sees it.

use std::borrow::Cow;
use std::fmt::Write;

use encoding_rs::{EncoderResult, Encoding, UTF_8};

/// The encoding that queries of a page in the encoding of this name are written in; `None` for UTF-8, which needs no
/// care. UTF-16 and `replacement` are written as UTF-8 (Encoding Standard, "get an output encoding").
pub(super) fn output_encoding(name: &str) -> Option<&'static Encoding> {
    Encoding::for_label(name.as_bytes())
        .map(Encoding::output_encoding)
        .filter(|encoding| *encoding != UTF_8)
}

/// `raw` with its query in `encoding`. Borrowed if the query is in ASCII, as nearly all are.
pub(super) fn encoded<'a>(raw: &'a str, encoding: &'static Encoding) -> Cow<'a, str> {
    let end = memchr::memchr(b'#', raw.as_bytes()).unwrap_or(raw.len());
    let Some((before, query, after)) = memchr::memchr(b'?', raw.as_bytes())
        .filter(|at| *at < end)
        .and_then(|at| Some((raw.get(..=at)?, raw.get(at + 1..end)?, raw.get(end..)?)))
        .filter(|(_, query, _)| !query.is_ascii())
    else {
        return Cow::Borrowed(raw);
    };
    // the parser would take these out before it encodes
    let query: Cow<'_, str> = if query.contains(['\t', '\n', '\r']) {
        Cow::Owned(query.replace(['\t', '\n', '\r'], ""))
    } else {
        Cow::Borrowed(query)
    };
    let mut spelled = String::with_capacity(raw.len() + query.len());
    spelled.push_str(before);
    push_encoded(&query, encoding, &mut spelled);
    spelled.push_str(after);
    Cow::Owned(spelled)
}

/// "Percent-encode after encoding" with the special-query set.
fn push_encoded(query: &str, encoding: &'static Encoding, spelled: &mut String) {
    let mut encoder = encoding.new_encoder();
    let mut rest = query;
    let mut buffer = [0_u8; 256];
    loop {
        let (result, read, written) = encoder.encode_from_utf8_without_replacement(rest, &mut buffer, true);
        for &byte in buffer.get(..written).unwrap_or_default() {
            if byte <= b' ' || byte >= 0x7f || matches!(byte, b'"' | b'#' | b'<' | b'>' | b'\'') {
                let _ = write!(spelled, "%{byte:02X}");
            } else {
                spelled.push(char::from(byte));
            }
        }
        rest = rest.get(read..).unwrap_or_default();
        match result {
            EncoderResult::InputEmpty => return,
            EncoderResult::OutputFull => {}
            EncoderResult::Unmappable(lacking) => {
                let _ = write!(spelled, "%26%23{}%3B", u32::from(lacking));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::{Base, CrawlUrl, Identity};
    use proptest::prelude::*;

    fn joined(encoding: &str, raw: &str) -> String {
        let page = CrawlUrl::parse("http://h.test/a/b", &Identity::default()).unwrap();
        let base = Base::of(&page, None).in_encoding(Some(encoding));
        CrawlUrl::join(&base, raw, &Identity::default())
            .unwrap()
            .href()
            .to_owned()
    }

    #[test]
    fn a_query_has_the_bytes_of_its_page_and_a_path_those_of_utf_8() {
        for (encoding, raw, expected) in [
            ("GBK", "/s?q=中文", "http://h.test/s?q=%D6%D0%CE%C4"),
            ("gb18030", "?q=中", "http://h.test/a/b?q=%D6%D0"),
            ("Shift_JIS", "s?日本", "http://h.test/a/s?%93%FA%96{"),
            ("EUC-KR", "//k.test/?한글", "http://k.test/?%C7%D1%B1%DB"),
            ("windows-1252", "x?é=€#é", "http://h.test/a/x?%E9=%80"),
            ("windows-1251", "/путь?п", "http://h.test/%D0%BF%D1%83%D1%82%D1%8C?%EF"),
            ("ISO-2022-JP", "?あ", "http://h.test/a/b?%1B$B$%22%1B(B"),
            ("Big5", "?中", "http://h.test/a/b?%A4%A4"),
        ] {
            assert_eq!(joined(encoding, raw), expected, "{encoding} {raw}");
        }
    }

    #[test]
    fn what_the_encoding_lacks_is_a_character_reference() {
        assert_eq!(
            joined("windows-1252", "?a=中&b=é"),
            "http://h.test/a/b?a=%26%2320013%3B&b=%E9"
        );
        assert_eq!(joined("GBK", "?\u{1f600}"), "http://h.test/a/b?%26%23128512%3B");
        assert_eq!(
            joined("Shift_JIS", "?\u{1f600}日"),
            "http://h.test/a/b?%26%23128512%3B%93%FA"
        );
    }

    #[test]
    fn utf_16_and_what_has_no_encoder_are_utf_8() {
        for encoding in ["UTF-8", "UTF-16LE", "UTF-16BE", "replacement", "no such name"] {
            assert_eq!(joined(encoding, "?é"), "http://h.test/a/b?%C3%A9", "{encoding}");
        }
    }

    #[test]
    fn what_the_parser_drops_is_not_encoded() {
        assert_eq!(joined("GBK", " ?a\tb\n中 "), "http://h.test/a/b?ab%D6%D0");
        assert_eq!(
            joined("GBK", "?中 'a'\"<>"),
            "http://h.test/a/b?%D6%D0%20%27a%27%22%3C%3E"
        );
        assert_eq!(joined("GBK", "#?中"), "http://h.test/a/b");
    }

    #[test]
    fn a_base_is_read_in_the_encoding_too() {
        let page = CrawlUrl::parse("http://h.test/a/b", &Identity::default()).unwrap();
        let base = Base::in_page(&page, Some("c?é"), Some("windows-1252"));
        let url = CrawlUrl::join(&base, "", &Identity::default()).unwrap();
        assert_eq!(url.href(), "http://h.test/a/c?%E9");
    }

    proptest! {
        /// What is in ASCII, or comes from a page in UTF-8, is as it is without an encoding.
        #[test]
        fn ascii_is_left_alone(raw in "[ -~]{0,30}", encoding in prop::sample::select(vec!["GBK", "Shift_JIS", "ISO-2022-JP"])) {
            let page = CrawlUrl::parse("http://h.test/a/b", &Identity::default()).unwrap();
            let plain = Base::of(&page, None);
            let base = plain.clone().in_encoding(Some(encoding));
            prop_assert_eq!(
                CrawlUrl::join(&base, &raw, &Identity::default()),
                CrawlUrl::join(&plain, &raw, &Identity::default())
            );
        }

        /// Any query comes back from its bytes, but for what the encoding lacks.
        #[test]
        fn a_query_can_be_read_again(query in "[a-zé中日한ß€Я\u{1f600}]{0,12}", encoding in prop::sample::select(vec!["GBK", "Shift_JIS", "EUC-KR", "windows-1252", "Big5"])) {
            let encoding = Encoding::for_label(encoding.as_bytes()).unwrap();
            let spelled = encoded(&format!("?{query}"), encoding).into_owned();
            prop_assert!(spelled.is_ascii());
            let mut bytes = Vec::new();
            let mut rest = spelled[1..].bytes();
            while let Some(byte) = rest.next() {
                bytes.push(match byte {
                    b'%' => crate::url::canonical::octet(rest.next().unwrap(), rest.next().unwrap()).unwrap(),
                    other => other,
                });
            }
            let direct = encoding.encode(&query).0;
            prop_assert_eq!(encoding.decode(&bytes).0, encoding.decode(&direct).0);
        }
    }
}
