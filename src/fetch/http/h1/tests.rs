//! Heads and bodies, right and wrong, cut anywhere.

use std::io::Write;

use proptest::prelude::*;

use super::*;

const CAP: usize = 1 << 20;

/// The one answer in `bytes`.
fn one(bytes: impl AsRef<[u8]>) -> Answer {
    let (mut found, rest) = answers(bytes.as_ref(), CAP);
    assert_eq!((found.len(), rest), (1, None), "{found:?}");
    found.remove(0)
}

fn refused(bytes: impl AsRef<[u8]>) -> &'static str {
    let (found, rest) = answers(bytes.as_ref(), CAP);
    assert_eq!(found, []);
    rest.unwrap()
}

fn header<'a>(answer: &'a Answer, name: &str) -> Option<&'a [u8]> {
    answer
        .headers
        .iter()
        .find(|(own, _)| own == name)
        .map(|(_, v)| v.as_slice())
}

#[test]
fn a_head_is_read_as_browsers_read_it() {
    let head = b"HTTP/1.1 200 D'accord \xe9\nA:1\r\nb : 2 \r\n: 3\r\nno colon\r\n lost\r\nbad name: 4\r\nNul: a\0b\r\n more\r\n\
        A: \r\n\t5\r\n \r\n  6\nlast:\xff\r\n\n";
    let answer = one(head);
    assert_eq!(answer.head, head, "kept to the byte");
    let headers: Vec<(&str, &[u8])> = answer.headers.iter().map(|(n, v)| (n.as_str(), v.as_slice())).collect();
    assert_eq!(
        headers,
        [("a", &b"1"[..]), ("b", b"2"), ("a", b"5 6"), ("last", b"\xff"),]
    );
}

#[test]
fn what_stands_before_a_head_is_read_past_within_bounds() {
    for before in ["", "\n", "\r\n\r\n", "\0", "}\n-1", "\r\nabcd"] {
        let answer = one(format!("{before}HTTP/1.1 200 OK\r\n\r\nx"));
        assert_eq!(answer.head, b"HTTP/1.1 200 OK\r\n\r\n", "{before:?}");
    }
    let ends = "\n".repeat(MAX_LEADING_LINE_ENDS);
    one(format!("{ends}HTTP/1.1 200 OK\r\n\r\n"));
    assert!(refused(format!("\n{ends}HTTP/1.1 200 OK\r\n\r\n")).contains("empty lines"));
    let junk = "x".repeat(MAX_JUNK_BYTES);
    one(format!("{junk}HTTP/1.1 200 OK\r\n\r\n"));
    for bytes in [&format!("x{junk}HTTP/1.1 200 OK\r\n\r\n"), "SSH-2.0", "\0", "<html>"] {
        assert!(refused(bytes).contains("no status line"), "{bytes:?}");
    }
    for bytes in ["H", "HTTP/1.1 200 OK\r\nA: b", "\r\n"] {
        assert!(refused(bytes).contains("end within"), "{bytes:?}");
    }
}

#[test]
fn a_status_line_says_what_it_can() {
    for (line, status) in [
        ("HTTP/1.1 200", 200),
        ("HTTP/1.1\t 404\tNo", 404),
        ("HTTP/1.1", 200),
        ("HTTP/1.1 Fine", 200),
        ("hTTp/1.0 00301x", 301),
        ("HTTP 200 OK", 200),
        ("HTTP/ 200", 200),
        ("HTTP/0.9 200", 200),
        ("HTTP/1.9 999", 999),
        ("ICY 200 OK", 200),
        ("HTTP/3 200 OK", 200),
        ("HTTP/3.0 404 No", 404),
        ("HTTP/1.1x 200", 200),
        ("HTTP/x.y 200", 200),
    ] {
        assert_eq!(one(format!("{line}\r\n\r\n")).status, status, "{line}");
    }
    for line in [
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000",
        "HTTP/1.1 000",
        "HTTPS 200",
        "HTTP is",
    ] {
        refused(format!("{line}\r\n\r\n"));
    }
}

#[test]
fn a_head_has_a_longest_size_and_any_number_of_lines() {
    let fill = |size: usize| {
        let frame = "HTTP/1.1 200 OK\r\nSet-Cookie: \r\n\r\n".len();
        format!("HTTP/1.1 200 OK\r\nSet-Cookie: {}\r\n\r\n", "c".repeat(size - frame))
    };
    assert_eq!(one(fill(MAX_HEAD_BYTES)).head.len(), MAX_HEAD_BYTES);
    assert!(refused(fill(MAX_HEAD_BYTES + 1)).contains("256 KiB"));
    let endless = "X".repeat(MAX_HEAD_BYTES + 1);
    assert!(refused(format!("HTTP/1.1 200 OK\r\n{endless}")).contains("256 KiB"));
    let lines = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(count));
    let most = (MAX_HEAD_BYTES - "HTTP/1.1 200 OK\r\n\r\n".len()) / "a: b\r\n".len();
    assert_eq!(one(lines(most)).headers.len(), most);
    assert!(refused(lines(most + 1)).contains("256 KiB"));
}

#[test]
fn interim_answers_are_read_past_within_a_bound() {
    let early = |count: usize| {
        let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(count);
        format!("{interim}HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx")
    };
    let answer = one(early(MAX_INTERIM));
    assert_eq!((answer.status, answer.headers.len()), (200, 1));
    assert!(refused(early(MAX_INTERIM + 1)).contains("interim"));
    let switched = answers(b"HTTP/1.1 101 Switching\r\n\r\nxyz", CAP);
    assert_eq!((switched.0[0].status, switched.1.is_some()), (101, true));
}

#[test]
fn the_length_of_a_body_is_found() {
    let body = |head: &str, bytes: &str| {
        let answer = answers(format!("{head}\r\n\r\n{bytes}").as_bytes(), CAP).0.remove(0);
        (String::from_utf8(answer.body).unwrap(), answer.whole)
    };
    for (head, bytes, expected, whole) in [
        ("HTTP/1.1 200\r\nContent-Length: 3", "abcd", "abc", true),
        (
            "HTTP/1.1 200\r\nContent-Length: 3, 3\r\nContent-Length: 3",
            "abcd",
            "abc",
            true,
        ),
        ("HTTP/1.1 200\r\nContent-Length: 5", "abcd", "abcd", false),
        (
            "HTTP/1.1 200\r\nContent-Length: 3\r\nContent-Length: 4",
            "abcd",
            "abcd",
            true,
        ),
        ("HTTP/1.1 200\r\nContent-Length: x", "abcd", "abcd", true),
        (
            "HTTP/1.1 200\r\nContent-Length: 18446744073709551616",
            "abcd",
            "abcd",
            true,
        ),
        ("HTTP/1.1 200", "abcd", "abcd", true),
        ("HTTP/1.1 204\r\nContent-Length: 3", "abcd", "", true),
        ("HTTP/1.1 304\r\nTransfer-Encoding: chunked", "3\r\n", "", true),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nContent-Length: 1",
            "2\r\nab\r\n0\r\n\r\n",
            "ab",
            true,
        ),
        (
            "HTTP/1.0 200\r\nTransfer-Encoding: identity, Chunked",
            "2\nab\n0\n\n",
            "ab",
            true,
        ),
        ("HTTP/1.1 200\r\nTransfer-Encoding: chunked", "2\r\nab\r\n", "ab", false),
        ("HTTP/1.1 200\r\nTransfer-Encoding: chunked", "2\r\nabc", "ab", false),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked",
            "2\r\nab\r\n0\r\nTrailer",
            "ab",
            true,
        ),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked",
            "2\r\nab\r\n0 ; x\r\n: broken\r\n\0\r\n\r\n",
            "ab",
            true,
        ),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked",
            "<p>no chunk",
            "<p>no chunk",
            true,
        ),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: chunked",
            "fffffffffffffffff\r\nab",
            "fffffffffffffffff\r\nab",
            true,
        ),
        ("HTTP/1.1 200\r\nTransfer-Encoding: chunked", "", "", false),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: identity\r\nContent-Length: 1",
            "ab",
            "a",
            true,
        ),
        (
            "HTTP/1.1 200\r\nTransfer-Encoding: secret\r\nContent-Length: 1",
            "ab",
            "ab",
            true,
        ),
        ("HTTP/1.1 200\r\nTransfer-Encoding: gzip", "plain", "plain", true),
    ] {
        assert_eq!(body(head, bytes), (expected.to_owned(), whole), "{head} {bytes}");
    }
}

#[test]
fn what_an_unusable_length_says_all_the_same() {
    use super::framing::{Doubt, SILENCE_ANYWHERE, SILENCE_AT_LENGTH};
    let silence = |lines: &str, received: u64| {
        let head = Head::parse(format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n").as_bytes()).unwrap();
        Doubt::of(&head, &Framing::of(&head)).map(|doubt| doubt.silence(received))
    };
    for odd in ["5 bytes", "+5", "\"5\"", "5.0", "5,x", "3, 5"] {
        let line = format!("Content-Length: {odd}");
        assert_eq!(silence(&line, 5), Some(Some((SILENCE_AT_LENGTH, true))), "{odd}");
        assert_eq!(silence(&line, 4), Some(Some((SILENCE_ANYWHERE, false))), "{odd}");
        assert_eq!(silence(&line, 0), Some(None), "{odd}");
    }
    assert_eq!(silence("Content-Length: 3, 5", 3), Some(Some((SILENCE_ANYWHERE, true))));
    for odd in ["x", "-5", "", "0, 7x", "99999999999999999999"] {
        let line = format!("Content-Length: {odd}");
        assert_eq!(silence(&line, 5), Some(Some((SILENCE_ANYWHERE, false))), "{odd}");
    }
    for sound in ["Content-Length: 5", "X: y", "Content-Length: x\r\nConnection: close"] {
        assert_eq!(silence(sound, 5), None, "{sound}");
    }
}

#[test]
fn lines_among_chunks_have_a_longest_size() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n";
    let extended = |size: usize| format!("{chunked}1;{}\r\nb\r\n0\r\n\r\n", "x".repeat(size - 3));
    assert_eq!(one(extended(MAX_CHUNK_LINE)).body, b"ab");
    let (cut, _) = answers(extended(MAX_CHUNK_LINE + 1).as_bytes(), CAP);
    assert_eq!((cut[0].body.as_slice(), cut[0].whole), (&b"a"[..], false));
    let endless = format!("{chunked}1{}", " ".repeat(MAX_CHUNK_LINE));
    assert!(!answers(endless.as_bytes(), CAP).0[0].whole);

    let next = "HTTP/1.1 200 OK\r\n\r\n";
    for (line, found) in [(MAX_TRAILER_BYTES, 2), (MAX_TRAILER_BYTES + 1, 1)] {
        let trailer = "x".repeat(line - 2);
        let (answers, _) = answers(format!("{chunked}0\r\n{trailer}\r\n\r\n{next}").as_bytes(), CAP);
        assert!(answers[0].whole && answers[0].body == b"a");
        assert_eq!(
            answers.len(),
            found,
            "after too much of them the connection is not used again"
        );
    }
    let endless = format!("{chunked}0\r\n{}", "x".repeat(MAX_TRAILER_BYTES + 1));
    assert!(answers(endless.as_bytes(), CAP).0[0].whole);
}

#[test]
fn transfer_codings_are_undone() {
    let plain = "a page ".repeat(5_000);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(plain.as_bytes()).unwrap();
    let gzip = gzip.finish().unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    zlib.write_all(plain.as_bytes()).unwrap();
    let zlib = zlib.finish().unwrap();
    let zip = |bytes: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(bytes).unwrap();
        gzip.finish().unwrap()
    };
    let twice = zip(&gzip);
    let mut middle = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    middle.write_all(&gzip).unwrap();
    let thrice = zip(&middle.finish().unwrap());
    let chunked = |body: &[u8]| {
        let (a, b) = body.split_at(body.len() / 2);
        [
            format!("{:x}\r\n", a.len()).as_bytes(),
            a,
            format!("\r\n{:X}\r\n", b.len()).as_bytes(),
            b,
            b"\r\n0\r\n\r\n",
        ]
        .concat()
    };
    for (coding, body) in [
        ("gzip", gzip.clone()),
        ("x-gzip, identity", gzip.clone()),
        ("gzip, chunked", chunked(&gzip)),
        ("gzip\r\nTransfer-Encoding: chunked", chunked(&gzip)),
        ("deflate, chunked", chunked(&zlib)),
        ("gzip, gzip, chunked", chunked(&twice)),
        ("gzip, deflate, gzip", thrice),
        ("deflate", zlib),
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {coding}\r\n\r\n");
        let answer = one([head.as_bytes(), &body].concat());
        assert!(answer.whole && answer.body == plain.as_bytes(), "{coding}");
    }
    let bytes = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", gzip.as_slice()].concat();
    let (bomb, _) = answers(&bytes, 1_000);
    assert_eq!((bomb[0].body.len(), bomb[0].whole), (1_000, false));
    // as many layers as are undone, and one more
    let mut layers = plain.clone().into_bytes();
    for count in 1..=MAX_TRANSFER_CODINGS + 1 {
        layers = zip(&layers);
        let names = vec!["gzip"; count].join(", ");
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: {names}\r\n\r\n");
        let answer = one([head.as_bytes(), &layers].concat());
        let body = if count <= MAX_TRANSFER_CODINGS {
            plain.as_bytes()
        } else {
            &layers
        };
        assert!(answer.whole && answer.body == body, "{count}");
    }
    // broken outside: what came before that is read
    let mut cut = zip(&gzip);
    cut.extend_from_slice(b"and then no further member");
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, gzip\r\n\r\n";
    let (broken, _) = answers(&[&head[..], &cut].concat(), CAP);
    assert_eq!((broken[0].body.len(), broken[0].whole), (plain.len(), false));
    // what is not what it was said to be is what it is
    let lie = one("HTTP/1.1 200 OK\r\nTransfer-Encoding: deflate, gzip\r\n\r\nplain");
    assert!(lie.whole && lie.body == b"plain");
}

#[test]
fn a_connection_carries_answers_until_one_ends_it() {
    let kept = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    let (found, rest) = answers(kept.repeat(3).as_bytes(), CAP);
    assert_eq!((found.len(), rest), (3, None));
    for last in [
        "HTTP/1.1 200 OK\r\nConnection: a, Close\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nx",
    ] {
        let (found, rest) = answers(format!("{kept}{last}").as_bytes(), CAP);
        assert_eq!((found.len(), rest), (2, None), "{last}");
        let (found, _) = answers(format!("{kept}{last}{kept}").as_bytes(), CAP);
        assert_eq!(found.len(), 2, "{last}");
    }
    let old = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!(answers(old.repeat(2).as_bytes(), CAP).0.len(), 2);
    assert_eq!(header(&one(old), "connection"), Some(&b"keep-alive"[..]));
}

/// What `answers` does, with the bytes arriving in parts of these sizes.
fn in_parts(bytes: &[u8], parts: &[usize]) -> Option<Answer> {
    let mut came = 0;
    let mut parts = parts.iter().copied().chain(std::iter::repeat(7));
    let mut more = |came: &mut usize| {
        let part = parts.next().unwrap_or(1).max(1);
        *came = (*came + part).min(bytes.len());
    };
    let mut at = 0;
    let head = loop {
        let mut search = Search::default();
        let range = loop {
            if let Some(range) = search.look(&bytes[at..came]).ok()? {
                break range;
            }
            if came == bytes.len() {
                return None;
            }
            more(&mut came);
        };
        let head = Head::parse(&bytes[at..came][range.clone()]).ok()?;
        at += range.end;
        if !head.is_interim() {
            break head;
        }
    };
    let (mut framing, mut undo) = (Framing::of(&head), Undo::of(&head));
    let mut body = Vec::new();
    let whole = loop {
        match framing.next(&bytes[at..came]) {
            Piece::Data { skip, take } => {
                at += skip + take;
                if !take_in(&mut body, &bytes[at - take..at], &mut undo, CAP) {
                    break false;
                }
            }
            Piece::End { .. } => break true,
            Piece::Broken => break false,
            Piece::More { skip } => {
                at += skip;
                if came == bytes.len() {
                    break framing.ends_with_connection();
                }
                more(&mut came);
            }
        }
    };
    Some(Answer {
        status: head.status,
        head: head.bytes,
        headers: head.headers,
        body,
        whole,
    })
}

/// Bytes that are nearly an answer.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    const PARTS: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 103\r\n\r\n",
        b"HTTP/1.0 404\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: gzip, chunked\r\n",
        b"Content-Length: 5\r\n",
        b"Content-Length: 3\r\n",
        b"A: b\r\n c\n",
        b"\r\n",
        b"\n\n",
        b"5\r\nhello\r\n",
        b"A ;x\r\n0123456789\r\n",
        b"0\r\n",
        b"\x1f\x8b\x08\0",
        b"\0",
        b"hello",
    ];
    let part = prop::sample::select(PARTS);
    let parts = prop::collection::vec(part, 0..12);
    let noise = prop::collection::vec(any::<u8>(), 0..4);
    (any::<bool>(), parts, noise, any::<prop::sample::Index>()).prop_map(|(begun, parts, noise, at)| {
        let mut bytes = parts.concat();
        if begun {
            bytes.splice(0..0, b"HTTP/1.1 200 OK\r\n".iter().copied());
        }
        let at = at.index(bytes.len() + 1);
        bytes.splice(at..at, noise);
        bytes
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_cut_of_the_bytes_gives_the_same_answer(bytes in nearly(), parts in prop::collection::vec(1..20usize, 0..12)) {
        let whole = answers(&bytes, CAP).0.into_iter().next();
        prop_assert_eq!(in_parts(&bytes, &parts), whole);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), cap in 0..20usize) {
        let (found, _) = answers(&bytes, cap);
        prop_assert!(found.iter().all(|answer| answer.body.len() <= cap));
        let begun = [b"HTTP/1.1 200 OK\r\n", bytes.as_slice()].concat();
        let _ = answers(&begun, cap);
    }
}
