//! The integration tests: one binary, one module a topic.

mod archive;
mod fetch;
mod raw_server;

#[cfg(test)]
mod cli; // messages, exit codes and files of the command line
