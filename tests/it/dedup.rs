//! `crawler dedup`, as a shell runs it: bytes in, bytes out, exit codes.

use std::collections::HashSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use tempfile::TempDir;

struct Said {
    code: i32,
    out: Vec<u8>,
    err: String,
}

impl Said {
    fn assert(&self, code: i32, words: &[&str]) -> &Self {
        assert_eq!(self.code, code, "{}", self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not said:\n{}", self.err);
        }
        self
    }
}

fn dedup(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
    command.arg("dedup").args(args).stdin(Stdio::null());
    command
}

fn finish(child: Child) -> Said {
    let output = child.wait_with_output().unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn run(args: &[&str]) -> Said {
    finish(start(&mut dedup(args)))
}

/// Runs it with this on standard input.
fn fed(args: &[&str], input: &[u8]) -> Said {
    let mut child = start(dedup(args).stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = thread::spawn(move || {
        // it may end before it has read everything
        let _ = stdin.write_all(&input);
    });
    let said = finish(child);
    writer.join().unwrap();
    said
}

/// Lines of all kinds of bytes, with many repeats; the same for the same seed.
fn some_lines(seed: u64, count: usize, distinct: u64) -> Vec<u8> {
    let mut state = seed;
    let mut out = Vec::new();
    for _ in 0..count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let n = (state >> 33) % distinct;
        match n % 5 {
            0 => out.extend_from_slice(format!("http://host{}.test/page/{n}?q={}", n % 97, n * 7).as_bytes()),
            1 => out.extend_from_slice(&[0xFF, 0xC0, u8::try_from(n % 120).unwrap() | 0x80, 0]),
            2 => out.extend_from_slice("x".repeat(usize::try_from(n % 300).unwrap()).as_bytes()),
            3 => out.extend_from_slice(format!("{n}\r").as_bytes()),
            _ => out.extend_from_slice(n.to_string().as_bytes()),
        }
        out.push(b'\n');
    }
    out
}

/// What is right: the first of each line, in order, by a plain set.
fn model<'a>(texts: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for text in texts {
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        for line in text.split(|byte| *byte == b'\n') {
            if seen.insert(line.to_vec()) {
                out.extend_from_slice(line);
                out.push(b'\n');
            }
        }
    }
    out
}

struct Place {
    home: TempDir,
}

impl Place {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> String {
        fs::write(self.path(name), bytes).unwrap();
        self.text(name)
    }
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn each_kind_gives_what_a_set_gives() {
    let place = Place::new();
    let texts = [
        some_lines(1, 30_000, 9_000),
        some_lines(2, 20_000, 12_000),
        Vec::new(),
        b"last".to_vec(),
    ];
    let names: Vec<String> = texts
        .iter()
        .enumerate()
        .map(|(n, text)| place.file(&format!("{n}.txt"), text))
        .collect();
    let expected = model(texts.iter().filter(|text| !text.is_empty()).map(Vec::as_slice));
    let table = place.text("table");
    let stats = place.text("stats.json");
    // at this capacity the filter is nearly empty, so that it is as good as right
    for kind in [
        &["--capacity", "2000000"][..],
        &["--kind", "hashset"],
        &["--kind", "tags"],
        &["--kind", "quotient", "--capacity", "2000000"],
        &["--kind", "cuckoo", "--capacity", "2000000"],
        &["--exact", &table],
    ] {
        let mut args = kind.to_vec();
        args.extend(["--stats", &stats]);
        args.extend(names.iter().map(String::as_str));
        let said = run(&args);
        said.assert(0, &[]);
        assert!(said.out == expected, "{kind:?}: {}", said.err);
        let told = json(&place.path("stats.json"));
        let lines = |text: &[u8]| text.split(|byte| *byte == b'\n').count() - 1;
        assert_eq!(told["lines"], 50_001, "{told}");
        assert_eq!(told["unique"], lines(&expected));
        assert_eq!(told["dropped"], 50_001 - lines(&expected));
        assert_eq!(told["bytes_out"], expected.len());
        assert_eq!(told["bytes_in"], texts.iter().map(Vec::len).sum::<usize>() + 1);
        assert!(said.err.starts_with("50,001 lines = "), "{}", said.err);
    }
    // the same through a pipe, and quiet
    let whole = texts.concat();
    let said = fed(&["-q"], &whole);
    said.assert(0, &[]);
    assert!(said.out == expected);
    assert_eq!(said.err, "");
}

#[test]
fn a_small_filter_grows_and_tells_what_it_may_have_lost() {
    let place = Place::new();
    let text: Vec<u8> = (0..60_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    let stats = place.text("stats.json");
    let said = fed(&["--capacity", "1000", "--fp", "0.01", "--stats", &stats], &text);
    said.assert(0, &["grown to 6 layers", "sampled observed"]);
    let told = json(&place.path("stats.json"));
    assert_eq!(told["filter"]["layers"], 6);
    let dropped = told["dropped"].as_u64().unwrap();
    // six layers with one percent in all, so 1.2 % of 60,000 at most is to be expected; the first are so small that one of
    // them may lie far from its mean
    assert!((1..1_200).contains(&dropped), "{told}");
    let expected = told["false_positives"]["expected"].as_f64().unwrap();
    let observed = told["false_positives"]["observed"].as_f64().unwrap();
    #[expect(clippy::cast_precision_loss, reason = "a small count")]
    let real = dropped as f64;
    // the sample holds them all here, so what it observed is what was lost
    assert_eq!(told["false_positives"]["observed_of"], 60_000);
    assert!((observed - real).abs() < 0.5, "{told}");
    assert!((expected / real - 1.0).abs() < 0.4, "{told}");
    let lines: Vec<&[u8]> = said.out.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len() as u64, 60_000 - dropped);
}

#[test]
fn packed_files_are_told_by_their_content() {
    let place = Place::new();
    let parts = [&b"a\nb\n"[..], b"b\nc\n", b"c\nd\ne"];
    let zstd = |bytes: &[u8]| zstd::encode_all(bytes, 1).unwrap();
    let members = |pack: &dyn Fn(&[u8]) -> Vec<u8>| parts.iter().flat_map(|part| pack(part)).collect::<Vec<u8>>();
    for (name, bytes) in [
        ("plain.gz", parts.concat()),
        ("members.txt", members(&gzipped)),
        ("frames.log", members(&zstd)),
    ] {
        let file = place.file(name, &bytes);
        let said = run(&["-q", &file]);
        said.assert(0, &[]);
        assert_eq!(said.out, b"a\nb\nc\nd\ne\n", "{name}");
        let said = fed(&["-q", "-"], &bytes);
        assert_eq!(said.out, b"a\nb\nc\nd\ne\n", "{name} through a pipe");
    }
    let large = some_lines(3, 200_000, 50_000);
    for (name, packed) in [("large.gz", gzipped(&large)), ("large.zst", zstd(&large))] {
        let file = place.file(name, &packed);
        let said = run(&["-q", &file]);
        said.assert(0, &[]);
        assert!(said.out == model([large.as_slice()]), "{name}");
        // cut in the middle: what came before is written, and the place is named
        let cut = place.file("cut", &packed[..packed.len() / 2]);
        let said = run(&["-q", &cut]);
        said.assert(1, &[&format!("error: {cut}:"), "cannot be unpacked"]);
        assert!(said.out.len() > 100_000, "{name}: {}", said.out.len());
        let line: usize = said.err.split(':').nth(2).unwrap().parse().unwrap();
        let before: Vec<u8> = large
            .split_inclusive(|byte| *byte == b'\n')
            .take(line - 1)
            .flatten()
            .copied()
            .collect();
        assert!(said.out == model([before.as_slice()]), "{name} up to line {line}");
    }
}

#[test]
fn ends_of_lines() {
    assert_eq!(fed(&["-q"], b"").out, b"");
    assert_eq!(fed(&["-q"], b"\n\n\n").out, b"\n");
    assert_eq!(
        fed(&["-q"], b"a").out,
        b"a\n",
        "a last line without its end is given one"
    );
    assert_eq!(fed(&["-q"], b"a\na").out, b"a\n");
    assert_eq!(fed(&["-q"], b"a\r\na\n\xFF\xFE\n\xFF\xFE\n").out, b"a\r\na\n\xFF\xFE\n");
    assert_eq!(fed(&["-q", "--crlf"], b"a\r\na\nb\nb\r\n\r\n\n").out, b"a\r\nb\n\r\n");
    assert_eq!(fed(&["-q", "-z"], b"a\nb\0c\0a\nb\0c").out, b"a\nb\0c\0");
    let place = Place::new();
    let files = [place.file("1", b"a\nb"), place.file("2", b"b\nc")];
    assert_eq!(run(&["-q", &files[0], &files[1]]).out, b"a\nb\nc\n");
    // a byte that could begin a packed file
    for text in [&b"\x1F\n\x1F\n"[..], b"(", b"P\nP\n", b"\x28\xB5"] {
        assert_eq!(fed(&["-q"], text).out, model([text]), "{text:?}");
    }
}

#[test]
fn addresses_count_by_their_identity() {
    let said = fed(
        &["--normalize"],
        b"HTTP://Example.com:80/a#x\nhttp://example.com/a\nno url\nhttp://example.com/%7Eb\nno url\nhttp://example.com/~b\n\xFF\nNo url\n",
    );
    said.assert(
        0,
        &[
            "warning: standard input:3: ",
            "warning: standard input:7: not UTF-8; kept as it is",
            "8 lines = 5 unique + 3 dropped",
        ],
    );
    assert_eq!(
        said.out,
        b"HTTP://Example.com:80/a#x\nno url\nhttp://example.com/%7Eb\n\xFF\nNo url\n"
    );
    let many: Vec<u8> = (0..50).flat_map(|n| format!("no url {n}\n").into_bytes()).collect();
    let said = fed(&["--normalize"], &many);
    said.assert(0, &["standard input:5: ", "and 45 more lines that are no URL"]);
    assert!(!said.err.contains("standard input:6: "), "{}", said.err);
}

#[test]
fn a_line_without_end_is_named() {
    let mut text = b"one\ntwo\n".to_vec();
    text.resize(text.len() + (16 << 20), b'x');
    let said = fed(&["-q"], &text);
    said.assert(0, &[]);
    assert_eq!(said.out.len(), text.len() + 1, "the longest line there may be");
    text.push(b'x');
    let said = fed(&["-q"], &text);
    said.assert(1, &["error: standard input:3: a line of more than 16 MiB"]);
    assert_eq!(said.out, b"one\ntwo\n");
}

#[test]
fn what_cannot_be_read_is_named_before_anything_is_written() {
    let place = Place::new();
    let good = place.file("good", b"a\n");
    let (missing, folder) = (place.text("missing"), place.text(""));
    let said = run(&[&good, &missing, &folder]);
    said.assert(
        2,
        &[&format!("error: {missing}: "), &format!("error: {folder}: is a folder")],
    );
    assert_eq!(said.out, b"");
    run(&["--fp", "0.9", &good]).assert(2, &["0.9", "--fp"]);
    run(&["--kind", "exact", &good]).assert(2, &["--exact DIR"]);
    run(&["--kind", "x", &good]).assert(2, &["--kind", "bloom"]);
    run(&["--capacity", "99999999999999", &good]).assert(2, &["--capacity"]);
    // a file that grows by what is read from it would never end
    let both = OpenOptions::new().append(true).open(&good).unwrap();
    let said = finish(
        dedup(&["-q", &good])
            .stdout(both)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    said.assert(2, &["is the output too"]);
    assert_eq!(fs::read(&good).unwrap(), b"a\n");
    let said = run(&["-q", "--stats", "/no/such/folder/x", &good]);
    said.assert(3, &["--stats /no/such/folder/x: "]);
    assert_eq!(said.out, b"a\n");
}

#[test]
fn a_reader_that_has_enough_is_no_failure() {
    let place = Place::new();
    let text: Vec<u8> = (0..400_000).flat_map(|n| format!("line {n}\n").into_bytes()).collect();
    let file = place.file("large", &text);
    let mut child = start(&mut dedup(&["-q", &file]));
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert_eq!(first, "line 0\n");
    drop(out);
    let said = finish(child);
    said.assert(0, &[]);
    assert_eq!(said.err, "");
}

#[test]
fn a_full_disk_is_a_failure() {
    let place = Place::new();
    let file = place.file("some", &some_lines(4, 1000, 1000));
    let table = place.text("table");
    let full = || OpenOptions::new().write(true).open("/dev/full").unwrap();
    for args in [&["-q", &file][..], &["-q", "--exact", &table, &file]] {
        let said = finish(dedup(args).stdout(full()).stderr(Stdio::piped()).spawn().unwrap());
        said.assert(3, &["standard output cannot be written"]);
    }
    // what was not written is not in the table either
    let said = run(&["-q", "--exact", &table, &file]);
    assert!(said.out == model([some_lines(4, 1000, 1000).as_slice()]));
}

/// Gives it a line and waits for the answer, as `tail -f | crawler dedup` would.
fn exchange(stdin: &mut ChildStdin, out: &mut BufReader<impl Read>, line: &str, answer: &str) {
    stdin.write_all(line.as_bytes()).unwrap();
    let mut said = String::new();
    out.read_line(&mut said).unwrap();
    assert_eq!(said, answer);
}

#[test]
fn a_line_is_passed_on_while_the_next_is_waited_for() {
    let mut child = start(dedup(&["-q"]).stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    exchange(&mut stdin, &mut out, "(\n", "(\n");
    exchange(&mut stdin, &mut out, "first\n", "first\n");
    exchange(&mut stdin, &mut out, "first\nsecond\nbegun", "second\n");
    exchange(&mut stdin, &mut out, " and ended\n", "begun and ended\n");
    drop(stdin);
    finish(child).assert(0, &[]);
}

#[test]
fn a_table_goes_on_where_it_was() {
    let place = Place::new();
    let table = place.text("table");
    let (first, second) = (some_lines(5, 20_000, 15_000), some_lines(6, 20_000, 30_000));
    let expected = model([first.as_slice(), &second]);
    let (one, two) = (fed(&["--exact", &table], &first), fed(&["--exact", &table], &second));
    one.assert(0, &["exact: 0 lines of earlier runs"]);
    let before = model([first.as_slice()]).split(|byte| *byte == b'\n').count() - 1;
    let grouped = format!("{},{:03} lines of earlier runs", before / 1000, before % 1000);
    two.assert(0, &[&grouped]);
    assert!([one.out, two.out].concat() == expected);
    assert_eq!(fed(&["-q", "--exact", &table], &second).out, b"");

    fed(&["--exact", &table, "--normalize"], b"").assert(2, &["without --normalize"]);
    fed(&["--exact", &table, "--crlf"], b"").assert(2, &["without --crlf"]);
    fed(&["--exact", &table, "--kind", "bloom"], b"").assert(2, &["--kind"]);
    place.file("other", b"");
    fed(&["--exact", &place.text("")], b"").assert(2, &["holds other files"]);
    fed(&["--exact", &place.text("other")], b"").assert(3, &["other"]);
    place.file(
        "table/dedup.json",
        b"{\"format\":9,\"key\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],\"normalize\":false,\"crlf\":false}",
    );
    fed(&["--exact", &table], b"").assert(2, &["has format 9"]);
}

#[test]
fn killed_with_a_table_nothing_is_missing() {
    let place = Place::new();
    let table = place.text("table");
    // more than one run of the table, so that a kill can fall between two
    let text: Vec<u8> = (0..300_000_u32).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    let file = place.file("in", &text);
    let out = File::create(place.path("out")).unwrap();
    let mut child = dedup(&["-q", "--exact", &table, &file])
        .stdout(out)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // the first run of the table is on its way, or was taken in
    while fs::metadata(place.path("out")).unwrap().len() < 1 << 20 && child.try_wait().unwrap().is_none() {
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut written = fs::read(place.path("out")).unwrap();
    // the last line may be cut
    let whole = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    written.truncate(whole);
    let again = run(&["-q", "--exact", &table, &file]);
    again.assert(0, &[]);
    let lines = |bytes: &[u8]| {
        bytes
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect::<HashSet<_>>()
    };
    let mut all = lines(&written);
    all.extend(lines(&again.out));
    assert_eq!(all.len(), 300_001, "each line, and the empty rest behind the last");
    assert_eq!(
        fed(&["-q", "--exact", &table], &text).out,
        b"",
        "then all of them are known"
    );
}
