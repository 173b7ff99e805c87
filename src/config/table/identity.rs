//! Settings: what counts as one page. All of them merge addresses that a server may answer differently.

use super::{one, put, show_yes_no};
use crate::config::checks::drop_params;
use crate::config::setting::{BLANK, Setting, Shape};
use crate::config::value::yes_no;

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "strip_session_ids",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Session ids do not count: ;jsessionid=, PHPSESSID=, sid= (32 characters), ...",
        read: |c, v| put(&mut c.rules.strip_session_ids, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.strip_session_ids),
        ..BLANK
    },
    Setting {
        key: "strip_tracking",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Tracking parameters do not count: utm_source, gclid, fbclid and the like",
        read: |c, v| put(&mut c.rules.strip_tracking, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.strip_tracking),
        ..BLANK
    },
    Setting {
        key: "drop_params",
        shape: Shape::List,
        name: "NAME",
        help: "Query parameters of this name do not count; repeatable",
        example: &["ref"],
        read: |c, v| put(&mut c.rules.drop_params, drop_params(v)),
        show: |c| c.rules.drop_params.clone(),
        ..BLANK
    },
    Setting {
        key: "sort_query",
        shape: Shape::Switch,
        name: "yes|no",
        help: "The order of query parameters does not count",
        read: |c, v| put(&mut c.rules.sort_query, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.sort_query),
        ..BLANK
    },
    Setting {
        key: "drop_empty_query",
        shape: Shape::Switch,
        name: "yes|no",
        help: "An empty query (a final ?) does not count",
        read: |c, v| put(&mut c.rules.drop_empty_query, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.drop_empty_query),
        ..BLANK
    },
    Setting {
        key: "fold_www",
        shape: Shape::Switch,
        name: "yes|no",
        help: "www.example.com is example.com",
        read: |c, v| put(&mut c.rules.fold_www, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.fold_www),
        ..BLANK
    },
    Setting {
        key: "fold_scheme",
        shape: Shape::Switch,
        name: "yes|no",
        help: "https is http, unless a port is written",
        read: |c, v| put(&mut c.rules.fold_scheme, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.fold_scheme),
        ..BLANK
    },
    Setting {
        key: "fold_path_case",
        shape: Shape::Switch,
        name: "yes|no",
        help: "Upper and lower case in a path are the same",
        read: |c, v| put(&mut c.rules.fold_path_case, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.fold_path_case),
        ..BLANK
    },
    Setting {
        key: "fold_trailing_slash",
        shape: Shape::Switch,
        name: "yes|no",
        help: "/docs/ is /docs",
        read: |c, v| put(&mut c.rules.fold_trailing_slash, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.fold_trailing_slash),
        ..BLANK
    },
    Setting {
        key: "fold_index",
        shape: Shape::Switch,
        name: "yes|no",
        help: "/docs/index.html (index.htm, index.php, default.aspx, ...) is /docs/",
        read: |c, v| put(&mut c.rules.fold_index, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.fold_index),
        ..BLANK
    },
    Setting {
        key: "keep_hashbang",
        shape: Shape::Switch,
        name: "yes|no",
        help: "A fragment that begins with #! counts",
        read: |c, v| put(&mut c.rules.keep_hashbang, yes_no(one(v))),
        show: |c| show_yes_no(c.rules.keep_hashbang),
        ..BLANK
    },
];
