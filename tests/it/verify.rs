//! `crawler verify`: an archive of the crawler's own is sound, and whatever is done to a byte of it is named.

use std::fs;
use std::io::{Cursor, Write as _};
use std::path::PathBuf;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crawler::archive::verify::{self, Ids, Kind};

use crate::harness::Job;
use crate::shared;
use crate::site::{Answer, Asked, Site};

fn job() -> Job {
    let site = Site::start(1, |_| {
        |asked: &Asked| match asked.path.as_str() {
            "/robots.txt" => Answer::not_found(),
            "/" => Answer::html("<a href=/a>a</a><a href=/b>b</a><a href=/same1>1</a><a href=/same2>2</a>"),
            path if path.starts_with("/same") => Answer::html("<p>the same"),
            path => Answer::html(format!("<p>this is {path}")),
        }
    });
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    job
}

fn warc(job: &Job) -> PathBuf {
    let mut files = fs::read_dir(job.dir().join("archive")).unwrap();
    files.next().unwrap().unwrap().path()
}

/// What is said of a job whose file was changed; the file is put right again.
fn said_of(job: &Job, path: &PathBuf, change: impl FnOnce(&mut Vec<u8>)) -> String {
    let before = fs::read(path).unwrap();
    let mut after = before.clone();
    change(&mut after);
    assert_ne!(before, after, "nothing was changed");
    fs::write(path, after).unwrap();
    let done = job.command(&["verify", "job"]);
    done.assert_code(1);
    fs::write(path, before).unwrap();
    done.stdout
}

#[test]
fn a_job_of_ours_is_sound_and_each_kind_of_damage_is_named() {
    let job = job();
    let done = job.command(&["verify", "job", "--json"]);
    done.assert_code(0);
    let lines: Vec<Value> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{}", done.stdout);
    assert!(lines.iter().all(|line| line["ok"] == true), "{}", done.stdout);
    assert_eq!(
        lines[0]["records"],
        1 + 3 * 6,
        "a warcinfo, and of each of six answers three"
    );
    assert_eq!(lines[1]["records"], 6);
    let archive = warc(&job);
    job.command(&["verify", archive.to_str().unwrap()])
        .assert_says("19 records, sound");

    let cut = said_of(&job, &archive, |bytes| bytes.truncate(bytes.len() - 5));
    assert!(cut.contains("the gzip member is cut off"), "{cut}");
    let more = said_of(&job, &archive, |bytes| bytes.extend([0; 16]));
    assert!(more.contains("what follows is no gzip member"), "{more}");

    let index = job.dir().join("indexes/index.cdxj");
    let place = said_of(&job, &index, |bytes| {
        let at = bytes.windows(11).position(|part| part == b"\"offset\": \"").unwrap() + 11;
        bytes[at] = if bytes[at] == b'9' { b'8' } else { bytes[at] + 1 };
    });
    assert!(place.contains("line 1: crawl-"), "{place}");
    let address = said_of(&job, &index, |bytes| {
        let at = bytes.windows(3).position(|part| part == b"/a\"").unwrap();
        bytes[at + 1] = b'c';
    });
    assert!(address.contains("the address is"), "{address}");
    let order = said_of(&job, &index, |bytes| {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.swap(0, 1);
        *bytes = (lines.join("\n") + "\n").into_bytes();
    });
    assert!(order.contains("it is not in order"), "{order}");
    job.command(&["verify", "job"]).assert_code(0);
    job.command(&["verify", "seeds.txt"]).assert_code(2);
    job.command(&["verify", "nothing.warc"]).assert_code(2);
}

/// Every byte of an archive counts: cut anywhere, or with any byte changed, it is not sound. In a gzip header some bytes
/// mean nothing (the time, the system), and so do some bits of a stored block's header; those are left alone.
#[test]
fn no_byte_of_an_archive_can_change_unseen() {
    let job = job();
    let bytes = fs::read(warc(&job)).unwrap();
    let starts: Vec<usize> = (0..bytes.len() - 3)
        .filter(|at| bytes[*at..].starts_with(&[0x1f, 0x8b, 8]))
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("changed.warc.gz");
    let is_sound = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let found = verify::file(&path, Kind::Warc, None, &mut Ids::default());
        found.unwrap().is_sound()
    };
    assert!(is_sound(&bytes));
    for at in (0..bytes.len()).step_by(7) {
        if starts.iter().any(|start| (*start..start + 10).contains(&at)) {
            continue;
        }
        let mut changed = bytes.clone();
        changed[at] ^= 0x01;
        assert!(!is_sound(&changed), "byte {at} of {}", bytes.len());
        if !starts.contains(&at) {
            assert!(!is_sound(&bytes[..at]), "cut at {at}");
        }
    }
}

/// The files that others collected: good ones pass, and each broken one is told.
#[test]
fn the_files_of_the_field_are_told_apart() {
    for (set, good, bad) in [("warc", "well-formed", "broken"), ("wacz", "valid", "invalid")] {
        let Some(folder) = shared::path("conformance") else {
            return;
        };
        let cases = fs::read_to_string(folder.join(format!("{set}.jsonl"))).unwrap();
        for case in cases.lines() {
            let case: Value = serde_json::from_str(case).unwrap();
            let path = folder.join(case["file"].as_str().unwrap());
            let kind = Kind::of(&path).unwrap();
            let kind = kind.unwrap_or(Kind::Warc);
            let mut ids = Ids::default();
            let found = verify::file(&path, kind, None, &mut ids).unwrap();
            match case["expect"].as_str().unwrap() {
                expect if expect == good => assert!(found.is_sound(), "{}: {:?}", path.display(), found.faults),
                expect if expect == bad => assert!(!found.is_sound(), "{}", path.display()),
                _ => {}
            }
        }
    }
}

/// A small WACZ file made here, with one thing wrong at a time.
#[test]
fn each_rule_of_wacz_is_held() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("small.wacz");
    let faults = |change: Change| {
        let mut wacz = Wacz::small();
        change(&mut wacz);
        fs::write(&path, wacz.bytes()).unwrap();
        let mut ids = Ids::default();
        let found = verify::file(&path, Kind::Wacz, None, &mut ids).unwrap();
        let texts: Vec<String> = found
            .faults
            .iter()
            .map(|fault| format!("{}: {}", fault.place, fault.text))
            .collect();
        texts.join("\n")
    };
    assert_eq!(faults(|_| {}), "");
    let cases: [(&str, Change); 9] = [
        ("datapackage.json is missing", |wacz| wacz.list = None),
        ("no WARC file in archive/", |wacz| {
            wacz.rename("archive/a.warc.gz", "other/a.warc.gz");
        }),
        ("no index in indexes/", |wacz| {
            wacz.rename("indexes/index.cdx", "indexes/index.txt");
        }),
        ("pages/pages.jsonl is missing", |wacz| {
            wacz.rename("pages/pages.jsonl", "pages/other.jsonl");
        }),
        ("it is not listed", |wacz| wacz.unlisted = Some("logs/a.log")),
        ("no record of the page http://h.test/b", |wacz| {
            let page = "{\"url\":\"http://h.test/b\",\"ts\":\"2026-01-02T03:04:05Z\"}\n";
            wacz.append("pages/pages.jsonl", page);
        }),
        ("a page without a ts", |wacz| {
            wacz.append("pages/pages.jsonl", "{\"url\":\"http://h.test/\"}\n");
        }),
        ("it is no line of CDXJ", |wacz| {
            wacz.append("indexes/index.cdx", "test,h)/z and so on\n");
        }),
        ("it must be stored", |wacz| wacz.packed = true),
    ];
    for (words, change) in cases {
        let said = faults(change);
        assert!(said.contains(words), "{words}: {said}");
    }
}

type Change = fn(&mut Wacz);

struct Wacz {
    files: Vec<(String, Vec<u8>)>,
    list: Option<()>,
    unlisted: Option<&'static str>,
    packed: bool,
}

impl Wacz {
    fn small() -> Self {
        let block = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nhello";
        let record = format!(
            "WARC/1.1\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n\
             WARC-Date: 2026-01-02T03:04:05Z\r\nWARC-Target-URI: http://h.test/\r\n\
             Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n{block}\r\n\r\n",
            block.len()
        );
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        member.write_all(record.as_bytes()).unwrap();
        let member = member.finish().unwrap();
        let index = format!(
            "test,h)/ 20260102030405 {{\"url\": \"http://h.test/\", \"mime\": \"text/html\", \"status\": \"200\", \
             \"length\": \"{}\", \"offset\": \"0\", \"filename\": \"a.warc.gz\"}}\n",
            member.len()
        );
        let pages = "{\"format\": \"json-pages-1.0\", \"id\": \"pages\", \"title\": \"All Pages\"}\n\
                     {\"url\":\"http://h.test/\",\"ts\":\"2026-01-02T03:04:05Z\"}\n";
        let files = [
            ("archive/a.warc.gz", member),
            ("indexes/index.cdx", index.into_bytes()),
            ("pages/pages.jsonl", pages.into()),
        ];
        Self {
            files: files.map(|(name, bytes)| (name.to_owned(), bytes)).into(),
            list: Some(()),
            unlisted: None,
            packed: false,
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        let file = self.files.iter_mut().find(|(name, _)| name == from).unwrap();
        to.clone_into(&mut file.0);
    }

    fn append(&mut self, to: &str, text: &str) {
        let file = self.files.iter_mut().find(|(name, _)| name == to).unwrap();
        file.1.extend_from_slice(text.as_bytes());
    }

    fn bytes(&self) -> Vec<u8> {
        use sha2::Digest as _;
        let resources: Vec<Value> = self
            .files
            .iter()
            .map(|(path, bytes)| {
                let hash = data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(bytes));
                serde_json::json!({"name": path, "path": path, "hash": format!("sha256:{hash}"), "bytes": bytes.len()})
            })
            .collect();
        let list = serde_json::json!({"profile": "data-package", "wacz_version": "1.1.1", "resources": resources});
        let mut files = self.files.clone();
        if self.list.is_some() {
            files.push(("datapackage.json".to_owned(), list.to_string().into_bytes()));
        }
        files.extend(self.unlisted.map(|name| (name.to_owned(), b"x".to_vec())));
        let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let method = if self.packed {
            zip::CompressionMethod::Deflated
        } else {
            zip::CompressionMethod::Stored
        };
        for (name, bytes) in files {
            let options = zip::write::SimpleFileOptions::default().compression_method(method);
            zip.start_file(name.as_str(), options).unwrap();
            zip.write_all(&bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }
}
