//! A host that runs out of descriptors while a command runs: nothing is taken for gone because it
//! cannot be looked at.

use std::fs::File;
use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::stage::{self, Sleeper};

/// Takes all descriptors that are left.
fn take_all() -> Vec<File> {
    let open = || File::open("/dev/null").ok();
    std::iter::from_fn(open).collect()
}

#[test]
fn strays_are_ended_once_it_has_some_again() {
    stage::alone(strays_are_ended_once_it_has_some_again, || {
        stage::on_both_runtimes(|| async {
            let stray = Sleeper::new();
            let line = format!("echo out; setsid {} & wait", stray.line());
            let request = ExecutionRequest::shell(line);
            let mut execution = stage::native().spawn(request).await.unwrap();
            stray.is_up().await;
            let taken = take_all();
            execution.terminate(Duration::from_millis(100));
            let output = execution.wait().await.unwrap();
            assert_eq!(output.termination, Termination::Cancelled);
            assert_eq!(output.stdout.to_string(), "out\n");
            drop(taken);
            stray.is_gone().await;
            let reaped = || stage::zombies().is_empty();
            stage::until("the main process is reaped", reaped).await;
        });
    });
}
