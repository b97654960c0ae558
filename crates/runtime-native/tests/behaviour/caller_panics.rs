//! A caller that panics while its command runs.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage::{self, Sleeper};

#[test]
fn its_command_ends_with_it() {
    stage::on_both_runtimes(|| async {
        let [called, held] = [Sleeper::new(), Sleeper::new()];
        let lines = [called.line(), held.line()];
        let (panic, when) = tokio::sync::oneshot::channel::<()>();
        let task = tokio::spawn(async move {
            let native = stage::native();
            let _held = native.spawn(ExecutionRequest::shell(&lines[1])).await;
            let call = native.run(ExecutionRequest::shell(format!("{} & wait", lines[0])));
            let panicking = async {
                when.await.unwrap();
                panic!("the caller's own fault");
            };
            tokio::join!(call, panicking)
        });
        called.is_up().await;
        held.is_up().await;
        panic.send(()).unwrap();
        assert!(task.await.unwrap_err().is_panic());
        called.is_gone().await;
        held.is_gone().await;
    });
}
