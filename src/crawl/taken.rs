//! What came of a visit: asked for its links, where the seen-set has a table behind it, and handed to the shard and the ledger.
//!
//! The table is the ledger's. A visit waits with its permit until the ledger has read it; meanwhile others go on, and what they
//! admit stands in the set's memory until it is durable, which the loop hears after the answer to whatever was asked before. So a
//! link is new when the table did not have it and nobody admitted it since.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

use tokio::sync::OwnedSemaphorePermit;

use super::CrawlError;
use super::drive::{Loop, Ready};
use super::keep::Order;
use crate::fetch::Fetcher;
use crate::hash::Fingerprint;
use crate::ledger::PageRows;
use crate::seen::Answer;
use crate::url::CrawlUrl;
use crate::visit::Visited;

/// A visit that waits for the table. There are never more than permits.
pub(super) struct Waiting {
    visited: Box<Visited>,
    permit: OwnedSemaphorePermit,
    prints: Vec<Fingerprint>,
    answers: Vec<Answer>,
    asked: Vec<Fingerprint>,
}

/// The visits that wait, by the number of their question.
#[derive(Default)]
pub(super) struct Asking {
    questions: u64,
    waiting: HashMap<u64, Waiting>,
}

impl Asking {
    fn keep(&mut self, waiting: Waiting) -> u64 {
        self.questions += 1;
        self.waiting.insert(self.questions, waiting);
        self.questions
    }

    fn take(&mut self, question: u64) -> Option<Waiting> {
        self.waiting.remove(&question)
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Leaves all that wait: their URLs stay pending.
    pub(super) fn leave(&mut self) {
        self.waiting.clear();
    }
}

impl<F: Fetcher> Loop<'_, F> {
    pub(super) fn take_in(&mut self, visited: Result<Ready, tokio::task::JoinError>) -> Result<(), CrawlError> {
        let (visited, permit) = match visited {
            Ok(visited) => visited,
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => return Err(CrawlError::Other(format!("a visit was lost: {error}"))),
        };
        let visited = visited?;
        let prints: Vec<_> = visited.done.links.iter().map(|link| link.print).collect();
        let mut answers = Vec::new();
        self.crawl.shard.seen().ask(&prints, &mut answers);
        if !answers.contains(&Answer::Ask) {
            let there: Vec<_> = answers.iter().map(|answer| *answer == Answer::Seen).collect();
            self.finish(*visited, permit, &prints, &there);
            return Ok(());
        }
        // in order, so that the table is read from one end to the other
        let asks = |(_, answer): &(_, &Answer)| **answer == Answer::Ask;
        let mut asked: Vec<_> = prints
            .iter()
            .zip(&answers)
            .filter(asks)
            .map(|(print, _)| *print)
            .collect();
        asked.sort_unstable();
        asked.dedup();
        let question = self.asking.keep(Waiting {
            visited,
            permit,
            prints,
            answers,
            asked: asked.clone(),
        });
        self.order(Order::Find { question, keys: asked })
    }

    /// The table has been asked: the visit goes on.
    pub(super) fn answered(&mut self, question: u64, there: &[bool]) {
        let Some(waiting) = self.asking.take(question) else {
            return;
        };
        let found: HashSet<_> = waiting
            .asked
            .iter()
            .zip(there)
            .filter(|(_, there)| **there)
            .map(|(key, _)| *key)
            .collect();
        let known = |(print, answer): (&Fingerprint, &Answer)| match answer {
            Answer::New => false,
            Answer::Seen => true,
            Answer::Ask => found.contains(print),
        };
        let there: Vec<_> = waiting.prints.iter().zip(&waiting.answers).map(known).collect();
        self.finish(*waiting.visited, waiting.permit, &waiting.prints, &there);
    }

    /// Takes in a visit. `there` says which of its links, by their fingerprints, were admitted when the table was asked; what was
    /// admitted since the set knows.
    fn finish(&mut self, visited: Visited, permit: OwnedSemaphorePermit, prints: &[Fingerprint], there: &[bool]) {
        self.crawl.shard.seen_mut().told(prints, there);
        let Visited {
            done,
            members,
            mut log,
            rows,
            address,
        } = visited;
        let now = self.crawl.clock.now();
        let widening = done
            .links
            .iter()
            .find(|link| link.seed.is_some())
            .map(|link| (done.work.url().clone(), link.url.clone(), link.origin));
        let fact = self.crawl.shard.finish(done, now);
        self.received += fact.delta.received;
        if fact.listed_left > 0 {
            let left = fact.listed_left;
            tracing::warn!(
                sitemap = address,
                left,
                "--max-sitemap-urls is reached: its other entries are left"
            );
        }
        let settled = &fact.delta.settled;
        let keep = !matches!(
            settled,
            crate::stats::Settled::Retry | crate::stats::Settled::Failed { .. }
        );
        if matches!(settled, crate::stats::Settled::Fetched { .. }) {
            self.fetched += 1;
            if let Some((from, to, origin)) = widening {
                self.widen(origin, &from, &to);
            }
        }
        for dropped in &fact.dropped {
            self.crawl.visits.judge.name_trap(&dropped.url, &address, dropped.rule);
        }
        if let (Some((rest, rule)), Some(log)) = (fact.rest, &mut log) {
            // what the host is owed from the end of this line's request on, so that a reader can check it
            let micros = u64::try_from(rest.as_micros()).unwrap_or(u64::MAX);
            log.extra.insert("restMicros".to_owned(), micros.into());
            log.extra.insert("restBy".to_owned(), rule.word().into());
        }
        self.last = address;
        let rows = if keep { rows } else { PageRows::default() };
        self.write(fact, members.filter(|_| keep), log, rows, permit);
    }

    /// A seed redirected to another host, which then belongs to the crawl like the seed's own.
    fn widen(&self, origin: u64, from: &CrawlUrl, to: &CrawlUrl) {
        let mut scope = self
            .crawl
            .visits
            .judge
            .scope
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if scope.seed_redirected(origin, from, to) {
            tracing::info!(url = to.href(), "a seed redirected here; the scope now covers it");
        }
    }
}
