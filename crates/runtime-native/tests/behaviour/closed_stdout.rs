//! A command that closes its streams and lives on.

use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::stage::{self, Sleeper};

#[test]
fn its_own_end_counts_and_not_that_of_its_streams() {
    stage::on_both_runtimes(|| async {
        let line = "echo before; exec >&- 2>&-; sleep 0.4; exit 7";
        let output = stage::native()
            .run(ExecutionRequest::shell(line))
            .await
            .unwrap();
        assert_eq!(output.stdout.to_string(), "before\n");
        assert_eq!(output.exit_code, 7);
        assert_eq!(output.termination, Termination::Exited);
    });
}

#[test]
fn the_deadline_still_ends_it() {
    stage::on_both_runtimes(|| async {
        let sleeper = Sleeper::new();
        let line = format!("echo before; exec >&- 2>&-; {}", sleeper.line());
        let request = ExecutionRequest::shell(line).timeout(Duration::from_secs(2));
        let output = stage::native().run(request).await.unwrap();
        assert_eq!(output.stdout.to_string(), "before\n");
        assert_eq!(output.termination, Termination::TimedOut);
        assert!(!sleeper.lives());
    });
}
