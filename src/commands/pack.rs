//! `crawler pack JOB -o x.wacz`: a job's archive as one file.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::look::{Copy, Failure, in_use, is_job};
use super::{USAGE, fail, print};
use crate::archive::{naming, pack};
use crate::clock::Time;
use crate::ledger::{self, INDEX_LINES};
use crate::report::words::{bytes, thousands};
use crate::store::Fjall;

/// What is packed.
#[derive(Debug, Args)]
pub(super) struct PackArgs {
    /// The job's folder
    #[arg(value_name = "JOB")]
    job: PathBuf,
    /// The file to be written, such as x.wacz; it must not be there
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// A title for the collection
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Put the text of each page beside its title, so that readers can search it
    #[arg(long)]
    text: bool,
}

pub(super) fn run(args: &PackArgs) -> ExitCode {
    match packed(args) {
        Ok(text) => print(&text),
        Err((text, exit)) => fail(&text, exit),
    }
}

fn packed(args: &PackArgs) -> Result<String, Failure> {
    let job = &args.job;
    is_job(job)?;
    if let Some(pid) = in_use(job) {
        let job = job.display();
        return Err((
            format!("{job} is being crawled by process {pid}: stop it first (SIGINT), or wait"),
            USAGE,
        ));
    }
    let to = &args.output;
    if to.exists() {
        return Err((format!("{} is there already: name another file", to.display()), USAGE));
    }
    pack_job(job, to, args.title.as_deref(), args.text)
}

/// Packs a job that this process holds into its own folder, instead of what an earlier run packed there.
pub(super) fn into_job(job: &Path) -> Result<String, Failure> {
    let whole = job.canonicalize().unwrap_or_else(|_| job.to_owned());
    let mut name = whole.file_name().unwrap_or_default().to_os_string();
    name.push(".wacz");
    let to = job.join(name);
    match std::fs::remove_file(&to) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err((format!("{}: {error}", to.display()), 3)),
        _ => pack_job(job, &to, None, false),
    }
}

fn pack_job(job: &Path, to: &Path, title: Option<&str>, text: bool) -> Result<String, Failure> {
    let place = job.join("state/store");
    let unreadable = |error: std::io::Error| (format!("{}: {error}", place.display()), 1);
    let copy = Copy::of(&place).map_err(unreadable)?;
    let tail = {
        let store = Fjall::open(&copy.0).map_err(unreadable)?;
        ledger::look(&store).map_err(unreadable)?.tail
    };
    let warcs = warcs(&job.join("archive"), tail.archive.as_ref())
        .map_err(|error| (format!("{}: {error}", job.join("archive").display()), 1))?;
    if warcs.is_empty() {
        return Err((format!("{} has no archive yet", job.display()), USAGE));
    }
    let scratch = copy.0.join("pack");
    let begun = std::fs::create_dir(&scratch);
    begun.map_err(|error| (format!("{}: {error}", scratch.display()), 3))?;
    let software = format!("crawler {}", env!("CARGO_PKG_VERSION"));
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let micros = since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX));
    let request = pack::Request {
        warcs: &warcs,
        index: (&job.join(INDEX_LINES), tail.index),
        scratch: &scratch,
        title,
        text,
        software: &software,
        created: Time(micros),
    };
    let packed = pack::pack(&request, to).map_err(|error| {
        let exit = if error.kind() == std::io::ErrorKind::StorageFull {
            3
        } else {
            1
        };
        (format!("{}: {error}", to.display()), exit)
    })?;
    Ok(format!(
        "{}: {}, {} WARC files, {} index lines, {} pages ({} of them seeds)\n",
        to.display(),
        bytes(packed.bytes),
        thousands(packed.warcs),
        thousands(packed.lines),
        thousands(packed.pages),
        thousands(packed.seeds)
    ))
}

/// The files of an archive in their order; of the newest only what the store vouches for.
fn warcs(folder: &Path, newest: Option<&(String, u64)>) -> std::io::Result<Vec<pack::Warc>> {
    let mut found = Vec::new();
    for entry in folder.read_dir()? {
        let entry = entry?;
        let file = entry.file_name().to_string_lossy().into_owned();
        let name = file.strip_suffix(".open").unwrap_or(&file).to_owned();
        if !naming::is_warc(&name) {
            continue;
        }
        let covered = newest.filter(|(newest, _)| *newest == name).map(|(_, len)| *len);
        if file != name && covered.is_none() {
            continue; // begun, and nothing in it counts yet
        }
        let len = covered.map_or_else(|| entry.metadata().map(|file| file.len()), Ok)?;
        found.push(pack::Warc {
            path: entry.path(),
            name,
            len,
        });
    }
    found.sort_by(|one, two| one.name.cmp(&two.name));
    Ok(found)
}
