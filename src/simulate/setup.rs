//! What the crawler's own parts are told for a simulation.

use std::io;
use std::time::Duration;

use super::Settings;
use crate::hash::HashKey;
use crate::politeness::Patience;
use crate::scope::{Scope, ScopeKind, Sitemaps};
use crate::{seen, shard, traps};

/// The key of the hash follows from the seed, so that a run can be repeated. A crawl's key is random.
pub(super) fn key(seed: u64) -> HashKey {
    let halves = [seen::mixed(seed), seen::mixed(seed ^ 1)].map(u64::to_le_bytes);
    let mut key = [0; 16];
    key.iter_mut()
        .zip(halves.as_flattened())
        .for_each(|(to, from)| *to = *from);
    HashKey(key)
}

pub(super) fn of_shard(settings: &Settings) -> shard::Settings {
    shard::Settings {
        patience: Patience {
            delay: settings.delay,
            delay_factor: 0.0,
            max_wait: Duration::from_secs(30),
            backoff_base: Duration::from_secs(1),
            max_failures: 5,
            global_rate: None,
        },
        robots: true,
        agent: "crawler".to_owned(),
        per_host: 1,
        retries: 2,
        max_pages_per_host: None,
        own: shard::Own::default(),
        per_address: false,
        sitemaps: Sitemaps::No,
        max_sitemap_urls: u64::MAX,
        // a web without end is what this is about
        traps: traps::Settings {
            off: true,
            overrides: Vec::new(),
        },
    }
}

/// Everything is in scope.
pub(super) fn everywhere() -> io::Result<Scope> {
    Scope::new(ScopeKind::Any, &[], &[], None).map_err(io::Error::other)
}
