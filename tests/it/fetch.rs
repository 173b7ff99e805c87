//! The door to the network against a server that says anything: each test is one misbehaviour and its outcome.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crawler::fetch::body::Spool;
use crawler::fetch::dns::AddressPolicy;
use crawler::fetch::http::{HttpFetcher, HttpSettings};
use crawler::fetch::{FetchError, FetchErrorKind, Response, Truncated};

use crate::raw_server::{RawServer, Step, send};

pub(crate) const MAX_BODY: usize = 100_000;

/// No body of these tests is so large that it would need the folder, which is gone at once.
pub(crate) fn spool() -> Arc<Spool> {
    Spool::open(tempfile::tempdir().unwrap().path()).unwrap()
}

pub(crate) fn settings() -> HttpSettings {
    HttpSettings {
        user_agent: "testbot/1.0".to_owned(),
        from: None,
        headers: Vec::new(),
        auth: Vec::new(),
        header_timeout: Duration::from_millis(600),
        timeout: Duration::from_secs(2),
        min_rate: 1_000,
        slow_after: Duration::from_millis(500),
        filter: crawler::fetch::filter::BodyFilter::default(),
        max_body: MAX_BODY as u64,
        spool: spool(),
        per_host_connections: 1,
        idle_connections: 1_000,
        idle_timeout: Duration::from_secs(10),
        pins: Vec::new(),
        addresses: AddressPolicy {
            allow: vec!["127.0.0.0/8".parse().unwrap()],
        },
        proxy: None,
        http2: true,
        insecure_tls: false,
    }
}

fn fetcher() -> HttpFetcher {
    HttpFetcher::new(settings()).unwrap()
}

async fn get(server: &RawServer, target: &str) -> Result<Response, FetchError> {
    fetcher().fetch_href(&server.url(target), None).await
}

/// What one answer comes to.
async fn outcome(steps: Vec<Step>) -> Result<Response, FetchError> {
    get(&RawServer::always(steps).await, "/").await
}

pub(crate) fn page(body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[track_caller]
pub(crate) fn assert_body(response: &Response, body: &[u8], truncated: Option<Truncated>) {
    assert_eq!(
        String::from_utf8_lossy(&response.body.bytes().unwrap()),
        String::from_utf8_lossy(body)
    );
    assert_eq!(response.truncated, truncated);
}

#[track_caller]
pub(crate) fn assert_fault(outcome: Result<Response, FetchError>, kind: &FetchErrorKind, detail: &str) {
    let fault = outcome.expect_err("no answer");
    assert_eq!(&fault.kind, kind, "{}", fault.detail);
    assert!(
        fault.detail.contains(detail) && !fault.detail.contains('\n'),
        "{}",
        fault.detail
    );
}

#[tokio::test]
async fn a_plain_answer_comes_whole() {
    let server = RawServer::always(vec![send(
        "HTTP/1.1 404 Gone Fishing\r\nX-One: 1\r\ncontent-type: text/html\r\nX-Bytes: \u{e9}\r\nx-one:  2 \r\nContent-Length: 5\r\n\r\nhello",
    )])
    .await;
    let response = get(&server, "/a?b=c").await.unwrap();
    assert_eq!(response.status, 404);
    assert_body(&response, b"hello", None);
    assert_eq!(response.remote, Some(server.address.ip()));
    assert_eq!(response.header("content-type"), Some(&b"text/html"[..]));
    assert_eq!(response.header_all("x-one").collect::<Vec<_>>(), [b"1", b"2"]);
    assert_eq!(response.header("x-bytes"), Some("\u{e9}".as_bytes()));
    assert_eq!(
        String::from_utf8_lossy(&response.head),
        "HTTP/1.1 404 Gone Fishing\r\nX-One: 1\r\ncontent-type: text/html\r\nX-Bytes: \u{e9}\r\nx-one:  2 \r\nContent-Length: 5\r\n\r\n",
        "to the byte"
    );
    assert!(response.took < Duration::from_secs(1) && response.started.0 > 1_700_000_000_000_000);
}

#[tokio::test]
async fn the_request_is_recorded_as_it_was_sent() {
    let server = RawServer::always(vec![send(page("x"))]).await;
    let mut settings = settings();
    settings.from = Some("ops@example.com".to_owned());
    settings.headers = vec![
        ("X-Two".to_owned(), "2".to_owned()),
        ("accept-language".to_owned(), "de".to_owned()),
    ];
    let fetcher = HttpFetcher::new(settings).unwrap();
    let targets = [
        "/",
        "/?",
        "/a/b;c?x=1&y={z}|^`'\"[]\\",
        "/%7Euser/ü?ä",
        "//x//",
        "/a%00b?%zz",
        "/!$&'()*+,-.:;=@[]^_`{|}~\"<> x",
    ];
    for target in targets {
        let response = fetcher.fetch_href(&server.url(target), None).await.unwrap();
        let seen = server.requests().pop().unwrap();
        assert_eq!(
            String::from_utf8_lossy(&response.request_head),
            String::from_utf8_lossy(&seen.head),
            "{target}"
        );
    }
    assert_eq!(
        String::from_utf8_lossy(&server.requests()[0].head),
        format!(
            "GET / HTTP/1.1\r\nHost: {}\r\nUser-Agent: testbot/1.0\r\n\
             Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n\
             Accept-Encoding: gzip\r\nFrom: ops@example.com\r\nX-Two: 2\r\nAccept-Language: de\r\n\r\n",
            server.address
        )
    );
}

#[tokio::test]
async fn the_referer_keeps_secrets() {
    let server = RawServer::always(vec![send(page("x"))]).await;
    let fetcher = fetcher();
    let long = format!("http://a.test/{}", "x".repeat(5_000));
    for (via, sent) in [
        ("http://user:secret@a.test/p?q#frag", Some("http://a.test/p?q")),
        ("https://a.test/", None),
        ("ftp://a.test/", None),
        ("not an address", None),
        (long.as_str(), None),
    ] {
        fetcher.fetch_href(&server.url("/"), Some(via)).await.unwrap();
        let head = String::from_utf8(server.requests().pop().unwrap().head).unwrap();
        let line = head
            .lines()
            .find_map(|l| l.strip_prefix("Referer: ").map(ToOwned::to_owned));
        assert_eq!(line.as_deref(), sent, "{via}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_in_words() {
    let refused = |change: fn(&mut HttpSettings)| {
        let mut settings = settings();
        change(&mut settings);
        HttpFetcher::new(settings).expect_err("refused")
    };
    assert!(refused(|s| s.user_agent = "a\nb".to_owned()).contains("User-Agent"));
    assert!(refused(|s| s.headers.push(("bad name".to_owned(), String::new()))).contains("bad name"));
    assert!(refused(|s| s.headers.push(("X".to_owned(), "a\r\nb".to_owned()))).contains("header X"));
    assert!(refused(|s| s.headers.push(("Host".to_owned(), "b".to_owned()))).contains("Host"));
    assert!(refused(|s| s.proxy = Some("::".to_owned())).contains("proxy"));
}

#[tokio::test]
async fn chunks_with_extensions_and_trailers_are_joined() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n";
    let server = RawServer::always(vec![
        send(format!("{head}A;name=\"v\"\r\n0123456789\r\n00")),
        send("3  \r\nabc\r\n"),
        send("0;last\r\nX-T: 1\r\nX-More: \r\n\r\n"),
    ])
    .await;
    let fetcher = fetcher();
    for _ in 0..2 {
        let response = fetcher.fetch_href(&server.url("/"), None).await.unwrap();
        assert_body(&response, b"0123456789abc", None);
    }
}

#[tokio::test]
async fn a_broken_chunk_keeps_what_came() {
    let response = outcome(vec![
        send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzzz\r\n"),
        Step::Sleep(Duration::from_millis(100)),
    ])
    .await
    .unwrap();
    assert_body(&response, b"abc", Some(Truncated::Disconnect));
}

#[tokio::test]
async fn a_length_that_promises_too_much_is_a_cut_body() {
    let response = outcome(vec![
        send("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort"),
        Step::Close,
    ])
    .await
    .unwrap();
    assert_body(&response, b"short", Some(Truncated::Disconnect));
}

#[tokio::test]
async fn a_length_that_promises_too_little_ends_the_body_and_the_connection() {
    let server = RawServer::always(vec![send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcdef")]).await;
    let fetcher = fetcher();
    for _ in 0..3 {
        assert_body(&fetcher.fetch_href(&server.url("/"), None).await.unwrap(), b"abc", None);
    }
    assert_eq!(
        server.requests().iter().filter(|r| r.turn > 0).count(),
        0,
        "nothing is read after such a body"
    );
}

#[tokio::test]
async fn a_length_that_says_nothing_leaves_the_body_to_the_close() {
    for length in [
        "abc",
        "-1",
        "",
        "+5",
        "5, 6",
        "5\r\nContent-Length: 6",
        "99999999999999999999999",
    ] {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nabcdefgh");
        let response = outcome(vec![send(head), Step::Close]).await.unwrap();
        assert_body(&response, b"abcdefgh", None);
    }
    let twice = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nabcde";
    assert_body(&outcome(vec![send(twice)]).await.unwrap(), b"abcde", None);
}

#[tokio::test]
async fn a_body_without_length_runs_to_the_close() {
    for version in ["1.0", "1.1"] {
        let steps = vec![
            send(format!("HTTP/{version} 200 OK\r\n\r\nabc")),
            send("def"),
            Step::Close,
        ];
        let response = outcome(steps).await.unwrap();
        assert_body(&response, b"abcdef", None);
        assert_eq!(response.head, format!("HTTP/{version} 200 OK\r\n\r\n").into_bytes());
    }
}

#[tokio::test]
async fn a_reset_in_the_body_keeps_what_came() {
    let steps = vec![
        send("HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort"),
        Step::Sleep(Duration::from_millis(100)),
        Step::Reset,
    ];
    assert_body(&outcome(steps).await.unwrap(), b"short", Some(Truncated::Disconnect));
}

#[tokio::test]
async fn a_body_is_cut_at_the_cap() {
    for head in [
        "Content-Length: 9999999999",
        "Transfer-Encoding: chunked",
        "X: to the close",
    ] {
        let chunk = [&b"800\r\n"[..], &[b'x'; 0x800], b"\r\n"].concat();
        let server = RawServer::always(vec![
            send(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n")),
            Step::Repeat {
                bytes: chunk,
                times: 100_000,
                every: Duration::ZERO,
            },
        ])
        .await;
        let response = get(&server, "/").await.unwrap();
        assert_eq!(
            (response.body.len(), response.truncated),
            (MAX_BODY as u64, Some(Truncated::Length)),
            "{head}"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(server.open_connections(), 0, "{head}: the rest is not taken");
    }
}

#[tokio::test]
async fn a_body_of_exactly_the_cap_is_whole() {
    let response = outcome(vec![send(page(&"x".repeat(MAX_BODY)))]).await.unwrap();
    assert_eq!((response.body.len(), response.truncated), (MAX_BODY as u64, None));
    let response = outcome(vec![send(page(&"x".repeat(MAX_BODY + 1)))]).await.unwrap();
    assert_eq!(
        (response.body.len(), response.truncated),
        (MAX_BODY as u64, Some(Truncated::Length))
    );
}

#[tokio::test]
async fn a_drip_is_cut_by_the_minimum_rate() {
    let began = Instant::now();
    let drip = Step::Repeat {
        bytes: b"x".to_vec(),
        times: 1_000,
        every: Duration::from_millis(50),
    };
    let response = outcome(vec![send("HTTP/1.1 200 OK\r\n\r\n"), drip]).await.unwrap();
    assert!(
        response.truncated == Some(Truncated::Time) && !response.body.is_empty(),
        "{response:?}"
    );
    assert!(
        (Duration::from_millis(450)..Duration::from_millis(1_500)).contains(&began.elapsed()),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn a_body_that_is_never_too_slow_is_cut_by_the_clock() {
    let steady = Step::Repeat {
        bytes: vec![b'x'; 200],
        times: 1_000,
        every: Duration::from_millis(50),
    };
    let response = outcome(vec![send("HTTP/1.1 200 OK\r\n\r\n"), steady]).await.unwrap();
    assert_eq!(response.truncated, Some(Truncated::Time));
    assert!(response.body.len() > 3_000, "{}", response.body.len());
    assert!(
        (Duration::from_millis(1_900)..Duration::from_secs(3)).contains(&response.took),
        "{:?}",
        response.took
    );
}

#[tokio::test]
async fn silence_is_a_timeout() {
    for said in ["", "HTTP/1.1 200 OK\r\nX-Half: "] {
        let began = Instant::now();
        let silent = vec![send(said), Step::Sleep(Duration::from_secs(5))];
        assert_fault(
            outcome(silent).await,
            &FetchErrorKind::Timeout,
            "127.0.0.1: no answer within 600ms",
        );
        assert!(began.elapsed() < Duration::from_millis(1_500));
    }
}

#[tokio::test]
async fn a_head_without_end_is_refused_with_bounded_memory() {
    let endless = |every| Step::Repeat {
        bytes: b"X-Fill: 0123456789012345678901234567890123456789\r\n".to_vec(),
        times: 200_000,
        every,
    };
    let flood = outcome(vec![send("HTTP/1.1 200 OK\r\n"), endless(Duration::ZERO)]).await;
    assert_fault(flood, &FetchErrorKind::Protocol, "not HTTP");
    let drip = outcome(vec![send("HTTP/1.1 200 OK\r\n"), endless(Duration::from_millis(20))]).await;
    assert_fault(drip, &FetchErrorKind::Timeout, "no answer");
}

#[tokio::test]
async fn many_and_long_headers_are_a_page() {
    use std::fmt::Write;
    let mut head = String::from("HTTP/1.1 200 OK\r\n");
    for i in 0..300 {
        write!(head, "X-Item-{i}: value {i}\r\n").unwrap();
    }
    let cookies = format!("Set-Cookie: a={}\r\n", "c".repeat(4_000)).repeat(16);
    let response = outcome(vec![send(format!("{head}{cookies}Content-Length: 2\r\n\r\nok"))])
        .await
        .unwrap();
    assert_body(&response, b"ok", None);
    assert_eq!(
        (response.headers.len(), response.header("x-item-299")),
        (317, Some(&b"value 299"[..]))
    );
}

#[tokio::test]
async fn any_number_of_headers_fits_into_the_longest_head() {
    for lines in [1_100, 40_000] {
        let head = format!(
            "HTTP/1.1 200 OK\r\n{}Content-Length: 0\r\n\r\n",
            "X: y\r\n".repeat(lines)
        );
        let response = outcome(vec![send(head)]).await.unwrap();
        assert_eq!(response.headers.len(), lines + 1);
    }
}

/// Answers with bytes changed, cut and put in at random: whatever comes, there is an outcome in time.
#[tokio::test]
async fn any_bytes_give_an_outcome() {
    const ANSWERS: [&[u8]; 3] = [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-A: b\r\n\r\n5\r\nhello\r\n0\r\nT: 1\r\n\r\n",
        b"HTTP/1.0 301 Moved\r\nContent-Length: 5\r\nLocation: /\r\nConnection: keep-alive\r\n\r\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200\r\nX: one\r\n two\r\n\r\nto the close",
    ];
    let server = RawServer::start(|seen| {
        let mut random: u64 = seen.target[1..].parse().unwrap();
        let mut below = |limit: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(random >> 33).unwrap() % limit
        };
        let mut bytes = ANSWERS[below(3)].to_vec();
        for _ in 0..=below(4) {
            let at = below(bytes.len());
            match below(4) {
                0 => bytes[at] = u8::try_from(below(256)).unwrap(),
                1 => bytes.truncate(at + 1),
                2 => bytes.insert(at, b"\r\n:; 0f\0"[below(8)]),
                _ => drop(bytes.drain(at..(at + 9).min(bytes.len() - 1).max(at))),
            }
        }
        let last = if below(3) == 0 { Step::Reset } else { Step::Close };
        vec![send(bytes), last]
    })
    .await;
    let mut patient = settings();
    (patient.header_timeout, patient.timeout) = (Duration::from_secs(60), Duration::from_secs(60));
    patient.min_rate = 0;
    let fetcher = HttpFetcher::new(patient).unwrap();
    let (mut answers, mut faults) = (0, 0);
    for i in 0..500 {
        match fetcher.fetch_href(&server.url(&format!("/{i}")), None).await {
            Ok(response) => {
                assert!((100..1_000).contains(&response.status));
                let head = String::from_utf8_lossy(&response.head).replace("\r\n", "\n");
                assert!(head.ends_with("\n\n"), "{head:?}");
                answers += 1;
            }
            Err(fault) => {
                assert!(!fault.detail.contains(['\r', '\n']), "{}", fault.detail);
                assert_ne!(
                    fault.kind,
                    FetchErrorKind::Timeout,
                    "the server always ends the connection"
                );
                faults += 1;
            }
        }
    }
    assert!(
        answers > 50 && faults > 50,
        "{answers} answers, {faults} faults: both ways are walked"
    );
}

#[tokio::test]
async fn odd_lines_among_the_headers_are_read_as_browsers_read_them() {
    let odd = "HTTP/1.1 200 OK\r\nX-Long: one\r\n two\r\n\tthree\r\nRuntime Warning: module not found\r\n<!DOCTYPE html PUBLIC>\r\n\
               no colon here\r\nContent-Type : text/html;\r\n\tcharset=windows-1251\r\nX-Empty:\r\n\r\nbody";
    let response = outcome(vec![send(odd), Step::Close]).await.unwrap();
    assert_body(&response, b"body", None);
    assert_eq!(response.header("x-long"), Some(&b"one two three"[..]));
    let content_type = String::from_utf8_lossy(response.header("content-type").unwrap_or_default()).into_owned();
    assert!(
        content_type.starts_with("text/html;") && content_type.ends_with("charset=windows-1251"),
        "{content_type}"
    );
    assert_eq!(response.header("x-empty"), Some(&b""[..]));
}

#[tokio::test]
async fn odd_status_lines_are_read() {
    for (line, status) in [
        ("HTTP/1.1 200\r\n", 200),
        ("HTTP/1.1 200 \r\n", 200),
        ("HTTP/1.1 200 OK\n", 200),
        ("HTTP/1.1 200 Tr\u{e8}s bien\r\n", 200),
        ("HTTP/1.1 999 Denied\r\n", 999),
        ("HTTP/1.0 299\r\n", 299),
        ("http/1.1  0404\tX\r\n", 404),
        ("HTTP/1.1 OK\r\n", 200),
        ("HTTP/2 201 Created\r\n", 201),
        ("ICY 200 OK\r\n", 200),
    ] {
        let response = outcome(vec![send(format!("{line}X: y\r\n\r\nbody")), Step::Close])
            .await
            .unwrap();
        assert_body(&response, b"body", None);
        assert_eq!(response.status, status, "{line}");
        assert_eq!(
            String::from_utf8_lossy(&response.head),
            format!("{line}X: y\r\n\r\n"),
            "to the byte"
        );
    }
}

#[tokio::test]
async fn what_is_not_http_is_said_so() {
    for said in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "<html>no head at all</html>",
        "HTTP/1.1 20 OK\r\n\r\n",
        "\0\0\0\0",
    ] {
        assert_fault(
            outcome(vec![send(said), Step::Close]).await,
            &FetchErrorKind::Protocol,
            "127.0.0.1: what came is not HTTP",
        );
    }
}

#[tokio::test]
async fn interim_answers_are_read_past() {
    let early = "HTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n".repeat(3);
    let server = RawServer::always(vec![
        send(format!("{early}HTTP/1.1 100 Continue\r\n\r\n")),
        send(page("final")),
    ])
    .await;
    let response = get(&server, "/").await.unwrap();
    assert_eq!(response.status, 200);
    assert_body(&response, b"final", None);
}

#[tokio::test]
async fn bytes_after_an_answer_without_body_are_not_the_next_answer() {
    for status in ["204 No Content", "304 Not Modified"] {
        let stray = page("poison");
        let server = RawServer::start(move |seen| {
            if seen.target == "/empty" {
                let head = format!("HTTP/1.1 {status}\r\nContent-Length: 24\r\n\r\n");
                return vec![send([head.as_bytes(), &stray].concat())];
            }
            vec![send(page("good"))]
        })
        .await;
        let fetcher = fetcher();
        for _ in 0..5 {
            let empty = fetcher.fetch_href(&server.url("/empty"), None).await.unwrap();
            assert_eq!(empty.status, status[..3].parse::<u16>().unwrap());
            assert_body(&empty, b"", None);
            assert_body(
                &fetcher.fetch_href(&server.url("/next"), None).await.unwrap(),
                b"good",
                None,
            );
        }
    }
}

#[tokio::test]
async fn a_kept_connection_is_used_again() {
    let server = RawServer::always(vec![send(page("x"))]).await;
    let fetcher = fetcher();
    for _ in 0..5 {
        fetcher.fetch_href(&server.url("/"), None).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let turns: Vec<usize> = server.requests().iter().map(|r| r.turn).collect();
    assert_eq!(turns, [0, 1, 2, 3, 4]);
}

#[tokio::test]
async fn a_request_dropped_on_a_kept_connection_is_sent_once_more_on_a_fresh_one() {
    for drop in [Step::Close, Step::Reset] {
        let server = RawServer::start(move |seen| {
            if seen.turn == 0 {
                vec![send(page("x"))]
            } else {
                vec![drop.clone()]
            }
        })
        .await;
        let fetcher = fetcher();
        for i in 0..8 {
            let response = fetcher.fetch_href(&server.url(&format!("/{i}")), None).await.unwrap();
            assert_body(&response, b"x", None);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        for i in 0..8 {
            let fresh = server
                .requests()
                .iter()
                .filter(|r| r.target == format!("/{i}") && r.turn == 0)
                .count();
            assert_eq!(fresh, 1, "/{i} got one answer");
        }
    }
}

#[tokio::test]
async fn a_request_dropped_on_a_fresh_connection_is_not_repeated() {
    for drop in [Step::Close, Step::Reset] {
        let server = RawServer::always(vec![drop]).await;
        assert_fault(
            get(&server, "/").await,
            &FetchErrorKind::Broken,
            "127.0.0.1: the connection ended",
        );
        assert_eq!(server.requests().len(), 1);
    }
    let half = RawServer::start(|seen| {
        let half = vec![send("HTTP/1.1 200 OK\r\nX: "), Step::Close];
        if seen.turn == 0 && seen.connection == 0 {
            vec![send(page("x"))]
        } else {
            half
        }
    })
    .await;
    let fetcher = fetcher();
    fetcher.fetch_href(&half.url("/"), None).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_fault(
        fetcher.fetch_href(&half.url("/half"), None).await,
        &FetchErrorKind::Broken,
        "connection ended",
    );
    assert!(half.requests().len() <= 3);
}

#[tokio::test]
async fn redirects_are_handed_on() {
    let server = RawServer::always(vec![send(
        "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
    )])
    .await;
    let response = get(&server, "/").await.unwrap();
    assert_eq!(
        (response.status, response.header("location")),
        (302, Some(&b"/elsewhere"[..]))
    );
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn coded_bodies_are_handed_on_as_they_came() {
    let body = [0x1f, 0x8b, 8, 0, 1, 2, 3];
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let response = outcome(vec![send([head.as_bytes(), &body].concat())]).await.unwrap();
    assert_eq!(&response.body.bytes().unwrap()[..], body);
    assert_eq!(response.header("content-encoding"), Some(&b"gzip"[..]));
}

#[tokio::test]
async fn nobody_listening_is_said_so() {
    let address = RawServer::always(vec![]).await.address;
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    assert_ne!(port, address.port());
    let refused = fetcher().fetch_href(&format!("http://127.0.0.1:{port}/"), None).await;
    assert_fault(refused, &FetchErrorKind::Connect, "127.0.0.1: Connection refused");
}

#[tokio::test]
async fn a_name_without_address_is_said_so() {
    let mut patient = settings();
    (patient.header_timeout, patient.timeout) = (Duration::from_secs(60), Duration::from_secs(60));
    let failed = HttpFetcher::new(patient)
        .unwrap()
        .fetch_href("http://no-such-host.invalid/", None)
        .await;
    assert_fault(
        failed,
        &FetchErrorKind::Dns,
        "no-such-host.invalid: name look-up failed: ",
    );
}

#[tokio::test]
async fn what_is_not_tls_is_said_so() {
    let server = RawServer::start(|_| vec![]).await;
    let url = server.url("/").replace("http:", "https:");
    let spoken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = format!("https://{}/", spoken.local_addr().unwrap());
    std::thread::spawn(move || {
        use std::io::Write;
        while let Ok((mut stream, _)) = spoken.accept() {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    assert_fault(
        fetcher().fetch_href(&other, None).await,
        &FetchErrorKind::Tls,
        "127.0.0.1: TLS failed: ",
    );
    assert_fault(
        fetcher().fetch_href(&url, None).await,
        &FetchErrorKind::Timeout,
        "127.0.0.1: no connection within",
    );
}

#[tokio::test]
async fn private_addresses_are_never_connected_to() {
    let server = RawServer::always(vec![send(page("secret"))]).await;
    let port = server.address.port();
    let mut closed = settings();
    closed.addresses = AddressPolicy::default();
    closed.pins = vec![("inside.test".to_owned(), port, server.address)];
    let fetcher = HttpFetcher::new(closed).unwrap();
    for host in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "127.0.0.1.",
        "0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "a.localhost",
        "inside.test",
        "INSIDE.test.",
        "169.254.169.254",
        "\u{2460}27.0.0.1",
    ] {
        let refused = fetcher.fetch_href(&format!("http://{host}:{port}/"), None).await;
        assert_fault(refused, &FetchErrorKind::PrivateAddress, "--allow-address ");
    }
    assert_eq!(server.requests().len() + server.open_connections(), 0);
}

#[tokio::test]
async fn pins_lead_to_their_address_and_port() {
    let server = RawServer::always(vec![send(page("pinned"))]).await;
    let mut settings = settings();
    settings.pins = vec![
        ("site.test".to_owned(), 80, server.address),
        ("port.test".to_owned(), server.address.port(), server.address),
    ];
    let fetcher = HttpFetcher::new(settings).unwrap();
    for url in [
        "http://site.test/",
        "http://SITE.test./",
        &format!("http://port.test:{}/", server.address.port()),
    ] {
        assert_body(&fetcher.fetch_href(url, None).await.unwrap(), b"pinned", None);
    }
    let head = String::from_utf8(server.requests()[0].head.clone()).unwrap();
    assert!(head.contains("\r\nHost: site.test\r\n"), "{head}");
}

#[tokio::test]
async fn a_proxy_gets_the_absolute_form_and_no_private_target() {
    let proxy = RawServer::always(vec![send(page("through"))]).await;
    let mut settings = settings();
    settings.addresses = AddressPolicy::default();
    settings.proxy = Some(format!("http://localhost:{}", proxy.address.port()));
    let fetcher = HttpFetcher::new(settings).unwrap();
    let response = fetcher.fetch_href("http://site.test:81/a?b", None).await.unwrap();
    assert_body(&response, b"through", None);
    assert_eq!(response.remote, None, "the proxy's address is not the server's");
    let seen = proxy.requests().pop().unwrap();
    assert!(seen.head.starts_with(b"GET http://site.test:81/a?b HTTP/1.1\r\n"));
    assert_eq!(
        String::from_utf8_lossy(&response.request_head),
        String::from_utf8_lossy(&seen.head)
    );
    for host in ["10.0.0.1", "localhost", "[::1]"] {
        let refused = fetcher.fetch_href(&format!("http://{host}/"), None).await;
        assert_fault(refused, &FetchErrorKind::PrivateAddress, "--allow-address");
    }
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn connections_to_many_hosts_are_not_kept_without_bound() {
    const MOST: usize = 4;
    let mut servers = Vec::new();
    for _ in 0..20 {
        servers.push(RawServer::always(vec![send(page("x"))]).await);
    }
    let settings = HttpSettings {
        idle_connections: MOST,
        ..settings()
    };
    let fetcher = HttpFetcher::new(settings).unwrap();
    for server in &servers {
        fetcher.fetch_href(&server.url("/"), None).await.unwrap();
        // a connection that was let go closes in a moment
        let open = || servers.iter().map(RawServer::open_connections).sum::<usize>();
        for _ in 0..100 {
            if open() <= MOST {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert!(open() <= MOST, "{} connections are open", open());
    }
}

#[tokio::test]
async fn a_length_that_is_none_does_not_hold_up_the_page() {
    let of = |head: &'static str, steps: Vec<Step>| async move {
        let said = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\nhello");
        let server =
            RawServer::always([vec![send(said)], steps, vec![Step::Sleep(Duration::from_secs(60))]].concat()).await;
        let began = Instant::now();
        let web = HttpFetcher::new(HttpSettings {
            timeout: Duration::from_secs(30),
            slow_after: Duration::from_secs(30),
            ..settings()
        })
        .unwrap();
        let response = web.fetch_href(&server.url("/"), None).await.unwrap();
        (response, began.elapsed())
    };
    let late = || vec![Step::Sleep(Duration::from_millis(1_300)), send(" you")];
    let cases = [
        ("Content-Length: 5 bytes", vec![], "hello", None),
        ("Content-Length: 3\r\nContent-Length: 5", vec![], "hello", None),
        // a server that only takes its time
        ("Content-Length: 9.0", late(), "hello you", None),
        ("Content-Length: five", late(), "hello you", Some(Truncated::Time)),
    ];
    let all = cases.map(|(head, steps, body, truncated)| async move {
        let (response, took) = of(head, steps).await;
        assert_body(&response, body.as_bytes(), truncated);
        assert!(took < Duration::from_secs(15), "{head}: {took:?}");
    });
    futures_util::future::join_all(all).await;
}
