//! The archive beside the log: each line that says where its answer lies has that record there, and no answer lies
//! there without a line. Both were written by one writer in one order, so they are read side by side.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Take};
use std::path::{Path, PathBuf};

use super::line::Line;
use crate::archive::{naming, read};

/// File and offset.
type Place = (u32, u64);

struct Open {
    serial: u32,
    name: String,
    records: read::Records<BufReader<Take<File>>>,
}

/// An answer in the archive.
#[derive(Debug, Clone)]
struct Answer {
    place: Place,
    name: String,
    uri: String,
    digest: Option<String>,
}

/// The files of an archive, record by record.
pub(super) struct Shelf {
    files: VecDeque<(u32, PathBuf, u64)>,
    open: Option<Open>,
    next: Option<Answer>,
    /// Records by type.
    pub(super) records: BTreeMap<String, u64>,
    pub(super) count: usize,
}

impl Shelf {
    /// Of the newest file only what the store vouches for is read.
    pub(super) fn open(folder: &Path, newest: Option<&(String, u64)>) -> io::Result<Self> {
        let mut files = Vec::new();
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries.collect::<Result<Vec<_>, _>>()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let closed = name.strip_suffix(".open").unwrap_or(&name);
            let Some(serial) = serial(closed) else { continue };
            let covered = newest.filter(|(newest, _)| newest == closed).map(|(_, len)| *len);
            files.push((serial, entry.path(), covered.unwrap_or(u64::MAX)));
        }
        files.sort();
        Ok(Self {
            count: files.len(),
            files: files.into(),
            open: None,
            next: None,
            records: BTreeMap::new(),
        })
    }

    /// Looks for the record of a line. Gives what is wrong.
    pub(super) fn find(&mut self, line: &Line<'_>, faults: &mut Vec<String>) -> io::Result<()> {
        let Some((name, offset)) = &line.place else {
            return Ok(());
        };
        let wanted = (serial(name).unwrap_or(u32::MAX), *offset);
        loop {
            let Some(answer) = self.peek(faults)? else {
                faults.push(format!("{name} has no record at {offset} of {}", line.url));
                return Ok(());
            };
            if answer.place > wanted {
                faults.push(format!("{name} has no answer at {offset} of {}", line.url));
                return Ok(());
            }
            self.next = None;
            if answer.place < wanted {
                faults.push(format!(
                    "{} has at {} an answer of {} that no line speaks of",
                    answer.name, answer.place.1, answer.uri
                ));
                continue;
            }
            if answer.uri != line.url {
                faults.push(format!("{name} has at {offset} {} and not {}", answer.uri, line.url));
            }
            if line.sha1 != answer.digest.as_deref() {
                let digest = answer.digest.as_deref().unwrap_or("none");
                faults.push(format!("{name} has at {offset} another payload: sha1 {digest}"));
            }
            return Ok(());
        }
    }

    /// What is left when the log has ended.
    pub(super) fn finish(&mut self, faults: &mut Vec<String>) -> io::Result<()> {
        while let Some(answer) = self.peek(faults)? {
            self.next = None;
            faults.push(format!(
                "{} has at {} an answer of {} that no line speaks of",
                answer.name, answer.place.1, answer.uri
            ));
        }
        Ok(())
    }

    fn peek(&mut self, faults: &mut Vec<String>) -> io::Result<Option<Answer>> {
        while self.next.is_none() {
            let Some(open) = &mut self.open else {
                let Some((serial, path, len)) = self.files.pop_front() else {
                    return Ok(None);
                };
                let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
                self.open = Some(Open {
                    serial,
                    name: name.unwrap_or_default(),
                    records: read::members(BufReader::with_capacity(1 << 18, File::open(&path)?.take(len)), 0),
                });
                continue;
            };
            match open.records.next() {
                None => self.open = None,
                Some(Err(damage)) => {
                    faults.push(format!("{} is damaged: {damage}", open.name));
                    self.open = None;
                }
                Some(Ok(record)) => {
                    *self.records.entry(record.kind().to_owned()).or_default() += 1;
                    for header in record.wrong_digests() {
                        faults.push(format!("{} has at {} a wrong {header}", open.name, record.offset));
                    }
                    if matches!(record.kind(), "response" | "revisit") {
                        let digest = record.header("WARC-Payload-Digest");
                        self.next = Some(Answer {
                            place: (open.serial, record.offset),
                            name: open.name.clone(),
                            uri: record.header("WARC-Target-URI").unwrap_or_default().to_owned(),
                            digest: digest.and_then(|text| text.strip_prefix("sha1:")).map(str::to_owned),
                        });
                    }
                }
            }
        }
        Ok(self.next.clone())
    }
}

/// The serial number in the name of a WARC file.
fn serial(name: &str) -> Option<u32> {
    if !naming::is_warc(name) {
        return None;
    }
    name.strip_suffix(".warc.gz")?.rsplit('-').next()?.parse().ok()
}
