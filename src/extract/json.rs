//! Addresses in JSON: JSON-LD, data that pages carry in scripts, import maps, and bodies of JSON.
//!
//! What a key says counts: a picture's key makes a requisite, `url` a place to go to. Any other text that is a whole
//! address is a guess ([`LinkKind::Speculative`]). The text is read as a stream: what is broken further on does not take
//! away what came before, and nothing is kept.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::LinkKind;
use super::address::{is_absolute, is_address};

/// Longer JSON is not read, bytes.
pub(super) const MAX_BYTES: usize = 8 << 20;

/// Arrays and objects in one another that are looked into; what is deeper is passed over.
pub(super) const MAX_DEPTH: u32 = 100;

/// What JSON is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// JSON-LD, or data whose keys may be those of schema.org.
    Data,
    /// An import map (HTML Standard, section 8.1.5.4): its values are scripts.
    Imports,
}

/// Calls `found` with each address as written, escapes resolved.
pub(super) fn scan<'a>(text: &'a str, purpose: Use, found: &mut dyn FnMut(LinkKind, Cow<'a, str>)) {
    let text = text.trim_start_matches(|c: char| c <= ' ' || c == '\u{feff}');
    if text.len() > MAX_BYTES || !text.starts_with(['{', '[']) {
        return;
    }
    let mut reader = serde_json::Deserializer::from_str(text);
    let whole = Value {
        under: Under::Other,
        purpose,
        depth: 0,
        found,
    };
    // an error ends the reading, and what was found stays found
    let _ = whole.deserialize(&mut reader);
}

/// What the key says about a value, in an array about each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Under {
    /// An address, or what holds one.
    Known(LinkKind),
    /// A name that only looks like an address.
    Name,
    Other,
}

impl Under {
    /// `around` is what the object that has the key stands under.
    fn of_key(key: &str, around: Under, purpose: Use) -> Self {
        if purpose == Use::Imports {
            return if key == "integrity" || around == Self::Name {
                Self::Name
            } else {
                Self::Known(LinkKind::Requisite)
            };
        }
        match key {
            // a context maps words to names
            _ if around == Self::Name => Self::Name,
            "image" | "logo" | "photo" | "thumbnail" | "thumbnailUrl" | "contentUrl" | "embedUrl"
            | "primaryImageOfPage" => Self::Known(LinkKind::Requisite),
            // the picture's own, if it is a picture that has it
            "url" if around == Self::Known(LinkKind::Requisite) => around,
            "url" => Self::Known(LinkKind::Navigation),
            "@context" | "@type" | "@vocab" | "$schema" | "xmlns" => Self::Name,
            _ => Self::Other,
        }
    }
}

/// A value that is looked into.
struct Value<'f, 'a> {
    under: Under,
    purpose: Use,
    depth: u32,
    found: &'f mut dyn FnMut(LinkKind, Cow<'a, str>),
}

impl<'a> Value<'_, 'a> {
    fn text(self, text: Cow<'a, str>) {
        match self.under {
            Under::Known(kind) if is_address(&text) => {
                // an import map maps folders too
                if self.purpose == Use::Data || !text.ends_with('/') {
                    (self.found)(kind, text);
                }
            }
            Under::Other if is_absolute(&text) => (self.found)(LinkKind::Speculative, text),
            Under::Known(_) | Under::Name | Under::Other => {}
        }
    }

    /// What stands inside this value under the same or another key.
    fn inner(&mut self, under: Under) -> Value<'_, 'a> {
        Value {
            under,
            purpose: self.purpose,
            depth: self.depth + 1,
            found: &mut *self.found,
        }
    }
}

impl<'a> DeserializeSeed<'a> for Value<'_, 'a> {
    type Value = ();

    fn deserialize<D: Deserializer<'a>>(self, reader: D) -> Result<(), D::Error> {
        if self.depth > MAX_DEPTH {
            // reads on without recursion
            return serde::Deserialize::deserialize(reader).map(|IgnoredAny| ());
        }
        reader.deserialize_any(self)
    }
}

impl<'a> Visitor<'a> for Value<'_, 'a> {
    type Value = ();

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("JSON")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<(), E> {
        self.text(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.text(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'a>>(mut self, mut items: A) -> Result<(), A::Error> {
        let under = self.under;
        while items.next_element_seed(self.inner(under))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'a>>(mut self, mut entries: A) -> Result<(), A::Error> {
        let (around, purpose) = (self.under, self.purpose);
        while let Some(under) = entries.next_key_seed(Key { around, purpose })? {
            entries.next_value_seed(self.inner(under))?;
        }
        Ok(())
    }
}

/// A key of an object that stands under `around`.
struct Key {
    around: Under,
    purpose: Use,
}

impl<'a> DeserializeSeed<'a> for Key {
    type Value = Under;

    fn deserialize<D: Deserializer<'a>>(self, reader: D) -> Result<Under, D::Error> {
        reader.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Under;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<Under, E> {
        Ok(Under::of_key(key, self.around, self.purpose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str, purpose: Use) -> String {
        let mut words = Vec::new();
        scan(text, purpose, &mut |kind, url| {
            words.push(format!("{}{url}", kind.letter()));
        });
        words.join(" ")
    }

    fn data(text: &str) -> String {
        read(text, Use::Data)
    }

    #[test]
    fn keys_of_schema_org_say_what_an_address_is() {
        let text = r#" {"@context": ["https://schema.org", {"image": "https://schema.org/image"}], "@type": "Article", "@id": "https://a.test/#x",
            "url": "https:\/\/a.test\/1", "image": ["/i.png", {"@type": "ImageObject", "url": "/j.png", "name": "/k"}],
            "logo": "no address", "video": {"contentUrl": "/v.mp4", "embedUrl": "/player", "url": "../v"},
            "text": "see https://a.test/2", "sameAs": ["https://b.test/"], "n": [1, -2, 3.5, null, true]}"#;
        let want = "Xhttps://a.test/#x Lhttps://a.test/1 E/i.png E/j.png E/v.mp4 E/player L../v Xhttps://b.test/";
        assert_eq!(data(text), want);
    }

    #[test]
    fn an_import_map_names_scripts() {
        let text = r#"{"imports": {"a": "./a.js", "b/": "/b/", "c": "bare"}, "scopes": {"/x/": {"a": "https://c.test/a.js"}},
            "integrity": {"./a.js": "/sha"}}"#;
        assert_eq!(read(text, Use::Imports), "E./a.js Ehttps://c.test/a.js");
    }

    #[test]
    fn what_is_broken_keeps_what_came_before() {
        assert_eq!(data(r#"{"image": "/a", "url": "/b", x"#), "E/a L/b");
        assert_eq!(data(r#"[{"url": "/a"}, {"url": "/b"#), "L/a");
        for nothing in ["", "7", "\"http://a.test/\"", "var x = {}", "{", "[}"] {
            assert_eq!(data(nothing), "", "{nothing}");
        }
    }

    #[test]
    fn what_is_too_deep_is_passed_over_and_the_rest_read() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            data(&format!(r#"{{"image": {open}"/deep"{close}, "url": "/after"}}"#))
        };
        let most = MAX_DEPTH as usize - 1;
        assert_eq!(nested(most), "E/deep L/after");
        assert_eq!(nested(most + 1), "L/after");
        assert_eq!(nested(1_000_000), "L/after");
    }

    #[test]
    fn what_is_too_long_is_not_read() {
        let with = |spaces: usize| data(&format!("{{\"url\": {}\"/a\"}}", " ".repeat(spaces)));
        let rest = "{\"url\": \"/a\"}".len();
        assert_eq!(with(MAX_BYTES - rest), "L/a");
        assert_eq!(with(MAX_BYTES - rest + 1), "");
    }

    proptest! {
        #[test]
        fn any_text_has_an_outcome(text in "[\\[{]([\\[\\]{}:,\"]|\"url\"|\"http://a/\"|\\\\u002f|1|null| ){0,60}") {
            for purpose in [Use::Data, Use::Imports] {
                let _ = read(&text, purpose);
            }
        }
    }
}
