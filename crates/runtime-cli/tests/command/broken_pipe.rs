//! Whoever reads us has gone.

use std::io::Read;

use crate::stage::{Sleeper, prx_run, start};

#[test]
fn the_command_is_ended_and_the_code_is_that_of_sigpipe() {
    let sleeper = Sleeper::new();
    let line = format!("setsid {} & while :; do echo line; done", sleeper.line());
    let mut child = start(&mut prx_run(["--", &line]));
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 5]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(141));
    assert_eq!(output.stderr, b"");
    assert!(!sleeper.lives());
}
