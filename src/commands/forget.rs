//! `crawler forget JOB`: takes URLs out of the seen-set again, so that they are fetched once more.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use regex::Regex;

use super::{USAGE, fail, print};
use crate::config::value;
use crate::crawl::forget::{self, Forgotten, Request};
use crate::job;
use crate::seen::Kind;

/// What `forget` is asked.
#[derive(Debug, Args)]
pub(super) struct ForgetArgs {
    /// The job's folder
    #[arg(value_name = "JOB")]
    job: PathBuf,
    /// URLs to forget
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Forget fetched URLs that this regular expression finds (repeatable)
    #[arg(long, value_name = "REGEX")]
    pattern: Vec<String>,
    /// Forget fetched URLs that begin like this (repeatable)
    #[arg(long, value_name = "URL")]
    prefix: Vec<String>,
    /// Of these, or of all, only what was asked for last before this day or time (2026-01-31, 2026-01-31T12:00:00Z; UTC)
    #[arg(long, value_name = "DATE", value_parser = date)]
    older_than: Option<String>,
    /// Make the seen-set one of this kind, which can forget: tags, counting, cuckoo, quotient, exact, hashset
    #[arg(long, value_name = "KIND", value_parser = kind)]
    seen: Option<Kind>,
    /// Do not queue them: they are fetched again when a page links to them
    #[arg(long)]
    when_linked: bool,
}

fn kind(text: &str) -> Result<Kind, String> {
    value::word(text)
}

/// A day or a time, as the beginning of a time in crawl.log.
fn date(text: &str) -> Result<String, String> {
    let expected = || "expected a day such as 2026-01-31, or a time such as 2026-01-31T12:00:00Z".to_owned();
    if text.len() == "2026-01-31".len() {
        let day: jiff::civil::Date = text.parse().map_err(|_| expected())?;
        return Ok(day.to_string());
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| expected())?;
    Ok(time.strftime("%Y-%m-%dT%H:%M:%S").to_string())
}

pub(super) fn run(args: &ForgetArgs) -> ExitCode {
    let request = match request(args) {
        Ok(request) => request,
        Err(text) => return fail(&text, USAGE),
    };
    let job = match job::reopen(&args.job) {
        Ok(job) => job,
        Err(error) => return fail(&error.to_string(), error.exit_code()),
    };
    match forget::forget(&job, &request) {
        Ok(done) => print(&text(&done, args)),
        Err(error) => fail(&error.to_string(), error.exit_code()),
    }
}

fn request(args: &ForgetArgs) -> Result<Request, String> {
    let patterns = args
        .pattern
        .iter()
        .map(|text| Regex::new(text).map_err(|error| format!("--pattern {text}: {error}")));
    let patterns = patterns.collect::<Result<Vec<_>, _>>()?;
    if args.urls.is_empty() && patterns.is_empty() && args.prefix.is_empty() && args.older_than.is_none() {
        return Err("nothing to forget: name URLs, or give --pattern, --prefix or --older-than".to_owned());
    }
    Ok(Request {
        urls: args.urls.clone(),
        patterns,
        prefixes: args.prefix.clone(),
        older_than: args.older_than.clone(),
        kind: args.seen,
        when_linked: args.when_linked,
    })
}

fn text(done: &Forgotten, args: &ForgetArgs) -> String {
    let noun = |count: u64| if count == 1 { "URL" } else { "URLs" };
    let mut lines: Vec<_> = done
        .unknown
        .iter()
        .map(|url| format!("never admitted: {url}"))
        .collect();
    if done.pending > 0 {
        lines.push(format!("pending anyway: {} {}", done.pending, noun(done.pending)));
    }
    lines.push(format!("forgotten: {} {}", done.forgotten, noun(done.forgotten)));
    if args.when_linked {
        lines.push("they are fetched again when a page links to them".to_owned());
    } else if done.forgotten > 0 {
        lines.push(format!(
            "pending again: {}; go on with the command that made the job in {}",
            done.queued,
            args.job.display()
        ));
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_the_beginning_of_a_time() {
        assert_eq!(date("2026-01-31").unwrap(), "2026-01-31");
        assert_eq!(date("2026-01-31T12:00:00Z").unwrap(), "2026-01-31T12:00:00");
        assert_eq!(date("2026-01-31T12:00:00+02:00").unwrap(), "2026-01-31T10:00:00");
        for wrong in ["", "yesterday", "2026-13-01", "2026-01-31 12", "20260131"] {
            assert!(date(wrong).is_err(), "{wrong}");
        }
    }
}
