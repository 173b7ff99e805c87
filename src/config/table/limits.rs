//! Settings: when the crawl stops.

use super::{one, put, show_number};
use crate::config::checks::{count, some_duration, some_size};
use crate::config::setting::{BLANK, Setting, Shape};
use crate::config::value::{optional, show_duration, show_size, whole};

pub(super) const SETTINGS: &[Setting] = &[
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
    Setting {
        key: "max_sitemap_urls",
        shape: Shape::Number,
        name: "N",
        help: "Take at most N new URLs from sitemaps",
        read: |c, v| put(&mut c.max_sitemap_urls, count(one(v))),
        show: |c| show_number(Some(c.max_sitemap_urls)),
        ..BLANK
    },
];
