//! The columns of a crawl.log line as Heritrix writes them: split on runs of spaces, `-` for empty.
//!
//! 1 time, 2 status (width 5), 3 size (width 10), 4 URI, 5 hop path, 6 via, 7 media type, 8 `#` and worker,
//! 9 fetch start and duration, 10 `sha1:` digest, 11 source tag, 12 annotations, 13 JSON.

use std::time::Duration;

use crate::clock::Time;
use crate::fetch::{Repeat, Response, Truncated};
use crate::ledger::LogEntry;

/// Heritrix's code for a runtime exception.
pub const INTERNAL: i32 = -5;

/// What a line tells.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    /// When the attempt ended.
    pub at: Time,
    /// HTTP status, or a negative code.
    pub status: i32,
    /// Body bytes as received.
    pub size: Option<u64>,
    /// The address.
    pub url: &'a str,
    /// Hop letters.
    pub hops: &'a str,
    /// The page it was found on.
    pub via: Option<&'a str>,
    /// Media type.
    pub mime: Option<&'a str>,
    /// Start and duration of the request; none if none was made.
    pub span: Option<(Time, Duration)>,
    /// SHA-1 of the body.
    pub sha1: Option<[u8; 20]>,
    /// The seed it came from, for the source tag.
    pub annotations: Vec<String>,
}

impl Line<'_> {
    /// The entry for the ledger, which adds where the exchange is archived.
    #[must_use]
    pub fn entry(self) -> LogEntry {
        let size = self.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
        let span = self.span.map_or_else(
            || "-".to_owned(),
            |(start, took)| format!("{}+{}", start.digits17(), took.as_millis()),
        );
        let sha1 = self.sha1.map_or_else(
            || "-".to_owned(),
            |sha1| format!("sha1:{}", data_encoding::BASE32.encode(&sha1)),
        );
        let hops = if self.hops.is_empty() { "-" } else { self.hops };
        let columns = format!(
            "{} {:>5} {:>10} {} {} {} {} #000 {} {} -",
            self.at.rfc3339(3),
            self.status,
            size,
            column(self.url),
            hops,
            self.via.map_or("-".into(), column),
            self.mime.map_or("-".into(), column),
            span,
            sha1,
        );
        let mut extra = serde_json::Map::new();
        if let Some((start, took)) = self.span {
            extra.insert("startMicros".to_owned(), start.0.into());
            extra.insert(
                "tookMicros".to_owned(),
                u64::try_from(took.as_micros()).unwrap_or(u64::MAX).into(),
            );
        }
        LogEntry {
            columns,
            annotations: self.annotations,
            extra,
        }
    }
}

/// That a request was sent twice, and why.
#[must_use]
pub fn of_repeat(repeated: Option<Repeat>) -> Option<String> {
    repeated.map(|why| why.as_str().to_owned())
}

/// How a response came, as annotations: over HTTP/2, and Heritrix's word for a body that is not whole.
pub fn of_wire(response: &Response) -> impl Iterator<Item = String> {
    let h2 = response.protocols.contains(&"h2").then_some("h2");
    let cut = response.truncated.map(|why| match why {
        Truncated::Length => "lenTrunc",
        Truncated::Time => "timeTrunc",
        Truncated::Disconnect => "midFetchTrunc",
    });
    h2.into_iter().chain(cut).map(ToOwned::to_owned)
}

/// A text without the characters that part columns and lines.
fn column(text: &str) -> std::borrow::Cow<'_, str> {
    if text.bytes().any(|b| b <= b' ') {
        let parts: Vec<&str> = text.split(|c: char| c <= ' ').filter(|part| !part.is_empty()).collect();
        return parts.join("%20").into();
    }
    if text.is_empty() { "-".into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_columns() {
        let line = Line {
            at: Time(1_308_849_128_802_000),
            status: 200,
            size: Some(1299),
            url: "http://h/a b",
            hops: "",
            via: None,
            mime: Some("text/plain"),
            span: Some((Time(1_308_849_128_574_000), Duration::from_millis(225))),
            sha1: Some([0; 20]),
            annotations: vec!["2t".to_owned()],
        };
        let entry = line.entry();
        assert_eq!(
            entry.columns,
            "2011-06-23T17:12:08.802Z   200       1299 http://h/a%20b - - text/plain #000 20110623171208574+225 \
             sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA -"
        );
        assert_eq!(entry.extra["startMicros"], 1_308_849_128_574_000_u64);
    }
}
