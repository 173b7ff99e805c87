//! Growth of the filter: a further layer at once, then one larger filter made from the admission log.
//!
//! A chain of layers is only the bridge: each lookup asks all of them. Beside the crawl a filter of the right size is
//! filled from the log up to a position P that is durable; the keys admitted since P are remembered and set at the end, and the new
//! filter takes the place of the chain.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use tokio::task::JoinHandle;

use super::{CrawlError, usage};
use crate::checkpoint;
use crate::disk::Disk;
use crate::hash::{Fingerprint, HashKey};
use crate::ledger::Admissions;
use crate::seen::{self, Kind, SeenSet};
use crate::shard::Shard;

/// The new filter is made for so many times the keys there are.
const GROWTH: u64 = 4;
/// Keys remembered while a filter is rebuilt, 16 bytes each; beyond it the rebuild is given up and the chain stays.
pub const REMEMBERED_KEYS: usize = 4 << 20;

/// The state of growth.
pub(super) struct Growth {
    kind: Kind,
    key: HashKey,
    fp: f64,
    admissions: Admissions,
    /// The set said that it cannot grow further.
    stuck: bool,
    state: State,
}

enum State {
    Idle,
    /// A layer was added; the log must become durable up to `from`.
    Waiting {
        from: u64,
        since: Vec<Fingerprint>,
    },
    /// The new filter is being filled.
    Building {
        since: Vec<Fingerprint>,
        task: JoinHandle<io::Result<Box<dyn SeenSet>>>,
    },
}

impl Growth {
    pub(super) fn new(kind: Kind, key: HashKey, fp: f64, admissions: Admissions) -> Self {
        Self {
            kind,
            key,
            fp,
            admissions,
            stuck: false,
            state: State::Idle,
        }
    }

    /// The position in the log: its records so far.
    pub(super) fn admitted(&self) -> u64 {
        self.admissions.records
    }

    /// Is a larger filter being filled or about to be?
    pub(super) fn is_rebuilding(&self) -> bool {
        !matches!(self.state, State::Idle)
    }

    /// Notes keys that were admitted, in order.
    pub(super) fn admit(&mut self, prints: &[Fingerprint]) {
        self.admissions.records += prints.len() as u64;
        let (State::Waiting { since, .. } | State::Building { since, .. }) = &mut self.state else {
            return;
        };
        if since.len() + prints.len() > REMEMBERED_KEYS {
            tracing::warn!("the filter's rebuild fell behind and is given up; its layers stay until the next one");
            self.state = State::Idle;
            return;
        }
        since.extend_from_slice(prints);
    }

    /// Grows a full filter, and begins the rebuild once the log is durable far enough (`durable` in bytes).
    ///
    /// # Errors
    /// If it is full and cannot grow: at a rate that rises without end a crawl would lose ever more pages.
    pub(super) fn look(
        &mut self,
        shard: &mut Shard,
        disk: &Arc<dyn Disk>,
        durable: u64,
        copying: bool,
    ) -> Result<(), CrawlError> {
        if shard.seen().is_full() && !self.stuck {
            let account = shard.seen().account();
            match add_layer(shard.seen_mut()) {
                Ok(()) => tracing::info!(
                    items = account.items,
                    capacity = account.capacity,
                    "the filter is full: a layer was added"
                ),
                Err(error) if self.is_rebuilding() && error.kind() != ErrorKind::OutOfMemory => {
                    self.stuck = true;
                    tracing::warn!(%error, "the filter is full: its error rate rises until a larger one is made");
                }
                Err(error) => return Err(full(&account, &error)),
            }
            if self.kind.is_rebuilt() && matches!(self.state, State::Idle) {
                self.state = State::Waiting {
                    from: self.admissions.records,
                    since: Vec::new(),
                };
            }
        }
        let State::Waiting { from, since } = &mut self.state else {
            return Ok(());
        };
        if copying || durable < *from * Fingerprint::BYTES as u64 {
            return Ok(());
        }
        let (kind, key, fp) = (self.kind, self.key, self.fp);
        let admissions = Admissions {
            records: *from,
            ..self.admissions.clone()
        };
        let disk = Arc::clone(disk);
        let task = tokio::task::spawn_blocking(move || {
            let capacity = admissions.records * GROWTH;
            there_is_memory(seen::first_bytes(kind, capacity, fp))?;
            let mut seen = seen::make(kind, key, capacity, fp)?;
            checkpoint::replay(disk.as_ref(), seen.as_mut(), 0, true, &admissions)?;
            Ok(seen)
        });
        self.state = State::Building {
            since: std::mem::take(since),
            task,
        };
        Ok(())
    }

    /// Puts a finished filter in place.
    pub(super) async fn finish(&mut self, shard: &mut Shard) -> Result<(), CrawlError> {
        if !matches!(&self.state, State::Building { task, .. } if task.is_finished()) {
            return Ok(());
        }
        let State::Building { since, task } = std::mem::replace(&mut self.state, State::Idle) else {
            return Ok(());
        };
        match task.await {
            Ok(Ok(mut seen)) => {
                seen.replay(&since);
                seen.restore_sample(shard.seen().sample());
                let account = seen.account();
                tracing::info!(
                    items = account.items,
                    capacity = account.capacity,
                    "one larger filter took the layers' place"
                );
                shard.replace_seen(seen);
                self.stuck = false;
                Ok(())
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "a larger filter could not be made; the layers stay");
                self.stuck = false;
                Ok(())
            }
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(error) => Err(CrawlError::Other(format!("the filter's rebuild was lost: {error}"))),
        }
    }
}

/// Adds a layer if there is memory for it.
fn add_layer(seen: &mut dyn SeenSet) -> io::Result<()> {
    there_is_memory(seen.next_layer_bytes())?;
    seen.add_layer()
}

/// The system hands out memory that it does not have, and ends who touches it.
fn there_is_memory(bytes: u64) -> io::Result<()> {
    match usage::available() {
        Some(free) if bytes > free => Err(io::Error::new(
            ErrorKind::OutOfMemory,
            format!(
                "{} MiB more are needed, {} MiB are free",
                bytes.div_ceil(1 << 20),
                free >> 20
            ),
        )),
        _ => Ok(()),
    }
}

fn full(account: &seen::Account, error: &io::Error) -> CrawlError {
    CrawlError::State(format!(
        "the seen-set is full: it holds {} URLs and is made for {} at a false-positive rate of {}; {error}; the job's state \
         is kept: free memory and run the same command again",
        account.items, account.capacity, account.fp_target
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_has_not_is_refused_with_the_numbers() {
        there_is_memory(0).unwrap();
        let error = there_is_memory(1 << 50).unwrap_err();
        assert!(
            error.to_string().starts_with("1073741824 MiB more are needed"),
            "{error}"
        );
        let mut seen = seen::make(Kind::Bloom, HashKey([1; 16]), 10, 0.01).unwrap();
        let text = full(&seen.account(), &error).to_string();
        assert!(
            text.contains("holds 0 URLs and is made for 10 at a false-positive rate of 0.01"),
            "{text}"
        );
        add_layer(seen.as_mut()).unwrap();
    }
}
