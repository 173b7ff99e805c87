//! The path of a rule: one spelling for paths and patterns, and matching in linear time.

use std::borrow::Cow;

/// The value of an `Allow` or `Disallow` line.
#[derive(Debug, Clone)]
pub(super) struct Pattern {
    /// Normalized; `*` stands for any octets (a literal one is `%2A`). Does not end in `*`.
    text: Box<[u8]>,
    /// Ended in `$`: the path must end where the pattern does.
    anchored: bool,
    /// Octets of the pattern with its wildcards: the longer of two that match wins.
    precedence: u32,
}

impl Pattern {
    pub(super) fn new(value: &[u8]) -> Self {
        let (body, anchored) = match value.strip_suffix(b"$") {
            Some(body) => (body, true),
            None => (value, false),
        };
        let normalized = normalize(body, true);
        let precedence = normalized.len() + usize::from(anchored);
        let stars = normalized.iter().rev().take_while(|&&b| b == b'*').count();
        let text = normalized.get(..normalized.len() - stars).unwrap_or_default();
        Self {
            text: text.into(),
            // `/a*$` ends wherever the path does
            anchored: anchored && stars == 0,
            precedence: u32::try_from(precedence).unwrap_or(u32::MAX),
        }
    }

    /// Who allows `/a/index.html` means `/a/` too, as large search engines take it: the pattern `/a/$`.
    pub(super) fn folder_of_index(value: &[u8]) -> Option<Self> {
        let slash = value.iter().rposition(|&b| b == b'/')?;
        let (folder, page) = value.split_at_checked(slash + 1)?;
        page.starts_with(b"index.htm")
            .then(|| Self::new(&[folder, b"$"].concat()))
    }

    pub(super) fn precedence(&self) -> u32 {
        self.precedence
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.text.len()
    }

    /// Does the pattern match the start of a normalized path (all of it, if anchored)?
    ///
    /// The pieces between the wildcards are searched one after the other, each at its first place after the one
    /// before: if any arrangement matches, this one does, and no octet is looked at for more than one piece.
    pub(super) fn matches(&self, path: &[u8]) -> bool {
        let mut pieces = self.text.split(|&b| b == b'*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = path.strip_prefix(first) else {
            return false;
        };
        let Some(last) = pieces.next_back() else {
            return !self.anchored || rest.is_empty();
        };
        for piece in pieces {
            match memchr::memmem::find(rest, piece) {
                Some(at) => rest = rest.get(at + piece.len()..).unwrap_or_default(),
                None => return false,
            }
        }
        if self.anchored {
            rest.ends_with(last)
        } else {
            memchr::memmem::find(rest, last).is_some()
        }
    }
}

/// A path (with its query) in the one spelling in which paths and patterns are compared (RFC 9309 section 2.2.2):
/// unreserved octets plain, what may not stand in a URI encoded, hexadecimal digits in upper case, and `*` and `$`,
/// which mean something in a pattern, encoded too.
pub(super) fn normalized(path: &[u8]) -> Cow<'_, [u8]> {
    if path.iter().all(|&b| is_plain(b)) {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(normalize(path, false))
    }
}

fn normalize(text: &[u8], star_is_wildcard: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match (*byte, tail) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                rest = after;
                let octet = hex(*high) * 16 + hex(*low);
                if is_unreserved(octet) {
                    out.push(octet)
                } else {
                    push_encoded(&mut out, octet)
                }
            }
            (b'*', _) if star_is_wildcard => out.push(b'*'),
            (b'%', _) => out.push(b'%'),
            (octet, _) if is_plain(octet) => out.push(octet),
            (octet, _) => push_encoded(&mut out, octet),
        }
    }
    out
}

fn push_encoded(out: &mut Vec<u8>, octet: u8) {
    let digit = |value: u8| if value < 10 { b'0' + value } else { b'A' + value - 10 };
    out.extend_from_slice(&[b'%', digit(octet >> 4), digit(octet & 15)]);
}

/// The value of a hexadecimal digit.
fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'.' | b'_' | b'~')
}

/// Octets that stay as they are.
fn is_plain(octet: u8) -> bool {
    is_unreserved(octet)
        || matches!(
            octet,
            b'/' | b'?'
                | b'&'
                | b'='
                | b':'
                | b'@'
                | b'!'
                | b'\''
                | b'('
                | b')'
                | b'+'
                | b','
                | b';'
                | b'['
                | b']'
                | b'#'
        )
}
