//! Settings: what is crawled.

use super::{one, put, show_yes_no};
use crate::config::checks::{each, media_types, pattern};
use crate::config::setting::{BLANK, Setting, Shape};
use crate::config::value::{optional, show_size, show_word, size, whole, word, yes_no};
use crate::scope::surt_prefix;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "seeds",
        short: Some('s'),
        shape: Shape::List,
        name: "FILE|URL",
        help: "Seed file, one URL a line, # begins a comment; - is standard input; http(s)://... is fetched once and kept with the job; repeatable",
        secret: false,
        example: &["seeds.txt"],
        read: |c, v| put(&mut c.seeds, Ok(v.iter().map(Into::into).collect())),
        show: |c| c.seeds.iter().map(|path| path.display().to_string()).collect(),
    },
    Setting {
        key: "seed",
        shape: Shape::List,
        name: "URL",
        help: "A seed; repeatable",
        example: &["https://example.com/"],
        read: |c, v| put(&mut c.seed, Ok(v.to_vec())),
        show: |c| c.seed.clone(),
        ..BLANK
    },
    Setting {
        key: "scope",
        shape: Shape::Text,
        name: "SCOPE",
        help: "Follow links on the seed's host, domain, prefix (its path) or any",
        read: |c, v| put(&mut c.scope, word(one(v))),
        show: |c| vec![show_word(c.scope)],
        ..BLANK
    },
    Setting {
        key: "scope_surt",
        shape: Shape::List,
        name: "PREFIX",
        help: "URLs whose SURT key begins so are in scope too: com,example, or com,example)/docs; repeatable",
        example: &["com,example,"],
        read: |c, v| put(&mut c.scope_surts, each(v, surt_prefix)),
        show: |c| c.scope_surts.clone(),
        ..BLANK
    },
    Setting {
        key: "offsite_hops",
        shape: Shape::Number,
        name: "N",
        help: "Follow links out of the scope N hops far; the pages there come with what they need",
        read: |c, v| put(&mut c.offsite_hops, whole(one(v), 0..=u8::MAX)),
        show: |c| vec![c.offsite_hops.to_string()],
        ..BLANK
    },
    Setting {
        key: "include",
        shape: Shape::List,
        name: "REGEX",
        help: "Only URLs that match one of these; repeatable",
        example: &["/docs/"],
        read: |c, v| put(&mut c.include, each(v, pattern)),
        show: |c| c.include.clone(),
        ..BLANK
    },
    Setting {
        key: "exclude",
        shape: Shape::List,
        name: "REGEX",
        help: "No URL that matches one of these; repeatable",
        example: &["[?&]replytocom="],
        read: |c, v| put(&mut c.exclude, each(v, pattern)),
        show: |c| c.exclude.clone(),
        ..BLANK
    },
    Setting {
        key: "accept_types",
        shape: Shape::List,
        name: "TYPE",
        help: "Only bodies of these media types, by their header: text/html,image/*; repeatable",
        example: &["text/html", "image/*"],
        read: |c, v| put(&mut c.filter.accept, media_types(v)),
        show: |c| c.filter.accept.iter().map(ToString::to_string).collect(),
        ..BLANK
    },
    Setting {
        key: "reject_types",
        shape: Shape::List,
        name: "TYPE",
        help: "No bodies of these media types; repeatable",
        example: &["video/*"],
        read: |c, v| put(&mut c.filter.reject, media_types(v)),
        show: |c| c.filter.reject.iter().map(ToString::to_string).collect(),
        ..BLANK
    },
    Setting {
        key: "max_size",
        shape: Shape::Quantity,
        name: "SIZE",
        help: "No bodies whose header says they are larger; --max-body cuts those that do not say",
        example: &["10MiB"],
        read: |c, v| put(&mut c.filter.max_size, optional(one(v), size)),
        show: |c| c.filter.max_size.map(show_size).into_iter().collect(),
        ..BLANK
    },
    Setting {
        key: "blocklist",
        shape: Shape::List,
        name: "FILE",
        help: "Hosts and URL prefixes never to ask, one a line: plain, hosts file or ||host^; repeatable",
        example: &["blocklist.txt"],
        read: |c, v| put(&mut c.blocklist, Ok(v.iter().map(Into::into).collect())),
        show: |c| c.blocklist.iter().map(|path| path.display().to_string()).collect(),
        ..BLANK
    },
    Setting {
        key: "page_requisites",
        shape: Shape::YesNo,
        name: "yes|no",
        help: "Fetch a page's images, styles, scripts and frames, one hop beyond the scope too",
        read: |c, v| put(&mut c.page_requisites, yes_no(one(v))),
        show: |c| show_yes_no(c.page_requisites),
        ..BLANK
    },
    Setting {
        key: "speculative",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Follow guesses too: what looks like an address in scripts and data, one hop",
        read: |c, v| put(&mut c.speculative, yes_no(one(v))),
        show: |c| show_yes_no(c.speculative),
        ..BLANK
    },
    Setting {
        key: "sitemaps",
        shape: Shape::YesNo,
        name: "yes|no",
        help: "Read the sitemaps that robots.txt names, and /sitemap.xml of the seeds' hosts",
        read: |c, v| put(&mut c.sitemaps, yes_no(one(v))),
        show: |c| show_yes_no(c.sitemaps),
        ..BLANK
    },
    Setting {
        key: "sitemaps_only",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Fetch the seeds, their hosts' sitemaps and what these list; follow no other links",
        read: |c, v| put(&mut c.sitemaps_only, yes_no(one(v))),
        show: |c| show_yes_no(c.sitemaps_only),
        ..BLANK
    },
    Setting {
        key: "traps",
        shape: Shape::YesNo,
        name: "yes|no",
        help: "Leave addresses that lead into spaces without end; [[trap]] in crawler.toml for single hosts",
        read: |c, v| put(&mut c.traps.off, yes_no(one(v)).map(|yes| !yes)),
        show: |c| show_yes_no(!c.traps.off),
        ..BLANK
    },
];
