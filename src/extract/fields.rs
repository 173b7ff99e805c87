//! Fields of a page that the user asks for by CSS selector. Holds `scraper`; a DOM is built only when a field asks.

use html5ever::driver::{ParseOpts, parse_document};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tree_builder::TreeBuilderOpts;
use scraper::{ElementRef, Html, HtmlTreeSink, Selector};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::html::depth_limit;

/// Longest value of a field; longer ones are cut. Characters.
pub const MAX_VALUE_CHARS: usize = 10_000;
/// Values of one field at most (with `all`).
pub const MAX_VALUES: usize = 1_000;
/// Elements inside one another; a page is read up to where it goes deeper. The work of a tree grows with its depth.
const MAX_DEPTH: usize = 512;
/// Nodes of a tree; a page is read up to here. 1 MB of text can make many more by unclosed formatting.
const MAX_NODES: usize = 1_000_000;
/// Bytes of a page between two looks at its number of nodes.
const CHUNK: usize = 4096;

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

/// The fields of a crawl, their selectors read.
#[derive(Debug, Default)]
pub struct Fields {
    fields: Vec<(Field, Selector)>,
}

impl Fields {
    /// Reads the selectors.
    ///
    /// # Errors
    /// A selector that is none, or a name that is used twice: the message names the field and what is wrong.
    pub fn compile(fields: &[Field]) -> Result<Self, String> {
        let mut compiled: Vec<(Field, Selector)> = Vec::with_capacity(fields.len());
        for field in fields {
            if compiled.iter().any(|(other, _)| other.name == field.name) {
                return Err(format!(
                    "field '{}' is defined twice; give each field a name of its own",
                    field.name
                ));
            }
            let selector = Selector::parse(&field.selector).map_err(|error| {
                format!(
                    "field '{}': '{}' is not a CSS selector: {error}",
                    field.name, field.selector
                )
            })?;
            compiled.push((field.clone(), selector));
        }
        Ok(Self { fields: compiled })
    }

    /// Whether there is nothing to ask a page for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The values of a page, each field's under its name: a string, `null` if nothing matches, a list with `all`.
    ///
    /// White space in texts is collapsed. Values are cut at [`MAX_VALUE_CHARS`], lists at [`MAX_VALUES`]. The page is
    /// read with scripting off, and no further than to where its tree would be deeper than 512 elements or larger
    /// than a million nodes.
    #[must_use]
    pub fn extract(&self, html: &str) -> Map<String, Value> {
        if self.is_empty() {
            return Map::new();
        }
        let page = parse(html);
        self.fields
            .iter()
            .map(|(field, selector)| (field.name.clone(), value(&page, field, selector)))
            .collect()
    }
}

fn value(page: &Html, field: &Field, selector: &Selector) -> Value {
    let mut values = page.select(selector).filter_map(|element| match &field.attr {
        Some(name) => element
            .attr(name)
            .map(|value| value.chars().take(MAX_VALUE_CHARS).collect::<String>()),
        None => Some(collapsed_text(element)),
    });
    if field.all {
        values.take(MAX_VALUES).collect::<Vec<_>>().into()
    } else {
        values.next().into()
    }
}

/// The text of an element, runs of white space as one space, none at the ends.
fn collapsed_text(element: ElementRef<'_>) -> String {
    let mut text = String::new();
    let mut left = MAX_VALUE_CHARS;
    let mut gap = false;
    for c in element.text().flat_map(str::chars) {
        if c.is_whitespace() {
            gap = !text.is_empty();
            continue;
        }
        for c in gap.then_some(' ').into_iter().chain([c]) {
            if left == 0 {
                return text;
            }
            text.push(c);
            left -= 1;
        }
        gap = false;
    }
    text
}

/// The page's tree, within the bounds. Scripting is off: what stands in `noscript` is markup.
fn parse(html: &str) -> Html {
    let html = depth_limit(html, MAX_DEPTH)
        .and_then(|end| html.get(..end))
        .unwrap_or(html);
    let tree_builder = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let options = ParseOpts {
        tree_builder,
        ..ParseOpts::default()
    };
    let mut parser = parse_document(HtmlTreeSink::new(Html::new_document()), options);
    let mut rest = html;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(chunk_len(rest));
        parser.process(StrTendril::from_slice(chunk));
        rest = after;
        if parser.tokenizer.sink.sink.0.borrow().tree.values().len() > MAX_NODES {
            break;
        }
    }
    parser.finish()
}

/// About [`CHUNK`] bytes, up to the end of a character.
fn chunk_len(text: &str) -> usize {
    (CHUNK..text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn field(name: &str, selector: &str, attr: Option<&str>, all: bool) -> Field {
        Field {
            name: name.into(),
            selector: selector.into(),
            attr: attr.map(Into::into),
            all,
        }
    }

    fn extract(fields: &[Field], html: &str) -> Value {
        Value::Object(Fields::compile(fields).unwrap().extract(html))
    }

    #[test]
    fn texts_and_attributes_first_and_all() {
        let page = "<title> A\n <b>b</b>\u{a0} </title><p>One <i>two</i>  three<p class=x id=n>4<p lang=de>";
        let got = extract(
            &[
                field("title", "title", None, false),
                field("first", "p", None, false),
                field("all", "p", None, true),
                field("id", "p.x", Some("id"), false),
                field("none", "h1", None, false),
                field("nones", "h1", None, true),
                field("langs", "p", Some("lang"), true),
            ],
            page,
        );
        assert_eq!(
            got,
            json!({
                "title": "A <b>b</b>", "first": "One two three", "all": ["One two three", "4", ""], "id": "n",
                "none": null, "nones": [], "langs": ["de"]
            })
        );
    }

    #[test]
    fn noscript_is_markup() {
        let fields = [field("src", "img", Some("src"), false)];
        assert_eq!(
            extract(&fields, "<body><noscript><img src=a></noscript>"),
            json!({"src": "a"})
        );
    }

    #[test]
    fn a_bad_selector_is_named() {
        let message = Fields::compile(&[field("price", "p[", None, false)]).unwrap_err();
        assert!(message.contains("'price'") && message.contains("'p['"), "{message}");
        let twice = [field("a", "p", None, false), field("a", "b", None, false)];
        assert!(Fields::compile(&twice).unwrap_err().contains("twice"));
    }

    #[test]
    fn values_and_lists_are_bounded() {
        let long = "x".repeat(MAX_VALUE_CHARS + 5);
        let got = extract(&[field("p", "p", None, false)], &format!("<p>{long}"));
        assert_eq!(got["p"].as_str().map(str::len), Some(MAX_VALUE_CHARS));
        let got = extract(&[field("p", "p", Some("title"), false)], &format!("<p title={long}>"));
        assert_eq!(got["p"].as_str().map(str::len), Some(MAX_VALUE_CHARS));
        let got = extract(&[field("p", "p", None, true)], &"<p>".repeat(MAX_VALUES + 1));
        assert_eq!(got["p"].as_array().map(Vec::len), Some(MAX_VALUES));
    }

    #[test]
    fn hostile_pages_make_no_huge_trees() {
        let fields = [
            field("last", "#last", Some("id"), false),
            field("first", "p", None, false),
        ];
        let deep = format!("<p>a</p>{}<i id=last>", "<div>".repeat(200_000));
        assert_eq!(extract(&fields, &deep), json!({"last": null, "first": "a"}));
        let formatting = (0..400).map(|n| format!("<b id=b{n}>")).collect::<Vec<_>>().concat();
        let wide = format!("<p>a</p><p>{formatting}{}<i id=last>", "<p>x".repeat(100_000));
        assert_eq!(extract(&fields, &wide), json!({"last": null, "first": "a"}));
        assert_eq!(
            extract(&fields, &format!("<p>a</p>{}", "<p>".repeat(1000))),
            json!({"last": null, "first": "a"})
        );
    }
}
