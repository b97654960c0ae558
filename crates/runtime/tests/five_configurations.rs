//! One agent-like program, unchanged, under every configuration: the same results.

#![cfg(all(target_os = "linux", feature = "native"))]
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "in a test, a panic is how a failure is said, and a skip says why"
)]

#[cfg(feature = "docker")]
#[path = "../../runtime-docker/tests/common/images.rs"]
#[expect(dead_code, reason = "of the images only one is used here")]
mod images;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use prx_runtime::config::Config;
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

/// What changes: one line of the configuration, and for the others what they need to be there.
async fn under(backend: &str, more: &str) -> Results {
    let workspace = tempfile::tempdir().unwrap();
    let text = format!("[runtime]\nbackend = \"{backend}\"\n{more}");
    let config = Config::from_toml_str(&text, "config.toml").unwrap();
    let runtime = create_runtime(&config).await.unwrap();
    agent(runtime, workspace.path()).await
}

async fn expected() -> Results {
    let seen = under("native", "").await;
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

/// Whether the tests may go on without `backend`, which is not there.
fn may_skip(backend: &str, reason: &str) {
    let required = std::env::var("PRX_REQUIRE_BACKENDS").unwrap_or_default();
    assert!(
        !required.contains(backend),
        "{backend} is required: {reason}"
    );
    eprintln!("skipped: {reason}");
}

#[tokio::test]
async fn native() {
    expected().await;
}

#[cfg(feature = "sandbox")]
#[tokio::test]
async fn native_in_a_sandbox() {
    let text = "[security.sandbox]\nbackend = \"bubblewrap\"\n";
    let config = Config::from_toml_str(text, "config.toml").unwrap();
    if let Err(error) = create_runtime(&config).await {
        return may_skip("sandbox", &error.to_string());
    }
    assert_eq!(under("native", text).await, expected().await);
}

#[cfg(feature = "docker")]
#[tokio::test]
async fn docker() {
    if let Err(reason) = images::docker(&["version"]) {
        return may_skip("docker", &reason);
    }
    let image = images::BUSYBOX.make().unwrap();
    let more = format!("[runtime.docker]\nimage = \"{image}\"\n");
    assert_eq!(under("docker", &more).await, expected().await);
}

/// The programs of the agent as WebAssembly tools.
#[cfg(any(feature = "wasmtime", feature = "wasmer"))]
fn tools(engine: &str) -> String {
    let module = prx_fixtures::Guest::BOX.path();
    let mut text = format!("[runtime.wasm]\nengine = \"{engine}\"\n");
    text += "capabilities.filesystem_write = []\n";
    for (name, args) in [
        ("cat", "\"cat\""),
        ("false", "\"exit\", \"1\""),
        ("env", "\"env\""),
        ("sleep", "\"sleep\""),
    ] {
        text += &format!(
            "[tools.custom.{name}]\ntype = \"wasm\"\nmodule = \"{}\"\nargs = [{args}]\n",
            module.display()
        );
    }
    text
}

#[cfg(feature = "wasmtime")]
#[tokio::test]
async fn wasmtime() {
    assert_eq!(under("wasm", &tools("wasmtime")).await, expected().await);
}

#[cfg(feature = "wasmer")]
#[tokio::test]
async fn wasmer() {
    assert_eq!(under("wasm", &tools("wasmer")).await, expected().await);
}
