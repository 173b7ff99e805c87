//! Kinds of links, with the real binary: what leads on, what is a part of a page, what is a guess; and what a link's query
//! is spelled in when it is asked for.

use std::collections::BTreeSet;

use crate::harness::Job;
use crate::reader::assert_holds_exactly;
use crate::site::{Answer, Asked, Site};

/// Two hosts: the second has what pages of the first are made of.
fn site() -> Site {
    Site::start(2, |origins| {
        let [own, other] = [origins[0].clone(), origins[1].clone()];
        let pdf = format!("%PDF-1.4\n1 0 obj <</Type/Annot/A<</S/URI/URI({own}/from-pdf)>>>> endobj\n%%EOF\n");
        move |asked: &Asked| match (asked.host, asked.path.as_str()) {
            (_, "/robots.txt") => Answer::not_found(),
            (0, "/") => Answer::html(format!(
                "<link rel=manifest href='{other}/app.webmanifest'><meta property=og:image content=/og.png>\
                 <a href=/doc.pdf ping=/counted>x</a><video src='{other}/film.m3u8'></video><a href=/list.txt>x</a>\
                 <script type=application/ld+json>{{\"url\": \"/ld\", \"image\": \"/ld.png\", \"x\": \"{own}/json-guess\"}}</script>\
                 <script src=/app.js></script><script>go('/guess')</script>"
            )),
            (0, "/doc.pdf") => Answer::new(200, "application/pdf", pdf.clone()),
            (0, "/list.txt") => Answer::text(format!("{own}/listed\n{other}/outside\n")),
            (0, "/app.js") => Answer::new(200, "text/javascript", "import('./chunk.js')"),
            (0, "/guess") => Answer::html("<a href=/from-guess>x</a><script>go('/guess-of-guess')</script>"),
            (0, "/from-guess") => Answer::html("<script>go('/second-guess')</script>"),
            (1, "/app.webmanifest") => Answer::new(
                200,
                "application/manifest+json",
                r#"{"icons": [{"src": "icon.png"}], "start_url": "/start"}"#,
            ),
            (1, "/film.m3u8") => Answer::new(200, "application/vnd.apple.mpegurl", "#EXTM3U\n#EXTINF:4,\n1.ts\n"),
            _ => Answer::new(200, "image/png", b"a picture".as_slice()),
        }
    })
}

const SURE: [(usize, &str); 13] = [
    (0, "/"),
    (0, "/og.png"),
    (0, "/doc.pdf"),
    (0, "/from-pdf"),
    (0, "/list.txt"),
    (0, "/listed"),
    (0, "/ld"),
    (0, "/ld.png"),
    (0, "/app.js"),
    (1, "/app.webmanifest"),
    (1, "/icon.png"),
    (1, "/film.m3u8"),
    (1, "/1.ts"),
];
const GUESSES: [(usize, &str); 6] = [
    (0, "/counted"),
    (0, "/json-guess"),
    (0, "/guess"),
    (0, "/from-guess"),
    (0, "/second-guess"),
    (0, "/chunk.js"),
];

fn urls(site: &Site, paths: &[(usize, &str)]) -> BTreeSet<String> {
    paths.iter().map(|(host, path)| site.url(*host, path)).collect()
}

#[test]
fn what_is_sure_is_fetched_and_no_guess() {
    let site = site();
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    job.assert_balanced();
    assert_holds_exactly(&job.records(), &urls(&site, &SURE));
}

#[test]
fn guesses_are_followed_one_hop_if_they_are_asked_for() {
    let site = site();
    let job = Job::new(&[site.url(0, "/")]).switch("--speculative");
    job.run().assert_code(0);
    job.assert_balanced();
    assert_holds_exactly(&job.records(), &urls(&site, &[SURE.as_slice(), &GUESSES].concat()));
    let hops = |path: &str| {
        let line = job.log().into_iter().find(|line| line.uri == site.url(0, path));
        line.unwrap_or_else(|| panic!("no line of {path}")).hops
    };
    assert_eq!(hops("/guess"), "X");
    assert_eq!(hops("/chunk.js"), "EX");
    assert_eq!(hops("/from-guess"), "XL");
    assert_eq!(hops("/second-guess"), "XLX");
}

#[test]
fn queries_are_asked_for_in_the_encoding_of_their_page() {
    let encoded = |label: &str, text: &str| {
        let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
        let page =
            format!("<meta charset={label}><a href='/{label}/{text}?{text}'>x</a><a href='/{label}/?&#x1f600;'>x</a>");
        Answer::new(200, "text/html", encoding.encode(&page).0.into_owned())
    };
    let site = Site::start(1, move |_| {
        move |asked: &Asked| match asked.path.as_str() {
            "/" => Answer::html(
                "<a href=/gbk>x</a><a href=/shift_jis>x</a><a href=/windows-1252>x</a><a href=/euc-kr>x</a><a href=/utf-16>x</a>",
            ),
            "/gbk" => encoded("gbk", "中"),
            "/shift_jis" => encoded("shift_jis", "日"),
            "/windows-1252" => encoded("windows-1252", "é"),
            "/euc-kr" => encoded("euc-kr", "한"),
            "/utf-16" => {
                let page = "\u{feff}<a href='/utf-16/?é'>x</a>";
                Answer::html(page.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>())
            }
            "/robots.txt" => Answer::not_found(),
            _ => Answer::text("found"),
        }
    });
    let job = Job::new(&[site.url(0, "/")]);
    job.run().assert_code(0);
    let fetched = site.log().fetched();
    let lacking = "%26%23128512%3B";
    for path in [
        "/gbk/%E4%B8%AD?%D6%D0",
        "/shift_jis/%E6%97%A5?%93%FA",
        "/windows-1252/%C3%A9?%E9",
        "/euc-kr/%ED%95%9C?%C7%D1",
        "/utf-16/?%C3%A9",
        &format!("/gbk/?{lacking}"),
        &format!("/shift_jis/?{lacking}"),
        &format!("/windows-1252/?{lacking}"),
        &format!("/euc-kr/?{lacking}"),
    ] {
        assert!(fetched.contains(&site.url(0, path)), "{path} is not in {fetched:#?}");
    }
}
