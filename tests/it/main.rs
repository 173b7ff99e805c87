//! The integration tests: one binary, one module a topic.

mod archive;
mod fetch;
mod raw_server;
