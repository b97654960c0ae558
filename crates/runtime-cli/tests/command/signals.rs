//! Signals to the host end the command and its tree.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use crate::stage::{Outcome, Sleeper, prx_run_by_env, signal, start, until};

/// As from a terminal, whatever those who run the tests ignore.
fn heard<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    prx_run_by_env(["--default-signal=HUP,INT,TERM"], args)
}

/// A shell that says what it is up to, with a child in its group and one outside of it.
fn start_tree(trap: &str, sleepers: &[Sleeper; 2]) -> Child {
    let [member, stray] = sleepers;
    let line = format!(
        "{trap} echo up; {} & setsid {} & wait; wait",
        member.line(),
        stray.line()
    );
    let child = start(&mut heard(["--", &line]));
    until("the tree is up", || member.lives() && stray.lives());
    child
}

fn end(child: Child, sleepers: &[Sleeper; 2]) -> Outcome {
    let outcome: Outcome = child.wait_with_output().unwrap().into();
    assert!(sleepers.iter().all(|sleeper| !sleeper.lives()));
    outcome
}

#[test]
fn each_ends_the_tree_and_gives_its_own_code() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let sleepers = [Sleeper::new(), Sleeper::new()];
        let child = start_tree("trap 'echo bye; exit 0' TERM;", &sleepers);
        signal(&child, name);
        let outcome = end(child, &sleepers);
        assert_eq!(outcome.code, Some(code));
        assert_eq!(outcome.stdout, "up\nbye\n");
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn a_second_one_does_not_wait_for_the_grace() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("c.toml");
    // Longer than any test may take.
    std::fs::write(&config, "[runtime]\nkill_grace_ms = 600000\n").unwrap();
    let sleeper = Sleeper::new();
    let line = format!(
        "trap 'echo asked' TERM; {} & while :; do wait; done",
        sleeper.line()
    );
    let mut child = start(&mut heard([
        "--config",
        config.to_str().unwrap(),
        "--",
        &line,
    ]));
    until("the command is up", || sleeper.lives());
    signal(&child, "INT");
    let mut asked = [0; 6];
    child
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut asked)
        .unwrap();
    assert_eq!(&asked, b"asked\n");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn what_the_caller_ignores_is_ignored() {
    // `nohup` ignores the one, a shell's `&` in a script the other.
    for name in ["HUP", "INT"] {
        let ignored = format!("--ignore-signal={name}");
        let args = ["--stdin", "--", "echo up; read line; echo $line"];
        let mut command = prx_run_by_env([ignored.as_str()], args);
        let mut child = start(command.stdin(Stdio::piped()));
        let mut up = [0; 3];
        child.stdout.as_mut().unwrap().read_exact(&mut up).unwrap();
        assert_eq!(&up, b"up\n");
        signal(&child, name);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"went on\n").unwrap();
        drop(stdin);
        let outcome: Outcome = child.wait_with_output().unwrap().into();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(outcome.stdout, "went on\n");
    }
}
