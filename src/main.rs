//! Flags → settings → command → exit code.

fn main() {}
