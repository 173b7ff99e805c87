//! The checkpoint's own task: writes the chunks of a copy beside the crawl, so that a filter of gigabytes on a slow disk
//! never stands in the way of the ledger.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::keep::Word;
use crate::checkpoint::Writing;
use crate::disk::Disk;
use crate::ledger::WriteError;
use crate::seen::snapshot::{Sample, Shape};

/// A piece of a checkpoint. Few are under way at a time: the loop sends a chunk when an earlier one was written.
pub(super) enum Piece {
    /// Begin with a filter of this shape at this position of the log.
    Begin {
        shape: Shape,
        log_start: u64,
        identity: u32,
    },
    /// A chunk.
    Chunk(Vec<u8>),
    /// The end; the facts are durable through `log_end`.
    Publish { log_end: u64, sample: Box<Sample> },
}

/// Writes checkpoints until the loop ends or a write fails.
pub(super) async fn copy(disk: Arc<dyn Disk>, mut pieces: UnboundedReceiver<Piece>, words: UnboundedSender<Word>) {
    let mut writing = None;
    while let Some(piece) = pieces.recv().await {
        let word = match write(&disk, &mut writing, piece) {
            Ok(None) => continue,
            Ok(Some(word)) => word,
            Err(source) => Word::Failed(WriteError {
                what: "state/filter.tmp".to_owned(),
                source,
            }),
        };
        if words.send(word).is_err() {
            return;
        }
    }
}

fn write(disk: &Arc<dyn Disk>, writing: &mut Option<Writing>, piece: Piece) -> std::io::Result<Option<Word>> {
    match piece {
        Piece::Begin {
            shape,
            log_start,
            identity,
        } => {
            *writing = Some(Writing::begin(Arc::clone(disk), &shape, log_start, identity)?);
            Ok(None)
        }
        Piece::Chunk(mut bytes) => {
            if let Some(writing) = writing {
                writing.chunk(&mut bytes)?;
            }
            Ok(Some(Word::ChunkWritten(bytes)))
        }
        Piece::Publish { log_end, sample } => {
            if let Some(writing) = writing.take() {
                writing.publish(log_end, &sample)?;
            }
            Ok(Some(Word::Published))
        }
    }
}
