//! Settings: the job folder, the archive, what is written of pages, and the screen.

use super::{MAX_VERBOSE, one, put, show_yes_no};
use crate::config::checks::{builtins, folder, log_format, prefix, warc_size};
use crate::config::setting::{BLANK, Setting, Shape};
use crate::config::value::{show_size, whole, yes_no};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "job",
        short: Some('o'),
        shape: Shape::Text,
        name: "DIR",
        help: "Job folder; an unfinished job in it is resumed",
        read: |c, v| put(&mut c.job, folder(one(v))),
        show: |c| vec![c.job.display().to_string()],
        ..BLANK
    },
    Setting {
        key: "fresh",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Start over in a new folder beside the job's (crawl-2, ...)",
        read: |c, v| put(&mut c.fresh, yes_no(one(v))),
        show: |c| show_yes_no(c.fresh),
        ..BLANK
    },
    Setting {
        key: "no_archive",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Write no WARC files and no index",
        read: |c, v| put(&mut c.archive, yes_no(one(v)).map(|off| !off)),
        show: |c| show_yes_no(!c.archive),
        ..BLANK
    },
    Setting {
        key: "warc_size",
        shape: Shape::Quantity,
        name: "SIZE",
        help: "Size at which a WARC file is closed",
        read: |c, v| put(&mut c.warc_size, warc_size(one(v))),
        show: |c| vec![show_size(c.warc_size)],
        ..BLANK
    },
    Setting {
        key: "warc_prefix",
        shape: Shape::Text,
        name: "TEXT",
        help: "Start of WARC file names",
        read: |c, v| put(&mut c.warc_prefix, prefix(one(v))),
        show: |c| vec![c.warc_prefix.clone()],
        ..BLANK
    },
    Setting {
        key: "fields",
        shape: Shape::List,
        name: "LIST",
        help: "What to write of each HTML page into pages.jsonl.zst: title, description, canonical, lang, h1, author, \
               published, text, text_length, links; commas between them; repeatable",
        example: &["title", "description", "published"],
        read: |c, v| put(&mut c.builtins, builtins(v)),
        show: |c| c.builtins.iter().map(|builtin| builtin.name().to_owned()).collect(),
        ..BLANK
    },
    Setting {
        key: "output_links",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Write every link of every page into links.jsonl.zst: from, to, kind, anchor text, nofollow",
        read: |c, v| put(&mut c.links, yes_no(one(v))),
        show: |c| show_yes_no(c.links),
        ..BLANK
    },
    Setting {
        key: "parquet",
        shape: Shape::Switch,
        name: "yes|no",
        help: "At the end, write pages and links as Parquet, too",
        read: |c, v| put(&mut c.parquet, yes_no(one(v))),
        show: |c| show_yes_no(c.parquet),
        ..BLANK
    },
    Setting {
        key: "wacz",
        shape: Shape::Switch,
        name: "yes|no",
        help: "At the end, pack the archive as one WACZ file in the job's folder, too (crawler pack)",
        read: |c, v| put(&mut c.wacz, yes_no(one(v))),
        show: |c| show_yes_no(c.wacz),
        ..BLANK
    },
    Setting {
        key: "quiet",
        short: Some('q'),
        shape: Shape::Switch,
        name: "yes|no",
        help: "No progress and no summary: errors only",
        read: |c, v| put(&mut c.quiet, yes_no(one(v))),
        show: |c| show_yes_no(c.quiet),
        ..BLANK
    },
    Setting {
        key: "verbose",
        short: Some('v'),
        shape: Shape::Count,
        name: "N",
        help: "More in logs/crawler.log; -vv still more",
        read: |c, v| put(&mut c.verbose, whole(one(v), 0..=MAX_VERBOSE)),
        show: |c| vec![c.verbose.to_string()],
        ..BLANK
    },
    Setting {
        key: "log_format",
        shape: Shape::Text,
        name: "text|json",
        help: "Form of logs/crawler.log",
        read: |c, v| put(&mut c.log_json, log_format(one(v))),
        show: |c| vec![if c.log_json { "json" } else { "text" }.to_owned()],
        ..BLANK
    },
];
