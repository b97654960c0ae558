//! The commands that people type first.

use std::time::{Duration, Instant};

use crate::stage::{Sleeper, outcome, prx, prx_run};

#[test]
fn a_pipeline_prints_the_listing() {
    let outcome = outcome(&mut prx(["run", "--", "ls -la | head -3"]));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert_eq!(outcome.stdout.lines().count(), 3);
    assert!(outcome.stdout.starts_with("total "));
    assert_eq!(outcome.stderr, "");
}

#[test]
fn the_exit_code_is_the_commands_own() {
    let outcome = outcome(&mut prx_run(["--", "sh", "-c", "exit 7"]));
    assert_eq!(outcome.code, Some(7));
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
}

#[test]
fn a_deadline_ends_the_command_and_keeps_what_it_said() {
    let in_time = || {
        let sleeper = Sleeper::new();
        let line = format!("echo step1; {}", sleeper.line());
        let begin = Instant::now();
        let outcome = outcome(&mut prx(["run", "--timeout", "1s", "--", &line]));
        let elapsed = begin.elapsed();
        assert_eq!(outcome.code, Some(124));
        assert_eq!(outcome.stdout, "step1\n");
        assert!(!sleeper.lives());
        elapsed < Duration::from_secs(4)
    };
    // The time is that of a machine which has some: one that has none is tried again.
    assert!((0..5).any(|_| in_time()));
}
