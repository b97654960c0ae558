//! The server as a local process.

use std::path::Path;
use std::time::{Duration, Instant};

use prx_runtime::config::Config;
use prx_runtime::{Execution, ExecutionRequest, Stdin, Termination, create_runtime};
use serde_json::json;

use crate::client::{SERVER, call, connect, converse};

/// The server, and beside it a process that only the end of the whole tree ends.
async fn start() -> Execution {
    let config = Config::from_toml_str("[runtime]\nbackend = \"native\"", "test.toml").unwrap();
    let line = format!("sleep 3600 & exec '{SERVER}'");
    let request = ExecutionRequest::shell(line).stdin(Stdin::Piped);
    create_runtime(&config)
        .await
        .unwrap()
        .spawn(request)
        .await
        .unwrap()
}

async fn ends(pid: &str) {
    let process = Path::new("/proc").join(pid);
    let begin = Instant::now();
    while process.exists() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{pid} lives on");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The child of the server, which it was left by the shell that it replaced.
fn child_of(pid: &str) -> String {
    let children = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(children).unwrap();
    children.split_whitespace().next().unwrap().to_owned()
}

async fn a_session_works_and_ends() {
    let mut execution = start().await;
    let client = connect(&mut execution).await;
    converse(&client).await;
    let pid = call(&client, "pid", json!({})).await;
    let child = child_of(&pid);

    // The client hangs up, the server sees the end of its stdin and ends by itself.
    client.cancel().await.unwrap();
    let output = execution.wait().await.unwrap();
    assert_eq!(output.termination, Termination::Exited);
    assert_eq!(output.exit_code, 0);
    assert_eq!(output.leftover_processes, 1);
    ends(&pid).await;
    ends(&child).await;
}

async fn dropping_the_handle_leaves_nothing() {
    let mut execution = start().await;
    let client = connect(&mut execution).await;
    let pid = call(&client, "pid", json!({})).await;
    let child = child_of(&pid);
    drop(execution);
    ends(&pid).await;
    ends(&child).await;
    // The client learns of it.
    client.waiting().await.unwrap();
}

#[tokio::test]
async fn on_a_current_thread_runtime() {
    a_session_works_and_ends().await;
    dropping_the_handle_leaves_nothing().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_a_multi_thread_runtime() {
    a_session_works_and_ends().await;
    dropping_the_handle_leaves_nothing().await;
}
