//! The tokens of CSS that matter for addresses (CSS Syntax 3, section 4).

use std::borrow::Cow;

/// White space and comments are not reported; numbers, hashes and plain identifiers are [`Token::Other`].
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token<'a> {
    /// `@name`
    At(Cow<'a, str>),
    /// `name(`
    Function(Cow<'a, str>),
    /// `url(bare)`
    Url(Cow<'a, str>),
    /// A whole string.
    String(Cow<'a, str>),
    /// `(`
    Open,
    /// `)`
    Close,
    /// `;`
    Semicolon,
    /// `{`
    BlockStart,
    /// `}`
    BlockEnd,
    /// `<!--` or `-->`, which do not count between rules.
    Cdo,
    /// Anything else, bad strings and bad URLs included.
    Other,
}

/// Reads tokens off a text, front to back, each byte once (twice what is peeked at).
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token, left where it is.
    pub(super) fn peek(&self) -> Option<Token<'a>> {
        Tokens {
            text: self.text,
            at: self.at,
        }
        .next()
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Steps over white space and comments.
    fn skip_blank(&mut self) {
        loop {
            match self.byte(0) {
                Some(b) if is_space(b) => self.at += 1,
                Some(b'/') if self.byte(1) == Some(b'*') => {
                    let body = self.text.get(self.at + 2..).unwrap_or_default();
                    self.at = match memchr::memmem::find(body.as_bytes(), b"*/") {
                        Some(end) => self.at + 2 + end + 2,
                        None => self.text.len(),
                    };
                }
                _ => return,
            }
        }
    }

    /// Whether an identifier starts `ahead` bytes on (section 4.3.9).
    fn starts_name(&self, ahead: usize) -> bool {
        match self.byte(ahead) {
            Some(b'-') => match self.byte(ahead + 1) {
                Some(b'-') => true,
                Some(b'\\') => self.is_escape(ahead + 1),
                other => other.is_some_and(is_name_start),
            },
            Some(b'\\') => self.is_escape(ahead),
            other => other.is_some_and(is_name_start),
        }
    }

    /// Whether a valid escape stands `ahead` bytes on (section 4.3.8).
    fn is_escape(&self, ahead: usize) -> bool {
        self.byte(ahead) == Some(b'\\') && !matches!(self.byte(ahead + 1), Some(b'\n' | b'\r' | b'\x0c'))
    }

    /// An identifier's characters (section 4.3.11).
    fn name(&mut self) -> Cow<'a, str> {
        let start = self.at;
        let mut decoded: Option<String> = None;
        loop {
            let from = self.at;
            while self.byte(0).is_some_and(is_name) {
                self.at += 1;
            }
            let plain = self.since(from);
            if let Some(decoded) = &mut decoded {
                decoded.push_str(plain);
            }
            if self.byte(0) != Some(b'\\') || !self.is_escape(0) {
                break;
            }
            let decoded = decoded.get_or_insert_with(|| plain.to_owned());
            self.at += 1;
            decoded.push(self.escape());
        }
        decoded.map_or_else(|| Cow::Borrowed(self.since(start)), Cow::Owned)
    }

    /// The character of an escape whose backslash has been read (section 4.3.7).
    fn escape(&mut self) -> char {
        let digits = self.rest().bytes().take(6).take_while(u8::is_ascii_hexdigit).count();
        if digits == 0 {
            let Some(c) = self.rest().chars().next() else {
                return char::REPLACEMENT_CHARACTER;
            };
            self.at += c.len_utf8();
            return if c == '\0' { char::REPLACEMENT_CHARACTER } else { c };
        }
        let code = u32::from_str_radix(self.rest().get(..digits).unwrap_or_default(), 16).unwrap_or(0);
        self.at += digits;
        match self.byte(0) {
            Some(b'\r') if self.byte(1) == Some(b'\n') => self.at += 2,
            Some(b) if is_space(b) => self.at += 1,
            _ => {}
        }
        char::from_u32(code)
            .filter(|&c| c != '\0')
            .unwrap_or(char::REPLACEMENT_CHARACTER)
    }

    /// A string whose opening quote has been read; [`Token::Other`] if a line ends inside it (section 4.3.5).
    fn string(&mut self, quote: u8) -> Token<'a> {
        let start = self.at;
        let mut decoded: Option<String> = None;
        loop {
            let from = self.at;
            while !matches!(self.byte(0), None | Some(b'\n' | b'\r' | b'\x0c' | b'\\' | 0))
                && self.byte(0) != Some(quote)
            {
                self.at += 1;
            }
            let plain = self.since(from);
            if let Some(decoded) = &mut decoded {
                decoded.push_str(plain);
            }
            let text = |decoded: Option<String>| {
                decoded.map_or_else(|| Cow::Borrowed(plain_of(self.text, start, self.at)), Cow::Owned)
            };
            match self.byte(0) {
                None => return Token::String(text(decoded)),
                Some(b) if b == quote => {
                    let token = Token::String(text(decoded));
                    self.at += 1;
                    return token;
                }
                Some(0) => {
                    self.at += 1;
                    decoded
                        .get_or_insert_with(|| plain.to_owned())
                        .push(char::REPLACEMENT_CHARACTER);
                }
                Some(b'\\') => {
                    let decoded = decoded.get_or_insert_with(|| plain.to_owned());
                    self.at += 1;
                    match self.byte(0) {
                        None => {}
                        Some(b'\r') if self.byte(1) == Some(b'\n') => self.at += 2,
                        Some(b'\n' | b'\r' | b'\x0c') => self.at += 1,
                        Some(_) => decoded.push(self.escape()),
                    }
                }
                Some(_) => return Token::Other,
            }
        }
    }

    /// An address without quotes whose `url(` and white space have been read (section 4.3.6).
    fn bare_url(&mut self) -> Token<'a> {
        let start = self.at;
        let mut decoded: Option<String> = None;
        loop {
            let from = self.at;
            while self.byte(0).is_some_and(is_bare) {
                self.at += 1;
            }
            let plain = self.since(from);
            if let Some(decoded) = &mut decoded {
                decoded.push_str(plain);
            }
            let end = self.at;
            match self.byte(0) {
                Some(b'\\') if self.is_escape(0) => {
                    let decoded = decoded.get_or_insert_with(|| plain.to_owned());
                    self.at += 1;
                    decoded.push(self.escape());
                }
                Some(0) => {
                    self.at += 1;
                    decoded
                        .get_or_insert_with(|| plain.to_owned())
                        .push(char::REPLACEMENT_CHARACTER);
                }
                next => {
                    while self.byte(0).is_some_and(is_space) {
                        self.at += 1;
                    }
                    if next.is_some() && !matches!(self.byte(0), None | Some(b')')) {
                        self.skip_bad_url();
                        return Token::Other;
                    }
                    self.at = (self.at + 1).min(self.text.len());
                    let url = decoded.map_or_else(|| Cow::Borrowed(plain_of(self.text, start, end)), Cow::Owned);
                    return Token::Url(url);
                }
            }
        }
    }

    /// To the end of a bad URL (section 4.3.14).
    fn skip_bad_url(&mut self) {
        while let Some(b) = self.byte(0) {
            self.at += 1;
            match b {
                b')' => return,
                b'\\' if self.byte(0).is_some_and(|b| b == b')' || b == b'\\') => self.at += 1,
                _ => {}
            }
        }
    }

    /// An identifier, a function or a bare URL (section 4.3.4).
    fn word(&mut self) -> Token<'a> {
        let name = self.name();
        if self.byte(0) != Some(b'(') {
            return Token::Other;
        }
        self.at += 1;
        if !name.eq_ignore_ascii_case("url") {
            return Token::Function(name);
        }
        let blank = self.rest().bytes().take_while(|&b| is_space(b)).count();
        if matches!(self.byte(blank), Some(b'"' | b'\'')) {
            return Token::Function(name);
        }
        self.at += blank;
        self.bare_url()
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blank();
        let first = self.byte(0)?;
        if self.rest().starts_with("-->") {
            self.at += 3;
            return Some(Token::Cdo);
        }
        if self.starts_name(0) {
            return Some(self.word());
        }
        self.at += 1;
        Some(match first {
            b'"' | b'\'' => self.string(first),
            b'@' if self.starts_name(0) => Token::At(self.name()),
            b'#' => {
                self.name();
                Token::Other
            }
            b'0'..=b'9' => {
                // a number and its unit are one token: `1url(` is no URL
                self.name();
                Token::Other
            }
            b'<' if self.rest().starts_with("!--") => {
                self.at += 3;
                Token::Cdo
            }
            b'(' => Token::Open,
            b')' => Token::Close,
            b';' => Token::Semicolon,
            b'{' => Token::BlockStart,
            b'}' => Token::BlockEnd,
            _ => Token::Other,
        })
    }
}

fn plain_of(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or_default()
}

/// White space of CSS: newline (and what is preprocessed to one), tab, space.
fn is_space(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}

/// A character an identifier may start with; every byte of a character beyond ASCII is one.
fn is_name_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_' || b >= 0x80 || b == 0
}

fn is_name(b: u8) -> bool {
    is_name_start(b) || b.is_ascii_digit() || b == b'-'
}

/// A character that may stand in a URL without quotes.
fn is_bare(b: u8) -> bool {
    !matches!(b, 0..=0x20 | 0x7f | b'"' | b'\'' | b'(' | b')' | b'\\')
}
