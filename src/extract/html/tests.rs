//! The scanner on small pages, against what the HTML Standard says of each; and on hostile ones.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::script::MAX_BYTES as MAX_SCRIPT_BYTES;
use super::super::{LinkKind, Links, MAX_LINKS_PER_PAGE};
use super::foreign::MAX_OPEN;
use super::{MAX_SRCDOC_DEPTH, Syntax, depth_limit, links as scan};

fn found(page: &str, syntax: Syntax) -> Vec<(char, String)> {
    let mut links = Links::default();
    scan(page, syntax, &mut links);
    let letter = |kind| match kind {
        LinkKind::Navigation => 'n',
        LinkKind::Requisite => 'q',
        LinkKind::Stylesheet => 's',
        LinkKind::Redirect => 'r',
        LinkKind::Sitemap => 'm',
        LinkKind::Speculative => 'x',
    };
    links
        .links
        .iter()
        .map(|link| (letter(link.kind), link.raw.to_string()))
        .collect()
}

/// The links of a page as "kind address" words, e.g. `nA qB`.
fn html(page: &str) -> String {
    words(found(page, Syntax::Html))
}

fn xml(page: &str) -> String {
    words(found(page, Syntax::Xml))
}

fn words(links: Vec<(char, String)>) -> String {
    links
        .into_iter()
        .map(|(kind, raw)| format!("{kind}{raw}"))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn metadata_names_what_is_shown_and_where_the_page_is() {
    for (page, want) in [
        (
            "<meta property=og:image content=A><meta property=og:video:secure_url content=B><meta name=twitter:player content=C>\
             <meta name=twitter:player:stream content=D><meta property=og:url content=E><meta name=thumbnail content=F>",
            "qA qB qC qD nE qF",
        ),
        (
            "<meta name=msapplication-config content=none><meta name=msapplication-square70x70logo content=A>\
             <meta property=og:title content=B><meta name=description content=C>",
            "qA",
        ),
        (
            "<meta itemprop=image content=A><meta itemprop=contentUrl content=B><meta itemprop=url content=C>\
             <meta itemprop=name content=D>",
            "qA qB nC",
        ),
    ] {
        assert_eq!(html(page), want, "{page}");
    }
}

#[test]
fn pictures_that_scripts_load_later_count_if_they_are_addresses() {
    for (page, want) in [
        (
            "<img data-src=A data-hi-res-src=B data-orig-file=C data-large-file=D data-zoom-image=E data-bg-src=F data-bgset='G 1w'>",
            "qA qF qB qC qD qE qG",
        ),
        (
            "<div data-background='a/b.jpg' data-image=/c data-lazy=true data-lazyload=lazy data-thumb='#1'></div>",
            "qa/b.jpg q/c",
        ),
        (
            "<div data-background-image='url(a.png)' data-lazy='{\"a\": 1}'></div>",
            "qa.png",
        ),
        (
            "<div data-background=red data-lazy=0.5 data-thumb=d.webp></div>",
            "qd.webp",
        ),
    ] {
        assert_eq!(html(page), want, "{page}");
    }
}

#[test]
fn data_in_scripts_is_read_by_its_type() {
    for (page, want) in [
        (
            "<script type='application/ld+json'>{\"image\": \"/A\", \"url\": \"/B\"}</script><a href=C>",
            "q/A n/B nC",
        ),
        (
            "<script type=' Application/JSON; charset=utf-8'>{\"logo\": \"/A\"}</script>",
            "q/A",
        ),
        (
            "<script type=importmap>{\"imports\": {\"a\": \"./A.js\"}}</script>",
            "q./A.js",
        ),
        (
            "<script>{\"image\": \"/A\"}</script><script type=text/template><a href=B></script>",
            "",
        ),
        (
            "<svg><script type='application/ld+json'>{\"image\": \"/A\"}</script></svg>",
            "q/A",
        ),
    ] {
        assert_eq!(html(page), want, "{page}");
    }
    assert_eq!(
        xml("<script type='application/ld+json'><![CDATA[{\"image\": \"/A\"}]]></script>"),
        ""
    );
    assert_eq!(
        xml("<script type='application/ld+json'>{\"image\": \"/A\"}</script>"),
        "q/A"
    );
}

#[test]
fn guesses_are_found_if_they_are_wanted() {
    let page = "<a href=A ping='B C'><script>load('/D')</script><script type=module src=E>'/F'</script>\
                <script type=text/x-handlebars>'/G'</script><script type=application/json>[\"http://h/H\"]</script>\
                <style>@namespace url(http://n/);</style><iframe srcdoc=\"<script>'/I'</script>\"></iframe>";
    assert_eq!(html(page), "nA qE");
    let mut links = Links {
        speculative: true,
        ..Links::default()
    };
    scan(page, Syntax::Html, &mut links);
    let found = links
        .links
        .iter()
        .map(|link| format!("{}{}", link.kind.letter(), link.raw));
    let found: Vec<_> = found.collect();
    assert_eq!(found.join(" "), "LA XB XC X/D X/F EE Xhttp://h/H Xhttp://n/ X/I");
}

#[test]
fn scripts_are_looked_through_so_far() {
    let script = |spaces: usize| {
        let page = format!("<script>{}</script><script>'/a'</script>", " ".repeat(spaces));
        let mut links = Links {
            speculative: true,
            ..Links::default()
        };
        scan(&page, Syntax::Html, &mut links);
        links.links.len()
    };
    assert_eq!(script(MAX_SCRIPT_BYTES - 4), 1);
    assert_eq!(script(MAX_SCRIPT_BYTES - 3), 0);
    assert_eq!(script(2 * MAX_SCRIPT_BYTES), 0);
}

#[test]
fn any_vocabulary_of_xml_may_link() {
    assert_eq!(
        xml("<mets:file xlink:href='A'/><text xlink:href='#b'/><?xml-stylesheet href='C'?>"),
        "nA sC"
    );
    assert_eq!(html("<p xlink:href=A><svg><pattern xlink:href=B /></svg>"), "nB");
}

#[test]
fn each_element_has_its_attributes_and_kinds() {
    for (page, want) in [
        ("<a href=A><area href=B><a><a src=C>", "nA nB"),
        (
            "<link rel=stylesheet href=A><link rel=icon href=B><link rel=next href=C><link rel=preconnect href=D>",
            "sA qB nC",
        ),
        (
            "<link rel=preload as=image imagesrcset='A 1x, B 2x' href=C>",
            "qC qA qB",
        ),
        ("<img src=A srcset='B 2x' longdesc=C>", "qA qB nC"),
        (
            "<script src=A></script><iframe src=B longdesc=C></iframe><frame src=D>",
            "qA qB nC qD",
        ),
        (
            "<embed src=A><audio src=B></audio><video src=C poster=D><track src=E><source src=F srcset=G></video>",
            "qA qB qC qD qE qF qG",
        ),
        ("<input type=IMAGE src=A><input src=B>", "qA"),
        ("<object data=A codebase=B></object><applet code=C>", "qA"),
        (
            "<body background=A><table background=B><td background=C><p background=D>",
            "qA qB qC",
        ),
        (
            "<form action=A><form method=GET action=B><form method=post action=C><form method=dialog action=D><form action=' '>",
            "nA nB",
        ),
        (
            "<q cite=A><blockquote cite=B><ins cite=C><del cite=D><p cite=E>",
            "nA nB nC nD",
        ),
        ("<html manifest=A>", "qA"),
        (
            "<meta property=og:image content=A><meta name=twitter:image:src content=B><meta property=og:title content=C>",
            "qA qB",
        ),
        (
            "<meta property='OG:Video:Secure_URL' content=A><meta itemprop=image content=B><meta name=og:imagex content=C>",
            "qA qB",
        ),
        (
            "<p style='background:url(A)'><style>@import 'B';c{d:url(E)}</style>",
            "qA sB qE",
        ),
        (
            "<div data-src=A data-bg='url(B)' data-original=C data-lazy-src=D data-full-src=E data-poster=F>",
            "qA qB qC qD qE qF",
        ),
        (
            "<img data-srcset='A 1x, B 2x' data-lazy-srcset=C data-original-set=D data-src='{json}' data-src-mode=auto>",
            "qA qB qC qD",
        ),
    ] {
        assert_eq!(html(page), want, "{page}");
    }
}

#[test]
fn meta_refresh_and_robots_are_read() {
    assert_eq!(html("<meta http-equiv=Refresh content='0; url=&#39;A&#39;'>"), "rA");
    assert_eq!(html("<META CONTENT='5;URL=A' HTTP-EQUIV='REFRESH'>"), "rA");
    assert_eq!(html("<meta http-equiv=refresh content=5>"), "");
    // a page cut off here still says where to go; no other tag does
    assert_eq!(html("<meta http-equiv=refresh content='5;url=A'"), "rA");
    assert_eq!(html("<meta http-equiv=refresh content='5;url=A"), "");
    assert_eq!(html("<meta http-equiv=refresh content=5;url=A"), "");
    assert_eq!(html("<a href='A'"), "");
    let mut links = Links::default();
    scan(
        "<meta name=ROBOTS content='NoFollow'><meta name=other content=noindex>",
        Syntax::Html,
        &mut links,
    );
    assert_eq!((links.directives.nofollow, links.directives.noindex), (true, false));
    let mut links = Links {
        agent: "ourbot",
        ..Links::default()
    };
    scan(
        "<body><meta name=OurBot content='noindex'><iframe srcdoc='<meta name=robots content=nofollow>'></iframe>",
        Syntax::Html,
        &mut links,
    );
    assert_eq!((links.directives.nofollow, links.directives.noindex), (false, true));
}

#[test]
fn the_first_base_with_an_address_counts() {
    let mut links = Links::default();
    scan(
        "<base target=x><base href=' A '><base href=B>",
        Syntax::Html,
        &mut links,
    );
    assert_eq!(links.base.as_deref(), Some("A"));
}

#[test]
fn attributes_in_every_form() {
    for (page, want) in [
        ("<a href=A?x=1&y=2>", "nA?x=1&y=2"),
        ("<a\n href\n=\n\"A\">", "nA"),
        ("<A HREF='A'>", "nA"),
        ("<a href=A href=B>", "nA"),
        ("<a title='>' href=A>", "nA"),
        ("<a href=A/>", "nA/"),
        ("<a/href=A>", "nA"),
        ("<a href=\"A\"rel=x>", "nA"),
        ("<a =href=A>", ""),
        ("<a href= >", "n"),
        ("<a href=>x", "n"),
        ("<a href>", "n"),
        ("<a / href='A' / >", "nA"),
        ("<a \"href=A>", ""),
        ("<a href=A\"B'C<D>", "nA\"B'C<D"),
        ("<a href='A\0B' hr\0ef=C>", "nA\u{fffd}B"),
        ("<a\0 href=A><a\0>", ""),
        ("<abbr href=A><a-b href=B>", ""),
        ("<a href='A>", ""),
        ("<a href=A", ""),
        ("<a href='x'<a href='y'>", "nx"),
        ("<a x=1 <b href=A>", "nA"),
    ] {
        assert_eq!(html(page), want, "{page}");
    }
}

#[test]
fn what_is_no_tag_is_stepped_over() {
    for (page, want) in [
        ("<!-- <a href=A> --><a href=B>", "nB"),
        ("<!--><a href=A>", "nA"),
        ("<!---><a href=A>", "nA"),
        ("<!-- --!><a href=A>", "nA"),
        ("<!-- <a href=A>", ""),
        ("<!x <a href=A><a href=B>", "nB"),
        ("<?x <a href=A><a href=B>", "nB"),
        ("</ <a href=A><a href=B>", "nB"),
        ("</><a href=A>", "nA"),
        ("</a x='>' <a href=A><a href=B>", "nB"),
        ("<<a href=A>< a href=B><3<a href=C>", "nA nC"),
        ("<![CDATA[<a href=A>]]><a href=B>", "nB"),
        ("<script><a href=A></script><a href=B>", "nB"),
        ("<script><!--<script></script><a href=A>--></script><a href=B>", "nB"),
        ("<style><a href=A></style ><a href=B>", "nB"),
        ("<textarea><a href=A></textareax></TEXTAREA><a href=B>", "nB"),
        (
            "<title><a href=A></title><a href=B><xmp><a href=C></xmp><noembed><a href=D></noembed>",
            "nB",
        ),
        (
            "<iframe><a href=A></iframe><noframes><a href=B></noframes><a href=C>",
            "nC",
        ),
        ("<plaintext><a href=A></plaintext><a href=B>", ""),
        ("<noscript><a href=A><img src=B></noscript>", "nA qB"),
        ("<template><a href=A></template>", "nA"),
        ("<script/><a href=A></script><a href=B>", "nB"),
        ("<", ""),
        ("</", ""),
        ("<!", ""),
        ("<a", ""),
    ] {
        assert_eq!(html(page), want, "{page}");
    }
}

#[test]
fn foreign_content_has_its_own_rules() {
    for (page, want) in [
        (
            "<svg><a xlink:href=A></a><image href=B /><use xlink:href=C#d /><use href=#e /><image xlink:href=F href=G /></svg>",
            "nA qB qC#d qG",
        ),
        (
            "<svg><![CDATA[<a href=A>]]><a href=B></svg><![CDATA[<a href=C>]]><a href=D>",
            "nB nD",
        ),
        ("<svg><title><a href=A></title></svg>", "nA"),
        ("<svg><style>a{b:url(A)}<a href=B></style></svg>", "qA nB"),
        ("<svg><script href=A><a href=B></script></svg>", "qA nB"),
        (
            "<svg><svg></svg><a xlink:href=A /><image href=B /></svg><image href=C>",
            "nA qB",
        ),
        ("<math><math></math><style><a href=A></style></math>", "nA"),
        ("<svg/><style><a href=A></style><a href=B>", "nB"),
        ("<svg><p><style><a href=A></style>", ""),
        ("<svg><font><style><a href=A></style></svg>", "nA"),
        ("<svg><font size=1><style><a href=A></style>", ""),
        (
            "<div><svg></div><script><a href=A></script><button><svg></button><style><a href=B></style>",
            "",
        ),
        ("<svg></p><style><a href=A></style>", ""),
        (
            "<svg><foreignObject><style><a href=A></style></foreignObject><style><a href=B></style></svg>",
            "nB",
        ),
        (
            "<svg><desc><span></svg><style><a href=A></style></span></desc><style><a href=B></style>",
            "nB",
        ),
        (
            "<math><mi><style><a href=A></style></mi><style><a href=B></style></math>",
            "nB",
        ),
        (
            "<math><annotation-xml encoding=text/html><style><a href=A></style></annotation-xml></math>",
            "",
        ),
        (
            "<math><annotation-xml><style><a href=A></style></annotation-xml></math>",
            "nA",
        ),
        ("<image src=A>", "qA"),
    ] {
        assert_eq!(html(page), want, "{page}");
    }
}

#[test]
fn foreign_content_is_followed_to_a_bound() {
    let page = |closed: usize| {
        format!(
            "{}{}<style><a href=A></style>",
            "<svg>".repeat(600),
            "</svg>".repeat(closed)
        )
    };
    assert_eq!(html(&page(MAX_OPEN - 1)), "nA");
    assert_eq!(html(&page(MAX_OPEN)), "");
}

#[test]
fn xml_has_no_raw_text() {
    for (page, want) in [
        (
            "<script src='A'/><title/><a href='B'/><textarea/><a href='C'>x</a>",
            "qA nB nC",
        ),
        ("<style><![CDATA[ a > b { c: url(A) } ]]></style><a href='B'/>", "qA nB"),
        (
            "<?xml version='1.0'?><?xml-stylesheet type='text/css' href='A'?><svg:svg><svg:a xlink:href='B'/></svg:svg>",
            "sA nB",
        ),
        ("<![CDATA[<a href='A'/>]]><!-- <a href='B'/> --><h:a href='C'/>", "nC"),
        (
            "<svg><image xlink:href='A'/><svg:style>b{c:url(D)}</svg:style></svg>",
            "qA qD",
        ),
        ("<feed><link href='A'/><link rel='next' href='B'/></feed>", "nA nB"),
    ] {
        assert_eq!(xml(page), want, "{page}");
    }
}

#[test]
fn documents_in_attributes_are_read_with_their_own_base() {
    let page = "<iframe src=A srcdoc=\"<a href='B'><img src=&quot;C&quot;>\"></iframe><a href=D>";
    assert_eq!(html(page), "qA nB qC nD");
    let mut links = Links::default();
    let page = "<a href=A><iframe srcdoc='&lt;base href=/sub/><a href=B><meta http-equiv=refresh content=0;C>'></iframe><base href=/x/>";
    scan(page, Syntax::Html, &mut links);
    assert_eq!(links.base.as_deref(), Some("/x/"));
    assert_eq!(links.links.len(), 1);
    let frame = &links.frames[0];
    assert_eq!(frame.base.as_deref(), Some("/sub/"));
    let kinds: Vec<_> = frame.links.iter().map(|link| (link.kind, &*link.raw)).collect();
    assert_eq!(kinds, [(LinkKind::Navigation, "B"), (LinkKind::Requisite, "C")]);
}

#[test]
fn documents_in_documents_end() {
    let mut page = String::from("<a href=x>");
    for _ in 0..=MAX_SRCDOC_DEPTH {
        page = format!(
            "<a href=x><iframe srcdoc='{}'></iframe>",
            page.replace('&', "&amp;").replace('\'', "&#39;")
        );
    }
    assert_eq!(found(&page, Syntax::Html).len(), MAX_SRCDOC_DEPTH as usize + 1);
}

#[test]
fn the_bound_on_links_holds_over_all_documents() {
    let frame = |base: &str| {
        format!(
            "<iframe srcdoc='{base}{}'></iframe>",
            "<a href=x>".repeat(MAX_LINKS_PER_PAGE / 4)
        )
    };
    let page = format!("<a href=y>{}{}{0}{1}{0}", frame("<base href=/b/>"), frame(""));
    let mut links = Links::default();
    scan(&page, Syntax::Html, &mut links);
    let framed: usize = links.frames.iter().map(|frame| frame.links.len()).sum();
    assert_eq!(links.links.len() + framed, MAX_LINKS_PER_PAGE);
    assert_eq!(links.dropped, MAX_LINKS_PER_PAGE as u64 / 4 + 1);
}

#[test]
fn depth_is_found_where_it_is_too_much() {
    assert_eq!(depth_limit("<div><p><br></div><div><b></b></div>", 2), None);
    assert_eq!(depth_limit("<div><div></x><div>", 2), Some(14));
    assert_eq!(depth_limit("<script><div><div><div></script><div>", 1), None);
    assert_eq!(depth_limit(&"<p><li>".repeat(1000), 5), None);
}

/// The least of three times, so that a busy machine does not count.
fn time(page: &str) -> Duration {
    (0..3)
        .map(|_| {
            let start = Instant::now();
            let mut links = Links::default();
            scan(page, Syntax::Html, &mut links);
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

#[test]
fn time_is_linear_in_the_page_whatever_stands_in_it() {
    const SIZE: usize = 1 << 20;
    for unit in [
        "<",
        "<<a",
        "<!--",
        "<!-- --",
        "<a ",
        "<a b='",
        "<a b=\"x\" ",
        "</a ",
        "<script>",
        "<script><!--",
        "<style>",
        "<title>",
        "<svg>",
        "<svg><desc>",
        "<math><mi>",
        "<![CDATA[",
        "<svg><![CDATA[",
        "-",
        "&",
        "<a href='&#",
        "<a href=&a",
        "<iframe srcdoc='<a href=x>",
        "<p style='url(",
        "<img srcset='a (",
        "<style>url(",
        "<style>@import ",
        "<style>/*",
        "<svg><style>",
        "<svg><style></",
        "<?",
        "</",
        "<p style=\"(\\",
        "<style>image-set(",
    ] {
        let time = time(&unit.repeat(SIZE / unit.len()));
        // some 0.05 s unoptimized; quadratic work would take ten seconds and more
        assert!(time < Duration::from_secs(1), "{unit:?}: {time:?}");
    }
    let long = "x&amp;".repeat(SIZE / 6);
    assert!(html(&format!("<a href='{long}'>")).len() > SIZE / 6);
}

proptest! {
    #[test]
    fn any_text_has_an_outcome(page in "(<|</|<!--|<!|<\\?|>|-->|a|script|style|svg|title|math|iframe| href=| src| srcdoc=|'|\"|=|/|&|#x|;|\u{e9}|\r|\0|[a-z]| ){0,60}") {
        html(&page);
        xml(&page);
        let _ = depth_limit(&page, 3);
    }

    #[test]
    fn any_bytes_have_an_outcome(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        html(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_rel_that_says_nofollow_is_kept_with_its_link() {
    let mut links = Links::default();
    scan(
        "<a rel='ugc NOFOLLOW' href=a><a href=b rel=noopener><area rel=nofollow href=c><a href=d>\
         <form rel=nofollow action=e></form><link rel='nofollow next' href=f><a rel=nofollow href='#g'><a href=h>",
        Syntax::Html,
        &mut links,
    );
    let marked: String = links
        .links
        .iter()
        .filter(|link| link.nofollow)
        .map(|link| link.raw.as_ref())
        .collect();
    assert_eq!((marked.as_str(), links.links.len()), ("acef", 7));
}
