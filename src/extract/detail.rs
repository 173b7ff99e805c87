//! What is known of a link besides its address: where it stands, and its text.

use std::borrow::Cow;
use std::sync::Arc;

use super::Links;
use super::fold::fold;
use super::html::Attribute;

/// Longest text of a link, characters; a longer one is cut.
pub const MAX_TEXT_CHARS: usize = 1_000;
/// Longest `rel` and name of an element, characters; a longer one is cut.
pub const MAX_WORD_CHARS: usize = 100;

/// More of a link that stands in HTML.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detail<'a> {
    /// Its place among the links of its document.
    link: usize,
    /// The element's name in lower case.
    pub element: Cow<'a, str>,
    /// The attribute's name; none if the link stands in the text of the element (`style`, `script`).
    pub attribute: Option<&'static str>,
    /// The element's `rel`.
    pub rel: Option<Cow<'a, str>>,
    /// The text of an `a` (of the pictures in it, if it has no other), the `alt` of an `area` or `img`; white space
    /// folded.
    pub text: Option<Arc<str>>,
    /// The text was longer.
    pub cut: bool,
}

impl<'a> Detail<'a> {
    pub(super) fn of(link: usize, attribute: Option<Attribute>) -> Self {
        Self {
            link,
            attribute: attribute.map(Attribute::name),
            ..Self::default()
        }
    }

    /// The same in a document that has so many links before those of this one.
    pub(super) fn behind(mut self, before: usize) -> Self {
        self.link += before;
        self
    }

    /// Says which element it is.
    pub(super) fn is_on(&mut self, element: Cow<'a, str>, rel: Option<Cow<'a, str>>) {
        self.element = element;
        self.rel = rel;
    }

    pub(super) fn say(&mut self, text: &Arc<str>, cut: bool) {
        self.text = Some(Arc::clone(text));
        self.cut = cut;
    }

    pub(super) fn into_owned(self) -> Detail<'static> {
        Detail {
            link: self.link,
            element: Cow::Owned(self.element.into_owned()),
            attribute: self.attribute,
            rel: self.rel.map(|rel| Cow::Owned(rel.into_owned())),
            text: self.text,
            cut: self.cut,
        }
    }
}

/// A word of a page, bounded.
pub(super) fn word(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= MAX_WORD_CHARS {
        text
    } else {
        Cow::Owned(fold(&text, MAX_WORD_CHARS).0)
    }
}

/// Leaves out the details of links that are left out; both are in order.
pub(super) fn forget(details: &mut Vec<Detail<'_>>, left: &[usize]) {
    let mut gone = 0;
    details.retain_mut(|detail| {
        while left.get(gone).is_some_and(|link| *link < detail.link) {
            gone += 1;
        }
        let stays = left.get(gone) != Some(&detail.link);
        detail.link -= gone;
        stays
    });
}

impl<'a> Links<'a> {
    /// More of the link at this place, if it was asked for and the link stands in HTML.
    #[must_use]
    pub fn detail(&self, link: usize) -> Option<&Detail<'a>> {
        let details = self.details.as_ref()?;
        let at = details.binary_search_by_key(&link, |detail| detail.link).ok()?;
        details.get(at)
    }
}
