//! Addresses that grow by repeating themselves: the mark of a link that is relative by mistake, or of a page that echoes
//! its own address. Such a web has no end, and every page of it is one that the crawl has already.

/// A part of an address (between `/`, `?` and `&`) that has stood in it before is a repeat; an address with more repeats
/// than this leads nowhere. Parts need not stand side by side: two wrong links mix freely.
pub const MAX_REPEATS: usize = 4;

/// Parts that are looked at, from the start; an address of more parts than this has bounds of its own.
const MAX_PARTS: usize = 64;

/// Does this path (with its query) repeat itself more than [`MAX_REPEATS`] times? Empty parts do not count.
#[must_use]
pub fn repeats_itself(path_and_query: &str) -> bool {
    let bytes = path_and_query.as_bytes();
    // most addresses have too few parts for so many repeats
    if memchr::memchr3_iter(b'/', b'?', b'&', bytes).nth(MAX_REPEATS).is_none() {
        return false;
    }
    let mut parts: [&[u8]; MAX_PARTS] = [&[]; MAX_PARTS];
    let (mut known, mut repeats, mut start) = (0, 0, 0);
    let ends = memchr::memchr3_iter(b'/', b'?', b'&', bytes).chain(std::iter::once(bytes.len()));
    for end in ends {
        let part = bytes.get(start..end).unwrap_or_default();
        start = end + 1;
        if part.is_empty() {
            continue;
        }
        if parts.iter().take(known).any(|before| *before == part) {
            repeats += 1;
            if repeats > MAX_REPEATS {
                return true;
            }
            continue;
        }
        let Some(slot) = parts.get_mut(known) else { return false };
        *slot = part;
        known += 1;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn growing_addresses_are_told_from_long_ones() {
        for fine in [
            "/",
            "",
            "/a/b/c/d/e/f/g/h/i/j",
            "/2026/01/01/01/01/01",
            "/java/lang/java/lang",
            "//////////a",
            "/?a=1&b=1&c=1&d=1&e=1&f=1",
            "/1/1/1/1/1",
        ] {
            assert!(!repeats_itself(fine), "{fine}");
        }
        for trap in [
            "/1/1/1/1/1/1",
            "/depot/web/depot/web/depot/web/depot/web/",
            "/a/x/a/y/a/x/a/y/b",
            "/?post=1%20http://x.test/%20http://x.test/%20http://x.test/%20http://x.test/",
            "/p?n=1&n=1&n=1&n=1&n=1&n=1",
        ] {
            assert!(repeats_itself(trap), "{trap}");
        }
    }

    #[test]
    fn more_parts_than_are_looked_at_are_no_harm() {
        let path = |parts: usize| (0..parts).map(|n| n.to_string()).collect::<Vec<_>>().join("/");
        let many = path(MAX_PARTS + 1);
        assert!(!repeats_itself(&format!("/{many}/{many}")));
        assert!(repeats_itself(&format!("/{}/1/1/1/1/1", path(MAX_PARTS))));
    }

    proptest! {
        #[test]
        fn a_repeated_path_is_a_trap_at_the_bound(unit in "(/[a-z]{1,3}){1,3}", times in 1_usize..12) {
            let parts = unit.matches('/').count() * times;
            let distinct = unit.split('/').skip(1).collect::<std::collections::HashSet<_>>().len();
            prop_assert_eq!(repeats_itself(&unit.repeat(times)), parts - distinct > MAX_REPEATS);
        }

        #[test]
        fn any_text_gets_an_answer(text in ".*") {
            let _ = repeats_itself(&text);
        }
    }
}
