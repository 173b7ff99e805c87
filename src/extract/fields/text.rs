//! The visible text of a page.

use scraper::node::Element;
use scraper::{Html, Node};

use super::super::fold::{Folded, is_inline};

/// Longest `text`, characters; a longer one is cut.
pub const MAX_TEXT_CHARS: usize = 100_000;

/// Elements whose content nobody sees, or not as text. `noscript` is for browsers without scripts: what it says is
/// mostly that one should switch them on.
const UNSEEN: [&str; 15] = [
    "head", "script", "style", "template", "noscript", "iframe", "noframes", "noembed", "object", "audio", "video",
    "canvas", "datalist", "svg", "math",
];

/// What a reader sees: texts in order, white space folded, a line for each block. Left out are the elements above, what
/// is `hidden` or has `display:none` in its own style, and comments.
pub(super) fn visible(page: &Html) -> Folded {
    let mut text = Folded::new(MAX_TEXT_CHARS);
    let root = page.tree.root();
    let mut node = root;
    loop {
        if enter(node.value(), &mut text)
            && let Some(child) = node.first_child()
        {
            node = child;
            continue;
        }
        // not down: on to the next that is not above
        loop {
            leave(node.value(), &mut text);
            if node == root {
                return text;
            }
            if let Some(next) = node.next_sibling() {
                node = next;
                break;
            }
            match node.parent() {
                Some(parent) => node = parent,
                None => return text,
            }
        }
    }
}

/// Takes a text; tells whether the content of what is no text is seen.
fn enter(node: &Node, text: &mut Folded) -> bool {
    match node {
        Node::Text(own) => {
            text.push(own);
            false
        }
        Node::Element(element) if is_seen(element) => {
            part(element.name(), text);
            true
        }
        Node::Document | Node::Fragment => true,
        _ => false,
    }
}

fn leave(node: &Node, text: &mut Folded) {
    if let Node::Element(element) = node
        && is_seen(element)
    {
        part(element.name(), text);
    }
}

fn is_seen(element: &Element) -> bool {
    let in_place = |style: &str| {
        let style: String = style.chars().filter(|c| !c.is_whitespace()).collect();
        let style = style.to_ascii_lowercase();
        !style.split(';').any(|rule| rule.starts_with("display:none"))
    };
    !UNSEEN.contains(&element.name()) && element.attr("hidden").is_none() && element.attr("style").is_none_or(in_place)
}

/// Cells of a row stand beside one another; other blocks begin a line.
fn part(name: &str, text: &mut Folded) {
    if matches!(
        name,
        "td" | "th" | "input" | "button" | "select" | "textarea" | "option"
    ) {
        text.space();
    } else if !is_inline(name) && name != "wbr" {
        text.line();
    }
}
