//! Do the files of a job still hold what its store says? Asked before anything is cut, opened or removed.

use std::io;

use super::{ADMITTED, CRAWL_LOG, Found, INDEX_LINES, LINKS, Naming, PAGES, PLAIN_PAGES, WriteError};
use crate::archive::naming;
use crate::disk::{Disk, shorter};

/// Looks at every file that the ledger would cut to what the store covers.
///
/// A job writes its first batch before its first file grows. Files with bytes but a store without a job are therefore
/// the work of a job whose store was lost: to begin anew among them would cut them to nothing.
///
/// # Errors
/// If a file is shorter than the store says, or the store is not that of the files.
pub fn check(disk: &dyn Disk, found: &Found) -> Result<(), WriteError> {
    let tail = &found.tail;
    let covered = [
        (ADMITTED, tail.admitted),
        (CRAWL_LOG, tail.log),
        (INDEX_LINES, tail.index),
        (PLAIN_PAGES, tail.pages),
        (PAGES, found.pages),
        (LINKS, found.links),
    ];
    for (name, len) in covered {
        let there = disk.size(name).naming(name)?.unwrap_or(0);
        if there < len {
            return Err(shorter(there, len)).naming(name);
        }
        if found.job.is_none() && there > 0 {
            return Err(orphan()).naming(name);
        }
    }
    if found.job.is_none() {
        let mut names = disk.list("archive").naming("archive")?.into_iter();
        let archived = names.find(|name| naming::is_warc(name));
        return archived.map_or(Ok(()), |name| Err(orphan()).naming(&format!("archive/{name}")));
    }
    let Some((name, len)) = &tail.archive else {
        return Ok(());
    };
    let closed = format!("archive/{name}");
    let open = format!("archive/{}", naming::open_name(name));
    let there = match disk.size(&open).naming(&open)? {
        Some(there) => there,
        None => disk.size(&closed).naming(&closed)?.unwrap_or(0),
    };
    if there < *len {
        return Err(shorter(there, *len)).naming(&closed);
    }
    Ok(())
}

fn orphan() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "it is there, but state/store knows nothing of it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Memory;
    use crate::hash::HashKey;
    use crate::ledger::{JobRow, Tail};
    use crate::url::Identity;

    fn found(known: bool, tail: Tail) -> Found {
        let job = known.then(|| JobRow {
            key: HashKey([1; 16]),
            identity: Identity::default(),
        });
        Found {
            job,
            tail,
            widened: Vec::new(),
            origins: Vec::new(),
            imported: None,
            listed: 0,
            secrets: Vec::new(),
            pages: 0,
            links: 0,
            kind: None,
            forgotten: Vec::new(),
            survey: None,
        }
    }

    fn disk(files: &[(&str, &[u8])]) -> Memory {
        let disk = Memory::default();
        for (name, bytes) in files {
            disk.append(name).unwrap().append(bytes).unwrap();
        }
        disk
    }

    fn verdict(disk: &Memory, found: &Found) -> Option<String> {
        check(disk, found).err().map(|error| error.to_string())
    }

    #[test]
    fn a_new_job_has_no_bytes_in_its_files() {
        let new = found(false, Tail::default());
        assert_eq!(verdict(&Memory::default(), &new), None);
        assert_eq!(verdict(&disk(&[(ADMITTED, b""), (CRAWL_LOG, b"")]), &new), None);
        assert_eq!(verdict(&disk(&[("archive/notes.txt", b"mine")]), &new), None);
    }

    #[test]
    fn files_whose_store_is_lost_are_left_alone() {
        let new = found(false, Tail::default());
        for name in [
            ADMITTED,
            CRAWL_LOG,
            INDEX_LINES,
            PAGES,
            PLAIN_PAGES,
            LINKS,
            "archive/a-20110623171208-00000.warc.gz",
            "archive/a-20110623171208-00000.warc.gz.open",
        ] {
            let text = verdict(&disk(&[(name, b"x")]), &new).expect(name);
            assert!(text.starts_with(name) && text.contains("state/store"), "{text}");
        }
    }

    #[test]
    fn a_file_that_lost_bytes_is_named() {
        let tail = Tail {
            log: 3,
            archive: Some(("a.warc.gz".to_owned(), 5)),
            ..Tail::default()
        };
        let job = found(true, tail);
        let open = "archive/a.warc.gz.open";
        assert_eq!(verdict(&disk(&[(CRAWL_LOG, b"abcd"), (open, b"12345")]), &job), None);
        assert_eq!(
            verdict(&disk(&[(CRAWL_LOG, b"abc"), ("archive/a.warc.gz", b"12345")]), &job),
            None
        );
        for (files, name) in [
            (&[(CRAWL_LOG, b"ab".as_slice()), (open, b"12345")][..], CRAWL_LOG),
            (&[(open, b"12345")], CRAWL_LOG),
            (&[(CRAWL_LOG, b"abc"), (open, b"1234")], "archive/a.warc.gz"),
            (&[(CRAWL_LOG, b"abc")], "archive/a.warc.gz"),
        ] {
            let files = disk(files);
            let text = verdict(&files, &job).expect(name);
            assert!(text.starts_with(name), "{text}");
        }
    }
}
