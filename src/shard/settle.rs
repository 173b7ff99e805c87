//! What is settled without a request.

use super::{Next, ROBOTS_PRECLUDED, ROBOTS_UNREACHABLE, SeedResult, Settlement, Shard, TRAPPED};
use crate::frontier::HostId;
use crate::stats::Settled;

impl Shard {
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
