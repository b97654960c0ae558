//! Live executions: a server on stdio, in a container.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Stdin};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::{need_engine, runtime};

/// A server of the Model Context Protocol, as much of it as a client's first words need.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"date","inputSchema":{"type":"object"}}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

#[tokio::test]
async fn a_server_on_stdio_answers_and_ends_with_its_stdin() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::shell(SERVER)
        .stdin(Stdin::Piped)
        .working_dir(dir.path());
    let mut server = runtime.spawn(request).await.unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    for (message, expected) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#,
            "serverInfo",
        ),
        (
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
            "inputSchema",
        ),
    ] {
        stdin
            .write_all(format!("{message}\n").as_bytes())
            .await
            .unwrap();
        let answer = lines
            .next_line()
            .await
            .unwrap()
            .expect("the server answers");
        assert!(answer.contains(expected), "{answer}");
    }
    drop(stdin);
    assert_eq!(lines.next_line().await.unwrap(), None);
    assert!(server.wait().await.unwrap().success());
}
