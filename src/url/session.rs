//! Session ids in addresses: told by name *and* form, so that `sid=7`, which names a page, stays.

/// Characters of an id in the query: `PHPSESSID=0123456789abcdef0123456789abcdef`.
const ID_LEN: usize = 32;
/// Letters behind the name `ASPSESSIONID`, and letters of its value.
const ASP_NAME_LEN: usize = 8;
const ASP_ID_LEN: usize = 24;
/// Characters of an id in the path: `(S(lit3py55t21z5v55vlm25s55))`.
const PATH_ID_LEN: usize = 24;

/// Is this parameter a session id? `cfid` and `cftoken` are one only together.
pub(super) fn is_dropped(parameter: &str, cold_fusion: bool) -> bool {
    cold_fusion && (has_value(parameter, "cfid") || has_value(parameter, "cftoken")) || is_id(parameter)
}

/// Does a query have both `cfid` and `cftoken`?
pub(super) fn has_cold_fusion(query: &str) -> bool {
    let has = |name: &str| query.split('&').any(|parameter| has_value(parameter, name));
    has("cfid") && has("cftoken")
}

fn has_value(parameter: &str, name: &str) -> bool {
    parameter
        .split_once('=')
        .is_some_and(|(found, value)| found.eq_ignore_ascii_case(name) && !value.is_empty())
}

fn is_id(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else {
        return false;
    };
    if ["jsessionid", "phpsessid", "sid"]
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
    {
        return value.len() == ID_LEN && value.bytes().all(|b| b.is_ascii_alphanumeric());
    }
    let letters = |text: &str, len| text.len() == len && text.bytes().all(|b| b.is_ascii_alphabetic());
    let asp = name.split_at_checked("aspsessionid".len());
    asp.is_some_and(|(start, letters_of_name)| {
        start.eq_ignore_ascii_case("aspsessionid")
            && letters(letters_of_name, ASP_NAME_LEN)
            && letters(value, ASP_ID_LEN)
    })
}

/// The path without `;jsessionid=...` behind its segments, and without segments such as `(S(...))` that another follows.
pub(super) fn without_ids_in_path(path: &str) -> String {
    if !path.contains([';', '(']) {
        return path.to_owned();
    }
    let segments: Vec<String> = path.split('/').map(without_jsessionid).collect();
    let last = segments.len().saturating_sub(1);
    let kept = segments
        .iter()
        .enumerate()
        .filter(|(at, segment)| *at == last || !is_id_segment(segment));
    kept.map(|(_, segment)| segment.as_str()).collect::<Vec<_>>().join("/")
}

/// Of `page;jsessionid=A1;v=2` the id alone goes. Its form is the server's own (`E460A9.node-1`), so any value is one.
fn without_jsessionid(segment: &str) -> String {
    let mut parts = segment.split(';');
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts.filter(|part| !has_value(part, "jsessionid")) {
        kept.push(';');
        kept.push_str(part);
    }
    kept
}

/// `(S(...))`, `(A(...)F(...)S(...))`: a letter and 24 letters and digits each.
fn is_id_segment(segment: &str) -> bool {
    let Some(mut ids) = segment.strip_prefix('(').and_then(|s| s.strip_suffix(')')) else {
        return false;
    };
    while let Some(rest) = after_id(ids) {
        if rest.is_empty() {
            return true;
        }
        ids = rest;
    }
    false
}

fn after_id(text: &str) -> Option<&str> {
    let text = text
        .strip_prefix(|c: char| c.is_ascii_alphabetic())?
        .strip_prefix('(')?;
    let (id, rest) = text.split_at_checked(PATH_ID_LEN)?;
    let rest = rest.strip_prefix(')')?;
    id.bytes().all(|b| b.is_ascii_alphanumeric()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID32: &str = "0123456789aBcDeF0123456789abcdef";
    const ID24: &str = "lit3py55t21z5v55vlm25s55";

    #[test]
    fn ids_in_the_query_are_told_by_name_and_form() {
        let kept = |query: &str| {
            let pair = has_cold_fusion(query);
            let kept = query.split('&').filter(|parameter| !is_dropped(parameter, pair));
            kept.collect::<Vec<_>>().join("&")
        };
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWX";
        for (query, rest) in [
            (format!("a=1&PHPSESSID={ID32}&b"), "a=1&b"),
            (format!("sid={ID32}&jsessionid={ID32}"), ""),
            (format!("ASPSESSIONIDQQRRSSTT={letters}&x=1"), "x=1"),
            ("CFID=12&y=3&cftoken=ab-9".to_owned(), "y=3"),
        ] {
            assert_eq!(kept(&query), rest, "{query}");
        }
        for query in [
            "sid=7".to_owned(),
            format!("sid={ID32}0"),
            format!("nosid={ID32}"),
            format!("sidx={ID32}"),
            format!("sid={}-", &ID32[1..]),
            format!("ASPSESSIONIDQQRRSST={letters}"),
            format!("ASPSESSIONIDQQRRSST1={letters}"),
            format!("ASPSESSIONIDQQRRSSTT={}1", &letters[1..]),
            "cfid=1".to_owned(),
            "cfid=1&cftoken=".to_owned(),
            "cfid&cftoken=1".to_owned(),
        ] {
            assert_eq!(kept(&query), query);
        }
    }

    #[test]
    fn ids_in_the_path_are_told_by_name_or_form() {
        for (path, rest) in [
            ("/p;jsessionid=E460A9.node-1_2".to_owned(), "/p"),
            ("/p;v=2;JSESSIONID=A1;w/q".to_owned(), "/p;v=2;w/q"),
            (format!("/(S({ID24}))/a/b.aspx"), "/a/b.aspx"),
            (format!("/x/(A({ID24})F({ID24})S({ID24}))/"), "/x/"),
        ] {
            assert_eq!(without_ids_in_path(&path), rest, "{path}");
        }
        for path in [
            "/p;v=2".to_owned(),
            "/p;jsessionid=".to_owned(),
            "/p;myjsessionid=1".to_owned(),
            format!("/({ID24})/a"),
            format!("/(S({ID24}0))/a"),
            format!("/(1({ID24}))/a"),
            format!("/a/(S({ID24}))"),
            "/(S())/a".to_owned(),
            "/()/a".to_owned(),
        ] {
            assert_eq!(without_ids_in_path(&path), path);
        }
    }
}
