//! What the commands do: one file each. This one reads the command line and says which.

mod audit;
mod control;
pub mod crawl;
mod dedup;
pub mod demo;
mod descriptors;
mod heap;
mod explain;
pub mod filter;
mod forget;
mod lists;
mod log;
mod look;
mod pack;
mod report;
mod settings;
mod simulate;
mod status;
mod verify;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{self, Loaded};
use crate::seen::Kind;
use control::Order;
use filter::{bench, saved};

/// Exit code of a mistake in flags, settings or seeds (README).
pub const USAGE: u8 = 2;
/// Columns of the help where no terminal says otherwise; the README's copy has them.
const HELP_WIDTH: usize = 100;

/// A polite, resumable web crawler that archives to WARC.
#[derive(Debug, Parser)]
#[command(
    name = "crawler",
    version,
    about = "A polite, resumable web crawler that archives to WARC.",
    override_usage = "crawler --seeds FILE [FLAGS]\n       crawler COMMAND",
    args_conflicts_with_subcommands = true,
    subcommand_value_name = "COMMAND",
    disable_help_subcommand = true,
    max_term_width = HELP_WIDTH,
    after_help = AFTER_HELP
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const AFTER_HELP: &str = "\
Every flag has its key in crawler.toml (--max-pages is max_pages) and its variable in the environment \
(CRAWLER_MAX_PAGES). A flag beats the variable, the variable beats the file. Sizes: 64KiB, 100MiB, 1GiB \
(1024s), 1KB, 1MB, 1GB (1000s). Durations: 500ms, 2s, 3m, 1h, 2d.

Exit codes: 0 finished, or stopped at a limit that was asked for; 1 unexpected error; 2 usage or settings; \
3 disk full or folder not writable; 4 no seed could be fetched, or robots.txt forbids all that was asked for; \
5 the accounts do not add up; 130, 143 stopped by SIGINT, SIGTERM with its state saved: the same command goes on.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Crawl; the same as no command at all
    #[command(max_term_width = HELP_WIDTH)]
    Crawl,
    /// Crawl a small web of its own on loopback: needs no network
    Demo(demo::DemoArgs),
    /// Lines in, first occurrences out, in order
    #[command(max_term_width = HELP_WIDTH)]
    Dedup(dedup::DedupArgs),
    /// What every rule says of a URL; with --job, what became of it
    #[command(max_term_width = HELP_WIDTH)]
    Explain(explain::ExplainArgs),
    /// Where a job stands, also one that is running
    #[command(max_term_width = HELP_WIDTH)]
    Status(status::StatusArgs),
    /// Let a running crawl start nothing new for now
    Pause(control::ControlArgs),
    /// Let a paused crawl go on
    Resume(control::ControlArgs),
    /// End a running crawl with its state saved
    Stop(control::ControlArgs),
    /// What a job came to, also one that was killed before it could say so
    #[command(max_term_width = HELP_WIDTH)]
    Report(report::ReportArgs),
    /// Whether a job kept its promises: pauses, robots.txt, one record a URL, the accounts
    #[command(max_term_width = HELP_WIDTH)]
    Audit(audit::AuditArgs),
    /// Whether WARC, CDXJ and WACZ files are what their formats say, record by record
    #[command(max_term_width = HELP_WIDTH)]
    Verify(verify::VerifyArgs),
    /// A job's archive as one WACZ file, to be passed on or opened in a browser
    #[command(max_term_width = HELP_WIDTH)]
    Pack(pack::PackArgs),
    /// Take URLs out of a job's seen-set again, so that they are fetched once more
    #[command(max_term_width = HELP_WIDTH)]
    Forget(forget::ForgetArgs),
    /// Seen-set filters: sizes, saved files, speed
    #[command(subcommand, subcommand_value_name = "COMMAND")]
    Filter(FilterCommand),
    /// A crawl over a web made of arithmetic, in virtual time, without a network
    #[command(max_term_width = HELP_WIDTH)]
    Simulate(simulate::SimulateArgs),
    /// Settings: write a commented file, check one, show the effective ones
    #[command(subcommand, subcommand_value_name = "COMMAND")]
    Config(ConfigCommand),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, Subcommand)]
enum FilterCommand {
    /// Bits, bytes and hashes of a filter
    Size(SizeArgs),
    /// What a saved filter is, how full, and whether it is whole
    Info(saved::InfoArgs),
    /// Which lines of standard input a saved filter has seen
    Check(saved::CheckArgs),
    /// The union of two saved filters of one shape and key
    Merge(saved::MergeArgs),
    /// Speed and observed rate on this machine
    Bench(bench::BenchArgs),
}

#[derive(Debug, Args)]
struct SizeArgs {
    /// URLs it is made for
    #[arg(long, value_name = "N", value_parser = items)]
    items: u64,
    /// False-positive rate when it holds them
    #[arg(long, value_name = "P", value_parser = share)]
    fp: f64,
    /// Only this kind besides the textbook's figures; classic for those alone
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<Kind>,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Write a commented crawler.toml with every key at its default
    Init {
        /// The file; - is standard output
        #[arg(default_value = config::DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Check a file and name every problem with its line
    Check {
        /// The file
        #[arg(default_value = config::DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Print the effective settings and where each came from
    #[command(max_term_width = HELP_WIDTH)]
    Show,
}

fn kind(text: &str) -> Result<Kind, String> {
    config::value::word(text)
}

fn items(text: &str) -> Result<u64, String> {
    config::value::whole(text, 1..=u64::MAX)
}

fn share(text: &str) -> Result<f64, String> {
    config::value::real(text, 0.0, 1.0)
}

/// The whole command line: the commands, and the table of settings as flags.
#[must_use]
pub fn command() -> clap::Command {
    // of a flag that is given twice the last one counts, as with curl and wget; lists collect all
    let with_flags = |command: clap::Command| command.args(config::flags::args()).args_override_self(true);
    with_flags(Cli::command())
        .mut_subcommand("crawl", with_flags)
        .mut_subcommand("explain", with_flags)
        .mut_subcommand("config", |command| command.mut_subcommand("show", with_flags))
}

/// `crawler --help` as it stands in the README: 110 columns, no colours.
#[must_use]
pub fn help() -> String {
    command().term_width(HELP_WIDTH).render_help().to_string()
}

/// Runs the command line `args` (the program's name first) and gives the exit code.
#[must_use]
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    heap::keep_lean();
    let args: Vec<OsString> = args.into_iter().collect();
    let matches = match command().try_get_matches_from(&args) {
        Ok(matches) => matches,
        Err(error) => {
            let is_command = |word: &str| command().find_subcommand(word).is_some();
            if error.use_stderr()
                && let Some((flag, word)) = config::flags::word_behind_switch(&args, is_command)
            {
                let text = format!("{flag}: expected nothing behind it, or {flag}=yes or {flag}=no, found {word:?}");
                return fail(&text, USAGE);
            }
            // a closed pipe is no failure
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    match Cli::from_arg_matches(&matches) {
        Ok(cli) => dispatch(cli.command, &matches),
        Err(error) => fail(&error.to_string(), USAGE),
    }
}

fn dispatch(command: Option<Command>, matches: &ArgMatches) -> ExitCode {
    match command {
        None => with_settings(matches, crawl::run_loaded),
        Some(Command::Crawl) => with_settings(below(matches, &["crawl"]), crawl::run_loaded),
        Some(Command::Dedup(args)) => dedup::run(&args),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Explain(args)) => match explain::load(below(matches, &["explain"])) {
            Ok(loaded) => explain::run(&args, &loaded),
            Err(error) => fail(&error.to_string(), USAGE),
        },
        Some(Command::Status(args)) => status::run(&args),
        Some(Command::Forget(args)) => forget::run(&args),
        Some(Command::Filter(FilterCommand::Size(args))) => size(&args),
        Some(Command::Filter(FilterCommand::Info(args))) => saved::info(&args),
        Some(Command::Filter(FilterCommand::Check(args))) => saved::check(&args),
        Some(Command::Filter(FilterCommand::Merge(args))) => saved::merge(&args),
        Some(Command::Filter(FilterCommand::Bench(args))) => bench::run(&args),
        Some(Command::Simulate(args)) => simulate::run(&args),
        Some(Command::Config(ConfigCommand::Init { file })) => settings::init(&file),
        Some(Command::Config(ConfigCommand::Check { file })) => settings::check(&file),
        Some(Command::Config(ConfigCommand::Show)) => {
            with_settings(below(matches, &["config", "show"]), |loaded| settings::show(&loaded))
        }
        Some(Command::Verify(args)) => verify::run(&args),
        Some(Command::Pack(args)) => pack::run(&args),
        Some(Command::Report(args)) => report::run(&args),
        Some(Command::Pause(args)) => control::run(&args, Order::Pause),
        Some(Command::Resume(args)) => control::run(&args, Order::Resume),
        Some(Command::Stop(args)) => control::run(&args, Order::Stop),
        Some(Command::Audit(args)) => audit::run(&args),
        Some(Command::Completions { shell }) => completions(shell),
    }
}

/// The matches of a subcommand that was given.
fn below<'a>(matches: &'a ArgMatches, path: &[&str]) -> &'a ArgMatches {
    path.iter().fold(matches, |matches, name| {
        matches.subcommand_matches(name).unwrap_or(matches)
    })
}

fn with_settings(matches: &ArgMatches, run: impl FnOnce(Loaded) -> ExitCode) -> ExitCode {
    let (file, flags) = config::flags::typed(matches);
    match config::load(file.as_deref(), std::env::vars_os(), &flags) {
        Ok(loaded) => run(loaded),
        Err(error) => fail(&error.to_string(), USAGE),
    }
}

fn size(args: &SizeArgs) -> ExitCode {
    match filter::size_text(&filter::SizeRequest {
        items: args.items,
        fp: args.fp,
        kind: args.kind,
    }) {
        Ok(text) => print(&text),
        Err(reason) => fail(&reason, USAGE),
    }
}

fn completions(shell: clap_complete::Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "crawler", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes to standard output. A closed pipe is no failure: whoever reads has enough.
fn print(text: &str) -> ExitCode {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(&format!("standard output: {error}"), 1),
        _ => ExitCode::SUCCESS,
    }
}

/// Says what is wrong, each line as an error, and gives the exit code.
fn fail(text: &str, code: u8) -> ExitCode {
    for line in text.lines() {
        // nobody can be told that standard error is gone
        let _ = writeln!(io::stderr(), "error: {line}");
    }
    ExitCode::from(code)
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn the_last_of_a_flag_counts_and_lists_collect() {
        let line = "crawler --delay 1s --seed http://a/ --delay 2s --seed http://b/";
        let matches = command().try_get_matches_from(line.split(' ')).unwrap();
        let given = |name: &str| -> Vec<_> { matches.get_raw(name).unwrap().collect() };
        assert_eq!(given("delay"), ["2s"]);
        assert_eq!(given("seed"), ["http://a/", "http://b/"]);
    }

    #[test]
    fn every_setting_is_a_flag_of_the_help_under_its_heading() {
        let help = help();
        for group in &config::table::GROUPS {
            let after = help.split_once(&format!("\n{}:\n", group.title)).unwrap().1;
            let section = after.split("\n\n").next().unwrap();
            for setting in group.settings {
                assert!(
                    section.contains(&format!("--{}", setting.flag())),
                    "--{} not in {section}",
                    setting.flag()
                );
            }
        }
        assert!(help.lines().all(|line| line.chars().count() <= HELP_WIDTH), "{help}");
    }

    #[test]
    fn the_completions_of_every_shell_name_the_flags() {
        for shell in clap_complete::Shell::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut command(), "crawler", &mut script);
            assert!(String::from_utf8_lossy(&script).contains("max-pages"), "{shell}");
        }
    }
}
