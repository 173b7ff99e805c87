//! How much memory the reading of large pages may take at once.
//!
//! A page whose body is short and decodes to little is read where it arrived, without asking. Anything else takes a
//! share of the room first, in the order of arrival, and gives it back when it is read. Whoever has a share waits for
//! nothing but the processor and the disk, so nobody waits for ever.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::extract;
use crate::fetch::Response;

/// Text of one page that is read for its links and fields, bytes at most. What is beyond is archived, and said in
/// crawl.log (`extract:limit`).
pub const EXTRACT_BYTES: usize = 16 << 20;
/// Text of large pages that is in memory at once, MiB. It may be held twice more while it is read: transcoded, and as
/// links.
const ROOM_MIB: u32 = 32;
/// The share of a body of which little is kept (not text, or just over what is read in place), MiB: the tables and
/// buffers of its thread.
const LEAST_SHARE_MIB: u32 = 2;

/// Room for large pages.
#[derive(Debug)]
pub struct Room(Semaphore);

impl Default for Room {
    fn default() -> Self {
        Self(Semaphore::new(ROOM_MIB as usize))
    }
}

impl Room {
    /// Waits for a share for this response, of which at most so many bytes are kept; `None` only if the room was closed,
    /// which it never is.
    pub(super) async fn share(&self, response: &Response, most: usize) -> Option<SemaphorePermit<'_>> {
        self.0.acquire_many(share_mib(response, most)).await.ok()
    }
}

/// How much room a response may need, by what its head says and its body's length. What may be more than the whole room
/// (a sitemap) has it to itself.
fn share_mib(response: &Response, most: usize) -> u32 {
    const MIB: u64 = 1 << 20;
    if most <= EXTRACT_BYTES && !extract::may_be_read(response.header("content-type")) {
        return LEAST_SHARE_MIB;
    }
    let coded = response.header("content-encoding").is_some();
    let text = if coded { u64::MAX } else { response.body.len() };
    let mib = text.min(most as u64).div_ceil(MIB);
    u32::try_from(mib).unwrap_or(ROOM_MIB).clamp(LEAST_SHARE_MIB, ROOM_MIB)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::Time;

    fn response(headers: &[(&str, &str)], body: usize) -> Response {
        Response {
            status: 200,
            head: Vec::new(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
                .collect(),
            body: vec![b'x'; body].into(),
            truncated: None,
            remote: None,
            skipped: None,
            request_head: Vec::new(),
            protocols: Vec::new(),
            cipher: None,
            started: Time(0),
            took: Duration::ZERO,
            repeated: None,
        }
    }

    #[test]
    fn a_share_is_what_the_text_may_take() {
        let html = ("content-type", "text/html");
        let gzip = ("content-encoding", "gzip");
        for (headers, body, mib) in [
            (&[html][..], 10, 2),
            (&[html], 5 << 20, 5),
            (&[html], (5 << 20) + 1, 6),
            (&[html], 40 << 20, 16),
            (&[html, gzip], 300_000, 16),
            (&[("content-type", "video/mp4"), gzip], 40 << 20, 2),
            (&[], 3 << 20, 3),
        ] {
            assert_eq!(
                share_mib(&response(headers, body), EXTRACT_BYTES),
                mib,
                "{headers:?} {body}"
            );
        }
        let sitemap = response(&[("content-type", "video/mp4"), gzip], 1);
        assert_eq!(share_mib(&sitemap, 3 * EXTRACT_BYTES), ROOM_MIB);
    }

    #[tokio::test]
    async fn no_more_than_two_of_the_largest_pages_are_read_at_once() {
        let room = Room::default();
        let page = response(&[("content-type", "text/html"), ("content-encoding", "gzip")], 1);
        let first = room.share(&page, EXTRACT_BYTES).await.unwrap();
        let _second = room.share(&page, EXTRACT_BYTES).await.unwrap();
        let mut third = Box::pin(room.share(&page, EXTRACT_BYTES));
        let waits = tokio::time::timeout(Duration::from_millis(10), &mut third);
        assert!(waits.await.is_err(), "there is no room for a third");
        drop(first);
        assert!(third.await.is_some());
    }
}
