//! Content codings undone, with a cap on what comes out.

use std::borrow::Cow;

/// What came out of a body.
#[derive(Debug)]
pub struct Decoded<'a> {
    /// The bytes without their content coding, as far as they could be had.
    pub bytes: Cow<'a, [u8]>,
    /// Set if the coding could not be undone to its end.
    pub fault: Option<DecodeFault>,
}

/// Why a decoded body is not whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DecodeFault {
    /// The coded stream ended or broke early.
    Incomplete,
    /// The cap on the decoded size was reached.
    Limit,
    /// A coding that we do not know.
    Unsupported,
}

/// Undoes the codings named in the values of `Content-Encoding` (last applied first), giving at most `cap` bytes.
/// `gzip`, `x-gzip`, `deflate` (zlib or raw), `br`, `zstd`, `identity`; multi-member gzip is read whole; a body that is
/// labelled but plain is given as it is.
#[must_use]
pub fn decode<'a>(_content_encodings: &[&[u8]], _body: &'a [u8], _cap: usize) -> Decoded<'a> {
    todo!()
}
