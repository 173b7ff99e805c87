//! The loop: start what may start, take in what came back, tell the ledger, stop in order.
//!
//! One task owns the shard, so nothing here needs a lock. It never awaits a send. A start takes one of W permits; the
//! permit travels with the visit into the ledger and returns when the bytes are written (or held, 64 KiB a file at most),
//! so visits and unwritten records together are at most W, and a slow disk slows starting. Links end in the frontier,
//! which always accepts: no deadlock can form. `Next::Empty` with every permit back is the end of the crawl.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::copy::{Piece, copy};
use super::filter::Copying;
use super::grow::Growth;
use super::keep::{Order, Word, Written, keep};
use super::start::Offer;
use super::taken::Asking;
use super::{CrawlError, End, Snapshot, Stop, Wish};
use crate::clock::Time;
use crate::disk::Disk;
use crate::fetch::Fetcher;
use crate::hash::Fingerprint;
use crate::ledger::{Entry, Ledger, PageRows, Tail, WriteError};
use crate::shard::{Fact, Next, Settlement, Shard};
use crate::visit::{self, Visited, log};

/// Time between two snapshots for the watchers.
const VIEW_EVERY: Duration = Duration::from_millis(200);
/// Finished visits are told to the ledger together, so that its thread is not woken for each: so many of each hundred
/// permits at once,
const TOLD_TOGETHER_PERCENT: usize = 12;
/// and none later than this.
const TELL_WITHIN: Duration = Duration::from_millis(2);
/// How long a stop waits for requests in flight before it leaves them pending.
pub const DRAIN: Duration = Duration::from_secs(10);

/// The crawl's clock: the one place where it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Clock {
    pub(super) anchor: Time,
    pub(super) started: Instant,
}

impl Clock {
    pub(super) fn now(&self) -> Time {
        self.at(Instant::now())
    }

    fn at(&self, instant: Instant) -> Time {
        self.anchor + instant.duration_since(self.started)
    }

    fn instant(&self, time: Time) -> Instant {
        self.started + time.since(self.anchor)
    }
}

/// Limits that were asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    pub(super) pages: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) time: Option<Duration>,
}

/// Running → Draining → done.
#[derive(Debug)]
pub(super) enum Phase {
    Running,
    Draining { end: End, until: Instant },
}

/// Everything the loop is made of.
pub(super) struct Crawl<F> {
    pub(super) shard: Shard,
    pub(super) web: Arc<F>,
    pub(super) visits: Arc<visit::Settings>,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) clock: Clock,
    pub(super) concurrency: usize,
    pub(super) limits: Limits,
    pub(super) checkpoint_every: Duration,
    pub(super) growth: Growth,
    /// Totals of the runs before this one.
    pub(super) before: Tail,
}

/// What is left when the loop has ended.
pub(super) struct Ended {
    pub(super) end: End,
    pub(super) ledger: Box<Ledger>,
    pub(super) last: Snapshot,
}

/// Where the ledger's task runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A thread of its own.
    Thread,
    /// A task of the same runtime, for virtual time.
    Task,
}

/// What a visit brought, or the write that failed in it, with its permit.
pub(super) type Ready = (Result<Box<Visited>, WriteError>, OwnedSemaphorePermit);

pub(super) struct Loop<'a, F> {
    pub(super) crawl: Crawl<F>,
    pub(super) permits: Arc<Semaphore>,
    pub(super) visiting: JoinSet<Ready>,
    orders: UnboundedSender<Order>,
    pub(super) pieces: UnboundedSender<Piece>,
    /// Visits whose links the table of an exact seen-set is asked for.
    pub(super) asking: Asking,
    /// What is told to the ledger next, and when at the latest.
    untold: Vec<Written>,
    tell_by: Instant,
    view: &'a watch::Sender<Option<Snapshot>>,
    pub(super) phase: Phase,
    /// The newest totals that are durable.
    pub(super) tail: Tail,
    pub(super) fetched: u64,
    /// Body bytes received, durable or not: a limit must not wait for the disk.
    pub(super) received: u64,
    pub(super) copying: Option<Copying>,
    pub(super) next_checkpoint: Instant,
    next_view: Instant,
    pub(super) last: String,
    /// Nothing is left in the frontier.
    pub(super) empty: bool,
    /// The loop has nothing to start before this.
    wake: Option<Instant>,
    /// Something could start if there were a permit.
    starved: bool,
    /// Nothing new is to be started for now.
    pub(super) paused: bool,
}

/// Runs a crawl to its end. `seeds` are offered first, if they are new to the job.
pub(super) async fn drive<F: Fetcher>(
    crawl: Crawl<F>,
    ledger: Box<Ledger>,
    place: Place,
    seeds: Option<Offer>,
    view: &watch::Sender<Option<Snapshot>>,
    mut stop: watch::Receiver<Wish>,
) -> Result<Ended, CrawlError> {
    let (orders, order_queue) = unbounded_channel();
    let (words, mut heard) = unbounded_channel();
    let (pieces, piece_queue) = unbounded_channel();
    spawn_writer(place, "ledger", keep(ledger, order_queue, words.clone()))?;
    spawn_writer(place, "checkpoint", copy(Arc::clone(&crawl.disk), piece_queue, words))?;
    let now = Instant::now();
    let tail = crawl.before.clone();
    let mut this = Loop {
        permits: Arc::new(Semaphore::new(crawl.concurrency)),
        visiting: JoinSet::new(),
        orders,
        pieces,
        asking: Asking::default(),
        untold: Vec::new(),
        tell_by: now,
        view,
        phase: Phase::Running,
        fetched: tail.counters.urls.fetched,
        received: tail.counters.bytes.received,
        tail,
        copying: None,
        next_checkpoint: now + crawl.checkpoint_every,
        next_view: now,
        last: String::new(),
        empty: false,
        wake: None,
        starved: false,
        paused: false,
        crawl,
    };
    if let Some(seeds) = seeds {
        this.offer(seeds);
    }
    let ended = match this.run(&mut heard, &mut stop).await {
        Ok(end) => this.close(end, &mut heard).await,
        Err(error) => Err(error),
    };
    ended.map_err(|error| first_cause(error, &mut heard))
}

/// A ledger that failed says why and ends; an order may miss it before its word is heard.
fn first_cause(error: CrawlError, heard: &mut UnboundedReceiver<Word>) -> CrawlError {
    while let Ok(word) = heard.try_recv() {
        if let Word::Failed(cause) = word {
            return cause.into();
        }
    }
    error
}

fn spawn_writer(place: Place, name: &str, task: impl Future<Output = ()> + Send + 'static) -> Result<(), CrawlError> {
    match place {
        Place::Task => {
            tokio::spawn(task);
        }
        Place::Thread => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let runtime = runtime.map_err(|error| CrawlError::Other(format!("cannot start the writer: {error}")))?;
            std::thread::Builder::new()
                .name(name.to_owned())
                .spawn(move || runtime.block_on(task))
                .map_err(|error| CrawlError::Other(format!("cannot start the writer: {error}")))?;
        }
    }
    Ok(())
}

impl<F: Fetcher> Loop<'_, F> {
    fn offer(&mut self, seeds: Offer) {
        let now = self.crawl.clock.now();
        let mut fact = self.crawl.shard.offer_seeds(seeds.links, seeds.counts, now);
        fact.delta.blocked = seeds.blocked;
        let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
            unreachable!("nothing runs yet")
        };
        self.write(fact, None, None, PageRows::default(), permit);
    }

    async fn run(
        &mut self,
        heard: &mut UnboundedReceiver<Word>,
        stop: &mut watch::Receiver<Wish>,
    ) -> Result<End, CrawlError> {
        self.obey(*stop.borrow_and_update());
        loop {
            self.start()?;
            while self.look_after_the_filter()? {}
            self.show(false);
            self.tell_if_due();
            if let Some(end) = self.ended() {
                return Ok(end);
            }
            let wake = self.wake_at();
            let draining = matches!(self.phase, Phase::Draining { .. });
            let permits = Arc::clone(&self.permits);
            tokio::select! {
                biased;
                word = heard.recv() => self.hear(word)?,
                Some(visited) = self.visiting.join_next(), if !self.visiting.is_empty() => self.take_in(visited)?,
                changed = stop.changed(), if !draining => match changed {
                    Ok(()) => self.obey(*stop.borrow_and_update()),
                    Err(_) => self.obey(Wish { stop: Some(Stop::Signal(0)), paused: false }),
                },
                () = tokio::time::sleep_until(wake) => {}
                _ = permits.acquire(), if self.starved => {}
            }
            while let Some(visited) = self.visiting.try_join_next() {
                self.take_in(visited)?;
            }
            while let Ok(word) = heard.try_recv() {
                self.hear(Some(word))?;
            }
            self.grow()?;
            self.growth_done().await?;
        }
    }

    /// Starts everything that may start now.
    fn start(&mut self) -> Result<(), CrawlError> {
        self.wake = None;
        self.empty = false;
        self.starved = false;
        while matches!(self.phase, Phase::Running) {
            if let Some(end) = self.limit() {
                self.drain(end);
                break;
            }
            if self.paused {
                break;
            }
            let pages = self.crawl.limits.pages;
            if pages.is_some_and(|most| self.fetched + (self.visiting.len() + self.asking.len()) as u64 >= most) {
                break;
            }
            let Ok(permit) = Arc::clone(&self.permits).try_acquire_owned() else {
                self.starved = true;
                break;
            };
            let began = Instant::now();
            let now = self.crawl.clock.at(began);
            match self.crawl.shard.next(now) {
                Next::Start(work) => {
                    let (web, settings) = (Arc::clone(&self.crawl.web), Arc::clone(&self.crawl.visits));
                    let visit = visit::visit(*work, now, began, web, settings);
                    self.visiting.spawn(async move { (visit.await.map(Box::new), permit) });
                }
                Next::Settle(settlement) => self.settle(*settlement, now, permit),
                Next::Move(fact) => self.write(*fact, None, None, PageRows::default(), permit),
                Next::Refill {
                    host,
                    after,
                    most,
                    robots,
                } => self.order(Order::Refill {
                    host,
                    after,
                    most,
                    robots,
                })?,
                Next::NotBefore(due) => {
                    self.wake = Some(self.crawl.clock.instant(due));
                    break;
                }
                Next::Blocked => break,
                Next::Lost(why) => {
                    self.drain(End::Lost(why));
                    break;
                }
                Next::Empty => {
                    self.empty = true;
                    break;
                }
            }
        }
        Ok(())
    }

    fn wake_at(&self) -> Instant {
        let mut wake = self.next_view;
        if self.copying.is_none() && !self.crawl.growth.is_rebuilding() {
            wake = wake.min(self.next_checkpoint);
        }
        if let Some(due) = self.wake {
            wake = wake.min(due);
        }
        if !self.untold.is_empty() {
            wake = wake.min(self.tell_by);
        }
        if let Some(most) = self.crawl.limits.time {
            wake = wake.min(Instant::now() + most.saturating_sub(self.wall()));
        }
        match &self.phase {
            Phase::Draining { until, .. } => wake.min(*until),
            Phase::Running => wake,
        }
    }

    fn settle(&mut self, settlement: Settlement, now: Time, permit: OwnedSemaphorePermit) {
        let Settlement { fact, item, why, code } = settlement;
        let line = log::Line {
            at: now,
            status: code,
            size: None,
            url: item.url.href(),
            hops: &item.path.hops,
            via: item.path.via.as_deref(),
            mime: None,
            span: None,
            sha1: None,
            annotations: Vec::new(),
        };
        let mut entry = line.entry();
        entry.extra.insert("reason".to_owned(), why.into());
        self.write(fact, None, Some(entry), PageRows::default(), permit);
    }

    pub(super) fn write(
        &mut self,
        fact: Fact,
        members: Option<crate::archive::warc::Members>,
        log: Option<crate::ledger::LogEntry>,
        rows: PageRows,
        permit: OwnedSemaphorePermit,
    ) {
        self.crawl.growth.admit(&fact.prints);
        let entry = Box::new(Entry {
            fact,
            members,
            log,
            rows,
        });
        if self.untold.is_empty() {
            self.tell_by = Instant::now() + TELL_WITHIN;
        }
        let now = self.crawl.clock.now();
        self.untold.push(Written { entry, now, permit });
    }

    /// Tells the ledger what is finished.
    pub(super) fn tell(&mut self) {
        if !self.untold.is_empty() {
            // a ledger that has ended says why by a word, which ends the loop
            let _ = self.orders.send(Order::Write(std::mem::take(&mut self.untold)));
        }
    }

    fn tell_if_due(&mut self) {
        let many = self.untold.len() * 100 >= self.crawl.concurrency * TOLD_TOGETHER_PERCENT;
        if many || Instant::now() >= self.tell_by {
            self.tell();
        }
    }

    pub(super) fn order(&mut self, order: Order) -> Result<(), CrawlError> {
        self.tell(); // orders are served in turn
        self.orders
            .send(order)
            .map_err(|_| CrawlError::Other("the writer has ended".to_owned()))
    }

    pub(super) fn hear(&mut self, word: Option<Word>) -> Result<(), CrawlError> {
        match word {
            Some(Word::Durable { fact, tail }) => {
                self.crawl.shard.durable(fact);
                let admitted = (tail.admitted - self.crawl.before.admitted) / Fingerprint::BYTES as u64;
                self.crawl.shard.seen_mut().durable(admitted);
                self.tail = *tail;
            }
            Some(Word::Found { question, there }) => self.answered(question, &there),
            Some(Word::Refilled(answer)) => self.crawl.shard.refilled(answer.host, answer.rows, answer.robots),
            Some(Word::ChunkWritten(bytes)) => self.chunk_written(bytes),
            Some(Word::Published) => self.published()?,
            Some(Word::Failed(error)) => return Err(error.into()),
            Some(Word::Closed(_)) | None => return Err(CrawlError::Other("the writer has ended early".to_owned())),
        }
        Ok(())
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let shard = &self.crawl.shard;
        let now = self.crawl.clock.now();
        let run_time = self.crawl.clock.started.elapsed();
        let scheduled = shard.scheduled();
        Snapshot {
            counters: self.tail.counters.clone(),
            seen: shard.seen().account(),
            in_flight: shard.in_flight(),
            hosts_active: scheduled + shard.in_flight(),
            hosts_resting: scheduled,
            next_due: shard
                .next_due()
                .filter(|(due, _)| *due > now)
                .map(|(due, name)| (due, name.to_owned())),
            run_time,
            wall: Duration::from_micros(self.crawl.before.wall_us) + run_time,
            now,
            paused: self.paused,
            last: self.last.clone(),
        }
    }

    pub(super) fn show(&mut self, force: bool) {
        let now = Instant::now();
        if force || now >= self.next_view {
            self.next_view = now + VIEW_EVERY;
            self.view.send_replace(Some(self.snapshot()));
        }
    }
}
