//! A reader may come late: what the command wrote is still there.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};
use tokio::io::AsyncReadExt;

use crate::stage;

/// More than the command's pipe holds on its own, and less than that and what is held for the
/// reader: the command can end before anybody reads.
const LINES: u32 = 18_000;

#[test]
fn everything_is_there_after_the_end() {
    stage::on_both_runtimes(|| async {
        let line = format!("seq 1 {LINES}; seq 1 {LINES} >&2");
        let mut execution = stage::native()
            .spawn(ExecutionRequest::shell(line))
            .await
            .unwrap();
        let streams = [execution.stdout.take(), execution.stderr.take()];
        let output = execution.wait().await.unwrap();
        assert_eq!(output.termination, Termination::Exited);
        let all: String = (1..=LINES).map(|number| format!("{number}\n")).collect();
        assert!(all.len() > 64 * 1024 && all.len() < 128 * 1024);
        for mut stream in streams.into_iter().flatten() {
            let mut text = String::new();
            stream.read_to_string(&mut text).await.unwrap();
            assert!(text == all, "{} of {} bytes", text.len(), all.len());
        }
        assert_eq!(output.stdout.total_bytes(), all.len() as u64);
    });
}
