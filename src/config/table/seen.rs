//! Settings: what remembers URLs.

use super::{MAX_CAPACITY, one, put};
use crate::config::checks::{fp_rate, some_duration};
use crate::config::setting::{BLANK, Setting, Shape};
use crate::config::value::{show_duration, show_word, whole, word};

pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "seen",
        shape: Shape::Text,
        name: "KIND",
        help: "What remembers URLs: bloom, classic, scalable, counting, cuckoo, quotient, tags, exact, hashset; if not given, what the job has, else bloom",
        example: &["bloom"],
        read: |c, v| put(&mut c.seen, word(one(v)).map(Some)),
        show: |c| c.seen.map(show_word).into_iter().collect(),
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
];
