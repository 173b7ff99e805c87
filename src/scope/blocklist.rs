//! `--blocklist`: hosts and URL prefixes that are never asked, by the million. Pure once it is read.
//!
//! An entry is a keyed 96-bit hash and the line it stands on, 16 bytes in one sorted array; a Bloom filter stands in
//! front, so that an address that is not listed costs one cache line a name. A filter's "maybe" is confirmed in the
//! array: that an address is taken for another's has a chance of 10^-22 with five million entries.
//!
//! An address is looked up as Safe Browsing does it: its host and each domain above it, and with each of these that
//! has listed prefixes, each part of its path that ends at a `/`, at the `?` or at the end.

mod line;

use std::fs::File;
use std::io::{self, BufReader};
use std::path::PathBuf;

use crate::hash::{Fingerprint, HashKey};
use crate::seeds::{self, Line};
use crate::seen::bloom::Bloom;
use crate::seen::sizing;
use crate::url::CrawlUrl;
use line::Parsed;

/// Most lines over all lists.
pub const MAX_LINES: u32 = u32::MAX - 1;
/// Bad lines that are named one by one; the others are counted.
pub const MAX_WARNINGS: usize = 20;
/// Folders of a path that are looked up, from the outermost.
pub const MAX_FOLDERS: usize = 64;
/// Rate of the filter in front: one look-up of a hundred in vain.
const FRONT_FP: f64 = 0.01;
/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// A listed name: half of its hash, a quarter more, and the line over all lists, counted from 1. Line 0 marks a host
/// that has listed prefixes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    high: u64,
    low: u32,
    line: u32,
}

/// The lists, compiled.
pub struct Blocklist {
    key: HashKey,
    /// The files, and the number over all lists of the line before their first.
    files: Vec<(String, u32)>,
    entries: Vec<Entry>,
    front: Bloom,
    prefixes: bool,
    counts: Counts,
}

impl std::fmt::Debug for Blocklist {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Blocklist({:?}, {:?})", self.files, self.counts)
    }
}

/// What was in the lists.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines read.
    pub lines: u64,
    /// Hosts and prefixes, each once.
    pub entries: u64,
    /// Lines that name nothing that can be blocked.
    pub bad: u64,
}

/// Why there is no list. All are mistakes of usage (exit code 2).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlocklistError {
    /// A file that cannot be read.
    #[error("--blocklist: {name}: cannot be read: {source}")]
    Unreadable {
        /// The file.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// There were lines, none of them one that blocks.
    #[error("--blocklist: {name}: no line of it is a host or a URL prefix{}", .warnings.iter().fold(String::new(), |text, line| text + "\n" + line))]
    NoneValid {
        /// The file.
        name: String,
        /// What is wrong with each.
        warnings: Vec<String>,
    },
    /// More than [`MAX_LINES`].
    #[error("--blocklist: more than {MAX_LINES} lines")]
    TooMany,
    /// The system gives no memory, or no random key.
    #[error("--blocklist: {0}")]
    System(io::Error),
}

impl Blocklist {
    /// Reads and compiles the lists. Lines that are not understood are named in the answer beside it, the first
    /// [`MAX_WARNINGS`] of each file one by one.
    ///
    /// # Errors
    /// [`BlocklistError`]: an unreadable file, or one of whose lines none is valid.
    pub fn read(files: &[PathBuf]) -> Result<(Self, Vec<String>), BlocklistError> {
        let key = HashKey::random().map_err(BlocklistError::System)?;
        let mut reading = Reading {
            key,
            entries: Vec::new(),
            lines: 0,
            bad: 0,
            prefixes: false,
        };
        let (mut named, mut warnings) = (Vec::new(), Vec::new());
        for path in files {
            let name = path.display().to_string();
            named.push((name.clone(), reading.lines));
            let (valid, bad) = reading.file(&name, path)?;
            if valid == 0 && !bad.is_empty() {
                return Err(BlocklistError::NoneValid { name, warnings: bad });
            }
            warnings.extend(bad);
        }
        let Reading {
            mut entries,
            lines,
            bad,
            prefixes,
            ..
        } = reading;
        // of what stands twice the first line counts
        entries.sort_unstable();
        entries.dedup_by_key(|entry| (entry.high, entry.low));
        entries.shrink_to_fit();
        let count = entries.len() as u64;
        let cells = sizing::lines_for(count.max(1), FRONT_FP).unwrap_or(sizing::MAX_LINES);
        let mut front = Bloom::new(count.max(1), cells).map_err(BlocklistError::System)?;
        for piece in entries.chunks(4096) {
            let keys: Vec<_> = piece.iter().map(|entry| front_key(entry.high, entry.low)).collect();
            front.insert_batch(&keys, &mut vec![false; keys.len()]);
        }
        let list = Self {
            key,
            files: named,
            counts: Counts {
                lines: lines.into(),
                entries: entries.iter().filter(|entry| entry.line > 0).count() as u64,
                bad,
            },
            entries,
            front,
            prefixes,
        };
        Ok((list, warnings))
    }

    /// What was in the lists.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Bytes of memory held.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.front.memory_bytes() + (self.entries.capacity() * size_of::<Entry>()) as u64
    }

    /// The line that blocks an address, as `file:line`; none if no line does.
    #[must_use]
    pub fn blocks(&self, url: &CrawlUrl) -> Option<String> {
        let identity = url.standard();
        let from_host = identity.split_once("://").map_or(identity, |(_, rest)| rest);
        let (host, path) = from_host.split_at(from_host.find('/').unwrap_or(from_host.len()));
        let line = self.host(host).or_else(|| self.prefix(host, path))?;
        let file = self.files.iter().rev().find(|(_, before)| *before < line);
        file.map(|(name, before)| format!("{name}:{}", line - before))
    }

    /// The line of the host or of a domain above it.
    fn host(&self, host: &str) -> Option<u32> {
        names(host)
            .find_map(|name| self.line_of(name.as_bytes()))
            .filter(|line| *line > 0)
    }

    /// The line of a part of the path below the host or a domain above it.
    fn prefix(&self, host: &str, path: &str) -> Option<u32> {
        if !self.prefixes {
            return None;
        }
        let mut text = String::new();
        names(host).find_map(|name| {
            text.clear();
            text.push_str(name);
            text.push('/');
            self.line_of(text.as_bytes())?;
            text.truncate(name.len());
            text.push_str(path);
            ends(path).find_map(|end| {
                self.line_of(text.get(..name.len() + end)?.as_bytes())
                    .filter(|line| *line > 0)
            })
        })
    }

    /// The line of an entry, 0 for a mark.
    fn line_of(&self, text: &[u8]) -> Option<u32> {
        let (high, low) = halves(self.key.fingerprint(text));
        if !self.front.contains(front_key(high, low)) {
            return None;
        }
        let at = self
            .entries
            .partition_point(|entry| (entry.high, entry.low) < (high, low));
        let entry = self.entries.get(at)?;
        (entry.high == high && entry.low == low).then_some(entry.line)
    }
}

/// The 96 bits that stand for an entry.
fn halves(print: Fingerprint) -> (u64, u32) {
    (print.high, (print.low >> 32) as u32)
}

/// The filter takes its bits from the same 96; the lower ones of its second half come from the first.
fn front_key(high: u64, low: u32) -> Fingerprint {
    Fingerprint {
        high,
        low: u64::from(low) << 32 | (high.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32),
    }
}

/// The host with its port, without it, and each domain above. An address has none above.
fn names(host: &str) -> impl Iterator<Item = &str> {
    let bare = if host.ends_with(']') {
        host
    } else {
        host.rsplit_once(':').map_or(host, |(bare, _)| bare)
    };
    let is_name = !bare.starts_with('[') && bare.bytes().next_back().is_some_and(|last| !last.is_ascii_digit());
    let dots = if is_name { bare } else { "" };
    let above = dots.match_indices('.').filter_map(|(dot, _)| bare.get(dot + 1..));
    (bare.len() < host.len())
        .then_some(host)
        .into_iter()
        .chain([bare])
        .chain(above)
}

/// Where a listed prefix of a path may end.
fn ends(path: &str) -> impl Iterator<Item = usize> {
    let query = path.find('?').unwrap_or(path.len());
    let folders = path
        .get(..query)
        .unwrap_or_default()
        .match_indices('/')
        .skip(1)
        .take(MAX_FOLDERS);
    let folders = folders.flat_map(|(slash, _)| [slash, slash + 1]);
    folders.chain([query, path.len()])
}

/// The lists while they are read.
struct Reading {
    key: HashKey,
    entries: Vec<Entry>,
    lines: u32,
    bad: u64,
    prefixes: bool,
}

impl Reading {
    /// Reads a file; how many of its lines block something, and what is wrong with the others.
    fn file(&mut self, name: &str, path: &PathBuf) -> Result<(u64, Vec<String>), BlocklistError> {
        let unreadable = |source| BlocklistError::Unreadable {
            name: name.to_owned(),
            source,
        };
        let mut input = BufReader::with_capacity(READ_BYTES, File::open(path).map_err(unreadable)?);
        let (mut line, mut valid, mut bad, mut more) = (Vec::new(), 0, Vec::new(), 0_u64);
        for number in 1_u64.. {
            let read = seeds::next_line(&mut input, &mut line).map_err(unreadable)?;
            if matches!(read, Line::End) {
                break;
            }
            if self.lines >= MAX_LINES {
                return Err(BlocklistError::TooMany);
            }
            self.lines += 1;
            let parsed = match read {
                Line::TooLong => Err(format!("longer than {} bytes", seeds::MAX_LINE_BYTES)),
                _ => line::parse(&line, number == 1, |entry| self.take(entry)),
            };
            match parsed {
                Ok(took) => valid += u64::from(took),
                Err(reason) => {
                    self.bad += 1;
                    if bad.len() < MAX_WARNINGS {
                        bad.push(format!("{name}:{number}: {reason}"));
                    } else {
                        more += 1;
                    }
                }
            }
        }
        if more > 0 {
            bad.push(format!("{name}: {more} more lines that cannot be used"));
        }
        Ok((valid, bad))
    }

    fn take(&mut self, parsed: Parsed<'_>) {
        match parsed {
            Parsed::Host(host) => self.add(host.as_bytes(), self.lines),
            Parsed::Prefix(text) => {
                let host = text.split('/').next().unwrap_or_default();
                self.add(format!("{host}/").as_bytes(), 0);
                self.add(text.as_bytes(), self.lines);
                self.prefixes = true;
            }
        }
    }

    fn add(&mut self, text: &[u8], line: u32) {
        let (high, low) = halves(self.key.fingerprint(text));
        self.entries.push(Entry { high, low, line });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Identity;

    fn list(files: &[&str]) -> (Blocklist, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = files
            .iter()
            .enumerate()
            .map(|(n, text)| {
                let path = folder.path().join(n.to_string());
                std::fs::write(&path, text).unwrap();
                path
            })
            .collect();
        Blocklist::read(&paths).unwrap()
    }

    fn line(list: &Blocklist, url: &str) -> Option<String> {
        let found = list.blocks(&CrawlUrl::parse(url, &Identity::default()).unwrap())?;
        Some(found.rsplit('/').next().unwrap().to_owned())
    }

    #[test]
    fn a_host_blocks_what_is_below_it() {
        let (list, bad) = list(&["# c\nbad.test\nport.test:8080\n10.1.2.3\n", "evil\nBÜCHER.test\n"]);
        assert_eq!(bad, Vec::<String>::new());
        for (url, expected) in [
            ("http://bad.test/", Some("0:2")),
            ("https://bad.test:444/x?y", Some("0:2")),
            ("http://a.b.bad.test./x", Some("0:2")),
            ("http://notbad.test/", None),
            ("http://bad.test.com/", None),
            ("http://test/", None),
            ("http://port.test/", None),
            ("http://port.test:8080/", Some("0:3")),
            ("http://10.1.2.3/", Some("0:4")),
            ("http://10.1.2.3:8080/x", Some("0:4")),
            ("http://2.3/", None),
            ("http://shop.evil/", Some("1:1")),
            ("http://www.xn--bcher-kva.test/", Some("1:2")),
            ("http://[::1]:80/", None),
        ] {
            assert_eq!(line(&list, url).as_deref(), expected, "{url}");
        }
    }

    #[test]
    fn a_prefix_ends_where_a_part_of_the_path_does() {
        let (list, _) =
            list(&["http://h.test/a/b\nhttps://h.test/c/\nh.test/d.html?x=1\nhttp://h.test:81/p\n||wide.test/ads^\n"]);
        for (url, expected) in [
            ("http://h.test/", None),
            ("http://h.test/a", None),
            ("http://h.test/a/b", Some("0:1")),
            ("https://h.test/a/b/c?d", Some("0:1")),
            ("http://h.test/a/b?x", Some("0:1")),
            ("http://h.test/a/bc", None),
            ("http://h.test/c", None),
            ("http://h.test/c/", Some("0:2")),
            ("http://h.test/c/d", Some("0:2")),
            ("http://h.test/d.html", None),
            ("http://h.test/d.html?x=1", Some("0:3")),
            ("http://h.test/d.html?x=1&y", None),
            ("http://h.test/p", None),
            ("http://h.test:81/p/q", Some("0:4")),
            ("http://www.h.test/a/b", Some("0:1")),
            ("http://wide.test/ads/x.js", Some("0:5")),
            ("http://other.test/a/b", None),
        ] {
            assert_eq!(line(&list, url).as_deref(), expected, "{url}");
        }
        let deep = |folders: usize| format!("http://h.test{}/a/b", "/x".repeat(folders));
        assert_eq!(line(&list, &deep(MAX_FOLDERS * 2)), None);
    }

    #[test]
    fn folders_are_looked_up_to_their_bound() {
        let within = format!("h.test{}/\n", "/x".repeat(MAX_FOLDERS));
        let beyond = format!("g.test{}/\n", "/x".repeat(MAX_FOLDERS + 1));
        let (list, _) = list(&[&(within.clone() + &beyond)]);
        assert!(line(&list, &format!("http://{}y", within.trim())).is_some());
        assert!(line(&list, &format!("http://{}y", beyond.trim())).is_none());
    }

    #[test]
    fn bad_lines_are_named_and_the_rest_holds() {
        let many = (0..30)
            .map(|n| format!("not a host {n}\n"))
            .collect::<Vec<_>>()
            .concat();
        let (list, bad) = list(&[&format!("good.test\ngood.test\n@@||x.test^\n{many}")]);
        assert_eq!(bad.len(), MAX_WARNINGS + 1);
        assert!(bad[0].contains("0:3: "), "{}", bad[0]);
        assert!(bad[MAX_WARNINGS].contains("11 more lines"), "{}", bad[MAX_WARNINGS]);
        assert_eq!(
            list.counts(),
            Counts {
                lines: 33,
                entries: 1,
                bad: 31
            }
        );
        assert_eq!(line(&list, "http://good.test/").as_deref(), Some("0:1"));
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join("list");
            std::fs::write(&path, text).unwrap();
            Blocklist::read(&[path])
        };
        assert!(matches!(read("two words\n"), Err(BlocklistError::NoneValid { .. })));
        assert!(read("# nothing\n").is_ok());
        assert!(Blocklist::read(&[folder.path().join("none")]).is_err());
    }

    #[test]
    fn a_large_list_is_compiled_in_little_memory_and_confirms_what_the_filter_doubts() {
        let text = (0..200_000)
            .map(|n| format!("host{n}.test\n"))
            .collect::<Vec<_>>()
            .concat();
        let (list, _) = list(&[&text]);
        // 16 bytes an entry, and 10.1 bits of filter
        assert!(list.memory_bytes() < 200_000 * 18, "{}", list.memory_bytes());
        let asked = |n: u32| line(&list, &format!("http://host{n}.test/"));
        assert_eq!(asked(0).as_deref(), Some("0:1"));
        assert_eq!(asked(199_999).as_deref(), Some("0:200000"));
        // a hundred thousand others, of which the filter doubts about a thousand
        assert!((200_000..300_000).all(|n| asked(n).is_none()));
    }
}
