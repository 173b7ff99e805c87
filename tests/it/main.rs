//! The integration tests: one binary, one module a topic.

mod extract;
