//! Settings → plan: the one place that hands [`Config`] to the parts, as plain values; and the seeds as links.

use std::collections::HashSet;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use super::{CrawlError, Plan};
use crate::archive::warc::WarcInfo;
use crate::config::Config;
use crate::cookies::txt::Imported;
use crate::extract::LinkKind;
use crate::extract::fields::Fields;
use crate::fetch::body::Spool;
use crate::fetch::dns::AddressPolicy;
use crate::fetch::http::{self, HttpSettings};
use crate::hash::{Fingerprint, HashKey};
use crate::ledger::ArchiveSettings;
use crate::politeness::Patience;
use crate::robots;
use crate::scope::blocklist::Blocklist;
use crate::scope::reach::{Reach, Seed};
use crate::scope::{OutReason, Scope, Sitemaps, Verdict};
use crate::shard::{self, Link, seed_number};
use crate::stats::LinkCounts;
use crate::store;
use crate::url::Identity;
use crate::visit::judge::usual_place;

pub(super) fn plan(
    config: &Config,
    seeds: &[Seed],
    cookies: Option<Imported>,
    blocklist: Option<Arc<Blocklist>>,
    job: &FilePath,
) -> Result<Plan, CrawlError> {
    let scope = Scope::new(config.scope, &config.include, &config.exclude, config.max_depth)
        .map(|scope| {
            scope
                .with_surts(&config.scope_surts)
                .with_offsite_hops(config.offsite_hops)
                .with_blocklist(blocklist)
        })
        .map_err(|error| CrawlError::Usage(error.to_string()))?;
    let fields = Fields::compile(&config.builtins, &config.fields).map_err(CrawlError::Usage)?;
    let archive = config.archive.then(|| ArchiveSettings {
        prefix: config.warc_prefix.clone(),
        size: config.warc_size,
        info: warc_info(config, job),
    });
    Ok(Plan {
        shard: shard::Settings {
            patience: Patience {
                delay: config.delay,
                delay_factor: config.delay_factor,
                max_wait: config.max_wait,
                backoff_base: Duration::from_secs(1),
                max_failures: config.max_host_failures,
                global_rate: config.rate,
            },
            robots: config.robots,
            agent: robots::product_token(&config.user_agent).to_owned(),
            per_host: config.per_host_connections,
            retries: config.retries,
            max_pages_per_host: config.max_pages_per_host,
            own: shard::Own {
                hosts: config.hosts.clone(),
                ..shard::Own::default()
            },
            // behind a proxy that looks names up no address is known
            per_address: config.delay_per_address && !config.proxy.as_deref().is_some_and(http::looks_up_names),
            sitemaps: match (config.sitemaps_only, config.sitemaps) {
                (true, _) => Sitemaps::Only,
                (false, true) => Sitemaps::Yes,
                (false, false) => Sitemaps::No,
            },
            max_sitemap_urls: config.max_sitemap_urls,
            traps: config.traps.clone(),
        },
        concurrency: config.concurrency,
        identity: Identity::with(config.rules.clone()),
        seeds: seeds.to_vec(),
        scope,
        secrets: http::secrets(&config.header, &config.auth, config.proxy.as_deref()),
        no_secrets: config.no_secrets,
        keep_cookies: config.keep_cookies || cookies.is_some(),
        cookies,
        requisites: config.page_requisites,
        speculative: config.speculative,
        obey_nofollow: config.obey_nofollow,
        obey_noindex: config.obey_noindex,
        archive,
        fields: (!fields.is_empty()).then_some(fields),
        links: config.links,
        max_decoded: config.max_body,
        seen: config.seen,
        seen_size: (config.capacity, config.fp_rate),
        checkpoint_every: config.checkpoint_every,
        max_pages: config.max_pages,
        max_bytes: config.max_bytes,
        max_time: config.max_time,
    })
}

fn warc_info(config: &Config, job: &FilePath) -> WarcInfo {
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned());
    WarcInfo {
        software: format!("crawler/{}", env!("CARGO_PKG_VERSION")),
        operator: config.contact.clone(),
        hostname,
        user_agent: config.user_agent.clone(),
        from: mail(config),
        robots: if config.robots { "obey" } else { "ignore" }.to_owned(),
        tls: config
            .insecure_tls
            .then(|| "certificates were not checked (--insecure-tls)".to_owned()),
        is_part_of: job
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
    }
}

/// The contact, if it is a mail address: it is sent as `From`.
fn mail(config: &Config) -> Option<String> {
    config
        .contact
        .clone()
        .filter(|contact| contact.contains('@') && !contact.contains("://"))
}

pub(super) fn http_settings(config: &Config, spool: Arc<Spool>) -> HttpSettings {
    HttpSettings {
        user_agent: config.user_agent.clone(),
        from: mail(config),
        headers: config.header.clone(),
        auth: config.auth.clone(),
        header_timeout: config.header_timeout,
        timeout: config.timeout,
        min_rate: config.min_rate,
        slow_after: SLOW_AFTER,
        max_body: config.max_body,
        filter: config.filter.clone(),
        spool,
        per_host_connections: config.per_host_connections,
        idle_connections: idle_connections(config.concurrency),
        // a little over the delay, so that a host's connection is there for its next turn
        idle_timeout: config.delay.min(config.max_wait) + Duration::from_secs(5),
        pins: config.resolve.clone(),
        addresses: AddressPolicy {
            allow: config.allow_address.clone(),
        },
        proxy: config.proxy.clone(),
        http2: config.http2,
        insecure_tls: config.insecure_tls,
    }
}

/// How long a body may stay below the minimum rate.
const SLOW_AFTER: Duration = Duration::from_secs(30);

/// Idle connections kept however many files may be open; about 25 KB each.
const MAX_IDLE: usize = 2_000;
/// Files that the archive, the logs, the runtime and the store, while it merges tables, have open.
const OWN_FILES: u64 = 64;

/// Files that are not requests' where the process may open so many.
#[must_use]
pub fn own_files(limit: u64) -> u64 {
    OWN_FILES + store::kept_open(limit)
}

/// Idle connections for which there are files, besides those of the requests in flight.
fn idle_connections(concurrency: usize) -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let left = limit.map_or(MAX_IDLE, |files| {
        usize::try_from(files.saturating_sub(own_files(files))).unwrap_or(usize::MAX)
    });
    left.saturating_sub(concurrency).clamp(1, MAX_IDLE)
}

/// The seeds as links.
#[derive(Default)]
pub(super) struct Offer {
    /// Each once, in order.
    pub(super) links: Vec<Link>,
    pub(super) counts: LinkCounts,
    /// Those that a blocklist names, among those out of scope.
    pub(super) blocked: u64,
    /// Each seed's number, for its outcome.
    pub(super) numbers: Vec<(u64, String)>,
}

/// The seeds as links; when a job goes on, only those that are new to it. Behind the seeds stand the sitemaps at the
/// usual place of their hosts, if sitemaps are read.
pub(super) fn seed_links(
    plan: &Plan,
    scope: &Reach,
    key: &HashKey,
    offered_before: bool,
    is_known: impl Fn(Fingerprint) -> bool,
) -> Offer {
    let mut offer = Offer::default();
    let Offer {
        links,
        counts,
        blocked,
        numbers,
    } = &mut offer;
    let mut met = HashSet::new();
    for seed in &plan.seeds {
        let url = &seed.url;
        let origin = seed.rules.as_ref().map_or(0, |_| seed_number(url, key));
        let print = key.fingerprint(url.canonical().as_bytes());
        if !met.insert(print) {
            if !offered_before {
                counts.found += 1;
                counts.seen += 1;
            }
            continue;
        }
        if scope.judge(url, 0, origin).0 == Verdict::Out(OutReason::Blocklist) {
            let why = scope.why(url, Verdict::Out(OutReason::Blocklist), origin);
            tracing::warn!("seed {url} is left: {why}");
            counts.found += u64::from(!offered_before);
            counts.out_of_scope += u64::from(!offered_before);
            *blocked += u64::from(!offered_before);
            continue;
        }
        numbers.push((print.high, url.href().to_owned()));
        if offered_before && is_known(print) {
            continue;
        }
        counts.found += 1;
        let kind = LinkKind::Navigation;
        let number = Some(print.high);
        links.push(Link {
            url: url.clone(),
            print,
            kind,
            depth: 0,
            requisites: 0,
            redirects: 0,
            outside: false,
            offsite: 0,
            seed: number,
            lastmod: None,
            origin,
        });
    }
    if plan.shard.sitemaps == Sitemaps::No {
        return offer;
    }
    let identity = Identity::default();
    let usual = |seed: &Seed| {
        let origin = seed.rules.as_ref().map_or(0, |_| seed_number(&seed.url, key));
        Some((usual_place(&seed.url, &identity)?, origin))
    };
    for (url, origin) in plan.seeds.iter().filter_map(usual) {
        let print = key.fingerprint(url.canonical().as_bytes());
        if !met.insert(print) || offered_before && is_known(print) {
            continue;
        }
        let (verdict, origin) = scope.judge_sitemap(&url, 1, origin);
        let outside = verdict == Verdict::Out(OutReason::Scope);
        if verdict != Verdict::In && !outside {
            counts.found += u64::from(!offered_before);
            counts.out_of_scope += u64::from(!offered_before);
            if verdict == Verdict::Out(OutReason::Blocklist) {
                *blocked += u64::from(!offered_before);
            }
            continue;
        }
        counts.found += 1;
        links.push(Link {
            url,
            print,
            kind: LinkKind::Sitemap,
            depth: 0,
            requisites: 0,
            redirects: 0,
            outside,
            offsite: 0,
            seed: None,
            lastmod: None,
            origin,
        });
    }
    offer
}
