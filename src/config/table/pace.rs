//! Settings: how gently hosts are asked.

use super::{MAX_CONCURRENCY, MAX_PER_HOST_CONNECTIONS, MAX_RATE, one, put, show_number, show_yes_no};
use crate::config::checks::{contact, factor, header};
use crate::config::setting::{BLANK, Setting, Shape};
use crate::config::value::{duration, optional, real, show_duration, whole, yes_no};

pub(super) const SETTINGS: &[Setting] = &[
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
        key: "delay_factor",
        shape: Shape::Number,
        name: "N",
        help: "Pause at least N times as long as the response took, up to --max-wait; 0: only --delay",
        read: |c, v| put(&mut c.delay_factor, factor(one(v))),
        show: |c| vec![c.delay_factor.to_string()],
        ..BLANK
    },
    Setting {
        key: "delay_per_address",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Hosts with the same address share one pause and one count of connections",
        read: |c, v| put(&mut c.delay_per_address, yes_no(one(v))),
        show: |c| show_yes_no(c.delay_per_address),
        ..BLANK
    },
    Setting {
        key: "max_wait",
        shape: Shape::Quantity,
        name: "DUR",
        help: "Longest Crawl-delay or Retry-After that is obeyed, and longest wait after failures",
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
        key: "obey_nofollow",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Do not follow links with rel=nofollow, nor those of pages that say nofollow",
        read: |c, v| put(&mut c.obey_nofollow, yes_no(one(v))),
        show: |c| show_yes_no(c.obey_nofollow),
        ..BLANK
    },
    Setting {
        key: "obey_noindex",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Do not archive pages that say noindex; their links are followed",
        read: |c, v| put(&mut c.obey_noindex, yes_no(one(v))),
        show: |c| show_yes_no(c.obey_noindex),
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
];
