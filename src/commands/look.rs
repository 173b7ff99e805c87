//! Jobs that are only looked at: whether a folder is one, who crawls there, and a copy of the store, so that nothing changes.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::USAGE;
use crate::job;

/// Largest store that is copied, bytes.
const MAX_COPY_BYTES: u64 = 16 << 30;

/// What to say, and the exit code.
pub(super) type Failure = (String, u8);

/// Is this the folder of a job that this program knows?
pub(super) fn is_job(dir: &Path) -> Result<(), Failure> {
    let version = fs::read_to_string(dir.join("state/VERSION")).unwrap_or_default();
    match version.trim() {
        known if known == job::VERSION.to_string() => Ok(()),
        "" => Err((format!("{} is no job: name its folder", dir.display()), USAGE)),
        other => Err((
            format!(
                "the job {} has format version {other}, this program knows {}",
                dir.display(),
                job::VERSION
            ),
            1,
        )),
    }
}

/// The process that crawls there, if one does. Nothing is written: the lock is only looked at.
pub(super) fn in_use(dir: &Path) -> Option<String> {
    let mut file = File::open(dir.join("state/lock")).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let _ = file.by_ref().take(64).read_to_string(&mut pid);
            Some(pid.trim().to_owned())
        }
        _ => None,
    }
}

/// A copy of a folder that goes away with this.
pub(super) struct Copy(pub(super) PathBuf);

impl Copy {
    pub(super) fn of(from: &Path) -> io::Result<Self> {
        let to = std::env::temp_dir().join(format!("crawler-look-{}", std::process::id()));
        fs::create_dir(&to)?;
        let copy = Self(to);
        let mut left = MAX_COPY_BYTES;
        copy_all(from, &copy.0, &mut left)?;
        Ok(copy)
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // what cannot be removed lies in the system's folder for such things
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_all(from: &Path, to: &Path, left: &mut u64) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            fs::create_dir(&target)?;
            copy_all(&entry.path(), &target, left)?;
        } else {
            let size = entry.metadata()?.len();
            *left = left.checked_sub(size).ok_or_else(|| {
                io::Error::other(format!("larger than {MAX_COPY_BYTES} bytes, too large to be copied"))
            })?;
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
