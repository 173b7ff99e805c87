//! The loop's care for the filter: checkpoints copied between other work, and growth.

use std::time::Duration;

use tokio::time::Instant;

use super::CrawlError;
use super::copy::Piece;
use super::drive::{Loop, Phase};
use super::keep::Order;
use crate::fetch::Fetcher;
use crate::hash::Fingerprint;
use crate::ledger::Tail;
use crate::seen::snapshot::Sample;

/// Chunks of a checkpoint on their way to the disk.
const CHUNKS_AHEAD: usize = 2;

/// A checkpoint under way: Chunks → Durable → Publishing.
pub(super) struct Copying {
    stage: Stage,
    /// Longest time that one step kept the loop from inserting.
    pause: Duration,
}

enum Stage {
    /// Chunks are being copied; so many are on their way to the disk.
    Chunks {
        next: usize,
        chunks: usize,
        on_the_way: usize,
        spare: Vec<Vec<u8>>,
    },
    /// All are copied; the facts must become durable through `log_end` before the file may be published.
    Durable { log_end: u64, sample: Box<Sample> },
    /// The file is being published.
    Publishing,
}

impl<F: Fetcher> Loop<'_, F> {
    /// Copies the filter a chunk at a time between other work, so that insertion never stands still for long. Tells
    /// whether there is more to do at once.
    pub(super) fn look_after_the_filter(&mut self) -> Result<bool, CrawlError> {
        let durable = self.tail.admitted / Fingerprint::BYTES as u64;
        let admitted = self.crawl.growth.admitted();
        let Some(copying) = &mut self.copying else {
            let due = Instant::now() >= self.next_checkpoint && matches!(self.phase, Phase::Running);
            if due && !self.crawl.growth.is_rebuilding() {
                self.begin_checkpoint()?;
            }
            return Ok(false);
        };
        let began = std::time::Instant::now();
        let piece = match &mut copying.stage {
            Stage::Chunks {
                next,
                chunks,
                on_the_way,
                spare,
            } if *next < *chunks => {
                if *on_the_way >= CHUNKS_AHEAD {
                    return Ok(false);
                }
                let mut bytes = spare.pop().unwrap_or_default();
                self.crawl.shard.seen().copy_chunk(*next, &mut bytes);
                *next += 1;
                *on_the_way += 1;
                Piece::Chunk(bytes)
            }
            Stage::Chunks { .. } => {
                let seen = self.crawl.shard.seen_mut();
                seen.thaw();
                let sample = Box::new(seen.sample());
                copying.stage = Stage::Durable {
                    log_end: admitted,
                    sample,
                };
                copying.pause = copying.pause.max(began.elapsed());
                return Ok(true);
            }
            Stage::Durable { log_end, .. } if durable < *log_end => return Ok(false),
            Stage::Durable { log_end, sample } => {
                let (log_end, sample) = (*log_end, std::mem::take(sample));
                copying.stage = Stage::Publishing;
                Piece::Publish { log_end, sample }
            }
            Stage::Publishing => return Ok(false),
        };
        copying.pause = copying.pause.max(began.elapsed());
        self.piece(piece)?;
        Ok(true)
    }

    fn piece(&self, piece: Piece) -> Result<(), CrawlError> {
        let ended = |_| CrawlError::Other("the writer of checkpoints has ended".to_owned());
        self.pieces.send(piece).map_err(ended)
    }

    pub(super) fn begin_checkpoint(&mut self) -> Result<(), CrawlError> {
        let began = std::time::Instant::now();
        let seen = self.crawl.shard.seen_mut();
        seen.freeze();
        let (shape, chunks) = (seen.shape(), seen.chunks());
        self.copying = Some(Copying {
            stage: Stage::Chunks {
                next: 0,
                chunks,
                on_the_way: 0,
                spare: Vec::new(),
            },
            pause: began.elapsed(),
        });
        self.piece(Piece::Begin {
            shape,
            log_start: self.crawl.growth.admitted(),
            identity: self.crawl.visits.judge.identity.stamp(),
        })
    }

    /// A chunk is on the disk; its memory serves the next one.
    pub(super) fn chunk_written(&mut self, bytes: Vec<u8>) {
        if let Some(Copying {
            stage: Stage::Chunks { on_the_way, spare, .. },
            ..
        }) = &mut self.copying
        {
            *on_the_way -= 1;
            spare.push(bytes);
        }
    }

    /// The checkpoint is published.
    pub(super) fn published(&mut self) -> Result<(), CrawlError> {
        let pause = self.copying.take().map_or(Duration::ZERO, |copying| copying.pause);
        let pause_us = u64::try_from(pause.as_micros()).unwrap_or(u64::MAX);
        self.next_checkpoint = Instant::now() + self.crawl.checkpoint_every;
        self.order(Order::Note(Box::new(move |tail: &mut Tail| {
            tail.checkpoints += 1;
            tail.checkpoint_pause_us = tail.checkpoint_pause_us.max(pause_us);
        })))
    }

    pub(super) fn grow(&mut self) -> Result<(), CrawlError> {
        let copying = self.copying.is_some();
        let durable = self.tail.admitted;
        let crawl = &mut self.crawl;
        crawl.growth.look(&mut crawl.shard, &crawl.disk, durable, copying)
    }

    pub(super) async fn growth_done(&mut self) -> Result<(), CrawlError> {
        if self.copying.is_none() {
            self.crawl.growth.finish(&mut self.crawl.shard).await?;
        }
        Ok(())
    }
}
