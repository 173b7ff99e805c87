//! `crawler simulate`: a crawl over a web made of arithmetic, without a network.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::{Value, json};

use super::{USAGE, fail, heap, items, kind, print, share};
use crate::config::value::{duration, thousands, whole};
use crate::crawl::resident;
use crate::report::words::{bytes, percent, rate, span};
use crate::seen::Kind;
use crate::seen::sizing::{MAX_FP, MIN_FP};
use crate::simulate::page::{self, Baseline};
use crate::simulate::web::Web;
use crate::simulate::{self, MAX_CONCURRENCY, MAX_HOSTS, MAX_URLS, Outcome, Point, Settings, Watch};

/// Addresses that are put into a hash set to measure what it takes, at most.
const BASELINE_URLS: u64 = 10_000_000;
/// Time between two lines of progress on a terminal, and elsewhere.
const LIVE_EVERY: Duration = Duration::from_millis(500);
const LINE_EVERY: Duration = Duration::from_secs(30);

/// What `simulate` is asked.
#[derive(Debug, Args)]
pub(super) struct SimulateArgs {
    /// Different URLs to meet; digits may stand in groups, as in `1_000_000`
    #[arg(long, value_name = "N", value_parser = urls)]
    urls: u64,
    /// The seen-set [default: bloom]
    #[arg(long, value_name = "KIND", value_parser = kind)]
    seen: Option<Kind>,
    /// Its false-positive rate when it holds its capacity
    #[arg(long, value_name = "P", value_parser = share, default_value = "0.01")]
    fp: f64,
    /// Keys it is made for [default: --urls]
    #[arg(long, value_name = "N", value_parser = items)]
    capacity: Option<u64>,
    /// Hosts of the web [default: one for 1,000 URLs, from 100 to 100,000]
    #[arg(long, value_name = "N", value_parser = hosts)]
    hosts: Option<u64>,
    /// Requests in flight
    #[arg(long, value_name = "N", value_parser = concurrency, default_value = "10000")]
    concurrency: u32,
    /// Rest of a host after each answer
    #[arg(long, value_name = "DUR", value_parser = duration, default_value = "1s")]
    delay: Duration,
    /// How often the process is killed on the way
    #[arg(long, value_name = "N", value_parser = items_or_none, default_value = "3")]
    kills: u64,
    /// Chooses the web
    #[arg(long, value_name = "N", value_parser = items_or_none, default_value = "1")]
    seed: u64,
    /// Folder for report.html and report.json
    #[arg(long, value_name = "DIR", default_value = "simulation")]
    out: PathBuf,
}

fn urls(text: &str) -> Result<u64, String> {
    whole(text, 1..=MAX_URLS)
}

fn hosts(text: &str) -> Result<u64, String> {
    whole(text, 1..=MAX_HOSTS)
}

fn concurrency(text: &str) -> Result<u32, String> {
    whole(text, 1..=MAX_CONCURRENCY)
}

fn items_or_none(text: &str) -> Result<u64, String> {
    whole(text, 0..=u64::MAX)
}

pub(super) fn run(args: &SimulateArgs) -> ExitCode {
    if !(MIN_FP..=MAX_FP).contains(&args.fp) {
        return fail(
            &format!("--fp {}: a rate from {MIN_FP} to {MAX_FP} is possible", args.fp),
            USAGE,
        );
    }
    if let Err(error) = std::fs::create_dir_all(&args.out) {
        return fail(&format!("--out {}: {error}", args.out.display()), 3);
    }
    let settings = settings(args);
    heap::be_quick(settings.threads + 1);
    let baseline = baseline(&settings);
    let mut watch = Live::new(settings.urls);
    let outcome = match simulate::run(&settings, &mut watch) {
        Ok(outcome) => outcome,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => return fail(&error.to_string(), USAGE),
        Err(error) => return fail(&error.to_string(), 1),
    };
    watch.end();
    let command = command(&settings, args);
    if let Err(error) = write(&args.out, &settings, &outcome, baseline, &command) {
        return fail(
            &format!("cannot write the report in {}: {error}", args.out.display()),
            3,
        );
    }
    let exit = print(&text(&settings, &outcome, baseline, &args.out));
    if outcome.violations > 0 || outcome.twice > 0 {
        ExitCode::from(5)
    } else {
        exit
    }
}

fn settings(args: &SimulateArgs) -> Settings {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    Settings {
        urls: args.urls,
        kind: args.seen.unwrap_or(Kind::Bloom),
        capacity: args.capacity.unwrap_or(args.urls),
        fp: args.fp,
        hosts: args.hosts.unwrap_or((args.urls / 1_000).clamp(100, 100_000)),
        concurrency: args.concurrency,
        delay: args.delay,
        crashes: args.kills,
        seed: args.seed,
        threads: threads.min(8),
    }
}

/// The command with everything said.
fn command(settings: &Settings, args: &SimulateArgs) -> String {
    format!(
        "crawler simulate --urls {} --seen {} --fp {} --capacity {} --hosts {} --concurrency {} --delay {}ms --kills {} --seed {} --out {}",
        settings.urls,
        settings.kind.name(),
        settings.fp,
        settings.capacity,
        settings.hosts,
        settings.concurrency,
        settings.delay.as_millis(),
        settings.crashes,
        settings.seed,
        args.out.display()
    )
}

/// Memory of a hash set of addresses, by what the process holds more while there is one.
fn baseline(settings: &Settings) -> Baseline {
    let urls = settings.urls.min(BASELINE_URLS);
    let web = Web {
        seed: settings.seed,
        hosts: settings.hosts,
    };
    let before = resident();
    let mut set: HashSet<Box<str>> = HashSet::new();
    let mut text = String::new();
    for page in 0..urls {
        text.clear();
        web.write_url(page, &mut text);
        set.insert(text.as_str().into());
    }
    let bytes = resident().saturating_sub(before);
    drop(set);
    // so that it is not counted for the crawl
    heap::give_back();
    Baseline { urls, bytes }
}

/// A line that says how far it is.
struct Live {
    started: Instant,
    shown: Instant,
    terminal: bool,
    urls: u64,
}

impl Live {
    fn new(urls: u64) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            shown: now,
            terminal: io::stderr().is_terminal(),
            urls,
        }
    }

    fn end(&self) {
        if self.terminal {
            // a closed terminal is no failure
            let _ = writeln!(io::stderr());
        }
    }
}

impl Watch for Live {
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn resident(&self) -> u64 {
        resident()
    }

    fn look(&mut self, point: &Point) {
        let every = if self.terminal { LIVE_EVERY } else { LINE_EVERY };
        if self.shown.elapsed() < every && point.urls < self.urls {
            return;
        }
        self.shown = Instant::now();
        let seen = point.seen.as_ref();
        let line = format!(
            "{} of {} URLs, {} links ({} a second), fill {}, lost {} of {:.1} expected, {} pending, {} in all, {}",
            thousands(point.urls),
            thousands(self.urls),
            thousands(point.links),
            rate(page::links_a_second(point)),
            percent(seen.map_or(0.0, |seen| seen.fill)),
            thousands(point.lost),
            seen.map_or(0.0, |seen| seen.lost_estimate),
            thousands(point.queued),
            bytes(point.resident),
            span(point.elapsed),
        );
        let (before, after) = if self.terminal { ("\r\x1b[K", "") } else { ("", "\n") };
        let _ = write!(io::stderr(), "{before}{line}{after}");
    }
}

fn text(settings: &Settings, outcome: &Outcome, baseline: Baseline, out: &Path) -> String {
    let figures = page::figures(settings, outcome, baseline);
    let width = figures.iter().map(|(what, _)| what.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (what, figure) in figures {
        let _ = writeln!(text, "{what:<width$}  {figure}");
    }
    if outcome.exhausted {
        text.push_str("the web had no more links: fewer URLs were met than asked for\n");
    }
    text + &format!("curves: {}\n", out.join("report.html").display())
}

fn write(out: &Path, settings: &Settings, outcome: &Outcome, baseline: Baseline, command: &str) -> io::Result<()> {
    let html = page::page(settings, outcome, baseline, command);
    std::fs::write(out.join("report.html"), html)?;
    let report = report(settings, outcome, baseline, command);
    std::fs::write(out.join("report.json"), format!("{report:#}\n"))
}

fn report(settings: &Settings, outcome: &Outcome, baseline: Baseline, command: &str) -> Value {
    let points: Vec<Value> = outcome.points.iter().map(point).collect();
    json!({
        "command": command,
        "urls": settings.urls,
        "exhausted": outcome.exhausted,
        "links": outcome.counts,
        "kills": outcome.crashes,
        "cut_off": outcome.cut_off,
        "twice": outcome.twice,
        "politeness": {
            "min_gap_s": outcome.min_gap.map(|gap| gap.as_secs_f64()),
            "violations": outcome.violations,
        },
        "hash_set": {
            "measured_urls": baseline.urls,
            "measured_bytes": baseline.bytes,
            "bytes": baseline.scaled(settings.urls),
        },
        "end": outcome.points.last().map(point),
        "points": points,
    })
}

fn point(point: &Point) -> Value {
    json!({
        "urls": point.urls,
        "links": point.links,
        "fetched": point.fetched,
        "queued": point.queued,
        "lost": point.lost,
        "step": {"urls": point.step.0, "lost": point.step.1},
        "hosts": point.hosts,
        "seen": point.seen,
        "seen_bytes": point.seen_bytes,
        "resident_bytes": point.resident,
        "elapsed_s": point.elapsed.as_secs_f64(),
        "virtual_s": point.virtual_time.as_secs_f64(),
    })
}
