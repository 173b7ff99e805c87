//! What a DASH presentation plays (`mpd`, ISO/IEC 23009-1): base addresses, segments that are named one by one, and
//! templates that have nothing to fill in. Holds `quick-xml`.

use std::borrow::Cow;
use std::rc::Rc;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::url::{MAX_URL_BYTES, whatwg_href};

/// The type of a presentation.
pub(super) const TYPE: &str = "application/dash+xml";

/// Elements in one another; what is nested deeper is not read.
const MAX_DEPTH: usize = 64;

/// Attributes that hold the address of a segment or of a part of one.
const SEGMENTS: [(&str, &[&str]); 6] = [
    ("SegmentURL", &["media", "index"]),
    (
        "SegmentTemplate",
        &["media", "initialization", "index", "bitstreamSwitching"],
    ),
    ("Initialization", &["sourceURL"]),
    ("RepresentationIndex", &["sourceURL"]),
    ("BitstreamSwitching", &["sourceURL"]),
    ("Period", &["xlink:href"]),
];

/// An open element.
struct Open {
    /// What addresses inside it are relative to; empty for the presentation itself.
    base: Rc<str>,
    /// It has had its own base: of several, which are alternatives, the first counts.
    own: bool,
}

/// Calls `found` with each address, put together with the bases above it. What is broken ends the reading.
pub(super) fn scan(text: &str, mut found: impl FnMut(String)) {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut open: Vec<Open> = Vec::new();
    // the text of a BaseURL or Location that is open
    let mut reading: Option<String> = None;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                let base = open
                    .last()
                    .map_or_else(|| Rc::from(""), |around| Rc::clone(&around.base));
                segments(&tag, &base, &mut found);
                if open.len() == MAX_DEPTH {
                    return;
                }
                open.push(Open { base, own: false });
                reading = is_address(local(&tag)).then(String::new);
            }
            Ok(Event::Empty(tag)) => {
                let base = open.last().map_or("", |around| &around.base);
                segments(&tag, base, &mut found);
            }
            Ok(Event::Text(part)) => note(&mut reading, &part.xml10_content()),
            Ok(Event::CData(part)) => note(&mut reading, &part),
            Ok(Event::GeneralRef(name)) => {
                let referred = format!("&{};", &*name);
                note(
                    &mut reading,
                    &quick_xml::escape::unescape(&referred).unwrap_or_default(),
                );
            }
            Ok(Event::End(tag)) => {
                open.pop();
                let Some(read) = reading.take() else { continue };
                let Some(around) = open.last_mut() else { continue };
                let url = joined(&around.base, read.trim());
                if tag.local_name().as_ref() == "BaseURL" {
                    if !around.own && url.len() <= MAX_URL_BYTES {
                        around.own = true;
                        around.base = Rc::from(url.as_str());
                    }
                    // one that is no folder is what is played
                    if url.ends_with('/') {
                        continue;
                    }
                }
                found(url);
            }
            Ok(Event::Eof) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn local<'a>(tag: &'a BytesStart<'_>) -> &'a str {
    tag.name().local_name().into_inner()
}

/// Whether an element's text is an address.
fn is_address(name: &str) -> bool {
    matches!(name, "BaseURL" | "Location")
}

fn note(reading: &mut Option<String>, part: &str) {
    if let Some(read) = reading
        && read.len() + part.len() <= MAX_URL_BYTES
    {
        read.push_str(part);
    }
}

/// The addresses in the attributes of a tag. One with `$` is to be filled in by the player.
fn segments(tag: &BytesStart<'_>, base: &str, found: &mut impl FnMut(String)) {
    let Some((_, names)) = SEGMENTS.iter().find(|(name, _)| *name == local(tag)) else {
        return;
    };
    for attribute in tag.attributes().with_checks(false).flatten() {
        let value: Cow<'_, str> = attribute
            .normalized_value(quick_xml::XmlVersion::Implicit1_0)
            .unwrap_or_default();
        let value = value.trim();
        if names.contains(&attribute.key.as_ref()) && !value.is_empty() && !value.contains('$') {
            found(joined(base, value));
        }
    }
}

/// `url` against a base that may itself be relative to the presentation.
fn joined(base: &str, url: &str) -> String {
    let has_scheme = |text: &str| {
        let end = text.find([':', '/', '?', '#']);
        end.is_some_and(|at| text.as_bytes().get(at) == Some(&b':'))
    };
    if base.is_empty() || has_scheme(url) || url.starts_with("//") {
        return url.to_owned();
    }
    if has_scheme(base) {
        return whatwg_href(url, Some(base)).unwrap_or_else(|| url.to_owned());
    }
    if url.starts_with('/') {
        return url.to_owned();
    }
    let folder = base.rfind('/').map_or(0, |slash| slash + 1);
    format!("{}{url}", base.get(..folder).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> String {
        let mut words = Vec::new();
        scan(text, |url| words.push(url));
        words.join(" ")
    }

    #[test]
    fn bases_and_segments_are_put_together() {
        let text = "<?xml version='1.0'?><MPD xmlns='urn:mpeg:dash:schema:mpd:2011'><Location>live.mpd?a=1&amp;b=2</Location>\
            <BaseURL>https://cdn.test/v/</BaseURL><BaseURL>https://other.test/v/</BaseURL><Period><AdaptationSet>\
            <Representation id='1'><BaseURL>low.mp4</BaseURL><SegmentBase><Initialization range='0-1'/></SegmentBase></Representation>\
            <Representation id='2'><SegmentList><Initialization sourceURL='i.mp4'/><SegmentURL media='s1.m4s'/>\
            <SegmentURL media='/s2.m4s?a&amp;b'/></SegmentList></Representation></AdaptationSet></Period></MPD>";
        let want = "live.mpd?a=1&b=2 https://cdn.test/v/low.mp4 https://cdn.test/v/i.mp4 https://cdn.test/v/s1.m4s \
            https://cdn.test/s2.m4s?a&b";
        // the second base is an alternative, given as it is relative to the first
        assert_eq!(words(text), want);
    }

    #[test]
    fn bases_may_be_relative_and_templates_are_not_guessed() {
        let text = "<MPD><Period><BaseURL>a/b/</BaseURL><AdaptationSet><BaseURL><![CDATA[c/]]></BaseURL>\
            <SegmentTemplate media='$Number$.m4s' initialization='init.mp4'/></AdaptationSet>\
            <AdaptationSet><SegmentTemplate media='x.m4s'></SegmentTemplate></AdaptationSet></Period>\
            <Period xlink:href='remote.xml'/></MPD>";
        assert_eq!(words(text), "a/b/c/init.mp4 a/b/x.m4s remote.xml");
    }

    #[test]
    fn what_is_broken_keeps_what_came_before() {
        assert_eq!(words("<MPD><BaseURL>a.mp4</BaseURL><Period <"), "a.mp4");
        assert_eq!(words("<MPD><BaseURL>a.mp4"), "");
        assert_eq!(words("no XML"), "");
        let entities = "<!DOCTYPE MPD [<!ENTITY a 'x'>]><MPD><BaseURL>&a;b</BaseURL></MPD>";
        assert_eq!(words(entities), "b");
    }

    #[test]
    fn what_is_nested_too_deep_is_not_read() {
        let nested = |depth: usize| {
            let around = "<Period>".repeat(depth - 1);
            words(&format!("{around}<SegmentList><SegmentURL media='a'/></SegmentList>"))
        };
        assert_eq!(nested(MAX_DEPTH), "a");
        assert_eq!(nested(MAX_DEPTH + 1), "");
    }

    #[test]
    fn a_long_address_is_cut_short_of_its_end() {
        let long = |len: usize| words(&format!("<MPD><BaseURL>{}</BaseURL></MPD>", "x".repeat(len))).len();
        assert_eq!((long(MAX_URL_BYTES), long(MAX_URL_BYTES + 1)), (MAX_URL_BYTES, 0));
    }

    proptest! {
        #[test]
        fn any_text_has_an_outcome(text in "(<|>|/|MPD|BaseURL|SegmentURL media=|'|&amp;|&|;|<!\\[CDATA\\[|\\]\\]>|http://a/|b| ){0,60}") {
            let _ = words(&text);
        }
    }
}
