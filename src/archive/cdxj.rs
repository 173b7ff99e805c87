//! CDXJ lines, and the sorted index made of them at close.

use std::path::Path;

use super::warc::ResponseMeta;

/// One index line without its line end: `key 14digits {"url": ..., "mime": ..., ...}`. A revisit has mime `warc/revisit`.
#[must_use]
pub fn line(_meta: &ResponseMeta, _revisit: bool, _file: &str, _offset: u64, _length: u64) -> String {
    todo!()
}

/// Sorts the lines of `from` by bytes into `to` (written beside it and renamed), equal lines once, in at most
/// `memory` bytes: runs on disk beside `to`, then one merge.
///
/// # Errors
/// Any failure to read or write.
pub fn sort_file(_from: &Path, _to: &Path, _memory: usize) -> std::io::Result<u64> {
    todo!()
}
