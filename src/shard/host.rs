//! One host: its queue, its rules, its mood.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::fact::Errand;
use super::group::Address;
use crate::clock::Time;
use crate::frontier::Place;
use crate::frontier::queue::Queue;
use crate::robots::Robots;
use crate::traps::{HostTraps, Rule, Shape};
use crate::url::Scheme;

/// How long a robots.txt is believed (RFC 9309 section 2.4).
pub const ROBOTS_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Heritrix's code for a URL that robots.txt forbids.
pub const ROBOTS_PRECLUDED: i32 = -9998;
/// Heritrix's code for a URL whose robots.txt could not be had.
pub const ROBOTS_UNREACHABLE: i32 = -61;
/// Heritrix's code for a URL given up with its host, which had answered to the last.
pub(super) const GIVEN_UP: i32 = -8;

/// Heritrix's code for a URL that was dropped by a quota.
pub(super) const TRAPPED: i32 = -5003;

/// What is known of one origin's robots.txt.
#[derive(Debug, Clone)]
pub(super) enum Access {
    /// To be fetched; how often that failed before.
    Due(u32),
    /// Being fetched; how often that failed before.
    Fetching(u32),
    /// Rules. Their text is in the store; the parsed form may have left memory.
    Rules {
        /// When they were fetched.
        at: Time,
        /// Parsed.
        rules: Option<Arc<Robots>>,
        /// Their Crawl-delay.
        delay: Option<Duration>,
    },
    /// There is no robots.txt (4xx).
    AllowAll(Time),
    /// It could not be had (5xx, unreachable).
    DisallowAll(Time),
    /// The origin never answered at all, and why. The other scheme's may: a site without TLS, say.
    Silent(Retired),
}

/// What a robots.txt allows, as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub enum StoredAccess {
    /// To be asked.
    #[default]
    Unknown,
    /// The text is in the robots table; when it was fetched, and its Crawl-delay in microseconds.
    Rules(Time, Option<u64>),
    /// Everything may be fetched.
    AllowAll(Time),
    /// Nothing may be fetched.
    DisallowAll(Time),
    /// The origin never answered at all, and why.
    Silent(Retired),
}

impl Access {
    fn stored(&self) -> StoredAccess {
        match self {
            Self::Due(_) | Self::Fetching(_) => StoredAccess::Unknown,
            Self::Rules { at, delay, .. } => {
                StoredAccess::Rules(*at, delay.map(|d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX)))
            }
            Self::AllowAll(at) => StoredAccess::AllowAll(*at),
            Self::DisallowAll(at) => StoredAccess::DisallowAll(*at),
            Self::Silent(why) => StoredAccess::Silent(why.clone()),
        }
    }

    fn from_stored(stored: StoredAccess) -> Self {
        match stored {
            StoredAccess::Unknown => Self::Due(0),
            StoredAccess::Rules(at, delay) => Self::Rules {
                at,
                rules: None,
                delay: delay.map(Duration::from_micros),
            },
            StoredAccess::AllowAll(at) => Self::AllowAll(at),
            StoredAccess::DisallowAll(at) => Self::DisallowAll(at),
            StoredAccess::Silent(why) => Self::Silent(why),
        }
    }
}

/// A host as stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRow {
    /// The host key.
    pub name: String,
    /// Not to be asked before.
    pub due: Time,
    /// Failures in a row.
    pub failures: u32,
    /// Why it was given up, if it was.
    pub retired: Option<Retired>,
    /// URLs fetched.
    pub fetched: u64,
    /// No pending row stands before this place.
    pub low: Place,
    /// robots.txt of `http` and of `https`.
    pub access: [StoredAccess; 2],
    /// Answers of 403 in a row. Stands behind the row, where older programs do not look.
    #[serde(skip)]
    pub forbidden: u32,
}

impl HostRow {
    /// The row as stored.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let row = postcard::to_stdvec(&(self, self.forbidden));
        #[expect(clippy::expect_used, reason = "plain data always encodes")]
        row.expect("a row encodes")
    }

    /// The inverse of [`HostRow::to_bytes`]; a row of a program that did not count 403 answers has seen none.
    ///
    /// # Errors
    /// What is wrong with the bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (mut row, rest) = postcard::take_from_bytes::<Self>(bytes).map_err(|error| error.to_string())?;
        if !rest.is_empty() {
            row.forbidden = postcard::from_bytes(rest).map_err(|error| error.to_string())?;
        }
        Ok(row)
    }
}

/// Why a host was given up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retired {
    /// The code of crawl.log for what waits there: that of the last failure, if it was one without an answer.
    pub code: i32,
    /// In words.
    pub why: String,
}

/// Is the host well?
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Mood {
    /// The last request was answered.
    #[default]
    Sound,
    /// So many requests in a row failed.
    Failing(u32),
    /// Given up, and why.
    Retired(Retired),
}

/// A host in memory.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) queue: Queue,
    pub(super) errands: VecDeque<Errand>,
    pub(super) access: [Access; 2],
    pub(super) mood: Mood,
    pub(super) in_flight: usize,
    /// Stands in the heap.
    pub(super) scheduled: bool,
    /// Not to be asked before.
    pub(super) due: Time,
    /// End of the last response in this run.
    pub(super) rested_from: Option<Time>,
    /// The pause that the length of that response asks for.
    pub(super) pause: Duration,
    /// Answers of 403 in a row.
    pub(super) forbidden: u32,
    /// Requests of this run that were made again without being counted as retries.
    pub(super) detours: u32,
    /// Where it is, if that matters.
    pub(super) address: Address,
    /// Stands in the line of its address.
    pub(super) in_line: bool,
    /// Not to be asked before the fact of this number is durable.
    pub(super) hold: u64,
    pub(super) fetched: u64,
    /// The `low` that the store knows.
    pub(super) low: Place,
    /// The page budget is used up, its own or that of the seeds whose pages wait here.
    pub(super) spent: bool,
    /// URLs fetched of it at most.
    pub(super) most: Option<u64>,
    /// Its setting of the pause.
    pub(super) pace: Option<Duration>,
    /// From this place on, what is parked was found to have no pages left in this run.
    pub(super) parked_from: Option<u64>,
    /// What is known of its traps, once it is watched.
    pub(super) traps: Option<Box<HostTraps>>,
}

impl Host {
    pub(super) fn new(name: String, due: Time) -> Self {
        Self {
            name,
            queue: Queue::default(),
            errands: VecDeque::new(),
            access: [Access::Due(0), Access::Due(0)],
            mood: Mood::Sound,
            in_flight: 0,
            scheduled: false,
            due,
            rested_from: None,
            pause: Duration::ZERO,
            forbidden: 0,
            detours: 0,
            address: Address::Unknown,
            in_line: false,
            hold: 0,
            fetched: 0,
            low: Place::LAST,
            spent: false,
            most: None,
            pace: None,
            parked_from: None,
            traps: None,
        }
    }

    pub(super) fn from_row(row: HostRow, has_rows: bool, due: Time) -> Self {
        let mut host = Self::new(row.name, due);
        if has_rows {
            host.queue = Queue::in_store(row.low);
        }
        host.low = row.low;
        host.access = row.access.map(Access::from_stored);
        host.fetched = row.fetched;
        host.forbidden = row.forbidden;
        host.mood = match (row.retired, row.failures) {
            (Some(retired), _) => Mood::Retired(retired),
            (None, 0) => Mood::Sound,
            (None, n) => Mood::Failing(n),
        };
        host
    }

    /// The rule that drops the first URL of the queue: it was queued before there was evidence enough.
    pub(super) fn first_is_trap(&self) -> Option<Rule> {
        let traps = self.traps.as_ref()?;
        let (_, item) = self.queue.front()?;
        let lineage = item.path.lineage;
        if lineage.kin.is_none() || !(traps.is_armed() || traps.is_long(lineage)) {
            return None;
        }
        traps.drops(&Shape::of(&item.url), lineage, true)
    }

    /// The row to be stored with a fact about this host; the store then knows its cursor.
    pub(super) fn row(&mut self) -> HostRow {
        self.low = self.queue.low().unwrap_or(Place::LAST);
        HostRow {
            name: self.name.clone(),
            due: self.due,
            failures: self.failures(),
            retired: match &self.mood {
                Mood::Retired(retired) => Some(retired.clone()),
                _ => None,
            },
            fetched: self.fetched,
            low: self.low,
            access: self.access.each_ref().map(Access::stored),
            forbidden: self.forbidden,
        }
    }

    pub(super) fn failures(&self) -> u32 {
        match self.mood {
            Mood::Failing(n) => n,
            Mood::Sound | Mood::Retired(_) => 0,
        }
    }

    /// The longest Crawl-delay of its origins.
    pub(super) fn crawl_delay(&self) -> Option<Duration> {
        self.access
            .iter()
            .filter_map(|access| match access {
                Access::Rules { delay, .. } => *delay,
                _ => None,
            })
            .max()
    }

    /// Marks the host as standing in the heap and says for when; `None` if it stands there already or has nothing to do.
    pub(super) fn stand_in_line(&mut self) -> Option<Time> {
        if self.scheduled || self.in_line || !self.has_work() {
            return None;
        }
        self.scheduled = true;
        // what needs no request needs no rest
        Some(if self.first_is_silent().is_some() {
            Time(0)
        } else {
            self.due
        })
    }

    /// Something waits that has not run out of budget.
    pub(super) fn has_work(&self) -> bool {
        !self.errands.is_empty() || (!self.queue.is_empty() && !self.spent)
    }

    /// Why the first URL of the queue needs no request, if its origin never answered.
    pub(super) fn first_is_silent(&self) -> Option<&Retired> {
        if !self.access.iter().any(|access| matches!(access, Access::Silent(_))) {
            return None;
        }
        let (_, item) = self.queue.front()?;
        match self.access(item.url.scheme()) {
            Access::Silent(why) => Some(why),
            _ => None,
        }
    }

    pub(super) fn access(&self, scheme: Scheme) -> &Access {
        let [http, https] = &self.access;
        match scheme {
            Scheme::Http => http,
            Scheme::Https => https,
        }
    }

    pub(super) fn set_access(&mut self, scheme: Scheme, access: Access) {
        let [http, https] = &mut self.access;
        match scheme {
            Scheme::Http => *http = access,
            Scheme::Https => *https = access,
        }
    }
}
