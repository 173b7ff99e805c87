//! Who is told which password.

use std::fmt;

use reqwest::Url;

/// User and password for one host (RFC 7617), sent to nobody else: not after a redirect to another host, not to a port
/// that is not the scheme's own unless it was given, nor over another scheme if one was given.
#[derive(Clone, PartialEq, Eq)]
pub struct Auth {
    scheme: Option<String>,
    host: String,
    port: Option<u16>,
    pub(super) user: String,
    pub(super) password: String,
}

impl Auth {
    /// `host` is a host, with a port or a scheme if it is to hold for those alone: `example.com`, `example.com:8080`,
    /// `https://example.com`.
    ///
    /// # Errors
    /// What was expected.
    pub fn new(host: &str, user: &str, password: &str) -> Result<Self, String> {
        let expected = || "expected a host such as example.com, example.com:8080 or https://example.com".to_owned();
        let (scheme, rest) = match host.split_once("://") {
            Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
            None => (None, host),
        };
        if scheme
            .as_deref()
            .is_some_and(|scheme| !matches!(scheme, "http" | "https"))
        {
            return Err(expected());
        }
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        // a port that is some scheme's own would be lost on it: this one has none
        let parsed = Url::parse(&format!("http://{rest}/")).map_err(|_| expected())?;
        if rest.contains('*') {
            return Err(format!("{}: a password is for one host, not for a pattern", expected()));
        }
        let bare = parsed.path() == "/" && parsed.query().is_none() && parsed.fragment().is_none();
        if !bare || !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(expected());
        }
        let port = parsed.port().or_else(|| rest.ends_with(":80").then_some(80));
        if user.contains(':') {
            return Err("a user's name cannot hold a colon (RFC 7617)".to_owned());
        }
        Ok(Self {
            scheme,
            host: plain(parsed.host_str().ok_or_else(expected)?).to_owned(),
            port,
            user: user.to_owned(),
            password: password.to_owned(),
        })
    }

    /// Is the password for this address?
    pub(super) fn is_for(&self, url: &Url) -> bool {
        self.scheme.as_deref().is_none_or(|scheme| scheme == url.scheme())
            && url.host_str().is_some_and(|host| plain(host) == self.host)
            && match self.port {
                Some(port) => url.port_or_known_default() == Some(port),
                None => url.port().is_none(),
            }
    }

    /// How much was said of the place: of two passwords for an address the one that says more is meant.
    pub(super) fn exactness(&self) -> (bool, bool) {
        (self.port.is_some(), self.scheme.is_some())
    }

    /// Host, with scheme and port if given: what may be shown.
    #[must_use]
    pub fn place(&self) -> String {
        let scheme = self
            .scheme
            .as_deref()
            .map_or_else(String::new, |scheme| format!("{scheme}://"));
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        format!("{scheme}{}{port}", self.host)
    }
}

fn plain(host: &str) -> &str {
    host.strip_suffix('.').unwrap_or(host)
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Auth({})", self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_goes_to_its_host_alone() {
        for (given, url, sent) in [
            ("a.test", "https://a.test/x", true),
            ("a.test", "http://A.test./x", true),
            ("a.test", "http://a.test:80/", true),
            ("a.test", "http://a.test:8080/", false),
            ("https://a.test", "https://a.test:8443/", false),
            ("a.test", "http://b.a.test/", false),
            ("a.test", "http://a.test.b/", false),
            ("a.test:8080", "http://a.test:8080/", true),
            ("a.test:8080", "http://a.test/", false),
            ("a.test:80", "http://a.test/", true),
            ("a.test:80", "https://a.test/", false),
            ("https://a.test", "https://a.test/", true),
            ("https://a.test/", "http://a.test/", false),
            ("[::1]:81", "http://[::1]:81/", true),
            ("127.0.0.1", "http://0x7f.1/", true),
        ] {
            let auth = Auth::new(given, "u", "p").unwrap();
            assert_eq!(auth.is_for(&Url::parse(url).unwrap()), sent, "{given} {url}");
        }
        for given in [
            "",
            "*",
            "*.a.test",
            "a b",
            "a.test/path",
            "u@a.test",
            "ftp://a.test",
            "a.test?x",
        ] {
            assert!(Auth::new(given, "u", "p").is_err(), "{given}");
        }
        assert!(Auth::new("a.test", "u:v", "p").is_err());
        let shown = format!("{:?}", Auth::new("https://a.test:8443", "me", "secret").unwrap());
        assert_eq!(shown, "Auth(https://a.test:8443)");
    }
}
