//! The fields that need no selector.

/// A built-in field, in the order of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Builtin {
    /// `title`
    Title,
    /// `description`
    Description,
    /// `canonical`: the address that the page names as its own, resolved.
    Canonical,
    /// `lang`
    Lang,
    /// `h1`
    H1,
    /// `author`
    Author,
    /// `published`
    Published,
    /// `text`: what a reader sees.
    Text,
    /// `text_length`: characters of that, however long.
    TextLength,
    /// `links`: how many, by kind.
    Links,
}

impl Builtin {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Title,
        Self::Description,
        Self::Canonical,
        Self::Lang,
        Self::H1,
        Self::Author,
        Self::Published,
        Self::Text,
        Self::TextLength,
        Self::Links,
    ];

    /// Its name, and its key in the row of a page.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Title => "title",
            Self::Description => "description",
            Self::Canonical => "canonical",
            Self::Lang => "lang",
            Self::H1 => "h1",
            Self::Author => "author",
            Self::Published => "published",
            Self::Text => "text",
            Self::TextLength => "text_length",
            Self::Links => "links",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.name() == name)
    }

    /// Its value is taken from a tree of the page; those of the others are not.
    #[must_use]
    pub fn needs_tree(self) -> bool {
        matches!(self, Self::Text | Self::TextLength)
    }
}
