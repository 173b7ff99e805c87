//! `[[trap]]` of crawler.toml: rules against traps for single hosts.

use std::fmt::Write as _;

use toml::Spanned;
use toml::de::DeValue;

use super::file::{hint, nearest};
use crate::traps::settings::{MAX_OVERRIDES, Override};
use crate::traps::{Rule, Settings};

const KEYS: [&str; 4] = ["host", "off", "without", "max_per_shape"];

/// Reads the tables; `problem` is told the place and the text of each mistake.
pub(super) fn read(at: usize, list: &[Spanned<DeValue<'_>>], mut problem: impl FnMut(usize, &str)) -> Vec<Override> {
    if list.len() > MAX_OVERRIDES {
        problem(at, &format!("more than {MAX_OVERRIDES} [[trap]]"));
    }
    let tables = list.iter().take(MAX_OVERRIDES);
    tables.filter_map(|entry| table(entry, &mut problem)).collect()
}

fn table(entry: &Spanned<DeValue<'_>>, problem: &mut impl FnMut(usize, &str)) -> Option<Override> {
    let at = entry.span().start;
    let Some(table) = entry.get_ref().as_table() else {
        problem(at, "trap: expected tables [[trap]]");
        return None;
    };
    let mut found = Override::default();
    for (key, value) in table {
        let (at, name) = (key.span().start, key.get_ref().as_ref());
        match (name, value.get_ref()) {
            ("host", DeValue::String(text)) => found.host = text.trim().to_ascii_lowercase(),
            ("off", DeValue::Boolean(off)) => found.off = *off,
            ("without", DeValue::Array(rules)) => {
                for rule in rules {
                    match rule.get_ref().as_str() {
                        Some(word) if Rule::of(word).is_some() => found.without.push(word.to_owned()),
                        Some(word) => {
                            let known = Rule::ALL.map(|rule| rule.word().to_owned());
                            let near = known
                                .iter()
                                .min_by_key(|known| strsim::damerau_levenshtein(word, known));
                            let near = near.cloned().unwrap_or_default();
                            problem(at, &format!("trap.without: no rule {word:?}; did you mean {near}?"));
                        }
                        None => problem(at, "trap.without: expected an array of strings"),
                    }
                }
            }
            ("max_per_shape", DeValue::Integer(number)) => match number.as_str().parse() {
                Ok(most) if most > 0 => found.max_per_shape = Some(most),
                _ => problem(at, "trap.max_per_shape: expected a number from 1 on"),
            },
            ("host", _) => problem(at, "trap.host: expected a string"),
            ("off", _) => problem(at, "trap.off: expected true or false"),
            ("without", _) => problem(at, "trap.without: expected an array of strings"),
            ("max_per_shape", _) => problem(at, "trap.max_per_shape: expected a number from 1 on"),
            _ => {
                let near = hint(nearest(name, KEYS.map(str::to_owned)));
                problem(at, &format!("unknown key \"trap.{name}\"{near}"));
            }
        }
    }
    if found.host.is_empty() {
        problem(
            at,
            "trap: host is missing (a host such as \"example.com\", or \"*.example.com\")",
        );
    }
    Some(found)
}

/// The tables as they are read.
pub(super) fn write(settings: &Settings, out: &mut String) {
    for entry in &settings.overrides {
        let quote = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let without: Vec<String> = entry.without.iter().map(|word| quote(word)).collect();
        // writing to a String cannot fail
        let _ = writeln!(out, "[[trap]]\nhost = {}\noff = {}", quote(&entry.host), entry.off);
        let _ = writeln!(out, "without = [{}]", without.join(", "));
        if let Some(most) = entry.max_per_shape {
            let _ = writeln!(out, "max_per_shape = {most}");
        }
        out.push('\n');
    }
}
