//! Sitemaps and feeds among the bodies: which is one, and what it leads to.

use super::body::Body;
use super::{FINE, Links, MAX_LINKS_PER_PAGE, Role, mime, sitemap};

fn may_be_listing(essence: &str, start: &[u8], role: Role) -> bool {
    match role {
        Role::Sitemap => true,
        Role::Seed if essence == "text/plain" || start.starts_with(&[0x1f, 0x8b]) => true,
        Role::Seed | Role::Either | Role::Page => Body::of(essence, start) == Some(Body::Xml),
    }
}

/// A reader for a body that is a sitemap and nothing else, by its first bytes and by what it is wanted as: it may be
/// read in pieces, and nothing of it need be kept. `None` for what may be a page as well.
#[must_use]
pub fn listing_in_pieces(
    role: Role,
    status: u16,
    content_type: Option<&[u8]>,
    start: &[u8],
) -> Option<sitemap::Gather> {
    let sure = match role {
        Role::Sitemap => true,
        Role::Seed => sitemap::is_plain_to_see(start),
        Role::Either | Role::Page => false,
    };
    let is_one = FINE.contains(&status) && sure && may_be_listing(&mime::sniff(content_type, start), start, role);
    is_one.then(|| sitemap::Gather::new(content_type, role != Role::Sitemap))
}

/// Reads a sitemap or an XML feed, if the body is one and `role` wants it read. Tells whether it was.
pub(super) fn read_listing(
    essence: &str,
    content_type: Option<&[u8]>,
    body: &[u8],
    gathered: Option<sitemap::Gather>,
    role: Role,
    links: &mut Links<'_>,
) -> bool {
    if !may_be_listing(essence, body, role) {
        return false;
    }
    let gather = gathered.unwrap_or_else(|| {
        let mut gather = sitemap::Gather::new(content_type, role != Role::Sitemap);
        gather.feed(body);
        gather
    });
    let mut found = Links::default();
    let summary = gather.finish(&mut found);
    let wanted = match (role, summary.form) {
        (_, None) => false,
        (Role::Page, Some(form)) => form.is_feed(),
        // prose may have an address on a line of its own
        (Role::Seed, Some(sitemap::Form::Text)) => summary.other_lines == 0,
        (Role::Either | Role::Seed | Role::Sitemap, Some(_)) => true,
    };
    if wanted {
        let room = MAX_LINKS_PER_PAGE.saturating_sub(links.counted());
        links.dropped += found.dropped + found.links.len().saturating_sub(room) as u64;
        links.links.extend(found.links.into_iter().take(room));
        links.base = links.base.take().or(found.base);
    }
    // a feed that is met as a page stays one
    let listing = wanted && (role == Role::Seed || summary.form.is_some_and(|form| !form.is_feed()));
    if listing || role == Role::Sitemap {
        links.sitemap = Some(summary);
    }
    wanted
}
