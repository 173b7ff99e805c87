//! Rows of links.jsonl.zst: one for each link that a page hands to the judge.

use std::io;

use serde::Serialize;

use crate::extract::detail::Detail;
use crate::extract::{LinkKind, RawLink};
use crate::ledger::Lines;
use crate::url::CrawlUrl;

/// Longest text that is written of a link that is no address, characters.
const MAX_RAW_CHARS: usize = 2_000;

/// What became of a link on its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fate {
    /// It went on to the seen-set, which knows it or lets it in.
    InScope,
    /// It stands on the page before, with the same meaning.
    Repeated,
    OutOfScope,
    /// Left for `nofollow`; counted as out of scope.
    Nofollow,
    Trap,
    Malformed,
}

#[derive(Serialize)]
struct Row<'r> {
    from: &'r str,
    to: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    raw: Option<&'r str>,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    element: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rel: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
    nofollow: bool,
    fate: Fate,
}

/// The rows of one page while they are made.
pub struct Edges<'p> {
    from: &'p str,
    /// The page says it of all its links.
    nofollow: bool,
    lines: Lines,
    line: Vec<u8>,
    failed: Option<io::Error>,
}

impl<'p> Edges<'p> {
    pub(super) fn new(from: &'p str, nofollow: bool) -> Self {
        Self {
            from,
            nofollow,
            lines: Lines::default(),
            line: Vec::new(),
            failed: None,
        }
    }

    pub(super) fn add(&mut self, link: &RawLink<'_>, to: Option<&CrawlUrl>, detail: Option<&Detail<'_>>, fate: Fate) {
        let raw = to.is_none().then(|| match link.raw.char_indices().nth(MAX_RAW_CHARS) {
            Some((end, _)) => link.raw.get(..end).unwrap_or_default(),
            None => &link.raw,
        });
        let row = Row {
            from: self.from,
            to: to.map(CrawlUrl::href),
            identity: to
                .map(CrawlUrl::canonical)
                .filter(|own| Some(*own) != to.map(CrawlUrl::href)),
            raw,
            kind: word(link.kind),
            element: detail.map(|detail| detail.element.as_ref()),
            attribute: detail.and_then(|detail| detail.attribute),
            rel: detail.and_then(|detail| detail.rel.as_deref()),
            text: detail.and_then(|detail| detail.text.as_deref()),
            cut: detail.is_some_and(|detail| detail.cut),
            nofollow: self.nofollow || link.nofollow,
            fate,
        };
        self.line.clear();
        let written = serde_json::to_writer(&mut self.line, &row).map_err(io::Error::from);
        if let Err(error) = written.and_then(|()| self.lines.push(&self.line)) {
            self.failed.get_or_insert(error);
        }
    }

    /// The rows.
    ///
    /// # Errors
    /// If one of them could not be packed.
    pub(super) fn finish(self) -> io::Result<Lines> {
        self.failed.map_or(Ok(self.lines), Err)
    }
}

fn word(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::Navigation => "navigation",
        LinkKind::Requisite => "requisite",
        LinkKind::Stylesheet => "stylesheet",
        LinkKind::Redirect => "redirect",
        LinkKind::Sitemap => "sitemap",
        LinkKind::Speculative => "speculative",
    }
}
