//! Bodies that memory must not hold: one very large, many at once, a disk with no room for them.
//!
//! The server makes its bodies as it sends them; the test makes them once more to compare.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use data_encoding::BASE32;
use flate2::Compression;
use flate2::read::GzEncoder;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use sha1::{Digest, Sha1};

use crate::harness::Job;
use crate::reader::{Record, assert_index_matches, assert_sound};

const MIB: usize = 1 << 20;

/// Noise is made once in this length and repeated: a prime, so that no two pieces of a round length are equal, and too
/// long for a packer to see the repeat.
const ROUND: usize = 65_521;

/// A body of a length: noise that does not pack, or a page of letters that packs to a little over half.
fn body(len: usize, text: bool) -> impl Read + Send {
    let start: &[u8] = if text {
        b"<!doctype html><a href='/near.html'>near</a>"
    } else {
        b""
    };
    let end: &[u8] = if text { b"<a href='/far.html'>far</a>" } else { b"" };
    let mut state = 7_u64;
    let round = (0..ROUND).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let byte = (state >> 33).to_le_bytes()[0];
        if text { b'a' + byte % 26 } else { byte }
    });
    let filler = Filler {
        round: round.collect(),
        at: 0,
        end: len - start.len() - end.len(),
    };
    start.chain(filler).chain(end)
}

struct Filler {
    round: Vec<u8>,
    at: usize,
    end: usize,
}

impl Read for Filler {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let from = &self.round[self.at % ROUND..];
        let count = from.len().min(into.len()).min(self.end - self.at);
        into[..count].copy_from_slice(&from[..count]);
        self.at += count;
        Ok(count)
    }
}

/// A server that answers each path by a function of its own, on one port of 127.0.0.1.
fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, answer) = (stream.unwrap(), Arc::clone(&answer));
            thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                loop {
                    let mut target = None;
                    loop {
                        let mut line = String::new();
                        if reader.read_line(&mut line).unwrap_or(0) == 0 {
                            return;
                        }
                        if line == "\r\n" {
                            break;
                        }
                        target.get_or_insert_with(|| line.split(' ').nth(1).unwrap().to_owned());
                    }
                    match target.unwrap().as_str() {
                        "/robots.txt" | "/near.html" | "/far.html" => {
                            head(&mut stream, "text/html", Some(0), "");
                        }
                        target => answer(target, &mut stream),
                    }
                }
            });
        }
    });
    address
}

fn head(stream: &mut TcpStream, mime: &str, len: Option<usize>, more: &str) {
    let len = len.map_or_else(
        || "Connection: close\r\n".to_owned(),
        |len| format!("Content-Length: {len}\r\n"),
    );
    let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Type: {mime}\r\n{len}{more}\r\n");
}

fn sha1(mut bytes: impl Read) -> String {
    let mut hash = Sha1::new();
    let mut piece = vec![0; MIB];
    loop {
        match bytes.read(&mut piece).unwrap() {
            0 => return format!("sha1:{}", BASE32.encode(&hash.finalize())),
            read => hash.update(&piece[..read]),
        }
    }
}

fn answer_to<'r>(records: &'r [Record], end: &str) -> &'r Record {
    let found: Vec<&Record> = records
        .iter()
        .filter(|record| record.is_answer() && record.uri().ends_with(end))
        .collect();
    assert_eq!(found.len(), 1, "{end} is in the archive once");
    found[0]
}

#[test]
fn a_body_of_200_mib_passes_through_little_memory() {
    const LEN: usize = 200 * MIB;
    let address = serve(|_, stream| {
        head(stream, "application/octet-stream", Some(LEN), "");
        let _ = std::io::copy(&mut body(LEN, false), stream);
    });
    let job = Job::new(&[format!("http://{address}/large.bin")]).flag("--max-body", "1GiB");
    let (done, most) = job.start().wait_and_weigh();
    done.assert_code(0);
    assert!(most < 150 * MIB as u64, "{most} bytes were resident");
    let records = job.records();
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);
    let record = answer_to(&records, "/large.bin");
    assert_eq!(record.payload().len(), LEN);
    let digest = sha1(body(LEN, false));
    assert_eq!(record.headers["warc-payload-digest"], digest);
    assert_eq!(sha1(record.payload()), digest);
    assert_eq!(job.count("/bytes/decoded"), LEN as u64);
    job.assert_balanced();
}

#[test]
fn a_coded_page_of_60_mib_is_stored_as_it_came_and_read_so_far() {
    // so much text packs to a little over half
    const TEXT: usize = 100 * MIB;
    let coded = || GzEncoder::new(body(TEXT, true), Compression::new(1));
    let address = serve(move |_, stream| {
        head(stream, "text/html", None, "Content-Encoding: gzip\r\n");
        let _ = std::io::copy(&mut coded(), stream);
        let _ = stream.shutdown(std::net::Shutdown::Both);
    });
    let job = Job::new(&[format!("http://{address}/large.html")]).flag("--max-body", "1GiB");
    let (done, most) = job.start().wait_and_weigh();
    done.assert_code(0);
    assert!(most < 150 * MIB as u64, "{most} bytes were resident");
    let records = job.records();
    assert_sound(&records);
    let record = answer_to(&records, "/large.html");
    assert!(record.payload().len() > 55 * MIB, "{}", record.payload().len());
    assert_eq!(record.headers["warc-payload-digest"], sha1(coded()));
    assert_eq!(record.headers["warc-identified-payload-type"], "text/html");
    let whole = record.length - record.payload().len();
    assert!(whole < 20_000, "stored, not deflated again: {whole} bytes more");
    assert_eq!(job.count("/bytes/decoded"), TEXT as u64);
    // the link at its start was found, the one behind what is read was not, and the log says so
    answer_to(&records, "/near.html");
    assert!(records.iter().all(|record| !record.uri().ends_with("/far.html")));
    let log = fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
    let line = log.lines().find(|line| line.contains("/large.html")).unwrap();
    assert!(line.contains(" extract:limit "), "{line}");
    let report = fs::read_to_string(job.dir().join("report.html")).unwrap();
    let row = report.split("pages read for links in part only").nth(1).unwrap();
    assert!(row.split("</tr>").next().unwrap().contains(">1<"), "{row}");
    job.assert_balanced();
}

/// Bodies on their way together.
const MANY: usize = 200;

/// A crawl of [`MANY`] hosts, each with one body that comes in `steps` with a pause after each; half of each comes before
/// any has more. Gives the most memory that was resident, bytes.
fn many_bodies(each: usize, steps: usize, pause: Duration) -> u64 {
    let (under_way, most_at_once) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (here, peak, all) = (
        Arc::clone(&under_way),
        Arc::clone(&most_at_once),
        Arc::new(Barrier::new(MANY)),
    );
    let address = serve(move |target, stream| {
        let text = target.ends_with("0.html");
        head(stream, if text { "text/html" } else { "video/mp4" }, Some(each), "");
        peak.fetch_max(here.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let mut rest = body(each, text);
        let mut piece = vec![0; each / steps];
        for step in 0..steps {
            if step == steps / 2 {
                all.wait();
            }
            rest.read_exact(&mut piece).unwrap();
            let _ = stream.write_all(&piece);
            thread::sleep(pause);
        }
        here.fetch_sub(1, Ordering::SeqCst);
    });
    let port = address.port();
    let seeds: Vec<String> = (0..MANY).map(|n| format!("http://h{n}.test:{port}/{n}.html")).collect();
    let pins: Vec<String> = (0..MANY).map(|n| format!("h{n}.test:{port}:127.0.0.1")).collect();
    let flags: Vec<&str> = pins.iter().flat_map(|pin| ["--resolve", pin]).collect();
    let job = Job::new(&seeds)
        .flag("--concurrency", &MANY.to_string())
        .flag("--min-rate", "0");
    let (done, most) = job.start_with(&flags).wait_and_weigh();
    done.assert_code(0);
    assert_eq!(most_at_once.load(Ordering::SeqCst), MANY);
    let log = job.log();
    assert!(log.len() >= 2 * MANY, "{} lines", log.len());
    let (text, noise) = (sha1(body(each, true)), sha1(body(each, false)));
    let records = job.records();
    assert_sound(&records);
    for n in 0..MANY {
        let record = answer_to(&records, &format!("/{n}.html"));
        let digest = if n % 10 == 0 { &text } else { &noise };
        assert_eq!(&record.headers["warc-payload-digest"], digest);
    }
    // the same payloads again and again: one of each in full
    let full = records.iter().filter(|record| record.kind() == "response");
    assert_eq!(full.filter(|record| record.payload().len() == each).count(), 2);
    job.assert_balanced();
    most
}

#[test]
fn many_bodies_on_their_way_together_stay_within_memory() {
    // so slow that what waits in the sockets stays little
    let most = many_bodies(4_000_000, 250, Duration::from_millis(25));
    assert!(most < 192 * MIB as u64, "{most} bytes were resident");
}

#[test]
fn many_bodies_in_one_burst_stay_within_memory() {
    let most = many_bodies(2_000_000, 20, Duration::ZERO);
    assert!(most < 192 * MIB as u64, "{most} bytes were resident");
}

/// What a run does that cannot write a body down, and what the next one makes of it.
fn assert_stops_and_goes_on(job: &Job, done: &crate::harness::Done, says: &str) {
    done.assert_code(3);
    done.assert_says("cannot write state/spool");
    done.assert_says(says);
    done.assert_says("run the same command again");
    job.run().assert_code(0);
    let records = job.records();
    assert_sound(&records);
    assert_eq!(answer_to(&records, "/large.bin").payload().len(), 5 * MIB);
    assert_eq!(job.count("/urls/fetched"), 1);
    assert_eq!(job.count("/urls/failed"), 0);
    job.assert_balanced();
}

fn large_bin(stream: &mut TcpStream) {
    head(stream, "application/octet-stream", Some(5 * MIB), "");
    let _ = std::io::copy(&mut body(5 * MIB, false), stream);
}

#[test]
fn a_disk_without_room_for_a_body_stops_the_run_and_keeps_the_page_pending() {
    // what is left of the disk: the next write beyond 3 MiB of a file fails
    let running = Arc::new(std::sync::Mutex::new(None::<u32>));
    let process = Arc::clone(&running);
    let address = serve(move |_, stream| {
        while process.lock().unwrap().is_none() {
            thread::sleep(Duration::from_millis(1));
        }
        let pid = process.lock().unwrap().filter(|pid| *pid > 0);
        if let Some(pid) = pid.and_then(|pid| Pid::from_raw(pid.try_into().unwrap())) {
            let limit = Rlimit {
                current: Some(3 * MIB as u64),
                maximum: None,
            };
            prlimit(Some(pid), Resource::Fsize, limit).unwrap();
        }
        large_bin(stream);
    });
    let job = Job::new(&[format!("http://{address}/large.bin")]);
    let first = job.start_without_xfsz();
    *running.lock().unwrap() = Some(first.pid());
    let done = first.wait();
    *running.lock().unwrap() = Some(0);
    assert_stops_and_goes_on(&job, &done, "File too large");
}

#[test]
fn a_full_disk_stops_the_run_and_nothing_is_lost_once_there_is_room() {
    const BODIES: usize = 3;
    let address = serve(|target, stream| {
        if target == "/" {
            let links: Vec<String> = (0..BODIES).map(|n| format!("<a href=/{n}.bin>x</a>")).collect();
            let page = links.concat();
            head(stream, "text/html", Some(page.len()), "");
            let _ = stream.write_all(page.as_bytes());
        } else {
            large_bin(stream);
        }
    });
    let job = Job::new(&[format!("http://{address}/")]);
    // room for the page and the first body, not for its record
    let Some((first, second)) = job.run_out_of_space(8 * MIB, 128 * MIB) else {
        return;
    };
    assert_eq!(first, 3, "{}", second.text());
    second.assert_says("No space left on device");
    second.assert_says("run the same command again");
    second.assert_code(0);
    let records = job.records();
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);
    let digest = sha1(body(5 * MIB, false));
    for n in 0..BODIES {
        let record = answer_to(&records, &format!("/{n}.bin"));
        assert_eq!(record.headers["warc-payload-digest"], digest);
    }
    assert_eq!(job.count("/urls/fetched"), 1 + BODIES as u64);
    assert_eq!(job.count("/urls/failed"), 0);
    job.assert_balanced();
}

#[test]
fn a_spool_that_is_gone_stops_the_run_and_the_next_makes_it_anew() {
    let folder = Arc::new(std::sync::Mutex::new(None));
    let gone = Arc::clone(&folder);
    let address = serve(move |_, stream| {
        if let Some(folder) = gone.lock().unwrap().take() {
            let folder: std::path::PathBuf = folder;
            fs::remove_dir(folder).unwrap();
        }
        large_bin(stream);
    });
    let job = Job::new(&[format!("http://{address}/large.bin")]);
    *folder.lock().unwrap() = Some(job.dir().join("state/spool"));
    let done = job.run();
    assert_stops_and_goes_on(&job, &done, "No such file");
    let left = fs::read_dir(job.dir().join("state/spool")).unwrap().count();
    assert_eq!(left, 0, "a body leaves no file");
}

#[test]
fn a_kill_in_the_middle_of_a_body_leaves_nothing_of_it() {
    const LEN: usize = 30 * MIB;
    let address = serve(|target, stream| {
        // slow the first time, so that a kill finds it half way
        static ASKED: AtomicUsize = AtomicUsize::new(0);
        let slow = target == "/large.bin" && ASKED.fetch_add(1, Ordering::SeqCst) < 3;
        head(stream, "application/octet-stream", Some(LEN), "");
        let mut rest = body(LEN, false);
        let mut piece = vec![0; MIB];
        for _ in 0..LEN / MIB {
            rest.read_exact(&mut piece).unwrap();
            let _ = stream.write_all(&piece);
            if slow {
                thread::sleep(Duration::from_millis(30));
            }
        }
    });
    let job = Job::new(&[format!("http://{address}/large.bin")]);
    for _ in 0..3 {
        assert!(job.start().kill_after(Duration::from_millis(600)).is_none());
        let left = fs::read_dir(job.dir().join("state/spool")).unwrap().count();
        assert_eq!(left, 0, "a killed process left a file");
    }
    job.run().assert_code(0);
    let records = job.records();
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);
    let record = answer_to(&records, "/large.bin");
    assert_eq!(record.headers["warc-payload-digest"], sha1(body(LEN, false)));
    job.assert_balanced();
}
