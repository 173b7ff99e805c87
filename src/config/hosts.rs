//! `[[host]]` of crawler.toml: budgets and pauses of single hosts.

use std::fmt::Write as _;

use toml::Spanned;
use toml::de::DeValue;

use super::checks::count;
use super::file::{hint, nearest};
use super::value::{duration, show_duration};
use crate::politeness::{HostRule, MAX_HOST_RULES};

const KEYS: [&str; 3] = ["host", "max_pages", "delay"];

/// Reads the tables; `problem` is told the place and the text of each mistake.
pub(super) fn read(at: usize, list: &[Spanned<DeValue<'_>>], mut problem: impl FnMut(usize, &str)) -> Vec<HostRule> {
    if list.len() > MAX_HOST_RULES {
        problem(at, &format!("more than {MAX_HOST_RULES} [[host]]"));
    }
    let tables = list.iter().take(MAX_HOST_RULES);
    tables.filter_map(|entry| table(entry, &mut problem)).collect()
}

fn table(entry: &Spanned<DeValue<'_>>, problem: &mut impl FnMut(usize, &str)) -> Option<HostRule> {
    let at = entry.span().start;
    let Some(table) = entry.get_ref().as_table() else {
        problem(at, "host: expected tables [[host]]");
        return None;
    };
    let mut found = HostRule::default();
    for (key, value) in table {
        let (at, name) = (key.span().start, key.get_ref().as_ref());
        let text = match value.get_ref() {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Integer(number) if number.radix() == 10 && name != "host" => Some(number.as_str().to_owned()),
            DeValue::Float(number) if name == "delay" => Some(number.as_str().to_owned()),
            _ => None,
        };
        let wrong = match (name, text) {
            ("host", Some(text)) => {
                found.host = text.trim().to_ascii_lowercase();
                None
            }
            ("host", None) => Some("expected a string".to_owned()),
            ("max_pages", text) => count(text.as_deref().unwrap_or_default())
                .map(|pages| found.max_pages = Some(pages))
                .err(),
            ("delay", text) => duration(text.as_deref().unwrap_or_default())
                .map(|delay| found.delay = Some(delay))
                .err(),
            _ => {
                let near = hint(nearest(name, KEYS.map(str::to_owned)));
                problem(at, &format!("unknown key \"host.{name}\"{near}"));
                None
            }
        };
        if let Some(expected) = wrong {
            problem(at, &format!("host.{name}: {expected}"));
        }
    }
    if found.host.is_empty() {
        problem(
            at,
            "host: host is missing (a host such as \"example.com\", or \"*.example.com\")",
        );
    }
    Some(found)
}

/// The tables as they are read.
pub(super) fn write(rules: &[HostRule], out: &mut String) {
    for rule in rules {
        // writing to a String cannot fail
        let _ = writeln!(out, "[[host]]\nhost = {}", toml::Value::String(rule.host.clone()));
        if let Some(pages) = rule.max_pages {
            let _ = writeln!(out, "max_pages = {pages}");
        }
        if let Some(delay) = rule.delay {
            let _ = writeln!(out, "delay = \"{}\"", show_duration(delay));
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::config::load::load_text;

    #[test]
    fn the_tables_are_read_checked_and_written_as_they_are_read() {
        let text = "[[host]]\nhost = \"*.A.test\"\nmax_pages = 10\ndelay = \"2s\"\n[[host]]\nhost = \"b.test:81\"\ndelay = 0.5\n";
        let loaded = load_text(Path::new("c.toml"), text).unwrap();
        let rules = loaded.config.hosts;
        assert_eq!(
            rules,
            [
                HostRule {
                    host: "*.a.test".to_owned(),
                    max_pages: Some(10),
                    delay: Some(Duration::from_secs(2)),
                },
                HostRule {
                    host: "b.test:81".to_owned(),
                    max_pages: None,
                    delay: Some(Duration::from_millis(500)),
                },
            ]
        );
        let mut written = String::new();
        write(&rules, &mut written);
        assert_eq!(load_text(Path::new("c.toml"), &written).unwrap().config.hosts, rules);
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        let text = "[[host]]\nhots = \"a\"\nmax_pages = 0\ndelay = true\n";
        let error = load_text(Path::new("c.toml"), text).unwrap_err();
        let all = error.0.join("\n");
        for part in [
            "c.toml:1: host: host is missing",
            "c.toml:2: unknown key \"host.hots\"; did you mean host?",
            "c.toml:3: host.max_pages: expected a whole number of at least 1",
            "c.toml:4: host.delay: expected a duration",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
        assert_eq!(
            load_text(Path::new("c.toml"), "host = 1").unwrap_err().0,
            ["c.toml:1: host: expected tables [[host]]"]
        );
        let many = "[[host]]\nhost = \"a\"\n".repeat(MAX_HOST_RULES + 1);
        let error = load_text(Path::new("c.toml"), &many).unwrap_err();
        assert_eq!(error.0, [format!("c.toml:1: more than {MAX_HOST_RULES} [[host]]")]);
    }
}
