//! Whatever ends a command, what it said until then is there, on both streams.

use std::time::Duration;

use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter, Termination};
use tokio::io::AsyncReadExt;

use crate::stage::{self, Sleeper};

fn saying(then: &str) -> String {
    format!("echo out; echo err >&2; {then}")
}

#[track_caller]
fn check(output: &ExecutionOutput, termination: &Termination, exit_code: i32) {
    assert_eq!(output.stdout.to_string(), "out\n");
    assert_eq!(output.stderr.to_string(), "err\n");
    assert_eq!(&output.termination, termination);
    assert_eq!(output.exit_code, exit_code);
}

#[test]
fn its_own_end() {
    stage::on_both_runtimes(|| async {
        let run = |then| {
            let request = ExecutionRequest::shell(saying(then));
            async { stage::native().run(request).await.unwrap() }
        };
        check(&run("exit 5").await, &Termination::Exited, 5);
        check(&run("kill -9 $$").await, &Termination::Signaled(9), 137);
        let sleeper = Sleeper::new();
        let output = run(&format!("{} &", sleeper.line())).await;
        check(&output, &Termination::Exited, 0);
        assert_eq!(output.leftover_processes, 1);
        assert!(!sleeper.lives());
    });
}

#[test]
fn the_deadline() {
    stage::on_both_runtimes(|| async {
        for trap in ["", "trap '' TERM; "] {
            let line = format!("{trap}{}", saying(&Sleeper::new().line()));
            let request = ExecutionRequest::shell(line).timeout(Duration::from_secs(2));
            let output = stage::native_by("[runtime]\nkill_grace_ms = 200")
                .run(request)
                .await
                .unwrap();
            check(&output, &Termination::TimedOut, 124);
        }
    });
}

#[test]
fn the_caller() {
    stage::on_both_runtimes(|| async {
        for grace in [Duration::ZERO, stage::LONG] {
            let sleeper = Sleeper::new();
            let line = saying(&sleeper.line());
            let mut execution = stage::native()
                .spawn(ExecutionRequest::shell(line))
                .await
                .unwrap();
            sleeper.is_up().await;
            execution.terminate(grace);
            let output = execution.wait().await.unwrap();
            check(&output, &Termination::Cancelled, 130);
            assert!(!sleeper.lives());
        }
    });
}

#[test]
fn what_is_said_on_the_way_out_counts() {
    stage::on_both_runtimes(|| async {
        let line = "trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.05; done";
        let mut execution = stage::native()
            .spawn(ExecutionRequest::shell(line))
            .await
            .unwrap();
        let mut stdout = execution.stdout.take().unwrap();
        let mut hello = [0; 6];
        stdout.read_exact(&mut hello).await.unwrap();
        execution.terminate(stage::LONG);
        let output = execution.wait().await.unwrap();
        assert_eq!(output.termination, Termination::Cancelled);
        let mut rest = String::new();
        stdout.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "bye\n");
    });
}
