//! The one place that knows where the shared test data lies. It is used where it stands and never copied.

use std::path::PathBuf;

/// A file of the shared test data, such as `conformance/robots.jsonl`, or `None` on a machine that has none.
///
/// `CRAWLER_SHARED` names the folder; without it, `shared` beside the repository's folder is looked at. Where everything
/// must run (`CRAWLER_RUN_ALL` is set, as `.ci/run` does), data that are missing are a failure and not a test less.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared");
    let folder = std::env::var_os("CRAWLER_SHARED").map_or_else(beside, PathBuf::from);
    let file = folder.join(name);
    let there = file.exists();
    assert!(
        there || std::env::var_os("CRAWLER_RUN_ALL").is_none(),
        "{} is missing: lay the shared test data beside the repository, or name their folder in CRAWLER_SHARED",
        file.display()
    );
    there.then_some(file)
}
