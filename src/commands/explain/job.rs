//! What a job knows of an address: its store (read from a copy, so that nothing in the job changes), its logs, its index.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Value, json};

use super::Answer;
use crate::checkpoint;
use crate::commands::look::{Copy, Failure, in_use, is_job};
use crate::disk::Folder;
use crate::frontier::{HostId, Item, Place};
use crate::hash::Fingerprint;
use crate::ledger::{self, Found};
use crate::robots::Robots;
use crate::seen::Kind;
use crate::shard::{HostRow, StoredAccess};
use crate::store::{Fjall, Store, Table};
use crate::url::{CrawlUrl, Identity, Scheme, surt};

/// Longest line of a log that is looked at, bytes.
const MAX_LINE: u64 = 1 << 20;
/// Lines of a kind that are shown.
const MAX_SHOWN: usize = 50;
/// Rows read of the store at once.
const ROWS_AT_ONCE: usize = 1_000;

fn unreadable(what: &Path) -> impl Fn(io::Error) -> Failure {
    let what = what.display().to_string();
    move |error| (format!("{what}: {error}"), 1)
}

pub(super) fn explain(
    dir: &Path,
    url: &CrawlUrl,
    identity: &Identity,
    agent: &str,
    answer: &mut Answer,
) -> Result<(), Failure> {
    is_job(dir)?;
    if let Some(pid) = in_use(dir) {
        let text = format!(
            "{} is being crawled by process {pid}: its store is not read while it runs; what follows is from its files",
            dir.display()
        );
        let value = json!({"dir": dir.display().to_string(), "running": true, "pid": pid});
        answer.says("job", text, value);
    } else {
        let finished = dir.join("state/finished").exists();
        let state = if finished {
            "finished"
        } else {
            "not finished: it can go on"
        };
        let value = json!({"dir": dir.display().to_string(), "running": false, "finished": finished});
        answer.says("job", format!("{}, {state}", dir.display()), value);
        let copy = Copy::of(&dir.join("state/store")).map_err(unreadable(&dir.join("state/store")))?;
        let store = Fjall::open(&copy.0).map_err(unreadable(&dir.join("state/store")))?;
        from_store(dir, &store, url, agent, answer).map_err(unreadable(&dir.join("state")))?;
    }
    attempts(dir, url, identity, answer).map_err(unreadable(&dir.join("logs/crawl.log")))?;
    dropped(dir, url, answer).map_err(unreadable(&dir.join("logs/crawler.log")))?;
    archived(dir, url, answer).map_err(unreadable(&dir.join("indexes")))
}

fn from_store(dir: &Path, store: &Fjall, url: &CrawlUrl, agent: &str, answer: &mut Answer) -> io::Result<()> {
    let found = ledger::look(store)?;
    let Some(job) = &found.job else {
        answer.says("seen", "the job has not begun", Value::Null);
        return Ok(());
    };
    // the rules of identity are the job's own, whatever the flags say
    let url = &CrawlUrl::parse(url.href(), &job.identity).map_err(io::Error::other)?;
    let identity = &job.identity;
    let print = job.key.fingerprint(url.canonical().as_bytes());
    seen(dir, &found, print, answer)?;
    let mut host = None;
    let mut id: HostId = 0;
    ledger::hosts(store, |row, has_rows| {
        if row.name == url.host_key() {
            host = Some((id, row, has_rows));
        }
        id += 1;
    })?;
    let Some((id, row, _)) = host else {
        answer.says("robots", "the host is not known to the job", Value::Null);
        return Ok(());
    };
    robots(store, id, &row, url, agent, answer)?;
    pace(&row, answer);
    queue(store, id, url, identity, answer)
}

/// The admission log is exact; the filter is what the crawl asks.
fn seen(dir: &Path, found: &Found, print: Fingerprint, answer: &mut Answer) -> io::Result<()> {
    let mut log = BufReader::with_capacity(
        1 << 20,
        File::open(dir.join(ledger::ADMITTED))?.take(found.tail.admitted),
    );
    let mut bytes = [0; Fingerprint::BYTES];
    let admissions = found.admissions();
    let (mut number, mut at, mut forgotten) = (0_u64, None, false);
    while log.read_exact(&mut bytes).is_ok() {
        if Fingerprint::from_bytes(bytes) == print {
            forgotten = admissions.takes_out(number);
            at = (!forgotten).then_some(number + 1);
        }
        number += 1;
    }
    let job = found.job.as_ref();
    let folder = Folder::new(dir.to_path_buf());
    let admitted = found.tail.admitted / Fingerprint::BYTES as u64;
    let (text, filter) = match (at, job) {
        (Some(number), _) => (format!("yes: admitted as number {number} of {admitted}"), Some(true)),
        (None, _) if forgotten => ("forgotten: it was admitted and taken out again".to_owned(), Some(false)),
        (None, Some(job)) => {
            let size = (admitted.max(1), 0.01);
            let exact = found.kind == Some(Kind::Exact);
            match checkpoint::restore(&folder, job.key, job.identity.stamp(), found.kind, size, &admissions) {
                Ok(restored) if restored.seen.contains(print) && !exact => (
                    "taken for seen though it never was: a false positive of the filter".to_owned(),
                    Some(true),
                ),
                Ok(_) => (format!("no: not among the {admitted} admitted"), Some(false)),
                Err(error) => (
                    format!("no: not among the {admitted} admitted (the filter cannot be read: {error})"),
                    None,
                ),
            }
        }
        (None, None) => (String::new(), None),
    };
    let print = data_encoding::HEXLOWER.encode(&print.to_bytes());
    answer.says(
        "seen",
        format!("{text}; fingerprint {print}"),
        json!({"admitted": at, "of": admitted, "filter": filter, "fingerprint": print}),
    );
    Ok(())
}

fn robots(
    store: &Fjall,
    id: HostId,
    row: &HostRow,
    url: &CrawlUrl,
    agent: &str,
    answer: &mut Answer,
) -> io::Result<()> {
    let [http, https] = &row.access;
    let access = if url.scheme() == Scheme::Http { http } else { https };
    let (text, allowed, line) = match access {
        StoredAccess::Unknown => ("robots.txt was not asked for yet".to_owned(), None, None),
        StoredAccess::AllowAll(_) => ("allowed: there is no robots.txt".to_owned(), Some(true), None),
        StoredAccess::DisallowAll(_) => ("forbidden: robots.txt could not be had".to_owned(), Some(false), None),
        StoredAccess::Silent(why) => (format!("the origin never answered: {}", why.why), None, None),
        StoredAccess::Rules(..) => match ledger::robots_txt(store, id, url.scheme())? {
            None => ("robots.txt is to be asked for again".to_owned(), None, None),
            Some(bytes) => {
                let rules = Robots::parse(&bytes, agent);
                let allowed = rules.allows(url.path_and_query());
                let word = if allowed { "allowed" } else { "forbidden" };
                match rules.deciding_line(url.path_and_query()) {
                    Some((number, line)) => (
                        format!("{word} by line {number}: {line}"),
                        Some(allowed),
                        Some(json!({"number": number, "text": line})),
                    ),
                    None => (format!("{word}: no line speaks of it"), Some(allowed), None),
                }
            }
        },
    };
    answer.says("robots", text, json!({"allowed": allowed, "line": line}));
    Ok(())
}

fn pace(row: &HostRow, answer: &mut Answer) {
    let delays = row.access.iter().filter_map(|access| match access {
        StoredAccess::Rules(_, delay) => *delay,
        _ => None,
    });
    let delay = delays.max();
    let mut text = format!("{} fetched of this host", row.fetched);
    if let Some(delay) = delay {
        add(
            &mut text,
            format_args!("; Crawl-delay {:?}", std::time::Duration::from_micros(delay)),
        );
    }
    if row.failures > 0 {
        add(&mut text, format_args!("; {} failures in a row", row.failures));
    }
    match &row.retired {
        Some(retired) => add(&mut text, format_args!("; given up: {}", retired.why)),
        None => add(
            &mut text,
            format_args!("; not asked again before {}", row.due.rfc3339(3)),
        ),
    }
    answer.says(
        "politeness",
        text,
        json!({
            "fetched": row.fetched, "due": row.due.rfc3339(3), "failures": row.failures,
            "crawl_delay_s": delay.map(|delay| std::time::Duration::from_micros(delay).as_secs_f64()),
            "retired": row.retired.as_ref().map(|retired| retired.why.clone()),
        }),
    );
}

/// The place of the address in its host's queue.
fn queue(store: &Fjall, id: HostId, url: &CrawlUrl, identity: &Identity, answer: &mut Answer) -> io::Result<()> {
    let prefix = id.to_be_bytes();
    let mut after = prefix.to_vec();
    let (mut before, mut inclusive) = (0_u64, true);
    loop {
        let rows = store.range(Table::Queue, &after, inclusive, &prefix, ROWS_AT_ONCE)?;
        inclusive = false;
        for (key, value) in &rows {
            let item = Item::from_row(value, identity).map_err(io::Error::other)?;
            let place = Place::from_row_key(key).map(|(_, place)| place);
            if let (true, Some(place)) = (item.url.canonical() == url.canonical(), place) {
                let back = place.priority >= Place::BACK;
                let row = if back { ", at the back" } else { "" };
                let via = item.path.via.as_deref().unwrap_or("a seed");
                let text = format!(
                    "pending: {before} URLs of its host stand before it{row}; {} hops from a seed, found on {via}, {} tries",
                    item.path.depth, item.path.tries
                );
                let value = json!({
                    "before": before, "back": back, "depth": item.path.depth, "via": item.path.via,
                    "hops": item.path.hops, "tries": item.path.tries,
                });
                answer.says("queue", text, value);
                return Ok(());
            }
            before += 1;
        }
        match rows.last() {
            Some((key, _)) if rows.len() == ROWS_AT_ONCE => after.clone_from(key),
            _ => break,
        }
    }
    answer.says(
        "queue",
        format!("not pending ({before} URLs of its host are)"),
        Value::Null,
    );
    Ok(())
}

/// Writing to a text cannot fail.
fn add(text: &mut String, more: std::fmt::Arguments<'_>) {
    let _ = std::fmt::Write::write_fmt(text, more);
}

/// Calls `each` with every line of a file, if there is one; longer lines than [`MAX_LINE`] are cut.
fn lines(path: &Path, mut each: impl FnMut(&str)) -> io::Result<()> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut file = BufReader::with_capacity(1 << 16, file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if file.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') {
            file.skip_until(b'\n')?;
        }
        each(String::from_utf8_lossy(&line).trim_end());
    }
}

/// The lines of crawl.log about the address, in any spelling of it.
fn attempts(dir: &Path, url: &CrawlUrl, identity: &Identity, answer: &mut Answer) -> io::Result<()> {
    let mut found = 0;
    lines(&dir.join(ledger::CRAWL_LOG), |line| {
        let mut columns = line.split_ascii_whitespace();
        let (Some(time), Some(status), Some(size), Some(address)) =
            (columns.next(), columns.next(), columns.next(), columns.next())
        else {
            return;
        };
        let same = address == url.href()
            || CrawlUrl::parse(address, identity).is_ok_and(|other| other.canonical() == url.canonical());
        if !same {
            return;
        }
        found += 1;
        if found > MAX_SHOWN {
            return;
        }
        let extra = line.find(" {").and_then(|at| line.get(at..));
        let extra: Value = extra
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default();
        let mut text = format!("{time} status {status}, {size} bytes");
        for (key, label) in [("reason", ""), ("error", "error: ")] {
            if let Some(why) = extra.get(key).and_then(Value::as_str) {
                add(&mut text, format_args!("; {label}{why}"));
            }
        }
        let value = json!({
            "time": time, "status": status.parse::<i32>().ok(), "size": size.parse::<u64>().ok(), "line": line,
            "reason": extra.get("reason"),
        });
        answer.also("attempts", text, value);
    })?;
    if found == 0 {
        answer.lines.push(("attempts", "none in logs/crawl.log".to_owned()));
        answer.json.insert("attempts".to_owned(), json!([]));
    }
    Ok(())
}

/// What crawler.log says of an address that was left as a trap.
fn dropped(dir: &Path, url: &CrawlUrl, answer: &mut Answer) -> io::Result<()> {
    let quoted = format!("\"{}\"", url.href());
    let mut found = 0;
    lines(&dir.join("logs/crawler.log"), |line| {
        let names = line.contains(&format!("url={quoted}")) || line.contains(&format!("\"url\":{quoted}"));
        if names && line.contains("left as a trap") {
            found += 1;
            if found <= MAX_SHOWN {
                answer.also("left", line, line.into());
            }
        }
    })
}

/// The index lines of the address: where its records are.
fn archived(dir: &Path, url: &CrawlUrl, answer: &mut Answer) -> io::Result<()> {
    let sorted = dir.join("indexes/index.cdxj");
    let path = if sorted.exists() {
        sorted
    } else {
        dir.join(ledger::INDEX_LINES)
    };
    let key = format!("{} ", surt::surt(url.href()));
    let mut found = 0;
    lines(&path, |line| {
        let Some(rest) = line.strip_prefix(&key) else { return };
        let Some((time, json)) = rest.split_once(' ') else {
            return;
        };
        let Ok(value) = serde_json::from_str::<Value>(json) else {
            return;
        };
        if value.get("url").and_then(Value::as_str) != Some(url.href()) {
            return;
        }
        found += 1;
        if found <= MAX_SHOWN {
            let of = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or("-").to_owned();
            let text = format!(
                "{time} {} at {}, {} bytes (status {}, {})",
                of("filename"),
                of("offset"),
                of("length"),
                of("status"),
                of("mime")
            );
            answer.also("archive", text, value.clone());
        }
    })?;
    if found == 0 {
        answer.lines.push(("archive", "no record".to_owned()));
        answer.json.insert("archive".to_owned(), json!([]));
    }
    Ok(())
}
