//! Flags → settings → command → exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    crawler::commands::run(std::env::args_os())
}
