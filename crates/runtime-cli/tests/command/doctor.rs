//! `doctor`: what works here.

use serde_json::Value;

use crate::stage::{outcome, prx};

#[test]
fn the_table_has_a_row_for_native() {
    let outcome = outcome(&mut prx(["doctor"]));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let mut lines = outcome.stdout.lines();
    let heading: Vec<_> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(heading, ["BACKEND", "AVAILABLE", "ISOLATION", "DETAIL"]);
    let native = lines.find(|line| line.starts_with("native")).unwrap();
    let native: Vec<_> = native.split_whitespace().take(4).collect();
    assert_eq!(native, ["native", "yes", "none", "shell"]);
}

#[test]
fn json_has_the_same() {
    let outcome = outcome(&mut prx(["doctor", "--json"]));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let rows: Vec<Value> = serde_json::from_str(&outcome.stdout).unwrap();
    let native = rows.iter().find(|row| row["backend"] == "native").unwrap();
    assert_eq!(native["compiled"], true);
    assert_eq!(native["available"], true);
    assert_eq!(native["isolation"], "none");
    for row in &rows {
        // Who cannot be used says what would help.
        assert!(row["available"] == true || row["hint"].is_string(), "{row}");
    }
}

#[test]
fn each_sandbox_has_a_row_with_its_version_or_what_is_missing() {
    let outcome = outcome(&mut prx(["doctor", "--json"]));
    let rows: Vec<Value> = serde_json::from_str(&outcome.stdout).unwrap();
    let sandboxes: Vec<_> = rows
        .iter()
        .filter(|row| row["sandbox"].is_string())
        .collect();
    let names: Vec<_> = sandboxes
        .iter()
        .map(|row| row["sandbox"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["bubblewrap", "landlock", "firejail"]);
    for row in sandboxes {
        assert_eq!(row["backend"], "native");
        assert_eq!(row["compiled"], cfg!(feature = "sandbox"));
        if row["available"] == false {
            assert!(!prx_fixtures::is_required("sandbox"), "{row}");
            assert!(row["hint"].is_string(), "{row}");
            continue;
        }
        let detail = row["detail"].as_str().unwrap();
        let name = row["sandbox"].as_str().unwrap();
        assert!(detail.contains(name), "{row}");
        assert!(detail.contains(char::is_numeric), "{row}");
        assert_eq!(row["round_trip"]["good"], true, "{row}");
        assert_eq!(row["round_trip"]["network_open"], false, "{row}");
    }
}

#[test]
fn a_backend_that_does_not_work_here_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    std::fs::write(&file, "[runtime.native]\nshell = \"/nowhere/fish\"\n").unwrap();
    let outcome = outcome(&mut prx(["--config", file.to_str().unwrap(), "doctor"]));
    let native = outcome
        .stdout
        .lines()
        .find(|line| line.starts_with("native"));
    assert!(native.unwrap().contains("no "), "{outcome:?}");
    assert!(
        outcome.stdout.contains("the shell `/nowhere/fish`"),
        "{outcome:?}"
    );
}
