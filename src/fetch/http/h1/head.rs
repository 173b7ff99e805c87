//! The head of an answer, read as browsers read it.
//!
//! What is odd and read all the same: line ends before the status line and up to [`MAX_JUNK_BYTES`] of anything
//! else, LF alone as the end of a line, a status line without reason phrase or with bytes outside ASCII, `HTTP` in
//! small letters, `ICY`, a missing status (200, as browsers have it), white space before a colon, values continued on
//! the next line, bytes outside ASCII. A line that is no header field (no colon, or a name that is none) is left out of
//! `headers`; so is one with a NUL in it, where browsers would give up the whole page. [`Head::bytes`] keeps them all.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

/// Longest head, bytes: what Chrome allows. It bounds the lines as well: a line of three bytes takes some sixty in memory,
/// so no head takes more than 6 MiB.
pub const MAX_HEAD_BYTES: usize = 256 * 1024;
/// CR and LF before a status line that are read past, bytes.
pub const MAX_LEADING_LINE_ENDS: usize = 64;
/// Other bytes before a status line that are read past: as many as Chrome.
pub const MAX_JUNK_BYTES: usize = 4;

/// What came is not HTTP, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct NotHttp(pub(in super::super) &'static str);

/// Looks for the first head in bytes that are still coming.
#[derive(Debug, Default)]
pub(in super::super) struct Search {
    start: Option<usize>,
    /// No head ends before this.
    scanned: usize,
}

impl Search {
    /// Where the head lies in `bytes`: all that came so far, at each call the same and more. `None` if its end has not
    /// come.
    ///
    /// # Errors
    /// It cannot become a head any more.
    pub(in super::super) fn look(&mut self, bytes: &[u8]) -> Result<Option<Range<usize>>, NotHttp> {
        let start = match self.start {
            Some(start) => start,
            None => match beginning(bytes)? {
                Some(start) => start,
                None => return Ok(None),
            },
        };
        self.start = Some(start);
        let from = self.scanned.max(start);
        let end = memchr_iter(b'\n', bytes.get(from..).unwrap_or_default())
            .map(|at| from + at)
            .find(|at| ends_blank_line(bytes.get(start..*at).unwrap_or_default()));
        self.scanned = bytes.len();
        let length = end.map_or(bytes.len(), |at| at + 1) - start;
        if length > MAX_HEAD_BYTES {
            return Err(NotHttp("its head is longer than 256 KiB"));
        }
        Ok(end.map(|at| start..at + 1))
    }

    /// The connection ended and no head is in `bytes`. Fine if one could have come of them.
    ///
    /// # Errors
    /// There is no sign of HTTP.
    pub(in super::super) fn at_end(bytes: &[u8]) -> Result<(), NotHttp> {
        let rest = after_line_ends(bytes);
        if rest.is_empty() || beginning(bytes)?.is_some() || b"HTTP".starts_with(&rest.to_ascii_uppercase()) {
            return Ok(());
        }
        Err(NO_STATUS_LINE)
    }
}

const NO_STATUS_LINE: NotHttp = NotHttp("it begins with no status line");

fn after_line_ends(bytes: &[u8]) -> &[u8] {
    let ends = bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    bytes.get(ends..).unwrap_or_default()
}

/// Where the status line begins; `None` if that cannot be said yet.
fn beginning(bytes: &[u8]) -> Result<Option<usize>, NotHttp> {
    let rest = after_line_ends(bytes);
    let ends = bytes.len() - rest.len();
    if ends > MAX_LEADING_LINE_ENDS {
        return Err(NotHttp("it begins with empty lines without end"));
    }
    for junk in 0..=MAX_JUNK_BYTES {
        let Some(four) = rest.get(junk..junk + 4) else {
            return Ok(None);
        };
        if four.eq_ignore_ascii_case(b"HTTP") || four == b"ICY " {
            return Ok(Some(ends + junk));
        }
    }
    Err(NO_STATUS_LINE)
}

/// Does the LF that follows `before` end an empty line?
fn ends_blank_line(before: &[u8]) -> bool {
    before.strip_suffix(b"\r").unwrap_or(before).ends_with(b"\n")
}

/// The versions that differ in what they mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Version {
    Http10,
    Http11,
}

/// A head.
#[derive(Debug)]
pub(in super::super) struct Head {
    pub(in super::super) version: Version,
    /// 100 to 999.
    pub(in super::super) status: u16,
    /// As it came, from the status line to the empty line.
    pub(in super::super) bytes: Vec<u8>,
    /// Names in lower case and values, in order.
    pub(in super::super) headers: Vec<(String, Vec<u8>)>,
}

impl Head {
    /// Reads the bytes of a whole head, as [`Search::look`] finds them.
    pub(in super::super) fn parse(bytes: &[u8]) -> Result<Self, NotHttp> {
        let mut lines = bytes
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let (version, status) = status_line(lines.next().unwrap_or_default())?;
        let mut headers: Vec<(String, Vec<u8>)> = Vec::with_capacity(16);
        // does the line before this one stand in `headers`?
        let mut kept = false;
        for line in lines.filter(|line| !line.is_empty()) {
            if matches!(line.first(), Some(b' ' | b'\t')) {
                if let Some((_, value)) = headers.last_mut().filter(|_| kept) {
                    unfold(value, line);
                }
                continue;
            }
            let header = header(line);
            kept = header.is_some();
            headers.extend(header);
        }
        Ok(Self {
            version,
            status,
            bytes: bytes.to_vec(),
            headers,
        })
    }

    /// The values of a header in order; `name` in lower case.
    pub(in super::super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + 'a {
        let named = self.headers.iter().filter(move |(own, _)| own == name);
        named.map(|(_, value)| value.as_slice())
    }

    /// The items of a header that is a list with commas, in lower case.
    pub(in super::super) fn words<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Vec<u8>> + 'a {
        let items = self.all(name).flat_map(|value| value.split(|byte| *byte == b','));
        items
            .map(|item| item.trim_ascii().to_ascii_lowercase())
            .filter(|item| !item.is_empty())
    }

    /// An answer before the answer (RFC 9110 section 15.2). 101 would be the last one, but nobody asked for it.
    pub(in super::super) fn is_interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

fn status_line(line: &[u8]) -> Result<(Version, u16), NotHttp> {
    let (version, rest) = version(line);
    let rest = match rest.first() {
        None | Some(b' ' | b'\t') => rest.trim_ascii_start(),
        Some(_) => return Err(NO_STATUS_LINE),
    };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = rest.get(..digits).unwrap_or_default();
    if number.is_empty() {
        // Chrome and Firefox take a missing status for success; without a version it is only a word
        return version.map(|version| (version, 200)).ok_or(NO_STATUS_LINE);
    }
    let zeros = number.iter().take_while(|byte| **byte == b'0').count();
    match number.get(zeros..).unwrap_or_default() {
        &[a, b, c] => {
            let digit = |byte: u8| u16::from(byte - b'0');
            let status = digit(a) * 100 + digit(b) * 10 + digit(c);
            Ok((version.unwrap_or(Version::Http10), status))
        }
        _ => Err(NotHttp("its status is no number of three digits")),
    }
}

/// The version, if there is one, and what follows it.
fn version(line: &[u8]) -> (Option<Version>, &[u8]) {
    if let Some(rest) = line.strip_prefix(b"ICY") {
        return (Some(Version::Http10), rest);
    }
    let after = line.get(4..).unwrap_or_default(); // "HTTP" in any case
    let Some(numbers) = after.strip_prefix(b"/") else {
        return (None, after);
    };
    let end = numbers.iter().position(|byte| b" \t".contains(byte));
    let (numbers, rest) = numbers.split_at(end.unwrap_or(numbers.len()));
    // any version will do, as in browsers: gateways forget what they speak on this side
    let version = match numbers {
        b"1" | b"1." | b"1.0" => Version::Http10,
        [b'1'..=b'9', ..] => Version::Http11,
        _ => Version::Http10,
    };
    (Some(version), rest)
}

fn header(line: &[u8]) -> Option<(String, Vec<u8>)> {
    let colon = memchr(b':', line)?;
    let name = line.get(..colon)?.trim_ascii();
    let value = line.get(colon + 1..)?;
    if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) || memchr(0, value).is_some() {
        return None;
    }
    let mut name = String::from_utf8(name.to_vec()).ok()?;
    name.make_ascii_lowercase();
    Some((name, plain(value)))
}

/// Adds a continued line (RFC 9112 section 5.2).
fn unfold(value: &mut Vec<u8>, line: &[u8]) {
    let more = plain(line);
    if more.is_empty() || memchr(0, &more).is_some() {
        return;
    }
    if !value.is_empty() {
        value.push(b' ');
    }
    value.extend_from_slice(&more);
}

/// Without white space around it; a CR alone is white space (RFC 9112 section 2.2).
fn plain(value: &[u8]) -> Vec<u8> {
    let mut value = value.trim_ascii().to_vec();
    for byte in &mut value {
        if *byte == b'\r' {
            *byte = b' ';
        }
    }
    value
}

/// RFC 9110 section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
