//! Signals to the host end the command and its tree.

use std::io::Read;
use std::process::Child;

use crate::stage::{Outcome, Sleeper, prx_run, signal, start, until};

/// A shell that says what it is up to, with a child in its group and one outside of it.
fn start_tree(trap: &str, sleepers: &[Sleeper; 2]) -> Child {
    let [member, stray] = sleepers;
    let line = format!(
        "{trap} echo up; {} & setsid {} & wait; wait",
        member.line(),
        stray.line()
    );
    let child = start(&mut prx_run(["--", &line]));
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
    let mut child = start(&mut prx_run([
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
