//! Links of a PDF: the addresses of its URI actions (ISO 32000-2, section 12.6.4.8), which are what its link annotations
//! lead to.
//!
//! The file is not loaded, it is read through once: objects as they stand, and those packed in object streams (section
//! 7.5.7). A crate that builds the document was left aside: an object stream may name one object of a megabyte half a
//! million times, and to parse it as often as it is named takes time in the square of the file. The price is small: what
//! an update took out of the file is still found, and an encrypted file gives nothing.

use std::borrow::Cow;
use std::io::Read;

use flate2::read::ZlibDecoder;
use memchr::{memchr, memmem};

use super::address::is_absolute;

/// A larger file is not read, bytes.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// Bytes that object streams may be unpacked to, a file; what is beyond is not read.
pub(super) const MAX_UNPACKED: usize = 32 << 20;

/// The longest string that is read as an address, bytes as written.
const MAX_STRING: usize = 16 << 10;

/// Bytes before the word `stream` in which its dictionary is looked for.
const MAX_DICTIONARY: usize = 1 << 10;

/// Bytes at the end of a whole file in which its end mark stands (section 7.5.5).
const MAX_TAIL: usize = 2 << 10;

/// Whether a body is a PDF.
pub(super) fn is_one(essence: &str, body: &[u8]) -> bool {
    matches!(essence, "application/pdf" | "application/x-pdf")
        || essence == "application/octet-stream" && body.starts_with(b"%PDF-")
}

/// Calls `found` with the address of each URI action.
pub(super) fn scan(body: &[u8], mut found: impl FnMut(String)) {
    if body.len() > MAX_BYTES || memmem::find(body, b"/Encrypt").is_some() {
        return;
    }
    // the end of the file says whether its strings are encrypted; without it they are taken if they look right
    let tail = body.get(body.len().saturating_sub(MAX_TAIL)..).unwrap_or(body);
    let is_whole = memmem::find(tail, b"%%EOF").is_some();
    let mut found = |url: String| {
        if is_whole || is_absolute(&url) {
            found(url);
        }
    };
    let mut room = MAX_UNPACKED;
    let mut unpacked = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (objects, data) = rest.split_at(stream_begin(rest));
        actions(objects, &mut found);
        let len = memmem::find(data, b"endstream").unwrap_or(data.len());
        let (packed, behind) = data.split_at(len);
        let dictionary = objects
            .get(objects.len().saturating_sub(MAX_DICTIONARY)..)
            .unwrap_or(objects);
        if room > 0 && holds_objects(dictionary) {
            unpacked.clear();
            // an error ends the stream: what came before it counts
            let _ = ZlibDecoder::new(packed).take(room as u64).read_to_end(&mut unpacked);
            room = room.saturating_sub(unpacked.len());
            actions(&unpacked, &mut found);
        }
        rest = behind.strip_prefix(b"endstream").unwrap_or_default();
    }
}

/// Where the data of the first stream begins (section 7.3.8.1), or the end. The word alone may stand anywhere.
fn stream_begin(body: &[u8]) -> usize {
    const WORD: &[u8] = b"stream";
    let mut at = 0;
    while let Some(next) = body.get(at..).and_then(|rest| memmem::find(rest, WORD)) {
        let before = body.get(..at + next).unwrap_or_default();
        at += next + WORD.len();
        let behind = match body.get(at..).unwrap_or_default() {
            [b'\r', b'\n', ..] => 2,
            [b'\r' | b'\n', ..] => 1,
            _ => continue,
        };
        if before.trim_ascii_end().ends_with(b">>") {
            return at + behind;
        }
    }
    body.len()
}

/// Whether the end of this text is the dictionary of an object stream that is packed as nearly all are.
fn holds_objects(text: &[u8]) -> bool {
    let dictionary = memmem::rfind(text, b"obj")
        .and_then(|at| text.get(at..))
        .unwrap_or(text);
    let has = |name: &[u8]| memmem::find(dictionary, name).is_some();
    has(b"/ObjStm") && has(b"/FlateDecode") && !has(b"/DecodeParms")
}

/// The strings that stand behind the name `/URI`. As the value of `/S` it has none behind it.
fn actions(objects: &[u8], found: &mut impl FnMut(String)) {
    const NAME: &[u8] = b"/URI";
    let mut at = 0;
    while let Some(next) = objects.get(at..).and_then(|rest| memmem::find(rest, NAME)) {
        at += next + NAME.len();
        let behind = objects.get(at..).unwrap_or_default();
        let rest = behind.trim_ascii_start();
        let near = rest.get(..MAX_STRING).unwrap_or(rest);
        let (bytes, left) = match near {
            [b'(', text @ ..] => literal(text),
            [b'<', text @ ..] if text.first() != Some(&b'<') => hexadecimal(text),
            _ => continue,
        };
        // what stands in a string is no name; one that does not end here is passed over as far as it was read
        at += behind.len() - rest.len() + near.len() - left.len();
        if let Some(bytes) = bytes {
            let url = text(&bytes);
            let url = url.trim();
            if url.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("www.")) {
                // as readers of PDF take it
                found(format!("http://{url}"));
            } else {
                found(url.to_owned());
            }
        }
    }
}

/// A literal string (section 7.3.4.2) whose first parenthesis has been read, if it ends, and what follows.
fn literal(text: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let mut bytes = Vec::new();
    let mut open = 0_usize;
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'\\' => {
                let Some((&escaped, behind)) = rest.split_first() else {
                    break;
                };
                rest = behind;
                match escaped {
                    b'n' => bytes.push(b'\n'),
                    b'r' => bytes.push(b'\r'),
                    b't' => bytes.push(b'\t'),
                    b'b' => bytes.push(8),
                    b'f' => bytes.push(12),
                    b'\r' => rest = rest.strip_prefix(b"\n").unwrap_or(rest),
                    b'\n' => {}
                    b'0'..=b'7' => {
                        let mut code = escaped - b'0';
                        for _ in 0..2 {
                            let Some(digit @ b'0'..=b'7') = rest.first() else { break };
                            code = code.wrapping_mul(8).wrapping_add(digit - b'0');
                            rest = rest.get(1..).unwrap_or_default();
                        }
                        bytes.push(code);
                    }
                    other => bytes.push(other),
                }
                continue;
            }
            b'(' => open += 1,
            b')' if open == 0 => return (Some(bytes), rest),
            b')' => open -= 1,
            _ => {}
        }
        bytes.push(byte);
    }
    (None, rest)
}

/// A hexadecimal string (section 7.3.4.3) whose first bracket has been read, if it is one, and what follows.
fn hexadecimal(text: &[u8]) -> (Option<Vec<u8>>, &[u8]) {
    let Some((inside, behind)) = memchr(b'>', text).and_then(|end| text.split_at_checked(end)) else {
        return (None, &[]);
    };
    let mut digits: Vec<u8> = inside.iter().copied().filter(|b| !b.is_ascii_whitespace()).collect();
    if digits.len() % 2 == 1 {
        digits.push(b'0');
    }
    (data_encoding::HEXLOWER_PERMISSIVE.decode(&digits).ok(), behind)
}

/// A text string: UTF-16 with a mark, UTF-8, or one character a byte.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    if bytes.starts_with(b"\xfe\xff") {
        return encoding_rs::UTF_16BE.decode(bytes).0;
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    std::str::from_utf8(bytes).map_or_else(|_| encoding_rs::mem::decode_latin1(bytes), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;
    use std::io::Write;
    use std::time::{Duration, Instant};

    fn words_of(body: &[u8]) -> String {
        let mut words = Vec::new();
        scan(body, |url| words.push(url));
        words.join(" ")
    }

    /// The links of a whole file.
    fn words(body: &[u8]) -> String {
        words_of(&[body, b"\n%%EOF\n"].concat())
    }

    #[test]
    fn a_file_cut_short_gives_what_looks_right() {
        let body = b"<</URI(http://a/)>> <</URI(\xe9\x01)>> <</URI(relative)>>";
        assert_eq!(words_of(body), "http://a/");
        assert_eq!(
            words_of(&[body.as_slice(), b"%%EOF", &[b' '; MAX_TAIL]].concat()),
            "http://a/"
        );
        assert_eq!(words(body), "http://a/ \u{e9}\u{1} relative");
    }

    fn packed(objects: &[u8]) -> Vec<u8> {
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        zlib.write_all(objects).unwrap();
        zlib.finish().unwrap()
    }

    fn stream(dictionary: &str, data: &[u8]) -> Vec<u8> {
        [
            format!("9 0 obj\n<<{dictionary}>>\nstream\r\n").as_bytes(),
            data,
            b"\nendstream\nendobj\n",
        ]
        .concat()
    }

    #[test]
    fn actions_are_found_however_their_strings_are_written() {
        let body = b"%PDF-1.7\n4 0 obj <</Type/Annot/Subtype/Link/Rect[0 0 1 1]/A<</S/URI/URI(https://a.test/\\(x\\)?y=(z)\\046q)>>>> endobj\n\
            5 0 obj <</S /URI /URI <68747470 3A2F2F622f>>> endobj 6 0 obj <</S /URI\n/URI\n(www.c.test/\\\r\nd)>> endobj\n\
            7 0 obj <</URI 8 0 R /S/URI>> endobj <</URI <</Base (http://base/)>>>> <</URI(\xfe\xff\0h\0:\0x)>> <</URI(/\xe9)>>";
        assert_eq!(
            words(body),
            "https://a.test/(x)?y=(z)&q http://b/ http://www.c.test/d h:x /\u{e9}"
        );
    }

    #[test]
    fn object_streams_are_unpacked_and_other_streams_passed_over() {
        let objects = packed(b"1 0 2 30 <</S/URI/URI(http://a/)>> <</S/URI/URI(http://b/)>>");
        let body = [
            b"%PDF-1.5\n".to_vec(),
            stream("/Length 9", b"/URI (http://drawn/) Tj"),
            stream("/Type/ObjStm/N 2/First 9/Filter/FlateDecode", &objects),
            stream("/Type /ObjStm /Filter [/FlateDecode]", b"damaged"),
            b"(a stream of words) <</URI(http://c/livestream)>>".to_vec(),
        ]
        .concat();
        assert_eq!(words(&body), "http://a/ http://b/ http://c/livestream");
    }

    #[test]
    fn an_encrypted_file_and_what_is_none_give_nothing() {
        assert_eq!(words(b"<</URI(\x01\x02)>> trailer <</Encrypt 3 0 R>>"), "");
        assert_eq!(words(b""), "");
        assert_eq!(words(b"/URI (never closed"), "");
    }

    #[test]
    fn files_and_what_they_unpack_to_are_bounded() {
        let link = b"<</URI(http://a/)>>";
        let sized = |len: usize| [link.to_vec(), vec![b' '; len - link.len()]].concat();
        assert_eq!(words_of(&sized(MAX_BYTES)), "http://a/");
        assert_eq!(words_of(&sized(MAX_BYTES + 1)), "");
        let before = |len: usize| {
            let bomb = packed(&vec![b' '; len]);
            let objects = stream("/Type/ObjStm/Filter/FlateDecode", &bomb);
            let last = stream("/Type/ObjStm/Filter/FlateDecode", &packed(link));
            words(&[objects, last].concat())
        };
        assert_eq!(before(MAX_UNPACKED - link.len()), "http://a/");
        assert_eq!(before(MAX_UNPACKED), "");
        assert_eq!(before(4 * MAX_UNPACKED), "");
        let long = |len: usize| words(format!("/URI({})", "x".repeat(len)).as_bytes()).len();
        assert_eq!((long(MAX_STRING - 2), long(MAX_STRING - 1)), (MAX_STRING - 2, 0));
    }

    #[test]
    fn hostile_files_take_linear_time() {
        for bit in [
            "/URI(",
            "/URI<",
            ">>stream",
            ">>stream endstream",
            "/URI((",
            "obj/ObjStm/FlateDecode>>stream endstream",
        ] {
            let body = bit.repeat((1 << 20) / bit.len());
            let began = Instant::now();
            scan(body.as_bytes(), drop);
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "{bit} took {:?}",
                began.elapsed()
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_have_an_outcome(body in "(/URI|\\(|\\)|<|>|\\\\|7|f|>>\nstream\n|endstream|/ObjStm/FlateDecode| |x){0,60}") {
            let _ = words(body.as_bytes());
        }
    }
}
