//! WARC 1.1 records, each one gzip member.
//!
//! - The **block** of a response is the head of [`head::for_record`] and the body as received minus chunk framing
//!   (content coding kept); of a request its head as sent; of a revisit the response's head alone.
//! - The **payload** is the body as it stands in the record (WARC 1.1 section 5.9: the entity body), so that a reader who
//!   hashes what follows the head gets `WARC-Payload-Digest`, and equal bodies have equal digests however they were
//!   chunked.
//! - A body that is packed already (content coding, image, video, archive, font) goes in as stored blocks
//!   ([`member::stored`]); everything else is deflated.
//! - Every address in a header is ASCII without `<`, `>` and `\`: other bytes are written `%XX`.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt::Write;
use std::io::{self, Read};
use std::sync::Arc;

use data_encoding::BASE32;
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};
use uuid::Uuid;

use super::{head, identify, member};
use crate::clock::Time;
use crate::fetch::body::{Body, Sink, Spool};
use crate::fetch::{Response, Truncated};

/// `WARC-Profile` of a revisit (WARC 1.1 section 6.7.2).
pub const REVISIT_PROFILE: &str = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest";

/// The specification that the files conform to.
const CONFORMS_TO: &str = "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/";

/// What follows the block of every record.
const END: &[u8] = b"\r\n\r\n";

/// The longest media type in bytes that a report shows; a longer one is `unk`. Twice the longest registered.
pub const MAX_MIME: usize = 160;

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
    /// What is unusual about TLS, if anything.
    pub tls: Option<String>,
    /// The job's name.
    pub is_part_of: String,
}

/// The `warcinfo` member that opens a file; `filename` is the final name (without `.open`).
#[must_use]
pub fn warcinfo(info: &WarcInfo, filename: &str, date: Time) -> Vec<u8> {
    let mut block = String::new();
    field(&mut block, "software", &info.software);
    field(&mut block, "format", "WARC File Format 1.1");
    field(&mut block, "conformsTo", CONFORMS_TO);
    optional(&mut block, "operator", info.operator.as_deref());
    optional(&mut block, "hostname", info.hostname.as_deref());
    field(&mut block, "http-header-user-agent", &info.user_agent);
    optional(&mut block, "http-header-from", info.from.as_deref());
    field(&mut block, "robots", &info.robots);
    optional(&mut block, "tls", info.tls.as_deref());
    field(&mut block, "isPartOf", &info.is_part_of);

    let mut header = opening("warcinfo", &urn(Uuid::new_v4()), &date.rfc3339(6));
    field(&mut header, "WARC-Filename", filename);
    field(&mut header, "Content-Type", "application/warc-fields");
    whole(header, block.as_bytes())
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
    /// Media type without parameters, lower case; `unk` if none, or if it is no printable ASCII of at most [`MAX_MIME`]
    /// bytes.
    pub mime: String,
    /// The same as the index says it ([`head::indexed_type`]): as the server wrote it; `None` without a header.
    pub content_type: Option<String>,
    /// SHA-1 of the payload (the body as received).
    pub payload_sha1: [u8; 20],
    /// Length of the payload in bytes.
    pub payload_len: u64,
}

impl ResponseMeta {
    /// `sha1:BASE32` of the payload.
    #[must_use]
    pub fn payload_digest(&self) -> String {
        labelled(&self.payload_sha1)
    }
}

/// The members of one exchange, ready to be appended: each is one gzip member.
#[derive(Debug, Clone)]
pub struct Members {
    /// The `response` record; in a file if it is large, so that its length says nothing of the memory it takes.
    pub response: Body,
    /// The `request` record (Concurrent-To the response).
    pub request: Vec<u8>,
    /// The `metadata` record (Concurrent-To the response).
    pub metadata: Vec<u8>,
    /// For the index and for a revisit.
    pub meta: ResponseMeta,
    /// `WARC-Protocol` and `WARC-Cipher-Suite` lines of the exchange.
    pub connection: String,
    /// Head of the response as in the record, from which a `revisit` is made.
    pub head: Vec<u8>,
    /// `WARC-Truncated`, if the body is not whole.
    pub truncated: Option<Truncated>,
}

/// Encodes one exchange under new random record ids.
/// The response's record goes to the spool where it is large or memory is short.
///
/// # Errors
/// If the body cannot be read or the spool not written.
pub fn encode(uri: &str, response: &Response, provenance: &Provenance, spool: &Arc<Spool>) -> io::Result<Members> {
    encode_as(
        [Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4()],
        uri,
        response,
        provenance,
        spool,
    )
}

/// Encodes one exchange; `ids` name the response, the request and the metadata record. Equal arguments give equal
/// bytes.
///
/// # Errors
/// As [`encode`].
pub fn encode_as(
    ids: [Uuid; 3],
    uri: &str,
    response: &Response,
    provenance: &Provenance,
    spool: &Arc<Spool>,
) -> io::Result<Members> {
    let [record_id, request_id, metadata_id] = ids.map(urn);
    let uri = ascii(uri).into_owned();
    let date = response.started.rfc3339(6);
    let ip = response.remote.map(|address| address.to_canonical().to_string());
    let body = &response.body;
    let head = head::for_record(
        &response.head,
        response.status,
        body.len(),
        response.truncated.is_none(),
    );
    let content_type = head::indexed_type(&head);
    let mime = mime(content_type.as_deref());
    let coding = response
        .header("content-encoding")
        .map_or("", word)
        .to_ascii_lowercase();
    let identified = identify::identify(
        &body.start(identify::ENOUGH)?,
        matches!(coding.as_str(), "gzip" | "x-gzip"),
    );

    let (payload_sha1, block_sha1) = digests(&head, body)?;
    let meta = ResponseMeta {
        record_id,
        uri,
        date: response.started,
        ip,
        status: response.status,
        mime,
        content_type,
        payload_sha1,
        payload_len: body.len(),
    };

    let mut connection = String::new();
    for protocol in &response.protocols {
        field(&mut connection, "WARC-Protocol", protocol);
    }
    optional(&mut connection, "WARC-Cipher-Suite", response.cipher);

    let mut header = opening("response", &meta.record_id, &date);
    field(&mut header, "WARC-Target-URI", &meta.uri);
    optional(&mut header, "WARC-IP-Address", meta.ip.as_deref());
    header.push_str(&connection);
    field(&mut header, "WARC-Payload-Digest", &meta.payload_digest());
    field(&mut header, "WARC-Block-Digest", &labelled(&block_sha1));
    optional(&mut header, "WARC-Truncated", response.truncated.map(Truncated::as_str));
    optional(&mut header, "WARC-Identified-Payload-Type", identified);
    field(&mut header, "Content-Type", "application/http; msgtype=response");
    closing(&mut header, head.len() as u64 + body.len());
    let packed = is_packed(&coding, identified.unwrap_or(&meta.mime));
    let response_member = if let Some(body) = body.in_memory() {
        let parts = [header.as_bytes(), &head, body, END];
        let pack = if packed { member::stored } else { member::deflated };
        Sink::kept(spool, pack(&parts))?
    } else {
        let record = header.as_bytes().chain(&head[..]).chain(body.reader()).chain(END);
        member::write(record, packed, Sink::new(spool, None))?.close()?
    };

    let mut header = opening("request", &request_id, &date);
    field(&mut header, "WARC-Target-URI", &meta.uri);
    optional(&mut header, "WARC-IP-Address", meta.ip.as_deref());
    header.push_str(&connection);
    field(&mut header, "WARC-Concurrent-To", &meta.record_id);
    field(&mut header, "Content-Type", "application/http; msgtype=request");
    let request = whole(header, &response.request_head);

    let mut block = String::new();
    optional(&mut block, "via", provenance.via.as_deref().map(ascii).as_deref());
    optional(
        &mut block,
        "hopsFromSeed",
        Some(provenance.hops.as_str()).filter(|hops| !hops.is_empty()),
    );
    field(&mut block, "fetchTimeMs", &response.took.as_millis().to_string());
    for (name, value) in &provenance.notes {
        field(&mut block, name, value);
    }
    let mut header = opening("metadata", &metadata_id, &date);
    field(&mut header, "WARC-Target-URI", &meta.uri);
    field(&mut header, "WARC-Concurrent-To", &meta.record_id);
    field(&mut header, "Content-Type", "application/warc-fields");
    let metadata = whole(header, block.as_bytes());

    Ok(Members {
        response: response_member,
        request,
        metadata,
        meta,
        connection,
        head,
        truncated: response.truncated,
    })
}

/// SHA-1 of the payload, and of the block that is the head and the payload.
fn digests(head: &[u8], body: &Body) -> io::Result<([u8; 20], [u8; 20])> {
    let (mut payload, mut block) = (Sha1::new(), Sha1::new_with_prefix(head));
    let hashed = body.pieces(|piece| -> Result<(), Infallible> {
        payload.update(piece);
        block.update(piece);
        Ok(())
    })?;
    let Ok(()) = hashed;
    Ok((payload.finalize().into(), block.finalize().into()))
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
pub fn revisit(members: &Members, original: &Original) -> Vec<u8> {
    let meta = &members.meta;
    let mut header = opening("revisit", &meta.record_id, &meta.date.rfc3339(6));
    field(&mut header, "WARC-Target-URI", &meta.uri);
    optional(&mut header, "WARC-IP-Address", meta.ip.as_deref());
    header.push_str(&members.connection);
    field(&mut header, "WARC-Profile", REVISIT_PROFILE);
    field(&mut header, "WARC-Refers-To", &original.record_id);
    field(&mut header, "WARC-Refers-To-Target-URI", &ascii(&original.uri));
    field(&mut header, "WARC-Refers-To-Date", &original.date.rfc3339(6));
    field(&mut header, "WARC-Payload-Digest", &meta.payload_digest());
    // the payload is left out by intent (WARC 1.1 section 5.13)
    field(&mut header, "WARC-Truncated", Truncated::Length.as_str());
    field(&mut header, "Content-Type", "application/http; msgtype=response");
    whole(header, &members.head)
}

/// The member of a record whose block is small: header, its block digest, the block.
fn whole(mut header: String, block: &[u8]) -> Vec<u8> {
    let sha1: [u8; 20] = Sha1::digest(block).into();
    field(&mut header, "WARC-Block-Digest", &labelled(&sha1));
    closing(&mut header, block.len() as u64);
    member::deflated(&[header.as_bytes(), block, END])
}

fn opening(kind: &str, record_id: &str, date: &str) -> String {
    let mut header = String::with_capacity(1024);
    header.push_str("WARC/1.1\r\n");
    field(&mut header, "WARC-Type", kind);
    field(&mut header, "WARC-Record-ID", record_id);
    field(&mut header, "WARC-Date", date);
    header
}

fn closing(header: &mut String, length: u64) {
    let _ = write!(header, "Content-Length: {length}\r\n\r\n"); // writing to a String does not fail
}

/// One `name: value` line; a control character in the value, which could end the line, becomes a space.
fn field(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str(": ");
    if value.contains(char::is_control) {
        text.extend(value.chars().map(|c| if c.is_control() { ' ' } else { c }));
    } else {
        text.push_str(value);
    }
    text.push_str("\r\n");
}

fn optional(text: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        field(text, name, value);
    }
}

fn urn(id: Uuid) -> String {
    format!("<urn:uuid:{id}>")
}

fn labelled(sha1: &[u8; 20]) -> String {
    format!("sha1:{}", BASE32.encode(sha1))
}

/// An address with every byte that a URI may not hold raw written `%XX`: all but printable ASCII, and `<`, `>`, `\`.
fn ascii(uri: &str) -> Cow<'_, str> {
    let is_raw = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'\\');
    if uri.bytes().all(is_raw) {
        return uri.into();
    }
    let mut encoded = String::with_capacity(uri.len() + 16);
    for byte in uri.bytes() {
        if is_raw(byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}"); // writing to a String does not fail
        }
    }
    encoded.into()
}

/// A header value that should be one word: trimmed, empty if it is not UTF-8.
fn word(value: &[u8]) -> &str {
    std::str::from_utf8(value).unwrap_or_default().trim()
}

fn mime(content_type: Option<&str>) -> String {
    match content_type {
        Some(text) if (1..=MAX_MIME).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()) => {
            text.to_ascii_lowercase()
        }
        _ => "unk".to_owned(),
    }
}

/// Is the body packed already, so that deflating it again would cost time and gain nothing?
fn is_packed(coding: &str, media_type: &str) -> bool {
    if !matches!(coding, "" | "identity") {
        return true;
    }
    match media_type.split_once('/') {
        Some(("video", _)) => true,
        Some(("audio", kind)) => !matches!(kind, "wav" | "x-wav" | "midi" | "basic"),
        Some(("image", kind)) => matches!(kind, "jpeg" | "jpg" | "png" | "gif" | "webp" | "avif" | "jxl" | "heic"),
        Some(("font", kind)) => matches!(kind, "woff" | "woff2"),
        Some(("application", kind)) => {
            const PACKED: [&str; 14] = [
                "zip",
                "gzip",
                "x-gzip",
                "zstd",
                "x-xz",
                "x-bzip2",
                "x-7z-compressed",
                "x-rar-compressed",
                "vnd.rar",
                "ogg",
                "font-woff",
                "font-woff2",
                "java-archive",
                "epub+zip",
            ];
            PACKED.contains(&kind)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::archive::read::{self, Record};

    fn encode(uri: &str, response: &Response, provenance: &Provenance) -> Members {
        super::encode(uri, response, provenance, &spool()).unwrap()
    }

    fn packed(members: &Members) -> Vec<u8> {
        members.response.bytes().unwrap().to_vec()
    }

    fn spool() -> Arc<Spool> {
        Spool::open(tempfile::tempdir().unwrap().path()).unwrap()
    }

    const STARTED: Time = Time(1_308_849_128_802_345);

    fn response(head: &str, body: &[u8]) -> Response {
        let headers = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        Response {
            status: 200,
            head: head.as_bytes().to_vec(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.as_bytes().to_vec()))
                .collect(),
            body: body.to_vec().into(),
            truncated: None,
            remote: Some("192.0.2.1".parse().unwrap()),
            skipped: None,
            request_head: b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n".to_vec(),
            started: STARTED,
            took: Duration::from_millis(12),
            repeated: None,
            protocols: Vec::new(),
            cipher: None,
        }
    }

    fn only(member: &[u8]) -> Record {
        let mut records = read::members(member, usize::MAX);
        let record = records.next().unwrap().unwrap();
        assert!(records.next().is_none(), "more than one member");
        assert_eq!(record.wrong_digests(), [""; 0]);
        record
    }

    fn text(record: &Record) -> &str {
        std::str::from_utf8(&record.block).unwrap()
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
        encoder.write_all(plain).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_response_says_all_that_a_reader_needs() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: Text/HTML; charset=utf-8\r\n\r\n";
        let members = encode(
            "http://example.com/ä",
            &response(head, b"<html>hello"),
            &Provenance::default(),
        );
        let record = only(&packed(&members));
        let names: Vec<&str> = record.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "WARC-Type",
                "WARC-Record-ID",
                "WARC-Date",
                "WARC-Target-URI",
                "WARC-IP-Address",
                "WARC-Payload-Digest",
                "WARC-Block-Digest",
                "WARC-Identified-Payload-Type",
                "Content-Type",
                "Content-Length",
            ]
        );
        assert_eq!(record.kind(), "response");
        assert_eq!(record.header("WARC-Date"), Some("2011-06-23T17:12:08.802345Z"));
        assert_eq!(record.header("WARC-Target-URI"), Some("http://example.com/%C3%A4"));
        assert_eq!(record.header("WARC-IP-Address"), Some("192.0.2.1"));
        assert_eq!(record.header("WARC-Identified-Payload-Type"), Some("text/html"));
        assert_eq!(
            record.header("Content-Type"),
            Some("application/http; msgtype=response")
        );
        assert_eq!(record.http_head(), head.as_bytes());
        assert_eq!(record.payload(), b"<html>hello");
        assert_eq!(record.header("WARC-Record-ID"), Some(members.meta.record_id.as_str()));
        assert_eq!(
            record.header("WARC-Payload-Digest").unwrap(),
            members.meta.payload_digest()
        );
        assert_eq!(members.meta.mime, "text/html");
        assert_eq!(members.meta.content_type.as_deref(), Some("Text/HTML"));
        assert_eq!(members.meta.payload_len, 11);
        assert_eq!(members.meta.uri, "http://example.com/%C3%A4");
        assert_eq!(members.head, head.as_bytes());
    }

    #[test]
    fn request_and_metadata_point_at_the_response() {
        let provenance = Provenance {
            via: Some("http://example.com/ü".to_owned()),
            hops: "LE".to_owned(),
            notes: vec![("annotation".to_owned(), "a\r\nb".to_owned())],
        };
        let members = encode(
            "http://example.com/",
            &response("HTTP/1.1 200 OK\r\n\r\n", b""),
            &provenance,
        );
        let (request, metadata) = (only(&members.request), only(&members.metadata));
        for record in [&request, &metadata] {
            assert_eq!(
                record.header("WARC-Concurrent-To"),
                Some(members.meta.record_id.as_str())
            );
            assert_eq!(record.header("WARC-Date"), Some("2011-06-23T17:12:08.802345Z"));
            assert_eq!(record.header("WARC-Target-URI"), Some("http://example.com/"));
        }
        assert_eq!((request.kind(), metadata.kind()), ("request", "metadata"));
        assert_eq!(text(&request), "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n");
        assert_eq!(
            text(&metadata),
            "via: http://example.com/%C3%BC\r\nhopsFromSeed: LE\r\nfetchTimeMs: 12\r\nannotation: a  b\r\n"
        );
        let ids = [
            &members.meta.record_id[..],
            request.header("WARC-Record-ID").unwrap(),
            metadata.header("WARC-Record-ID").unwrap(),
        ];
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
        assert!(
            ids.iter()
                .all(|id| id.starts_with("<urn:uuid:") && id.ends_with('>') && id.as_bytes()[24] == b'4')
        );
    }

    #[test]
    fn equal_bodies_have_equal_digests_however_they_were_sent() {
        let plain = encode(
            "http://a/",
            &response("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", b"body"),
            &Provenance::default(),
        );
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let chunked = encode("http://b/", &response(head, b"body"), &Provenance::default());
        assert_eq!(plain.meta.payload_sha1, chunked.meta.payload_sha1);
        let record = only(&packed(&chunked));
        assert_eq!(
            text(&record),
            "HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\nbody"
        );
    }

    #[test]
    fn a_cut_body_is_marked_with_its_reason() {
        for (reason, name) in [
            (Truncated::Length, "length"),
            (Truncated::Time, "time"),
            (Truncated::Disconnect, "disconnect"),
        ] {
            let mut response = response("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"bo");
            response.truncated = Some(reason);
            let members = encode("http://a/", &response, &Provenance::default());
            let record = only(&packed(&members));
            assert_eq!(record.header("WARC-Truncated"), Some(name));
            assert!(
                !text(&record).contains("\nContent-Length"),
                "nobody said how long it would have been"
            );
            assert_eq!(members.truncated, Some(reason));
        }
    }

    #[test]
    fn packed_bodies_are_stored_and_others_deflated() {
        let page = b"<html>the same words again and again</html>".repeat(3_000);
        let gzipped = gzip(&page);
        let size = |head: &str, body: &[u8]| {
            let head = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n");
            let member = packed(&encode("http://a/", &response(&head, body), &Provenance::default()));
            assert_eq!(only(&member).payload(), body);
            (memchr::memmem::find(&member, body).is_some(), member.len())
        };
        for head in [
            "Content-Encoding: gzip",
            "content-encoding: BR",
            "Content-Encoding: zstd",
            "Content-Encoding: deflate, gzip",
            "Content-Type: application/zip",
        ] {
            let (verbatim, length) = size(head, &gzipped);
            assert!(verbatim && length < gzipped.len() + 1_200, "{head}");
        }
        assert!(
            size("Content-Type: text/plain", b"\x89PNG\r\n\x1a\n rest").0,
            "the bytes count, not the label"
        );
        for head in ["Content-Type: image/jpeg", "Content-Encoding: identity", "A: b"] {
            let length = size(head, &page).1;
            assert!(length < page.len() / 10, "{head}: {length}");
        }
        assert_eq!(
            only(&packed(&encode(
                "http://a/",
                &response("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", &gzipped),
                &Provenance::default()
            )))
            .header("WARC-Identified-Payload-Type"),
            Some("text/html")
        );
    }

    #[test]
    fn a_revisit_has_the_head_alone_and_names_the_original() {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n";
        let members = encode("http://example.com/b", &response(head, b"same"), &Provenance::default());
        let original = Original {
            record_id: "<urn:uuid:00000000-0000-4000-8000-000000000001>".to_owned(),
            uri: "http://example.com/a".to_owned(),
            date: Time(STARTED.0 - 1),
        };
        let record = only(&revisit(&members, &original));
        assert_eq!(record.kind(), "revisit");
        assert_eq!(record.block, head.as_bytes());
        for (name, value) in [
            ("WARC-Record-ID", members.meta.record_id.as_str()),
            ("WARC-Date", "2011-06-23T17:12:08.802345Z"),
            ("WARC-Target-URI", "http://example.com/b"),
            ("WARC-IP-Address", "192.0.2.1"),
            ("WARC-Profile", REVISIT_PROFILE),
            ("WARC-Refers-To", original.record_id.as_str()),
            ("WARC-Refers-To-Target-URI", "http://example.com/a"),
            ("WARC-Refers-To-Date", "2011-06-23T17:12:08.802344Z"),
            (
                "WARC-Payload-Digest",
                only(&packed(&members)).header("WARC-Payload-Digest").unwrap(),
            ),
            ("WARC-Truncated", "length"),
            ("Content-Type", "application/http; msgtype=response"),
        ] {
            assert_eq!(record.header(name), Some(value), "{name}");
        }
    }

    #[test]
    fn the_warcinfo_record_says_what_was_crawled_by_whom() {
        let info = WarcInfo {
            software: "crawler/0.1.0".to_owned(),
            operator: Some("A\nB".to_owned()),
            user_agent: "bot/1.0".to_owned(),
            robots: "obey".to_owned(),
            is_part_of: "job".to_owned(),
            ..WarcInfo::default()
        };
        let record = only(&warcinfo(&info, "a-1.warc.gz", STARTED));
        assert_eq!(record.kind(), "warcinfo");
        assert_eq!(record.header("WARC-Filename"), Some("a-1.warc.gz"));
        assert_eq!(record.header("Content-Type"), Some("application/warc-fields"));
        assert_eq!(
            text(&record),
            "software: crawler/0.1.0\r\nformat: WARC File Format 1.1\r\n\
             conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n\
             operator: A B\r\nhttp-header-user-agent: bot/1.0\r\nrobots: obey\r\nisPartOf: job\r\n"
        );
    }

    #[test]
    fn addresses_in_headers_are_uris() {
        assert_eq!(ascii("http://a/b|c?d=%20#e"), "http://a/b|c?d=%20#e");
        assert_eq!(
            ascii("http://a/ <>\\\r\n\u{7f}ü"),
            "http://a/%20%3C%3E%5C%0D%0A%7F%C3%BC"
        );
    }

    #[test]
    fn the_mime_of_a_report_is_short_and_printable() {
        let exact = format!("a/{}", "b".repeat(MAX_MIME - 2));
        assert_eq!(mime(Some(&exact)), exact);
        assert_eq!(mime(Some(&format!("{exact}b"))), "unk");
        for odd in [Some(""), Some("a\u{7f}"), Some("ä"), None] {
            assert_eq!(mime(odd), "unk");
        }
    }

    proptest! {
        #[test]
        fn any_exchange_is_read_back(
            head in prop::collection::vec(any::<u8>(), 0..400),
            body in prop::collection::vec(any::<u8>(), 0..2_000),
            request in prop::collection::vec(any::<u8>(), 0..100),
            uri in "\\PC{0,40}",
            note in "\\PC{0,10}\r?\n?\\PC{0,10}",
            coding in prop::sample::select(vec!["gzip", "identity", "br", "x"]),
            repeats in prop::sample::select(vec![1_usize, 1, 1, 200]),
        ) {
            let body = body.repeat(repeats);
            let mut given = response("HTTP/1.1 200 OK\r\n\r\n", &body);
            given.head = head;
            given.request_head = request;
            given.headers = vec![("content-encoding".to_owned(), coding.as_bytes().to_vec())];
            let provenance = Provenance { via: Some(uri.clone()), hops: note.clone(), notes: vec![("n".to_owned(), note)] };
            let ids = [Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3)];
            let members = encode_as(ids, &uri, &given, &provenance, &spool()).unwrap();
            let record = only(&packed(&members));
            prop_assert_eq!(record.http_head(), &members.head);
            prop_assert_eq!(record.payload(), &body);
            prop_assert_eq!(only(&members.request).block, given.request_head.clone());
            prop_assert_eq!(text(&only(&members.metadata)).lines().filter(|line| !line.is_empty()).all(|line| line.contains(": ")), true);
            let original = Original { record_id: urn(ids[0]), uri: uri.clone(), date: STARTED };
            prop_assert_eq!(only(&revisit(&members, &original)).block, members.head.clone());
            let again = encode_as(ids, &uri, &given, &provenance, &spool()).unwrap();
            prop_assert_eq!(packed(&again), packed(&members));
            prop_assert_eq!(again.request, members.request);
            prop_assert_eq!(again.metadata, members.metadata);
        }
    }
}
