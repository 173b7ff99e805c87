//! Seeds: files, standard input and `--seed` → addresses.
//!
//! A seed file holds one URL a line. `#` begins a comment, at the start of a line or after white space (so that a fragment
//! stays a fragment); blank lines, a byte order mark and Windows line ends do not matter; a bare host is `http://`.
//! A line that is no address is named with its number and the rest goes on.
//!
//! Behind the address a line may have options of this seed alone: `https://example.com/  depth=2 scope=prefix`. They
//! begin at the first word of the form `key=...` behind white space; what they mean is read elsewhere.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use crate::url::{CrawlUrl, Identity};

/// Longest line of a seed file, bytes: an address of the greatest length, percent-encoded, and a comment.
pub const MAX_LINE_BYTES: usize = 65_536;
/// Most seeds of a job. A longer list belongs into a sitemap or a second job.
pub const MAX_SEEDS: usize = 1_000_000;
/// Most bad lines that are named one by one; the others are counted.
pub const MAX_WARNINGS: usize = 100;
/// Longest piece of a bad line that is shown, characters.
const SHOWN_CHARS: usize = 80;

/// What was read.
#[derive(Debug)]
pub struct Seeds {
    /// The addresses in the order given: files first, then `--seed`. Never empty.
    pub urls: Vec<CrawlUrl>,
    /// The options of those that have some, by their place among the addresses, in order.
    pub options: Vec<(usize, Options)>,
    /// The lines that are no address: `seeds.txt:7: ...`.
    pub warnings: Vec<String>,
}

/// What stands behind the address of a seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Where: `seeds.txt:7`.
    pub place: String,
    /// Keys and values as written, in order.
    pub pairs: Vec<(String, String)>,
}

/// Why there are no seeds. All are mistakes of usage (exit code 2).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeedsError {
    /// A file that cannot be read.
    #[error("cannot read the seeds of {name}: {source}")]
    Unreadable {
        /// The file.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// More than [`MAX_SEEDS`].
    #[error("more than {MAX_SEEDS} seeds: split them into several jobs")]
    TooMany,
    /// Nothing named any seed.
    #[error(
        "no seeds: name a file (--seeds seeds.txt), or an address (--seed https://example.com/), or try `crawler demo`"
    )]
    NoneGiven,
    /// There were lines, none of them an address.
    #[error("no valid seed in {sources}{}", .warnings.iter().fold(String::new(), |text, line| text + "\n" + line))]
    NoneValid {
        /// Where they stood.
        sources: String,
        /// What is wrong with each.
        warnings: Vec<String>,
    },
}

/// A list that is there already: one that came from the Web.
#[derive(Debug, Clone)]
pub struct List {
    /// What `--seeds` calls it.
    pub name: PathBuf,
    /// Its text, as it came.
    pub bytes: Vec<u8>,
}

/// Reads the seeds of `files` (`-` is standard input; of those among `lists` the text is taken from there) and those
/// `given` by `--seed`.
///
/// # Errors
/// [`SeedsError`]: an unreadable file, too many seeds, or none that is valid.
pub fn read(files: &[PathBuf], lists: &[List], given: &[String], identity: &Identity) -> Result<Seeds, SeedsError> {
    read_with(files, lists, given, |text| {
        CrawlUrl::parse(text, identity).map_err(|reject| reject.to_string())
    })
    .map(|found| Seeds {
        urls: found.seeds,
        options: found.options,
        warnings: found.bad,
    })
}

/// [`read`] with the parser of addresses as an argument.
fn read_with<T>(
    files: &[PathBuf],
    lists: &[List],
    given: &[String],
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Found<T>, SeedsError> {
    let mut found = Found::default();
    let parse = &parse;
    for path in files {
        let name = if path.as_os_str() == "-" {
            "standard input".to_owned()
        } else {
            path.display().to_string()
        };
        let read = if let Some(list) = lists.iter().find(|list| list.name == *path) {
            found.lines(&name, list.bytes.as_slice(), parse)
        } else if path.as_os_str() == "-" {
            found.lines(&name, io::stdin().lock(), parse)
        } else {
            File::open(path)
                .map_err(|source| SeedsError::Unreadable {
                    name: name.clone(),
                    source,
                })
                .and_then(|file| found.lines(&name, BufReader::new(file), parse))
        };
        read?;
    }
    for text in given {
        found.seed(&"--seed", text.trim(), parse)?;
    }
    found.finish(files, given)
}

#[derive(Debug)]
struct Found<T> {
    seeds: Vec<T>,
    options: Vec<(usize, Options)>,
    bad: Vec<String>,
    more_bad: usize,
}

impl<T> Default for Found<T> {
    fn default() -> Self {
        Self {
            seeds: Vec::new(),
            options: Vec::new(),
            bad: Vec::new(),
            more_bad: 0,
        }
    }
}

impl<T> Found<T> {
    fn lines(
        &mut self,
        name: &str,
        mut input: impl BufRead,
        parse: &impl Fn(&str) -> Result<T, String>,
    ) -> Result<(), SeedsError> {
        let mut line = Vec::new();
        for number in 1.. {
            let place = Place(name, number);
            match next_line(&mut input, &mut line) {
                Err(source) => {
                    return Err(SeedsError::Unreadable {
                        name: name.to_owned(),
                        source,
                    });
                }
                Ok(Line::End) => break,
                Ok(Line::TooLong) => self.bad(&place, &format!("longer than {MAX_LINE_BYTES} bytes")),
                Ok(Line::Whole) => {
                    let bytes = line
                        .strip_prefix(b"\xef\xbb\xbf")
                        .filter(|_| number == 1)
                        .unwrap_or(&line);
                    match std::str::from_utf8(bytes) {
                        Err(_) => self.bad(&place, "not UTF-8"),
                        Ok(text) => match content(text) {
                            "" => {}
                            text => self.seed(&place, text, parse)?,
                        },
                    }
                }
            }
        }
        Ok(())
    }

    fn seed(
        &mut self,
        place: &impl fmt::Display,
        text: &str,
        parse: &impl Fn(&str) -> Result<T, String>,
    ) -> Result<(), SeedsError> {
        let (text, pairs) = options(text);
        match parse(&with_scheme(text)) {
            Ok(_) if self.seeds.len() >= MAX_SEEDS => return Err(SeedsError::TooMany),
            Ok(seed) => {
                if !pairs.is_empty() {
                    let place = place.to_string();
                    self.options.push((self.seeds.len(), Options { place, pairs }));
                }
                self.seeds.push(seed);
            }
            Err(reason) => {
                let shown: String = text.chars().take(SHOWN_CHARS).collect();
                let dots = if shown.len() < text.len() { "..." } else { "" };
                self.bad(place, &format!("{shown:?}{dots}: {reason}"));
            }
        }
        Ok(())
    }

    fn bad(&mut self, place: &impl fmt::Display, reason: &str) {
        if self.bad.len() < MAX_WARNINGS {
            self.bad.push(format!("{place}: {reason}"));
        } else {
            self.more_bad += 1;
        }
    }

    fn finish(mut self, files: &[PathBuf], given: &[String]) -> Result<Self, SeedsError> {
        if files.is_empty() && given.is_empty() {
            return Err(SeedsError::NoneGiven);
        }
        if self.more_bad > 0 {
            self.bad.push(format!("{} more lines are no addresses", self.more_bad));
        }
        if self.seeds.is_empty() {
            let mut sources: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
            if !given.is_empty() {
                sources.push("--seed".to_owned());
            }
            return Err(SeedsError::NoneValid {
                sources: sources.join(", "),
                warnings: self.bad,
            });
        }
        Ok(self)
    }
}

/// `file:line`, as compilers write it.
struct Place<'a>(&'a str, usize);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

/// What [`next_line`] read.
pub(crate) enum Line {
    /// A line, also an empty one.
    Whole,
    /// One of more than [`MAX_LINE_BYTES`].
    TooLong,
    /// There is none.
    End,
}

/// Reads the next line into `line`, without its end. Of a line that is too long nothing is kept.
pub(crate) fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Line> {
    line.clear();
    // one more for the line end, one more to see that it is too long
    let limit = MAX_LINE_BYTES as u64 + 2;
    if input.by_ref().take(limit).read_until(b'\n', line)? == 0 {
        return Ok(Line::End);
    }
    let ended = line.last() == Some(&b'\n');
    if ended {
        line.pop();
        line.pop_if(|byte| *byte == b'\r');
    }
    if line.len() <= MAX_LINE_BYTES {
        return Ok(Line::Whole);
    }
    line.clear();
    if !ended {
        input.skip_until(b'\n')?;
    }
    Ok(Line::TooLong)
}

/// The line without comment and surrounding white space.
fn content(line: &str) -> &str {
    let line = line.trim();
    let comment = line.char_indices().find(|(at, c)| {
        let before = line.get(..*at).and_then(|head| head.chars().next_back());
        *c == '#' && before.is_none_or(char::is_whitespace)
    });
    comment.map_or(line, |(at, _)| line.get(..at).unwrap_or_default().trim_end())
}

/// The address and the options behind it. A word without `=` among the options is a key without a value.
fn options(text: &str) -> (&str, Vec<(String, String)>) {
    let is_option = |word: &str| {
        word.split_once('=').is_some_and(|(key, _)| {
            let letters = key
                .bytes()
                .all(|byte| byte.is_ascii_alphabetic() || byte == b'-' || byte == b'_');
            !key.is_empty() && letters
        })
    };
    let words = text.match_indices(char::is_whitespace);
    let starts = words.map(|(at, space)| at + space.len());
    let first = starts.into_iter().find(|at| {
        let word = text.get(*at..).unwrap_or_default().split_whitespace().next();
        text.get(*at..)
            .is_some_and(|rest| !rest.starts_with(char::is_whitespace))
            && word.is_some_and(is_option)
    });
    let Some(first) = first else { return (text, Vec::new()) };
    let (address, rest) = text.split_at(first);
    let pairs = rest.split_whitespace().map(|word| {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        (key.to_owned(), value.to_owned())
    });
    (address.trim_end(), pairs.collect())
}

/// `http://` before a bare host (`example.com`, `example.com:8080/path`, `[::1]`); a text with a scheme stays as it is.
fn with_scheme(text: &str) -> String {
    if text.starts_with("//") {
        return format!("http:{text}");
    }
    let authority = text.split(['/', '?', '#']).next().unwrap_or_default();
    let has_scheme = match authority.split_once(':') {
        Some((before, after)) => {
            let port = !after.is_empty() && after.bytes().all(|byte| byte.is_ascii_digit());
            !before.starts_with('[') && !port
        }
        None => false,
    };
    if has_scheme {
        text.to_owned()
    } else {
        format!("http://{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(file: &[u8]) -> (Vec<String>, Vec<String>) {
        let mut found = Found::default();
        found.lines("s.txt", file, &parse).unwrap();
        (found.seeds, found.bad)
    }

    fn parse(text: &str) -> Result<String, String> {
        if text.contains("bad") {
            Err("no address".to_owned())
        } else {
            Ok(text.to_owned())
        }
    }

    #[test]
    fn comments_blanks_marks_and_line_ends_do_not_matter() {
        let file =
            b"\xef\xbb\xbfhttp://a/\r\n\r\n# note\n  # note\nhttp://b/#part # note\n\thttp://c/\t#note\nd.test\n\n";
        let (seeds, bad) = texts(file);
        assert_eq!(seeds, ["http://a/", "http://b/#part", "http://c/", "http://d.test"]);
        assert!(bad.is_empty());
        assert_eq!(texts(b"http://last/").0, ["http://last/"]);
    }

    #[test]
    fn a_bad_line_is_named_with_its_number_and_the_rest_goes_on() {
        let long = "x".repeat(200);
        let file = format!("http://a/\n\nbad line\nhttp://b/\nbad{long}\n");
        let (seeds, bad) = texts(file.as_bytes());
        assert_eq!(seeds, ["http://a/", "http://b/"]);
        assert_eq!(bad[0], "s.txt:3: \"bad line\": no address");
        assert_eq!(bad[1], format!("s.txt:5: \"bad{}\"...: no address", "x".repeat(77)));
        assert_eq!(texts(b"http://a/\n\xff\xfe\n").1, ["s.txt:2: not UTF-8"]);
        assert_eq!(texts(b"bad\x1b[2J\n").1, ["s.txt:1: \"bad\\u{1b}[2J\": no address"]);
    }

    #[test]
    fn a_bare_host_is_http() {
        for (text, full) in [
            ("example.com", "http://example.com"),
            ("example.com/a:b", "http://example.com/a:b"),
            ("example.com:8080/x", "http://example.com:8080/x"),
            ("localhost:80", "http://localhost:80"),
            ("[::1]:80/", "http://[::1]:80/"),
            ("//example.com/", "http://example.com/"),
            ("https://example.com/", "https://example.com/"),
            ("HTTP:example.com", "HTTP:example.com"),
            ("mailto:me@example.com", "mailto:me@example.com"),
            ("javascript:void(0)", "javascript:void(0)"),
        ] {
            assert_eq!(with_scheme(text), full);
        }
    }

    #[test]
    fn options_stand_behind_the_address() {
        let mut found = Found::default();
        let file =
            "http://a/?x=1 y z\nhttp://b/  depth=2\texclude=\\.pdf$ x # note\nc.test scope=prefix\nbad depth=1\n";
        found.lines("s.txt", file.as_bytes(), &parse).unwrap();
        assert_eq!(found.seeds, ["http://a/?x=1 y z", "http://b/", "http://c.test"]);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!(
            found.options,
            [
                (
                    1,
                    Options {
                        place: "s.txt:2".to_owned(),
                        pairs: vec![pair("depth", "2"), pair("exclude", "\\.pdf$"), pair("x", "")],
                    }
                ),
                (
                    2,
                    Options {
                        place: "s.txt:3".to_owned(),
                        pairs: vec![pair("scope", "prefix")],
                    }
                ),
            ]
        );
        assert_eq!(found.bad, ["s.txt:4: \"bad\": no address"]);
    }

    #[test]
    fn a_line_too_long_is_not_kept() {
        let longest = format!("http://a/{}", "x".repeat(MAX_LINE_BYTES - 9));
        for end in ["\n", "\r\n", ""] {
            let (seeds, bad) = texts(format!("{longest}{end}").as_bytes());
            assert_eq!((seeds.len(), bad.len()), (1, 0));
        }
        let (seeds, bad) = texts(format!("{longest}x\nhttp://b/\n{longest}xxxxxxx\nhttp://c/").as_bytes());
        assert_eq!(seeds, ["http://b/", "http://c/"]);
        assert_eq!(
            bad,
            ["s.txt:1: longer than 65536 bytes", "s.txt:3: longer than 65536 bytes"]
        );
    }

    #[test]
    fn the_number_of_seeds_and_of_warnings_is_bounded() {
        let (_, bad) = texts("bad\n".repeat(MAX_WARNINGS + 5).as_bytes());
        assert_eq!(bad.len(), MAX_WARNINGS);
        let given = vec!["bad".to_owned(); MAX_WARNINGS + 5];
        let error = read_with(&[], &[], &given, parse).unwrap_err().to_string();
        assert!(
            error.starts_with("no valid seed in --seed\n") && error.ends_with("\n5 more lines are no addresses"),
            "{error}"
        );

        let nothing = |_: &str| Ok(());
        let mut found = Found::default();
        found
            .lines("s.txt", "a\n".repeat(MAX_SEEDS).as_bytes(), &nothing)
            .unwrap();
        assert!(matches!(
            found.lines("s.txt", &b"a\n"[..], &nothing),
            Err(SeedsError::TooMany)
        ));
    }

    #[test]
    fn files_and_single_seeds_come_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.txt");
        std::fs::write(&path, "one.test\n").unwrap();
        let found = read_with(std::slice::from_ref(&path), &[], &["two.test".to_owned()], parse).unwrap();
        assert_eq!(found.seeds, ["http://one.test", "http://two.test"]);
        std::fs::write(&path, "# nothing\n").unwrap();
        let error = read_with(std::slice::from_ref(&path), &[], &[], parse).unwrap_err();
        assert_eq!(error.to_string(), format!("no valid seed in {}", path.display()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for path in [folder.path().join("missing.txt"), folder.path().to_path_buf()] {
            let error = read_with(std::slice::from_ref(&path), &[], &[], parse)
                .unwrap_err()
                .to_string();
            assert!(
                error.starts_with(&format!("cannot read the seeds of {}: ", path.display())),
                "{error}"
            );
        }
        assert!(matches!(read_with(&[], &[], &[], parse), Err(SeedsError::NoneGiven)));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>) {
            let (seeds, bad) = texts(&bytes);
            let lines = bytes.split(|byte| *byte == b'\n').count();
            assert!(seeds.len() + bad.len() <= lines);
            assert!(seeds.iter().all(|seed| !seed.trim().is_empty()));
        }
    }
}
