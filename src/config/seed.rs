//! The options behind an address of seeds.txt → the rules of that seed. Checked like every other setting.

use super::ConfigError;
use super::checks::{count, pattern};
use super::file::{hint, nearest};
use super::value::{duration, whole, word};
use crate::scope::reach::{Seed, SeedRules};
use crate::seeds::{Options, Seeds};

/// The options, as seeds.txt writes them. `_` may stand for `-`.
pub const KEYS: [&str; 7] = [
    "scope",
    "depth",
    "include",
    "exclude",
    "offsite-hops",
    "max-pages",
    "delay",
];

/// The seeds with their rules.
///
/// # Errors
/// Every option that cannot be used, with its place: `seeds.txt:7: dept: unknown option; did you mean depth?`
pub fn with_rules(seeds: Seeds) -> Result<Vec<Seed>, ConfigError> {
    let mut problems = Vec::new();
    let mut all: Vec<Seed> = seeds.urls.into_iter().map(Seed::from).collect();
    for (at, options) in &seeds.options {
        let rules = rules(options, &mut problems);
        if let Some(seed) = all.get_mut(*at) {
            seed.rules = Some(Box::new(rules));
        }
    }
    if problems.is_empty() {
        Ok(all)
    } else {
        Err(ConfigError(problems))
    }
}

fn rules(options: &Options, problems: &mut Vec<String>) -> SeedRules {
    let mut rules = SeedRules::default();
    for (key, value) in &options.pairs {
        if let Err(why) = put(&mut rules, &key.replace('_', "-"), value) {
            problems.push(format!("{}: {key}: {why}", options.place));
        }
    }
    rules
}

fn put(rules: &mut SeedRules, key: &str, value: &str) -> Result<(), String> {
    let read = match key {
        "scope" => word(value).map(|kind| rules.scope = Some(kind)),
        "depth" => whole(value, 0..=u16::MAX).map(|hops| rules.depth = Some(hops)),
        "include" => pattern(value).map(|pattern| rules.include.push(pattern)),
        "exclude" => pattern(value).map(|pattern| rules.exclude.push(pattern)),
        "offsite-hops" => whole(value, 0..=u8::MAX).map(|hops| rules.offsite_hops = Some(hops)),
        "max-pages" => count(value).map(|pages| rules.max_pages = Some(pages)),
        "delay" => duration(value).map(|delay| rules.delay = Some(delay)),
        _ => {
            let known = KEYS.map(|key| key.replace('-', "_"));
            let near = nearest(key, known).map(|key| key.replace('_', "-"));
            let what = match near {
                Some(near) => hint(Some(near)),
                None => format!(" (known are {}; a space in an address is written %20)", KEYS.join(", ")),
            };
            return Err(format!("unknown option of a seed{what}"));
        }
    };
    read.map_err(|expected| format!("{expected}, found {value:?}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scope::ScopeKind;
    use crate::seeds;
    use crate::url::Identity;

    fn read(lines: &[&str]) -> Result<Vec<Seed>, String> {
        let given: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let seeds = seeds::read(&[], &[], &given, &Identity::default()).unwrap();
        with_rules(seeds).map_err(|error| error.to_string())
    }

    #[test]
    fn every_option_is_read() {
        let seeds = read(&[
            "https://a.test/",
            "b.test scope=prefix depth=2 include=/x include=/y exclude=z$ offsite_hops=1 max-pages=10 delay=500ms",
        ])
        .unwrap();
        assert_eq!(seeds[0].rules, None);
        let rules = SeedRules {
            scope: Some(ScopeKind::Prefix),
            depth: Some(2),
            include: vec!["/x".to_owned(), "/y".to_owned()],
            exclude: vec!["z$".to_owned()],
            offsite_hops: Some(1),
            max_pages: Some(10),
            delay: Some(Duration::from_millis(500)),
        };
        assert_eq!(seeds[1].rules.as_deref(), Some(&rules));
    }

    #[test]
    fn a_mistake_is_named_with_its_place_and_the_nearest_option() {
        let error = read(&[
            "a.test dept=2 scope=page",
            "b.test depth=x max_pages=0 exclude=( stray",
            "c.test limit=3 scope=",
        ])
        .unwrap_err();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines[0], "--seed: dept: unknown option of a seed; did you mean depth?");
        assert_eq!(
            lines[1],
            "--seed: scope: expected one of host, domain, prefix, any, found \"page\""
        );
        assert!(
            lines[2].starts_with("--seed: depth: expected a whole number"),
            "{error}"
        );
        assert!(lines[3].starts_with("--seed: max_pages: expected a whole number of at least 1"));
        assert!(lines[4].starts_with("--seed: exclude: expected a regular expression (unclosed group)"));
        assert!(
            lines[5].starts_with("--seed: stray: unknown option of a seed"),
            "{error}"
        );
        assert!(
            lines[6].contains("known are scope, depth") && lines[6].contains("%20"),
            "{error}"
        );
        assert_eq!(lines.len(), 8);
    }
}
