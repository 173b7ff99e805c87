//! The body, gathered within its bounds: bytes, time, and a rate below which a server only holds us up.

use std::io;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use reqwest::header::{CONTENT_LENGTH, TRANSFER_ENCODING};

use super::super::Truncated;
use super::{HttpSettings, fault};

/// Room made ahead on the word of `Content-Length`, bytes at most: a word costs the server nothing.
const MAX_ROOM_AHEAD: u64 = 1 << 20;

/// Reads until the end, a bound or a fault. What came is kept in each case; a body that is not read to its end takes
/// its connection with it when `response` is dropped.
pub(super) async fn gather(
    response: &mut reqwest::Response,
    settings: &HttpSettings,
    deadline: Instant,
) -> (Bytes, Option<Truncated>) {
    let cap = usize::try_from(settings.max_body).unwrap_or(usize::MAX);
    let room = response
        .content_length()
        .unwrap_or(0)
        .min(MAX_ROOM_AHEAD)
        .min(settings.max_body);
    let mut body = BytesMut::with_capacity(usize::try_from(room).unwrap_or(0));
    let mut pace = Pace::new(settings, deadline);
    let alarm = tokio::time::sleep_until(pace.next_look().into());
    tokio::pin!(alarm);
    let truncated = loop {
        let chunk = tokio::select! {
            biased; // the alarm first: a flood must not drown it out
            () = &mut alarm => {
                if pace.too_slow(body.len()) {
                    break Some(Truncated::Time);
                }
                alarm.as_mut().reset(pace.next_look().into());
                continue;
            }
            chunk = response.chunk() => chunk,
        };
        match chunk {
            Ok(Some(chunk)) => {
                let fits = chunk.len().min(cap - body.len());
                body.extend_from_slice(chunk.get(..fits).unwrap_or_default());
                if fits < chunk.len() {
                    break Some(Truncated::Length);
                }
            }
            Ok(None) => break None,
            Err(e) if ended_by_close(response, &e) => break None,
            Err(_) => break Some(Truncated::Disconnect),
        }
    };
    (body.freeze(), truncated)
}

/// A body that ends with its connection, over TLS whose end was not announced: servers close so every day, browsers
/// show the page, and nothing in the message can tell it from a whole one.
fn ended_by_close(response: &reqwest::Response, error: &reqwest::Error) -> bool {
    let framed = [CONTENT_LENGTH, TRANSFER_ENCODING]
        .iter()
        .any(|name| response.headers().contains_key(name));
    !framed && fault::find::<io::Error>(error).is_some_and(|e| e.kind() == io::ErrorKind::UnexpectedEof)
}

/// Looks at the amount received once per window of `slow_after`, and once at the deadline.
struct Pace {
    settings_window: std::time::Duration,
    /// What a window must bring, bytes.
    least: u128,
    window_ends: Instant,
    at_window_start: usize,
    deadline: Instant,
}

impl Pace {
    fn new(settings: &HttpSettings, deadline: Instant) -> Self {
        let window = settings.slow_after;
        let least = u128::from(settings.min_rate) * window.as_millis() / 1_000;
        // a window too long for the clock is one that never ends
        let window_ends = Instant::now().checked_add(window).unwrap_or(deadline);
        Self {
            settings_window: window,
            least,
            window_ends,
            at_window_start: 0,
            deadline,
        }
    }

    fn next_look(&self) -> Instant {
        if self.least == 0 {
            self.deadline
        } else {
            self.window_ends.min(self.deadline)
        }
    }

    /// Called at [`Self::next_look`], with the bytes so far.
    fn too_slow(&mut self, received: usize) -> bool {
        if self.next_look() >= self.deadline {
            return true;
        }
        let brought = received - self.at_window_start;
        self.at_window_start = received;
        self.window_ends = self
            .window_ends
            .checked_add(self.settings_window)
            .unwrap_or(self.deadline);
        (brought as u128) < self.least
    }
}
