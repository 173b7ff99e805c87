//! Which bodies are not worth their bytes, by what the head of an answer says. Pure.
//!
//! Only an answer that brings something (2xx) is judged; a redirect or an error is short and says where to go or why
//! not. What the head does not say is not held against it: without a media type no rule of types holds, without a length
//! no rule of sizes does (`max_body` bounds those).

use std::fmt;

use super::Skipped;
use crate::extract::mime;

/// Most media types in a list.
pub const MAX_TYPES: usize = 1_000;

/// A media type, or all of one kind: `text/html`, `image/*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MediaRange {
    kind: String,
    /// None for all.
    sub: Option<String>,
}

impl MediaRange {
    /// Reads `text/html` or `image/*` (`*/*` too).
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected a media type such as text/html, or image/* for all of a kind".to_owned();
        let text = text.trim().to_ascii_lowercase();
        let (kind, sub) = text.split_once('/').ok_or_else(expected)?;
        let token = |part: &str| {
            let letters = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
            !part.is_empty() && part.bytes().all(letters)
        };
        if !(token(kind) && (token(sub) || sub == "*") || kind == "*" && sub == "*") {
            return Err(expected());
        }
        Ok(Self {
            kind: kind.to_owned(),
            sub: (sub != "*").then(|| sub.to_owned()),
        })
    }

    fn covers(&self, essence: &str) -> bool {
        let (kind, sub) = essence.split_once('/').unwrap_or((essence, ""));
        (self.kind == "*" || self.kind == kind) && self.sub.as_ref().is_none_or(|own| own == sub)
    }
}

impl fmt::Display for MediaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.sub.as_deref().unwrap_or("*"))
    }
}

/// The rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BodyFilter {
    /// Only these types, if there are any.
    pub accept: Vec<MediaRange>,
    /// None of these.
    pub reject: Vec<MediaRange>,
    /// Nothing that says it is longer, bytes as sent.
    pub max_size: Option<u64>,
}

impl BodyFilter {
    /// Why a body is not to be had, if so. Names of headers are in lower case.
    #[must_use]
    pub fn judge(&self, status: u16, headers: &[(String, Vec<u8>)]) -> Option<Skipped> {
        if !(200..300).contains(&status) {
            return None;
        }
        let header = |name: &str| headers.iter().find(|(own, _)| own == name).map(|(_, value)| value);
        if !(self.accept.is_empty() && self.reject.is_empty())
            && let Some(mime) = header("content-type").and_then(|value| mime::parse(value))
            && self.refuses(&mime.essence)
        {
            return Some(Skipped::Type);
        }
        let most = self.max_size?;
        let length = std::str::from_utf8(header("content-length")?).ok()?;
        let length = length.trim().parse::<u64>().ok()?;
        (length > most).then_some(Skipped::Size)
    }

    /// Is a body of this media type not wanted?
    #[must_use]
    pub fn refuses(&self, essence: &str) -> bool {
        let covers = |list: &[MediaRange]| list.iter().any(|range| range.covers(essence));
        covers(&self.reject) || !self.accept.is_empty() && !covers(&self.accept)
    }

    /// Nothing is left out.
    #[must_use]
    pub fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(texts: &[&str]) -> Vec<MediaRange> {
        texts.iter().map(|text| MediaRange::parse(text).unwrap()).collect()
    }

    #[test]
    fn a_range_is_a_type_or_all_of_a_kind() {
        for text in ["text/html", "image/*", "*/*", "application/vnd.x+json"] {
            assert_eq!(MediaRange::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(MediaRange::parse(" Text/HTML ").unwrap().to_string(), "text/html");
        for text in ["", "html", "*/html", "text/", "text/html;q=1", "a b/c", "text/*x"] {
            assert!(MediaRange::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_head_decides() {
        let filter = BodyFilter {
            accept: ranges(&["text/html", "image/*"]),
            reject: ranges(&["image/tiff"]),
            max_size: Some(100),
        };
        let judge = |status, content_type: &str, length: &str| {
            let headers = [("content-type", content_type), ("content-length", length)];
            let said = headers.iter().filter(|(_, value)| !value.is_empty());
            let headers: Vec<_> = said
                .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
                .collect();
            filter.judge(status, &headers)
        };
        assert_eq!(judge(200, "text/html; charset=utf-8", "100"), None);
        assert_eq!(judge(200, "IMAGE/png", ""), None);
        assert_eq!(judge(200, "image/tiff", "1"), Some(Skipped::Type));
        assert_eq!(judge(206, "video/mp4", "1"), Some(Skipped::Type));
        assert_eq!(judge(200, "text/html", "101"), Some(Skipped::Size));
        assert_eq!(judge(200, "", "101"), Some(Skipped::Size));
        assert_eq!(judge(200, "nonsense", ""), None, "what is no type is not judged");
        assert_eq!(judge(200, "text/html", "many"), None);
        assert_eq!(judge(404, "video/mp4", "101"), None);
        assert_eq!(judge(301, "video/mp4", "101"), None);
        assert!(BodyFilter::default().is_open() && !filter.is_open());
    }
}
