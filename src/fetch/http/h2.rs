//! HTTP/2, spoken over connections whose server chose it by ALPN.
//!
//! An origin where it cannot be had is asked over HTTP/1.1 from then on. What shows that: the server says so
//! (`HTTP_1_1_REQUIRED`, `INADEQUATE_SECURITY`), or what it sends breaks the rules of HTTP/2, so that another try would
//! bring no more. A stream that is reset or refused, and a connection that ends, show nothing of the kind.
//!
//! HTTP/2 has no head of lines: what is handed on is written in the form of HTTP/1.1, names in lower case as they came,
//! repeats of a header together, with the usual reason phrase. A `content-length` only says how long the body is to be:
//! the frames say how long it is. A body that ends short of it is taken as cut, a longer one as it came.

pub(super) mod session;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reqwest::StatusCode;

use session::Answer;

/// Origins remembered at most (about 200 bytes each), in two halves: when the younger is full, the older is forgotten.
pub const MAX_KNOWN_ORIGINS: usize = 8_192;

/// The origins where HTTP/2 cannot be had, and why.
#[derive(Debug, Default)]
pub(super) struct OldOrigins(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    young: HashMap<String, Arc<str>>,
    old: HashMap<String, Arc<str>>,
}

impl OldOrigins {
    pub(super) fn why(&self, origin: &str) -> Option<Arc<str>> {
        self.known().get(origin)
    }

    pub(super) fn learn(&self, origin: &str, why: &str) {
        self.known().put(origin, why);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn get(&self, origin: &str) -> Option<Arc<str>> {
        self.young.get(origin).or_else(|| self.old.get(origin)).cloned()
    }

    fn put(&mut self, origin: &str, why: &str) {
        if self.young.len() >= MAX_KNOWN_ORIGINS / 2 && !self.young.contains_key(origin) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(origin.to_owned(), why.into());
    }
}

/// A head in the form of HTTP/1.1, and its headers.
pub(super) fn received(answer: &Answer) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let reason = StatusCode::from_u16(answer.status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", answer.status).into_bytes();
    let mut headers = Vec::with_capacity(answer.headers.len());
    for (name, value) in &answer.headers {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
        headers.push((name.as_str().to_owned(), value.as_bytes().to_vec()));
    }
    head.extend_from_slice(b"\r\n");
    (head, headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_origins_are_forgotten_first() {
        let mut known = Known::default();
        for i in 0..3 * MAX_KNOWN_ORIGINS {
            known.put(&i.to_string(), "reset");
            assert!(known.young.len() + known.old.len() <= MAX_KNOWN_ORIGINS);
        }
        assert_eq!(known.get("0"), None);
        let last = (3 * MAX_KNOWN_ORIGINS - 1).to_string();
        known.put(&last, "broken");
        assert_eq!(known.get(&last).as_deref(), Some("broken"));
    }
}
