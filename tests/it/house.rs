//! The house rules, read from the sources: no arrow upwards between modules, one door to each package, short files, no
//! clock below the loop.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The layers from the lowest up (ARCHITECTURE.md). A module may use modules of its own layer's number or below;
/// within the layer of the judges and the words, only what stands earlier in its list.
const LAYERS: [&[&str]; 7] = [
    // words
    &["clock", "disk", "hash", "stats"],
    // addresses, and the judges that look at one thing at a time
    &[
        "url",
        "seeds",
        "scope",
        "traps",
        "robots",
        "politeness",
        "cookies",
        "seen",
        "survey",
        "extract",
    ],
    // what is next: the doors to the outside and the queues
    &["fetch", "archive", "store", "tables", "frontier"],
    // the owner of a set of hosts
    &["shard"],
    // one visit, the durable order, the settings, the job folder
    &["visit", "ledger", "checkpoint", "job", "config"],
    // the loop and what looks at it
    &["crawl", "progress", "report", "audit", "simulate"],
    &["commands"],
];

/// The one module that may name a package.
const DOORS: [(&str, &str); 17] = [
    ("quick_xml", "extract/dash"),
    ("url", "url"),
    ("bitvec", "seen"),
    ("governor", "politeness"),
    ("reqwest", "fetch"),
    ("h2", "fetch"),
    ("tokio_rustls", "fetch"),
    ("rustls", "fetch"),
    ("scraper", "extract/fields"),
    ("fjall", "store"),
    ("parquet", "tables"),
    ("fxhash", "hash"),
    ("psl", "url"),
    ("clap", "commands"),
    ("zip", "archive"),
    ("webpki", "archive/verify/signature"),
    ("md5", "archive/verify/digest"),
];

/// Lines of a source file without its tests.
const MAX_LINES: usize = 500;

/// The modules that may read a clock.
const CLOCK_READERS: [&str; 3] = ["crawl", "fetch", "commands"];
const CLOCKS: [&str; 5] = [
    "Instant::now",
    "SystemTime::now",
    "Timestamp::now",
    "Zoned::now",
    "Utc::now",
];

/// A source file: its path below `src` without `.rs`, and its lines without comments and tests.
struct Source {
    path: String,
    code: Vec<(usize, String)>,
    lines: usize,
}

impl Source {
    /// The module at the top of the path: `seen` for `seen/bloom.rs`.
    fn module(&self) -> &str {
        self.path.split('/').next().unwrap()
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    assert!(found.len() > 20, "the sources were not found");
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let name = path.strip_prefix(root).unwrap().with_extension("");
            found.push(read_source(name.to_str().unwrap(), &fs::read_to_string(&path).unwrap()));
        }
    }
}

fn read_source(path: &str, text: &str) -> Source {
    let body: Vec<&str> = text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
    let mut code: Vec<(usize, String)> = Vec::new();
    let mut in_use = false;
    for (number, line) in body
        .iter()
        .enumerate()
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
    {
        match code.last_mut() {
            // a `use` over several lines is judged as one
            Some((_, open)) if in_use => open.push_str(line.trim()),
            _ => code.push((number + 1, (*line).to_owned())),
        }
        in_use = (in_use || line.trim_start().starts_with("use ") || line.contains(" use ")) && !line.contains(';');
    }
    // a file of tests alone is declared behind #[cfg(test)] by its parent
    let tests_alone = path.ends_with("/tests") || path.ends_with("_tests");
    Source {
        path: path.to_owned(),
        code: if tests_alone { Vec::new() } else { code },
        lines: body.len(),
    }
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// The modules that a line names through `crate::`.
fn named_modules(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    for rest in line.split("crate::").skip(1) {
        // `use crate::{a, b::C}` names each at its outer level
        let list = rest.strip_prefix('{').map_or(rest, |inner| inner);
        let mut depth = 0;
        let mut word = String::new();
        let mut wanted = true;
        for letter in list.chars() {
            match letter {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 && rest.starts_with('{') => wanted = true,
                letter if letter.is_alphanumeric() || letter == '_' => {
                    if wanted {
                        word.push(letter);
                    }
                    continue;
                }
                _ => {}
            }
            if wanted && !word.is_empty() {
                names.push(std::mem::take(&mut word));
                wanted = false;
                if !rest.starts_with('{') {
                    break;
                }
            }
        }
        if !word.is_empty() {
            names.push(word);
        }
    }
    names
}

/// Arrows that point upwards.
fn wrong_arrows(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources
        .iter()
        .filter(|source| !matches!(source.module(), "lib" | "main"))
    {
        let module = source.module();
        let Some(own) = layer(module) else {
            wrong.push(format!("src/{}.rs is in no layer", source.path));
            continue;
        };
        for (number, line) in &source.code {
            for named in named_modules(line) {
                if layer(&named).is_some_and(|other| other > own) {
                    wrong.push(format!("src/{}.rs:{number}: {module} looks up to {named}", source.path));
                }
            }
        }
    }
    wrong
}

/// Packages named outside their door.
fn second_doors(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources {
        for (package, door) in DOORS {
            let inside = source.path == door || source.path.starts_with(&format!("{door}/"));
            if inside || (package == "clap" && matches!(source.module(), "config" | "main")) {
                continue;
            }
            for (number, line) in &source.code {
                if names_package(line, package) {
                    wrong.push(format!(
                        "src/{}.rs:{number}: the door to {package} is {door}",
                        source.path
                    ));
                }
            }
        }
    }
    wrong
}

/// Does the line name the package itself (`url::Url`, `use url;`), not a module of ours (`crate::url::CrawlUrl`)?
fn names_package(line: &str, package: &str) -> bool {
    let path = format!("{package}::");
    let through_path = line.match_indices(&path).any(|(at, _)| {
        let before = &line[..at];
        let last = before.chars().next_back();
        let part_of_word = last.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':');
        // `::url::Url` is the package, `crate::url::…`, `super::url::…` are not
        !part_of_word || (before.ends_with("::") && before.trim_end_matches(':').ends_with([' ', '(', '<', '&']))
    });
    through_path || line.trim_start().starts_with(&format!("use {package};"))
}

fn clock_reads(sources: &[Source]) -> Vec<String> {
    let mut wrong = Vec::new();
    for source in sources
        .iter()
        .filter(|source| !CLOCK_READERS.contains(&source.module()))
    {
        for (number, line) in &source.code {
            for clock in CLOCKS.iter().filter(|clock| line.contains(**clock)) {
                wrong.push(format!("src/{}.rs:{number} reads {clock}", source.path));
            }
        }
    }
    wrong
}

#[test]
fn no_module_looks_upwards() {
    assert_eq!(wrong_arrows(&sources()), Vec::<String>::new());
}

#[test]
fn each_package_has_one_door() {
    assert_eq!(second_doors(&sources()), Vec::<String>::new());
}

#[test]
fn no_file_is_longer_than_it_may_be() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|source| source.lines > MAX_LINES && !source.code.is_empty())
        .map(|source| format!("src/{}.rs has {} lines", source.path, source.lines))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn only_the_loop_and_the_doors_read_a_clock() {
    assert_eq!(clock_reads(&sources()), Vec::<String>::new());
}

#[test]
fn the_map_names_every_module_and_each_stands_in_one_layer() {
    let map = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    let mut layers: BTreeMap<&str, usize> = BTreeMap::new();
    for module in LAYERS.iter().flat_map(|layer| layer.iter()) {
        *layers.entry(module).or_default() += 1;
    }
    for line in map.lines() {
        if let Some(name) = line
            .trim()
            .strip_prefix("pub mod ")
            .and_then(|rest| rest.strip_suffix(';'))
        {
            assert_eq!(layers.remove(name), Some(1), "{name} must stand in one layer");
        }
    }
    assert!(
        layers.is_empty(),
        "layers name modules that are not in the map: {layers:?}"
    );
}

mod tests {
    use super::*;

    #[test]
    fn an_arrow_upwards_is_found_however_it_is_written() {
        let lines = [
            "use crate::crawl::End;",
            "use crate::{clock::{Time, Span}, crawl};",
            "let end: crate::crawl::End = x;",
            "use crate::{\n    clock::Time,\n    crawl::End,\n};",
            "fn f(a: &crate::clock::Time, b: crate::commands::X) {}",
        ];
        for line in lines {
            let source = read_source("seen/bloom", line);
            assert_eq!(wrong_arrows(&[source]).len(), 1, "{line}");
        }
        let fine = read_source(
            "seen/bloom",
            "use crate::hash::Fingerprint;\n// use crate::crawl::End;\n#[cfg(test)]\nuse crate::crawl;",
        );
        assert!(wrong_arrows(&[fine]).is_empty());
        assert_eq!(
            wrong_arrows(&[read_source("cellar", "")]).len(),
            1,
            "a module without a layer"
        );
    }

    #[test]
    fn a_second_door_is_found_and_a_module_of_the_same_name_is_not_one() {
        for line in [
            "use url::Url;",
            "let x = url::Url::parse(s);",
            "fn f(x: ::url::Url) {}",
            "use fxhash::FxHashMap;",
        ] {
            assert_eq!(second_doors(&[read_source("visit", line)]).len(), 1, "{line}");
        }
        for line in [
            "use crate::url::CrawlUrl;",
            "use super::url::surt;",
            "let curl::x = 1;",
            "let a = my_url::x();",
        ] {
            assert!(second_doors(&[read_source("visit", line)]).is_empty(), "{line}");
        }
        assert!(second_doors(&[read_source("url/normalize", "use url::Url;")]).is_empty());
    }

    #[test]
    fn a_clock_is_found() {
        assert_eq!(
            clock_reads(&[read_source("shard", "let now = Instant::now();")]).len(),
            1
        );
        assert!(clock_reads(&[read_source("fetch/http", "let now = Instant::now();")]).is_empty());
    }
}
