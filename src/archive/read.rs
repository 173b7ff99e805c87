//! Walks a `.warc.gz` file member by member and says what each record holds, or where the file is damaged.
//!
//! It shares no code with the writer, and holds a window, one header and the start of one block, however long the file.

use std::io::{self, BufRead, Read};

use data_encoding::BASE32;
use flate2::bufread::GzDecoder;
use sha1::{Digest, Sha1};

/// Longest record header in bytes; a longer one is damage.
pub const MAX_HEADER: usize = 1 << 20;

/// An HTTP head is looked for in the first bytes of a block, at most so many.
pub const MAX_HTTP_HEAD: usize = 1 << 20;

/// What follows a block.
const END: &[u8] = b"\r\n\r\n";

/// Bytes decoded at a time.
const STEP: usize = 1 << 16;

/// One record, which is one gzip member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where the member begins in the file.
    pub offset: u64,
    /// How many bytes the member has in the file.
    pub length: u64,
    /// The record's header lines in order, names as written, values trimmed.
    pub headers: Vec<(String, String)>,
    /// Bytes of the block, as counted.
    pub block_length: u64,
    /// The start of the block: all of it, if it is no longer than asked for.
    pub block: Vec<u8>,
    /// SHA-1 of the whole block.
    pub block_sha1: [u8; 20],
    /// SHA-1 of the whole payload (what follows the HTTP head); `None` if the block holds no HTTP message.
    pub payload_sha1: Option<[u8; 20]>,
    /// Bytes of the payload; the block's if it holds no HTTP message.
    pub payload_length: u64,
}

impl Record {
    /// The first value of a header, whatever the case of its name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// `WARC-Type`, empty if there is none.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.header("WARC-Type").unwrap_or_default()
    }

    /// The HTTP head with its closing empty line; empty if the block holds no HTTP message.
    #[must_use]
    pub fn http_head(&self) -> &[u8] {
        self.block.get(..self.head_length()).unwrap_or_default()
    }

    /// The payload, as far as the block was kept.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        self.block.get(self.head_length()..).unwrap_or_default()
    }

    /// The digest headers that do not agree with the bytes. A revisit's payload is elsewhere and not judged.
    #[must_use]
    pub fn wrong_digests(&self) -> Vec<&'static str> {
        let block = ("WARC-Block-Digest", Some(self.block_sha1));
        let payload = (
            "WARC-Payload-Digest",
            self.payload_sha1.filter(|_| self.kind() != "revisit"),
        );
        let differs = |name: &str, sha1: Option<[u8; 20]>| {
            self.header(name)
                .zip(sha1)
                .is_some_and(|(said, sha1)| said != format!("sha1:{}", BASE32.encode(&sha1)))
        };
        [block, payload]
            .into_iter()
            .filter(|(name, sha1)| differs(name, *sha1))
            .map(|(name, _)| name)
            .collect()
    }

    fn head_length(&self) -> usize {
        usize::try_from(self.block_length - self.payload_length).unwrap_or(usize::MAX)
    }
}

/// Where a file stops being readable, and why.
#[derive(Debug, thiserror::Error)]
#[error("offset {offset}: {reason}")]
pub struct Damage {
    /// Where the damaged member begins: everything before it is whole.
    pub offset: u64,
    /// In words.
    pub reason: String,
}

/// The records of a file in order. After the first damage it ends.
#[derive(Debug)]
pub struct Records<R> {
    /// `None` after the end.
    input: Option<Counted<R>>,
    keep: usize,
}

/// Reads the members of `input`; of each block at most `keep` bytes are kept (all of them are counted and hashed).
pub fn members<R: BufRead>(input: R, keep: usize) -> Records<R> {
    Records {
        input: Some(Counted {
            inner: input,
            position: 0,
        }),
        keep,
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Record, Damage>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut input = self.input.take()?;
        let offset = input.position;
        let damage = |reason: String| Some(Err(Damage { offset, reason }));
        match input.fill_buf() {
            Ok([]) => return None,
            Ok(_) => {}
            Err(error) => return damage(error.to_string()),
        }
        let mut decoder = GzDecoder::new(input);
        match record(&mut decoder, self.keep) {
            Ok(mut record) => {
                let input = decoder.into_inner();
                record.offset = offset;
                record.length = input.position - offset;
                self.input = Some(input);
                Some(Ok(record))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => damage("the member is cut off".to_owned()),
            Err(error) => damage(error.to_string()),
        }
    }
}

/// Reads one record to the end of its member (where the decoder checks CRC and length).
fn record(input: &mut impl Read, keep: usize) -> io::Result<Record> {
    let mut window = Vec::with_capacity(STEP);
    let header_end = loop {
        if let Some(end) = find_end(&window) {
            break end;
        }
        if window.len() > MAX_HEADER {
            return Err(bad("the record header has no end"));
        }
        if step(input, &mut window)? == 0 {
            return Err(bad("the member ends within the record header"));
        }
    };
    let headers = headers(window.get(..header_end).unwrap_or_default())?;
    window.drain(..header_end);
    let named = |name: &str| {
        headers
            .iter()
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    };
    let length: u64 = named("Content-Length")
        .filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()))
        .and_then(|value| value.parse().ok())
        .ok_or_else(|| bad("no Content-Length"))?;
    let is_http = named("Content-Type").is_some_and(|value| value.starts_with("application/http"));

    let mut block = Block::new(length, is_http, keep);
    while block.missing() > 0 {
        if window.is_empty() && step(input, &mut window)? == 0 {
            return Err(bad("the block is shorter than Content-Length"));
        }
        let taken = window.len().min(usize::try_from(block.missing()).unwrap_or(usize::MAX));
        block.take(window.get(..taken).unwrap_or_default());
        window.drain(..taken);
    }
    // to the end of the member, where the decoder checks CRC and length
    while window.len() <= END.len() && step(input, &mut window)? > 0 {}
    match window.strip_prefix(END) {
        Some([]) => {}
        Some(_) => return Err(bad("the member goes on after its record")),
        None => return Err(bad("the block is not followed by two line ends")),
    }
    Ok(block.finish(headers))
}

/// A block as it goes by.
struct Block {
    length: u64,
    seen: u64,
    keep: usize,
    start: Vec<u8>,
    whole: Sha1,
    /// The hash of the payload, once its start is known.
    payload: Option<(u64, Sha1)>,
    is_http: bool,
}

impl Block {
    fn new(length: u64, is_http: bool, keep: usize) -> Self {
        Self {
            length,
            seen: 0,
            keep,
            start: Vec::new(),
            whole: Sha1::new(),
            payload: None,
            is_http,
        }
    }

    fn missing(&self) -> u64 {
        self.length - self.seen
    }

    fn take(&mut self, bytes: &[u8]) {
        self.seen += bytes.len() as u64;
        self.whole.update(bytes);
        if let Some((_, hash)) = &mut self.payload {
            hash.update(bytes);
        }
        let looking = self.is_http && self.payload.is_none() && self.start.len() < MAX_HTTP_HEAD;
        let room = if looking {
            MAX_HTTP_HEAD.max(self.keep)
        } else {
            self.keep
        }
        .saturating_sub(self.start.len());
        self.start.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
        if looking && let Some(end) = find_end(&self.start) {
            let hash = Sha1::new().chain_update(self.start.get(end..).unwrap_or_default());
            self.payload = Some((end as u64, hash));
        }
        if self.payload.is_some() {
            self.start.truncate(self.keep);
        }
    }

    fn finish(mut self, headers: Vec<(String, String)>) -> Record {
        self.start.truncate(self.keep);
        let head = self.payload.as_ref().map_or(0, |(head, _)| *head);
        Record {
            offset: 0,
            length: 0,
            headers,
            block_length: self.length,
            block: self.start,
            block_sha1: self.whole.finalize().into(),
            payload_sha1: self.payload.map(|(_, hash)| hash.finalize().into()),
            payload_length: self.length - head,
        }
    }
}

fn headers(bytes: &[u8]) -> io::Result<Vec<(String, String)>> {
    let text = std::str::from_utf8(bytes).map_err(|_| bad("the record header is not UTF-8"))?;
    let mut lines = text.trim_end_matches("\r\n").split("\r\n");
    if !matches!(lines.next(), Some("WARC/1.0" | "WARC/1.1")) {
        return Err(bad("not a WARC record"));
    }
    lines
        .map(|line| {
            let (name, value) = line
                .split_once(':')
                .ok_or_else(|| bad("a header line without a colon"))?;
            Ok((name.to_owned(), value.trim().to_owned()))
        })
        .collect()
}

/// Where the first empty line ends.
fn find_end(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, END).map(|at| at + 4)
}

/// Appends what the next read gives, at most [`STEP`] bytes; 0 is the end.
fn step(input: &mut impl Read, window: &mut Vec<u8>) -> io::Result<usize> {
    input.by_ref().take(STEP as u64).read_to_end(window)
}

fn bad(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Counts what the decoder takes, so that the end of a member is known to the byte.
#[derive(Debug)]
struct Counted<R> {
    inner: R,
    position: u64,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let taken = self.inner.read(into)?;
        self.position += taken as u64;
        Ok(taken)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.position += amount as u64;
        self.inner.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::archive::member;

    fn record_of(header: &str, block: &[u8]) -> Vec<u8> {
        let header = format!("WARC/1.1\r\n{header}Content-Length: {}\r\n\r\n", block.len());
        member::deflated(&[header.as_bytes(), block, b"\r\n\r\n"])
    }

    fn plain(text: &str) -> Vec<u8> {
        member::deflated(&[text.as_bytes()])
    }

    fn read(file: &[u8], keep: usize) -> (Vec<Record>, Option<Damage>) {
        let mut damage = None;
        let records = members(file, keep)
            .map_while(|record| record.map_err(|error| damage = Some(error)).ok())
            .collect();
        (records, damage)
    }

    #[test]
    fn records_are_found_with_their_places() {
        let http = b"HTTP/1.1 200 OK\r\nA: b\r\n\r\nbody";
        let first = record_of("WARC-Type: response\r\nContent-Type: application/http\r\n", http);
        let second = record_of(
            "warc-type:  metadata \r\nContent-Type: application/warc-fields\r\n",
            b"via: x\r\n",
        );
        let (records, damage) = read(&[first.clone(), second.clone()].concat(), 1 << 20);
        assert!(damage.is_none());
        assert_eq!(records.len(), 2);
        assert_eq!((records[0].offset, records[0].length), (0, first.len() as u64));
        assert_eq!(
            (records[1].offset, records[1].length),
            (first.len() as u64, second.len() as u64)
        );
        assert_eq!(
            (records[0].http_head(), records[0].payload()),
            (&http[..25], &http[25..])
        );
        assert_eq!(records[0].payload_sha1, Some(Sha1::digest(b"body").into()));
        assert_eq!(records[0].block_sha1, <[u8; 20]>::from(Sha1::digest(http)));
        assert_eq!(
            (records[1].kind(), records[1].payload(), records[1].payload_sha1),
            ("metadata", &b"via: x\r\n"[..], None)
        );
        assert_eq!(read(b"", 10).0, []);
    }

    #[test]
    fn a_long_block_is_hashed_whole_and_kept_in_part() {
        let body = vec![b'x'; 3 * STEP + 7];
        let http = [b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &body].concat();
        let file = record_of("WARC-Type: response\r\nContent-Type: application/http\r\n", &http);
        for keep in [0, 5, 19, 25, STEP, 1 << 20] {
            let (records, _) = read(&file, keep);
            assert_eq!(records[0].block, http[..keep.min(http.len())]);
            assert_eq!(records[0].payload_sha1, Some(Sha1::digest(&body).into()), "{keep}");
            assert_eq!(
                (records[0].block_length, records[0].payload_length),
                (http.len() as u64, body.len() as u64)
            );
        }
    }

    #[test]
    fn a_wrong_digest_is_named() {
        let file = record_of("WARC-Type: resource\r\nWARC-Block-Digest: sha1:AAAA\r\n", b"x");
        assert_eq!(read(&file, 10).0[0].wrong_digests(), ["WARC-Block-Digest"]);
        let right = format!("WARC-Block-Digest: sha1:{}\r\n", BASE32.encode(&Sha1::digest(b"x")));
        assert!(read(&record_of(&right, b"x"), 10).0[0].wrong_digests().is_empty());
    }

    #[test]
    fn each_fault_is_told_with_the_place_of_its_member() {
        let good = record_of("WARC-Type: resource\r\n", b"x");
        let huge = format!("WARC/1.1\r\nA: {}\r\n", "a".repeat(MAX_HEADER));
        let mut wrong_crc = good.clone();
        let crc = wrong_crc.len() - 8;
        wrong_crc[crc] ^= 1;
        for (member, reason) in [
            (good[..good.len() - 1].to_vec(), "the member is cut off"),
            (good[..5].to_vec(), "the member is cut off"),
            (b"no gzip member".to_vec(), "invalid gzip header"),
            (wrong_crc, "corrupt gzip stream does not have a matching checksum"),
            (
                plain("WARC/1.1\r\nContent-Length: 1\r\n"),
                "the member ends within the record header",
            ),
            (plain(&huge), "the record header has no end"),
            (
                plain("WARC/2.0\r\nContent-Length: 1\r\n\r\nx\r\n\r\n"),
                "not a WARC record",
            ),
            (
                plain("WARC/1.1\r\nContent-Length: +1\r\n\r\nx\r\n\r\n"),
                "no Content-Length",
            ),
            (
                plain("WARC/1.1\r\nno colon\r\n\r\nx\r\n\r\n"),
                "a header line without a colon",
            ),
            (
                plain("WARC/1.1\r\nContent-Length: 9\r\n\r\nx\r\n\r\n"),
                "the block is shorter than Content-Length",
            ),
            (
                plain("WARC/1.1\r\nContent-Length: 1\r\n\r\nx\r\n"),
                "the block is not followed by two line ends",
            ),
            (
                plain("WARC/1.1\r\nContent-Length: 1\r\n\r\nx\r\n\r\nWARC/1.1"),
                "the member goes on after its record",
            ),
        ] {
            let (records, damage) = read(&[good.clone(), member].concat(), 10);
            let damage = damage.expect(reason);
            assert_eq!((records.len(), damage.offset), (1, good.len() as u64), "{reason}");
            assert_eq!(damage.reason, reason);
        }
    }

    proptest! {
        #[test]
        fn a_file_cut_anywhere_gives_the_whole_records_before_the_cut(
            blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 1..5),
            share in 0.0..1.0_f64,
        ) {
            let members: Vec<Vec<u8>> = blocks.iter().map(|block| record_of("WARC-Type: resource\r\n", block)).collect();
            let file = members.concat();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "small and positive")]
            let cut = (file.len() as f64 * share) as usize;
            let (records, damage) = read(&file[..cut], 100);
            let mut end = 0;
            let ends: Vec<usize> = members.iter().map(|member| { end += member.len(); end }).collect();
            let whole = ends.iter().filter(|end| **end <= cut).count();
            prop_assert_eq!(records.len(), whole);
            let last = whole.checked_sub(1).map_or(0, |at| ends[at]);
            prop_assert_eq!(damage.map(|damage| damage.offset), (cut > last).then_some(last as u64));
            prop_assert!(records.iter().zip(&blocks).all(|(record, block)| record.block == *block));
        }

        #[test]
        fn any_bytes_give_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            read(&bytes, 10);
            read(&plain(&String::from_utf8_lossy(&bytes)), 10);
            read(&member::stored(&[b"WARC/1.1\r\n", &bytes]), 10);
        }
    }
}
