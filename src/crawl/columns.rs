//! Which columns the tables of pages and links have, and when they are written.

use std::io;

use crate::config::Config;
use crate::disk::Disk;
use crate::extract::fields::Builtin;
use crate::ledger::{LINKS, PAGES, PLAIN_PAGES};
use crate::tables::{Column, Kind, convert};
use crate::visit::LINK_COUNTS;

/// The tables, from the files of lines that there are.
pub(super) fn write_tables(disk: &dyn Disk, config: &Config) -> io::Result<()> {
    let plain = disk.size(PLAIN_PAGES)?.is_some_and(|size| size > 0);
    let pages = if plain { PLAIN_PAGES } else { PAGES };
    convert(disk, pages, !plain, "pages.parquet", &pages_columns(config))?;
    convert(disk, LINKS, true, "links.parquet", &links_columns())?;
    Ok(())
}

fn pages_columns(config: &Config) -> Vec<Column> {
    let text = |name: &str| Column::new(name, &[name], Kind::Text);
    let mut columns = vec![
        text("url"),
        text("time"),
        Column::new("status", &["status"], Kind::Number),
    ];
    for builtin in &config.builtins {
        let name = builtin.name();
        match builtin {
            Builtin::TextLength => columns.push(Column::new(name, &[name], Kind::Number)),
            Builtin::Links => columns.extend(LINK_COUNTS.map(|count| {
                let column = format!("{name}_{count}");
                Column::new(&column, &[name, count], Kind::Number)
            })),
            _ => columns.push(text(name)),
        }
    }
    for field in &config.fields {
        let kind = if field.all { Kind::Texts } else { Kind::Text };
        columns.push(Column::new(&field.name, &[&field.name], kind));
    }
    columns.push(Column::new("cut", &["cut"], Kind::Texts));
    columns
}

fn links_columns() -> Vec<Column> {
    let texts = [
        "from",
        "to",
        "identity",
        "raw",
        "kind",
        "element",
        "attribute",
        "rel",
        "text",
        "fate",
    ];
    let mut columns: Vec<Column> = texts.map(|name| Column::new(name, &[name], Kind::Text)).into();
    columns.extend(["nofollow", "cut"].map(|name| Column::new(name, &[name], Kind::Flag)));
    columns
}
