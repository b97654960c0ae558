//! A host in a poor state still runs its command, or says in one line why not.

use std::process::Command;

use crate::stage::{Outcome, PRX, is_root, outcome, process, program, prx_run};

/// Runs `setup`, a shell script, and then `prx-runtime` with `args` in its place.
fn after(setup: &str, args: &[&str]) -> Outcome {
    let mut shell = program("sh");
    shell
        .args(["-c", &format!("{setup} exec \"$0\" \"$@\""), PRX])
        .args(args);
    outcome(&mut shell)
}

#[track_caller]
fn check(outcome: &Outcome, code: i32, stdout: &str) {
    assert_eq!(outcome.code, Some(code), "{outcome:?}");
    assert_eq!(outcome.stdout, stdout);
    assert_eq!(outcome.stderr, "");
}

#[test]
fn few_descriptors_are_enough_or_an_error() {
    let args = [
        "run",
        "--backend",
        "native",
        "--timeout",
        "10s",
        "--",
        "echo out | cat; exit 3",
    ];
    let mut ran = 0;
    for limit in 4..=24 {
        let outcome = after(&format!("ulimit -n {limit};"), &args);
        match outcome.code {
            Some(3) => {
                assert_eq!(outcome.stdout, "out\n", "{limit}: {outcome:?}");
                ran += 1;
            }
            code => {
                assert_eq!(code, Some(125), "{limit}: {outcome:?}");
                let one_line = outcome.stderr.lines().count() == 1;
                assert!(one_line, "{limit}: {outcome:?}");
                assert!(
                    outcome.stderr.starts_with("prx-runtime: "),
                    "{limit}: {outcome:?}"
                );
                assert!(limit < 24, "{outcome:?}");
            }
        }
    }
    assert!(ran > 0);
}

#[test]
fn no_home_and_no_configuration_directory() {
    let mut command = prx_run(["--", "echo \"[$HOME]\""]);
    command.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    check(&outcome(&mut command), 0, "[]\n");
}

#[test]
fn a_current_directory_that_was_removed() {
    let setup = "d=$(mktemp -d) && cd \"$d\" && rmdir \"$d\";";
    let here = after(setup, &["run", "--backend", "native", "--", "echo ran"]);
    assert_eq!(here.code, Some(125));
    assert_eq!(
        here.stderr,
        "prx-runtime: the current directory cannot be used: No such file or directory (os error \
         2) (hint: it may have been removed; change to another one or name one)\n"
    );
    let args = ["run", "--backend", "native", "--workdir", "/", "--", "pwd"];
    check(&after(setup, &args), 0, "/\n");
}

#[test]
fn a_umask_that_forbids_everything() {
    let args = ["run", "--backend", "native", "--", "umask"];
    check(&after("umask 0777;", &args), 0, "0777\n");
}

fn ignoring(signal: &str) -> Command {
    let mut command = program("env");
    command.args([&format!("--ignore-signal={signal}"), PRX]);
    command
}

#[test]
fn sigchld_ignored() {
    let mut command = ignoring("CHLD");
    command.args(["run", "--backend", "native", "--", "echo out; exit 7"]);
    check(&outcome(&mut command), 7, "out\n");
}

#[test]
fn sigpipe_ignored() {
    let mut command = ignoring("PIPE");
    command.args([
        "run",
        "--backend",
        "native",
        "--",
        "(yes; echo $? >&2) 2>&1 | head -n 1",
    ]);
    check(&outcome(&mut command), 0, "y\n");
}

#[test]
fn a_full_disk_for_temporary_files() {
    if !is_root() {
        println!("skipped: a full disk of one's own needs root");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = "mount -t tmpfs -o size=16k none \"$0\" || exit 77; \
                  head -c 1m /dev/zero > \"$0/fill\" 2>/dev/null; \
                  TMPDIR=\"$0\" exec \"$@\"";
    let mut command = process("unshare");
    command
        .args(["--mount", "sh", "-c", script])
        .arg(directory.path())
        .args([PRX, "run", "--backend", "native", "--", "echo out; exit 3"])
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("RUST_LOG", "error");
    let outcome = outcome(&mut command);
    if outcome.code == Some(77) {
        println!("skipped: no file system can be mounted here");
        return;
    }
    check(&outcome, 3, "out\n");
}
