//! What a person sees while a crawl runs: a bar on a terminal, a plain line now and then elsewhere, nothing when quiet.
//!
//! Everything that is written to standard error goes through one [`Screen`], so that a warning never tears the bar.

use std::collections::VecDeque;
use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tracing_subscriber::fmt::MakeWriter;

use crate::crawl::Snapshot;
use crate::report::words::{bytes, per_second, percent, rate, share, span, span_of_lost, thousands};
use crate::seen::Account;

/// How often the bar is drawn.
const BAR_EVERY: Duration = Duration::from_millis(250);
/// How often a plain line is written.
const LINE_EVERY: Duration = Duration::from_secs(10);
/// The span over which "now" is measured.
const NOW_SPAN: Duration = Duration::from_secs(10);
/// Most points kept of that span.
const MAX_POINTS: usize = 64;
/// The shortest wait that is worth a word.
const SHORT_WAIT: Duration = Duration::from_secs(2);

/// Standard error, with or without a bar at its foot. Clones share the bar.
#[derive(Debug, Clone)]
pub struct Screen {
    quiet: bool,
    bars: Option<Bars>,
}

#[derive(Debug, Clone)]
struct Bars {
    all: MultiProgress,
    upper: ProgressBar,
    lower: ProgressBar,
}

impl Screen {
    /// A bar if standard error is a terminal, plain lines if it is not, neither if `quiet`.
    #[must_use]
    pub fn new(quiet: bool) -> Self {
        let bars = (!quiet && io::stderr().is_terminal()).then(Bars::new);
        Self { quiet, bars }
    }

    /// Does a bar stand on it?
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.bars.is_some()
    }

    /// Writes a line above the bar; not when quiet.
    pub fn say(&self, line: &str) {
        if !self.quiet {
            self.write(format!("{line}\n").as_bytes());
        }
    }

    /// Writes a line above the bar, quiet or not.
    pub fn error(&self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    fn write(&self, bytes: &[u8]) {
        // nobody can be told that standard error is gone
        let write = || drop(io::stderr().write_all(bytes));
        match &self.bars {
            Some(bars) => bars.all.suspend(write),
            None => write(),
        }
    }

    /// Shows the crawl until `view`'s sender is dropped.
    pub async fn show(self, mut view: watch::Receiver<Option<Snapshot>>) {
        if self.quiet {
            return;
        }
        let mut tick = interval(if self.bars.is_some() { BAR_EVERY } else { LINE_EVERY });
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // the first tick comes at once, when there is nothing to tell
        tick.tick().await;
        let mut pace = Pace::default();
        let mut closed = view.clone();
        loop {
            tokio::select! {
                _ = tick.tick() => {}
                () = until_closed(&mut closed) => break,
            }
            if let Some(snapshot) = view.borrow_and_update().as_ref() {
                let now = pace.see(snapshot.run_time, snapshot.counters.urls.fetched);
                self.draw(snapshot, now);
            }
        }
        if let Some(bars) = &self.bars {
            bars.upper.finish_and_clear();
            bars.lower.finish_and_clear();
        }
    }

    fn draw(&self, snapshot: &Snapshot, now: f64) {
        let (work, state) = describe(snapshot, now);
        match &self.bars {
            Some(bars) => {
                bars.upper.set_message(work);
                bars.upper.tick();
                bars.lower.set_message(state);
            }
            None => self.say(&format!("{work}; {state}")),
        }
    }
}

async fn until_closed(view: &mut watch::Receiver<Option<Snapshot>>) {
    while view.changed().await.is_ok() {}
}

impl Bars {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let bar = |template| {
            let bar = all.add(ProgressBar::no_length());
            bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner()));
            bar
        };
        let (upper, lower) = (bar("{spinner} {wide_msg}"), bar("  {wide_msg}"));
        Self { all, upper, lower }
    }
}

/// Lets the log write its warnings above the bar.
impl<'a> MakeWriter<'a> for Screen {
    type Writer = ScreenWriter<'a>;

    fn make_writer(&'a self) -> ScreenWriter<'a> {
        ScreenWriter(self)
    }
}

/// Writes above the bar.
#[derive(Debug)]
pub struct ScreenWriter<'a>(&'a Screen);

impl Write for ScreenWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Pages a second over the last [`NOW_SPAN`].
#[derive(Debug, Default)]
struct Pace {
    points: VecDeque<(Duration, u64)>,
}

impl Pace {
    fn see(&mut self, at: Duration, fetched: u64) -> f64 {
        self.points.push_back((at, fetched));
        // the oldest point lies just beyond the span, so that slow crawls are measured too
        while self
            .points
            .get(1)
            .is_some_and(|(second, _)| at.saturating_sub(*second) >= NOW_SPAN)
            || self.points.len() > MAX_POINTS
        {
            self.points.pop_front();
        }
        self.points.front().map_or(0.0, |(from, count)| {
            per_second(fetched.saturating_sub(*count), at.saturating_sub(*from))
        })
    }
}

/// What was done, and how things stand.
fn describe(snapshot: &Snapshot, now: f64) -> (String, String) {
    let urls = &snapshot.counters.urls;
    let average = per_second(urls.fetched, snapshot.wall);
    let hint = hint(snapshot, if now > 0.0 { now } else { average });
    let work = format!(
        "{} pages, {}/s now, {}/s on average, {} queued, {} failed, {}",
        thousands(urls.fetched),
        rate(now),
        rate(average),
        thousands(urls.pending),
        thousands(urls.failed),
        bytes(snapshot.counters.bytes.received),
    );
    let state = format!(
        "{} hosts ({} with work, {} resting), {} in flight{}, filter {} full{}",
        thousands(snapshot.counters.hosts),
        thousands(snapshot.hosts_active as u64),
        thousands(snapshot.hosts_resting as u64),
        snapshot.in_flight,
        hint.map_or_else(String::new, |hint| format!(", {hint}")),
        percent(share(snapshot.seen.items, snapshot.seen.capacity)),
        lost(&snapshot.seen),
    );
    (work, state)
}

/// What the filter has lost, once that is a URL or more.
fn lost(seen: &Account) -> String {
    if seen.lost_estimate < 1.0 {
        return String::new();
    }
    let (rate, lost) = (percent(seen.fp_predicted), seen.lost_estimate);
    format!(" ({rate} wrong, about {lost:.0} URLs lost{})", span_of_lost(seen))
}

/// What is being waited for, or how long the queue lasts at this pace.
fn hint(snapshot: &Snapshot, pace: f64) -> Option<String> {
    if snapshot.paused {
        return Some("paused: crawler resume goes on".to_owned());
    }
    if let (0, Some((due, host))) = (snapshot.in_flight, &snapshot.next_due) {
        let wait = due.since(snapshot.now);
        if wait >= SHORT_WAIT {
            return Some(format!("waiting {} for {host}", span(wait)));
        }
    }
    let pending = snapshot.counters.urls.pending;
    if pending == 0 || pace <= 0.0 {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with two units")]
    let left = Duration::try_from_secs_f64(pending as f64 / pace).ok()?;
    Some(format!(
        "the queue lasts {}",
        span(Duration::from_secs(left.as_secs().max(1)))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::outcome;

    #[test]
    fn a_line_tells_the_work_and_the_state() {
        let mut snapshot = outcome().last;
        snapshot.counters.urls.pending = 5;
        snapshot.in_flight = 2;
        snapshot.hosts_active = 3;
        snapshot.hosts_resting = 1;
        let (work, state) = describe(&snapshot, 2.5);
        assert_eq!(
            work,
            "40 pages, 2.50/s now, 4.00/s on average, 5 queued, 3 failed, 1.4 MiB"
        );
        assert_eq!(
            state,
            "4 hosts (3 with work, 1 resting), 2 in flight, the queue lasts 2 s, filter 5.0 % full"
        );
    }

    #[test]
    fn the_hint_names_the_host_that_is_waited_for() {
        let mut snapshot = outcome().last;
        snapshot.counters.urls.pending = 5;
        let wait = |snapshot: &Snapshot| hint(snapshot, 1.0).unwrap();
        snapshot.next_due = Some((snapshot.now + Duration::from_secs(12), "example.com".to_owned()));
        assert_eq!(wait(&snapshot), "waiting 12 s for example.com");
        snapshot.in_flight = 1;
        assert_eq!(wait(&snapshot), "the queue lasts 5 s");
        snapshot.in_flight = 0;
        snapshot.next_due = Some((snapshot.now + Duration::from_millis(300), "example.com".to_owned()));
        assert_eq!(wait(&snapshot), "the queue lasts 5 s");
        assert_eq!(hint(&snapshot, 0.0), None);
        assert_eq!(hint(&snapshot, f64::MIN_POSITIVE), None);
        snapshot.counters.urls.pending = 0;
        assert_eq!(hint(&snapshot, 1.0), None);
    }

    #[test]
    fn the_pace_is_that_of_the_last_seconds() {
        let mut pace = Pace::default();
        let at = Duration::from_secs;
        assert_eq!(pace.see(at(0), 0).to_bits(), 0);
        assert!((pace.see(at(10), 100) - 10.0).abs() < 1e-9);
        assert!((pace.see(at(20), 120) - 2.0).abs() < 1e-9);
        // a pause in the crawl
        assert!((pace.see(at(60), 120)).abs() < 1e-9);
        for n in 0..10_000 {
            pace.see(at(60) + Duration::from_micros(n), 120);
        }
        assert!(pace.points.len() <= MAX_POINTS);
    }

    #[tokio::test(start_paused = true)]
    async fn it_ends_when_the_crawl_does() {
        let (sender, receiver) = watch::channel(None);
        let shown = tokio::spawn(
            Screen {
                quiet: false,
                bars: None,
            }
            .show(receiver),
        );
        sender.send(Some(outcome().last)).unwrap();
        tokio::time::sleep(Duration::from_secs(11)).await;
        assert!(!shown.is_finished());
        drop(sender);
        shown.await.unwrap();
    }
}
