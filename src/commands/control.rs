//! `crawler pause|resume|stop JOB`: says to a running crawl what is wished of it, by files in its folder; whoever prefers
//! may put them there by hand. What it was told is in effect when the command returns.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use tokio::sync::watch;

use super::look::{Failure, in_use, is_job};
use super::{USAGE, fail, print};
use crate::crawl::{Stop, Wish};
use crate::report::NOW;

/// Where the wishes lie in a job's folder.
const FOLDER: &str = "control";
/// As long as this file is there nothing new is started.
const PAUSE: &str = "pause";
/// Takes the crawl to its end; taken away by the crawl.
const STOP: &str = "stop";
/// How often a crawl looks for wishes.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long a command waits for its wish to come true: a stop leaves requests in flight ten seconds.
const PATIENCE: Duration = Duration::from_secs(20);

/// The job that is spoken to.
#[derive(Debug, Args)]
pub(super) struct ControlArgs {
    /// The job's folder
    #[arg(value_name = "JOB")]
    job: PathBuf,
}

/// What is asked of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Pause,
    Resume,
    Stop,
}

pub(super) fn run(args: &ControlArgs, order: Order) -> ExitCode {
    match tell(&args.job, order) {
        Ok(text) => print(&text),
        Err((text, exit)) => fail(&text, exit),
    }
}

fn tell(job: &Path, order: Order) -> Result<String, Failure> {
    is_job(job)?;
    let shown = job.display();
    let Some(pid) = in_use(job) else {
        // a pause that was left behind can be taken back
        if order == Order::Resume && job.join(FOLDER).join(PAUSE).exists() {
            put(job, order).map_err(|error| (format!("{shown}/{FOLDER}: {error}"), 3))?;
            return Ok(format!("{shown}: it is not paused any more, and nobody crawls it\n"));
        }
        return Err((format!("nobody crawls {shown}"), USAGE));
    };
    put(job, order).map_err(|error| (format!("{shown}/{FOLDER}: {error}"), 3))?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let (is_so, said) = match order {
            Order::Pause => (is_paused(job) == Some(true), "paused; what was in flight is finished"),
            Order::Resume => (is_paused(job) == Some(false), "it goes on"),
            Order::Stop => (
                in_use(job).is_none(),
                "stopped, its state saved; the same command goes on",
            ),
        };
        if is_so {
            return Ok(format!("{shown}: {said}\n"));
        }
        thread::sleep(LOOK_EVERY);
    }
    Err((format!("{shown}: process {pid} was told and has not done it yet"), 1))
}

fn put(job: &Path, order: Order) -> io::Result<()> {
    let folder = job.join(FOLDER);
    fs::create_dir_all(&folder)?;
    match order {
        Order::Pause => fs::write(folder.join(PAUSE), ""),
        Order::Stop => fs::write(folder.join(STOP), ""),
        Order::Resume => gone(&folder.join(PAUSE)),
    }
}

fn gone(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Does the running crawl say that it is paused?
fn is_paused(job: &Path) -> Option<bool> {
    let now: Value = serde_json::from_slice(&fs::read(job.join(NOW)).ok()?).ok()?;
    now.get("paused")?.as_bool()
}

/// What is wished at the start of a run: a stop was meant for the run before.
pub(super) fn at_start(job: &Path) -> Wish {
    // if it cannot be removed it is obeyed, which is safe
    let _ = gone(&job.join(FOLDER).join(STOP));
    Wish {
        stop: None,
        paused: job.join(FOLDER).join(PAUSE).exists(),
    }
}

/// Hears what is wished while a crawl runs.
pub(super) async fn listen(job: PathBuf, wishes: watch::Sender<Wish>) {
    let (pause, stop) = (job.join(FOLDER).join(PAUSE), job.join(FOLDER).join(STOP));
    let mut tick = tokio::time::interval(LOOK_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let paused = pause.exists();
        let stopped = stop.exists() && gone(&stop).is_ok();
        wishes.send_if_modified(|wish| {
            let before = *wish;
            wish.paused = paused;
            if stopped && wish.stop.is_none() {
                wish.stop = Some(Stop::Asked);
            }
            *wish != before
        });
    }
}

/// Pauses (or goes on) as if the command had been given.
pub(super) fn by_signal(job: &Path, order: Order) {
    if let Err(error) = put(job, order) {
        tracing::warn!(%error, "the signal is not obeyed: {FOLDER} cannot be written");
    }
}
