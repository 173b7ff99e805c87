//! What a record keeps of an HTTP response head, and what an index reads in it.
//!
//! The head stands in the record as it came (order, case, repeats, reason phrase, folds), with these exceptions, each
//! without which common readers would misread the payload:
//! - The chunk framing is removed from the body, so a `Transfer-Encoding` line would lie: it is kept under the name
//!   `X-Crawler-Transfer-Encoding` (the custom of Common Crawl, which every reader accepts). A `Content-Length` beside
//!   it counted for nothing (RFC 9112 section 6.3) and becomes `X-Crawler-Content-Length`; the true length is added as
//!   the last line unless the body is cut. Where no `Transfer-Encoding` came, `Content-Length` is not touched.
//! - Line ends are CRLF, also where the server sent LF alone.
//! - Lines of nothing but white space are left out: readers that trim lines take them for the end of the head.
//! - A status line other than `HTTP/1.0` or `HTTP/1.1`, space, three digits, space is written anew.
//!
//! `Content-Encoding` stays even where the body is not what it says.

/// Prefix of a header name that would contradict the body as stored.
const KEPT_AS: &[u8] = b"X-Crawler-";

/// The head for a record whose body has `length` bytes and is `whole`, ending with the empty line.
#[must_use]
pub fn for_record(head: &[u8], status: u16, length: u64, whole: bool) -> Vec<u8> {
    let mut kept = Vec::with_capacity(head.len() + 64);
    let mut lines = lines(head);
    let first = lines.next().unwrap_or_default();
    if is_readable_status(first) {
        kept.extend_from_slice(first);
    } else {
        kept.extend_from_slice(format!("HTTP/1.1 {status:03} ").as_bytes());
        kept.extend_from_slice(reason(first));
    }
    kept.extend_from_slice(b"\r\n");
    let dechunked = lines.clone().any(|line| is_named(line, b"transfer-encoding"));
    for line in lines {
        if dechunked && (is_named(line, b"transfer-encoding") || is_named(line, b"content-length")) {
            kept.extend_from_slice(KEPT_AS);
        }
        kept.extend_from_slice(line);
        kept.extend_from_slice(b"\r\n");
    }
    if dechunked && whole {
        kept.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    kept.extend_from_slice(b"\r\n");
    kept
}

/// The value of the first `Content-Type` in a head as `cdxj-indexer` reads it: up to the first `;` or white space, case
/// kept; `None` if there is no such line.
#[must_use]
pub fn indexed_type(head: &[u8]) -> Option<String> {
    let mut lines = lines(head).skip(1);
    let line = lines.by_ref().find(|line| is_named(line, b"content-type"))?;
    let value = line
        .iter()
        .position(|byte| *byte == b':')
        .and_then(|colon| line.get(colon + 1..))
        .unwrap_or_default();
    let mut value = text(value).trim_start_matches(is_space).to_owned();
    for fold in lines.take_while(|line| line.starts_with(b" ") || line.starts_with(b"\t")) {
        value.push_str(&text(fold));
    }
    let end = value.find(|c| c == ';' || is_space(c)).unwrap_or(value.len());
    value.truncate(end);
    Some(value)
}

/// The lines of a head without their ends and without those that are blank.
fn lines(head: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    head.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .filter(|line| !text(line).chars().all(is_space))
}

/// A line as Python's readers see it: UTF-8 if it is that, else Latin-1.
fn text(line: &[u8]) -> std::borrow::Cow<'_, str> {
    match std::str::from_utf8(line) {
        Ok(text) => text.into(),
        Err(_) => line.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
    }
}

/// White space as Python's `str.strip` and `\s` know it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\x1c'..='\x1f').contains(&c)
}

/// Is this the line of the header `name` (given in lower case)?
fn is_named(line: &[u8], name: &[u8]) -> bool {
    line.split_at_checked(name.len())
        .is_some_and(|(start, rest)| start.eq_ignore_ascii_case(name) && rest.trim_ascii_start().starts_with(b":"))
}

fn is_readable_status(line: &[u8]) -> bool {
    let Some(rest) = line
        .strip_prefix(b"HTTP/1.0 ")
        .or_else(|| line.strip_prefix(b"HTTP/1.1 "))
    else {
        return false;
    };
    let (code, reason) = rest.split_at(rest.len().min(3));
    code.len() == 3 && code.iter().all(u8::is_ascii_digit) && matches!(reason.first(), None | Some(b' '))
}

/// What follows the digits of the status in a line that readers refuse.
fn reason(line: &[u8]) -> &[u8] {
    let after_version = line.trim_ascii_start().iter().position(u8::is_ascii_whitespace);
    let rest = after_version
        .and_then(|at| line.trim_ascii_start().get(at..))
        .unwrap_or_default()
        .trim_ascii_start();
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest.get(digits..).unwrap_or_default().trim_ascii()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(head: &str) -> String {
        String::from_utf8(for_record(head.as_bytes(), 200, 5, true)).unwrap()
    }

    #[test]
    fn an_ordinary_head_is_kept_to_the_byte() {
        for head in [
            "HTTP/1.1 200 OK\r\nsErVer:x \r\nSet-Cookie: a\r\nSet-Cookie: a\r\nX-Long: one\r\n two\r\ncontent-length: 9\r\n\r\n",
            "HTTP/1.0 404 \r\n\r\n",
            "HTTP/1.1 404\r\nno colon in this line\r\n\r\n",
        ] {
            assert_eq!(kept(head), head);
        }
        let latin1 = b"HTTP/1.1 200 D'accord \xe9\r\nLocation: /\xe9\r\n\r\n";
        assert_eq!(for_record(latin1, 200, 0, true), latin1);
    }

    #[test]
    fn the_head_of_a_chunked_answer_says_what_the_body_is() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding : Chunked\r\nContent-Length: 99\r\nA: b\r\ntransfer-encoding: x\r\n\r\n";
        let renamed = "HTTP/1.1 200 OK\r\nX-Crawler-Transfer-Encoding : Chunked\r\nX-Crawler-Content-Length: 99\r\nA: b\r\n\
                       X-Crawler-transfer-encoding: x\r\n";
        assert_eq!(kept(head), format!("{renamed}Content-Length: 5\r\n\r\n"));
        let cut = for_record(head.as_bytes(), 200, 5, false);
        assert_eq!(
            cut,
            format!("{renamed}\r\n").as_bytes(),
            "the length of a cut body is nobody's Content-Length"
        );
    }

    #[test]
    fn lines_that_would_end_the_head_for_some_reader_are_left_out() {
        assert_eq!(kept("HTTP/1.1 200 OK\nA: b\n\n"), "HTTP/1.1 200 OK\r\nA: b\r\n\r\n");
        let odd = "HTTP/1.1 200 OK\r\nA: b\r\n \t\r\n\u{2003}\r\n\r\r\nC: d\r\n\r\n";
        assert_eq!(kept(odd), "HTTP/1.1 200 OK\r\nA: b\r\nC: d\r\n\r\n");
        let latin1 = for_record(b"HTTP/1.1 200 OK\r\n\xa0\x85\x1f\r\nC: d\r\n\r\n", 200, 5, true);
        assert_eq!(latin1, b"HTTP/1.1 200 OK\r\nC: d\r\n\r\n");
    }

    #[test]
    fn a_status_line_that_readers_refuse_is_written_anew() {
        for (line, expected) in [
            ("HTTP/1.1  200  All right", "HTTP/1.1 200 All right"),
            ("HTTP/1.1 200OK", "HTTP/1.1 200 OK"),
            ("HTTP/1.1\t200\tOK", "HTTP/1.1 200 OK"),
            ("http/1.1 200 OK", "HTTP/1.1 200 OK"),
            ("HTTP/1.1 0200 OK", "HTTP/1.1 200 OK"),
            ("HTTP/3 200", "HTTP/1.1 200 "),
            ("ICY 200 OK", "HTTP/1.1 200 OK"),
            ("nonsense", "HTTP/1.1 200 "),
        ] {
            assert_eq!(
                kept(&format!("{line}\r\nA: b\r\n\r\n")).lines().next(),
                Some(expected),
                "{line}"
            );
        }
    }

    #[test]
    fn the_type_is_read_as_the_indexer_reads_it() {
        for (lines, expected) in [
            ("Content-Type: Text/HTML; charset=x", Some("Text/HTML")),
            ("content-type :text/css charset", Some("text/css")),
            ("Content-Type:\r\n text/html", Some("")),
            ("Content-Type: te\r\n\txt/html", Some("te")),
            ("Content-Type: text/html\r\nContent-Type: image/png", Some("text/html")),
            ("Content-Type:", Some("")),
            ("Content-Type: ä;b", Some("ä")),
            ("Content-Type", None),
            ("X-Content-Type: a", None),
        ] {
            let head = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
            assert_eq!(indexed_type(head.as_bytes()).as_deref(), expected, "{lines}");
        }
        assert_eq!(
            indexed_type(b"HTTP/1.1 200 OK\r\nContent-Type: \xe4\r\n\r\n").as_deref(),
            Some("\u{e4}")
        );
    }

    proptest! {
        #[test]
        fn any_head_gives_one_with_a_single_end(head in prop::collection::vec(any::<u8>(), 0..200), status in 100_u16..1000) {
            let kept = for_record(&head, status, 0, true);
            let end = kept.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            prop_assert_eq!(end + 4, kept.len());
            prop_assert!(is_readable_status(kept.split(|byte| *byte == b'\r').next().unwrap()));
            // writing it once more changes nothing
            let again = for_record(&kept, status, 0, true);
            prop_assert_eq!(again, kept);
        }

        #[test]
        fn lines_of_any_kind_are_kept_or_renamed(names in prop::collection::vec("[ \t]?(transfer-encoding|Content-Length|[A-Za-z-]{1,5})[ \t]?: ?[ -~\u{e9}]{0,9}", 0..8)) {
            let head = format!("HTTP/1.1 200 OK\r\n{}\r\n", names.iter().flat_map(|line| [line.as_str(), "\r\n"]).collect::<String>());
            let kept = kept(&head);
            for line in &names {
                prop_assert!(kept.contains(line.as_str()));
            }
            prop_assert!(!kept.to_ascii_lowercase().contains("\r\ntransfer-encoding:"));
        }
    }
}
