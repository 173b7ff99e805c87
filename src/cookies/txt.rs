//! cookies.txt: what browsers' extensions, curl and wget write. Seven fields a line, parted by TAB: domain, whether
//! subdomains get it, path, whether over https only, expiry (seconds since 1970; 0 for none), name, value.

use super::cookie::Cookie;
use super::line::{MAX_ATTRIBUTE_BYTES, MAX_COOKIE_BYTES};
use crate::clock::Time;
use crate::hash::{Fingerprint, HashKey};
use crate::url::{is_public_suffix, to_ascii};

/// Largest file that is read, bytes.
pub const MAX_FILE_BYTES: u64 = 16 << 20;

/// Starts a line that is no comment although it looks like one.
const HTTP_ONLY: &str = "#HttpOnly_";

/// What a file holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Its cookies, in order.
    pub cookies: Vec<Cookie>,
    /// Stands for the file's text, so that a job takes the same file only once: what sites made of its cookies since
    /// is newer than the file.
    pub print: Fingerprint,
}

/// Reads a file.
///
/// # Errors
/// The first line that is wrong, and how: `7: expected ...`. Values are not repeated.
pub fn parse(text: &str) -> Result<Imported, String> {
    let print = HashKey([0; 16]).fingerprint(text.as_bytes());
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut cookies = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.strip_prefix(HTTP_ONLY).unwrap_or(line);
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let cookie = cookie(line).map_err(|wrong| format!("{}: {wrong}", at + 1))?;
        cookies.push(cookie);
    }
    Ok(Imported { cookies, print })
}

fn cookie(line: &str) -> Result<Cookie, String> {
    if line.chars().any(|c| c.is_control() && c != '\t') {
        return Err("a control character".to_owned());
    }
    let fields: Vec<&str> = line.split('\t').collect();
    let (domain, subdomains, path, secure, expiry, name, value) = match fields[..] {
        [domain, subdomains, path, secure, expiry, name, value] => {
            (domain, subdomains, path, secure, expiry, name, value)
        }
        // some programs leave out the TAB before an empty value
        [domain, subdomains, path, secure, expiry, name] => (domain, subdomains, path, secure, expiry, name, ""),
        _ => {
            return Err(format!(
                "expected seven fields parted by TAB (domain, TRUE|FALSE, path, TRUE|FALSE, expiry, name, value), \
                 found {}",
                fields.len()
            ));
        }
    };
    let written = domain.strip_prefix('.').unwrap_or(domain);
    let host = to_ascii(written).filter(|host| !host.ends_with('.'));
    let host = host.ok_or_else(|| format!("expected a domain, found {domain:?}"))?;
    let host_only = !true_false(subdomains)?;
    if !host_only && is_public_suffix(&host) {
        return Err(format!(
            "{host} is a public suffix: a cookie cannot be for all sites below it; FALSE in the second field keeps it \
             to the host {host} itself"
        ));
    }
    if !path.starts_with('/') || path.len() > MAX_ATTRIBUTE_BYTES {
        return Err(format!(
            "expected a path that starts with / (at most {MAX_ATTRIBUTE_BYTES} bytes)"
        ));
    }
    if name.len() + value.len() > MAX_COOKIE_BYTES || (name.is_empty() && value.is_empty()) {
        return Err(format!(
            "expected a name and a value of at most {MAX_COOKIE_BYTES} bytes together"
        ));
    }
    Ok(Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        domain: host,
        host_only,
        path: path.to_owned(),
        secure: true_false(secure)?,
        expires: expires(expiry)?,
        created: 0,
        set: 0,
    })
}

fn true_false(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(format!("expected TRUE or FALSE, found {text:?}")),
    }
}

/// 0, and what some programs write for it (-1), is no expiry. A fraction of a second is dropped.
fn expires(text: &str) -> Result<Option<Time>, String> {
    let fail = || format!("expected an expiry in seconds since 1970, found {text:?}");
    if text == "-1" {
        return Ok(None);
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(fail());
    }
    let seconds: u64 = whole.parse().map_err(|_| fail())?;
    Ok((seconds > 0).then(|| Time(seconds.saturating_mul(1_000_000))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_as_programs_write_it() {
        let text = "\u{feff}# Netscape HTTP Cookie File\r\n\r\n\
            .example.com\tTRUE\t/\tFALSE\t1900000000\tsession\tabc=1\r\n\
            #HttpOnly_h.example.com\tFALSE\t/p\tTRUE\t0\tid\tx y\n\
            #a comment\twith\ttabs\n\
            b\u{fc}cher.example\tfalse\t/\tfalse\t1900000000.5\tempty\t\n\
            localhost\tFALSE\t/\tFALSE\t-1\tempty";
        let cookies = parse(text).unwrap().cookies;
        let told: Vec<_> = cookies
            .iter()
            .map(|c| {
                (
                    c.domain.as_str(),
                    c.host_only,
                    c.path.as_str(),
                    c.secure,
                    c.name.as_str(),
                    c.value.as_str(),
                )
            })
            .collect();
        assert_eq!(
            told,
            [
                ("example.com", false, "/", false, "session", "abc=1"),
                ("h.example.com", true, "/p", true, "id", "x y"),
                ("xn--bcher-kva.example", true, "/", false, "empty", ""),
                ("localhost", true, "/", false, "empty", ""),
            ]
        );
        let expires: Vec<_> = cookies.iter().map(|c| c.expires.map(|at| at.0 / 1_000_000)).collect();
        assert_eq!(expires, [Some(1_900_000_000), None, Some(1_900_000_000), None]);
        assert_eq!(parse("").unwrap().cookies, []);
        assert_ne!(parse("").unwrap().print, parse("#").unwrap().print);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_without_the_value() {
        for (line, words) in [
            ("h.test FALSE / FALSE 0 secret value", "seven fields parted by TAB"),
            ("h.test\tFALSE\t/\tFALSE\t0\ta\tsecret\tmore", "found 8"),
            (
                "h.test\tYES\t/\tFALSE\t0\ta\tsecret",
                "expected TRUE or FALSE, found \"YES\"",
            ),
            (
                "h.test\tFALSE\t/\t1\t0\ta\tsecret",
                "expected TRUE or FALSE, found \"1\"",
            ),
            ("h.test\tFALSE\tx\tFALSE\t0\ta\tsecret", "a path that starts with /"),
            (
                "h.test\tFALSE\t/\tFALSE\tsoon\ta\tsecret",
                "seconds since 1970, found \"soon\"",
            ),
            (
                "h.test\tFALSE\t/\tFALSE\t99999999999999999999\ta\tsecret",
                "seconds since 1970",
            ),
            (
                "h.test:80\tFALSE\t/\tFALSE\t0\ta\tsecret",
                "expected a domain, found \"h.test:80\"",
            ),
            ("\tFALSE\t/\tFALSE\t0\ta\tsecret", "expected a domain"),
            (".co.uk\tTRUE\t/\tFALSE\t0\ta\tsecret", "co.uk is a public suffix"),
            ("h.test\tFALSE\t/\tFALSE\t0\t\t", "a name and a value"),
            ("h.test\tFALSE\t/\tFALSE\t0\ta\tsecret\u{7}", "a control character"),
        ] {
            let wrong = parse(&format!("# x\n\n{line}\n")).unwrap_err();
            assert!(wrong.starts_with("3: ") && wrong.contains(words), "{line}: {wrong}");
            assert!(!wrong.contains("secret"), "{wrong}");
        }
        let long = format!("h.test\tFALSE\t/\tFALSE\t0\ta\t{}", "v".repeat(MAX_COOKIE_BYTES - 1));
        assert!(parse(&long).is_ok());
        assert!(parse(&format!("{long}v")).is_err());
    }

    proptest::proptest! {
        #[test]
        fn any_text_gets_an_answer(text in "[ -~\t\n]{0,120}") {
            let _ = parse(&text);
        }
    }
}
