//! The backend's public face.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use prx_runtime_core::config::Config;
use prx_runtime_core::{
    Capabilities, Description, Execution, ExecutionOutput, ExecutionRequest, Invocation, Probe,
    Result, RuntimeAdapter, async_trait,
};
use prx_runtime_wasm::{Compiled, EngineCapabilities, WasmRuntime};

use crate::config::Sizes;
use crate::engine::WasmtimeEngine;

/// Room is reserved for no more guests than this, whatever `max_concurrent` says: it is address
/// space, of which there is an end.
const MAX_GUESTS: usize = 1000;

/// Probes run a guest, too, and wait for no slot.
const PROBES: usize = 4;

/// Runs commands as WebAssembly guests on wasmtime. See
/// [`WasmRuntime`](prx_runtime_wasm::WasmRuntime) for what a command's program may be.
///
/// Clones share everything.
#[derive(Debug, Clone)]
pub struct WasmtimeRuntime(WasmRuntime<WasmtimeEngine>);

impl WasmtimeRuntime {
    /// A runtime by `config`: `[runtime]`, `[runtime.wasm]` and `[tools.custom]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`](prx_runtime_core::ErrorKind::InvalidConfig) for grants,
    /// variables or paths that cannot be;
    /// [`ErrorKind::Unavailable`](prx_runtime_core::ErrorKind::Unavailable) where wasmtime does
    /// not work on this machine.
    pub fn new(config: &Config) -> Result<Self> {
        let engine = WasmtimeEngine::new(sizes(config))?;
        WasmRuntime::new(engine, config).map(Self)
    }

    /// What wasmtime can do that another engine cannot, and the other way round.
    pub fn engine_capabilities(&self) -> EngineCapabilities {
        self.0.engine_capabilities()
    }

    /// Whether `invocation` in `working_dir` names a registered tool or a module that is there.
    pub fn resolves(&self, invocation: &Invocation, working_dir: &Path) -> bool {
        self.0.resolves(invocation, working_dir)
    }

    /// Compiles the tool or module `program` now and keeps the result, so that no run has to.
    ///
    /// # Errors
    ///
    /// There is no such module, or it cannot be used.
    pub async fn compile(&self, program: &str) -> Result<Compiled> {
        self.0.compile(program).await
    }
}

fn sizes(config: &Config) -> Sizes {
    let wasm = &config.runtime.wasm;
    let tools = config
        .tools
        .custom
        .values()
        .filter_map(|tool| tool.max_memory_mb);
    let largest = tools.fold(wasm.max_memory_mb, u64::max);
    let guests = config.runtime.max_concurrent.clamp(1, MAX_GUESTS) + PROBES;
    Sizes {
        guests: u32::try_from(guests).unwrap_or(u32::MAX),
        max_memory: largest.saturating_mul(1 << 20),
    }
}

#[async_trait]
impl RuntimeAdapter for WasmtimeRuntime {
    async fn execute(
        &self,
        command: &str,
        args: &[String],
        env: &HashMap<String, String>,
        working_dir: Option<&Path>,
        timeout: Duration,
    ) -> Result<ExecutionOutput> {
        self.0
            .execute(command, args, env, working_dir, timeout)
            .await
    }

    async fn is_available(&self) -> bool {
        self.0.is_available().await
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    async fn run(&self, request: ExecutionRequest) -> Result<ExecutionOutput> {
        self.0.run(request).await
    }

    async fn spawn(&self, request: ExecutionRequest) -> Result<Execution> {
        self.0.spawn(request).await
    }

    fn describe(&self, request: &ExecutionRequest) -> Result<Description> {
        self.0.describe(request)
    }

    async fn probe(&self) -> Probe {
        self.0.probe().await
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }
}
