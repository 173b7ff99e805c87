//! A request and its answer's head over a connection.

use std::io;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::stream::Stream;
use super::MAX_INTERIM;
use super::head::{Head, NotHttp, Search};

/// Room made for one read, bytes: what fits into a TLS record.
const READ: usize = 16 * 1024;

/// Why no head came.
#[derive(Debug)]
pub(in super::super) enum NoHead {
    /// The connection ended before a byte of an answer.
    Dropped(io::Error),
    /// The connection ended in the head.
    Cut(io::Error),
    /// What came is no head.
    NotHttp(NotHttp),
}

impl From<NotHttp> for NoHead {
    fn from(why: NotHttp) -> Self {
        Self::NotHttp(why)
    }
}

/// Sends a request and reads the head of its answer, past interim ones. What came after the head is left in `buffer`,
/// which has to be empty at the start.
pub(in super::super) async fn ask(stream: &mut Stream, request: &[u8], buffer: &mut BytesMut) -> Result<Head, NoHead> {
    let sent = match stream.write_all(request).await {
        Ok(()) => stream.flush().await,
        Err(e) => Err(e),
    };
    // who could not be told the request may have answered before it closed
    read_head(stream, buffer).await.map_err(|fault| match (fault, sent) {
        (NoHead::Dropped(_), Err(e)) => NoHead::Dropped(e),
        (fault, _) => fault,
    })
}

/// Reads a head, past interim ones.
pub(in super::super) async fn read_head(stream: &mut Stream, buffer: &mut BytesMut) -> Result<Head, NoHead> {
    let mut anything = false;
    for _ in 0..=MAX_INTERIM {
        let mut search = Search::default();
        let range = loop {
            if let Some(range) = search.look(buffer)? {
                break range;
            }
            match fill(stream, buffer).await {
                Ok(0) if anything || !buffer.is_empty() => {
                    Search::at_end(buffer)?;
                    return Err(NoHead::Cut(io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(0) => return Err(NoHead::Dropped(io::ErrorKind::UnexpectedEof.into())),
                Err(e) if anything || !buffer.is_empty() => {
                    Search::at_end(buffer)?;
                    return Err(NoHead::Cut(e));
                }
                Err(e) => return Err(NoHead::Dropped(e)),
                Ok(_) => anything = true,
            }
        };
        let head = Head::parse(buffer.get(range.clone()).unwrap_or_default())?;
        buffer.advance(range.end);
        if !head.is_interim() {
            return Ok(head);
        }
    }
    Err(NoHead::NotHttp(NotHttp("there is no end to its interim answers")))
}

/// Reads once. 0 is the end.
pub(in super::super) async fn fill(stream: &mut Stream, buffer: &mut BytesMut) -> io::Result<usize> {
    if buffer.capacity() - buffer.len() < READ / 2 {
        buffer.reserve(READ);
    }
    stream.read_buf(buffer).await
}
