//! JSON Feed (jsonfeed.org, versions 1 and 1.1). RSS and Atom are read in `sitemap`.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{LinkKind, Links};

/// The type of a JSON feed.
pub(super) const TYPE: &str = "application/feed+json";

/// Whether JSON of no special type is a feed: many are served so, and say their version first.
pub(super) fn is_likely(body: &[u8]) -> bool {
    let head = body.get(..HEAD).unwrap_or(body);
    memchr::memmem::find(head, b"jsonfeed.org").is_some()
}

/// Bytes in which a feed that is served as other JSON says what it is.
const HEAD: usize = 1 << 10;

/// A larger one is not read, bytes: it is taken apart in memory, several times its length.
const MAX_BYTES: usize = 8 << 20;

/// What may be of another type than it should be without spoiling the rest.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Lax<T> {
    Right(T),
    Wrong(IgnoredAny),
}

impl<T> Default for Lax<T> {
    fn default() -> Self {
        Self::Wrong(IgnoredAny)
    }
}

impl<T: Default> Lax<T> {
    pub(super) fn get(self) -> T {
        match self {
            Self::Right(value) => value,
            Self::Wrong(_) => T::default(),
        }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Feed {
    home_page_url: Lax<String>,
    next_url: Lax<String>,
    icon: Lax<String>,
    favicon: Lax<String>,
    items: Lax<Vec<Lax<Item>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Item {
    url: Lax<String>,
    external_url: Lax<String>,
    image: Lax<String>,
    banner_image: Lax<String>,
    attachments: Lax<Vec<Lax<Attachment>>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Attachment {
    url: Lax<String>,
}

/// Adds the links of a JSON feed; what is none gives none.
pub(super) fn json(body: &[u8], links: &mut Links<'_>) {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let feed = Some(body).filter(|body| body.len() <= MAX_BYTES);
    let Some(feed) = feed.and_then(|body| serde_json::from_slice::<Feed>(body).ok()) else {
        return;
    };
    let mut push = |kind, url: Lax<String>| {
        let url = url.get();
        if !url.is_empty() {
            links.push(kind, url.into());
        }
    };
    for item in feed.items.get() {
        let item = item.get();
        push(LinkKind::Navigation, item.url);
        push(LinkKind::Navigation, item.external_url);
        push(LinkKind::Requisite, item.image);
        push(LinkKind::Requisite, item.banner_image);
        for attachment in item.attachments.get() {
            push(LinkKind::Requisite, attachment.get().url);
        }
    }
    push(LinkKind::Navigation, feed.home_page_url);
    push(LinkKind::Navigation, feed.next_url);
    push(LinkKind::Requisite, feed.icon);
    push(LinkKind::Requisite, feed.favicon);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(LinkKind, String)> {
        let mut links = Links::default();
        json(text.as_bytes(), &mut links);
        links
            .links
            .into_iter()
            .map(|link| (link.kind, link.raw.into_owned()))
            .collect()
    }

    #[test]
    fn items_and_attachments_are_links() {
        let text = r#"{"version": "https://jsonfeed.org/version/1.1", "home_page_url": "https://a.test/",
            "next_url": "https://a.test/feed?page=2", "items": [
            {"id": 1, "url": "https://a.test/1", "external_url": "https://b.test/", "tags": ["x"],
             "attachments": [{"url": "https://a.test/1.mp3", "size_in_bytes": 7}, "odd"]},
            "odd", {"url": 7, "image": "i.png"}]}"#;
        let (page, part) = (LinkKind::Navigation, LinkKind::Requisite);
        assert_eq!(
            read(text),
            [
                (page, "https://a.test/1".to_owned()),
                (page, "https://b.test/".to_owned()),
                (part, "https://a.test/1.mp3".to_owned()),
                (part, "i.png".to_owned()),
                (page, "https://a.test/".to_owned()),
                (page, "https://a.test/feed?page=2".to_owned()),
            ]
        );
    }

    #[test]
    fn what_is_no_feed_gives_no_links() {
        for text in ["", "[]", "{", "7", r#"{"items": 7}"#, &"[".repeat(100_000)] {
            assert_eq!(read(text), [], "{text:.20}");
        }
    }
}
