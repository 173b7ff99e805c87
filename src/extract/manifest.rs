//! Web app manifests (W3C Application Manifest): the icons they name, and where the application starts.

use serde::Deserialize;

use super::LinkKind;
use super::feed::Lax;

/// The type of a manifest.
pub(super) const TYPE: &str = "application/manifest+json";

/// A larger one is not read, bytes: it is taken apart in memory.
const MAX_BYTES: usize = 1 << 20;

#[derive(Deserialize, Default)]
#[serde(default)]
struct Manifest {
    icons: Lax<Vec<Lax<Image>>>,
    screenshots: Lax<Vec<Lax<Image>>>,
    shortcuts: Lax<Vec<Lax<Shortcut>>>,
    start_url: Lax<String>,
    serviceworker: Lax<Image>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Image {
    src: Lax<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Shortcut {
    url: Lax<String>,
    icons: Lax<Vec<Lax<Image>>>,
}

/// Whether JSON of no special type is a manifest: many are served so.
pub(super) fn is_likely(body: &[u8]) -> bool {
    let has = |key: &[u8]| memchr::memmem::find(body, key).is_some();
    body.len() <= MAX_BYTES && has(b"\"icons\"") && has(b"\"start_url\"")
}

/// Calls `found` with each address of a manifest; what is none gives none.
pub(super) fn scan(body: &[u8], mut found: impl FnMut(LinkKind, String)) {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    let manifest = Some(body).filter(|body| body.len() <= MAX_BYTES);
    let Some(manifest) = manifest.and_then(|body| serde_json::from_slice::<Manifest>(body).ok()) else {
        return;
    };
    let mut push = |kind, url: Lax<String>| {
        let url = url.get();
        if !url.is_empty() {
            found(kind, url);
        }
    };
    let shortcuts = manifest.shortcuts.get().into_iter().map(Lax::get);
    let mut images = vec![manifest.icons, manifest.screenshots];
    push(LinkKind::Navigation, manifest.start_url);
    for shortcut in shortcuts {
        push(LinkKind::Navigation, shortcut.url);
        images.push(shortcut.icons);
    }
    for image in images.into_iter().flat_map(Lax::get) {
        push(LinkKind::Requisite, image.get().src);
    }
    push(LinkKind::Requisite, manifest.serviceworker.get().src);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut words = Vec::new();
        scan(text.as_bytes(), |kind, url| {
            words.push(format!("{}{url}", kind.letter()));
        });
        words.join(" ")
    }

    #[test]
    fn icons_are_requisites_and_starts_are_places_to_go_to() {
        let text = r#"{"name": "A", "start_url": "./?pwa", "scope": "/", "icons": [{"src": "a.png", "sizes": "48x48"}, 7, {"src": 7}],
            "screenshots": [{"src": "s.png"}], "serviceworker": {"src": "sw.js"},
            "shortcuts": [{"url": "/new", "icons": [{"src": "n.png"}]}, "odd"]}"#;
        assert_eq!(read(text), "L./?pwa L/new Ea.png Es.png En.png Esw.js");
        assert!(is_likely(text.as_bytes()));
    }

    #[test]
    fn what_is_no_manifest_gives_no_links() {
        for text in ["", "[]", "{", r#"{"icons": {"src": "a"}}"#, &"[".repeat(100_000)] {
            assert_eq!(read(text), "", "{text:.20}");
        }
        assert!(!is_likely(br#"{"icons": []}"#));
    }

    #[test]
    fn a_large_one_is_not_read() {
        let with = |spaces: usize| read(&format!("{{\"start_url\":{}\"/a\"}}", " ".repeat(spaces)));
        let rest = "{\"start_url\":\"/a\"}".len();
        assert_eq!(with(MAX_BYTES - rest), "L/a");
        assert_eq!(with(MAX_BYTES - rest + 1), "");
    }
}
