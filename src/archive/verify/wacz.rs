//! WACZ 1.1.1: a ZIP file with an archive, its index, its pages and a list of all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use zip::{CompressionMethod, ZipArchive};

use super::digest::Claim;
use super::{Found, INDEXES, Ids, WARCS, cdxj, ends, signature, warc};

/// Largest datapackage.json and datapackage-digest.json, bytes.
const MAX_LIST: u64 = 256 << 20;
/// Longest line of a list of pages, bytes.
const MAX_LINE: u64 = 64 << 20;
const LIST: &str = "datapackage.json";
const SEAL: &str = "datapackage-digest.json";
const PAGES: &str = "pages/pages.jsonl";

/// A file within.
struct Part {
    start: u64,
    /// Bytes as stored, and as they are.
    stored: u64,
    size: u64,
    plain: bool,
}

struct Wacz<'a> {
    path: &'a Path,
    zip: ZipArchive<BufReader<File>>,
    parts: BTreeMap<String, Part>,
}

pub(super) fn check(path: &Path, found: &mut Found) -> io::Result<()> {
    let zip = match ZipArchive::new(BufReader::new(File::open(path)?)) {
        Ok(zip) => zip,
        Err(zip::result::ZipError::Io(error)) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
        Err(error) => {
            found.fault("", format!("it is no readable ZIP file: {error}"));
            return Ok(());
        }
    };
    let mut wacz = Wacz {
        path,
        zip,
        parts: BTreeMap::new(),
    };
    wacz.list_parts(found);
    wacz.names(found);
    let Some(list) = wacz.read(LIST, found) else {
        return Ok(());
    };
    wacz.seal(&list, found);
    wacz.resources(&list, found);
    wacz.layout(found);
    wacz.archive(found)?;
    let pages = wacz.pages(found);
    wacz.index(&pages, found)
}

impl Wacz<'_> {
    fn list_parts(&mut self, found: &mut Found) {
        for at in 0..self.zip.len() {
            match self.zip.by_index_raw(at) {
                Ok(part) if part.is_dir() => {}
                Ok(part) => {
                    let of = Part {
                        start: part.data_start().unwrap_or(0),
                        stored: part.compressed_size(),
                        size: part.size(),
                        plain: part.compression() == CompressionMethod::Stored,
                    };
                    let name = part.name().map(std::borrow::Cow::into_owned);
                    drop(part);
                    let name = match name {
                        Ok(name) => name,
                        Err(error) => {
                            found.fault(format!("entry {at} of the ZIP file"), format!("its name: {error}"));
                            continue;
                        }
                    };
                    if self.parts.insert(name.clone(), of).is_some() {
                        found.fault(name, "the name stands twice in the ZIP file");
                    }
                }
                Err(error) => found.fault(format!("entry {at} of the ZIP file"), error.to_string()),
            }
        }
    }

    fn names(&self, found: &mut Found) {
        for name in self.parts.keys() {
            if name.starts_with('/') || name.contains('\\') || name.split('/').any(|part| part == "..") {
                found.fault(name.as_str(), "the name leads out of the folder");
            }
        }
    }

    /// A small file, whole.
    fn read(&mut self, name: &str, found: &mut Found) -> Option<Vec<u8>> {
        if !self.parts.contains_key(name) {
            found.fault("", format!("{name} is missing"));
            return None;
        }
        let mut bytes = Vec::new();
        let read = match self.zip.by_name(name) {
            Ok(part) => part
                .take(MAX_LIST)
                .read_to_end(&mut bytes)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(_) => Some(bytes),
            Err(error) => {
                found.fault(name, format!("it cannot be read: {error}"));
                None
            }
        }
    }

    fn seal(&mut self, list: &[u8], found: &mut Found) {
        if !self.parts.contains_key(SEAL) {
            return;
        }
        let Some(bytes) = self.read(SEAL, found) else { return };
        let Ok(seal) = serde_json::from_slice::<Value>(&bytes) else {
            found.fault(SEAL, "it is no JSON");
            return;
        };
        let hash = format!("sha256:{}", data_encoding::HEXLOWER.encode(&Sha256::digest(list)));
        if seal.get("path").and_then(Value::as_str) != Some(LIST) {
            found.fault(SEAL, format!("its path is not {LIST}"));
        }
        if seal.get("hash").and_then(Value::as_str) != Some(hash.as_str()) {
            found.fault(SEAL, format!("its hash is not that of {LIST}"));
        }
        if let Some(signed) = seal.get("signedData") {
            if signed.get("hash") != seal.get("hash") {
                found.fault(SEAL, "signedData is of another hash");
            }
            match signature::check(signed) {
                Ok(()) => found
                    .notes
                    .push("the signature fits; its time stamp is not read".to_owned()),
                Err(text) => found.fault(SEAL, text),
            }
        }
    }

    /// What is listed is there and as it is said, and what is there is listed.
    fn resources(&mut self, list: &[u8], found: &mut Found) {
        let Ok(list) = serde_json::from_slice::<Value>(list) else {
            found.fault(LIST, "it is no JSON");
            return;
        };
        if list.get("profile").and_then(Value::as_str) != Some("data-package") {
            found.fault(LIST, "profile is not data-package");
        }
        match list.get("wacz_version") {
            Some(Value::String(_)) => {}
            _ => found.fault(LIST, "wacz_version is missing"),
        }
        let resources = list
            .get("resources")
            .and_then(Value::as_array)
            .map_or(&[][..], Vec::as_slice);
        if resources.is_empty() {
            found.fault(LIST, "resources is missing or empty");
        }
        let mut listed = BTreeSet::new();
        for resource in resources {
            let text = |name: &str| resource.get(name).and_then(Value::as_str);
            let Some(path) = text("path") else {
                found.fault(LIST, "a resource has no path");
                continue;
            };
            if !listed.insert(path.to_owned()) {
                found.fault(path, "it is listed twice");
            }
            if text("name").is_none() {
                found.fault(path, "it is listed without a name");
            }
            let Some(part) = self.parts.get(path) else {
                found.fault(path, "it is listed and not in the ZIP file");
                continue;
            };
            if resource.get("bytes").and_then(Value::as_u64) != Some(part.size) {
                found.fault(path, format!("its size is {} bytes and not as listed", part.size));
            }
            match text("hash").map(Claim::read) {
                Some(Ok(Some(claim))) => self.hash(path, claim, found),
                Some(Ok(None)) => found.notes.push(format!("{path}: its kind of hash is not known")),
                _ => found.fault(path, "it is listed without a hash"),
            }
        }
        let extra = self
            .parts
            .keys()
            .filter(|name| !listed.contains(*name) && *name != LIST && *name != SEAL);
        for name in extra {
            found.fault(name.as_str(), "it is not listed in datapackage.json");
        }
    }

    /// Reads a file to its end, where its CRC is checked, and holds its hash against the listed one.
    fn hash(&mut self, name: &str, mut claim: Claim, found: &mut Found) {
        let mut window = vec![0; 1 << 16];
        let mut part = match self.zip.by_name(name) {
            Ok(part) => part,
            Err(error) => return found.fault(name, format!("it cannot be read: {error}")),
        };
        loop {
            match part.read(&mut window) {
                Ok(0) => break,
                Ok(count) => claim.update(window.get(..count).unwrap_or_default()),
                Err(error) => return found.fault(name, format!("it cannot be read: {error}")),
            }
        }
        drop(part);
        if !claim.holds() {
            found.fault(name, "its hash is not as listed");
        }
    }

    fn layout(&self, found: &mut Found) {
        let below = |folder: &str, with: &[&str]| {
            self.parts
                .keys()
                .any(|name| name.starts_with(folder) && ends(name, with))
        };
        if !below("archive/", &WARCS) {
            found.fault("", "no WARC file in archive/");
        }
        if !below("indexes/", &INDEXES) {
            found.fault("", "no index in indexes/");
        }
        for (name, part) in &self.parts {
            let packed = name.starts_with("archive/") || name.starts_with("indexes/") && ends(name, &[".gz"]);
            if packed && !part.plain {
                found.fault(name.as_str(), "it is compressed in the ZIP file; it must be stored");
            }
        }
    }

    /// The bytes of a stored file.
    fn stored(&self, name: &str) -> io::Result<Option<Stored>> {
        match self.parts.get(name) {
            Some(part) if part.plain => Stored::open(self.path, part.start, part.stored).map(Some),
            _ => Ok(None),
        }
    }

    fn archive(&self, found: &mut Found) -> io::Result<()> {
        let mut ids = Ids::default();
        for name in self.parts.keys().filter(|name| name.starts_with("archive/")) {
            let Some(file) = self.stored(name)? else { continue };
            let mut part = Found::default();
            warc::check(file, ends(name, &[".gz"]), &mut ids, &mut part)?;
            found.records += part.records;
            found.absorb(part, name);
        }
        Ok(())
    }

    /// Judges the lists of pages. Gives the pages of the first, which the index must know.
    fn pages(&mut self, found: &mut Found) -> BTreeSet<String> {
        if !self.parts.contains_key(PAGES) {
            found.fault("", format!("{PAGES} is missing"));
        }
        let lists: Vec<String> = self
            .parts
            .keys()
            .filter(|name| name.starts_with("pages/") && ends(name, &[".jsonl"]))
            .cloned()
            .collect();
        let mut pages = BTreeSet::new();
        for name in lists {
            match self.zip.by_name(&name) {
                Ok(part) => {
                    let mut part = BufReader::new(part);
                    if let Err(error) = read_pages(&mut part, &name, found, &mut pages) {
                        found.fault(name, format!("it cannot be read: {error}"));
                    }
                }
                Err(error) => found.fault(name, format!("it cannot be read: {error}")),
            }
        }
        pages
    }

    fn index(&mut self, pages: &BTreeSet<String>, found: &mut Found) -> io::Result<()> {
        let indexes: Vec<String> = self
            .parts
            .keys()
            .filter(|name| name.starts_with("indexes/") && !ends(name, &[".idx"]))
            .cloned()
            .collect();
        let mut files = Within {
            names: self
                .parts
                .iter()
                .filter(|(name, part)| name.starts_with("archive/") && part.plain)
                .map(|(name, part)| (name.clone(), (part.start, part.stored)))
                .collect(),
            path: self.path,
            open: None,
        };
        let mut missing = pages.clone();
        for name in indexes {
            let mut part = Found::default();
            let bytes = match self.zip.by_name(&name) {
                Ok(part) => part,
                Err(error) => {
                    found.fault(name, format!("it cannot be read: {error}"));
                    continue;
                }
            };
            cdxj::check(Box::new(BufReader::new(bytes)), &mut files, &mut part)?;
            found.absorb(part, &name);
            if !pages.is_empty() {
                self.take_out(&name, &mut missing);
            }
        }
        for url in missing.iter().take(super::MAX_NAMED) {
            found.fault(PAGES, format!("no record of the page {url} is in the index"));
        }
        Ok(())
    }

    /// Takes out the pages that an index knows.
    fn take_out(&mut self, name: &str, missing: &mut BTreeSet<String>) {
        let Ok(part) = self.zip.by_name(name) else { return };
        let mut index: Box<dyn BufRead> = Box::new(BufReader::new(part));
        if index.fill_buf().is_ok_and(|start| start.starts_with(&[0x1f, 0x8b])) {
            index = Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(index)));
        }
        let mut line = Vec::new();
        while matches!((&mut index).take(MAX_LINE).read_until(b'\n', &mut line), Ok(count) if count > 0) {
            let json = line.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default();
            if let Ok(Value::Object(fields)) = serde_json::from_slice(json)
                && let Some(Value::String(url)) = fields.get("url")
            {
                missing.remove(url);
            }
            line.clear();
        }
    }
}

/// Most pages that are looked for in the index.
const MAX_PAGES: usize = 1_000_000;

fn read_pages(list: &mut impl BufRead, name: &str, found: &mut Found, pages: &mut BTreeSet<String>) -> io::Result<()> {
    let (mut line, mut number) = (Vec::new(), 0_u64);
    loop {
        line.clear();
        number += 1;
        if list.take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = format!("{name}, line {number}");
        let Ok(page) = serde_json::from_slice::<Value>(&line) else {
            found.fault(place, "it is no JSON");
            continue;
        };
        let text = |key: &str| page.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
        if number == 1 {
            if text("format") == Some("json-pages-1.0") {
                continue;
            }
            found.fault(place.as_str(), "the first line does not say json-pages-1.0");
        }
        match text("url") {
            Some(url) if pages.len() < MAX_PAGES => {
                pages.insert(url.to_owned());
            }
            Some(_) => {}
            None => found.fault(place.as_str(), "a page without url"),
        }
        if !text("ts").is_some_and(is_time) {
            found.fault(place, "a page without a ts of RFC 3339");
        }
    }
}

/// A date and time of RFC 3339.
fn is_time(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok() && text.contains('T')
}

/// A stored file within a ZIP file, as a file of its own.
pub(super) struct Stored {
    file: File,
    start: u64,
    len: u64,
    at: u64,
}

impl Stored {
    fn open(path: &Path, start: u64, len: u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(start))?;
        Ok(Self {
            file,
            start,
            len,
            at: 0,
        })
    }
}

impl Read for Stored {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let left = self.len.saturating_sub(self.at);
        let most = to.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let read = self.file.read(to.get_mut(..most).unwrap_or_default())?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Seek for Stored {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(at) = to else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        self.at = at.min(self.len);
        self.file.seek(SeekFrom::Start(self.start + self.at))?;
        Ok(self.at)
    }
}

/// The WARC files of a WACZ file: by their names below `archive/`, or by their last names.
struct Within<'a> {
    names: BTreeMap<String, (u64, u64)>,
    path: &'a Path,
    open: Option<(String, Stored)>,
}

impl cdxj::Files for Within<'_> {
    type File = Stored;

    fn open(&mut self, name: &str) -> io::Result<Option<&mut Stored>> {
        if self.open.as_ref().is_none_or(|(open, _)| open != name) {
            let below = format!("archive/{name}");
            let last = format!("/{name}");
            let place = self.names.get(&below).or_else(|| self.names.get(name));
            let place = place.or_else(|| {
                self.names
                    .iter()
                    .find(|(known, _)| known.ends_with(&last))
                    .map(|(_, place)| place)
            });
            let Some((start, len)) = place.copied() else {
                return Ok(None);
            };
            self.open = Some((name.to_owned(), Stored::open(self.path, start, len)?));
        }
        Ok(self.open.as_mut().map(|(_, file)| file))
    }
}
