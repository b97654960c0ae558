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

use crate::engine::WasmerEngine;

/// Runs commands as WebAssembly guests on wasmer. See
/// [`WasmRuntime`](prx_runtime_wasm::WasmRuntime) for what a command's program may be.
///
/// Clones share everything.
#[derive(Debug, Clone)]
pub struct WasmerRuntime(WasmRuntime<WasmerEngine>);

impl WasmerRuntime {
    /// A runtime by `config`: `[runtime]`, `[runtime.wasm]` and `[tools.custom]`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`](prx_runtime_core::ErrorKind::InvalidConfig) for grants,
    /// variables or paths that cannot be.
    pub fn new(config: &Config) -> Result<Self> {
        let engine = WasmerEngine::new();
        WasmRuntime::new(engine, config).map(Self)
    }

    /// What wasmer can do that another engine cannot, and the other way round.
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

#[async_trait]
impl RuntimeAdapter for WasmerRuntime {
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
