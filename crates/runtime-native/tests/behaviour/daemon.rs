//! Daemons: a session of their own, no parent, no streams of ours.

use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::stage::{self, Sleeper};

/// A double fork into another session, with every stream closed. The command goes on once the
/// daemon is there and the process that started it has gone.
fn daemon(sleeper: &Sleeper) -> String {
    format!(
        "mark=$(mktemp); \
         (setsid sh -c 'exec <&- >&- 2>&-; {} & echo $$ > '$mark &); \
         until pid=$(grep . $mark) && ! grep -qs . /proc/$pid/cmdline; do sleep 0.01; done; \
         rm $mark; echo started",
        sleeper.line()
    )
}

#[test]
fn one_that_outlives_the_command_is_ended_and_counted() {
    stage::on_both_runtimes(|| async {
        let sleeper = Sleeper::new();
        let output = stage::native()
            .run(ExecutionRequest::shell(daemon(&sleeper)))
            .await
            .unwrap();
        assert!(!sleeper.lives());
        assert_eq!(output.stdout.to_string(), "started\n");
        assert_eq!(output.termination, Termination::Exited);
        assert_eq!(output.exit_code, 0);
        assert_eq!(output.leftover_processes, 1);
    });
}

#[test]
fn the_deadline_ends_it_too() {
    stage::on_both_runtimes(|| async {
        let [stays, daemon_sleeper] = [Sleeper::new(), Sleeper::new()];
        let line = format!("{}; {}", daemon(&daemon_sleeper), stays.line());
        let request = ExecutionRequest::shell(line).timeout(Duration::from_secs(3));
        let output = stage::native().run(request).await.unwrap();
        assert_eq!(output.termination, Termination::TimedOut);
        assert_eq!(output.stdout.to_string(), "started\n");
        assert!(!stays.lives() && !daemon_sleeper.lives());
    });
}
