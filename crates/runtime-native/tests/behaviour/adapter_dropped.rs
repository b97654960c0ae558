//! An adapter that is dropped while it runs something.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage::{self, Sleeper};

#[test]
fn a_live_execution_outlives_its_adapter() {
    stage::on_both_runtimes(|| async {
        let native = stage::native();
        let request = ExecutionRequest::shell("read line; echo got $line")
            .stdin(prx_runtime_core::Stdin::Piped);
        let mut execution = native.spawn(request).await.unwrap();
        drop(native);
        let mut stdin = execution.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, b"it\n")
            .await
            .unwrap();
        let output = execution.wait().await.unwrap();
        assert_eq!(output.stdout.to_string(), "got it\n");
    });
}

#[test]
fn a_call_that_is_dropped_with_it_leaves_nothing() {
    stage::on_both_runtimes(|| async {
        let sleeper = Sleeper::new();
        let line = format!("{} & wait", sleeper.line());
        let call = async move { stage::native().run(ExecutionRequest::shell(line)).await };
        let task = tokio::spawn(call);
        sleeper.is_up().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        sleeper.is_gone().await;
    });
}
