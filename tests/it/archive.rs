//! Archive files as a crawl writes them, read by our own reader and, where the environment variable
//! `CRAWLER_TOOLS_PYTHON` names a python that has them, judged by `warcio` and `cdxj-indexer`.

use std::fs::{self, File};
use std::io::{BufReader, Write};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crawler::archive::read::{self, Record};
use crawler::archive::warc::{self, Members, Original, Provenance, WarcInfo};
use crawler::archive::{cdxj, naming};
use crawler::clock::Time;
use crawler::fetch::body::Spool;
use crawler::fetch::{Response, Truncated};

const STARTED: Time = Time(1_796_000_000_123_456);

/// One exchange of the sample: its address, its index key (as the package `surt` gives it) and what came.
struct Sample {
    uri: String,
    key: String,
    response: Response,
}

fn sample(uri: &str, key: &str, head: &[u8], body: &[u8]) -> Sample {
    let text = String::from_utf8_lossy(head);
    let headers = text.lines().skip(1).filter_map(|line| line.split_once(':'));
    let response = Response {
        status: text
            .split(' ')
            .nth(1)
            .and_then(|code| code.trim().parse().ok())
            .unwrap_or(200),
        head: head.to_vec(),
        headers: headers
            .map(|(name, value)| (name.trim().to_ascii_lowercase(), value.trim().as_bytes().to_vec()))
            .collect(),
        body: body.to_vec().into(),
        truncated: None,
        remote: Some("2001:db8::1".parse().unwrap()),
        skipped: None,
        request_head: b"GET /x HTTP/1.1\r\nHost: example.com\r\nUser-Agent: bot/1.0\r\n\r\n".to_vec(),
        protocols: Vec::new(),
        cipher: None,
        started: STARTED,
        took: Duration::from_millis(7),
        repeated: None,
    };
    Sample {
        uri: uri.to_owned(),
        key: key.to_owned(),
        response,
    }
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(6));
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// What servers send, the ordinary and the odd.
fn samples() -> Vec<Sample> {
    let page = b"<!doctype html><title>t</title><p>some words of a page</p>".repeat(500);
    let packed = gzip(&page);
    let mut cut = sample(
        "http://example.com/cut",
        "com,example)/cut",
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999\r\n\r\n",
        b"<p>as far as it came",
    );
    cut.response.truncated = Some(Truncated::Disconnect);
    let mut cut_chunks = sample(
        "http://example.com/cut-chunks",
        "com,example)/cut-chunks",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n\r\n",
        &packed[..packed.len() / 2],
    );
    cut_chunks.response.truncated = Some(Truncated::Time);
    vec![
        sample(
            "http://www.example.com/P?b=0&a=1",
            "com,example)/p?a=1&b=0",
            b"HTTP/1.1 200 OK\r\nServer: x\r\nContent-Type: Text/HTML; charset=utf-8\r\nSet-Cookie: a=1\r\nSet-Cookie: a=1\r\n\r\n",
            &page,
        ),
        sample(
            "http://example.com/packed",
            "com,example)/packed",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html;charset=x\r\nContent-Encoding: gzip\r\n\r\n",
            &packed,
        ),
        sample(
            "http://example.com/packed-cut",
            "com,example)/packed-cut",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n",
            &packed[..packed.len() / 2],
        ),
        sample(
            "https://example.com:8443/chunked",
            "com,example:8443)/chunked",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\n",
            b"5\r\nhello\r\n0\r\n\r\n",
        ),
        sample(
            "http://xn--bcher-kva.example/\u{e4}?\u{4e16}=<1>",
            "example,xn--bcher-kva)/%c3%a4?%e4%b8%96=<1>",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n",
            b"<p>non-ASCII</p>",
        ),
        sample("http://example.com/empty", "com,example)/empty", b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        sample("http://example.com/gone", "com,example)/gone", b"HTTP/1.0 404 \r\nContent-Type:\r\n\r\n", b"gone"),
        sample(
            "http://example.com/moved",
            "com,example)/moved",
            b"HTTP/1.1 301 Moved\r\nLocation: /\xe9\r\nContent-Type: \"a\\b\"/\xe9;x\r\nContent-Length: 0\r\n\r\n",
            b"",
        ),
        sample(
            "http://example.com/odd-head",
            "com,example)/odd-head",
            b"HTTP/1.1 200\nX-Long: one\r\n two\r\n \t \r\nno colon here\r\nContent-Type: text/css\tx\r\n\xa0\r\n\r\n",
            b"body { }\r\n\r\n",
        ),
        sample(
            "http://example.com/odd-status",
            "com,example)/odd-status",
            b"HTTP/1.1  200 Fine\r\nContent-Type: application/json\r\n\r\n",
            b"{}",
        ),
        sample(
            "http://example.com/huge-head",
            "com,example)/huge-head",
            format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "y".repeat(200_000)).as_bytes(),
            b"small",
        ),
        sample(
            "http://example.com/picture.png",
            "com,example)/picture.png",
            b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\n",
            &[b"\x89PNG\r\n\x1a\n".as_slice(), &vec![7; 200_000]].concat(),
        ),
        sample(
            "http://example.com/large.txt",
            "com,example)/large.txt",
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n",
            &b"a line of a large text\n".repeat(100_000),
        ),
        cut,
        cut_chunks,
    ]
}

/// Heads put together by chance from what misleads readers: folds, blank lines, bare line ends, bytes that are no text.
fn odd_samples() -> Vec<Sample> {
    const STATUS: [&str; 8] = [
        "HTTP/1.1 200 OK",
        "HTTP/1.0 200",
        "HTTP/1.1 200 ",
        "HTTP/1.1  200  OK",
        "HTTP/1.1\t200 OK",
        "http/1.1 200 ok",
        "HTTP/1.1 200OK",
        "HTTP/1.1 200 \u{a0}\u{2003}",
    ];
    const LINES: [&[u8]; 22] = [
        b"Content-Type: text/html; charset=x",
        b"Content-Type:\ttext/html\tx",
        b"CONTENT-TYPE : Text/Plain;",
        b"Content-Type: \xe9/\xff\xa0x",
        b"Content-Type: \xc3\xa9\xe2\x80\x83x",
        b"Content-Type: \"\\\x01\x7f\x1fx",
        b"Content-Type:",
        b" Content-Type: folded/away",
        b"\ttext/fold",
        b" ",
        b"\t \x0b\x0c",
        b"\x1c\x1f\x85\xa0",
        b"\xe2\x80\xa8",
        b"\x00",
        b"",
        b"no colon",
        b": no name",
        b"Transfer-Encoding: chunked",
        b"transfer-encoding\t: gzip, Chunked",
        b"Content-Length: 3",
        b"X: a\rContent-Type: b/c",
        b"\xff\xfe: \xc3",
    ];
    const ENDS: [&str; 4] = ["\r\n", "\r\n", "\n", "\r\r\n"];
    const BODIES: [&[u8]; 7] = [
        b"",
        b"<p>x</p>",
        b"\r\n",
        b"\r\n\r\nbody",
        b"\nContent-Type: z/z\n\n",
        b" fold",
        b"3\r\nabc\r\n0\r\n\r\n",
    ];
    let mut state = 42_u64;
    let mut choose = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    (0..600)
        .map(|number| {
            let mut head = STATUS[choose(STATUS.len())].as_bytes().to_vec();
            head.extend_from_slice(ENDS[choose(ENDS.len())].as_bytes());
            for _ in 0..choose(7) {
                head.extend_from_slice(LINES[choose(LINES.len())]);
                head.extend_from_slice(ENDS[choose(ENDS.len())].as_bytes());
            }
            head.extend_from_slice(b"\r\n");
            let body = BODIES[choose(BODIES.len())];
            let mut odd = sample(
                &format!("http://example.com/odd/{number}"),
                &format!("com,example)/odd/{number}"),
                &head,
                body,
            );
            odd.response.status = 200;
            odd
        })
        .collect()
}

/// Writes the samples as two files of an archive and its index; gives the members in order.
fn write_archive(folder: &Path, samples: &[Sample]) -> Vec<Members> {
    let spool = Spool::open(&folder.join("spool")).unwrap();
    let mut lines = String::new();
    let mut all = Vec::new();
    let (first, second) = samples.split_at(samples.len() / 2);
    for (serial, part) in [(0, first), (1, second)] {
        let name = naming::file_name("sample", STARTED, serial);
        let info = WarcInfo {
            software: "crawler/0.1.0".to_owned(),
            operator: Some("J\u{f6}rg".to_owned()),
            user_agent: "bot/1.0".to_owned(),
            robots: "obey".to_owned(),
            is_part_of: "sample".to_owned(),
            ..WarcInfo::default()
        };
        let mut file = warc::warcinfo(&info, &name, STARTED);
        for sample in part {
            let provenance = Provenance {
                via: Some("http://example.com/\u{fc}".to_owned()),
                hops: "L".to_owned(),
                notes: vec![("decode".to_owned(), "incomplete".to_owned())],
            };
            let members = warc::encode(&sample.uri, &sample.response, &provenance, &spool).unwrap();
            for (key, revisit, member) in [
                (Some(sample.key.as_str()), false, &members.response.bytes().unwrap()[..]),
                (None, false, &members.request),
                (None, false, &members.metadata),
            ] {
                append(&mut file, &mut lines, key, revisit, &members, member, &name);
            }
            all.push(members);
        }
        // the first page once more under another address
        let response = &first[0].response;
        let again = warc::encode("http://example.com/again", response, &Provenance::default(), &spool).unwrap();
        let original = original(&all[0]);
        let revisit = warc::revisit(&again, &original);
        append(
            &mut file,
            &mut lines,
            Some("com,example)/again"),
            true,
            &again,
            &revisit,
            &name,
        );
        fs::write(folder.join(&name), &file).unwrap();
    }
    fs::write(folder.join("unsorted"), lines).unwrap();
    let lines = cdxj::sort_file(&folder.join("unsorted"), &folder.join("index.cdxj"), 1_000).unwrap();
    assert_eq!(lines, samples.len() as u64 + 2);
    all
}

fn append(
    file: &mut Vec<u8>,
    lines: &mut String,
    key: Option<&str>,
    revisit: bool,
    members: &Members,
    member: &[u8],
    name: &str,
) {
    if let Some(key) = key {
        let (offset, length) = (file.len() as u64, member.len() as u64);
        lines.push_str(&cdxj::line_with_key(key, &members.meta, revisit, name, offset, length));
        lines.push('\n');
    }
    file.extend_from_slice(member);
}

fn original(members: &Members) -> Original {
    let meta = &members.meta;
    Original {
        record_id: meta.record_id.clone(),
        uri: meta.uri.clone(),
        date: meta.date,
    }
}

fn records(path: &Path) -> Vec<Record> {
    let file = BufReader::new(File::open(path).unwrap());
    read::members(file, 1 << 22).collect::<Result<_, _>>().unwrap()
}

#[test]
fn an_archive_reads_back_as_it_was_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let samples: Vec<Sample> = samples().into_iter().chain(odd_samples()).collect();
    let members = write_archive(folder.path(), &samples);
    let files: Vec<_> = [0, 1]
        .map(|serial| folder.path().join(naming::file_name("sample", STARTED, serial)))
        .into();
    let records: Vec<Record> = files.iter().flat_map(|file| records(file)).collect();
    assert_eq!(records.len(), 2 + 3 * members.len() + 2);
    for record in &records {
        assert!(record.wrong_digests().is_empty(), "{:?}", record.headers);
    }
    let responses = records.iter().filter(|record| record.kind() == "response");
    for ((record, sample), members) in responses.zip(&samples).zip(&members) {
        assert_eq!(
            record.payload(),
            &sample.response.body.bytes().unwrap(),
            "{}",
            sample.uri
        );
        assert_eq!(record.http_head(), members.head, "{}", sample.uri);
        assert_eq!(record.header("WARC-Target-URI"), Some(members.meta.uri.as_str()));
        assert_eq!(
            record.header("WARC-Truncated"),
            sample.response.truncated.map(Truncated::as_str)
        );
    }
}

#[test]
fn each_index_line_points_at_its_member() {
    let folder = tempfile::tempdir().unwrap();
    write_archive(folder.path(), &samples());
    let index = fs::read_to_string(folder.path().join("index.cdxj")).unwrap();
    for line in index.lines() {
        let fields: serde_json::Value = serde_json::from_str(line.splitn(3, ' ').nth(2).unwrap()).unwrap();
        let text = |name: &str| fields[name].as_str().unwrap();
        let file = fs::read(folder.path().join(text("filename"))).unwrap();
        let (offset, length): (usize, usize) = (text("offset").parse().unwrap(), text("length").parse().unwrap());
        let record = read::members(&file[offset..offset + length], 0)
            .next()
            .unwrap()
            .unwrap();
        assert_eq!(record.length, length as u64);
        assert_eq!(record.header("WARC-Target-URI"), Some(text("url")));
        assert_eq!(record.header("WARC-Payload-Digest"), Some(text("digest")));
    }
}

#[test]
fn the_tools_of_the_trade_accept_the_archive() {
    let Some(python) = std::env::var_os("CRAWLER_TOOLS_PYTHON") else {
        return;
    };
    let check = |folder: &Path| {
        let run = Command::new(&python)
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/tools/check_archive.py"))
            .arg(folder)
            .output()
            .unwrap();
        (
            run.status.code(),
            String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr),
        )
    };
    let folder = tempfile::tempdir().unwrap();
    write_archive(folder.path(), &samples());
    let (code, said) = check(folder.path());
    assert_eq!(code, Some(0), "{said}");

    let odd = tempfile::tempdir().unwrap();
    write_archive(odd.path(), &odd_samples());
    let (code, said) = check(odd.path());
    assert_eq!(code, Some(0), "{said}");

    // the judge can say no: a line too few, then a byte changed in the last member
    let index = folder.path().join("index.cdxj");
    let lines = fs::read_to_string(&index).unwrap();
    fs::write(&index, lines.split_inclusive('\n').skip(1).collect::<String>()).unwrap();
    assert_eq!(check(folder.path()).0, Some(1));
    fs::write(&index, &lines).unwrap();
    let file = folder.path().join(naming::file_name("sample", STARTED, 1));
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.len() - 20;
    bytes[at] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(check(folder.path()).0, Some(1));
}
