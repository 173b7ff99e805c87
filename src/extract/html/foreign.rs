//! Which tags stand in foreign content (SVG, `MathML`), without a tree: HTML Standard, section 13.2.6, "tree
//! construction dispatcher", followed by names alone.

/// Elements of foreign content held open at once; what is nested deeper is taken for HTML.
pub(super) const MAX_OPEN: usize = 512;

/// Start tags that end foreign content (section 13.2.6.5); `font` does with one of three attributes.
const BREAKOUTS: [&[u8]; 44] = [
    b"b",
    b"big",
    b"blockquote",
    b"body",
    b"br",
    b"center",
    b"code",
    b"dd",
    b"div",
    b"dl",
    b"dt",
    b"em",
    b"embed",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"head",
    b"hr",
    b"i",
    b"img",
    b"li",
    b"listing",
    b"menu",
    b"meta",
    b"nobr",
    b"ol",
    b"p",
    b"pre",
    b"ruby",
    b"s",
    b"small",
    b"span",
    b"strong",
    b"strike",
    b"sub",
    b"sup",
    b"table",
    b"tt",
    b"u",
    b"ul",
    b"var",
];

/// Elements with no content, and those whose end tag may be left out: they do not hold an integration point open.
const TRANSIENT: [&[u8]; 28] = [
    b"area",
    b"base",
    b"br",
    b"col",
    b"embed",
    b"hr",
    b"img",
    b"input",
    b"link",
    b"meta",
    b"param",
    b"source",
    b"track",
    b"wbr",
    b"p",
    b"li",
    b"dt",
    b"dd",
    b"option",
    b"optgroup",
    b"tr",
    b"td",
    b"th",
    b"tbody",
    b"thead",
    b"tfoot",
    b"rp",
    b"rt",
];

/// Whether `name` is one of [`TRANSIENT`].
pub(super) fn is_transient(name: &[u8]) -> bool {
    is_one_of(name, &TRANSIENT)
}

/// Further elements of HTML that hold drawings and are not found in them.
const OUTER: [&[u8]; 12] = [
    b"article", b"button", b"footer", b"header", b"html", b"label", b"main", b"nav", b"section", b"td", b"th", b"tr",
];

fn is_one_of(name: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// What the content of an open element is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Svg,
    Math,
    /// HTML inside foreign content.
    Html,
    /// HTML, but `mglyph` and `malignmark` are `MathML` (`mi`, `mo`, `mn`, `ms`, `mtext`).
    MathText,
}

struct Open<'a> {
    name: &'a [u8],
    content: Content,
    /// HTML elements open inside an integration point: they keep its end tag from counting.
    html: u32,
}

/// The open elements that decide about the tags after them.
#[derive(Default)]
pub(super) struct Foreign<'a> {
    open: Vec<Open<'a>>,
}

/// What the standard looks at in a start tag.
pub(super) struct StartTag<'a> {
    pub(super) name: &'a [u8],
    pub(super) self_closing: bool,
    /// `color`, `face` or `size` is among its attributes.
    pub(super) font_look: bool,
    /// `annotation-xml` with an encoding of HTML or XHTML.
    pub(super) html_encoding: bool,
}

impl<'a> Foreign<'a> {
    /// Whether the next tag stands in HTML as far as is known without its name.
    pub(super) fn is_html(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether CDATA is text here: the innermost element is a foreign one.
    pub(super) fn takes_cdata(&self) -> bool {
        self.open.last().is_some_and(|open| open.html == 0)
    }

    /// Notes a start tag. True if it makes a foreign element.
    pub(super) fn start(&mut self, tag: &StartTag<'a>) -> bool {
        let is = |name: &[u8]| tag.name.eq_ignore_ascii_case(name);
        let mut content = self.open.last().map_or(Content::Html, |open| open.content);
        if matches!(content, Content::Svg | Content::Math) {
            let breaks = is_one_of(tag.name, &BREAKOUTS) || is(b"font") && tag.font_look;
            if breaks {
                self.break_out();
                content = Content::Html;
            }
        }
        match content {
            Content::Svg => {
                if is(b"foreignobject") || is(b"desc") || is(b"title") {
                    self.push(tag, Content::Html);
                } else if is(b"svg") {
                    // its end tag must not be taken for the outer one's
                    self.push(tag, Content::Svg);
                }
                true
            }
            Content::Math => {
                if is(b"mi") || is(b"mo") || is(b"mn") || is(b"ms") || is(b"mtext") {
                    self.push(tag, Content::MathText);
                } else if is(b"annotation-xml") && tag.html_encoding {
                    self.push(tag, Content::Html);
                } else if is(b"svg") {
                    // only inside annotation-xml does this make SVG; as MathML it would be no different here
                    self.push(tag, Content::Svg);
                } else if is(b"math") {
                    self.push(tag, Content::Math);
                }
                true
            }
            Content::MathText if is(b"mglyph") || is(b"malignmark") => true,
            Content::Html | Content::MathText => {
                if is(b"svg") {
                    self.push(tag, Content::Svg);
                } else if is(b"math") {
                    self.push(tag, Content::Math);
                } else {
                    if let Some(point) = self.open.last_mut()
                        && !is_transient(tag.name)
                    {
                        point.html += 1;
                    }
                    return false;
                }
                true
            }
        }
    }

    /// Notes an end tag.
    pub(super) fn end(&mut self, name: &[u8]) {
        let Some(innermost) = self.open.last_mut() else { return };
        if innermost.html > 0 {
            innermost.html -= u32::from(!is_transient(name));
            return;
        }
        if matches!(innermost.content, Content::Svg | Content::Math)
            && (is_one_of(name, &BREAKOUTS) || is_one_of(name, &OUTER))
        {
            // no foreign element has such a name, so this ends an HTML element around an unclosed `svg`; that there
            // is one is taken for granted (but `</p>` and `</br>` do so without)
            self.break_out();
            return;
        }
        // up to the nearest HTML element: an integration point whose HTML is closed does not stop the search
        for at in (0..self.open.len()).rev() {
            let Some(open) = self.open.get(at) else { return };
            if open.html > 0 {
                return;
            }
            if name.eq_ignore_ascii_case(open.name) {
                self.open.truncate(at);
                return;
            }
        }
    }

    fn push(&mut self, tag: &StartTag<'a>, content: Content) {
        if !tag.self_closing && self.open.len() < MAX_OPEN {
            self.open.push(Open {
                name: tag.name,
                content,
                html: 0,
            });
        }
    }

    /// Back to HTML, or to the nearest place inside that holds HTML.
    fn break_out(&mut self) {
        while self
            .open
            .last()
            .is_some_and(|open| matches!(open.content, Content::Svg | Content::Math))
        {
            self.open.pop();
        }
    }
}
