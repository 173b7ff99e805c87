//! Addresses in CSS: `url()`, `src()`, `image-set()` and `@import` (CSS Syntax 3, CSS Cascade 5 section 2).
//!
//! The text is read token by token, so that comments, strings, escapes (`u\72 l(`) and bad URLs are what they are to
//! a browser. An `@import` counts where it is valid: before any rule but `@charset` and `@layer`, with none between it
//! and the imports before it. The names of `@namespace` are guesses at most.

mod token;

use std::borrow::Cow;

use self::token::{Token, Tokens};
use super::LinkKind;

/// Where the text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A style sheet or a `style` element.
    Sheet,
    /// A `style` attribute: declarations only, no rules.
    Attribute,
}

/// Whether an `@import` is still valid.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Imports {
    /// Only `@charset` and `@layer` so far.
    None,
    /// The rule before was an import.
    Some,
    /// Any other rule has been seen.
    Over,
}

/// Calls `found` with each address as written, escapes resolved: [`LinkKind::Stylesheet`] for imports,
/// [`LinkKind::Requisite`] for the others.
pub fn scan<'a>(text: &'a str, place: Place, mut found: impl FnMut(LinkKind, Cow<'a, str>)) {
    // every address stands behind a parenthesis or an at sign
    if memchr::memchr2(b'(', b'@', text.as_bytes()).is_none() {
        return;
    }
    let mut tokens = Tokens::new(text);
    let mut imports = if place == Place::Sheet {
        Imports::None
    } else {
        Imports::Over
    };
    // parentheses open inside the outermost `image-set()`, whose bare strings are addresses too
    let mut image_set = 0_usize;
    while let Some(token) = tokens.next() {
        match token {
            Token::At(name) if name.eq_ignore_ascii_case("import") => {
                if imports == Imports::Over {
                    skip_statement(&mut tokens);
                } else {
                    imports = Imports::Some;
                    if let Some(url) = import(&mut tokens) {
                        found(LinkKind::Stylesheet, url);
                    }
                }
            }
            Token::At(name) if name.eq_ignore_ascii_case("charset") => drop(skip_statement(&mut tokens)),
            Token::At(name) if name.eq_ignore_ascii_case("namespace") => {
                imports = Imports::Over;
                namespace(&mut tokens, &mut found);
            }
            Token::At(name) if name.eq_ignore_ascii_case("layer") && imports == Imports::None => {
                if !skip_statement(&mut tokens) {
                    imports = Imports::Over;
                }
            }
            Token::Url(url) => {
                imports = Imports::Over;
                found(LinkKind::Requisite, url);
            }
            Token::Function(name) => {
                imports = Imports::Over;
                if image_set > 0 {
                    image_set += 1;
                }
                if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") {
                    if let Some(Token::String(url)) = tokens.peek() {
                        tokens.next();
                        found(LinkKind::Requisite, url);
                    }
                } else if is_image_set(&name) {
                    image_set = image_set.max(1);
                } else if name.eq_ignore_ascii_case("type") && image_set > 0 {
                    // `type("image/png")` inside an image-set() is no address
                    if let Some(Token::String(_)) = tokens.peek() {
                        tokens.next();
                    }
                }
            }
            Token::String(url) if image_set > 0 => found(LinkKind::Requisite, url),
            Token::Open => image_set += usize::from(image_set > 0),
            Token::Close => image_set = image_set.saturating_sub(1),
            // a declaration cannot go on beyond these, whatever is unclosed
            Token::Semicolon | Token::BlockEnd => image_set = 0,
            Token::BlockStart | Token::At(_) | Token::String(_) | Token::Other => imports = Imports::Over,
            Token::Cdo => {}
        }
    }
}

/// `image-set(` and its prefixed forms.
fn is_image_set(name: &str) -> bool {
    name.eq_ignore_ascii_case("image-set") || name.eq_ignore_ascii_case("-webkit-image-set")
}

/// The address of an `@import` whose name has been read, up to the end of the statement.
fn import<'a>(tokens: &mut Tokens<'a>) -> Option<Cow<'a, str>> {
    let url = match tokens.peek()? {
        Token::String(url) | Token::Url(url) => {
            tokens.next();
            Some(url)
        }
        Token::Function(name) if name.eq_ignore_ascii_case("url") || name.eq_ignore_ascii_case("src") => {
            tokens.next();
            match tokens.peek() {
                Some(Token::String(url)) => {
                    tokens.next();
                    Some(url)
                }
                _ => None,
            }
        }
        _ => None,
    };
    skip_statement(tokens);
    url
}

/// An `@namespace` whose name has been read, up to the end of the statement. What it names is no address (CSS Namespaces 3,
/// section 2): nothing is fetched. One in `url()` may lead to a document all the same, so it is a guess.
fn namespace<'a>(tokens: &mut Tokens<'a>, found: &mut impl FnMut(LinkKind, Cow<'a, str>)) {
    while let Some(token) = tokens.next() {
        match token {
            Token::Url(url) => found(LinkKind::Speculative, url),
            Token::Function(name) if name.eq_ignore_ascii_case("url") => {
                if let Some(Token::String(url)) = tokens.peek() {
                    found(LinkKind::Speculative, url);
                }
            }
            Token::Semicolon | Token::BlockStart | Token::BlockEnd => return,
            _ => {}
        }
    }
}

/// Reads to the `;` that ends an at-rule, or to the `{` of its block. True if it ended without a block.
fn skip_statement(tokens: &mut Tokens<'_>) -> bool {
    for token in tokens.by_ref() {
        match token {
            Token::Semicolon => return true,
            Token::BlockStart | Token::BlockEnd => return false,
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sheet(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        scan(text, Place::Sheet, |kind, url| {
            found.push(format!("{}{url}", if kind == LinkKind::Stylesheet { "@" } else { "" }));
        });
        found
    }

    #[test]
    fn urls_quoted_bare_and_escaped() {
        assert_eq!(sheet("a{b:url(x.png)}"), ["x.png"]);
        assert_eq!(sheet("a{b:URL( 'x.png' )}"), ["x.png"]);
        assert_eq!(sheet("a{b:u\\72 l( i\\(m.png )}"), ["i(m.png"]);
        assert_eq!(sheet("a{b:url(\\E9 \\000000x)}"), ["\u{e9}\u{fffd}x"]);
        assert_eq!(sheet("a{b:url(\"a\\\nb\\\"c\")}"), ["ab\"c"]);
        assert_eq!(sheet("a{b:url(\"a;}/*\")}"), ["a;}/*"]);
        assert_eq!(sheet("url(unclosed"), ["unclosed"]);
        assert_eq!(sheet("url('unclosed"), ["unclosed"]);
        assert_eq!(sheet("a{b:src('x')}"), ["x"]);
        assert_eq!(sheet("a{b:url()}"), [""]);
    }

    #[test]
    fn what_only_looks_like_a_url() {
        assert_eq!(sheet("a{b:'url(x)'}"), [""; 0]);
        assert_eq!(
            sheet("/* url(x) */ a{b:1url(x);c:myurl(x);d:#url(x);e:-url(x);f:url (x)}"),
            [""; 0]
        );
        assert_eq!(sheet("a{b:url(bad\"x);c:url(y)}"), ["y"]);
        assert_eq!(sheet("a{b:url(a b);c:url(y)}"), ["y"]);
        assert_eq!(sheet("a{b:url('bad\nx);c:url(y)}"), ["y"]);
        assert_eq!(sheet("/* unclosed url(x)"), [""; 0]);
    }

    #[test]
    fn imports_count_at_the_head_only() {
        let text = "@charset 'x'; <!-- @layer a; @import 'a'; @IMPORT url(b) screen; @import url('c') supports(x:url(no));\
                    @layer d; @import 'late'; e{f:url(g)} @import 'later';";
        assert_eq!(sheet(text), ["@a", "@b", "@c", "g"]);
        assert_eq!(sheet("@layer a{b{c:url(d)}} @import 'e';"), ["d"]);
        assert_eq!(sheet("p{} @import 'e';"), [""; 0]);
        assert_eq!(sheet("@import 'a'"), ["@a"]);
        let mut attribute = Vec::new();
        scan("@import 'a'; b:url(c)", Place::Attribute, |_, url| attribute.push(url));
        assert_eq!(attribute, ["c"]);
    }

    #[test]
    fn namespaces_are_names() {
        let mut found = Vec::new();
        let text = "@namespace url(http://n); @namespace s 'http://m'; @namespace t url('http://o') ; a{b:url(c)}";
        scan(text, Place::Sheet, |kind, url| found.push((kind, url.into_owned())));
        let guess = |url: &str| (LinkKind::Speculative, url.to_owned());
        assert_eq!(
            found,
            [
                guess("http://n"),
                guess("http://o"),
                (LinkKind::Requisite, "c".to_owned())
            ]
        );
    }

    #[test]
    fn image_set_takes_bare_strings() {
        assert_eq!(
            sheet("a{b:image-set('a' 1x, url(b) 2x, 'c' type('image/png')) 'no'; d:'no'}"),
            ["a", "b", "c"]
        );
        assert_eq!(sheet("a{b:-webkit-image-set(url(b) 2x;c:'no'}"), ["b"]);
    }

    proptest! {
        #[test]
        fn any_text_has_an_outcome(text in "[-@urlimpotse(){};'\"\\\\/*<!> \n#1a\u{e9}\u{0}]{0,80}") {
            sheet(&text);
        }

        #[test]
        fn a_quoted_address_comes_back(url in "[^\"\\\\\n\r\u{c}\u{0}]{0,40}") {
            let got = sheet(&format!("a{{b:url(\"{url}\")}}"));
            prop_assert_eq!(got, [url]);
        }
    }
}
