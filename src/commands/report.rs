//! `crawler report JOB`: report.json and report.html of a job, made anew from its state where a kill left them behind.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use serde_json::Value;

use super::look::{Copy, Failure, in_use, is_job};
use super::{USAGE, fail, print};
use crate::checkpoint;
use crate::clock::Time;
use crate::config::load::load_file;
use crate::crawl::{End, Outcome, Snapshot};
use crate::disk::Folder;
use crate::hash::HashKey;
use crate::ledger::{self, CRAWL_LOG, Found, JobRow};
use crate::report::{self, NOW, Verdict, summary};
use crate::store::Fjall;
use crate::survey::Survey;

/// What is reported.
#[derive(Debug, Args)]
pub(super) struct ReportArgs {
    /// The job's folder
    #[arg(value_name = "JOB")]
    job: PathBuf,
    /// Print report.json; of a running job how it stands
    #[arg(long)]
    json: bool,
    /// Print report.html
    #[arg(long, conflicts_with = "json")]
    html: bool,
}

pub(super) fn run(args: &ReportArgs) -> ExitCode {
    match text(args) {
        Ok(text) => print(&text),
        Err((text, exit)) => fail(&text, exit),
    }
}

fn text(args: &ReportArgs) -> Result<String, Failure> {
    let job = &args.job;
    is_job(job)?;
    let read = |name: &str| {
        let path = job.join(name);
        fs::read_to_string(&path).map_err(|error| (format!("{}: {error}", path.display()), 1))
    };
    if let Some(pid) = in_use(job) {
        if args.json {
            return read(NOW);
        }
        let job = job.display();
        return Err((
            format!(
                "{job} is being crawled by process {pid}: crawler status {job} says where it stands, --json all of it"
            ),
            USAGE,
        ));
    }
    let place = job.join("state/store");
    let unreadable = |error: io::Error| (format!("{}: {error}", place.display()), 1);
    let copy = Copy::of(&place).map_err(unreadable)?;
    let found = {
        let store = Fjall::open(&copy.0).map_err(unreadable)?;
        ledger::look(&store).map_err(unreadable)?
    };
    let Some(row) = &found.job else {
        return Err((format!("{} has not begun", job.display()), USAGE));
    };
    let outcome = outcome(job, &found, row).map_err(unreadable)?;
    let said = said(job, &outcome);
    let verdict = said.clone().unwrap_or_else(|| left_behind(job, &outcome));
    if said.is_none() {
        report::write(job, &outcome, &verdict).map_err(|error| (format!("cannot write the report: {error}"), 3))?;
    }
    match (args.json, args.html) {
        (true, _) => read("report.json"),
        (_, true) => read("report.html"),
        _ => {
            let files = format!("  report    {0}/report.html and {0}/report.json\n", job.display());
            Ok(summary::text(&outcome, &verdict, job) + &files)
        }
    }
}

/// The verdict in report.json, if that speaks of the job as it is.
fn said(job: &Path, outcome: &Outcome) -> Option<Verdict> {
    if !job.join("report.html").is_file() {
        return None;
    }
    let text = fs::read(job.join("report.json")).ok()?;
    let report: Value = serde_json::from_slice(&text).ok()?;
    let counters = &outcome.last.counters;
    let same = report.get("urls") == serde_json::to_value(counters.urls).ok().as_ref()
        && report.get("links") == serde_json::to_value(counters.links).ok().as_ref()
        && report.get("runs").and_then(Value::as_u64) == Some(outcome.runs);
    let word = |name: &str| report.get(name).and_then(Value::as_str);
    let state = ["finished", "stopped", "limit", "failed"];
    let state = state.into_iter().find(|state| word("state") == Some(state))?;
    same.then(|| Verdict {
        state,
        reason: word("reason").unwrap_or_default().to_owned(),
        exit: 0,
    })
}

/// What is to be said of a job whose last run could not report.
fn left_behind(job: &Path, outcome: &Outcome) -> Verdict {
    if !outcome.last.counters.balanced() {
        return Verdict::of(outcome);
    }
    let (state, reason) = if job.join("state/finished").exists() {
        ("finished", "every URL in scope has its answer")
    } else {
        ("stopped", "its last run was killed; the same command goes on")
    };
    Verdict {
        state,
        reason: reason.to_owned(),
        exit: 0,
    }
}

/// The job as its state has it.
fn outcome(job: &Path, found: &Found, row: &JobRow) -> io::Result<Outcome> {
    let tail = &found.tail;
    let size =
        load_file(&job.join("config.toml")).map_or((1, 0.01), |loaded| (loaded.config.capacity, loaded.config.fp_rate));
    let folder = Folder::new(job.to_owned());
    let restored = checkpoint::restore(
        &folder,
        row.key,
        row.identity.stamp(),
        found.kind,
        size,
        &found.admissions(),
    )?;
    let wall = Duration::from_micros(tail.wall_us);
    // the log is written to the last
    let ended = fs::metadata(job.join(CRAWL_LOG)).and_then(|log| log.modified());
    let ended = ended.ok().and_then(|ended| ended.duration_since(UNIX_EPOCH).ok());
    let ended = ended.and_then(|since| u64::try_from(since.as_micros()).ok());
    #[expect(clippy::cast_precision_loss, reason = "microseconds of CPU time fit")]
    let cpu_s = tail.cpu_us as f64 / 1e6;
    Ok(Outcome {
        end: End::Finished,
        last: Snapshot {
            counters: tail.counters.clone(),
            seen: restored.seen.account(),
            in_flight: 0,
            hosts_active: 0,
            hosts_resting: 0,
            next_due: None,
            run_time: wall,
            wall,
            now: ended.map_or(tail.started + wall, Time),
            paused: false,
            last: String::new(),
        },
        started: tail.started,
        runs: tail.runs,
        checkpoints: tail.checkpoints,
        checkpoint_pause_max: Duration::from_micros(tail.checkpoint_pause_us),
        cpu_s,
        peak_rss: tail.peak_rss,
        seeds: Vec::new(),
        survey: found.survey.as_deref().and_then(|row_of| survey(row.key, row_of)),
    })
}

fn survey(key: HashKey, row: &[u8]) -> Option<crate::survey::Summary> {
    Survey::from_row(key, row).ok().map(|survey| survey.summary())
}
