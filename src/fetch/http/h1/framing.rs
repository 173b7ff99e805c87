//! Which of the bytes after a head are its body (RFC 9112 section 6.3), where servers err as read by browsers.
//!
//! Three errors are read otherwise than by browsers, so that no page is lost. Lengths that differ, like one that is no
//! number, make a body that runs to the end of the connection: browsers refuse it because a mistaken length can smuggle
//! an answer into a shared connection, and here such a connection is never used again. And a body that is announced in
//! chunks and does not begin with one is no chunked body: it too is what comes until the close. Such a body has no end
//! where the server keeps the connection: Chrome shows what comes and goes on loading, curl refuses the page. Here it
//! ends when the server has gone silent ([`Doubt`]).

use std::time::Duration;

use memchr::memchr;

use super::head::{Head, Version};

/// Longest line with a chunk's size and extensions, bytes.
pub const MAX_CHUNK_LINE: usize = 16 * 1024;
/// Longest trailers that are read past, bytes. After longer ones the body counts and the connection does not.
pub const MAX_TRAILER_BYTES: usize = 64 * 1024;

/// A body of doubtful length is at its end after such a silence if it has come to the length that was announced.
pub(in super::super) const SILENCE_AT_LENGTH: Duration = Duration::from_secs(1);
/// And after such a silence wherever it stands, if anything came: a server that is still at work says its next word sooner.
pub(in super::super) const SILENCE_ANYWHERE: Duration = Duration::from_secs(3);

/// What may be made of a `Content-Length` that cannot be used, on a connection that the server does not mean to close.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) struct Doubt {
    /// The numbers in it, the largest last. No zero: a body of nothing is not waited for longer than any other.
    lengths: Vec<u64>,
}

impl Doubt {
    pub(in super::super) fn of(head: &Head, framing: &Framing) -> Option<Self> {
        if !matches!(framing, Framing::ToClose) || !keeps_connection(head) || head.all("transfer-encoding").count() > 0
        {
            return None;
        }
        let values = head
            .all("content-length")
            .flat_map(|value| value.split(|byte| *byte == b','));
        let mut any = false;
        let numbers = values.inspect(|_| any = true).filter_map(leading_number);
        let mut lengths: Vec<u64> = numbers.filter(|number| *number > 0).collect();
        lengths.sort_unstable();
        any.then_some(Self { lengths })
    }

    /// How long a silence ends a body of which so much has come, and whether it is whole then.
    pub(in super::super) fn silence(&self, received: u64) -> Option<(Duration, bool)> {
        if received == 0 {
            return None; // the server may be slow to begin
        }
        if self.lengths.last() == Some(&received) {
            return Some((SILENCE_AT_LENGTH, true));
        }
        Some((SILENCE_ANYWHERE, self.lengths.contains(&received)))
    }
}

/// How a body ends, and how much of it is to come.
#[derive(Debug)]
pub(in super::super) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// After the last chunk.
    Chunked(Chunks),
    /// With the connection.
    ToClose,
}

/// Where in a chunked body the next byte stands.
#[derive(Debug)]
pub(in super::super) enum Chunks {
    /// Before the first chunk.
    First,
    Size,
    Data(u64),
    DataEnd,
    /// After the last chunk; bytes of trailers so far.
    Trailers(usize),
}

/// What is to be done with the bytes at hand.
#[derive(Debug, PartialEq, Eq)]
pub(in super::super) enum Piece {
    /// After `skip` bytes `take` bytes of body.
    Data { skip: usize, take: usize },
    /// `skip` bytes are done with; for the rest more must come.
    More { skip: usize },
    /// The message ends after `skip` bytes. Unless it is `clean`, nobody can say what the next byte is.
    End { skip: usize, clean: bool },
    /// This is no framing.
    Broken,
}

impl Framing {
    pub(in super::super) fn of(head: &Head) -> Self {
        if (100..200).contains(&head.status) || matches!(head.status, 204 | 304) {
            return Self::Length(0);
        }
        let mut coded = false;
        for coding in head.words("transfer-encoding") {
            match coding.as_slice() {
                b"chunked" => return Self::Chunked(Chunks::First),
                b"identity" => {}
                _ => coded = true,
            }
        }
        if coded {
            return Self::ToClose;
        }
        let mut lengths = head
            .all("content-length")
            .flat_map(|value| value.split(|byte| *byte == b','));
        let Some(first) = lengths.next().and_then(number) else {
            return Self::ToClose;
        };
        if lengths.all(|other| number(other) == Some(first)) {
            Self::Length(first)
        } else {
            Self::ToClose
        }
    }

    /// What to do with `input`: the bytes that came and are not done with.
    pub(in super::super) fn next(&mut self, input: &[u8]) -> Piece {
        match self {
            Self::Length(0) => Piece::End { skip: 0, clean: true },
            Self::Length(left) => match part(*left, input) {
                0 => Piece::More { skip: 0 },
                take => {
                    *left -= take as u64;
                    Piece::Data { skip: 0, take }
                }
            },
            Self::ToClose | Self::Chunked(Chunks::First) if input.is_empty() => Piece::More { skip: 0 },
            Self::ToClose => Piece::Data {
                skip: 0,
                take: input.len(),
            },
            Self::Chunked(chunks) => {
                let at_start = matches!(chunks, Chunks::First);
                match chunks.next(input) {
                    Piece::Broken if at_start && matches!(chunks, Chunks::First) => {
                        *self = Self::ToClose;
                        self.next(input)
                    }
                    piece => piece,
                }
            }
        }
    }

    /// Is the body whole if the connection ends here?
    pub(in super::super) fn ends_with_connection(&self) -> bool {
        matches!(
            self,
            Self::ToClose | Self::Length(0) | Self::Chunked(Chunks::Trailers(_))
        )
    }

    /// The length of the body, if it was announced.
    pub(in super::super) fn announced(&self) -> Option<u64> {
        match self {
            Self::Length(length) => Some(*length),
            _ => None,
        }
    }
}

impl Chunks {
    fn next(&mut self, input: &[u8]) -> Piece {
        let mut skip = 0;
        loop {
            let rest = input.get(skip..).unwrap_or_default();
            match self {
                Self::First
                    if !rest
                        .first()
                        .is_none_or(|byte| byte.is_ascii_hexdigit() || b" \t".contains(byte)) =>
                {
                    return Piece::Broken;
                }
                Self::First | Self::Size => {
                    let Some(end) = memchr(b'\n', rest) else {
                        return wait(skip, rest.len() <= MAX_CHUNK_LINE);
                    };
                    let size = rest
                        .get(..end)
                        .filter(|line| line.len() <= MAX_CHUNK_LINE)
                        .and_then(size);
                    *self = match size {
                        None => return Piece::Broken,
                        Some(0) => Self::Trailers(0),
                        Some(size) => Self::Data(size),
                    };
                    skip += end + 1;
                }
                Self::Data(left) => {
                    let take = part(*left, rest);
                    if take == 0 {
                        return Piece::More { skip };
                    }
                    *left -= take as u64;
                    if *left == 0 {
                        *self = Self::DataEnd;
                    }
                    return Piece::Data { skip, take };
                }
                Self::DataEnd => {
                    skip += match rest {
                        [b'\n', ..] => 1,
                        [b'\r', b'\n', ..] => 2,
                        [] | [b'\r'] => return Piece::More { skip },
                        _ => return Piece::Broken,
                    };
                    *self = Self::Size;
                }
                Self::Trailers(taken) => {
                    let Some(end) = memchr(b'\n', rest) else {
                        let fits = *taken + rest.len() <= MAX_TRAILER_BYTES;
                        return if fits {
                            Piece::More { skip }
                        } else {
                            Piece::End { skip, clean: false }
                        };
                    };
                    skip += end + 1;
                    if matches!(rest.get(..end), Some(b"" | b"\r")) {
                        return Piece::End { skip, clean: true };
                    }
                    *taken += end + 1;
                    if *taken > MAX_TRAILER_BYTES {
                        return Piece::End { skip, clean: false };
                    }
                }
            }
        }
    }
}

fn wait(skip: usize, may_come: bool) -> Piece {
    if may_come { Piece::More { skip } } else { Piece::Broken }
}

/// How much of `input` belongs to the `left` bytes to come.
fn part(left: u64, input: &[u8]) -> usize {
    usize::try_from(left).unwrap_or(usize::MAX).min(input.len())
}

/// The number in a chunk's line; what follows `;` or white space is an extension.
fn size(line: &[u8]) -> Option<u64> {
    let line = line.trim_ascii_start();
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (number, rest) = line.split_at(digits);
    if !matches!(rest.first(), None | Some(b';' | b' ' | b'\t' | b'\r')) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(number).ok()?, 16).ok()
}

/// The number at the start of what should be one and no more: `5` of `"5"`, `+5`, `5.0` and `5 bytes`.
fn leading_number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    let text = text
        .strip_prefix(b"+")
        .or_else(|| text.strip_prefix(b"\""))
        .unwrap_or(text);
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    number(text.get(..digits)?)
}

fn number(text: &[u8]) -> Option<u64> {
    let text = text.trim_ascii();
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// May a further request follow on the connection, as far as the head says? (RFC 9112 section 9.3)
pub(in super::super) fn keeps_connection(head: &Head) -> bool {
    if head.status == 101 {
        return false;
    }
    let says = |word: &[u8]| head.words("connection").any(|item| item == word);
    match head.version {
        _ if says(b"close") => false,
        Version::Http11 => true,
        Version::Http10 => says(b"keep-alive"),
    }
}
