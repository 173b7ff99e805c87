//! `[[extract.field]]` of crawler.toml: fields of pages by CSS selector.

use std::fmt::Write as _;

use toml::Spanned;
use toml::de::DeValue;

use super::file::{hint, nearest};
use crate::extract::fields::{Field, check_name, hosts, selector};

/// Most `[[extract.field]]` of a file.
pub(super) const MAX_FIELDS: usize = 1_000;
/// Most hosts of one of them.
const MAX_HOSTS: usize = 1_000;

const KEYS: [&str; 6] = ["name", "selector", "attr", "all", "first", "hosts"];

/// Reads the tables; `problem` is told the place and the text of each mistake.
pub(super) fn read(at: usize, list: &[Spanned<DeValue<'_>>], mut problem: impl FnMut(usize, String)) -> Vec<Field> {
    if list.len() > MAX_FIELDS {
        problem(at, format!("more than {MAX_FIELDS} [[extract.field]]"));
    }
    let mut fields: Vec<Field> = Vec::new();
    for entry in list.iter().take(MAX_FIELDS) {
        if let Some(field) = table(entry, &fields, &mut problem) {
            fields.push(field);
        }
    }
    fields
}

fn table(entry: &Spanned<DeValue<'_>>, before: &[Field], problem: &mut impl FnMut(usize, String)) -> Option<Field> {
    let start = entry.span().start;
    let Some(table) = entry.get_ref().as_table() else {
        problem(start, "extract.field: expected a table".to_owned());
        return None;
    };
    let mut field = Field::default();
    let mut first = None;
    for (key, value) in table {
        let (at, name) = (key.span().start, key.get_ref().as_ref());
        match (name, value.get_ref()) {
            ("name", DeValue::String(text)) => {
                field.name = text.to_string();
                if before.iter().any(|other| other.name == field.name) {
                    problem(at, format!("extract.field: the name {:?} stands twice", field.name));
                }
                if let Err(why) = check_name(text) {
                    problem(at, format!("extract.field.name: {why}"));
                }
            }
            ("selector", DeValue::String(text)) => {
                field.selector = text.to_string();
                if let Err(why) = selector(text) {
                    problem(at, format!("extract.field.selector: {why}"));
                }
            }
            ("attr", DeValue::String(text)) if text.trim().is_empty() => {
                problem(at, "extract.field.attr: expected the name of an attribute".to_owned());
            }
            ("attr", DeValue::String(text)) => field.attr = Some(text.trim().to_owned()),
            ("all", DeValue::Boolean(all)) => field.all = *all,
            ("first", DeValue::Boolean(is_so)) => first = Some((at, *is_so)),
            ("hosts", DeValue::Array(patterns)) => field.hosts = host_list(at, patterns, problem),
            ("all" | "first", _) => problem(at, format!("extract.field.{name}: expected true or false")),
            ("hosts", _) => problem(at, "extract.field.hosts: expected an array of strings".to_owned()),
            ("name" | "selector" | "attr", _) => problem(at, format!("extract.field.{name}: expected a string")),
            _ => {
                let near = hint(nearest(name, KEYS.map(str::to_owned)));
                problem(at, format!("unknown key \"extract.field.{name}\"{near}"));
            }
        }
    }
    match first {
        Some((at, first)) if table.contains_key("all") && first == field.all => problem(
            at,
            "extract.field: first and all contradict each other; give one of them".to_owned(),
        ),
        Some((_, first)) => field.all = !first,
        None => {}
    }
    for (name, text) in [("name", &field.name), ("selector", &field.selector)] {
        if text.is_empty() {
            problem(start, format!("extract.field: {name} is missing"));
        }
    }
    Some(field)
}

fn host_list(at: usize, patterns: &[Spanned<DeValue<'_>>], problem: &mut impl FnMut(usize, String)) -> Vec<String> {
    if patterns.len() > MAX_HOSTS {
        problem(at, format!("extract.field.hosts: more than {MAX_HOSTS} hosts"));
    }
    let mut list = Vec::new();
    for pattern in patterns.iter().take(MAX_HOSTS) {
        let at = pattern.span().start;
        match pattern.get_ref().as_str().map(str::trim) {
            None => problem(at, "extract.field.hosts: expected an array of strings".to_owned()),
            Some(text) => match hosts::check(text) {
                Ok(()) => list.push(text.to_owned()),
                Err(expected) => problem(at, format!("extract.field.hosts: {expected}")),
            },
        }
    }
    list
}

/// The tables as they are read.
pub(super) fn write(fields: &[Field], out: &mut String) {
    let quote = |text: &str| toml::Value::String(text.to_owned()).to_string();
    for field in fields {
        // writing to a String cannot fail
        let _ = writeln!(out, "[[extract.field]]\nname = {}", quote(&field.name));
        let _ = writeln!(out, "selector = {}", quote(&field.selector));
        if let Some(attr) = &field.attr {
            let _ = writeln!(out, "attr = {}", quote(attr));
        }
        let _ = writeln!(out, "all = {}", field.all);
        if !field.hosts.is_empty() {
            let hosts: Vec<String> = field.hosts.iter().map(|host| quote(host)).collect();
            let _ = writeln!(out, "hosts = [{}]", hosts.join(", "));
        }
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::file::parse;
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        parse(Path::new("c.toml"), text).problems
    }

    #[test]
    fn fields_are_read_and_written() {
        let parsed = parse(
            Path::new("c.toml"),
            "[[extract.field]]\nname = \"a\"\nselector = \"h1\"\nfirst = true\n\n[[extract.field]]\nname = \"image\"\n\
             selector = \"img\"\nattr = \"SRC\"\nall = true\nhosts = [\"a.test\", \"*.b.test:81\"]\n\
             [[extract.field]]\nname = \"c\"\nselector = \"p\"\nfirst = false\n",
        );
        assert_eq!(parsed.problems, Vec::<String>::new());
        let [one, image, all] = &parsed.fields[..] else {
            panic!("{:?}", parsed.fields)
        };
        assert!(!one.all && image.all && all.all);
        assert_eq!(image.attr.as_deref(), Some("SRC"));
        assert_eq!(image.hosts, ["a.test", "*.b.test:81"]);
        let mut text = String::new();
        write(&parsed.fields, &mut text);
        assert_eq!(parse(Path::new("c.toml"), &text).fields, parsed.fields);
    }

    #[test]
    fn mistakes_are_told_with_their_lines() {
        assert_eq!(
            problems("[[extract.field]]\nname = 1\nselectr = \"h1\"\nall = 2\n"),
            [
                "c.toml:1: extract.field: name is missing",
                "c.toml:1: extract.field: selector is missing",
                "c.toml:2: extract.field.name: expected a string",
                "c.toml:3: unknown key \"extract.field.selectr\"; did you mean selector?",
                "c.toml:4: extract.field.all: expected true or false",
            ]
        );
        let field = |more: &str| problems(&format!("[[extract.field]]\nname = \"x\"\nselector = \"y\"\n{more}"));
        for (more, problem) in [
            (
                "first = true\nall = true",
                "4: extract.field: first and all contradict each other; give one of them",
            ),
            (
                "attr = \" \"",
                "4: extract.field.attr: expected the name of an attribute",
            ),
            ("hosts = \"a\"", "4: extract.field.hosts: expected an array of strings"),
            ("hosts = [\n1]", "5: extract.field.hosts: expected an array of strings"),
            (
                "hosts = [\"http://a\"]",
                "4: extract.field.hosts: expected a host such as \"example.com\", \"example.com:8080\" or \"*.example.com\" \
                 (the domain and every host below it), found \"http://a\"",
            ),
            (
                "[[extract.field]]\nselector = \"z\"\nname = \"x\"",
                "6: extract.field: the name \"x\" stands twice",
            ),
            (
                "[[extract.field]]\nname = \"title\"\nselector = \"z\"",
                "5: extract.field.name: \"title\" is a built-in field: take that one with fields = [\"title\"], or give yours \
                 another name",
            ),
        ] {
            assert_eq!(field(more), [format!("c.toml:{problem}")], "{more}");
        }
        let bad = problems("[[extract.field]]\nname = \"x\"\n\nselector = \"p[\"\n");
        assert!(
            bad[0].starts_with("c.toml:4: extract.field.selector: \"p[\" is not a CSS selector: "),
            "{bad:?}"
        );
        assert_eq!(
            problems("[[extract.fields]]\nname = \"x\"\n"),
            ["c.toml:1: unknown key \"extract.fields\"; did you mean [[extract.field]]?"]
        );
        assert_eq!(
            problems("[extract]\nfield = 1"),
            ["c.toml:2: extract.field: expected tables [[extract.field]]"]
        );
        let many: String = (0..=MAX_FIELDS)
            .map(|n| format!("[[extract.field]]\nname = \"x{n}\"\nselector = \"y\"\n"))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(
            problems(&many),
            [format!("c.toml:1: more than {MAX_FIELDS} [[extract.field]]")]
        );
    }
}
