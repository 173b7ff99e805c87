//! Keys of the rows in the table of single values. What a format of a row has no place for has a row of its own.

pub(super) const TAIL_KEY: &[u8] = b"tail";
/// Counters that the tail's form, which is older, has no place for.
pub(super) const TEXTS_CUT_KEY: &[u8] = b"texts-cut";
pub(super) const SECRETS_KEY: &[u8] = b"secrets";
pub(super) const REPEATS_KEY: &[u8] = b"repeats";
pub(super) const ENTRIES_DROPPED_KEY: &[u8] = b"entries-dropped";
/// Links that a blocklist names; a job of before there were any has no such row.
pub(super) const BLOCKED_KEY: &[u8] = b"blocked";
pub(super) const JOB_KEY: &[u8] = b"job";
pub(super) const RULES_KEY: &[u8] = b"rules";
pub(super) const IMPORTED_KEY: &[u8] = b"cookies.txt";
/// URLs admitted from sitemaps; a job of before there were any has no such row.
pub(super) const LISTED_KEY: &[u8] = b"listed";
/// The kind of the seen-set, by its word; a job of before there were several has no such row.
pub(super) const KIND_KEY: &[u8] = b"seen-kind";
/// First record of the admission log → how many records from there on take their key out.
pub(super) const FORGOTTEN_PREFIX: &[u8] = b"forgotten/";
pub(super) const SEED_PREFIX: &[u8] = b"seed/";
pub(super) const WIDEN_PREFIX: &[u8] = b"widen/";
/// URLs fetched under seeds with rules of their own; older jobs have none.
pub(super) const ORIGIN_PREFIX: &[u8] = b"origin/";
pub(super) const TRAP_PREFIX: &[u8] = b"trap/";
pub(super) const TRAP_COUNTS_KEY: &[u8] = b"traps";
pub(super) const SKIPPED_KEY: &[u8] = b"skipped";
/// Covered bytes of [`super::PAGES`] and of [`super::LINKS`], which the tail's form has no place for.
pub(super) const PAGES_KEY: &[u8] = b"pages";
pub(super) const LINKS_KEY: &[u8] = b"links";
