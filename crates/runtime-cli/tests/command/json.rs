//! The object that `run --json` prints.

use serde_json::{Value, json};

use crate::stage::{Sleeper, outcome, prx_run};

fn run_json<'a>(args: impl IntoIterator<Item = &'a str>) -> (Option<i32>, Value) {
    let outcome = outcome(prx_run(["--json"]).args(args));
    assert_eq!(outcome.stdout.lines().count(), 1, "{outcome:?}");
    (outcome.code, serde_json::from_str(&outcome.stdout).unwrap())
}

#[test]
fn it_has_exactly_these_keys() {
    let line = "echo out; echo err >&2; exit 3";
    let (code, mut object) = run_json(["--env", "NOT_LISTED=x", "--", line]);
    assert_eq!(code, Some(3));
    let keys: Vec<_> = object.as_object().unwrap().keys().cloned().collect();
    let mut expected = [
        "backend",
        "exit_code",
        "termination",
        "stdout",
        "stderr",
        "stdout_total_bytes",
        "stderr_total_bytes",
        "truncated",
        "duration_ms",
        "isolation",
        "leftover_processes",
        "refused_env",
    ];
    let mut sorted = keys;
    sorted.sort_unstable();
    expected.sort_unstable();
    assert_eq!(sorted, expected);

    let object = object.as_object_mut().unwrap();
    assert!(object.remove("duration_ms").unwrap().is_u64());
    let isolation = object.remove("isolation").unwrap();
    assert_eq!(isolation["level"], "none");
    for open in ["file_system", "network", "host_environment"] {
        assert!(isolation["open"].as_array().unwrap().contains(&open.into()));
    }
    let rest = json!({
        "backend": "native",
        "exit_code": 3,
        "termination": "exited",
        "stdout": "out\n",
        "stderr": "err\n",
        "stdout_total_bytes": 4,
        "stderr_total_bytes": 4,
        "truncated": false,
        "leftover_processes": 0,
        "refused_env": ["NOT_LISTED"],
    });
    assert_eq!(Value::from(object.clone()), rest);
}

#[test]
fn it_tells_the_endings_apart() {
    let (code, object) = run_json(["--", "kill -9 $$"]);
    assert_eq!((code, &object["exit_code"]), (Some(137), &137.into()));
    assert_eq!(object["termination"], json!({"signaled": 9}));

    let sleeper = Sleeper::new();
    let line = format!("echo step1; {}", sleeper.line());
    let (code, object) = run_json(["--timeout", "2s", "--", &line]);
    assert_eq!((code, &object["exit_code"]), (Some(124), &124.into()));
    assert_eq!(object["termination"], "timed_out");
    assert_eq!(object["stdout"], "step1\n");

    let line = format!("{} & echo left", sleeper.line());
    let (code, object) = run_json(["--", &line]);
    assert_eq!((code, &object["leftover_processes"]), (Some(0), &1.into()));
}

#[test]
fn what_was_cut_is_counted() {
    let (_, object) = run_json(["--", "head -c 3000000 /dev/zero | tr '\\0' x"]);
    assert_eq!(object["truncated"], true);
    assert_eq!(object["stdout_total_bytes"], 3_000_000);
    assert!(object["stdout"].as_str().unwrap().contains("bytes omitted"));
}
