//! Every bad input is its own error, on one line, and exit code 125.

use crate::stage::{Outcome, outcome, prx};

#[track_caller]
fn check(outcome: &Outcome, message: &str) {
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    let expected = format!("prx-runtime: {message}\n");
    assert_eq!(outcome.stderr, expected);
}

/// What `run` says to a configuration with these lines in `[runtime]`.
fn run_with(lines: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.toml");
    std::fs::write(&file, format!("[runtime]\n{lines}\n")).unwrap();
    let mut command = prx(["run", "--config", "c.toml", "--", "echo", "ran"]);
    outcome(command.current_dir(directory.path()))
}

fn run(args: &[&str]) -> Outcome {
    outcome(prx(["run"]).args(args).args(["--", "echo", "ran"]))
}

#[test]
fn an_empty_backend() {
    let message = "`runtime.backend`: is empty; expected the name of a backend such as \"native\", \
                   \"docker\", \"wasm\" or \"auto\"";
    check(&run(&["--backend", ""]), message);
    check(&run_with("backend = \"\""), &format!("c.toml:2: {message}"));
}

#[test]
fn an_unknown_backend() {
    for outcome in [
        run(&["--backend", "podmn"]),
        run_with("backend = \"podmn\""),
    ] {
        assert_eq!(outcome.code, Some(125), "{outcome:?}");
        let start = "prx-runtime: there is no backend `podmn` (runtime.backend) \
                     (hint: this build has: ";
        assert!(outcome.stderr.starts_with(start), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("native"), "{}", outcome.stderr);
    }
}

#[test]
fn a_timeout_on_the_command_line_that_is_none() {
    let expected = "expected a duration such as 500ms, 1.5s, 2m or 1h (a number alone is seconds)";
    for (text, wrong) in [
        ("-5s", "is negative"),
        ("0", "is zero"),
        ("soon", "is not a duration"),
    ] {
        let outcome = run(&["--timeout", text]);
        assert_eq!(outcome.code, Some(125), "{outcome:?}");
        let message = format!(
            "error: invalid value '{text}' for '--timeout <DURATION>': {text:?} {wrong}; {expected}\n"
        );
        assert!(outcome.stderr.starts_with(&message), "{}", outcome.stderr);
    }
}

#[test]
fn a_timeout_in_the_configuration_that_is_none() {
    let key = "c.toml:2: `runtime.default_timeout_secs`:";
    let outcome = run_with("default_timeout_secs = -5");
    assert_eq!(outcome.code, Some(125));
    let start = format!("prx-runtime: {key} found -5, expected an integer from ");
    assert!(outcome.stderr.starts_with(&start), "{}", outcome.stderr);
    check(
        &run_with("default_timeout_secs = 0"),
        &format!("{key} found 0, expected an integer from 1"),
    );
}

#[test]
fn an_output_bound_of_zero() {
    check(
        &run_with("max_output_bytes = 0"),
        "c.toml:2: `runtime.max_output_bytes`: found 0, expected an integer from 1",
    );
}

#[test]
fn a_secret_on_the_whitelist() {
    check(
        &run_with("env_whitelist = [\"PATH\", \"GITHUB_TOKEN\"]"),
        "c.toml:2: `runtime.env_whitelist[1]`: \"GITHUB_TOKEN\" looks like a secret and is never \
         passed on from the host; to set it on purpose, put it into the `env` table of the backend",
    );
}

#[test]
fn a_shell_that_does_not_exist() {
    check(
        &run_with("backend = \"native\"\nnative.shell = \"/nowhere/fish\""),
        "the shell `/nowhere/fish` (runtime.native.shell) does not exist \
         (hint: name an installed shell, such as /bin/sh)",
    );
}

#[test]
fn a_directory_that_is_a_file_or_is_not() {
    check(
        &run(&["--backend", "native", "--workdir", "/etc/passwd"]),
        "the working directory `/etc/passwd` is not a directory",
    );
    check(
        &run(&["--backend", "native", "--workdir", "/nowhere"]),
        "the working directory `/nowhere` cannot be used: No such file or directory (os error 2)",
    );
}

#[test]
fn a_misspelt_key() {
    check(
        &run_with("defualt_timeout_secs = 3"),
        "c.toml:2: unknown key `runtime.defualt_timeout_secs`; did you mean \
         `default_timeout_secs`?",
    );
}

#[test]
fn a_program_that_is_not_there() {
    let outcome = outcome(
        prx(["run", "--backend", "native", "--", "no-such-program", "x"]).env("PATH", "/usr/bin"),
    );
    check(
        &outcome,
        "program `no-such-program` was not found; searched PATH: /usr/bin",
    );
}

#[test]
fn no_command_and_a_variable_without_a_value() {
    let nothing = outcome(&mut prx(["run"]));
    assert_eq!(nothing.code, Some(125));
    assert!(nothing.stderr.contains("<COMMAND>"), "{}", nothing.stderr);
    let variable = run(&["--env", "swordfish"]);
    assert_eq!(variable.code, Some(125));
    assert!(
        variable.stderr.contains("expected NAME=VALUE"),
        "{}",
        variable.stderr
    );
}
