//! Ways through a proxy: HTTP with CONNECT, and SOCKS 5, written here.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crawler::fetch::FetchErrorKind;
use crawler::fetch::dns::AddressPolicy;
use crawler::fetch::http::{HttpFetcher, HttpSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::fetch::{assert_body, assert_fault, page, settings};
use crate::raw_server::{RawServer, send};
use crate::secure_server::{SecureServer, manner};

/// A proxy that leads every way to one server.
struct Proxy {
    address: SocketAddr,
    /// What it was asked for.
    log: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy)]
enum Speaks {
    Http,
    Socks,
}

impl Proxy {
    /// `login` is the user and the password that it wants.
    async fn start(speaks: Speaks, to: SocketAddr, login: Option<(&'static str, &'static str)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let log = Arc::new(Mutex::new(Vec::new()));
        let asked = Arc::clone(&log);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let asked = Arc::clone(&asked);
                tokio::spawn(async move {
                    let _ = match speaks {
                        Speaks::Http => http(stream, to, login, &asked).await,
                        Speaks::Socks => socks(stream, to, login, &asked).await,
                    };
                });
            }
        });
        Self { address, log }
    }

    fn asked(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

async fn relay(mut stream: TcpStream, to: SocketAddr) -> std::io::Result<()> {
    let mut server = TcpStream::connect(to).await?;
    tokio::io::copy_bidirectional(&mut stream, &mut server)
        .await
        .map(|_| ())
}

async fn http(
    mut stream: TcpStream,
    to: SocketAddr,
    login: Option<(&str, &str)>,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).unwrap();
    asked.lock().unwrap().push(head.clone());
    let wanted = login.map(|(user, password)| {
        let pair = data_encoding::BASE64.encode(format!("{user}:{password}").as_bytes());
        format!("\r\nProxy-Authorization: Basic {pair}\r\n")
    });
    if wanted.is_some_and(|line| !head.contains(&line)) {
        return stream.write_all(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n").await;
    }
    if head.starts_with("CONNECT down.test:") {
        return stream.write_all(b"HTTP/1.1 502 Bad Gateway\r\n\r\n").await;
    }
    if head.starts_with("CONNECT ") {
        stream.write_all(b"HTTP/1.1 200 Here you are\r\nX: y\r\n\r\n").await?;
        return relay(stream, to).await;
    }
    stream.write_all(&page("forwarded")).await
}

async fn socks(
    mut stream: TcpStream,
    to: SocketAddr,
    login: Option<(&str, &str)>,
    asked: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut start = [0; 2];
    stream.read_exact(&mut start).await?;
    let mut methods = vec![0; start[1].into()];
    stream.read_exact(&mut methods).await?;
    let method = if login.is_some() { 2 } else { 0 };
    if !methods.contains(&method) {
        return stream.write_all(&[5, 0xff]).await;
    }
    stream.write_all(&[5, method]).await?;
    if let Some((user, password)) = login {
        let mut texts = [const { String::new() }; 2];
        assert_eq!(stream.read_u8().await?, 1);
        for text in &mut texts {
            let mut bytes = vec![0; stream.read_u8().await?.into()];
            stream.read_exact(&mut bytes).await?;
            *text = String::from_utf8(bytes).unwrap();
        }
        let good = texts == [user, password];
        stream.write_all(&[1, u8::from(!good)]).await?;
    }
    let mut request = [0; 4];
    stream.read_exact(&mut request).await?;
    let host = if request[3] == 1 {
        let mut ip = [0; 4];
        stream.read_exact(&mut ip).await?;
        std::net::Ipv4Addr::from(ip).to_string()
    } else {
        let mut name = vec![0; stream.read_u8().await?.into()];
        stream.read_exact(&mut name).await?;
        String::from_utf8(name).unwrap()
    };
    let port = stream.read_u16().await?;
    asked.lock().unwrap().push(format!("{host}:{port}"));
    if host == "down.test" {
        return stream.write_all(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0]).await;
    }
    // the address it uses, as a name: any length has to be read
    stream.write_all(b"\x05\x00\x00\x03\x05proxy\x00\x50").await?;
    relay(stream, to).await
}

fn through(proxy: &str, change: impl FnOnce(&mut HttpSettings)) -> HttpFetcher {
    let mut settings = settings();
    settings.insecure_tls = true;
    // the proxy's own address needs no permission
    settings.addresses = AddressPolicy::default();
    settings.proxy = Some(proxy.to_owned());
    change(&mut settings);
    HttpFetcher::new(settings).unwrap()
}

#[tokio::test]
async fn an_http_proxy_leads_to_tls_and_forwards_the_rest() {
    let server = SecureServer::start(manner(&["h2", "http/1.1"])).await;
    let proxy = Proxy::start(Speaks::Http, server.address, Some(("me", "p@ss"))).await;
    let web = through(&format!("http://me:p%40ss@{}", proxy.address), |_| ());
    let response = web.fetch_href("https://site.test/x", None).await.unwrap();
    assert_body(&response, b"secure", None);
    assert_eq!(response.remote, None);
    assert_eq!(response.protocols, ["http/1.1", "tls/1.3"], "no HTTP/2 behind a proxy");
    assert_eq!(
        proxy.asked(),
        [
            "CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\nUser-Agent: testbot/1.0\r\nProxy-Authorization: Basic bWU6cEBzcw==\r\n\r\n"
        ]
    );
    let response = web.fetch_href("http://site.test:81/y", None).await.unwrap();
    assert_body(&response, b"forwarded", None);
    let sent = proxy.asked().pop().unwrap();
    assert!(
        sent.starts_with("GET http://site.test:81/y HTTP/1.1\r\nHost: site.test:81\r\n"),
        "{sent}"
    );
    let record = String::from_utf8(response.request_head).unwrap();
    assert!(
        record.contains("Proxy-Authorization: [redacted]\r\n") && !record.contains("Basic"),
        "{record}"
    );

    let refused = web.fetch_href("https://down.test/", None).await;
    assert_fault(refused, &FetchErrorKind::Connect, "down.test: the proxy refuses: 502");
    let stranger = through(&format!("http://{}", proxy.address), |_| ());
    for url in ["https://site.test/", "http://site.test/"] {
        let refused = stranger.fetch_href(url, None).await;
        assert_fault(refused, &FetchErrorKind::Connect, "site.test: the proxy refuses: 407");
    }
    for host in [
        "10.0.0.1",
        "localhost",
        "[::1]",
        "127.1",
        "printer.local",
        "metadata.google.internal",
        "intranet",
    ] {
        let before = proxy.asked().len();
        let refused = web.fetch_href(&format!("https://{host}/"), None).await;
        assert_fault(refused, &FetchErrorKind::PrivateAddress, "--allow-address");
        assert_eq!(proxy.asked().len(), before);
    }
}

#[tokio::test]
async fn socks_leads_by_name_or_by_an_address_that_was_judged() {
    let server = RawServer::always(vec![send(page("behind"))]).await;
    let secure = SecureServer::start(manner(&["http/1.1"])).await;
    let pin = |address: &str| vec![("site.test".to_owned(), 80, address.parse().unwrap())];

    let proxy = Proxy::start(Speaks::Socks, server.address, Some(("me", "secret"))).await;
    let names = through(&format!("socks5h://me:secret@{}", proxy.address), |_| ());
    for _ in 0..2 {
        let response = names.fetch_href("http://site.test/", None).await.unwrap();
        assert_body(&response, b"behind", None);
        assert_eq!(response.remote, None);
    }
    assert_eq!(proxy.asked(), ["site.test:80"], "and the connection is kept");
    assert!(
        server.requests()[0]
            .head
            .starts_with(b"GET / HTTP/1.1\r\nHost: site.test\r\n")
    );

    let looked_up = through(&format!("socks5://me:secret@{}", proxy.address), |s| {
        s.pins = pin("1.2.3.4:80");
    });
    let response = looked_up.fetch_href("http://site.test/", None).await.unwrap();
    assert_body(&response, b"behind", None);
    assert_eq!(response.remote, Some("1.2.3.4".parse().unwrap()));
    assert_eq!(proxy.asked().pop().unwrap(), "1.2.3.4:80");
    let inside = through(&format!("socks5://me:secret@{}", proxy.address), |s| {
        s.pins = pin("10.0.0.7:80");
    });
    let asked = proxy.asked().len();
    for (web, url) in [
        (&inside, "http://site.test/"),
        (&names, "http://127.0.0.1/"),
        (&names, "http://a.localhost/"),
        (&names, "http://nas.lan/"),
        (&names, "http://metadata.google.internal/"),
    ] {
        assert_fault(
            web.fetch_href(url, None).await,
            &FetchErrorKind::PrivateAddress,
            "--allow-address",
        );
    }
    assert_eq!(proxy.asked().len(), asked, "what is private is not asked for");

    let refused = names.fetch_href("http://down.test/", None).await;
    assert_fault(
        refused,
        &FetchErrorKind::Connect,
        "down.test: the proxy refuses: host unreachable",
    );
    let wrong = through(&format!("socks5h://me:wrong@{}", proxy.address), |_| ());
    assert_fault(
        wrong.fetch_href("http://site.test/", None).await,
        &FetchErrorKind::Connect,
        "does not accept the user",
    );
    let stranger = through(&format!("socks5h://{}", proxy.address), |_| ());
    assert_fault(
        stranger.fetch_href("http://site.test/", None).await,
        &FetchErrorKind::Connect,
        "wants a user",
    );

    let proxy = Proxy::start(Speaks::Socks, secure.address, None).await;
    let web = through(&format!("socks5h://{}", proxy.address), |_| ());
    let response = web.fetch_href("https://site.test/", None).await.unwrap();
    assert_body(&response, b"secure", None);
    assert_eq!(proxy.asked(), ["site.test:443"]);
}

#[tokio::test]
async fn a_private_name_goes_through_once_a_private_range_is_allowed() {
    let server = RawServer::always(vec![send(page("inside"))]).await;
    let proxy = Proxy::start(Speaks::Socks, server.address, None).await;
    let web = through(&format!("socks5h://{}", proxy.address), |s| {
        s.addresses.allow = vec!["10.0.0.0/8".parse().unwrap()];
    });
    let response = web.fetch_href("http://printer.local/", None).await.unwrap();
    assert_body(&response, b"inside", None);
    let refused = web.fetch_href("http://localhost/", None).await;
    assert_fault(refused, &FetchErrorKind::PrivateAddress, "--allow-address 127.0.0.1/32");
    assert_eq!(proxy.asked(), ["printer.local:80"]);
}

#[tokio::test]
async fn a_proxy_that_talks_before_it_is_asked_answers_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut greeting = [0; 3];
            stream.read_exact(&mut greeting).await.unwrap();
            stream.write_all(&[5, 0]).await.unwrap();
            let mut request = [0; 4 + 1 + 9 + 2];
            stream.read_exact(&mut request).await.unwrap();
            let reply = [&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &page("poison")].concat();
            stream.write_all(&reply).await.unwrap();
            let _ = stream.read_u8().await;
        }
    });
    let web = through(&format!("socks5h://{address}"), |_| ());
    let refused = web.fetch_href("http://site.test/", None).await;
    assert_fault(
        refused,
        &FetchErrorKind::Connect,
        "the proxy refuses: it talks before it is asked",
    );
}

#[tokio::test]
async fn a_proxy_that_is_none_is_said_so() {
    let server = RawServer::always(vec![send("nonsense\r\n")]).await;
    let web = through(&format!("http://{}", server.address), |_| ());
    let refused = web.fetch_href("https://site.test/", None).await;
    assert_fault(refused, &FetchErrorKind::Connect, "it does not speak HTTP");
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let web = through(&format!("socks5h://{nobody}"), |_| ());
    let refused = web.fetch_href("http://site.test/", None).await;
    assert_fault(refused, &FetchErrorKind::Proxy, "is not reached: Connection refused");
}

#[test]
fn a_site_over_tls_is_crawled_through_a_proxy() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let server = runtime.block_on(SecureServer::start(manner(&["h2", "http/1.1"])));
    let proxy = runtime.block_on(Proxy::start(Speaks::Http, server.address, Some(("me", "s3cret"))));
    let job = crate::harness::Job::without_permission(&["https://site.test/page"])
        .switch("--insecure-tls")
        .flag("--proxy", &format!("http://me:s3cret@{}", proxy.address));
    job.run().assert_code(0);
    let paths: Vec<String> = server.requests().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/robots.txt", "/page"]);
    assert!(
        proxy
            .asked()
            .iter()
            .all(|head| head.starts_with("CONNECT site.test:443 "))
    );
    let records = job.records();
    let page = records
        .iter()
        .find(|record| record.is_answer() && record.uri() == "https://site.test/page");
    assert_eq!(page.unwrap().headers["warc-protocol"], "tls/1.3");
    let settings = std::fs::read_to_string(job.dir().join("config.toml")).unwrap();
    assert!(
        settings.contains("me:redacted@") && !settings.contains("s3cret"),
        "{settings}"
    );
}

/// Hosts behind a proxy, one page each.
fn hosts(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("http://host{n}.test/")).collect()
}

/// What leads to the hosts is gone in the middle of the crawl, and back after a while. No host is blamed for it.
#[test]
fn a_proxy_that_is_away_for_a_while_costs_no_page() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let log = Arc::new(Mutex::new(Vec::new()));
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::clone(&log);
    runtime.spawn(async move {
        let mut listener = Some(listener);
        loop {
            let (stream, _) = match &listener {
                Some(here) => here.accept().await.unwrap(),
                None => unreachable!("it is there again below"),
            };
            http(stream, address, None, &asked).await.unwrap();
            if asked.lock().unwrap().len() == 20 {
                drop(listener.take());
                tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
                listener = Some(TcpListener::bind(address).await.unwrap());
            }
        }
    });
    let seeds = hosts(30);
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let job = crate::harness::Job::without_permission(&seeds)
        .flag("--proxy", &format!("http://{address}"))
        // one for a connection that the proxy had taken when it went
        .flag("--retries", "1")
        .flag("--delay", "0ms");
    job.run().assert_code(0);
    job.assert_balanced();
    assert_eq!((job.count("/urls/fetched"), job.count("/urls/failed")), (30, 0));
    let log = std::fs::read_to_string(job.dir().join("logs/crawl.log")).unwrap();
    assert!(log.contains("the proxy 127.0.0.1:"), "it was away, so somebody met it");
}

#[test]
fn a_proxy_that_never_answers_ends_the_run_and_the_next_run_goes_on() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let seeds = hosts(3);
    let seeds: Vec<&str> = seeds.iter().map(String::as_str).collect();
    let job = crate::harness::Job::without_permission(&seeds)
        .flag("--proxy", &format!("http://{address}"))
        .flag("--delay", "0ms");
    let ended = job.run();
    ended.assert_code(4);
    let said = format!("{} {}", ended.stdout, ended.stderr);
    assert!(
        said.contains(&format!("the proxy {address} is not reached: Connection refused")),
        "{said}"
    );
    assert_eq!((job.count("/urls/pending"), job.count("/urls/failed")), (3, 0));
    let log = Arc::new(Mutex::new(Vec::new()));
    runtime.spawn(async move {
        let listener = TcpListener::bind(address).await.unwrap();
        while let Ok((stream, _)) = listener.accept().await {
            http(stream, address, None, &log).await.unwrap();
        }
    });
    job.run().assert_code(0);
    assert_eq!((job.count("/urls/fetched"), job.count("/urls/pending")), (3, 0));
}
