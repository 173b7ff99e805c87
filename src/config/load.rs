//! Who wins: flags over the environment over the file over the defaults. Every value remembers where it came from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::setting::{Setting, Shape};
use super::table::settings;
use super::{Config, DEFAULT_FILE, file};

/// What the name of every variable of ours begins with.
pub const VARIABLE_PREFIX: &str = "CRAWLER_";

/// The variable that names the file, as `--config` does.
pub const FILE_VARIABLE: &str = "CRAWLER_CONFIG";

/// Largest settings file, bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The settings file and the line.
    File(PathBuf, usize),
    /// A variable of the environment.
    Variable(String),
    /// A flag.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// The values of one setting as given somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    /// One value, or those of a list.
    pub values: Vec<String>,
    /// Where they stood.
    pub origin: Origin,
}

/// What one place (the flags, the environment, the file) says, by key.
pub type Layer = BTreeMap<&'static str, Given>;

/// Settings that cannot be used: every problem found, each on its line, in the order of the sources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(pub Vec<String>);

/// The settings and where they came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The settings, checked.
    pub config: Config,
    /// Where each key was set; a key that is not here has its default.
    pub origins: BTreeMap<&'static str, Origin>,
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// What is odd but no error: a `CRAWLER_` variable that is no setting.
    pub warnings: Vec<String>,
}

impl Loaded {
    /// Settings that a command made itself.
    #[must_use]
    pub fn of(config: Config) -> Self {
        Self {
            config,
            origins: BTreeMap::new(),
            file: None,
            warnings: Vec::new(),
        }
    }
}

/// Reads and merges all sources. `file` is the value of `--config`; without it `CRAWLER_CONFIG` counts, then
/// `crawler.toml` in the working folder if it is there. Paths in the file are relative to the working folder, as those
/// of flags are. A list of a higher source replaces that of a lower one.
///
/// # Errors
/// Every problem with its place: `crawler.toml:7: delay: expected a duration such as ..., found "x"`.
pub fn load(
    file: Option<&Path>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    flags: &Layer,
) -> Result<Loaded, ConfigError> {
    let mut merge = Merge::default();
    let (variables, named) = environment(variables, &mut merge);
    let file = file.map(Path::to_path_buf).or(named).or_else(|| {
        let default = PathBuf::from(DEFAULT_FILE);
        default.exists().then_some(default)
    });
    if let Some(path) = &file {
        merge.file(path);
    }
    merge.layer(&variables);
    merge.layer(flags);
    merge.finish(file)
}

/// Reads one settings file alone, over the defaults.
///
/// # Errors
/// Every problem with its place.
pub fn load_file(path: &Path) -> Result<Loaded, ConfigError> {
    let mut merge = Merge::default();
    merge.file(path);
    merge.finish(Some(path.to_path_buf()))
}

/// Reads the text of a settings file, over the defaults. `path` is its name in messages.
///
/// # Errors
/// Every problem with its place.
pub fn load_text(path: &Path, text: &str) -> Result<Loaded, ConfigError> {
    let mut merge = Merge::default();
    merge.text(path, text);
    merge.finish(Some(path.to_path_buf()))
}

/// Settings while the sources are laid over one another, the weakest first.
#[derive(Default)]
struct Merge {
    config: Config,
    origins: BTreeMap<&'static str, Origin>,
    warnings: Vec<String>,
    problems: Vec<String>,
}

impl Merge {
    fn file(&mut self, path: &Path) {
        match read_text(path) {
            Err(reason) => self.problems.push(format!("{}: {reason}", path.display())),
            Ok(text) => self.text(path, &text),
        }
    }

    fn text(&mut self, path: &Path, text: &str) {
        let file::Parsed {
            layer,
            fields,
            auth,
            traps,
            hosts,
            problems,
        } = file::parse(path, text);
        self.problems.extend(problems);
        self.config.fields = fields;
        self.config.auth = auth;
        self.config.traps.overrides = traps;
        self.config.hosts = hosts;
        self.layer(&layer);
    }

    fn layer(&mut self, layer: &Layer) {
        for setting in settings() {
            let Some(given) = layer.get(setting.key) else { continue };
            match (setting.read)(&mut self.config, &given.values) {
                Ok(()) => {
                    self.origins.insert(setting.key, given.origin.clone());
                }
                Err(expected) => self.problems.push(problem(setting, given, &expected)),
            }
        }
    }

    fn finish(mut self, file: Option<PathBuf>) -> Result<Loaded, ConfigError> {
        if !self.problems.is_empty() {
            return Err(ConfigError(self.problems));
        }
        if !self.origins.contains_key("user_agent") {
            self.config.user_agent = super::user_agent(self.config.contact.as_deref());
        }
        Ok(Loaded {
            config: self.config,
            origins: self.origins,
            file,
            warnings: self.warnings,
        })
    }
}

/// A value that cannot be used: place, key, what was expected, what was found.
fn problem(setting: &Setting, given: &Given, expected: &str) -> String {
    let place = match &given.origin {
        Origin::File(..) => format!("{}: {}", given.origin, setting.key),
        Origin::Variable(_) | Origin::Flag(_) => given.origin.to_string(),
    };
    match (setting.shape, given.values.first()) {
        // a list names the value itself
        (Shape::List | Shape::Lines, _) | (_, None) => format!("{place}: {expected}"),
        _ if setting.secret => format!("{place}: {expected}"),
        (_, Some(found)) => format!("{place}: {expected}, found {found:?}"),
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| format!("cannot be read: {error}"))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!(
            "is larger than {MAX_FILE_BYTES} bytes: that is no settings file"
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = error
            .as_bytes()
            .get(..error.utf8_error().valid_up_to())
            .unwrap_or_default();
        let line = valid.split(|byte| *byte == b'\n').count();
        format!("line {line} is not UTF-8")
    })
}

/// The layer of our variables, and the file that [`FILE_VARIABLE`] names. An empty variable counts as not set. The
/// values of a list are parted by white space, or by line ends if they may hold spaces.
fn environment(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    merge: &mut Merge,
) -> (Layer, Option<PathBuf>) {
    let mut layer = Layer::new();
    let mut file = None;
    for (name, value) in variables {
        let Some(name) = name.to_str().filter(|name| name.starts_with(VARIABLE_PREFIX)) else {
            continue;
        };
        if value.is_empty() {
            continue;
        }
        if name == FILE_VARIABLE {
            file = Some(PathBuf::from(value));
            continue;
        }
        let Some(setting) = settings().find(|setting| setting.variable() == name) else {
            let near = super::file::nearest(name, settings().map(Setting::variable));
            merge
                .warnings
                .push(format!("{name} is no setting{}", super::file::hint(near)));
            continue;
        };
        let Some(text) = value.to_str() else {
            merge.problems.push(format!("{name}: is not UTF-8"));
            continue;
        };
        let values = match setting.shape {
            Shape::List => text.split_whitespace().map(str::to_owned).collect(),
            Shape::Lines => text
                .lines()
                .filter(|line| !line.is_empty())
                .map(str::to_owned)
                .collect(),
            _ => vec![text.to_owned()],
        };
        layer.insert(
            setting.key,
            Given {
                values,
                origin: Origin::Variable(name.to_owned()),
            },
        );
    }
    merge.warnings.sort();
    (layer, file)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn flags(given: &[(&'static str, &str)]) -> Layer {
        let given = given.iter().map(|(key, value)| {
            let origin = Origin::Flag(key.replace('_', "-"));
            (
                *key,
                Given {
                    values: vec![(*value).to_owned()],
                    origin,
                },
            )
        });
        given.collect()
    }

    fn variables(given: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        given.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }

    fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawler.toml");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn flags_beat_the_environment_beats_the_file_beats_the_defaults() {
        let (_folder, path) = file("delay = \"4s\"\nretries = 4\ntimeout = \"4m\"\n");
        let loaded = load(
            Some(&path),
            variables(&[("CRAWLER_DELAY", "3s"), ("CRAWLER_RETRIES", "3"), ("HOME", "/")]),
            &flags(&[("delay", "2s")]),
        )
        .unwrap();
        assert_eq!(loaded.config.delay, Duration::from_secs(2));
        assert_eq!(loaded.config.retries, 3);
        assert_eq!(loaded.config.timeout, Duration::from_secs(240));
        assert_eq!(loaded.config.max_wait, Config::default().max_wait);
        let from = |key| loaded.origins.get(key).map(ToString::to_string);
        assert_eq!(from("delay").unwrap(), "--delay");
        assert_eq!(from("retries").unwrap(), "CRAWLER_RETRIES");
        assert_eq!(from("timeout").unwrap(), format!("{}:3", path.display()));
        assert_eq!(from("max_wait"), None);
        assert!(loaded.warnings.is_empty());
    }

    #[test]
    fn every_setting_has_its_variable() {
        for setting in settings() {
            let shown = (setting.show)(&Config::default());
            let shown = shown.iter().map(String::as_str);
            let values: Vec<&str> = if shown.len() == 0 {
                setting.example.to_vec()
            } else {
                shown.collect()
            };
            // an address needs the parser of addresses, which has its own tests
            let name = setting.variable();
            let loaded = load(
                Some(Path::new("/dev/null")),
                variables(&[(&name, &values.join(" "))]),
                &Layer::new(),
            );
            let loaded = loaded.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(loaded.origins.get(setting.key), Some(&Origin::Variable(name)));
            assert_eq!((setting.show)(&loaded.config), values, "{}", setting.key);
        }
    }

    #[test]
    fn a_variable_that_is_no_setting_is_named_with_the_nearest_one() {
        let given = variables(&[
            ("CRAWLER_DELY", "3s"),
            ("CRAWLER_DELAY", ""),
            ("CRAWLER_ZZZZZZZZZZ", "1"),
        ]);
        let loaded = load(Some(Path::new("/dev/null")), given, &Layer::new()).unwrap();
        assert_eq!(
            loaded.warnings,
            [
                "CRAWLER_DELY is no setting; did you mean CRAWLER_DELAY?",
                "CRAWLER_ZZZZZZZZZZ is no setting"
            ]
        );
        assert_eq!(loaded.config, Config::default());
    }

    #[test]
    fn a_bad_value_is_an_error_in_every_source_even_where_another_wins() {
        let (_folder, path) = file("\ndelay = \"soon\"\nmax_pages = 0\ninclude = [\"(\"]\n");
        let error = load(
            Some(&path),
            variables(&[("CRAWLER_SCOPE", "all"), ("CRAWLER_DELAY", "1s")]),
            &flags(&[("fp_rate", "2"), ("delay", "1s")]),
        )
        .unwrap_err();
        let at = path.display();
        assert_eq!(
            error.0,
            [
                format!("{at}:4: include: expected a regular expression (unclosed group), found \"(\""),
                format!("{at}:3: max_pages: expected a whole number of at least 1, or none, found \"0\""),
                format!(
                    "{at}:2: delay: expected a duration such as 500ms, 2s, 3m, 1h or 2d (at most ten years), found \"soon\""
                ),
                "CRAWLER_SCOPE: expected one of host, domain, prefix, any, found \"all\"".to_owned(),
                "--fp-rate: expected a number from 0.000001 to 0.5, found \"2\"".to_owned(),
            ]
        );
    }

    #[test]
    fn a_contact_stands_in_the_user_agent_unless_one_is_given() {
        let nothing = Path::new("/dev/null");
        let loaded = load(Some(nothing), [], &flags(&[("contact", "me@example.org")])).unwrap();
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(
            loaded.config.user_agent,
            format!("Mozilla/5.0 (compatible; crawler/{version}; +me@example.org)")
        );
        let both = flags(&[("contact", "me@example.org"), ("user_agent", "bot/1")]);
        assert_eq!(load(Some(nothing), [], &both).unwrap().config.user_agent, "bot/1");
    }

    #[test]
    fn a_file_that_is_named_must_be_readable() {
        let missing = load(Some(Path::new("/nonexistent/x.toml")), [], &Layer::new()).unwrap_err();
        assert!(
            missing.to_string().starts_with("/nonexistent/x.toml: cannot be read: "),
            "{missing}"
        );
        let named = variables(&[("CRAWLER_CONFIG", "/nonexistent/y.toml")]);
        assert!(
            load(None, named, &Layer::new())
                .unwrap_err()
                .to_string()
                .starts_with("/nonexistent/y.toml")
        );
        let (_folder, path) = file("");
        std::fs::write(&path, b"# ok\n# \xff\n").unwrap();
        assert!(
            load_file(&path)
                .unwrap_err()
                .to_string()
                .ends_with("line 2 is not UTF-8")
        );
        std::fs::write(&path, "#".repeat(usize::try_from(MAX_FILE_BYTES).unwrap())).unwrap();
        assert!(load_file(&path).is_ok());
        std::fs::write(&path, "#".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() + 1)).unwrap();
        assert!(
            load_file(&path)
                .unwrap_err()
                .to_string()
                .contains("is larger than 1048576 bytes")
        );
    }
}
