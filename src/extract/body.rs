//! What a body is read as, and by which reader.

use std::borrow::Cow;

use super::{Links, charset, css, dash, feed, html, json, list, manifest, pdf, playlist, script};

/// The kinds of body that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    Html,
    Xml,
    Css,
    Script,
    Json,
    Feed,
    Manifest,
    Playlist,
    Dash,
    Pdf,
    Text,
}

impl Body {
    /// By the essence of a media type, in lower case; by its first bytes where types are often vague.
    pub(super) fn of(essence: &str, body: &[u8]) -> Option<Self> {
        match essence {
            "text/html" => Some(Self::Html),
            "text/css" => Some(Self::Css),
            "text/xml" | "application/xml" => Some(Self::Xml),
            dash::TYPE => Some(Self::Dash),
            feed::TYPE => Some(Self::Feed),
            manifest::TYPE => Some(Self::Manifest),
            "application/json" | "text/json" if feed::is_likely(body) => Some(Self::Feed),
            "application/json" | "text/json" if manifest::is_likely(body) => Some(Self::Manifest),
            "application/json" | "text/json" => Some(Self::Json),
            _ if is_script(essence) => Some(Self::Script),
            _ if playlist::is_one(essence, body) => Some(Self::Playlist),
            _ if pdf::is_one(essence, body) => Some(Self::Pdf),
            "text/plain" | "text/uri-list" => Some(Self::Text),
            other if other.ends_with("+xml") => Some(Self::Xml),
            other if other.ends_with("+json") => Some(Self::Json),
            _ => None,
        }
    }

    /// What it needs belongs to the page that needs it: its own requisites are the page's.
    fn is_part(self) -> bool {
        matches!(self, Self::Css | Self::Manifest | Self::Playlist | Self::Dash)
    }

    /// Adds the links of a body of this kind. `text` is scratch space.
    pub(super) fn read<'a>(
        self,
        content_type: Option<&[u8]>,
        body: &'a [u8],
        text: &'a mut String,
        links: &mut Links<'a>,
    ) {
        links.is_part = self.is_part();
        match self {
            Self::Pdf => return pdf::scan(body, |url| links.push(super::LinkKind::Navigation, url.into())),
            Self::Feed => return feed::json(body, links),
            Self::Manifest => return manifest::scan(body, |kind, url| links.push(kind, url.into())),
            // guesses alone, and they are not wanted
            Self::Script if !links.speculative => return,
            _ => {}
        }
        let (encoding, decoded) = match self {
            Self::Css => charset::decode_css(content_type, body),
            // JSON and playlists are UTF-8 whatever is said of them (RFC 8259, section 8.1; RFC 8216, section 4)
            Self::Json | Self::Playlist => (encoding_rs::UTF_8, String::from_utf8_lossy(body)),
            _ => charset::decode(content_type, body),
        };
        links.encoding = Some(encoding.name());
        let decoded: &'a str = match decoded {
            Cow::Borrowed(same) => same,
            Cow::Owned(other) => {
                *text = other;
                text
            }
        };
        let requisite = super::LinkKind::Requisite;
        match self {
            Self::Html => html::links(decoded, html::Syntax::Html, links),
            Self::Xml => html::links(decoded, html::Syntax::Xml, links),
            Self::Css => {
                links.push_css(Cow::Borrowed(decoded), css::Place::Sheet);
                source_map(decoded, links);
            }
            Self::Script => {
                links.push_script(Cow::Borrowed(decoded));
                source_map(decoded, links);
            }
            Self::Json => json::scan(decoded, json::Use::Data, &mut |kind, url| links.push(kind, url)),
            Self::Playlist => playlist::scan(decoded, |url| links.push(requisite, url.into())),
            Self::Dash => dash::scan(decoded, |url| links.push(requisite, url.into())),
            Self::Text => {
                let guesses = links.speculative;
                list::scan(decoded, guesses, |kind, url| links.push(kind, url.into()));
            }
            Self::Feed | Self::Manifest | Self::Pdf => {}
        }
    }
}

/// The source map that a file names, if guesses are wanted.
fn source_map<'a>(text: &'a str, links: &mut Links<'a>) {
    if let Some(url) = script::source_map(text).filter(|_| links.speculative) {
        links.push(super::LinkKind::Speculative, Cow::Borrowed(url));
    }
}

/// The types of a script (MIME Sniffing Standard, "JavaScript MIME type").
pub(super) fn is_script(essence: &str) -> bool {
    let Some(name) = ["text/", "application/"]
        .iter()
        .find_map(|kind| essence.strip_prefix(kind))
    else {
        return false;
    };
    matches!(
        name.trim_start_matches("x-"),
        "javascript" | "ecmascript" | "jscript" | "livescript"
    )
}

/// Bytes of scripts that may still be looked through on this page.
pub(super) fn room_for_scripts(read: usize) -> usize {
    script::MAX_BYTES.saturating_sub(read)
}
