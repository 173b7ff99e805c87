//! The candidates of a `srcset` attribute (HTML Standard, "parse a srcset attribute").
//!
//! A URL runs to white space; commas end it only where they are its last characters. Descriptors are skipped, with
//! commas inside parentheses; a candidate whose descriptors a browser would refuse is kept: the picture may exist.

/// Calls `found` with the URL of each candidate, in order.
pub fn scan<'a>(srcset: &'a str, mut found: impl FnMut(&'a str)) {
    let mut rest = srcset;
    loop {
        rest = rest.trim_start_matches(|c: char| c == ',' || is_space(c));
        if rest.is_empty() {
            return;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        let (url, after) = rest.split_at(end);
        let bare = url.trim_end_matches(',');
        found(bare);
        rest = if bare.len() == url.len() {
            after_descriptors(after)
        } else {
            after
        };
    }
}

/// What follows the descriptors of one candidate: the text behind the first comma outside parentheses.
///
/// Parentheses do not nest (the standard's "in parens" state ends at the first `)`).
fn after_descriptors(text: &str) -> &str {
    let mut in_parens = false;
    for (at, b) in text.bytes().enumerate() {
        match b {
            b'(' => in_parens = true,
            b')' => in_parens = false,
            b',' if !in_parens => return text.get(at + 1..).unwrap_or_default(),
            _ => {}
        }
    }
    ""
}

/// ASCII white space of the Infra Standard.
fn is_space(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\u{c}' | '\r' | ' ')
}

#[cfg(test)]
mod tests {
    use super::scan;

    fn urls(srcset: &str) -> Vec<&str> {
        let mut urls = Vec::new();
        scan(srcset, |url| urls.push(url));
        urls
    }

    #[test]
    fn commas_end_a_url_only_at_its_end() {
        assert_eq!(
            urls("/w_1,h_2/a.jpg 97w,/b.jpg 2x, /c.jpg,, /d.jpg ,/e.jpg 1.5x"),
            ["/w_1,h_2/a.jpg", "/b.jpg", "/c.jpg", "/d.jpg", "/e.jpg"]
        );
        assert_eq!(urls(",a,b,,, c"), ["a,b", "c"]);
    }

    #[test]
    fn commas_in_parentheses_belong_to_the_descriptor() {
        assert_eq!(urls("a 1x (b, c 2x), d"), ["a", "d"]);
        assert_eq!(urls("a 1x (, b 1x"), ["a"]);
        assert_eq!(urls("a ((x), b"), ["a", "b"]);
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(urls("").is_empty());
        assert!(urls(" ,\t,\n\u{c}\r").is_empty());
    }

    #[test]
    fn any_kind_of_white_space_separates() {
        assert_eq!(urls("\n\na\r\n1x\u{c},\tb"), ["a", "b"]);
    }
}
