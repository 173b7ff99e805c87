//! Seed lists from the Web: `--seeds https://...` is fetched once and kept with the job, so that a resumed job has the
//! same list and asks nobody for it.
//!
//! ```text
//! JOB/state/lists/N.txt   its address as a comment in the first line, then the list as it came
//! ```

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::USAGE;
use crate::config::Config;
use crate::disk::{Folder, publish};
use crate::fetch::dns::AddressPolicy;
use crate::fetch::http::list::{self, ListError, ListSettings, MAX_LIST_BYTES};
use crate::seeds::List;

/// Most lists of a job that come from the Web.
pub(super) const MAX_LISTS: usize = 100;
/// Exit code if the network has no list (README).
const NO_SEED: u8 = 4;
const FOLDER: &str = "state/lists";

/// The lists of a job.
pub(super) struct Lists {
    /// What `--seeds` names, with the text.
    pub(super) lists: Vec<List>,
    /// Those of them that were fetched just now: not kept yet.
    fetched: Vec<usize>,
}

impl Lists {
    /// Keeps what was fetched.
    ///
    /// # Errors
    /// If the system cannot.
    pub(super) fn keep(&self, job: &Path) -> io::Result<()> {
        if self.fetched.is_empty() {
            return Ok(());
        }
        fs::create_dir_all(job.join(FOLDER))?;
        let folder = Folder::new(job.to_path_buf());
        let there = fs::read_dir(job.join(FOLDER))?.count();
        for (at, list) in self.fetched.iter().filter_map(|at| self.lists.get(*at)).enumerate() {
            let mut text = format!("# {}\n", list.name.display()).into_bytes();
            text.extend_from_slice(&list.bytes);
            publish(&folder, &format!("{FOLDER}/{}.txt", there + at + 1), &text)?;
        }
        Ok(())
    }

    /// Waits, if a server was asked just now, for as long as its host is to be left alone.
    pub(super) async fn leave_alone(&self, config: &Config) {
        if !self.fetched.is_empty() {
            tokio::time::sleep(pause(config)).await;
        }
    }
}

/// The lists that the settings name by an address: as the job keeps them, else from the Web, one after the other with
/// the delay between them.
///
/// # Errors
/// What to say, and the exit code.
pub(super) async fn read(config: &Config) -> Result<Lists, (String, u8)> {
    let mut found = Lists {
        lists: if config.fresh { Vec::new() } else { kept(&config.job) },
        fetched: Vec::new(),
    };
    let named: Vec<&str> = config.seeds.iter().filter_map(|path| address(path)).collect();
    if named.len() > MAX_LISTS {
        return Err((format!("more than {MAX_LISTS} lists of seeds from the Web"), USAGE));
    }
    for name in named {
        if found.lists.iter().any(|list| list.name == Path::new(name)) {
            continue;
        }
        found.leave_alone(config).await;
        let bytes = list::fetch(name, &settings(config)).await.map_err(|error| {
            let exit = match error {
                ListError::Unusable(_) => USAGE,
                ListError::Unreached(_) => NO_SEED,
            };
            (format!("--seeds {name}: {error}"), exit)
        })?;
        found.fetched.push(found.lists.len());
        found.lists.push(List {
            name: name.into(),
            bytes,
        });
    }
    Ok(found)
}

/// How long a host that was asked is left alone.
fn pause(config: &Config) -> Duration {
    config.delay.min(config.max_wait)
}

/// The lists that a job keeps. What cannot be read counts as not kept.
pub(super) fn kept(job: &Path) -> Vec<List> {
    let Ok(files) = fs::read_dir(job.join(FOLDER)) else {
        return Vec::new();
    };
    files
        .flatten()
        .take(MAX_LISTS)
        .filter_map(|file| {
            let path = file.path();
            path.extension().filter(|end| *end == "txt")?;
            let short = file
                .metadata()
                .is_ok_and(|file| file.len() < (MAX_LIST_BYTES + 65_536) as u64);
            let text = short.then(|| fs::read(&path).ok()).flatten()?;
            let (name, bytes) = text
                .strip_prefix(b"# ")?
                .split_at(text.iter().position(|b| *b == b'\n')?.checked_sub(2)?);
            Some(List {
                name: std::str::from_utf8(name).ok()?.into(),
                bytes: bytes.get(1..)?.to_vec(),
            })
        })
        .collect()
}

/// The address, if `--seeds` names one.
pub(super) fn address(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let scheme = text.split_once("://")?.0;
    (scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")).then_some(text)
}

fn settings(config: &Config) -> ListSettings {
    ListSettings {
        user_agent: config.user_agent.clone(),
        headers: config.header.clone(),
        auth: config.auth.clone(),
        header_timeout: config.header_timeout,
        timeout: config.timeout,
        pins: config.resolve.clone(),
        addresses: AddressPolicy {
            allow: config.allow_address.clone(),
        },
        proxy: config.proxy.clone(),
        insecure_tls: config.insecure_tls,
        pause: pause(config),
    }
}
