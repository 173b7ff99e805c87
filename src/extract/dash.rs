//! What a DASH presentation plays (`mpd`, ISO/IEC 23009-1): base addresses, segments that are named one by one, and
//! those that a template names, where the presentation says how many there are. Holds `quick-xml`.

mod template;

use std::borrow::Cow;
use std::rc::Rc;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use crate::url::{MAX_URL_BYTES, whatwg_href};
use template::{MAX_SEGMENTS, Representation, Template, seconds};

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
    /// The template that holds inside it.
    template: Option<Rc<Template>>,
    /// Seconds of the period it stands in, as far as they are known.
    period_s: Option<f64>,
    /// What it represents, if it does.
    of: Option<Representation>,
}

impl Open {
    /// Inside `around`, before its own attributes are read.
    fn inside(around: Option<&Open>) -> Self {
        Self {
            base: around.map_or_else(|| Rc::from(""), |around| Rc::clone(&around.base)),
            own: false,
            template: around.and_then(|around| around.template.clone()),
            period_s: around.and_then(|around| around.period_s),
            of: None,
        }
    }

    /// What a start tag says of itself and of what it stands in.
    fn read(&mut self, tag: &BytesStart<'_>) {
        match local(tag) {
            "MPD" => self.period_s = value_of(tag, "mediaPresentationDuration").and_then(|text| seconds(&text)),
            "Period" => {
                let own = value_of(tag, "duration").and_then(|text| seconds(&text));
                self.period_s = own.or(self.period_s);
            }
            "Representation" => {
                self.of = Some(Representation {
                    id: value_of(tag, "id").unwrap_or_default(),
                    bandwidth: value_of(tag, "bandwidth").unwrap_or_default(),
                });
            }
            _ => {}
        }
    }

    /// It is over: what its template names is found.
    fn close(&self, room: &mut usize, found: &mut impl FnMut(String)) {
        if let (Some(template), Some(of)) = (&self.template, &self.of) {
            template.fill(of, self.period_s, room, |url| found(joined(&self.base, &url)));
        }
    }
}

/// Takes in a template, or a segment of its timeline, into the element that it stands in.
fn note_template(tag: &BytesStart<'_>, open: &mut [Open]) {
    let depth = match local(tag) {
        "SegmentTemplate" => 1,
        // the timeline stands in the template, whose own element is open too
        "SegmentTimeline" => 2,
        "S" => 3,
        _ => return,
    };
    let Some(around) = open.len().checked_sub(depth).and_then(|at| open.get_mut(at)) else {
        return;
    };
    let mut template = around.template.as_deref().cloned().unwrap_or_default();
    match depth {
        1 => {
            for attribute in tag.attributes().with_checks(false).flatten() {
                let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0);
                template.set(attribute.key.as_ref(), &value.unwrap_or_default());
            }
        }
        2 => template.begin_timeline(),
        _ => {
            let number = |name: &str| value_of(tag, name).and_then(|text| text.trim().parse::<i64>().ok());
            let length = number("d").and_then(|length| u64::try_from(length).ok());
            let start = number("t").and_then(|start| u64::try_from(start).ok());
            template.segment(start, length.unwrap_or(0), number("r").unwrap_or(0));
        }
    }
    around.template = Some(Rc::new(template));
}

fn value_of(tag: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut attributes = tag.attributes();
    let mut attributes = attributes.with_checks(false).flatten();
    let attribute = attributes.find(|attribute| attribute.key.as_ref() == name)?;
    let value = attribute.normalized_value(quick_xml::XmlVersion::Implicit1_0).ok()?;
    Some(value.into_owned())
}

/// Calls `found` with each address, put together with the bases above it. What is broken ends the reading.
pub(super) fn scan(text: &str, mut found: impl FnMut(String)) {
    let mut reader = Reader::from_str(text);
    reader.config_mut().check_end_names = false;
    let mut open: Vec<Open> = Vec::new();
    // the text of a BaseURL or Location that is open
    let mut reading: Option<String> = None;
    let mut room = MAX_SEGMENTS;
    loop {
        match reader.read_event() {
            Ok(Event::Start(tag)) => {
                note_template(&tag, &mut open);
                let mut inside = Open::inside(open.last());
                segments(&tag, &inside.base, &mut found);
                if open.len() == MAX_DEPTH {
                    return;
                }
                inside.read(&tag);
                open.push(inside);
                reading = is_address(local(&tag)).then(String::new);
            }
            Ok(Event::Empty(tag)) => {
                note_template(&tag, &mut open);
                let mut inside = Open::inside(open.last());
                segments(&tag, &inside.base, &mut found);
                inside.read(&tag);
                inside.close(&mut room, &mut found);
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
                if let Some(over) = open.pop() {
                    over.close(&mut room, &mut found);
                }
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
    fn templates_are_filled_in_where_the_presentation_counts_their_segments() {
        let text = "<MPD mediaPresentationDuration='PT5S'><Period><BaseURL>v/</BaseURL><AdaptationSet>\
            <SegmentTemplate media='$RepresentationID$/$Number%02d$.m4s' initialization='$RepresentationID$.mp4' \
            duration='2' timescale='1' startNumber='3'/><Representation id='lo' bandwidth='1'/>\
            <Representation id='hi' bandwidth='2'><BaseURL>x/</BaseURL></Representation></AdaptationSet>\
            <AdaptationSet><SegmentTemplate media='$Bandwidth$-$Time$'><SegmentTimeline><S t='10' d='5' r='1'/><S d='2'/>\
            </SegmentTimeline></SegmentTemplate><Representation id='a' bandwidth='9'/></AdaptationSet></Period></MPD>";
        let want = "v/lo.mp4 v/lo/03.m4s v/lo/04.m4s v/lo/05.m4s v/x/hi.mp4 v/x/hi/03.m4s v/x/hi/04.m4s \
            v/x/hi/05.m4s v/9-10 v/9-15 v/9-20";
        assert_eq!(words(text), want);
        let live =
            "<MPD><Period><SegmentTemplate media='$Number$' duration='2'/><Representation id='a'/></Period></MPD>";
        assert_eq!(words(live), "");
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
