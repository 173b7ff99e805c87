//! `crawler simulate`: the counted truth against what the seen-set expects of itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use crawler::seen::Kind;
use serde_json::Value;

fn simulate(folder: &Path, args: &[&str]) -> (i32, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_crawler"))
        .current_dir(folder)
        .arg("simulate")
        .args(args)
        .output()
        .unwrap();
    let text = String::from_utf8(done.stdout).unwrap() + &String::from_utf8(done.stderr).unwrap();
    (done.status.code().unwrap(), text)
}

fn report(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("simulation/report.json")).unwrap()).unwrap()
}

fn number(report: &Value, pointer: &str) -> u64 {
    let value = report.pointer(pointer).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no {pointer} in {report:#}"))
}

#[test]
fn every_kind_loses_what_it_expects_to_lose_and_kills_lose_nothing() {
    for kind in Kind::ALL {
        let home = tempfile::tempdir().unwrap();
        let args = [
            "--urls",
            "12_000",
            "--seen",
            kind.name(),
            "--fp",
            "0.02",
            "--kills",
            "4",
        ];
        let (code, text) = simulate(home.path(), &args);
        assert_eq!(code, 0, "{text}");
        let report = report(home.path());
        let (urls, lost) = (number(&report, "/end/urls"), number(&report, "/end/lost"));
        assert!(urls >= 12_000);
        assert_eq!(
            number(&report, "/links/admitted") + lost,
            urls,
            "every URL met is admitted or lost"
        );
        assert_eq!(number(&report, "/end/seen/items"), urls - lost);
        let parts = ["admitted", "seen", "malformed", "out_of_scope", "trap"];
        let parts: u64 = parts
            .iter()
            .map(|part| number(&report, &format!("/links/{part}")))
            .sum();
        assert_eq!(number(&report, "/links/found"), parts);
        assert_eq!(
            number(&report, "/end/fetched") + number(&report, "/end/queued"),
            urls - lost,
            "no URL is lost by a kill, none recorded twice"
        );
        let expected = |end: &str| report["end"]["seen"][end].as_f64().unwrap();
        if matches!(kind, Kind::Exact | Kind::HashSet) {
            assert_eq!(lost, 0, "{}", kind.name());
        } else {
            // twice as far as 95 % of all runs: 1 of 10,000 would be further
            let (low, middle, high) = (expected("lost_low"), expected("lost_estimate"), expected("lost_high"));
            let (low, high) = (2.0 * low - middle - 1.0, 2.0 * high - middle + 1.0);
            let lost = f64::from(u32::try_from(lost).unwrap());
            assert!(
                (low..=high).contains(&lost),
                "{}: {lost} of {low} to {high}",
                kind.name()
            );
        }
        assert_eq!(number(&report, "/kills"), 4);
        assert!(number(&report, "/cut_off") > 0);
        assert_eq!(
            (number(&report, "/twice"), number(&report, "/politeness/violations")),
            (0, 0)
        );
        assert!(report["politeness"]["min_gap_s"].as_f64().unwrap() >= 1.0);
    }
}

#[test]
fn a_run_can_be_repeated_and_shows_its_curves() {
    let home = tempfile::tempdir().unwrap();
    let run = || {
        let (code, text) = simulate(
            home.path(),
            &["--urls", "10_000", "--capacity", "3000", "--seed", "9", "--delay", "2s"],
        );
        assert_eq!(code, 0, "{text}");
        let mut report = report(home.path());
        assert!(number(&report, "/end/seen/layers") > 1, "a set that is full grows");
        assert!(report["politeness"]["min_gap_s"].as_f64().unwrap() >= 2.0);
        for point in report["points"].as_array_mut().unwrap() {
            // real time and memory are the machine's
            for key in ["elapsed_s", "resident_bytes"] {
                assert!(point.as_object_mut().unwrap().remove(key).is_some());
            }
        }
        report["points"].clone()
    };
    let points = run();
    assert!((150..=201).contains(&points.as_array().unwrap().len()));
    assert_eq!(run(), points);
    let page = fs::read_to_string(home.path().join("simulation/report.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 6);
    assert!(!page.contains("NaN") && !page.contains("http-equiv") && !page.contains("src="));
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let home = tempfile::tempdir().unwrap();
    for (args, words) in [
        (&["--urls", "0"][..], "--urls"),
        (&["--urls", "3_000_000_000"], "2,000,000,000"),
        (&["--urls", "10", "--fp", "0"], "--fp"),
        (&["--urls", "10", "--seen", "magic"], "magic"),
        (&["--urls", "10", "--delay", "soon"], "--delay"),
    ] {
        let (code, text) = simulate(home.path(), args);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(words), "{text}");
    }
}
