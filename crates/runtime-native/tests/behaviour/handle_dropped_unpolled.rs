//! A handle that is dropped while nobody polls the runtime still ends its command.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage::{self, Sleeper};

#[test]
fn the_kill_switch_needs_no_runtime() {
    let runtime = stage::current_thread();
    let [in_group, stray] = [Sleeper::new(), Sleeper::new()];
    let line = format!("{} & setsid {} & wait", in_group.line(), stray.line());
    let execution = runtime.block_on(async {
        let execution = stage::native().spawn(ExecutionRequest::shell(line)).await;
        in_group.is_up().await;
        stray.is_up().await;
        execution.unwrap()
    });
    drop(execution);
    // From here on nothing runs on the runtime: only the switch can have done it.
    stage::until_blocking("both are gone", || !in_group.lives() && !stray.lives());
    drop(runtime);
}
