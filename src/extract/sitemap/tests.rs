use std::fmt::Write as _;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::*;

fn gathered(content_type: Option<&str>, bytes: &[u8]) -> (Vec<(EntryKind, String)>, Summary) {
    let mut found = Vec::new();
    let summary = read(content_type.map(str::as_bytes), bytes, &mut |entry| {
        found.push((entry.kind, entry.loc.to_owned()));
    });
    (found, summary)
}

fn pages(text: &str) -> Vec<String> {
    locs(text, EntryKind::Page)
}

fn locs(text: &str, kind: EntryKind) -> Vec<String> {
    let (found, _) = gathered(None, text.as_bytes());
    found
        .into_iter()
        .filter(|(found, _)| *found == kind)
        .map(|(_, loc)| loc)
        .collect()
}

fn urlset(inner: &str) -> String {
    format!("<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{inner}</urlset>")
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn entries_come_with_all_that_is_said_of_them() {
    let text = urlset(
        "<url><loc>http://a.test/1</loc><lastmod>2026-06-01</lastmod><changefreq>daily</changefreq>\
         <priority>0.8</priority></url><url><loc>http://a.test/2</loc><lastmod>soon</lastmod><priority>7</priority></url>",
    );
    let mut seen = Vec::new();
    let summary = read(None, text.as_bytes(), &mut |entry| {
        seen.push((
            entry.loc.to_owned(),
            entry.lastmod.map(NonZeroU32::get),
            entry.changefreq.map(str::to_owned),
            entry.priority,
        ));
    });
    assert_eq!(
        seen,
        [
            (
                "http://a.test/1".to_owned(),
                Some(1_780_272_000),
                Some("daily".to_owned()),
                Some(0.8)
            ),
            ("http://a.test/2".to_owned(), None, None, None)
        ]
    );
    assert_eq!((summary.form, summary.entries), (Some(Form::UrlSet), 2));
}

#[test]
fn broken_markup_costs_as_little_as_can_be() {
    for (text, expected) in [
        // names: prefixes, case, no root, a root twice
        (
            "<s:urlset xmlns:s='x'><s:url><s:loc>http://a/1</s:loc></s:url></s:urlset>",
            &["http://a/1"][..],
        ),
        ("<UrlSet><URL><Loc>http://a/1</LOC></url></urlset>", &["http://a/1"]),
        (
            "<url><loc>http://a/1</loc></url><url><loc>http://a/2</loc></url>",
            &["http://a/1", "http://a/2"],
        ),
        (
            "<urlset><urlset><url><loc>http://a/1</loc></url></urlset></urlset>",
            &["http://a/1"],
        ),
        // elements that are not closed, or not opened
        (
            "<urlset><url><loc>http://a/1<url><loc>http://a/2</url></urlset>",
            &["http://a/1", "http://a/2"],
        ),
        (
            "<urlset><url><loc>http://a/1</loc><loc>http://a/2</loc></url>",
            &["http://a/1", "http://a/2"],
        ),
        (
            "<urlset><loc>http://a/1</loc></url><loc>http://a/2</loc></url></urlset>",
            &["http://a/1", "http://a/2"],
        ),
        ("<urlset><url <loc>http://a/1</loc></url></urlset>", &["http://a/1"]),
        (
            "<urlset><url a=\"x><loc>http://a/1</loc></url></urlset>",
            &["http://a/1"],
        ),
        (
            "<urlset><url><loc/><lastmod>2026</lastmod></url><url><loc>http://a/2</loc></url></urlset>",
            &["http://a/2"],
        ),
        (
            "<urlset><url><loc><lastmod>2026</lastmod></url><url><loc>http://a/2</loc></url></urlset>",
            &["http://a/2"],
        ),
        // addresses in odd places
        (
            "<urlset><url><loc><url>http://a/1</url></loc></url></urlset>",
            &["http://a/1"],
        ),
        (
            "<urlset><url><loc><b>http://a/1</b></loc></url></urlset>",
            &["http://a/1"],
        ),
        (
            "<urlset><url> http://a/1 </url><url>text</url></urlset>",
            &["http://a/1"],
        ),
        // text
        (
            "<urlset><url><loc>\u{a0}\n http://a/1\u{200b} </loc></url></urlset>",
            &["http://a/1"],
        ),
        (
            "<urlset><url><loc>http://a/?x=1&y=2</loc></url></urlset>",
            &["http://a/?x=1&y=2"],
        ),
        (
            "<urlset><url><loc>http://a/<![CDATA[?x=1&amp;y=2]]>&amp;z</loc></url></urlset>",
            &["http://a/?x=1&amp;y=2&z"],
        ),
        (
            "<urlset><url><loc>http://a/<!-- <loc> -->1<?x <loc>?></loc></url></urlset>",
            &["http://a/1"],
        ),
        ("<urlset><url><loc>/1</loc></url></urlset>", &["/1"]),
        // ends early
        ("<urlset><url><loc>http://a/1</loc><lastm", &["http://a/1"]),
        (
            "<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/2",
            &["http://a/1"],
        ),
        ("<urlset><url><loc>http://a/1</loc><n:news><n:title>x", &[]),
        // before the markup
        (
            "\u{feff}\n\n <?xml version='1.0'?><urlset><url><loc>http://a/1</loc></url></urlset>",
            &["http://a/1"],
        ),
        (
            "Warning: x in y\n<?xml version='1.0'?><urlset><url><loc>http://a/1</loc></url></urlset>",
            &["http://a/1"],
        ),
        (
            "<!-- made by hand --><urlset><url><loc>http://a/1</loc></url></urlset>",
            &["http://a/1"],
        ),
    ] {
        assert_eq!(pages(text), expected, "{text}");
    }
}

#[test]
fn an_index_names_sitemaps() {
    let text = "<sitemapindex><sitemap><loc>http://a/1.xml</loc></sitemap><sitemap>http://a/2.xml</sitemap>\
                <sitemap><loc>http://a/3.xml</loc><loc>http://a/4.xml</loc></sitemap></sitemapindex>";
    assert_eq!(
        locs(text, EntryKind::Sitemap),
        ["http://a/1.xml", "http://a/2.xml", "http://a/3.xml", "http://a/4.xml"]
    );
}

#[test]
fn pictures_films_and_languages_are_apart() {
    let text = urlset(
        "<url><loc>http://a/1</loc><i:image><i:loc>http://a/i.png</i:loc><i:title>x</i:title></i:image>\
         <v:video><v:thumbnail_loc>http://a/t.jpg</v:thumbnail_loc><v:player_loc>http://a/player</v:player_loc></v:video>\
         <xhtml:link rel='alternate' hreflang='de' href='http://a/de?x=1&amp;y'/></url>\
         <url><image:loc>http://a/j.png</image:loc><loc>http://a/2</loc></url>",
    );
    let (found, summary) = gathered(None, format!("<?xml-stylesheet href='/s.xsl'?>{text}").as_bytes());
    let expected = [
        (EntryKind::Style, "/s.xsl"),
        (EntryKind::Media, "http://a/i.png"),
        (EntryKind::Media, "http://a/t.jpg"),
        (EntryKind::Alternate, "http://a/de?x=1&y"),
        (EntryKind::Page, "http://a/1"),
        (EntryKind::Media, "http://a/j.png"),
        (EntryKind::Page, "http://a/2"),
    ];
    assert_eq!(found, expected.map(|(kind, loc)| (kind, loc.to_owned())));
    assert_eq!((summary.entries, summary.extras), (2, 5));
}

#[test]
fn feeds_are_read() {
    let rss = "<rss version='2.0'><channel><link>http://a/</link><atom:link rel='self' href='http://a/feed'/>\
               <atom:link rel='next' href='http://a/feed?2'/><image><url>http://a/logo.png</url><link>http://a/</link></image>\
               <item><link>http://a/1</link><pubDate>Mon, 01 Jun 2026 12:00:00 GMT</pubDate>\
               <enclosure url='http://a/1.mp3'/></item><item><guid>http://a/2</guid></item>\
               <item><guid isPermaLink='false'>7</guid></item></channel></rss>";
    let expected = [
        (EntryKind::Home, "http://a/"),
        (EntryKind::Next, "http://a/feed?2"),
        (EntryKind::Media, "http://a/logo.png"),
        (EntryKind::Media, "http://a/1.mp3"),
        (EntryKind::Page, "http://a/1"),
        (EntryKind::Page, "http://a/2"),
    ];
    let found: Vec<_> = gathered(None, rss.as_bytes()).0;
    let found: Vec<_> = found
        .iter()
        .map(|(kind, loc)| (*kind, loc.as_str()))
        .filter(|(_, loc)| !loc.is_empty())
        .collect();
    // the picture's own link is the feed's home once more
    assert_eq!(found, expected);

    let rdf = "<rdf:RDF><channel><link>http://a/</link></channel><item rdf:about='x'><link>http://a/1</link>\
               <dc:date>2026-06-01</dc:date></item></rdf:RDF>";
    assert_eq!(pages(rdf), ["http://a/1"]);

    let atom = "<feed xml:base='http://a/b/'><link href='http://a/'/><link rel='self' href='http://a/feed'/><entry>\
                <link rel='edit' href='http://a/edit'/><link rel='alternate' href='1'/><link rel='enclosure' href='1.ogg'/>\
                <published>2025-01-01</published><updated>2026-06-01T12:00:00Z</updated></entry>\
                <entry><issued>2026-06-01T12:00:00Z</issued><link rel='alternate' href='2'/></entry></feed>";
    let mut dates = Vec::new();
    let summary = read(None, atom.as_bytes(), &mut |entry| {
        if entry.kind == EntryKind::Page {
            dates.push((entry.loc.to_owned(), entry.lastmod.map(NonZeroU32::get)));
        }
    });
    let noon = Some(1_780_315_200);
    assert_eq!(dates, [("1".to_owned(), noon), ("2".to_owned(), noon)]);
    assert_eq!(
        (summary.form, summary.base.as_deref()),
        (Some(Form::Atom), Some("http://a/b/"))
    );
}

#[test]
fn text_is_one_address_a_line() {
    let (found, summary) = gathered(
        None,
        b"\xef\xbb\xbfhttp://a/1\r\n\r\n  HTTPS://a/2 \nnot one\rhttp://a/3",
    );
    let found: Vec<_> = found.into_iter().map(|(_, loc)| loc).collect();
    assert_eq!(found, ["http://a/1", "HTTPS://a/2", "http://a/3"]);
    assert_eq!((summary.form, summary.other_lines), (Some(Form::Text), 1));
}

#[test]
fn what_is_no_sitemap_gives_nothing_and_says_so() {
    for bytes in [
        &b""[..],
        b"  \n",
        b"not found",
        b"<!DOCTYPE html><html><head><link rel=alternate href=x></head><body><url><loc>http://a/</loc></url>",
        b"<svg><image href='x'/></svg>",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR<x>",
        b"\x1f\x8b\x08 no gzip at all",
        b"{\"url\": \"http://a/\"}",
    ] {
        let (found, summary) = gathered(None, bytes);
        assert_eq!(
            (found, summary.form),
            (Vec::new(), None),
            "{}",
            String::from_utf8_lossy(bytes)
        );
    }
    let mut late = "x\n".repeat(100_000);
    late.push_str("http://a/");
    assert_eq!(pages(&late), [""; 0]);
}

#[test]
fn entities_are_never_expanded() {
    let mut bomb = String::from("<!DOCTYPE u [<!-- ' --><!ENTITY e0 \"ha\">");
    for n in 1..40 {
        let _ = write!(bomb, "<!ENTITY e{n} \"{}\">", format!("&e{};", n - 1).repeat(10));
    }
    bomb.push_str("<!ENTITY f SYSTEM 'file:///etc/passwd'><!ENTITY % p SYSTEM 'http://a/p'> %p; ]>");
    bomb.push_str(
        "<urlset><url><loc>http://a/1</loc></url><url><loc>http://a/&e39;</loc></url>\
                   <url><loc>http://a/&f;</loc></url><url><loc>http://a/?a&amp;b</loc></url></urlset>",
    );
    let (found, summary) = gathered(None, bomb.as_bytes());
    let found: Vec<_> = found.into_iter().map(|(_, loc)| loc).collect();
    assert_eq!(found, ["http://a/1", "http://a/", "http://a/?a&b"]);
    assert_eq!(summary.unusable, 1);
}

#[test]
fn what_came_before_a_fault_of_gzip_counts_however_the_file_is_cut_into_pieces() {
    let lines: Vec<String> = (0..40).map(|n| format!("http://a.test/{n}/{}\n", n * n % 97)).collect();
    let lines = lines.concat();
    // of a page nothing is of use, so that no fault of it is seen either
    for text in [lines.clone(), format!("<html>{lines}")] {
        let whole = packed(text.as_bytes());
        for fault in (60..whole.len() - 8).step_by(3) {
            let mut file = whole.clone();
            if fault % 2 == 0 {
                file.truncate(fault);
            }
            for byte in file.iter_mut().skip(fault).take(4) {
                *byte ^= 0x5a;
            }
            let at_once = gathered(None, &file);
            assert_eq!(at_once.0.is_empty(), text.starts_with('<'), "{fault}");
            let mut reader = Reader::new(None);
            let mut found = Vec::new();
            let mut each = |entry: Entry<'_>| found.push((entry.kind, entry.loc.to_owned()));
            for byte in &file {
                reader.feed(&[*byte], &mut each);
            }
            let summary = reader.finish(&mut each);
            assert_eq!((found, summary), at_once, "{fault}");
        }
    }
}

#[test]
fn gzip_is_told_by_the_content_and_undone_twice() {
    let text = urlset("<url><loc>http://a/1</loc></url>");
    let once = packed(text.as_bytes());
    let mut two_members = packed(&text.as_bytes()[..50]);
    two_members.extend(packed(&text.as_bytes()[50..]));
    for bytes in [&once, &packed(&once), &two_members] {
        let (found, summary) = gathered(Some("text/xml"), bytes);
        assert_eq!((found.len(), summary.broken), (1, false));
    }
    assert_eq!(
        gathered(None, &packed(&packed(&once))).1.form,
        None,
        "three times is too often"
    );
    // cut, or with a tail: what came before counts
    let (mut long, mut tail) = (String::new(), once.clone());
    for n in 0..2_000 {
        let _ = write!(long, "<url><loc>http://a/{n}</loc></url>");
    }
    let cut = packed(urlset(&long).as_bytes());
    let (found, summary) = gathered(None, &cut[..cut.len() / 2]);
    assert!(found.len() > 100 && found.len() < 2_000 && summary.broken);
    tail.extend(b"garbage");
    assert_eq!(gathered(None, &tail).0.len(), 1);
}

#[test]
fn other_encodings_are_read() {
    let declared = b"<?xml version='1.0' encoding='ISO-8859-1'?><urlset><url><loc>http://a/\xe9</loc></url></urlset>";
    assert_eq!(gathered(None, declared).0[0].1, "http://a/é");
    let russian = b"<urlset><url><loc>http://a/\xef</loc></url></urlset>";
    assert_eq!(
        gathered(Some("text/xml; charset=windows-1251"), russian).0[0].1,
        "http://a/п"
    );
    let text = urlset("<url><loc>http://a/ы</loc></url>");
    for (mark, wide) in [
        (&[0xff, 0xfe][..], u16::to_le_bytes as fn(u16) -> [u8; 2]),
        (&[0xfe, 0xff], u16::to_be_bytes),
        (&[], u16::to_le_bytes),
    ] {
        let mut bytes = mark.to_vec();
        bytes.extend(text.encode_utf16().flat_map(wide));
        assert_eq!(gathered(None, &bytes).0[0].1, "http://a/ы");
    }
    let broken = b"<urlset><url><loc>http://a/\xff</loc></url></urlset>";
    assert_eq!(gathered(None, broken).0[0].1, "http://a/\u{fffd}");
}

#[test]
fn the_bounds_of_a_file_are_kept() {
    let mut text = String::from("<urlset>");
    for n in 0..=MAX_ENTRIES {
        let _ = write!(text, "<url><loc>http://a/{n}</loc></url>");
    }
    for _ in 0..=MAX_EXTRAS {
        text.push_str("<image:loc>http://a/i</image:loc>");
    }
    let (found, summary) = gathered(None, text.as_bytes());
    assert_eq!(found.len() as u64, MAX_ENTRIES + MAX_EXTRAS);
    assert_eq!(
        (summary.entries, summary.extras, summary.dropped),
        (MAX_ENTRIES, MAX_EXTRAS, 2)
    );

    let long = urlset(&format!(
        "<url><loc>http://a/{}</loc></url><url><loc>http://a/1</loc></url>",
        "x".repeat(100_000)
    ));
    let (found, summary) = gathered(None, long.as_bytes());
    assert_eq!((found.len(), summary.unusable), (1, 1));

    // a tag without end is text
    let endless = format!(
        "<urlset><url {}><loc>http://a/1</loc></url></urlset>",
        "x".repeat(100_000)
    );
    assert_eq!(pages(&endless), ["http://a/1"]);
}

/// Fifty megabytes, and a bomb that unpacks to more than is read.
#[test]
fn a_large_file_streams_through_a_small_room_and_a_bomb_is_cut() {
    let filler = " ".repeat(64 << 10);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(b"<urlset><url><loc>http://a/1</loc></url>").unwrap();
    for _ in 0..=MAX_BYTES / filler.len() as u64 {
        encoder.write_all(filler.as_bytes()).unwrap();
    }
    encoder.write_all(b"<url><loc>http://a/2</loc></url>").unwrap();
    let bomb = encoder.finish().unwrap();
    let (found, summary) = gathered(None, &bomb);
    assert_eq!((found.len(), summary.too_large), (1, true));

    let mut reader = Reader::new(None);
    let mut read = 0;
    let entry = format!("<url><loc>http://a.test/{}</loc>{filler}</url>", "p".repeat(900));
    reader.feed(b"<urlset>", &mut |_| {});
    while reader.feed(entry.as_bytes(), &mut |_| {}) {
        read += entry.len() as u64;
        if let Body::Xml(parts) = &reader.body {
            assert!(parts.0.held() < 64 << 10, "what waits is small");
        }
    }
    assert!(read > MAX_BYTES - 2 * entry.len() as u64);
}

#[test]
fn the_newest_come_first_and_what_has_no_date_stays_in_order() {
    let text = urlset(
        "<url><loc>/a</loc></url><url><loc>/b</loc><lastmod>2020</lastmod><image:loc>/i</image:loc></url>\
         <url><loc>/c</loc><lastmod>2024</lastmod></url><url><loc>/d</loc></url><url><loc>/e</loc><lastmod>2024</lastmod></url>",
    );
    let mut gather = Gather::new(None, false);
    gather.feed(text.as_bytes());
    let mut links = Links::default();
    gather.finish(&mut links);
    let raw: Vec<_> = links.links.iter().map(|link| link.raw.as_ref()).collect();
    assert_eq!(raw, ["/c", "/e", "/b", "/a", "/d", "/i"]);
}

/// Pieces of sitemaps, whole and broken, in any order.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let word = prop::sample::select(vec![
        "<urlset>",
        "</urlset>",
        "<sitemapindex>",
        "<sitemap>",
        "</sitemap>",
        "<url>",
        "</url>",
        "<url",
        "<loc>",
        "</loc>",
        "<loc/>",
        "http://a/",
        "https://b/x?y&z",
        "&amp;",
        "&#x26;",
        "&e;",
        "&",
        ";",
        "<![CDATA[",
        "]]>",
        "]",
        "<!--",
        "-->",
        "--",
        "<?xml version='1.0' encoding='windows-1251'?>",
        "<?xml-stylesheet href='s'?>",
        "<?",
        "?>",
        "<!DOCTYPE u [",
        "<!ENTITY e 'x'>",
        "<!ENTITY f SYSTEM \"y\">",
        "]>",
        "<image:image>",
        "</image:image>",
        "<image:loc>",
        "<rss>",
        "<item>",
        "</item>",
        "<link>",
        "</link>",
        "<feed>",
        "<entry>",
        "<link href='u'/>",
        "<lastmod>2026-01-01</lastmod>",
        "\n",
        " ",
        "\u{feff}",
        "é",
        "€",
        "<",
        ">",
        "\"",
        "'",
        "=",
        "x",
        "\0",
    ]);
    let piece = prop_oneof![
        12 => word.prop_map(|word| word.as_bytes().to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
        1 => (0..5_000_usize).prop_map(|n| vec![b'x'; n]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_gives_the_same(bytes in soup(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
                                pack in any::<bool>()) {
        let bytes = if pack { packed(&bytes) } else { bytes };
        let whole = gathered(None, &bytes);
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        at.sort_unstable();
        let mut reader = Reader::new(None);
        let mut found = Vec::new();
        let mut last = 0;
        for cut in at.into_iter().chain([bytes.len()]) {
            reader.feed(&bytes[last..cut], &mut |entry| found.push((entry.kind, entry.loc.to_owned())));
            last = cut;
        }
        let summary = reader.finish(&mut |entry| found.push((entry.kind, entry.loc.to_owned())));
        prop_assert_eq!((found, summary), whole);
    }

    #[test]
    fn byte_by_byte_gives_the_same(bytes in soup()) {
        let whole = gathered(None, &bytes);
        let mut reader = Reader::new(None);
        let mut found = Vec::new();
        for byte in &bytes {
            reader.feed(&[*byte], &mut |entry| found.push((entry.kind, entry.loc.to_owned())));
        }
        let summary = reader.finish(&mut |entry| found.push((entry.kind, entry.loc.to_owned())));
        prop_assert_eq!((found, summary), whole);
    }

    #[test]
    fn any_bytes_are_data(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let (found, summary) = gathered(None, &bytes);
        prop_assert!(found.len() as u64 == summary.entries + summary.extras);
    }

    #[test]
    fn entries_written_are_read(numbers in prop::collection::vec((any::<u32>(), 1_u32..4_000_000_000), 0..50)) {
        let mut text = String::new();
        for (n, time) in &numbers {
            let lastmod = crate::clock::Time(u64::from(*time) * 1_000_000).rfc3339(0);
            let _ = write!(text, "<url>\n<loc>http://a/?x=1&amp;n={n}</loc><lastmod>{lastmod}</lastmod></url>");
        }
        let mut found = Vec::new();
        read(None, urlset(&text).as_bytes(), &mut |entry| {
            let n: u32 = entry.loc.strip_prefix("http://a/?x=1&n=").unwrap().parse().unwrap();
            found.push((n, entry.lastmod.unwrap().get()));
        });
        prop_assert_eq!(found, numbers);
    }
}
