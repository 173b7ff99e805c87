//! What strangers' bytes must never do: one function an entrance, each of which takes any bytes and asserts what must
//! hold of them. `cargo fuzz run NAME` drives them by coverage; `tests/it/fuzz.rs` by chance in `cargo test`.

use std::borrow::Cow;
use std::path::Path;
use std::sync::OnceLock;

use crawler::archive::{member, read};
use crawler::clock::Time;
use crawler::config::load::load_text;
use crawler::cookies::{Jar, MAX_HEADER_BYTES, txt};
use crawler::extract::directives::Directives;
use crawler::extract::{self, charset, css, headers, mime, sitemap, srcset};
use crawler::fetch::decode;
use crawler::fetch::http::h1;
use crawler::frontier::Item;
use crawler::hash::{Fingerprint, HashKey};
use crawler::politeness;
use crawler::robots::{MAX_ROBOTS_BYTES, Robots};
use crawler::seen::{self, Kind, snapshot};
use crawler::traps::host::{Fed, HostTraps};
use crawler::traps::kin::{Kin, Lineage};
use crawler::traps::{self, Content, Policy, Shape};
use crawler::url::{Base, CrawlUrl, Identity, MAX_URL_BYTES, surt, to_ascii};

/// Cap on decoded bytes in [`decode`]: small, so that it is reached.
const DECODED: usize = 64 << 10;

/// Splits at the first byte of `data` that is `at`; what is missing is empty.
fn split(data: &[u8], at: u8) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == at) {
        Some(place) => (&data[..place], &data[place + 1..]),
        None => (data, &[]),
    }
}

fn text(data: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(data)
}

/// A path on the first line, a robots.txt behind it.
pub fn robots(data: &[u8]) {
    let (path, file) = split(data, b'\n');
    let path = format!("/{}", text(path));
    let rules = Robots::parse(file, "crawler");
    assert!(rules.allows("/robots.txt"), "a robots.txt forbids itself");
    let allowed = rules.allows(&path);
    match rules.deciding_line(&path) {
        Some((number, line)) => {
            assert!(number >= 1);
            assert!(
                file.windows(line.len().max(1)).any(|part| part == line.as_bytes())
                    || line.is_empty()
                    || std::str::from_utf8(file).is_err()
                    || line.contains('\u{fffd}'),
                "a line that is not in the file: {line:?}"
            );
        }
        None => assert!(allowed, "forbidden by no line: {path:?}"),
    }
    let kept = MAX_ROBOTS_BYTES.min(file.len());
    assert!(
        rules.memory_bytes() <= 4_096 + 64 * kept,
        "rules larger than their file"
    );
    assert_eq!(Robots::parse(file, "crawler").allows(&path), allowed);
}

/// The codings on the first line, a body behind it.
pub fn decode(data: &[u8]) {
    let (codings, body) = split(data, b'\n');
    let Some(decoded) = decode::small(&[codings], body, DECODED as u64) else {
        assert!(body.len() > decode::SMALL, "the cap is below what is small");
        return;
    };
    assert!(decoded.bytes.len() <= DECODED, "the cap is passed");
    if codings.is_empty() && body.len() <= DECODED {
        assert_eq!((&*decoded.bytes, decoded.fault), (body, None));
    }
}

/// A base on the first line, a link behind it.
pub fn normalize(data: &[u8]) {
    let (base, link) = split(data, b'\n');
    let (base, link) = (text(base), text(link));
    let identity = Identity::default();
    let _ = to_ascii(&link);
    if let Ok(url) = CrawlUrl::parse(&base, &identity) {
        stable(&url, &identity);
        if let Ok(url) = CrawlUrl::join(&Base::of(&url, None), &link, &identity) {
            stable(&url, &identity);
        }
        if let Ok(url) = CrawlUrl::join(&Base::of(&url, Some(&link)), &base, &identity) {
            stable(&url, &identity);
        }
    }
}

fn stable(url: &CrawlUrl, identity: &Identity) {
    assert!(url.href().len() <= MAX_URL_BYTES);
    assert!(url.href().is_ascii() && url.canonical().is_ascii(), "{url:?}");
    let again = CrawlUrl::parse(url.href(), identity).unwrap_or_else(|reject| panic!("{}: {reject}", url.href()));
    assert_eq!(&again, url, "a second pass changes the address");
    if let Ok(canonical) = CrawlUrl::parse(url.canonical(), identity) {
        assert_eq!(
            canonical.canonical(),
            url.canonical(),
            "a second pass changes the identity"
        );
    }
    assert!(url.href().contains(url.host()));
    assert!(url.path_and_query().starts_with('/'));
    assert!(!surt::surt(url.href()).is_empty());
}

fn links(content_type: &str, body: &[u8]) {
    let mut scratch = String::new();
    let wanted = extract::Wanted {
        speculative: true,
        ..extract::Wanted::default()
    };
    let links = extract::extract_for(wanted, 200, Some(content_type.as_bytes()), &[], body, &mut scratch);
    assert!(links.links.len() <= extract::MAX_LINKS_PER_PAGE);
    let Ok(page) = CrawlUrl::parse("http://example.com/a/b?c", &Identity::default()) else {
        return;
    };
    let base = Base::in_page(&page, links.base.as_deref(), links.encoding);
    for link in links.links.iter().take(1_000) {
        let _ = CrawlUrl::join(&base, &link.raw, &Identity::default());
    }
}

/// A page of HTML; if it begins with `<?`, of XML.
pub fn html(data: &[u8]) {
    let kind = if data.starts_with(b"<?") {
        "application/xhtml+xml"
    } else {
        "text/html"
    };
    links(kind, data);
}

/// A style sheet.
pub fn css(data: &[u8]) {
    links("text/css", data);
    let sheet = text(data);
    for place in [css::Place::Sheet, css::Place::Attribute] {
        css::scan(&sheet, place, |_, url| assert!(url.len() <= 4 * data.len() + 4));
    }
}

/// A `srcset`.
pub fn srcset(data: &[u8]) {
    let value = text(data);
    srcset::scan(&value, |url| {
        assert!(
            !url.is_empty() && !url.contains(|c: char| c.is_ascii_whitespace()),
            "{url:?}"
        );
    });
}

/// JSON of every kind: data, a manifest, a feed, and data inside a page.
pub fn json(data: &[u8]) {
    for kind in ["application/json", "application/manifest+json", "application/feed+json"] {
        links(kind, data);
    }
    let page = [
        b"<script type=application/ld+json>".as_slice(),
        data,
        b"</script><script type=importmap>",
        data,
    ]
    .concat();
    links("text/html", &page);
}

/// A playlist, of HLS or DASH.
pub fn playlist(data: &[u8]) {
    links("application/vnd.apple.mpegurl", data);
    links("application/dash+xml", data);
}

/// A PDF.
pub fn pdf(data: &[u8]) {
    links("application/pdf", data);
}

/// Text in which addresses are guessed: a script, a list.
pub fn guesses(data: &[u8]) {
    links("text/javascript", data);
    links("text/plain", data);
}

/// A sitemap or feed, packed or not; it must be the same in two pieces.
pub fn sitemap(data: &[u8]) {
    let mut whole = Vec::new();
    let summary = sitemap::read(None, data, &mut |entry| whole.push((entry.kind, entry.loc.to_owned())));
    assert_eq!(summary.entries + summary.extras, whole.len() as u64);
    let mut pieces = Vec::new();
    let mut reader = sitemap::Reader::new(None);
    let (first, second) = data.split_at(data.len() / 2);
    for piece in [first, second] {
        reader.feed(piece, &mut |entry| pieces.push((entry.kind, entry.loc.to_owned())));
    }
    let again = reader.finish(&mut |entry| pieces.push((entry.kind, entry.loc.to_owned())));
    assert_eq!((summary, whole), (again, pieces));
}

/// A header's value.
pub fn headers(data: &[u8]) {
    let value = text(data);
    for link in headers::link_header(&value) {
        assert!(value.contains(link.target));
    }
    let _ = headers::refresh(&value);
    let said = Directives::of(&value, "crawler");
    let lower = value.to_ascii_lowercase();
    assert!(!said.noindex || lower.contains("noindex") || lower.contains("none"));
    assert!(!said.nofollow || lower.contains("nofollow") || lower.contains("none"));
    let _ = politeness::http_date(&value);
    let _ = politeness::retry_after(data, Time(1_800_000_000_000_000));
}

/// A `Content-Type` on the first line, a body behind it.
pub fn charset(data: &[u8]) {
    let (kind, body) = split(data, b'\n');
    let (encoding, decoded) = charset::decode(Some(kind), body);
    assert!(decoded.len() <= 3 * body.len());
    assert_eq!(charset::encoding(Some(kind), body), encoding);
    let (_, decoded) = charset::decode_css(Some(kind), body);
    assert!(decoded.len() <= 3 * body.len());
}

/// A `Content-Type` on the first line, a body behind it.
pub fn mime(data: &[u8]) {
    let (kind, body) = split(data, b'\n');
    if let Some(parsed) = mime::parse(kind) {
        assert!(parsed.essence.contains('/'));
    }
    assert!(mime::sniff(Some(kind), body).contains('/'));
    assert!(mime::sniff(None, body).contains('/'));
}

/// Byte 0: 0 is a `.warc.gz`, anything else one whose only member holds the rest.
pub fn warc(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    if *first == 0 {
        walk(rest);
    } else {
        walk(&member::stored(&[rest]));
    }
}

fn walk(data: &[u8]) {
    let mut end = 0;
    for record in read::members(data, 1 << 16) {
        match record {
            Ok(record) => {
                assert_eq!(record.offset, end, "members overlap or leave a gap");
                end = record.offset + record.length;
                assert!(end <= data.len() as u64);
                assert!(record.block.len() as u64 <= record.block_length);
                assert!(record.payload_length <= record.block_length);
                let _ = (record.wrong_digests(), record.http_head(), record.payload());
            }
            Err(damage) => assert_eq!(damage.offset, end, "damage elsewhere"),
        }
    }
}

/// Byte 0: 0 is a filter file, anything else a sound one with changes: three bytes each of place and new value.
pub fn snapshot(data: &[u8]) {
    static SOUND: OnceLock<Vec<u8>> = OnceLock::new();
    let key = HashKey([5; 16]);
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    if *first == 0 {
        let _ = snapshot::restore(rest, Some(&key));
        return;
    }
    let sound = SOUND.get_or_init(|| sound(key));
    let mut file = sound.clone();
    for change in rest.chunks_exact(3) {
        let place = usize::from(change[0]) << 8 | usize::from(change[1]);
        let place = place * 7 % file.len();
        file[place] = change[2];
    }
    let changed = file != *sound;
    match snapshot::restore(file.as_slice(), Some(&key)) {
        Ok((_, restored)) => assert!(!changed || !restored.damaged.is_empty(), "a change goes unnoticed"),
        Err(_) => assert!(changed, "a sound file is refused"),
    }
}

fn sound(key: HashKey) -> Vec<u8> {
    let mut set = seen::make(Kind::Bloom, key, 2_000, 0.01).expect("a small filter");
    let keys: Vec<Fingerprint> = (1..1_500_u64)
        .map(|n| Fingerprint {
            high: n.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            low: n.wrapping_mul(0xBF58_476D_1CE4_E5B9),
        })
        .collect();
    set.insert_batch(&keys, &mut Vec::new());
    let (mut writer, mut file) = snapshot::Writer::begin(&set.shape(), 0, 1).expect("a header");
    let mut chunk = Vec::new();
    for index in 0..set.chunks() {
        set.copy_chunk(index, &mut chunk);
        writer.chunk(&mut chunk).expect("a chunk");
        file.extend_from_slice(&chunk);
    }
    file.extend_from_slice(&writer.finish(1_499, &set.sample()).expect("a tail"));
    file
}

/// A crawler.toml.
pub fn config(data: &[u8]) {
    if let Err(error) = load_text(Path::new("crawler.toml"), &text(data)) {
        assert!(
            error.to_string().contains("crawler.toml"),
            "a complaint without its place: {error}"
        );
    }
}

/// A stored row of the queue.
pub fn row(data: &[u8]) {
    if let Ok(item) = Item::from_row(data, &Identity::default()) {
        let again = Item::from_row(&item.to_row(), &Identity::default());
        assert_eq!(again.map(|item| item.to_row()), Ok(item.to_row()));
    }
}

/// What came on an HTTP/1.1 connection.
pub fn answers(data: &[u8]) {
    let (found, rest) = h1::answers(data, DECODED);
    let mut heads = 0;
    for answer in &found {
        assert!((100..1_000).contains(&answer.status));
        assert!(answer.body.len() <= DECODED, "the cap is passed");
        assert!(answer.head.len() <= h1::MAX_HEAD_BYTES && answer.headers.len() <= h1::MAX_HEAD_BYTES / 3);
        assert!(answer.head.is_empty() || data.windows(answer.head.len()).any(|part| part == answer.head));
        heads += answer.head.len();
    }
    assert!(heads <= data.len(), "heads out of nothing");
    assert!(rest.is_none() || !data.is_empty());
}

/// An address on the first line; behind it `Set-Cookie` headers, one a line, which are also read as a cookies.txt.
pub fn cookies(data: &[u8]) {
    const NOW: Time = Time(1_800_000_000_000_000);
    let (address, rest) = split(data, b'\n');
    let rest = text(rest);
    if let Ok(imported) = txt::parse(&rest) {
        let given = imported.cookies.len();
        let mut jar = Jar::default();
        jar.import(imported.cookies, NOW);
        assert!(jar.len() <= given);
    }
    let Ok(url) = CrawlUrl::parse(&text(address), &Identity::default()) else {
        return;
    };
    let lines: Vec<String> = rest.split('\n').map(ToOwned::to_owned).collect();
    let (mut jar, mut again) = (Jar::default(), Jar::default());
    for (site, row) in jar.receive(&url, &lines, NOW) {
        if let Some(row) = row {
            again.load(&site, &row).expect("a row that was just made");
        }
    }
    assert!(jar.len() <= lines.len());
    let header = jar.header(&url, NOW);
    assert_eq!(header, again.header(&url, NOW), "a restart changes what is sent");
    if let Some(header) = header {
        assert!(header.len() <= MAX_HEADER_BYTES);
        let breaks = |c: char| matches!(c, '\r' | '\n' | '\0');
        assert!(!header.contains(breaks), "a cookie that ends the header: {header:?}");
    }
}

/// An address on the first line, a page behind it.
pub fn traps(data: &[u8]) {
    let (address, body) = split(data, b'\n');
    let Ok(url) = CrawlUrl::parse(&text(address), &Identity::default()) else {
        return;
    };
    let shape = Shape::of(&url);
    let _ = (
        Shape::text(&url),
        shape.is_date(),
        traps::address::rule(url.path_and_query()),
    );
    let kin = Kin::of((&url, &shape), (&url, &shape));
    let content = Content::of(body, &url);
    assert_eq!(Content::of(body, &url), content);
    let mut host = HostTraps::new(Policy::default());
    for _ in 0..20 {
        let sameness = host.read(content);
        let mut fed = Fed::default();
        fed.count(kin);
        host.learn(&shape, Lineage::default(), sameness, fed);
        host.admit(&url, &shape, Lineage::default());
        if let Some(row) = host.row_if_due() {
            assert!(HostTraps::from_row(&row, Policy::default()).is_some());
        }
    }
    let _ = HostTraps::from_row(body, Policy::default());
}
