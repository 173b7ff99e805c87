//! The real binary on a folder of its own: start, wait, kill, and read what it left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::reader::{self, IndexLine, LogLine, Record};

/// No run of a test takes longer than this.
const PATIENCE: Duration = Duration::from_secs(90);
/// How often a running process is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A job folder, its seeds, and the command that crawls it. Each run of it is the same command.
#[derive(Debug)]
pub(crate) struct Job {
    home: TempDir,
    flags: Vec<String>,
}

/// How a run ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    /// The exit code; panics with the run's own words if it is another.
    pub(crate) fn assert_code(&self, code: i32) {
        assert_eq!(self.status.code(), Some(code), "{}\n{}", self.stdout, self.stderr);
    }

    pub(crate) fn assert_says(&self, words: &str) {
        assert!(self.text().contains(words), "{words:?} is not said:\n{}", self.text());
    }

    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl Job {
    /// A job on loopback with a short delay and without retries that take long.
    pub(crate) fn new<S: AsRef<str>>(seeds: &[S]) -> Self {
        let home = tempfile::tempdir().unwrap();
        let lines: Vec<&str> = seeds.iter().map(AsRef::as_ref).collect();
        fs::write(home.path().join("seeds.txt"), lines.join("\n")).unwrap();
        let job = Self {
            home,
            flags: Vec::new(),
        };
        job.flag("--allow-address", "127.0.0.0/8").flag("--delay", "10ms")
    }

    /// A job without the permission to visit loopback.
    pub(crate) fn without_permission<S: AsRef<str>>(seeds: &[S]) -> Self {
        let mut job = Self::new(seeds);
        job.flags.clear();
        job.flag("--delay", "10ms")
    }

    /// Adds a flag with its value; a later one of the same name replaces an earlier one.
    pub(crate) fn flag(mut self, name: &str, value: &str) -> Self {
        if let Some(at) = self.flags.iter().position(|flag| flag == name) {
            self.flags[at + 1] = value.to_owned();
        } else {
            self.flags.extend([name.to_owned(), value.to_owned()]);
        }
        self
    }

    pub(crate) fn switch(mut self, name: &str) -> Self {
        self.flags.push(name.to_owned());
        self
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.home.path().join("job")
    }

    pub(crate) fn start(&self) -> Running {
        self.start_with(&[])
    }

    /// Starts a run with further flags.
    pub(crate) fn start_with(&self, further: &[&str]) -> Running {
        self.start_as(Command::new(env!("CARGO_BIN_EXE_crawler")), further)
    }

    /// Starts a run in which a write beyond the limit on the size of files is an error, and no signal.
    pub(crate) fn start_without_xfsz(&self) -> Running {
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_crawler")]);
        self.start_as(shell, &[])
    }

    /// Runs twice in a job folder that is a file system of its own: first `small` bytes, then `large`. Gives the exit
    /// code of the first run and the end of the second, which has the words of both; `None` where no file system may be
    /// mounted, which is a failure where everything must run.
    pub(crate) fn run_out_of_space(&self, small: usize, large: usize) -> Option<(i32, Done)> {
        // seen by this shell alone, and gone with it
        const SCRIPT: &str = "
            mkdir job && mount -t tmpfs -o size=$SMALL crawl job || exit 99
            \"$0\" \"$@\"; echo $? > first
            mount -o remount,size=$LARGE job || exit 99
            \"$0\" \"$@\"; second=$?
            cp -a job kept && exit $second";
        let mut shell = Command::new("sh");
        shell
            .args([
                "-c",
                "exec unshare --map-root-user --mount sh -c \"$SCRIPT\" \"$0\" \"$@\"",
            ])
            .arg(env!("CARGO_BIN_EXE_crawler"))
            .env("SCRIPT", SCRIPT)
            .envs([("SMALL", small.to_string()), ("LARGE", large.to_string())]);
        let done = self.start_as(shell, &[]).wait();
        let first = fs::read_to_string(self.home.path().join("first"));
        let Ok(first) = first else {
            assert!(
                std::env::var_os("CRAWLER_RUN_ALL").is_none(),
                "no file system can be mounted: {}",
                done.text()
            );
            return None;
        };
        fs::remove_dir(self.dir()).unwrap();
        fs::rename(self.home.path().join("kept"), self.dir()).unwrap();
        Some((first.trim().parse().unwrap(), done))
    }

    fn start_as(&self, mut command: Command, further: &[&str]) -> Running {
        let output = |name: &str| File::create(self.home.path().join(name)).unwrap();
        let child = command
            .current_dir(self.home.path())
            .args(["--seeds", "seeds.txt", "--job", "job"])
            .args(&self.flags)
            .args(further)
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"))
            .spawn()
            .unwrap();
        Running {
            child,
            home: self.home.path().to_owned(),
            started: Instant::now(),
        }
    }

    /// One run to its end.
    pub(crate) fn run(&self) -> Done {
        self.start().wait()
    }

    /// Another command of the binary, in the same folder, to its end.
    pub(crate) fn command(&self, args: &[&str]) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
        let output = command.current_dir(self.home.path()).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Done {
            status: output.status,
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    pub(crate) fn report(&self) -> Value {
        let text = fs::read_to_string(self.dir().join("report.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// A number of the report, such as `/urls/fetched`.
    pub(crate) fn count(&self, pointer: &str) -> u64 {
        let report = self.report();
        report
            .pointer(pointer)
            .and_then(Value::as_u64)
            .unwrap_or_else(|| panic!("no {pointer} in {report:#}"))
    }

    pub(crate) fn records(&self) -> Vec<Record> {
        reader::records(&self.dir().join("archive"))
    }

    pub(crate) fn index(&self) -> Vec<IndexLine> {
        reader::index(&self.dir().join("indexes/index.cdxj"))
    }

    pub(crate) fn log(&self) -> Vec<LogLine> {
        reader::crawl_log(&self.dir().join("logs/crawl.log"))
    }

    /// The rows of a file of JSON lines in zstd frames, such as `pages.jsonl.zst`.
    pub(crate) fn rows(&self, name: &str) -> Vec<Value> {
        let frames = fs::read(self.dir().join(name)).unwrap();
        let text = String::from_utf8(zstd::decode_all(frames.as_slice()).unwrap()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Fails unless both accounts of the report add up and the report says so.
    pub(crate) fn assert_balanced(&self) {
        let sum = |group: &str, parts: &[&str]| -> u64 {
            parts.iter().map(|part| self.count(&format!("/{group}/{part}"))).sum()
        };
        let links = sum("links", &["malformed", "out_of_scope", "trap", "seen", "admitted"]);
        let urls = sum("urls", &["fetched", "failed", "robots", "pending"]);
        assert_eq!(self.count("/links/found"), links, "{:#}", self.report());
        assert_eq!(self.count("/urls/admitted"), urls, "{:#}", self.report());
        assert_eq!(self.report()["balanced"], Value::Bool(true));
    }
}

/// A run that is going on.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    home: PathBuf,
    started: Instant,
}

impl Running {
    /// Waits for the end; panics when the run is out of patience.
    pub(crate) fn wait(mut self) -> Done {
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return done(&self.home, status);
            }
            if self.started.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                let status = self.child.wait().unwrap();
                let said = done(&self.home, status);
                panic!("still running after {PATIENCE:?}\n{}", said.text());
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// SIGKILL once `life` is over. Gives the end of a run that was faster.
    pub(crate) fn kill_after(mut self, life: Duration) -> Option<Done> {
        while self.started.elapsed() < life {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(done(&self.home, status));
            }
            thread::sleep(LOOK_EVERY);
        }
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        // it may have ended by itself between the last look and the signal
        status.code().map(|_| done(&self.home, status))
    }

    /// Sends a signal by its name, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("sh")
            .args(["-c", "kill -s \"$0\" \"$1\"", name, &pid])
            .status()
            .unwrap();
        assert!(status.success(), "no process {pid} to signal");
    }

    /// As [`Running::wait`], with the most memory that the process ever had resident, bytes, as the system tells.
    pub(crate) fn wait_and_weigh(mut self) -> (Done, u64) {
        let mut most = 0;
        let status = format!("/proc/{}/status", self.pid());
        while self.child.try_wait().unwrap().is_none() && self.started.elapsed() < PATIENCE {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
            most = kib.map_or(most, |kib| kib * 1024);
            thread::sleep(LOOK_EVERY);
        }
        (self.wait(), most)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

fn done(home: &Path, status: ExitStatus) -> Done {
    let read = |name: &str| String::from_utf8_lossy(&fs::read(home.join(name)).unwrap()).into_owned();
    Done {
        status,
        stdout: read("stdout"),
        stderr: read("stderr"),
    }
}
