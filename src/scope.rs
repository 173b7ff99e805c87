//! Which addresses belong to the crawl. Pure: the same address, the same answer.
//!
//! The order of the rules: an address that `--blocklist` names is out, whatever else holds, a seed too. So is one that
//! `--exclude` matches. Then the seeds' hosts, domains or prefixes decide, then `--include`, then the depth. Patterns
//! judge every address but one: a seed is always in, for whoever names an address wants it.

pub mod blocklist;
pub mod reach;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::url::{CrawlUrl, surt::plain};
use blocklist::Blocklist;

/// How far the crawl reaches from its seeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ScopeKind {
    /// The hosts (and ports) of the seeds.
    #[default]
    Host,
    /// The registrable domains of the seeds.
    Domain,
    /// The path prefixes of the seeds (up to their last `/`), on either scheme.
    Prefix,
    /// Every address.
    Any,
}

/// Are sitemaps read?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sitemaps {
    /// Only a seed that is one.
    #[default]
    No,
    /// Those that robots.txt names, those at the usual place of the seeds' hosts, and pages that turn out to be one.
    Yes,
    /// Those of the seeds' hosts, and besides what they list nothing but requisites: links of pages are not followed.
    Only,
}

/// Why an address is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum OutReason {
    /// No seed's host, domain or prefix covers it.
    Scope,
    /// `--exclude` matches, or there are `--include` patterns and none matches.
    Pattern,
    /// Deeper than `--max-depth`.
    Depth,
    /// A line of `--blocklist` names it.
    Blocklist,
}

/// The answer for one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Crawl it.
    In,
    /// Leave it; a page requisite may still be fetched one hop beyond the scope when the reason is [`OutReason::Scope`].
    Out(OutReason),
}

/// The rules of scope, made once from the settings and the seeds.
#[derive(Debug, Clone)]
pub struct Scope {
    kind: ScopeKind,
    /// Hosts with ports, domains, or prefixes, of the seeds, each with the number of the first seed that brought it.
    keys: BTreeMap<String, u64>,
    /// The number of the first seed.
    first: Option<u64>,
    /// Identities of the seeds that the patterns would refuse.
    exempt: BTreeSet<String>,
    /// Prefixes of SURT keys that are covered besides.
    surts: Vec<String>,
    /// Hops from a covered page to pages that nothing covers.
    offsite_hops: u8,
    include: Option<regex::RegexSet>,
    exclude: Option<regex::RegexSet>,
    max_depth: Option<u16>,
    blocklist: Option<Arc<Blocklist>>,
}

impl Scope {
    /// Compiles the patterns. They are searched in the `href` of an address, anywhere unless anchored; those of `exclude`
    /// in its identity too.
    ///
    /// # Errors
    /// The pattern that is not a regular expression, with the reason.
    pub fn new(
        kind: ScopeKind,
        include: &[String],
        exclude: &[String],
        max_depth: Option<u16>,
    ) -> Result<Self, regex::Error> {
        Ok(Self {
            kind,
            keys: BTreeMap::new(),
            first: None,
            exempt: BTreeSet::new(),
            surts: Vec::new(),
            offsite_hops: 0,
            include: compiled(include)?,
            exclude: compiled(exclude)?,
            max_depth,
            blocklist: None,
        })
    }

    /// Widens the scope to every address whose SURT key begins with one of `prefixes`, as [`surt_prefix`] writes them.
    #[must_use]
    pub fn with_surts(mut self, prefixes: &[String]) -> Self {
        self.surts = prefixes.iter().filter_map(|text| surt_prefix(text).ok()).collect();
        self
    }

    /// Leaves what the list names: [`reach::Reach`] asks it first, for the rules of all seeds.
    #[must_use]
    pub fn with_blocklist(mut self, list: Option<Arc<Blocklist>>) -> Self {
        self.blocklist = list;
        self
    }

    /// The list, if there is one.
    #[must_use]
    pub fn blocklist(&self) -> Option<Arc<Blocklist>> {
        self.blocklist.clone()
    }

    /// Lets links lead so many hops out of the scope.
    #[must_use]
    pub fn with_offsite_hops(mut self, hops: u8) -> Self {
        self.offsite_hops = hops;
        self
    }

    /// May a page that nothing covers be fetched so many hops out of the scope, `depth` hops from a seed?
    #[must_use]
    pub fn reaches_out(&self, hops: u8, depth: u16) -> bool {
        hops <= self.offsite_hops && self.max_depth.is_none_or(|max| depth <= max)
    }

    /// These rules as a seed changes them, for the seeds that change them so.
    fn under(&self, rules: &reach::SeedRules) -> Result<Self, regex::Error> {
        let texts = |set: &Option<regex::RegexSet>| set.as_ref().map_or_else(Vec::new, |set| set.patterns().to_vec());
        let exclude = [texts(&self.exclude), rules.exclude.clone()].concat();
        let include = if rules.include.is_empty() {
            texts(&self.include)
        } else {
            rules.include.clone()
        };
        let depth = rules.depth.or(self.max_depth);
        let scope = Self::new(rules.scope.unwrap_or(self.kind), &include, &exclude, depth)?;
        Ok(scope
            .with_offsite_hops(rules.offsite_hops.unwrap_or(self.offsite_hops))
            .with_blocklist(self.blocklist.clone()))
    }

    /// Widens the scope to a seed (or to where a seed redirected).
    pub fn add_seed(&mut self, seed: &CrawlUrl) {
        self.add_numbered(seed, 0);
    }

    /// As [`Scope::add_seed`]; what the seed covers is its own unless it was another's before.
    fn add_numbered(&mut self, seed: &CrawlUrl, number: u64) {
        self.first.get_or_insert(number);
        if self.is_excluded(seed) || !self.is_included(seed) {
            self.exempt.insert(seed.standard().to_owned());
        }
        let Some(key) = self.key_of(seed) else { return };
        if !self.keys.contains_key(key) {
            self.keys.insert(key.to_owned(), number);
        }
    }

    /// What a seed of these rules covers; none if they reach anywhere.
    fn key_of<'u>(&self, seed: &'u CrawlUrl) -> Option<&'u str> {
        match self.kind {
            ScopeKind::Host => Some(seed.host_key()),
            ScopeKind::Domain => Some(seed.registrable_domain()),
            ScopeKind::Prefix => Some(folder(host_and_path(seed))),
            ScopeKind::Any => None,
        }
    }

    /// Does a seed with this key cover an address?
    fn key_covers(&self, key: &str, url: &CrawlUrl) -> bool {
        match self.kind {
            ScopeKind::Host => url.host_key() == key,
            ScopeKind::Domain => url.registrable_domain() == key,
            ScopeKind::Prefix => host_and_path(url).starts_with(key),
            ScopeKind::Any => true,
        }
    }

    /// Widens the scope to where the seed `from` redirected, and says whether that made it wider: what was asked for
    /// has moved there. Within one host it stays as it is, so that a prefix does not grow to the host's front page or
    /// log-in form.
    pub fn seed_redirected(&mut self, from: &CrawlUrl, to: &CrawlUrl) -> bool {
        if from.host_key() == to.host_key() {
            return false;
        }
        let before = self.len();
        self.add_seed(to);
        self.len() > before
    }

    /// Hosts, domains or prefixes covered.
    fn len(&self) -> usize {
        self.keys.len()
    }

    /// Judges an address found `depth` navigation hops from a seed.
    #[must_use]
    pub fn judge(&self, url: &CrawlUrl, depth: u16) -> Verdict {
        if self.exempt.contains(url.standard()) {
            return Verdict::In;
        }
        if self.is_excluded(url) {
            return Verdict::Out(OutReason::Pattern);
        }
        if !self.is_covered(url) {
            return Verdict::Out(OutReason::Scope);
        }
        if !self.is_included(url) {
            return Verdict::Out(OutReason::Pattern);
        }
        if self.max_depth.is_some_and(|max| depth > max) {
            return Verdict::Out(OutReason::Depth);
        }
        Verdict::In
    }

    /// Do the patterns refuse it, wherever it lies? Where a seed redirects to must pass them: nobody named that address.
    #[must_use]
    pub fn is_refused(&self, url: &CrawlUrl) -> bool {
        !self.exempt.contains(url.canonical()) && (self.is_excluded(url) || !self.is_included(url))
    }

    /// Judges a sitemap whose entries would be `depth` hops from a seed. Like a robots.txt it is no page of the crawl: it
    /// need not be covered ([`OutReason::Scope`] says that it is not) and no `--include` must match. `--exclude` holds.
    #[must_use]
    pub fn judge_sitemap(&self, url: &CrawlUrl, depth: u16) -> Verdict {
        if self.is_excluded(url) && !self.exempt.contains(url.canonical()) {
            return Verdict::Out(OutReason::Pattern);
        }
        if self.max_depth.is_some_and(|max| depth > max) {
            return Verdict::Out(OutReason::Depth);
        }
        if self.is_covered(url) {
            Verdict::In
        } else {
            Verdict::Out(OutReason::Scope)
        }
    }

    /// The rule behind a verdict, in words.
    #[must_use]
    pub fn why(&self, url: &CrawlUrl, verdict: Verdict) -> String {
        let first = |set: &Option<regex::RegexSet>, text: &str| {
            let set = set.as_ref()?;
            set.patterns().get(set.matches(text).iter().next()?).cloned()
        };
        let kind = match self.kind {
            ScopeKind::Host => "host",
            ScopeKind::Domain => "domain",
            ScopeKind::Prefix => "prefix",
            ScopeKind::Any => "any",
        };
        match verdict {
            Verdict::In if self.exempt.contains(url.canonical()) => "it is a seed".to_owned(),
            Verdict::In if self.kind == ScopeKind::Any => "--scope any".to_owned(),
            Verdict::In if self.surt_of(url).is_some() => {
                let prefix = self.surt_of(url).map_or("", String::as_str);
                format!("--scope-surt {prefix}")
            }
            Verdict::In => {
                let include = first(&self.include, url.href());
                let include = include.map_or_else(String::new, |pattern| format!(", --include {pattern}"));
                format!("--scope {kind} of the seeds covers it{include}")
            }
            Verdict::Out(OutReason::Scope) => format!("--scope {kind}: no seed's {kind} covers it"),
            Verdict::Out(OutReason::Pattern) => {
                let exclude = first(&self.exclude, url.href()).or_else(|| first(&self.exclude, url.canonical()));
                exclude.map_or_else(
                    || "no --include matches".to_owned(),
                    |pattern| format!("--exclude {pattern}"),
                )
            }
            Verdict::Out(OutReason::Depth) => "deeper than --max-depth".to_owned(),
            Verdict::Out(OutReason::Blocklist) => {
                let line = self.blocklist.as_ref().and_then(|list| list.blocks(url));
                format!("--blocklist {}", line.unwrap_or_default())
            }
        }
    }

    /// The prefix that covers an address.
    fn surt_of(&self, url: &CrawlUrl) -> Option<&String> {
        if self.surts.is_empty() {
            return None;
        }
        let key = plain::key(url.standard(), plain::Form::WithoutScheme).to_ascii_lowercase();
        self.surts.iter().find(|prefix| key.starts_with(prefix.as_str()))
    }

    fn is_blocked(&self, url: &CrawlUrl) -> bool {
        self.blocklist.as_ref().is_some_and(|list| list.blocks(url).is_some())
    }

    fn is_covered(&self, url: &CrawlUrl) -> bool {
        self.covering(url).is_some()
    }

    /// The number of the seed that covers an address, or that it is; zero for what is covered without a seed.
    fn covering(&self, url: &CrawlUrl) -> Option<u64> {
        let key = match self.kind {
            ScopeKind::Host => self.keys.get(url.host_key()).copied(),
            ScopeKind::Domain => self.keys.get(url.registrable_domain()).copied(),
            ScopeKind::Prefix => self.prefix_of(host_and_path(url)),
            // without a seed of its own, the rules of the settings reach anywhere all the same
            ScopeKind::Any => Some(self.first.unwrap_or(0)),
        };
        key.or_else(|| self.surt_of(url).map(|_| 0))
    }

    /// The key that is one of the folders that `path` lies in, from the innermost outwards.
    fn prefix_of(&self, path: &str) -> Option<u64> {
        let mut folders = path.rmatch_indices('/').filter_map(|(slash, _)| path.get(..=slash));
        folders.find_map(|folder| self.keys.get(folder)).copied()
    }

    /// Both spellings are judged: a dot behind the host's name or a needless escape must not lead past a pattern.
    fn is_excluded(&self, url: &CrawlUrl) -> bool {
        self.exclude.as_ref().is_some_and(|patterns| {
            let (href, identity) = (url.href(), url.standard());
            patterns.is_match(href) || (identity != href && patterns.is_match(identity))
        })
    }

    fn is_included(&self, url: &CrawlUrl) -> bool {
        self.include
            .as_ref()
            .is_none_or(|patterns| patterns.is_match(url.href()))
    }
}

/// A prefix of SURT keys in the form that the scope holds addresses against: `com,example,` covers the domain and every
/// host below it, `com,example,)/docs` a path of one host. `http://(`, `+` and the form of CDXJ keys (`com,example)/`) are
/// understood.
///
/// # Errors
/// What was expected.
pub fn surt_prefix(text: &str) -> Result<String, String> {
    let expected = || "expected a SURT prefix such as com,example, or com,example)/docs".to_owned();
    let text = text.trim().trim_start_matches('+');
    let text = text
        .split_once("://")
        .map_or(text, |(_, rest)| rest)
        .trim_start_matches('(');
    let (host, path) = text
        .split_once(')')
        .map_or((text, None), |(host, path)| (host, Some(path)));
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, ',' | '-' | '_' | ':' | '.' | '[' | ']');
    if host.trim_matches(',').is_empty() || !host.chars().all(letters) {
        return Err(expected());
    }
    let host = host.to_ascii_lowercase();
    Ok(match path {
        None => host,
        Some(path) if path.is_empty() || path.starts_with('/') => {
            let numbers = host.starts_with('[') || host.contains('.');
            // the comma stands before a port
            let (name, port) = match host.rsplit_once(':') {
                Some((name, port)) if !numbers && port.bytes().all(|byte| byte.is_ascii_digit()) => (name, Some(port)),
                _ => (host.as_str(), None),
            };
            let comma = if numbers || name.ends_with(',') { "" } else { "," };
            let port = port.map_or_else(String::new, |port| format!(":{port}"));
            format!("{name}{comma}{port}){}", path.to_ascii_lowercase())
        }
        Some(_) => return Err(expected()),
    })
}

/// `None` for no patterns.
fn compiled(patterns: &[String]) -> Result<Option<regex::RegexSet>, regex::Error> {
    if patterns.is_empty() {
        Ok(None)
    } else {
        regex::RegexSet::new(patterns).map(Some)
    }
}

/// The identity without its scheme and query: `example.com:8080/a/b`.
fn host_and_path(url: &CrawlUrl) -> &str {
    let identity = url.standard();
    let without_query = identity.split('?').next().unwrap_or_default();
    without_query.split_once("://").map_or(without_query, |(_, rest)| rest)
}

/// Up to the last `/`.
fn folder(path: &str) -> &str {
    path.rfind('/').and_then(|slash| path.get(..=slash)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Identity;
    use proptest::prelude::*;

    fn url(raw: &str) -> CrawlUrl {
        CrawlUrl::parse(raw, &Identity::default()).unwrap()
    }

    fn scope(kind: ScopeKind, seeds: &[&str]) -> Scope {
        let mut scope = Scope::new(kind, &[], &[], None).unwrap();
        for seed in seeds {
            scope.add_seed(&url(seed));
        }
        scope
    }

    fn is_in(scope: &Scope, raw: &str) -> bool {
        scope.judge(&url(raw), 1) == Verdict::In
    }

    #[test]
    fn the_scope_of_a_host_is_its_name_and_port() {
        let scope = scope(ScopeKind::Host, &["http://h.example/a/b", "http://i.example:8080/"]);
        for inside in ["https://h.example/", "http://H.example./x", "http://i.example:8080/y"] {
            assert!(is_in(&scope, inside), "{inside}");
        }
        for outside in [
            "http://h.example:8080/",
            "http://i.example/",
            "http://www.h.example/",
            "http://example/",
        ] {
            assert_eq!(
                scope.judge(&url(outside), 0),
                Verdict::Out(OutReason::Scope),
                "{outside}"
            );
        }
    }

    #[test]
    fn the_scope_of_a_domain_has_all_its_hosts() {
        let scope = scope(
            ScopeKind::Domain,
            &["http://www.example.co.uk/", "http://192.0.2.1/", "http://a.github.io/"],
        );
        for inside in [
            "http://example.co.uk/",
            "https://x.y.example.co.uk:81/",
            "http://192.0.2.1:8080/",
            "http://b.a.github.io/",
        ] {
            assert!(is_in(&scope, inside), "{inside}");
        }
        for outside in [
            "http://other.co.uk/",
            "http://192.0.2.2/",
            "http://1.192.0.2.example/",
            "http://b.github.io/",
        ] {
            assert!(!is_in(&scope, outside), "{outside}");
        }
    }

    #[test]
    fn the_scope_of_a_prefix_ends_at_its_last_slash() {
        let scope = scope(ScopeKind::Prefix, &["http://h/a/index.html?x=/y/", "http://i/%7Eu/"]);
        for inside in ["https://h/a/", "http://h/a/b/c", "http://h/a/../a/x", "http://i/~u/p"] {
            assert!(is_in(&scope, inside), "{inside}");
        }
        for outside in [
            "http://h/",
            "http://h/a",
            "http://h/ab/",
            "http://h/?/a/",
            "http://h:81/a/",
            "http://i/",
        ] {
            assert!(!is_in(&scope, outside), "{outside}");
        }
    }

    #[test]
    fn any_scope_takes_every_address() {
        assert!(is_in(&scope(ScopeKind::Any, &[]), "https://anywhere.example/x"));
        assert!(!is_in(&scope(ScopeKind::Host, &[]), "https://anywhere.example/x"));
    }

    #[test]
    fn another_spelling_does_not_lead_past_an_exclude() {
        let exclude = [
            "^https?://inner\\.test[:/]".to_owned(),
            "/%7[Ee]x/".to_owned(),
            "/~y/".to_owned(),
        ];
        let scope = Scope::new(ScopeKind::Any, &[], &exclude, None).unwrap();
        for outside in [
            "http://INNER.test./",
            "http://inner.test.:8080/a",
            "http://h/%7ex/",
            "http://h/%7Ey/",
        ] {
            assert!(!is_in(&scope, outside), "{outside}");
        }
        assert!(is_in(&scope, "http://h/"));
    }

    #[test]
    fn exclude_wins_over_include_and_both_spare_a_seed() {
        let strings = |patterns: &[&str]| patterns.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        let mut scope = Scope::new(
            ScopeKind::Host,
            &strings(&["/docs/", r"\.css$"]),
            &strings(&[r"\?print"]),
            Some(2),
        )
        .unwrap();
        scope.add_seed(&url("http://h/start?print"));
        for (raw, depth, verdict) in [
            ("http://h/start?print", 0, Verdict::In),
            ("http://h/start?print#x", 9, Verdict::In),
            ("http://h/docs/a", 2, Verdict::In),
            ("http://h/x.css", 1, Verdict::In),
            ("http://h/docs/a?print", 1, Verdict::Out(OutReason::Pattern)),
            ("http://h/other", 1, Verdict::Out(OutReason::Pattern)),
            ("http://h/docs/a", 3, Verdict::Out(OutReason::Depth)),
            ("http://i/docs/a", 1, Verdict::Out(OutReason::Scope)),
            ("http://i/docs/a?print", 1, Verdict::Out(OutReason::Pattern)),
        ] {
            assert_eq!(scope.judge(&url(raw), depth), verdict, "{raw} {depth}");
        }
        assert!(Scope::new(ScopeKind::Any, &strings(&["("]), &[], None).is_err());
        assert!(Scope::new(ScopeKind::Any, &[], &strings(&["("]), None).is_err());
    }

    #[test]
    fn a_seed_that_moved_to_another_host_takes_the_scope_along() {
        let mut scope = scope(ScopeKind::Prefix, &["http://h/docs/"]);
        assert!(!scope.seed_redirected(&url("http://h/docs/"), &url("https://h/login")));
        assert!(!is_in(&scope, "https://h/login"));
        assert!(scope.seed_redirected(&url("http://h/docs/"), &url("https://www.h/manual/index.html")));
        assert!(is_in(&scope, "https://www.h/manual/x") && is_in(&scope, "http://h/docs/x"));
        assert!(!scope.seed_redirected(&url("http://h/docs/"), &url("https://www.h/manual/")));
    }

    #[test]
    fn a_surt_prefix_widens_the_scope_to_what_it_covers() {
        let covered = |prefix: &str, address: &str| {
            let prefix = surt_prefix(prefix).unwrap();
            let scope = scope(ScopeKind::Host, &["http://seed.test/"]).with_surts(&[prefix]);
            is_in(&scope, "http://seed.test/") && is_in(&scope, address)
        };
        for (prefix, inside, outside) in [
            ("com,example,", "https://a.b.example.com/x", "http://example.org/"),
            ("com,example,", "http://example.com/", "http://examples.com/"),
            (
                "com,example)/docs",
                "http://example.com/docs/a",
                "http://example.com/blog",
            ),
            (
                "http://(com,example,www,)/Docs",
                "http://www.example.com/docs",
                "http://example.com/docs",
            ),
            ("+org,", "http://any.org/", "http://any.com/"),
        ] {
            assert!(covered(prefix, inside), "{prefix} {inside}");
            assert!(!covered(prefix, outside), "{prefix} {outside}");
        }
        for wrong in [
            "",
            "http://(",
            ",",
            "com,exa mple",
            "com,example)docs",
            "http://example.com/",
        ] {
            assert!(surt_prefix(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn pages_outside_are_reached_within_the_hops_and_the_depth() {
        let scope = Scope::new(ScopeKind::Host, &[], &[], Some(3))
            .unwrap()
            .with_offsite_hops(2);
        assert!(scope.reaches_out(1, 3) && scope.reaches_out(2, 1));
        assert!(!scope.reaches_out(3, 1) && !scope.reaches_out(1, 4));
        assert!(!Scope::new(ScopeKind::Host, &[], &[], None).unwrap().reaches_out(1, 1));
    }

    proptest! {
        #[test]
        fn a_seed_is_always_in(
            kind in prop::sample::select(vec![ScopeKind::Host, ScopeKind::Domain, ScopeKind::Prefix, ScopeKind::Any]),
            raw in "https?://[a-c.]{1,8}(:8[0-9])?/[a-z%41/.?]{0,12}",
            pattern in "[a-z]{1,2}",
        ) {
            if let Ok(seed) = CrawlUrl::parse(&raw, &Identity::default()) {
                let mut scope = Scope::new(kind, std::slice::from_ref(&pattern), std::slice::from_ref(&pattern), Some(0)).unwrap();
                scope.add_seed(&seed);
                prop_assert_eq!(scope.judge(&seed, 0), Verdict::In);
            }
        }
    }
}
