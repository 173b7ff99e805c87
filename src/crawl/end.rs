//! How a crawl ends: by itself, at a limit, by a signal; and what is done last.

use std::time::Duration;

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

use super::drive::{DRAIN, Ended, Loop, Phase};
use super::keep::{Order, Word};
use super::{CrawlError, End, Stop, Wish, usage};
use crate::fetch::Fetcher;
use crate::ledger::Tail;

impl<F: Fetcher> Loop<'_, F> {
    /// A limit that is reached.
    pub(super) fn limit(&self) -> Option<End> {
        let limits = &self.crawl.limits;
        if limits.pages.is_some_and(|most| self.fetched >= most) {
            return Some(End::Limit("max-pages".to_owned()));
        }
        if limits.bytes.is_some_and(|most| self.received >= most) {
            return Some(End::Limit("max-bytes".to_owned()));
        }
        if limits.time.is_some_and(|most| self.wall() >= most) {
            return Some(End::Limit("max-time".to_owned()));
        }
        None
    }

    pub(super) fn wall(&self) -> Duration {
        Duration::from_micros(self.crawl.before.wall_us) + self.crawl.clock.started.elapsed()
    }

    /// Does what is wished.
    pub(super) fn obey(&mut self, wish: Wish) {
        if self.paused != wish.paused {
            self.paused = wish.paused;
            tracing::info!(
                "{}",
                if wish.paused {
                    "paused: nothing new is started"
                } else {
                    "goes on"
                }
            );
            self.show(true);
        }
        match wish.stop {
            None => {}
            Some(Stop::Signal(signal)) => self.drain(End::Stopped(signal)),
            Some(Stop::Asked) => self.drain(End::Asked),
        }
    }

    pub(super) fn drain(&mut self, end: End) {
        if matches!(self.phase, Phase::Running) {
            self.phase = Phase::Draining {
                end,
                until: Instant::now() + DRAIN,
            };
        }
    }

    /// The end, once nothing is in flight any more or a stop has waited long enough.
    pub(super) fn ended(&mut self) -> Option<End> {
        match &self.phase {
            Phase::Running => {
                let over = self.empty && self.visiting.is_empty() && self.permits_are_back();
                let spent = |what: &str| End::Limit(what.to_owned());
                over.then(|| {
                    if self.crawl.shard.any_spent() {
                        spent("max-pages-per-host")
                    } else if self.crawl.shard.any_seed_spent() {
                        spent("max-pages of a seed")
                    } else {
                        End::Finished
                    }
                })
            }
            Phase::Draining { end, until } => {
                let over = self.visiting.is_empty() && self.asking.len() == 0 || Instant::now() >= *until;
                over.then(|| {
                    self.visiting.abort_all();
                    end.clone()
                })
            }
        }
    }

    pub(super) fn permits_are_back(&self) -> bool {
        self.permits.available_permits() == self.crawl.concurrency
    }

    /// A last checkpoint, the run's totals, the archive closed.
    pub(super) async fn close(mut self, end: End, heard: &mut UnboundedReceiver<Word>) -> Result<Ended, CrawlError> {
        while self.visiting.join_next().await.is_some() {}
        self.asking.leave();
        // what the last visits brought must be on its way before anything waits for it to be durable
        self.tell();
        self.finish_checkpoint(heard).await?;
        self.begin_checkpoint()?;
        self.finish_checkpoint(heard).await?;
        let wall = u64::try_from(self.wall().as_micros()).unwrap_or(u64::MAX);
        let usage = usage::now();
        let before = self.crawl.before.clone();
        self.order(Order::Close(Box::new(move |tail: &mut Tail| {
            tail.wall_us = wall;
            tail.cpu_us = before.cpu_us + usage.cpu_us;
            tail.peak_rss = before.peak_rss.max(usage.peak_rss);
        })))?;
        loop {
            match heard.recv().await {
                Some(Word::Closed(ledger)) => {
                    self.tail = ledger.tail().clone();
                    self.show(true);
                    let last = self.snapshot();
                    return Ok(Ended { end, ledger, last });
                }
                word => self.hear(word)?,
            }
        }
    }

    async fn finish_checkpoint(&mut self, heard: &mut UnboundedReceiver<Word>) -> Result<(), CrawlError> {
        while self.copying.is_some() {
            if !self.look_after_the_filter()? {
                let word = heard.recv().await;
                self.hear(word)?;
            }
        }
        Ok(())
    }
}
