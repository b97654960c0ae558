//! A host that was killed by SIGKILL leaves its command to the next start, or to `prune`. What a
//! living host runs is left alone.

use std::process::Child;

use crate::stage::{Sleeper, alone_under, is_root, outcome, process, prx, prx_run, start, until};

/// A PID namespace of its own: any start of any host on this machine sweeps, and the tests that
/// run beside this one start many.
const LAUNCHER: [&str; 5] = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];

const SKIPPED: &str = "skipped: a PID namespace of one's own needs root and unshare";

fn can_unshare() -> bool {
    let mut unshare = process(LAUNCHER[0]);
    unshare.args(&LAUNCHER[1..]).arg("true");
    is_root() && unshare.status().is_ok_and(|status| status.success())
}

fn start_host(sleepers: &[Sleeper; 2]) -> Child {
    let [member, stray] = sleepers;
    let line = format!("{} & setsid {} & wait", member.line(), stray.line());
    let child = start(&mut prx_run(["--", &line]));
    until("the command is up", || member.lives() && stray.lives());
    child
}

/// Kills one of two hosts, lets `sweep` find what it left, and looks at both.
fn after_sigkill(sweep: impl FnOnce()) {
    let [left, kept] = [(); 2].map(|()| [Sleeper::new(), Sleeper::new()]);
    let (mut dead, mut living) = (start_host(&left), start_host(&kept));
    dead.kill().unwrap();
    dead.wait().unwrap();
    assert!(left.iter().all(Sleeper::lives), "nothing was left to find");
    sweep();
    assert!(!left.iter().any(Sleeper::lives));
    assert!(
        kept.iter().all(Sleeper::lives),
        "a living host lost its command"
    );
    assert!(living.try_wait().unwrap().is_none());
    living.kill().unwrap();
    living.wait().unwrap();
    outcome(&mut prx(["prune"]));
    assert!(!kept.iter().any(Sleeper::lives));
}

#[test]
fn prune_ends_what_is_left_and_counts_it() {
    if !can_unshare() {
        println!("{SKIPPED}");
        return;
    }
    alone_under(&LAUNCHER, prune_ends_what_is_left_and_counts_it, || {
        after_sigkill(|| {
            let pruned = outcome(&mut prx(["prune"]));
            assert_eq!(pruned.code, Some(0), "{pruned:?}");
            // The shell, its child and the stray.
            assert!(pruned.stdout.starts_with("ended 3 processes"), "{pruned:?}");
            let again = outcome(&mut prx(["prune"]));
            assert!(again.stdout.starts_with("ended 0 processes"), "{again:?}");
        });
    });
}

#[test]
fn the_next_start_ends_what_is_left_and_says_so() {
    if !can_unshare() {
        println!("{SKIPPED}");
        return;
    }
    alone_under(
        &LAUNCHER,
        the_next_start_ends_what_is_left_and_says_so,
        || {
            after_sigkill(|| {
                let next = outcome(prx_run(["--", "echo next"]).env_remove("RUST_LOG"));
                assert_eq!((next.code, next.stdout.as_str()), (Some(0), "next\n"));
                assert!(next.stderr.contains("ended=3"), "{next:?}");
            });
        },
    );
}
