//! A command that stops itself can act on no signal but KILL and CONT.

use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::stage::{self, Sleeper};

const DEADLINE: Duration = Duration::from_secs(2);

#[test]
fn it_is_woken_to_end_in_order() {
    stage::on_both_runtimes(|| async {
        let line = "trap 'echo in order; exit 1' TERM; echo here; kill -STOP $$; echo never";
        let request = ExecutionRequest::shell(line).timeout(DEADLINE);
        let output = stage::native().run(request).await.unwrap();
        assert_eq!(output.termination, Termination::TimedOut);
        assert_eq!(output.exit_code, 124);
        assert_eq!(output.stdout.to_string(), "here\nin order\n");
    });
}

#[test]
fn one_that_will_not_be_woken_is_killed() {
    stage::on_both_runtimes(|| async {
        let sleeper = Sleeper::new();
        let line = format!(
            "trap '' TERM; echo here; {} & while :; do kill -STOP $$; done",
            sleeper.line()
        );
        let request = ExecutionRequest::shell(line).timeout(DEADLINE);
        let output = stage::native_by("[runtime]\nkill_grace_ms = 300")
            .run(request)
            .await
            .unwrap();
        assert_eq!(output.termination, Termination::TimedOut);
        assert_eq!(output.stdout.to_string(), "here\n");
        assert!(!sleeper.lives());
    });
}
