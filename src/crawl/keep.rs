//! The ledger's own task: takes orders in turn, syncs in groups, says what is durable.
//!
//! It runs on a thread of its own, so that no stall of the store or the disk holds up a fetch; in virtual time it is a
//! task beside the loop.

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use crate::clock::Time;
use crate::frontier::{HostId, Place};
use crate::hash::Fingerprint;
use crate::ledger::{Entry, Ledger, Refilled, SYNC_EVERY, Tail, WriteError};
use crate::url::Scheme;

/// What came of one visit, with the permit that returns when it is written.
pub(super) struct Written {
    pub(super) entry: Box<Entry>,
    pub(super) now: Time,
    pub(super) permit: OwnedSemaphorePermit,
}

/// What the loop asks of the ledger. The channel is bounded by the permits that travel in it.
pub(super) enum Order {
    /// Write this; the permit is given back when the bytes are written.
    Write(Vec<Written>),
    /// Read a host's rows.
    Refill {
        host: HostId,
        after: Option<Place>,
        most: usize,
        robots: Option<Scheme>,
    },
    /// Look keys up in the table of an exact seen-set.
    Find { question: u64, keys: Vec<Fingerprint> },
    /// Add to the totals; written with the next batch.
    Note(Box<dyn FnOnce(&mut Tail) + Send>),
    /// Add the run's totals, make everything durable, close the archive and end.
    Close(Box<dyn FnOnce(&mut Tail) + Send>),
}

/// What the writers tell the loop.
pub(super) enum Word {
    /// Everything up to this fact is durable.
    Durable { fact: u64, tail: Box<Tail> },
    /// The answer to a refill.
    Refilled(Refilled),
    /// Which of the keys asked for are in the table.
    Found { question: u64, there: Vec<bool> },
    /// A chunk of the checkpoint is written; its memory comes back.
    ChunkWritten(Vec<u8>),
    /// The checkpoint is published.
    Published,
    /// A write failed; the crawl ends.
    Failed(WriteError),
    /// Everything is durable and closed.
    Closed(Box<Ledger>),
}

/// Serves orders until [`Order::Close`], a failure, or the end of the loop.
pub(super) async fn keep(mut ledger: Box<Ledger>, mut orders: UnboundedReceiver<Order>, words: UnboundedSender<Word>) {
    let mut due: Option<Instant> = None;
    let mut told = 0;
    let (began, wall_before) = (Instant::now(), ledger.tail().wall_us);
    loop {
        let order = match due {
            Some(at) if ledger.is_loose() => tokio::select! {
                biased;
                () = tokio::time::sleep_until(at) => None,
                order = orders.recv() => match order {
                    Some(order) => Some(order),
                    None => return,
                },
            },
            _ => match orders.recv().await {
                Some(order) => Some(order),
                None => return,
            },
        };
        // with every batch, so that a killed run counts too
        let run_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        ledger.note(|tail| tail.wall_us = wall_before.saturating_add(run_us));
        let result = match order {
            None => ledger.sync(),
            Some(Order::Close(totals)) => match close(&mut ledger, totals) {
                Ok(()) => {
                    let _ = words.send(Word::Closed(ledger));
                    return;
                }
                Err(error) => Err(error),
            },
            Some(order) => serve(&mut ledger, order, &words),
        };
        if let Err(error) = result {
            let _ = words.send(Word::Failed(error));
            return;
        }
        if !ledger.is_loose() {
            due = None;
            // whatever made it durable: the time, a checkpoint or a full WARC file
            if ledger.written() > told {
                told = ledger.written();
                let _ = words.send(Word::Durable {
                    fact: told,
                    tail: Box::new(ledger.tail().clone()),
                });
            }
        } else if due.is_none() {
            due = Some(Instant::now() + SYNC_EVERY);
        }
    }
}

fn serve(ledger: &mut Ledger, order: Order, words: &UnboundedSender<Word>) -> Result<(), WriteError> {
    match order {
        Order::Write(entries) => {
            for Written { entry, now, permit } in entries {
                ledger.write(*entry, now)?;
                drop(permit);
            }
        }
        Order::Refill {
            host,
            after,
            most,
            robots,
        } => {
            let refilled = ledger.refill(host, after, most, robots)?;
            let _ = words.send(Word::Refilled(refilled));
        }
        Order::Find { question, keys } => {
            let there = ledger.has(&keys)?;
            let _ = words.send(Word::Found { question, there });
        }
        Order::Note(change) => ledger.note(change),
        Order::Close(_) => unreachable!("served by the caller"),
    }
    Ok(())
}

fn close(ledger: &mut Ledger, totals: Box<dyn FnOnce(&mut Tail) + Send>) -> Result<(), WriteError> {
    ledger.note(totals);
    ledger.close_archive()?;
    ledger.sync_tail()
}
