//! Strays that left the group and wiped their environment, so that only their ancestry tells.

use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::stage::{self, Sleeper};

#[test]
fn one_that_still_descends_from_the_command_is_ended_at_the_deadline() {
    stage::on_both_runtimes(|| async {
        let sleeper = Sleeper::new();
        let line = format!("env -i setsid {} & wait", sleeper.line());
        let request = ExecutionRequest::shell(line).timeout(Duration::from_secs(1));
        let output = stage::native().run(request).await.unwrap();
        assert_eq!(output.termination, Termination::TimedOut);
        assert!(!sleeper.lives());
    });
}

#[test]
fn one_that_loses_its_parent_to_our_own_signal_is_not_lost() {
    stage::on_both_runtimes(|| async {
        let sleeper = Sleeper::new();
        // TERM ends the shell in between and not the stray, which is nobody's descendant then.
        let line = format!(
            "env -i setsid sh -c 'trap \"\" TERM; exec {}' & wait",
            sleeper.line()
        );
        let request = ExecutionRequest::shell(line).timeout(Duration::from_secs(1));
        let output = stage::native_by("[runtime]\nkill_grace_ms = 300")
            .run(request)
            .await
            .unwrap();
        assert_eq!(output.termination, Termination::TimedOut);
        assert!(!sleeper.lives());
    });
}
