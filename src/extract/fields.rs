//! Fields of a page: the built-in ones by name, and the user's own by CSS selector. Holds `scraper`; a tree is built only
//! when a field asks for one.

mod builtin;
pub(crate) mod hosts;
mod text;

use html5ever::driver::{ParseOpts, parse_document};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use scraper::{ElementRef, Html, HtmlTreeSink, Selector};
use serde_json::{Map, Value};

use super::fold::{Folded, fold};
use super::html::{Facts, Syntax, depth_limit, facts};
pub use builtin::Builtin;
pub use text::MAX_TEXT_CHARS;

/// Longest value of a field, but for the page's text; longer ones are cut. Characters.
pub const MAX_VALUE_CHARS: usize = super::html::MAX_FACT_CHARS;
/// Values of one field at most (with `all`).
pub const MAX_VALUES: usize = 1_000;
/// All values of one page, characters; what is beyond is cut.
pub const MAX_PAGE_CHARS: usize = 1_000_000;
/// Keys of a row that no field may have.
pub const RESERVED: [&str; 4] = ["url", "time", "status", "cut"];
/// Elements inside one another; a page is read up to where it goes deeper. The work of a tree grows with its depth.
const MAX_DEPTH: usize = 512;
/// Nodes of a tree; a page is read up to here. 1 MB of text can make many more by unclosed formatting.
const MAX_NODES: usize = 1_000_000;
/// Bytes of a page between two looks at its number of nodes.
const CHUNK: usize = 4096;

/// One `[[extract.field]]` of crawler.toml.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Field {
    /// Key in pages.jsonl.zst.
    pub name: String,
    /// CSS selector.
    pub selector: String,
    /// Attribute to take; the element's text if absent.
    pub attr: Option<String>,
    /// Every match as a list, not only the first.
    pub all: bool,
    /// Only on pages of these hosts; on all if there are none.
    pub hosts: Vec<String>,
}

/// A CSS selector, or what is wrong with it.
///
/// # Errors
/// The text is no selector.
pub fn selector(text: &str) -> Result<Selector, String> {
    Selector::parse(text).map_err(|error| format!("{text:?} is not a CSS selector: {error}"))
}

/// May a field of the user's own have this name?
///
/// # Errors
/// What is wrong with it, and what to do.
pub fn check_name(name: &str) -> Result<(), String> {
    if Builtin::of(name).is_some() {
        return Err(format!(
            "{name:?} is a built-in field: take that one with fields = [{name:?}], or give yours another name"
        ));
    }
    if RESERVED.contains(&name) {
        return Err(format!(
            "every page has {name:?} of its own; give the field another name"
        ));
    }
    Ok(())
}

/// What is known of a page besides its text.
pub struct Page<'a> {
    /// Its text, decoded.
    pub text: &'a str,
    /// It is XHTML.
    pub xhtml: bool,
    /// Its host, with the port if that is not the scheme's.
    pub host: &'a str,
    /// The `Content-Language` header.
    pub language: Option<&'a str>,
    /// Makes an address of what the page says, if it is one.
    pub resolve: &'a dyn Fn(&str) -> Option<String>,
    /// How many links it has.
    pub links: &'a dyn Fn() -> Value,
}

/// The fields of a crawl, their selectors read.
#[derive(Debug, Default)]
pub struct Fields {
    builtins: Vec<Builtin>,
    fields: Vec<(Field, Selector)>,
}

impl Fields {
    /// Reads the selectors.
    ///
    /// # Errors
    /// A selector that is none, or a name that may not be used: the message names the field and what is wrong.
    pub fn compile(builtins: &[Builtin], fields: &[Field]) -> Result<Self, String> {
        let mut compiled: Vec<(Field, Selector)> = Vec::with_capacity(fields.len());
        for field in fields {
            let named = |why: String| format!("field {:?}: {why}", field.name);
            if compiled.iter().any(|(other, _)| other.name == field.name) {
                return Err(named("is defined twice; give each field a name of its own".to_owned()));
            }
            check_name(&field.name).map_err(named)?;
            let selector = selector(&field.selector).map_err(named)?;
            compiled.push((field.clone(), selector));
        }
        Ok(Self {
            builtins: builtins.to_vec(),
            fields: compiled,
        })
    }

    /// Whether there is nothing to ask a page for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.builtins.is_empty()
    }

    /// The values of a page, each under its name: a string or a number, `null` if there is none, a list with `all`;
    /// under `cut` the names of those that were longer.
    ///
    /// White space in texts is folded. Values are cut at [`MAX_VALUE_CHARS`], the page's text at [`MAX_TEXT_CHARS`],
    /// lists at [`MAX_VALUES`], all together at [`MAX_PAGE_CHARS`]. A tree is made with scripting off, and no further
    /// than to where it would be deeper than 512 elements or larger than a million nodes.
    #[must_use]
    pub fn extract(&self, page: &Page<'_>) -> Map<String, Value> {
        let mut row = Row {
            values: Map::new(),
            left: MAX_PAGE_CHARS,
            cut: Vec::new(),
        };
        let own = self.fields.iter().filter(|(field, _)| {
            field.hosts.is_empty() || field.hosts.iter().any(|pattern| hosts::covers(pattern, page.host))
        });
        let own: Vec<_> = own.collect();
        let wants_tree = !own.is_empty() || self.builtins.iter().any(|builtin| builtin.needs_tree());
        let tree = wants_tree.then(|| parse(page.text));
        self.put_builtins(page, tree.as_ref(), &mut row);
        if let Some(tree) = &tree {
            for (field, selector) in own {
                row.put_matches(tree, field, selector);
            }
        }
        if !row.cut.is_empty() {
            row.values.insert("cut".to_owned(), row.cut.into());
        }
        row.values
    }

    fn put_builtins(&self, page: &Page<'_>, tree: Option<&Html>, row: &mut Row) {
        let says = |builtin: &Builtin| !builtin.needs_tree() && *builtin != Builtin::Links;
        let mut facts = if self.builtins.iter().any(says) {
            facts(page.text, if page.xhtml { Syntax::Xml } else { Syntax::Html })
        } else {
            Facts::default()
        };
        let mut visible = tree
            .filter(|_| self.builtins.iter().any(|builtin| builtin.needs_tree()))
            .map(text::visible);
        let chars = visible.as_ref().map_or(0, Folded::chars);
        for builtin in &self.builtins {
            let name = builtin.name();
            let fact = match builtin {
                Builtin::Title => facts.title.take(),
                Builtin::Description => facts.description.take(),
                Builtin::Canonical => facts
                    .canonical
                    .take()
                    .and_then(|(raw, _)| Some(((page.resolve)(&raw)?, false))),
                Builtin::Lang => {
                    let header = || page.language.map(|text| fold(text, MAX_VALUE_CHARS));
                    facts.lang.take().or_else(header).filter(|(text, _)| !text.is_empty())
                }
                Builtin::H1 => facts.h1.take(),
                Builtin::Author => facts.author.take(),
                Builtin::Published => facts.published.take(),
                Builtin::Text => visible
                    .take()
                    .map(|text| (text.is_cut(), text))
                    .map(|(cut, text)| (text.into_text(), cut)),
                Builtin::TextLength => {
                    row.values.insert(name.to_owned(), chars.into());
                    continue;
                }
                Builtin::Links => {
                    row.values.insert(name.to_owned(), (page.links)());
                    continue;
                }
            };
            let value = fact.map(|(text, cut)| row.text(name, text, cut));
            row.values.insert(name.to_owned(), value.into());
        }
    }
}

/// The row of a page while it is made.
struct Row {
    values: Map<String, Value>,
    /// Characters that it may still have.
    left: usize,
    cut: Vec<String>,
}

impl Row {
    /// A text as far as the row has room for it.
    fn text(&mut self, name: &str, mut text: String, mut cut: bool) -> String {
        if let Some((end, _)) = text.char_indices().nth(self.left) {
            text.truncate(end);
            cut = true;
        }
        self.left -= text.chars().count();
        if cut {
            self.mark(name);
        }
        text
    }

    fn mark(&mut self, name: &str) {
        if self.cut.last().is_none_or(|last| last != name) {
            self.cut.push(name.to_owned());
        }
    }

    fn put_matches(&mut self, page: &Html, field: &Field, selector: &Selector) {
        let mut values = page.select(selector).filter_map(|element| match &field.attr {
            // a page's own spelling is in lower case in its tree, but for some names of SVG
            Some(name) => element
                .attr(name)
                .or_else(|| element.attr(&name.to_ascii_lowercase()))
                .map(bounded),
            None => Some(folded_text(element)),
        });
        let value = if field.all {
            let mut list = Vec::new();
            for (text, cut) in values.by_ref().take(MAX_VALUES) {
                list.push(Value::from(self.text(&field.name, text, cut)));
                if self.left == 0 {
                    break;
                }
            }
            if values.next().is_some() {
                self.mark(&field.name);
            }
            list.into()
        } else {
            values
                .next()
                .map(|(text, cut)| self.text(&field.name, text, cut))
                .into()
        };
        self.values.insert(field.name.clone(), value);
    }
}

/// An attribute's value, and whether it was cut.
fn bounded(value: &str) -> (String, bool) {
    match value.char_indices().nth(MAX_VALUE_CHARS) {
        Some((end, _)) => (value.get(..end).unwrap_or_default().to_owned(), true),
        None => (value.to_owned(), false),
    }
}

/// The text of an element, runs of white space as one space, none at the ends, and whether it was cut.
fn folded_text(element: ElementRef<'_>) -> (String, bool) {
    let mut text = Folded::new(MAX_VALUE_CHARS);
    for piece in element.text() {
        text.push(piece);
        if text.is_cut() {
            break;
        }
    }
    let cut = text.is_cut();
    (text.into_text(), cut)
}

/// The page's tree, within the bounds. Scripting is off: what stands in `noscript` is markup.
fn parse(html: &str) -> Html {
    let html = depth_limit(html, MAX_DEPTH)
        .and_then(|end| html.get(..end))
        .unwrap_or(html);
    let tree_builder = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let options = ParseOpts {
        tree_builder,
        ..ParseOpts::default()
    };
    let mut parser = parse_document(HtmlTreeSink::new(Html::new_document()), options);
    let mut rest = html;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(chunk_len(rest));
        parser.process(StrTendril::from_slice(chunk));
        rest = after;
        if parser.tokenizer.sink.sink.0.borrow().tree.values().len() > MAX_NODES {
            break;
        }
    }
    parser.finish()
}

/// About [`CHUNK`] bytes, up to the end of a character.
fn chunk_len(text: &str) -> usize {
    (CHUNK..text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests;
