//! The HTTP message in a record: its head, and a body that is what the head says.

use super::digest::Claim;

/// Longest head, bytes.
const MAX_HEAD: usize = 1 << 20;
/// Longest line of a chunk's size, bytes.
const MAX_CHUNK_LINE: usize = 16 * 1024;

/// Which message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Message {
    Response,
    Request,
}

/// A message as its block goes by.
pub(super) struct Reader {
    message: Message,
    /// The record says that it is not whole.
    truncated: bool,
    head: Option<Vec<u8>>,
    chunks: Option<Chunks>,
    gzip_said: bool,
    /// The first bytes of the body without its transfer coding.
    first: Vec<u8>,
    /// Of the body as it is stored, and without its transfer coding: which of the two a digest is of is disputed.
    stored: Option<Claim>,
    decoded: Option<Claim>,
    faults: Vec<String>,
}

impl Reader {
    pub(super) fn new(message: Message, truncated: bool, payload: Option<Claim>) -> Self {
        Self {
            message,
            truncated,
            head: Some(Vec::new()),
            chunks: None,
            gzip_said: false,
            first: Vec::new(),
            decoded: payload.clone(),
            stored: payload,
            faults: Vec::new(),
        }
    }

    pub(super) fn take(&mut self, bytes: &[u8]) {
        let Some(head) = &mut self.head else {
            self.body(bytes);
            return;
        };
        let from = head.len().saturating_sub(3);
        head.extend_from_slice(bytes);
        let end = head.get(from..).and_then(|new| memchr::memmem::find(new, b"\r\n\r\n"));
        match end {
            Some(at) => {
                let head = self.head.take().unwrap_or_default();
                let (head, body) = head.split_at_checked(from + at + 4).unwrap_or((&head, &[]));
                self.read_head(head);
                self.body(body);
            }
            None if head.len() > MAX_HEAD => {
                self.faults.push("the HTTP head has no end".to_owned());
                self.head = None;
            }
            None => {}
        }
    }

    fn read_head(&mut self, head: &[u8]) {
        let mut lines = head
            .split(|byte| *byte == b'\n')
            .map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let first = lines.next().unwrap_or_default();
        if self.message == Message::Response && !is_status_line(first) {
            let shown: String = String::from_utf8_lossy(first).chars().take(60).collect();
            self.faults.push(format!("the status line is {shown:?}"));
        }
        for line in lines {
            let colon = line.iter().position(|byte| *byte == b':');
            let Some((name, value)) = colon.and_then(|at| line.split_at_checked(at)) else {
                continue;
            };
            let value = String::from_utf8_lossy(value.get(1..).unwrap_or_default());
            let value = value.trim().to_ascii_lowercase();
            match name.trim_ascii().to_ascii_lowercase().as_slice() {
                b"transfer-encoding" if value.contains("chunked") => self.chunks = Some(Chunks::default()),
                b"content-encoding" => self.gzip_said = matches!(value.as_str(), "gzip" | "x-gzip"),
                _ => {}
            }
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        if let Some(claim) = &mut self.stored {
            claim.update(bytes);
        }
        let (first, decoded) = (&mut self.first, &mut self.decoded);
        let mut out = |bytes: &[u8]| {
            let room = 2_usize.saturating_sub(first.len());
            first.extend_from_slice(bytes.get(..room).unwrap_or(bytes));
            if let Some(claim) = decoded {
                claim.update(bytes);
            }
        };
        match &mut self.chunks {
            Some(chunks) => chunks.take(bytes, &mut out),
            None => out(bytes),
        }
    }

    /// The faults, once the block has ended.
    pub(super) fn finish(mut self) -> Vec<String> {
        if self.head.is_some() {
            self.faults.push("there is no HTTP head in the block".to_owned());
            return self.faults;
        }
        let whole = !self.truncated;
        let chunked = self.chunks.is_some();
        if self.chunks.is_some_and(|chunks| !chunks.is_whole()) && whole {
            self.faults
                .push("the head says chunked, the body is no series of chunks".to_owned());
        }
        let gzip = self.first.is_empty() || self.first.starts_with(&[0x1f, 0x8b]);
        if self.message == Message::Response && self.gzip_said && !gzip && whole {
            self.faults.push("the head says gzip, the body is not gzip".to_owned());
        }
        let stored = self.stored.is_none_or(Claim::holds);
        if !(stored || chunked && self.decoded.is_some_and(Claim::holds)) {
            self.faults.push("the payload digest differs".to_owned());
        }
        self.faults
    }
}

/// `HTTP/1.1 200 OK`, `HTTP/2 200`.
fn is_status_line(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"HTTP/") else {
        return false;
    };
    let mut words = rest.splitn(3, |byte| *byte == b' ');
    let (version, status) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let version = match version {
        [major] => major.is_ascii_digit(),
        [major, b'.', minor] => major.is_ascii_digit() && minor.is_ascii_digit(),
        _ => false,
    };
    version && status.len() == 3 && status.iter().all(u8::is_ascii_digit)
}

/// A series of chunks (RFC 9112 section 7.1) as it goes by.
#[derive(Debug, Default)]
struct Chunks {
    line: Vec<u8>,
    /// Bytes left of a chunk, and then of the line end behind it.
    left: u64,
    end: usize,
    is_over: bool,
    is_wrong: bool,
}

impl Chunks {
    fn take(&mut self, mut bytes: &[u8], out: &mut impl FnMut(&[u8])) {
        while !bytes.is_empty() && !self.is_over && !self.is_wrong {
            if self.left > 0 {
                let count = bytes.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                let (data, rest) = bytes.split_at_checked(count).unwrap_or((bytes, &[]));
                out(data);
                self.left -= data.len() as u64;
                bytes = rest;
            } else if self.end > 0 {
                let expected = if self.end == 2 { b'\r' } else { b'\n' };
                self.is_wrong = bytes.first() != Some(&expected);
                self.end -= 1;
                bytes = bytes.get(1..).unwrap_or_default();
            } else if let Some(at) = memchr::memchr(b'\n', bytes) {
                let (start, rest) = bytes.split_at_checked(at + 1).unwrap_or((bytes, &[]));
                self.line.extend_from_slice(start);
                bytes = rest;
                self.size();
            } else {
                self.line.extend_from_slice(bytes);
                self.is_wrong = self.line.len() > MAX_CHUNK_LINE;
                return;
            }
        }
    }

    fn size(&mut self) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r\n").unwrap_or(b"?");
        let text = line
            .split(|byte| *byte == b';')
            .next()
            .unwrap_or_default()
            .trim_ascii_end();
        let text = std::str::from_utf8(text).unwrap_or("?");
        let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(0) if plain => self.is_over = true,
            Ok(size) if plain => (self.left, self.end) = (size, 2),
            _ => self.is_wrong = true,
        }
    }

    fn is_whole(&self) -> bool {
        self.is_over && !self.is_wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(message: &[u8], digest: Option<&str>) -> Vec<String> {
        let claim = || digest.map(|text| Claim::read(text).unwrap().unwrap());
        let whole = {
            let mut reader = Reader::new(Message::Response, false, claim());
            reader.take(message);
            reader.finish()
        };
        let mut reader = Reader::new(Message::Response, false, claim());
        for byte in message {
            reader.take(&[*byte]);
        }
        assert_eq!(reader.finish(), whole, "cut at every byte");
        whole
    }

    #[test]
    fn a_body_is_what_its_head_says_or_a_fault() {
        let good: [&[u8]; 5] = [
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/2 200 \r\nA: b\r\n\r\nx",
            b"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n\x1f\x8b",
            b"HTTP/1.1 204 No\r\nContent-Encoding: gzip\r\n\r\n",
        ];
        for message in good {
            assert_eq!(
                faults(message, None),
                Vec::<String>::new(),
                "{:?}",
                String::from_utf8_lossy(message)
            );
        }
        for (message, words) in [
            (&b"HTTP/1.1 200 OK\r\n"[..], "no HTTP head"),
            (b"ICY 200 OK\r\n\r\n", "status line"),
            (b"HTTP/1.1 20 OK\r\n\r\n", "status line"),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello",
                "no series of chunks",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
                "no series of chunks",
            ),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhelloX\n0\r\n\r\n",
                "no series of chunks",
            ),
            (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nhello", "not gzip"),
        ] {
            let faults = faults(message, None);
            assert!(faults.len() == 1 && faults[0].contains(words), "{faults:?}");
        }
    }

    #[test]
    fn a_payload_digest_may_be_of_the_chunks_or_of_what_is_in_them() {
        let message = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
        for bytes in [&b"hello"[..], b"5\r\nhello\r\n0\r\n\r\n"] {
            use sha1::Digest as _;
            let sha1 = sha1::Sha1::digest(bytes);
            let text = format!("sha1:{}", data_encoding::BASE32.encode(&sha1));
            assert_eq!(faults(message, Some(&text)), Vec::<String>::new());
        }
        let wrong = faults(message, Some("sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"));
        assert_eq!(wrong, ["the payload digest differs"]);
    }
}
