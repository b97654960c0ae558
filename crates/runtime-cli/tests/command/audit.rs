//! What is logged, and what never is.

use crate::stage::{outcome, prx, prx_run};

#[test]
fn nothing_is_said_unasked() {
    let outcome = outcome(prx_run(["--", "true"]).env_remove("RUST_LOG"));
    assert_eq!(outcome.stdout, "");
    // Unless there is something to be warned of: what dead hosts of other tests left.
    let said = outcome.stderr.lines();
    assert_eq!(said.filter(|line| !line.contains("dead host")).count(), 0);
}

#[test]
fn the_closing_event_has_its_fields_and_no_values_of_variables() {
    let mut command = prx([
        "-v",
        "run",
        "--backend",
        "native",
        "--env",
        "LANG=swordfish",
    ]);
    command.args([
        "--tool",
        "shell",
        "--env",
        "OTHER=sesame",
        "--",
        "echo hi; exit 3",
    ]);
    let outcome = outcome(
        command
            .env_remove("RUST_LOG")
            .env("HOST_SECRET", "abracadabra"),
    );
    assert_eq!(outcome.code, Some(3));
    let event = outcome
        .stderr
        .lines()
        .find(|line| line.contains("prx_runtime::audit"))
        .unwrap();
    for field in [
        "execution{id=",
        "tool=\"shell\"",
        "command=\"echo hi; exit 3\"",
        "backend=\"native\"",
        "exit_code=3",
        "termination=exited",
        "duration_ms=",
        "stdout_bytes=3",
        "stderr_bytes=0",
    ] {
        assert!(event.contains(field), "{field} is not in: {event}");
    }
    for value in ["swordfish", "sesame", "abracadabra"] {
        assert!(!outcome.stderr.contains(value), "{}", outcome.stderr);
    }
}

#[test]
fn most_verbose_shows_no_values_either() {
    let mut command = prx([
        "-vvv",
        "run",
        "--backend",
        "native",
        "--env",
        "LANG=swordfish",
    ]);
    let outcome = outcome(
        command
            .args(["--", "true"])
            .env_remove("RUST_LOG")
            .env("HOST_SECRET", "abracadabra"),
    );
    assert!(!outcome.stderr.contains("swordfish"), "{}", outcome.stderr);
    assert!(
        !outcome.stderr.contains("abracadabra"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn rust_log_takes_precedence() {
    let audited = outcome(prx_run(["--", "true"]).env("RUST_LOG", "prx_runtime::audit=info"));
    assert_eq!(audited.stderr.lines().count(), 1);
    assert!(audited.stderr.contains("execution ended"));
    let silent = outcome(prx_run(["-vv", "--", "true"]).env("RUST_LOG", "off"));
    assert_eq!(silent.stderr, "");
}

#[test]
fn a_command_that_did_not_run_is_audited_too() {
    let mut command = prx_run(["-v", "--", "no-such-program", "x"]);
    let outcome = outcome(command.env_remove("RUST_LOG"));
    assert_eq!(outcome.code, Some(125));
    let event = "execution failed command=\"no-such-program x\"";
    assert!(outcome.stderr.contains(event), "{}", outcome.stderr);
}
