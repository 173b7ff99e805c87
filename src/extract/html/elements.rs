//! Which attribute of which element is a link, and of what kind.

use std::borrow::Cow;

use super::super::css::Place;
use super::super::directives::Directives;
use super::super::json::Use;
use super::super::rel::kind_of_rel;
use super::super::{LinkKind, Links, address, body};
use super::attributes::{Attribute, Attributes};
use super::entities::decode;
use super::preview;
use super::tags::Start;
use super::{MAX_SRCDOC_DEPTH, Syntax, scan};

use LinkKind::{Navigation, Redirect, Requisite, Speculative, Stylesheet};

/// Elements that hold links, or whose content is no markup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Anchor,
    Base,
    Body,
    Cell,
    Cited,
    Embed,
    /// `svg`, `math`
    ForeignRoot,
    Form,
    Frame,
    Html,
    Iframe,
    Image,
    Img,
    Input,
    Link,
    Media,
    Meta,
    Noembed,
    Noframes,
    Object,
    Plaintext,
    Script,
    Style,
    SvgReference,
    Textarea,
    Title,
    /// The processing instruction of XML.
    XmlStylesheet,
    Xmp,
    Other,
}

impl Element {
    /// By its name in any case.
    pub(super) fn of(name: &[u8]) -> Self {
        // by length first, as attributes: most names are none of these
        let table: &[(&[u8], Self)] = match name.len() {
            1 => &[(b"a", Self::Anchor), (b"q", Self::Cited)],
            2 => &[(b"td", Self::Cell), (b"th", Self::Cell), (b"tr", Self::Cell)],
            3 => &[
                (b"img", Self::Img),
                (b"svg", Self::ForeignRoot),
                (b"ins", Self::Cited),
                (b"del", Self::Cited),
                (b"use", Self::SvgReference),
                (b"xmp", Self::Xmp),
            ],
            4 => &[
                (b"area", Self::Anchor),
                (b"base", Self::Base),
                (b"body", Self::Body),
                (b"form", Self::Form),
                (b"html", Self::Html),
                (b"link", Self::Link),
                (b"meta", Self::Meta),
                (b"math", Self::ForeignRoot),
            ],
            5 => &[
                (b"table", Self::Cell),
                (b"tbody", Self::Cell),
                (b"thead", Self::Cell),
                (b"tfoot", Self::Cell),
                (b"input", Self::Input),
                (b"style", Self::Style),
                (b"title", Self::Title),
                (b"frame", Self::Frame),
                (b"image", Self::Image),
                (b"embed", Self::Embed),
                (b"audio", Self::Media),
                (b"video", Self::Media),
                (b"track", Self::Media),
            ],
            6 => &[
                (b"script", Self::Script),
                (b"iframe", Self::Iframe),
                (b"source", Self::Media),
                (b"object", Self::Object),
            ],
            7 => &[
                (b"amp-img", Self::Img),
                (b"bgsound", Self::Media),
                (b"noembed", Self::Noembed),
                (b"feimage", Self::SvgReference),
            ],
            8 => &[
                (b"textarea", Self::Textarea),
                (b"noframes", Self::Noframes),
                (b"amp-anim", Self::Img),
            ],
            9 => &[(b"plaintext", Self::Plaintext)],
            10 => &[(b"blockquote", Self::Cited)],
            _ => &[],
        };
        table
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known))
            .map_or(Self::Other, |&(_, element)| element)
    }

    /// The name that ends its content, if that content is no markup.
    pub(super) fn raw_text(self) -> Option<&'static [u8]> {
        match self {
            Self::Iframe => Some(b"iframe"),
            Self::Noembed => Some(b"noembed"),
            Self::Noframes => Some(b"noframes"),
            Self::Plaintext => Some(b""),
            Self::Script => Some(b"script"),
            Self::Style => Some(b"style"),
            Self::Textarea => Some(b"textarea"),
            Self::Title => Some(b"title"),
            Self::Xmp => Some(b"xmp"),
            _ => None,
        }
    }
}

/// Adds the links of one start tag. `depth` documents lie around this one.
pub(super) fn links<'a>(start: &Start<'a>, attributes: &Attributes<'a>, depth: u32, links: &mut Links<'a>) {
    links.at = None;
    if !start.text.is_empty() {
        match start.element {
            Element::Script => script(start.text, attributes, links),
            _ => links.push_css(Cow::Borrowed(start.text), Place::Sheet),
        }
    }
    if attributes.is_empty() {
        return;
    }
    let mut tag = Tag { attributes, links };
    match start.element {
        Element::Anchor => {
            tag.url_with_rel(Navigation, Attribute::Href);
            if start.foreign && !tag.has(Attribute::Href) {
                tag.url_with_rel(Navigation, Attribute::XlinkHref);
            }
            tag.ping();
        }
        Element::Base => tag.base(),
        Element::Body | Element::Cell => tag.url(Requisite, Attribute::Background),
        Element::Cited => tag.url(Navigation, Attribute::Cite),
        Element::Embed => tag.url(Requisite, Attribute::Src),
        Element::Form => tag.form(),
        Element::Frame => {
            tag.url(Requisite, Attribute::Src);
            tag.url(Navigation, Attribute::Longdesc);
        }
        Element::Html => tag.url(Requisite, Attribute::Manifest),
        Element::Iframe => {
            tag.url(Requisite, Attribute::Src);
            tag.url(Navigation, Attribute::Longdesc);
            tag.srcdoc(depth);
        }
        Element::Image | Element::SvgReference if start.foreign => tag.svg_reference(),
        Element::Script => {
            tag.url(Requisite, Attribute::Src);
            if start.foreign {
                tag.svg_reference();
            }
        }
        // outside SVG, `image` is an `img` misspelt
        Element::Image | Element::Img => {
            tag.url(Requisite, Attribute::Src);
            tag.srcset(Attribute::Srcset);
            tag.url(Navigation, Attribute::Longdesc);
        }
        Element::Input if tag.is(Attribute::Type, "image") => tag.url(Requisite, Attribute::Src),
        Element::Link => tag.link(),
        Element::Media => {
            tag.url(Requisite, Attribute::Src);
            tag.srcset(Attribute::Srcset);
            tag.url(Requisite, Attribute::Poster);
        }
        Element::Meta => tag.meta(depth),
        // a codebase is ignored, as browsers do
        Element::Object => tag.url(Requisite, Attribute::Data),
        Element::XmlStylesheet => tag.url(Stylesheet, Attribute::Href),
        // a link of any vocabulary (XLink 1.1); those of SVG mostly stay inside their drawing
        Element::Other if start.foreign => tag.url(Navigation, Attribute::XlinkHref),
        _ => {}
    }
    tag.any_element();
}

/// The text of a `script`, by its type (HTML Standard, "prepare the script element").
fn script<'a>(text: &'a str, attributes: &Attributes<'a>, links: &mut Links<'a>) {
    let kind = attributes.raw(Attribute::Type).map(decode).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match essence.as_str() {
        "importmap" => links.push_json(Cow::Borrowed(text), Use::Imports),
        "application/json" | "text/json" => links.push_json(Cow::Borrowed(text), Use::Data),
        other if other.ends_with("+json") => links.push_json(Cow::Borrowed(text), Use::Data),
        "" | "module" => links.push_script(Cow::Borrowed(text)),
        other if body::is_script(other) => links.push_script(Cow::Borrowed(text)),
        _ => {}
    }
}

/// One tag and where its links go.
struct Tag<'t, 'a> {
    attributes: &'t Attributes<'a>,
    links: &'t mut Links<'a>,
}

impl<'a> Tag<'_, 'a> {
    fn has(&self, attribute: Attribute) -> bool {
        self.attributes.raw(attribute).is_some()
    }

    fn value(&self, attribute: Attribute) -> Option<Cow<'a, str>> {
        self.attributes.raw(attribute).map(decode)
    }

    /// Whether a keyword attribute has this value.
    fn is(&self, attribute: Attribute, value: &str) -> bool {
        self.value(attribute).is_some_and(|own| own.eq_ignore_ascii_case(value))
    }

    fn url(&mut self, kind: LinkKind, attribute: Attribute) {
        if let Some(url) = self.value(attribute) {
            self.links.at = Some(attribute);
            self.links.push(kind, url);
        }
    }

    /// The same, where a `rel` may say that the link is not to be followed.
    fn url_with_rel(&mut self, kind: LinkKind, attribute: Attribute) {
        let rel = self.value(Attribute::Rel).unwrap_or_default();
        if let Some(url) = self.value(attribute) {
            self.links.at = Some(attribute);
            self.links.push_with_rel(kind, url, &rel);
        }
    }

    fn srcset(&mut self, attribute: Attribute) {
        if let Some(srcset) = self.value(attribute) {
            self.links.at = Some(attribute);
            self.links.push_srcset(srcset);
        }
    }

    /// The first base with an address counts.
    fn base(&mut self) {
        if self.links.base.is_none() {
            self.links.base = self.value(Attribute::Href).map(super::super::trim);
        }
    }

    /// Only what a GET sends is a place to go to; without an action that is the page itself.
    fn form(&mut self) {
        let is_get = !self.is(Attribute::Method, "post") && !self.is(Attribute::Method, "dialog");
        if is_get
            && self
                .attributes
                .raw(Attribute::Action)
                .is_some_and(|action| !action.trim().is_empty())
        {
            self.url_with_rel(Navigation, Attribute::Action);
        }
    }

    /// `href` is the name of SVG 2, `xlink:href` that of SVG 1.1.
    fn svg_reference(&mut self) {
        let name = if self.has(Attribute::Href) {
            Attribute::Href
        } else {
            Attribute::XlinkHref
        };
        self.url(Requisite, name);
    }

    fn link(&mut self) {
        let rel = self.value(Attribute::Rel).unwrap_or_default();
        let role = self.value(Attribute::As).unwrap_or_default();
        if let Some(kind) = kind_of_rel(&rel, &role) {
            self.url_with_rel(kind, Attribute::Href);
        }
        self.srcset(Attribute::ImageSrcset);
    }

    fn meta(&mut self, depth: u32) {
        let Some(content) = self.value(Attribute::Content) else {
            return;
        };
        self.links.at = Some(Attribute::Content);
        if self.is(Attribute::HttpEquiv, "refresh") {
            // inside a frame it sends the frame elsewhere, not the page
            let kind = if depth == 0 { Redirect } else { Requisite };
            self.links.push_refresh(kind, content);
            return;
        }
        if let Some(name) = self.value(Attribute::Name) {
            let said = Directives::of_meta(&name, &content, self.links.agent);
            self.links.directives.add(said);
        }
        let by_name = [Attribute::Property, Attribute::Name]
            .into_iter()
            .find_map(|name| preview::kind_of_meta(&self.value(name)?));
        let kind = by_name.or_else(|| preview::kind_of_property(&self.value(Attribute::Itemprop)?));
        if let Some(kind) = kind
            && !matches!(content.trim(), "" | "none")
        {
            self.links.push(kind, content);
        }
    }

    /// Addresses that are told when a link is followed: a browser posts to them.
    fn ping(&mut self) {
        self.links.at = Some(Attribute::Ping);
        match self.value(Attribute::Ping) {
            Some(Cow::Borrowed(pings)) => pings
                .split_ascii_whitespace()
                .for_each(|url| self.links.push(Speculative, Cow::Borrowed(url))),
            Some(Cow::Owned(pings)) => pings
                .split_ascii_whitespace()
                .for_each(|url| self.links.push(Speculative, Cow::Owned(url.to_owned()))),
            None => {}
        }
    }

    /// A document of its own: with a base, its links stand apart; without, they are the page's.
    fn srcdoc(&mut self, depth: u32) {
        if depth == MAX_SRCDOC_DEPTH {
            return;
        }
        let Some(document) = self.value(Attribute::Srcdoc) else {
            return;
        };
        let mut inside: Links<'a> = self.links.inside();
        match document {
            Cow::Borrowed(text) => {
                scan(text, Syntax::Html, depth + 1, &mut inside);
                self.links.adopt(inside);
            }
            Cow::Owned(text) => {
                let mut inside_own = inside;
                scan_owned(&text, depth + 1, &mut inside_own);
                self.links.adopt(inside_own);
            }
        }
    }

    /// Attributes that mean the same on every element. Those from `data-` on are read by scripts that load later;
    /// what is clearly no address there (JSON, markup) is left.
    fn any_element(&mut self) {
        if !self.attributes.has_global() {
            return;
        }
        if let Some(style) = self.value(Attribute::Style) {
            self.links.at = Some(Attribute::Style);
            self.links.push_css(style, Place::Attribute);
        }
        // whether a GET sends it depends on a form that may stand anywhere
        self.url(Speculative, Attribute::FormAction);
        for attribute in [
            Attribute::DataSrc,
            Attribute::DataBg,
            Attribute::DataBgSrc,
            Attribute::DataOriginal,
            Attribute::DataLazySrc,
            Attribute::DataFullSrc,
            Attribute::DataPoster,
            Attribute::DataHiResSrc,
            Attribute::DataOrigFile,
            Attribute::DataLargeFile,
            Attribute::DataZoomImage,
            Attribute::DataBackground,
            Attribute::DataBackgroundImage,
            Attribute::DataImage,
            Attribute::DataLazy,
            Attribute::DataLazyload,
            Attribute::DataThumb,
        ] {
            let Some(value) = self.value(attribute) else { continue };
            self.links.at = Some(attribute);
            if value.trim_start().starts_with("url(") {
                self.links.push_css(value, Place::Attribute);
            } else if !value.contains(['{', '<', '[']) && (!is_vague(attribute) || is_picture(&value)) {
                self.links.push(Requisite, value);
            }
        }
        for attribute in [
            Attribute::DataSrcset,
            Attribute::DataBgset,
            Attribute::DataLazySrcset,
            Attribute::DataOriginalSet,
        ] {
            self.srcset(attribute);
        }
    }
}

/// A name that holds an address in some pages, and in others a word, a colour or a number.
fn is_vague(attribute: Attribute) -> bool {
    matches!(
        attribute,
        Attribute::DataBackground
            | Attribute::DataBackgroundImage
            | Attribute::DataImage
            | Attribute::DataLazy
            | Attribute::DataLazyload
            | Attribute::DataThumb
    )
}

/// Whether a value of such a name is an address.
fn is_picture(value: &str) -> bool {
    let value = value.trim();
    address::is_address(value) || address::names_file(value)
}

/// The links of a document that does not outlive this call.
fn scan_owned(text: &str, depth: u32, links: &mut Links<'_>) {
    let mut inside = links.inside();
    scan(text, Syntax::Html, depth, &mut inside);
    *links = inside.into_owned();
}
