//! HTTP/2 through `reqwest`, its own redirects, retries and decoding off.
//!
//! An origin whose server chose HTTP/2 once (by ALPN) is remembered, and asked so from then on. One that chose it and
//! does not keep to it, or answers `HTTP_1_1_REQUIRED`, is asked over HTTP/1.1 from then on.
//!
//! HTTP/2 has no head of lines: what is handed on is written in the form of HTTP/1.1, names in lower case as they came,
//! repeats of a header together, with the usual reason phrase.

mod clients;
pub(super) mod notes;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use reqwest::{Client, Method, Url};

use super::super::body::Body;
use super::super::dns::Names;
use super::super::{Skipped, Truncated};
use super::fault::{self, Fault};
use super::head::{Extra, RequestHead};
use super::{HttpSettings, MAX_HEAD_BYTES, body, tls};
use clients::Clients;
use notes::Attempt;

/// Origins remembered at most (about 100 bytes each), in two halves: when the younger is full, the older is forgotten.
pub const MAX_KNOWN_ORIGINS: usize = 8_192;

/// What is known of an origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    /// HTTP/2; last seen at this address.
    H2(Option<IpAddr>),
    /// HTTP/1.1 alone, whatever it says.
    H1,
}

/// The client for HTTP/2.
pub(super) struct H2 {
    /// Keeps connections.
    clients: Clients,
    /// Keeps none.
    fresh: Client,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    young: HashMap<String, Speaks>,
    old: HashMap<String, Speaks>,
}

/// An answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: Vec<u8>,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Body,
    pub(super) truncated: Option<Truncated>,
    pub(super) skipped: Option<Skipped>,
    pub(super) remote: Option<IpAddr>,
}

/// Why there is none.
pub(super) enum NoAnswer {
    /// HTTP/1.1 is to be tried.
    Old,
    Fault(Fault),
}

/// One request.
pub(super) struct Ask<'a> {
    pub(super) url: &'a Url,
    pub(super) to: Option<IpAddr>,
    pub(super) head: &'a RequestHead,
    pub(super) extra: &'a Extra,
    /// When the first byte of an answer is due, and what that comes to for people.
    pub(super) head_due: Instant,
    pub(super) patience: Duration,
    /// When the body is due.
    pub(super) due: Instant,
    /// The body may be left out.
    pub(super) filter: bool,
}

impl H2 {
    pub(super) fn new(settings: &HttpSettings, names: &Names) -> Result<Self, String> {
        Ok(Self {
            clients: Clients::new(settings, names)?,
            fresh: client(settings, names, 0)?,
            known: Mutex::default(),
        })
    }

    pub(super) fn speaks(&self, origin: &str) -> Option<Speaks> {
        self.known().get(origin)
    }

    pub(super) fn learn(&self, origin: &str, speaks: Speaks) {
        self.known().put(origin, speaks);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request to an origin that speaks HTTP/2.
    pub(super) async fn exchange(
        &self,
        origin: &str,
        ask: &Ask<'_>,
        settings: &HttpSettings,
    ) -> Result<Answer, NoAnswer> {
        let host = ask.url.host_str().unwrap_or_default();
        let attempt = Attempt::new(ask.url.port_or_known_default(), ask.to);
        let headers = ask.head.map(ask.extra);
        let request = || {
            let mut request = reqwest::Request::new(Method::GET, ask.url.clone());
            request.headers_mut().clone_from(&headers);
            request
        };
        // a kept connection may lead to another address than the one asked for
        let elsewhere = match (ask.to, self.speaks(origin)) {
            (Some(to), Some(Speaks::H2(last))) => last != Some(to),
            _ => false,
        };
        let head = async {
            let client = if elsewhere {
                self.fresh.clone()
            } else {
                self.clients.current()
            };
            let outcome = notes::noting(&attempt, client.execute(request())).await;
            if !attempt.reused() && !elsewhere {
                self.clients.opened();
            }
            match outcome {
                Err(e) if (attempt.reused() && fault::before_any_answer(&e)) || fault::refused_unseen(&e) => {
                    notes::noting(&attempt, self.fresh.execute(request())).await
                }
                outcome => outcome,
            }
        };
        let Ok(outcome) = tokio::time::timeout_at(ask.head_due.into(), head).await else {
            return Err(NoAnswer::Fault(Fault::timeout(
                host,
                attempt.stuck_connecting(),
                ask.patience,
            )));
        };
        let mut response = match outcome {
            Ok(response) => response,
            Err(e) if fault::speaks_no_h2(&e) => return Err(NoAnswer::Old),
            Err(e) => return Err(NoAnswer::Fault(Fault::of(&e, host, &attempt, ask.patience))),
        };
        let remote = response.remote_addr().map(|remote| remote.ip());
        if let Some(ip) = remote.filter(|ip| !settings.addresses.allows(*ip)) {
            let private = super::super::dns::NameError::Private(ip);
            return Err(NoAnswer::Fault(Fault::name(host, &private)));
        }
        self.learn(origin, Speaks::H2(remote));
        let status = response.status().as_u16();
        let (head, headers) = received(&response);
        let skipped = ask.filter.then(|| settings.filter.judge(status, &headers)).flatten();
        let (body, truncated) = if skipped.is_some() {
            // dropping the answer resets its stream alone
            (Body::default(), None)
        } else {
            let gathered = body::gather_h2(&mut response, settings, ask.due).await;
            gathered.map_err(|error| NoAnswer::Fault(Fault::spool(&error)))?
        };
        Ok(Answer {
            status,
            head,
            headers,
            body,
            truncated,
            skipped,
            remote,
        })
    }
}

impl Known {
    fn get(&self, origin: &str) -> Option<Speaks> {
        self.young.get(origin).or_else(|| self.old.get(origin)).copied()
    }

    fn put(&mut self, origin: &str, speaks: Speaks) {
        if let Some(known) = self.young.get_mut(origin) {
            *known = speaks;
            return;
        }
        if self.young.len() >= MAX_KNOWN_ORIGINS / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(origin.to_owned(), speaks);
    }
}

/// The head in the form of HTTP/1.1, and its headers.
fn received(response: &reqwest::Response) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let status = response.status();
    let reason = status.canonical_reason().unwrap_or_default();
    let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_str()).into_bytes();
    let mut headers = Vec::with_capacity(response.headers().len());
    for (name, value) in response.headers() {
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
        headers.push((name.as_str().to_owned(), value.as_bytes().to_vec()));
    }
    head.extend_from_slice(b"\r\n");
    (head, headers)
}

fn client(settings: &HttpSettings, names: &Names, idle_per_host: usize) -> Result<Client, String> {
    Client::builder()
        .tls_backend_preconfigured(tls::config(&[b"h2"], settings.insecure_tls)?)
        .http2_prior_knowledge()
        .http2_max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX))
        .dns_resolver(notes::Resolver(names.clone()))
        .connector_layer(notes::NoteLayer)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        // names with several addresses share this time among them, so that a dead one does not eat it all
        .connect_timeout(settings.header_timeout)
        .pool_max_idle_per_host(idle_per_host)
        .pool_idle_timeout(settings.idle_timeout)
        .build()
        .map_err(|e| format!("the HTTP client cannot be set up: {}", fault::words(&e)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_origins_are_forgotten_first() {
        let mut known = Known::default();
        for i in 0..3 * MAX_KNOWN_ORIGINS {
            known.put(&i.to_string(), Speaks::H2(None));
            assert!(known.young.len() + known.old.len() <= MAX_KNOWN_ORIGINS);
        }
        assert_eq!(known.get("0"), None);
        let last = (3 * MAX_KNOWN_ORIGINS - 1).to_string();
        assert_eq!(known.get(&last), Some(Speaks::H2(None)));
        known.put(&last, Speaks::H1);
        assert_eq!(known.get(&last), Some(Speaks::H1));
    }
}
