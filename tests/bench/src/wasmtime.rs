//! The wasmtime engine against wasmtime itself and against a process, on a guest that says hello,
//! and on CPython.
//!
//! The peer does the least that gives the same result: a pool, a module that was linked before, a
//! store of its own for each call, output into memory. It has no deadline and no limit.

use anyhow::{Result, ensure};
use prx_fixtures::Guest;
use prx_runtime_core::config::{ByteSize, Config, WasmEngineKind};
use prx_runtime_wasmtime::WasmtimeRuntime;
use wasmtime::{
    Config as EngineConfig, Engine, InstanceAllocationStrategy, InstancePre, Linker, Module,
    PoolingAllocationConfig, Store,
};
use wasmtime_wasi::WasiCtxBuilder;
use wasmtime_wasi::p1::{self, WasiP1Ctx};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;

use crate::guests::{self, Python};
use crate::harness::{Bench, Row};

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
    match guests::python(bench, &rows) {
        Some(program) => python(bench, &program).await,
        None => Ok(()),
    }
}

async fn hello(bench: &mut Bench) -> Result<()> {
    let ours = WasmtimeRuntime::new(&guests::config(WasmEngineKind::Wasmtime)?)?;
    let ours = async || guests::hello(&ours).await;
    if bench.wants(HELLO.name) {
        let peer = Peer::new(&std::fs::read(Guest::HELLO.path())?)?;
        let peer = async || {
            ensure!(
                peer.run(&["hello"]).await? == guests::HELLO,
                "the peer said something else"
            );
            Ok(())
        };
        bench.row(HELLO, ours, peer).await?;
    }
    if bench.wants(HELLO_PROCESS.name) {
        bench.row(HELLO_PROCESS, ours, guests::echo).await?;
    }
    Ok(())
}

async fn python(bench: &mut Bench, python: &Python) -> Result<()> {
    let config = python.config(WasmEngineKind::Wasmtime)?;
    let calculate = async |config: &Config| guests::calculate(&WasmtimeRuntime::new(config)?).await;
    let warm = WasmtimeRuntime::new(&config)?;
    if bench.wants(PYTHON.name) {
        let peer = Peer::new(&python.read()?)?;
        let peer = async || {
            let said = peer.run(&["python", "-c", "print(1+1)"]).await?;
            ensure!(said == b"2\n", "the peer said something else");
            Ok(())
        };
        bench
            .row(PYTHON, async || guests::calculate(&warm).await, peer)
            .await?;
    }
    if bench.wants(PYTHON_CACHED.name) {
        let fresh = async || calculate(&config).await;
        bench
            .row(PYTHON_CACHED, fresh, async || {
                guests::calculate(&warm).await
            })
            .await?;
    }
    if bench.wants(PYTHON_COLD.name) {
        let mut config = config.clone();
        config.runtime.wasm.cache_size = ByteSize(0);
        let cold = async || calculate(&config).await;
        bench
            .row(PYTHON_COLD, cold, async || guests::calculate(&warm).await)
            .await?;
    }
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
