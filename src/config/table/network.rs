//! Settings: connections and their bounds.

use super::{MAX_HOST_FAILURES, MAX_RETRIES, one, put, show_yes_no};
use crate::config::checks::{address, each, each_secret, some_duration, some_size};
use crate::config::setting::{BLANK, Setting, Shape};
use crate::config::value::{resolve, show_duration, show_resolve, show_size, size, whole, yes_no};
use crate::fetch::http;

pub(super) const SETTINGS: &[Setting] = &[
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
        key: "keep_cookies",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Keep the cookies that sites set, with the job, and send each site its own",
        read: |c, v| put(&mut c.keep_cookies, yes_no(one(v))),
        show: |c| show_yes_no(c.keep_cookies),
        ..BLANK
    },
    Setting {
        key: "cookies",
        shape: Shape::Text,
        name: "FILE",
        help: "Begin with the cookies of this cookies.txt, and keep cookies",
        example: &["cookies.txt"],
        read: |c, v| put(&mut c.cookies, Ok(Some(one(v).into()))),
        show: |c| c.cookies.iter().map(|path| path.display().to_string()).collect(),
        ..BLANK
    },
    Setting {
        key: "http2",
        shape: Shape::YesNo,
        name: "yes|no",
        help: "Speak HTTP/2 where a server offers it",
        read: |c, v| put(&mut c.http2, yes_no(one(v))),
        show: |c| show_yes_no(c.http2),
        ..BLANK
    },
    Setting {
        key: "header",
        shape: Shape::Lines,
        name: "K: V",
        help: "A further header on every request, or another value for one of ours; repeatable",
        example: &["Accept-Language: de"],
        secret: true,
        read: |c, v| put(&mut c.header, each_secret(v, http::header)),
        show: |c| c.header.iter().map(http::shown_header).collect(),
        ..BLANK
    },
    Setting {
        key: "proxy",
        shape: Shape::Text,
        name: "URL",
        help: "Send all requests through http://, socks5:// or socks5h://[USER:PASSWORD@]HOST:PORT",
        example: &["socks5h://127.0.0.1:9050"],
        secret: true,
        read: |c, v| put(&mut c.proxy, http::proxy(one(v)).map(Some)),
        show: |c| c.proxy.as_deref().map(http::shown_proxy).into_iter().collect(),
        ..BLANK
    },
    Setting {
        key: "no_secrets",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Resume a job without the passwords it was begun with",
        read: |c, v| put(&mut c.no_secrets, yes_no(one(v))),
        show: |c| show_yes_no(c.no_secrets),
        ..BLANK
    },
    Setting {
        key: "insecure_tls",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Do not check certificates; the archive says so",
        read: |c, v| put(&mut c.insecure_tls, yes_no(one(v))),
        show: |c| show_yes_no(c.insecure_tls),
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
];
