//! `crawler demo`, as a newcomer runs it.

use std::process::Command;

use crate::reader::{assert_index_matches, assert_sound, index, records};

#[test]
fn the_demo_brings_its_whole_web_home_and_a_second_one_overwrites_nothing() {
    let home = tempfile::tempdir().unwrap();
    for folder in ["demo", "demo-2"] {
        let output = Command::new(env!("CARGO_BIN_EXE_crawler"))
            .current_dir(home.path())
            .args(["demo", "--hosts", "3", "--pages", "12"])
            .output()
            .unwrap();
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(output.status.success(), "{text}");
        assert!(text.contains("pages in the archive, each once"), "{text}");
        assert!(text.contains(&format!("{folder}/archive")), "{text}");
        let job = home.path().join(folder);
        let records = records(&job.join("archive"));
        assert_sound(&records);
        assert_index_matches(&index(&job.join("indexes/index.cdxj")), &records);
        assert!(
            records.iter().any(|record| record.kind() == "revisit"),
            "the demo has payloads that occur twice"
        );
    }
}
