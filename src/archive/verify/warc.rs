//! WARC files, record by record.

use std::io::{self, BufRead, BufReader, Read};

use flate2::bufread::GzDecoder;

use super::digest::Claim;
use super::fields::Fields;
use super::http::{Message, Reader};
use super::window::Window;
use super::{Found, Ids};

/// Longest header of a record, bytes.
const MAX_HEADER: usize = 1 << 20;
/// Bytes read from a file at once.
const READ: usize = 1 << 18;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Does the reading of a file go on behind a record?
#[derive(Debug, PartialEq, Eq)]
enum Then {
    Next,
    /// Where the next record begins is not known.
    Lost,
}

/// Counts what is taken from below, and tells a failure to read from damage.
struct Counted<R> {
    input: R,
    position: u64,
    failed: bool,
}

impl<R: BufRead> Read for Counted<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(to).inspect_err(|_| self.failed = true)?;
        self.position += read as u64;
        Ok(read)
    }
}

impl<R: BufRead> BufRead for Counted<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let failed = &mut self.failed;
        self.input.fill_buf().inspect_err(|_| *failed = true)
    }

    fn consume(&mut self, count: usize) {
        self.position += count as u64;
        self.input.consume(count);
    }
}

/// Looks at a file of records.
pub(super) fn check(file: impl Read, named_gz: bool, ids: &mut Ids, found: &mut Found) -> io::Result<()> {
    let mut input = BufReader::with_capacity(READ, file);
    let start = input.fill_buf()?;
    if start.is_empty() {
        return Ok(());
    }
    if start.starts_with(&GZIP) {
        return members(input, ids, found);
    }
    if named_gz {
        found.fault("", "its name says gzip, its bytes do not");
    }
    let mut window = Window::new(input);
    while window.fill(1)? {
        let place = format!("offset {}", window.position);
        if record(&mut window, &place, ids, found)? == Then::Lost {
            break;
        }
    }
    Ok(())
}

fn members(input: impl BufRead, ids: &mut Ids, found: &mut Found) -> io::Result<()> {
    let mut input = Counted {
        input,
        position: 0,
        failed: false,
    };
    loop {
        if input.fill_buf()?.is_empty() {
            return Ok(());
        }
        let place = format!("offset {}", input.position);
        if !input.fill_buf()?.starts_with(&GZIP) {
            found.fault(place, "what follows is no gzip member");
            return Ok(());
        }
        let mut window = Window::new(GzDecoder::new(input));
        let read = member(&mut window, &place, ids, found);
        input = window.into_input().into_inner();
        match read {
            Err(error) if input.failed => return Err(error),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                found.fault(place, "the gzip member is cut off");
                return Ok(());
            }
            Err(error) => {
                found.fault(place, format!("the gzip member is damaged: {error}"));
                return Ok(());
            }
            Ok(()) => {}
        }
    }
}

/// One record, and nothing else to the end of its member, where the decoder checks CRC and length.
fn member(window: &mut Window<impl Read>, place: &str, ids: &mut Ids, found: &mut Found) -> io::Result<()> {
    let then = record(window, place, ids, found)?;
    if then == Then::Next && window.fill(1)? {
        found.fault(
            place,
            "the gzip member holds more than one record, or bytes behind its record",
        );
    }
    while window.fill(1)? {
        window.pass(usize::MAX);
    }
    Ok(())
}

/// Passes to behind the header of a record, and gives it without its closing empty line.
fn header<R: Read>(window: &mut Window<R>) -> io::Result<Result<Vec<u8>, String>> {
    let mut from = 0;
    loop {
        let seen = window.seen();
        let new = seen.get(from..).unwrap_or_default();
        if let Some(at) = memchr::memmem::find(new, b"\r\n\r\n") {
            let header = seen.get(..from + at).unwrap_or_default().to_vec();
            window.pass(from + at + 4);
            return Ok(Ok(header));
        }
        from = seen.len().saturating_sub(3);
        if seen.len() > MAX_HEADER {
            return Ok(Err("the header of a record has no end".to_owned()));
        }
        if !window.more()? {
            let zeros = !window.seen().is_empty() && window.seen().iter().all(|byte| *byte == 0);
            let what = if zeros { "zeros" } else { "no record" };
            return Ok(Err(format!("what follows to the end is {what}: no header ends there")));
        }
    }
}

fn record<R: Read>(window: &mut Window<R>, place: &str, ids: &mut Ids, found: &mut Found) -> io::Result<Then> {
    let header = match header(window)? {
        Ok(header) => header,
        Err(text) => {
            found.fault(place, text);
            return Ok(Then::Lost);
        }
    };
    let mut faults = Vec::new();
    let fields = Fields::read(&header, &mut faults);
    if let Some(id) = fields.get("warc-record-id")
        && !ids.add(id)
    {
        faults.push("the record's id stands twice".to_owned());
    }
    for name in ["warc-concurrent-to", "warc-refers-to"] {
        for id in fields.all(name) {
            ids.wants(id, place, name);
        }
    }
    let then = match fields.length() {
        None => Then::Lost,
        Some(length) => block(window, &fields, length, &mut faults)?,
    };
    for text in faults {
        found.fault(place, text);
    }
    found.records += u64::from(then == Then::Next);
    Ok(then)
}

fn block<R: Read>(window: &mut Window<R>, fields: &Fields, length: u64, faults: &mut Vec<String>) -> io::Result<Then> {
    let mut claim = |name: &str| match fields.get(name).map(Claim::read) {
        None | Some(Ok(None)) => None,
        Some(Ok(claim)) => claim,
        Some(Err(())) => {
            faults.push(format!("{name} is no labelled digest"));
            None
        }
    };
    let mut whole = claim("warc-block-digest");
    let mut payload = claim("warc-payload-digest");
    let mut http = message(fields).map(|message| {
        let truncated = fields.get("warc-truncated").is_some();
        Reader::new(message, truncated, payload.take())
    });
    // what a revisit speaks of lies elsewhere
    if !matches!(fields.kind(), "resource" | "conversion" | "response" | "request") {
        payload = None;
    }
    let mut left = length;
    while left > 0 {
        if !window.fill(1)? {
            faults.push(format!("the block is cut off: {} of {length} bytes", length - left));
            return Ok(Then::Lost);
        }
        let seen = window.seen();
        let count = seen.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = seen.get(..count).unwrap_or_default();
        for claim in [&mut whole, &mut payload].into_iter().flatten() {
            claim.update(bytes);
        }
        if let Some(http) = &mut http {
            http.take(bytes);
        }
        window.pass(count);
        left -= count as u64;
    }
    if whole.is_some_and(|claim| !claim.holds()) {
        faults.push("the block digest differs".to_owned());
    }
    if payload.is_some_and(|claim| !claim.holds()) {
        faults.push("the payload digest differs".to_owned());
    }
    if let Some(http) = http {
        faults.extend(http.finish());
    }
    window.fill(4)?;
    if !window.seen().starts_with(b"\r\n\r\n") {
        faults.push("two line ends (CR LF) do not follow the block".to_owned());
        return Ok(Then::Lost);
    }
    window.pass(4);
    Ok(Then::Next)
}

/// The HTTP message that a record holds, by its type and what it says.
fn message(fields: &Fields) -> Option<Message> {
    let content = fields
        .get("content-type")
        .unwrap_or_default()
        .replace(' ', "")
        .to_ascii_lowercase();
    let http = content.starts_with("application/http");
    let uri = fields.get("warc-target-uri").unwrap_or_default().to_ascii_lowercase();
    match fields.kind() {
        "response" if http || uri.starts_with("http") => Some(Message::Response),
        "request" if http => Some(Message::Request),
        _ => None,
    }
}

/// The header of the record at the present place of a file.
pub(super) struct Head {
    pub(super) fields: Fields,
}

/// Reads it. With a length the record must take just so many bytes of the file.
pub(super) fn head_at(file: &mut impl Read, length: Option<u64>) -> io::Result<Result<Head, String>> {
    let input = BufReader::new(file.take(length.unwrap_or(u64::MAX)));
    let mut input = Counted {
        input,
        position: 0,
        failed: false,
    };
    if input.fill_buf()?.starts_with(&GZIP) {
        let mut window = Window::new(GzDecoder::new(input));
        let read = header(&mut window).and_then(|header| {
            while length.is_some() && window.fill(1)? {
                window.pass(usize::MAX);
            }
            Ok(header)
        });
        input = window.into_input().into_inner();
        return match read {
            Err(error) if input.failed => Err(error),
            Err(error) => Ok(Err(format!("no whole record: {error}"))),
            Ok(header) => Ok(header.and_then(|header| head(&header, length, input.position, None))),
        };
    }
    let mut window = Window::new(input);
    let header = header(&mut window)?;
    let position = window.position;
    Ok(header.and_then(|header| head(&header, length, 0, Some(position))))
}

/// A header, if it is one and its record is as long as said: `packed` bytes as a member, or plain from a header so long.
fn head(header: &[u8], length: Option<u64>, packed: u64, plain: Option<u64>) -> Result<Head, String> {
    if !header.starts_with(b"WARC/") {
        return Err("no record begins there".to_owned());
    }
    let fields = Fields::read(header, &mut Vec::new());
    if let Some(length) = length {
        let good = match plain {
            None => packed == length,
            // with the two line ends behind it or without them
            Some(start) => fields
                .length()
                .is_some_and(|block| [start + block, start + block + 4].contains(&length)),
        };
        if !good {
            return Err(format!("the record there is not {length} bytes long"));
        }
    }
    Ok(Head { fields })
}
