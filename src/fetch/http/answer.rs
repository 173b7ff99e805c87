//! The body behind the head of an answer, over either version, and what is then done with the connection.

use bytes::BytesMut;

use super::super::Response;
use super::super::Skipped;
use super::super::body::Body;
use super::fault::Fault;
use super::h1::framing::{Doubt, Framing, keeps_connection};
use super::h1::head::{Head, Version};
use super::h1::transfer::Undo;
use super::h2::session::{Answer, Session};
use super::head::Written;
use super::pool::Line;
use super::stream::Connection;
use super::{Ask, HttpFetcher, MAX_DRAINED_BYTES, body, h2};

impl HttpFetcher {
    pub(super) async fn read_h1(
        &self,
        ask: &Ask<'_>,
        head: Head,
        mut connection: Connection,
        mut buffer: BytesMut,
        written: Written,
    ) -> Result<Response, Fault> {
        let framing = Framing::of(&head);
        let doubt = Doubt::of(&head, &framing);
        let framing = (framing, Undo::of(&head), doubt);
        let due = ask.began + self.settings.timeout;
        let skipped = self.skips(ask.filter, head.status, &head.headers);
        let gathered = if skipped.is_some() && framing.0.announced().is_none_or(|length| length > MAX_DRAINED_BYTES) {
            body::Gathered::nothing()
        } else {
            let gathered = body::gather(&mut connection.stream, &mut buffer, framing, &self.settings, due).await;
            gathered.map_err(|error| Fault::spool(&error))?
        };
        self.pool.spare(buffer);
        let version = match head.version {
            Version::Http10 => "http/1.0",
            Version::Http11 => "http/1.1",
        };
        let response = Response {
            status: head.status,
            truncated: gathered.truncated.filter(|_| skipped.is_none()),
            body: if skipped.is_none() {
                gathered.body
            } else {
                Body::default()
            },
            skipped,
            remote: connection.remote,
            request_head: written.record(),
            protocols: std::iter::once(version).chain(connection.tls).collect(),
            cipher: connection.cipher,
            ..Response::default()
        };
        if gathered.clean && keeps_connection(&head) {
            self.pool.put(&ask.origin, Line::H1(connection));
        }
        Ok(Response {
            head: head.bytes,
            headers: head.headers,
            ..response
        })
    }

    pub(super) async fn read_h2(
        &self,
        ask: &Ask<'_>,
        answer: &Answer,
        mut session: Box<Session>,
        written: Written,
    ) -> Result<Response, Fault> {
        let due = ask.began + self.settings.timeout;
        let (head, headers) = h2::received(answer);
        let (skipped, announced) = (self.skips(ask.filter, answer.status, &headers), answer.announced());
        let gathered = if skipped.is_some() && announced.is_none_or(|length| length > MAX_DRAINED_BYTES) {
            // the stream ends, and the connection goes on
            let left = tokio::time::timeout_at(due.into(), session.leave()).await;
            let clean = matches!(left, Ok(Ok(())));
            body::Gathered {
                clean,
                ..body::Gathered::nothing()
            }
        } else {
            let gathered = body::gather_h2(&mut session, announced, &self.settings, due).await;
            gathered.map_err(|error| Fault::spool(&error))?
        };
        let response = Response {
            status: answer.status,
            head,
            headers,
            truncated: gathered.truncated.filter(|_| skipped.is_none()),
            body: if skipped.is_none() {
                gathered.body
            } else {
                Body::default()
            },
            skipped,
            remote: session.remote,
            request_head: written.record(),
            protocols: std::iter::once("h2").chain(session.tls).collect(),
            cipher: session.cipher,
            ..Response::default()
        };
        if gathered.clean && session.may_go_on() {
            self.pool.put(&ask.origin, Line::H2(session));
        }
        Ok(response)
    }

    /// Why the body of an answer is not to be had, if so.
    fn skips(&self, filter: bool, status: u16, headers: &[(String, Vec<u8>)]) -> Option<Skipped> {
        filter.then(|| self.settings.filter.judge(status, headers)).flatten()
    }
}
