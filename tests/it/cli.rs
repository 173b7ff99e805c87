//! The command line as scripts and people use it: messages, exit codes, files. No network, no crawl of anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crawler::config::{self, Config, sample};
use crawler::job;
use crawler::url::Identity;
use tempfile::TempDir;

/// The binary in a folder of its own, without settings of the environment.
struct Place {
    home: TempDir,
    variables: Vec<(&'static str, &'static str)>,
}

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            variables: Vec::new(),
        }
    }

    fn file(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        fs::write(self.path(name), text).unwrap();
        self
    }

    fn variable(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.push((name, value));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn run(&self, args: &[&str]) -> Said {
        let mut command = Command::new(env!("CARGO_BIN_EXE_crawler"));
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("CRAWLER_") || name == "COLUMNS" {
                command.env_remove(name);
            }
        }
        let output = command
            .current_dir(self.home.path())
            .envs(self.variables.iter().copied())
            .args(args)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        Said {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.home.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

impl Said {
    fn assert(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{}{}", self.out, self.err);
        for word in words {
            assert!(self.err.contains(word), "{word:?} is not said:\n{}", self.err);
        }
    }
}

fn repository(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

#[test]
fn seeds_that_cannot_be_read_leave_no_folder_behind() {
    let place = Place::new();
    place
        .run(&["--seeds", "missing.txt"])
        .assert(2, &["cannot read the seeds of missing.txt: "]);
    place
        .run(&["--seeds", "."])
        .assert(2, &["cannot read the seeds of .: "]);
    place.run(&[]).assert(2, &["--seeds seeds.txt", "crawler demo"]);
    place.run(&["crawl", "--seeds", "-"]).assert(2, &["no valid seed in -"]);
    assert_eq!(place.names(), Vec::<String>::new());
}

#[test]
fn when_no_line_is_an_address_each_is_named() {
    let place = Place::new().file(
        "seeds.txt",
        b"# list\nmailto:me@example.com\n\nhttp://exa mple/\n\xff\n",
    );
    let said = place.run(&["--seeds", "seeds.txt"]);
    said.assert(
        2,
        &[
            "seeds.txt:2: ",
            "seeds.txt:4: ",
            "seeds.txt:5: not UTF-8",
            "no valid seed in seeds.txt",
        ],
    );
    assert_eq!(place.names(), ["seeds.txt"]);
}

#[test]
fn a_bad_line_is_named_and_the_rest_goes_on() {
    let place = Place::new().file("seeds.txt", "http://127.0.0.1:9/\nmailto:me@example.com\n");
    let run = ["--seeds", "seeds.txt", "--retries", "0", "--job", "job"];
    place.run(&run).assert(
        4,
        &[
            "seeds.txt:2: ",
            "new job in job (1 seed)",
            "seed http://127.0.0.1:9/ failed: ",
        ],
    );
    let report: serde_json::Value = serde_json::from_slice(&fs::read(place.path("job/report.json")).unwrap()).unwrap();
    assert_eq!(report["state"], "failed");
    assert!(
        fs::read_to_string(place.path("job/report.html"))
            .unwrap()
            .contains("no seed could be fetched")
    );
    assert!(
        fs::read_to_string(place.path("job/logs/crawler.log"))
            .unwrap()
            .contains("seeds.txt:2: ")
    );
    // a job that reached nothing does not stand in the way of the next try
    place
        .run(&run)
        .assert(4, &["begins anew", "job/unreached-1", "new job in job (1 seed)"]);
}

#[test]
fn quiet_says_errors_only() {
    let place = Place::new().file("seeds.txt", "http://127.0.0.1:9/\nmailto:me@example.com\n");
    let said = place.run(&["-q", "--seeds", "seeds.txt", "--retries", "0"]);
    said.assert(4, &["seed http://127.0.0.1:9/ failed: "]);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    assert_eq!(said.out, "");
}

#[test]
fn a_bad_settings_file_is_named_with_line_key_and_what_was_expected() {
    for (text, words) in [
        ("\ndelay = soon\n", vec!["crawler.toml:2: not TOML: "]),
        (
            "\n\ndely = \"1s\"\n",
            vec!["crawler.toml:3: unknown key \"dely\"; did you mean delay?"],
        ),
        (
            "delay = \"soon\"\n",
            vec![
                "crawler.toml:1: delay: expected a duration such as 500ms",
                "found \"soon\"",
            ],
        ),
        (
            "max_pages = \"x\"\nscope = 1\n",
            vec![
                "crawler.toml:1: max_pages: ",
                "crawler.toml:2: scope: expected a string",
            ],
        ),
    ] {
        let place = Place::new()
            .file("crawler.toml", text)
            .file("seeds.txt", "http://127.0.0.1:9/\n");
        place.run(&["--seeds", "seeds.txt"]).assert(2, &words);
        place.run(&["config", "check"]).assert(2, &words);
        assert_eq!(place.names(), ["crawler.toml", "seeds.txt"]);
    }
    let place = Place::new();
    place
        .run(&["--config", "none.toml", "--seed", "http://a/"])
        .assert(2, &["none.toml: cannot be read: "]);
}

#[test]
fn a_bad_flag_or_variable_is_named() {
    let place = Place::new();
    place
        .run(&["--delay", "soon", "--seed", "http://a/"])
        .assert(2, &["--delay: expected a duration", "found \"soon\""]);
    place.run(&["--dely", "1s"]).assert(2, &["--dely", "--delay"]);
    place.run(&["crawll"]).assert(2, &["crawll", "crawl"]);
    let place = place.variable("CRAWLER_FP_RATE", "2");
    place
        .run(&["--seed", "http://a/"])
        .assert(2, &["CRAWLER_FP_RATE: expected a number from 0.000001"]);
}

#[test]
fn a_complaint_about_a_password_does_not_repeat_it() {
    let seed = ["--seed", "http://a/"];
    for flag in [
        ["--proxy", "https://u:SECRET@h:1"],
        ["--proxy", "http://u:SECRET@h:99999"],
        ["--proxy", "u:SECRET@h:1"],
        ["--header", "Authorization: a\u{1}SECRET"],
        ["--header", "SECRET"],
    ] {
        let run = Place::new().run(&[seed, flag].concat());
        run.assert(2, &[flag[0]]);
        assert!(
            !format!("{}{}", run.out, run.err).contains("SECRET"),
            "{flag:?}: {}",
            run.err
        );
    }
    let run = Place::new()
        .variable("CRAWLER_PROXY", "xx://u:SECRET@h")
        .run(&["--seed", "http://a/"]);
    run.assert(2, &["CRAWLER_PROXY"]);
    assert!(!run.err.contains("SECRET"), "{}", run.err);
}

#[test]
fn a_job_in_use_is_refused_with_the_pid() {
    let place = Place::new();
    let _held = job::open(&place.path("job"), false).unwrap();
    let said = place.run(&["--seed", "http://127.0.0.1:9/", "--job", "job"]);
    said.assert(
        2,
        &[
            "the job job is being crawled by process",
            &std::process::id().to_string(),
        ],
    );
}

#[test]
fn a_finished_job_is_refused_with_the_way_out() {
    let place = Place::new();
    job::open(&place.path("job"), false).unwrap().mark_finished().unwrap();
    place
        .run(&["--seed", "http://127.0.0.1:9/", "--job", "job"])
        .assert(2, &["the job job is finished", "--fresh"]);
    assert_eq!(place.names(), ["job"]);
    assert!(!place.path("job/config.toml").exists());
    let fresh = place.run(&[
        "--seed",
        "http://127.0.0.1:9/",
        "--retries",
        "0",
        "--job",
        "job",
        "--fresh",
    ]);
    fresh.assert(4, &["new job in job-2 (1 seed)"]);
    assert_eq!(place.names(), ["job", "job-2"]);
}

#[test]
fn a_job_of_another_format_is_refused_and_nothing_is_written() {
    let place = Place::new();
    fs::create_dir_all(place.path("job/state")).unwrap();
    fs::write(place.path("job/state/VERSION"), "999\n").unwrap();
    let said = place.run(&["--seed", "http://127.0.0.1:9/", "--job", "job"]);
    said.assert(1, &["the job job has format version 999"]);
    assert_eq!(fs::read_to_string(place.path("job/state/VERSION")).unwrap(), "999\n");
    assert_eq!(fs::read_dir(place.path("job/state")).unwrap().count(), 1);
    assert_eq!(fs::read_dir(place.path("job")).unwrap().count(), 1);
}

#[test]
fn a_damaged_job_is_refused_and_nothing_is_written() {
    let place = Place::new();
    fs::create_dir_all(place.path("job/archive")).unwrap();
    place
        .run(&["--seed", "http://127.0.0.1:9/", "--job", "job"])
        .assert(1, &["job is no job, or a damaged one", "--fresh"]);
    assert_eq!(fs::read_dir(place.path("job")).unwrap().count(), 1);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let place = Place::new().file("file", "");
    let said = place.run(&["--seed", "http://127.0.0.1:9/", "--job", "file/job"]);
    said.assert(3, &["cannot write the job folder file/job"]);
    assert_eq!(fs::read_to_string(place.path("file")).unwrap(), "");
}

#[test]
fn the_readme_shows_the_help() {
    let place = Place::new();
    let said = place.run(&["--help"]);
    said.assert(0, &[]);
    let help = crawler::commands::help();
    let trimmed = |text: &str| text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    let readme = fs::read_to_string(repository("README.md")).unwrap();
    let block = readme
        .split_once("<!-- flags -->\n")
        .and_then(|(_, rest)| rest.split_once("<!-- /flags -->"));
    let block = block.expect("README.md has <!-- flags --> and <!-- /flags -->").0;
    let expected = format!("```text\n{}\n```\n", trimmed(&help));
    assert_eq!(
        block, expected,
        "put the output of `crawler --help` between the markers of README.md"
    );
    assert_eq!(trimmed(&said.out), trimmed(&help), "--help says what the README shows");
}

#[test]
fn the_files_of_the_repository_are_valid() {
    let file = repository("crawler.toml");
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        sample::sample(),
        "crawler config init - writes it"
    );
    assert_eq!(config::load::load_file(&file).unwrap().config, Config::default());
    let seeds = crawler::seeds::read(&[repository("seeds.txt")], &[], &[], &Identity::default()).unwrap();
    assert_eq!(seeds.warnings, Vec::<String>::new());
    assert!(seeds.urls.len() >= 3);
}

#[test]
fn a_settings_file_is_written_once_checked_and_shown() {
    let place = Place::new();
    place
        .run(&["config", "check"])
        .assert(2, &["crawler.toml: cannot be read"]);
    place.run(&["config", "init"]).assert(0, &[]);
    assert_eq!(
        fs::read_to_string(place.path("crawler.toml")).unwrap(),
        sample::sample()
    );
    assert!(place.run(&["config", "check"]).out.contains("crawler.toml is valid"));
    let place = place.file("crawler.toml", "delay = \"3s\"\nretries = 7\n");
    place
        .run(&["config", "init"])
        .assert(2, &["is there already and is left alone"]);
    assert_eq!(
        fs::read_to_string(place.path("crawler.toml")).unwrap(),
        "delay = \"3s\"\nretries = 7\n"
    );

    let place = place
        .variable("CRAWLER_RETRIES", "5")
        .variable("CRAWLER_TIMEOUT", "9m")
        .variable("CRAWLER_DELY", "1s");
    let shown = place.run(&["config", "show", "--timeout", "8m"]);
    shown.assert(0, &[]);
    for line in [
        "# warning: CRAWLER_DELY is no setting; did you mean CRAWLER_DELAY?",
        "delay = \"3s\" # crawler.toml:1",
        "retries = 5 # CRAWLER_RETRIES",
        "timeout = \"8m\" # --timeout",
        "concurrency = 64 # default",
    ] {
        assert!(
            shown.out.lines().any(|shown| shown == line),
            "{line:?} is not shown:\n{}",
            shown.out
        );
    }
}

#[test]
fn completions_and_sizes_are_printed() {
    let place = Place::new();
    assert!(place.run(&["completions", "bash"]).out.contains("--max-pages"));
    let said = place.run(&[
        "filter",
        "size",
        "--items",
        "1_000_000",
        "--fp",
        "0.01",
        "--kind",
        "classic",
    ]);
    for figure in ["9,585,059 bits", "1.14 MiB", "7 hashes"] {
        assert!(said.out.contains(figure), "{}", said.out);
    }
    assert!(!said.out.contains("bloom"), "{}", said.out);
    assert!(
        place
            .run(&["filter", "size", "--items", "1000000", "--fp", "0.001"])
            .out
            .contains("bloom")
    );
    place
        .run(&["filter", "size", "--items", "0", "--fp", "0.01"])
        .assert(2, &["--items"]);
    place
        .run(&["filter", "size", "--items", "1", "--fp", "0.01", "--kind", "x"])
        .assert(
            2,
            &["expected one of bloom, classic, scalable, counting, cuckoo, quotient, tags, "],
        );
}

#[test]
fn a_wrong_value_of_a_flag_is_named_with_what_is_allowed() {
    for (words, said) in [
        (
            &["--insecure-tls", "maybe"][..],
            "--insecure-tls: expected nothing behind it, or --insecure-tls=yes or --insecure-tls=no, found \"maybe\"",
        ),
        (
            &["--insecure-tls=maybe"],
            "--insecure-tls: expected yes or no, found \"maybe\"",
        ),
        (
            &["--delay-factor", "-1"],
            "--delay-factor: expected a number from 0 to 1000, found \"-1\"",
        ),
        (&["--delay", "-1s"], "--delay: expected a duration such as"),
        (
            &["--max-pages", "-3"],
            "--max-pages: expected a whole number of at least 1",
        ),
        (&["--max-body", "-1"], "--max-body: expected a size such as"),
    ] {
        let done = Command::new(env!("CARGO_BIN_EXE_crawler"))
            .args(["--seed", "http://127.0.0.1/"])
            .args(words)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}
