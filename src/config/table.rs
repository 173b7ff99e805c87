//! The one list of settings. A row says how a setting is given (flag, key, variable), what it is for, and how it is read.

use super::checks::{
    address, contact, count, each, folder, fp_rate, header, log_format, pattern, prefix, some_duration, some_size,
    warc_size,
};
use super::setting::{BLANK, Group, Setting, Shape};
use super::value::{
    duration, optional, real, resolve, show_duration, show_resolve, show_size, show_word, size, whole, word, yes_no,
};

/// Most requests in flight over all hosts. More sockets than this are a mistake on one machine.
pub const MAX_CONCURRENCY: u16 = 10_000;
/// Most requests in flight to one host.
pub const MAX_PER_HOST_CONNECTIONS: u16 = 64;
/// Most tries after the first.
pub const MAX_RETRIES: u32 = 100;
/// Most failures in a row before a host is retired.
pub const MAX_HOST_FAILURES: u32 = 1_000;
/// Largest capacity of the filter, URLs: 10^11 need about 200 GB at the default rate.
pub const MAX_CAPACITY: u64 = 100_000_000_000;
/// Most requests a second over all hosts.
pub const MAX_RATE: f64 = 1_000_000.0;
/// Most `-v`: beyond it there is nothing more to say.
pub const MAX_VERBOSE: u8 = 3;

/// Every setting in the order of the help.
pub fn settings() -> impl Iterator<Item = &'static Setting> {
    GROUPS.iter().flat_map(|group| group.settings)
}

/// The setting of a key.
#[must_use]
pub fn setting(key: &str) -> Option<&'static Setting> {
    settings().find(|setting| setting.key == key)
}

/// The settings by purpose.
pub static GROUPS: [Group; 6] = [
    Group {
        title: "What to crawl",
        settings: &[
            Setting {
                key: "seeds",
                short: Some('s'),
                shape: Shape::List,
                name: "FILE",
                help: "Seed file, one URL a line, # begins a comment; - is standard input; repeatable",
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
                key: "page_requisites",
                shape: Shape::YesNo,
                name: "yes|no",
                help: "Fetch a page's images, styles, scripts and frames, one hop beyond the scope too",
                read: |c, v| put(&mut c.page_requisites, yes_no(one(v))),
                show: |c| show_yes_no(c.page_requisites),
                ..BLANK
            },
        ],
    },
    Group {
        title: "When to stop",
        settings: &[
            Setting {
                key: "max_depth",
                shape: Shape::Number,
                name: "N",
                help: "Follow links at most N hops from a seed",
                example: &["5"],
                read: |c, v| put(&mut c.max_depth, optional(one(v), |text| whole(text, 0..=u16::MAX))),
                show: |c| show_number(c.max_depth),
                ..BLANK
            },
            Setting {
                key: "max_pages",
                shape: Shape::Number,
                name: "N",
                help: "Stop after N fetched URLs",
                example: &["1000"],
                read: |c, v| put(&mut c.max_pages, optional(one(v), count)),
                show: |c| show_number(c.max_pages),
                ..BLANK
            },
            Setting {
                key: "max_bytes",
                shape: Shape::Quantity,
                name: "SIZE",
                help: "Stop after SIZE received",
                example: &["10GiB"],
                read: |c, v| put(&mut c.max_bytes, optional(one(v), some_size)),
                show: |c| c.max_bytes.map(show_size).into_iter().collect(),
                ..BLANK
            },
            Setting {
                key: "max_time",
                shape: Shape::Quantity,
                name: "DUR",
                help: "Stop after crawling for DUR, over all runs of the job",
                example: &["2h"],
                read: |c, v| put(&mut c.max_time, optional(one(v), some_duration)),
                show: |c| c.max_time.map(show_duration).into_iter().collect(),
                ..BLANK
            },
            Setting {
                key: "max_pages_per_host",
                shape: Shape::Number,
                name: "N",
                help: "Fetch at most N URLs of one host",
                example: &["10000"],
                read: |c, v| put(&mut c.max_pages_per_host, optional(one(v), count)),
                show: |c| show_number(c.max_pages_per_host),
                ..BLANK
            },
        ],
    },
    Group {
        title: "Politeness",
        settings: &[
            Setting {
                key: "delay",
                shape: Shape::Quantity,
                name: "DUR",
                help: "Pause between a response's end and the host's next request",
                read: |c, v| put(&mut c.delay, duration(one(v))),
                show: |c| vec![show_duration(c.delay)],
                ..BLANK
            },
            Setting {
                key: "max_wait",
                shape: Shape::Quantity,
                name: "DUR",
                help: "Longest Crawl-delay or Retry-After that is obeyed",
                read: |c, v| put(&mut c.max_wait, duration(one(v))),
                show: |c| vec![show_duration(c.max_wait)],
                ..BLANK
            },
            Setting {
                key: "per_host_connections",
                shape: Shape::Number,
                name: "N",
                help: "Requests in flight to one host",
                read: |c, v| {
                    put(
                        &mut c.per_host_connections,
                        whole(one(v), 1..=MAX_PER_HOST_CONNECTIONS).map(usize::from),
                    )
                },
                show: |c| vec![c.per_host_connections.to_string()],
                ..BLANK
            },
            Setting {
                key: "concurrency",
                shape: Shape::Number,
                name: "N",
                help: "Requests in flight over all hosts",
                read: |c, v| put(&mut c.concurrency, whole(one(v), 1..=MAX_CONCURRENCY).map(usize::from)),
                show: |c| vec![c.concurrency.to_string()],
                ..BLANK
            },
            Setting {
                key: "rate",
                shape: Shape::Number,
                name: "N",
                help: "Most requests a second over all hosts",
                example: &["50"],
                read: |c, v| put(&mut c.rate, optional(one(v), |text| real(text, 0.0, MAX_RATE))),
                show: |c| show_number(c.rate),
                ..BLANK
            },
            Setting {
                key: "no_robots",
                shape: Shape::Switch,
                name: "yes|no",
                help: "Do not ask for robots.txt: only for sites of your own",
                read: |c, v| put(&mut c.robots, yes_no(one(v)).map(|off| !off)),
                show: |c| show_yes_no(!c.robots),
                ..BLANK
            },
            Setting {
                key: "contact",
                shape: Shape::Text,
                name: "URL|MAIL",
                help: "Who answers for this crawl, for the User-Agent: set it before crawling the sites of others",
                example: &["https://example.com/crawler"],
                read: |c, v| put(&mut c.contact, optional(one(v), contact)),
                show: |c| c.contact.iter().cloned().collect(),
                ..BLANK
            },
            Setting {
                key: "user_agent",
                shape: Shape::Text,
                name: "TEXT",
                help: "The whole User-Agent header, instead of one made from --contact",
                example: &["Mozilla/5.0 (compatible; mybot/1.0; +https://example.com/bot)"],
                read: |c, v| put(&mut c.user_agent, header(one(v))),
                show: |c| vec![c.user_agent.clone()],
                ..BLANK
            },
        ],
    },
    Group {
        title: "Network",
        settings: &[
            Setting {
                key: "retries",
                shape: Shape::Number,
                name: "N",
                help: "Tries after the first of a fetch that fails",
                read: |c, v| put(&mut c.retries, whole(one(v), 0..=MAX_RETRIES)),
                show: |c| vec![c.retries.to_string()],
                ..BLANK
            },
            Setting {
                key: "max_host_failures",
                shape: Shape::Number,
                name: "N",
                help: "Failures in a row after which a host is given up",
                read: |c, v| put(&mut c.max_host_failures, whole(one(v), 1..=MAX_HOST_FAILURES)),
                show: |c| vec![c.max_host_failures.to_string()],
                ..BLANK
            },
            Setting {
                key: "header_timeout",
                shape: Shape::Quantity,
                name: "DUR",
                help: "Time for look-up, connection and headers",
                read: |c, v| put(&mut c.header_timeout, some_duration(one(v))),
                show: |c| vec![show_duration(c.header_timeout)],
                ..BLANK
            },
            Setting {
                key: "timeout",
                shape: Shape::Quantity,
                name: "DUR",
                help: "Time for a whole fetch",
                read: |c, v| put(&mut c.timeout, some_duration(one(v))),
                show: |c| vec![show_duration(c.timeout)],
                ..BLANK
            },
            Setting {
                key: "min_rate",
                shape: Shape::Quantity,
                name: "SIZE",
                help: "Slowest body that is waited for, a second",
                read: |c, v| put(&mut c.min_rate, size(one(v))),
                show: |c| vec![show_size(c.min_rate)],
                ..BLANK
            },
            Setting {
                key: "max_body",
                shape: Shape::Quantity,
                name: "SIZE",
                help: "Largest body, received or decoded; the rest is cut",
                read: |c, v| put(&mut c.max_body, some_size(one(v))),
                show: |c| vec![show_size(c.max_body)],
                ..BLANK
            },
            Setting {
                key: "resolve",
                shape: Shape::List,
                name: "HOST:PORT:ADDR",
                help: "Connect to ADDR for HOST:PORT, as curl does; repeatable",
                example: &["example.com:443:192.0.2.1"],
                read: |c, v| put(&mut c.resolve, each(v, resolve)),
                show: |c| c.resolve.iter().map(show_resolve).collect(),
                ..BLANK
            },
            Setting {
                key: "allow_address",
                shape: Shape::List,
                name: "CIDR",
                help: "Private or loopback addresses to permit; repeatable",
                example: &["127.0.0.0/8"],
                read: |c, v| put(&mut c.allow_address, each(v, address)),
                show: |c| c.allow_address.iter().map(ToString::to_string).collect(),
                ..BLANK
            },
        ],
    },
    Group {
        title: "Seen-set",
        settings: &[
            Setting {
                key: "seen",
                shape: Shape::Text,
                name: "KIND",
                help: "What remembers URLs: bloom, or hashset (exact, to compare)",
                read: |c, v| put(&mut c.seen, word(one(v))),
                show: |c| vec![show_word(c.seen)],
                ..BLANK
            },
            Setting {
                key: "capacity",
                shape: Shape::Number,
                name: "N",
                help: "URLs the filter is made for, 2 bytes each; then it grows",
                read: |c, v| put(&mut c.capacity, whole(one(v), 1..=MAX_CAPACITY)),
                show: |c| vec![c.capacity.to_string()],
                ..BLANK
            },
            Setting {
                key: "fp_rate",
                shape: Shape::Number,
                name: "P",
                help: "Share of new URLs taken for seen by a full filter",
                read: |c, v| put(&mut c.fp_rate, fp_rate(one(v))),
                show: |c| vec![c.fp_rate.to_string()],
                ..BLANK
            },
            Setting {
                key: "checkpoint_every",
                shape: Shape::Quantity,
                name: "DUR",
                help: "Pause between checkpoints of the filter; what is fetched is kept at once",
                read: |c, v| put(&mut c.checkpoint_every, some_duration(one(v))),
                show: |c| vec![show_duration(c.checkpoint_every)],
                ..BLANK
            },
        ],
    },
    Group {
        title: "Job, archive and output",
        settings: &[
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
        ],
    },
];

/// The value of a setting that is no list. (Whoever calls `read` gives exactly one.)
fn one(values: &[String]) -> &str {
    values.first().map_or("", |value| value.trim())
}

fn put<T>(slot: &mut T, value: Result<T, String>) -> Result<(), String> {
    *slot = value?;
    Ok(())
}

fn show_yes_no(yes: bool) -> Vec<String> {
    vec![if yes { "yes" } else { "no" }.to_owned()]
}

fn show_number<T: ToString>(number: Option<T>) -> Vec<String> {
    number.map(|number| number.to_string()).into_iter().collect()
}
