//! `crawler dedup`: lines in, first occurrences out, in order, while they come.
//!
//! A block is read, cut into lines, hashed and asked as one batch, and what is new is written in runs. Memory is the
//! filter, two blocks, and the longest line. Bytes are bytes: no text encoding is assumed.

mod exact;
mod input;
mod lines;
mod says;
mod sift;

use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use self::exact::ExactTable;
use self::input::Input;
use self::says::{Progress, Summary};
use self::sift::{Keys, Sieve, Stop};
use super::{USAGE, fail};
use crate::config;
use crate::hash::HashKey;
use crate::seen::{self, Kind};

/// Exit code of output that cannot be written (README).
const NOT_WRITABLE: u8 = 3;
/// Unique lines a filter is made for where the input does not say how many there may be. It grows.
const UNKNOWN_CAPACITY: u64 = 1 << 20;
/// Most unique lines that are guessed from the size of the input. Beyond it the filter grows as it must.
const MOST_GUESSED: u64 = 100_000_000;
/// The false-positive rate without `--fp`. A tool for lists loses nothing by default that anybody would notice: about
/// one of 8 million unique lines, for 39 bits each.
const DEFAULT_FP: &str = "0.000001";

/// What `dedup` is asked.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own that a user sets"
)]
pub(super) struct DedupArgs {
    /// Files of lines, also .gz and .zst (told by their content); - is standard input, as is none
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Unique lines the filter is made for; without it by the size of the input. It grows beyond it
    #[arg(long, value_name = "N", value_parser = super::items)]
    capacity: Option<u64>,
    /// False-positive rate: the share of unique lines that a full filter drops by mistake
    #[arg(long, value_name = "P", value_parser = super::share, default_value = DEFAULT_FP)]
    fp: f64,
    /// Structure that remembers the lines
    #[arg(long, value_name = "KIND", value_parser = kind, default_value = "bloom")]
    kind: Kind,
    /// Lose nothing: every answer is confirmed in a table in this folder, which later runs go on with
    #[arg(long, value_name = "DIR", conflicts_with = "kind")]
    exact: Option<PathBuf>,
    /// Lines are URLs, and spellings of one address count as one line; what is no URL counts as it is
    #[arg(long)]
    normalize: bool,
    /// A carriage return at a line's end does not count
    #[arg(long)]
    crlf: bool,
    /// Lines end with a zero byte instead of a newline, here and in the output
    #[arg(long, short = 'z')]
    null: bool,
    /// Write the summary to FILE as JSON
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// No summary and no progress
    #[arg(long, short)]
    quiet: bool,
}

/// The kind that keeps all on disk needs to know where.
fn kind(text: &str) -> Result<Kind, String> {
    if text == "exact" {
        return Err("give --exact DIR instead: it keeps its table in that folder".to_owned());
    }
    config::value::word(text)
}

/// Why it stops before the end, and with which code.
struct Failure {
    text: String,
    code: u8,
}

impl Failure {
    fn new(text: impl Into<String>, code: u8) -> Self {
        Self {
            text: text.into(),
            code,
        }
    }
}

pub(super) fn run(args: &DedupArgs) -> ExitCode {
    match dedup(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure.text, failure.code),
    }
}

fn dedup(args: &DedupArgs) -> Result<(), Failure> {
    let usage = |text: String| Failure::new(text, USAGE);
    let output = sift::standard_output().map_err(|error| cannot_write(&error))?;
    let inputs = input::survey(&args.files, &output).map_err(usage)?;
    let table = args
        .exact
        .as_deref()
        .map(|folder| ExactTable::open(folder, args.normalize, args.crlf))
        .transpose()
        .map_err(|refusal| Failure::new(refusal.text, refusal.code))?;
    let mut sieve = Sieve::new(sift::Rules::of(args.normalize, args.crlf, args.null), output);
    let mut progress = Progress::new(args.quiet, input::total_bytes(&inputs));
    let mut keys = table.map(|table| Keys::Exact(Box::new(table)));
    let stopped = inputs.iter().enumerate().try_for_each(|(at, input)| {
        let rest = inputs.get(at..).unwrap_or_default();
        sift_one(args, input, rest, &mut keys, &mut sieve, &mut progress)
    });
    let ended = settle(stopped, &mut keys, &mut sieve);
    progress.clear();
    let summary = Summary::new(&sieve, keys.as_ref(), progress.seconds());
    let told = tell(args, &sieve, &summary);
    match ended {
        // whoever reads has enough
        Ok(()) | Err(Stop::Reader) => told,
        Err(Stop::Output(error)) => Err(cannot_write(&error)),
        Err(Stop::Table(error)) => Err(Failure::new(table_fails(args, &error), NOT_WRITABLE)),
        Err(Stop::Input(text)) => Err(Failure::new(text, 1)),
        Err(Stop::Usage(text)) => Err(Failure::new(text, USAGE)),
    }
}

/// Writes what is held and takes it into the table, also when an input could not be read to its end.
fn settle(stopped: Result<(), Stop>, keys: &mut Option<Keys>, sieve: &mut Sieve) -> Result<(), Stop> {
    if matches!(stopped, Err(Stop::Reader | Stop::Output(_) | Stop::Table(_))) {
        return stopped;
    }
    sieve.flush()?;
    if let Some(Keys::Exact(table)) = keys {
        sieve.sync();
        table.settle().map_err(Stop::Table)?;
    }
    stopped
}

/// One input, to its end.
fn sift_one(
    args: &DedupArgs,
    input: &Input,
    rest: &[Input],
    keys: &mut Option<Keys>,
    sieve: &mut Sieve,
    progress: &mut Progress,
) -> Result<(), Stop> {
    let read_fails = |line: u64, error: &io::Error| Stop::Input(format!("{}:{line}: {error}", input.name()));
    let mut reader = input
        .open()
        .map_err(|error| Stop::Input(format!("{}: {error}", input.name())))?;
    let block_bytes = if args.exact.is_some() {
        exact::BLOCK_BYTES
    } else {
        lines::BLOCK_BYTES
    };
    sieve.begin(input.name(), block_bytes);
    loop {
        let more = match sieve.block.fill(reader.as_mut()) {
            Ok(more) => more,
            Err(error) => return Err(read_fails(sieve.line(), &error)),
        };
        let keys = match keys {
            Some(keys) => keys,
            None => keys.insert(make(args, rest, &sieve.block)?),
        };
        sieve.sift(keys)?;
        if reader.is_live() {
            sieve.flush()?;
        }
        progress.show(sieve, keys);
        if !more {
            return Ok(());
        }
    }
}

/// The set, once the first block has told how long the lines are.
fn make(args: &DedupArgs, inputs: &[Input], block: &lines::Block) -> Result<Keys, Stop> {
    let capacity = args.capacity.unwrap_or_else(|| {
        let lines = input::guess_lines(inputs, block.mean_line());
        lines.map_or(UNKNOWN_CAPACITY, |lines| lines.min(MOST_GUESSED))
    });
    let key = HashKey::random().map_err(|error| Stop::Input(error.to_string()))?;
    match seen::make(args.kind, key, capacity, args.fp) {
        Ok(set) => Ok(Keys::Filter(set)),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            Err(Stop::Usage(format!("{error}; see --capacity and --fp")))
        }
        Err(error) => Err(Stop::Input(format!(
            "the filter cannot be made: {error}; try a smaller --capacity"
        ))),
    }
}

fn tell(args: &DedupArgs, sieve: &Sieve, summary: &Summary) -> Result<(), Failure> {
    if !args.quiet {
        let mut text = sieve.complaints();
        text.push_str(summary.text());
        // nobody can be told that standard error is gone
        let _ = io::stderr().write_all(text.as_bytes());
    }
    let Some(file) = &args.stats else {
        return Ok(());
    };
    std::fs::write(file, summary.json())
        .map_err(|error| Failure::new(format!("--stats {}: {error}", file.display()), NOT_WRITABLE))
}

fn cannot_write(error: &dyn Display) -> Failure {
    Failure::new(format!("standard output cannot be written: {error}"), NOT_WRITABLE)
}

fn table_fails(args: &DedupArgs, error: &io::Error) -> String {
    let folder = args.exact.as_deref().unwrap_or(std::path::Path::new(""));
    format!(
        "--exact {}: {error}; what was written is whole, and the next run writes again what the table did not take in",
        folder.display()
    )
}
