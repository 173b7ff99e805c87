//! Are the files of an archive what their formats say? Stricter than a reader has to be: what only some readers stumble
//! over is a fault here.
//!
//! WARC 1.0 and 1.1 (ISO 28500), plain or with one gzip member a record; CDXJ; WACZ 1.1.1. Files are read once, in pieces:
//! of a record its header, an HTTP head and a window are in memory, whatever its length.

mod cdxj;
mod digest;
mod fields;
mod http;
mod signature;
mod wacz;
mod warc;
mod window;

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Faults that are named of a file; further ones are counted.
pub const MAX_NAMED: usize = 1_000;
/// Record ids that are remembered to find one that stands twice, and to find what others refer to: 16 bytes each.
pub const MAX_IDS: usize = 8 << 20;

/// How the names of WARC files end.
const WARCS: [&str; 2] = [".warc", ".warc.gz"];
/// How the names of indexes end.
const INDEXES: [&str; 4] = [".cdxj", ".cdx", ".cdxj.gz", ".cdx.gz"];

fn ends(name: &str, with: &[&str]) -> bool {
    with.iter().any(|end| name.ends_with(end))
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// `offset 512` of a WARC file, `line 3` of an index, a name within a WACZ file; empty for the whole file.
    pub place: String,
    /// What, in words.
    pub text: String,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub struct Found {
    /// Records, or lines of an index.
    pub records: u64,
    /// The first [`MAX_NAMED`] faults.
    pub faults: Vec<Fault>,
    /// How many there are.
    pub count: u64,
    /// What could not be judged.
    pub notes: Vec<String>,
}

impl Found {
    fn fault(&mut self, place: impl Into<String>, text: impl Into<String>) {
        self.count += 1;
        if self.faults.len() < MAX_NAMED {
            self.faults.push(Fault {
                place: place.into(),
                text: text.into(),
            });
        }
    }

    /// Takes in what was found in a part.
    fn absorb(&mut self, part: Found, name: &str) {
        self.count += part.count - part.faults.len() as u64;
        for fault in part.faults {
            let place = [name, &fault.place].join(if fault.place.is_empty() { "" } else { ", " });
            self.fault(place, fault.text);
        }
        self.notes.extend(part.notes);
    }

    /// What is found once all files were read: ids that stand twice over files, and references to records that are in none
    /// of them, which is a fault only where the files are all there is.
    pub fn notice(&mut self, ids: &Ids, all: bool) {
        for place in &ids.twice {
            self.fault("", format!("a record's id stands in two files: {place}"));
        }
        if ids.full {
            let text = format!("only the first {MAX_IDS} record ids were held against each other");
            self.notes.push(text);
        } else if all {
            for (id, place) in &ids.wanted {
                if !ids.own.contains(id) {
                    self.fault("", format!("no file has the record: {place}"));
                }
            }
        }
    }

    /// Is nothing wrong?
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.count == 0
    }
}

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// WARC, plain or gzipped.
    Warc,
    /// An index.
    Cdxj,
    /// A WACZ file.
    Wacz,
}

impl Kind {
    /// The kind of a file by its name, or by its first bytes where the name says nothing.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn of(path: &Path) -> io::Result<Option<Self>> {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_ascii_lowercase();
        let name = name.strip_suffix(".open").unwrap_or(&name);
        if ends(name, &WARCS) {
            return Ok(Some(Self::Warc));
        }
        if ends(name, &INDEXES) {
            return Ok(Some(Self::Cdxj));
        }
        if ends(name, &[".wacz"]) {
            return Ok(Some(Self::Wacz));
        }
        let mut start = [0; 5];
        let read = File::open(path)?.take(5).read(&mut start)?;
        Ok(match start.get(..read) {
            Some([0x1f, 0x8b, ..] | b"WARC/") => Some(Self::Warc),
            Some([b'P', b'K', ..]) => Some(Self::Wacz),
            _ => None,
        })
    }
}

/// Record ids over several files.
#[derive(Debug, Default)]
pub struct Ids {
    own: HashSet<u128>,
    /// What records refer to, with where.
    wanted: Vec<(u128, String)>,
    /// Ids that stand in two files.
    twice: Vec<String>,
    full: bool,
}

impl Ids {
    /// Is it new?
    fn add(&mut self, id: &str) -> bool {
        if self.own.len() >= MAX_IDS {
            self.full = true;
            return true;
        }
        self.own.insert(hash(id))
    }

    fn wants(&mut self, id: &str, place: &str, field: &str) {
        if self.wanted.len() < MAX_IDS {
            self.wanted.push((hash(id), format!("{place}: {field} {id}")));
        }
    }

    /// Takes in what was read beside.
    pub fn join(&mut self, other: Ids) {
        for id in other.own {
            if self.own.len() >= MAX_IDS {
                self.full = true;
            } else if !self.own.insert(id) && self.twice.len() < MAX_NAMED {
                self.twice.push(format!("number {id:032x}"));
            }
        }
        self.full |= other.full;
        let room = MAX_IDS - self.wanted.len();
        self.wanted.extend(other.wanted.into_iter().take(room));
        self.twice.extend(other.twice);
    }
}

/// FNV-1a of 128 bits. Whoever makes two of his ids collide has a fault named that is none.
fn hash(text: &str) -> u128 {
    text.bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        })
}

/// Looks at one file. The index of a job finds its WARC files in `archive`, beside itself, or in `../archive`.
///
/// # Errors
/// If the file cannot be read; what is wrong with its bytes is a fault and no error.
pub fn file(path: &Path, kind: Kind, archive: Option<&Path>, ids: &mut Ids) -> io::Result<Found> {
    let mut found = Found::default();
    match kind {
        Kind::Warc => {
            let named_gz = path.to_string_lossy().contains(".gz");
            warc::check(File::open(path)?, named_gz, ids, &mut found)?;
        }
        Kind::Cdxj => {
            let beside = path.parent().unwrap_or(Path::new("."));
            let folders = archive
                .map(Path::to_owned)
                .into_iter()
                .chain([beside.to_owned(), beside.join("../archive")]);
            let mut files = cdxj::Folders::new(folders.collect());
            cdxj::check(Box::new(BufReader::new(File::open(path)?)), &mut files, &mut found)?;
        }
        Kind::Wacz => wacz::check(path, &mut found)?,
    }
    Ok(found)
}

/// Reads the head of the record at a place: header fields, and the bytes that it takes in the file.
fn record_at(
    file: &mut (impl Read + Seek),
    offset: u64,
    length: Option<u64>,
) -> io::Result<Result<warc::Head, String>> {
    file.seek(SeekFrom::Start(offset))?;
    warc::head_at(file, length)
}
