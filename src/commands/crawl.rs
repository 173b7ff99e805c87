//! `crawler crawl`: seeds → job → crawl → reports → exit code.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use super::control::{self, Order};
use super::{USAGE, descriptors, lists, log};
use crate::config::seed::with_rules;
use crate::config::value::thousands;
use crate::config::{Config, Loaded, sample};
use crate::cookies::txt::{self, Imported};
use crate::crawl::{self, CrawlError, End, Outcome, Snapshot, Stop, Wish};
use crate::job::{self, Job, JobError};
use crate::progress::Screen;
use crate::report::{self, Verdict, signal_exit, signal_name, summary};
use crate::scope::blocklist::Blocklist;
use crate::scope::reach::Seed;
use crate::seeds;
use crate::url::Identity;

/// How long threads that still wait for the system (a name look-up) hold up the end.
const LAST_WAIT: Duration = Duration::from_millis(100);

/// Time between two answers to `crawler status`.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// What ended a crawl before or during its course: what to say, and the exit code.
struct Failure {
    text: String,
    exit: u8,
}

impl From<JobError> for Failure {
    fn from(error: JobError) -> Self {
        Self {
            exit: error.exit_code(),
            text: error.to_string(),
        }
    }
}

impl From<CrawlError> for Failure {
    fn from(error: CrawlError) -> Self {
        Self {
            exit: error.exit_code(),
            text: error.to_string(),
        }
    }
}

/// Crawls with settings that a command made itself. The exit code is that of the contract.
#[must_use]
pub fn run(config: Config) -> ExitCode {
    run_all(Loaded::of(config), Vec::new())
}

/// Crawls with the settings of flags, environment and file.
#[must_use]
pub fn run_loaded(mut loaded: Loaded) -> ExitCode {
    let mut warnings = std::mem::take(&mut loaded.warnings);
    if loaded.config.contact.is_none() && !loaded.origins.contains_key("user_agent") {
        warnings.push(
            "no contact is set: the owner of a site cannot reach you; give --contact with your URL or mail address"
                .to_owned(),
        );
    }
    run_all(loaded, warnings)
}

fn run_all(loaded: Loaded, warnings: Vec<String>) -> ExitCode {
    let screen = Screen::new(loaded.config.quiet);
    match run_job(loaded, warnings, &screen) {
        Ok(exit) => ExitCode::from(exit),
        Err(failure) => {
            for line in failure.text.lines() {
                screen.error(&format!("error: {line}"));
            }
            ExitCode::from(failure.exit)
        }
    }
}

fn run_job(mut loaded: Loaded, mut warnings: Vec<String>, screen: &Screen) -> Result<u8, Failure> {
    let usage = |error: seeds::SeedsError| Failure {
        text: error.to_string(),
        exit: USAGE,
    };
    let identity = Identity::with(loaded.config.rules.clone());
    let runtime = Runtime::new().map_err(|error| Failure {
        text: format!("no threads: {error}"),
        exit: 1,
    })?;
    let lists = runtime
        .block_on(lists::read(&loaded.config))
        .map_err(|(text, exit)| Failure { text, exit })?;
    let mut read = seeds::read(&loaded.config.seeds, &lists.lists, &loaded.config.seed, &identity).map_err(usage)?;
    let bad_lines = std::mem::take(&mut read.warnings);
    let seeds = with_rules(read).map_err(|error| Failure {
        text: error.to_string(),
        exit: USAGE,
    })?;
    let cookies = loaded.config.cookies.as_deref().map(read_cookies).transpose();
    let cookies = cookies.map_err(|text| Failure { text, exit: USAGE })?;
    let blocklist = read_blocklist(&loaded.config.blocklist).map_err(|text| Failure { text, exit: USAGE })?;
    warnings.extend(bad_lines);
    let (blocklist, compiled) = blocklist.map_or((None, None), |read| {
        warnings.extend(read.warnings);
        (Some(read.list), Some(read.compiled))
    });
    if let Some(list) = &blocklist
        && seeds.iter().all(|seed| list.blocks(&seed.url).is_some())
    {
        let text = "every seed is named by --blocklist; take it off the list, or name another seed".to_owned();
        return Err(Failure { text, exit: USAGE });
    }
    warnings.extend(descriptors::fit(&mut loaded.config.concurrency));

    let job = job::open(&loaded.config.job, loaded.config.fresh)?;
    loaded.config.job.clone_from(&job.dir);
    loaded.config.fresh = false;
    let settings_before = std::fs::read_to_string(job.dir.join("config.toml")).ok();
    job.write_settings(&sample::effective(&loaded))?;
    lists.keep(&job.dir).map_err(|error| Failure {
        text: format!("cannot keep the seeds in {}: {error}", job.dir.display()),
        exit: 3,
    })?;
    let config = loaded.config;
    log::start(&job.dir, &config, screen.clone()).map_err(|error| Failure {
        text: format!("cannot write {}: {error}", job.dir.join("logs").display()),
        exit: 3,
    })?;
    warnings.extend(job.notes.iter().cloned());
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    if let Some(compiled) = compiled {
        tracing::info!("{compiled}");
    }
    screen.say(&beginning(&job, seeds.len()));

    runtime.block_on(lists.leave_alone(&config));
    let wacz = config.wacz && config.archive;
    let quiet = config.quiet;
    // the loop is a task like the visits, so that what they have for each other crosses no further thread
    let given = (cookies, blocklist);
    let crawl = runtime.spawn(watched(config, seeds, given, job.dir.clone(), screen.clone()));
    let ended = runtime.block_on(crawl);
    let (ended, last) = ended.unwrap_or_else(|lost| std::panic::resume_unwind(lost.into_panic()))?;
    runtime.shutdown_timeout(LAST_WAIT);
    match ended {
        Ok(outcome) => close(&job, &outcome, wacz, quiet),
        Err(error) => {
            let failure = Failure::from(error);
            // the screen is told by whoever gets the failure
            tracing::info!(exit = failure.exit, "the crawl ended early: {}", failure.text);
            write_early_report(&job.dir, last, &failure);
            // what was refused is not what the job was crawled with
            if failure.exit == USAGE
                && let Some(settings) = settings_before
            {
                job.write_settings(&settings)?;
            }
            Err(failure)
        }
    }
}

/// Reads a cookies.txt, or says what is wrong with it and where.
fn read_cookies(path: &Path) -> Result<Imported, String> {
    let name = path.display();
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(txt::MAX_FILE_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|error| format!("--cookies: {name}: cannot be read: {error}"))?;
    if bytes.len() as u64 > txt::MAX_FILE_BYTES {
        return Err(format!(
            "--cookies: {name}: is larger than {} bytes",
            txt::MAX_FILE_BYTES
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| format!("--cookies: {name}: is not UTF-8"))?;
    txt::parse(&text).map_err(|wrong| format!("{name}:{wrong}"))
}

/// The blocklists, read.
pub(super) struct ReadList {
    pub(super) list: Arc<Blocklist>,
    warnings: Vec<String>,
    /// What it took, for the log.
    compiled: String,
}

/// Reads and compiles the blocklists, if there are any.
pub(super) fn read_blocklist(files: &[PathBuf]) -> Result<Option<ReadList>, String> {
    if files.is_empty() {
        return Ok(None);
    }
    let began = Instant::now();
    let (list, warnings) = Blocklist::read(files).map_err(|error| error.to_string())?;
    let counts = list.counts();
    let compiled = format!(
        "blocklist: {} hosts and prefixes of {} lines, {} lines that cannot be used; {} KiB, compiled in {} ms",
        thousands(counts.entries),
        thousands(counts.lines),
        thousands(counts.bad),
        thousands(list.memory_bytes() >> 10),
        began.elapsed().as_millis(),
    );
    Ok(Some(ReadList {
        list: Arc::new(list),
        warnings,
        compiled,
    }))
}

fn beginning(job: &Job, seeds: usize) -> String {
    let noun = if seeds == 1 { "seed" } else { "seeds" };
    let dir = job.dir.display();
    if job.resumed {
        format!("resuming the job in {dir} ({seeds} {noun})")
    } else {
        format!("new job in {dir} ({seeds} {noun})")
    }
}

/// Runs the crawl while signals and the screen are served. Gives how it ended and the last that was seen of it.
async fn watched(
    config: Config,
    seeds: Vec<Seed>,
    (cookies, blocklist): (Option<Imported>, Option<Arc<Blocklist>>),
    job: PathBuf,
    screen: Screen,
) -> Result<(Result<Outcome, CrawlError>, Option<Snapshot>), Failure> {
    let no_signals = |error| Failure {
        text: format!("signals cannot be caught: {error}"),
        exit: 1,
    };
    let interrupt = signal(SignalKind::interrupt()).map_err(no_signals)?;
    let terminate = signal(SignalKind::terminate()).map_err(no_signals)?;
    let pauses = [SignalKind::user_defined1(), SignalKind::user_defined2()];
    let [pause, resume] = pauses.map(signal);
    let (pause, resume) = (pause.map_err(no_signals)?, resume.map_err(no_signals)?);
    let (wishes, told) = watch::channel(control::at_start(&job));
    let listening = tokio::spawn(control::listen(job.clone(), wishes.clone()));
    let pausing = tokio::spawn(obey_pauses(pause, resume, job.clone()));
    let signals = tokio::spawn(obey(interrupt, terminate, wishes, screen.clone()));
    let (view, shown) = watch::channel(None);
    let last = shown.clone();
    tokio::spawn(tell(shown.clone(), job.clone()));
    let progress = tokio::spawn(screen.show(shown));
    let ended = Box::pin(crawl::run(&config, &seeds, cookies, blocklist, &job, view, told)).await;
    // both end by themselves: the crawl has dropped the sender of its view
    let _ = progress.await;
    for task in [signals, listening, pausing] {
        task.abort();
    }
    let last = last.borrow().clone();
    Ok((ended, last))
}

/// The first signal asks the crawl to stop, the second ends the process at once, which is safe too: the state is
/// as durable as after any kill.
async fn obey(mut interrupt: Signal, mut terminate: Signal, wishes: watch::Sender<Wish>, screen: Screen) {
    loop {
        let number = tokio::select! {
            _ = interrupt.recv() => libc::SIGINT,
            _ = terminate.recv() => libc::SIGTERM,
        };
        if matches!(wishes.borrow().stop, Some(Stop::Signal(_))) {
            std::process::exit(signal_exit(number).into());
        }
        tracing::info!("{}: stopping", signal_name(number));
        screen.say("stopping: what is in flight is finished and the state saved; once more stops at once");
        wishes.send_modify(|wish| wish.stop = Some(Stop::Signal(number)));
    }
}

/// SIGUSR1 pauses, SIGUSR2 goes on.
async fn obey_pauses(mut pause: Signal, mut resume: Signal, job: PathBuf) {
    loop {
        tokio::select! {
            _ = pause.recv() => control::by_signal(&job, Order::Pause),
            _ = resume.recv() => control::by_signal(&job, Order::Resume),
        }
    }
}

/// Reports, marks and summary of a crawl that came to an end of its own.
fn close(job: &Job, outcome: &Outcome, wacz: bool, quiet: bool) -> Result<u8, Failure> {
    let verdict = Verdict::of(outcome);
    report::write(&job.dir, outcome, &verdict).map_err(|error| Failure {
        text: format!("cannot write the report: {error}"),
        exit: 3,
    })?;
    // before the job counts as finished: killed here, the same command packs
    let packed = if wacz && verdict.exit == 0 {
        Some(super::pack::into_job(&job.dir).map_err(|(text, exit)| Failure { text, exit })?)
    } else {
        None
    };
    if verdict.is_final() {
        job.mark_finished()?;
    } else if verdict.exit == report::NO_SEED {
        job.mark_unreached()?;
    }
    let text = summary::text(outcome, &verdict, &job.dir);
    tracing::info!(exit = verdict.exit, "{}", text.lines().next().unwrap_or_default());
    for line in summary::failed_seeds(outcome) {
        if verdict.exit == report::NO_SEED {
            tracing::error!("{line}");
        } else {
            tracing::warn!("{line}");
        }
    }
    if !quiet {
        super::print(&(text + packed.as_deref().unwrap_or_default()));
    }
    Ok(verdict.exit)
}

/// What is known of a crawl that an error ended. Whoever cannot write an archive can perhaps not write this either.
fn write_early_report(job: &Path, last: Option<Snapshot>, failure: &Failure) {
    let Some(last) = last else { return };
    let outcome = so_far(job, last);
    let verdict = Verdict::error(failure.text.clone(), failure.exit);
    if let Err(error) = report::write(job, &outcome, &verdict) {
        tracing::warn!("cannot write the report: {error}");
    }
}

/// Tells `crawler status` each second how the crawl stands.
async fn tell(mut view: watch::Receiver<Option<Snapshot>>, job: PathBuf) {
    let mut tick = tokio::time::interval(TELL_EVERY);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut closed = view.clone();
    let end = async { while closed.changed().await.is_ok() {} };
    tokio::pin!(end);
    loop {
        tokio::select! {
            _ = tick.tick() => {}
            () = &mut end => return,
        }
        let last = view.borrow_and_update().clone();
        if let Some(last) = last {
            // nothing rests on it, and a full disk is told elsewhere
            let _ = report::write_now(&job, &so_far(&job, last));
        }
    }
}

/// An outcome that is none yet.
fn so_far(job: &Path, last: Snapshot) -> Outcome {
    Outcome {
        end: End::Finished,
        started: last.now - last.wall,
        last,
        runs: report::runs_before(job) + 1,
        checkpoints: 0,
        checkpoint_pause_max: Duration::ZERO,
        cpu_s: 0.0,
        peak_rss: 0,
        seeds: Vec::new(),
        survey: None,
    }
}
