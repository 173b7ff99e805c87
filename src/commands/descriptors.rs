//! Open files: the limit is raised as far as the system lets us, and fewer requests run at once where that is not enough.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::crawl::own_files;

/// Files of one request in flight: its connection, and an idle one in the pool.
const FILES_PER_REQUEST: u64 = 2;

/// Raises the limit and lowers `concurrency` to what fits; says so if it did.
pub(super) fn fit(concurrency: &mut usize) -> Option<String> {
    let limit = getrlimit(Resource::Nofile);
    // where it cannot be raised, the old limit counts
    let raised = setrlimit(
        Resource::Nofile,
        Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        },
    );
    let files = if raised.is_ok() { limit.maximum } else { limit.current }?;
    let most = possible(files);
    if *concurrency <= most {
        return None;
    }
    let asked = std::mem::replace(concurrency, most);
    Some(format!(
        "only {files} files may be open (ulimit -n): {most} requests at once instead of {asked}"
    ))
}

/// Requests that can be in flight under a limit of open files; at least one.
fn possible(files: u64) -> usize {
    let requests = files.saturating_sub(own_files(files)) / FILES_PER_REQUEST;
    usize::try_from(requests).unwrap_or(usize::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_limit_leaves_room_for_our_own_files() {
        assert_eq!(possible(0), 1);
        assert_eq!(possible(256), 80);
        assert_eq!(possible(1_024), 416);
        assert_eq!(possible(1_048_576), 524_128);
    }

    #[test]
    fn what_fits_stays() {
        let mut concurrency = 1;
        assert_eq!(fit(&mut concurrency), None);
        assert_eq!(concurrency, 1);
        let mut concurrency = usize::MAX;
        if let Some(warning) = fit(&mut concurrency) {
            assert!(warning.contains("ulimit -n"), "{warning}");
            assert!(concurrency < usize::MAX);
        }
    }
}
