//! The folder in which large bodies wait, and the bound on those that wait in memory.
//!
//! A file in it has no name once it is open, so that it is gone with the process however that ends.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tokio::sync::Semaphore;

/// Bytes of all bodies and archive members in memory, at most; what would pass it goes to a file sooner.
pub const BODIES_IN_MEMORY: usize = 32 << 20;
/// Files written for the network at once, at most: each takes a thread.
const WRITERS: usize = 4;
/// The spool is for the user's own eyes: it holds what sites sent.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Where bodies go that are too large for memory, and how much of memory the others take.
#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    most: usize,
    in_memory: AtomicUsize,
    /// For the names of files on systems that cannot make one without.
    named: AtomicU64,
    pub(super) writers: Semaphore,
}

impl Spool {
    /// Makes the folder if it is not there, and empties it: a killed process on a system that cannot make files without
    /// a name may have left some.
    ///
    /// # Errors
    /// If the folder cannot be made, read or emptied.
    pub fn open(folder: &Path) -> io::Result<Arc<Self>> {
        Self::with_room(folder, BODIES_IN_MEMORY)
    }

    /// As [`Spool::open`], with another bound on the bytes in memory.
    ///
    /// # Errors
    /// As [`Spool::open`].
    pub fn with_room(folder: &Path, most: usize) -> io::Result<Arc<Self>> {
        DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(folder)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(Arc::new(Self {
            folder: folder.to_path_buf(),
            most,
            in_memory: AtomicUsize::new(0),
            named: AtomicU64::new(0),
            writers: Semaphore::new(WRITERS),
        }))
    }

    /// Bytes that bodies hold in memory now.
    #[must_use]
    pub fn in_memory(&self) -> usize {
        self.in_memory.load(Ordering::Relaxed)
    }

    /// A new file without a name.
    pub(super) fn file(&self) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(FILE_MODE);
        #[cfg(target_os = "linux")]
        {
            let nameless = options.clone().custom_flags(libc::O_TMPFILE).open(&self.folder);
            match nameless {
                // the file system does not know it (overlays, network file systems)
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(libc::EOPNOTSUPP | libc::EISDIR | libc::EINVAL)
                    ) => {}
                other => return other,
            }
        }
        let number = self.named.fetch_add(1, Ordering::Relaxed);
        let path = self.folder.join(format!("{number}.tmp"));
        let file = options.create_new(true).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    }

    /// An account of memory with nothing on it.
    pub(super) fn charge(self: &Arc<Self>) -> Charge {
        Charge {
            spool: Arc::clone(self),
            bytes: 0,
        }
    }
}

/// Bytes of memory that count against the bound; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Charge {
    spool: Arc<Spool>,
    bytes: usize,
}

impl Charge {
    /// Bytes taken.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more room; false, and nothing changed, if there is none.
    pub(super) fn grow(&mut self, by: usize) -> bool {
        let taken = self.spool.in_memory.fetch_add(by, Ordering::Relaxed);
        if taken.saturating_add(by) > self.spool.most {
            self.spool.in_memory.fetch_sub(by, Ordering::Relaxed);
            return false;
        }
        self.bytes += by;
        true
    }

    /// Gives all room back.
    pub(super) fn give_back(&mut self) {
        self.spool.in_memory.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = 0;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_folder_is_private_and_what_a_killed_process_left_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("state/spool");
        let spool = Spool::open(&folder).unwrap();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        let _file = spool.file().unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0, "a file has no name");
        fs::write(folder.join("7.tmp"), "left").unwrap();
        Spool::open(&folder).unwrap();
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
        assert!(spool.file().is_err());
        fs::write(&folder, "in the way").unwrap();
        assert!(Spool::open(&folder).is_err());
    }

    #[test]
    fn room_is_taken_up_to_the_bound_and_given_back() {
        let home = tempfile::tempdir().unwrap();
        let spool = Spool::open(home.path()).unwrap();
        let (mut first, mut second) = (spool.charge(), spool.charge());
        assert!(first.grow(BODIES_IN_MEMORY - 10));
        assert!(!second.grow(11) && !first.grow(11) && first.grow(10));
        assert_eq!(spool.in_memory(), BODIES_IN_MEMORY);
        drop((first, second));
        assert_eq!(spool.in_memory(), 0);
    }
}
