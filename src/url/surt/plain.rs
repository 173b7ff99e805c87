//! SURT forms of an address as it is written: nothing is folded, decoded, sorted or dropped.
//!
//! They are what a SURT prefix is held against (a prefix must be able to tell `/docs` from `/docs/` and `/DOCS`), and
//! the other forms in which tools write addresses so that they sort by host. The forms are those of `urlcanon`: its
//! tests say where the port and the password go.

use super::split_scheme;

/// A way to write an address with its host reversed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `http://(com,example,:8080)/path?query`
    Surt,
    /// `com,example,:8080)/path?query`
    WithoutScheme,
    /// `http://(com,example:8080)/path?query`
    WithoutTrailingComma,
    /// `com,example,//8080:http@user:password:/path?query`: sorts by host, port, scheme, then the user.
    HostFirst,
}

/// The pieces of an address, as written.
struct Pieces<'a> {
    scheme: &'a str,
    user: Option<&'a str>,
    host: &'a str,
    /// With its `:`.
    port: &'a str,
    /// Path, query and fragment.
    tail: &'a str,
}

/// An address in one of the forms. One without an authority (`urn:x`) is left as it is.
#[must_use]
pub fn key(href: &str, form: Form) -> String {
    let Some(pieces) = pieces(href) else {
        return href.to_owned();
    };
    let mut key = String::with_capacity(href.len() + 8);
    if matches!(form, Form::Surt | Form::WithoutTrailingComma) {
        key.push_str(pieces.scheme);
        key.push_str("://(");
    }
    push_reversed(&mut key, pieces.host, form != Form::WithoutTrailingComma);
    if form == Form::HostFirst {
        key.push_str("//");
        key.push_str(pieces.port.trim_start_matches(':'));
        key.push_str(if pieces.port.is_empty() { "" } else { ":" });
        key.push_str(pieces.scheme);
        if let Some(user) = pieces.user {
            key.push('@');
            key.push_str(user);
        }
        key.push(':');
    } else {
        key.push_str(pieces.port);
        key.push(')');
    }
    key.push_str(pieces.tail);
    key
}

fn pieces(href: &str) -> Option<Pieces<'_>> {
    let (_, after) = split_scheme(href)?;
    let scheme = href.get(..href.len() - after.len() - 1)?;
    let rest = after.strip_prefix("//")?;
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host_and_port) = match authority.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, authority),
    };
    let port = host_and_port.rfind(':').filter(|at| {
        let digits = host_and_port.get(at + 1..).unwrap_or_default();
        digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    let (host, port) = host_and_port.split_at(port.unwrap_or(host_and_port.len()));
    Some(Pieces {
        scheme,
        user,
        host,
        port,
        tail,
    })
}

/// `a.example.com` → `com,example,a,`; an address of numbers stays as it is.
fn push_reversed(key: &mut String, host: &str, comma: bool) {
    if host.starts_with('[') || host.parse::<std::net::Ipv4Addr>().is_ok() {
        key.push_str(host);
        return;
    }
    for (at, label) in host.rsplit('.').enumerate() {
        if at > 0 {
            key.push(',');
        }
        key.push_str(label);
    }
    if comma && !host.is_empty() {
        key.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_form_has_its_place_for_everything() {
        let href = "https://me:secret@www.Example.net:8080/A//b/?q=2&a=1#top";
        for (form, written) in [
            (Form::Surt, "https://(net,Example,www,:8080)/A//b/?q=2&a=1#top"),
            (Form::WithoutScheme, "net,Example,www,:8080)/A//b/?q=2&a=1#top"),
            (
                Form::WithoutTrailingComma,
                "https://(net,Example,www:8080)/A//b/?q=2&a=1#top",
            ),
            (
                Form::HostFirst,
                "net,Example,www,//8080:https@me:secret:/A//b/?q=2&a=1#top",
            ),
        ] {
            assert_eq!(key(href, form), written, "{form:?}");
        }
    }

    #[test]
    fn what_is_not_there_leaves_no_mark() {
        for (href, surt, host_first) in [
            ("http://a.test", "http://(test,a,)", "test,a,//http:"),
            ("ftp://a.test?x", "ftp://(test,a,)?x", "test,a,//ftp:?x"),
            ("http://192.0.2.7/x", "http://(192.0.2.7)/x", "192.0.2.7//http:/x"),
            (
                "http://[2001:db8::7]:81/",
                "http://([2001:db8::7]:81)/",
                "[2001:db8::7]//81:http:/",
            ),
            ("http://@a.test/", "http://(test,a,)/", "test,a,//http@:/"),
            ("file:///x", "file://()/x", "//file:/x"),
            ("urn:x:y", "urn:x:y", "urn:x:y"),
            ("a.test/x", "a.test/x", "a.test/x"),
        ] {
            assert_eq!(key(href, Form::Surt), surt, "{href}");
            assert_eq!(key(href, Form::HostFirst), host_first, "{href}");
        }
    }

    proptest! {
        #[test]
        fn any_text_has_a_key(text in any::<String>()) {
            for form in [Form::Surt, Form::WithoutScheme, Form::WithoutTrailingComma, Form::HostFirst] {
                let _ = key(&text, form);
                let _ = key(&format!("http://{text}"), form);
            }
        }

        #[test]
        fn a_longer_path_has_the_key_of_its_folder_as_prefix(folder in "/[a-zA-Z/%.]{0,12}", more in "[a-z/]{0,8}") {
            let whole = key(&format!("http://a.test{folder}{more}"), Form::WithoutScheme);
            let prefix = key(&format!("http://a.test{folder}"), Form::WithoutScheme);
            prop_assert!(whole.starts_with(&prefix));
        }
    }
}
