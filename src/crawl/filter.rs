//! The loop's care for the filter: checkpoints copied between other work, and growth.

use std::time::Duration;

use tokio::time::Instant;

use super::CrawlError;
use super::drive::{Loop, Phase};
use super::keep::Order;
use crate::fetch::Fetcher;
use crate::shard::Fact;

/// Chunks of a checkpoint on their way to the disk.
pub(super) const CHUNKS_AHEAD: usize = 2;

/// A checkpoint under way.
pub(super) struct Copying {
    pub(super) next: usize,
    pub(super) chunks: usize,
    pub(super) on_the_way: usize,
    pub(super) pause: Duration,
    pub(super) publishing: bool,
}

impl<F: Fetcher> Loop<'_, F> {
    /// Copies the filter a chunk at a time between other work, so that insertion never stands still for long.
    pub(super) fn look_after_the_filter(&mut self) -> Result<(), CrawlError> {
        let Some(copying) = &mut self.copying else {
            let due = Instant::now() >= self.next_checkpoint && matches!(self.phase, Phase::Running);
            return if due && !self.crawl.growth.is_rebuilding() {
                self.begin_checkpoint()
            } else {
                Ok(())
            };
        };
        if copying.publishing || copying.on_the_way >= CHUNKS_AHEAD {
            return Ok(());
        }
        let began = std::time::Instant::now();
        if copying.next < copying.chunks {
            let mut bytes = Vec::new();
            self.crawl.shard.seen().copy_chunk(copying.next, &mut bytes);
            copying.next += 1;
            copying.on_the_way += 1;
            copying.pause = copying.pause.max(began.elapsed());
            return self.order(Order::Chunk(bytes));
        }
        let sample = Box::new(self.crawl.shard.seen().sample());
        copying.pause = copying.pause.max(began.elapsed());
        copying.publishing = true;
        let pause_us = u64::try_from(copying.pause.as_micros()).unwrap_or(u64::MAX);
        self.order(Order::Publish {
            log_end: self.crawl.growth.admitted(),
            sample,
            pause_us,
        })
    }

    pub(super) fn begin_checkpoint(&mut self) -> Result<(), CrawlError> {
        let seen = self.crawl.shard.seen();
        let (shape, chunks) = (seen.shape(), seen.chunks());
        self.copying = Some(Copying {
            next: 0,
            chunks,
            on_the_way: 0,
            pause: Duration::ZERO,
            publishing: false,
        });
        let identity = self.crawl.visits.judge.identity.version;
        self.order(Order::Begin {
            shape,
            log_start: self.crawl.growth.admitted(),
            identity,
        })
    }

    pub(super) fn growth_note(&mut self, fact: &Fact) {
        self.crawl.growth.admit(&fact.prints);
    }

    pub(super) fn grow(&mut self) {
        let copying = self.copying.is_some();
        self.crawl
            .growth
            .look(&mut self.crawl.shard, &self.crawl.disk, self.tail.admitted, copying);
    }

    pub(super) async fn growth_done(&mut self) -> Result<(), CrawlError> {
        if self.copying.is_none() {
            self.crawl.growth.finish(&mut self.crawl.shard).await?;
        }
        Ok(())
    }
}
