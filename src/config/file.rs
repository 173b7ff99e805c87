//! crawler.toml → layer. Every problem is found, with its line; an unknown key brings the nearest known one.

use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::load::{Given, Layer, Origin};
use super::setting::{Setting, Shape};
use super::table::{IDENTITY, setting, settings};
use super::{fields, hosts, overrides};
use crate::extract::fields::Field;
use crate::fetch::http::Auth;
use crate::politeness::HostRule;
use crate::traps::settings::Override;

/// Settings that may also stand in a section: section, key there, key of the setting.
const SECTIONS: [(&str, &str, &str); 4] = [
    ("extract", "builtins", "fields"),
    ("output", "links", "output_links"),
    ("output", "parquet", "parquet"),
    ("output", "wacz", "wacz"),
];

/// Most `[[auth]]` of a file.
pub(super) const MAX_AUTH: usize = 1_000;

/// What a file says, and what is wrong with it.
pub(super) struct Parsed {
    pub(super) layer: Layer,
    pub(super) fields: Vec<Field>,
    pub(super) auth: Vec<Auth>,
    /// `[[trap]]`.
    pub(super) traps: Vec<Override>,
    /// `[[host]]`.
    pub(super) hosts: Vec<HostRule>,
    /// In the order of the file.
    pub(super) problems: Vec<String>,
}

/// Reads the text of a settings file; `path` is only named.
pub(super) fn parse(path: &Path, text: &str) -> Parsed {
    let mut reader = Reader {
        path,
        text,
        layer: Layer::new(),
        fields: Vec::new(),
        auth: Vec::new(),
        traps: Vec::new(),
        hosts: Vec::new(),
        problems: Vec::new(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        reader.problem(at, &format!("not TOML: {}", error.message().replace('\n', " ")));
    }
    if reader.problems.is_empty() {
        reader.table(table.get_ref());
    }
    reader.problems.sort();
    let problems = reader
        .problems
        .into_iter()
        .map(|(line, text)| format!("{}:{line}: {text}", path.display()));
    Parsed {
        layer: reader.layer,
        fields: reader.fields,
        auth: reader.auth,
        traps: reader.traps,
        hosts: reader.hosts,
        problems: problems.collect(),
    }
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    layer: Layer,
    fields: Vec<Field>,
    auth: Vec<Auth>,
    traps: Vec<Override>,
    hosts: Vec<HostRule>,
    problems: Vec<(usize, String)>,
}

impl Reader<'_> {
    fn line(&self, offset: usize) -> usize {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        before.split(|byte| *byte == b'\n').count()
    }

    fn problem(&mut self, offset: usize, text: &str) {
        self.problems.push((self.line(offset), text.to_owned()));
    }

    fn table(&mut self, table: &DeTable<'_>) {
        for (key, value) in table {
            let (at, name) = (key.span().start, key.get_ref().as_ref());
            if SECTIONS.iter().any(|(section, ..)| *section == name) {
                self.section(name, value, table);
            } else if name == "auth" {
                self.logins(value);
            } else if name == "trap" {
                self.overrides(at, value);
            } else if name == "host" {
                self.host_rules(at, value);
            } else if name == "identity" {
                self.identity(table, at, value);
            } else if let Some(setting) = setting(name) {
                self.setting(setting, value);
            } else if value.get_ref().is_table() {
                self.problem(
                    at,
                    &format!("unknown section [{name}]: settings stand at the top, in no section"),
                );
            } else {
                let known = settings().map(|setting| setting.key.to_owned());
                self.problem(at, &format!("unknown key {name:?}{}", hint(nearest(name, known))));
            }
        }
    }

    /// `[identity]`: another way to write the settings of what counts as one page, which stand at the top otherwise.
    fn identity(&mut self, around: &DeTable<'_>, at: usize, value: &Spanned<DeValue<'_>>) {
        let Some(section) = value.get_ref().as_table() else {
            return self.problem(at, "identity: expected a section [identity]");
        };
        for (key, value) in section {
            let (at, name) = (key.span().start, key.get_ref().as_ref());
            let Some(setting) = IDENTITY.iter().find(|setting| setting.key == name) else {
                let known = IDENTITY.iter().map(|setting| setting.key.to_owned());
                let near = hint(nearest(name, known));
                self.problem(at, &format!("unknown key \"identity.{name}\"{near}"));
                continue;
            };
            if around.iter().any(|(other, _)| other.get_ref() == name) {
                self.problem(at, &format!("identity.{name}: stands at the top too; say it once"));
            } else {
                self.setting(setting, value);
            }
        }
    }

    /// `[[trap]]`
    fn overrides(&mut self, at: usize, value: &Spanned<DeValue<'_>>) {
        let Some(list) = value.get_ref().as_array() else {
            return self.problem(at, "trap: expected tables [[trap]]");
        };
        let mut problems = Vec::new();
        self.traps = overrides::read(at, list, |at, text| problems.push((at, text.to_owned())));
        for (at, text) in problems {
            self.problem(at, &text);
        }
    }

    /// `[[host]]`
    fn host_rules(&mut self, at: usize, value: &Spanned<DeValue<'_>>) {
        let Some(list) = value.get_ref().as_array() else {
            return self.problem(at, "host: expected tables [[host]]");
        };
        let mut problems = Vec::new();
        self.hosts = hosts::read(at, list, |at, text| problems.push((at, text.to_owned())));
        for (at, text) in problems {
            self.problem(at, &text);
        }
    }

    fn setting(&mut self, setting: &'static Setting, value: &Spanned<DeValue<'_>>) {
        let at = value.span().start;
        match values(setting.shape, value.get_ref()) {
            Err(expected) => self.problem(at, &format!("{}: {expected}", setting.key)),
            Ok(values) => {
                let origin = Origin::File(self.path.to_path_buf(), self.line(at));
                self.layer.insert(setting.key, Given { values, origin });
            }
        }
    }

    /// Tables that stand for settings: `[output] links = true` is `output_links = true`.
    fn section(&mut self, section: &str, value: &Spanned<DeValue<'_>>, around: &DeTable<'_>) {
        let at = value.span().start;
        let Some(table) = value.get_ref().as_table() else {
            return self.problem(at, &format!("{section}: expected a section [{section}]"));
        };
        for (key, value) in table {
            let (at, name) = (key.span().start, key.get_ref().as_ref());
            let own = || SECTIONS.iter().filter(|(known, ..)| *known == section);
            if section == "extract" && name == "field" {
                self.fields(at, value);
            } else if let Some(setting) = own()
                .find(|(_, key, _)| *key == name)
                .and_then(|(.., key)| setting(key))
            {
                if around.iter().any(|(other, _)| other.get_ref() == setting.key) {
                    let twice = format!("{section}.{name}: {} stands at the top too; say it once", setting.key);
                    self.problem(at, &twice);
                } else {
                    self.setting(setting, value);
                }
            } else if section == "extract" && nearest(name, ["field".to_owned()]).is_some() {
                self.problem(
                    at,
                    &format!("unknown key \"extract.{name}\"; did you mean [[extract.field]]?"),
                );
            } else {
                let near = hint(nearest(name, own().map(|(_, key, _)| (*key).to_owned())));
                self.problem(at, &format!("unknown key \"{section}.{name}\"{near}"));
            }
        }
    }

    /// `[[extract.field]]`
    fn fields(&mut self, at: usize, value: &Spanned<DeValue<'_>>) {
        let Some(list) = value.get_ref().as_array() else {
            return self.problem(at, "extract.field: expected tables [[extract.field]]");
        };
        let mut problems = Vec::new();
        self.fields = fields::read(at, list, |at, text| problems.push((at, text)));
        for (at, text) in problems {
            self.problem(at, &text);
        }
    }

    /// `[[auth]]`
    fn logins(&mut self, value: &Spanned<DeValue<'_>>) {
        let at = value.span().start;
        let Some(list) = value.get_ref().as_array() else {
            return self.problem(at, "auth: expected tables [[auth]]");
        };
        if list.len() > MAX_AUTH {
            self.problem(at, &format!("more than {MAX_AUTH} [[auth]]"));
        }
        for login in list.iter().take(MAX_AUTH) {
            self.login(login);
        }
    }

    /// What is wrong with a password is said without it.
    fn login(&mut self, value: &Spanned<DeValue<'_>>) {
        const KEYS: [&str; 3] = ["host", "user", "password"];
        let at = value.span().start;
        let Some(table) = value.get_ref().as_table() else {
            return self.problem(at, "auth: expected tables [[auth]]");
        };
        let mut texts = [None, None, None];
        for (key, value) in table {
            let (at, name) = (key.span().start, key.get_ref().as_ref());
            let slot = KEYS.iter().position(|known| *known == name);
            match (slot.and_then(|slot| texts.get_mut(slot)), value.get_ref()) {
                (Some(text), DeValue::String(given)) => *text = Some(given.to_string()),
                (Some(text), _) => {
                    *text = Some(String::new());
                    self.problem(at, &format!("auth.{name}: expected a string"));
                }
                (None, _) => {
                    let near = hint(nearest(name, KEYS.map(str::to_owned)));
                    self.problem(at, &format!("unknown key \"auth.{name}\"{near}"));
                }
            }
        }
        match texts {
            [Some(host), Some(user), Some(password)] => match Auth::new(&host, &user, &password) {
                Ok(auth) if self.auth.iter().any(|other| other.place() == auth.place()) => {
                    self.problem(at, &format!("auth: {} stands twice", auth.place()));
                }
                Ok(auth) => self.auth.push(auth),
                Err(expected) => self.problem(at, &format!("auth: {expected}")),
            },
            texts => {
                for (name, _) in KEYS.iter().zip(&texts).filter(|(_, text)| text.is_none()) {
                    self.problem(at, &format!("auth: {name} is missing"));
                }
            }
        }
    }
}

/// The texts of a value, or what was expected. Numbers and booleans become the text that a flag would have.
fn values(shape: Shape, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let found = value.type_str();
    match (shape, value) {
        (Shape::List | Shape::Lines, DeValue::Array(list)) => {
            let texts = list.iter().map(|item| match item.get_ref() {
                DeValue::String(text) => Ok(text.to_string()),
                other => Err(format!(
                    "expected an array of strings, found {} in it",
                    article(other.type_str())
                )),
            });
            texts.collect()
        }
        (_, DeValue::String(text)) => Ok(vec![text.to_string()]),
        (Shape::Number | Shape::Quantity | Shape::Count, DeValue::Integer(number)) if number.radix() == 10 => {
            Ok(vec![number.as_str().to_owned()])
        }
        (Shape::Number | Shape::Quantity, DeValue::Float(number)) => Ok(vec![number.as_str().to_owned()]),
        (Shape::YesNo | Shape::Switch, DeValue::Boolean(yes)) => Ok(vec![if *yes { "yes" } else { "no" }.to_owned()]),
        _ => {
            let expected = match shape {
                Shape::List | Shape::Lines => "an array of strings",
                Shape::Text => "a string",
                Shape::Number | Shape::Count => "a number",
                Shape::Quantity => "a string such as \"100MiB\" or \"2s\", or a number",
                Shape::YesNo | Shape::Switch => "true or false",
            };
            Err(format!("expected {expected}, found {}", article(found)))
        }
    }
}

fn article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) {
        "an"
    } else {
        "a"
    };
    format!("{article} {noun}")
}

/// The known name that is nearest to `name`, if one is near enough to be meant.
pub(super) fn nearest(name: &str, known: impl IntoIterator<Item = String>) -> Option<String> {
    let name = name.replace('-', "_");
    let (distance, best) = known
        .into_iter()
        .map(|other| (strsim::damerau_levenshtein(&name, &other), other))
        .min_by_key(|(far, _)| *far)?;
    (distance <= (best.len() / 3).max(1)).then_some(best)
}

/// `; did you mean X?`
pub(super) fn hint(nearest: Option<String>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        parse(Path::new("c.toml"), text).problems
    }

    #[test]
    fn values_of_every_shape_are_read() {
        let parsed = parse(
            Path::new("c.toml"),
            "seeds = [\"a\", \"b\"]\nseed = \"http://x/\"\nmax_pages = 1_000\nrate = 0.5\ndelay = 2\nno_robots = true\n",
        );
        assert_eq!(parsed.problems, Vec::<String>::new());
        let of = |key| parsed.layer.get(key).unwrap().values.clone();
        assert_eq!(of("seeds"), ["a", "b"]);
        assert_eq!(of("seed"), ["http://x/"]);
        assert_eq!(of("max_pages"), ["1000"]);
        assert_eq!(of("rate"), ["0.5"]);
        assert_eq!(of("delay"), ["2"]);
        assert_eq!(of("no_robots"), ["yes"]);
        assert_eq!(
            parsed.layer.get("delay").unwrap().origin,
            Origin::File("c.toml".into(), 5)
        );
    }

    #[test]
    fn an_unknown_key_brings_the_nearest_one() {
        assert_eq!(
            problems("\n\ndely = \"1s\""),
            ["c.toml:3: unknown key \"dely\"; did you mean delay?"]
        );
        assert_eq!(
            problems("max-pages = 3"),
            ["c.toml:1: unknown key \"max-pages\"; did you mean max_pages?"]
        );
        assert_eq!(
            problems("robots = false"),
            ["c.toml:1: unknown key \"robots\"; did you mean no_robots?"]
        );
        assert_eq!(
            problems("something_else = 1"),
            ["c.toml:1: unknown key \"something_else\""]
        );
        assert_eq!(
            problems("[politeness]\ndelay = 1"),
            ["c.toml:1: unknown section [politeness]: settings stand at the top, in no section"]
        );
    }

    #[test]
    fn the_section_of_identity_is_another_way_to_write_its_settings() {
        let read = |text: &str| parse(Path::new("c.toml"), text);
        let parsed = read("delay = 1\n[identity]\nsort_query = true\ndrop_params = [\"ref\"]\n");
        assert_eq!(parsed.problems, Vec::<String>::new());
        assert_eq!(parsed.layer.get("sort_query").unwrap().values, ["yes"]);
        assert_eq!(parsed.layer.get("drop_params").unwrap().values, ["ref"]);
        assert_eq!(
            problems("fold_www = true\n[identity]\nfold_www = false\nsort_qery = true\ndelay = 1\n"),
            [
                "c.toml:3: identity.fold_www: stands at the top too; say it once",
                "c.toml:4: unknown key \"identity.sort_qery\"; did you mean sort_query?",
                "c.toml:5: unknown key \"identity.delay\"",
            ]
        );
        assert_eq!(
            problems("identity = 1"),
            ["c.toml:1: identity: expected a section [identity]"]
        );
    }

    #[test]
    fn a_value_of_the_wrong_kind_says_what_was_expected() {
        for (text, expected) in [
            ("seeds = 1", "seeds: expected an array of strings, found an integer"),
            (
                "seeds = [1]",
                "seeds: expected an array of strings, found an integer in it",
            ),
            ("job = 5", "job: expected a string, found an integer"),
            ("max_pages = true", "max_pages: expected a number, found a boolean"),
            ("max_pages = 0x10", "max_pages: expected a number, found an integer"),
            (
                "delay = [1]",
                "delay: expected a string such as \"100MiB\" or \"2s\", or a number, found an array",
            ),
            ("fresh = 1", "fresh: expected true or false, found an integer"),
        ] {
            assert_eq!(problems(text), [format!("c.toml:1: {expected}")], "{text}");
        }
    }

    #[test]
    fn what_is_not_toml_is_named_with_its_line() {
        let bad = problems("delay = \"1s\"\nseeds = [\n\"a\"\nb\n");
        assert!(!bad.is_empty());
        assert!(
            bad.iter()
                .all(|line| line.starts_with("c.toml:") && line.contains("not TOML: ")),
            "{bad:?}"
        );
        let twice = problems("delay = 1\ndelay = 2\n");
        assert!(twice[0].starts_with("c.toml:2: not TOML: "), "{twice:?}");
    }

    #[test]
    fn sections_stand_for_settings() {
        let text = "[extract]\nbuiltins = [\"title\"]\n[[extract.field]]\nname = \"a\"\nselector = \"p\"\n[output]\nlinks = true\n";
        let parsed = parse(Path::new("c.toml"), text);
        assert_eq!(parsed.problems, Vec::<String>::new());
        assert_eq!(parsed.layer.get("fields").unwrap().values, ["title"]);
        assert_eq!(parsed.layer.get("output_links").unwrap().values, ["yes"]);
        assert_eq!(
            parsed.layer.get("output_links").unwrap().origin,
            Origin::File("c.toml".into(), 7)
        );
        assert_eq!(parsed.fields.len(), 1);
        for (text, problem) in [
            (
                "[output]\nlink = true",
                "2: unknown key \"output.link\"; did you mean links?",
            ),
            (
                "[output]\nlinks = 1",
                "2: output_links: expected true or false, found an integer",
            ),
            ("output = true", "1: output: expected a section [output]"),
            (
                "output_links = true\n[output]\nlinks = true",
                "3: output.links: output_links stands at the top too; say it once",
            ),
            (
                "[extract]\nbuiltin = []",
                "2: unknown key \"extract.builtin\"; did you mean builtins?",
            ),
        ] {
            assert_eq!(problems(text), [format!("c.toml:{problem}")], "{text}");
        }
    }

    #[test]
    fn logins_are_read_and_checked() {
        let parsed = parse(
            Path::new("c.toml"),
            "[[auth]]\nhost = \"https://a.test\"\nuser = \"me\"\npassword = \"secret\"\n",
        );
        assert_eq!(parsed.problems, Vec::<String>::new());
        assert_eq!(parsed.auth, [Auth::new("https://a.test", "me", "secret").unwrap()]);
        assert_eq!(
            problems(
                "[[auth]]\nhost = \"a b\"\nuser = \"u\"\npassword = \"secret\"\n[[auth]]\nhots = \"a\"\nuser = 1\n"
            ),
            [
                "c.toml:1: auth: expected a host such as example.com, example.com:8080 or https://example.com",
                "c.toml:5: auth: host is missing",
                "c.toml:5: auth: password is missing",
                "c.toml:6: unknown key \"auth.hots\"; did you mean host?",
                "c.toml:7: auth.user: expected a string",
            ]
        );
        let login = |host: &str| format!("[[auth]]\nhost = \"{host}\"\nuser = \"u\"\npassword = \"p\"\n");
        assert_eq!(
            problems(&[login("a.test"), login("https://a.test"), login("A.test.")].concat()),
            ["c.toml:9: auth: a.test stands twice"]
        );
        assert!(problems(&login("*"))[0].starts_with("c.toml:1: auth: expected a host such as"));
        assert_eq!(problems("auth = 1"), ["c.toml:1: auth: expected tables [[auth]]"]);
        let many: String = (0..=MAX_AUTH).map(|n| login(&format!("h{n}"))).collect();
        assert!(problems(&many).contains(&format!("c.toml:1: more than {MAX_AUTH} [[auth]]")));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[a-z_\\[\\]=\"'#.\n 0-9{}]{0,80}") {
            let _ = problems(&text);
        }
    }
}
