//! Links with where they stand and what they say: the same links as without, and slower.

use std::borrow::Cow;
use std::sync::Arc;

use super::super::Links;
use super::super::detail::{MAX_TEXT_CHARS, word};
use super::super::fold::{Folded, is_inline};
use super::elements::{self, Element};
use super::tags::{Piece, Tags};

/// An `a` whose end has not come.
struct Open {
    /// Its details: those from here up to there.
    from: usize,
    to: usize,
    text: Folded,
    /// What its pictures say.
    pictures: Folded,
}

/// Adds the links of a document and their details.
pub(super) fn scan<'a>(tags: &mut Tags<'a>, depth: u32, links: &mut Links<'a>) {
    let mut open: Option<Open> = None;
    while let Some(piece) = tags.next_piece() {
        match piece {
            Piece::Text(text) => {
                if let Some(open) = &mut open {
                    open.text.push(&text);
                }
            }
            Piece::End(name) if name.eq_ignore_ascii_case("a") => close(open.take(), links),
            Piece::End(name) => part(&mut open, name),
            Piece::Start(start) => {
                let name = tags.tag();
                let is_anchor = name.eq_ignore_ascii_case("a");
                if is_anchor {
                    // one inside another ends it
                    close(open.take(), links);
                } else {
                    part(&mut open, name);
                }
                let from = links.details.as_ref().map_or(0, Vec::len);
                elements::links(&start, tags.attributes(), depth, links);
                let alt = matches!(start.element, Element::Img | Element::Image | Element::Anchor)
                    .then(|| tags.value("alt"))
                    .flatten();
                if let (Some(open), Some(alt), false) = (&mut open, &alt, is_anchor) {
                    open.pictures.push(alt);
                    open.pictures.space();
                }
                let to = links.details.as_ref().map_or(0, Vec::len);
                if from == to {
                    continue;
                }
                name_all(tags, from, links);
                if is_anchor {
                    let [text, pictures] = [Folded::new(MAX_TEXT_CHARS), Folded::new(MAX_TEXT_CHARS)];
                    open = Some(Open {
                        from,
                        to,
                        text,
                        pictures,
                    });
                } else if let Some(alt) = alt {
                    let mut text = Folded::new(MAX_TEXT_CHARS);
                    text.push(&alt);
                    say(from, to, text, links);
                }
            }
        }
    }
    close(open, links);
}

/// A tag of anything but a line's parts stands between words.
fn part(open: &mut Option<Open>, name: &str) {
    if let Some(open) = open
        && !is_inline(name)
    {
        open.text.space();
    }
}

fn close(open: Option<Open>, links: &mut Links<'_>) {
    if let Some(Open {
        from,
        to,
        text,
        pictures,
    }) = open
    {
        let text = if text.is_empty() { pictures } else { text };
        say(from, to, text, links);
    }
}

/// One text for all of them: an element may have very many links.
fn say(from: usize, to: usize, text: Folded, links: &mut Links<'_>) {
    let (cut, text) = (text.is_cut(), Arc::from(text.into_text()));
    let details = links.details.as_mut().and_then(|details| details.get_mut(from..to));
    for detail in details.into_iter().flatten() {
        detail.say(&text, cut);
    }
}

/// Names the element of details that have none yet: those of a document inside the element have theirs.
fn name_all<'a>(tags: &Tags<'a>, from: usize, links: &mut Links<'a>) {
    let name = tags.tag();
    let name = if name.bytes().any(|b| b.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    };
    let (name, rel) = (word(name), tags.value("rel").map(word));
    let details = links.details.as_mut().and_then(|details| details.get_mut(from..));
    for detail in details.into_iter().flatten().filter(|detail| detail.element.is_empty()) {
        detail.is_on(name.clone(), rel.clone());
    }
}
