//! What is settled without a request.

use super::{Next, ROBOTS_PRECLUDED, ROBOTS_UNREACHABLE, SeedResult, Settlement, Shard, TRAPPED};
use std::sync::Arc;

use crate::frontier::HostId;
use crate::scope::blocklist::Blocklist;
use crate::stats::Settled;
use crate::url::CrawlUrl;

impl Shard {
    /// Settles what this list names without a request: what was queued before the list had it.
    pub fn leave_blocked(&mut self, list: Arc<Blocklist>) {
        self.blocklist = Some(list);
    }

    pub(super) fn is_blocked(&self, url: &CrawlUrl) -> bool {
        self.blocklist.as_ref().is_some_and(|list| list.blocks(url).is_some())
    }

    /// The line that blocks the first URL of a host.
    pub(super) fn first_is_blocked(&mut self, id: HostId) -> Option<String> {
        let list = self.blocklist.clone()?;
        let (_, item) = self.host(id).queue.front()?;
        list.blocks(&item.url)
    }

    /// Settles the first URL of a host, which is blocked.
    pub(super) fn settle_blocked(&mut self, id: HostId, line: &str) -> Next {
        let mut next = self.settle(id, format!("blocklist: {line}"), TRAPPED);
        if let Next::Settle(settlement) = &mut next {
            settlement.fact.delta.settled = Settled::Failed {
                reason: "blocklist".to_owned(),
            };
        }
        next
    }

    /// Settles the first URL of a host without a request. `code` is that of crawl.log.
    pub(super) fn settle(&mut self, id: HostId, why: String, code: i32) -> Next {
        let robots = matches!(code, ROBOTS_PRECLUDED | ROBOTS_UNREACHABLE);
        let mut fact = self.new_fact();
        let host = self.host(id);
        #[expect(clippy::expect_used, reason = "called only when there is a front")]
        let (place, item) = host.queue.pop().expect("a front");
        host.queue.settled(place);
        fact.remove = Some((id, place));
        let seed = if code == ROBOTS_PRECLUDED {
            SeedResult::Robots
        } else {
            SeedResult::Failed(why.clone())
        };
        fact.seed = item.path.seed.map(|number| (number, seed));
        let reason = if code == TRAPPED { "trap" } else { "host retired" }.to_owned();
        fact.delta.settled = if robots {
            Settled::Robots
        } else {
            Settled::Failed { reason }
        };
        fact.tries = item.path.tries;
        self.window = self.window.saturating_sub(1);
        self.prefetch(id);
        self.schedule(id);
        Next::Settle(Box::new(Settlement { fact, item, why, code }))
    }
}
