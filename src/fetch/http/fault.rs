//! Why there is no answer: the client's chain of errors, judged.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use super::super::FetchErrorKind;
use super::super::dns::NameError;
use super::connect::Attempt;

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

    /// A name that gives no address to connect to.
    pub(super) fn name(host: &str, error: &NameError) -> Self {
        let kind = match error {
            NameError::Failed(_) => FetchErrorKind::Dns,
            NameError::Private(_) => FetchErrorKind::PrivateAddress,
        };
        Self::new(kind, format!("{host}: {error}"))
    }

    pub(super) fn timeout(host: &str, attempt: &Attempt, patience: Duration) -> Self {
        let what = if attempt.stuck_connecting() {
            "connection"
        } else {
            "answer"
        };
        Self::new(
            FetchErrorKind::Timeout,
            format!("{host}: no {what} within {patience:?}"),
        )
    }

    /// Judges an error of the client. One line, naming the host, in the words of the part that failed.
    pub(super) fn of(error: &reqwest::Error, host: &str, attempt: &Attempt, patience: Duration) -> Self {
        if let Some(name) = find::<NameError>(error) {
            return Self::name(host, name);
        }
        if error.is_timeout() {
            return Self::timeout(host, attempt, patience);
        }
        if let Some(tls) = find::<rustls::Error>(error) {
            return Self::new(FetchErrorKind::Tls, format!("{host}: TLS failed: {tls}"));
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
        match find::<hyper::Error>(error) {
            Some(http) if http.is_parse() => Self::new(
                FetchErrorKind::Protocol,
                format!("{host}: what came is not HTTP: {words}"),
            ),
            None if error.is_builder() => Self::new(
                FetchErrorKind::Protocol,
                format!("{host}: the address cannot be asked for: {words}"),
            ),
            _ => Self::new(
                FetchErrorKind::Broken,
                format!("{host}: the connection ended before an answer: {words}"),
            ),
        }
    }
}

/// Did the connection end before a byte of an answer came? Then a kept connection was closed under the request.
pub(super) fn before_any_answer(error: &reqwest::Error) -> bool {
    !error.is_connect()
        && find::<hyper::Error>(error).is_some_and(|e| {
            let ended = find::<io::Error>(e).map(io::Error::kind);
            e.is_incomplete_message()
                || e.is_canceled()
                || e.is_closed()
                || matches!(ended, Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe))
        })
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
