//! What a run takes over from the store: the job's constants, its cookies, and the shard with filter and hosts.

use super::drive::Clock;
use super::{CrawlError, Plan};
use crate::checkpoint;
use crate::cookies::Jar;
use crate::disk::Disk;
use crate::hash::HashKey;
use crate::ledger::{self, Found, JobRow};
use crate::seen::Kind;
use crate::shard::Shard;
use crate::store::Store;
use crate::url::Identity;

/// The job's cookies, if this run keeps cookies.
pub(super) fn jar(plan: &Plan, store: &dyn Store) -> Result<Option<Jar>, CrawlError> {
    if !plan.keep_cookies {
        return Ok(None);
    }
    let jar = ledger::cookies(store);
    jar.map(Some)
        .map_err(|error| CrawlError::State(format!("state/store: {error}; start over beside it with --fresh")))
}

/// The job's constants; a job keeps its rules of identity.
pub(super) fn job_row(found: &Found, identity: &Identity) -> Result<JobRow, CrawlError> {
    match &found.job {
        Some(job) if job.identity.version != identity.version => Err(CrawlError::State(format!(
            "the job was made with version {} of the rules that tell two URLs apart, this program has version {}; \
             finish it with the program that began it, or start over beside it with --fresh",
            job.identity.version, identity.version
        ))),
        Some(job) if job.identity.rules != identity.rules => Err(CrawlError::Usage(format!(
            "the job was begun with other rules for what counts as one page ({}; now: {}): its seen-set and this run \
             would not agree; go on with the settings of the job, or start over beside it with --fresh",
            job.identity.rules, identity.rules
        ))),
        Some(job) => Ok(job.clone()),
        None => {
            let key = HashKey::random().map_err(|error| CrawlError::Other(format!("no random key: {error}")))?;
            Ok(JobRow {
                key,
                identity: identity.clone(),
            })
        }
    }
}

/// Passwords are not stored with a job: a run that was given fewer than the one before would go on as a stranger, and
/// nobody would see.
pub(super) fn check_secrets(plan: &Plan, found: &Found) -> Result<(), CrawlError> {
    let missing = found.secrets.iter().filter(|name| !plan.secrets.contains(name));
    let missing: Vec<&str> = missing.map(String::as_str).collect();
    if missing.is_empty() || plan.no_secrets {
        return Ok(());
    }
    Err(CrawlError::Usage(format!(
        "the job was begun with {}, which this run was not given (passwords are not stored with a job): give it again, or \
         --no-secrets to go on without",
        missing.join(", ")
    )))
}

/// The keys of an exact seen-set are in the store; a job whose set was of another kind gets them from its log.
pub(super) fn fill(kind: Kind, found: &Found, store: &mut dyn Store, disk: &dyn Disk) -> Result<(), CrawlError> {
    if kind != Kind::Exact || found.kind == Some(Kind::Exact) {
        return Ok(());
    }
    ledger::fill(store, disk, &found.admissions()).map_err(|source| CrawlError::Write {
        what: "state/store".to_owned(),
        source,
    })
}

/// The shard as the store has it: the filter from its newest checkpoint and the log, the hosts, each held its delay.
pub(super) fn shard(
    plan: &Plan,
    found: &Found,
    job: &JobRow,
    store: &dyn Store,
    disk: &dyn Disk,
    clock: Clock,
    resumed: bool,
) -> Result<Shard, CrawlError> {
    let state = |error: std::io::Error| {
        CrawlError::State(format!(
            "state: {error}; nothing was changed; start over beside it with --fresh"
        ))
    };
    let (kind, size) = (plan.seen.or(found.kind), plan.seen_size);
    let restored = checkpoint::restore(disk, job.key, job.identity.stamp(), kind, size, &found.admissions());
    let restored = restored.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidInput | std::io::ErrorKind::OutOfMemory => CrawlError::Usage(format!(
            "no filter for --capacity {} at --fp-rate {}: {error}",
            plan.seen_size.0, plan.seen_size.1
        )),
        _ => state(error),
    })?;
    for note in restored.notes {
        tracing::warn!("{note}");
    }
    if resumed {
        let account = restored.seen.account();
        if let Some(before) = found.kind.filter(|before| *before != account.kind) {
            tracing::info!(
                before = before.name(),
                now = account.kind.name(),
                "the seen-set is of another kind from now on, made anew from the admission log"
            );
        }
        tracing::info!(
            capacity = account.capacity,
            "the job's own filter goes on; --capacity and --fp-rate are for new jobs"
        );
    }
    let now = clock.now();
    let hold_until = if resumed { now + plan.shard.patience.delay } else { now };
    let mut settings = plan.shard.clone();
    settings.own.add_seeds(&plan.seeds, &job.key);
    let mut shard = Shard::new(settings, restored.seen, found.tail.next_sequence, hold_until);
    if resumed {
        shard.resume(now);
    }
    shard.load_listed(found.listed);
    for (number, fetched) in &found.origins {
        shard.load_origin(*number, *fetched);
    }
    ledger::hosts(store, |row, has_rows| shard.load_host(row, has_rows, now)).map_err(state)?;
    ledger::traps(store, |host, row| shard.load_traps(host, row)).map_err(state)?;
    Ok(shard)
}
