//! A connection that speaks HTTP/2, one stream at a time.
//!
//! Frames and header compression are the `h2` package's; what a frame means for us is said here. Its own client judges
//! messages before it hands them on: it gives up a body whose `content-length` is wrong, and does not tell which
//! requests a server has certainly not looked at.
//!
//! Nothing is sent but heads, so the server's windows do not matter. Ours are as wide as the protocol allows: who reads
//! one stream alone holds the server back by not reading the connection.

use std::future::poll_fn;
use std::io;
use std::net::IpAddr;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use futures_util::StreamExt;
use h2::frame::{BytesStr, Frame, Headers, Ping, Pseudo, Reset, Settings, StreamId, WindowUpdate};
use h2::proto::Error;
use h2::{Codec, Reason};
use reqwest::header::HeaderMap;
use tokio::io::AsyncWriteExt;

use super::super::fault;
use super::super::h1::{MAX_HEAD_BYTES, MAX_INTERIM};
use super::super::stream::{Connection, Stream};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Widest window (RFC 9113 section 6.9.1), bytes.
const WINDOW: u32 = (1 << 31) - 1;
/// What a new connection begins with (RFC 9113 section 6.9.2), bytes.
const FIRST_WINDOW: u32 = 65_535;
/// Bytes received before the window is opened again.
const WINDOW_STEP: u32 = 1 << 28;
/// The last stream of a connection: numbers are not used twice.
const LAST_STREAM: u32 = 1 << 30;
/// Frames read from an idle connection when it is taken up again. One that has said more is let go.
const MAX_IDLE_FRAMES: usize = 64;

/// The connection.
#[derive(Debug)]
pub(in super::super) struct Session {
    frames: Codec<Stream, Bytes>,
    pub(in super::super) remote: Option<IpAddr>,
    pub(in super::super) tls: Option<&'static str>,
    pub(in super::super) cipher: Option<&'static str>,
    /// Number of the present stream or the last one; 0 before the first.
    stream: u32,
    stage: Stage,
    /// Bytes received since the connection's window, and the stream's, were opened.
    taken: [u32; 2],
    /// The present stream is at its end.
    ended: bool,
    /// Frames to be sent.
    replies: Vec<Frame<Bytes>>,
    /// Frames may wait in the codec.
    unsent: bool,
}

/// How far the server has come.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// It has not sent its settings, which come first.
    New,
    Open,
    /// It takes no further streams.
    Leaving,
}

/// What is asked for.
pub(in super::super) struct Request {
    pub(in super::super) authority: String,
    /// With the query.
    pub(in super::super) path: String,
    pub(in super::super) headers: HeaderMap,
}

/// The head of an answer.
#[derive(Debug)]
pub(in super::super) struct Answer {
    pub(in super::super) status: u16,
    pub(in super::super) headers: HeaderMap,
}

impl Answer {
    /// What its `content-length` says, if that is one number.
    pub(in super::super) fn announced(&self) -> Option<u64> {
        let mut lengths = self.headers.get_all("content-length").iter();
        let first = lengths.next()?.to_str().ok()?.trim().parse().ok()?;
        lengths.next().is_none().then_some(first)
    }
}

/// Why no head came.
#[derive(Debug)]
pub(in super::super) enum NoAnswer {
    /// The server says that it did not look at the request (RFC 9113 section 8.7).
    Refused(String),
    /// The connection ended before a byte of an answer.
    Dropped(String),
    /// The connection ended, or the stream was broken off, in another way.
    Broken(String),
    /// The server, or what it has to say, cannot be had over HTTP/2.
    Old(String),
}

/// The next piece of a body.
#[derive(Debug)]
pub(in super::super) enum Piece {
    Data(Bytes),
    End,
    /// It ends before its end.
    Broken,
}

/// What happens to the present stream.
enum Event {
    Head(Box<Headers>),
    Data(Bytes),
    Reset(Reason),
    /// The server leaves; it did not look at the stream if said so.
    Leaves(Reason, bool),
}

/// Nothing more comes.
enum Lost {
    /// The connection ended.
    Ended(String),
    /// What came breaks the rules.
    Wrong(String),
}

impl Session {
    /// Takes over a connection whose server chose HTTP/2. Sends nothing yet but the first bytes.
    ///
    /// # Errors
    /// They cannot be written.
    pub(in super::super) async fn open(connection: Connection) -> io::Result<Self> {
        let Connection {
            mut stream,
            remote,
            tls,
            cipher,
        } = connection;
        stream.write_all(PREFACE).await?;
        let mut frames = Codec::new(stream);
        frames.set_max_recv_header_list_size(MAX_HEAD_BYTES);
        let mut settings = Settings::default();
        settings.set_enable_push(false);
        settings.set_initial_window_size(Some(WINDOW));
        settings.set_max_header_list_size(u32::try_from(MAX_HEAD_BYTES).ok());
        let wider = WindowUpdate::new(StreamId::zero(), WINDOW - FIRST_WINDOW);
        Ok(Self {
            frames,
            remote,
            tls,
            cipher,
            stream: 0,
            stage: Stage::New,
            taken: [0, 0],
            ended: false,
            replies: vec![settings.into(), wider.into()],
            unsent: false,
        })
    }

    /// Open, with room for a further stream, after an answer that was read to its end?
    pub(in super::super) fn is_quiet(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..MAX_IDLE_FRAMES {
            match self.frames.poll_next_unpin(&mut cx) {
                Poll::Pending => return self.may_go_on(),
                Poll::Ready(Some(Ok(frame))) => {
                    self.takes(frame);
                }
                Poll::Ready(Some(Err(_)) | None) => return false,
            }
        }
        false
    }

    /// May a further request follow?
    pub(in super::super) fn may_go_on(&self) -> bool {
        self.stage != Stage::Leaving && self.stream < LAST_STREAM
    }

    /// Sends a request and reads the head of its answer, past interim ones.
    pub(in super::super) async fn ask(&mut self, request: Request) -> Result<Answer, NoAnswer> {
        self.stream = if self.stream == 0 { 1 } else { self.stream + 2 };
        let [_, of_stream] = &mut self.taken;
        *of_stream = 0;
        self.ended = false;
        let text = |text: String| BytesStr::try_from(Bytes::from(text)).ok();
        let pseudo = Pseudo {
            method: Some(reqwest::Method::GET),
            scheme: text("https".to_owned()),
            authority: text(request.authority),
            path: text(request.path),
            ..Pseudo::default()
        };
        let mut head = Headers::new(StreamId::from(self.stream), pseudo, request.headers);
        head.set_end_stream();
        self.replies.push(head.into());
        // who could not be told the request may have said why before it closed
        let sent = self.send().await;
        let mut anything = false;
        let mut goodbye = None;
        for _ in 0..=MAX_INTERIM {
            let frame = loop {
                match self.event().await {
                    Ok(Event::Head(frame)) => break frame,
                    Ok(Event::Data(_)) => return Err(NoAnswer::Old("a body without a head".to_owned())),
                    Ok(Event::Reset(reason) | Event::Leaves(reason, _)) if wants_old(reason) => {
                        return Err(NoAnswer::Old(format!("the server says {reason:?}")));
                    }
                    Ok(Event::Reset(Reason::REFUSED_STREAM) | Event::Leaves(_, true)) if !anything => {
                        return Err(NoAnswer::Refused("the server did not take the stream".to_owned()));
                    }
                    Ok(Event::Reset(reason)) => {
                        return Err(NoAnswer::Broken(format!("the stream was reset: {reason:?}")));
                    }
                    Ok(Event::Leaves(reason, true)) => {
                        return Err(NoAnswer::Broken(format!("GOAWAY: {reason:?}")));
                    }
                    // whatever its reason: streams up to the one it names may still be answered (RFC 9113 section 6.8)
                    Ok(Event::Leaves(reason, false)) => goodbye = Some(reason).filter(|why| *why != Reason::NO_ERROR),
                    Err(Lost::Wrong(why)) => return Err(NoAnswer::Old(why)),
                    Err(Lost::Ended(why)) => {
                        let unsent = sent.as_ref().err().map(|error| fault::words(error));
                        let unsent = goodbye.map(|reason| format!("GOAWAY: {reason:?}")).or(unsent);
                        return Err(ended(&unsent.unwrap_or(why), anything));
                    }
                }
            };
            anything = true;
            if frame.is_over_size() {
                return Err(NoAnswer::Broken("its head is longer than 256 KiB".to_owned()));
            }
            let (pseudo, headers) = frame.into_parts();
            let Some(status) = pseudo.status else {
                return Err(NoAnswer::Old("a head without a status".to_owned()));
            };
            let status = status.as_u16();
            if !(100..200).contains(&status) || self.ended {
                return Ok(Answer { status, headers });
            }
        }
        Err(NoAnswer::Broken("there is no end to its interim answers".to_owned()))
    }

    /// The next piece of the body of an answer.
    pub(in super::super) async fn piece(&mut self) -> Piece {
        while !self.ended {
            match self.event().await {
                Ok(Event::Data(data)) if !data.is_empty() => return Piece::Data(data),
                Ok(Event::Data(_) | Event::Head(_) | Event::Leaves(_, false)) => {}
                // the answer is whole and the server only stops listening to the request (RFC 9113 section 8.1)
                Ok(Event::Reset(Reason::NO_ERROR)) => return Piece::End,
                Ok(Event::Reset(_) | Event::Leaves(..)) | Err(_) => return Piece::Broken,
            }
        }
        Piece::End
    }

    /// Ends a stream whose body is not wanted.
    pub(in super::super) async fn leave(&mut self) -> io::Result<()> {
        if !self.ended {
            self.ended = true;
            self.replies
                .push(Reset::new(StreamId::from(self.stream), Reason::CANCEL).into());
        }
        self.send().await
    }

    /// The next thing that happens to the present stream.
    async fn event(&mut self) -> Result<Event, Lost> {
        loop {
            self.send().await.map_err(|error| Lost::Ended(fault::words(&error)))?;
            let frame = match self.frames.next().await {
                Some(Ok(frame)) => frame,
                Some(Err(error)) => return Err(Lost::of(&error)),
                None => return Err(Lost::Ended("the server closed it".to_owned())),
            };
            if self.stage == Stage::New && !matches!(frame, Frame::Settings(_)) {
                return Err(Lost::Wrong("it does not begin with SETTINGS".to_owned()));
            }
            if let Some(event) = self.takes(frame) {
                return Ok(event);
            }
        }
    }

    /// Takes in a frame, and says what it is to the present stream.
    fn takes(&mut self, frame: Frame<Bytes>) -> Option<Event> {
        match frame {
            Frame::Settings(settings) => {
                if self.stage == Stage::New {
                    self.stage = Stage::Open;
                }
                if !settings.is_ack() {
                    self.heed(&settings);
                }
                None
            }
            Frame::Ping(ping) => {
                if !ping.is_ack() {
                    self.replies.push(Ping::pong(ping.into_payload()).into());
                }
                None
            }
            Frame::GoAway(away) => {
                self.stage = Stage::Leaving;
                let unseen = u32::from(away.last_stream_id()) < self.stream;
                Some(Event::Leaves(away.reason(), unseen))
            }
            Frame::Data(data) => {
                let own = self.owns(data.stream_id());
                self.ended |= own && data.is_end_stream();
                let bytes = data.into_payload();
                self.open_windows(bytes.len(), own);
                own.then_some(Event::Data(bytes))
            }
            Frame::Headers(head) => {
                let own = self.owns(head.stream_id());
                self.ended |= own && head.is_end_stream();
                own.then(|| Event::Head(Box::new(head)))
            }
            Frame::Reset(reset) => self.owns(reset.stream_id()).then_some(Event::Reset(reset.reason())),
            // nothing but heads is sent, and what is pushed unasked is not looked at
            Frame::WindowUpdate(_) | Frame::Priority(_) | Frame::PushPromise(_) => None,
        }
    }

    fn owns(&self, stream: StreamId) -> bool {
        u32::from(stream) == self.stream
    }

    fn heed(&mut self, settings: &Settings) {
        if let Some(bytes) = settings.max_frame_size() {
            self.frames.set_max_send_frame_size(bytes as usize);
        }
        if let Some(bytes) = settings.header_table_size() {
            self.frames.set_send_header_table_size(bytes as usize);
        }
        self.replies.push(Settings::ack().into());
    }

    /// Gives back what was received, in large steps.
    fn open_windows(&mut self, bytes: usize, own: bool) {
        let bytes = u32::try_from(bytes).unwrap_or(WINDOW_STEP); // a frame has at most 16 KiB
        let [all, stream] = &mut self.taken;
        *all += bytes;
        *stream += if own { bytes } else { 0 };
        let ended = self.ended;
        let windows = [(all, StreamId::zero()), (stream, StreamId::from(self.stream))];
        for (taken, id) in windows {
            if *taken >= WINDOW_STEP && (id.is_zero() || !ended) {
                self.replies.push(WindowUpdate::new(id, std::mem::take(taken)).into());
            }
        }
    }

    /// Sends what is to be sent.
    async fn send(&mut self) -> io::Result<()> {
        if self.replies.is_empty() && !self.unsent {
            return Ok(());
        }
        self.unsent = true;
        while !self.replies.is_empty() {
            poll_fn(|cx| self.frames.poll_ready(cx)).await?;
            let next = self.replies.remove(0);
            self.frames.buffer(next).map_err(io::Error::other)?;
        }
        poll_fn(|cx| self.frames.flush(cx)).await?;
        self.unsent = false;
        Ok(())
    }
}

impl Lost {
    fn of(error: &Error) -> Self {
        match error {
            Error::Io(kind, words) => Self::Ended(words.clone().unwrap_or_else(|| kind.to_string())),
            Error::Reset(_, reason, _) => Self::Wrong(format!("a head breaks the rules: {reason:?}")),
            Error::GoAway(_, reason, _) => Self::Wrong(format!("what came is not HTTP/2: {reason:?}")),
        }
    }
}

fn ended(why: &str, anything: bool) -> NoAnswer {
    if anything {
        NoAnswer::Broken(why.to_owned())
    } else {
        NoAnswer::Dropped(why.to_owned())
    }
}

/// HTTP/1.1 is to be spoken: the server says so (RFC 9113 section 7), or takes HTTP/2 over this TLS for too weak.
fn wants_old(reason: Reason) -> bool {
    matches!(reason, Reason::HTTP_1_1_REQUIRED | Reason::INADEQUATE_SECURITY)
}
