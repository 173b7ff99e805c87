//! The entrances of the fuzz targets, by chance instead of by coverage: quick, and in every run of the tests.

use proptest::prelude::*;

#[path = "../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets' library, read as a module here")]
mod entrances;

/// Bytes that reach further than noise: pieces that the formats are made of, in any order, with noise between.
fn pieces(words: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(words).prop_map(|word| word.as_bytes().to_vec()),
        2 => prop::collection::vec(any::<u8>(), 0..6),
        1 => Just(b"\n".to_vec()),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

macro_rules! entrance {
    ($($name:ident: $words:expr;)*) => { $(
        #[test]
        fn $name() {
            proptest!(|(data in prop_oneof![
                pieces($words),
                prop::collection::vec(any::<u8>(), 0..400),
            ])| entrances::$name(&data));
        }
    )* };
}

entrance! {
    robots: &["User-agent:", "*", "crawler", "Disallow:", "Allow: /", "/a", "$", "%2F", "%", "Crawl-delay: 9", "#", " ", "Sitemap: x", "\r"];
    decode: &["gzip", ", ", "deflate", "br", "zstd", "\x1f\u{8b}\x08\0\0\0\0\0\0\x03", "\x03\0\0\0\0\0\0\0\0\0", "x\u{9c}", "identity"];
    normalize: &["http://", "https:", "//", "/", "a", "..", ".", "%2e", "%", "?", "#", "@", ":80", "[::1]", "xn--", "\u{fc}", "\\", "\t", "host.test", " "];
    html: &["<a href=", "<base href='/b/'>", "\"x\"", ">", "<", "/", "<!--", "-->", "<script>", "</script>", "<svg>", "<style>", "url(", "<img srcset='a 1x, b 2x'", "&amp;", "&#x", "<template>", "<noscript>", "<iframe srcdoc=\"", "<meta http-equiv=refresh content='0;url=x'>", "<![CDATA["];
    css: &["@import ", "url(", "'a'", ")", "/*", "*/", "\\", "{", "}", ";", "@font-face", "src:", "image-set(", "@charset", "@namespace"];
    srcset: &["a", ",", " ", "1x", "2w", "(", ")", ",,", "data:,b", "\t"];
    sitemap: &["<urlset>", "<sitemapindex>", "<rss>", "<feed>", "<url>", "</url>", "<loc>", "</loc>", "http://a/", "&amp;", "&e;", "<!DOCTYPE u [", "<!ENTITY e 'x'>", "]>", "<![CDATA[", "]]>", "<!--", "-->", "<image:loc>", "<item>", "<link>", "<?", "?>", "\x1f\u{8b}\x08"];
    json: &["{", "}", "[", "]", ":", ",", "\"", "\"url\":", "\"image\":", "\"icons\":", "\"src\":", "\"start_url\":", "\"items\":", "\"http://a/\"", "\"/b\"", "\\u002f", "\\", "null", "1e9", "</script>"];
    playlist: &["#EXTM3U\n", "#EXT-X-KEY:", "URI=\"", "\"", "a.ts\n", "<MPD>", "<BaseURL>", "</BaseURL>", "<SegmentURL media='", "'/>", "http://a/", "b/", "<Period>", "</Period>", "&amp;", "&", ";", "<![CDATA[", "]]>", "$"];
    pdf: &["%PDF-1.7\n", "1 0 obj <<", ">>", "/URI", "(http://a/", ")", "<", ">", "\\", "\\101", "/Type/ObjStm/Filter/FlateDecode", "stream\n", "endstream", "/Encrypt", "%%EOF", "x\u{9c}"];
    guesses: &["'", "\"", "`", "/a", "//b.c", "http://d/", "\\u002f", "\\x2f", "\\/", "e.html", " ", "\n", "#", "{", "("];
    headers: &["<", ">", ";", "rel=", "\"", "next", ",", "0;url=", "max-age", "Mon, 30 Nov 2026 12:00:00 GMT", "noindex", "none", "\\"];
    charset: &["text/html", ";charset=", "utf-8", "<meta charset=", "\u{feff}", "shift_jis", "<?xml encoding='", "@charset \"", "utf-16le", "\"", ">"];
    mime: &["text/", "html", ";", "charset=", "\"", "/", "<!doctype html", "GIF89a", "%PDF-", "\0", " "];
    warc: &["\0", "\x01", "WARC/1.1\r\n", "WARC-Type: response\r\n", "Content-Length: ", "0", "12", "\r\n", "HTTP/1.1 200 OK\r\n", ":", "\x1f\u{8b}\x08\0\0\0\0\0\0\x03"];
    snapshot: &["\0", "\x01", "\x02\0\0", "\x7f\x7f\x7f"];
    config: &["delay = ", "\"2s\"", "[[extract.field]]", "name = ", "selector = ", "\"h1\"", "=", "[", "]", "seeds", "'", "max_body = 1", "{", "}", "#", "."];
    answers: &["HTTP/1.1 200 OK\r\n", "HTTP/1.0 404\r\n", "HTTP/1.1 103 x\r\n", "Content-Length: ", "Transfer-Encoding: ", "chunked", "gzip, ", "Connection: keep-alive", "\r\n", "\n\n", "5\r\nhello\r\n", "0\r\n", " ", ":", "\x1f\u{8b}\x08\0"];
    cookies: &["http://a.test/\n", "https://b.a.co.uk/c/d\n", "a=b", ";", " Domain=", "a.test", "; Path=/", "; Max-Age=", "9", "-1", "; Secure", "; HttpOnly", "; Expires=Mon, 30 Nov 2026 12:00:00 GMT", "__Host-", "=", "\t", "TRUE", "FALSE", "/", "\r"];
    traps: &["http://a.test/", "a/", "2026/12/", "p?page=", "7", "&", "x=1", "\n", "<p>", "words ", "December", "<script>", "</script>", "<!--", "-->", "monday"];
    row: &["\x13http://example.com/", "\0", "\x01", "\x7f"];
}
