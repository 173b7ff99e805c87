//! The header of a WARC record, and what its fields may be (ISO 28500, sections 4 and 5).

/// Fields that stand once at most.
const ONCE: [&str; 19] = [
    "warc-type",
    "warc-record-id",
    "warc-date",
    "content-length",
    "content-type",
    "warc-target-uri",
    "warc-payload-digest",
    "warc-block-digest",
    "warc-ip-address",
    "warc-refers-to",
    "warc-refers-to-target-uri",
    "warc-refers-to-date",
    "warc-truncated",
    "warc-warcinfo-id",
    "warc-filename",
    "warc-profile",
    "warc-identified-payload-type",
    "warc-segment-number",
    "warc-segment-origin-id",
];
/// Fields that every record has.
const NEEDED: [&str; 4] = ["warc-type", "warc-record-id", "warc-date", "content-length"];
/// Types of records that have a `WARC-Target-URI`.
const ABOUT_A_URI: [&str; 6] = [
    "response",
    "resource",
    "request",
    "revisit",
    "conversion",
    "continuation",
];

/// The fields of a record: names in lower case, values trimmed.
#[derive(Debug, Clone, Default)]
pub(in crate::archive) struct Fields {
    list: Vec<(String, String)>,
}

impl Fields {
    /// The first value of a field.
    pub(in crate::archive) fn get(&self, name: &str) -> Option<&str> {
        self.list
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    pub(in crate::archive) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.list
            .iter()
            .filter(move |(own, _)| own == name)
            .map(|(_, value)| value.as_str())
    }

    /// The type, empty if there is none.
    pub(in crate::archive) fn kind(&self) -> &str {
        self.get("warc-type").unwrap_or_default()
    }

    /// The length of the block; `None` if it is no number.
    pub(super) fn length(&self) -> Option<u64> {
        let text = self.get("content-length")?;
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse().ok())?
    }

    /// Reads a header without its closing empty line. What is wrong goes to `faults`.
    pub(super) fn read(header: &[u8], faults: &mut Vec<String>) -> Self {
        let mut fields = Self::default();
        let mut lines = split_lines(header);
        let version = lines.next().unwrap_or_default();
        let newer = version == b"WARC/1.1";
        if !newer && version != b"WARC/1.0" {
            faults.push(format!("the version line is {:?}", shown(version)));
        }
        for line in lines {
            fields.read_line(line, faults);
        }
        fields.judge(newer, faults);
        fields
    }

    fn read_line(&mut self, line: &[u8], faults: &mut Vec<String>) {
        if matches!(line.first(), Some(b' ' | b'\t')) {
            faults.push(format!("a header line is folded: {:?}", shown(line)));
            return;
        }
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = colon.and_then(|at| line.split_at_checked(at)).unwrap_or((b"", line));
        if name.is_empty() || !name.iter().all(|byte| is_token(*byte)) {
            faults.push(format!("a header line has no field name: {:?}", shown(line)));
            return;
        }
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        let value = value.get(1..).unwrap_or_default();
        if value.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)) {
            faults.push(format!("{name} holds a control character"));
        }
        if std::str::from_utf8(value).is_err() {
            faults.push(format!("{name} is not UTF-8"));
        }
        let value = String::from_utf8_lossy(value).trim().to_owned();
        if ONCE.contains(&name.as_str()) && self.get(&name).is_some() {
            faults.push(format!("{name} stands twice"));
        }
        self.list.push((name, value));
    }

    fn judge(&self, newer: bool, faults: &mut Vec<String>) {
        for name in NEEDED {
            if self.get(name).is_none() {
                faults.push(format!("{name} is missing"));
            }
        }
        if self.get("content-length").is_some() && self.length().is_none() {
            faults.push("content-length is no number".to_owned());
        }
        for name in [
            "warc-record-id",
            "warc-concurrent-to",
            "warc-refers-to",
            "warc-warcinfo-id",
        ] {
            for id in self.all(name).filter(|id| !is_id(id)) {
                faults.push(format!("{name} {:?} is not <URI>", cut(id)));
            }
        }
        for name in ["warc-date", "warc-refers-to-date"] {
            if let Some(date) = self.get(name).filter(|date| !is_date(date, newer)) {
                faults.push(format!("{name} {:?} is no date of its version", cut(date)));
            }
        }
        let kind = self.kind();
        if ABOUT_A_URI.contains(&kind) && self.get("warc-target-uri").is_none() {
            faults.push(format!("warc-target-uri is missing in a {kind} record"));
        }
        for name in ["warc-target-uri", "warc-refers-to-target-uri"] {
            if let Some(uri) = self.get(name).filter(|uri| !is_uri(uri)) {
                faults.push(format!("{name} {:?} is no URI", cut(uri)));
            }
        }
        if kind == "revisit" && self.get("warc-profile").is_none() {
            faults.push("a revisit without warc-profile".to_owned());
        }
        let is_ip = |text: &str| text.parse::<std::net::IpAddr>().is_ok();
        if let Some(ip) = self.get("warc-ip-address").filter(|ip| !is_ip(ip)) {
            faults.push(format!("warc-ip-address {:?} is no address", cut(ip)));
        }
    }
}

/// Parts at CR LF.
fn split_lines(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut over = false;
    std::iter::from_fn(move || {
        if over {
            return None;
        }
        let Some(at) = memchr::memmem::find(bytes, b"\r\n") else {
            over = true;
            return Some(bytes);
        };
        let line = bytes.get(..at);
        bytes = bytes.get(at + 2..).unwrap_or_default();
        line
    })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// `<scheme:rest>`.
fn is_id(text: &str) -> bool {
    let inner = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    inner.is_some_and(|uri| {
        scheme(uri).is_some_and(|rest| {
            !rest.is_empty() && !rest.contains(|letter: char| letter.is_whitespace() || matches!(letter, '<' | '>'))
        })
    })
}

/// What stands behind the scheme.
fn scheme(uri: &str) -> Option<&str> {
    let (scheme, rest) = uri.split_once(':')?;
    let mut letters = scheme.bytes();
    let first = letters.next()?.is_ascii_alphabetic();
    (first && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))).then_some(rest)
}

/// Only what a URI may hold (RFC 3986), and what browsers leave as it is.
fn is_uri(text: &str) -> bool {
    scheme(text).is_some_and(|rest| {
        rest.bytes()
            .all(|byte| (b'!'..=b'~').contains(&byte) && !b"\"<>\\".contains(&byte))
    })
}

/// W3C-DTF: whole seconds in WARC/1.0; year to nanoseconds in WARC/1.1.
fn is_date(text: &str, newer: bool) -> bool {
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = |text: &str, range: std::ops::RangeInclusive<u32>| {
        digits(text, 2) && text.parse().is_ok_and(|number| range.contains(&number))
    };
    let (date, time) = match text.split_once('T') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let parts: Vec<&str> = date.split('-').collect();
    let (whole, good) = match parts.as_slice() {
        [year] => (false, digits(year, 4)),
        [year, month] => (false, digits(year, 4) && number(month, 1..=12)),
        [year, month, day] => (true, digits(year, 4) && number(month, 1..=12) && number(day, 1..=31)),
        _ => return false,
    };
    let Some(time) = time else {
        return good && newer;
    };
    let Some(time) = time.strip_suffix('Z') else {
        return false;
    };
    let (clock, fraction) = match time.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (time, None),
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let good = good
        && whole
        && match parts.as_slice() {
            [hour, minute] => newer && number(hour, 0..=23) && number(minute, 0..=59),
            [hour, minute, second] => number(hour, 0..=23) && number(minute, 0..=59) && number(second, 0..=60),
            _ => false,
        };
    let fraction =
        fraction.is_none_or(|fraction| newer && parts.len() == 3 && (1..=9).any(|count| digits(fraction, count)));
    good && fraction
}

fn cut(text: &str) -> String {
    text.chars().take(80).collect()
}

fn shown(bytes: &[u8]) -> String {
    cut(&String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_both_versions() {
        for (text, older, newer) in [
            ("2016-09-19T17:20:24Z", true, true),
            ("2016-09-19T17:20:24.5Z", false, true),
            ("2016-09-19T17:20:24.123456789Z", false, true),
            ("2016-09-19T17:20:24.1234567890Z", false, false),
            ("2016-09-19T17:20:24.Z", false, false),
            ("2016-09-19T17:20Z", false, true),
            ("2016-09-19", false, true),
            ("2016-09", false, true),
            ("2016", false, true),
            ("2016-13", false, false),
            ("2016-09-32", false, false),
            ("2016-09-19T24:20:24Z", false, false),
            ("2016-09-19T17:20:24", false, false),
            ("2016-09-19T17:20:24+00:00", false, false),
            ("2016-09T17:20:24Z", false, false),
            ("", false, false),
            ("today", false, false),
        ] {
            assert_eq!((is_date(text, false), is_date(text, true)), (older, newer), "{text}");
        }
    }

    #[test]
    fn ids_and_addresses() {
        for (text, id) in [
            ("<urn:uuid:1>", true),
            ("urn:uuid:1", false),
            ("<urn:>", false),
            ("<urn:a b>", false),
            ("<1urn:a>", false),
            ("<urn:<a>>", false),
        ] {
            assert_eq!(is_id(text), id, "{text}");
        }
        for (text, uri) in [
            ("http://a/b?c=%20|d^`{}#e", true),
            ("dns:a", true),
            ("http://a/b c", false),
            ("<http://a/>", false),
            ("http://a/ü", false),
            ("//a/b", false),
            ("http://a/\"", false),
        ] {
            assert_eq!(is_uri(text), uri, "{text}");
        }
    }

    #[test]
    fn a_header_names_all_its_faults() {
        let mut faults = Vec::new();
        let header =
            b"WARC/1.0\r\nWARC-Type: response\r\nwarc-type: request\r\n folded\r\nno colon\r\nContent-Length: 1x\r\n\
                       WARC-IP-Address: here\r\nX: a\nb";
        let fields = Fields::read(header, &mut faults);
        assert_eq!((fields.kind(), fields.length()), ("response", None));
        let all = faults.join("\n");
        for words in [
            "warc-type stands twice",
            "folded",
            "no field name: \"no colon\"",
            "content-length is no number",
            "warc-record-id is missing",
            "warc-date is missing",
            "warc-target-uri is missing",
            "\"here\" is no address",
            "control character",
        ] {
            assert!(all.contains(words), "{words}: {all}");
        }
        assert_eq!(faults.len(), 9, "{all}");
    }
}
