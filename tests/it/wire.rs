//! What carries an exchange: TLS, HTTP/2, kept connections, and packets that end anywhere.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use crawler::fetch::http::{Auth, HttpFetcher, HttpSettings};
use crawler::fetch::{FetchErrorKind, Fetcher, Request, Truncated};
use crawler::url::{CrawlUrl, Identity};
use tokio_rustls::rustls::version;

use crate::fetch::{MAX_BODY, assert_body, assert_fault, page, settings};
use crate::harness::Job;
use crate::raw_server::{RawServer, Step, send};
use crate::secure_server::{H2Step, Manner, SecureServer, manner};
use crate::site::{Answer, Site};

fn fetcher(change: impl FnOnce(&mut HttpSettings)) -> HttpFetcher {
    let mut settings = settings();
    settings.insecure_tls = true;
    change(&mut settings);
    HttpFetcher::new(settings).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_certificate_that_nobody_signed_is_refused_unless_any_will_do() {
    let server = SecureServer::start(manner(&["http/1.1"])).await;
    let strict = fetcher(|s| s.insecure_tls = false);
    assert_fault(
        strict.fetch_href(&server.url("/"), None).await,
        &FetchErrorKind::Tls,
        "127.0.0.1: TLS failed: unknown issuer",
    );
    assert_eq!(
        server.requests().len(),
        0,
        "nothing is sent before the certificate is judged"
    );
    let response = fetcher(|_| ()).fetch_href(&server.url("/"), None).await.unwrap();
    assert_body(&response, b"secure", None);
    assert_eq!(response.protocols, ["http/1.1", "tls/1.3"]);
    assert!(response.cipher.unwrap().starts_with("TLS_"), "{:?}", response.cipher);
    assert_eq!(response.remote, Some(server.address.ip()));
    assert_eq!(text(&response.head), "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n");

    let old = SecureServer::start(Manner {
        versions: vec![&version::TLS12],
        ..manner(&[])
    })
    .await;
    let response = fetcher(|_| ()).fetch_href(&old.url("/"), None).await.unwrap();
    assert_eq!(response.protocols, ["http/1.1", "tls/1.2"]);
    assert!(
        response.cipher.unwrap().starts_with("TLS_ECDHE_"),
        "{:?}",
        response.cipher
    );
}

#[tokio::test]
async fn an_end_of_tls_that_was_not_announced_is_judged_by_the_length() {
    for (head, body, whole) in [
        ("X: to the close", "abc", true),
        ("Content-Length: 3", "abc", true),
        ("Content-Length: 4", "abc", false),
        ("Transfer-Encoding: chunked", "3\r\nabc\r\n0\r\n\r\n", true),
        ("Transfer-Encoding: chunked", "3\r\nabc\r\n", false),
    ] {
        for polite in [true, false] {
            let server = SecureServer::start(Manner {
                polite,
                answer: format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}").into_bytes(),
                ..manner(&[])
            })
            .await;
            let response = fetcher(|_| ()).fetch_href(&server.url("/"), None).await.unwrap();
            assert_body(&response, b"abc", (!whole).then_some(Truncated::Disconnect));
        }
    }
}

#[tokio::test]
async fn http_2_is_spoken_where_it_is_offered_and_wanted() {
    let server = SecureServer::start(manner(&["h2", "http/1.1"])).await;
    let web = fetcher(|s| s.headers = vec![("X-Own".to_owned(), "1".to_owned())]);
    for turn in 0..3 {
        let response = web.fetch_href(&server.url("/a?b"), None).await.unwrap();
        assert_body(&response, b"second", None);
        assert_eq!(response.protocols, ["h2"]);
        assert_eq!(response.remote, Some(server.address.ip()));
        assert_eq!(
            text(&response.head),
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n"
        );
        assert_eq!(response.header("content-type"), Some(&b"text/html"[..]));
        assert!(text(&response.request_head).starts_with("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:"));
        let seen = server.requests().pop().unwrap();
        assert_eq!((seen.protocol, seen.turn, seen.path.as_str()), ("h2", turn, "/a"));
        assert_eq!(seen.headers["x-own"], "1");
        assert_eq!(seen.headers["user-agent"], "testbot/1.0");
        assert_eq!(seen.headers["accept-encoding"], "gzip");
    }
    let response = fetcher(|s| s.http2 = false)
        .fetch_href(&server.url("/"), None)
        .await
        .unwrap();
    assert_body(&response, b"secure", None);
    assert_eq!(response.protocols, ["http/1.1", "tls/1.3"]);

    let strict = fetcher(|s| s.insecure_tls = false);
    for _ in 0..2 {
        let refused = strict.fetch_href(&server.url("/"), None).await;
        assert_fault(refused, &FetchErrorKind::Tls, "unknown issuer");
    }
}

#[tokio::test]
async fn a_stream_that_the_server_did_not_begin_is_asked_for_once_more() {
    // refused on a new connection too: the server says that it did not look at it
    fn refused_first(seen: &crate::secure_server::Seen) -> H2Step {
        if seen.connection == 1 {
            return H2Step::Reset(h2::Reason::REFUSED_STREAM);
        }
        H2Step::Answer(200, vec![], vec![Bytes::from_static(b"ok")])
    }
    fn kept_goes_away(seen: &crate::secure_server::Seen) -> H2Step {
        match seen.turn {
            0 => H2Step::Answer(200, vec![], vec![Bytes::from_static(b"ok")]),
            _ => H2Step::GoAway,
        }
    }
    fn kept_is_reset(seen: &crate::secure_server::Seen) -> H2Step {
        match seen.turn {
            0 => H2Step::Answer(200, vec![], vec![Bytes::from_static(b"ok")]),
            _ => H2Step::Reset(h2::Reason::INTERNAL_ERROR),
        }
    }
    for way in [refused_first, kept_goes_away, kept_is_reset] {
        let server = SecureServer::start(Manner {
            h2: way,
            ..manner(&["h2"])
        })
        .await;
        let web = fetcher(|_| ());
        for i in 0..4 {
            let path = format!("/{i}");
            let response = web.fetch_href(&server.url(&path), None).await.unwrap();
            assert_body(&response, b"ok", None);
            let asked = server.requests().iter().filter(|seen| seen.path == path).count();
            assert!(asked <= 2, "{path} was asked for {asked} times");
        }
    }
    let server = SecureServer::start(Manner {
        h2: |_| H2Step::Reset(h2::Reason::INTERNAL_ERROR),
        ..manner(&["h2"])
    })
    .await;
    let broken = fetcher(|_| ()).fetch_href(&server.url("/"), None).await;
    assert_fault(broken, &FetchErrorKind::Broken, "127.0.0.1: the connection ended");
    assert_eq!(server.requests().len(), 1, "on a fresh connection nothing is repeated");
}

#[tokio::test]
async fn who_does_not_keep_to_http_2_is_asked_in_http_1() {
    for lies in [true, false] {
        let server = SecureServer::start(Manner {
            lies,
            h2: |_| H2Step::Reset(h2::Reason::HTTP_1_1_REQUIRED),
            ..manner(&["h2", "http/1.1"])
        })
        .await;
        let web = fetcher(|_| ());
        for _ in 0..2 {
            let response = web.fetch_href(&server.url("/"), None).await.unwrap();
            assert_body(&response, b"secure", None);
            assert_eq!(response.protocols, ["http/1.1", "tls/1.3"]);
        }
        let old = server.requests().iter().filter(|seen| seen.protocol == "h2").count();
        assert!(old <= 1, "it is remembered");
    }
}

#[tokio::test]
async fn bodies_over_http_2_have_the_same_bounds() {
    let of = |h2| async move {
        let server = SecureServer::start(Manner { h2, ..manner(&["h2"]) }).await;
        fetcher(|_| ()).fetch_href(&server.url("/"), None).await
    };
    let cut = of(|_| H2Step::Cut).await.unwrap();
    assert_body(&cut, b"half", Some(Truncated::Disconnect));
    let long = of(|_| H2Step::Answer(200, vec![], vec![Bytes::from(vec![b'x'; 30_000]); 4]))
        .await
        .unwrap();
    assert_eq!(
        (long.body.len(), long.truncated),
        (MAX_BODY as u64, Some(Truncated::Length))
    );
    let silent = of(|_| H2Step::Silence).await;
    assert_fault(silent, &FetchErrorKind::Timeout, "127.0.0.1: no answer within 600ms");
    let not_found = of(|_| H2Step::Answer(404, vec![("set-cookie", "a"), ("x", "y"), ("set-cookie", "b")], vec![]))
        .await
        .unwrap();
    assert_eq!(
        text(&not_found.head),
        "HTTP/1.1 404 Not Found\r\nset-cookie: a\r\nset-cookie: b\r\nx: y\r\n\r\n"
    );
}

#[tokio::test]
async fn a_connection_that_says_something_unasked_is_not_used_again() {
    let server = RawServer::always(vec![
        send(page("x")),
        Step::Sleep(Duration::from_millis(10)),
        send("HTTP/1.1 408 Request Timeout\r\n\r\n"),
    ])
    .await;
    let web = fetcher(|_| ());
    for _ in 0..4 {
        let response = web.fetch_href(&server.url("/"), None).await.unwrap();
        assert_body(&response, b"x", None);
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
    assert!(server.requests().iter().all(|seen| seen.turn == 0));
}

#[tokio::test]
async fn a_poisoned_answer_never_becomes_the_next_ones() {
    let poison = page("poison");
    for head in [
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n",
        "HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let said = [head.as_bytes(), &poison].concat();
        // at once, and in a packet of its own
        for late in [false, true] {
            let (said, poison) = (said.clone(), poison.clone());
            let server = RawServer::start(move |seen| match seen.target.as_str() {
                "/next" => vec![send(page("good"))],
                _ if late => vec![send(head), Step::Sleep(Duration::from_millis(5)), send(&poison)],
                _ => vec![send(&said)],
            })
            .await;
            let web = fetcher(|_| ());
            for _ in 0..2 {
                web.fetch_href(&server.url("/"), None).await.unwrap();
                // what comes after the next request is sent cannot be told from its answer by anybody
                tokio::time::sleep(Duration::from_millis(if late { 150 } else { 0 })).await;
                let next = web.fetch_href(&server.url("/next"), None).await.unwrap();
                assert_body(&next, b"good", None);
            }
        }
    }
}

#[tokio::test]
async fn idle_connections_are_closed_in_time_without_a_further_request() {
    let server = RawServer::always(vec![send(page("x"))]).await;
    let web = fetcher(|s| s.idle_timeout = Duration::from_millis(100));
    web.fetch_href(&server.url("/"), None).await.unwrap();
    assert_eq!(server.open_connections(), 1);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(server.open_connections(), 0);
    web.fetch_href(&server.url("/"), None).await.unwrap();
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn no_two_requests_share_a_connection_at_a_time() {
    let slow = vec![Step::Sleep(Duration::from_millis(50)), send(page("x"))];
    let server = RawServer::always(slow).await;
    let web = fetcher(|s| s.per_host_connections = 2);
    let url = server.url("/");
    for _ in 0..2 {
        let all = futures_util::future::join_all((0..4).map(|_| web.fetch_href(&url, None))).await;
        assert!(
            all.iter()
                .all(|outcome| outcome.as_ref().unwrap().body.bytes().unwrap() == "x")
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(server.open_connections(), 2, "two are kept");
    }
    let connections = server.requests().iter().map(|seen| seen.connection).max().unwrap() + 1;
    assert_eq!(connections, 6, "two of the second four came on kept ones");
}

#[tokio::test]
async fn the_same_bytes_in_any_packets_are_the_same_answer() {
    const ANSWER: &[u8] = b"\r\nHTTP/1.1 103 Early\r\nLink: <a>\r\n\r\nHTTP/1.1 200 Fine\r\nA: b\r\n c\r\nTransfer-Encoding: chunked\r\n\r\n\
        5;x\r\nhello\r\n6\r\n world\r\n0\r\nT: 1\r\n\r\n";
    let server = RawServer::start(|seen| {
        let mut random: usize = seen.target[1..].parse().unwrap();
        let mut steps = Vec::new();
        let mut rest = ANSWER;
        while !rest.is_empty() {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (packet, more) = rest.split_at((1 + (random >> 33) % 40).min(rest.len()));
            steps.extend([send(packet), Step::Sleep(Duration::from_millis(1))]);
            rest = more;
        }
        steps
    })
    .await;
    let web = fetcher(|s| s.per_host_connections = 8);
    let urls: Vec<String> = (0..60).map(|i| server.url(&format!("/{i}"))).collect();
    for group in urls.chunks(8) {
        let answers = futures_util::future::join_all(group.iter().map(|url| web.fetch_href(url, None))).await;
        for response in answers {
            let response = response.unwrap();
            assert_body(&response, b"hello world", None);
            assert_eq!(
                text(&response.head),
                "HTTP/1.1 200 Fine\r\nA: b\r\n c\r\nTransfer-Encoding: chunked\r\n\r\n"
            );
            assert_eq!(response.header("a"), Some(&b"b c"[..]));
        }
    }
    assert!(server.requests().iter().any(|seen| seen.turn > 0));
}

/// The first byte of an answer may be anything, and so may the rest: there is an outcome in time.
#[tokio::test]
async fn random_bytes_end_within_the_timeouts() {
    let server = RawServer::start(|seen| {
        let mut random: u64 = seen.target[1..].parse().unwrap();
        let mut bytes = if random.is_multiple_of(2) {
            b"HTTP/1.1 200 OK\r\n".to_vec()
        } else {
            Vec::new()
        };
        for _ in 0..64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            bytes.extend_from_slice(&random.to_be_bytes()[..2]);
        }
        // and then it says nothing more
        vec![send(bytes), Step::Sleep(Duration::from_secs(60))]
    })
    .await;
    let web = fetcher(|_| ());
    let urls: Vec<String> = (0..200).map(|i| server.url(&format!("/{i}"))).collect();
    let all = futures_util::future::join_all(urls.iter().map(|url| web.fetch_href(url, None)));
    let outcomes = tokio::time::timeout(Duration::from_secs(10), all)
        .await
        .expect("in time");
    let faults = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    assert!(faults > 50, "{faults}");
}

#[tokio::test]
async fn a_login_is_sent_to_its_host_alone_and_kept_out_of_the_archive() {
    let server = RawServer::always(vec![send(page("x"))]).await;
    let port = server.address.port();
    let web = fetcher(|s| {
        s.auth = vec![Auth::new(&format!("http://in.test:{port}"), "me", "secret").unwrap()];
        s.pins = ["in.test", "out.test"]
            .map(|host| (host.to_owned(), port, server.address))
            .to_vec();
    });
    let url = |host: &str| CrawlUrl::parse(&format!("http://{host}:{port}/"), &Identity::default()).unwrap();
    for (host, sent) in [("in.test", true), ("out.test", false)] {
        let request = Request {
            url: url(host),
            via: None,
            to: None,
            cookie: Some("jar=1".to_owned()),
            filter: false,
        };
        let response = web.fetch(request).await.unwrap();
        let seen = text(&server.requests().pop().unwrap().head);
        assert_eq!(
            seen.contains("\r\nAuthorization: Basic bWU6c2VjcmV0\r\n"),
            sent,
            "{seen}"
        );
        assert!(seen.contains("\r\nCookie: jar=1\r\n"), "{seen}");
        let record = text(&response.request_head);
        assert_eq!(record.contains("\r\nAuthorization: [redacted]\r\n"), sent, "{record}");
        assert!(
            !record.contains("bWU6") && record.contains("\r\nCookie: jar=1\r\n"),
            "{record}"
        );
    }
    assert!(!format!("{web:?}").contains("secret"));
}

#[tokio::test]
async fn a_chosen_address_is_the_only_one_connected_to() {
    let server = RawServer::always(vec![send(page("x"))]).await;
    let port = server.address.port();
    let web = fetcher(|s| s.pins = vec![("a.test".to_owned(), port, server.address)]);
    let url = CrawlUrl::parse(&format!("http://a.test:{port}/"), &Identity::default()).unwrap();
    let own = server.address.ip();
    assert_eq!(web.look_up(&url).await.unwrap(), own);
    let ask = |to: &str| Request {
        url: url.clone(),
        via: None,
        to: Some(to.parse::<IpAddr>().unwrap()),
        cookie: None,
        filter: false,
    };
    for _ in 0..2 {
        assert_eq!(web.fetch(ask("127.0.0.1")).await.unwrap().remote, Some(own));
        assert_fault(
            web.fetch(ask("127.0.0.9")).await,
            &FetchErrorKind::Connect,
            "Connection refused",
        );
    }
    assert_fault(
        web.fetch(ask("10.0.0.9")).await,
        &FetchErrorKind::PrivateAddress,
        "10.0.0.9",
    );
    let private = CrawlUrl::parse("http://10.0.0.1/", &Identity::default()).unwrap();
    let refused = web.look_up(&private).await.unwrap_err();
    assert_eq!(refused.kind, FetchErrorKind::PrivateAddress);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_says_how_it_came_and_that_certificates_were_not_checked() {
    let server = SecureServer::start(manner(&["h2", "http/1.1"])).await;
    let seed = server.url("/");
    let run = |flags: &'static [&'static str]| {
        let seed = seed.clone();
        tokio::task::spawn_blocking(move || {
            let job = flags.iter().fold(Job::new(&[seed]), |job, flag| job.switch(flag));
            let done = job.flag("--retries", "0");
            let outcome = done.run();
            (done, outcome)
        })
    };
    for (flags, protocol) in [
        (&["--insecure-tls"][..], "h2"),
        (&["--insecure-tls", "--http2=no"][..], "tls/1.3"),
    ] {
        let (job, done) = run(flags).await.unwrap();
        done.assert_code(0);
        let records = job.records();
        let info = records.iter().find(|record| record.kind() == "warcinfo").unwrap();
        assert!(
            text(&info.block).contains("\r\ntls: certificates were not checked"),
            "{}",
            text(&info.block)
        );
        let of_seed = |record: &&crate::reader::Record| {
            record.uri() == seed && (record.is_answer() || record.kind() == "request")
        };
        let exchange: Vec<_> = records.iter().filter(of_seed).collect();
        assert_eq!(exchange.len(), 2);
        for record in exchange {
            assert_eq!(record.headers["warc-protocol"], protocol, "{:?}", record.headers);
            assert_eq!(record.headers.contains_key("warc-cipher-suite"), protocol != "h2");
        }
        let log = std::fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
        let line = log.lines().find(|line| line.contains(&format!("{seed} "))).unwrap();
        let annotations = line.split_whitespace().nth(11).unwrap();
        assert_eq!(
            annotations.split(',').any(|word| word == "h2"),
            protocol == "h2",
            "{line}"
        );
    }
    let (job, done) = run(&[]).await.unwrap();
    done.assert_code(4);
    done.assert_says("unknown issuer");
    assert!(
        job.records()
            .iter()
            .all(|record| !text(&record.block).contains("certificates"))
    );
}

#[test]
fn passwords_are_sent_and_leave_no_trace() {
    let site = Site::table(vec![("/", Answer::html("x"))]);
    let job = Job::new(&[site.url(0, "/")])
        .flag("--config", "own.toml")
        .flag("--header", "Cookie: session=kept")
        .switch("-vv");
    let host = site.origin(0);
    let home = job.dir().parent().unwrap().to_owned();
    let login = format!("[[auth]]\nhost = \"{host}\"\nuser = \"me\"\npassword = \"s3cret\"\n");
    std::fs::write(home.join("own.toml"), login).unwrap();
    let done = job.run();
    done.assert_code(0);
    for exchange in site.log().of(0) {
        assert_eq!(exchange.headers["authorization"], "Basic bWU6czNjcmV0");
        assert_eq!(exchange.headers["cookie"], "session=kept");
    }
    let settings = std::fs::read_to_string(job.dir().join("config.toml")).unwrap();
    assert!(settings.contains("header = [\"Cookie: [redacted]\"]"), "{settings}");
    assert!(settings.contains(&format!("# [[auth]] for {host}")), "{settings}");
    let requests: Vec<String> = job
        .records()
        .iter()
        .filter(|record| record.kind() == "request")
        .map(|record| text(&record.block))
        .collect();
    assert!(
        requests
            .iter()
            .all(|head| head.contains("\r\nCookie: session=kept\r\nAuthorization: [redacted]\r\n"))
    );
    let mut all = vec![done.text().into_bytes()];
    all.extend(requests.into_iter().map(String::into_bytes));
    let mut folders = vec![job.dir()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.push(std::fs::read(path).unwrap());
            }
        }
    }
    assert!(all.len() > 8);
    for bytes in all {
        let seen = text(&bytes);
        assert!(!seen.contains("s3cret") && !seen.contains("czNjcmV0"), "{seen}");
    }
}

#[test]
fn what_the_connection_owns_cannot_be_set() {
    for (flag, value, words) in [
        (
            "--header",
            "Host: other",
            "the header Host cannot be set: it belongs to the connection",
        ),
        ("--header", "no colon", "expected a header such as"),
        ("--header", "bad name: x", "is not a header name"),
        ("--proxy", "ftp://secret@x", "expected http://, socks5:// or socks5h://"),
    ] {
        let done = Job::new(&["http://127.0.0.1/"]).flag(flag, value).run();
        done.assert_code(2);
        done.assert_says(words);
    }
}
