//! One line of crawl.log, taken apart.

use std::time::Duration;

use serde::Deserialize;

use crate::clock::Time;

/// Columns before the JSON.
const COLUMNS: usize = 12;

/// What an audit asks of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// HTTP status, or a negative code.
    pub(super) status: i32,
    pub(super) url: &'a str,
    /// The request was for a robots.txt.
    pub(super) is_robots: bool,
    /// SHA-1 of the body in base 32, if it was archived.
    pub(super) sha1: Option<&'a str>,
    pub(super) notes: Vec<&'a str>,
    /// Start and duration; none if no request was made.
    pub(super) span: Option<(Time, Duration)>,
    /// How long the host was to rest from its end.
    pub(super) rest: Option<Duration>,
    pub(super) ip: Option<String>,
    /// File and offset of the answer's record.
    pub(super) place: Option<(String, u64)>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Extra {
    ip: Option<String>,
    rest_micros: Option<u64>,
    start_micros: Option<u64>,
    took_micros: Option<u64>,
    warc_file_offset: Option<u64>,
    warc_filename: Option<String>,
}

impl<'a> Line<'a> {
    /// Reads a line without its end; `None` if it is none.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut rest = text;
        let mut columns = [""; COLUMNS];
        for column in &mut columns {
            rest = rest.trim_start_matches(' ');
            let end = rest.find(' ')?;
            (*column, rest) = rest.split_at_checked(end)?;
        }
        let [_, status, _, url, hops, _, _, _, _, sha1, _, notes] = columns;
        let extra: Extra = serde_json::from_str(rest.trim_start_matches(' ')).ok()?;
        let took = Duration::from_micros(extra.took_micros.unwrap_or(0));
        Some(Self {
            status: status.parse().ok()?,
            url,
            is_robots: hops.ends_with('P'),
            sha1: sha1.strip_prefix("sha1:"),
            notes: notes.split(',').filter(|note| *note != "-").collect(),
            span: extra.start_micros.map(|start| (Time(start), took)),
            rest: extra.rest_micros.map(Duration::from_micros),
            ip: extra.ip,
            place: extra.warc_filename.zip(extra.warc_file_offset),
        })
    }

    pub(super) fn has(&self, note: &str) -> bool {
        self.notes.contains(&note)
    }

    /// An answer with which its URL is settled: none that is asked for again.
    pub(super) fn is_final(&self) -> bool {
        self.status > 0 && !matches!(self.status, 429 | 500 | 502 | 503 | 504) && !self.has("midFetchTrunc")
    }

    /// When the request ended.
    pub(super) fn end(&self) -> Option<Time> {
        self.span.map(|(start, took)| start + took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart_and_half_a_line_is_none() {
        let text = "2011-06-23T17:12:08.802Z   503       1299 http://h/robots.txt P - text/plain #000 20110623171208574+225 \
                    sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA - 2t,h2 {\"ip\":\"1.2.3.4\",\"restMicros\":50,\"startMicros\":7,\
                    \"tookMicros\":3,\"warcFileOffset\":9,\"warcFilename\":\"a b\"}";
        let line = Line::read(text).unwrap();
        assert_eq!(
            (line.status, line.url, line.is_robots),
            (503, "http://h/robots.txt", true)
        );
        assert_eq!(
            (line.end(), line.rest),
            (Some(Time(10)), Some(Duration::from_micros(50)))
        );
        assert_eq!(line.place, Some(("a b".to_owned(), 9)));
        assert!(line.has("2t") && line.has("h2") && !line.has("t") && !line.is_final());
        for end in [10, 60, 120, text.len() - 1] {
            assert_eq!(Line::read(&text[..end]), None, "{end}");
        }
    }
}
