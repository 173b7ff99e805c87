//! The integration tests: one binary, one module a topic.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    unreachable_pub,
    reason = "in a test a broken promise is a panic"
)]

mod archive;
mod fetch;
mod raw_server;
mod virtual_time;
