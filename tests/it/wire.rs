//! What carries an exchange: TLS, HTTP/2, kept connections, and packets that end anywhere.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use crawler::fetch::http::{Auth, HttpFetcher, HttpSettings};
use crawler::fetch::{FetchErrorKind, Fetcher, Repeat, Request, Truncated};
use crawler::url::{CrawlUrl, Identity};
use tokio_rustls::rustls::version;

use crate::fetch::{MAX_BODY, assert_body, assert_fault, page, settings};
use crate::harness::Job;
use crate::raw_server::{RawServer, Step, send};
use crate::secure_server::{H2Step, Manner, SecureServer, Seen, frame, manner};
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
        assert_eq!(response.protocols, ["h2", "tls/1.3"]);
        assert!(response.cipher.unwrap().starts_with("TLS_"), "{:?}", response.cipher);
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

/// What is done with each stream.
type Acts = fn(&Seen) -> H2Step;

const OK: fn() -> H2Step = || H2Step::Answer(200, vec![], vec![Bytes::from_static(b"ok")]);

#[tokio::test]
async fn what_the_server_has_certainly_not_looked_at_is_asked_for_once_more() {
    // refused on a new connection: the server says that it did not look at it
    fn refused_first(seen: &Seen) -> H2Step {
        if seen.connection == 0 {
            return H2Step::Reset(h2::Reason::REFUSED_STREAM);
        }
        OK()
    }
    fn kept(seen: &Seen, then: H2Step) -> H2Step {
        if seen.turn == 0 { OK() } else { then }
    }
    let ways: [(Acts, Repeat); 4] = [
        (refused_first, Repeat::Refused),
        (|seen| kept(seen, H2Step::GoAway), Repeat::Dropped),
        (
            |seen| kept(seen, H2Step::GoAwayWith(h2::Reason::INTERNAL_ERROR)),
            Repeat::Dropped,
        ),
        (|seen| kept(seen, H2Step::Drop), Repeat::Dropped),
    ];
    for (h2, why) in ways {
        let server = SecureServer::start(Manner { h2, ..manner(&["h2"]) }).await;
        let web = fetcher(|_| ());
        let mut repeats = 0;
        for i in 0..4 {
            let path = format!("/{i}");
            let response = web.fetch_href(&server.url(&path), None).await.unwrap();
            assert_body(&response, b"ok", None);
            let asked = server.requests().iter().filter(|seen| seen.path == path).count();
            assert_eq!(
                response.repeated,
                (asked == 2).then_some(why),
                "{path} was asked for {asked} times"
            );
            repeats += asked - 1;
        }
        assert!(repeats > 0);
    }
}

#[tokio::test]
async fn a_goodbye_that_leaves_a_stream_out_is_a_refusal() {
    // SETTINGS, then GOAWAY: nothing was looked at
    let server = SecureServer::start(Manner {
        raw: Some(|seen| match seen.connection {
            0 => [frame(4, 0, 0, b""), frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 2])].concat(),
            // an indexed ":status: 200", then "whole"
            _ => [frame(4, 0, 0, b""), frame(1, 4, 1, &[0x88]), frame(0, 1, 1, b"whole")].concat(),
        }),
        ..manner(&["h2"])
    })
    .await;
    let response = fetcher(|_| ()).fetch_href(&server.url("/"), None).await.unwrap();
    assert_body(&response, b"whole", None);
    assert_eq!((response.repeated, server.requests().len()), (Some(Repeat::Refused), 2));
}

#[tokio::test]
async fn what_is_answered_after_a_goodbye_counts_whatever_its_reason() {
    // SETTINGS, and GOAWAY for an error that names our stream, before the head and in the middle of the body
    const GOODBYE: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 2];
    let ways: [fn(&Seen) -> Vec<u8>; 2] = [
        |_| {
            [
                frame(4, 0, 0, b""),
                frame(7, 0, 0, &GOODBYE),
                frame(1, 4, 1, &[0x88]),
                frame(0, 1, 1, b"whole"),
            ]
            .concat()
        },
        |_| {
            [
                frame(4, 0, 0, b""),
                frame(1, 4, 1, &[0x88]),
                frame(0, 0, 1, b"wh"),
                frame(7, 0, 0, &GOODBYE),
                frame(0, 1, 1, b"ole"),
            ]
            .concat()
        },
    ];
    for way in ways {
        let server = SecureServer::start(Manner {
            raw: Some(way),
            ..manner(&["h2"])
        })
        .await;
        let web = fetcher(|_| ());
        for asked in 1..3 {
            let response = web.fetch_href(&server.url("/"), None).await.unwrap();
            assert_body(&response, b"whole", None);
            assert_eq!((response.repeated, server.requests().len()), (None, asked));
        }
    }
}

#[tokio::test]
async fn whatever_may_have_been_looked_at_is_not_repeated_at_once() {
    let always: [(Acts, &str); 6] = [
        (|_| H2Step::Reset(h2::Reason::INTERNAL_ERROR), "reset: INTERNAL_ERROR"),
        (|_| H2Step::Reset(h2::Reason::PROTOCOL_ERROR), "reset: PROTOCOL_ERROR"),
        (|_| H2Step::Reset(h2::Reason::CANCEL), "reset: CANCEL"),
        (|_| H2Step::GoAway, "the connection ended"),
        (
            |_| H2Step::GoAwayWith(h2::Reason::INTERNAL_ERROR),
            "GOAWAY: INTERNAL_ERROR",
        ),
        (|_| H2Step::Drop, "the connection ended"),
    ];
    for (h2, words) in always {
        let server = SecureServer::start(Manner {
            h2,
            ..manner(&["h2", "http/1.1"])
        })
        .await;
        let web = fetcher(|_| ());
        for turn in 1..3 {
            let error = web.fetch_href(&server.url("/"), None).await.unwrap_err();
            assert_eq!((&error.kind, error.repeated), (&FetchErrorKind::Broken, None));
            assert!(error.detail.contains(words), "{}", error.detail);
            assert_eq!(server.requests().len(), turn);
        }
        assert!(
            server.requests().iter().all(|seen| seen.protocol == "h2"),
            "{words}: this says nothing against HTTP/2"
        );
    }
    // a stream that is reset on a kept connection was begun there
    let server = SecureServer::start(Manner {
        h2: |seen| match seen.turn {
            0 => OK(),
            _ => H2Step::Reset(h2::Reason::INTERNAL_ERROR),
        },
        ..manner(&["h2"])
    })
    .await;
    let web = fetcher(|_| ());
    web.fetch_href(&server.url("/a"), None).await.unwrap();
    web.fetch_href(&server.url("/b"), None).await.unwrap_err();
    assert_eq!(server.requests().len(), 2);
    // refused twice is refused
    let server = SecureServer::start(Manner {
        h2: |_| H2Step::Reset(h2::Reason::REFUSED_STREAM),
        ..manner(&["h2"])
    })
    .await;
    let error = fetcher(|_| ()).fetch_href(&server.url("/"), None).await.unwrap_err();
    assert_eq!(
        (error.kind, error.repeated),
        (FetchErrorKind::Broken, Some(Repeat::Refused))
    );
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn where_http_2_cannot_be_had_the_next_request_is_over_http_1() {
    let old = |h2: Acts| Manner {
        h2,
        ..manner(&["h2", "http/1.1"])
    };
    for (manner, reason) in [
        (
            Manner {
                lies: true,
                ..manner(&["h2", "http/1.1"])
            },
            "what came is not HTTP/2",
        ),
        (
            old(|_| H2Step::Reset(h2::Reason::HTTP_1_1_REQUIRED)),
            "HTTP_1_1_REQUIRED",
        ),
        (
            old(|_| H2Step::GoAwayWith(h2::Reason::INADEQUATE_SECURITY)),
            "INADEQUATE_SECURITY",
        ),
        // ":status: 200" and a header that HTTP/2 does not have: browsers differ, and another try would bring no more
        (
            Manner {
                raw: Some(|_| {
                    let head = b"\x88\x00\x0aconnection\x0akeep-alive";
                    [frame(4, 0, 0, b""), frame(1, 4, 1, head), frame(0, 1, 1, b"body")].concat()
                }),
                ..manner(&["h2", "http/1.1"])
            },
            "a head breaks the rules",
        ),
    ] {
        let server = SecureServer::start(manner).await;
        let web = fetcher(|_| ());
        let error = web.fetch_href(&server.url("/"), None).await.unwrap_err();
        assert_eq!((&error.kind, error.repeated), (&FetchErrorKind::Old, None));
        assert!(error.detail.contains(reason), "{}", error.detail);
        assert_eq!(server.requests().len(), 1, "and not at once");
        for _ in 0..2 {
            let response = web.fetch_href(&server.url("/"), None).await.unwrap();
            assert_body(&response, b"secure", None);
            assert_eq!(response.protocols, ["http/1.1", "tls/1.3"]);
        }
    }
    // what goes wrong after that names what came before
    let server = SecureServer::start(Manner {
        answer: Vec::new(),
        ..old(|_| H2Step::Reset(h2::Reason::HTTP_1_1_REQUIRED))
    })
    .await;
    let web = fetcher(|_| ());
    for kind in [FetchErrorKind::Old, FetchErrorKind::Broken] {
        let error = web.fetch_href(&server.url("/"), None).await.unwrap_err();
        assert_eq!(error.kind, kind);
        assert!(error.detail.contains("HTTP_1_1_REQUIRED"), "{}", error.detail);
    }
}

#[test]
fn a_page_behind_http_1_costs_its_host_a_rest_and_not_a_retry() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(SecureServer::start(Manner {
        h2: |_| H2Step::Reset(h2::Reason::HTTP_1_1_REQUIRED),
        ..manner(&["h2", "http/1.1"])
    }));
    let job = Job::new(&[server.url("/page")])
        .switch("--insecure-tls")
        .flag("--retries", "0")
        .flag("--delay", "200ms");
    job.run().assert_code(0);
    assert_eq!((job.count("/urls/fetched"), job.count("/urls/failed")), (1, 0));
    assert_eq!(job.count("/politeness/repeats"), 0);
    let asked: Vec<_> = server
        .requests()
        .iter()
        .map(|seen| (seen.protocol, seen.path.clone()))
        .collect();
    let expected = [
        ("h2", "/robots.txt"),
        ("http/1.1", "/robots.txt"),
        ("http/1.1", "/page"),
    ];
    assert_eq!(asked, expected.map(|(protocol, path)| (protocol, path.to_owned())));
    for pair in server.requests().windows(2) {
        let gap = pair[1].at.duration_since(pair[0].at);
        assert!(gap >= Duration::from_millis(199), "{gap:?}");
    }
}

#[test]
fn a_request_that_is_sent_twice_is_told_of() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(SecureServer::start(Manner {
        h2: |seen| match seen.turn {
            0 => OK(),
            _ => H2Step::Drop,
        },
        ..manner(&["h2"])
    }));
    let job = Job::new(&[server.url("/page")])
        .switch("--insecure-tls")
        .flag("--retries", "0")
        .flag("--delay", "50ms");
    job.run().assert_code(0);
    assert_eq!((job.count("/urls/fetched"), job.count("/urls/failed")), (1, 0));
    assert_eq!(job.count("/politeness/repeats"), 1);
    assert_eq!(job.count("/politeness/violations"), 0);
    assert_eq!(server.requests().len(), 3);
    let log = std::fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
    for pair in server.requests().windows(2) {
        let gap = pair[1].at.duration_since(pair[0].at);
        assert!(
            gap >= Duration::from_millis(49),
            "to the host it is a request like any other: {gap:?}"
        );
    }
    let noted: Vec<_> = log.lines().filter(|line| line.contains("repeat:dropped")).collect();
    assert_eq!(noted.len(), 1, "{log}");
    assert!(noted[0].contains("/page "), "{log}");
}

#[tokio::test]
async fn a_length_that_does_not_fit_over_http_2_loses_no_byte() {
    for (length, truncated) in [
        ("4", None),
        ("6", None),
        ("7", Some(Truncated::Disconnect)),
        ("99999999999999999999999", None),
        ("six", None),
        ("-1", None),
        ("", None),
    ] {
        let of = |pieces: &[&'static [u8]]| {
            // a stream of one piece: HEADERS with a literal content-length, DATA that ends it
            let mut block = vec![0x88, 0x0f, 0x0d, u8::try_from(length.len()).unwrap()];
            block.extend_from_slice(length.as_bytes());
            let mut bytes = [frame(4, 0, 0, b""), frame(1, 4, 1, &block)].concat();
            for (n, piece) in pieces.iter().enumerate() {
                let last = u8::from(n + 1 == pieces.len());
                bytes.extend(frame(0, last, 1, piece));
            }
            bytes
        };
        for pieces in [&[&b"sixsix"[..]][..], &[b"six", b"six"], &[b"six", b"six", b""]] {
            let script = of(pieces);
            let server = SecureServer::start_with(
                manner(&["h2"]),
                Some(std::sync::Arc::new(move |_: &Seen| script.clone())),
            )
            .await;
            let web = fetcher(|_| ());
            let response = web.fetch_href(&server.url("/"), None).await.unwrap();
            assert_body(&response, b"sixsix", truncated);
        }
    }
}

#[tokio::test]
async fn what_a_connection_says_while_it_rests_is_heard() {
    // SETTINGS, an answer, then PING; and before the second answer the echo must have come
    let server = SecureServer::start(Manner {
        raw: Some(|seen| {
            let stream = 1 + 2 * u32::try_from(seen.turn).unwrap();
            let start = if seen.turn == 0 {
                frame(4, 0, 0, b"")
            } else {
                Vec::new()
            };
            [
                start,
                frame(1, 4, stream, &[0x88]),
                frame(0, 1, stream, b"body"),
                frame(6, 0, 0, b"12345678"),
                frame(8, 0, 0, &[0, 0, 1, 0]),
                frame(0xbe, 0, 0, b"unknown"),
            ]
            .concat()
        }),
        ..manner(&["h2"])
    })
    .await;
    let web = fetcher(|_| ());
    for turn in 0..3 {
        let response = web.fetch_href(&server.url("/"), None).await.unwrap();
        assert_body(&response, b"body", None);
        assert_eq!(
            (server.requests().last().unwrap().turn, response.repeated),
            (turn, None)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // a connection that said goodbye while it rested is not used again, and nothing is sent twice
    let server = SecureServer::start(Manner {
        raw: Some(|_| {
            [
                frame(4, 0, 0, b""),
                frame(1, 4, 1, &[0x88]),
                frame(0, 1, 1, b"body"),
                frame(7, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0]),
            ]
            .concat()
        }),
        ..manner(&["h2"])
    })
    .await;
    let web = fetcher(|_| ());
    for connection in 0..3 {
        let response = web.fetch_href(&server.url("/"), None).await.unwrap();
        assert_body(&response, b"body", None);
        assert_eq!(
            (server.requests().last().unwrap().connection, response.repeated),
            (connection, None)
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
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
            rest: Duration::ZERO,
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
        rest: Duration::ZERO,
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
    for (flags, http2) in [
        (&["--insecure-tls"][..], true),
        (&["--insecure-tls", "--http2=no"][..], false),
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
            // one line each for the protocol and for TLS; the reader keeps the last
            assert_eq!(record.headers["warc-protocol"], "tls/1.3", "{:?}", record.headers);
            assert!(record.headers["warc-cipher-suite"].starts_with("TLS_"));
        }
        let log = std::fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
        let line = log.lines().find(|line| line.contains(&format!("{seed} "))).unwrap();
        let annotations = line.split_whitespace().nth(11).unwrap();
        assert_eq!(annotations.split(',').any(|word| word == "h2"), http2, "{line}");
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
        ("--header", "Range: bytes=0-", "the archive would have no page"),
        ("--header", "if-modified-since: x", "the archive would have no page"),
        ("--header", "If-None-Match: x", "the archive would have no page"),
        ("--header", "If-Range: x", "the archive would have no page"),
        ("--header", "TE: trailers", "it belongs to the connection"),
        ("--header", "Upgrade: h2c", "it belongs to the connection"),
        ("--header", "Expect: 100-continue", "it belongs to the connection"),
        (
            "--header",
            "Proxy-Authorization: secret",
            "user and password with --proxy",
        ),
        (
            "--header",
            "Accept-Encoding: gzip, compress",
            "cannot ask for \"compress\"",
        ),
        ("--header", "Accept-Encoding: *", "cannot ask for \"*\""),
        ("--header", "no colon", "expected a header such as"),
        ("--header", "bad name: x", "is not a header name"),
        ("--proxy", "ftp://secret@x", "expected http://, socks5:// or socks5h://"),
        ("--proxy", "socks5://secret@h:0", "there is no port 0"),
        ("--proxy", "http://secret@h:1/x", "nothing behind the port"),
    ] {
        let done = Job::new(&["http://127.0.0.1/"]).flag(flag, value).run();
        done.assert_code(2);
        done.assert_says(words);
        assert!(!done.text().contains("secret"), "{}", done.text());
    }
}

#[test]
fn a_job_is_not_resumed_without_its_passwords_unless_that_is_meant() {
    let pages: Vec<(String, Answer)> = (0..6).map(|n| (format!("/{n}"), Answer::html("x"))).collect();
    let links: Vec<String> = pages
        .iter()
        .map(|(path, _)| format!("<a href='{path}'>x</a>"))
        .collect();
    let links = links.concat();
    let mut table = vec![("/", Answer::html(links))];
    table.extend(pages.iter().map(|(path, answer)| (path.as_str(), answer.clone())));
    let site = Site::table(table);
    let job = Job::new(&[site.url(0, "/")]);
    let login = format!(
        "[[auth]]\nhost = \"{}\"\nuser = \"me\"\npassword = \"s3cret\"\n",
        site.origin(0)
    );
    std::fs::write(job.dir().parent().unwrap().join("own.toml"), login).unwrap();
    let job = job
        .flag("--config", "own.toml")
        .flag("--header", "Cookie: session=kept")
        .flag("--max-pages", "2");
    job.run().assert_code(0);
    let settings = std::fs::read_to_string(job.dir().join("config.toml")).unwrap();
    // the same with one of them, and with none
    let job = job.flag("--config", "/dev/null").flag("--max-pages", "4");
    let asked = site.log().of(0).len();
    let refused = job.run();
    refused.assert_code(2);
    refused.assert_says(&format!(
        "[[auth]] for {}, which this run was not given",
        site.origin(0)
    ));
    refused.assert_says("--no-secrets");
    let job = job.flag("--header", "X-Other: y");
    let refused = job.run();
    refused.assert_code(2);
    refused.assert_says("--header cookie, [[auth]] for ");
    assert_eq!(site.log().of(0).len(), asked, "nothing was asked for");
    assert_eq!(
        std::fs::read_to_string(job.dir().join("config.toml")).unwrap(),
        settings
    );
    let job = job.switch("--no-secrets");
    job.run().assert_code(0);
    assert!(site.log().of(0).len() > asked);
}

#[test]
fn a_site_on_ipv6_is_crawled_if_that_is_allowed() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(RawServer::start_at("[::1]:0", |seen| match seen.target.as_str() {
        "/robots.txt" => vec![send(page("User-agent: *\nDisallow: /no"))],
        "/" => vec![send(
            "HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 0\r\n\r\n",
        )],
        "/page" => vec![send(page("<a href='/no'>no</a> <a href='/yes'>yes</a>"))],
        _ => vec![send(page("a page"))],
    }));
    let seed = server.url("/");
    assert!(seed.starts_with("http://[::1]:"), "{seed}");
    let job = Job::without_permission(&[&seed]);
    let refused = job.run();
    refused.assert_code(4);
    refused.assert_says("--allow-address ::1/128");
    assert_eq!(server.requests().len(), 0);
    let job = Job::without_permission(&[&seed]).flag("--allow-address", "::1/128");
    job.run().assert_code(0);
    let asked: Vec<String> = server.requests().into_iter().map(|seen| seen.target).collect();
    assert_eq!(asked, ["/robots.txt", "/", "/page", "/yes"]);
    assert_eq!(job.count("/urls/robots"), 1);
    let host = format!("\r\nHost: {}\r\n", server.address);
    assert!(server.requests().iter().all(|seen| text(&seen.head).contains(&host)));
    let records = job.records();
    let page = records
        .iter()
        .find(|record| record.is_answer() && record.uri().ends_with("/page"));
    assert_eq!(page.unwrap().headers["warc-ip-address"], "::1");
}

#[test]
fn a_name_that_leads_elsewhere_later_is_judged_anew() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let inside = runtime.block_on(RawServer::start_at("127.0.0.2:0", |_| vec![send(page("secret"))]));
    let there = inside.address.port();
    let outside = runtime.block_on(RawServer::start(move |seen| match seen.target.as_str() {
        "/robots.txt" => vec![send(page(""))],
        _ => vec![send(format!(
            "HTTP/1.1 302 Found\r\nLocation: http://site.test:{there}/secret\r\nContent-Length: 0\r\n\r\n"
        ))],
    }));
    // one name, whose answer is another the next time it is asked for
    let here = outside.address.port();
    let job = Job::without_permission(&[format!("http://site.test:{here}/")])
        .flag("--allow-address", "127.0.0.1/32")
        .flag("--scope", "any")
        .flag("--retries", "0")
        .switch(&format!("--resolve=site.test:{here}:127.0.0.1"))
        .switch(&format!("--resolve=site.test:{there}:127.0.0.2"));
    job.run().assert_code(0);
    assert_eq!((outside.requests().len(), inside.requests().len()), (2, 0));
    assert_eq!(job.count("/urls/failed"), 1);
    let log = std::fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
    assert!(log.contains("127.0.0.2 is not a public address"), "{log}");
}

#[test]
fn a_large_body_over_http_2_passes_through_little_memory() {
    const PIECES: usize = 160;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(SecureServer::start(Manner {
        h2: |seen| match seen.path.as_str() {
            "/large.bin" => {
                let piece = Bytes::from(vec![b'x'; 1 << 20]);
                H2Step::Answer(
                    200,
                    vec![("content-type", "application/octet-stream")],
                    vec![piece; PIECES],
                )
            }
            _ => H2Step::Answer(404, vec![], vec![]),
        },
        ..manner(&["h2"])
    }));
    let job = Job::new(&[server.url("/large.bin")])
        .switch("--insecure-tls")
        .flag("--max-body", "1GiB");
    let (done, most) = job.start().wait_and_weigh();
    done.assert_code(0);
    assert_eq!(job.count("/bytes/received"), (PIECES << 20) as u64);
    assert!(most < 130 << 20, "{most} bytes were resident");
    let records = job.records();
    let record = records
        .iter()
        .find(|record| record.is_answer() && record.uri().ends_with("/large.bin"));
    assert_eq!(record.unwrap().payload().len(), PIECES << 20);
    assert!(!record.unwrap().headers.contains_key("warc-truncated"));
}

#[test]
fn a_body_that_is_not_wanted_costs_http_2_no_connection() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(SecureServer::start(Manner {
        h2: |seen| match seen.path.as_str() {
            "/" => {
                let links = b"<a href='/a.bin'>a</a> <a href='/b.bin'>b</a> <a href='/c'>c</a>";
                H2Step::Answer(
                    200,
                    vec![("content-type", "text/html")],
                    vec![Bytes::from_static(links)],
                )
            }
            "/c" => H2Step::Answer(200, vec![("content-type", "text/html")], vec![Bytes::from_static(b"c")]),
            "/robots.txt" => H2Step::Answer(404, vec![], vec![]),
            _ => H2Step::Answer(
                200,
                vec![("content-type", "video/mp4")],
                vec![Bytes::from(vec![b'x'; 200_000])],
            ),
        },
        ..manner(&["h2"])
    }));
    let job = Job::new(&[server.url("/")])
        .switch("--insecure-tls")
        .flag("--reject-types", "video/*");
    job.run().assert_code(0);
    assert_eq!(job.count("/urls/fetched"), 4);
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    assert!(requests.iter().all(|seen| seen.connection == 0), "{requests:?}");
    let records = job.records();
    assert!(
        records
            .iter()
            .all(|record| !record.uri().contains(".bin") || record.kind() == "metadata")
    );
}
