//! Tags and text → entries, for each of the XML forms. Elements go by their local names in lower case.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::lines::is_absolute;
use super::reference::Declared;
use super::{Entry, EntryKind, Form, Out, date, is_blank};
use crate::url::MAX_URL_BYTES;

/// Text of one element that is kept, bytes: an address, its references not yet decoded. A longer one is unusable.
const MAX_TEXT: usize = 2 * MAX_URL_BYTES;
/// A longer name is no element that matters, bytes.
const MAX_NAME: usize = 32;
/// Longest `changefreq` handed on, bytes.
const MAX_WORD: usize = 16;

/// What stands open.
#[derive(Debug, Default)]
pub(super) struct Forms {
    pub(super) declared: Declared,
    entry: Option<Open>,
    leaf: Option<Leaf>,
    /// The leaf's text so far.
    text: String,
    too_long: bool,
    /// Elements in the leaf, before its text, that only wrap it (`<loc><url>...`).
    wraps: u32,
    /// Inside `image`, `video` or the like: its own elements are not the entry's.
    inside: Option<&'static str>,
    /// Other elements that stand open in the entry (`news:news` ...).
    others: u32,
}

/// An entry that is not complete yet.
#[derive(Debug)]
struct Open {
    kind: EntryKind,
    loc: String,
    /// It had an address that cannot be used.
    unusable: bool,
    /// An RSS item's `guid`, if it is an address.
    guid: String,
    /// Text of the entry itself, where an address should stand in an element of its own.
    own: String,
    lastmod: Option<NonZeroU32>,
    changefreq: Option<String>,
    priority: Option<f32>,
}

impl Open {
    fn new(kind: EntryKind) -> Self {
        Self {
            kind,
            loc: String::new(),
            unusable: false,
            guid: String::new(),
            own: String::new(),
            lastmod: None,
            changefreq: None,
            priority: None,
        }
    }
}

/// An element whose text matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaf {
    /// The entry's own text.
    Own,
    Loc,
    Guid,
    /// When it changed.
    Changed,
    /// When it was published: counts if nothing says that it changed.
    Published,
    Frequency,
    Priority,
    /// Of a picture, film, logo.
    Media,
    /// A feed's own link.
    Home,
}

/// What an element is, in its form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Entry(EntryKind),
    Leaf(Leaf),
    /// It has elements of its own that must not be taken for the entry's.
    Inside(&'static str),
    Link,
    /// A requisite in an attribute of this name.
    Media(&'static str),
    Other,
}

impl Forms {
    /// Text between tags; `literal` text has no references (CDATA).
    pub(super) fn text(&mut self, text: &str, literal: bool) {
        if self.leaf.is_none() || self.too_long {
            return;
        }
        // blank text at the start is not kept, so that indentation never fills the room
        let text = if self.text.is_empty() {
            text.trim_start_matches(is_blank)
        } else {
            text
        };
        if self.text.len() + text.len() > MAX_TEXT {
            self.too_long = true;
        } else if literal && text.contains('&') {
            self.text.push_str(&text.replace('&', "&amp;"));
        } else {
            self.text.push_str(text);
        }
    }

    pub(super) fn start(&mut self, name: &str, attributes: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        let (prefix, local) = local(name);
        let Some(form) = out.summary.form else {
            return self.root(&local, attributes, out, each);
        };
        let role = self.role(form, &prefix, &local);
        if let Some(leaf) = self.leaf {
            let empty = self.text.is_empty() && !self.too_long;
            let wrapper = matches!(role, Role::Other | Role::Entry(_));
            if leaf != Leaf::Own && wrapper && (empty || role == Role::Other) {
                self.wraps += u32::from(role != Role::Other);
                return;
            }
            // it was not closed
            self.close_leaf(out, each);
        }
        match role {
            Role::Entry(kind) => {
                self.flush(out, each);
                self.entry = Some(Open::new(kind));
                if !form.is_feed() {
                    self.open(Leaf::Own);
                }
            }
            Role::Leaf(leaf) => {
                let again = self
                    .entry
                    .as_ref()
                    .is_some_and(|entry| !entry.loc.is_empty() || entry.unusable);
                if leaf == Leaf::Loc && again && !form.is_feed() {
                    // several addresses in one entry: each is one
                    self.flush(out, each);
                }
                self.open(leaf);
            }
            Role::Inside(name) => self.inside = Some(name),
            Role::Link => self.link(form, &prefix, attributes, out, each),
            Role::Media(name) => self.media(attributes, name, out, each),
            Role::Other => self.others = self.others.saturating_add(1),
        }
    }

    pub(super) fn end(&mut self, name: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        let Some(form) = out.summary.form else { return };
        let (prefix, local) = local(name);
        if self.inside.is_some_and(|inside| inside == local) {
            self.close_leaf(out, each);
            self.inside = None;
            return;
        }
        let role = self.role(form, &prefix, &local);
        if let Some(leaf) = self.leaf {
            match role {
                Role::Leaf(own) if own == leaf => self.close_leaf(out, each),
                Role::Link if matches!(leaf, Leaf::Loc | Leaf::Home) => self.close_leaf(out, each),
                Role::Entry(_) if self.wraps > 0 => self.wraps -= 1,
                Role::Entry(_) => self.close_leaf(out, each),
                _ => {}
            }
        } else if role == Role::Other {
            self.others = self.others.saturating_sub(1);
        }
        if matches!(role, Role::Entry(_)) && self.leaf.is_none() {
            self.flush(out, each);
        }
    }

    /// The file has ended. What was still open is cut: an entry counts if its address is whole, unless the end came in
    /// one of its extensions, where nobody else would count it either.
    pub(super) fn finish(&mut self, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        self.leaf = None;
        if self.inside.is_none() && self.others == 0 {
            self.flush(out, each);
        }
    }

    /// The first element says what the file is.
    fn root(&mut self, local: &str, attributes: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        let form = match local {
            "urlset" | "url" | "loc" => Form::UrlSet,
            "sitemapindex" | "sitemap" => Form::Index,
            "rss" | "rdf" | "channel" | "item" => Form::Rss,
            "feed" | "entry" => Form::Atom,
            _ => {
                out.over = true;
                return;
            }
        };
        out.summary.form = Some(form);
        out.summary.base = self.attribute(attributes, "xml:base").map(Cow::into_owned);
        if !matches!(local, "urlset" | "sitemapindex" | "rss" | "rdf" | "channel" | "feed") {
            self.start(local, attributes, out, each);
        }
    }

    fn role(&self, form: Form, prefix: &str, local: &str) -> Role {
        match form {
            Form::UrlSet | Form::Index | Form::Text => self.sitemap_role(form, prefix, local),
            Form::Rss => self.rss_role(prefix, local),
            Form::Atom => self.atom_role(local),
        }
    }

    fn sitemap_role(&self, form: Form, prefix: &str, local: &str) -> Role {
        match (self.inside, local) {
            (_, "url") => Role::Entry(EntryKind::Page),
            (_, "sitemap") => Role::Entry(EntryKind::Sitemap),
            (_, "image") => Role::Inside("image"),
            (_, "video") => Role::Inside("video"),
            (_, "thumbnail_loc" | "content_loc" | "content_segment_loc") | (Some("image"), "loc") => {
                Role::Leaf(Leaf::Media)
            }
            (None, "loc") if prefix == "image" => Role::Leaf(Leaf::Media),
            (None, "loc") => Role::Leaf(Leaf::Loc),
            (None, "lastmod") => Role::Leaf(Leaf::Changed),
            (None, "changefreq") => Role::Leaf(Leaf::Frequency),
            (None, "priority") => Role::Leaf(Leaf::Priority),
            (None, "link") if form == Form::UrlSet => Role::Link,
            _ => Role::Other,
        }
    }

    fn rss_role(&self, prefix: &str, local: &str) -> Role {
        let item = self.entry.is_some();
        match local {
            "item" => Role::Entry(EntryKind::Page),
            "link" => Role::Link,
            "image" if prefix == "itunes" => Role::Media("href"),
            "image" | "textinput" if !item => Role::Inside(if local == "image" { "image" } else { "textinput" }),
            "url" if self.inside == Some("image") => Role::Leaf(Leaf::Media),
            "guid" if item => Role::Leaf(Leaf::Guid),
            "pubdate" | "date" if item => Role::Leaf(Leaf::Published),
            "updated" | "modified" if item => Role::Leaf(Leaf::Changed),
            "enclosure" => Role::Media("url"),
            "content" | "thumbnail" if prefix == "media" => Role::Media("url"),
            _ => Role::Other,
        }
    }

    fn atom_role(&self, local: &str) -> Role {
        let entry = self.entry.is_some();
        match local {
            "entry" => Role::Entry(EntryKind::Page),
            // what an entry was copied from has links of its own
            "source" => Role::Inside("source"),
            "link" if self.inside.is_none() => Role::Link,
            "content" if entry => Role::Media("src"),
            "logo" | "icon" => Role::Leaf(Leaf::Media),
            "updated" | "modified" if entry && self.inside.is_none() => Role::Leaf(Leaf::Changed),
            "published" | "issued" | "created" if entry && self.inside.is_none() => Role::Leaf(Leaf::Published),
            _ => Role::Other,
        }
    }

    fn open(&mut self, leaf: Leaf) {
        self.leaf = Some(leaf);
        self.text.clear();
        self.too_long = false;
        self.wraps = 0;
    }

    /// Takes the text of the leaf.
    fn close_leaf(&mut self, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        let Some(leaf) = self.leaf.take() else { return };
        let text = std::mem::take(&mut self.text);
        let decoded = if self.too_long {
            None
        } else {
            self.declared.decode(&text)
        };
        self.wraps = 0;
        let value = decoded.as_deref().map(|text| text.trim_matches(is_blank));
        match leaf {
            Leaf::Loc => {
                let kind = match out.summary.form {
                    Some(Form::Index) => EntryKind::Sitemap,
                    _ => EntryKind::Page,
                };
                let entry = self.entry.get_or_insert_with(|| Open::new(kind));
                match value {
                    Some(loc) if entry.loc.is_empty() => loc.clone_into(&mut entry.loc),
                    Some(_) => {}
                    None => entry.unusable = true,
                }
            }
            Leaf::Media => give(EntryKind::Media, value.unwrap_or_default(), out, each),
            Leaf::Home => give(EntryKind::Home, value.unwrap_or_default(), out, each),
            _ => {
                let (Some(entry), Some(value)) = (&mut self.entry, value) else {
                    return;
                };
                match leaf {
                    Leaf::Own => value.clone_into(&mut entry.own),
                    Leaf::Guid if is_absolute(value) => value.clone_into(&mut entry.guid),
                    Leaf::Changed => entry.lastmod = date::seconds(value).or(entry.lastmod),
                    Leaf::Published => entry.lastmod = entry.lastmod.or_else(|| date::seconds(value)),
                    Leaf::Frequency if value.len() <= MAX_WORD => entry.changefreq = Some(value.to_owned()),
                    Leaf::Priority => {
                        entry.priority = value.parse().ok().filter(|value| (0.0..=1.0).contains(value));
                    }
                    _ => {}
                }
            }
        }
    }

    /// The entry is complete.
    fn flush(&mut self, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        self.inside = None;
        self.others = 0;
        let Some(mut entry) = self.entry.take() else { return };
        if entry.loc.is_empty() && !entry.unusable {
            entry.loc = if is_absolute(&entry.own) { entry.own } else { entry.guid };
        }
        if entry.loc.is_empty() {
            out.summary.unusable += u64::from(entry.unusable);
            return;
        }
        let complete = Entry {
            kind: entry.kind,
            loc: &entry.loc,
            lastmod: entry.lastmod,
            changefreq: entry.changefreq.as_deref(),
            priority: entry.priority,
        };
        out.give(complete, each);
    }

    /// `link`: RSS has the address as text, Atom and XHTML as `href`.
    fn link(&mut self, form: Form, prefix: &str, attributes: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        let Some(href) = self.attribute(attributes, "href") else {
            if form == Form::Rss && self.inside.is_none() && matches!(prefix, "" | "rss") {
                self.open(if self.entry.is_some() { Leaf::Loc } else { Leaf::Home });
            }
            return;
        };
        let href = href.trim_matches(is_blank).to_owned();
        let rel = self.attribute(attributes, "rel").unwrap_or(Cow::Borrowed("alternate"));
        let rel = rel.to_ascii_lowercase();
        let has = |name: &str| rel.split_ascii_whitespace().any(|token| token == name);
        if form == Form::UrlSet {
            if has("alternate") {
                give(EntryKind::Alternate, &href, out, each);
            }
        } else if has("enclosure") {
            give(EntryKind::Media, &href, out, each);
        } else if [
            "next",
            "prev",
            "previous",
            "first",
            "last",
            "prev-archive",
            "next-archive",
            "current",
        ]
        .iter()
        .any(|name| has(name))
        {
            give(EntryKind::Next, &href, out, each);
        } else if has("alternate") {
            match &mut self.entry {
                Some(entry) if entry.loc.is_empty() => entry.loc = href,
                Some(_) => give(EntryKind::Alternate, &href, out, each),
                None => give(EntryKind::Home, &href, out, each),
            }
        }
    }

    fn media(&self, attributes: &str, name: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
        if let Some(url) = self.attribute(attributes, name) {
            give(EntryKind::Media, url.trim_matches(is_blank), out, each);
        }
    }

    /// The value of an attribute, if it can be used.
    fn attribute<'a>(&self, attributes: &'a str, name: &str) -> Option<Cow<'a, str>> {
        let value = attribute(attributes, name)?;
        self.declared.decode(value).filter(|value| value.len() <= MAX_TEXT)
    }
}

/// Gives something that is no entry.
fn give(kind: EntryKind, loc: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
    if loc.is_empty() {
        return;
    }
    let entry = Entry {
        kind,
        loc,
        lastmod: None,
        changefreq: None,
        priority: None,
    };
    out.give(entry, each);
}

/// `<?xml-stylesheet href=...?>`.
pub(super) fn style(attributes: &str, out: &mut Out, each: &mut dyn FnMut(Entry<'_>)) {
    if let Some(href) = attribute(attributes, "href").and_then(|href| Declared::default().decode(href)) {
        give(EntryKind::Style, href.trim_matches(is_blank), out, each);
    }
}

/// Prefix and local name in lower case; both empty if the name is too long to matter.
fn local(name: &str) -> (String, String) {
    if name.len() > MAX_NAME {
        return (String::new(), String::new());
    }
    let name = name.to_ascii_lowercase();
    match name.rsplit_once(':') {
        Some((prefix, local)) => (prefix.to_owned(), local.to_owned()),
        None => (String::new(), name),
    }
}

/// The raw value of an attribute.
fn attribute<'a>(attributes: &'a str, wanted: &str) -> Option<&'a str> {
    let mut rest = attributes;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/' || c == '=');
        let end = rest
            .find(|c: char| c.is_ascii_whitespace() || c == '=')
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        if name.is_empty() {
            return None;
        }
        let after = after.trim_start();
        let Some(value) = after.strip_prefix('=') else {
            rest = after;
            continue;
        };
        let value = value.trim_start();
        let (value, next) = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let inner = value.get(1..).unwrap_or_default();
                inner.split_once(quote).unwrap_or((inner, ""))
            }
            _ => value.split_at(value.find(|c: char| c.is_ascii_whitespace()).unwrap_or(value.len())),
        };
        if name.eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        rest = next;
    }
}
