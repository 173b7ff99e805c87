//! The scanner's links against those of a DOM (`scraper`, scripting off) and of html5ever's tokenizer.
//!
//! On our own pages, and on every HTML file below the folders that `CRAWLER_PAGES` names (colons between them), such as
//! the installed documentation of Debian packages.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crawler::extract::{LinkKind, css, extract, headers, srcset};
use html5ever::driver::{ParseOpts, parse_document};
use html5ever::tendril::{StrTendril, TendrilSink};
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, StartTag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use html5ever::tree_builder::TreeBuilderOpts;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use scraper::{Html, HtmlTreeSink, Node};

type Link = (LinkKind, String);

/// What our extraction finds in HTML that says it is UTF-8.
fn ours(page: &str) -> Vec<Link> {
    let mut text = String::new();
    let links = extract(200, Some(b"text/html; charset=utf-8"), &[], page.as_bytes(), &mut text);
    links
        .links
        .iter()
        .map(|link| (link.kind, link.raw.to_string()))
        .collect()
}

/// The links of one element by a second, slower reading of the same list; of its `style` text too.
fn of_element(name: &str, foreign: bool, get: &dyn Fn(&str) -> Option<String>, text: &str, found: &mut Vec<Link>) {
    use LinkKind::{Navigation, Redirect, Requisite, Stylesheet};
    let mut push = |kind: LinkKind, raw: &str| {
        let raw = raw.trim_matches(|c: char| c <= ' ');
        let lower = raw.to_ascii_lowercase();
        let idle = raw.starts_with('#') || lower.starts_with("data:") || lower.starts_with("javascript:");
        if !idle && (!raw.is_empty() || kind == Navigation) {
            found.push((kind, raw.to_owned()));
        }
    };
    let is = |attribute: &str, value: &str| get(attribute).is_some_and(|own| own.eq_ignore_ascii_case(value));
    let url = |attribute: &str| get(attribute).into_iter();
    if name == "style" {
        css::scan(text, css::Place::Sheet, |kind, url| push(kind, &url));
    }
    if foreign {
        let href = get("href").or_else(|| get("xlink:href"));
        match name {
            "a" => href.iter().for_each(|raw| push(Navigation, raw)),
            "image" | "use" | "feImage" => href.iter().for_each(|raw| push(Requisite, raw)),
            "script" => url("src").chain(href).for_each(|raw| push(Requisite, &raw)),
            // listed here for HTML, and holding no link in SVG
            "title" | "style" | "audio" | "video" | "source" | "iframe" | "feimage" => {}
            _ => url("xlink:href").for_each(|raw| push(Navigation, &raw)),
        }
    } else {
        let sources: &[&str] = match name {
            "a" | "area" => &["href"],
            "body" | "table" | "thead" | "tbody" | "tfoot" | "tr" | "td" | "th" => &["background"],
            "q" | "blockquote" | "ins" | "del" => &["cite"],
            "embed" | "script" | "bgsound" => &["src"],
            "iframe" | "frame" | "img" => &["src", "longdesc"],
            "audio" | "video" | "source" | "track" => &["src", "poster"],
            "object" => &["data"],
            "html" => &["manifest"],
            "input" if is("type", "image") => &["src"],
            _ => &[],
        };
        for attribute in sources {
            let kind = if matches!(*attribute, "href" | "cite" | "longdesc") {
                Navigation
            } else {
                Requisite
            };
            url(attribute).for_each(|raw| push(kind, &raw));
        }
        match name {
            "form" if !is("method", "post") && !is("method", "dialog") => {
                url("action")
                    .filter(|raw| !raw.trim().is_empty())
                    .for_each(|raw| push(Navigation, &raw));
            }
            "img" | "source" | "audio" | "video" | "track" => {
                url("srcset").for_each(|set| srcset::scan(&set, |raw| push(Requisite, raw)));
            }
            "link" => {
                let rel = get("rel").unwrap_or_default().to_ascii_lowercase();
                let rel: Vec<&str> = rel.split_ascii_whitespace().collect();
                let has = |names: &[&str]| rel.iter().any(|token| names.contains(token));
                let icons = [
                    "icon",
                    "apple-touch-icon",
                    "mask-icon",
                    "preload",
                    "modulepreload",
                    "manifest",
                ];
                if has(&["stylesheet"]) || has(&["preload"]) && is("as", "style") {
                    url("href").for_each(|raw| push(Stylesheet, &raw));
                } else if has(&icons) {
                    url("href").for_each(|raw| push(Requisite, &raw));
                } else if rel.is_empty() || rel.iter().any(|token| !matches!(*token, "preconnect" | "dns-prefetch")) {
                    url("href").for_each(|raw| push(Navigation, &raw));
                }
                url("imagesrcset").for_each(|set| srcset::scan(&set, |raw| push(Requisite, raw)));
            }
            "meta" => {
                let content = get("content").unwrap_or_default();
                if is("http-equiv", "refresh") {
                    headers::refresh(&content)
                        .and_then(|r| r.url)
                        .into_iter()
                        .for_each(|raw| push(Redirect, raw));
                } else if !["", "none"].contains(&content.trim()) {
                    let own: Vec<String> = ["property", "name"]
                        .iter()
                        .filter_map(|name| get(name))
                        .map(|own| own.trim().to_ascii_lowercase())
                        .collect();
                    let has = |names: &[&str]| own.iter().any(|own| names.contains(&own.as_str()));
                    let shown = [
                        "og:image",
                        "og:image:url",
                        "og:video",
                        "twitter:image",
                        "twitter:player",
                        "thumbnail",
                        "msapplication-config",
                    ];
                    let item = get("itemprop").unwrap_or_default();
                    if has(&shown) {
                        push(Requisite, &content);
                    } else if has(&["og:url", "og:see_also", "twitter:url"]) || own.is_empty() && item == "url" {
                        push(Navigation, &content);
                    } else if own.is_empty() && ["image", "logo", "contentUrl"].contains(&item.as_str()) {
                        push(Requisite, &content);
                    }
                }
            }
            _ => {}
        }
    }
    url("style").for_each(|text| css::scan(&text, css::Place::Attribute, |kind, url| push(kind, &url)));
    for name in ["data-src", "data-original", "data-large-file", "data-hi-res-src"] {
        url(name)
            .filter(|raw| !raw.contains(['{', '<', '[']))
            .for_each(|raw| push(Requisite, &raw));
    }
    if name == "script" && is("type", "application/ld+json") {
        // pages of these tests have flat data: a key and its text
        let data: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap_or_default();
        for (key, value) in &data {
            let kind = match key.as_str() {
                "image" => Requisite,
                "url" => Navigation,
                _ => continue,
            };
            push(kind, value.as_str().unwrap_or_default());
        }
    }
}

/// The links of a page's tree.
fn dom(page: &str) -> Vec<Link> {
    let tree_builder = TreeBuilderOpts {
        scripting_enabled: false,
        ..TreeBuilderOpts::default()
    };
    let options = ParseOpts {
        tree_builder,
        ..ParseOpts::default()
    };
    let tree = parse_document(HtmlTreeSink::new(Html::new_document()), options)
        .one(page)
        .tree;
    let mut found = Vec::new();
    for node in tree.root().descendants() {
        let Node::Element(element) = node.value() else { continue };
        let get = |name: &str| {
            let is = |q: &html5ever::QualName| match name.strip_prefix("xlink:") {
                Some(local) => &*q.local == local && q.prefix.as_ref().is_some_and(|p| &**p == "xlink"),
                None => &*q.local == name && q.prefix.is_none(),
            };
            element
                .attrs
                .iter()
                .find(|(q, _)| is(q))
                .map(|(_, value)| value.to_string())
        };
        let text: String = node
            .children()
            .filter_map(|child| child.value().as_text().map(|text| text.to_string()))
            .collect();
        let foreign = &*element.name.ns != "http://www.w3.org/1999/xhtml";
        of_element(&element.name.local, foreign, &get, &text, &mut found);
    }
    found
}

/// Collects the links of start tags as html5ever's tokenizer gives them, in order.
#[derive(Default)]
struct Tags {
    found: RefCell<Vec<Link>>,
}

impl TokenSink for Tags {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = token else {
            return TokenSinkResult::Continue;
        };
        if tag.kind != StartTag {
            return TokenSinkResult::Continue;
        }
        let get = |name: &str| {
            tag.attrs
                .iter()
                .find(|a| &*a.name.local == name)
                .map(|a| a.value.to_string())
        };
        of_element(&tag.name, false, &get, "", &mut self.found.borrow_mut());
        match &*tag.name {
            "script" => TokenSinkResult::RawData(RawKind::ScriptData),
            "title" | "textarea" => TokenSinkResult::RawData(RawKind::Rcdata),
            "style" | "iframe" | "xmp" | "noembed" | "noframes" => TokenSinkResult::RawData(RawKind::Rawtext),
            "plaintext" => TokenSinkResult::Plaintext,
            _ => TokenSinkResult::Continue,
        }
    }
}

/// The links of a page's tags; it must hold no `style` elements.
fn tokenizer(page: &str) -> Vec<Link> {
    let tokenizer = Tokenizer::new(Tags::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from_slice(page));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.found.into_inner()
}

/// Files of `folder` and below whose name ends like a page's.
fn pages_below(folder: &Path, pages: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .path();
        if path.is_dir() {
            pages_below(&path, pages);
        } else if path.extension().is_some_and(|end| end == "html" || end == "htm") {
            pages.push(path);
        }
    }
}

fn own_pages() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/extract");
    let mut paths = Vec::new();
    pages_below(&folder, &mut paths);
    paths.sort();
    assert!(paths.len() >= 6, "the pages of tests/data/extract are missing");
    paths
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
        .collect()
}

/// Links that only one of the two has, as text for a message.
fn differences(ours: &[Link], theirs: &[Link]) -> Vec<String> {
    // a tree may hold an element twice (the adoption agency clones) or elsewhere: compare what links there are
    let ours: BTreeSet<_> = ours.iter().collect();
    let theirs: BTreeSet<_> = theirs.iter().collect();
    let missed = theirs.difference(&ours).map(|link| format!("missed {link:?}"));
    let extra = ours.difference(&theirs).map(|link| format!("extra {link:?}"));
    missed.chain(extra).collect()
}

#[test]
fn a_tree_of_our_own_pages_has_the_same_links() {
    let mut links = 0;
    for page in own_pages() {
        let ours = ours(&page);
        links += ours.len();
        assert_eq!(differences(&ours, &dom(&page)), [""; 0], "in {page}");
    }
    assert!(links > 100, "only {links} links: the pages test nothing");
}

#[test]
fn a_tree_of_installed_pages_has_the_same_links() {
    let Some(folders) = std::env::var_os("CRAWLER_PAGES") else {
        return;
    };
    for folder in std::env::split_paths(&folders) {
        let mut paths = Vec::new();
        pages_below(&folder, &mut paths);
        assert!(!paths.is_empty(), "no pages below {}", folder.display());
        let (mut links, mut bytes, mut wrong) = (0, 0, Vec::new());
        for path in &paths {
            let body = std::fs::read(path).unwrap();
            let page = String::from_utf8_lossy(&body);
            let ours = ours(&page);
            links += ours.len();
            bytes += body.len();
            let found = differences(&ours, &dom(&page));
            wrong.extend(found.into_iter().map(|text| format!("{}: {text}", path.display())));
        }
        println!(
            "{}: {} pages, {bytes} bytes, {links} links, {} differences",
            folder.display(),
            paths.len(),
            wrong.len()
        );
        wrong.truncate(20);
        assert_eq!(wrong, [""; 0]);
    }
}

/// Bits of markup that turn a page's parsing over.
const STRAY: [&str; 24] = [
    "<",
    ">",
    "\"",
    "'",
    "=",
    "/",
    "<!--",
    "-->",
    "--!>",
    "<script>",
    "</script>",
    "<script ",
    "<!",
    "</",
    "<?",
    "<style>",
    "</style",
    "<textarea>",
    "</title>",
    "<a href=",
    " href='",
    "\0",
    "\r",
    "&",
];

/// The end of the character at `at`, or of the text.
fn boundary(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}

/// A slice of one of our pages with stray markup put in.
fn mutated() -> impl Strategy<Value = String> {
    let cuts = prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&STRAY[..])), 0..6);
    let slice = (
        prop::sample::select(own_pages()),
        any::<prop::sample::Index>(),
        0..2000_usize,
    );
    (slice, cuts).prop_map(|((page, from, len), cuts)| {
        let from = boundary(&page, from.index(page.len()));
        let to = boundary(&page, from + len);
        let mut slice = page.get(from..to).unwrap_or_default().to_owned();
        for (at, stray) in cuts {
            let at = boundary(&slice, at.index(slice.len() + 1));
            slice.insert_str(at, stray);
        }
        // foreign content is the tree's business, a style's text, a frame's document and a
        // script's data are not the tag's; a meta cut off counts for us alone
        slice
            .replace("<svg", "<sv")
            .replace("<math", "<mat")
            .replace("<image", "<imag")
            .replace("<style", "<styl")
            .replace("srcdoc", "srcdo")
            .replace("+json", "+jso")
            + "<p>"
    })
}

/// Tags that move in and out of foreign content.
fn foreign_mix() -> impl Strategy<Value = String> {
    let tags = [
        "<svg>",
        "</svg>",
        "<math>",
        "</math>",
        "<foreignObject>",
        "</foreignObject>",
        "<desc>",
        "</desc>",
        "<mi>",
        "</mi>",
        "<title>",
        "</title>",
        "<style>",
        "</style>",
        "<a href=A>",
        "</a>",
        "<image xlink:href=B />",
        "<![CDATA[<a href=C>]]>",
        "<div>",
        "</div>",
        "<p>",
        "<g>",
        "</g>",
        "<svg/>",
        "<a xlink:href=D>",
    ];
    prop::collection::vec(prop::sample::select(tags.to_vec()), 0..12).prop_map(|tags| tags.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(3000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tokenizer_gives_the_same_links_of_mutated_pages(page in mutated()) {
        let mut own = ours(&page);
        let mut theirs = tokenizer(&page);
        own.sort();
        theirs.sort();
        prop_assert_eq!(own, theirs);
    }
}

#[test]
fn foreign_content_is_followed_nearly_as_a_tree_does() {
    // by names alone the rules cannot be followed to the end; what is measured here is how far they are
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = foreign_mix();
    let (mut pages, mut wrong) = (0, Vec::new());
    for _ in 0..3000 {
        let page = strategy.new_tree(&mut runner).unwrap().current();
        let found = differences(&ours(&page), &dom(&page));
        pages += 1;
        if !found.is_empty() {
            wrong.push(format!("{page}: {found:?}"));
        }
    }
    assert!(
        wrong.len() * 100 <= pages,
        "{} of {pages} differ: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(10)]
    );
}
