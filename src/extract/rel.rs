//! What a link relation makes of a link: `link rel` and the `Link` header.

use super::LinkKind;

/// Relations whose target is needed to show the page.
const REQUISITE: [&str; 10] = [
    "icon",
    "apple-touch-icon",
    "apple-touch-icon-precomposed",
    "apple-touch-startup-image",
    "mask-icon",
    "fluid-icon",
    "preload",
    "modulepreload",
    "manifest",
    "image_src",
];

/// Relations that name a host or an endpoint that only takes POST requests: nothing to fetch.
const NO_DOCUMENT: [&str; 4] = ["dns-prefetch", "preconnect", "pingback", "webmention"];

/// The kind of a link with these relations (white space between them) and this `as`; `None` if it names no document.
///
/// Of several relations the strongest counts: stylesheet, requisite, navigation. Without any, or with one unknown
/// (`next`, `alternate`, `canonical`, `license` ... all are alike here), it is a place to go to.
pub(super) fn kind_of_rel(rel: &str, role: &str) -> Option<LinkKind> {
    let mut kind = if rel.trim().is_empty() {
        Some(LinkKind::Navigation)
    } else {
        None
    };
    for token in rel.split_ascii_whitespace() {
        let is = |name: &&str| token.eq_ignore_ascii_case(name);
        let own = if is(&"stylesheet") || is(&"preload") && role.eq_ignore_ascii_case("style") {
            Some(LinkKind::Stylesheet)
        } else if REQUISITE.iter().any(is) {
            Some(LinkKind::Requisite)
        } else if NO_DOCUMENT.iter().any(is) {
            None
        } else {
            Some(LinkKind::Navigation)
        };
        // the order of LinkKind is the order of strength: navigation, requisite, stylesheet
        kind = kind.max(own);
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_relation_counts() {
        for (rel, role, kind) in [
            ("stylesheet", "", Some(LinkKind::Stylesheet)),
            ("alternate StyleSheet", "", Some(LinkKind::Stylesheet)),
            ("preload", "style", Some(LinkKind::Stylesheet)),
            ("preload", "font", Some(LinkKind::Requisite)),
            ("shortcut icon", "", Some(LinkKind::Requisite)),
            ("next", "", Some(LinkKind::Navigation)),
            ("http://example.com/rel", "", Some(LinkKind::Navigation)),
            ("", "", Some(LinkKind::Navigation)),
            ("preconnect", "", None),
            ("dns-prefetch preconnect", "", None),
            ("preconnect stylesheet", "", Some(LinkKind::Stylesheet)),
        ] {
            assert_eq!(kind_of_rel(rel, role), kind, "{rel} {role}");
        }
    }
}
