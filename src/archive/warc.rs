//! WARC 1.1 records, each one gzip member.

use serde::{Deserialize, Serialize};

use crate::clock::Time;
use crate::fetch::Response;

/// What a `warcinfo` record says of the crawl.
#[derive(Debug, Clone, Default)]
pub struct WarcInfo {
    /// `crawler/0.1.0`.
    pub software: String,
    /// Who answers for the crawl, if said.
    pub operator: Option<String>,
    /// This machine's name.
    pub hostname: Option<String>,
    /// The User-Agent header.
    pub user_agent: String,
    /// The From header, if sent.
    pub from: Option<String>,
    /// `obey` or `ignore`.
    pub robots: String,
    /// The job's name.
    pub is_part_of: String,
}

/// The `warcinfo` member that opens a file; `filename` is the final name (without `.open`).
#[must_use]
pub fn warcinfo(_info: &WarcInfo, _filename: &str, _date: Time) -> Vec<u8> {
    todo!()
}

/// Where a URL was found and how it went: the body of its `metadata` record.
#[derive(Debug, Clone, Default)]
pub struct Provenance {
    /// The page it was found on.
    pub via: Option<String>,
    /// The hop path from the seed, such as `LLE`.
    pub hops: String,
    /// Further `name: value` lines (annotations such as a decode fault).
    pub notes: Vec<(String, String)>,
}

/// What the index and a later revisit need to know of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResponseMeta {
    /// `WARC-Record-ID` of the response, with its angle brackets.
    pub record_id: String,
    /// WARC-Target-URI.
    pub uri: String,
    /// WARC-Date.
    pub date: Time,
    /// `WARC-IP-Address`.
    pub ip: Option<String>,
    /// HTTP status.
    pub status: u16,
    /// Media type without parameters, lower case; `unk` if none.
    pub mime: String,
    /// SHA-1 of the payload (the body as received).
    pub payload_sha1: [u8; 20],
    /// Length of the payload in bytes.
    pub payload_len: u64,
}

/// The members of one exchange, ready to be appended: each is one gzip member.
#[derive(Debug, Clone)]
pub struct Members {
    /// The `response` record.
    pub response: Vec<u8>,
    /// The `request` record (Concurrent-To the response).
    pub request: Vec<u8>,
    /// The `metadata` record (Concurrent-To the response).
    pub metadata: Vec<u8>,
    /// For the index and for a revisit.
    pub meta: ResponseMeta,
    /// Head of the response as in the record, from which a `revisit` is made.
    pub head: Vec<u8>,
    /// `WARC-Truncated`, if the body is not whole.
    pub truncated: Option<crate::fetch::Truncated>,
}

/// Encodes one exchange. `decoded_prefix` is the start of the decoded body (for `WARC-Identified-Payload-Type`).
#[must_use]
pub fn encode(_uri: &str, _response: &Response, _provenance: &Provenance) -> Members {
    todo!()
}

/// An earlier response with the same payload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// Its record id.
    pub record_id: String,
    /// Its address.
    pub uri: String,
    /// Its date.
    pub date: Time,
}

/// The `revisit` member that stands in place of `members.response` (profile identical-payload-digest). It keeps the
/// response's record id, so that request and metadata still point at it.
#[must_use]
pub fn revisit(_members: &Members, _original: &Original) -> Vec<u8> {
    todo!()
}
