use proptest::prelude::*;

use super::host::{CHAIN_PAGES, Fed, HostTraps, MAX_KINDS, SAME_PAGES, Sameness};
use super::kin::{Kin, Lineage};
use super::settings::{Override, Settings};
use super::{Content, Policy, Rule, Shape, address};
use crate::url::{CrawlUrl, Identity};

fn url(path: &str) -> CrawlUrl {
    CrawlUrl::parse(&format!("http://h.test{path}"), &Identity::default()).unwrap()
}

fn shape(path: &str) -> String {
    Shape::text(&url(path))
}

fn kin(page: &str, link: &str) -> Kin {
    let (page, link) = (url(page), url(link));
    Kin::of((&page, &Shape::of(&page)), (&link, &Shape::of(&link)))
}

fn content(path: &str, html: &str) -> Content {
    Content::of(html.as_bytes(), &url(path))
}

#[test]
fn every_rule_has_its_word() {
    for rule in Rule::ALL {
        assert_eq!(Rule::of(rule.word()), Some(rule));
        assert!(!rule.says().is_empty());
    }
    assert_eq!(Rule::of("other"), None);
}

#[test]
fn what_a_machine_counts_up_is_folded() {
    for (path, folded) in [
        ("/p/12", "/p/#"),
        ("/chapter12.html", "/chapter#.html"),
        ("/s/3f0e1d2c4b5a/home", "/s/#/home"),
        ("/x/550e8400-e29b-41d4-a716-446655440000", "/x/#-e#b-#d#-a#-#"),
        ("/2026/01/05/title", "/#/#/#/title"),
        ("/a;jsessionid=A1B2C3D4E5.w1", "/a;jsessionid=#.w#"),
        ("/q?b=2&a=1&b=3", "/q?a&b"),
        ("/java.base/java/util/function", "/java.base/java/util/function"),
        ("/", "/"),
        ("/?", "/"),
    ] {
        assert_eq!(shape(path), folded, "{path}");
    }
}

#[test]
fn a_calendar_is_told_by_its_addresses() {
    for date in [
        "/calendar/17",
        "/2026/01/",
        "/log/2026-01-05",
        "/d/20260105.html",
        "/x?year=2026&m=1",
        "/x?date=5",
        "/x?y=1&m=2",
    ] {
        assert!(Shape::of(&url(date)).is_date(), "{date}");
    }
    for other in [
        "/p/12",
        "/2026/99",
        "/v/1.12",
        "/x?m=5",
        "/calendar",
        "/rfc/2616/3",
        "/d/20269905",
        "/a/10000/1",
    ] {
        let expected = other == "/rfc/2616/3";
        assert_eq!(Shape::of(&url(other)).is_date(), expected, "{other}");
    }
}

#[test]
fn what_a_link_shares_with_its_page() {
    assert!(kin("/p/1", "/p/2").has(Kin::SHAPE));
    assert!(kin("/s/12345678/a", "/s/87654321/b").has(Kin::STEM));
    assert!(kin("/a?sid=1", "/b?sid=2").has(Kin::NAMES));
    assert!(kin("/a/b", "/a/b/c").has(Kin::GROWN));
    assert!(kin("/a/b/", "/a/b/c/").has(Kin::GROWN));
    assert!(kin("/?a=1", "/?a=1%20x").has(Kin::GROWN));
    assert!(kin("/?a=1", "/?b=1").has(Kin::QUERY));
    assert!(kin("/2026/01/", "/2026/01/05").has(Kin::DATE));
    for (page, link) in [
        ("/", "/p/1"),
        ("/list?page=1", "/p/1"),
        ("/a", "/b"),
        ("/a/b", "/a/c"),
        ("/p/1", "/q/1"),
    ] {
        assert!(kin(page, link).is_strange(), "{page} {link}");
    }
    let other = CrawlUrl::parse("http://other.test/p/2", &Identity::default()).unwrap();
    let page = url("/p/1");
    assert!(Kin::of((&page, &Shape::of(&page)), (&other, &Shape::of(&other))).is_none());
}

#[test]
fn a_page_is_the_same_whatever_its_markup_and_links() {
    let one = content(
        "/x",
        "<title>A</title><p class=1>Hello <a href='?s=1'>world</a><script>1</script>",
    );
    let two = content(
        "/x",
        "<title>A</title><!-- <b> --><div>Hello\n<a href='?s=2'>world</a><style>a{}</style>",
    );
    assert_eq!(one, two);
    assert_ne!(one.same, content("/x", "<title>A</title>Hello words").same);
    let numbered = |n: u32| content("/x", &format!("Page {n} of January"));
    assert_ne!(numbered(1).same, numbered(2).same);
    assert_eq!(numbered(1).alike, content("/x", "Page 22 of March").alike);
    assert_eq!(
        content("/one/two", "no /one/two here").same,
        content("/other", "no /other here").same
    );
    assert_eq!(
        content("/x", "your id is 3f0e1d2c4b5a6978").same,
        content("/x", "your id is 8f0e1d2c4b5a6978").same
    );
}

#[test]
fn addresses_grow_in_more_than_one_way() {
    let deep = |segments: usize| (0..segments).fold(String::new(), |path, n| format!("{path}/s{n}"));
    let query = |count: usize, name: fn(usize) -> String| {
        let parameters: Vec<String> = (0..count).map(|n| format!("{}={n}", name(n))).collect();
        format!("/q?{}", parameters.join("&"))
    };
    for (path, rule) in [
        ("/a/b/a/b/a/b".to_owned(), Some(Rule::RepeatedSegments)),
        ("/a/b/c/a/b/c/a/b/c".to_owned(), Some(Rule::RepeatedSegments)),
        ("/x/a/b/c/a/b/c".to_owned(), None),
        ("/1/1/1/1".to_owned(), None),
        (deep(address::MAX_SEGMENTS), None),
        (deep(address::MAX_SEGMENTS + 1), Some(Rule::PathDepth)),
        (format!("/{}", "x".repeat(3 * address::MAX_PATH_BYTES)), None),
        (
            format!(
                "{}{}",
                deep(address::MAX_SEGMENTS_OF_LONG),
                "x".repeat(address::MAX_PATH_BYTES)
            ),
            None,
        ),
        (
            format!(
                "{}{}",
                deep(address::MAX_SEGMENTS_OF_LONG + 1),
                "x".repeat(address::MAX_PATH_BYTES)
            ),
            Some(Rule::PathDepth),
        ),
        (query(address::MAX_PARAMETERS, |n| format!("n{n}")), None),
        (
            query(address::MAX_PARAMETERS + 1, |n| format!("n{n}")),
            Some(Rule::QueryGrowth),
        ),
        (query(address::MAX_SAME_PARAMETER, |_| "n".to_owned()), None),
        (
            query(address::MAX_SAME_PARAMETER + 1, |_| "n".to_owned()),
            Some(Rule::QueryGrowth),
        ),
        ("/en/java.base/java/util/concurrent/atomic/java/util".to_owned(), None),
    ] {
        assert_eq!(address::rule(&path), rule, "{path}");
    }
}

/// A page of `/p/#` that says what the one before said and leads on.
fn read_on(traps: &mut HostTraps, lineage: Lineage, text: u64, fed: Fed) -> Lineage {
    let shape = Shape::of(&url("/p/1"));
    let sameness = traps.read(Content {
        same: text,
        alike: text,
    });
    traps.learn(&shape, lineage, sameness, fed);
    HostTraps::inherit(lineage, kin("/p/1", "/p/2"), sameness, fed)
}

const ON: Fed = Fed {
    own: 1,
    others: 0,
    strangers: 0,
    level: 1,
    foreign: 0,
};

#[test]
fn pages_that_say_the_same_are_a_trap_and_one_that_brings_something_new_is_none() {
    let shape = Shape::of(&url("/p/1"));
    let run = |fed: Fed, policy: Policy| {
        let mut traps = HostTraps::new(policy);
        let mut lineage = Lineage::default();
        (0..200).find(|_| {
            lineage = read_on(&mut traps, lineage, 7, fed);
            traps.drops(&shape, lineage, false).is_some()
        })
    };
    let pages = run(ON, Policy::default()).unwrap();
    assert!(
        (usize::from(SAME_PAGES)..usize::from(SAME_PAGES) + 5).contains(&pages),
        "{pages}"
    );
    let image = Fed {
        others: 1,
        strangers: 1,
        foreign: 1,
        ..ON
    };
    assert_eq!(run(image, Policy::default()), None);
    assert_eq!(run(ON, Policy::OFF), None);
}

#[test]
fn what_is_known_survives_a_restart_but_for_a_few_pages() {
    let mut traps = HostTraps::new(Policy::default());
    let (mut lineage, mut row) = (Lineage::default(), None);
    for _ in 0..usize::from(SAME_PAGES) + 2 {
        lineage = read_on(&mut traps, lineage, 7, ON);
        row = traps.row_if_due().or(row);
    }
    let row = row.unwrap();
    assert!(row.len() < 1 << 13, "{} bytes", row.len());
    let again = HostTraps::from_row(&row, Policy::default()).unwrap();
    let shape = Shape::of(&url("/p/1"));
    assert_eq!(again.drops(&shape, lineage, false), Some(Rule::SameContent));
    assert!(HostTraps::from_row(b"\xff\xff", Policy::default()).is_none());
}

#[test]
fn a_budget_of_a_host_is_kept() {
    let settings = Settings {
        off: false,
        overrides: vec![Override {
            host: "h.test".into(),
            max_per_shape: Some(3),
            ..Override::default()
        }],
    };
    let mut traps = HostTraps::new(settings.of("h.test"));
    let mut admitted = 0;
    for n in 0..10 {
        let url = url(&format!("/p/{n}"));
        let shape = Shape::of(&url);
        if !traps.is_over_budget(&shape) {
            traps.admit(&url, &shape, Lineage::default());
            admitted += 1;
        }
    }
    assert_eq!(admitted, 3);
    assert!(!traps.is_over_budget(&Shape::of(&url("/q/1"))));
}

proptest! {
    #[test]
    fn any_address_has_a_shape_and_folding_folds_numbers(a in "/[a-z0-9/.?&=_-]{0,40}", n: u32, m: u32) {
        let _ = (address::rule(&a), Shape::of(&url(&a)));
        let numbered = |n: u32| Shape::of(&url(&format!("/x{n}/y?k={n}")));
        prop_assert_eq!(numbered(n).whole, numbered(m).whole);
    }

    #[test]
    fn any_bytes_are_read(bytes: Vec<u8>, path in "/[a-z0-9/]{0,20}") {
        let _ = Content::of(&bytes, &url(&path));
    }

    /// Whatever a host does, its state stays small, and pages that all say something new of their own and lead to more
    /// than the next lose nothing.
    #[test]
    fn the_state_is_bounded_and_the_new_is_kept(steps in prop::collection::vec((0..2_000_u32, 0..4_usize), 1..600)) {
        let mut traps = HostTraps::new(Policy::default());
        let mut lineage = Lineage::default();
        for (at, (n, others)) in steps.into_iter().enumerate() {
            let (page, link) = (url(&format!("/a{}/{n}", n % 700)), url(&format!("/a{}/{}", n % 700, n + 1)));
            let shape = Shape::of(&page);
            let sameness = traps.read(Content { same: (at as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15), alike: u64::from(n) << 32 });
            prop_assert!(!sameness.same);
            let fed = Fed { own: 1, others: others + 1, strangers: others, foreign: others, ..ON };
            traps.learn(&shape, lineage, sameness, fed);
            lineage = HostTraps::inherit(lineage, kin(page.path(), link.path()), sameness, fed);
            prop_assert_eq!(traps.drops(&shape, lineage, false), None);
            traps.admit(&link, &Shape::of(&link), lineage);
            if let Some(row) = traps.row_if_due() {
                prop_assert!(row.len() < MAX_KINDS * 13 + (1 << 14));
            }
        }
    }

    /// A row of pages is cut at its bound, and not before.
    #[test]
    fn a_chain_is_cut_at_its_bound(start in 0..1_000_u64) {
        let mut traps = HostTraps::new(Policy::default());
        let (shape, mut lineage) = (Shape::of(&url("/p/1")), Lineage::default());
        let mut cut = None;
        for n in 0..400_u16 {
            lineage = read_on(&mut traps, lineage, (start + u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15), ON);
            if traps.drops(&shape, lineage, false) == Some(Rule::EndlessChain) {
                cut = Some(n + 1);
                break;
            }
        }
        prop_assert_eq!(cut, Some(CHAIN_PAGES));
    }
}

#[test]
fn the_sameness_of_a_first_page_is_none() {
    let mut traps = HostTraps::new(Policy::default());
    let text = Content {
        same: 1 << 40,
        alike: 2 << 40,
    };
    let first = Sameness {
        read: true,
        ..Sameness::default()
    };
    assert_eq!(traps.read(text), first);
    assert_eq!(
        traps.read(text),
        Sameness {
            same: true,
            alike: true,
            read: true,
        }
    );
}

#[test]
fn of_a_shape_that_varies_some_pages_are_read_and_of_a_suspect_one_all() {
    use super::host::{READ_ONE_IN, VARIED_SHAPE};
    let url = |n: u32| CrawlUrl::parse(&format!("http://h.test/page/{n}"), &Identity::default()).unwrap();
    let shape = Shape::of(&url(1));
    let mut traps = HostTraps::new(Policy::default());
    assert!((0..100).all(|n| traps.wants(&url(1), n)), "nothing is known");
    for n in 0..VARIED_SHAPE {
        assert!((0..20).all(|place| traps.wants(&url(n), place)));
        traps.admit(&url(n), &shape, Lineage::default());
    }
    let read = (0..8_000).filter(|place| traps.wants(&url(1), *place)).count() as u64;
    assert!((900..1_100).contains(&(read * READ_ONE_IN / 8)), "{read}");
    let other = CrawlUrl::parse("http://h.test/other/1/x", &Identity::default()).unwrap();
    assert!((0..100).all(|place| traps.wants(&other, place)));
    // one page that says what another said
    let lineage = Lineage {
        kin: Kin::SHAPE,
        ..Lineage::default()
    };
    let same = Sameness {
        same: true,
        alike: true,
        read: true,
    };
    traps.learn(&shape, lineage, same, Fed::default());
    assert!((0..100).all(|place| traps.wants(&url(1), place)));
}
