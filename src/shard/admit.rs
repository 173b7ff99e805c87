//! Links in: tested against the seen-set, and the new ones queued with their hosts.

use super::Shard;
use super::WINDOW_ITEMS;
use super::fact::{Fact, Link};
use crate::clock::Time;
use crate::extract::LinkKind;
use crate::frontier::{Asked, HostId, Item, Path, Place};
use crate::stats::{Delta, LinkCounts};
use crate::traps::{Content, Lineage, Shape};
use crate::url::CrawlUrl;

/// A page, the `Cookie` header that was sent for it, and what it says.
pub(super) type From<'a> = (&'a Item, Option<&'a str>, Option<Content>);

impl Shard {
    /// Offers the seeds, in order: the first fact of a job.
    pub fn offer_seeds(&mut self, seeds: Vec<Link>, counts: LinkCounts, now: Time) -> Fact {
        let mut fact = self.new_fact();
        fact.seeds_offered = true;
        self.admit(&mut fact, seeds, counts, None, now);
        fact
    }

    /// Tests links against the seen-set and queues the new ones.
    pub(super) fn admit(
        &mut self,
        fact: &mut Fact,
        mut links: Vec<Link>,
        counts: LinkCounts,
        from: Option<From<'_>>,
        now: Time,
    ) {
        fact.delta.links = counts;
        self.leave_robots_txt(fact, &mut links);
        self.admit_some(fact, links, from, now);
    }

    /// A robots.txt is fetched as the first work of its host: a link to it asks for nothing more.
    fn leave_robots_txt(&self, fact: &mut Fact, links: &mut Vec<Link>) {
        if self.settings.robots {
            let found = links.len();
            links.retain(|link| link.url.path_and_query() != "/robots.txt");
            fact.delta.links.seen += (found - links.len()) as u64;
        }
    }

    /// Admits the links of a sitemap, as many as the job's share of them allows. Those that are left were never found:
    /// they count as dropped.
    pub(super) fn admit_listed(
        &mut self,
        fact: &mut Fact,
        mut links: Vec<Link>,
        counts: LinkCounts,
        from: From<'_>,
        now: Time,
    ) {
        fact.delta.links = counts;
        self.leave_robots_txt(fact, &mut links);
        let most = self.settings.max_sitemap_urls;
        let before = self.listed;
        while !links.is_empty() && self.listed < most {
            // what was seen before costs nothing of the share, so several rounds may be needed
            let room = usize::try_from(most - self.listed).unwrap_or(usize::MAX);
            let later = links.split_off(room.min(links.len()));
            let admitted = fact.delta.links.admitted;
            self.admit_some(fact, links, Some(from), now);
            self.listed += fact.delta.links.admitted - admitted;
            links = later;
        }
        fact.listed_left = links.len() as u64;
        fact.delta.links.found -= fact.listed_left;
        fact.delta.left.links += fact.listed_left;
        fact.listed = (self.listed > before).then_some(self.listed);
    }

    /// `from` is the page they stand on, the `Cookie` header that was sent for it, and what it says.
    fn admit_some(&mut self, fact: &mut Fact, mut links: Vec<Link>, from: Option<From<'_>>, now: Time) {
        let mut watch = from.and_then(|(item, _, content)| self.watch(item, content));
        if let Some(watch) = &mut watch {
            self.weed(watch, fact, &mut links);
        }
        let from = from.map(|(item, cookie, _)| (item, cookie));
        let prints: Vec<_> = links.iter().map(|link| link.print).collect();
        let mut flags = std::mem::take(&mut self.new_flags);
        self.seen.insert_batch(&prints, &mut flags);
        if let Some(watch) = &mut watch {
            watch.look(&links, &flags);
        }
        let mut changed = Vec::new();
        // requests that the chain of redirects up to here has made, and those it makes now
        let mut chain = from.map(|(item, _)| item.path.chain.clone()).unwrap_or_default();
        chain.extend(from.map(|(item, cookie)| Asked::of(&item.url, cookie)));
        let from = from.map(|(item, _)| item);
        let made = chain.len();
        for (link, new) in links.into_iter().zip(&flags) {
            if *new {
                fact.prints.push(link.print);
            } else if !(link.kind == LinkKind::Redirect && self.comes_back_otherwise(&mut chain, &link.url, now)) {
                fact.delta.links.seen += 1;
                continue;
            }
            fact.delta.links.admitted += 1;
            fact.shapes.push(Shape::text(&link.url));
            let redirected = link.kind == LinkKind::Redirect;
            let path = Path {
                depth: link.depth,
                hops: match from {
                    Some(item) => item.path.hops_to(link.kind),
                    // a seed's sitemap is no seed
                    None if link.kind == LinkKind::Sitemap => link.kind.letter().into(),
                    None => String::new(),
                },
                via: from.map(|item| item.url.href().to_owned()),
                kind: link.kind,
                requisites: link.requisites,
                redirects: link.redirects,
                outside: link.outside,
                seed: link.seed,
                tries: 0,
                chain: chain
                    .get(..if redirected { made } else { 0 })
                    .unwrap_or_default()
                    .to_vec(),
                lastmod: link.lastmod,
                lineage: Lineage::default(),
                offsite: link.offsite,
                origin: link.origin,
            };
            let id = self.host_of(&link.url, &mut fact.delta, now);
            let mut item = Item { url: link.url, path };
            let back = self.place_in_line(watch.as_mut(), from, id, &mut item);
            let priority = Place::priority(item.path.depth, back);
            if self.push(id, item, priority, &mut fact.put) {
                changed.push(id);
            }
        }
        self.new_flags = flags;
        if let Some(watch) = watch {
            self.watched_more(watch, fact);
        }
        for id in changed {
            let row = self.host(id).row();
            fact.hosts.push((id, row));
        }
    }

    /// A redirect back to a page of its own chain is followed if it makes a request that the chain has not made: the same
    /// page spelled otherwise (`/a` leads to `/a/`, where the two are one page), or with other cookies. Without that the
    /// page itself would never be asked for. The request is added to the chain.
    fn comes_back_otherwise(&self, chain: &mut Vec<Asked>, target: &CrawlUrl, now: Time) -> bool {
        let asked = Asked::of(target, self.cookie(target, now).as_deref());
        let other = chain.iter().any(|before| before.page == asked.page)
            && chain.iter().all(|before| before.request != asked.request);
        if other {
            chain.push(asked);
        }
        other
    }

    pub(super) fn host_of(&mut self, url: &CrawlUrl, delta: &mut Delta, now: Time) -> HostId {
        if let Some(id) = self.names.get(url.host_key()) {
            return *id;
        }
        let id = self.id(self.hosts.len());
        delta.hosts += 1;
        self.names.insert(url.host_key().into(), id);
        let host = self.new_host(url.host_key(), now);
        self.hosts.push(host);
        id
    }

    /// Queues an item; tells whether the host's row must be stored, because its cursor must go back.
    pub(super) fn push(
        &mut self,
        id: HostId,
        item: Item,
        priority: u16,
        put: &mut Vec<(HostId, Place, Vec<u8>)>,
    ) -> bool {
        let place = Place {
            priority,
            sequence: self.next_sequence,
        };
        self.next_sequence += 1;
        put.push((id, place, item.to_row()));
        let keep = self.window < WINDOW_ITEMS;
        let host = self.host(id);
        let before = host.queue.in_memory();
        host.queue.push(place, item, keep);
        let after = host.queue.in_memory();
        let stored = host.low;
        if place < stored {
            host.low = place;
        }
        self.window = (self.window + after).saturating_sub(before);
        if self.host(id).in_flight < self.settings.per_host {
            self.schedule(id);
        }
        place < stored
    }
}
