//! Where the rules against traps meet the queue: links weeded out before they are admitted, what goes to the back, and
//! what was queued before there was evidence enough.

use super::{Next, Shard, TRAPPED};
use crate::extract::LinkKind;
use crate::frontier::{HostId, Item};
use crate::shard::fact::{Fact, Link, What};
use crate::traps::host::{Fed, Sameness, WATCH_FROM};
use crate::traps::kin::Kin;
use crate::traps::{Content, Dropped, HostTraps, Lineage, Policy, Rule, Shape};

/// Hosts watched at once; beyond it the one watched longest is forgotten and watched anew. About 4 KB each.
pub(super) const MAX_WATCHED: usize = 20_000;

/// A page that was read, while its links are admitted.
pub(super) struct Watch<'a> {
    page: &'a Item,
    host: HostId,
    /// None while the host is not watched: then only what its links share with it is noted.
    traps: Option<Box<HostTraps>>,
    shape: Shape,
    sameness: Sameness,
    /// What it says is known.
    fed: Fed,
}

impl Watch<'_> {
    fn kin(&self, link: &crate::url::CrawlUrl, shape: &Shape) -> Kin {
        Kin::of((&self.page.url, &self.shape), (link, shape))
    }

    /// Looks at the links that turned out to be new.
    pub(super) fn look(&mut self, links: &[Link], new: &[bool]) {
        for (link, new) in links.iter().zip(new) {
            if *new {
                let kin = self.kin(&link.url, &Shape::of(&link.url));
                self.fed.count(kin);
            }
        }
    }
}

impl Shard {
    /// Will what a page of this host says be looked at?
    pub(super) fn is_watched(&mut self, id: HostId) -> bool {
        let host = self.host(id);
        host.traps.is_some() || host.fetched + 1 >= WATCH_FROM
    }

    /// Does the shard want to know what this page says?
    pub(super) fn wants_to_read(&mut self, id: HostId, what: &What) -> bool {
        let watched = self.is_watched(id);
        match (what, &self.host(id).traps) {
            (What::Page { place, item }, Some(traps)) => watched && traps.wants(&item.url, place.sequence),
            _ => watched,
        }
    }

    /// What an earlier run knew of a host's traps.
    pub fn load_traps(&mut self, id: HostId, row: &[u8]) {
        if id as usize >= self.hosts.len() {
            return;
        }
        let policy = self.policy(id);
        if let Some(traps) = HostTraps::from_row(row, policy) {
            self.host(id).traps = Some(Box::new(traps));
            self.remember_watched(id);
        }
    }

    fn policy(&mut self, id: HostId) -> Policy {
        let name = self.host(id).name.clone();
        self.settings.traps.of(&name)
    }

    fn remember_watched(&mut self, id: HostId) {
        self.watched.push_back(id);
        while self.watched.len() > MAX_WATCHED {
            if let Some(old) = self.watched.pop_front() {
                self.host(old).traps = None;
            }
        }
    }

    /// Begins to look at a page that was read. Its host's state is out of its place until [`Shard::watched_more`].
    pub(super) fn watch<'a>(&mut self, page: &'a Item, content: Option<Content>) -> Option<Watch<'a>> {
        let content = content?;
        let host = self.names.get(page.url.host_key()).copied()?;
        if self.settings.traps.off {
            return None;
        }
        let mut traps = self.host(host).traps.take();
        if traps.is_none() && self.is_watched(host) {
            let policy = self.policy(host);
            self.remember_watched(host);
            traps = Some(Box::new(HostTraps::new(policy)));
        }
        let read = content != Content::UNREAD;
        let sameness = match &mut traps {
            Some(traps) if read => traps.read(content),
            _ => Sameness::UNREAD,
        };
        Some(Watch {
            page,
            host,
            traps,
            shape: Shape::of(&page.url),
            sameness,
            fed: Fed::default(),
        })
    }

    /// Takes out the links that are traps. What was seen before stays and is counted as seen.
    pub(super) fn weed(&mut self, watch: &Watch<'_>, fact: &mut Fact, links: &mut Vec<Link>) {
        let lineage = watch.page.path.lineage;
        let Some(traps) = &watch.traps else { return };
        let long = traps.is_long(lineage) && self.leads_nowhere_else(watch, links);
        if !(traps.is_armed() || long) {
            return;
        }
        let seen = &self.seen;
        links.retain(|link| {
            if link.kind != LinkKind::Navigation || link.seed.is_some() {
                return true;
            }
            let shape = Shape::of(&link.url);
            let kin = watch.kin(&link.url, &shape);
            // the evidence against the page itself is complete only with its new links; that of its kind is there
            let fed = Fed {
                own: usize::from(long),
                ..Fed::default()
            };
            let child = HostTraps::inherit(lineage, kin, watch.sameness, fed);
            let rule = traps.drops(&shape, child, false).or_else(|| {
                let same_host = link.url.host_key() == watch.page.url.host_key();
                (same_host && traps.is_over_budget(&shape)).then_some(Rule::ShapeBudget)
            });
            let Some(rule) = rule else { return true };
            if seen.contains(link.print) {
                return true;
            }
            fact.delta.links.trap += 1;
            fact.delta.traps.push((rule.word(), 1));
            fact.dropped.push(Dropped {
                url: link.url.clone(),
                rule,
            });
            false
        });
    }

    /// Does a page at the end of a long row bring nothing but the next of its shape?
    fn leads_nowhere_else(&self, watch: &Watch<'_>, links: &[Link]) -> bool {
        let mut fed = Fed::default();
        for link in links.iter().filter(|link| !self.seen.contains(link.print)) {
            fed.count(watch.kin(&link.url, &Shape::of(&link.url)));
        }
        fed.others == 0
    }

    /// Gives a new URL its lineage and says whether it goes to the back of its queue.
    pub(super) fn place_in_line(
        &mut self,
        watch: Option<&mut Watch<'_>>,
        from: Option<&Item>,
        id: HostId,
        item: &mut Item,
    ) -> bool {
        if item.path.kind == LinkKind::Redirect {
            // a redirect is no page: what it leads to stands where it stood itself
            item.path.lineage = from.map_or_else(Lineage::default, |from| from.path.lineage);
        }
        let Some(watch) = watch else {
            let Some(traps) = &mut self.host(id).traps else {
                return false;
            };
            return traps.admit(&item.url, &Shape::of(&item.url), item.path.lineage);
        };
        let shape = Shape::of(&item.url);
        if item.path.kind == LinkKind::Navigation {
            let kin = watch.kin(&item.url, &shape);
            item.path.lineage = HostTraps::inherit(watch.page.path.lineage, kin, watch.sameness, watch.fed);
        }
        let traps = if id == watch.host {
            &mut watch.traps
        } else {
            &mut self.host(id).traps
        };
        match traps {
            Some(traps) => traps.admit(&item.url, &shape, item.path.lineage),
            None => false,
        }
    }

    /// A page was looked at: what it taught is kept.
    pub(super) fn watched_more(&mut self, watch: Watch<'_>, fact: &mut Fact) {
        let Some(mut traps) = watch.traps else { return };
        if watch.sameness.read {
            let lineage = watch.page.path.lineage;
            traps.learn(&watch.shape, lineage, watch.sameness, watch.fed);
        }
        if let Some(row) = traps.row_if_due() {
            fact.traps = Some((watch.host, row));
        }
        self.host(watch.host).traps = Some(traps);
    }

    /// Settles the first URL of a host, which is a trap.
    pub(super) fn settle_trap(&mut self, id: HostId, rule: Rule) -> Next {
        let shape = self.host(id).queue.front().map(|(_, item)| Shape::text(&item.url));
        let why = format!("trap: {rule} ({}): {}", shape.unwrap_or_default(), rule.says());
        let mut next = self.settle(id, why, TRAPPED);
        if let Next::Settle(settlement) = &mut next {
            settlement.fact.delta.traps.push((rule.word(), 1));
        }
        next
    }
}
