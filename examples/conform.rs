//! Answers the cases of a conformance set with the product's own functions: JSON lines in, JSON lines out.
//!
//! `cargo run --release --example conform -- SET < cases.jsonl > answers.jsonl`

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use crawler::url::{CrawlUrl, Identity, surt, to_ascii, whatwg_href};
use serde_json::{Value, json};

/// The answer fields of one case.
type Answer = fn(&Value) -> Value;

fn main() -> ExitCode {
    let set = std::env::args().nth(1).unwrap_or_default();
    let answer: Answer = match set.as_str() {
        "surt" => surt_key,
        "url_equiv" => url_equiv,
        "url_canon" => url_canon,
        "url_parse" => url_parse,
        "url_toascii" => url_to_ascii,
        _ => return usage(&set),
    };
    match answer_all(answer) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "conform: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage(set: &str) -> ExitCode {
    let _ = writeln!(
        io::stderr(),
        "conform: no such set: {set:?}; usage: conform SET < cases.jsonl"
    );
    ExitCode::from(2)
}

fn answer_all(answer: Answer) -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let case: Value = serde_json::from_str(&line?)?;
        let mut answer = answer(&case);
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("id".to_owned(), case["id"].clone());
        }
        writeln!(out, "{answer}")?;
    }
    out.flush()
}

fn text<'a>(case: &'a Value, field: &str) -> &'a str {
    case[field].as_str().unwrap_or_default()
}

fn parsed(case: &Value, field: &str) -> Option<CrawlUrl> {
    CrawlUrl::parse(text(case, field), &Identity::default()).ok()
}

fn url_parse(case: &Value) -> Value {
    match whatwg_href(text(case, "input"), case["base"].as_str()) {
        Some(href) => json!({ "href": href }),
        None => json!({ "failure": true }),
    }
}

fn url_to_ascii(case: &Value) -> Value {
    json!({ "output": to_ascii(text(case, "input")) })
}

fn url_equiv(case: &Value) -> Value {
    let same = match (parsed(case, "a"), parsed(case, "b")) {
        (Some(a), Some(b)) => a.canonical() == b.canonical(),
        _ => false,
    };
    json!({ "same": same })
}

fn url_canon(case: &Value) -> Value {
    json!({ "output": parsed(case, "input").map(|url| url.canonical().to_owned()) })
}

fn surt_key(case: &Value) -> Value {
    let flag = |name: &str, default: bool| case["options"][name].as_bool().unwrap_or(default);
    let standard = surt::Options::default();
    let options = surt::Options {
        with_scheme: flag("with_scheme", standard.with_scheme),
        trailing_comma: flag("trailing_comma", standard.trailing_comma),
        host_massage: flag("host_massage", standard.host_massage),
        reverse_ipaddr: flag("reverse_ipaddr", standard.reverse_ipaddr),
    };
    json!({ "surt": surt::surt_with(text(case, "url"), options) })
}
