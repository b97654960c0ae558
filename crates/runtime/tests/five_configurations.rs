//! One agent-like program, unchanged, under every configuration: the same results.

#![cfg(all(target_os = "linux", feature = "native"))]
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is how a failure is said"
)]

#[path = "common/configurations.rs"]
mod configurations;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use configurations::Configuration;
use prx_runtime::{ExecutionOutput, ExecutionRequest, RuntimeAdapter, create_runtime};

/// What the agent sees of a call.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    stdout: String,
    exit_code: i32,
    termination: String,
    refused_env: Vec<String>,
    truncated: bool,
}

/// What came of each call; an error by its kind.
type Results = Vec<Result<Seen, String>>;

impl From<ExecutionOutput> for Seen {
    fn from(output: ExecutionOutput) -> Self {
        let stdout = output.stdout.to_string();
        // Of an environment, what the call asked for: the rest is what each place has of its own.
        let asked = stdout
            .split_inclusive('\n')
            .find(|line| line.starts_with("LANG="));
        Self {
            stdout: asked.unwrap_or(&stdout).to_owned(),
            exit_code: output.exit_code,
            termination: output.termination.to_string(),
            refused_env: output.refused_env,
            truncated: output.stdout.is_truncated(),
        }
    }
}

/// The agent: it knows nothing of where its commands run.
async fn agent(runtime: Arc<dyn RuntimeAdapter>, workspace: &Path) -> Results {
    let request = |program: &str| ExecutionRequest::program(program).working_dir(workspace);
    let calls = [
        request("cat").stdin_bytes("through and back\n"),
        request("cat"),
        request("false"),
        request("env")
            .env("LANG", "C.UTF-8")
            .env("API_KEY", "swordfish"),
        request("cat")
            .stdin_bytes(vec![b'x'; 500])
            .max_output_bytes(100),
        request("sleep")
            .arg("60000")
            .timeout(Duration::from_millis(700)),
        request("no-such-program").arg("x"),
    ];
    let mut seen = Vec::new();
    for call in calls {
        let result = runtime.run(call).await;
        seen.push(
            result
                .map(Seen::from)
                .map_err(|error| error.kind().to_string()),
        );
    }
    seen
}

async fn under(configuration: &Configuration) -> Results {
    let workspace = tempfile::tempdir().unwrap();
    let runtime = create_runtime(&configuration.config()).await.unwrap();
    agent(runtime, workspace.path()).await
}

async fn expected() -> Results {
    let seen = under(&configurations::native()).await;
    // What they all agree on is also right.
    let first = seen[0].as_ref().unwrap();
    assert_eq!(
        (first.stdout.as_str(), first.exit_code),
        ("through and back\n", 0)
    );
    let environment = seen[3].as_ref().unwrap();
    assert_eq!(environment.stdout, "LANG=C.UTF-8\n");
    assert_eq!(environment.refused_env, ["API_KEY"]);
    assert_eq!(seen[5].as_ref().unwrap().exit_code, 124);
    assert_eq!(seen[6], Err("program not found".to_owned()));
    seen
}

async fn assert_the_same(configuration: &Configuration) {
    assert_eq!(under(configuration).await, expected().await);
}

#[tokio::test]
async fn native() {
    expected().await;
}

#[cfg(feature = "sandbox")]
#[tokio::test]
async fn native_in_a_sandbox() {
    for sandbox in ["bubblewrap", "landlock", "firejail"] {
        if let Some(configuration) = configurations::native_in(sandbox).await {
            assert_the_same(&configuration).await;
        }
    }
}

#[cfg(feature = "docker")]
#[tokio::test]
async fn docker() {
    if let Some(configuration) = configurations::docker() {
        assert_the_same(&configuration).await;
    }
}

#[cfg(feature = "wasmtime")]
#[tokio::test]
async fn wasmtime() {
    assert_the_same(&configurations::wasm("wasmtime")).await;
}

#[cfg(feature = "wasmer")]
#[tokio::test]
async fn wasmer() {
    assert_the_same(&configurations::wasm("wasmer")).await;
}
