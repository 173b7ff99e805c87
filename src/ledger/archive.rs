//! The archive's files: a response or a revisit, the index line, rotation, repair.

use super::{Held, INDEX_LINES, Ledger, LogEntry, Naming, SPOOL, WarcFile, WriteError, decode, encode};
use crate::archive::warc::{Members, Original};
use crate::archive::{cdxj, naming, warc};
use crate::clock::Time;
use crate::store::Table;

/// Where an exchange went.
#[derive(Debug)]
pub(super) struct Archived {
    file: String,
    offset: u64,
    revisit: bool,
}

impl LogEntry {
    pub(super) fn line(mut self, archived: Option<&Archived>) -> String {
        if let Some(archived) = archived {
            if archived.revisit {
                self.annotations.push("duplicate:digest".to_owned());
            }
            self.extra
                .insert("warcFilename".to_owned(), archived.file.clone().into());
            self.extra.insert("warcFileOffset".to_owned(), archived.offset.into());
        }
        let annotations = if self.annotations.is_empty() {
            "-".to_owned()
        } else {
            self.annotations.join(",")
        };
        // a map of texts and numbers always encodes
        let extra = serde_json::to_string(&self.extra).unwrap_or_default();
        [&self.columns, " ", &annotations, " ", &extra, "\n"].concat()
    }
}

impl Ledger {
    /// Cuts the newest WARC file to its covered bytes and removes files that are not covered at all.
    pub(super) fn mend_archive(&mut self) -> Result<(), WriteError> {
        let covered = self.tail.archive.clone();
        for name in self.disk.list("archive").naming("archive")? {
            // a run with another prefix, or without an archive, also removes what the run before it left open
            let own = |archive: &super::ArchiveSettings| naming::serial(&archive.prefix, &name);
            let Some(serial) = naming::open_serial(&name).or(self.archive.as_ref().and_then(own)) else {
                continue;
            };
            if serial >= self.tail.serial {
                self.disk.remove(&format!("archive/{name}")).naming(&name)?;
            }
        }
        let Some((name, len)) = covered else { return Ok(()) };
        let open = format!("archive/{}", naming::open_name(&name));
        let closed = format!("archive/{name}");
        if self.disk.read(&open).naming(&open)?.is_some() {
            let mut file = self.disk.append(&open).naming(&open)?;
            file.truncate(len).naming(&open)?;
            self.warc = Some(WarcFile {
                name,
                file: Held::new(file),
            });
        } else {
            let mut file = self.disk.append(&closed).naming(&closed)?;
            file.truncate(len).naming(&closed)?;
            self.tail.archive = None;
        }
        Ok(())
    }

    /// Appends the members of an exchange: a response, or a revisit if its payload is in the archive already.
    pub(super) fn archive(&mut self, members: &Members, now: Time) -> Result<Archived, WriteError> {
        let original = self.original(members)?;
        let revisit = original.as_ref().map(|original| warc::revisit(members, original));
        let (name, mut offset) = self.warc_file(now)?;
        let first = offset;
        let Some(warc) = &mut self.warc else {
            unreachable!("opened one line above")
        };
        let main = if let Some(revisit) = &revisit {
            warc.file.append(revisit).naming(&name)?;
            revisit.len() as u64
        } else {
            let copied = members.response.pieces(|piece| warc.file.append(piece));
            copied.naming(SPOOL)?.naming(&name)?;
            members.response.len()
        };
        offset += main;
        for part in [&members.request, &members.metadata] {
            warc.file.append(part).naming(&name)?;
            offset += part.len() as u64;
        }
        let line = cdxj::line(&members.meta, revisit.is_some(), &name, first, main);
        self.index.append(format!("{line}\n").as_bytes()).naming(INDEX_LINES)?;
        let records = &mut self.tail.counters.records;
        records.request += 1;
        records.metadata += 1;
        if revisit.is_some() {
            records.revisit += 1;
        } else {
            records.response += 1;
            self.remember_digest(members);
        }
        self.tail.counters.bytes.archived += offset - first;
        self.cover(&name, offset);
        Ok(Archived {
            file: name,
            offset: first,
            revisit: revisit.is_some(),
        })
    }

    fn cover(&mut self, name: &str, len: u64) {
        self.tail.archive = Some((name.to_owned(), len));
    }

    fn original(&self, members: &Members) -> Result<Option<Original>, WriteError> {
        if members.meta.payload_len == 0 || members.truncated.is_some() {
            return Ok(None);
        }
        let digest = &members.meta.payload_sha1;
        if let Some(original) = self.digests.get(digest) {
            return Ok(Some(original.clone()));
        }
        let row = self.store.get(Table::Digests, digest).naming("state/store")?;
        row.map(|bytes| decode(&bytes)).transpose().naming("state/store")
    }

    fn remember_digest(&mut self, members: &Members) {
        let meta = &members.meta;
        if meta.payload_len == 0 || members.truncated.is_some() {
            return;
        }
        let original = Original {
            record_id: meta.record_id.clone(),
            uri: meta.uri.clone(),
            date: meta.date,
        };
        self.batch.put(Table::Digests, &meta.payload_sha1, encode(&original));
        self.digests.insert(meta.payload_sha1, original);
    }

    /// The open WARC file (its final name) and its length; opened with a warcinfo record if none is.
    fn warc_file(&mut self, now: Time) -> Result<(String, u64), WriteError> {
        if let Some(warc) = &self.warc {
            return Ok((warc.name.clone(), warc.file.len()));
        }
        let Some(archive) = &self.archive else {
            unreachable!("called only with an archive")
        };
        let name = naming::file_name(&archive.prefix, now, self.tail.serial);
        let path = format!("archive/{}", naming::open_name(&name));
        let mut file = Held::new(self.disk.append(&path).naming(&path)?);
        let opening = warc::warcinfo(&archive.info, &name, now);
        file.append(&opening).naming(&path)?;
        let len = file.len();
        self.tail.serial += 1;
        self.tail.counters.records.warcinfo += 1;
        self.tail.counters.archive_files += 1;
        self.tail.counters.bytes.archived += opening.len() as u64;
        self.cover(&name, len);
        self.warc = Some(WarcFile {
            name: name.clone(),
            file,
        });
        Ok((name, len))
    }

    /// Closes the open WARC file: synced, renamed, covered by the next batch.
    ///
    /// # Errors
    /// If the system cannot.
    pub fn close_archive(&mut self) -> Result<(), WriteError> {
        // what the file holds is covered before it gets its final name, so that a name without `.open` is a whole file
        self.sync()?;
        let Some(WarcFile { name, .. }) = self.warc.take() else {
            return Ok(());
        };
        let open = naming::open_name(&name);
        self.disk
            .rename(&format!("archive/{open}"), &format!("archive/{name}"))
            .naming(&name)?;
        self.tail.archive = None;
        Ok(())
    }
}
