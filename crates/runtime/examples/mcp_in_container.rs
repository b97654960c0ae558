//! Talks to an MCP server that runs in a container, over its stdin and stdout.
//!
//! The server here is a shell script, so that any image with a shell will do; the image is the
//! first argument or `debian:bookworm-slim`. An agent would hand the two streams to its MCP client
//! instead of writing lines.

use prx_runtime::{ExecutionRequest, Stdin, Termination, config::Config, create_runtime};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

/// Answers `initialize` and `tools/list`, each a line of JSON.
const SERVER: &str = r#"
while read -r line; do
    case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"greeter","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"greet","inputSchema":{"type":"object"}}]}}' ;;
    esac
done
"#;

const REQUESTS: [(&str, &str); 2] = [
    (
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"example","version":"1"}}}"#,
        r#""name":"greeter""#,
    ),
    (
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#,
        r#""name":"greet""#,
    ),
];

/// The whole example.
pub(crate) async fn talk(image: &str) -> Result<(), Box<dyn std::error::Error>> {
    let text = format!("[runtime]\nbackend = \"docker\"\n[runtime.docker]\nimage = \"{image}\"");
    let runtime = create_runtime(&Config::from_toml_str(&text, "config.toml")?).await?;
    // Without a timeout a live execution has no deadline; it ends when its stdin does, or when it
    // is dropped.
    let request = ExecutionRequest::shell(SERVER).stdin(Stdin::Piped);
    let mut server = runtime.spawn(request).await?;
    let mut stdin = server.stdin.take().ok_or("the server has no stdin")?;
    let mut answers = BufReader::new(server.stdout.take().ok_or("the server has no stdout")?);
    for (request, expected) in REQUESTS {
        stdin.write_all(format!("{request}\n").as_bytes()).await?;
        let mut answer = String::new();
        answers.read_line(&mut answer).await?;
        assert!(answer.contains(expected), "{answer}");
    }
    drop(stdin);
    let output = server.wait().await?;
    assert_eq!(output.termination, Termination::Exited);
    Ok(())
}

/// Takes the image from the command line.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let image = std::env::args().nth(1);
    talk(image.as_deref().unwrap_or("debian:bookworm-slim")).await
}
