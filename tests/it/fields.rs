//! Fields and links of pages, with the real binary: values against truth made by hand, and against lxml on real pages.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::Job;
use crate::site::{Answer, Asked, Site};

const SETTINGS: &str = r#"
[extract]
builtins = ["title", "description", "canonical", "lang", "h1", "author", "published", "text", "text_length", "links"]

[[extract.field]]
name = "price"
selector = "p.price"
attr = "content"

[[extract.field]]
name = "tags"
selector = "ul.tags > li"
all = true
hosts = ["127.0.0.1", "127.0.0.2"]

[[extract.field]]
name = "elsewhere"
selector = "p"
first = true
hosts = ["*.example.com"]

[output]
links = true
"#;

const PAGE: &str = "<!doctype html><html lang=de-AT><head><title>Ein\n Titel &amp; mehr</title>\
    <meta name=description content='Worum es geht'><link rel=canonical href='/eigen?b=1&amp;a=2'>\
    <script type=application/ld+json>{\"@type\": \"Article\", \"datePublished\": \"2024-05-06\", \"author\": [{\"name\": \"Ada\"}, {\"name\": \"Bo\"}]}</script>\
    <style>p { color: red }</style></head><body><h1>Kopf<br>zeile</h1><p class=price content='9,90'>teuer</p>\
    <p hidden>versteckt</p><noscript>ohne Skript</noscript><ul class=tags><li>eins<li>zw<b>ei</b></ul>\
    <a href=/zwei rel='nofollow ugc'>Zur <i>zwei</i>ten\n Seite</a> <a href=/zwei>noch<p>mal</a>\
    <a href='/bild'><img src=/b.png alt='Ein Bild'></a> <a href='http://out.test/x?B=%7e'>hinaus</a>\
    <a href='mailto:x@y.test'>Post</a> <a href='http://['>kaputt</a><map><area href=/karte alt=Karte></map>\
    <div style='background: url(/h.png)'></div></body></html>";

fn site() -> Site {
    Site::start(1, |_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/" => Answer::html(PAGE).with("content-language", "fr"),
            "/zwei" => {
                let (text, _, _) = encoding_rs::WINDOWS_1251.encode("<title>Привет</title><h1>мир</h1><p>текст");
                Answer::new(200, "text/html; charset=windows-1251", text.into_owned()).with("content-language", "ru")
            }
            "/bild" => Answer::redirect(302, "/karte"),
            "/karte" => Answer::new(200, "text/plain", "no page"),
            "/robots.txt" => Answer::not_found(),
            _ => Answer::new(200, "image/png", b"a picture".as_slice()),
        }
    })
}

fn configured(job: Job, settings: &str) -> Job {
    fs::write(job.dir().with_file_name("crawler.toml"), settings).unwrap();
    job
}

#[test]
fn fields_and_links_are_what_stands_on_the_pages() {
    let site = site();
    let job = configured(Job::new(&[site.url(0, "/")]).switch("--parquet"), SETTINGS);
    job.run().assert_code(0);
    let at = |path: &str| site.url(0, path);

    let mut pages = job.rows("pages.jsonl.zst");
    let moved = pages.iter().position(|page| page["status"] == 302).unwrap();
    assert_eq!(pages.swap_remove(moved)["links"]["in_scope"], 1);
    for page in &mut pages {
        let time = page.as_object_mut().unwrap().remove("time").unwrap();
        assert!(time.as_str().unwrap().ends_with('Z'));
    }
    pages.sort_by_key(|page| page["url"].as_str().unwrap().len());
    let text = "Kopf\nzeile\nteuer\neins\nzwei\nZur zweiten Seite noch\nmal hinausPost kaputt";
    let russian = json!({
        "url": at("/zwei"), "status": 200, "title": "Привет", "description": null, "canonical": null, "lang": "ru",
        "h1": "мир", "author": null, "published": null, "text": "мир\nтекст", "text_length": 9, "price": null,
        "tags": [], "links": {"found": 0, "navigation": 0, "requisite": 0, "nofollow": 0, "in_scope": 0,
        "out_of_scope": 0, "malformed": 0, "dropped": 0},
    });
    let german = json!({
        "url": at("/"), "status": 200, "title": "Ein Titel & mehr", "description": "Worum es geht",
        "canonical": at("/eigen?b=1&a=2"), "lang": "de-AT", "h1": "Kopf zeile", "author": "Ada; Bo",
        "published": "2024-05-06", "text": text, "text_length": text.chars().count(), "price": "9,90",
        "tags": ["eins", "zwei"],
        "links": {"found": 10, "navigation": 8, "requisite": 2, "nofollow": 1, "in_scope": 6, "out_of_scope": 2,
        "malformed": 1, "dropped": 0},
    });
    assert_eq!(pages, [german, russian]);

    let mut links = job.rows("links.jsonl.zst");
    links.retain(|link| link["from"] == json!(at("/")));
    for link in &mut links {
        link.as_object_mut().unwrap().remove("from");
    }
    let a = |to: Value, text: &str, fate: &str| json!({"to": to, "kind": "navigation", "element": "a", "attribute": "href", "text": text, "nofollow": false, "fate": fate});
    let with = |mut link: Value, more: Value| {
        link.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        link
    };
    let canonical = json!({"to": at("/eigen?b=1&a=2"), "kind": "navigation", "element": "link", "attribute": "href",
        "rel": "canonical", "nofollow": false, "fate": "in_scope"});
    let picture = json!({"to": at("/b.png"), "kind": "requisite", "element": "img", "attribute": "src",
        "text": "Ein Bild", "nofollow": false, "fate": "in_scope"});
    let style = json!({"to": at("/h.png"), "kind": "requisite", "element": "div", "attribute": "style",
        "nofollow": false, "fate": "in_scope"});
    let area = json!({"to": at("/karte"), "kind": "navigation", "element": "area", "attribute": "href",
        "text": "Karte", "nofollow": false, "fate": "in_scope"});
    assert_eq!(
        links,
        [
            canonical,
            with(
                a(json!(at("/zwei")), "Zur zweiten Seite", "in_scope"),
                json!({"nofollow": true, "rel": "nofollow ugc"})
            ),
            a(json!(at("/zwei")), "noch mal", "repeated"),
            a(json!(at("/bild")), "Ein Bild", "in_scope"),
            picture,
            with(
                a(json!("http://out.test/x?B=%7e"), "hinaus", "out_of_scope"),
                json!({"identity": "http://out.test/x?B=~"})
            ),
            with(
                a(Value::Null, "Post", "out_of_scope"),
                json!({"raw": "mailto:x@y.test"})
            ),
            with(a(Value::Null, "kaputt", "malformed"), json!({"raw": "http://["})),
            area,
            style,
        ]
    );
}

#[test]
fn every_link_of_the_account_has_a_row() {
    let list = "<urlset><url><loc>/listed</loc></url><url><loc>http://out.test/</loc></url></urlset>";
    let site = Site::start(1, |origins| {
        let robots = format!("User-agent: *\nSitemap: {}/map.xml\n", origins[0]);
        move |asked: &Asked| match asked.path.as_str() {
            "/robots.txt" => Answer::text(robots.clone()),
            "/map.xml" => Answer::new(200, "application/xml", list),
            "/" => Answer::html(
                "<a href=/a>a</a><iframe srcdoc=\"<base href='/f/'><a href=b>b</a>\"></iframe><a href=/moved>m</a>\
                 <a href=/err>e</a>",
            )
            .with("link", "</h>; rel=next"),
            "/moved" => Answer::redirect(301, "/a"),
            "/err" => Answer::new(404, "text/html", "<a href=/x>x</a><img src=/i.png>"),
            _ => Answer::html("<a href=/>home</a><a href=/#top>top</a>"),
        }
    });
    let job = Job::new(&[site.url(0, "/")])
        .switch("--output-links")
        .flag("--sitemaps", "yes");
    job.run().assert_code(0);
    let links = job.rows("links.jsonl.zst");
    // the seed and the sitemap at the usual place stand on no page
    assert_eq!(links.len() as u64, job.count("/links/found") - 2);
    let mut fates: BTreeMap<&str, u64> = BTreeMap::new();
    for link in &links {
        *fates.entry(link["fate"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(fates.remove("out_of_scope"), Some(job.count("/links/out_of_scope")));
    let seen = fates["repeated"] + fates["in_scope"];
    assert_eq!(seen + 2, job.count("/links/seen") + job.count("/links/admitted"));
    let row = |to: &str| links.iter().find(|link| link["to"] == json!(site.url(0, to))).unwrap();
    assert_eq!(row("/f/b")["text"], "b");
    assert_eq!(
        (&row("/h")["kind"], row("/h").get("element")),
        (&json!("navigation"), None)
    );
    assert_eq!(row("/map.xml")["kind"], "sitemap");
    assert_eq!(row("/map.xml")["from"], json!(site.url(0, "/robots.txt")));
    assert_eq!(row("/listed")["from"], json!(site.url(0, "/map.xml")));
    assert_eq!(
        row("/i.png")["element"],
        "img",
        "of an error only what it is made of is left"
    );
    let moved = links.iter().find(|link| link["kind"] == "redirect").unwrap();
    assert_eq!(moved["from"], json!(site.url(0, "/moved")));
}

#[test]
fn a_page_with_very_many_links_is_cut_at_the_bound_and_not_in_its_row() {
    const MANY: usize = 150_000;
    let links: Vec<String> = (0..MANY).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
    let page = links.concat();
    let site = Site::table(vec![("/", Answer::html(page))]);
    let job = Job::new(&[site.url(0, "/")])
        .switch("--output-links")
        .flag("--fields", "links")
        .flag("--max-pages", "1");
    let (done, most) = job.start().wait_and_weigh();
    done.assert_code(0);
    let links = job.rows("links.jsonl.zst");
    let kept = crawler::extract::MAX_LINKS_PER_PAGE;
    assert_eq!(links.len(), kept);
    assert_eq!(links[kept - 1]["text"], (kept - 1).to_string());
    let row = &job.rows("pages.jsonl.zst")[0]["links"];
    assert_eq!((&row["found"], &row["dropped"]), (&json!(kept), &json!(MANY - kept)));
    assert!(most < 400 << 20, "{most} bytes");
}

#[test]
fn mistakes_are_told_before_anything_is_fetched() {
    let field = |more: &str| format!("[[extract.field]]\nname = \"x\"\nselector = \"p\"\n{more}");
    for (settings, says) in [
        (
            field("[[extract.field]]\nname = \"x\"\nselector = \"b\""),
            "crawler.toml:5: extract.field: the name \"x\" stands twice",
        ),
        (
            "[[extract.field]]\nname = \"x\"\nselector = \"p[\"\n".to_owned(),
            "crawler.toml:3: extract.field.selector: \"p[\" is not a CSS selector",
        ),
        (
            "[[extract.field]]\nname = \"title\"\nselector = \"p\"\n".to_owned(),
            "crawler.toml:2: extract.field.name: \"title\" is a built-in field",
        ),
        (
            "[[extract.field]]\nname = \"url\"\nselector = \"p\"\n".to_owned(),
            "crawler.toml:2: extract.field.name: every page has \"url\"",
        ),
        (
            field("hosts = [\"a b\"]"),
            "crawler.toml:4: extract.field.hosts: expected a host",
        ),
        (
            field("all = true\nfirst = true"),
            "crawler.toml:5: extract.field: first and all contradict",
        ),
        (
            "[extract]\nbuiltins = [\"tilte\"]\n".to_owned(),
            "found \"tilte\"; did you mean title?",
        ),
        (
            "[output]\nlink = true\n".to_owned(),
            "crawler.toml:2: unknown key \"output.link\"; did you mean links?",
        ),
    ] {
        let job = configured(Job::new(&["http://127.0.0.1:1/"]), &settings);
        let done = job.run();
        done.assert_code(2);
        done.assert_says(says);
        assert!(!job.dir().exists());
    }
    let done = Job::new(&["http://127.0.0.1:1/"])
        .flag("--fields", "title,nothing")
        .run();
    done.assert_code(2);
    done.assert_says("--fields: expected some of title, description");
}

/// Runs a script of `tests/tools` with a python that has lxml and pyarrow, if there is one.
fn tool(script: &str, arguments: &[PathBuf]) -> bool {
    let Some(python) = std::env::var_os("CRAWLER_TOOLS_PYTHON") else {
        return false;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools").join(script);
    let output = Command::new(python).arg(script).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success(), "{text}");
    true
}

#[test]
fn the_tables_hold_what_the_lines_hold() {
    let site = site();
    let job = configured(Job::new(&[site.url(0, "/")]).switch("--parquet"), SETTINGS);
    job.run().assert_code(0);
    for name in ["pages.parquet", "links.parquet"] {
        let table = fs::read(job.dir().join(name)).unwrap();
        assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"), "{name}");
    }
    tool("check_tables.py", &[job.dir()]);
}

#[test]
fn real_pages_say_what_lxml_reads() {
    let Some(folders) = std::env::var_os("CRAWLER_PAGES") else {
        return;
    };
    for folder in std::env::split_paths(&folders) {
        let root = folder.clone();
        let site = Site::start(1, move |_| {
            move |asked: &Asked| {
                let path = root.join(asked.path.trim_start_matches('/'));
                match fs::read(&path) {
                    Ok(body) if path.extension().is_some_and(|end| end == "html") => Answer::html(body),
                    Ok(body) => Answer::new(200, "application/octet-stream", body),
                    Err(_) => Answer::not_found(),
                }
            }
        });
        let job = Job::new(&[site.url(0, "/index.html")])
            .flag("--delay", "0s")
            .flag("--per-host-connections", "8")
            .flag("--max-pages", "1500")
            .flag("--fields", "title,h1,lang,text,text_length")
            .switch("--no-robots")
            .switch("--no-archive")
            .switch("--output-links");
        job.run().assert_code(0);
        assert!(job.rows("pages.jsonl.zst").len() > 50, "{}", folder.display());
        tool("check_fields.py", &[job.dir(), folder]);
    }
}
