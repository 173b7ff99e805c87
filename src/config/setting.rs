//! What a setting is: how it is given, what it is for, and how it is read.

use super::Config;
use super::load::VARIABLE_PREFIX;

/// What kind of value a setting has: how it stands in crawler.toml and on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A string.
    Text,
    /// A number, bare in TOML.
    Number,
    /// A string such as `100MiB` or `2s`, or a bare number.
    Quantity,
    /// `yes` or `no` behind the flag; `true` or `false` in TOML.
    YesNo,
    /// A flag without a value; `true` or `false` in TOML.
    Switch,
    /// A flag that counts (`-vv`); a number in TOML.
    Count,
    /// A flag that may be given several times; an array of strings in TOML; words in a variable.
    List,
    /// The same for values with spaces in them; lines in a variable.
    Lines,
}

/// One setting.
#[derive(Debug)]
pub struct Setting {
    /// Its key in crawler.toml. The flag is the same with `-` for `_`, the variable is `CRAWLER_` and capitals.
    pub key: &'static str,
    /// The flag's letter.
    pub short: Option<char>,
    /// What kind of value it has.
    pub shape: Shape,
    /// The value's name in the help.
    pub name: &'static str,
    /// What it does, in a line or two.
    pub help: &'static str,
    /// Its value may hold a password: a complaint does not repeat it.
    pub secret: bool,
    /// A value to show where there is no default.
    pub example: &'static [&'static str],
    /// Reads its values (one, but for a list) into the settings, or says what was expected.
    pub read: fn(&mut Config, &[String]) -> Result<(), String>,
    /// Writes its value in `config` as `read` reads it; nothing if it is not set.
    pub show: fn(&Config) -> Vec<String>,
}

/// Settings of one purpose, under one heading of the help.
#[derive(Debug)]
pub struct Group {
    /// The heading.
    pub title: &'static str,
    /// Its settings.
    pub settings: &'static [Setting],
}

impl Setting {
    /// The flag's long name, without its dashes.
    #[must_use]
    pub fn flag(&self) -> String {
        self.key.replace('_', "-")
    }

    /// The variable in the environment.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{}{}", VARIABLE_PREFIX, self.key.to_ascii_uppercase())
    }
}

/// What most settings do not say.
pub(super) const BLANK: Setting = Setting {
    key: "",
    short: None,
    shape: Shape::Text,
    name: "",
    help: "",
    secret: false,
    example: &[],
    read: |_, _| Ok(()),
    show: |_| Vec::new(),
};
