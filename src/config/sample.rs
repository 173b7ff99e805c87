//! Settings as TOML: the commented crawler.toml, and the effective settings with where each came from.

use std::fmt::Write as _;

use super::Config;
use super::load::Loaded;
use super::setting::{Setting, Shape};
use super::table::GROUPS;

/// Widest line of a comment, characters.
const WIDTH: usize = 100;

/// A crawler.toml with every key at its default (a key without one shows an example as a comment): what
/// `crawler config init` writes, and the crawler.toml of the repository.
#[must_use]
pub fn sample() -> String {
    let defaults = Config::default();
    let mut out = String::from(
        "# Settings of the crawler. Every key is shown with its default; a key without one is commented out.\n\
         # A flag (--max-pages) beats its variable in the environment (CRAWLER_MAX_PAGES), which beats its key here\n\
         # (max_pages). `crawler config check` validates this file; `crawler config show` prints the effective\n\
         # settings and where each came from. Paths are relative to the folder in which the crawler is started.\n\
         # Sizes: 64KiB, 100MiB, 1GiB (1024s), 1KB, 1MB, 1GB (1000s). Durations: 500ms, 2s, 3m, 1h, 2d.\n",
    );
    for group in &GROUPS {
        let _ = write!(out, "\n## {}\n", group.title);
        for setting in group.settings {
            out.push('\n');
            // that a list takes several values shows here
            comment(&mut out, setting.help.trim_end_matches("; repeatable"));
            let shown = (setting.show)(&defaults);
            // made from the contact unless it is set
            if shown.is_empty() || setting.key == "user_agent" || matches!(setting.shape, Shape::List | Shape::Lines) {
                let example: Vec<String> = setting.example.iter().map(|text| (*text).to_owned()).collect();
                let _ = writeln!(out, "# {} = {}", setting.key, toml_value(setting, &example));
            } else {
                let _ = writeln!(out, "{} = {}", setting.key, toml_value(setting, &shown));
            }
        }
    }
    out.push_str(
        "\n## Fields taken from every HTML page by CSS selector, into pages.jsonl.zst. Tables stand last in the file.\n\n\
         # [[extract.field]]\n\
         # name = \"price\"          # key in pages.jsonl.zst\n\
         # selector = \"p.price\"    # CSS selector\n\
         # attr = \"content\"        # an attribute instead of the text\n\
         # all = true              # every match as a list, not only the first (first = true)\n\
         # hosts = [\"*.example.com\"]  # only on these hosts; *. is the domain and every host below it\n\
         \n## User and password for a host (Basic), sent to it alone, at the usual ports; with a scheme or a port,\n\
         ## only over those.\n\n\
         # [[auth]]\n\
         # host = \"https://example.com\"\n\
         # user = \"me\"\n\
         # password = \"secret\"\n\n\
         ## Rules against traps for single hosts.\n\n\
         # [[trap]]\n\
         # host = \"*.example.com\"  # a host, or a domain and every host below it; the first that covers a host counts\n\
         # off = true              # no rule holds here\n\
         # without = [\"calendar\"]  # these do not hold\n\
         # max_per_shape = 5000    # URLs of one shape (/p/12 and /p/7 share one) at most\n",
    );
    out
}

/// The effective settings, each with where it came from; itself a settings file.
#[must_use]
pub fn effective(loaded: &Loaded) -> String {
    let mut out = String::new();
    for group in &GROUPS {
        let _ = writeln!(out, "## {}", group.title);
        for setting in group.settings {
            let shown = (setting.show)(&loaded.config);
            let origin = loaded
                .origins
                .get(setting.key)
                .map_or_else(|| "default".to_owned(), ToString::to_string);
            if shown.is_empty() {
                let _ = writeln!(out, "# {} is not set", setting.key);
            } else {
                let _ = writeln!(
                    out,
                    "{} = {} # {}",
                    setting.key,
                    toml_value(setting, &shown),
                    origin.escape_debug()
                );
            }
        }
        out.push('\n');
    }
    for auth in &loaded.config.auth {
        let _ = writeln!(
            out,
            "# [[auth]] for {}: user and password are not written here",
            auth.place()
        );
    }
    super::fields::write(&loaded.config.fields, &mut out);
    super::overrides::write(&loaded.config.traps, &mut out);
    super::hosts::write(&loaded.config.hosts, &mut out);
    out
}

fn toml_value(setting: &Setting, values: &[String]) -> String {
    let first = values.first().map_or("", String::as_str);
    match setting.shape {
        Shape::List | Shape::Lines => format!(
            "[{}]",
            values.iter().map(|text| quote(text)).collect::<Vec<_>>().join(", ")
        ),
        Shape::Text | Shape::Quantity => quote(first),
        Shape::Number | Shape::Count => first.to_owned(),
        Shape::YesNo | Shape::Switch => (first == "yes").to_string(),
    }
}

fn quote(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A comment, broken at [`WIDTH`].
fn comment(out: &mut String, text: &str) {
    let mut width = WIDTH;
    for word in text.split(' ') {
        if width + word.len() >= WIDTH {
            if !out.ends_with('\n') {
                out.push('\n');
            }
            out.push('#');
            width = 1;
        }
        out.push(' ');
        out.push_str(word);
        width += word.len() + 1;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::load::{Given, Layer, Origin, load, load_file};
    use crate::config::table::settings;

    fn written(text: &str) -> Loaded {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("crawler.toml");
        std::fs::write(&path, text).unwrap();
        load_file(&path).unwrap()
    }

    #[test]
    fn the_sample_is_valid_and_says_the_defaults() {
        let loaded = written(&sample());
        assert_eq!(loaded.config, Config::default());
        for setting in settings() {
            let line = format!("\n{} = ", setting.key);
            let comment = format!("\n# {} = ", setting.key);
            assert!(
                sample().contains(&line) != sample().contains(&comment),
                "{}",
                setting.key
            );
        }
    }

    #[test]
    fn its_commented_keys_are_valid_too() {
        let uncommented: String = sample()
            .lines()
            .filter_map(|line| match line.strip_prefix("# ") {
                Some(code) if code.contains(" = ") || code.starts_with("[[") => Some(code),
                Some(_) => None,
                None => Some(line),
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let loaded = written(&uncommented);
        assert_eq!(loaded.origins.len(), settings().count());
        assert_eq!((loaded.config.fields.len(), loaded.config.auth.len()), (1, 1));
    }

    #[test]
    fn the_effective_settings_read_back_and_name_their_origin() {
        let given = |key: &'static str, value: &str, origin| {
            (
                key,
                Given {
                    values: vec![value.to_owned()],
                    origin,
                },
            )
        };
        let layer = Layer::from([
            given("delay", "90s", Origin::Flag("delay".to_owned())),
            given("include", "a\"b\\d", Origin::Variable("CRAWLER_INCLUDE".to_owned())),
        ]);
        let loaded = load(Some(Path::new("/dev/null")), [], &layer).unwrap();
        let text = effective(&loaded);
        assert!(text.contains("delay = \"90s\" # --delay\n"), "{text}");
        assert!(text.contains("retries = 2 # default\n"), "{text}");
        assert!(text.contains("# max_pages is not set\n"), "{text}");
        assert_eq!(written(&text).config, loaded.config);
    }
}
