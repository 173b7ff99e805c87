//! Why there is no answer: the client's chain of errors, judged.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use super::super::dns::NameError;
use super::super::{FetchError, FetchErrorKind};
use super::h1::exchange::NoHead;
use super::h2::notes::Attempt;
use crate::clock::Time;

/// A request that brought no answer, without its times.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) kind: FetchErrorKind,
    pub(super) detail: String,
}

impl Fault {
    pub(super) fn new(kind: FetchErrorKind, detail: String) -> Self {
        Self { kind, detail }
    }

    /// A body that cannot be written down here.
    pub(super) fn spool(error: &io::Error) -> Self {
        Self::new(FetchErrorKind::Spool, error.to_string())
    }

    /// With its times.
    pub(super) fn told(self, started: Time, took: Duration) -> FetchError {
        let Self { kind, detail } = self;
        FetchError {
            kind,
            detail,
            started,
            took,
        }
    }

    /// A name that gives no address to connect to.
    pub(super) fn name(host: &str, error: &NameError) -> Self {
        let kind = match error {
            NameError::Failed(_) => FetchErrorKind::Dns,
            NameError::Private(_) => FetchErrorKind::PrivateAddress,
        };
        Self::new(kind, format!("{host}: {error}"))
    }

    pub(super) fn timeout(host: &str, connecting: bool, patience: Duration) -> Self {
        let what = if connecting { "connection" } else { "answer" };
        Self::new(
            FetchErrorKind::Timeout,
            format!("{host}: no {what} within {patience:?}"),
        )
    }

    /// Judges why no head came over HTTP/1.1.
    pub(super) fn no_head(host: &str, why: &NoHead) -> Self {
        match why {
            NoHead::Dropped(e) | NoHead::Cut(e) => Self::new(
                FetchErrorKind::Broken,
                format!("{host}: the connection ended before an answer: {}", words(e)),
            ),
            NoHead::NotHttp(why) => Self::new(
                FetchErrorKind::Protocol,
                format!("{host}: what came is not HTTP: {}", why.0),
            ),
        }
    }

    /// Judges an error of the client for HTTP/2. One line, naming the host, in the words of the part that failed.
    pub(super) fn of(error: &reqwest::Error, host: &str, attempt: &Attempt, patience: Duration) -> Self {
        if let Some(name) = find::<NameError>(error) {
            return Self::name(host, name);
        }
        if error.is_timeout() {
            return Self::timeout(host, attempt.stuck_connecting(), patience);
        }
        if let Some(tls) = find::<rustls::Error>(error) {
            return Self::new(
                FetchErrorKind::Tls,
                format!("{host}: TLS failed: {}", super::tls::words(tls)),
            );
        }
        let words = words(error);
        if error.is_connect() {
            return match find::<io::Error>(error).map(io::Error::kind) {
                // these do not come of opening a TCP connection, only of what is said on it next
                Some(io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
                    Self::new(FetchErrorKind::Tls, format!("{host}: TLS failed: {words}"))
                }
                _ => Self::new(FetchErrorKind::Connect, format!("{host}: {words}")),
            };
        }
        if error.is_builder() {
            return Self::new(
                FetchErrorKind::Protocol,
                format!("{host}: the address cannot be asked for: {words}"),
            );
        }
        match find::<h2::Error>(error) {
            // said by us: what came breaks the rules
            Some(http) if http.is_library() && http.reason().is_some() => Self::new(
                FetchErrorKind::Protocol,
                format!("{host}: what came is not HTTP/2: {words}"),
            ),
            _ => Self::new(
                FetchErrorKind::Broken,
                format!("{host}: the connection ended before an answer: {words}"),
            ),
        }
    }
}

/// Did the server let a request drop before it began an answer: by closing, or by saying that it did not take it?
pub(super) fn before_any_answer(error: &reqwest::Error) -> bool {
    if error.is_connect() {
        return false;
    }
    if find::<h2::Error>(error).is_some_and(|e| e.is_remote() || e.is_io()) {
        return true;
    }
    find::<hyper::Error>(error).is_some_and(|e| {
        let ended = find::<io::Error>(e).map(io::Error::kind);
        e.is_incomplete_message()
            || e.is_canceled()
            || e.is_closed()
            || matches!(ended, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
    })
}

/// The server did not look at the request (RFC 9113 section 8.7): it may be repeated on any connection.
pub(super) fn refused_unseen(error: &reqwest::Error) -> bool {
    find::<h2::Error>(error).is_some_and(|e| e.is_remote() && e.reason() == Some(h2::Reason::REFUSED_STREAM))
}

/// Can the server, or what it said, not be had over HTTP/2? Then HTTP/1.1 is left.
pub(super) fn speaks_no_h2(error: &reqwest::Error) -> bool {
    let alert = rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol);
    if find::<rustls::Error>(error).is_some_and(|e| *e == alert || *e == rustls::Error::NoApplicationProtocol) {
        return true;
    }
    find::<h2::Error>(error).is_some_and(|e| e.is_library() || e.reason() == Some(h2::Reason::HTTP_1_1_REQUIRED))
}

/// The end of the chain, where the cause is named, in one line and without the number of the system's error.
pub(super) fn words(error: &(dyn StdError + 'static)) -> String {
    let last = chain(error).last().map(ToString::to_string).unwrap_or_default();
    let text = last.split(" (os error").next().unwrap_or(&last);
    text.replace(['\r', '\n'], " ")
}

/// The first error of a type in the chain.
pub(super) fn find<'e, E: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e E> {
    chain(error).find_map(|link| link.downcast_ref::<E>())
}

/// An error and what it came from, down to the first cause. An `io::Error` that wraps another error names that one's
/// source as its own; here it is a link like any other.
fn chain<'e>(error: &'e (dyn StdError + 'static)) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |link| {
        let link: &'e (dyn StdError + 'static) = *link;
        match link.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => link.source(),
        }
    })
}
