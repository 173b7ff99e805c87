//! The job folder: made, locked, recognized. It is opened before anything else writes into it.
//!
//! ```text
//! JOB/config.toml  archive/  indexes/  logs/
//! JOB/state/VERSION   format of the folder; an unknown one is refused before a byte is written
//! JOB/state/lock      locked (flock) by the running process, whose pid it holds; the system frees it when the process dies
//! JOB/state/finished  the crawl came to its end: nothing is left to resume
//! JOB/state/unreached the crawl ended without any seed fetched: the next run begins anew in the same folder
//! ```

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::disk::{Disk, Folder, publish};

/// Version of the job folder's format.
pub const VERSION: u32 = 1;
/// Most folders beside a job that `--fresh` tries.
pub const MAX_BESIDE: u32 = 10_000;

const FOLDERS: [&str; 4] = ["archive", "indexes", "logs", "state"];
/// Names that only a job has: a folder with one of them but no version is a damaged job, or not ours.
const OWN_NAMES: [&str; 11] = [
    "archive",
    "indexes",
    "logs",
    "state",
    "config.toml",
    "report.json",
    "report.html",
    "pages.jsonl",
    "pages.jsonl.zst",
    "links.jsonl.zst",
    "control",
];
const VERSION_FILE: &str = "state/VERSION";
const LOCK_FILE: &str = "state/lock";
const FINISHED: &str = "state/finished";
const UNREACHED: &str = "state/unreached";

/// How often a held lock is tried: whoever only looks at a job holds it for a moment.
const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(50);
/// Longest version or lock file that is read, bytes.
const MAX_MARK_BYTES: u64 = 64;

/// Why a job folder cannot be used. No file in it but the lock was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// Another process crawls there.
    #[error("the job {} is being crawled by process {pid}: wait for it, stop it, or choose another --job", dir.display())]
    Locked {
        /// The folder.
        dir: PathBuf,
        /// The process, as it wrote itself down.
        pid: String,
    },
    /// The crawl came to its end.
    #[error("the job {} is finished: its report is {}; --fresh starts over in a new folder beside it", dir.display(), dir.join("report.html").display())]
    Finished {
        /// The folder.
        dir: PathBuf,
    },
    /// A format of another version of this program.
    #[error("the job {} has format version {found}, this program knows {VERSION}: use the version that made it, or another --job", dir.display())]
    UnknownVersion {
        /// The folder.
        dir: PathBuf,
        /// What stands in its version file.
        found: String,
    },
    /// Something is missing that every job has.
    #[error("{} is no job, or a damaged one ({what}): nothing was changed; choose another --job, or --fresh", dir.display())]
    Damaged {
        /// The folder.
        dir: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// The folder cannot be written.
    #[error("cannot write the job folder {}: {source}", path.display())]
    Write {
        /// What could not be written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl JobError {
    /// The process's exit code: 2 for a job that must not be used (again), 3 for a folder that cannot be written, 1 for
    /// a state that cannot be read.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Locked { .. } | Self::Finished { .. } => 2,
            Self::Write { .. } => 3,
            Self::UnknownVersion { .. } | Self::Damaged { .. } => 1,
        }
    }
}

/// An open job. The lock is held as long as this lives.
#[derive(Debug)]
pub struct Job {
    /// The folder. With `--fresh` it may be another than the one asked for.
    pub dir: PathBuf,
    /// An earlier run left state to go on from.
    pub resumed: bool,
    /// What a person should know: a folder chosen beside, files put aside.
    pub notes: Vec<String>,
    _lock: File,
}

/// Opens the job in `dir`, making the folder if it is not there. `fresh` asks for a new one: `dir` itself if nothing is
/// in it, else the first free of `dir-2`, `dir-3` ...; nothing is ever deleted.
///
/// # Errors
/// [`JobError`]; no file but the lock was changed then.
pub fn open(dir: &Path, fresh: bool) -> Result<Job, JobError> {
    let mut notes = Vec::new();
    let dir = if fresh { free_folder(dir)? } else { dir.to_path_buf() };
    check_version(&dir)?;
    make_folder(&dir.join("state"))?;
    let lock = lock(&dir)?;
    // once more: another process may have made the job, or put it aside, since the first look
    let mut known = check_version(&dir)?;
    let lock = if known && dir.join(UNREACHED).exists() {
        let aside = set_aside(&dir)?;
        notes.push(format!(
            "the last run fetched no seed; it begins anew, its files are in {}",
            aside.display()
        ));
        known = false;
        drop(lock);
        make_folder(&dir.join("state"))?;
        self::lock(&dir)?
    } else if dir.join(FINISHED).exists() {
        return Err(JobError::Finished { dir });
    } else {
        lock
    };
    if !known {
        let version = format!("{VERSION}\n");
        write(&dir, VERSION_FILE, version.as_bytes())?;
    }
    for folder in FOLDERS {
        make_folder(&dir.join(folder))?;
    }
    Ok(Job {
        dir,
        resumed: known,
        notes,
        _lock: lock,
    })
}

/// Opens a job that is there, finished or not, to change what it has to do.
///
/// # Errors
/// [`JobError`]; no file but the lock was changed then.
pub fn reopen(dir: &Path) -> Result<Job, JobError> {
    let damaged = |what: &str| JobError::Damaged {
        dir: dir.to_path_buf(),
        what: what.to_owned(),
    };
    if !dir.join("state").is_dir() || !check_version(dir)? {
        return Err(damaged("it has no state/VERSION"));
    }
    let lock = lock(dir)?;
    if dir.join(UNREACHED).exists() {
        return Err(damaged("its last run fetched no seed, and the next one begins anew"));
    }
    Ok(Job {
        dir: dir.to_path_buf(),
        resumed: true,
        notes: Vec::new(),
        _lock: lock,
    })
}

impl Job {
    /// Takes the mark of a finished job away: there is something left to do.
    ///
    /// # Errors
    /// If the system cannot.
    pub fn unmark_finished(&self) -> Result<(), JobError> {
        let removed = Folder::new(self.dir.clone()).remove(FINISHED);
        removed.map_err(|source| JobError::Write {
            path: self.dir.join(FINISHED),
            source,
        })
    }

    /// Writes `config.toml`: the effective settings of this run.
    ///
    /// # Errors
    /// If the system cannot.
    pub fn write_settings(&self, text: &str) -> Result<(), JobError> {
        write(&self.dir, "config.toml", text.as_bytes())
    }

    /// Marks the job as finished: nothing is left to resume.
    ///
    /// # Errors
    /// If the system cannot.
    pub fn mark_finished(&self) -> Result<(), JobError> {
        write(&self.dir, FINISHED, b"")
    }

    /// Marks the job as one that fetched no seed: the next run begins anew.
    ///
    /// # Errors
    /// If the system cannot.
    pub fn mark_unreached(&self) -> Result<(), JobError> {
        write(&self.dir, UNREACHED, b"")
    }
}

fn write(dir: &Path, name: &str, bytes: &[u8]) -> Result<(), JobError> {
    publish(&Folder::new(dir.to_path_buf()), name, bytes).map_err(|source| JobError::Write {
        path: dir.join(name),
        source,
    })
}

fn make_folder(path: &Path) -> Result<(), JobError> {
    fs::create_dir_all(path).map_err(|source| JobError::Write {
        path: path.to_path_buf(),
        source,
    })
}

/// Is there a job of our version? False if there is none yet.
fn check_version(dir: &Path) -> Result<bool, JobError> {
    let damaged = |what: &str| JobError::Damaged {
        dir: dir.to_path_buf(),
        what: what.to_owned(),
    };
    let text = match read_mark(&dir.join(VERSION_FILE)) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return check_empty(dir).map(|()| false),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(false),
        Err(error) => return Err(damaged(&format!("{VERSION_FILE}: {error}"))),
    };
    match text.trim().parse::<u32>() {
        Ok(VERSION) => Ok(true),
        Ok(other) => Err(JobError::UnknownVersion {
            dir: dir.to_path_buf(),
            found: other.to_string(),
        }),
        Err(_) => Err(damaged(&format!("{VERSION_FILE} is not a number"))),
    }
}

/// A folder without a version may hold what does not concern us, and what a run leaves that was killed before it wrote
/// the version; nothing that only a job has.
fn check_empty(dir: &Path) -> Result<(), JobError> {
    for name in OWN_NAMES {
        let path = dir.join(name);
        let begun = name == "state" && only_lock(&path);
        if path.exists() && !begun {
            let what = format!("it holds {name} but no {VERSION_FILE}");
            return Err(JobError::Damaged {
                dir: dir.to_path_buf(),
                what,
            });
        }
    }
    Ok(())
}

fn only_lock(state: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(state) else {
        return false;
    };
    entries.all(|entry| entry.is_ok_and(|entry| ["lock", "VERSION.tmp"].iter().any(|name| entry.file_name() == *name)))
}

fn lock(dir: &Path) -> Result<File, JobError> {
    let path = dir.join(LOCK_FILE);
    let failed = |source| JobError::Write {
        path: path.clone(),
        source,
    };
    for _ in 0..LOCK_TRIES {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) if is_at(&file, &path) => {
                file.set_len(0).map_err(failed)?;
                writeln!(file, "{}", std::process::id()).map_err(failed)?;
                return Ok(file);
            }
            // whoever held it put it aside: it guards nothing any more
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
    let pid = read_mark(&path).map(|text| text.trim().to_owned()).unwrap_or_default();
    let pid = if pid.is_empty() { "(unknown)".to_owned() } else { pid };
    Err(JobError::Locked {
        dir: dir.to_path_buf(),
        pid,
    })
}

/// Is the open file the one that the path names now?
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(open), Ok(named)) => identity(open) == identity(named),
        _ => false,
    }
}

fn read_mark(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_MARK_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// `dir` if nothing is in it, else the first name beside it that is free. The folder is made, so that two processes
/// cannot choose the same.
fn free_folder(dir: &Path) -> Result<PathBuf, JobError> {
    let failed = |path: &Path, source| JobError::Write {
        path: path.to_path_buf(),
        source,
    };
    let empty = match fs::read_dir(dir) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    };
    if empty {
        return Ok(dir.to_path_buf());
    }
    let name = dir
        .file_name()
        .ok_or_else(|| failed(dir, io::ErrorKind::InvalidInput.into()))?;
    for number in 2..=MAX_BESIDE {
        let mut beside = name.to_os_string();
        beside.push(format!("-{number}"));
        let beside = dir.with_file_name(beside);
        match fs::create_dir(&beside) {
            Ok(()) => return Ok(beside),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(&beside, error)),
        }
    }
    Err(failed(
        dir,
        io::Error::other(format!("{MAX_BESIDE} folders of this name are taken")),
    ))
}

/// Moves what a run left that reached nothing into a folder of its own. The state goes last: until then the next
/// attempt finds the mark and goes on.
fn set_aside(dir: &Path) -> Result<PathBuf, JobError> {
    let aside = (1..=MAX_BESIDE)
        .map(|number| dir.join(format!("unreached-{number}")))
        .find(|path| !path.exists());
    let aside = aside.unwrap_or_else(|| dir.join("unreached"));
    make_folder(&aside)?;
    for name in OWN_NAMES.iter().filter(|name| **name != "state").chain(&["state"]) {
        let (from, to) = (dir.join(name), aside.join(name));
        match fs::rename(&from, &to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(JobError::Write {
                    path: from,
                    source: error,
                });
            }
            _ => {}
        }
    }
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, PathBuf) {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("crawl");
        (home, dir)
    }

    #[test]
    fn a_new_job_is_made_and_the_next_run_resumes_it() {
        let (_home, dir) = home();
        let job = open(&dir, false).unwrap();
        assert!(!job.resumed);
        for folder in FOLDERS {
            assert!(dir.join(folder).is_dir(), "{folder}");
        }
        assert_eq!(
            fs::read_to_string(dir.join(LOCK_FILE)).unwrap(),
            format!("{}\n", std::process::id())
        );
        job.write_settings("delay = \"1s\"\n").unwrap();
        drop(job);
        assert!(open(&dir, false).unwrap().resumed);
        assert_eq!(fs::read_to_string(dir.join("config.toml")).unwrap(), "delay = \"1s\"\n");
    }

    #[test]
    fn a_second_process_hears_the_pid_of_the_first() {
        let (_home, dir) = home();
        let job = open(&dir, false).unwrap();
        let error = open(&dir, false).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(
            error.to_string().contains(&format!("process {}:", std::process::id())),
            "{error}"
        );
        drop(job);
        assert!(open(&dir, false).is_ok());
    }

    #[test]
    fn a_lock_that_was_put_aside_guards_nothing() {
        let (_home, dir) = home();
        let _held = open(&dir, false).unwrap();
        fs::rename(dir.join(LOCK_FILE), dir.join("state/old")).unwrap();
        let old = File::open(dir.join("state/old")).unwrap();
        assert!(!is_at(&old, &dir.join(LOCK_FILE)));
        assert!(is_at(&old, &dir.join("state/old")));
        let _second = open(&dir, false).unwrap();
        assert!(matches!(open(&dir, false), Err(JobError::Locked { .. })));
    }

    #[test]
    fn an_unknown_version_is_refused_and_nothing_is_touched() {
        let (_home, dir) = home();
        fs::create_dir_all(dir.join("state")).unwrap();
        for (text, code, words) in [
            ("2\n", 1, "format version 2"),
            ("new\n", 1, "is not a number"),
            ("", 1, "number"),
        ] {
            fs::write(dir.join(VERSION_FILE), text).unwrap();
            let error = open(&dir, false).unwrap_err();
            assert_eq!(error.exit_code(), code);
            assert!(error.to_string().contains(words), "{error}");
            assert_eq!(fs::read_to_string(dir.join(VERSION_FILE)).unwrap(), text);
            assert_eq!(fs::read_dir(dir.join("state")).unwrap().count(), 1, "nothing is added");
        }
    }

    #[test]
    fn a_finished_job_is_refused_and_fresh_begins_beside_it() {
        let (home, dir) = home();
        open(&dir, false).unwrap().mark_finished().unwrap();
        let error = open(&dir, false).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("--fresh"), "{error}");
        for expected in ["crawl-2", "crawl-3"] {
            let job = open(&dir, true).unwrap();
            assert_eq!(job.dir, home.path().join(expected));
            assert!(!job.resumed);
        }
        assert!(dir.join(FINISHED).exists());
    }

    #[test]
    fn fresh_takes_a_folder_in_which_nothing_is() {
        let (_home, dir) = home();
        drop(open(&dir, true).unwrap());
        assert!(dir.join(VERSION_FILE).exists());
        let empty = dir.with_file_name("empty");
        fs::create_dir(&empty).unwrap();
        assert_eq!(open(&empty, true).unwrap().dir, empty);
    }

    #[test]
    fn a_folder_of_something_else_is_left_alone() {
        for name in ["archive", "report.json", "state/store"] {
            let (_home, dir) = home();
            fs::create_dir_all(dir.join("state")).unwrap();
            fs::write(dir.join(name), "precious").unwrap();
            let error = open(&dir, false).unwrap_err();
            assert_eq!(error.exit_code(), 1);
            assert!(error.to_string().contains("no state/VERSION"), "{error}");
            assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), "precious");
        }
        // what does not concern us does not hinder, nor what an early kill left
        let (_home, dir) = home();
        fs::create_dir_all(dir.join("state")).unwrap();
        fs::write(dir.join("notes.txt"), "mine").unwrap();
        fs::write(dir.join(LOCK_FILE), "").unwrap();
        assert!(!open(&dir, false).unwrap().resumed);
    }

    #[test]
    fn what_cannot_be_written_is_named() {
        let (home, _) = home();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        for dir in [file.clone(), file.join("below")] {
            for fresh in [false, true] {
                let error = open(&dir, fresh);
                // beside a file there is room for a fresh folder
                if fresh && dir == file {
                    assert_eq!(error.unwrap().dir, home.path().join("file-2"));
                    continue;
                }
                let error = error.unwrap_err();
                assert_eq!(error.exit_code(), 3, "{error}");
                assert!(error.to_string().starts_with("cannot write the job folder "), "{error}");
            }
        }
    }

    #[test]
    fn a_job_that_reached_nothing_begins_anew_and_keeps_what_it_wrote() {
        let (_home, dir) = home();
        let job = open(&dir, false).unwrap();
        fs::write(dir.join("logs/crawl.log"), "first").unwrap();
        job.mark_unreached().unwrap();
        drop(job);
        let job = open(&dir, false).unwrap();
        assert!(!job.resumed);
        assert_eq!(job.notes.len(), 1);
        assert_eq!(
            fs::read_to_string(dir.join("unreached-1/logs/crawl.log")).unwrap(),
            "first"
        );
        assert!(!dir.join("logs/crawl.log").exists());
        // a stop in the middle of moving is made good by the next run, and an end without a seed is no end
        job.mark_unreached().unwrap();
        job.mark_finished().unwrap();
        drop(job);
        fs::create_dir(dir.join("unreached-2")).unwrap();
        fs::rename(dir.join("archive"), dir.join("unreached-2/archive")).unwrap();
        assert!(!open(&dir, false).unwrap().resumed);
        assert!(dir.join("unreached-3/state/unreached").exists());
        assert!(open(&dir, false).unwrap().resumed);
    }
}
