//! Start tags and their attributes, front to back: the HTML Standard's tokenizer (section 13.2.5) as byte loops.
//!
//! Every byte is looked at a fixed number of times whatever stands in it: no state goes back, and what is never
//! closed ends the scan at the end of the text.

mod pieces;

use memchr::memchr;

use super::Syntax;
use super::attributes::{Attribute, Attributes};
use super::elements::Element;
use super::foreign::{Foreign, StartTag, is_transient};
use super::raw;
pub(super) use pieces::Piece;

/// A start tag.
#[derive(Debug)]
pub(super) struct Start<'a> {
    pub(super) element: Element,
    /// It makes an element of SVG or `MathML`, or stands in XML.
    pub(super) foreign: bool,
    /// The text of a `style` or `script` element; empty for others.
    pub(super) text: &'a str,
}

/// How a tag ended.
enum End {
    /// At this offset.
    At { offset: usize, self_closing: bool },
    /// The text ended inside it; `whole` if all of its values were complete.
    Cut { whole: bool },
}

/// Reads tags off a text.
pub(super) struct Tags<'a> {
    text: &'a str,
    at: usize,
    syntax: Syntax,
    foreign: Foreign<'a>,
    attributes: Attributes<'a>,
    /// End of the last `style` or `script` that was given although its content is read as markup.
    style_end: usize,
    /// Where the name of the last start tag begins, and where it ends.
    name_span: (usize, usize),
    /// Where the last raw text begins.
    raw_at: usize,
}

impl<'a> Tags<'a> {
    pub(super) fn new(text: &'a str, syntax: Syntax) -> Self {
        Self {
            text,
            at: 0,
            syntax,
            foreign: Foreign::default(),
            attributes: Attributes::new(),
            style_end: 0,
            name_span: (0, 0),
            raw_at: 0,
        }
    }

    /// The attributes of the tag that was read last.
    pub(super) fn attributes(&self) -> &Attributes<'a> {
        &self.attributes
    }

    /// The next start tag; its attributes are in [`Self::attributes`].
    pub(super) fn next_start(&mut self) -> Option<Start<'a>> {
        loop {
            self.at += memchr(b'<', self.rest())? + 1;
            match self.rest().first()? {
                b if b.is_ascii_alphabetic() => {
                    if let Some(start) = self.start_tag() {
                        return Some(start);
                    }
                }
                b'/' => self.end_tag(),
                b'!' => self.declaration(),
                b'?' => {
                    if let Some(start) = self.instruction() {
                        return Some(start);
                    }
                }
                _ => {}
            }
        }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes().get(self.at..).unwrap_or_default()
    }

    fn slice(&self, from: usize, to: usize) -> &'a str {
        self.text.get(from..to).unwrap_or_default()
    }

    /// A tag name at `self.at`, left behind it.
    fn name(&mut self) -> &'a [u8] {
        let rest = self.rest();
        let len = rest.iter().position(|&b| ends_name(b)).unwrap_or(rest.len());
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    /// At a letter behind `<`. `None` if the text ends inside the tag.
    fn start_tag(&mut self) -> Option<Start<'a>> {
        let name_at = self.at;
        let full = self.name();
        self.name_span = (name_at, self.at);
        let name = local_name(full, self.syntax);
        let element = Element::of(name);
        let self_closing = match self.read_attributes(self.at) {
            End::At { offset, self_closing } => {
                self.at = offset;
                self_closing
            }
            End::Cut { whole } => {
                self.at = self.text.len();
                // a page cut off right behind the value of a meta refresh still says where to go
                return (whole && element == Element::Meta).then_some(Start {
                    element,
                    foreign: false,
                    text: "",
                });
            }
        };
        let foreign = self.syntax == Syntax::Xml || self.enters_foreign(name, element, self_closing);
        let text = if foreign {
            self.foreign_text(element, full, self_closing)
        } else {
            self.raw_text(element)
        };
        Some(Start { element, foreign, text })
    }

    /// Whether the tag just read makes a foreign element.
    fn enters_foreign(&mut self, name: &'a [u8], element: Element, self_closing: bool) -> bool {
        if self.foreign.is_html() && element != Element::ForeignRoot {
            return false;
        }
        let encoding = self.attributes.raw(Attribute::Encoding).unwrap_or_default();
        self.foreign.start(&StartTag {
            name,
            self_closing,
            font_look: self.attributes.raw(Attribute::FontLook).is_some(),
            html_encoding: encoding.eq_ignore_ascii_case("text/html")
                || encoding.eq_ignore_ascii_case("application/xhtml+xml"),
        })
    }

    /// Steps over the raw text of an HTML element; gives that of a `style` or `script`.
    fn raw_text(&mut self, element: Element) -> &'a str {
        let Some(end_tag) = element.raw_text() else { return "" };
        let from = self.at;
        self.raw_at = from;
        self.at += match element {
            Element::Plaintext => self.rest().len(),
            Element::Script => raw::script_end(self.rest()),
            _ => raw::text_end(self.rest(), end_tag),
        };
        if matches!(element, Element::Style | Element::Script) {
            self.slice(from, self.at)
        } else {
            ""
        }
    }

    /// The text of a `style` or `script` element of SVG or XHTML, whose content is read on as markup.
    fn foreign_text(&mut self, element: Element, name: &[u8], self_closing: bool) -> &'a str {
        // one inside another has been given with the outer one
        let has_text = matches!(element, Element::Style | Element::Script);
        if !has_text || self_closing || self.at < self.style_end {
            return "";
        }
        self.style_end = self.at + raw::text_end(self.rest(), name);
        self.slice(self.at, self.style_end)
    }

    /// At the slash of `</`.
    fn end_tag(&mut self) {
        self.at += 1;
        match self.rest().first() {
            Some(b) if b.is_ascii_alphabetic() => {}
            Some(_) => return self.at += raw::bogus_end(self.rest()),
            None => return,
        }
        let name = self.name();
        self.foreign.end(name);
        self.at = match self.rest().first() {
            Some(b'>') => self.at + 1,
            _ => match self.read_attributes(self.at) {
                End::At { offset, .. } => offset,
                End::Cut { .. } => self.text.len(),
            },
        };
    }

    /// At the exclamation mark of `<!`.
    fn declaration(&mut self) {
        self.at += 1;
        let rest = self.rest();
        let cdata = self.syntax == Syntax::Xml || self.foreign.takes_cdata();
        self.at += if rest.starts_with(b"--") {
            2 + raw::comment_end(rest.get(2..).unwrap_or_default())
        } else if cdata && rest.starts_with(b"[CDATA[") {
            7 + raw::cdata_end(rest.get(7..).unwrap_or_default())
        } else {
            raw::bogus_end(rest)
        };
    }

    /// At the question mark of `<?`. XML's `<?xml-stylesheet href="..."?>` counts as a tag.
    fn instruction(&mut self) -> Option<Start<'a>> {
        if self.syntax == Syntax::Xml && self.rest().starts_with(b"?xml-stylesheet") {
            let name_at = self.at;
            self.name();
            self.name_span = (name_at, self.at);
            let end = self.read_attributes(self.at);
            self.at = self.text.len();
            if let End::At { offset, .. } = end {
                self.at = offset;
                return Some(Start {
                    element: Element::XmlStylesheet,
                    foreign: true,
                    text: "",
                });
            }
        } else {
            self.at += raw::bogus_end(self.rest());
        }
        None
    }

    /// The attributes of a tag from behind its name on.
    fn read_attributes(&mut self, at: usize) -> End {
        self.attributes.clear();
        let attributes = &mut self.attributes;
        walk_attributes(self.text, at, |name, value| {
            if let Some(attribute) = Attribute::of(name) {
                attributes.insert(attribute, value);
            }
        })
    }
}

/// Gives each attribute of a tag, from behind its name on (the states from "before attribute name"), values as written.
#[inline]
fn walk_attributes<'a>(text: &'a str, mut at: usize, mut each: impl FnMut(&'a [u8], &'a str)) -> End {
    let bytes = text.as_bytes();
    loop {
        match bytes.get(at) {
            None => return End::Cut { whole: true },
            Some(b'>') => {
                return End::At {
                    offset: at + 1,
                    self_closing: false,
                };
            }
            Some(b'/') if bytes.get(at + 1) == Some(&b'>') => {
                return End::At {
                    offset: at + 2,
                    self_closing: true,
                };
            }
            Some(&b) if b == b'/' || is_space(b) => {
                at += 1;
                continue;
            }
            Some(_) => {}
        }
        let name_at = at;
        // an equals sign at the start belongs to the name
        at += 1;
        while bytes.get(at).is_some_and(|&b| b != b'=' && !ends_name(b)) {
            at += 1;
        }
        let name = bytes.get(name_at..at).unwrap_or_default();
        at = skip_space(bytes, at);
        let mut value = "";
        if bytes.get(at) == Some(&b'=') {
            at = skip_space(bytes, at + 1);
            let from;
            match bytes.get(at) {
                None => return End::Cut { whole: false },
                Some(b'>') => {}
                Some(&quote @ (b'"' | b'\'')) => {
                    from = at + 1;
                    let Some(len) = memchr(quote, bytes.get(from..).unwrap_or_default()) else {
                        return End::Cut { whole: false };
                    };
                    value = text.get(from..from + len).unwrap_or_default();
                    at = from + len + 1;
                }
                Some(_) => {
                    from = at;
                    while bytes.get(at).is_some_and(|&b| b != b'>' && !is_space(b)) {
                        at += 1;
                    }
                    if at == bytes.len() {
                        return End::Cut { whole: false };
                    }
                    value = text.get(from..at).unwrap_or_default();
                }
            }
        }
        each(name, value);
    }
}

/// See [`super::depth_limit`].
pub(super) fn depth_limit(text: &str, max: usize) -> Option<usize> {
    let mut tags = Tags::new(text, Syntax::Html);
    let mut open: Vec<&[u8]> = Vec::new();
    loop {
        let lt = tags.at + memchr(b'<', tags.rest())?;
        tags.at = lt + 1;
        match tags.rest().first()? {
            b if b.is_ascii_alphabetic() => {
                let name_at = tags.at;
                let name = tags.name();
                tags.at = name_at;
                tags.start_tag()?;
                if !is_transient(name) && Element::of(name).raw_text().is_none() {
                    if open.len() == max {
                        return Some(lt);
                    }
                    open.push(name);
                }
            }
            b'/' => {
                tags.at += 1;
                let name_at = tags.at;
                let name = tags.name();
                tags.at = name_at - 1;
                tags.end_tag();
                if let Some(at) = open.iter().rposition(|other| name.eq_ignore_ascii_case(other)) {
                    open.truncate(at);
                }
            }
            b'!' => tags.declaration(),
            b'?' => drop(tags.instruction()),
            _ => {}
        }
    }
}

/// The name without its prefix in XML; HTML knows no prefixes.
fn local_name(name: &[u8], syntax: Syntax) -> &[u8] {
    match syntax {
        Syntax::Xml => name.rsplit(|&b| b == b':').next().unwrap_or(name),
        Syntax::Html => name,
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|&b| is_space(b)) {
        at += 1;
    }
    at
}

/// White space of HTML; a carriage return stands for a line feed.
fn is_space(b: u8) -> bool {
    matches!(b, b'\t' | b'\n' | b'\x0c' | b'\r' | b' ')
}

fn ends_name(b: u8) -> bool {
    is_space(b) || b == b'/' || b == b'>'
}
