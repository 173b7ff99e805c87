//! `crawler explain URL`: what every rule says of an address; with a job, what became of it. Changes nothing.

mod job;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use serde_json::{Map, Value, json};

use super::{USAGE, fail, lists, print};
use crate::config::load::Origin;
use crate::config::seed::with_rules;
use crate::config::value::{show_duration, show_size};
use crate::config::{self, Loaded};
use crate::fetch::filter::MediaRange;
use crate::hash::HashKey;
use crate::robots::product_token;
use crate::scope::reach::{Reach, Seed};
use crate::scope::{OutReason, Scope, Verdict};
use crate::seeds;
use crate::shard::Own;
use crate::traps::{Shape, address};
use crate::url::{CrawlUrl, Identity, surt};

/// The job's own settings, in its folder.
const JOB_SETTINGS: &str = "config.toml";

/// What `explain` is asked.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// The address
    #[arg(value_name = "URL")]
    url: String,
    /// The answer as one JSON object
    #[arg(long)]
    json: bool,
}

/// The answer while it is put together: one line a rule.
#[derive(Debug, Default)]
struct Answer {
    lines: Vec<(&'static str, String)>,
    json: Map<String, Value>,
}

impl Answer {
    /// Adds what a rule says: for people and for programs.
    fn says(&mut self, rule: &'static str, text: impl Into<String>, value: Value) {
        self.lines.push((rule, text.into()));
        match self.json.get_mut(rule) {
            Some(Value::Array(list)) => list.push(value),
            Some(_) => {}
            None => {
                self.json.insert(rule.to_owned(), value);
            }
        }
    }

    /// Adds one of several answers of a rule.
    fn also(&mut self, rule: &'static str, text: impl Into<String>, value: Value) {
        self.json
            .entry(rule.to_owned())
            .or_insert_with(|| Value::Array(Vec::new()));
        self.says(rule, text, value);
    }

    fn text(&self) -> String {
        let mut out = String::new();
        let mut before = "";
        for (rule, text) in &self.lines {
            let shown = if *rule == before { "" } else { rule };
            before = rule;
            // writing to a String cannot fail
            let _ = writeln!(out, "{shown:<10} {text}");
        }
        out
    }
}

/// The file of settings: the one that was named, else that of the job that was named.
pub(super) fn settings_file(named: Option<PathBuf>, job: Option<&str>) -> Option<PathBuf> {
    named.or_else(|| {
        let own = Path::new(job?).join(JOB_SETTINGS);
        own.is_file().then_some(own)
    })
}

pub(super) fn run(args: &ExplainArgs, loaded: &Loaded) -> ExitCode {
    let identity = Identity::with(loaded.config.rules.clone());
    let url = match CrawlUrl::parse(&args.url, &identity) {
        Ok(url) => url,
        Err(reject) => return fail(&format!("{:?}: {reject}", args.url), USAGE),
    };
    let mut answer = Answer::default();
    canonical(&url, &mut answer);
    let scope = match scope(loaded, &identity, &mut answer) {
        Ok(scope) => scope,
        Err(error) => return fail(&error, USAGE),
    };
    in_scope(&url, scope.as_ref(), &mut answer);
    host(&url, loaded, &mut answer);
    filters(loaded, &mut answer);
    traps(&url, loaded, &mut answer);
    let named = matches!(loaded.origins.get("job"), Some(Origin::Flag(_) | Origin::Variable(_)));
    if named {
        let agent = product_token(&loaded.config.user_agent);
        if let Err((text, exit)) = job::explain(&loaded.config.job, &url, &identity, agent, &mut answer) {
            return fail(&text, exit);
        }
    } else {
        answer.says(
            "job",
            "none named: --job DIR adds robots.txt, the seen-set, the queue, attempts and the archive",
            Value::Null,
        );
    }
    if args.json {
        let mut text = Value::Object(answer.json).to_string();
        text.push('\n');
        return print(&text);
    }
    print(&answer.text())
}

fn canonical(url: &CrawlUrl, answer: &mut Answer) {
    answer.says("url", url.href(), url.href().into());
    answer.says("identity", url.canonical(), url.canonical().into());
    answer.says("host", url.host_key(), url.host_key().into());
    let key = surt::surt(url.href());
    answer.says("surt", key.clone(), key.into());
}

/// The scope of the settings and their seeds; none if no seeds are given.
fn scope(loaded: &Loaded, identity: &Identity, answer: &mut Answer) -> Result<Option<(Reach, Vec<Seed>)>, String> {
    let config = &loaded.config;
    let blocklist = super::crawl::read_blocklist(&config.blocklist)?.map(|read| read.list);
    let scope = Scope::new(config.scope, &config.include, &config.exclude, config.max_depth)
        .map(|scope| {
            scope
                .with_surts(&config.scope_surts)
                .with_offsite_hops(config.offsite_hops)
                .with_blocklist(blocklist)
        })
        .map_err(|error| error.to_string())?;
    if config.seeds.is_empty() && config.seed.is_empty() {
        return Ok(None);
    }
    if config.seeds.iter().any(|path| path.as_os_str() == "-") {
        answer.says("seeds", "from standard input: they are not known here", Value::Null);
        return Ok(None);
    }
    let lists = lists::kept(&config.job);
    let unknown = |path: &&PathBuf| lists::address(path).is_some() && lists.iter().all(|list| list.name != **path);
    if let Some(path) = config.seeds.iter().find(unknown) {
        let words = format!("{} was not fetched yet: they are not known here", path.display());
        answer.says("seeds", words, Value::Null);
        return Ok(None);
    }
    match seeds::read(&config.seeds, &lists, &config.seed, identity) {
        Ok(read) => {
            let seeds = with_rules(read).map_err(|error| error.to_string())?;
            let mut reach = Reach::new(scope);
            // the numbers that a job gives them are not known, and do not matter here
            for (seed, number) in seeds.iter().zip(1..) {
                reach.add_seed(seed, number)?;
            }
            Ok(Some((reach, seeds)))
        }
        Err(error) => {
            answer.says("seeds", error.to_string().replace('\n', "; "), Value::Null);
            Ok(None)
        }
    }
}

fn in_scope(url: &CrawlUrl, scope: Option<&(Reach, Vec<Seed>)>, answer: &mut Answer) {
    let Some((scope, seeds)) = scope else {
        answer.says(
            "scope",
            "not known without seeds: give --seeds or --seed",
            json!({"verdict": null}),
        );
        return;
    };
    let (verdict, origin) = scope.judge(url, 0, 0);
    let seed = usize::try_from(origin)
        .ok()
        .and_then(|number| seeds.get(number.checked_sub(1)?));
    let (word, rule) = match verdict {
        Verdict::In => ("in", "in"),
        Verdict::Out(OutReason::Scope) => ("out", "scope"),
        Verdict::Out(OutReason::Pattern) => ("out", "pattern"),
        Verdict::Out(OutReason::Depth) => ("out", "depth"),
        Verdict::Out(OutReason::Blocklist) => ("out", "blocklist"),
    };
    let why = scope.why(url, verdict, origin);
    let by = seed.map(|seed| seed.url.href());
    let of = by.map_or_else(String::new, |seed| format!("; seed {seed}"));
    answer.says(
        "scope",
        format!("{word}: {why}{of}"),
        json!({"verdict": word, "rule": rule, "why": why, "seed": by}),
    );
    let own = shard_own(seeds);
    let delay = own.delays.get(url.host_key());
    if let Some(delay) = delay {
        let text = format!("{} between requests, by its seed", show_duration(*delay));
        answer.says("pace", text, json!({"delay_s": delay.as_secs_f64()}));
    }
    if let Some(most) = seed.and_then(|seed| seed.rules.as_ref()?.max_pages) {
        answer.says("budget", format!("{most} URLs of its seed"), json!({"max_pages": most}));
    }
}

/// Which bodies the settings leave out: the address does not tell, so the rules are named.
fn filters(loaded: &Loaded, answer: &mut Answer) {
    let filter = &loaded.config.filter;
    if filter.is_open() {
        return;
    }
    let list = |ranges: &[MediaRange]| {
        let texts: Vec<String> = ranges.iter().map(ToString::to_string).collect();
        texts.join(", ")
    };
    let rules = [
        (!filter.accept.is_empty()).then(|| format!("--accept-types {}", list(&filter.accept))),
        (!filter.reject.is_empty()).then(|| format!("--reject-types {}", list(&filter.reject))),
        filter.max_size.map(|size| format!("--max-size {}", show_size(size))),
    ];
    let rules: Vec<String> = rules.into_iter().flatten().collect();
    let text = format!(
        "the head of the answer decides: {}; not for seeds, sitemaps, robots.txt",
        rules.join("; ")
    );
    answer.says("body", text, json!({"rules": rules}));
}

/// What the seeds ask for hosts.
fn shard_own(seeds: &[Seed]) -> Own {
    let mut own = Own::default();
    own.add_seeds(seeds, &HashKey([0; 16]));
    own
}

/// What the settings say of its host alone.
fn host(url: &CrawlUrl, loaded: &Loaded, answer: &mut Answer) {
    let own = Own {
        hosts: loaded.config.hosts.clone(),
        ..Own::default()
    };
    let Some(rule) = own.host(url.host_key()) else { return };
    if let Some(delay) = rule.delay {
        let text = format!("{} between requests, by [[host]] {}", show_duration(delay), rule.host);
        answer.says("pace", text, json!({"delay_s": delay.as_secs_f64()}));
    }
    if let Some(most) = rule.max_pages {
        let text = format!("{most} URLs of this host, by [[host]] {}", rule.host);
        answer.says("budget", text, json!({"max_pages": most}));
    }
}

fn traps(url: &CrawlUrl, loaded: &Loaded, answer: &mut Answer) {
    let settings = &loaded.config.traps;
    let shape = Shape::text(url);
    let policy = settings.of(url.host_key());
    let broken = address::rule(url.path_and_query());
    let (text, rule) = match broken {
        _ if settings.off => ("no rule holds: --traps no".to_owned(), None),
        Some(rule) if policy.holds(rule) => (format!("dropped: {rule} ({})", rule.says()), Some(rule.word())),
        Some(rule) => (format!("{rule}, but this rule is off for the host"), None),
        None => ("the address alone breaks no rule".to_owned(), None),
    };
    answer.says(
        "trap",
        format!("{text}; shape {shape}"),
        json!({"rule": rule, "shape": shape, "off": settings.off}),
    );
}

/// The file and the values for `config::load`.
pub(super) fn load(matches: &clap::ArgMatches) -> Result<Loaded, config::ConfigError> {
    let (file, flags) = config::flags::typed(matches);
    let job = flags.get("job").and_then(|given| given.values.first()).cloned();
    let variable = std::env::var("CRAWLER_JOB").ok().filter(|job| !job.is_empty());
    let job = job.or(variable);
    config::load(
        settings_file(file, job.as_deref()).as_deref(),
        std::env::vars_os(),
        &flags,
    )
}
