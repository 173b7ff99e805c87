//! Fields of a page that the user asks for by CSS selector. Holds `scraper`; a DOM is built only when a field asks.

use serde::{Deserialize, Serialize};

/// One `[[extract.field]]` of crawler.toml.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Key in pages.jsonl.
    pub name: String,
    /// CSS selector.
    pub selector: String,
    /// Attribute to take; the element's text if absent.
    #[serde(default)]
    pub attr: Option<String>,
    /// Every match as a list, not only the first.
    #[serde(default)]
    pub all: bool,
}
