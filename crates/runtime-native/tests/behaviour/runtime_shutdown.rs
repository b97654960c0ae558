//! The end of the tokio runtime is the end of what runs on it.

use prx_runtime_core::{ErrorKind, Execution, ExecutionRequest, RuntimeAdapter};

use crate::stage::{self, Sleeper};

/// Starts one command by a call in a task and one as a live execution, and waits for both.
async fn start(called: &Sleeper, held: &Sleeper) -> Execution {
    let native = stage::native();
    let execution = native
        .spawn(ExecutionRequest::shell(format!("{} & wait", held.line())))
        .await
        .unwrap();
    let line = format!("setsid {} & wait", called.line());
    tokio::spawn(async move { native.run(ExecutionRequest::shell(line)).await });
    called.is_up().await;
    held.is_up().await;
    execution
}

#[test]
fn both_kinds_of_runtime_leave_nothing() {
    stage::alone(both_kinds_of_runtime_leave_nothing, || {
        for runtime in [stage::current_thread(), stage::multi_thread()] {
            let [called, held] = [Sleeper::new(), Sleeper::new()];
            let mut execution = runtime.block_on(start(&called, &held));
            drop(runtime);
            stage::until_blocking("both are gone", || !called.lives() && !held.lives());
            stage::until_blocking("no zombie is left", || stage::zombies().is_empty());
            let error = stage::current_thread()
                .block_on(execution.wait())
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Engine);
        }
    });
}

#[test]
fn a_shutdown_in_the_background_leaves_nothing() {
    stage::alone(a_shutdown_in_the_background_leaves_nothing, || {
        let runtime = stage::multi_thread();
        let [called, held] = [Sleeper::new(), Sleeper::new()];
        let _execution = runtime.block_on(start(&called, &held));
        runtime.shutdown_background();
        stage::until_blocking("both are gone", || !called.lives() && !held.lives());
        stage::until_blocking("no zombie is left", || stage::zombies().is_empty());
    });
}
