//! CDXJ lines, equal to those that `cdxj-indexer` 1.5.0 writes for the same records.

use std::fmt::Write;

pub use super::sort::sort_file;
use super::warc::ResponseMeta;

/// One index line without its line end: `key 14digits {"url": ..., "mime": ..., ...}`. A revisit has mime `warc/revisit`.
#[must_use]
pub fn line(meta: &ResponseMeta, revisit: bool, file: &str, offset: u64, length: u64) -> String {
    line_with_key(&crate::url::surt::surt(&meta.uri), meta, revisit, file, offset, length)
}

/// As [`line()`] with a key that is known already.
#[must_use]
pub fn line_with_key(key: &str, meta: &ResponseMeta, revisit: bool, file: &str, offset: u64, length: u64) -> String {
    let mime = if revisit {
        Some("warc/revisit")
    } else {
        meta.content_type.as_deref()
    };
    let (offset, length) = (offset.to_string(), length.to_string());
    let mut line = String::with_capacity(256 + key.len() + meta.uri.len());
    line.push_str(key);
    line.push(' ');
    line.push_str(&meta.date.digits14());
    line.push_str(" {\"url\": ");
    push_json(&mut line, &meta.uri);
    for (name, value) in [
        ("mime", mime),
        ("status", Some(meta.status.to_string().as_str())),
        ("digest", Some(meta.payload_digest().as_str())),
        ("length", Some(&length)),
        ("offset", Some(&offset)),
        ("filename", Some(file)),
    ] {
        if let Some(value) = value {
            line.push_str(", \"");
            line.push_str(name);
            line.push_str("\": ");
            push_json(&mut line, value);
        }
    }
    line.push('}');
    line
}

/// A JSON string as Python's `json.dumps` writes it: ASCII alone, anything else as `\uXXXX` of its UTF-16 units.
fn push_json(line: &mut String, value: &str) {
    line.push('"');
    for c in value.chars() {
        match c {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            ' '..='~' => line.push(c),
            '\n' => line.push_str("\\n"),
            '\r' => line.push_str("\\r"),
            '\t' => line.push_str("\\t"),
            '\x08' => line.push_str("\\b"),
            '\x0c' => line.push_str("\\f"),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(line, "\\u{unit:04x}"); // writing to a String does not fail
                }
            }
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;

    fn meta(content_type: Option<&str>) -> ResponseMeta {
        ResponseMeta {
            record_id: "<urn:uuid:1>".to_owned(),
            uri: "http://www.example.com/P?b=0&a=1".to_owned(),
            date: Time(1_308_849_128_999_999),
            ip: None,
            status: 200,
            mime: "unk".to_owned(),
            content_type: content_type.map(str::to_owned),
            payload_sha1: [0; 20],
            payload_len: 5,
        }
    }

    #[test]
    fn a_line_has_the_order_and_spaces_of_the_indexer() {
        let line = line_with_key(
            "com,example)/p?a=1&b=0",
            &meta(Some("text/html")),
            false,
            "t.warc.gz",
            271,
            350,
        );
        assert_eq!(
            line,
            r#"com,example)/p?a=1&b=0 20110623171208 {"url": "http://www.example.com/P?b=0&a=1", "mime": "text/html", "status": "200", "digest": "sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "length": "350", "offset": "271", "filename": "t.warc.gz"}"#
        );
    }

    #[test]
    fn a_revisit_has_its_own_mime_and_an_unsaid_one_is_left_out() {
        let revisit = line_with_key("k", &meta(Some("text/html")), true, "f", 0, 1);
        assert!(
            revisit.contains(r#""mime": "warc/revisit", "status": "200""#),
            "{revisit}"
        );
        let none = line_with_key("k", &meta(None), false, "f", 0, 1);
        assert!(none.contains(r#"a=1", "status""#), "{none}");
        let empty = line_with_key("k", &meta(Some("")), false, "f", 0, 1);
        assert!(empty.contains(r#""mime": "", "status""#), "{empty}");
    }

    #[test]
    fn a_string_is_escaped_as_python_does() {
        let mut json = String::new();
        push_json(&mut json, "a\"\\/\n\r\t\u{8}\u{c}\u{1}\u{7f}\u{e9}\u{1f600}~");
        assert_eq!(json, r#""a\"\\/\n\r\t\b\f\u0001\u007f\u00e9\ud83d\ude00~""#);
    }
}
