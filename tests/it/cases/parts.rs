//! Bytes from their description: texts with placeholders, repetitions, compression, chunks; and the steps of a response.

use std::collections::BTreeMap;
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use regex::bytes::{Captures, Regex};
use serde_json::Value;

use super::format::{Case, Host, Parts, Reply};

/// No stall, sleep or drip goes on longer than this.
pub(crate) const LONGEST_STALL: Duration = Duration::from_secs(120);
/// No response sends more bytes than this.
pub(crate) const LONGEST_FLOOD: usize = 256 << 20;
/// Bytes handed on at once.
const STEP: usize = 64 * 1024;

static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{(?:PORT(?:\+(?<plus>\d+))?|@(?<host>[a-z0-9.+-]+)|(?<word>path|query|n|i)|(?<group>[1-9])(?<add>[+-]\d+)?)\}")
        .unwrap()
});

/// Compressed parts by their description: a bomb is made once, before anybody waits for it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pressed(Arc<Mutex<HashMap<String, Arc<Vec<u8>>>>>);

/// What the placeholders of a text stand for.
#[derive(Debug, Clone)]
pub(crate) struct Fill<'a> {
    pub(crate) hosts: &'a BTreeMap<String, Host>,
    /// The base port.
    pub(crate) port: u16,
    pub(crate) target: &'a str,
    pub(crate) groups: &'a [String],
    /// How often the route was hit.
    pub(crate) hit: usize,
    pub(crate) pressed: Pressed,
}

impl<'a> Fill<'a> {
    /// For texts outside a response.
    pub(crate) fn of(case: &'a Case, port: u16) -> Self {
        Self {
            hosts: &case.hosts,
            port,
            target: "",
            groups: &[],
            hit: 1,
            pressed: Pressed::default(),
        }
    }

    pub(crate) fn text(&self, text: &str) -> String {
        String::from_utf8(self.bytes(text.as_bytes(), 0)).unwrap()
    }

    /// Every string of a value, keys too.
    pub(crate) fn all(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.all(item)).collect(),
            Value::Object(map) => map
                .iter()
                .map(|(key, item)| (self.text(key), self.all(item)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    fn bytes(&self, text: &[u8], index: i64) -> Vec<u8> {
        if !text.contains(&b'{') {
            return text.to_vec();
        }
        TOKEN
            .replace_all(text, |found: &Captures| self.token(found, index))
            .into_owned()
    }

    fn token(&self, found: &Captures, index: i64) -> Vec<u8> {
        let named = |name: &str| found.name(name).map(|m| std::str::from_utf8(m.as_bytes()).unwrap());
        if let Some(host) = named("host") {
            return authority(&self.hosts[host], host, self.port).into_bytes();
        }
        if let Some(word) = named("word") {
            return match word {
                "path" => latin1(self.target.split('?').next().unwrap()),
                "query" => latin1(self.target.split_once('?').map_or("", |(_, query)| query)),
                "n" => self.hit.to_string().into_bytes(),
                _ => index.to_string().into_bytes(),
            };
        }
        let Some(group) = named("group") else {
            return (self.port + named("plus").map_or(0, |plus| plus.parse().unwrap()))
                .to_string()
                .into_bytes();
        };
        let Some(value) = self.groups.get(group.parse::<usize>().unwrap() - 1) else {
            return found[0].to_vec(); // no placeholder here, in a regular expression for example
        };
        match named("add") {
            Some(add) => (value.parse::<i64>().unwrap() + add.parse::<i64>().unwrap())
                .to_string()
                .into_bytes(),
            None => latin1(value),
        }
    }
}

/// `name:port` of a host.
pub(crate) fn authority(host: &Host, key: &str, base: u16) -> String {
    format!("{}:{}", host.name.as_deref().unwrap_or(key), base + host.port)
}

/// The bytes that a text of characters up to U+00FF stands for.
fn latin1(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(c).unwrap()).collect()
}

/// All bytes of a description.
pub(crate) fn whole(parts: &Parts, fill: &Fill<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    pour(parts, fill, &mut |bytes| out.extend_from_slice(bytes));
    out
}

/// Hands on the bytes of a description piece by piece, so that a bomb is never held whole before it is compressed.
fn pour(parts: &Parts, fill: &Fill<'_>, out: &mut dyn FnMut(&[u8])) {
    let map = match parts {
        Value::String(text) => return out(&fill.bytes(text.as_bytes(), 0)),
        Value::Array(items) => return items.iter().for_each(|item| pour(item, fill, out)),
        Value::Object(map) => map,
        other => panic!("no part: {other}"),
    };
    let text = |key: &str| map.get(key).map(|value| value.as_str().unwrap());
    if let Some(text) = text("text") {
        out(&fill.bytes(text.as_bytes(), 0));
    } else if let Some(hex) = text("hex") {
        out(&data_encoding::HEXLOWER_PERMISSIVE.decode(hex.as_bytes()).unwrap());
    } else if let Some(b64) = text("b64") {
        out(&data_encoding::BASE64.decode(b64.as_bytes()).unwrap());
    } else if let Some(times) = map.get("repeat") {
        let unit = whole(&map["of"], fill);
        let mut left = usize::try_from(times.as_u64().unwrap()).unwrap();
        let many = unit.repeat((STEP / unit.len().max(1)).clamp(1, left.max(1)));
        while left > 0 {
            let now = left.min(many.len() / unit.len().max(1)).max(1);
            out(&many[..now * unit.len()]);
            left -= now;
        }
    } else if let Some(span) = map.get("count") {
        // what is the same each time is filled once: a server that takes seconds over a page is taken for a dead one
        let between: Vec<Vec<u8>> = text("of")
            .unwrap()
            .split("{i}")
            .map(|part| fill.bytes(part.as_bytes(), 0))
            .collect();
        for index in span[0].as_i64().unwrap()..=span[1].as_i64().unwrap() {
            out(&between.join(index.to_string().as_bytes()));
        }
    } else if let Some(chunks) = map.get("chunks") {
        for chunk in chunks.as_array().unwrap() {
            let bytes = whole(chunk, fill);
            if !bytes.is_empty() {
                out(&[format!("{:x}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat());
            }
        }
        if map.get("end") != Some(&Value::Bool(false)) {
            let line = |pair: &Value| format!("{}: {}\r\n", pair[0].as_str().unwrap(), pair[1].as_str().unwrap());
            let trailers: String = map
                .get("trailers")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(line)
                .collect();
            out(&[b"0\r\n", fill.bytes(trailers.as_bytes(), 0).as_slice(), b"\r\n"].concat());
        }
    } else {
        out(&pressed(parts, fill));
    }
}

fn pressed(parts: &Parts, fill: &Fill<'_>) -> Arc<Vec<u8>> {
    let (kind, inner) = ["gzip", "zlib", "rawdeflate"]
        .into_iter()
        .find_map(|kind| Some((kind, parts.get(kind)?)))
        .unwrap_or_else(|| panic!("unknown part {parts}"));
    // what stands in it may depend on the request
    let key = format!("{} {:?} {} {parts}", fill.target, fill.groups, fill.hit);
    let fixed = !TOKEN.is_match(inner.to_string().as_bytes());
    let key = if fixed { parts.to_string() } else { key };
    if let Some(made) = fill.pressed.0.lock().unwrap().get(&key) {
        return Arc::clone(made);
    }
    let level = Compression::best();
    let mut bytes = match kind {
        "gzip" => {
            let mut encoder = GzEncoder::new(Vec::new(), level);
            pour(inner, fill, &mut |bytes| encoder.write_all(bytes).unwrap());
            encoder.finish().unwrap()
        }
        "zlib" => {
            let mut encoder = ZlibEncoder::new(Vec::new(), level);
            pour(inner, fill, &mut |bytes| encoder.write_all(bytes).unwrap());
            encoder.finish().unwrap()
        }
        _ => {
            let mut encoder = DeflateEncoder::new(Vec::new(), level);
            pour(inner, fill, &mut |bytes| encoder.write_all(bytes).unwrap());
            encoder.finish().unwrap()
        }
    };
    let cut = parts.get("cut").and_then(Value::as_u64).unwrap_or(0);
    bytes.truncate(bytes.len() - usize::try_from(cut).unwrap());
    let made = Arc::new(bytes);
    fill.pressed.0.lock().unwrap().insert(key, Arc::clone(&made));
    made
}

/// One thing a server does in answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    Send(Vec<u8>),
    Sleep(Duration),
    /// Says nothing, then closes.
    Stall(Duration),
    Drip {
        unit: Vec<u8>,
        every: Duration,
        times: u64,
    },
    /// Bytes of `unit` up to so many.
    Flood {
        unit: Vec<u8>,
        bytes: usize,
    },
    /// Breaks the connection off (TCP RST).
    Reset,
    Close,
    /// The connection is kept. Without it a response ends with a close.
    Keep,
}

/// The steps of a response to a GET.
pub(crate) fn steps(reply: &Reply, fill: &Fill<'_>) -> Vec<Step> {
    match &reply.wire {
        Some(wire) => wire.iter().map(|step| wire_step(step, fill)).collect(),
        None => message(reply, fill),
    }
}

fn wire_step(step: &Value, fill: &Fill<'_>) -> Step {
    let number = |key: &str| step.get(key).and_then(Value::as_u64);
    let pause = |key: &str| number(key).map(|ms| Duration::from_millis(ms).min(LONGEST_STALL));
    let of = |key: &str| step.get(key).map(|parts| whole(parts, fill));
    if let Some(span) = pause("sleep_ms") {
        Step::Sleep(span)
    } else if let Some(span) = pause("stall_ms") {
        Step::Stall(span)
    } else if let Some(unit) = of("drip") {
        Step::Drip {
            unit,
            every: pause("every_ms").unwrap(),
            times: number("times").unwrap_or(u64::MAX),
        }
    } else if let Some(unit) = of("flood") {
        let most = usize::try_from(number("max_mb").unwrap()).unwrap() << 20;
        Step::Flood {
            unit: unit.repeat((STEP / unit.len()).max(1)),
            bytes: most.min(LONGEST_FLOOD),
        }
    } else if step.get("reset").is_some() {
        Step::Reset
    } else if step.get("close").is_some() {
        Step::Close
    } else if step.get("keep").is_some() {
        Step::Keep
    } else {
        Step::Send(whole(step, fill))
    }
}

fn message(reply: &Reply, fill: &Fill<'_>) -> Vec<Step> {
    let body = whole(&reply.body, fill);
    let mut head = format!("HTTP/1.1 {} {}\r\n", reply.status, reason(reply.status)).into_bytes();
    for (name, value) in &reply.headers {
        head.extend_from_slice(format!("{name}: ").as_bytes());
        head.extend_from_slice(&fill.bytes(value.as_bytes(), 0));
        head.extend_from_slice(b"\r\n");
    }
    let said = |name: &str| reply.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    if !said("content-length") && !said("transfer-encoding") && !matches!(reply.status, 204 | 304) {
        head.extend_from_slice(format!("Content-Length: {}\r\n", body.len()).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    let mut steps = Vec::new();
    if reply.delay_ms > 0 {
        steps.push(Step::Sleep(Duration::from_millis(reply.delay_ms)));
    }
    steps.push(Step::Send(head));
    if let Some(kept) = reply.drop_after {
        steps.push(Step::Send(body[..kept.min(body.len())].to_vec()));
        steps.push(Step::Reset);
        return steps;
    }
    steps.push(Step::Send(body));
    steps.push(if reply.close { Step::Close } else { Step::Keep });
    steps
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        410 => "Gone",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        _ => "Status",
    }
}
