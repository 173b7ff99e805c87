//! Block by block: lines to keys, keys to answers, new lines to the output.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};

use super::exact::ExactTable;
use super::lines::Block;
use crate::hash::{Fingerprint, HashKey};
use crate::seen::{Account, SeenSet};
use crate::url::{CrawlUrl, Identity};

/// Bytes of output that are held before they are written.
const OUTPUT_BYTES: usize = 256 << 10;
/// Lines that are no URL and are named with file and number. Further ones are counted.
const NAMED: usize = 5;

/// What counts as one line.
#[derive(Debug)]
pub(super) struct Rules {
    identity: Option<Identity>,
    crlf: bool,
    end_byte: u8,
}

impl Rules {
    pub(super) fn of(normalize: bool, crlf: bool, null: bool) -> Self {
        Self {
            identity: normalize.then(Identity::default),
            crlf,
            end_byte: if null { 0 } else { b'\n' },
        }
    }
}

/// What remembers the lines.
pub(super) enum Keys {
    /// In memory: a filter, or an exact set.
    Filter(Box<dyn SeenSet>),
    /// On disk, with a filter in front.
    Exact(Box<ExactTable>),
}

impl Keys {
    fn hash_key(&self) -> HashKey {
        match self {
            Self::Filter(set) => set.shape().key,
            Self::Exact(table) => table.hash_key(),
        }
    }

    pub(super) fn account(&self) -> Account {
        match self {
            Self::Filter(set) => set.account(),
            Self::Exact(table) => table.account(),
        }
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Filter(set) => set.memory_bytes(),
            Self::Exact(table) => table.memory_bytes(),
        }
    }
}

/// Why there is nothing more to do.
pub(super) enum Stop {
    /// The reader of the output has closed it.
    Reader,
    /// The output cannot be written.
    Output(io::Error),
    /// The table on disk cannot be read or written.
    Table(io::Error),
    /// An input cannot be read; the text says which and where.
    Input(String),
    /// A flag is out of range.
    Usage(String),
}

/// Lines in, first occurrences out.
pub(super) struct Sieve {
    pub(super) block: Block,
    rules: Rules,
    output: File,
    held: Vec<u8>,
    keys: Vec<Fingerprint>,
    new: Vec<bool>,
    input: String,
    /// Lines of this input before the block.
    lines_before: u64,
    pub(super) lines: u64,
    pub(super) unique: u64,
    pub(super) bytes_in: u64,
    pub(super) bytes_out: u64,
    /// Lines that are no URL, where lines are to be URLs.
    pub(super) no_url: u64,
    named: Vec<String>,
}

/// Standard output for large writes: the standard library's own would write line by line.
pub(super) fn standard_output() -> io::Result<File> {
    let own: OwnedFd = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(File::from(own))
}

impl Sieve {
    pub(super) fn new(rules: Rules, output: File) -> Self {
        Self {
            block: Block::new(rules.end_byte),
            rules,
            output,
            held: Vec::with_capacity(2 * OUTPUT_BYTES),
            keys: Vec::new(),
            new: Vec::new(),
            input: String::new(),
            lines_before: 0,
            lines: 0,
            unique: 0,
            bytes_in: 0,
            bytes_out: 0,
            no_url: 0,
            named: Vec::new(),
        }
    }

    /// Another input begins.
    pub(super) fn begin(&mut self, input: &str, block_bytes: usize) {
        input.clone_into(&mut self.input);
        self.lines_before = 0;
        self.block.begin(block_bytes);
    }

    /// The number of the first line that is not done yet.
    pub(super) fn line(&self) -> u64 {
        self.lines_before + 1
    }

    /// The lines of the block: those that are new go to the output.
    pub(super) fn sift(&mut self, set: &mut Keys) -> Result<(), Stop> {
        self.hash(set.hash_key());
        match set {
            Keys::Filter(set) => set.insert_batch(&self.keys, &mut self.new),
            Keys::Exact(table) => table.insert_batch(&self.keys, &mut self.new).map_err(Stop::Table)?,
        }
        let Self {
            block,
            new,
            held,
            output,
            bytes_out,
            ..
        } = self;
        for run in block.runs(new) {
            held.extend_from_slice(run);
            *bytes_out += run.len() as u64;
            if held.len() >= OUTPUT_BYTES {
                write(output, held)?;
            }
        }
        self.lines += self.block.len() as u64;
        self.lines_before += self.block.len() as u64;
        self.unique += self.new.iter().map(|new| u64::from(*new)).sum::<u64>();
        self.bytes_in += self.block.bytes() as u64;
        if let Keys::Exact(table) = set
            && table.is_due()
        {
            // a line is in the table only when it is in the output: killed between the two, it comes again
            self.flush()?;
            self.sync();
            table.settle().map_err(Stop::Table)?;
        }
        Ok(())
    }

    fn hash(&mut self, key: HashKey) {
        self.keys.clear();
        let crlf = self.rules.crlf;
        let bare = |line: &'_ [u8]| -> usize { line.len() - usize::from(crlf && line.ends_with(b"\r")) };
        let Some(identity) = &self.rules.identity else {
            let lines = self.block.lines().map(|line| line.get(..bare(line)).unwrap_or(line));
            self.keys.extend(lines.map(|line| key.fingerprint(line)));
            return;
        };
        for (at, line) in self.block.lines().enumerate() {
            let text = line.get(..bare(line)).unwrap_or(line);
            let parsed = std::str::from_utf8(text)
                .map_err(|_| "not UTF-8".to_owned())
                .and_then(|text| CrawlUrl::parse(text, identity).map_err(|reject| reject.to_string()));
            self.keys.push(match parsed {
                Ok(url) => key.fingerprint(url.canonical().as_bytes()),
                Err(reason) => {
                    self.no_url += 1;
                    if self.named.len() < NAMED {
                        self.named.push(format!(
                            "{}:{}: {reason}",
                            self.input,
                            self.lines_before + at as u64 + 1
                        ));
                    }
                    key.fingerprint(text)
                }
            });
        }
    }

    /// Writes what is held.
    pub(super) fn flush(&mut self) -> Result<(), Stop> {
        write(&mut self.output, &mut self.held)
    }

    /// Makes what was written survive a power cut, if the output is a file.
    pub(super) fn sync(&self) {
        // a pipe or a terminal cannot, and nothing is lost by it: what is not in the table comes again
        let _ = self.output.sync_data();
    }

    /// Lines that are no URL, for people.
    pub(super) fn complaints(&self) -> String {
        let mut text = String::new();
        // writing to a String cannot fail
        for line in &self.named {
            let _ = writeln!(text, "warning: {line}; kept as it is");
        }
        let more = self.no_url - self.named.len() as u64;
        if more > 0 {
            let _ = writeln!(text, "warning: and {more} more lines that are no URL");
        }
        text
    }
}

fn write(output: &mut File, held: &mut Vec<u8>) -> Result<(), Stop> {
    let written = output.write_all(held);
    held.clear();
    written.map_err(|error| match error.kind() {
        io::ErrorKind::BrokenPipe => Stop::Reader,
        _ => Stop::Output(error),
    })
}
