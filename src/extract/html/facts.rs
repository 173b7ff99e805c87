//! What a page says of itself: title, description, author ..., in one pass over its tags, without a tree.

use serde_json::Value;

use super::super::fold::{Folded, is_inline};
use super::super::trim;
use super::Syntax;
use super::elements::Element;
use super::tags::{Piece, Tags};

/// Longest value, characters; a longer one is cut.
pub(in crate::extract) const MAX_FACT_CHARS: usize = 10_000;
/// JSON-LD of a page that is read, bytes at most.
const MAX_DATA_BYTES: usize = 1 << 20;
/// Authors of one page that are named, at most.
const MAX_AUTHORS: usize = 100;

/// A value, and whether it was longer.
pub(in crate::extract) type Fact = Option<(String, bool)>;

/// What a page says of itself. Each value comes from the first source in its list that has one; of several elements of a
/// source the first that is not empty counts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::extract) struct Facts {
    /// `title`; `og:title`; `twitter:title`.
    pub(in crate::extract) title: Fact,
    /// `meta name=description`; `og:description`; `twitter:description`.
    pub(in crate::extract) description: Fact,
    /// `link rel=canonical`, as written.
    pub(in crate::extract) canonical: Fact,
    /// `html lang` or `xml:lang`; `meta http-equiv=content-language`.
    pub(in crate::extract) lang: Fact,
    /// `h1`.
    pub(in crate::extract) h1: Fact,
    /// `meta name=author`; JSON-LD `author` (names with `; ` between them); `article:author` if it is no address;
    /// `dc.creator`, `dcterms.creator`; the text of a link or element with `rel=author` or `itemprop=author`.
    pub(in crate::extract) author: Fact,
    /// As written: JSON-LD `datePublished`; `article:published_time`; `itemprop=datePublished` (`content`, `datetime`);
    /// `dc.date.issued`, `dcterms.issued`, `dc.date`, `dcterms.date`, `citation_publication_date`,
    /// `parsely-pub-date`, `pubdate`, `date`; `time datetime`.
    pub(in crate::extract) published: Fact,
}

/// Candidates of a value, the best at the front: its place says how good a source is.
struct Best<const N: usize>([Fact; N]);

impl<const N: usize> Best<N> {
    const NONE: Fact = None;

    fn new() -> Self {
        Self([Self::NONE; N])
    }

    fn offer(&mut self, source: usize, text: &str) {
        if let Some(slot) = self.0.get_mut(source)
            && slot.is_none()
        {
            let mut folded = Folded::new(MAX_FACT_CHARS);
            folded.push(text);
            *slot = taken(folded);
        }
    }

    fn put(&mut self, source: usize, text: Folded) {
        if let Some(slot) = self.0.get_mut(source)
            && slot.is_none()
        {
            *slot = taken(text);
        }
    }

    fn best(self) -> Fact {
        self.0.into_iter().flatten().next()
    }
}

fn taken(text: Folded) -> Fact {
    let cut = text.is_cut();
    (!text.is_empty()).then(|| (text.into_text(), cut))
}

/// An element whose text is a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Title,
    Heading,
    Author,
}

struct Gather<'a> {
    title: Best<3>,
    description: Best<3>,
    canonical: Best<1>,
    lang: Best<2>,
    h1: Best<1>,
    author: Best<5>,
    published: Best<7>,
    /// What is being read, up to the end of the element of this name.
    open: Option<(Wanted, &'a str, Folded)>,
    data: usize,
}

/// `article:author` is often the address of a profile.
fn is_address(text: &str) -> bool {
    text.contains("://") || text.starts_with('/')
}

/// Reads what a page says of itself.
pub(in crate::extract) fn read(text: &str, syntax: Syntax) -> Facts {
    let mut tags = Tags::new(text, syntax);
    let mut gather = Gather {
        title: Best::new(),
        description: Best::new(),
        canonical: Best::new(),
        lang: Best::new(),
        h1: Best::new(),
        author: Best::new(),
        published: Best::new(),
        open: None,
        data: 0,
    };
    while let Some(piece) = tags.next_piece() {
        match piece {
            Piece::Text(text) => {
                if let Some((_, _, open)) = &mut gather.open {
                    open.push(&text);
                }
            }
            Piece::End(name) => gather.end(name),
            Piece::Start(start) => {
                let name = tags.tag();
                gather.part(name);
                if start.element == Element::Script {
                    gather.data(&tags, start.text);
                } else if let Some(title) = tags.title(&start) {
                    gather.title.offer(0, &title);
                } else {
                    gather.start(&tags, name, start.foreign && syntax == Syntax::Html);
                }
            }
        }
    }
    gather.close();
    Facts {
        title: gather.title.best(),
        description: gather.description.best(),
        canonical: gather.canonical.best(),
        lang: gather.lang.best(),
        h1: gather.h1.best(),
        author: gather.author.best(),
        published: gather.published.best(),
    }
}

impl<'a> Gather<'a> {
    fn start(&mut self, tags: &Tags<'a>, name: &'a str, in_drawing: bool) {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if in_drawing {
            return;
        }
        match name.len() {
            1 if is("a") => self.by(tags, name),
            2 if is("h1") => self.open(Wanted::Heading, name),
            4 if is("html") => {
                let lang = tags.value("lang").or_else(|| tags.value("xml:lang"));
                self.lang.offer(0, &lang.unwrap_or_default());
            }
            4 if is("meta") => self.meta(tags),
            4 if is("link") => {
                let rel = tags.value("rel").unwrap_or_default();
                if has_word(&rel, "canonical") {
                    let href = tags.value("href").unwrap_or_default();
                    self.canonical.offer(0, &trim(href));
                }
            }
            4 if is("time") => {
                let when = tags.value("datetime").unwrap_or_default();
                if has_word(&tags.value("itemprop").unwrap_or_default(), "datePublished") {
                    self.published.offer(2, &when);
                }
                self.published.offer(6, &when);
            }
            5 if is("title") => self.open(Wanted::Title, name),
            _ => self.by(tags, name),
        }
    }

    /// `rel=author`, `itemprop=author`
    fn by(&mut self, tags: &Tags<'a>, name: &'a str) {
        let has = |attribute: &str| {
            let value = tags.value(attribute);
            value.is_some_and(|value| has_word(&value, "author"))
        };
        if has("rel") || has("itemprop") {
            self.open(Wanted::Author, name);
        }
    }

    fn open(&mut self, wanted: Wanted, name: &'a str) {
        if self.open.is_none() {
            self.open = Some((wanted, name, Folded::new(MAX_FACT_CHARS)));
        }
    }

    fn end(&mut self, name: &str) {
        self.part(name);
        if self
            .open
            .as_ref()
            .is_some_and(|(_, open, _)| name.eq_ignore_ascii_case(open))
        {
            self.close();
        }
    }

    fn close(&mut self) {
        match self.open.take() {
            Some((Wanted::Title, _, text)) => self.title.put(0, text),
            Some((Wanted::Heading, _, text)) => self.h1.put(0, text),
            Some((Wanted::Author, _, text)) => self.author.put(4, text),
            None => {}
        }
    }

    fn part(&mut self, name: &str) {
        if let Some((_, _, text)) = &mut self.open
            && !is_inline(name)
        {
            text.space();
        }
    }

    fn meta(&mut self, tags: &Tags<'a>) {
        let Some(content) = tags.value("content") else { return };
        if tags
            .value("http-equiv")
            .is_some_and(|name| name.eq_ignore_ascii_case("content-language"))
        {
            self.lang.offer(1, &content);
        }
        if has_word(&tags.value("itemprop").unwrap_or_default(), "datePublished") {
            self.published.offer(2, &content);
        }
        // some pages have Open Graph's names in `name`, and others the plain ones in `property`
        for name in ["property", "name"].into_iter().filter_map(|name| tags.value(name)) {
            match name.trim().to_ascii_lowercase().as_str() {
                "og:title" => self.title.offer(1, &content),
                "twitter:title" => self.title.offer(2, &content),
                "description" => self.description.offer(0, &content),
                "og:description" => self.description.offer(1, &content),
                "twitter:description" => self.description.offer(2, &content),
                "author" => self.author.offer(0, &content),
                "article:author" if !is_address(&content) => self.author.offer(2, &content),
                "dc.creator" | "dcterms.creator" => self.author.offer(3, &content),
                "article:published_time" => self.published.offer(1, &content),
                "dc.date.issued" | "dcterms.issued" | "dc.date" | "dcterms.date" => self.published.offer(3, &content),
                "citation_publication_date" | "parsely-pub-date" => self.published.offer(4, &content),
                "pubdate" | "date" => self.published.offer(5, &content),
                _ => {}
            }
        }
    }

    /// JSON-LD: the first value that says when, and the first that says who.
    fn data(&mut self, tags: &Tags<'a>, text: &str) {
        let kind = tags.value("type").unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        self.data += text.len();
        if !essence.eq_ignore_ascii_case("application/ld+json") || self.data > MAX_DATA_BYTES {
            return;
        }
        let Ok(data) = serde_json::from_str::<Value>(text.trim()) else {
            return;
        };
        let mut published = None;
        let mut author = None;
        each_object(&data, &mut |object| {
            let text = |name: &str| object.get(name).and_then(Value::as_str);
            published = published.take().or_else(|| text("datePublished").map(str::to_owned));
            author = author.take().or_else(|| object.get("author").and_then(names));
        });
        self.published.offer(0, &published.unwrap_or_default());
        self.author.offer(1, &author.unwrap_or_default());
    }
}

/// Every object in data, from the outside in. The parser bounds how deep they lie.
fn each_object<'v>(value: &'v Value, each: &mut impl FnMut(&'v serde_json::Map<String, Value>)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_object(item, each)),
        Value::Object(object) => {
            each(object);
            object.values().for_each(|item| each_object(item, each));
        }
        _ => {}
    }
}

/// The names of people: a text, an object with a name, or a list of those.
fn names(value: &Value) -> Option<String> {
    let name = |value: &Value| -> Option<String> {
        let text = value.as_str().or_else(|| value.get("name")?.as_str())?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    match value {
        Value::Array(people) => {
            let names: Vec<String> = people.iter().filter_map(name).take(MAX_AUTHORS).collect();
            (!names.is_empty()).then(|| names.join("; "))
        }
        other => name(other),
    }
}

fn has_word(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|own| own.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(text: impl Into<Option<&'static str>>) -> Fact {
        text.into().map(|text| (text.to_owned(), false))
    }

    #[test]
    fn the_best_source_counts_wherever_it_stands() {
        let page = "<html lang=' de '><meta property=og:title content=og><title> A\n&amp; <b>B</title><title>second</title>\
            <meta name=twitter:description content=t><meta NAME=Description content='d &quot;x&quot;'>\
            <link rel='x CANONICAL' href=' /c?a=1&amp;b '><svg><title>drawing</title></svg><h1> </h1><h1>One<br>two \
            <em>th</em>ree</h1><h1>later</h1><time datetime=2001>then</time><meta name=date content=2002>\
            <meta property='article:author' content='https://social.test/me'><a rel='me author' href=x>By <b>Me</b></a>";
        let facts = read(page, Syntax::Html);
        assert_eq!(facts.title, fact("A & <b>B"));
        assert_eq!(facts.description, fact("d \"x\""));
        assert_eq!(facts.canonical, fact("/c?a=1&b"));
        assert_eq!(facts.lang, fact("de"));
        assert_eq!(facts.h1, fact("One two three"));
        assert_eq!(facts.author, fact("By Me"));
        assert_eq!(facts.published, fact("2002"));
        assert_eq!(read("", Syntax::Html), Facts::default());
        let bare = read(
            "<meta name=og:title content=o><meta http-equiv=Content-Language content=fr>",
            Syntax::Html,
        );
        assert_eq!((bare.title, bare.lang), (fact("o"), fact("fr")));
    }

    #[test]
    fn data_says_who_and_when() {
        let page = |data: &str| {
            let page = format!(
                "<meta property=article:published_time content=2000><script type='application/ld+json; charset=utf-8'>\
                 {data}</script>"
            );
            let facts = read(&page, Syntax::Html);
            (facts.author, facts.published)
        };
        let graph = r#"{"@graph": [{"@type": "WebSite", "name": "s"}, {"@type": "Article", "datePublished": "2020-01-02",
            "author": [{"@type": "Person", "name": " Ada "}, "Bo", {"x": 1}], "dateModified": "2021"}]}"#;
        assert_eq!(page(graph), (fact("Ada; Bo"), fact("2020-01-02")));
        assert_eq!(page(r#"[{"author": {"name": "Ada"}}]"#), (fact("Ada"), fact("2000")));
        assert_eq!(page(r#"{"author": 5, "datePublished": 7}"#), (None, fact("2000")));
        assert_eq!(page("{broken"), (None, fact("2000")));
        assert_eq!(page(&"[".repeat(100_000)), (None, fact("2000")));
        let long = format!("{{\"x\": \"{}\"}}", "y".repeat(MAX_DATA_BYTES));
        assert_eq!(page(&long), (None, fact("2000")));
    }

    #[test]
    fn xhtml_is_read_by_its_own_rules() {
        let page =
            "<html xml:lang='en'><head><title>A <![CDATA[<B>]]></title></head><body><h1>x<br/>y</h1></body></html>";
        let facts = read(page, Syntax::Xml);
        assert_eq!((facts.title, facts.h1), (fact("A <B>"), fact("x y")));
        assert_eq!(facts.lang, fact("en"));
    }

    #[test]
    fn a_value_is_bounded_and_says_so() {
        let page = format!(
            "<title>{}</title><h1>{}",
            "x".repeat(MAX_FACT_CHARS + 1),
            "y".repeat(MAX_FACT_CHARS)
        );
        let facts = read(&page, Syntax::Html);
        let len = |fact: Fact| fact.map(|(text, cut)| (text.len(), cut));
        assert_eq!(len(facts.title), Some((MAX_FACT_CHARS, true)));
        assert_eq!(len(facts.h1), Some((MAX_FACT_CHARS, false)));
    }
}
