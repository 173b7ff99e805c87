//! The format of the cases, as `README.md` beside the shared cases tells it. An unknown field is an error: a case that
//! is only half understood would be half judged.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// What bytes are made of; see `parts.rs`.
pub(crate) type Parts = Value;

/// One case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) id: String,
    #[serde(rename = "area")]
    _area: String,
    #[serde(rename = "title")]
    _title: String,
    /// Where the trouble was reported.
    #[serde(rename = "source", default)]
    _source: Value,
    pub(crate) kind: Kind,
    #[serde(default)]
    pub(crate) hosts: BTreeMap<String, Host>,
    #[serde(default)]
    pub(crate) serve: Vec<Route>,
    #[serde(default)]
    pub(crate) seeds: Vec<String>,
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, Value>,
    /// The test bed has all of it: pinned names, and a small disk where it may mount one.
    #[serde(rename = "needs", default)]
    _needs: Vec<String>,
    #[serde(default)]
    pub(crate) run: Vec<RunStep>,
    #[serde(default)]
    pub(crate) files: Vec<FileOf>,
    #[serde(default)]
    pub(crate) vectors: Vec<Value>,
    pub(crate) expect: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    Crawl,
    Vectors,
    Files,
}

/// A server of the case. Its key is its name, or a label if `name` gives that.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub(crate) ip: std::net::Ipv4Addr,
    /// Added to the base port.
    #[serde(default)]
    pub(crate) port: u16,
    pub(crate) name: Option<String>,
    /// Nothing listens.
    #[serde(default)]
    pub(crate) closed: bool,
    /// Further requests of a connection are dropped.
    #[serde(default)]
    pub(crate) drop_reused: bool,
}

/// What a host answers. The first route that matches answers.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Route {
    pub(crate) host: String,
    path: Option<String>,
    prefix: Option<String>,
    #[serde(default, deserialize_with = "regex")]
    regex: Option<Regex>,
    when: Option<When>,
    /// In turn; the last is repeated.
    pub(crate) responses: Vec<Reply>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct When {
    header: Option<String>,
    contains: Option<String>,
    head_over: Option<usize>,
}

/// A response: a message, or steps as they are.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reply {
    pub(crate) wire: Option<Vec<Value>>,
    #[serde(default = "ok")]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    #[serde(default = "nothing")]
    pub(crate) body: Parts,
    #[serde(default)]
    pub(crate) delay_ms: u64,
    pub(crate) drop_after: Option<usize>,
    #[serde(default)]
    pub(crate) close: bool,
}

fn ok() -> u16 {
    200
}

fn nothing() -> Parts {
    Value::String(String::new())
}

/// A file that a case lays out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileOf {
    pub(crate) name: String,
    pub(crate) content: Parts,
}

/// A step of a run that is not just "start and wait".
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum RunStep {
    Start(Start),
    WaitRequests(usize),
    SleepMs(u64),
    Kill9(bool),
    Damage(Damage),
    Grow(String),
    WaitExit(bool),
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    #[serde(default)]
    pub(crate) resume: bool,
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, Value>,
    pub(crate) output: Option<String>,
    pub(crate) cwd: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Damage {
    pub(crate) file: String,
    #[serde(default)]
    pub(crate) cut_bytes: u64,
    pub(crate) flip_bit_at: Option<f64>,
}

/// A request as routes see it. Header names are in lower case.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) host: String,
    pub(crate) target: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) head_bytes: usize,
}

impl Route {
    /// The groups of the regular expression if this route answers the request.
    pub(crate) fn groups(&self, asked: &Asked) -> Option<Vec<String>> {
        if self.host != asked.host || !self.when.as_ref().is_none_or(|when| when.holds(asked)) {
            return None;
        }
        let target = asked.target.as_str();
        match (&self.path, &self.prefix, &self.regex) {
            (Some(path), _, _) => (path == target).then(Vec::new),
            (_, Some(prefix), _) => target.starts_with(prefix.as_str()).then(Vec::new),
            (_, _, Some(regex)) => {
                let found = regex.captures(target)?;
                let group = |at| {
                    found
                        .get(at)
                        .map_or("", |group: regex::Match| group.as_str())
                        .to_owned()
                };
                Some((1..found.len()).map(group).collect())
            }
            _ => panic!("a route without path, prefix or regex"),
        }
    }

    /// The one target that it answers, if it is only one.
    pub(crate) fn path_alone(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// A request that this route's condition asks for, to show what it answers.
    pub(crate) fn asked_for(&self, target: &str) -> Asked {
        let when = self.when.clone().unwrap_or(When {
            header: None,
            contains: None,
            head_over: None,
        });
        Asked {
            host: self.host.clone(),
            target: target.to_owned(),
            headers: when
                .header
                .map(|name| (name.to_lowercase(), when.contains.unwrap_or_default()))
                .into_iter()
                .collect(),
            head_bytes: usize::MAX,
        }
    }
}

impl When {
    fn holds(&self, asked: &Asked) -> bool {
        let header = self.header.as_ref().is_none_or(|name| {
            let value = asked.headers.get(&name.to_lowercase()).map_or("", String::as_str);
            value.contains(self.contains.as_deref().unwrap_or_default())
        });
        header && self.head_over.is_none_or(|most| asked.head_bytes > most)
    }
}

fn regex<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Regex>, D::Error> {
    let text = String::deserialize(from)?;
    Regex::new(&text).map(Some).map_err(serde::de::Error::custom)
}

/// The cases of a file, one a line.
pub(crate) fn read(text: &str) -> Vec<Case> {
    let line = |line: &str| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {}", line.get(..60).unwrap_or(line)))
    };
    text.lines().filter(|text| !text.trim().is_empty()).map(line).collect()
}
