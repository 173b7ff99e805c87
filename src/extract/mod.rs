//! A body's links, by its type: HTML, CSS, headers. Pure; nothing here fetches or resolves.

pub mod charset;
pub mod css;
pub mod fields;
pub mod headers;
pub mod html;
pub mod srcset;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Links taken from one page at most; what is beyond is counted, not kept.
pub const MAX_LINKS_PER_PAGE: usize = 100_000;

/// What a link is to its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LinkKind {
    /// A place to go to: `a`, `area`, GET forms, `link rel=next` ... (hop letter `L`).
    Navigation,
    /// Needed to show the page: images, styles, scripts, frames, fonts ... (`E`).
    Requisite,
    /// A stylesheet (or an import of one): a requisite whose own requisites belong to the same page (`E`).
    Stylesheet,
    /// `Location`, `Refresh`, meta refresh (`R`).
    Redirect,
}

impl LinkKind {
    /// The letter of a crawl.log hop path.
    #[must_use]
    pub fn letter(self) -> char {
        match self {
            Self::Navigation => 'L',
            Self::Requisite | Self::Stylesheet => 'E',
            Self::Redirect => 'R',
        }
    }
}

/// A link as written, entities decoded, white space around it removed, not resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawLink<'a> {
    /// The text.
    pub raw: Cow<'a, str>,
    /// What it is to the page.
    pub kind: LinkKind,
}

/// What one body gave.
#[derive(Debug, Default)]
pub struct Links<'a> {
    /// In document order.
    pub links: Vec<RawLink<'a>>,
    /// The first `<base href>`, as written.
    pub base: Option<Cow<'a, str>>,
    /// Links beyond [`MAX_LINKS_PER_PAGE`].
    pub dropped: u64,
    /// Meta robots said `nofollow` / `noindex` (recorded, not obeyed).
    pub nofollow: bool,
    /// See `nofollow`.
    pub noindex: bool,
}

/// The links of a body and of its headers.
///
/// `content_type` is the header's value if there was one; `body` is decoded (no content coding) but not transcoded.
/// `headers` are names in lower case with their values (`Link`, `Location`, `Refresh`, `Content-Location` matter).
/// `text` is scratch space that outlives the links: a body that is not UTF-8 is transcoded into it.
#[must_use]
pub fn extract<'a>(
    _status: u16,
    _content_type: Option<&[u8]>,
    _headers: &'a [(String, Vec<u8>)],
    _body: &'a [u8],
    _text: &'a mut String,
) -> Links<'a> {
    todo!()
}
