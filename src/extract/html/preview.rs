//! Metadata that holds addresses: Open Graph, Twitter cards, tiles, and items of schema.org.

use super::super::LinkKind;

use LinkKind::{Navigation, Requisite};

/// What the content of a `meta` with this `property` or `name` is, if it is an address: a picture, film, sound or player
/// that is shown for the page, or the page's own address.
pub(super) fn kind_of_meta(name: &str) -> Option<LinkKind> {
    let name = name.trim();
    // most are none of these
    let first = name.as_bytes().first()?.to_ascii_lowercase();
    if !matches!(first, b'o' | b't' | b'm') {
        return None;
    }
    let name = name.to_ascii_lowercase();
    if matches!(name.as_str(), "og:url" | "og:see_also" | "twitter:url") {
        return Some(Navigation);
    }
    let stem = [":secure_url", ":url", ":src", ":stream"]
        .into_iter()
        .find_map(|end| name.strip_suffix(end))
        .unwrap_or(&name);
    let is_shown = matches!(
        stem,
        "og:image"
            | "og:video"
            | "og:audio"
            | "twitter:image"
            | "twitter:image0"
            | "twitter:image1"
            | "twitter:image2"
            | "twitter:image3"
            | "twitter:player"
            | "thumbnail"
            | "msapplication-tileimage"
            | "msapplication-square70x70logo"
            | "msapplication-square150x150logo"
            | "msapplication-square310x310logo"
            | "msapplication-wide310x150logo"
            | "msapplication-config"
    );
    is_shown.then_some(Requisite)
}

/// What the content of a `meta` with this `itemprop` is (microdata of schema.org), if it is an address.
pub(super) fn kind_of_property(name: &str) -> Option<LinkKind> {
    match name.trim() {
        name if name.eq_ignore_ascii_case("image") => Some(Requisite),
        "contentUrl" | "embedUrl" | "logo" | "thumbnailUrl" => Some(Requisite),
        "url" => Some(Navigation),
        _ => None,
    }
}
