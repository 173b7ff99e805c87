//! `crawler filter info`, `check` and `merge`: saved filters.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::{binary, grouped, percent};
use crate::commands::{USAGE, fail, print};
use crate::seen::snapshot::{self, CHUNK_BYTES, Restored, Writer};
use crate::seen::{Kind, SeenSet};
use crate::url::{CrawlUrl, Identity};

/// Exit code of a fault that was found (README).
const FAULT: u8 = 5;
/// Damaged chunks that are named; of more the number is told.
const MAX_NAMED: usize = 20;
/// Longest line of standard input, bytes.
const MAX_LINE: u64 = 1 << 20;

/// What `info` is asked.
#[derive(Debug, Args)]
pub(in crate::commands) struct InfoArgs {
    /// The file: state/filter-N.snap of a job, or what `filter merge` wrote
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// What `check` is asked.
#[derive(Debug, Args)]
pub(in crate::commands) struct CheckArgs {
    /// The file
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Take the lines as they are: do not bring URLs into their canonical form
    #[arg(long)]
    raw: bool,
}

/// What `merge` is asked.
#[derive(Debug, Args)]
pub(in crate::commands) struct MergeArgs {
    /// The one
    #[arg(value_name = "FILE")]
    one: PathBuf,
    /// The other
    #[arg(value_name = "FILE")]
    other: PathBuf,
    /// The union; it must not be there yet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// What to say, and the exit code.
type Failure = (String, u8);

fn open(file: &Path) -> Result<(Box<dyn SeenSet>, Restored), Failure> {
    let name = file.display();
    let input = File::open(file).map_err(|error| (format!("{name}: {error}"), USAGE))?;
    snapshot::restore(BufReader::with_capacity(CHUNK_BYTES, input), None)
        .map_err(|error| (format!("{name}: {error}"), FAULT))
}

/// A filter that is whole.
fn open_sound(file: &Path) -> Result<(Box<dyn SeenSet>, Restored), Failure> {
    let (set, restored) = open(file)?;
    if restored.damaged.is_empty() {
        return Ok((set, restored));
    }
    let text = format!(
        "{}: {}; what stood there is known to the job's admission log alone: a crawl makes it again by itself",
        file.display(),
        damage(&restored.damaged)
    );
    Err((text, FAULT))
}

fn damage(chunks: &[usize]) -> String {
    let named: Vec<_> = chunks.iter().take(MAX_NAMED).map(ToString::to_string).collect();
    let more = chunks.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("the checksum of chunk {}{more} does not fit", named.join(", "))
}

fn ended(result: Result<ExitCode, Failure>) -> ExitCode {
    result.unwrap_or_else(|(text, code)| fail(&text, code))
}

pub(in crate::commands) fn info(args: &InfoArgs) -> ExitCode {
    ended(open(&args.file).map(|(set, restored)| {
        let printed = print(&info_text(&args.file, set.as_ref(), &restored));
        if restored.damaged.is_empty() {
            printed
        } else {
            ExitCode::from(FAULT)
        }
    }))
}

fn info_text(file: &Path, set: &dyn SeenSet, restored: &Restored) -> String {
    let (account, shape) = (set.account(), set.shape());
    let mut text = format!(
        "{}: a filter snapshot of format {}\n",
        file.display(),
        snapshot::VERSION
    );
    let mut line = |name: &str, value: String| {
        // writing to a String cannot fail
        let _ = writeln!(text, "  {name:<9} {value}");
    };
    line("kind", account.kind.name().to_owned());
    for (capacity, lines) in &shape.layers {
        let size = binary(lines * crate::seen::sizing::LINE_BYTES);
        line("layer", format!("{} URLs in {size}", grouped(*capacity)));
    }
    // a damaged one counts its items from the log, which is not here
    let items = if restored.damaged.is_empty() {
        account.items
    } else {
        restored.sample.items
    };
    line("URLs", grouped(items));
    if account.kind != Kind::HashSet {
        line("fill", percent(account.fill));
        line("target", percent(account.fp_target));
    }
    match account.kind {
        Kind::Exact => line("predicted", "none: a table behind it decides".to_owned()),
        _ => line("predicted", percent(account.fp_predicted)),
    }
    if account.fp_observed_of > 0 && account.kind != Kind::HashSet && account.kind != Kind::Exact {
        let (low, high) = (percent(account.fp_observed_low), percent(account.fp_observed_high));
        let of = grouped(account.fp_observed_of);
        line(
            "observed",
            format!(
                "{} of {of} sampled (95 %: {low} to {high})",
                percent(account.fp_observed)
            ),
        );
        line(
            "lost",
            format!(
                "about {:.1} URLs (95 %: {:.0} to {:.0})",
                account.lost_estimate, account.lost_low, account.lost_high
            ),
        );
    }
    line(
        "log",
        format!(
            "record {} to {}",
            grouped(restored.log_start),
            grouped(restored.log_end)
        ),
    );
    line("identity", format!("rules {:#x}", restored.identity));
    let chunks = shape.chunk_lengths().count();
    line(
        "chunks",
        if restored.damaged.is_empty() {
            format!("{chunks}, all whole")
        } else {
            format!("{chunks}; {}", damage(&restored.damaged))
        },
    );
    text
}

pub(in crate::commands) fn check(args: &CheckArgs) -> ExitCode {
    ended(open_sound(&args.file).and_then(|(set, restored)| {
        let identity = Identity::default();
        if !args.raw && restored.identity != identity.stamp() {
            let text = format!(
                "{}: made under other rules for what counts as one page; --raw asks for canonical forms as they are",
                args.file.display()
            );
            return Err((text, USAGE));
        }
        let key = set.shape().key;
        let ask = |line: &str| {
            let url = (!args.raw).then(|| CrawlUrl::parse(line, &identity).ok()).flatten();
            let text = url.as_ref().map_or(line, |url| url.canonical());
            set.contains(key.fingerprint(text.as_bytes()))
        };
        let seen = if set.account().kind == Kind::Exact {
            "maybe"
        } else {
            "seen"
        };
        answer(io::stdin().lock(), io::stdout().lock(), seen, ask).map_err(|error| (error.to_string(), 1))
    }))
}

/// Says of each line whether it was seen. A closed pipe is no failure.
fn answer(mut lines: impl BufRead, out: impl Write, seen: &str, ask: impl Fn(&str) -> bool) -> io::Result<ExitCode> {
    let mut out = io::BufWriter::new(out);
    let mut line = Vec::new();
    loop {
        line.clear();
        if io::Read::take(&mut lines, MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() {
            continue;
        }
        let word = if ask(text) { seen } else { "new" };
        match writeln!(out, "{word}\t{text}") {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            other => other?,
        }
    }
    match out.flush() {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(ExitCode::SUCCESS),
    }
}

pub(in crate::commands) fn merge(args: &MergeArgs) -> ExitCode {
    ended(merged(args))
}

fn merged(args: &MergeArgs) -> Result<ExitCode, Failure> {
    if args.output.exists() {
        return Err((format!("{}: is there already", args.output.display()), USAGE));
    }
    let (mut one, first) = open_sound(&args.one)?;
    let (other, second) = open_sound(&args.other)?;
    let differ = |what: String| {
        (
            format!("{} and {}: {what}", args.one.display(), args.other.display()),
            USAGE,
        )
    };
    if first.identity != second.identity {
        return Err(differ(
            "they were made under other rules for what counts as one page".to_owned(),
        ));
    }
    one.absorb(other.as_ref()).map_err(differ)?;
    drop(other);
    let written = write(one.as_ref(), first.identity, &args.output);
    written.map_err(|error| (format!("cannot write {}: {error}", args.output.display()), 3))?;
    let account = one.account();
    Ok(print(&format!(
        "{}: {} URLs of {}, fill {}, predicted rate {}\n",
        args.output.display(),
        grouped(account.items),
        grouped(account.capacity),
        percent(account.fill),
        percent(account.fp_predicted)
    )))
}

/// Writes beside the file and renames. The union belongs to no log: its positions are 0.
fn write(set: &dyn SeenSet, identity: u32, path: &Path) -> io::Result<()> {
    let invalid = |error: snapshot::SnapshotError| io::Error::other(error.to_string());
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    let mut file = io::BufWriter::new(File::create(&beside)?);
    let (mut writer, header) = Writer::begin(&set.shape(), 0, identity).map_err(invalid)?;
    file.write_all(&header)?;
    let mut chunk = Vec::new();
    for index in 0..set.chunks() {
        set.copy_chunk(index, &mut chunk);
        writer.chunk(&mut chunk).map_err(invalid)?;
        file.write_all(&chunk)?;
    }
    file.write_all(&writer.finish(0, &set.sample()).map_err(invalid)?)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_answered() {
        let mut out = Vec::new();
        let lines = "http://a/\n\n  b \r\nc";
        answer(lines.as_bytes(), &mut out, "seen", |line| line.len() == 1).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "new\thttp://a/\nseen\tb\nseen\tc\n");
    }

    #[test]
    fn a_long_list_of_damage_is_cut() {
        assert_eq!(damage(&[1, 4]), "the checksum of chunk 1, 4 does not fit");
        assert!(damage(&(0..100).collect::<Vec<_>>()).contains("19 and 80 more"));
    }
}
