//! Does a text look like an address? For places where nothing says that it is one: JSON, scripts, plain text.

use crate::url::MAX_URL_BYTES;

/// `http://` or `https://` with something behind it, and nothing inside that no address has.
pub(super) fn is_absolute(text: &str) -> bool {
    let rest = ["http://", "https://"].into_iter().find_map(|scheme| {
        text.get(..scheme.len())
            .filter(|start| start.eq_ignore_ascii_case(scheme))
            .and_then(|_| text.get(scheme.len()..))
    });
    rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || c == '[')) && is_whole(text)
}

/// The same, or a path that shows itself by how it begins: `/`, `./`, `../`.
pub(super) fn is_address(text: &str) -> bool {
    is_absolute(text) || ["/", "./", "../"].iter().any(|start| text.starts_with(start)) && is_whole(text)
}

/// No longer than an address, and without what a template or a sentence has.
fn is_whole(text: &str) -> bool {
    let odd = |c: char| c <= ' ' || matches!(c, '<' | '>' | '"' | '{' | '}' | '`' | '\\');
    text.len() <= MAX_URL_BYTES && !text.contains(odd)
}

/// What ends the name of a file that a page may lead to or load.
const FILES: [&str; 41] = [
    "asp",
    "aspx",
    "avif",
    "cfm",
    "cgi",
    "css",
    "csv",
    "do",
    "gif",
    "gz",
    "htm",
    "html",
    "ico",
    "jpeg",
    "jpg",
    "js",
    "json",
    "jsp",
    "m3u8",
    "mjs",
    "mp3",
    "mp4",
    "mpd",
    "ogg",
    "pdf",
    "php",
    "png",
    "rss",
    "shtml",
    "svg",
    "tif",
    "ttf",
    "txt",
    "webm",
    "webmanifest",
    "webp",
    "woff",
    "woff2",
    "xhtml",
    "xml",
    "zip",
];

/// A path whose last part, its query aside, is the name of a file by its ending.
pub(super) fn names_file(text: &str) -> bool {
    let path = text.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    let ending = ending.to_ascii_lowercase();
    !stem.is_empty() && FILES.binary_search(&ending.as_str()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_other_text() {
        for (text, absolute, any) in [
            ("http://a", true, true),
            ("HTTPS://A.test/b?c=d#e", true, true),
            ("https://[::1]/", true, true),
            ("http://", false, false),
            ("http:///x", false, false),
            ("https://a.test/ and more", false, false),
            ("https://a.test/{id}", false, false),
            ("/a", false, true),
            ("../a", false, true),
            ("./a b", false, false),
            ("a/b.html", false, false),
            ("", false, false),
        ] {
            assert_eq!((is_absolute(text), is_address(text)), (absolute, any), "{text}");
        }
        let long = format!("http://a/{}", "x".repeat(MAX_URL_BYTES - 9));
        assert!(is_absolute(&long));
        assert!(!is_absolute(&format!("{long}x")));
    }

    #[test]
    fn files_are_told_by_their_ending() {
        assert!(FILES.is_sorted(), "searched by halves");
        for (text, is_file) in [
            ("a.html", true),
            ("b/c.PNG?v=1.2", true),
            ("a.b.woff2#x", true),
            (".html", false),
            ("a.length", false),
            ("1.5", false),
            ("text/html", false),
            ("a.html/b", false),
        ] {
            assert_eq!(names_file(text), is_file, "{text}");
        }
    }
}
