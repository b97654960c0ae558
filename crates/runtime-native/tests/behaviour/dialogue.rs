//! A long dialogue with a live execution, line by line.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Stdin, Termination};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::stage;

const TURNS: u32 = 10_000;

#[test]
fn ten_thousand_turns() {
    stage::on_both_runtimes(|| async {
        let request = ExecutionRequest::program("cat").stdin(Stdin::Piped);
        let mut execution = stage::native().spawn(request).await.unwrap();
        let mut stdin = execution.stdin.take().unwrap();
        let mut stdout = BufReader::new(execution.stdout.take().unwrap());
        let mut answer = String::new();
        for turn in 0..TURNS {
            let question = format!("turn {turn}\n");
            stdin.write_all(question.as_bytes()).await.unwrap();
            answer.clear();
            stdout.read_line(&mut answer).await.unwrap();
            assert_eq!(answer, question);
        }
        drop(stdin);
        let output = execution.wait().await.unwrap();
        assert_eq!(output.termination, Termination::Exited);
        assert_eq!(output.exit_code, 0);
    });
}
