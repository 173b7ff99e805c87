//! Links out of HTML, XHTML and SVG, without a tree: the tags in order, as the HTML Standard's tokenizer sees them.
//!
//! Scripting is off: what stands in `noscript` counts. What a tree builder would decide is followed only as far as it
//! changes what is a tag: raw text elements, and foreign content (SVG, `MathML`), where those are none and CDATA is text.

mod anchors;
mod attributes;
mod elements;
mod entities;
mod facts;
mod foreign;
mod preview;
mod raw;
mod tags;

use self::tags::Tags;
use super::Links;
pub(super) use attributes::Attribute;
pub(super) use facts::{Facts, MAX_FACT_CHARS, read as facts};

/// Documents inside documents (`iframe srcdoc`) that are read, one in another.
const MAX_SRCDOC_DEPTH: u32 = 3;

/// The rules a body is read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// HTML.
    Html,
    /// XML (XHTML, SVG, feeds): no raw text elements, CDATA anywhere, prefixes of names are dropped.
    Xml,
}

/// Adds the links of a page to `links`.
pub(super) fn links<'a>(text: &'a str, syntax: Syntax, links: &mut Links<'a>) {
    scan(text, syntax, 0, links);
}

/// `depth` documents lie around this one.
fn scan<'a>(text: &'a str, syntax: Syntax, depth: u32, links: &mut Links<'a>) {
    let mut tags = Tags::new(text, syntax);
    if links.details.is_some() {
        return anchors::scan(&mut tags, depth, links);
    }
    while let Some(start) = tags.next_start() {
        elements::links(&start, tags.attributes(), depth, links);
    }
}

/// Where a tree of the page would be deeper than `max` elements: the offset of the first tag beyond.
///
/// Counts as a tree builder would, roughly: elements that have no end, or whose end may be left out, do not count.
pub(super) fn depth_limit(text: &str, max: usize) -> Option<usize> {
    tags::depth_limit(text, max)
}

#[cfg(test)]
mod tests;
