//! Why there is no answer: faults of all parts, judged.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::super::dns::NameError;
use super::super::{FetchError, FetchErrorKind, Repeat};
use super::h1::exchange::NoHead;
use super::h2::session::NoAnswer;
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
    pub(super) fn told(self, started: Time, took: Duration, repeated: Option<Repeat>) -> FetchError {
        let Self { kind, detail } = self;
        FetchError {
            kind,
            detail,
            started,
            took,
            repeated,
        }
    }

    /// A name that gives no address to connect to.
    pub(super) fn name(host: &str, error: &NameError) -> Self {
        let kind = match error {
            NameError::Failed(_) => FetchErrorKind::Dns,
            NameError::Private(_) | NameError::Local(_) => FetchErrorKind::PrivateAddress,
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

    /// Judges why no head came over HTTP/2.
    pub(super) fn no_answer(host: &str, why: &NoAnswer) -> Self {
        match why {
            NoAnswer::Dropped(why) => Self::new(
                FetchErrorKind::Broken,
                format!("{host}: the connection ended before an answer: {why}"),
            ),
            NoAnswer::Refused(why) | NoAnswer::Broken(why) => {
                Self::new(FetchErrorKind::Broken, format!("{host}: HTTP/2: {why}"))
            }
            NoAnswer::Old(why) => Self::new(
                FetchErrorKind::Old,
                format!("{host}: HTTP/2 cannot be had, HTTP/1.1 is next: {why}"),
            ),
        }
    }

    /// With why HTTP/2 was not spoken.
    pub(super) fn instead_of_h2(mut self, why: Option<Arc<str>>) -> Self {
        if let Some(why) = why.filter(|_| self.kind != FetchErrorKind::Old) {
            self.detail = format!("{} (over HTTP/1.1, as HTTP/2 cannot be had: {why})", self.detail);
        }
        self
    }
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
