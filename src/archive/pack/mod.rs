//! A job's archive as one WACZ 1.1.1 file: WARC files as they are, their index, a list of pages, and a list of all that
//! with sizes and hashes.
//!
//! Files are copied in pieces and hashed on the way; of a record the start of its block is in memory. What is packed is
//! what the store vouches for. The file is written beside its place and renamed when it is whole and synced: a kill
//! leaves nothing under its name.

mod index;
mod pages;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::clock::Time;
use index::Index;

/// Bytes copied at a time.
const STEP: usize = 1 << 18;
/// The version of the format.
const VERSION: &str = "1.1.1";

/// A WARC file and how many of its bytes count.
#[derive(Debug, Clone)]
pub struct Warc {
    /// Where it lies.
    pub path: PathBuf,
    /// Its name in the archive, without `.open`.
    pub name: String,
    /// Bytes that count.
    pub len: u64,
}

/// What is packed, and how.
#[derive(Debug)]
pub struct Request<'a> {
    /// The WARC files, in their order.
    pub warcs: &'a [Warc],
    /// The index lines, in any order, and how many of their bytes count.
    pub index: (&'a Path, u64),
    /// For sorting: a folder that may be written to.
    pub scratch: &'a Path,
    /// The title of the collection.
    pub title: Option<&'a str>,
    /// Pages come with their text.
    pub text: bool,
    /// What made it.
    pub software: &'a str,
    /// When.
    pub created: Time,
}

/// What was packed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Packed {
    /// WARC files.
    pub warcs: u64,
    /// Lines of the index.
    pub lines: u64,
    /// Pages, and how many of them were seeds.
    pub pages: u64,
    /// Seeds among them.
    pub seeds: u64,
    /// Bytes of the WACZ file.
    pub bytes: u64,
}

/// The file that is being written.
struct Zip {
    to: ZipWriter<BufWriter<File>>,
    resources: Vec<Value>,
}

fn broken(error: zip::result::ZipError) -> io::Error {
    match error {
        zip::result::ZipError::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl Zip {
    /// Adds a file as it is.
    fn store(&mut self, path: &str, input: impl Read, listed: bool) -> io::Result<(u64, String)> {
        self.add(path, input, CompressionMethod::Stored, listed)
    }

    fn add(
        &mut self,
        path: &str,
        mut input: impl Read,
        method: CompressionMethod,
        listed: bool,
    ) -> io::Result<(u64, String)> {
        // sizes over 4 GiB cannot be ruled out before the end; the time is left at the format's zero, so that the same
        // archive makes the same file
        let options = SimpleFileOptions::default()
            .compression_method(method)
            .large_file(true)
            .unix_permissions(0o644);
        self.to.start_file(path, options).map_err(broken)?;
        let (mut hash, mut len) = (Sha256::new(), 0);
        let mut piece = vec![0; STEP];
        loop {
            let read = match input.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let bytes = piece.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            hash.update(bytes);
            len += read as u64;
            self.to.write_all(bytes)?;
        }
        let hash = format!("sha256:{}", data_encoding::HEXLOWER.encode(&hash.finalize()));
        if listed {
            // names of data packages are in lower case
            let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
            self.resources
                .push(json!({"name": name, "path": path, "hash": hash, "bytes": len}));
        }
        Ok((len, hash))
    }
}

/// Packs an archive into `to`, which must not be there.
///
/// # Errors
/// If anything cannot be read or written; `to` is then not there.
pub fn pack(request: &Request<'_>, to: &Path) -> io::Result<Packed> {
    let mut name = to.file_name().unwrap_or_default().to_os_string();
    name.push(".partial");
    let partial = to.with_file_name(name);
    let packed = write(request, &partial).and_then(|mut packed| {
        let file = File::open(&partial)?;
        file.sync_all()?;
        packed.bytes = file.metadata()?.len();
        // a hard link does not replace what appeared there in the meantime; not every file system has them
        match fs::hard_link(&partial, to) {
            Ok(()) => fs::remove_file(&partial)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) => fs::rename(&partial, to)?,
        }
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(packed)
    });
    if packed.is_err() {
        // the first error counts
        let _ = fs::remove_file(&partial);
    }
    packed
}

fn write(request: &Request<'_>, to: &Path) -> io::Result<Packed> {
    let file = BufWriter::with_capacity(STEP, File::create(to)?);
    let mut zip = Zip {
        to: ZipWriter::new(file),
        resources: Vec::new(),
    };
    let mut packed = Packed::default();
    for warc in request.warcs {
        let file = File::open(&warc.path)?.take(warc.len);
        let (len, _) = zip.store(&format!("archive/{}", warc.name), file, true)?;
        if len < warc.len && warc.len < u64::MAX {
            let words = format!(
                "{}: {len} bytes, the job's state says {}",
                warc.path.display(),
                warc.len
            );
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, words));
        }
        packed.warcs += 1;
    }
    let index = Index::sorted(request.index, request.scratch)?;
    packed.lines = index.put(&mut zip)?;
    let pages = pages::collect(request.warcs, request.text, request.scratch)?;
    pages.put(&mut zip)?;
    (packed.pages, packed.seeds) = (pages.count + pages.seeds, pages.seeds);

    let mut list = json!({
        "profile": "data-package",
        "wacz_version": VERSION,
        "software": request.software,
        "created": request.created.rfc3339(0),
        "resources": std::mem::take(&mut zip.resources),
    });
    if let Value::Object(list) = &mut list {
        if let Some(title) = request.title {
            list.insert("title".to_owned(), title.into());
        }
        if let Some((url, time)) = &pages.first {
            list.insert("mainPageUrl".to_owned(), url.as_str().into());
            list.insert("mainPageDate".to_owned(), time.as_str().into());
        }
    }
    let list = format!("{list:#}\n");
    let (_, hash) = zip.add("datapackage.json", list.as_bytes(), CompressionMethod::Deflated, false)?;
    let seal = format!("{:#}\n", json!({"path": "datapackage.json", "hash": hash}));
    zip.add(
        "datapackage-digest.json",
        seal.as_bytes(),
        CompressionMethod::Deflated,
        false,
    )?;
    let mut file = zip.to.finish().map_err(broken)?;
    file.flush()?;
    Ok(packed)
}

/// A reader over a file below the scratch folder.
fn read(path: &Path) -> io::Result<BufReader<File>> {
    Ok(BufReader::with_capacity(STEP, File::open(path)?))
}
