//! The optional rules of identity, applied to an address that the default rules have been applied to.
//!
//! A rule can bring to light what another (or itself) applies to: `/index.html/` is `/index.html` is `/`. They are
//! applied until nothing changes, so that the identity of an identity is itself. All of them shorten path and query or
//! have nothing more to do after one pass, so that ends.

use super::canonical;
use super::identity::Rules;
use super::session;
use super::suffix;

/// Parameters that only say where a visitor came from. A `*` at the end stands for any further letters.
const TRACKING: &[&str] = &[
    "__hsfp",
    "__hssc",
    "__hstc",
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "_openstat",
    "cjevent",
    "dclid",
    "dm_i",
    "ef_id",
    "epik",
    "fb_action_ids",
    "fb_action_types",
    "fb_source",
    "fbclid",
    "gad_campaignid",
    "gad_source",
    "gbraid",
    "gclid",
    "gclsrc",
    "hsa_*",
    "hsCtaTracking",
    "igsh",
    "igshid",
    "irclickid",
    "li_fat_id",
    "matomo_*",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "ml_subscriber",
    "ml_subscriber_hash",
    "msclkid",
    "mtm_*",
    "oly_anon_id",
    "oly_enc_id",
    "piwik_*",
    "pk_campaign",
    "pk_content",
    "pk_cpn",
    "pk_keyword",
    "pk_kwd",
    "pk_medium",
    "pk_source",
    "rb_clickid",
    "rdt_cid",
    "s_cid",
    "s_kwcid",
    "ScCid",
    "srsltid",
    "ttclid",
    "twclid",
    "utm_*",
    "vero_conv",
    "vero_id",
    "wbraid",
    "wickedid",
    "yclid",
    "ysclid",
    "zanpid",
];

/// Names of the page that a server shows for a folder, as servers are set up to.
const INDEX: &[&str] = &[
    "Default.asp",
    "default.asp",
    "Default.aspx",
    "default.aspx",
    "Default.htm",
    "default.htm",
    "Default.html",
    "default.html",
    "index.asp",
    "index.aspx",
    "index.cgi",
    "index.htm",
    "index.html",
    "index.jsp",
    "index.php",
    "index.shtml",
    "index.xhtml",
];

/// Does the name stand in the shipped list?
fn is_tracking(name: &str) -> bool {
    // most names begin with a letter that none of the list has, or are too short
    let Some(first) = name.bytes().next() else { return false };
    TRACKING.iter().any(|known| {
        known.as_bytes().first() == Some(&first)
            && match known.strip_suffix('*') {
                Some(family) => name.len() > family.len() && name.starts_with(family),
                None => name == *known,
            }
    })
}

/// What the rules make of `standard`, an address under the default rules, and the fragment it came with (without `#`).
/// `None` if they leave it as it is.
pub(super) fn apply(standard: &str, fragment: Option<&str>, rules: &Rules) -> Option<String> {
    let mut identity = if rules.folds() {
        folded(standard, rules)
    } else {
        standard.to_owned()
    };
    // `#!` alone is a link that leads nowhere
    if let Some(fragment) = fragment.filter(|text| rules.keep_hashbang && text.len() > 1 && text.starts_with('!')) {
        identity.push('#');
        identity.push_str(&canonical::decoded(fragment));
    }
    (identity != standard).then_some(identity)
}

fn folded(standard: &str, rules: &Rules) -> String {
    let mut identity = pass(standard, rules);
    // only what stood beside a session id in the path can come to light by a pass
    while rules.strip_session_ids && standard.contains([';', '(']) {
        let next = pass(&identity, rules);
        if next == identity {
            break;
        }
        identity = next;
    }
    identity
}

fn pass(identity: &str, rules: &Rules) -> String {
    let Some((scheme, rest)) = identity.split_once("://") else {
        return identity.to_owned();
    };
    let (authority, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (path, query) = match tail.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (tail, None),
    };
    let mut out = String::with_capacity(identity.len());
    let has_port = authority.contains(':') && !authority.ends_with(']');
    out.push_str(if rules.fold_scheme && !has_port { "http" } else { scheme });
    out.push_str("://");
    out.push_str(if rules.fold_www {
        without_www(authority)
    } else {
        authority
    });
    let path_start = out.len();
    push_path(&mut out, path, rules);
    if let Some(query) = query {
        push_query(&mut out, query, rules);
    }
    if rules.strip_session_ids {
        // a session id behind dots hid them from the parser
        out = canonical::without_dot_segments(out, path_start);
    }
    out
}

/// Without `www.`, where a name that can be registered is left: `www.com` and `www.co.uk` are names of their own.
fn without_www(authority: &str) -> &str {
    let mut rest = authority;
    while let Some(shorter) = rest.strip_prefix("www.") {
        let host = shorter.split(':').next().unwrap_or_default();
        if host.starts_with('.') || !suffix::can_be_registered(host) {
            break;
        }
        rest = shorter;
    }
    rest
}

fn push_path(out: &mut String, path: &str, rules: &Rules) {
    let start = out.len();
    if rules.strip_session_ids && path.contains([';', '(']) {
        out.push_str(&session::without_ids_in_path(path));
    } else {
        out.push_str(path);
    }
    if rules.fold_path_case && out.bytes().skip(start).any(|byte| byte.is_ascii_uppercase()) {
        let lower = lower_case(out.get(start..).unwrap_or_default());
        out.replace_range(start.., &lower);
    }
    loop {
        let len = out.len();
        let path = out.get(start..).unwrap_or_default();
        if rules.fold_trailing_slash && path.len() > 1 && path.ends_with('/') {
            out.truncate(len - 1);
        } else if rules.fold_index
            && let Some(slash) = path.rfind('/')
            && path.get(slash + 1..).is_some_and(is_index)
        {
            out.truncate(start + slash + 1);
        }
        if out.len() == len {
            return;
        }
    }
}

/// Is it the name of a folder's page?
fn is_index(name: &str) -> bool {
    name.len() >= "index.htm".len() && name.starts_with(['i', 'd', 'D']) && INDEX.contains(&name)
}

/// In lower case but for the digits of percent-encoded octets, which are in upper case in every identity.
fn lower_case(path: &str) -> String {
    let mut lower = path.to_ascii_lowercase();
    for (at, _) in path.match_indices('%') {
        if let Some(escape @ [b'%', high, low]) = path.as_bytes().get(at..at + 3)
            && canonical::octet(*high, *low).is_some()
            && let Ok(escape) = std::str::from_utf8(escape)
        {
            lower.replace_range(at..at + 3, escape);
        }
    }
    lower
}

/// Parameters that are held without asking for memory; a longer query asks for some.
const FEW: usize = 24;

/// Writes the query with its `?`; nothing if all its parameters were dropped, or it is empty and that does not count.
fn push_query(out: &mut String, query: &str, rules: &Rules) {
    let count = query.bytes().filter(|byte| *byte == b'&').count() + 1;
    let (mut few, mut many) = ([""; FEW], Vec::new());
    let parameters = if count <= FEW {
        &mut few[..]
    } else {
        many.resize(count, "");
        &mut many[..]
    };
    let mut kept = 0;
    let cold_fusion = rules.strip_session_ids && session::has_cold_fusion(query);
    let dropped = |parameter: &str| {
        if query.is_empty() {
            return false;
        }
        let name = name_of(parameter);
        let drop_params = &rules.drop_params;
        rules.strip_session_ids && session::is_dropped(parameter, cold_fusion)
            || rules.strip_tracking && is_tracking(name)
            || !drop_params.is_empty() && drop_params.binary_search_by(|known| known.as_str().cmp(name)).is_ok()
    };
    for (slot, parameter) in parameters
        .iter_mut()
        .zip(query.split('&').filter(|parameter| !dropped(parameter)))
    {
        *slot = parameter;
        kept += 1;
    }
    let parameters = parameters.get_mut(..kept).unwrap_or_default();
    if parameters.is_empty() || rules.drop_empty_query && matches!(parameters, [""]) {
        return;
    }
    if rules.sort_query {
        // stable: parameters of one name are a list, whose order may count
        parameters.sort_by_key(|parameter| name_of(parameter));
    }
    for (at, parameter) in parameters.iter().enumerate() {
        out.push(if at == 0 { '?' } else { '&' });
        out.push_str(parameter);
    }
}

fn name_of(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::url::{Base, CrawlUrl, Identity};
    use proptest::prelude::*;

    const ID32: &str = "0123456789aBcDeF0123456789abcdef";
    const ID24: &str = "lit3py55t21z5v55vlm25s55";

    fn canonical(raw: &str, rules: &Rules) -> String {
        let identity = Identity::with(rules.clone());
        CrawlUrl::parse(raw, &identity).unwrap().canonical().to_owned()
    }

    /// Rules that a change of the default makes.
    fn rules(change: impl FnOnce(&mut Rules)) -> Rules {
        let mut rules = Rules::default();
        change(&mut rules);
        rules
    }

    /// Each rule merges the first of a pair with the second, and no rule merges one with the third.
    #[test]
    fn a_rule_merges_what_it_says_and_nothing_else() {
        let session = rules(|r| r.strip_session_ids = true);
        let tracking = rules(|r| r.strip_tracking = true);
        let drop = rules(|r| r.drop_params = vec!["b".to_owned(), "view".to_owned()]);
        let sort = rules(|r| r.sort_query = true);
        let empty = rules(|r| r.drop_empty_query = true);
        let www = rules(|r| r.fold_www = true);
        let scheme = rules(|r| r.fold_scheme = true);
        let case = rules(|r| r.fold_path_case = true);
        let slash = rules(|r| r.fold_trailing_slash = true);
        let index = rules(|r| r.fold_index = true);
        let hashbang = rules(|r| r.keep_hashbang = true);
        let with = |text: &str| text.replace("ID32", ID32).replace("ID24", ID24);
        for (rules, same, other, apart) in [
            (&session, "http://h/p?sid=ID32", "http://h/p", "http://h/p?sid=7"),
            (&session, "http://h/p?a&PHPSESSID=ID32", "http://h/p?a", "http://h/p?a&"),
            (
                &session,
                "http://h/p;jsessionid=A.1?q",
                "http://h/p?q",
                "http://h/p;v=1?q",
            ),
            (&session, "http://h/(S(ID24))/p", "http://h/p", "http://h/(S)/p"),
            (&session, "http://h/a/..;jsessionid=1/b", "http://h/b", "http://h/a/b"),
            (
                &tracking,
                "http://h/?utm_source=x&a=1",
                "http://h/?a=1",
                "http://h/?utm_=x&a=1",
            ),
            (&tracking, "http://h/?gclid=x", "http://h/", "http://h/?gclidx=x"),
            (&tracking, "http://h/?a=1&fbclid", "http://h/?a=1", "http://h/?a=fbclid"),
            (&drop, "http://h/?b=1&a=2&b=3", "http://h/?a=2", "http://h/?B=1&a=2"),
            (&drop, "http://h/p?view", "http://h/p", "http://h/p?"),
            (&sort, "http://h/?b=1&a=2", "http://h/?a=2&b=1", "http://h/?a=1&b=2"),
            (
                &sort,
                "http://h/?b=1&a=2&b=0",
                "http://h/?a=2&b=1&b=0",
                "http://h/?a=2&b=0&b=1",
            ),
            (&empty, "http://h/p?", "http://h/p", "http://h/p??"),
            (
                &www,
                "http://www.a.example/",
                "http://a.example/",
                "http://ww.a.example/",
            ),
            (
                &www,
                "http://www.www.a.co.uk:81/",
                "http://a.co.uk:81/",
                "http://www.co.uk/",
            ),
            (
                &www,
                "http://WWW.a.github.io/",
                "http://a.github.io/",
                "http://www.github.io/",
            ),
            (&scheme, "https://h/a", "http://h/a", "http://h:443/a"),
            (&scheme, "https://[::1]/a", "http://[::1]/a", "https://[::1]:81/a"),
            (&case, "http://h/Ab/%c3C?X", "http://h/aB/%C3c?X", "http://h/Ab/%c3C?x"),
            (&slash, "http://h/a//", "http://h/a", "http://h/a/b"),
            (&slash, "http://h//", "http://h", "http://h/?"),
            (
                &index,
                "http://h/a/index.html?q",
                "http://h/a/?q",
                "http://h/a/index.txt?q",
            ),
            (&index, "http://h/Default.aspx", "http://h/", "http://h/xindex.html"),
            (&hashbang, "http://h/a?q#!x%7e", "http://h/a?q#!x~", "http://h/a?q#!y"),
            (&hashbang, "http://h/a#!", "http://h/a#x", "http://h/a#!x"),
        ] {
            let (same, other, apart) = (with(same), with(other), with(apart));
            assert_eq!(canonical(&same, rules), canonical(&other, rules), "{rules}");
            assert_ne!(canonical(&same, rules), canonical(&apart, rules), "{rules}");
            let none = Rules::default();
            assert!(
                canonical(&same, &none) != canonical(&other, &none) || same.contains("#!"),
                "{same}"
            );
        }
    }

    #[test]
    fn rules_work_upon_one_another() {
        let folds = rules(|r| {
            r.fold_index = true;
            r.fold_trailing_slash = true;
        });
        assert_eq!(canonical("http://h/x/index.html/index.php/", &folds), "http://h/x");
        let case = rules(|r| {
            r.fold_index = true;
            r.fold_path_case = true;
        });
        assert_eq!(canonical("http://h/INDEX.HTML", &case), "http://h/");
        let both = rules(|r| {
            r.drop_empty_query = true;
            r.strip_tracking = true;
        });
        assert_eq!(canonical("http://h/?&gclid=1", &both), "http://h/");
    }

    #[test]
    fn what_is_fetched_stays_as_it_was_spelled() {
        let all = Identity::with(every_rule(u16::MAX));
        let url = CrawlUrl::parse("https://www.H.example/A/index.html?b=1&a&gclid=2#!x", &all).unwrap();
        assert_eq!(url.href(), "https://www.h.example/A/index.html?b=1&a&gclid=2");
        assert_eq!(url.canonical(), "http://h.example/a?a#!x");
        assert_eq!(url.standard(), url.href());
        assert_eq!(url.host_key(), "www.h.example");
        assert_eq!(url.robots_txt().canonical(), "https://www.h.example/robots.txt");
    }

    #[test]
    fn the_short_way_applies_the_rules_too() {
        let all = Identity::with(every_rule(u16::MAX));
        let base = Base::of(&CrawlUrl::parse("https://www.h.example/d/", &all).unwrap(), None);
        for (raw, identity) in [
            ("Page/?sid=1&b=2", "http://h.example/d/page?sid=1"),
            ("/x#!y", "http://h.example/x#!y"),
            ("/x#y", "http://h.example/x"),
        ] {
            assert_eq!(CrawlUrl::join(&base, raw, &all).unwrap().canonical(), identity, "{raw}");
        }
    }

    /// The rules whose bits are set.
    fn every_rule(bits: u16) -> Rules {
        let on = |bit: u16| bits & (1 << bit) != 0;
        Rules {
            strip_session_ids: on(0),
            strip_tracking: on(1),
            drop_params: if on(2) { vec!["b".to_owned()] } else { Vec::new() },
            sort_query: on(3),
            drop_empty_query: on(4),
            fold_www: on(5),
            fold_scheme: on(6),
            fold_path_case: on(7),
            fold_trailing_slash: on(8),
            fold_index: on(9),
            keep_hashbang: on(10),
        }
    }

    /// A model: what each rule says of the parts of an address, written as a person would who has all the time there is.
    /// Two addresses are one page if their parts are equal.
    fn parts(raw: &str, rules: &Rules) -> (String, String, Vec<String>, bool, String) {
        let (address, fragment) = raw.split_once('#').unwrap_or((raw, ""));
        let (scheme, rest) = address.split_once("://").unwrap();
        let (host, tail) = rest.split_once('/').unwrap();
        let (path, query) = tail
            .split_once('?')
            .map_or((tail, None), |(path, query)| (path, Some(query)));
        let mut scheme = scheme.to_owned();
        if rules.fold_scheme && !host.contains(':') {
            "http".clone_into(&mut scheme);
        }
        let mut host = host.to_owned();
        if rules.fold_www && host.matches('.').count() >= 2 {
            host = host.replace("www.", "");
        }
        let mut segments: Vec<String> = path.split('/').map(str::to_owned).collect();
        if rules.strip_session_ids {
            for segment in &mut segments {
                *segment = segment.replace(";jsessionid=1", "");
            }
            let last = segments.pop().unwrap();
            segments.retain(|segment| *segment != format!("(S({ID24}))"));
            segments.push(last);
        }
        if rules.fold_path_case {
            for segment in &mut segments {
                segment.make_ascii_lowercase();
            }
        }
        loop {
            let before = segments.len();
            let last = segments.last().unwrap().clone();
            if rules.fold_index && last == "index.html" {
                *segments.last_mut().unwrap() = String::new();
                continue;
            }
            if rules.fold_trailing_slash && last.is_empty() && segments.len() > 1 {
                segments.pop();
            }
            if segments.len() == before {
                break;
            }
        }
        let dropped = |parameter: &str| {
            let name = parameter.split('=').next().unwrap();
            (rules.strip_session_ids && parameter.eq_ignore_ascii_case(&format!("sid={ID32}")))
                || (rules.strip_tracking && (name == "gclid" || name == "utm_x"))
                || (!rules.drop_params.is_empty() && name == "b")
        };
        let mut parameters: Vec<String> = Vec::new();
        let mut has_query = false;
        if let Some(query) = query {
            let all: Vec<&str> = query.split('&').collect();
            parameters = all.iter().filter(|p| !dropped(p)).map(|p| (*p).to_owned()).collect();
            has_query = !parameters.is_empty();
            if rules.sort_query {
                parameters.sort_by_key(|p| p.split('=').next().unwrap().to_owned());
            }
            if rules.drop_empty_query && parameters == [""] {
                (parameters, has_query) = (Vec::new(), false);
            }
        }
        let counts = rules.keep_hashbang && fragment.len() > 1 && fragment.starts_with('!');
        let fragment = if counts { fragment } else { "" }.to_owned();
        (
            format!("{scheme}://{host}"),
            segments.join("/"),
            parameters,
            has_query,
            fragment,
        )
    }

    /// Addresses in canonical spelling, with much that the rules look for.
    fn address() -> impl Strategy<Value = String> {
        let segment = prop::sample::select(vec![
            "a".to_owned(),
            "A".to_owned(),
            String::new(),
            "index.html".to_owned(),
            "p;jsessionid=1".to_owned(),
            ";jsessionid=1".to_owned(),
            "index.html;jsessionid=1".to_owned(),
            format!("(S({ID24}))"),
            "%C3".to_owned(),
        ]);
        let parameter = prop::sample::select(vec![
            "a=1".to_owned(),
            "a=0".to_owned(),
            "c".to_owned(),
            "b=2".to_owned(),
            String::new(),
            "utm_x=1".to_owned(),
            "gclid=3".to_owned(),
            "sid=7".to_owned(),
            format!("sid={ID32}"),
        ]);
        (
            prop::sample::select(vec![
                "http://h.example",
                "https://h.example",
                "http://www.h.example",
                "https://www.h.example:81",
                "http://www.www.h.example",
            ]),
            prop::collection::vec(segment, 1..4),
            prop::option::of(prop::collection::vec(parameter, 0..4)),
            prop::sample::select(vec!["", "#!", "#!x", "#y"]),
        )
            .prop_map(|(origin, path, query, fragment)| {
                let query = query.map_or_else(String::new, |query| format!("?{}", query.join("&")));
                format!("{origin}/{}{query}{fragment}", path.join("/"))
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn addresses_are_merged_if_and_only_if_a_rule_says_so(a in address(), b in address(), bits in 0..1_u16 << 11) {
            let rules = every_rule(bits);
            let (x, y) = (canonical(&a, &rules), canonical(&b, &rules));
            prop_assert_eq!(x == y, parts(&a, &rules) == parts(&b, &rules), "{} {} under {}: {} {}", a, b, rules, x, y);
        }

        #[test]
        fn the_identity_of_an_identity_is_itself_under_every_combination(
            start in address(), end in "[ -~]{0,12}", bits in 0..1_u16 << 11,
        ) {
            let identity = Identity::with(every_rule(bits));
            if let Ok(url) = CrawlUrl::parse(&format!("{start}{end}"), &identity) {
                let again = CrawlUrl::parse(url.canonical(), &identity).unwrap();
                prop_assert_eq!(again.canonical(), url.canonical());
                let plain = CrawlUrl::parse(url.href(), &Identity::default()).unwrap();
                prop_assert_eq!(plain.standard(), url.standard());
            }
        }
    }

    #[test]
    fn the_lists_are_sorted_and_hold_each_name_once() {
        for list in [TRACKING, INDEX] {
            let mut names = list.to_vec();
            names.sort_by_key(|name| (name.to_ascii_lowercase(), *name));
            names.dedup();
            assert_eq!(names, list);
        }
        assert!(!is_tracking("utm_") && is_tracking("utm_term") && !is_tracking("xgclid"));
    }
}
