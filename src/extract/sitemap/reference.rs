//! References in text. Nothing is ever expanded.

use std::borrow::Cow;

/// Names of entities that are remembered; a file with more is taken to declare every name.
const MAX_NAMES: usize = 64;
/// A longer name is no reference, bytes.
const MAX_NAME: usize = 64;

/// What the document type declares.
#[derive(Debug, Default)]
pub(super) struct Declared {
    /// Names of external entities: a reader that does not fetch them shows nothing in their place.
    external: Vec<String>,
    /// Any entity was declared.
    any: bool,
}

impl Declared {
    /// Notes an `<!ENTITY ...>`, given without its first word.
    pub(super) fn note(&mut self, declaration: &str) {
        let mut words = declaration.split_ascii_whitespace();
        let Some(name) = words.next().filter(|name| *name != "%") else {
            return;
        };
        self.any = true;
        let external = words.next().is_some_and(|word| word == "SYSTEM" || word == "PUBLIC");
        if external && name.len() <= MAX_NAME && self.external.len() < MAX_NAMES {
            self.external.push(name.to_owned());
        }
    }

    /// The text with its references decoded. `None` if it names an entity whose text only expansion would tell.
    /// A name that nobody declared is an `&` that was not escaped, and stays as it is.
    pub(super) fn decode<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        let Some(first) = memchr::memchr(b'&', text.as_bytes()) else {
            return Some(Cow::Borrowed(text));
        };
        let (plain, mut rest) = text.split_at(first);
        let mut out = String::with_capacity(text.len());
        out.push_str(plain);
        while let Some(after) = rest.strip_prefix('&') {
            let near = after.as_bytes().get(..=MAX_NAME).unwrap_or(after.as_bytes());
            let end = memchr::memchr(b';', near);
            let name = end.and_then(|end| after.get(..end)).filter(|name| is_name(name));
            rest = if let Some(name) = name {
                match predefined(name) {
                    Some(c) => out.push(c),
                    None if self.external.iter().any(|known| known == name) => {}
                    None if self.any => return None,
                    None => out.extend(["&", name, ";"]),
                }
                after.get(name.len() + 1..).unwrap_or_default()
            } else {
                out.push('&');
                after
            };
            let next = memchr::memchr(b'&', rest.as_bytes()).unwrap_or(rest.len());
            let (plain, after) = rest.split_at(next);
            out.push_str(plain);
            rest = after;
        }
        Some(Cow::Owned(out))
    }
}

fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_alphanumeric() || matches!(c, '#' | '_' | ':' | '.' | '-');
    !name.is_empty() && name.chars().all(letter)
}

fn predefined(name: &str) -> Option<char> {
    let number = |digits: &str, radix| {
        let code = u32::from_str_radix(digits, radix).ok()?;
        Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    };
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => match name.strip_prefix('#')?.strip_prefix(['x', 'X']) {
            Some(hex) => number(hex, 16),
            None => number(name.strip_prefix('#')?, 10),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_known_references_are_decoded() {
        let none = Declared::default();
        for (text, decoded) in [
            ("a", "a"),
            ("?a=1&amp;b=2", "?a=1&b=2"),
            ("?a=1&b=2&c", "?a=1&b=2&c"),
            ("&lt;&gt;&quot;&apos;", "<>\"'"),
            ("&#38;&#x26;&#X26;", "&&&"),
            ("&#xD800;&#x110000;", "\u{fffd}\u{fffd}"),
            ("&#;&#x;&;", "&#;&#x;&;"),
            ("&amp;amp;", "&amp;"),
            ("&amp", "&amp"),
            ("a&b c;d", "a&b c;d"),
            ("&copy;", "&copy;"),
        ] {
            assert_eq!(none.decode(text).unwrap(), decoded, "{text}");
        }
    }

    #[test]
    fn declared_entities_are_never_expanded() {
        let mut some = Declared::default();
        some.note(" bomb \"&x;&x;\"");
        some.note(" file SYSTEM \"file:///etc/passwd\"");
        some.note(" % parameter SYSTEM 'x'");
        assert_eq!(some.decode("/&file;a&amp;b").unwrap(), "/a&b");
        assert_eq!(some.decode("/&bomb;"), None);
        assert_eq!(some.decode("/&unheard-of;"), None);
    }

    #[test]
    fn names_are_bounded() {
        let mut many = Declared::default();
        for n in 0..1_000 {
            many.note(&format!("e{n} SYSTEM 'x'"));
        }
        assert_eq!(many.external.len(), MAX_NAMES);
        assert_eq!(many.decode("&e999;"), None);
    }
}
