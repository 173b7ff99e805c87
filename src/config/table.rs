//! The one list of settings. A row says how a setting is given (flag, key, variable), what it is for, and how it is read.

mod identity;
mod limits;
mod network;
mod output;
mod pace;
mod reach;
mod seen;

use super::setting::{Group, Setting};

/// Most requests in flight over all hosts. More sockets than this are a mistake on one machine.
pub const MAX_CONCURRENCY: u16 = 10_000;
/// Most requests in flight to one host.
pub const MAX_PER_HOST_CONNECTIONS: u16 = 64;
/// Most tries after the first.
pub const MAX_RETRIES: u32 = 100;
/// Most failures in a row before a host is retired.
pub const MAX_HOST_FAILURES: u32 = 1_000;
/// Largest capacity of the filter, URLs: 10^11 need about 200 GB at the default rate.
pub const MAX_CAPACITY: u64 = 100_000_000_000;
/// Most requests a second over all hosts.
pub const MAX_RATE: f64 = 1_000_000.0;
/// Most `-v`: beyond it there is nothing more to say.
pub const MAX_VERBOSE: u8 = 3;

/// The settings that `[identity]` may hold.
pub(super) static IDENTITY: &[Setting] = identity::SETTINGS;

/// Every setting in the order of the help.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// The setting of a key.
#[must_use]
pub fn setting(key: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.key == key)
}

/// The settings by purpose.
pub static GROUPS: [Group; 7] = [
    Group {
        title: "What to crawl",
        settings: reach::SETTINGS,
    },
    Group {
        title: "What counts as one page",
        settings: identity::SETTINGS,
    },
    Group {
        title: "When to stop",
        settings: limits::SETTINGS,
    },
    Group {
        title: "Politeness",
        settings: pace::SETTINGS,
    },
    Group {
        title: "Network",
        settings: network::SETTINGS,
    },
    Group {
        title: "Seen-set",
        settings: seen::SETTINGS,
    },
    Group {
        title: "Job, archive and output",
        settings: output::SETTINGS,
    },
];

/// The value of a setting that is no list. (Whoever calls `read` gives exactly one.)
fn one(values: &[String]) -> &str {
    values.first().map_or("", |value| value.trim())
}

fn put<T>(slot: &mut T, value: Result<T, String>) -> Result<(), String> {
    *slot = value?;
    Ok(())
}

fn show_yes_no(yes: bool) -> Vec<String> {
    vec![if yes { "yes" } else { "no" }.to_owned()]
}

fn show_number<T: ToString>(number: Option<T>) -> Vec<String> {
    number.map(|number| number.to_string()).into_iter().collect()
}
