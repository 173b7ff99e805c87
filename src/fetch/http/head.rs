//! The head of a request.

use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::super::decode::CODINGS;
use super::proxy::{basic, shown_proxy};
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
const NOT_THE_USERS: [&str; 12] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "http2-settings",
    "expect",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
];
/// Headers that make a server send a part of a page, or none.
const NOT_WHOLE: [&str; 6] = [
    "range",
    "if-range",
    "if-modified-since",
    "if-unmodified-since",
    "if-none-match",
    "if-match",
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
            check_use(&key, name, text)?;
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
            .filter(|auth| auth.is_for(url))
            .max_by_key(|auth| auth.exactness())
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
            head.extend_from_slice(authority(url).as_bytes());
        }
        head.extend_from_slice(target(url).as_bytes());
        head.extend_from_slice(b" HTTP/1.1\r\nHost: ");
        head.extend_from_slice(authority(url).as_bytes());
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

    /// The same for HTTP/2, without what stands in pseudo-headers.
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
    check_use(&key, name, text)?;
    value(name, text)?;
    Ok((name.to_owned(), text.to_owned()))
}

/// A user's header as it may be shown: without a secret.
#[must_use]
pub fn shown_header((name, value): &(String, String)) -> String {
    format!("{name}: {}", if is_secret(name) { REDACTED } else { value })
}

/// Is this a header of the user whose value is kept from files and logs?
fn is_secret(name: &str) -> bool {
    SECRET.iter().any(|secret| name.eq_ignore_ascii_case(secret)) || name.eq_ignore_ascii_case("cookie")
}

/// What of these settings is not stored with a job, named as the user gives it, without its value.
#[must_use]
pub fn secrets(headers: &[(String, String)], auth: &[Auth], proxy: Option<&str>) -> Vec<String> {
    let logins = auth.iter().map(|auth| format!("[[auth]] for {}", auth.place()));
    let lines = headers.iter().filter(|(name, _)| is_secret(name));
    let lines = lines.map(|(name, _)| format!("--header {}", name.to_ascii_lowercase()));
    let proxy = proxy.filter(|proxy| shown_proxy(proxy) != **proxy);
    let mut names: Vec<String> = logins
        .chain(lines)
        .chain(proxy.map(|_| "the user and password of --proxy".to_owned()))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Says why a header cannot be the user's.
fn check_use(key: &HeaderName, name: &str, text: &str) -> Result<(), String> {
    if key.as_str() == "proxy-authorization" {
        return Err(format!(
            "the header {name} cannot be set: it is for the proxy alone; give user and password with --proxy"
        ));
    }
    if NOT_THE_USERS.contains(&key.as_str()) {
        return Err(format!("the header {name} cannot be set: it belongs to the connection"));
    }
    if NOT_WHOLE.contains(&key.as_str()) {
        return Err(format!(
            "the header {name} cannot be set: servers would send parts of pages, or none (206, 304, 412), and the archive \
             would have no page"
        ));
    }
    if key.as_str() == "accept-encoding"
        && let Some(coding) = unknown_coding(text)
    {
        return Err(format!(
            "the header {name} cannot ask for {coding:?}: it could not be read here; known are {}, identity",
            CODINGS.join(", ")
        ));
    }
    Ok(())
}

/// The first content coding asked for that cannot be undone here (RFC 9110 section 12.5.3); `*` asks for all.
fn unknown_coding(text: &str) -> Option<&str> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    let asked = items.filter_map(|item| {
        let (coding, weight) = item.split_once(';').unwrap_or((item, ""));
        let weight = weight
            .trim()
            .trim_start_matches(['q', 'Q'])
            .trim_start()
            .trim_start_matches('=')
            .trim();
        let unwanted = weight.parse().is_ok_and(|weight: f64| weight <= 0.0);
        (!unwanted).then_some(coding.trim())
    });
    let known = |coding: &str| {
        CODINGS
            .iter()
            .chain(&["identity"])
            .any(|known| known.eq_ignore_ascii_case(coding))
    };
    asked.into_iter().find(|coding| !known(coding))
}

/// Host, and port if it is not the scheme's own.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port()
        .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// Path and query.
pub(super) fn target(url: &Url) -> String {
    url.query()
        .map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codings_that_can_be_read_are_asked_for() {
        for good in [
            "gzip",
            "br;q=1.0, GZIP;q=0.5, *;q=0",
            "identity",
            "",
            "gzip,,zstd",
            "compress;q=0, deflate",
        ] {
            assert_eq!(
                header(&format!("Accept-Encoding: {good}")).map(|_| ()),
                Ok(()),
                "{good}"
            );
        }
        for (bad, named) in [
            ("gzip, compress", "compress"),
            ("*", "*"),
            ("dcb;q=0.1", "dcb"),
            ("lzma; q = 1", "lzma"),
        ] {
            let refused = header(&format!("Accept-Encoding: {bad}")).unwrap_err();
            assert!(refused.contains(&format!("{named:?}")), "{refused}");
        }
    }
}
