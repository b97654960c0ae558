//! `plan`: everything is said, nothing is done, and no value is shown.

use serde_json::Value;

use crate::stage::{outcome, prx};

/// What `plan` with these arguments says, on a machine on which nothing happened.
fn plan(args: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = prx(["plan", "--env", "LANG=quokka", "--env", "API_KEY=quokka"]);
    command.args(args).current_dir(directory.path());
    let outcome = outcome(&mut command);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let left = std::fs::read_dir(directory.path()).unwrap().count();
    assert_eq!(left, 0, "the command ran");
    assert!(!outcome.stdout.contains("quokka"), "{}", outcome.stdout);
    assert!(
        outcome
            .stdout
            .contains(directory.path().canonicalize().unwrap().to_str().unwrap()),
        "{}",
        outcome.stdout
    );
    outcome.stdout
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is missing:\n{text}");
    }
}

#[test]
fn a_process_is_told_before_it_is_one() {
    let text = plan(&[
        "--backend",
        "native",
        "--timeout",
        "3s",
        "--",
        "touch",
        "made",
    ]);
    assert_says(
        &text,
        &[
            "touch\"",
            "\"made\"",
            "LANG (from the call)",
            "refused     API_KEY",
            "3000 ms",
            "host_environment",
        ],
    );
}

#[test]
fn json_has_the_same() {
    let text = plan(&["--json", "--backend", "native", "--", "touch", "made"]);
    let plan: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(plan["backend"], "native");
    assert_eq!(plan["argv"][1], "made");
    assert_eq!(plan["refused_env"][0], "API_KEY");
    let names: Vec<_> = plan["environment"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"LANG") && names.is_sorted(), "{names:?}");
}

#[test]
fn a_dry_run_is_a_plan() {
    let run = ["run", "--dry-run", "--backend", "native", "--", "false"];
    let run = outcome(&mut prx(run));
    assert_eq!(run.code, Some(0));
    assert_says(&run.stdout, &["backend     native", "false\""]);
}

#[cfg(feature = "wasmtime")]
#[test]
fn a_guest_is_told_with_what_it_is_granted() {
    use prx_fixtures::Guest;

    let module = Guest::HELLO.path();
    let module = module.to_str().unwrap();
    let text = plan(&["--backend", "wasm", "--", module, "x"]);
    assert_says(
        &text,
        &["backend     wasm", "as `/workspace`", "no network", module],
    );
}

#[cfg(feature = "docker")]
#[test]
fn a_container_is_told_with_its_body() {
    use crate::images;

    if let Err(reason) = images::docker(&["version"]) {
        return prx_fixtures::skip("docker", reason);
    }
    let image = images::BUSYBOX.make().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("c.toml");
    std::fs::write(&config, format!("[runtime.docker]\nimage = \"{image}\"\n")).unwrap();
    let config = config.to_str().unwrap();
    let args = ["--config", config, "--backend", "docker"];
    let command = ["--", "touch", "made"];
    let people = plan(&[&args[..], &command].concat());
    assert_says(
        &people,
        &["network none", "image       ", "more with --json"],
    );
    let text = plan(&[&args[..], &["--json"], &command].concat());
    let plan: Value = serde_json::from_str(&text).unwrap();
    let body = plan["details"]["container"].as_str().unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["Image"], image);
    assert_eq!(body["HostConfig"]["NetworkMode"], "none");
    assert_eq!(body["HostConfig"]["ReadonlyRootfs"], true);
    assert_eq!(body["HostConfig"]["CapDrop"][0], "ALL");
}
