//! HTTP/1.1 from the bytes up (RFC 9112), read as leniently as browsers read it.
//!
//! - `head`: where a head begins and ends, its status, its header lines.
//! - `framing`: which of the bytes after a head are its body.
//! - `transfer`: transfer codings other than chunked, undone.
//! - `exchange`: both over a connection.
//!
//! The first three know no connection: they are asked again with more bytes, so the same bytes give the same answer
//! however they were cut on their way. [`answers`] runs them over a whole byte string.

pub(super) mod exchange;
pub(super) mod framing;
pub(super) mod head;
pub(super) mod transfer;

use framing::{Framing, Piece};
use head::{Head, Search};
use transfer::Undo;

pub use framing::{MAX_CHUNK_LINE, MAX_TRAILER_BYTES};
pub use head::{MAX_HEAD_BYTES, MAX_JUNK_BYTES, MAX_LEADING_LINE_ENDS};
pub use transfer::MAX_TRANSFER_CODINGS;

/// Interim answers (1xx) before one answer that are read past.
pub const MAX_INTERIM: usize = 32;

/// An answer found in a byte string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// 100 to 999.
    pub status: u16,
    /// Status line, header lines and the empty line, as they stand in the string.
    pub head: Vec<u8>,
    /// Names in lower case, and values.
    pub headers: Vec<(String, Vec<u8>)>,
    /// Without its framing.
    pub body: Vec<u8>,
    /// The body came to its end.
    pub whole: bool,
}

/// The answers in `bytes`, as a client would read them that sends its next request on the same connection after each,
/// where the connection closes after the last byte; and what stands in the way of a further one, if bytes are left.
/// A body is kept up to `max_body` bytes.
#[must_use]
pub fn answers(bytes: &[u8], max_body: usize) -> (Vec<Answer>, Option<&'static str>) {
    let mut found = Vec::new();
    let mut rest = bytes;
    loop {
        let (head, used) = match final_head(rest) {
            Ok(Some(begun)) => begun,
            Ok(None) if rest.is_empty() => return (found, None),
            Ok(None) => return (found, Some("the bytes end within a head")),
            Err(head::NotHttp(why)) => return (found, Some(why)),
        };
        rest = rest.get(used..).unwrap_or_default();
        let (mut framing, mut undo) = (Framing::of(&head), Undo::of(&head));
        let mut body = Vec::new();
        let (whole, clean) = loop {
            match framing.next(rest) {
                Piece::Data { skip, take } => {
                    let data = rest.get(skip..skip + take).unwrap_or_default();
                    rest = rest.get(skip + take..).unwrap_or_default();
                    if !take_in(&mut body, data, &mut undo, max_body) {
                        break (false, false);
                    }
                }
                Piece::End { skip, clean } => {
                    rest = rest.get(skip..).unwrap_or_default();
                    break (true, clean);
                }
                Piece::More { skip } => {
                    rest = rest.get(skip..).unwrap_or_default();
                    break (framing.ends_with_connection(), false);
                }
                Piece::Broken => break (false, false),
            }
        };
        let go_on = clean && framing::keeps_connection(&head);
        found.push(Answer {
            status: head.status,
            head: head.bytes,
            headers: head.headers,
            body,
            whole,
        });
        if !go_on {
            return (
                found,
                (!rest.is_empty()).then_some("the connection cannot be used again"),
            );
        }
    }
}

/// Takes a piece of a message into its body, codings undone; false if the body has no room for it, or ends in it.
fn take_in(body: &mut Vec<u8>, data: &[u8], undo: &mut Undo, most: usize) -> bool {
    if undo.is_plain() {
        return keep(body, data, most);
    }
    undo.push(data);
    while let Some((bytes, broken)) = undo.pull() {
        if !keep(body, &bytes, most) || broken {
            return false;
        }
    }
    true
}

/// Takes what fits of a piece of a body; did all of it?
fn keep(body: &mut Vec<u8>, piece: &[u8], most: usize) -> bool {
    let fits = piece.len().min(most - body.len());
    body.extend_from_slice(piece.get(..fits).unwrap_or_default());
    fits == piece.len()
}

/// The first head in `bytes` that is not an interim one, and where it ends.
fn final_head(bytes: &[u8]) -> Result<Option<(Head, usize)>, head::NotHttp> {
    let mut used = 0;
    for _ in 0..=MAX_INTERIM {
        let rest = bytes.get(used..).unwrap_or_default();
        let Some(range) = Search::default().look(rest)? else {
            Search::at_end(rest)?;
            return Ok(None);
        };
        let head = Head::parse(rest.get(range.clone()).unwrap_or_default())?;
        used += range.end;
        if !head.is_interim() {
            return Ok(Some((head, used)));
        }
    }
    Err(head::NotHttp("there is no end to its interim answers"))
}

#[cfg(test)]
mod tests;
