//! Which rules hold where.

use super::Rule;
use crate::url::covers_host;

/// Most entries of `[[trap]]`.
pub const MAX_OVERRIDES: usize = 1_000;

/// The rules for one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// Rules that do not hold, a bit each.
    off: u16,
    /// URLs of one shape admitted at most; none if there is no such bound.
    pub max_per_shape: Option<u32>,
}

impl Policy {
    /// No rule holds.
    pub const OFF: Policy = Policy {
        off: u16::MAX,
        max_per_shape: None,
    };

    /// Does this rule hold?
    #[must_use]
    pub fn holds(&self, rule: Rule) -> bool {
        self.off & rule.bit() == 0
    }

    /// The rule if it holds.
    #[must_use]
    pub fn keep(&self, rule: Rule) -> Option<Rule> {
        self.holds(rule).then_some(rule)
    }
}

/// One `[[trap]]` entry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Override {
    /// A host key, or `*.` and a domain: the domain and every host below it.
    pub host: String,
    /// No rule holds here.
    pub off: bool,
    /// These do not hold.
    pub without: Vec<String>,
    /// URLs of one shape admitted at most.
    pub max_per_shape: Option<u32>,
}

/// The rules for every host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// No rule holds anywhere.
    pub off: bool,
    /// Hosts with rules of their own; the first that covers a host counts.
    pub overrides: Vec<Override>,
}

impl Settings {
    /// The rules for a host, by its key.
    #[must_use]
    pub fn of(&self, host_key: &str) -> Policy {
        if self.off {
            return Policy::OFF;
        }
        let Some(found) = self.overrides.iter().find(|entry| covers_host(&entry.host, host_key)) else {
            return Policy::default();
        };
        let words = found.without.iter().filter_map(|word| Rule::of(word));
        Policy {
            off: if found.off {
                u16::MAX
            } else {
                words.fold(0, |off, rule| off | rule.bit())
            },
            max_per_shape: found.max_per_shape.filter(|_| !found.off),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_that_covers_a_host_counts() {
        let settings = Settings {
            off: false,
            overrides: vec![
                Override {
                    host: "*.example.com".into(),
                    without: vec!["calendar".into()],
                    ..Override::default()
                },
                Override {
                    host: "h:8080".into(),
                    off: true,
                    ..Override::default()
                },
                Override {
                    host: "a.example.com".into(),
                    off: true,
                    ..Override::default()
                },
            ],
        };
        for host in ["example.com", "a.Example.com", "b.a.example.com:81"] {
            assert!(!settings.of(host).holds(Rule::Calendar), "{host}");
            assert!(settings.of(host).holds(Rule::SameContent), "{host}");
        }
        assert_eq!(settings.of("h:8080"), Policy::OFF);
        for host in ["h", "notexample.com", "com"] {
            assert_eq!(settings.of(host), Policy::default(), "{host}");
        }
        assert_eq!(Settings { off: true, ..settings }.of("x"), Policy::OFF);
    }
}
