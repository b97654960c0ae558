//! Whoever reads us is slow, or reads nothing at all.

use std::io::Read;

use crate::stage::{Sleeper, prx_run, signal, start, until};

/// More than all pipes on the way hold.
const FLOOD: &str = "seq 1 1000000";

#[test]
fn nothing_is_lost_to_one_who_comes_late() {
    let sleeper = Sleeper::new();
    // The command ends while nobody has read yet: the mark of that is a file.
    let directory = tempfile::tempdir().unwrap();
    let mark = directory.path().join("ended");
    let line = format!("seq 1 18000; : > {}", mark.display());
    let mut child = start(&mut prx_run(["--", &line]));
    until("the command has ended", || mark.exists());
    drop(sleeper);
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let all: String = (1..=18_000).map(|number| format!("{number}\n")).collect();
    assert!(text == all, "{} of {} bytes", text.len(), all.len());
}

#[test]
fn the_deadline_holds_for_one_who_reads_nothing() {
    let sleeper = Sleeper::new();
    let line = format!("{} & {FLOOD}; wait", sleeper.line());
    let mut child = start(&mut prx_run(["--timeout", "1s", "--", &line]));
    until("the command is up", || sleeper.lives());
    until("the command was ended", || !sleeper.lives());
    let mut text = String::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(text.starts_with("1\n2\n"));
    assert_eq!(child.wait().unwrap().code(), Some(124));
}

#[test]
fn a_signal_ends_us_though_nobody_reads() {
    let sleeper = Sleeper::new();
    let line = format!("{} & {FLOOD}; wait", sleeper.line());
    let mut child = start(&mut prx_run(["--", &line]));
    until("the command is up", || sleeper.lives());
    signal(&child, "TERM");
    // Its stdout stays open and unread until then.
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(!sleeper.lives());
}
