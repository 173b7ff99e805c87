//! An independent reader of what a job leaves behind: WARC files member by member, the CDXJ index, crawl.log. It shares
//! no code with the crawler and takes nothing on trust.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::Path;

use data_encoding::BASE32;
use flate2::bufread::GzDecoder;
use sha1::{Digest, Sha1};

/// One WARC record and where its gzip member lies.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) file: String,
    pub(crate) offset: usize,
    /// Length of the member in bytes.
    pub(crate) length: usize,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) block: Vec<u8>,
}

impl Record {
    pub(crate) fn kind(&self) -> &str {
        &self.headers["warc-type"]
    }

    pub(crate) fn uri(&self) -> &str {
        self.headers.get("warc-target-uri").map_or("", String::as_str)
    }

    /// Is it the one record that says what came back for its address?
    pub(crate) fn is_answer(&self) -> bool {
        matches!(self.kind(), "response" | "revisit")
    }

    pub(crate) fn is_robots(&self) -> bool {
        self.uri().ends_with("/robots.txt")
    }

    /// The three digits of the HTTP status line in the block.
    pub(crate) fn status(&self) -> String {
        let line = self.block.split(|byte| *byte == b'\r').next().unwrap();
        String::from_utf8_lossy(line).split(' ').nth(1).unwrap_or("").to_owned()
    }

    /// What follows the HTTP head in the block.
    pub(crate) fn payload(&self) -> &[u8] {
        let end = self
            .block
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .expect("no end of the HTTP head");
        &self.block[end + 4..]
    }
}

/// Every record of every closed file in `folder`, in order. Panics at anything that is not exactly as it must be.
pub(crate) fn records(folder: &Path) -> Vec<Record> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let mut records = Vec::new();
    for name in names {
        assert!(name.ends_with(".warc.gz"), "not a closed archive file: {name}");
        let bytes = fs::read(folder.join(&name)).unwrap();
        let mut offset = 0;
        while offset < bytes.len() {
            let mut member = GzDecoder::new(&bytes[offset..]);
            let mut plain = Vec::new();
            member
                .read_to_end(&mut plain)
                .unwrap_or_else(|error| panic!("{name} at {offset}: {error}"));
            let end = bytes.len() - member.into_inner().len();
            records.push(parse(&plain, &name, offset, end - offset));
            offset = end;
        }
    }
    records
}

fn parse(plain: &[u8], file: &str, offset: usize, length: usize) -> Record {
    let place = format!("{file} at {offset}");
    let head_end = plain
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap_or_else(|| panic!("{place}: no head"));
    let head = std::str::from_utf8(&plain[..head_end]).unwrap_or_else(|_| panic!("{place}: head is not UTF-8"));
    let mut lines = head.split("\r\n");
    assert_eq!(lines.next(), Some("WARC/1.1"), "{place}");
    let mut headers = BTreeMap::new();
    for line in lines {
        let (name, value) = line
            .split_once(": ")
            .unwrap_or_else(|| panic!("{place}: header line {line:?}"));
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let size: usize = headers["content-length"].parse().unwrap();
    let block = plain[head_end + 4..]
        .get(..size)
        .unwrap_or_else(|| panic!("{place}: block is cut"))
        .to_vec();
    assert_eq!(
        &plain[head_end + 4 + size..],
        b"\r\n\r\n",
        "{place}: one member holds one record"
    );
    if let Some(digest) = headers.get("warc-block-digest") {
        assert_eq!(*digest, sha1_of(&block), "{place}: block digest");
    }
    Record {
        file: file.to_owned(),
        offset,
        length,
        headers,
        block,
    }
}

fn sha1_of(bytes: &[u8]) -> String {
    format!("sha1:{}", BASE32.encode(&Sha1::digest(bytes)))
}

/// One line of the index.
#[derive(Debug, Clone)]
pub(crate) struct IndexLine {
    pub(crate) fields: BTreeMap<String, String>,
}

/// The index's lines; panics unless they are sorted by bytes and each is there once.
pub(crate) fn index(file: &Path) -> Vec<IndexLine> {
    let text = fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.windows(2) {
        assert!(
            pair[0].as_bytes() < pair[1].as_bytes(),
            "not in order, or twice:\n{}\n{}",
            pair[0],
            pair[1]
        );
    }
    lines
        .into_iter()
        .map(|line| {
            let mut parts = line.splitn(3, ' ');
            let (key, stamp, json) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
            assert!(key.contains(")/"), "not a SURT key: {line}");
            assert!(
                stamp.len() == 14 && stamp.bytes().all(|byte| byte.is_ascii_digit()),
                "no stamp: {line}"
            );
            IndexLine {
                fields: serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {line}")),
            }
        })
        .collect()
}

/// Does the index name every answer of the archive, each at its own whole member?
pub(crate) fn assert_index_matches(lines: &[IndexLine], records: &[Record]) {
    let answers: BTreeMap<(&str, String), &Record> = records
        .iter()
        .filter(|record| record.is_answer())
        .map(|record| ((record.file.as_str(), record.offset.to_string()), record))
        .collect();
    for line in lines {
        let field = |name: &str| {
            line.fields
                .get(name)
                .unwrap_or_else(|| panic!("no {name} in {line:?}"))
                .as_str()
        };
        let record = answers
            .get(&(field("filename"), field("offset").to_owned()))
            .unwrap_or_else(|| panic!("no answer begins where the index says: {line:?}"));
        assert_eq!(field("length"), record.length.to_string(), "{line:?}");
        assert_eq!(field("url"), record.uri(), "{line:?}");
        assert_eq!(field("status"), record.status(), "{line:?}");
        // an answer need not say its type
        let revisit = line.fields.get("mime").is_some_and(|mime| mime == "warc/revisit");
        assert_eq!(revisit, record.kind() == "revisit", "{line:?}");
        assert_eq!(field("digest"), record.headers["warc-payload-digest"], "{line:?}");
    }
    assert_eq!(lines.len(), answers.len(), "answers without an index line");
}

/// Does the archive hold each of `expected` once, and nothing else? robots.txt may be there or not.
pub(crate) fn assert_holds_exactly(records: &[Record], expected: &BTreeSet<String>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for record in records
        .iter()
        .filter(|record| record.is_answer() && !record.is_robots())
    {
        *counts.entry(record.uri()).or_default() += 1;
    }
    let missing: Vec<&String> = expected
        .iter()
        .filter(|url| !counts.contains_key(url.as_str()))
        .collect();
    let extra: Vec<&&str> = counts.keys().filter(|url| !expected.contains(**url)).collect();
    let twice: Vec<_> = counts.iter().filter(|(_, count)| **count > 1).collect();
    assert!(
        missing.is_empty() && extra.is_empty() && twice.is_empty(),
        "of {} addresses: missing {missing:?}\nextra {extra:?}\nmore than once {twice:?}",
        expected.len()
    );
}

/// Are the records true to each other: payload digests, requests beside answers, revisits that name a response?
pub(crate) fn assert_sound(records: &[Record]) {
    let mut originals: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut ids = BTreeSet::new();
    for record in records {
        assert!(
            ids.insert(&record.headers["warc-record-id"]),
            "a record id twice: {record:?}"
        );
        if record.kind() == "response" {
            let digest = record.headers["warc-payload-digest"].as_str();
            assert_eq!(digest, sha1_of(record.payload()), "payload digest of {}", record.uri());
            originals.insert((record.uri(), digest), record.offset);
        }
    }
    for record in records.iter().filter(|record| record.kind() == "revisit") {
        let target = record.headers["warc-refers-to-target-uri"].as_str();
        let digest = record.headers["warc-payload-digest"].as_str();
        assert!(
            originals.contains_key(&(target, digest)),
            "a revisit of nothing: {record:?}"
        );
    }
    let count = |kind: &str| records.iter().filter(|record| record.kind() == kind).count();
    assert_eq!(
        count("request"),
        count("response") + count("revisit"),
        "each answer has its request"
    );
    assert!(count("warcinfo") >= 1, "no warcinfo");
}

/// One line of crawl.log, in Heritrix columns.
#[derive(Debug, Clone)]
pub(crate) struct LogLine {
    pub(crate) status: i32,
    pub(crate) uri: String,
    pub(crate) hops: String,
    pub(crate) via: String,
    pub(crate) annotations: String,
    /// The JSON column.
    pub(crate) extra: serde_json::Value,
}

/// The lines of a crawl.log; panics unless each has its twelve columns (a thirteenth may follow).
pub(crate) fn crawl_log(file: &Path) -> Vec<LogLine> {
    let text = fs::read_to_string(file).unwrap();
    let line = |line: &str| {
        let columns: Vec<&str> = line.split(' ').filter(|column| !column.is_empty()).collect();
        assert!(columns.len() >= 12, "{} columns: {line}", columns.len());
        assert!(columns[0].ends_with('Z') && columns[0].len() == 24, "log time: {line}");
        assert!(columns[7].starts_with('#'), "worker: {line}");
        LogLine {
            status: columns[1].parse().unwrap_or_else(|_| panic!("status: {line}")),
            uri: columns[3].to_owned(),
            hops: columns[4].to_owned(),
            via: columns[5].to_owned(),
            annotations: columns[11].to_owned(),
            extra: columns
                .get(12..)
                .filter(|rest| !rest.is_empty())
                .map_or_else(Default::default, |rest| {
                    serde_json::from_str(&rest.join(" ")).unwrap_or_else(|error| panic!("{error}: {line}"))
                }),
        }
    };
    text.lines().map(line).collect()
}

mod tests {
    use std::io::Write as _;
    use std::panic::catch_unwind;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn member(kind: &str, uri: &str, block: &str) -> Vec<u8> {
        let digest = sha1_of(block.split_once("\r\n\r\n").map_or("", |(_, body)| body).as_bytes());
        let text = format!(
            "WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:{kind}:{uri}>\r\nWARC-Target-URI: {uri}\r\n\
             WARC-Payload-Digest: {digest}\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        );
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(text.as_bytes()).unwrap();
        gzip.finish().unwrap()
    }

    fn read(members: &[Vec<u8>], cut: usize) -> Vec<Record> {
        let folder = tempfile::tempdir().unwrap();
        let bytes = members.concat();
        fs::write(folder.path().join("a.warc.gz"), &bytes[..bytes.len() - cut]).unwrap();
        records(folder.path())
    }

    #[test]
    fn members_are_walked_and_faults_are_found() {
        let page = "HTTP/1.1 200 OK\r\n\r\nhello";
        let members = [
            member("warcinfo", "", "x"),
            member("request", "http://h/", "GET"),
            member("response", "http://h/", page),
        ];
        let found = read(&members, 0);
        assert_eq!(
            found.iter().map(|record| record.length).sum::<usize>(),
            members.concat().len()
        );
        assert_eq!(
            (found[2].offset, found[2].status().as_str()),
            (members[0].len() + members[1].len(), "200")
        );
        assert_sound(&found);
        let expected = BTreeSet::from(["http://h/".to_owned()]);
        assert_holds_exactly(&found, &expected);
        assert!(catch_unwind(|| assert_holds_exactly(&[found.clone(), found.clone()].concat(), &expected)).is_err());
        assert!(catch_unwind(|| assert_holds_exactly(&found, &BTreeSet::new())).is_err());
        assert!(catch_unwind(|| assert_sound(&found[..2])).is_err());
        assert!(catch_unwind(|| read(&members, 1)).is_err());
        assert!(catch_unwind(|| assert_index_matches(&[], &found)).is_err());
    }
}
