//! Addresses that grow: by repeating themselves, the mark of a link that is relative by mistake or of a page that echoes
//! its own address; or beyond what any address of a real page needs.

use super::Rule;

/// A part of an address (between `/`, `?` and `&`) that has stood in it before is a repeat; an address with more repeats
/// than this leads nowhere. Parts need not stand side by side: two wrong links mix freely.
pub const MAX_REPEATS: usize = 4;

/// A group of two parts or more that stands so often in a row leads nowhere (`a/b/a/b/a/b`).
pub const MAX_GROUPS: usize = 3;
/// Longest group that is looked for, parts.
const MAX_GROUP_PARTS: usize = 8;
/// Segments of a path. The deepest pages of real documentation lie at about twenty.
pub const MAX_SEGMENTS: usize = 48;
/// Bytes of a path, without the query, beyond which it is a long one. A title in a script of three bytes a letter takes
/// nine bytes for each.
pub const MAX_PATH_BYTES: usize = 2_048;
/// Segments of a long path.
pub const MAX_SEGMENTS_OF_LONG: usize = 16;
/// Parameters of a query.
pub const MAX_PARAMETERS: usize = 100;
/// Times that one name may stand in a query.
pub const MAX_SAME_PARAMETER: usize = 24;

/// The rule that this path (with its query) breaks.
#[must_use]
pub fn rule(path_and_query: &str) -> Option<Rule> {
    if repeats_itself(path_and_query) || repeats_a_group(path_and_query) {
        return Some(Rule::RepeatedSegments);
    }
    let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
    let more_than = |most: usize| {
        path.split('/')
            .filter(|segment| !segment.is_empty())
            .nth(most)
            .is_some()
    };
    let most = if path.len() > MAX_PATH_BYTES {
        MAX_SEGMENTS_OF_LONG
    } else {
        MAX_SEGMENTS
    };
    if path.len() > 2 * most && more_than(most) {
        return Some(Rule::PathDepth);
    }
    (!query.is_empty() && grows(query)).then_some(Rule::QueryGrowth)
}

fn grows(query: &str) -> bool {
    let mut names: Vec<&str> = Vec::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        if names.len() == MAX_PARAMETERS {
            return true;
        }
        names.push(parameter.split('=').next().unwrap_or(parameter));
    }
    names.sort_unstable();
    names
        .chunk_by(|one, other| one == other)
        .any(|same| same.len() > MAX_SAME_PARAMETER)
}

/// Does a group of at least two different segments stand [`MAX_GROUPS`] times in a row?
fn repeats_a_group(path_and_query: &str) -> bool {
    let path = path_and_query.split('?').next().unwrap_or_default();
    if memchr::memchr_iter(b'/', path.as_bytes())
        .nth(2 * MAX_GROUPS - 1)
        .is_none()
    {
        return false;
    }
    let segments: Vec<&str> = path
        .split('/')
        .filter(|segment| !segment.is_empty())
        .take(MAX_PARTS)
        .collect();
    (2..=MAX_GROUP_PARTS).any(|len| {
        segments.windows(len * MAX_GROUPS).any(|window| {
            let mut groups = window.chunks(len);
            let first = groups.next().unwrap_or_default();
            let varies = first
                .windows(2)
                .any(|pair| matches!(pair, [one, other] if one != other));
            varies && groups.all(|group| group == first)
        })
    })
}

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
