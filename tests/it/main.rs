//! The integration tests: one binary, one module a topic.

mod fetch;
mod raw_server;
