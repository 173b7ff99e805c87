//! The body, gathered within its bounds: bytes, time, and a rate below which a server only holds us up.

use std::io;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};

use super::super::Truncated;
use super::super::body::{Body, Sink};
use super::HttpSettings;
use super::h1::exchange::fill;
use super::h1::framing::{Doubt, Framing, Piece};
use super::h1::transfer::Undo;
use super::h2::session::{self, Session};
use super::stream::Stream;

/// How the gathering of a body ended.
pub(super) struct Gathered {
    pub(super) body: Body,
    pub(super) truncated: Option<Truncated>,
    /// The message came to its end, and nothing after it: the connection may carry another.
    pub(super) clean: bool,
}

impl Gathered {
    /// Nothing was read, and the connection is of no more use.
    pub(super) fn nothing() -> Self {
        Self {
            body: Body::default(),
            truncated: None,
            clean: false,
        }
    }
}

/// Reads until the end, a bound or a fault. What came is kept in each case.
///
/// # Errors
/// If the body cannot be written down.
pub(super) async fn gather(
    stream: &mut Stream,
    buffer: &mut BytesMut,
    (mut framing, mut undo, doubt): (Framing, Undo, Option<Doubt>),
    settings: &HttpSettings,
    deadline: Instant,
) -> io::Result<Gathered> {
    let mut sink = Sink::new(&settings.spool, framing.announced());
    let mut pace = Pace::new(settings.min_rate, settings.slow_after, Instant::now(), deadline);
    let alarm = tokio::time::sleep_until(pace.next_look().into());
    tokio::pin!(alarm);
    let silence = tokio::time::sleep_until(deadline.into());
    tokio::pin!(silence);
    let (mut received, mut clean) = (0_u64, false);
    let cut = |framing: &Framing, why| (!framing.ends_with_connection()).then_some(why);
    let truncated = 'message: loop {
        // all that is at hand, then one read
        loop {
            match framing.next(buffer) {
                Piece::Data { skip, take } => {
                    buffer.advance(skip);
                    let data = buffer.get(..take).unwrap_or_default();
                    if undo.is_plain() {
                        if !keep(&mut sink, data, settings).await? {
                            break 'message Some(Truncated::Length);
                        }
                    } else {
                        undo.push(data);
                    }
                    while let Some((bytes, broken)) = undo.pull() {
                        if !keep(&mut sink, &bytes, settings).await? {
                            break 'message Some(Truncated::Length);
                        }
                        if broken {
                            break 'message Some(Truncated::Disconnect);
                        }
                    }
                    buffer.advance(take);
                    received += take as u64;
                }
                Piece::More { skip } => {
                    buffer.advance(skip);
                    break;
                }
                Piece::End { skip, clean: known } => {
                    buffer.advance(skip);
                    clean = known && buffer.is_empty();
                    break 'message None;
                }
                Piece::Broken => break 'message Some(Truncated::Disconnect),
            }
        }
        let silent = doubt.as_ref().and_then(|doubt| doubt.silence(received));
        if let Some((silent, _)) = silent {
            silence.as_mut().reset((Instant::now() + silent).into());
        }
        let read = loop {
            tokio::select! {
                biased; // the alarm first: a flood must not drown it out
                () = &mut alarm => {
                    if pace.too_slow(received) {
                        // a body that runs to the close is not at its end while the server keeps the connection
                        let whole = framing.ends_with_connection() && !matches!(framing, Framing::ToClose);
                        break 'message (!whole).then_some(Truncated::Time);
                    }
                    alarm.as_mut().reset(pace.next_look().into());
                }
                read = fill(stream, buffer) => break read,
                () = &mut silence, if silent.is_some() => {
                    let whole = silent.is_some_and(|(_, whole)| whole);
                    break 'message (!whole).then_some(Truncated::Time);
                }
            }
        };
        match read {
            Ok(0) => break cut(&framing, Truncated::Disconnect),
            Ok(_) => {}
            // TLS whose end was not announced: servers close so every day, browsers show the page, and nothing in the
            // message can tell it from a whole one
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break cut(&framing, Truncated::Disconnect),
            Err(_) if matches!(framing, Framing::Chunked(_)) => break cut(&framing, Truncated::Disconnect),
            Err(_) => break Some(Truncated::Disconnect),
        }
    };
    Ok(Gathered {
        body: sink.finish().await?,
        truncated,
        clean,
    })
}

/// Reads the body of an answer over HTTP/2; `announced` is what its `content-length` says.
///
/// # Errors
/// If the body cannot be written down.
pub(super) async fn gather_h2(
    session: &mut Session,
    announced: Option<u64>,
    settings: &HttpSettings,
    deadline: Instant,
) -> io::Result<Gathered> {
    let mut sink = Sink::new(&settings.spool, announced);
    let mut pace = Pace::new(settings.min_rate, settings.slow_after, Instant::now(), deadline);
    let alarm = tokio::time::sleep_until(pace.next_look().into());
    tokio::pin!(alarm);
    let mut clean = false;
    let truncated = loop {
        let piece = tokio::select! {
            biased;
            () = &mut alarm => {
                if pace.too_slow(sink.len()) {
                    break Some(Truncated::Time);
                }
                alarm.as_mut().reset(pace.next_look().into());
                continue;
            }
            piece = session.piece() => piece,
        };
        match piece {
            session::Piece::Data(data) => {
                if !keep(&mut sink, &data, settings).await? {
                    break Some(Truncated::Length);
                }
            }
            session::Piece::End => {
                clean = true;
                let short = announced.is_some_and(|announced| sink.len() < announced);
                break short.then_some(Truncated::Disconnect);
            }
            session::Piece::Broken => break Some(Truncated::Disconnect),
        }
    };
    Ok(Gathered {
        body: sink.finish().await?,
        truncated,
        clean,
    })
}

/// Takes what fits of a piece of a body; did all of it?
async fn keep(body: &mut Sink, piece: &[u8], settings: &HttpSettings) -> io::Result<bool> {
    let room = usize::try_from(settings.max_body - body.len()).unwrap_or(usize::MAX);
    let fits = piece.len().min(room);
    body.take(piece.get(..fits).unwrap_or_default()).await?;
    Ok(fits == piece.len())
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
