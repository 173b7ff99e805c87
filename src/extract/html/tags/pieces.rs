//! A page piece by piece: texts and end tags besides the start tags, for whoever reads more than links.

use std::borrow::Cow;

use memchr::memchr;

use super::super::Syntax;
use super::super::elements::Element;
use super::super::entities::{decode, decode_text};
use super::{Start, Tags, ends_name, local_name, walk_attributes};

/// A piece of a page.
pub(in crate::extract::html) enum Piece<'a> {
    /// Text between tags, references decoded. A text may come in several pieces.
    Text(Cow<'a, str>),
    /// A start tag; [`Tags::tag`] and [`Tags::value`] tell more of it.
    Start(Start<'a>),
    /// An end tag: its name as written, in XML without its prefix.
    End(&'a str),
}

impl<'a> Tags<'a> {
    /// The next piece.
    pub(in crate::extract::html) fn next_piece(&mut self) -> Option<Piece<'a>> {
        loop {
            if *self.rest().first()? != b'<' {
                return Some(self.text_from(self.at));
            }
            let lt = self.at;
            self.at += 1;
            match self.rest().first() {
                Some(b) if b.is_ascii_alphabetic() => return self.start_tag().map(Piece::Start),
                Some(b'/') => {
                    let name = self.end_name();
                    self.end_tag();
                    if let Some(name) = name {
                        return Some(Piece::End(name));
                    }
                }
                Some(b'!') => {
                    let takes_cdata = self.syntax == Syntax::Xml || self.foreign.takes_cdata();
                    let cdata = takes_cdata && self.rest().starts_with(b"![CDATA[");
                    let from = self.at + 8;
                    self.declaration();
                    let text = self.slice(from, self.at).strip_suffix("]]>");
                    if let Some(text) = text.filter(|_| cdata) {
                        return Some(Piece::Text(Cow::Borrowed(text)));
                    }
                }
                Some(b'?') => {
                    if let Some(start) = self.instruction() {
                        return Some(Piece::Start(start));
                    }
                }
                // a sign that starts no tag is text
                _ => return Some(self.text_from(lt)),
            }
        }
    }

    /// The text from an offset to the next `<` behind `self.at`.
    fn text_from(&mut self, from: usize) -> Piece<'a> {
        self.at += memchr(b'<', self.rest()).unwrap_or(self.rest().len());
        Piece::Text(decode_text(self.slice(from, self.at)))
    }

    /// At the slash of an end tag: its name.
    fn end_name(&self) -> Option<&'a str> {
        let rest = self.rest().get(1..)?;
        if !rest.first()?.is_ascii_alphabetic() {
            return None;
        }
        let len = rest.iter().position(|&b| ends_name(b)).unwrap_or(rest.len());
        std::str::from_utf8(local_name(rest.get(..len)?, self.syntax)).ok()
    }

    /// The name of the start tag that was read last, as written, in XML without its prefix.
    pub(in crate::extract::html) fn tag(&self) -> &'a str {
        let (from, to) = self.name_span;
        let name = local_name(self.slice(from, to).as_bytes(), self.syntax);
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// The value of any attribute of that tag, in lower case here, references decoded.
    pub(in crate::extract::html) fn value(&self, attribute: &str) -> Option<Cow<'a, str>> {
        let mut found = None;
        walk_attributes(self.text, self.name_span.1, |name, value| {
            if found.is_none() && name.eq_ignore_ascii_case(attribute.as_bytes()) {
                found = Some(value);
            }
        });
        found.map(decode)
    }

    /// The text of the `title` element that was read last, if its content is no markup.
    pub(in crate::extract::html) fn title(&self, start: &Start<'a>) -> Option<Cow<'a, str>> {
        let is_one = start.element == Element::Title && !start.foreign;
        is_one.then(|| decode_text(self.slice(self.raw_at, self.at)))
    }
}
