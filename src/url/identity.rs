//! What counts as one page: the version of the default rules, and the rules that a user switched on.

use serde::{Deserialize, Serialize};

/// Version of the rules in `canonical.rs` and `rules.rs`, the shipped lists among them.
const VERSION: u32 = 1;
/// Parameters that can be named, at most.
pub const MAX_DROP_PARAMS: usize = 256;
/// Longest name of a parameter, bytes.
pub const MAX_PARAM_BYTES: usize = 256;

/// The rules of identity. They are stored with the job; a resumed crawl refuses to change them silently.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Version of the rules.
    pub version: u32,
    /// What is switched on besides the default rules.
    pub rules: Rules,
}

impl Default for Identity {
    fn default() -> Self {
        Self::with(Rules::default())
    }
}

impl Identity {
    /// The rules of this program, with some switched on.
    #[must_use]
    pub fn with(rules: Rules) -> Self {
        Self {
            version: VERSION,
            rules,
        }
    }

    /// A number that stands for version and rules in a checkpoint of the filter: the version alone for the default
    /// rules, which are below 2^16.
    #[must_use]
    pub fn stamp(&self) -> u32 {
        if !self.rules.any() {
            return self.version;
        }
        let told = format!("{} {}", self.version, self.rules);
        crc32c::crc32c(told.as_bytes()) | 1 << 31
    }
}

/// Rules that merge addresses which a server may answer differently. All are off unless a user says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Named", try_from = "Named")]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own that a user sets"
)]
pub struct Rules {
    /// Session ids do not count: `jsessionid`, `phpsessid`, `sid` of 32 letters and digits, `ASPSESSIONID`..., `cfid`
    /// with `cftoken`, `;jsessionid=` and `(S(...))` in the path.
    pub strip_session_ids: bool,
    /// Parameters that only tell where a visitor came from do not count: `utm_source`, `gclid` and the like.
    pub strip_tracking: bool,
    /// Parameters of these names do not count. Sorted, each once: see [`Rules::drop_param`].
    pub drop_params: Vec<String>,
    /// The order of parameters does not count; that of parameters of one name does.
    pub sort_query: bool,
    /// `?` with nothing behind it is as good as none.
    pub drop_empty_query: bool,
    /// `www.example.com` is `example.com`.
    pub fold_www: bool,
    /// `https` is `http`, where no port is written.
    pub fold_scheme: bool,
    /// `/Path` is `/path`.
    pub fold_path_case: bool,
    /// `/path/` is `/path`.
    pub fold_trailing_slash: bool,
    /// `/path/index.html` is `/path/`.
    pub fold_index: bool,
    /// A fragment that starts with `#!` counts.
    pub keep_hashbang: bool,
}

impl Rules {
    /// Is any rule switched on?
    #[must_use]
    pub fn any(&self) -> bool {
        self.folds() || self.keep_hashbang
    }

    /// Is any rule switched on that changes what stands before the fragment?
    pub(super) fn folds(&self) -> bool {
        self.strip_session_ids
            || self.strip_tracking
            || !self.drop_params.is_empty()
            || self.sort_query
            || self.drop_empty_query
            || self.fold_www
            || self.fold_scheme
            || self.fold_path_case
            || self.fold_trailing_slash
            || self.fold_index
    }

    /// Adds a parameter by its name, written as in an address or decoded.
    ///
    /// # Errors
    /// What a name must be.
    pub fn drop_param(&mut self, name: &str) -> Result<(), String> {
        let spelled = parameter(name)
            .ok_or_else(|| format!("expected a parameter's name of 1 to {MAX_PARAM_BYTES} bytes, without & = #"))?;
        if let Err(at) = self.drop_params.binary_search(&spelled) {
            if self.drop_params.len() >= MAX_DROP_PARAMS {
                return Err(format!("expected at most {MAX_DROP_PARAMS} names"));
            }
            self.drop_params.insert(at, spelled);
        }
        Ok(())
    }

    fn switches(&self) -> [(&'static str, bool); 10] {
        let mut switches = self.clone();
        switches.slots().map(|(name, on)| (name, *on))
    }

    /// Every switch by its name, the key in crawler.toml.
    fn slots(&mut self) -> [(&'static str, &mut bool); 10] {
        [
            ("strip_session_ids", &mut self.strip_session_ids),
            ("strip_tracking", &mut self.strip_tracking),
            ("sort_query", &mut self.sort_query),
            ("drop_empty_query", &mut self.drop_empty_query),
            ("fold_www", &mut self.fold_www),
            ("fold_scheme", &mut self.fold_scheme),
            ("fold_path_case", &mut self.fold_path_case),
            ("fold_trailing_slash", &mut self.fold_trailing_slash),
            ("fold_index", &mut self.fold_index),
            ("keep_hashbang", &mut self.keep_hashbang),
        ]
    }
}

/// The rules as they are stored: the names of the switches that are on, and the parameters. A further rule changes
/// nothing about the rows of jobs that do not have it.
#[derive(Clone, Serialize, Deserialize)]
struct Named(Vec<String>, Vec<String>);

impl From<Rules> for Named {
    fn from(rules: Rules) -> Self {
        let on = rules.switches().into_iter().filter(|(_, on)| *on);
        Self(on.map(|(name, _)| name.to_owned()).collect(), rules.drop_params)
    }
}

impl TryFrom<Named> for Rules {
    type Error = String;

    fn try_from(Named(names, drop_params): Named) -> Result<Self, String> {
        let mut rules = Rules {
            drop_params,
            ..Rules::default()
        };
        for name in names {
            let mut slots = rules.slots();
            let slot = slots.iter_mut().find(|(known, _)| *known == name);
            let (_, on) = slot.ok_or_else(|| format!("an unknown rule of identity: {name}"))?;
            **on = true;
        }
        Ok(rules)
    }
}

/// As a person sets them: `sort_query, drop_params = [a, b]`; `none` where none is switched on.
impl std::fmt::Display for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut told: Vec<String> = self
            .switches()
            .iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| (*name).to_owned())
            .collect();
        if !self.drop_params.is_empty() {
            told.push(format!("drop_params = [{}]", self.drop_params.join(", ")));
        }
        if told.is_empty() {
            return f.write_str("none");
        }
        f.write_str(&told.join(", "))
    }
}

/// A parameter's name as it stands in a canonical address.
fn parameter(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > MAX_PARAM_BYTES || name.contains(['&', '=', '#']) {
        return None;
    }
    let url = super::CrawlUrl::parse(&format!("http://h/?{name}="), &Identity::default()).ok()?;
    let spelled = url.canonical().strip_prefix("http://h/?")?.strip_suffix('=')?;
    (!spelled.is_empty()).then(|| spelled.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_parameters_are_kept_as_addresses_spell_them() {
        let mut rules = Rules::default();
        for name in ["b", "\u{e4}", "a", "b", "%7ex", "x y"] {
            rules.drop_param(name).unwrap();
        }
        assert_eq!(rules.drop_params, ["%C3%A4", "a", "b", "x%20y", "~x"]);
        for name in ["", "a=b", "a&b", "#", "\t", &"x".repeat(MAX_PARAM_BYTES + 1)] {
            assert!(rules.drop_param(name).is_err(), "{name:?}");
        }
        rules.drop_param(&"x".repeat(MAX_PARAM_BYTES)).unwrap();
        for n in rules.drop_params.len()..MAX_DROP_PARAMS {
            rules.drop_param(&format!("n{n}")).unwrap();
        }
        assert!(rules.drop_param("one-more").unwrap_err().contains("at most 256"));
        rules.drop_param("a").unwrap();
    }

    #[test]
    fn the_stamp_tells_rules_apart() {
        assert_eq!(Identity::default().stamp(), VERSION);
        let mut stamps = std::collections::HashSet::from([VERSION]);
        let all = |change: fn(&mut Rules)| {
            let mut rules = Rules::default();
            change(&mut rules);
            assert!(rules.any());
            Identity::with(rules).stamp()
        };
        for change in [
            (|r| r.strip_session_ids = true) as fn(&mut Rules),
            |r| r.strip_tracking = true,
            |r| r.drop_params.push("a".to_owned()),
            |r| r.drop_params.push("b".to_owned()),
            |r| r.sort_query = true,
            |r| r.drop_empty_query = true,
            |r| r.fold_www = true,
            |r| r.fold_scheme = true,
            |r| r.fold_path_case = true,
            |r| r.fold_trailing_slash = true,
            |r| r.fold_index = true,
            |r| r.keep_hashbang = true,
        ] {
            assert!(stamps.insert(all(change)));
        }
    }

    #[test]
    fn rules_are_stored_by_name() {
        let rules = Rules {
            fold_index: true,
            drop_params: vec!["a".to_owned()],
            ..Rules::default()
        };
        let row = postcard::to_stdvec(&rules).unwrap();
        assert_eq!(postcard::from_bytes::<Rules>(&row).unwrap(), rules);
        let of_another = postcard::to_stdvec(&(vec!["fold_everything"], Vec::<String>::new())).unwrap();
        assert!(postcard::from_bytes::<Rules>(&of_another).is_err());
    }

    #[test]
    fn rules_are_told_as_they_are_set() {
        assert_eq!(Rules::default().to_string(), "none");
        let rules = Rules {
            sort_query: true,
            drop_params: vec!["a".to_owned(), "b".to_owned()],
            ..Rules::default()
        };
        assert_eq!(rules.to_string(), "sort_query, drop_params = [a, b]");
    }
}
