//! A command that writes faster than can be read does not starve its own deadline.

use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::stage;

/// Writers that never let either stream run empty, and that ignore TERM.
const FLOOD: &str = "trap '' TERM; for i in 1 2 3 4; do yes out & yes err >&2 & done; wait";

#[test]
fn the_deadline_and_the_grace_hold() {
    stage::on_both_runtimes(|| async {
        let native = stage::native_by("[runtime]\nkill_grace_ms = 500\nmax_output_bytes = 4096");
        let request = ExecutionRequest::shell(FLOOD).timeout(Duration::from_secs(1));
        // A timer that starved would never let this return.
        let output = native.run(request).await.unwrap();
        assert_eq!(output.termination, Termination::TimedOut);
        assert!(output.stdout.is_truncated() && output.stderr.is_truncated());
    });
}

#[test]
fn a_live_execution_can_be_killed() {
    stage::on_both_runtimes(|| async {
        let mut execution = stage::native()
            .spawn(ExecutionRequest::shell(FLOOD))
            .await
            .unwrap();
        // Gone readers: everything is read, counted and dropped.
        execution.stdout = None;
        execution.stderr = None;
        execution.kill();
        let output = execution.wait().await.unwrap();
        assert_eq!(output.termination, Termination::Cancelled);
    });
}
