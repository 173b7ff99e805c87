//! The table as flags: clap's arguments, and what was typed as a layer. Values are read by the table, not by clap, so
//! that a flag, a variable and a key take the same texts and fail with the same words.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, ValueHint};

use super::Config;
use super::load::{Given, Layer, Origin};
use super::setting::{Setting, Shape};
use super::table::{GROUPS, settings};

/// The id of `--config`.
const CONFIG: &str = "config";

/// The arguments of every command that takes settings.
#[must_use]
pub fn args() -> Vec<Arg> {
    let defaults = Config::default();
    let mut args = Vec::new();
    for group in &GROUPS {
        args.extend(
            group
                .settings
                .iter()
                .map(|setting| arg(setting, &defaults).help_heading(group.title)),
        );
    }
    let config = Arg::new(CONFIG)
        .long("config")
        .short('c')
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(clap::value_parser!(PathBuf))
        .help("File of settings [default: crawler.toml, if it is there]");
    args.push(config.help_heading("Job, archive and output"));
    args
}

fn arg(setting: &'static Setting, defaults: &Config) -> Arg {
    let arg = Arg::new(setting.key).long(setting.flag()).value_name(setting.name);
    let arg = match setting.short {
        Some(letter) => arg.short(letter),
        None => arg,
    };
    let default = (setting.show)(defaults).join(" ");
    match setting.shape {
        Shape::List | Shape::Lines => arg.action(ArgAction::Append).help(setting.help),
        Shape::Switch => arg
            .num_args(0..=1)
            .require_equals(true)
            .default_missing_value("yes")
            .action(ArgAction::Set)
            .help(setting.help),
        Shape::Count => arg.action(ArgAction::Count).help(setting.help),
        // the User-Agent is made from the contact, which has no default
        // a number below zero is a value too, and refused as one
        Shape::Number | Shape::Quantity if default.is_empty() => arg.allow_hyphen_values(true).help(setting.help),
        Shape::Number | Shape::Quantity => arg
            .allow_hyphen_values(true)
            .help(format!("{} [default: {default}]", setting.help)),
        _ if default.is_empty() || setting.key == "user_agent" => arg.action(ArgAction::Set).help(setting.help),
        _ => arg
            .action(ArgAction::Set)
            .help(format!("{} [default: {default}]", setting.help)),
    }
}

/// The switch that stands before a word which cannot be its value, and the word: `--insecure-tls maybe`. `is_command` says
/// which words may follow a switch.
#[must_use]
pub fn word_behind_switch(typed: &[OsString], is_command: impl Fn(&str) -> bool) -> Option<(String, String)> {
    let pairs = typed
        .windows(2)
        .filter_map(|pair| Some((pair.first()?.to_str()?, pair.get(1)?.to_str()?)));
    let wrong = pairs
        .filter(|(_, word)| !word.starts_with('-') && !is_command(word))
        .find(|(flag, _)| {
            let name = flag.strip_prefix("--");
            name.is_some_and(|name| settings().any(|s| s.shape == Shape::Switch && s.flag() == name))
        });
    wrong.map(|(flag, word)| (flag.to_owned(), word.to_owned()))
}

/// What was typed: the value of `--config`, and the settings.
#[must_use]
pub fn typed(matches: &ArgMatches) -> (Option<PathBuf>, Layer) {
    let mut layer = Layer::new();
    for setting in settings() {
        let values: Vec<String> = match setting.shape {
            Shape::Count => Some(matches.get_count(setting.key))
                .filter(|n| *n > 0)
                .map(|n| n.to_string())
                .into_iter()
                .collect(),
            _ => matches
                .get_many::<String>(setting.key)
                .unwrap_or_default()
                .cloned()
                .collect(),
        };
        if !values.is_empty() {
            layer.insert(
                setting.key,
                Given {
                    values,
                    origin: Origin::Flag(setting.flag()),
                },
            );
        }
    }
    (matches.get_one::<PathBuf>(CONFIG).cloned(), layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> (Option<PathBuf>, Layer) {
        let command = clap::Command::new("crawler").args(args());
        typed(&command.try_get_matches_from([&["crawler"], words].concat()).unwrap())
    }

    #[test]
    fn what_was_typed_is_a_layer() {
        let (config, layer) = parse(&[
            "-s",
            "a",
            "--seeds",
            "-",
            "--fresh",
            "--no-robots=no",
            "-vv",
            "-c",
            "x.toml",
        ]);
        assert_eq!(config, Some(PathBuf::from("x.toml")));
        let of = |key| layer.get(key).unwrap().values.clone();
        assert_eq!(of("seeds"), ["a", "-"]);
        assert_eq!(of("fresh"), ["yes"]);
        assert_eq!(of("no_robots"), ["no"]);
        assert_eq!(of("verbose"), ["2"]);
        assert_eq!(layer.len(), 4);
        assert_eq!(layer.get("no_robots").unwrap().origin.to_string(), "--no-robots");
    }

    #[test]
    fn a_switch_does_not_eat_the_next_word() {
        let command = clap::Command::new("crawler").args(args());
        assert!(command.try_get_matches_from(["crawler", "--fresh", "yes"]).is_err());
    }
}
