//! `crawler verify FILE…`: are these archives what their formats say? Changes nothing.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Args;
use serde_json::{Value, json};

use super::{USAGE, fail, print};
use crate::archive::verify::{self, Found, Ids, Kind};
use crate::report::words::thousands;

/// Exit code if a file has a fault.
const FAULTY: u8 = 1;

/// What is looked at.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// WARC files (plain or gzipped), CDXJ indexes, WACZ files, or a job's folder for its whole archive
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// As JSON, one object a file
    #[arg(long)]
    json: bool,
}

/// A file to be looked at, or what came of it.
struct Task {
    path: PathBuf,
    kind: Kind,
    /// Where an index finds its files.
    archive: Option<PathBuf>,
}

/// Files that belong together: what a record refers to must be in one of them, if they are all there is.
struct Group {
    job: Option<PathBuf>,
    tasks: Vec<Task>,
}

pub(super) fn run(args: &VerifyArgs) -> ExitCode {
    let mut groups = Vec::new();
    let mut single = Group {
        job: None,
        tasks: Vec::new(),
    };
    for path in &args.files {
        let group = if path.is_dir() {
            job(path).map(Some)
        } else {
            task(path).map(|task| {
                single.tasks.push(task);
                None
            })
        };
        match group {
            Ok(group) => groups.extend(group),
            Err(text) => return fail(&text, USAGE),
        }
    }
    groups.push(single);
    let mut faulty = false;
    for group in groups.iter().filter(|group| !group.tasks.is_empty()) {
        match judge(group, args.json) {
            Ok((text, sound)) => {
                faulty |= !sound;
                let printed = print(&text);
                if printed != ExitCode::SUCCESS {
                    return printed;
                }
            }
            Err(text) => return fail(&text, FAULTY),
        }
    }
    if faulty {
        ExitCode::from(FAULTY)
    } else {
        ExitCode::SUCCESS
    }
}

fn task(path: &Path) -> Result<Task, String> {
    let there = std::fs::metadata(path).and_then(|_| Kind::of(path));
    let kind = there.map_err(|error| format!("{}: {error}", path.display()))?;
    let kind = kind.ok_or_else(|| format!("{}: it is no WARC, CDXJ or WACZ file", path.display()))?;
    Ok(Task {
        path: path.to_owned(),
        kind,
        archive: None,
    })
}

/// The archive of a job.
fn job(folder: &Path) -> Result<Group, String> {
    let mut tasks = Vec::new();
    for (part, kinds) in [
        ("archive", &[Kind::Warc, Kind::Wacz][..]),
        ("indexes", &[Kind::Cdxj][..]),
    ] {
        let Ok(entries) = folder.join(part).read_dir() else {
            continue;
        };
        for entry in entries {
            let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
            let kind = Kind::of(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if let Some(kind) = kind.filter(|kind| kinds.contains(kind)) {
                let archive = Some(folder.join("archive"));
                tasks.push(Task { path, kind, archive });
            }
        }
    }
    if tasks.is_empty() {
        let folder = folder.display();
        return Err(format!("{folder} holds no archive: name a job's folder, or files"));
    }
    tasks.sort_by(|one, two| one.path.cmp(&two.path));
    Ok(Group {
        job: Some(folder.to_owned()),
        tasks,
    })
}

/// Looks at the files of a group, as many at once as there are processors. Gives what to say and whether all is well.
fn judge(group: &Group, as_json: bool) -> Result<(String, bool), String> {
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(group.tasks.len());
    let done: Mutex<Vec<(usize, std::io::Result<Found>)>> = Mutex::new(Vec::new());
    let mut all = Ids::default();
    std::thread::scope(|scope| {
        let work = || {
            let mut ids = Ids::default();
            while let Some((at, task)) = take(&next, &group.tasks) {
                let found = verify::file(&task.path, task.kind, task.archive.as_deref(), &mut ids);
                let mut done = done.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                done.push((at, found));
            }
            ids
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(ids) => all.join(ids),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    let (mut out, mut sound) = (String::new(), true);
    for ((_, found), task) in done.into_iter().zip(&group.tasks) {
        let found = found.map_err(|error| format!("{}: {error}", task.path.display()))?;
        sound &= found.is_sound();
        say(&mut out, &task.path, &found, as_json);
    }
    let mut over_all = Found::default();
    over_all.notice(&all, group.job.is_some());
    if !over_all.is_sound() || !over_all.notes.is_empty() {
        sound &= over_all.is_sound();
        say(
            &mut out,
            group.job.as_deref().unwrap_or(Path::new("all files")),
            &over_all,
            as_json,
        );
    }
    Ok((out, sound))
}

fn take<'a>(next: &AtomicUsize, tasks: &'a [Task]) -> Option<(usize, &'a Task)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    tasks.get(at).map(|task| (at, task))
}

fn say(out: &mut String, path: &Path, found: &Found, as_json: bool) {
    if as_json {
        let faults: Vec<Value> = found
            .faults
            .iter()
            .map(|fault| json!({"place": fault.place, "text": fault.text}))
            .collect();
        let line = json!({
            "file": path.display().to_string(), "ok": found.is_sound(), "records": found.records,
            "count": found.count, "faults": faults, "notes": found.notes,
        });
        // writing to a String cannot fail
        let _ = writeln!(out, "{line}");
        return;
    }
    for fault in &found.faults {
        let place = if fault.place.is_empty() {
            String::new()
        } else {
            format!("{}: ", fault.place)
        };
        let _ = writeln!(out, "{}: {place}{}", path.display(), fault.text);
    }
    let named = found.faults.len() as u64;
    if named < found.count {
        let _ = writeln!(out, "{}: and {} more", path.display(), thousands(found.count - named));
    }
    for note in &found.notes {
        let _ = writeln!(out, "{}: note: {note}", path.display());
    }
    let verdict = match found.count {
        0 => "sound".to_owned(),
        1 => "1 fault".to_owned(),
        count => format!("{} faults", thousands(count)),
    };
    if found.records > 0 || found.count > 0 {
        let _ = writeln!(
            out,
            "{}: {} records, {verdict}",
            path.display(),
            thousands(found.records)
        );
    } else {
        let _ = writeln!(out, "{}: empty", path.display());
    }
}
