//! Runs a case with the real binary: start, wait, kill, damage, resume.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use super::format::{Case, Damage, RunStep, Start};
use super::parts::Fill;
use super::serve::Player;
use super::settings;

/// No run takes longer, whatever the case expects.
const PATIENCE: Duration = Duration::from_secs(90);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// A small disk and the same grown, as `mount` reads sizes.
const SMALL_DISK: &str = "6m";
const GROWN_DISK: &str = "256m";

/// The runs of a case, and what they leave behind.
pub(crate) struct Ran<'a> {
    case: &'a Case,
    player: &'a Player,
    running: Option<Child>,
    /// The job folder.
    pub(crate) job: PathBuf,
    /// Of every run that ended by itself.
    pub(crate) exits: Vec<Option<i32>>,
    /// Most resident memory of a process, bytes.
    pub(crate) peak_rss: u64,
    /// From the first start to the last end.
    pub(crate) wall: Duration,
    /// The file that was damaged.
    pub(crate) damaged: Option<String>,
    /// Lengths of crawl.log whenever it was looked at.
    pub(crate) log_lengths: BTreeSet<u64>,
    pub(crate) complaints: Vec<String>,
    // dropped in this order: the disk lies in the home
    disk: Option<SmallDisk>,
    home: TempDir,
}

/// Plays out the steps of a case.
pub(crate) fn run<'a>(case: &'a Case, player: &'a Player) -> Ran<'a> {
    let home = tempfile::tempdir().unwrap();
    let fill = Fill::of(case, player.port);
    let seeds: Vec<String> = case.seeds.iter().map(|seed| fill.text(seed)).collect();
    fs::write(home.path().join("seeds.txt"), seeds.join("\n")).unwrap();
    let start_and_wait = vec![RunStep::Start(Start::default()), RunStep::WaitExit(true)];
    let steps = if case.run.is_empty() {
        &start_and_wait
    } else {
        &case.run
    };
    let began = Instant::now();
    let mut ran = Ran {
        case,
        player,
        running: None,
        job: home.path().join("job"),
        exits: Vec::new(),
        peak_rss: 0,
        wall: Duration::ZERO,
        damaged: None,
        log_lengths: BTreeSet::new(),
        complaints: Vec::new(),
        disk: None,
        home,
    };
    for step in steps {
        ran.step(step);
    }
    ran.kill();
    ran.wall = began.elapsed();
    ran
}

impl Ran<'_> {
    /// What the last run said.
    pub(crate) fn said(&self) -> String {
        let read = |name: &str| fs::read(self.home.path().join(name)).unwrap_or_default();
        String::from_utf8_lossy(&[read("stderr"), read("stdout")].concat()).into_owned()
    }

    fn step(&mut self, step: &RunStep) {
        match step {
            RunStep::Start(start) => self.start(start),
            RunStep::WaitRequests(count) => self.wait_requests(*count),
            RunStep::SleepMs(ms) => thread::sleep(Duration::from_millis(*ms)),
            RunStep::Kill9(_) => self.kill(),
            RunStep::Damage(damage) => self.damage(damage),
            RunStep::Grow(disk) => {
                assert_eq!(disk, "small-disk");
                self.disk.as_ref().unwrap().grow();
            }
            RunStep::WaitExit(_) => self.wait_exit(),
        }
    }

    fn start(&mut self, start: &Start) {
        assert!(start.cwd.is_none(), "no case needs another working folder yet");
        match start.output.as_deref() {
            None => {}
            Some("small-disk") => {
                let disk = SmallDisk::mount(self.home.path().join("disk"));
                self.job = disk.0.join("job");
                self.disk = Some(disk);
            }
            Some(other) => panic!("no such disk: {other}"),
        }
        let flags = settings::flags(self.case, &start.settings, self.player.port);
        let output = |name: &str| File::create(self.home.path().join(name)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_crawler"))
            .current_dir(self.home.path())
            .args(["--seeds", "seeds.txt", "--job"])
            .arg(&self.job)
            .args(flags)
            .env_remove("CRAWLER_SHARED")
            .env_remove(super::ONE_CASE)
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .unwrap();
        self.running = Some(child);
    }

    /// Looks at the process; its status if it has ended.
    fn look(&mut self) -> Option<ExitStatus> {
        let child = self.running.as_mut()?;
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|text| text.trim().trim_end_matches(" kB").parse::<u64>().ok());
        self.peak_rss = self.peak_rss.max(kib.unwrap_or(0) * 1024);
        if let Ok(log) = fs::metadata(self.job.join("logs/crawl.log")) {
            self.log_lengths.insert(log.len());
        }
        child.try_wait().unwrap()
    }

    fn wait_requests(&mut self, count: usize) {
        let began = Instant::now();
        while self.player.requests() < count {
            if let Some(status) = self.look() {
                self.complaints.push(format!(
                    "ended ({status}) after {} of {count} requests:\n{}",
                    self.player.requests(),
                    self.said()
                ));
                self.running = None;
                return;
            }
            if began.elapsed() > PATIENCE {
                self.complaints.push(format!("no {count} requests within {PATIENCE:?}"));
                return self.kill();
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn wait_exit(&mut self) {
        let began = Instant::now();
        while self.running.is_some() {
            if let Some(status) = self.look() {
                self.exits.push(status.code());
                self.running = None;
            } else if began.elapsed() > PATIENCE {
                self.complaints.push(format!("still running after {PATIENCE:?}"));
                self.kill();
            } else {
                thread::sleep(LOOK_EVERY);
            }
        }
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.running.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    fn damage(&mut self, damage: &Damage) {
        assert_eq!(damage.file, "newest-checkpoint");
        let snapshots = fs::read_dir(self.job.join("state"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let newest = snapshots
            .map(|name| name.into_string().unwrap())
            .filter(|name| name.starts_with("filter-"))
            .max();
        let Some(newest) = newest else {
            return self
                .complaints
                .push("no checkpoint to damage: it was killed too early".to_owned());
        };
        let mut file = File::options()
            .read(true)
            .write(true)
            .open(self.job.join("state").join(&newest))
            .unwrap();
        let length = file.metadata().unwrap().len();
        if let Some(share) = damage.flip_bit_at {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "a place in a file, by its share"
            )]
            let at = ((length as f64 * share) as u64).min(length - 1);
            let mut byte = [0];
            file.seek(SeekFrom::Start(at)).unwrap();
            file.read_exact(&mut byte).unwrap();
            file.seek(SeekFrom::Start(at)).unwrap();
            file.write_all(&[byte[0] ^ 1]).unwrap();
        }
        file.set_len(length.saturating_sub(damage.cut_bytes)).unwrap();
        self.damaged = Some(newest);
    }
}

impl Drop for Ran<'_> {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A file system in memory of a few MiB. Mounting asks for the right to do so; a machine without it fails the case.
#[derive(Debug)]
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: PathBuf) -> Self {
        fs::create_dir(&at).unwrap();
        mount(&at, &format!("size={SMALL_DISK}"));
        Self(at)
    }

    fn grow(&self) {
        mount(&self.0, &format!("remount,size={GROWN_DISK}"));
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

fn mount(at: &Path, options: &str) {
    let done = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "tmpfs"])
        .arg(at)
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&done.stderr);
    assert!(
        done.status.success(),
        "this case needs the right to mount a tmpfs: {why}"
    );
}

/// Text of the files that the case looks through for what must not be there.
pub(crate) fn texts(job: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for name in [
        "report.json",
        "report.html",
        "logs/crawl.log",
        "logs/crawler.log",
        "indexes/index.cdxj",
    ] {
        let bytes = fs::read(job.join(name)).unwrap_or_default();
        found.insert(PathBuf::from(name), String::from_utf8_lossy(&bytes).into_owned());
    }
    found
}

/// The report of the last run; null if there is none.
pub(crate) fn report(job: &Path) -> Value {
    let text = fs::read_to_string(job.join("report.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}
