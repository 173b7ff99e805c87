//! A page's raw links → addresses in scope, with their fingerprints. Normalize comes before scope.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock};

use super::edges::{Edges, Fate};
use crate::extract::sitemap::{MAX_ENTRIES, MAX_NESTING};
use crate::extract::{LinkKind, Links, MAX_LINKS_PER_PAGE, RawLink};
use crate::frontier::Item;
use crate::hash::HashKey;
use crate::scope::reach::Reach;
use crate::scope::{OutReason, Sitemaps, Verdict};
use crate::shard::{Errand, Link};
use crate::stats::{Left, LinkCounts};
use crate::survey::Met;
use crate::traps::{self, Rule, Shape};
use crate::url::{Base, CrawlUrl, Identity, Reject};

/// Redirects in a row that are followed.
pub const MAX_REDIRECTS: u8 = traps::MAX_REDIRECTS;
/// Requisite hops in a row that stay at their page's depth (frames in frames, imports of imports).
pub const MAX_REQUISITE_HOPS: u8 = 5;

/// Addresses left as traps that a run names in its log; further ones are only counted.
pub const TRAPS_NAMED: u32 = 1_000;

/// What judging needs to know.
#[derive(Debug)]
pub struct Judge {
    /// The rules of scope; a redirected seed widens them.
    pub scope: RwLock<Reach>,
    /// The rules of identity.
    pub identity: Identity,
    /// The job's key.
    pub key: HashKey,
    /// Follow requisites.
    pub requisites: bool,
    /// Follow guesses.
    pub speculative: bool,
    /// Leave links that say `nofollow`, or whose page says so.
    pub obey_nofollow: bool,
    /// Read sitemaps.
    pub sitemaps: Sitemaps,
    /// The rules against traps.
    pub traps: traps::Settings,
    /// What this run has said in its log.
    pub said: Said,
}

/// What a run has said in its log and need not say again.
#[derive(Debug, Default)]
pub struct Said {
    /// Addresses left as traps.
    traps: AtomicU32,
    /// A page has more links than are taken.
    links: AtomicBool,
    /// A sitemap has more entries than are taken.
    entries: AtomicBool,
}

/// Links in scope, and what became of the others.
#[derive(Debug, Default)]
pub struct Judged {
    /// In scope, in document order.
    pub links: Vec<Link>,
    /// `seen` and `admitted` are left to the shard.
    pub counts: LinkCounts,
    /// Places to go to that were left for `nofollow`; `counts` has them as out of scope.
    pub nofollow: u64,
    /// The links for the survey, in scope or not.
    pub met: Met,
    /// Links that a blocklist names; `counts` has them as out of scope.
    pub blocked: u64,
    /// Why the page's last redirect that is not followed is not.
    pub redirect: Option<&'static str>,
    /// The traps among them, by rule.
    pub traps: Vec<(Rule, u64)>,
}

impl Judge {
    /// Judges the links of a page. What stands on the page twice with the same meaning, but for its fragment, is judged
    /// once and counted as seen from then on.
    #[must_use]
    pub fn judge(&self, page: &Item, found: &Links<'_>) -> Judged {
        self.judge_with(page, found, None)
    }

    /// The same, with a row for each link.
    #[must_use]
    pub fn judge_with(&self, page: &Item, found: &Links<'_>, edges: Option<&mut Edges<'_>>) -> Judged {
        let mut judged = Judged::default();
        let scope = self.scope.read().unwrap_or_else(PoisonError::into_inner);
        let whole = self.obey_nofollow && found.directives.nofollow;
        self.judge_document(page, &page.url, found, whole, &scope, edges, &mut judged);
        judged
    }

    /// The links of a document of the page: the page itself, or a frame written inside it that has its own base.
    /// `nofollow`: none of its places to go to is followed.
    #[expect(
        clippy::too_many_arguments,
        reason = "a page and its document, the rules, and where the outcome goes"
    )]
    fn judge_document(
        &self,
        page: &Item,
        address: &CrawlUrl,
        found: &Links<'_>,
        nofollow: bool,
        scope: &Reach,
        mut edges: Option<&mut Edges<'_>>,
        judged: &mut Judged,
    ) {
        let document = Document {
            found,
            base: Base::in_page(address, found.base.as_deref(), found.encoding),
            own: Base::of(address, None),
            nofollow,
        };
        let mut texts = HashSet::with_capacity(found.links.len());
        // what is no guess elsewhere on the page is none
        let guess = |(_, link): &(usize, &RawLink<'_>)| link.kind == LinkKind::Speculative;
        let (sure, guesses) = (
            found.links.iter().enumerate().filter(|link| !guess(link)),
            found.links.iter().enumerate().filter(guess),
        );
        for (at, link) in sure.chain(guesses) {
            let before = edges.is_some().then(|| judged.so_far());
            self.judge_link(page, link, &document, &mut texts, scope, judged);
            if let (Some(edges), Some(before)) = (edges.as_deref_mut(), before) {
                let to = CrawlUrl::join(document.base_of(link), self.sent(link), &self.identity);
                edges.add(link, to.ok().as_ref(), found.detail(at), judged.fate_since(&before));
            }
        }
        for frame in &found.frames {
            let around = CrawlUrl::join(&document.base, "", &self.identity);
            let around = around.as_ref().unwrap_or(address);
            self.judge_document(page, around, frame, nofollow, scope, edges.as_deref_mut(), judged);
        }
    }

    /// What of a link is sent: the first `#` starts the fragment wherever it stands (URL Standard, section 4.4).
    fn sent<'l>(&self, link: &'l RawLink<'_>) -> &'l str {
        match link.raw.split_once('#') {
            Some((_, fragment)) if self.identity.rules.keep_hashbang && fragment.starts_with('!') => &link.raw,
            Some((text, _)) => text,
            None => &link.raw,
        }
    }

    fn judge_link<'l>(
        &self,
        page: &Item,
        link: &'l RawLink<'_>,
        document: &Document<'_>,
        texts: &mut HashSet<(&'l str, LinkKind, bool)>,
        scope: &Reach,
        judged: &mut Judged,
    ) {
        judged.counts.found += 1;
        let left = document.nofollow || self.obey_nofollow && link.nofollow;
        if left && matches!(link.kind, LinkKind::Navigation | LinkKind::Speculative) {
            // before the texts: the same address may stand on the page once more, to be followed
            judged.counts.out_of_scope += 1;
            judged.nofollow += 1;
            return;
        }
        let text = self.sent(link);
        if !texts.insert((text, link.kind, link.header)) {
            judged.counts.seen += 1;
            return;
        }
        match CrawlUrl::join(document.base_of(link), text, &self.identity) {
            Ok(url) => {
                let found = Found {
                    kind: link.kind,
                    lastmod: link.lastmod,
                    listed: document.found.sitemap.is_some(),
                    of_part: document.found.is_part,
                };
                self.judge_one(page, url, found, scope, judged);
            }
            Err(reject) => judged.reject(link.kind, &reject),
        }
    }

    fn judge_one(&self, page: &Item, url: CrawlUrl, found: Found, scope: &Reach, judged: &mut Judged) {
        let print = self.key.fingerprint(url.canonical().as_bytes());
        judged.met.add(print, url.host_key());
        let path = &page.path;
        let Found {
            kind,
            lastmod,
            listed,
            of_part,
        } = found;
        let requisite = matches!(kind, LinkKind::Requisite | LinkKind::Stylesheet);
        let followed = match kind {
            LinkKind::Requisite | LinkKind::Stylesheet => self.requisites,
            LinkKind::Navigation => listed || self.sitemaps != Sitemaps::Only,
            LinkKind::Redirect | LinkKind::Sitemap => true,
            // a guess on a page that was itself a guess leads nowhere
            LinkKind::Speculative => self.speculative && self.sitemaps != Sitemaps::Only && !path.is_speculative(),
        };
        if !followed {
            judged.counts.out_of_scope += 1;
            return;
        }
        let sitemap = kind == LinkKind::Sitemap || kind == LinkKind::Redirect && path.is_sitemap();
        if kind == LinkKind::Sitemap && path.nesting() >= MAX_NESTING {
            self.leave(&url, &page.url, Rule::NestedSitemaps, judged);
            return;
        }
        let redirects = if kind == LinkKind::Redirect {
            path.redirects + 1
        } else {
            0
        };
        if redirects > MAX_REDIRECTS {
            judged.redirect = Some("too-many");
            self.leave(&url, &page.url, Rule::Redirects, judged);
            return;
        }
        let requisites = match kind {
            LinkKind::Requisite | LinkKind::Stylesheet => path.requisites + 1,
            LinkKind::Redirect => path.requisites,
            LinkKind::Navigation | LinkKind::Sitemap | LinkKind::Speculative => 0,
        };
        let deep_frame = requisite && requisites > MAX_REQUISITE_HOPS;
        // what a sitemap lists is one hop further than it, its pictures too: they are those of the pages
        let place = matches!(kind, LinkKind::Navigation | LinkKind::Speculative);
        let further = place || deep_frame || requisite && listed;
        let depth = path.depth.saturating_add(u16::from(further));
        let requisites = if deep_frame { 0 } else { requisites };
        let (verdict, origin) = if sitemap {
            // one whose entries would be too deep is not worth a request
            scope.judge_sitemap(&url, depth.saturating_add(1), path.origin)
        } else {
            scope.judge(&url, depth, path.origin)
        };
        let outside = match verdict {
            Verdict::In => false,
            Verdict::Out(OutReason::Scope) if sitemap => true,
            Verdict::Out(OutReason::Scope)
                if kind == LinkKind::Navigation
                    && scope.reaches_out(path.offsite.saturating_add(1), depth, path.origin) =>
            {
                true
            }
            Verdict::Out(OutReason::Scope)
                if follows_outside(page, kind, of_part) && !refused_seed(page, kind, scope, &url) =>
            {
                true
            }
            Verdict::Out(OutReason::Blocklist) => {
                judged.counts.out_of_scope += 1;
                judged.blocked += 1;
                judged.leave(kind, "blocklist");
                return;
            }
            Verdict::Out(_) => {
                judged.counts.out_of_scope += 1;
                judged.leave(kind, "out-of-scope");
                return;
            }
        };
        if !self.traps.off
            && let Some(rule) = traps::address::rule(url.path_and_query())
            && self.traps.of(url.host_key()).holds(rule)
        {
            self.leave(&url, &page.url, rule, judged);
            judged.leave(kind, "trap");
            return;
        }
        let offsite = match kind {
            _ if !outside => 0,
            LinkKind::Navigation => path.offsite.saturating_add(1),
            _ => path.offsite,
        };
        let seed = if kind == LinkKind::Redirect { path.seed } else { None };
        let moved = seed.is_some() && self.sitemaps != Sitemaps::No && url.host_key() != page.url.host_key();
        let usual = moved.then(|| usual_place(&url, &self.identity)).flatten();
        judged.links.push(Link {
            url,
            print,
            kind,
            depth,
            requisites,
            redirects,
            outside,
            offsite,
            seed,
            lastmod,
            origin,
        });
        if let Some(url) = usual {
            // the seed has moved to another host, and its sitemap with it
            judged.counts.found += 1;
            let found = Found {
                kind: LinkKind::Sitemap,
                lastmod: None,
                listed: false,
                of_part: false,
            };
            self.judge_one(page, url, found, scope, judged);
        }
    }

    /// The sitemaps that a robots.txt names, if they are wanted.
    #[must_use]
    pub fn judge_robots(&self, errand: &Errand, sitemaps: &[String], edges: Option<&mut Edges<'_>>) -> Judged {
        if !errand.sitemaps || self.sitemaps == Sitemaps::No {
            return Judged::default();
        }
        let named = sitemaps.iter().map(|raw| RawLink {
            raw: raw.as_str().into(),
            kind: LinkKind::Sitemap,
            nofollow: false,
            header: false,
            lastmod: None,
        });
        let mut found = Links::default();
        found.links = named.collect();
        self.judge_with(&errand.page(), &found, edges)
    }
}

/// A document of a page.
struct Document<'d> {
    found: &'d Links<'d>,
    base: Base,
    /// Headers know nothing of the body's base and encoding (RFC 8288, section 3.2).
    own: Base,
    /// None of its places to go to is followed.
    nofollow: bool,
}

impl Document<'_> {
    fn base_of(&self, link: &RawLink<'_>) -> &Base {
        if link.header { &self.own } else { &self.base }
    }
}

/// A link of a page, but for its address.
#[derive(Debug, Clone, Copy)]
struct Found {
    kind: LinkKind,
    lastmod: Option<NonZeroU32>,
    /// The page is a sitemap, and this is what it lists.
    listed: bool,
    /// The page is a part of others, and this belongs to them: a style sheet's picture, a playlist's segment.
    of_part: bool,
}

/// Where a host has its sitemap if nothing says otherwise.
#[must_use]
pub fn usual_place(of: &CrawlUrl, identity: &Identity) -> Option<CrawlUrl> {
    CrawlUrl::join(&Base::of(of, None), "/sitemap.xml", identity).ok()
}

impl Judged {
    /// What has been judged so far, to tell later what came of the next link.
    fn so_far(&self) -> (usize, LinkCounts, u64) {
        (self.links.len(), self.counts, self.nofollow)
    }

    /// What came of the one link judged since.
    fn fate_since(&self, (links, counts, nofollow): &(usize, LinkCounts, u64)) -> Fate {
        if self.links.len() > *links {
            Fate::InScope
        } else if self.nofollow > *nofollow {
            Fate::Nofollow
        } else if self.counts.seen > counts.seen {
            Fate::Repeated
        } else if self.counts.malformed > counts.malformed {
            Fate::Malformed
        } else if self.counts.trap > counts.trap {
            Fate::Trap
        } else {
            Fate::OutOfScope
        }
    }

    fn reject(&mut self, kind: LinkKind, reject: &Reject) {
        if let Reject::Scheme(_) = reject {
            self.counts.out_of_scope += 1;
            self.leave(kind, "scheme");
        } else {
            self.counts.malformed += 1;
            self.leave(kind, "malformed");
        }
    }

    /// Notes why a link is left, if it is a redirect: those of other links are counted only.
    fn leave(&mut self, kind: LinkKind, why: &'static str) {
        if kind == LinkKind::Redirect {
            self.redirect = Some(why);
        }
    }
}

impl Judge {
    fn leave(&self, url: &CrawlUrl, page: &CrawlUrl, rule: Rule, judged: &mut Judged) {
        judged.counts.trap += 1;
        match judged.traps.iter_mut().find(|(known, _)| *known == rule) {
            Some((_, count)) => *count += 1,
            None => judged.traps.push((rule, 1)),
        }
        self.name_trap(url, page.href(), rule);
    }

    /// Says in the log which address was left and why, for the first [`TRAPS_NAMED`] of a run.
    pub fn name_trap(&self, url: &CrawlUrl, on: &str, rule: Rule) {
        let before = self.said.traps.fetch_add(1, Ordering::Relaxed);
        if before < TRAPS_NAMED {
            let shape = Shape::text(url);
            tracing::info!(
                url = url.href(),
                on,
                rule = rule.word(),
                shape,
                "left as a trap: {}",
                rule.says()
            );
        } else if before == TRAPS_NAMED {
            tracing::info!("further traps of this run are only counted");
        }
    }
}

impl Judge {
    /// Says in the log, once in a run for each kind, that a page has more than is taken of one.
    pub fn name_left(&self, left: &Left, page: &str) {
        if left.links > 0 && !self.said.links.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                page,
                left = left.links,
                "a page has more than {MAX_LINKS_PER_PAGE} links: the others are left; further ones are only counted"
            );
        }
        if left.entries > 0 && !self.said.entries.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                sitemap = page,
                left = left.entries,
                "a sitemap has more than {MAX_ENTRIES} entries: the others are left; further ones are only counted"
            );
        }
    }
}

/// May a link that is outside the scope be followed? A requisite of a page inside, one hop beyond the scope; what a
/// stylesheet, manifest or playlist out there needs belongs to the same page; so does where a requisite redirects to;
/// and where a seed redirects to is the seed.
fn follows_outside(page: &Item, kind: LinkKind, of_part: bool) -> bool {
    let path = &page.path;
    match kind {
        LinkKind::Navigation | LinkKind::Sitemap | LinkKind::Speculative => false,
        LinkKind::Requisite | LinkKind::Stylesheet => {
            // a page that a hop out of the scope led to is a page like another
            let is_page = !path.outside || path.offsite > 0 && path.requisites == 0;
            is_page || of_part || path.kind == LinkKind::Stylesheet
        }
        LinkKind::Redirect => path.seed.is_some() || path.outside || path.requisites > 0,
    }
}

/// Where a seed redirects to, if the patterns refuse it.
fn refused_seed(page: &Item, kind: LinkKind, scope: &Reach, url: &CrawlUrl) -> bool {
    kind == LinkKind::Redirect && page.path.seed.is_some() && scope.is_refused(url, page.path.origin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontier::Path;
    use crate::scope::{Scope, ScopeKind};

    fn judge(requisites: bool) -> Judge {
        let identity = Identity::default();
        let mut scope = Scope::new(ScopeKind::Host, &[], &[], Some(2)).unwrap();
        scope.add_seed(&CrawlUrl::parse("http://in.test/", &identity).unwrap());
        Judge {
            scope: RwLock::new(scope.into()),
            identity,
            key: HashKey([1; 16]),
            requisites,
            speculative: false,
            obey_nofollow: false,
            sitemaps: Sitemaps::Yes,
            traps: traps::Settings::default(),
            said: Said::default(),
        }
    }

    fn page(url: &str, change: impl FnOnce(&mut Path)) -> Item {
        let mut path = Path::seed(0);
        path.seed = None;
        change(&mut path);
        Item {
            url: CrawlUrl::parse(url, &Identity::default()).unwrap(),
            path,
        }
    }

    fn links<'a>(raw: &[(&'a str, LinkKind)]) -> Links<'a> {
        let links = raw
            .iter()
            .map(|(raw, kind)| RawLink {
                raw: (*raw).into(),
                kind: *kind,
                nofollow: raw.ends_with("?nofollow"),
                header: false,
                lastmod: None,
            })
            .collect();
        let mut found = Links::default();
        found.links = links;
        found
    }

    #[test]
    fn every_link_is_counted_once() {
        let found = links(&[
            ("/a", LinkKind::Navigation),
            ("/a#b", LinkKind::Navigation),
            ("mailto:x@y", LinkKind::Navigation),
            ("http://[", LinkKind::Navigation),
            ("http://out.test/", LinkKind::Navigation),
            ("http://out.test/i.png", LinkKind::Requisite),
        ]);
        let judged = judge(true).judge(&page("http://in.test/", |_| {}), &found);
        let hrefs: Vec<_> = judged
            .links
            .iter()
            .map(|link| (link.url.href(), link.outside))
            .collect();
        assert_eq!(hrefs, [("http://in.test/a", false), ("http://out.test/i.png", true)]);
        let counts = judged.counts;
        assert_eq!(
            counts,
            LinkCounts {
                found: 6,
                malformed: 1,
                out_of_scope: 2,
                trap: 0,
                seen: 1,
                admitted: 0
            }
        );
    }

    #[test]
    fn requisites_reach_one_hop_beyond_the_scope_and_styles_bring_their_own() {
        let image = links(&[("http://cdn.test/i.png", LinkKind::Requisite)]);
        let judge = judge(true);
        let frame = page("http://cdn.test/frame", |path| {
            path.outside = true;
            path.kind = LinkKind::Requisite;
            path.requisites = 1;
        });
        assert!(judge.judge(&frame, &image).links.is_empty());
        let style = page("http://cdn.test/s.css", |path| {
            path.outside = true;
            path.kind = LinkKind::Stylesheet;
            path.requisites = 1;
        });
        assert_eq!(judge.judge(&style, &image).links.len(), 1);
    }

    #[test]
    fn what_a_playlist_out_there_plays_belongs_to_the_page() {
        let mut playlist = links(&[("seg.ts", LinkKind::Requisite)]);
        let at = page("http://cdn.test/v.m3u8", |path| {
            path.outside = true;
            path.kind = LinkKind::Requisite;
            path.requisites = 1;
        });
        assert!(judge(true).judge(&at, &playlist).links.is_empty());
        playlist.is_part = true;
        assert_eq!(judge(true).judge(&at, &playlist).links.len(), 1);
    }

    #[test]
    fn guesses_go_one_hop_if_they_are_wanted() {
        let found = links(&[
            ("/guess", LinkKind::Speculative),
            ("/sure", LinkKind::Speculative),
            ("/sure", LinkKind::Navigation),
            ("http://out.test/", LinkKind::Speculative),
        ]);
        let mut judge = judge(true);
        let kinds = |judge: &Judge, hops: &str| {
            let page = page("http://in.test/", |path| path.hops = hops.to_owned());
            let judged = judge.judge(&page, &found);
            assert_eq!(judged.counts.found, 4);
            let links = judged
                .links
                .iter()
                .map(|link| (link.url.path().to_owned(), link.kind, link.depth));
            links.collect::<Vec<_>>()
        };
        let sure = ("/sure".to_owned(), LinkKind::Navigation, 1);
        assert_eq!(kinds(&judge, ""), std::slice::from_ref(&sure));
        judge.speculative = true;
        let both = |hops| kinds(&judge, hops);
        // a place to go to is one before it is a guess: the seen-set takes the first
        let guess = |path: &str| (path.to_owned(), LinkKind::Speculative, 1);
        let all = [sure.clone(), guess("/guess"), guess("/sure")];
        for hops in ["", "L", "XL", "LEXERL", "M"] {
            assert_eq!(both(hops), all, "{hops}");
        }
        for hops in ["X", "LX", "XE", "XRE"] {
            assert_eq!(both(hops), std::slice::from_ref(&sure), "{hops}");
        }
    }

    #[test]
    fn queries_are_in_the_encoding_of_the_page_and_headers_know_nothing_of_it() {
        let mut found = links(&[("a?é", LinkKind::Navigation), ("b?é", LinkKind::Navigation)]);
        found.encoding = Some("windows-1252");
        found.base = Some("/folder/".into());
        found.links[0].header = true;
        let judged = judge(true).judge(&page("http://in.test/x/", |_| {}), &found);
        let hrefs: Vec<_> = judged.links.iter().map(|link| link.url.href()).collect();
        assert_eq!(hrefs, ["http://in.test/x/a?%C3%A9", "http://in.test/folder/b?%E9"]);
    }

    #[test]
    fn requisites_can_be_left_out() {
        let found = links(&[("/i.png", LinkKind::Requisite), ("/s.css", LinkKind::Stylesheet)]);
        let judged = judge(false).judge(&page("http://in.test/", |_| {}), &found);
        assert_eq!((judged.links.len(), judged.counts.out_of_scope), (0, 2));
    }

    #[test]
    fn depth_counts_navigation_and_endless_frames() {
        let judge = judge(true);
        let deep = page("http://in.test/", |path| path.depth = 2);
        let found = links(&[("/next", LinkKind::Navigation), ("/i.png", LinkKind::Requisite)]);
        let judged = judge.judge(&deep, &found);
        assert_eq!(judged.links.len(), 1);
        assert_eq!(judged.links[0].depth, 2);
        let mut frame = page("http://in.test/0", |_| {});
        for n in 1..100 {
            let next = format!("/{n}");
            let judged = judge.judge(&frame, &links(&[(&next, LinkKind::Requisite)]));
            let Some(link) = judged.links.first() else { return };
            frame = page("http://in.test/0", |path| {
                path.depth = link.depth;
                path.requisites = link.requisites;
                path.kind = link.kind;
            });
        }
        panic!("a chain of frames has no end");
    }

    #[test]
    fn redirects_are_followed_so_far() {
        let judge = judge(true);
        let found = links(&[("/r", LinkKind::Redirect)]);
        let at = |redirects| page("http://in.test/", move |path| path.redirects = redirects);
        assert_eq!(judge.judge(&at(MAX_REDIRECTS - 1), &found).links.len(), 1);
        assert_eq!(judge.judge(&at(MAX_REDIRECTS), &found).counts.trap, 1);
    }

    #[test]
    fn nofollow_is_obeyed_if_asked_for_and_leaves_what_the_page_is_made_of() {
        let raw = [
            ("/a?nofollow", LinkKind::Navigation),
            ("/b", LinkKind::Navigation),
            ("/i.png?nofollow", LinkKind::Requisite),
            ("/r", LinkKind::Redirect),
        ];
        let hrefs = |judge: &Judge, found: &Links<'_>| {
            let judged = judge.judge(&page("http://in.test/", |_| {}), found);
            assert_eq!(judged.counts.found, 4);
            assert_eq!(judged.counts.out_of_scope, judged.nofollow);
            let paths = judged.links.iter().map(|link| link.url.path().to_owned());
            paths.collect::<Vec<_>>()
        };
        let mut found = links(&raw);
        let mut judge = judge(true);
        assert_eq!(hrefs(&judge, &found), ["/a", "/b", "/i.png", "/r"]);
        judge.obey_nofollow = true;
        assert_eq!(hrefs(&judge, &found), ["/b", "/i.png", "/r"]);
        found.directives.nofollow = true;
        assert_eq!(hrefs(&judge, &found), ["/i.png", "/r"]);
        // once not to be followed, once to be followed: followed
        let twice = links(&[("/a", LinkKind::Navigation), ("/a", LinkKind::Navigation)]);
        let mut twice = twice;
        twice.links[0].nofollow = true;
        let judged = judge.judge(&page("http://in.test/", |_| {}), &twice);
        assert_eq!((judged.links.len(), judged.nofollow), (1, 1));
    }

    #[test]
    fn a_redirect_that_is_not_followed_says_why() {
        let judge = judge(true);
        let why = |target: &str, redirects: u8| {
            let from = page("http://in.test/", |path| path.redirects = redirects);
            judge.judge(&from, &links(&[(target, LinkKind::Redirect)])).redirect
        };
        assert_eq!(why("/b", 0), None);
        assert_eq!(why("mailto:x@y", 0), Some("scheme"));
        assert_eq!(why("javascript:x", 0), Some("scheme"));
        assert_eq!(why("http://[", 0), Some("malformed"));
        assert_eq!(why("http://out.test/", 0), Some("out-of-scope"));
        assert_eq!(why("/a/a/a/a/a/a/", 0), Some("trap"));
        assert_eq!(why("/b", MAX_REDIRECTS), Some("too-many"));
        let link = links(&[("mailto:x@y", LinkKind::Navigation)]);
        assert_eq!(judge.judge(&page("http://in.test/", |_| {}), &link).redirect, None);
    }

    #[test]
    fn an_address_that_repeats_itself_is_a_trap() {
        let growing = page("http://in.test/a/a/a/a/a/", |_| {});
        let found = links(&[("a/", LinkKind::Navigation), ("b/", LinkKind::Navigation)]);
        let judged = judge(true).judge(&growing, &found);
        let hrefs: Vec<_> = judged.links.iter().map(|link| link.url.href()).collect();
        assert_eq!((hrefs, judged.counts.trap), (vec!["http://in.test/a/a/a/a/a/b/"], 1));
    }

    #[test]
    fn a_redirected_seed_is_still_the_seed() {
        let found = links(&[("http://out.test/", LinkKind::Redirect)]);
        let seed = page("http://in.test/", |path| path.seed = Some(3));
        let judged = judge(true).judge(&seed, &found);
        assert_eq!(judged.links[0].seed, Some(3));
        assert!(
            judge(true)
                .judge(&page("http://in.test/", |_| {}), &found)
                .links
                .is_empty()
        );
    }

    /// The links of a sitemap.
    fn listing<'a>(raw: &[(&'a str, LinkKind)]) -> Links<'a> {
        let mut found = links(raw);
        found.sitemap = Some(crate::extract::sitemap::Summary::default());
        found
    }

    #[test]
    fn what_a_sitemap_lists_must_be_in_scope_and_is_one_hop_further() {
        let found = listing(&[
            ("/a", LinkKind::Navigation),
            ("http://out.test/", LinkKind::Navigation),
            ("/i.png", LinkKind::Requisite),
            ("http://out.test/more.xml", LinkKind::Sitemap),
        ]);
        let sitemap = page("http://out.test/s.xml", |path| {
            path.hops = "M".to_owned();
            path.outside = true;
        });
        let judged = judge(true).judge(&page("http://in.test/s.xml", |path| path.hops = "M".to_owned()), &found);
        let got: Vec<_> = judged
            .links
            .iter()
            .map(|link| (link.url.href(), link.depth, link.outside))
            .collect();
        assert_eq!(
            got,
            [
                ("http://in.test/a", 1, false),
                ("http://in.test/i.png", 1, false),
                ("http://out.test/more.xml", 0, true)
            ]
        );
        let own = listing(&[("/a", LinkKind::Navigation), ("http://in.test/a", LinkKind::Navigation)]);
        let judged = judge(true).judge(&sitemap, &own);
        assert_eq!((judged.links.len(), judged.counts.out_of_scope), (1, 1));
    }

    #[test]
    fn sitemaps_in_a_row_end_and_one_that_moved_is_still_one() {
        let at = |hops: &'static str| page("http://in.test/s.xml", move |path| path.hops = hops.to_owned());
        let inner = listing(&[("/t.xml", LinkKind::Sitemap)]);
        assert_eq!(judge(true).judge(&at("MM"), &inner).links.len(), 1);
        let judged = judge(true).judge(&at("MMM"), &inner);
        assert_eq!((judged.links.len(), judged.counts.trap), (0, 1));
        let moved = links(&[("http://out.test/t.xml", LinkKind::Redirect)]);
        assert_eq!(judge(true).judge(&at("MR"), &moved).links.len(), 1);
        assert_eq!(judge(true).judge(&at("ML"), &moved).links.len(), 0);
    }

    #[test]
    fn with_sitemaps_only_no_page_leads_on() {
        let mut judge = judge(true);
        judge.sitemaps = Sitemaps::Only;
        let raw = [
            ("/a", LinkKind::Navigation),
            ("/i.png", LinkKind::Requisite),
            ("/b", LinkKind::Redirect),
        ];
        let judged = judge.judge(&page("http://in.test/", |_| {}), &links(&raw));
        let kinds: Vec<_> = judged.links.iter().map(|link| link.kind).collect();
        assert_eq!(kinds, [LinkKind::Requisite, LinkKind::Redirect]);
        let sitemap = page("http://in.test/s.xml", |path| path.hops = "M".to_owned());
        assert_eq!(judge.judge(&sitemap, &listing(&raw)).links.len(), 3);
    }
}
