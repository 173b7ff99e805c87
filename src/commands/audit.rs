//! `crawler audit JOB`: were the promises kept? Changes nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};

use super::look::{Copy, Failure, in_use, is_job};
use super::{USAGE, fail, print};
use crate::audit::{self, Audit, Promise};
use crate::config;
use crate::ledger;
use crate::report::words::thousands;
use crate::store::Fjall;

/// Exit code if a promise was broken.
const BROKEN: u8 = 1;
/// The settings of a job, in its folder.
const SETTINGS: &str = "config.toml";

/// What is audited.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {
    /// The job's folder
    #[arg(value_name = "JOB")]
    job: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &AuditArgs) -> ExitCode {
    let found = match audit(&args.job) {
        Ok(found) => found,
        Err((text, exit)) => return fail(&text, exit),
    };
    let text = if args.json {
        format!("{:#}\n", as_json(&found))
    } else {
        text(&args.job, &found)
    };
    let printed = print(&text);
    if found.is_clean() {
        printed
    } else {
        ExitCode::from(BROKEN)
    }
}

fn audit(job: &Path) -> Result<Audit, Failure> {
    is_job(job)?;
    if let Some(pid) = in_use(job) {
        let job = job.display();
        return Err((
            format!(
                "{job} is being crawled by process {pid}: an audit needs it to stand still; stop it (SIGINT) first"
            ),
            USAGE,
        ));
    }
    if !job.join(SETTINGS).is_file() || !job.join("state/store").is_dir() {
        return Err((
            format!("{} has not begun: there is nothing to audit", job.display()),
            USAGE,
        ));
    }
    let settings = config::load::load_file(&job.join(SETTINGS)).map_err(|error| (error.to_string(), 1))?;
    let place = job.join("state/store");
    let unreadable = |error: std::io::Error| (format!("{}: {error}", place.display()), 1);
    let copy = Copy::of(&place).map_err(unreadable)?;
    let found = {
        let store = Fjall::open(&copy.0).map_err(unreadable)?;
        ledger::look(&store).map_err(unreadable)?
    };
    audit::audit(job, &settings.config, &found).map_err(|error| (format!("{}: {error}", job.display()), 1))
}

fn as_json(found: &Audit) -> Value {
    let faults: Vec<Value> = found
        .faults
        .iter()
        .map(|fault| json!({"promise": fault.promise.word(), "line": fault.line, "text": fault.text}))
        .collect();
    let broken: serde_json::Map<String, Value> = Promise::ALL
        .iter()
        .map(|promise| {
            let count = found.broken.get(promise).copied().unwrap_or(0);
            (promise.word().to_owned(), count.into())
        })
        .collect();
    json!({
        "clean": found.is_clean(),
        "lines": found.lines,
        "requests": found.requests,
        "hosts": found.hosts,
        "shortest_gap_us": found.shortest_gap_us,
        "judged_by_robots": found.by_robots,
        "robots_unknown": found.robots_unknown,
        "files": found.files,
        "records": found.records,
        "urls": found.urls,
        "notes": found.notes,
        "broken": broken,
        "faults": faults,
    })
}

fn text(job: &Path, found: &Audit) -> String {
    let mut out = format!("{}: {} lines of crawl.log\n", job.display(), thousands(found.lines));
    let gap = found.shortest_gap_us.map_or_else(String::new, |gap| {
        format!("; the shortest pause is {} µs", thousands(gap))
    });
    let unknown = if found.robots_unknown > 0 {
        format!(
            ", {} whose robots.txt is not in the archive",
            thousands(found.robots_unknown)
        )
    } else {
        String::new()
    };
    let of = |kind: &str| thousands(found.records.get(kind).copied().unwrap_or(0));
    let looked_at = |promise| match promise {
        Promise::Politeness => format!(
            "{} requests to {} hosts, each after the rest that was due{gap}",
            thousands(found.requests),
            thousands(found.hosts)
        ),
        Promise::Robots => format!("{} answers, none forbidden{unknown}", thousands(found.by_robots)),
        Promise::Archive => format!(
            "{} files, {} responses and {} revisits, each with its line, its address and its digest",
            thousands(found.files),
            of("response"),
            of("revisit")
        ),
        Promise::Once => format!("{} URLs, none asked for again after its answer", thousands(found.urls)),
        Promise::Accounts => "they add up, and log and archive say the same".to_owned(),
    };
    for promise in Promise::ALL {
        let said = match found.broken.get(&promise) {
            None => format!("kept    {}", looked_at(promise)),
            Some(count) => format!("BROKEN  {} times", thousands(*count)),
        };
        // writing to a String cannot fail
        let _ = writeln!(out, "  {:<11} {said}", promise.word());
    }
    for note in &found.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    for fault in &found.faults {
        let line = fault
            .line
            .map_or_else(String::new, |line| format!("logs/crawl.log:{line}: "));
        let _ = writeln!(out, "{}: {line}{}", fault.promise.word(), fault.text);
    }
    let (named, all) = (found.faults.len() as u64, found.broken.values().sum::<u64>());
    if named < all {
        let _ = writeln!(out, "and {} more", thousands(all - named));
    }
    out
}
