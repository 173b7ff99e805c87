//! The body, gathered within its bounds: bytes, time, and a rate below which a server only holds us up.

use std::io;
use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_LENGTH, TRANSFER_ENCODING};

use super::super::Truncated;
use super::super::body::{Body, Sink};
use super::{HttpSettings, fault};

/// Reads until the end, a bound or a fault. What came is kept in each case; a body that is not read to its end takes
/// its connection with it when `response` is dropped.
///
/// # Errors
/// If the body cannot be written down.
pub(super) async fn gather(
    response: &mut reqwest::Response,
    settings: &HttpSettings,
    deadline: Instant,
) -> io::Result<(Body, Option<Truncated>)> {
    let mut body = Sink::new(&settings.spool, response.content_length());
    let mut pace = Pace::new(settings.min_rate, settings.slow_after, Instant::now(), deadline);
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
                let room = usize::try_from(settings.max_body - body.len()).unwrap_or(usize::MAX);
                let fits = chunk.len().min(room);
                body.take(chunk.get(..fits).unwrap_or_default()).await?;
                if fits < chunk.len() {
                    break Some(Truncated::Length);
                }
            }
            Ok(None) => break None,
            Err(e) if ended_by_close(response, &e) => break None,
            Err(_) => break Some(Truncated::Disconnect),
        }
    };
    Ok((body.finish().await?, truncated))
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
    window: Duration,
    /// What a window must bring, bytes.
    least: u128,
    window_ends: Instant,
    at_window_start: u64,
    deadline: Instant,
}

impl Pace {
    fn new(min_rate: u64, window: Duration, now: Instant, deadline: Instant) -> Self {
        let least = u128::from(min_rate) * window.as_millis() / 1_000;
        // a window too long for the clock is one that never ends
        let window_ends = now.checked_add(window).unwrap_or(deadline);
        Self {
            window,
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
    fn too_slow(&mut self, received: u64) -> bool {
        if self.next_look() >= self.deadline {
            return true;
        }
        let brought = received - self.at_window_start;
        self.at_window_start = received;
        self.window_ends = self.window_ends.checked_add(self.window).unwrap_or(self.deadline);
        u128::from(brought) < self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_must_bring_its_share() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut pace = Pace::new(1_000, 2 * second, now, now + 5 * second);
        assert_eq!(pace.next_look(), now + 2 * second);
        assert!(!pace.too_slow(2_000));
        assert_eq!(pace.next_look(), now + 4 * second);
        assert!(pace.too_slow(3_999), "a good start does not excuse the rest");

        let mut pace = Pace::new(1_000, 2 * second, now, now + 5 * second);
        assert!(!pace.too_slow(9_000) && !pace.too_slow(11_000));
        assert_eq!(pace.next_look(), now + 5 * second);
        assert!(pace.too_slow(1 << 30), "the deadline asks for no rate");
    }

    #[test]
    fn no_rate_and_endless_windows_leave_the_deadline() {
        let now = Instant::now();
        let deadline = now + Duration::from_secs(5);
        for (rate, window) in [
            (0, Duration::from_secs(1)),
            (1_000, Duration::MAX),
            (0, Duration::ZERO),
            (9, Duration::ZERO),
        ] {
            assert_eq!(
                Pace::new(rate, window, now, deadline).next_look(),
                deadline,
                "{rate} {window:?}"
            );
        }
    }
}
