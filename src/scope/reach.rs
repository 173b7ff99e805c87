//! The rules of a job together: those of the settings, and those that single seeds bring.
//!
//! An address is judged by the rules of the seed that led to it, then by those of the settings, then by those of the
//! other seeds: it is in if any of them lets it in, and goes on under these; but what a blocklist names is out whoever
//! leads to it. So a seed can narrow only what no other
//! seed covers, and nothing is lost by the order in which pages are met.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::blocklist::Blocklist;
use super::{OutReason, Scope, ScopeKind, Verdict};
use crate::url::CrawlUrl;

/// Most different rules of scope that the seeds of a job may bring. Seeds with the same rules share one.
pub const MAX_RULES: usize = 1_000;

/// What a line of seeds.txt says besides its address; what is not said is as in the settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeedRules {
    /// How far the crawl reaches from this seed.
    pub scope: Option<ScopeKind>,
    /// Navigation hops from it.
    pub depth: Option<u16>,
    /// Only addresses that match one of these, instead of those of the settings.
    pub include: Vec<String>,
    /// No address that matches one of these, besides those of the settings.
    pub exclude: Vec<String>,
    /// Hops from a page in scope to pages that are not.
    pub offsite_hops: Option<u8>,
    /// URLs fetched under this seed.
    pub max_pages: Option<u64>,
    /// Least pause of its host.
    pub delay: Option<Duration>,
}

impl SeedRules {
    /// Two seeds share one scope if these are the same.
    fn scope_only(&self) -> Self {
        Self {
            max_pages: None,
            delay: None,
            ..self.clone()
        }
    }
}

/// A seed and its own rules, if it has any.
#[derive(Debug, Clone)]
pub struct Seed {
    /// The address.
    pub url: CrawlUrl,
    /// Its rules.
    pub rules: Option<Box<SeedRules>>,
}

impl From<CrawlUrl> for Seed {
    fn from(url: CrawlUrl) -> Self {
        Self { url, rules: None }
    }
}

/// Where a job reaches. A seed with rules has a number that is not zero; what it leads to bears this number (its
/// *origin*); zero are the rules of the settings.
#[derive(Debug, Clone)]
pub struct Reach {
    /// Those of the settings first.
    scopes: Vec<Scope>,
    /// The rules behind each scope but the first.
    rules: Vec<SeedRules>,
    /// What holds for what a seed leads to.
    of_seed: HashMap<u64, Own>,
}

/// The place of a seed with rules.
#[derive(Debug, Clone)]
struct Own {
    /// Which scope.
    at: usize,
    /// What the seed covers there.
    key: Box<str>,
}

impl Reach {
    /// With the rules of the settings alone, without their seeds.
    #[must_use]
    pub fn new(common: Scope) -> Self {
        Self {
            scopes: vec![common],
            rules: Vec::new(),
            of_seed: HashMap::new(),
        }
    }

    /// Takes in a seed.
    ///
    /// # Errors
    /// If its patterns cannot be compiled, or there are more than [`MAX_RULES`] different rules.
    pub fn add_seed(&mut self, seed: &Seed, number: u64) -> Result<(), String> {
        let Some(rules) = seed.rules.as_deref() else {
            self.widen(0, &seed.url);
            return Ok(());
        };
        let at = self.scope_for(&rules.scope_only())?;
        let key = self.scopes.get(at).and_then(|scope| scope.key_of(&seed.url));
        let key = key.unwrap_or_default().into();
        self.of_seed.insert(number, Own { at, key });
        self.widen(number, &seed.url);
        Ok(())
    }

    fn scope_for(&mut self, rules: &SeedRules) -> Result<usize, String> {
        if *rules == SeedRules::default() {
            return Ok(0);
        }
        if let Some(at) = self.rules.iter().position(|known| known == rules) {
            return Ok(at + 1);
        }
        if self.rules.len() == MAX_RULES {
            return Err(format!(
                "more than {MAX_RULES} different rules of seeds: split them into several jobs"
            ));
        }
        let scope = self.common().under(rules).map_err(|error| error.to_string())?;
        self.scopes.push(scope);
        self.rules.push(rules.clone());
        Ok(self.rules.len())
    }

    fn common(&self) -> &Scope {
        #[expect(clippy::expect_used, reason = "made with one, and none is ever taken away")]
        self.scopes.first().expect("the rules of the settings")
    }

    fn at(&self, origin: u64) -> usize {
        self.of_seed.get(&origin).map_or(0, |own| own.at)
    }

    fn of(&self, origin: u64) -> &Scope {
        self.scopes.get(self.at(origin)).unwrap_or_else(|| self.common())
    }

    /// Widens the rules of an origin to an address. An origin that no seed bears any more has those of the settings.
    pub fn widen(&mut self, origin: u64, url: &CrawlUrl) {
        let at = self.at(origin);
        let number = if self.of_seed.contains_key(&origin) { origin } else { 0 };
        if let Some(scope) = self.scopes.get_mut(at) {
            scope.add_numbered(url, number);
        }
    }

    /// As [`Scope::seed_redirected`], for the rules of an origin.
    pub fn seed_redirected(&mut self, origin: u64, from: &CrawlUrl, to: &CrawlUrl) -> bool {
        if from.host_key() == to.host_key() {
            return false;
        }
        let before = self.of(origin).len();
        self.widen(origin, to);
        self.of(origin).len() > before
    }

    /// Judges an address found `depth` navigation hops from a seed under the rules of `origin`; also says under whose
    /// rules it goes on.
    #[must_use]
    pub fn judge(&self, url: &CrawlUrl, depth: u16, origin: u64) -> (Verdict, u64) {
        self.first_to_take(origin, |scope| scope.judge(url, depth), url)
    }

    /// Judges a sitemap as [`Scope::judge_sitemap`] does; also says under whose rules it goes on.
    #[must_use]
    pub fn judge_sitemap(&self, url: &CrawlUrl, depth: u16, origin: u64) -> (Verdict, u64) {
        self.first_to_take(origin, |scope| scope.judge_sitemap(url, depth), url)
    }

    fn first_to_take(&self, origin: u64, judge: impl Fn(&Scope) -> Verdict, url: &CrawlUrl) -> (Verdict, u64) {
        if self.common().is_blocked(url) {
            return (Verdict::Out(OutReason::Blocklist), origin);
        }
        if self.of_seed.is_empty() {
            return (judge(self.common()), 0);
        }
        let own = self.at(origin);
        let verdict = judge(self.of(origin));
        if verdict == Verdict::In {
            return (verdict, self.whose(origin, url));
        }
        let others = self.scopes.iter().enumerate().filter(|(at, _)| *at != own);
        for (_, scope) in others {
            if let Some(number) = scope.covering(url)
                && judge(scope) == Verdict::In
            {
                return (Verdict::In, number);
            }
        }
        (verdict, origin)
    }

    /// Whose an address is that the rules of `origin` take: its own, or another seed's that has the same rules.
    fn whose(&self, origin: u64, url: &CrawlUrl) -> u64 {
        let scope = self.of(origin);
        match self.of_seed.get(&origin) {
            Some(own) if scope.key_covers(&own.key, url) => origin,
            Some(_) => scope.covering(url).unwrap_or(origin),
            None => 0,
        }
    }

    /// As [`Scope::reaches_out`], under the rules of an origin.
    #[must_use]
    pub fn reaches_out(&self, hops: u8, depth: u16, origin: u64) -> bool {
        self.of(origin).reaches_out(hops, depth)
    }

    /// As [`Scope::is_refused`], under the rules of an origin.
    #[must_use]
    pub fn is_refused(&self, url: &CrawlUrl, origin: u64) -> bool {
        self.of(origin).is_refused(url)
    }

    /// The rule behind a verdict under the rules of an origin, in words.
    #[must_use]
    pub fn why(&self, url: &CrawlUrl, verdict: Verdict, origin: u64) -> String {
        let why = self.of(origin).why(url, verdict);
        match (verdict, self.at(origin)) {
            (Verdict::In, at) if at > 0 => format!("{why} (by the rules of its seed)"),
            (Verdict::Out(OutReason::Scope | OutReason::Depth | OutReason::Pattern), 0) if self.scopes.len() > 1 => {
                format!("{why}; and no seed's own rules take it")
            }
            _ => why,
        }
    }

    /// The list of what is never asked.
    #[must_use]
    pub fn blocklist(&self) -> Option<Arc<Blocklist>> {
        self.common().blocklist()
    }

    /// Do seeds bring rules of scope of their own?
    #[must_use]
    pub fn has_seed_rules(&self) -> bool {
        self.scopes.len() > 1
    }
}

impl From<Scope> for Reach {
    fn from(common: Scope) -> Self {
        Self::new(common)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Identity;

    fn url(raw: &str) -> CrawlUrl {
        CrawlUrl::parse(raw, &Identity::default()).unwrap()
    }

    fn seed(raw: &str, rules: SeedRules) -> Seed {
        Seed {
            url: url(raw),
            rules: Some(Box::new(rules)),
        }
    }

    /// Host scope, three hops, without `/private/`.
    fn common() -> Scope {
        Scope::new(ScopeKind::Host, &[], &["/private/".to_owned()], Some(3)).unwrap()
    }

    fn reach(seeds: &[Seed]) -> Reach {
        let mut reach = Reach::new(common());
        for (seed, number) in seeds.iter().zip(1..) {
            reach.add_seed(seed, number).unwrap();
        }
        reach
    }

    #[test]
    fn a_seed_has_its_own_rules_and_the_others_those_of_the_settings() {
        let reach = reach(&[
            url("http://plain.test/").into(),
            seed(
                "http://own.test/docs/",
                SeedRules {
                    scope: Some(ScopeKind::Prefix),
                    depth: Some(1),
                    exclude: vec!["old".to_owned()],
                    ..SeedRules::default()
                },
            ),
        ]);
        let judge = |raw: &str, depth, origin| reach.judge(&url(raw), depth, origin);
        assert_eq!(judge("http://plain.test/x", 3, 0), (Verdict::In, 0));
        assert_eq!(judge("http://plain.test/x", 4, 0).0, Verdict::Out(OutReason::Depth));
        assert_eq!(judge("http://own.test/docs/x", 1, 2), (Verdict::In, 2));
        for (raw, depth, why) in [
            ("http://own.test/docs/x", 2, OutReason::Depth),
            ("http://own.test/x", 1, OutReason::Scope),
            ("http://own.test/docs/old", 1, OutReason::Pattern),
            ("http://own.test/docs/private/x", 1, OutReason::Pattern),
            ("http://other.test/", 1, OutReason::Scope),
        ] {
            assert_eq!(judge(raw, depth, 2), (Verdict::Out(why), 2), "{raw}");
        }
        // from one seed's pages into another's: they go on under the other's rules
        assert_eq!(judge("http://plain.test/x", 2, 2), (Verdict::In, 0));
        assert_eq!(judge("http://own.test/docs/x", 1, 0), (Verdict::In, 2));
        assert_eq!(
            judge("http://own.test/docs/x", 2, 0),
            (Verdict::Out(OutReason::Scope), 0)
        );
        assert!(!reach.reaches_out(1, 1, 2));
    }

    #[test]
    fn an_address_is_in_if_any_seed_lets_it_in() {
        let narrow = SeedRules {
            depth: Some(1),
            ..SeedRules::default()
        };
        let wide = SeedRules {
            scope: Some(ScopeKind::Prefix),
            depth: Some(9),
            offsite_hops: Some(1),
            ..SeedRules::default()
        };
        let reach = reach(&[seed("http://h.test/", narrow), seed("http://h.test/docs/", wide)]);
        let judge = |raw: &str, depth| reach.judge(&url(raw), depth, 1);
        assert_eq!(judge("http://h.test/docs/x", 1), (Verdict::In, 1));
        assert_eq!(
            judge("http://h.test/docs/x", 2),
            (Verdict::In, 2),
            "the wider rules take it over"
        );
        assert_eq!(judge("http://h.test/x", 2).0, Verdict::Out(OutReason::Depth));
        assert!(reach.reaches_out(1, 9, 2) && !reach.reaches_out(1, 1, 1));
        assert!(
            reach
                .why(&url("http://h.test/docs/x"), Verdict::In, 2)
                .contains("its seed")
        );
    }

    #[test]
    fn include_replaces_and_exclude_adds() {
        let rules = SeedRules {
            include: vec!["/a/".to_owned()],
            ..SeedRules::default()
        };
        let scope = Scope::new(ScopeKind::Host, &["/b/".to_owned()], &["x$".to_owned()], None).unwrap();
        let mut reach = Reach::new(scope);
        reach.add_seed(&seed("http://h.test/a/", rules), 5).unwrap();
        assert_eq!(reach.judge(&url("http://h.test/a/1"), 1, 5), (Verdict::In, 5));
        assert_eq!(
            reach.judge(&url("http://h.test/b/1"), 1, 5).0,
            Verdict::Out(OutReason::Pattern)
        );
        assert_eq!(
            reach.judge(&url("http://h.test/a/x"), 1, 5).0,
            Verdict::Out(OutReason::Pattern)
        );
    }

    #[test]
    fn where_a_seed_moves_to_has_its_rules_and_a_seed_that_is_gone_those_of_the_settings() {
        let rules = SeedRules {
            depth: Some(5),
            ..SeedRules::default()
        };
        let mut reach = reach(&[seed("http://old.test/", rules)]);
        assert!(reach.seed_redirected(1, &url("http://old.test/"), &url("http://new.test/")));
        assert!(!reach.seed_redirected(1, &url("http://old.test/"), &url("http://new.test/x")));
        assert_eq!(reach.judge(&url("http://new.test/y"), 5, 1), (Verdict::In, 1));
        reach.widen(77, &url("http://gone.test/"));
        assert_eq!(reach.judge(&url("http://gone.test/x"), 3, 77), (Verdict::In, 0));
        assert_eq!(
            reach.judge(&url("http://gone.test/x"), 4, 77).0,
            Verdict::Out(OutReason::Depth)
        );
    }

    #[test]
    fn seeds_with_the_same_rules_keep_what_is_theirs() {
        let counted = SeedRules {
            max_pages: Some(5),
            ..SeedRules::default()
        };
        let reach = reach(&[
            seed("http://a.test/", counted.clone()),
            seed("http://b.test/1", counted.clone()),
            seed("http://b.test/2", counted),
            url("http://plain.test/").into(),
        ]);
        assert!(!reach.has_seed_rules());
        for (raw, origin, whose) in [
            ("http://a.test/x", 1, 1),
            ("http://b.test/x", 1, 2),
            ("http://b.test/x", 3, 3),
            ("http://plain.test/x", 3, 0),
            ("http://a.test/x", 0, 0),
        ] {
            assert_eq!(reach.judge(&url(raw), 1, origin), (Verdict::In, whose), "{raw}");
        }
    }

    #[test]
    fn the_number_of_different_rules_is_bounded() {
        let mut reach = Reach::new(common());
        let of = |depth: usize| SeedRules {
            depth: Some(u16::try_from(depth).unwrap()),
            ..SeedRules::default()
        };
        for n in 0..MAX_RULES {
            reach.add_seed(&seed("http://h.test/", of(n)), n as u64 + 1).unwrap();
        }
        reach.add_seed(&seed("http://i.test/", of(0)), 5_000).unwrap();
        assert!(reach.add_seed(&seed("http://h.test/", of(MAX_RULES)), 6_000).is_err());
    }
}
