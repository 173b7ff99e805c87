//! The head of a request.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::proxy::basic;
use super::{Auth, HttpSettings};

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
/// Headers that hold a password: sent, but not archived.
const SECRET: [&str; 2] = ["authorization", "proxy-authorization"];
/// What the archive has in place of a password.
const REDACTED: &str = "[redacted]";

/// The headers of every request.
#[derive(Debug)]
pub(super) struct RequestHead {
    common: Vec<(HeaderName, HeaderValue)>,
    /// The same as they are sent.
    written: Vec<u8>,
    /// By host.
    auth: Vec<Auth>,
    /// For every host: the user's own headers.
    authorization: Option<String>,
    cookie: Option<String>,
    proxy_authorization: Option<String>,
}

/// The headers of one request beside the common ones.
pub(super) type Extra = Vec<(&'static str, String)>;

/// A request's head: as it goes out, and as the archive has it.
pub(super) struct Written {
    pub(super) sent: Vec<u8>,
    /// `None` if there is nothing to hide.
    pub(super) redacted: Option<Vec<u8>>,
}

impl Written {
    /// For the archive.
    pub(super) fn record(self) -> Vec<u8> {
        self.redacted.unwrap_or(self.sent)
    }
}

impl RequestHead {
    pub(super) fn new(settings: &HttpSettings, proxy_authorization: Option<String>) -> Result<Self, String> {
        let named = |name: &str| HeaderName::from_bytes(name.as_bytes());
        let mut common: Vec<(HeaderName, HeaderValue)> = Vec::new();
        let ours = [
            ("User-Agent", Some(settings.user_agent.as_str())),
            ("Accept", Some(ACCEPT_VALUE)),
            ("Accept-Encoding", Some(ACCEPT_ENCODING_VALUE)),
            ("From", settings.from.as_deref()),
        ];
        for (name, text) in ours {
            if let (Ok(key), Some(text)) = (named(name), text) {
                common.push((key, value(name, text)?));
            }
        }
        let own = common.len();
        let (mut authorization, mut cookie) = (None, None);
        for (name, text) in &settings.headers {
            let key = named(name).map_err(|_| format!("{name:?} is not a header name"))?;
            check_owner(&key, name)?;
            let value = value(name, text)?;
            match key.as_str() {
                "authorization" => authorization = Some(text.clone()),
                "cookie" => cookie = Some(text.clone()),
                _ => match common.iter_mut().take(own).find(|(known, _)| *known == key) {
                    Some((_, ours)) => *ours = value,
                    None => common.push((key, value)),
                },
            }
        }
        let mut written = Vec::with_capacity(256);
        for (name, value) in &common {
            line(&mut written, name.as_str(), value.as_bytes());
        }
        Ok(Self {
            common,
            written,
            auth: settings.auth.clone(),
            authorization,
            cookie,
            proxy_authorization,
        })
    }

    /// What one request says beyond the common headers.
    pub(super) fn extra(&self, url: &Url, via: Option<&str>, cookie: Option<&str>) -> Extra {
        let mut extra = Extra::new();
        let fixed = self.common.iter().any(|(name, _)| name.as_str() == "referer");
        extra.extend(
            via.filter(|_| !fixed)
                .and_then(|via| referer(url, via))
                .map(|page| ("referer", page)),
        );
        let cookies = match (self.cookie.as_deref(), cookie) {
            (Some(own), Some(jar)) => Some(format!("{own}; {jar}")),
            (own, jar) => own.or(jar).map(ToOwned::to_owned),
        };
        extra.extend(cookies.map(|value| ("cookie", value)));
        let login = self
            .auth
            .iter()
            .find(|auth| auth.is_for(url))
            .map(|auth| basic(auth.user.as_bytes(), auth.password.as_bytes()))
            .or_else(|| self.authorization.clone());
        extra.extend(login.map(|value| ("authorization", value)));
        // a value that could end its line is none
        extra.retain(|(_, value)| HeaderValue::from_bytes(value.as_bytes()).is_ok());
        extra
    }

    /// The head of an HTTP/1.1 request; `forwarded` by a proxy that takes whole addresses.
    pub(super) fn written(&self, url: &Url, extra: &Extra, forwarded: bool) -> Written {
        let login = self.proxy_authorization.as_deref().filter(|_| forwarded);
        let secret = login.is_some() || extra.iter().any(|(name, _)| SECRET.contains(name));
        Written {
            sent: self.write(url, extra, forwarded, login, false),
            redacted: secret.then(|| self.write(url, extra, forwarded, login, true)),
        }
    }

    fn write(&self, url: &Url, extra: &Extra, forwarded: bool, login: Option<&str>, redact: bool) -> Vec<u8> {
        let mut head = Vec::with_capacity(512);
        head.extend_from_slice(b"GET ");
        if forwarded {
            head.extend_from_slice(b"http://"); // absolute form (RFC 9112 section 3.2.2)
            authority(&mut head, url);
        }
        head.extend_from_slice(url.path().as_bytes());
        if let Some(query) = url.query() {
            head.push(b'?');
            head.extend_from_slice(query.as_bytes());
        }
        head.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        authority(&mut head, url);
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(&self.written);
        let extra = extra.iter().map(|(name, value)| (*name, value.as_str()));
        for (name, value) in extra.chain(login.map(|value| ("proxy-authorization", value))) {
            let hide = redact && SECRET.contains(&name);
            line(&mut head, name, if hide { REDACTED } else { value }.as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        head
    }

    /// The same for the client that speaks HTTP/2, which makes the rest of the address.
    pub(super) fn map(&self, extra: &Extra) -> HeaderMap {
        let mut map = HeaderMap::with_capacity(self.common.len() + extra.len());
        for (name, value) in &self.common {
            map.append(name, value.clone());
        }
        for (name, value) in extra {
            if let Ok(mut value) = HeaderValue::from_bytes(value.as_bytes()) {
                value.set_sensitive(SECRET.contains(name) || *name == "cookie"); // never in a table of either side (RFC 7541 section 7.1.3)
                map.append(HeaderName::from_static(name), value);
            }
        }
        map
    }
}

/// Reads `Name: value` as the user gives it.
///
/// # Errors
/// What is wrong with it.
pub fn header(text: &str) -> Result<(String, String), String> {
    let (name, text) = text
        .split_once(':')
        .ok_or("expected a header such as \"Accept-Language: de\"")?;
    let (name, text) = (name.trim(), text.trim());
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("{name:?} is not a header name"))?;
    check_owner(&key, name)?;
    value(name, text)?;
    Ok((name.to_owned(), text.to_owned()))
}

/// A user's header as it may be shown: without a secret.
#[must_use]
pub fn shown_header((name, value): &(String, String)) -> String {
    let hide = SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret)) || name.eq_ignore_ascii_case("cookie");
    format!("{name}: {}", if hide { REDACTED } else { value })
}

fn check_owner(key: &HeaderName, name: &str) -> Result<(), String> {
    if NOT_THE_USERS.contains(&key.as_str()) {
        return Err(format!("the header {name} cannot be set: it belongs to the connection"));
    }
    Ok(())
}

/// Host, and port if it is not the scheme's own.
fn authority(head: &mut Vec<u8>, url: &Url) {
    head.extend_from_slice(url.host_str().unwrap_or_default().as_bytes());
    if let Some(port) = url.port() {
        head.push(b':');
        head.extend_from_slice(port.to_string().as_bytes());
    }
}

fn value(name: &str, text: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_str(text).map_err(|_| format!("the header {name} cannot hold a control character"))
}

/// The page that led here, without fragment and user (RFC 9110 section 10.1.3); never from `https` to `http`.
fn referer(target: &Url, via: &str) -> Option<String> {
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
    Some(page.into())
}

/// A header line. The name in its usual form: a capital at the start and after `-`.
fn line(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    let mut start_of_word = true;
    for byte in name.bytes() {
        head.push(if start_of_word { byte.to_ascii_uppercase() } else { byte });
        start_of_word = byte == b'-';
    }
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}
