//! Heads: the one we send, and the one received as far as the client tells.

use hyper::ext::ReasonPhrase;
use reqwest::Url;
use reqwest::header::{
    ACCEPT, ACCEPT_ENCODING, COOKIE, FROM, HOST, HeaderMap, HeaderName, HeaderValue, REFERER, USER_AGENT,
};

use super::HttpSettings;

/// What a browser accepts when a person follows a link, in short.
const ACCEPT_VALUE: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
/// Of what `decode.rs` undoes, only what costs us least. Servers that know several codings choose by their own taste, and
/// a page of 90 KB takes 72 us to inflate from gzip and 170 from brotli; a gzipped body also goes into the archive
/// without being compressed again. No server speaks the others and not gzip.
const ACCEPT_ENCODING_VALUE: &str = "gzip";
/// Longest `Referer` sent, bytes; beyond it none is sent (browsers stop at 4 KiB too).
const MAX_REFERER_BYTES: usize = 4_096;
/// Headers that frame the message or the connection: the client's own business, never the user's.
const NOT_THE_USERS: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "upgrade",
    "expect",
    "keep-alive",
    "proxy-authorization",
];

/// The headers of every request.
#[derive(Debug)]
pub(super) struct RequestHead {
    common: HeaderMap,
}

impl RequestHead {
    pub(super) fn new(settings: &HttpSettings) -> Result<Self, String> {
        let mut common = HeaderMap::new();
        common.insert(USER_AGENT, value("User-Agent", &settings.user_agent)?);
        common.insert(ACCEPT, HeaderValue::from_static(ACCEPT_VALUE));
        common.insert(ACCEPT_ENCODING, HeaderValue::from_static(ACCEPT_ENCODING_VALUE));
        if let Some(from) = &settings.from {
            common.insert(FROM, value("From", from)?);
        }
        let ours = common.clone();
        for (name, text) in &settings.headers {
            let key: HeaderName = name.parse().map_err(|_| format!("{name:?} is not a header name"))?;
            if NOT_THE_USERS.contains(&key.as_str()) {
                return Err(format!("the header {name} cannot be set: it belongs to the connection"));
            }
            let value = value(name, text)?;
            if ours.contains_key(&key) {
                common.insert(key, value);
            } else {
                common.append(key, value);
            }
        }
        Ok(Self { common })
    }

    /// The headers of one request in the order they are sent, `Host` first.
    pub(super) fn headers(&self, url: &Url, via: Option<&str>, cookie: Option<&str>) -> HeaderMap {
        let mut headers = HeaderMap::with_capacity(self.common.len() + 2);
        let host = url.host_str().unwrap_or_default();
        let authority = url
            .port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        if let Ok(value) = HeaderValue::from_str(&authority) {
            headers.insert(HOST, value);
        }
        for (name, value) in &self.common {
            headers.append(name, value.clone());
        }
        if let Some(value) = via.and_then(|via| referer(url, via)) {
            headers.entry(REFERER).or_insert(value);
        }
        if let Some(value) = cookie.and_then(|cookie| HeaderValue::from_bytes(cookie.as_bytes()).ok()) {
            headers.entry(COOKIE).or_insert(value);
        }
        headers
    }
}

fn value(name: &str, text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| format!("the header {name} cannot hold {text:?}"))
}

/// The page that led here, without fragment and user (RFC 9110 section 10.1.3); never from `https` to `http`.
fn referer(target: &Url, via: &str) -> Option<HeaderValue> {
    if via.len() > MAX_REFERER_BYTES {
        return None;
    }
    let mut page = Url::parse(via).ok()?;
    match page.scheme() {
        "https" if target.scheme() != "https" => return None,
        "https" | "http" => {}
        _ => return None,
    }
    page.set_fragment(None);
    let _ = page.set_username(""); // neither can fail where there is a host, and http has one
    let _ = page.set_password(None);
    HeaderValue::from_str(page.as_str()).ok()
}

/// A request's head as it goes out: request line, header lines, empty line.
pub(super) fn written(url: &Url, headers: &HeaderMap, to_proxy: bool) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    head.extend_from_slice(b"GET ");
    if to_proxy && url.scheme() == "http" {
        head.extend_from_slice(b"http://"); // absolute form (RFC 9112 section 3.2.2)
        head.extend_from_slice(headers.get(HOST).map_or(&[], HeaderValue::as_bytes));
    }
    head.extend_from_slice(url.path().as_bytes());
    if let Some(query) = url.query() {
        head.push(b'?');
        head.extend_from_slice(query.as_bytes());
    }
    head.extend_from_slice(b" HTTP/1.1\r\n");
    header_lines(&mut head, headers);
    head
}

/// An answer's head as far as the client tells, and its headers with names in lower case.
pub(super) fn received(response: &reqwest::Response) -> (Vec<u8>, Vec<(String, Vec<u8>)>) {
    let status = response.status();
    let mut head = Vec::with_capacity(1_024);
    head.extend_from_slice(format!("{:?} {} ", response.version(), status.as_str()).as_bytes());
    match response.extensions().get::<ReasonPhrase>() {
        Some(reason) => head.extend_from_slice(reason.as_bytes()),
        None => head.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes()),
    }
    head.extend_from_slice(b"\r\n");
    header_lines(&mut head, response.headers());
    let headers = response
        .headers()
        .iter()
        .map(|(name, v)| (name.as_str().to_owned(), v.as_bytes().to_vec()));
    (head, headers.collect())
}

/// Header lines and the empty line that closes them. Names in the usual form: a capital at the start and after `-`.
fn header_lines(head: &mut Vec<u8>, headers: &HeaderMap) {
    for (name, value) in headers {
        let mut start_of_word = true;
        for byte in name.as_str().bytes() {
            head.push(if start_of_word { byte.to_ascii_uppercase() } else { byte });
            start_of_word = byte == b'-';
        }
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
}
