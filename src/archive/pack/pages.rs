//! The pages of an archive: what a person went to, not what a page is made of. The seeds stand in `pages.jsonl`, the others
//! in `extraPages.jsonl`, each with its title.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use sha1::{Digest as _, Sha1};
use zip::CompressionMethod;

use super::{Warc, Zip, read};
use crate::archive::read::{Record, members};
use crate::extract::charset;
use crate::extract::fields::{Builtin, Fields, Page};
use crate::extract::mime;
use crate::fetch::decode;

/// Of a block so much is looked at, bytes: a title stands far before that.
const KEPT: usize = 1 << 20;
/// With the texts of pages so much.
const KEPT_FOR_TEXT: usize = 16 << 20;
/// Titles by payload, for pages that say what another said.
const MAX_TITLES: usize = 100_000;

/// The lists of pages on disk.
pub(super) struct Pages {
    of_seeds: PathBuf,
    others: PathBuf,
    /// Pages that were no seeds.
    pub(super) count: u64,
    pub(super) seeds: u64,
    /// The first seed, and when.
    pub(super) first: Option<(String, String)>,
}

impl Pages {
    pub(super) fn put(&self, zip: &mut Zip) -> io::Result<()> {
        zip.add(
            "pages/pages.jsonl",
            read(&self.of_seeds)?,
            CompressionMethod::Deflated,
            true,
        )?;
        if self.count > 0 {
            let others = read(&self.others)?;
            zip.add("pages/extraPages.jsonl", others, CompressionMethod::Deflated, true)?;
        }
        Ok(())
    }
}

/// A page whose metadata, which says how it was found, is still to come.
struct Waiting {
    record: String,
    page: Map<String, Value>,
}

/// Goes through the records and lists the pages.
pub(super) fn collect(warcs: &[Warc], text: bool, scratch: &Path) -> io::Result<Pages> {
    let (of_seeds, others) = (scratch.join("pages"), scratch.join("extra-pages"));
    let head = |id: &str, title: &str| json!({"format": "json-pages-1.0", "id": id, "title": title, "hasText": text});
    let open = |path: &Path, head: Value| -> io::Result<BufWriter<File>> {
        let mut list = BufWriter::new(File::create(path)?);
        writeln!(list, "{head}")?;
        Ok(list)
    };
    let mut seeds = open(&of_seeds, head("pages", "Seeds"))?;
    let mut extra = open(&others, head("extra-pages", "All Other Pages"))?;
    let mut reader = Reader::new(text)?;
    let mut pages = Pages {
        of_seeds,
        others,
        count: 0,
        seeds: 0,
        first: None,
    };
    for warc in warcs {
        let file = BufReader::with_capacity(1 << 18, File::open(&warc.path)?.take(warc.len));
        let keep = if text { KEPT_FOR_TEXT } else { KEPT };
        let mut waiting: Option<Waiting> = None;
        for record in members(file, keep) {
            let record = record.map_err(|damage| {
                let words = format!("{}: {damage}; crawler verify says more", warc.path.display());
                io::Error::new(io::ErrorKind::InvalidData, words)
            })?;
            match record.kind() {
                "response" | "revisit" => waiting = reader.page(&record),
                "metadata" => {
                    let Some(found) =
                        waiting.take_if(|found| record.header("WARC-Concurrent-To") == Some(&found.record))
                    else {
                        continue;
                    };
                    let hops = hops(&record);
                    // what a page is made of is no page
                    if hops.contains(['E', 'P']) {
                        continue;
                    }
                    let is_seed = hops.chars().all(|hop| hop == 'R');
                    let mut page = found.page;
                    if is_seed {
                        page.insert("seed".to_owned(), true.into());
                        pages.seeds += 1;
                        let of = |key: &str| page.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
                        pages.first.get_or_insert_with(|| (of("url"), of("ts")));
                    } else {
                        pages.count += 1;
                    }
                    let list = if is_seed { &mut seeds } else { &mut extra };
                    writeln!(list, "{}", Value::Object(page))?;
                }
                _ => {}
            }
        }
    }
    seeds.flush()?;
    extra.flush()?;
    if pages.seeds == 0 && pages.count > 0 {
        // every seed was redirected away or failed: a file must have pages
        fs::rename(&pages.others, &pages.of_seeds)?;
        (pages.seeds, pages.count) = (pages.count, 0);
    }
    Ok(pages)
}

/// How a page was found.
fn hops(metadata: &Record) -> String {
    let block = String::from_utf8_lossy(&metadata.block).into_owned();
    let line = block.lines().find_map(|line| line.strip_prefix("hopsFromSeed: "));
    line.unwrap_or_default().to_owned()
}

struct Reader {
    fields: Fields,
    titles: HashMap<String, Option<String>>,
}

impl Reader {
    fn new(text: bool) -> io::Result<Self> {
        let wanted: &[Builtin] = if text {
            &[Builtin::Title, Builtin::Text]
        } else {
            &[Builtin::Title]
        };
        Ok(Self {
            fields: Fields::compile(wanted, &[]).map_err(io::Error::other)?,
            titles: HashMap::new(),
        })
    }

    /// The page that a record holds, if it is an HTML page that came.
    fn page(&mut self, record: &Record) -> Option<Waiting> {
        let head = record.http_head();
        // "HTTP/1.1 200 OK"
        let status = head.split(|byte| *byte == b' ').nth(1)?;
        if status.get(..3)? != b"200" {
            return None;
        }
        let kind = field(head, "content-type");
        let essence = kind.and_then(mime::parse).map(|mime| mime.essence)?;
        if !matches!(essence.as_str(), "text/html" | "application/xhtml+xml") {
            return None;
        }
        let url = record.header("WARC-Target-URI")?;
        let date = record.header("WARC-Date")?;
        let digest = record.header("WARC-Payload-Digest").unwrap_or_default().to_owned();
        let mut page = Map::new();
        let id = data_encoding::HEXLOWER.encode(&Sha1::digest(format!("{url} {date}")));
        page.insert("id".to_owned(), id.get(..22).unwrap_or_default().into());
        page.insert("url".to_owned(), url.into());
        page.insert("ts".to_owned(), date.into());
        if record.kind() == "revisit" {
            if let Some(Some(title)) = self.titles.get(&digest) {
                page.insert("title".to_owned(), title.as_str().into());
            }
        } else {
            let mut found = self.read(record, head, kind, essence == "application/xhtml+xml");
            let title = found.get("title").and_then(Value::as_str).map(str::to_owned);
            if self.titles.len() < MAX_TITLES {
                self.titles.insert(digest, title);
            }
            found.retain(|key, value| key != "cut" && !value.is_null());
            page.append(&mut found);
        }
        Some(Waiting {
            record: record.header("WARC-Record-ID")?.to_owned(),
            page,
        })
    }

    fn read(&self, record: &Record, head: &[u8], kind: Option<&[u8]>, xhtml: bool) -> Map<String, Value> {
        let encoding = field(head, "content-encoding");
        let encodings: Vec<&[u8]> = encoding.into_iter().collect();
        let payload = record.payload();
        let decoded = decode::small(&encodings, payload, KEPT_FOR_TEXT as u64);
        let bytes = decoded.as_ref().map_or(payload, |decoded| &*decoded.bytes);
        let (_, text) = charset::decode(kind, bytes);
        self.fields.extract(&Page {
            text: &text,
            xhtml,
            host: "",
            language: None,
            resolve: &|_| None,
            links: &|| Value::Null,
        })
    }
}

/// The first value of a field of a head.
fn field<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (found, value) = line.split_at_checked(colon)?;
        found
            .trim_ascii()
            .eq_ignore_ascii_case(name.as_bytes())
            .then(|| value.get(1..).unwrap_or_default().trim_ascii())
    })
}
