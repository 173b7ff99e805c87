//! The attributes that matter, and those of one tag.

/// Attributes that are kept; all others are stepped over. In alphabetical order, but that those which
/// count on any element (`data-...`, `formaction`) stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(in crate::extract) enum Attribute {
    Action,
    As,
    Background,
    Cite,
    Content,
    Data,
    DataBackground,
    DataBackgroundImage,
    DataBg,
    DataBgSrc,
    DataBgset,
    DataFullSrc,
    DataHiResSrc,
    DataImage,
    DataLargeFile,
    DataLazy,
    DataLazySrc,
    DataLazySrcset,
    DataLazyload,
    DataOrigFile,
    DataOriginal,
    DataOriginalSet,
    DataPoster,
    DataSrc,
    DataSrcset,
    DataThumb,
    DataZoomImage,
    FormAction,
    Encoding,
    FontLook,
    Href,
    HttpEquiv,
    ImageSrcset,
    Itemprop,
    Longdesc,
    Manifest,
    Method,
    Name,
    Ping,
    Poster,
    Property,
    Rel,
    Src,
    Srcdoc,
    Srcset,
    Style,
    Type,
    XlinkHref,
}

/// One more than the last of [`Attribute`].
const ATTRIBUTES: usize = Attribute::XlinkHref as usize + 1;

impl Attribute {
    /// By its name in any case.
    #[inline]
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        // by length first: most names that are no link's are told apart by it and one letter
        let table: &[(&[u8], Self)] = match name.len() {
            2 => &[(b"as", Self::As)],
            3 => &[(b"src", Self::Src), (b"rel", Self::Rel)],
            4 => &[
                (b"href", Self::Href),
                (b"type", Self::Type),
                (b"name", Self::Name),
                (b"data", Self::Data),
                (b"cite", Self::Cite),
                (b"size", Self::FontLook),
                (b"face", Self::FontLook),
                (b"ping", Self::Ping),
            ],
            5 => &[(b"style", Self::Style), (b"color", Self::FontLook)],
            6 => &[
                (b"srcset", Self::Srcset),
                (b"srcdoc", Self::Srcdoc),
                (b"poster", Self::Poster),
                (b"action", Self::Action),
                (b"method", Self::Method),
            ],
            7 => &[(b"content", Self::Content), (b"data-bg", Self::DataBg)],
            8 => &[
                (b"property", Self::Property),
                (b"data-src", Self::DataSrc),
                (b"longdesc", Self::Longdesc),
                (b"manifest", Self::Manifest),
                (b"itemprop", Self::Itemprop),
                (b"encoding", Self::Encoding),
            ],
            9 => &[(b"data-lazy", Self::DataLazy)],
            10 => &[
                (b"background", Self::Background),
                (b"http-equiv", Self::HttpEquiv),
                (b"formaction", Self::FormAction),
                (b"xlink:href", Self::XlinkHref),
                (b"data-bgset", Self::DataBgset),
                (b"data-image", Self::DataImage),
                (b"data-thumb", Self::DataThumb),
            ],
            11 => &[
                (b"data-srcset", Self::DataSrcset),
                (b"imagesrcset", Self::ImageSrcset),
                (b"data-poster", Self::DataPoster),
                (b"data-bg-src", Self::DataBgSrc),
            ],
            13 => &[
                (b"data-original", Self::DataOriginal),
                (b"data-lazy-src", Self::DataLazySrc),
                (b"data-full-src", Self::DataFullSrc),
                (b"data-lazyload", Self::DataLazyload),
            ],
            14 => &[(b"data-orig-file", Self::DataOrigFile)],
            15 => &[
                (b"data-background", Self::DataBackground),
                (b"data-large-file", Self::DataLargeFile),
                (b"data-zoom-image", Self::DataZoomImage),
                (b"data-hi-res-src", Self::DataHiResSrc),
            ],
            16 => &[(b"data-lazy-srcset", Self::DataLazySrcset)],
            17 => &[(b"data-original-set", Self::DataOriginalSet)],
            21 => &[(b"data-background-image", Self::DataBackgroundImage)],
            _ => &[],
        };
        table
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known))
            .map(|&(_, attribute)| attribute)
    }

    /// Its name. Nobody asks it of the attributes of `font`, of which there are three.
    pub(in crate::extract) fn name(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::As => "as",
            Self::Background => "background",
            Self::Cite => "cite",
            Self::Content => "content",
            Self::Data => "data",
            Self::DataBackground => "data-background",
            Self::DataBackgroundImage => "data-background-image",
            Self::DataBg => "data-bg",
            Self::DataBgSrc => "data-bg-src",
            Self::DataBgset => "data-bgset",
            Self::DataFullSrc => "data-full-src",
            Self::DataHiResSrc => "data-hi-res-src",
            Self::DataImage => "data-image",
            Self::DataLargeFile => "data-large-file",
            Self::DataLazy => "data-lazy",
            Self::DataLazySrc => "data-lazy-src",
            Self::DataLazySrcset => "data-lazy-srcset",
            Self::DataLazyload => "data-lazyload",
            Self::DataOrigFile => "data-orig-file",
            Self::DataOriginal => "data-original",
            Self::DataOriginalSet => "data-original-set",
            Self::DataPoster => "data-poster",
            Self::DataSrc => "data-src",
            Self::DataSrcset => "data-srcset",
            Self::DataThumb => "data-thumb",
            Self::DataZoomImage => "data-zoom-image",
            Self::Encoding => "encoding",
            Self::FontLook => "",
            Self::FormAction => "formaction",
            Self::Href => "href",
            Self::HttpEquiv => "http-equiv",
            Self::ImageSrcset => "imagesrcset",
            Self::Itemprop => "itemprop",
            Self::Longdesc => "longdesc",
            Self::Manifest => "manifest",
            Self::Method => "method",
            Self::Name => "name",
            Self::Ping => "ping",
            Self::Poster => "poster",
            Self::Property => "property",
            Self::Rel => "rel",
            Self::Src => "src",
            Self::Srcdoc => "srcdoc",
            Self::Srcset => "srcset",
            Self::Style => "style",
            Self::Type => "type",
            Self::XlinkHref => "xlink:href",
        }
    }

    const fn bit(self) -> u64 {
        1 << self as u8
    }
}

/// The attributes of one tag: of each name the first, values as written.
#[derive(Debug)]
pub(super) struct Attributes<'a> {
    present: u64,
    values: [&'a str; ATTRIBUTES],
}

impl<'a> Attributes<'a> {
    pub(super) fn new() -> Self {
        Self {
            present: 0,
            values: [""; ATTRIBUTES],
        }
    }

    /// Forgets all of them.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.present = 0;
    }

    /// The value as written, references not decoded.
    #[inline]
    pub(super) fn raw(&self, attribute: Attribute) -> Option<&'a str> {
        (self.present & attribute.bit() != 0)
            .then(|| self.values.get(attribute as usize).copied())
            .flatten()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.present == 0
    }

    /// Whether there is one that counts on any element: `style`, `formaction`, or one that starts with `data-`.
    #[inline]
    pub(super) fn has_global(&self) -> bool {
        const GLOBAL: u64 =
            Attribute::Style.bit() | (Attribute::Encoding.bit() - 1) & !(Attribute::DataBackground.bit() - 1);
        self.present & GLOBAL != 0
    }

    /// Of one name the first counts.
    #[inline]
    pub(super) fn insert(&mut self, attribute: Attribute, value: &'a str) {
        if self.present & attribute.bit() == 0 {
            self.present |= attribute.bit();
            if let Some(slot) = self.values.get_mut(attribute as usize) {
                *slot = value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_count_anywhere_stand_together() {
        for (name, is_global) in [
            ("style", true),
            ("data-background", true),
            ("data-zoom-image", true),
            ("data-srcset", true),
            ("formaction", true),
            ("data", false),
            ("encoding", false),
            ("xlink:href", false),
        ] {
            let mut attributes = Attributes::new();
            attributes.insert(Attribute::of(name.as_bytes()).unwrap(), "");
            assert_eq!(attributes.has_global(), is_global, "{name}");
            assert_eq!(Attribute::of(name.as_bytes()).unwrap().name(), name);
        }
    }
}
