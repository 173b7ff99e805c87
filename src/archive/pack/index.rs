//! The index within: plain lines, or, where there are many, gzip members of so many lines each and a list of the first
//! line of each (`ZipNum`), so that a reader fetches a few kilobytes of a large index.

use std::fs::{self, File};
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

use super::{Zip, read};
use crate::archive::sort::{MAX_LINE, sort_file};

/// An index up to this size is plain, bytes.
const PLAIN: u64 = 50 << 10;
/// Lines of a member.
const LINES: usize = 300;
/// Memory for sorting, bytes.
const SORT_BYTES: usize = 64 << 20;

/// A sorted index on disk.
pub(super) struct Index {
    sorted: PathBuf,
    scratch: PathBuf,
}

impl Index {
    pub(super) fn sorted((lines, len): (&Path, u64), scratch: &Path) -> io::Result<Self> {
        let (covered, sorted) = (scratch.join("lines"), scratch.join("sorted"));
        let mut from = File::open(lines)?.take(len);
        let mut to = BufWriter::new(File::create(&covered)?);
        io::copy(&mut from, &mut to)?;
        to.flush()?;
        sort_file(&covered, &sorted, SORT_BYTES)?;
        fs::remove_file(covered)?;
        Ok(Self {
            sorted,
            scratch: scratch.to_owned(),
        })
    }

    /// Puts it into the file. Gives its lines.
    pub(super) fn put(&self, zip: &mut Zip) -> io::Result<u64> {
        let plain = fs::metadata(&self.sorted)?.len() <= PLAIN;
        let (packed, parts) = (self.scratch.join("index"), self.scratch.join("parts"));
        let lines = self.split(&packed, &parts)?;
        if plain {
            zip.store("indexes/index.cdx", read(&self.sorted)?, true)?;
        } else {
            zip.store("indexes/index.cdx.gz", read(&packed)?, true)?;
            zip.store("indexes/index.idx", read(&parts)?, true)?;
        }
        Ok(lines)
    }

    fn split(&self, packed: &Path, parts: &Path) -> io::Result<u64> {
        let mut input = read(&self.sorted)?;
        let mut out = BufWriter::new(File::create(packed)?);
        let mut list = BufWriter::new(File::create(parts)?);
        writeln!(
            list,
            "!meta 0 {{\"format\": \"cdxj-gzip-1.0\", \"filename\": \"index.cdx.gz\"}}"
        )?;
        let (mut offset, mut count, mut line) = (0_u64, 0_u64, Vec::new());
        loop {
            let (mut member, mut first) = (GzEncoder::new(Vec::new(), Compression::default()), None);
            for _ in 0..LINES {
                line.clear();
                if input.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line)? == 0 {
                    break;
                }
                first.get_or_insert_with(|| {
                    let words: Vec<&[u8]> = line.splitn(3, |byte| *byte == b' ').take(2).collect();
                    String::from_utf8_lossy(&words.join(&b' ')).into_owned()
                });
                member.write_all(&line)?;
                count += 1;
            }
            let Some(first) = first else { break };
            let member = member.finish()?;
            let hash = data_encoding::HEXLOWER.encode(&Sha256::digest(&member));
            writeln!(
                list,
                "{first} {{\"offset\": {offset}, \"length\": {}, \"digest\": \"sha256:{hash}\"}}",
                member.len()
            )?;
            out.write_all(&member)?;
            offset += member.len() as u64;
        }
        out.flush()?;
        list.flush()?;
        Ok(count)
    }
}
