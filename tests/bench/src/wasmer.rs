//! The wasmer engine against wasmer itself and, where both are compiled in, against wasmtime's, on a
//! guest that says hello, and on CPython.
//!
//! The peer is wasmer's own runner, with a runtime and a module that were made before. It has no
//! deadline and no limit, and grants the network.

use std::io::Read as _;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use prx_fixtures::Guest;
use prx_runtime_core::config::WasmEngineKind;
use prx_runtime_wasmer::WasmerRuntime;
use virtual_fs::Pipe;
use wasmer::sys::{Cranelift, EngineBuilder};
use wasmer::{Engine, Module};
use wasmer_types::ModuleHash;
use wasmer_wasix::PluggableRuntime;
use wasmer_wasix::runners::wasi::{RuntimeOrEngine, WasiRunner};
use wasmer_wasix::runtime::Runtime;
use wasmer_wasix::runtime::task_manager::tokio::TokioTaskManager;

use crate::guests::{self, Python};
use crate::harness::{Bench, Row};

const HELLO: Row = Row {
    name: "wasmer: hello, warm",
    peer: "wasmer's own runner",
    max_pairs: u32::MAX,
    bytes: None,
};
const HELLO_PROCESS: Row = Row {
    name: "wasmer: hello, warm, against a process",
    peer: "tokio::process, /bin/echo",
    ..HELLO
};
#[cfg(feature = "wasmtime")]
const HELLO_WASMTIME: Row = Row {
    name: "wasmer: hello, warm, beside wasmtime",
    peer: "ours, on wasmtime",
    ..HELLO
};
const PYTHON: Row = Row {
    name: "wasmer: python print(1+1), warm",
    peer: "wasmer's own runner",
    max_pairs: 20,
    bytes: None,
};

/// Every row of the wasmer engine.
pub(crate) async fn rows(bench: &mut Bench) -> Result<()> {
    let config = guests::config(WasmEngineKind::Wasmer)?;
    let ours = WasmerRuntime::new(&config)?;
    let ours = async || guests::hello(&ours).await;
    if bench.wants(HELLO.name) {
        let peer = Peer::new(&std::fs::read(Guest::HELLO.path())?)?;
        let peer = async || peer.says(&[], guests::HELLO).await;
        bench.row(HELLO, ours, peer).await?;
    }
    if bench.wants(HELLO_PROCESS.name) {
        bench.row(HELLO_PROCESS, ours, guests::echo).await?;
    }
    #[cfg(feature = "wasmtime")]
    if bench.wants(HELLO_WASMTIME.name) {
        let config = guests::config(WasmEngineKind::Wasmtime)?;
        let peer = prx_runtime_wasmtime::WasmtimeRuntime::new(&config)?;
        bench
            .row(HELLO_WASMTIME, ours, async || guests::hello(&peer).await)
            .await?;
    }
    match guests::python(bench, &[PYTHON]) {
        Some(program) => python(bench, &program).await,
        None => Ok(()),
    }
}

async fn python(bench: &mut Bench, python: &Python) -> Result<()> {
    if !bench.wants(PYTHON.name) {
        return Ok(());
    }
    let ours = WasmerRuntime::new(&python.config(WasmEngineKind::Wasmer)?)?;
    let peer = Peer::new(&python.read()?)?;
    let peer = async || peer.says(&["-c", "print(1+1)"], b"2\n").await;
    bench
        .row(PYTHON, async || guests::calculate(&ours).await, peer)
        .await
}

/// What one writes without us.
#[derive(Clone)]
struct Peer {
    runtime: Arc<dyn Runtime + Send + Sync>,
    module: Module,
}

impl Peer {
    fn new(bytes: &[u8]) -> Result<Self> {
        let engine: Engine = EngineBuilder::new(Cranelift::new()).engine().into();
        let module = Module::new(&engine, bytes).context("the module cannot be compiled")?;
        let tasks = TokioTaskManager::new(tokio::runtime::Handle::current());
        let mut runtime = PluggableRuntime::new(Arc::new(tasks));
        runtime.set_engine(engine);
        Ok(Self {
            runtime: Arc::new(runtime),
            module,
        })
    }

    async fn says(&self, args: &[&'static str], text: &'static [u8]) -> Result<()> {
        let (peer, args) = (self.clone(), args.to_vec());
        tokio::task::spawn_blocking(move || {
            let (sender, mut receiver) = Pipe::channel();
            let mut runner = WasiRunner::new();
            runner.with_args(args).with_stdout(Box::new(sender));
            let runtime = RuntimeOrEngine::Runtime(peer.runtime);
            runner.run_wasm(runtime, "guest", peer.module, ModuleHash::random())?;
            drop(runner);
            let mut said = Vec::new();
            receiver.read_to_end(&mut said)?;
            ensure!(said == text, "the peer said something else");
            Ok(())
        })
        .await?
    }
}
