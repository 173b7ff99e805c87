//! `crawler config`: write a commented file, check one, show the effective settings.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use super::{USAGE, fail, print};
use crate::config::load::load_file;
use crate::config::sample::{effective, sample};
use crate::config::{Loaded, table};

/// Writes the sample into a new file; one that is there is left alone.
pub(super) fn init(file: &Path) -> ExitCode {
    if file.as_os_str() == "-" {
        return print(&sample());
    }
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(file)
        .and_then(|mut handle| handle.write_all(sample().as_bytes()));
    let name = file.display();
    match written {
        Ok(()) => print(&format!("{name} is written: every key at its default\n")),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            fail(&format!("{name} is there already and is left alone"), USAGE)
        }
        Err(error) => fail(&format!("cannot write {name}: {error}"), 3),
    }
}

/// Says whether a file is valid, or everything that is wrong with it.
pub(super) fn check(file: &Path) -> ExitCode {
    match load_file(file) {
        Ok(loaded) => {
            let (set, all) = (loaded.origins.len(), table::settings().count());
            print(&format!("{} is valid: it sets {set} of {all} keys\n", file.display()))
        }
        Err(error) => fail(&error.to_string(), USAGE),
    }
}

/// Prints the effective settings, each with where it came from.
pub(super) fn show(loaded: &Loaded) -> ExitCode {
    let warnings: Vec<String> = loaded
        .warnings
        .iter()
        .map(|line| format!("# warning: {line}\n"))
        .collect();
    print(&format!("{}{}", warnings.concat(), effective(loaded)))
}
