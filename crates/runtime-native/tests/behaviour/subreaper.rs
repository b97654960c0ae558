//! A host that inherits orphans (pid 1 of a container, a subreaper) gets no zombies of ours.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage::{self, Sleeper};

#[test]
fn strays_that_were_ended_are_reaped() {
    stage::alone(strays_that_were_ended_are_reaped, || {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        stage::on_both_runtimes(|| async {
            let sleeper = Sleeper::new();
            let line = format!("setsid {} >/dev/null 2>&1 & exit 3", sleeper.line());
            let output = stage::native()
                .run(ExecutionRequest::shell(line))
                .await
                .unwrap();
            assert_eq!((output.exit_code, output.leftover_processes), (3, 1));
            assert!(!sleeper.lives());
            assert!(stage::zombies().is_empty());
        });
    });
}
