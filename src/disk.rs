//! Files of a job: append, sync, cut, publish. The only place that writes files, and so the only place to make fail.
//!
//! Names are relative to the job folder, with `/` between the parts. Two implementations: [`Folder`] on a real file
//! system, and [`Memory`], which knows what a kill and what a power cut leave behind.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A file that only grows at its end, or is cut there.
pub trait Append: Send {
    /// Writes all bytes at the end. They survive the death of this process, but not yet a power cut.
    ///
    /// # Errors
    /// If the system cannot write. The file may then hold a part of the bytes.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Makes everything appended so far survive a power cut.
    ///
    /// # Errors
    /// If the system cannot.
    fn sync(&mut self) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> u64;
    /// Is there nothing in it?
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Cuts the file to `len` bytes, which it must have.
    ///
    /// # Errors
    /// If the system cannot, or the file is shorter.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

/// A folder of files.
pub trait Disk: Send + Sync {
    /// Opens a file for appending, made if it is not there.
    ///
    /// # Errors
    /// If the system cannot.
    fn append(&self, name: &str) -> io::Result<Box<dyn Append>>;
    /// Reads a file from its start; `None` if it is not there.
    ///
    /// # Errors
    /// If the system cannot.
    fn read(&self, name: &str) -> io::Result<Option<Box<dyn Read + Send>>>;
    /// Length of a file, bytes; `None` if it is not there.
    ///
    /// # Errors
    /// If the system cannot tell.
    fn size(&self, name: &str) -> io::Result<Option<u64>>;
    /// Gives a file another name, replacing what has it; the name survives a power cut when this returns.
    ///
    /// # Errors
    /// If the system cannot.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Removes a file; one that is not there is no error.
    ///
    /// # Errors
    /// If the system cannot.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Names of the files in a folder, sorted; none if there is no such folder.
    ///
    /// # Errors
    /// If the system cannot.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// The folder on the real file system, if it is one.
    fn root(&self) -> Option<&Path>;
}

/// Puts a whole file in its place at once: written beside, synced, renamed.
///
/// # Errors
/// If the disk cannot.
pub fn publish(disk: &dyn Disk, name: &str, bytes: &[u8]) -> io::Result<()> {
    let beside = format!("{name}.tmp");
    disk.remove(&beside)?;
    let mut file = disk.append(&beside)?;
    file.append(bytes)?;
    file.sync()?;
    disk.rename(&beside, name)
}

/// A folder on a real file system.
#[derive(Debug)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The folder must be there.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }
}

struct RealFile {
    file: File,
    len: u64,
}

impl Append for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        let there = self.file.metadata()?.len();
        if there < len {
            return Err(shorter(there, len));
        }
        self.file.set_len(len)?;
        self.len = len;
        Ok(())
    }
}

/// The error of a file that lost bytes it once had.
pub(crate) fn shorter(there: u64, len: u64) -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("the file has {there} bytes, {len} were written to it"),
    )
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

impl Disk for Folder {
    fn append(&self, name: &str) -> io::Result<Box<dyn Append>> {
        let path = self.root.join(name);
        let made = !path.exists();
        let file = OpenOptions::new().create(true).append(true).open(&path)?;
        if made {
            sync_folder_of(&path)?;
        }
        let len = file.metadata()?.len();
        Ok(Box::new(RealFile { file, len }))
    }

    fn read(&self, name: &str) -> io::Result<Option<Box<dyn Read + Send>>> {
        match File::open(self.root.join(name)) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn size(&self, name: &str) -> io::Result<Option<u64>> {
        match fs::metadata(self.root.join(name)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let to = self.root.join(to);
        fs::rename(self.root.join(from), &to)?;
        sync_folder_of(&to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.root.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(self.root.join(folder)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names)
    }

    fn root(&self) -> Option<&Path> {
        Some(&self.root)
    }
}

/// Files in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    files: Arc<Mutex<BTreeMap<String, MemoryFile>>>,
}

#[derive(Debug, Clone, Default)]
struct MemoryFile {
    bytes: Vec<u8>,
    synced: usize,
}

impl Memory {
    /// The files as a kill of the process leaves them: whatever was written, synced or not. Later writes to `self`
    /// (by a process that should be dead) do not reach the copy.
    #[must_use]
    pub fn after_kill(&self) -> Self {
        Self {
            files: Arc::new(Mutex::new(self.lock().clone())),
        }
    }

    /// The files as a power cut leaves them: what was synced, and of the rest a part that `keep` chooses
    /// (from the number of bytes that are not synced, how many are there all the same).
    #[must_use]
    pub fn after_power_cut(&self, mut keep: impl FnMut(usize) -> usize) -> Self {
        let mut files = self.lock().clone();
        for file in files.values_mut() {
            let loose = file.bytes.len() - file.synced;
            file.bytes.truncate(file.synced + keep(loose).min(loose));
        }
        Self {
            files: Arc::new(Mutex::new(files)),
        }
    }

    /// A file's bytes, if it is there.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.lock().get(name).map(|file| file.bytes.clone())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, MemoryFile>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct MemoryAppend {
    disk: Memory,
    name: String,
    len: u64,
}

impl MemoryAppend {
    fn with<T>(&self, change: impl FnOnce(&mut MemoryFile) -> T) -> T {
        change(self.disk.lock().entry(self.name.clone()).or_default())
    }
}

impl Append for MemoryAppend {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.with(|file| file.bytes.extend_from_slice(bytes));
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.with(|file| file.synced = file.bytes.len());
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        if self.len < len {
            return Err(shorter(self.len, len));
        }
        let cut = usize::try_from(len).unwrap_or(usize::MAX);
        self.with(|file| {
            file.bytes.truncate(cut);
            file.synced = file.synced.min(cut);
        });
        self.len = len;
        Ok(())
    }
}

impl Disk for Memory {
    fn append(&self, name: &str) -> io::Result<Box<dyn Append>> {
        let len = self.lock().entry(name.to_owned()).or_default().bytes.len() as u64;
        Ok(Box::new(MemoryAppend {
            disk: self.clone(),
            name: name.to_owned(),
            len,
        }))
    }

    fn read(&self, name: &str) -> io::Result<Option<Box<dyn Read + Send>>> {
        Ok(self
            .bytes(name)
            .map(|bytes| Box::new(Cursor::new(bytes)) as Box<dyn Read + Send>))
    }

    fn size(&self, name: &str) -> io::Result<Option<u64>> {
        Ok(self.lock().get(name).map(|file| file.bytes.len() as u64))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut files = self.lock();
        let file = files
            .remove(from)
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.lock().remove(name);
        Ok(())
    }

    fn list(&self, folder: &str) -> io::Result<Vec<String>> {
        let start = format!("{folder}/");
        let names = self
            .lock()
            .keys()
            .filter_map(|name| name.strip_prefix(&start).map(str::to_owned))
            .collect();
        Ok(names)
    }

    fn root(&self) -> Option<&Path> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exercise(disk: &dyn Disk) {
        let mut file = disk.append("state/a").unwrap();
        file.append(b"hello ").unwrap();
        file.append(b"world").unwrap();
        file.sync().unwrap();
        assert_eq!(file.len(), 11);
        file.truncate(5).unwrap();
        assert!(file.truncate(6).is_err());
        drop(file);
        let mut again = disk.append("state/a").unwrap();
        assert_eq!(again.len(), 5);
        again.append(b"!").unwrap();
        let mut text = String::new();
        disk.read("state/a")
            .unwrap()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "hello!");
        publish(disk, "state/b", b"whole").unwrap();
        disk.rename("state/a", "state/c").unwrap();
        assert_eq!(disk.list("state").unwrap(), ["b", "c"]);
        disk.remove("state/c").unwrap();
        disk.remove("state/c").unwrap();
        assert!(disk.read("state/c").unwrap().is_none());
        assert!(disk.list("nowhere").unwrap().is_empty());
    }

    #[test]
    fn both_disks_behave_alike() {
        exercise(&Memory::default());
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("state")).unwrap();
        exercise(&Folder::new(folder.path().to_owned()));
    }

    #[test]
    fn a_kill_keeps_what_was_written_and_a_power_cut_what_was_synced() {
        let disk = Memory::default();
        let mut file = disk.append("f").unwrap();
        file.append(b"synced").unwrap();
        file.sync().unwrap();
        file.append(b"loose").unwrap();
        let killed = disk.after_kill();
        file.append(b"late").unwrap();
        assert_eq!(killed.bytes("f").unwrap(), b"syncedloose");
        assert_eq!(killed.after_power_cut(|_| 0).bytes("f").unwrap(), b"synced");
        assert_eq!(killed.after_power_cut(|n| n / 2).bytes("f").unwrap(), b"syncedlo");
    }
}
