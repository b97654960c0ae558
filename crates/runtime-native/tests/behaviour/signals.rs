//! Death by a signal is told from an exit code that looks like one.

use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter, Termination};

use crate::stage;

async fn run(line: &str) -> ExecutionOutput {
    // No core files in the source tree.
    let line = format!("ulimit -c 0; {line}");
    stage::native()
        .run(ExecutionRequest::shell(line))
        .await
        .unwrap()
}

#[test]
fn a_signal_is_named_and_a_code_is_a_code() {
    stage::on_both_runtimes(|| async {
        for signal in [9, 11, 15] {
            let output = run(&format!("kill -{signal} $$")).await;
            assert_eq!(output.termination, Termination::Signaled(signal));
            assert_eq!(output.exit_code, 128 + signal);
        }
        let output = run("exit 137").await;
        assert_eq!(output.termination, Termination::Exited);
        assert_eq!(output.exit_code, 137);
    });
}

#[test]
fn a_child_that_died_of_a_signal_is_the_shells_to_report() {
    stage::on_both_runtimes(|| async {
        let output = run("sh -c 'kill -9 $$'; exit $?").await;
        assert_eq!(output.termination, Termination::Exited);
        assert_eq!(output.exit_code, 137);
    });
}
