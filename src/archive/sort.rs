//! Sorting the lines of a file that may be larger than memory.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Longest line in bytes; a longer one is an error. Far over what an address and a head may have.
pub const MAX_LINE: usize = 1 << 20;

/// Most runs merged at once: as many files are open then.
const FAN_IN: usize = 64;

/// Buffer of a file that is read or written, in bytes.
const BUFFER: usize = 1 << 16;

/// What a line in memory costs beside its bytes.
const PER_LINE: usize = size_of::<(usize, usize)>();

/// Sorts the lines of `from` by bytes into `to` (written beside it and renamed), equal lines once, in about `memory`
/// bytes: sorted runs on disk beside `to`, then merged, at most 64 at a time. Gives the number of lines in `to`. What
/// an earlier crash left beside `to` is removed. Never less than one line and the buffers of a merge (4 MiB) is used.
///
/// # Errors
/// Any failure to read or write, and a line over [`MAX_LINE`]; `to` is then what it was before.
pub fn sort_file(from: &Path, to: &Path, memory: usize) -> io::Result<u64> {
    let place = Place::new(to)?;
    place.clean()?;
    let sorted = into_runs(from, &place, memory).and_then(|runs| merge_all(runs, &place));
    match sorted {
        Ok(lines) => {
            fs::rename(place.result(), to)?;
            File::open(&place.folder)?.sync_all()?;
            place.clean()?;
            Ok(lines)
        }
        Err(error) => {
            // the first error counts; what stays behind is removed by the next call
            let _ = place.clean();
            Err(error)
        }
    }
}

/// The folder of the target and the names of what is written there on the way.
struct Place {
    folder: PathBuf,
    name: String,
}

impl Place {
    fn new(to: &Path) -> io::Result<Self> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, format!("{} is no file name", to.display()));
        let name = to
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(invalid)?
            .to_owned();
        let folder = to
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        Ok(Self {
            folder: folder.to_owned(),
            name,
        })
    }

    fn result(&self) -> PathBuf {
        self.folder.join(format!("{}.sorting", self.name))
    }

    fn run(&self, number: usize) -> PathBuf {
        self.folder.join(format!("{}.sorting-{number}", self.name))
    }

    /// Removes results and runs that were never finished.
    fn clean(&self) -> io::Result<()> {
        let ours = format!("{}.sorting", self.name);
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let is_left = entry
                .file_name()
                .to_str()
                .and_then(|name| name.strip_prefix(&ours))
                .is_some_and(|rest| {
                    rest.is_empty()
                        || rest
                            .strip_prefix('-')
                            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
                });
            if is_left {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }
}

/// Writes the lines of `from` as sorted runs, each of what fits in `memory`.
fn into_runs(from: &Path, place: &Place, memory: usize) -> io::Result<VecDeque<PathBuf>> {
    let mut input = Lines::open(from)?;
    let mut runs = VecDeque::new();
    let length = usize::try_from(input.input.get_ref().metadata()?.len()).unwrap_or(usize::MAX);
    let mut text = Vec::with_capacity(length.min(memory));
    let mut ends = Vec::new();
    loop {
        let more = input.advance()?;
        if !ends.is_empty() && (!more || text.len() + input.line.len() + (ends.len() + 1) * 2 * PER_LINE > memory) {
            let path = place.run(runs.len());
            write_run(&text, &ends, &path)?;
            runs.push_back(path);
            text.clear();
            ends.clear();
        }
        if !more {
            return Ok(runs);
        }
        text.extend_from_slice(&input.line);
        ends.push(text.len());
    }
}

fn write_run(text: &[u8], ends: &[usize], path: &Path) -> io::Result<()> {
    let mut start = 0;
    let mut lines: Vec<&[u8]> = ends
        .iter()
        .map(|end| {
            let line = text.get(start..*end).unwrap_or_default();
            start = *end;
            line
        })
        .collect();
    lines.sort_unstable();
    let mut output = BufWriter::with_capacity(BUFFER, File::create(path)?);
    for line in lines {
        write_line(&mut output, line)?;
    }
    output.flush()
}

/// Merges the runs into the place's result, through longer runs if there are more than [`FAN_IN`].
fn merge_all(mut runs: VecDeque<PathBuf>, place: &Place) -> io::Result<u64> {
    let mut made = runs.len();
    while runs.len() > FAN_IN {
        let some: Vec<PathBuf> = runs.drain(..FAN_IN).collect();
        let path = place.run(made);
        made += 1;
        merge(&some, &path)?;
        for merged in &some {
            fs::remove_file(merged)?;
        }
        runs.push_back(path);
    }
    merge(runs.make_contiguous(), &place.result())
}

/// Merges sorted runs into one file, synced, equal lines once; gives the number of lines.
fn merge(runs: &[PathBuf], to: &Path) -> io::Result<u64> {
    let mut inputs = runs
        .iter()
        .map(|run| Lines::open(run))
        .collect::<io::Result<Vec<_>>>()?;
    let mut output = BufWriter::with_capacity(BUFFER, File::create(to)?);
    let mut heap = BinaryHeap::with_capacity(inputs.len());
    for (number, input) in inputs.iter_mut().enumerate() {
        if input.advance()? {
            heap.push(Reverse((std::mem::take(&mut input.line), number)));
        }
    }
    let mut last: Option<Vec<u8>> = None;
    let mut lines = 0;
    while let Some(Reverse((line, number))) = heap.pop() {
        let spare = if last.as_ref() == Some(&line) {
            line
        } else {
            write_line(&mut output, &line)?;
            lines += 1;
            last.replace(line).unwrap_or_default()
        };
        if let Some(input) = inputs.get_mut(number) {
            input.line = spare;
            if input.advance()? {
                heap.push(Reverse((std::mem::take(&mut input.line), number)));
            }
        }
    }
    output
        .into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()?;
    Ok(lines)
}

fn write_line(output: &mut impl Write, line: &[u8]) -> io::Result<()> {
    output.write_all(line)?;
    output.write_all(b"\n")
}

/// The lines of a file, one at a time.
struct Lines {
    input: BufReader<File>,
    /// The line [`Lines::advance`] read, without its end.
    line: Vec<u8>,
}

impl Lines {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            input: BufReader::with_capacity(BUFFER, File::open(path)?),
            line: Vec::new(),
        })
    }

    /// Reads the next line; `false` at the end of the file. A last line may lack its end.
    fn advance(&mut self) -> io::Result<bool> {
        self.line.clear();
        let read = io::Read::take(&mut self.input, MAX_LINE as u64 + 1).read_until(b'\n', &mut self.line)?;
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        if self.line.len() > MAX_LINE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a line of over {MAX_LINE} bytes"),
            ));
        }
        Ok(read > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn sorted(input: &[u8], memory: usize) -> (u64, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("in"), folder.path().join("out"));
        fs::write(&from, input).unwrap();
        let lines = sort_file(&from, &to, memory).unwrap();
        assert_eq!(names(folder.path()), ["in", "out"]);
        (lines, fs::read(&to).unwrap())
    }

    #[test]
    fn small_files_are_sorted_by_bytes() {
        assert_eq!(sorted(b"", 1_000), (0, b"".to_vec()));
        assert_eq!(sorted(b"b\n\xff\na b\na\nb", 1_000), (4, b"a\na b\nb\n\xff\n".to_vec()));
        assert_eq!(sorted(b"\n\nx\n", 1_000), (2, b"\nx\n".to_vec()));
    }

    #[test]
    fn more_runs_than_are_merged_at_once_still_give_one_file() {
        let lines: Vec<String> = (0..10_000_u32)
            .map(|i| format!("{:08}", i.wrapping_mul(2_654_435_761) % 5_000))
            .collect();
        let expected: BTreeSet<&str> = lines.iter().map(String::as_str).collect();
        let (count, output) = sorted(lines.join("\n").as_bytes(), 1_000);
        assert_eq!(count, expected.len() as u64);
        assert!(
            output
                .split(|byte| *byte == b'\n')
                .map(|line| std::str::from_utf8(line).unwrap())
                .filter(|line| !line.is_empty())
                .eq(expected)
        );
    }

    #[test]
    fn what_a_crash_left_is_removed_and_other_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["out.sorting", "out.sorting-0", "out.sorting-17"] {
            fs::write(at(name), "zzz\n").unwrap();
        }
        for name in ["in", "out.sorting-x", "out.sortings", "other.sorting-0"] {
            fs::write(at(name), "b\na\n").unwrap();
        }
        assert_eq!(sort_file(&at("in"), &at("out"), 10).unwrap(), 2);
        assert_eq!(
            names(folder.path()),
            ["in", "other.sorting-0", "out", "out.sorting-x", "out.sortings"]
        );
    }

    #[test]
    fn a_failure_leaves_the_target_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("out"), "before\n").unwrap();
        fs::write(at("in"), [b"a\n".as_slice(), &vec![b'x'; MAX_LINE + 1]].concat()).unwrap();
        assert_eq!(
            sort_file(&at("in"), &at("out"), 10).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
        assert_eq!(
            sort_file(&at("none"), &at("out"), 10).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert_eq!(fs::read(at("out")).unwrap(), b"before\n");
        assert_eq!(names(folder.path()), ["in", "out"]);
        fs::write(at("in"), [b"a\n".as_slice(), &vec![b'x'; MAX_LINE]].concat()).unwrap();
        assert_eq!(sort_file(&at("in"), &at("out"), 10).unwrap(), 2);
    }

    #[test]
    fn a_file_may_be_sorted_onto_itself() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("both");
        fs::write(&path, "b\na\n").unwrap();
        assert_eq!(sort_file(&path, &path, 1).unwrap(), 2);
        assert_eq!(fs::read(&path).unwrap(), b"a\nb\n");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_lines_come_out_as_a_set_in_order(lines in prop::collection::vec("[ab\u{ff}]{0,3}", 0..60), memory in 0_usize..600) {
            let expected: BTreeSet<&String> = lines.iter().collect();
            let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            let joined: String = expected.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
            prop_assert_eq!(sorted(text.as_bytes(), memory), (expected.len() as u64, joined.into_bytes()));
        }
    }
}
