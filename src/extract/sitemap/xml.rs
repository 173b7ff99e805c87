//! Text in pieces → tags, text, and what the document type declares, without asking that any of it be right.
//!
//! A tag ends at its `>` outside quotes (a quote opens a value only behind `=`), or before the next `<`, which XML allows
//! nowhere in a tag: so a tag that is not closed costs itself and no more. Comments, processing instructions and the
//! document type are passed over as they stream by.

use super::forms::Forms;
use super::{Entry, Out};

/// A longer tag is taken for text, bytes.
const MAX_TAG: usize = 16 << 10;
/// The longest mark that must be seen whole: `<![CDATA[`.
const MAX_MARK: usize = 9;

#[derive(Debug, Default)]
pub(super) struct Scanner {
    /// What could not be told yet: part of a tag or of a mark.
    rest: String,
    mode: Mode,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Mode {
    #[default]
    Content,
    CData,
    /// Passed over up to its end mark, then on with the mode inside or outside the document type.
    Comment(Inside),
    Instruction(Inside),
    /// `<!DOCTYPE`, outside its brackets.
    Doctype,
    /// Inside its brackets.
    Subset,
    /// A declaration that is too long to be kept: up to its `>`.
    Declaration,
    /// Another `<!...>`.
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Content,
    Subset,
}

impl Inside {
    fn mode(self) -> Mode {
        match self {
            Self::Content => Mode::Content,
            Self::Subset => Mode::Subset,
        }
    }
}

/// How one step went.
enum Step {
    /// So many bytes are done with.
    Used(usize),
    /// So many are done with; what follows must wait for more text.
    Wait(usize),
}

/// Where a tag ends.
enum TagEnd {
    /// Behind its last byte, and behind the `>`.
    At(usize, usize),
    /// It does not.
    Broken,
    /// More text is needed.
    Unknown,
}

impl Scanner {
    /// Bytes kept for later.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.rest.capacity()
    }

    pub(super) fn feed(&mut self, text: &str, forms: &mut Forms, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        if self.rest.is_empty() {
            let used = self.scan(text, forms, out, each);
            self.rest.push_str(text.get(used..).unwrap_or_default());
        } else {
            let mut whole = std::mem::take(&mut self.rest);
            whole.push_str(text);
            let used = self.scan(&whole, forms, out, each);
            whole.drain(..used);
            self.rest = whole;
        }
    }

    /// Gives how much was used.
    fn scan(&mut self, text: &str, forms: &mut Forms, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) -> usize {
        let mut used = 0;
        while let Some(rest) = text.get(used..).filter(|rest| !rest.is_empty()) {
            if out.over {
                return text.len();
            }
            match self.step(rest, forms, out, each) {
                Step::Used(len) => used += len,
                Step::Wait(len) => {
                    used += len;
                    break;
                }
            }
        }
        used
    }

    fn step(&mut self, text: &str, forms: &mut Forms, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) -> Step {
        match self.mode {
            Mode::Content => match memchr::memchr(b'<', text.as_bytes()) {
                Some(0) => self.markup(text, forms, out, each),
                end => {
                    let len = end.unwrap_or(text.len());
                    forms.text(text.get(..len).unwrap_or_default(), false);
                    Step::Used(len)
                }
            },
            Mode::CData => {
                let (len, ended) = until(text, "]]>");
                forms.text(text.get(..len).unwrap_or_default(), true);
                self.pass(len, ended, 3, Mode::Content)
            }
            Mode::Comment(inside) => {
                let (len, ended) = until(text, "-->");
                self.pass(len, ended, 3, inside.mode())
            }
            Mode::Instruction(inside) => {
                let (len, ended) = until(text, "?>");
                self.pass(len, ended, 2, inside.mode())
            }
            Mode::Doctype => match memchr::memchr2(b'[', b'>', text.as_bytes()) {
                Some(at) if text.as_bytes().get(at) == Some(&b'[') => self.pass(at, true, 1, Mode::Subset),
                Some(at) => self.pass(at, true, 1, Mode::Content),
                None => Step::Used(text.len()),
            },
            Mode::Subset => match memchr::memchr2(b']', b'<', text.as_bytes()) {
                Some(0) if text.starts_with('<') => self.declaration(text, forms),
                Some(0) => self.pass(0, true, 1, Mode::Doctype),
                Some(at) => Step::Used(at),
                None => Step::Used(text.len()),
            },
            Mode::Declaration | Mode::Other => {
                let next = if self.mode == Mode::Other {
                    Mode::Content
                } else {
                    Mode::Subset
                };
                let (len, ended) = until(text, ">");
                self.pass(len, ended, 1, next)
            }
        }
    }

    /// So far the thing goes; if it has ended, its end mark goes too and the mode is another.
    fn pass(&mut self, len: usize, ended: bool, mark: usize, next: Mode) -> Step {
        if ended {
            self.mode = next;
            Step::Used(len + mark)
        } else {
            Step::Wait(len)
        }
    }

    /// `text` begins with `<`, in the content.
    fn markup(&mut self, text: &str, forms: &mut Forms, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) -> Step {
        for (mark, mode) in [
            ("<!--", Mode::Comment(Inside::Content)),
            ("<![CDATA[", Mode::CData),
            ("<!DOCTYPE", Mode::Doctype),
        ] {
            if starts(text, mark) {
                self.mode = mode;
                return Step::Used(mark.len());
            }
            if text.len() < mark.len() && starts(mark, text) {
                return Step::Wait(0);
            }
        }
        let Some(second) = text.get(1..).and_then(|rest| rest.chars().next()) else {
            return Step::Wait(0);
        };
        match second {
            '!' => {
                self.mode = Mode::Other;
                Step::Used(1)
            }
            '?' => self.instruction(text, out, each),
            '/' | ':' | '_' => tag(text, forms, out, each),
            letter if letter.is_alphabetic() => tag(text, forms, out, each),
            _ => {
                // a `<` that is none
                forms.text("<", true);
                Step::Used(1)
            }
        }
    }

    /// `<?xml-stylesheet ...?>` names what shows the file; the others are passed over.
    fn instruction(&mut self, text: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) -> Step {
        const STYLE: &str = "<?xml-stylesheet";
        if text.len() < STYLE.len() && STYLE.starts_with(text) {
            return Step::Wait(0);
        }
        if text.starts_with(STYLE) {
            let near = prefix(text, MAX_TAG);
            match near.find("?>") {
                Some(end) => super::forms::style(near.get(STYLE.len()..end).unwrap_or_default(), out, each),
                None if near.len() == text.len() && text.len() < MAX_TAG => return Step::Wait(0),
                None => {}
            }
        }
        self.mode = Mode::Instruction(Inside::Content);
        Step::Used(2)
    }

    /// `text` begins with `<`, inside the brackets of the document type.
    fn declaration(&mut self, text: &str, forms: &mut Forms) -> Step {
        const ENTITY: &str = "<!ENTITY";
        if text.len() < MAX_MARK && ["<!--", ENTITY].iter().any(|mark| mark.starts_with(text)) {
            return Step::Wait(0);
        }
        if text.starts_with("<!--") {
            self.mode = Mode::Comment(Inside::Subset);
            return Step::Used(4);
        }
        if text.starts_with("<?") {
            self.mode = Mode::Instruction(Inside::Subset);
            return Step::Used(2);
        }
        let near = prefix(text, MAX_TAG);
        match outside_quotes(near, b'>') {
            Some(end) => {
                if let Some(entity) = near.get(..end).and_then(|whole| whole.strip_prefix(ENTITY)) {
                    forms.declared.note(entity);
                }
                Step::Used(end + 1)
            }
            None if text.len() < MAX_TAG => Step::Wait(0),
            None => {
                if let Some(entity) = near.strip_prefix(ENTITY) {
                    forms.declared.note(entity);
                }
                self.mode = Mode::Declaration;
                // all that was looked at: to look at it again for each `<` in it would take for ever
                Step::Used(near.len())
            }
        }
    }
}

/// A start or end tag.
fn tag(text: &str, forms: &mut Forms, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) -> Step {
    let (end, used) = match tag_end(prefix(text, MAX_TAG)) {
        TagEnd::At(end, used) => (end, used),
        TagEnd::Unknown if text.len() < MAX_TAG => return Step::Wait(0),
        TagEnd::Unknown | TagEnd::Broken => {
            forms.text("<", true);
            return Step::Used(1);
        }
    };
    let inner = text.get(1..end).unwrap_or_default();
    if let Some(name) = inner.strip_prefix('/') {
        forms.end(name.trim(), out, each);
        return Step::Used(used);
    }
    let (inner, empty) = match inner.strip_suffix('/') {
        Some(inner) => (inner, true),
        None => (inner, false),
    };
    let name_end = inner
        .find(|c: char| c.is_ascii_whitespace() || c == '/')
        .unwrap_or(inner.len());
    let (name, attributes) = inner.split_at(name_end);
    forms.start(name, attributes, out, each);
    if empty {
        forms.end(name, out, each);
    }
    Step::Used(used)
}

/// Where the tag at the start of `text` ends.
fn tag_end(text: &str) -> TagEnd {
    let mut quote = None;
    let mut before = b' ';
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match (byte, quote) {
            (b'<', _) => return TagEnd::At(at, at),
            (_, Some(open)) if byte == open => quote = None,
            (b'>', None) => return TagEnd::At(at, at + 1),
            (b'"' | b'\'', None) if before == b'=' => quote = Some(byte),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            before = byte;
        }
    }
    if text.len() >= MAX_TAG {
        TagEnd::Broken
    } else {
        TagEnd::Unknown
    }
}

/// Where `wanted` stands outside of quotes.
fn outside_quotes(text: &str, wanted: u8) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match quote {
            Some(open) if byte == open => quote = None,
            None if byte == wanted => return Some(at),
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            _ => {}
        }
    }
    None
}

/// How far the text goes before `mark`, and whether the mark is there. A part of it at the end is left out.
fn until(text: &str, mark: &str) -> (usize, bool) {
    if let Some(at) = memchr::memmem::find(text.as_bytes(), mark.as_bytes()) {
        return (at, true);
    }
    let partial = (1..mark.len())
        .rev()
        .find(|len| mark.get(..*len).is_some_and(|part| text.ends_with(part)));
    (text.len() - partial.unwrap_or(0), false)
}

/// Begins with these ASCII letters, in either case.
fn starts(text: &str, mark: &str) -> bool {
    text.as_bytes()
        .get(..mark.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(mark.as_bytes()))
}

/// The first bytes, at most so many, up to a whole character.
fn prefix(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}
