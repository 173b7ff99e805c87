use super::*;
use serde_json::json;

fn field(name: &str, selector: &str, attr: Option<&str>, all: bool) -> Field {
    Field {
        name: name.into(),
        selector: selector.into(),
        attr: attr.map(Into::into),
        all,
        hosts: Vec::new(),
    }
}

fn row(builtins: &[Builtin], fields: &[Field], html: &str, host: &str) -> Value {
    let page = Page {
        text: html,
        xhtml: false,
        host,
        language: Some(" en-GB "),
        resolve: &|raw| raw.strip_prefix('/').map(|rest| format!("http://h.test/{rest}")),
        links: &|| json!({"found": 3}),
    };
    Value::Object(Fields::compile(builtins, fields).unwrap().extract(&page))
}

fn extract(fields: &[Field], html: &str) -> Value {
    row(&[], fields, html, "h.test")
}

#[test]
fn texts_and_attributes_first_and_all() {
    let page = "<title> A\n <b>b</b>\u{a0} </title><p>One <i>two</i>  three<p class=x id=n>4<p lang=de>";
    let got = extract(
        &[
            field("heading", "title", None, false),
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
            "heading": "A <b>b</b>", "first": "One two three", "all": ["One two three", "4", ""], "id": "n",
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
    let message = Fields::compile(&[], &[field("price", "p[", None, false)]).unwrap_err();
    assert!(message.contains("\"price\"") && message.contains("\"p[\""), "{message}");
    let twice = [field("a", "p", None, false), field("a", "b", None, false)];
    assert!(Fields::compile(&[], &twice).unwrap_err().contains("twice"));
}

#[test]
fn names_that_a_row_has_already_are_refused() {
    for name in ["title", "text", "links", "url", "time", "status", "cut"] {
        let message = Fields::compile(&[], &[field(name, "p", None, false)]).unwrap_err();
        assert!(message.contains(&format!("{name:?}")), "{message}");
    }
}

#[test]
fn values_and_lists_are_bounded_and_say_so() {
    let long = "x".repeat(MAX_VALUE_CHARS + 5);
    let got = extract(&[field("p", "p", None, false)], &format!("<p>{long}"));
    assert_eq!(got["p"].as_str().map(str::len), Some(MAX_VALUE_CHARS));
    assert_eq!(got["cut"], json!(["p"]));
    let got = extract(&[field("p", "p", Some("id"), false)], &format!("<p id={long}>"));
    assert_eq!(got["p"].as_str().map(str::len), Some(MAX_VALUE_CHARS));
    assert_eq!(got["cut"], json!(["p"]));
    let got = extract(&[field("p", "p", None, true)], &"<p>".repeat(MAX_VALUES + 1));
    assert_eq!(got["p"].as_array().map(Vec::len), Some(MAX_VALUES));
    assert_eq!(got["cut"], json!(["p"]));
    let got = extract(&[field("p", "p", None, true)], &"<p>".repeat(MAX_VALUES));
    assert_eq!(got.get("cut"), None);
}

#[test]
fn a_page_is_bounded_over_all_its_fields() {
    let page = format!("<p>{}", "y".repeat(MAX_VALUE_CHARS)).repeat(MAX_PAGE_CHARS / MAX_VALUE_CHARS);
    let got = extract(&[field("a", "p", None, true), field("b", "p", None, false)], &page);
    assert_eq!(
        got["a"].as_array().map(Vec::len),
        Some(MAX_PAGE_CHARS / MAX_VALUE_CHARS)
    );
    assert_eq!(got["b"], "");
    assert_eq!(got["cut"], json!(["b"]));
}

#[test]
fn fields_of_other_hosts_are_not_there() {
    let mut own = field("a", "p", None, false);
    own.hosts = vec!["x.test".to_owned(), "*.h.test".to_owned()];
    let fields = [own, field("b", "p", None, false)];
    assert_eq!(row(&[], &fields, "<p>1", "sub.h.test:81"), json!({"a": "1", "b": "1"}));
    assert_eq!(row(&[], &fields, "<p>1", "other.test"), json!({"b": "1"}));
}

#[test]
fn builtins_are_null_without_a_source() {
    let page = "<title>T</title><link rel=canonical href=/c><p>one<p hidden>two<p>th<b>ree</b>";
    let got = row(&Builtin::ALL, &[], page, "h.test");
    assert_eq!(
        got,
        json!({
            "title": "T", "description": null, "canonical": "http://h.test/c", "lang": "en-GB", "h1": null,
            "author": null, "published": null, "text": "one\nthree", "text_length": 9, "links": {"found": 3}
        })
    );
    let bad = row(
        &[Builtin::Canonical, Builtin::Title],
        &[],
        "<link rel=canonical href=mailto:x>",
        "h.test",
    );
    assert_eq!(bad, json!({"canonical": null, "title": null}));
}

#[test]
fn the_text_is_what_a_reader_sees() {
    let text = |page: &str| row(&[Builtin::Text], &[], page, "h.test")["text"].clone();
    for (page, want) in [
        (
            "<head><title>t</title></head>a<script>b</script><style>c</style>d",
            "ad",
        ),
        (
            "a<template>b</template><noscript>c</noscript><svg><text>d</text></svg>e",
            "ae",
        ),
        ("a<div style='color:red; DISPLAY : none'>b</div>c", "ac"),
        ("a<!-- b --><p hidden=until-found>c<p>d", "a\nd"),
        (
            "<h1>One</h1><p>two\n <i>th</i>ree<br>four<ul><li>5<li>6</ul>",
            "One\ntwo three\nfour\n5\n6",
        ),
        ("<table><tr><td>a<td>b<tr><td>c</table>", "a b\nc"),
        ("&lt;p&gt; &amp;copy; &copy", "<p> &copy; \u{a9}"),
        ("<pre>a\n\n  b</pre>", "a b"),
        ("", ""),
    ] {
        assert_eq!(text(page), want, "{page}");
    }
    let long = format!("<p>{}", "x".repeat(MAX_TEXT_CHARS + 7));
    let got = row(&[Builtin::Text, Builtin::TextLength], &[], &long, "h.test");
    assert_eq!(got["text"].as_str().map(str::len), Some(MAX_TEXT_CHARS));
    assert_eq!(got["text_length"], MAX_TEXT_CHARS + 7);
    assert_eq!(got["cut"], json!(["text"]));
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
