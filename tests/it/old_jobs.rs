//! Job folders that an earlier version left behind must go on: one is kept here for each version of the format.
//!
//! `format-1.tar.gz` was stopped by `--max-pages 3` with two URLs pending; its server is long gone.

use std::path::Path;
use std::process::Command;

use crate::harness::Job;
use crate::reader::{assert_index_matches, assert_sound};

fn unpack(job: &Job) {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/jobs/format-1.tar.gz");
    let home = job.dir().parent().unwrap().to_owned();
    let status = Command::new("tar")
        .arg("-xzf")
        .arg(&archive)
        .arg("-C")
        .arg(&home)
        .status()
        .unwrap();
    assert!(status.success(), "{} cannot be unpacked", archive.display());
}

#[test]
fn a_job_of_format_1_goes_on() {
    // loopback is not allowed in this run, so what is pending is read back, asked for and refused, without a request
    let job = Job::without_permission(&["http://127.0.0.1:18977/p1.html"]);
    unpack(&job);
    job.run().assert_code(0);
    job.assert_balanced();
    assert_eq!(job.report()["state"], "finished");
    assert_eq!(job.count("/runs"), 2);
    assert_eq!(job.count("/urls/admitted"), 6);
    assert_eq!(job.count("/urls/fetched"), 3, "what was fetched before stands");
    assert_eq!(job.count("/urls/failed"), 2);
    assert_eq!(job.count("/urls/robots"), 1, "its robots.txt is remembered");
    assert_eq!(job.count("/failures/private-address"), 1);
    let records = job.records();
    assert_sound(&records);
    assert_index_matches(&job.index(), &records);
    assert_eq!(
        records
            .iter()
            .filter(|record| record.is_answer() && !record.is_robots())
            .count(),
        3
    );
}
