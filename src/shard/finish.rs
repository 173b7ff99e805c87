//! What a finished request changes: the URL's fate, the host's mood and rest, the links it brought.

use std::sync::Arc;
use std::time::Duration;

use super::fact::{Done, End, Fact, Fault, Link, RobotsBody, SeedResult, What, Work};
use super::host::{Access, GIVEN_UP, Mood, Retired};
use super::{Errand, MAX_DETOURS, ROBOTS_REDIRECTS, Shard};
use crate::clock::Time;
use crate::frontier::{HostId, Item, Place};
use crate::politeness;
use crate::robots::Robots;
use crate::stats::{Left, LinkCounts, Settled};
use crate::traps::Content;
use crate::url::{CrawlUrl, Scheme};

/// How a request went, as the host's patience sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    /// An answer to work with.
    Good,
    /// An answer, but one that asks for time (429, 503).
    Busy,
    /// A fault of the page rather than of the host (500, 502, 504, a body cut short).
    Faulty,
    /// No answer.
    Dead,
    /// No answer, and no word about the host: it was not reached for.
    Unknown,
}

/// Wait doubles with each failure in a row; a faulty page slows its host no further than this many.
const FAULTY_MAX: u32 = 3;

fn health(end: &End) -> Health {
    match end {
        End::Failed { fault: Fault::Form, .. } => Health::Good,
        End::Failed {
            fault: Fault::Proxy, ..
        } => Health::Unknown,
        End::Failed { .. } => Health::Dead,
        End::Answered { status: 429 | 503, .. } => Health::Busy,
        End::Answered {
            status: 500 | 502 | 504,
            ..
        }
        | End::Answered { cut_short: true, .. } => Health::Faulty,
        End::Answered { .. } | End::Found(_) => Health::Good,
    }
}

/// What was found on a page.
struct Found {
    links: Vec<Link>,
    counts: LinkCounts,
    /// The page is a sitemap.
    listed: bool,
    /// The `Cookie` header that was sent for the page.
    cookie: Option<String>,
    content: Option<Content>,
}

impl Shard {
    /// Takes in a finished request and says what must be stored. `now` is when the loop saw it; the host rests from
    /// `done.at`.
    pub fn finish(&mut self, done: Done, now: Time) -> Fact {
        let Done {
            work,
            end,
            at,
            took,
            links,
            counts,
            left,
            met,
            blocked,
            listed,
            skipped,
            robots,
            set_cookies,
            content,
            traps,
            repeated,
        } = done;
        let mut fact = self.new_fact();
        if let Some(jar) = &mut self.jar {
            // before the links: where this answer redirects to is asked for with what it set
            fact.cookies = jar.receive(work.url(), &set_cookies, now);
        }
        let Work {
            host: id,
            what,
            way,
            cookie,
            gap_us,
            too_early,
            read: _,
            rest: _,
        } = work;
        if matches!(what, What::Address(_)) {
            self.in_flight -= 1;
            self.host(id).in_flight -= 1;
            self.settle_address(id, end, now);
            return fact;
        }
        fact.met = met;
        fact.delta.gap_us = gap_us;
        fact.delta.violations = u64::from(too_early);
        fact.delta.left = left;
        fact.delta.skipped = skipped;
        fact.delta.repeats = u64::from(repeated);
        fact.delta.traps = traps.iter().map(|(rule, count)| (rule.word(), *count)).collect();
        if let End::Answered { received, decoded, .. } = &end {
            fact.delta.received = *received;
            fact.delta.decoded = *decoded;
        }
        self.in_flight -= 1;
        self.host(id).in_flight -= 1;
        let health = health(&end);
        self.outlet.met(&end, at);
        match what {
            What::Page { place, item } => {
                let origin = item.path.origin;
                self.change_mood(id, health, &end, &mut fact);
                let found = Found {
                    links,
                    counts,
                    listed,
                    cookie,
                    content,
                };
                self.settle_page(id, place, item, &end, health, &mut fact, found, now);
                self.landed_under(origin);
            }
            What::Robots(errand) => {
                self.settle_robots(id, &errand, &end, robots, &mut fact, at);
                // in the same fact as the rules: a robots.txt that is known has given its sitemaps
                self.admit(&mut fact, links, counts, Some((&errand.page(), None, None)), now);
                let for_another = errand.owner != id;
                self.slow_down(id, health, for_another, &end, &mut fact);
            }
            What::Address(_) => unreachable!("taken in above"),
        }
        // an answer that is asked for again gives no links yet
        fact.delta.blocked = blocked.min(fact.delta.links.out_of_scope);
        self.count_forbidden(id, &end);
        self.rest(id, &end, at, took, &mut fact);
        if let Some(ip) = way.address() {
            self.arrive(id, ip, at);
        }
        let row = self.host(id).row();
        fact.hosts.retain(|(other, _)| *other != id);
        fact.hosts.push((id, row));
        self.schedule(id);
        fact
    }

    /// Failures in a row, and the end of a host's patience.
    fn change_mood(&mut self, id: HostId, health: Health, end: &End, fact: &mut Fact) {
        let most = self.settings.patience.max_failures;
        let host = self.host(id);
        if matches!(host.mood, Mood::Retired(_)) {
            return;
        }
        let failures = host.failures() + 1;
        host.mood = match health {
            Health::Good => Mood::Sound,
            Health::Faulty => Mood::Failing(failures.min(FAULTY_MAX)),
            Health::Busy | Health::Dead if failures >= most => {
                fact.delta.retired = true;
                Mood::Retired(Retired {
                    code: code(end),
                    why: format!(
                        "host retired after {failures} failures in a row, the last: {}",
                        said(end)
                    ),
                })
            }
            Health::Busy | Health::Dead => Mood::Failing(failures),
            Health::Unknown => return,
        };
    }

    /// A failed robots.txt slows its host like any other request. Whether the host is given up for its own is decided
    /// elsewhere; for those of other hosts it is when it never answers: many may have moved theirs to it, and each
    /// would wait for it anew.
    fn slow_down(&mut self, id: HostId, health: Health, for_another: bool, end: &End, fact: &mut Fact) {
        if for_another && health == Health::Dead {
            self.change_mood(id, health, end, fact);
            return;
        }
        let host = self.host(id);
        let failures = host.failures() + 1;
        match (&host.mood, health) {
            (Mood::Retired(_), _) | (_, Health::Unknown) => {}
            (_, Health::Good) => host.mood = Mood::Sound,
            _ => host.mood = Mood::Failing(failures),
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one finished request, taken apart one line above"
    )]
    fn settle_page(
        &mut self,
        id: HostId,
        place: Place,
        mut item: Item,
        end: &End,
        health: Health,
        fact: &mut Fact,
        found: Found,
        now: Time,
    ) {
        self.host(id).queue.settled(place);
        fact.remove = Some((id, place));
        if health == Health::Unknown || self.detours(id, end) {
            fact.delta.settled = Settled::Retry;
            self.push(id, item, place.priority, &mut fact.put);
            return;
        }
        item.path.tries = item.path.tries.saturating_add(1);
        fact.tries = item.path.tries;
        let tries_left = u32::from(item.path.tries) <= self.settings.retries;
        let may_help = !matches!(
            end,
            End::Failed {
                fault: Fault::Final,
                ..
            }
        );
        let retired = matches!(self.host(id).mood, Mood::Retired(_));
        if health != Health::Good && tries_left && may_help && !retired {
            fact.delta.settled = Settled::Retry;
            // of its links only those of the last answer count
            fact.delta.left = Left::default();
            fact.delta.traps.clear();
            self.push(id, item, place.priority, &mut fact.put);
            return;
        }
        match end {
            End::Answered { status, mime, .. } => {
                self.host(id).fetched += 1;
                fact.seed_pages = self.fetched_under(item.path.origin);
                fact.delta.settled = Settled::Fetched {
                    status: *status,
                    mime: mime.clone(),
                };
                fact.seed = item.path.seed.map(|number| (number, SeedResult::Answered(*status)));
                fact.widen = found
                    .links
                    .iter()
                    .find(|link| link.seed.is_some() && link.url.host_key() != item.url.host_key())
                    .map(|link| (link.url.href().to_owned(), link.origin));
                let from = (&item, found.cookie.as_deref(), found.content);
                if found.listed {
                    self.admit_listed(fact, found.links, found.counts, from, now);
                } else {
                    self.admit(fact, found.links, found.counts, Some(from), now);
                }
            }
            End::Found(_) => {}
            End::Failed { reason, detail, .. } => {
                fact.delta.settled = Settled::Failed {
                    reason: (*reason).to_owned(),
                };
                fact.seed = item
                    .path
                    .seed
                    .map(|number| (number, SeedResult::Failed(detail.clone())));
            }
        }
    }

    /// What an answer for a robots.txt means (RFC 9309 section 2.3.1).
    fn settle_robots(
        &mut self,
        asked: HostId,
        errand: &Errand,
        end: &End,
        body: Option<RobotsBody>,
        fact: &mut Fact,
        at: Time,
    ) {
        fact.delta.settled = Settled::RobotsTxt;
        let (owner, scheme) = (errand.owner, errand.scheme);
        let access = match (end, body) {
            (End::Failed { .. }, _) => self.robots_failed(asked, errand, end, fact, at),
            // rules that did not come may forbid what those that came allow
            (End::Answered { status, cut_short, .. }, _)
                if *status == 429 || *status >= 500 || *cut_short && *status / 100 == 2 =>
            {
                self.robots_failed(asked, errand, end, fact, at)
            }
            (End::Answered { status: 200..=299, .. }, Some(RobotsBody::Rules { rules, bytes })) => {
                fact.robots = Some((owner, scheme, bytes));
                self.keep_rules(owner, scheme, rules, at, fact.number)
            }
            (End::Answered { .. }, Some(RobotsBody::Redirect(url))) if errand.hop < ROBOTS_REDIRECTS => {
                self.send_errand(url, errand, fact, at);
                return;
            }
            (End::Answered { .. } | End::Found(_), _) => Access::AllowAll(at),
        };
        self.host(owner).set_access(scheme, access);
        if owner != asked {
            // the rules may ask for a longer rest than the one that the owner was given when it answered
            let delay = self.delay(owner);
            let host = self.host(owner);
            if let Some(end) = host.rested_from {
                host.due = host.due.max(end + delay);
            }
            let row = self.host(owner).row();
            fact.hosts.push((owner, row));
            self.schedule(owner);
        }
    }

    /// The robots.txt has moved: it is asked for where it is now, when that host's turn comes.
    fn send_errand(&mut self, url: CrawlUrl, from: &Errand, fact: &mut Fact, at: Time) {
        let target = self.host_of(&url, &mut fact.delta, at);
        let hop = from.hop + 1;
        let errand = Errand {
            url,
            hop,
            ..from.clone()
        };
        self.host(target).errands.push_back(errand);
        // a host may be new here: its id is taken from now on, so its row must be there too
        let row = self.host(target).row();
        fact.hosts.push((target, row));
        self.schedule(target);
    }

    /// A robots.txt that moved to a host that was given up cannot be had. No fact: a restart finds out again.
    pub(super) fn fail_errand(&mut self, errand: &Errand, now: Time) {
        self.host(errand.owner)
            .set_access(errand.scheme, Access::DisallowAll(now));
        self.schedule(errand.owner);
    }

    fn keep_rules(&mut self, owner: HostId, scheme: crate::url::Scheme, rules: Robots, at: Time, fact: u64) -> Access {
        let delay = rules.crawl_delay();
        let longer = delay.is_some_and(|delay| delay > self.patience(owner).delay);
        if longer {
            self.host(owner).hold = fact;
        }
        let bytes = rules.memory_bytes();
        self.host(owner).set_access(
            scheme,
            Access::Rules {
                at,
                rules: Some(Arc::new(rules)),
                delay,
            },
        );
        self.remember_robots(owner, scheme, bytes);
        self.host(owner).access(scheme).clone()
    }

    /// Asks again while tries are left. Then an origin that never answered at all is given up, and one whose robots.txt
    /// alone is broken is taken to disallow everything.
    fn robots_failed(&mut self, asked: HostId, errand: &Errand, end: &End, fact: &mut Fact, at: Time) -> Access {
        let retries = self.settings.retries;
        let detours = self.detours(errand.owner, end);
        let host = self.host(errand.owner);
        let tries = match host.access(errand.scheme) {
            Access::Fetching(tries) => *tries,
            _ => 0,
        };
        if detours || health(end) == Health::Unknown {
            return Access::Due(tries);
        }
        let may_help = !matches!(
            end,
            End::Failed {
                fault: Fault::Final,
                ..
            }
        );
        if tries < retries && may_help {
            return Access::Due(tries + 1);
        }
        if matches!(end, End::Failed { .. }) && host.fetched == 0 && asked == errand.owner {
            let other = match errand.scheme {
                Scheme::Http => Scheme::Https,
                Scheme::Https => Scheme::Http,
            };
            fact.delta.retired = !matches!(
                host.access(other),
                Access::Silent(_) | Access::AllowAll(_) | Access::Rules { .. }
            );
            return Access::Silent(Retired {
                code: code(end),
                why: said(end),
            });
        }
        Access::DisallowAll(at)
    }

    /// May the request be made again, in another way, without being counted as a retry? A host that never has enough of
    /// this has no more of it in the end.
    fn detours(&mut self, id: HostId, end: &End) -> bool {
        let host = self.host(id);
        let may = matches!(end, End::Failed { fault: Fault::Form, .. }) && host.detours < MAX_DETOURS;
        host.detours += u32::from(may);
        may
    }

    /// Answers of 403 in a row. One of 429 or 503 and a request without an answer say neither that we are shut out nor
    /// that we are not.
    fn count_forbidden(&mut self, id: HostId, end: &End) {
        let host = self.host(id);
        host.forbidden = match end {
            End::Answered { status: 403, .. } => host.forbidden.saturating_add(1),
            End::Answered { status: 429 | 503, .. } | End::Failed { .. } | End::Found(_) => host.forbidden,
            End::Answered { .. } => 0,
        };
    }

    /// The host's rest after a request that ended at `at`.
    fn rest(&mut self, id: HostId, end: &End, at: Time, took: Duration, fact: &mut Fact) {
        let delay = self.delay(id);
        let connections = u32::try_from(self.settings.per_host).unwrap_or(u32::MAX).max(1);
        let took = match end {
            End::Answered { .. } => took / connections,
            End::Failed { .. } | End::Found(_) => Duration::ZERO,
        };
        let (failures, forbidden) = (self.host(id).failures(), self.host(id).forbidden);
        let asked_for = match end {
            End::Answered {
                retry_after,
                status: 403 | 413 | 429 | 500..=599 | 300..=399,
                ..
            } => *retry_after,
            _ => None,
        };
        let asked = politeness::Asked {
            delay,
            took,
            retry_after: asked_for,
            failures,
            forbidden,
        };
        let patience = self.patience(id);
        let (rest, rule) = politeness::rest(&patience, &asked);
        let due = politeness::next_due(at, rest);
        let pause = politeness::stretched(&patience, took);
        let number = fact.number;
        let host = self.host(id);
        host.pause = pause;
        if matches!(host.mood, Mood::Retired(_)) {
            // nothing more is asked of it: what waits is only written down
            host.due = at;
        } else {
            host.due = host.due.max(due);
            fact.rest = Some((rest, rule));
        }
        host.rested_from = Some(host.rested_from.map_or(at, |end| end.max(at)));
        if asked_for.is_some_and(|wait| wait > Duration::ZERO) {
            host.hold = number;
        }
    }
}

/// The code of crawl.log for a URL that is given up because of this.
fn code(end: &End) -> i32 {
    match end {
        End::Failed { code, .. } => *code,
        End::Answered { .. } | End::Found(_) => GIVEN_UP,
    }
}

fn said(end: &End) -> String {
    match end {
        End::Failed { detail, .. } => detail.clone(),
        End::Answered { status, .. } => format!("HTTP status {status}"),
        End::Found(ip) => format!("found at {ip}"),
    }
}
