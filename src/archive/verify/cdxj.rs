//! CDXJ: sorted lines, each of which leads to its record.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek};
use std::path::PathBuf;

use flate2::bufread::MultiGzDecoder;
use serde_json::{Map, Value};

use super::{Found, record_at};
use crate::url::surt;

/// Longest line, bytes.
const MAX_LINE: u64 = 1 << 20;
/// WARC files that are open at once.
const MAX_OPEN: usize = 64;

/// Where the files of an index are.
pub(super) trait Files {
    type File: Read + Seek;

    /// The file of a name, if there is one.
    fn open(&mut self, name: &str) -> io::Result<Option<&mut Self::File>>;
}

/// Files in folders.
pub(super) struct Folders {
    folders: Vec<PathBuf>,
    open: HashMap<String, Option<File>>,
}

impl Folders {
    pub(super) fn new(folders: Vec<PathBuf>) -> Self {
        Self {
            folders,
            open: HashMap::new(),
        }
    }
}

impl Files for Folders {
    type File = File;

    fn open(&mut self, name: &str) -> io::Result<Option<&mut File>> {
        if !self.open.contains_key(name) {
            if self.open.len() >= MAX_OPEN {
                self.open.clear();
            }
            // a name, and no way out of the folder
            let safe = !name.split('/').any(|part| part == "..") && !name.starts_with('/');
            let path = self
                .folders
                .iter()
                .map(|folder| folder.join(name))
                .find(|path| safe && path.is_file());
            self.open.insert(name.to_owned(), path.map(File::open).transpose()?);
        }
        Ok(self.open.get_mut(name).and_then(Option::as_mut))
    }
}

/// Looks at an index, plain or gzipped.
pub(super) fn check(mut index: Box<dyn BufRead + '_>, files: &mut impl Files, found: &mut Found) -> io::Result<()> {
    if index.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        index = Box::new(BufReader::new(MultiGzDecoder::new(index)));
    }
    let (mut line, mut before, mut number) = (Vec::new(), Vec::new(), 0_u64);
    loop {
        line.clear();
        number += 1;
        let place = format!("line {number}");
        match (&mut index).take(MAX_LINE).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
                ) =>
            {
                found.fault(place, format!("the gzip stream is damaged: {error}"));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        if line.pop_if(|byte| *byte == b'\n').is_none() {
            found.fault(place.as_str(), "the line has no end");
        }
        if line.starts_with(b" CDX") || line.starts_with(b"!") || line.is_empty() {
            continue;
        }
        if line < before {
            found.fault(place.as_str(), "it is not in order: sort by bytes");
        }
        found.records += 1;
        if let Err(text) = entry(&line, files)? {
            found.fault(place, text);
        }
        std::mem::swap(&mut line, &mut before);
    }
}

/// Judges a line and the record that it leads to.
fn entry(line: &[u8], files: &mut impl Files) -> io::Result<Result<(), String>> {
    let Some((key, time, fields)) = parts(line) else {
        return Ok(Err("it is no line of CDXJ: key, 14 or 17 digits, JSON".to_owned()));
    };
    let text = |name: &str| match fields.get(name) {
        Some(Value::String(text)) => Some(text.clone()),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    let (Some(name), Some(offset)) = (text("filename"), number("offset")) else {
        return Ok(Err("filename or offset is missing".to_owned()));
    };
    if fields.contains_key("length") && number("length").is_none() {
        return Ok(Err("length is no number".to_owned()));
    }
    let Some(file) = files.open(&name)? else {
        return Ok(Err(format!("{name} is not there")));
    };
    // some write no length, or zero for one that they do not know
    let length = number("length").filter(|length| *length > 0);
    let head = match record_at(file, offset, length)? {
        Ok(head) => head.fields,
        Err(why) => return Ok(Err(format!("{name} at {offset}: {why}"))),
    };
    let wrong =
        |what: &str, said: &str, there: &str| Err(format!("{name} at {offset}: {what} is {there:?} and not {said:?}"));
    let uri = head.get("warc-target-uri").unwrap_or_default();
    let uri = uri
        .strip_prefix('<')
        .and_then(|uri| uri.strip_suffix('>'))
        .unwrap_or(uri);
    if let Some(url) = text("url")
        && url != uri
    {
        return Ok(wrong("the address", &url, uri));
    }
    let digits: String = head
        .get("warc-date")
        .unwrap_or_default()
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    if !digits.starts_with(time.get(..14.min(digits.len())).unwrap_or_default()) {
        return Ok(wrong("the date", time, &digits));
    }
    let revisit = text("mime").as_deref() == Some("warc/revisit");
    if revisit != (head.kind() == "revisit") {
        return Ok(wrong(
            "the type",
            if revisit { "revisit" } else { "other" },
            head.kind(),
        ));
    }
    let plain = |digest: &str| digest.strip_prefix("sha1:").unwrap_or(digest).to_owned();
    if let (Some(said), Some(there)) = (text("digest"), head.get("warc-payload-digest"))
        && plain(&said) != plain(there)
    {
        return Ok(wrong("the payload digest", &said, there));
    }
    // a request that was no GET has its body in the key
    let own = surt::surt(uri);
    if !fields.contains_key("method") && !key.contains("__wb_") && own != key {
        return Ok(Err(format!("the key of {uri} is {own}")));
    }
    Ok(Ok(()))
}

fn parts(line: &[u8]) -> Option<(&str, &str, Map<String, Value>)> {
    let text = std::str::from_utf8(line).ok()?;
    let (key, rest) = text.split_once(' ')?;
    let (time, json) = rest.split_once(' ')?;
    let digits = matches!(time.len(), 14 | 17) && time.bytes().all(|byte| byte.is_ascii_digit());
    match serde_json::from_str(json).ok()? {
        Value::Object(fields) if digits && !key.is_empty() => Some((key, time, fields)),
        _ => None,
    }
}
