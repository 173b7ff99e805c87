//! What has to be brought together from all over the log: a host's requests in the order of their starts, a URL's lines
//! in their own. By sorting on disk, so that memory does not grow with the job.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;

use crate::archive::sort::sort_file;

/// Memory for sorting, bytes.
const SORT_BYTES: usize = 64 << 20;

/// A folder for what is sorted; it goes away with this.
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("crawler-audit-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(super) fn pile(&self, name: &str) -> io::Result<Pile> {
        let path = self.0.join(name);
        Ok(Pile {
            to: BufWriter::new(File::create(&path)?),
            path,
        })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // what cannot be removed lies in the system's folder for such things
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Lines to be sorted: words without spaces, put together with one.
pub(super) struct Pile {
    to: BufWriter<File>,
    path: PathBuf,
}

impl Pile {
    pub(super) fn add(&mut self, line: std::fmt::Arguments<'_>) -> io::Result<()> {
        writeln!(self.to, "{line}")
    }

    /// Hands out the lines in order, each as its words.
    pub(super) fn read(mut self, mut each: impl FnMut(&[&str])) -> io::Result<()> {
        self.to.flush()?;
        let sorted = self.path.with_extension("sorted");
        sort_file(&self.path, &sorted, SORT_BYTES)?;
        let mut lines = BufReader::new(File::open(sorted)?);
        let mut line = String::new();
        while lines.read_line(&mut line)? > 0 {
            let words: Vec<&str> = line.trim_end_matches('\n').split(' ').collect();
            each(&words);
            line.clear();
        }
        Ok(())
    }
}
