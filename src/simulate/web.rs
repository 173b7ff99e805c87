//! A web made of arithmetic: hosts of very different size, pages with links, all from a page's number.
//!
//! Page `p` leads to four pages of its own (`4p + 1` to `4p + 4`), so that every page is reached, and to 56 popular ones: the
//! place of a target among the pages up to there is the sixth power of an even chance, so the first pages have by far the most
//! links to them (a power law). Of all links about one in ten leads to an address that no link led to before. The host of a page
//! is chosen by a cube: of 10,000 hosts the first has a twentieth of all pages, the last half share a fifth.

use std::fmt::Write as _;

use crate::seen::mixed;
use crate::url::CrawlUrl;

/// Links of a page to pages of its own.
pub const OWN_LINKS: u64 = 4;
/// Links of a page to popular pages.
pub const POPULAR_LINKS: u64 = 56;
/// Pages there are at most: their numbers take four bytes in the queue.
pub const MAX_PAGES: u64 = 1 << 32;
/// What every host's name ends with (RFC 2606: it leads nowhere).
const DOMAIN: &str = ".web.example";

/// The web of a seed.
#[derive(Debug, Clone, Copy)]
pub struct Web {
    /// Chooses the links and the hosts.
    pub seed: u64,
    /// Hosts.
    pub hosts: u64,
}

impl Web {
    /// The host of a page, `0..hosts`.
    #[must_use]
    pub fn host(&self, page: u64) -> u64 {
        product(cube(mixed(page ^ self.seed.rotate_left(17))), self.hosts)
    }

    /// Writes the address of a page, 60 to 70 bytes, behind what `text` holds.
    pub fn write_url(&self, page: u64, text: &mut String) {
        const PARTS: [&str; 8] = [
            "archive", "articles", "docs", "forum", "history", "people", "products", "reports",
        ];
        let dice = mixed(page.wrapping_add(self.seed));
        let part = PARTS.get((dice & 7) as usize).unwrap_or(&"pages");
        let (year, month) = (1995 + (dice >> 3) % 31, 1 + (dice >> 9) % 12);
        // writing to a String cannot fail
        let _ = write!(
            text,
            "http://h{}{DOMAIN}/{part}/{year}/{month:02}/page-{page}.html",
            self.host(page)
        );
    }

    /// The page of an address that [`Web::write_url`] wrote; `None` for any other, such as a robots.txt.
    #[must_use]
    pub fn page(url: &CrawlUrl) -> Option<u64> {
        let name = url.path_and_query().rsplit_once("/page-")?.1;
        name.strip_suffix(".html")?.parse().ok()
    }

    /// The pages that a page leads to, in order; some may stand there twice.
    pub fn links(&self, page: u64) -> impl Iterator<Item = u64> + use<> {
        let seed = self.seed;
        let known = page
            .saturating_mul(OWN_LINKS)
            .saturating_add(OWN_LINKS + 1)
            .min(MAX_PAGES);
        let own = (1..=OWN_LINKS).map(move |n| page.saturating_mul(OWN_LINKS).saturating_add(n));
        let popular = (0..POPULAR_LINKS).map(move |n| {
            let dice = mixed(mixed(page ^ seed).wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
            let cube = cube(dice);
            product(product(cube, cube), known)
        });
        own.filter(|page| *page < MAX_PAGES).chain(popular)
    }
}

/// The cube of a chance. Chances are shares of 2^64.
fn cube(chance: u64) -> u64 {
    let square = product(chance, chance);
    product(square, chance)
}

/// The upper half of the product: below both.
fn product(one: u64, other: u64) -> u64 {
    u64::try_from((u128::from(one) * u128::from(other)) >> 64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::Identity;
    use std::collections::HashSet;

    const WEB: Web = Web { seed: 7, hosts: 10_000 };

    #[test]
    fn an_address_says_its_page_and_is_canonical() {
        for page in [0, 1, 77, 4_000_000_000] {
            let mut text = String::new();
            WEB.write_url(page, &mut text);
            let url = CrawlUrl::parse(&text, &Identity::default()).unwrap();
            assert_eq!(url.canonical(), text);
            assert_eq!(Web::page(&url), Some(page));
            assert!((50..75).contains(&text.len()), "{text}");
        }
        let other = CrawlUrl::parse("http://h1.web.example/robots.txt", &Identity::default()).unwrap();
        assert_eq!(Web::page(&other), None);
    }

    #[test]
    fn fetched_in_order_one_link_in_fifteen_is_new_and_few_pages_have_most() {
        let mut met = HashSet::from([0]);
        let (mut links, mut to_the_first) = (0_usize, 0);
        for page in 0..20_000 {
            for to in WEB.links(page) {
                links += 1;
                met.insert(to);
                to_the_first += usize::from(to < 800);
            }
        }
        assert_eq!(met.len(), links / 15 + 1);
        // a hundredth of the pages has a third of the links
        assert!(to_the_first * 3 > links, "{to_the_first} of {links}");
    }

    #[test]
    fn hosts_are_of_very_different_size() {
        let mut sizes = vec![0_u32; 10_000];
        for page in 0..1_000_000 {
            sizes[usize::try_from(WEB.host(page)).unwrap()] += 1;
        }
        assert!((40_000..55_000).contains(&sizes[0]), "{}", sizes[0]);
        let last_half: u32 = sizes[5_000..].iter().sum();
        assert!((190_000..225_000).contains(&last_half), "{last_half}");
    }
}
