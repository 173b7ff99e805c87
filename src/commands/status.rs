//! `crawler status JOB`: where a job stands, also one that is running. Changes nothing.
//!
//! A running job is asked by a file that it writes each second, because its store is its own; of any other the store is read, from a
//! copy, so that what is told is what would survive.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use super::look::{Copy, Failure, in_use, is_job};
use super::{fail, print};
use crate::ledger;
use crate::report::NOW;
use crate::report::words::{bytes, percent, thousands};
use crate::store::Fjall;

/// Largest file of a running job that is read, bytes.
const MAX_STATUS_BYTES: u64 = 4 << 20;

/// What `status` is asked.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// The job's folder
    #[arg(value_name = "JOB")]
    job: PathBuf,
    /// As JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &StatusArgs) -> ExitCode {
    match status(&args.job) {
        Ok(status) if args.json => print(&format!("{status:#}\n")),
        Ok(status) => print(&text(&status)),
        Err((text, exit)) => fail(&text, exit),
    }
}

fn status(dir: &Path) -> Result<Value, Failure> {
    is_job(dir)?;
    let mut status = Map::new();
    status.insert("job".to_owned(), dir.display().to_string().into());
    if let Some(pid) = in_use(dir) {
        status.insert("state".to_owned(), "running".into());
        status.insert("pid".to_owned(), pid.into());
        // none yet in the first second
        status.extend(read(&dir.join(NOW)).unwrap_or_default());
        return Ok(status.into());
    }
    let state = if dir.join("state/finished").exists() {
        "finished"
    } else if dir.join("state/unreached").exists() {
        "unreached"
    } else {
        "can go on"
    };
    status.insert("state".to_owned(), state.into());
    let place = dir.join("state/store");
    let unreadable = |error: io::Error| (format!("{}: {error}", place.display()), 1);
    let copy = Copy::of(&place).map_err(unreadable)?;
    let store = Fjall::open(&copy.0).map_err(unreadable)?;
    let found = ledger::look(&store).map_err(unreadable)?;
    let counters = &found.tail.counters;
    let parts = json!({
        "links": counters.links,
        "urls": counters.urls,
        "balanced": counters.balanced(),
        "status": counters.status,
        "failures": counters.failures,
        "hosts": counters.hosts,
        "bytes": counters.bytes,
        "seen": {"kind": found.kind.map(crate::seen::Kind::name), "items": counters.links.admitted},
    });
    if let Value::Object(parts) = parts {
        status.extend(parts);
    }
    Ok(status.into())
}

fn read(path: &Path) -> Option<Map<String, Value>> {
    let file = File::open(path).ok()?;
    match serde_json::from_reader(file.take(MAX_STATUS_BYTES)).ok()? {
        Value::Object(mut status) => {
            // of the report's form; the state is told by the lock
            status.remove("state");
            Some(status)
        }
        _ => None,
    }
}

fn text(status: &Value) -> String {
    let number = |pointer: &str| {
        status
            .pointer(pointer)
            .and_then(Value::as_u64)
            .map_or("?".to_owned(), thousands)
    };
    let word = |pointer: &str| status.pointer(pointer).and_then(Value::as_str).unwrap_or("?");
    let mut out = format!("{}: {}", word("/job"), word("/state"));
    // writing to a String cannot fail
    let _ = match word("/state") {
        "running" => writeln!(out, " as process {}, as of {}", word("/pid"), word("/ended")),
        "can go on" => writeln!(out, " with the command that began it"),
        "unreached" => writeln!(out, ": no seed was fetched, the next run begins anew"),
        _ => writeln!(out),
    };
    if status.get("urls").is_none() {
        out.push_str("  it has begun a moment ago\n");
        return out;
    }
    let _ = writeln!(
        out,
        "  pages     {} fetched, {} failed, {} forbidden by robots.txt, {} pending; {} hosts",
        number("/urls/fetched"),
        number("/urls/failed"),
        number("/urls/robots"),
        number("/urls/pending"),
        number("/hosts")
    );
    let _ = writeln!(
        out,
        "  links     {} found = {} new + {} seen + {} out of scope + {} malformed + {} traps",
        number("/links/found"),
        number("/links/admitted"),
        number("/links/seen"),
        number("/links/out_of_scope"),
        number("/links/malformed"),
        number("/links/trap")
    );
    let received = status.pointer("/bytes/received").and_then(Value::as_u64).unwrap_or(0);
    let archived = status.pointer("/bytes/archived").and_then(Value::as_u64).unwrap_or(0);
    let _ = writeln!(
        out,
        "  bytes     {} received, {} archived",
        bytes(received),
        bytes(archived)
    );
    if let Some(fill) = status.pointer("/seen/fill").and_then(Value::as_f64) {
        let lost = status
            .pointer("/seen/lost_estimate")
            .and_then(Value::as_f64)
            .unwrap_or(0.0);
        let _ = writeln!(
            out,
            "  filter    {} of {} URLs, {} of its bits set; about {lost:.1} URLs lost",
            number("/seen/items"),
            number("/seen/capacity"),
            percent(fill)
        );
    }
    if status.get("in_flight").is_some() {
        let _ = writeln!(
            out,
            "  now       {} in flight, {} hosts with work, {} of them resting; last {}",
            number("/in_flight"),
            number("/hosts_active"),
            number("/hosts_resting"),
            word("/last")
        );
    }
    if status.get("paused") == Some(&Value::Bool(true)) {
        out.push_str("  paused    crawler resume goes on\n");
    }
    out
}
