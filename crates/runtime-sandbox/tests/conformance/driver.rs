//! Confined local processes, as the suite sees them.

use std::sync::Arc;

use prx_conformance::{Driver, PosixSpelling, Task};
use prx_runtime_core::config::{Config, SandboxKind};
use prx_runtime_core::{ExecutionRequest, Result, RuntimeAdapter, async_trait};
use prx_runtime_native::NativeRuntime;

/// The native backend in a sandbox.
pub(crate) struct SandboxDriver(pub(crate) SandboxKind);

#[async_trait]
impl Driver for SandboxDriver {
    fn name(&self) -> &'static str {
        match self.0 {
            // Where the sandbox has to be there these have to work: what can be installed. The kernel
            // of a machine may be without Landlock, and then the suite says so.
            SandboxKind::Bubblewrap | SandboxKind::Firejail => "sandbox",
            other => other.as_str(),
        }
    }

    fn adapter_name(&self) -> &'static str {
        "native"
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        config.runtime.backend = "native".to_owned();
        config.security.sandbox.backend = self.0;
        config
    }

    async fn make(&self, config: &Config) -> Result<Arc<dyn RuntimeAdapter>> {
        let confiner = prx_runtime_sandbox::confiner(self.0, &config.security)?;
        Ok(Arc::new(NativeRuntime::confined(config, confiner)?))
    }

    fn spell(&self, task: &Task) -> Option<ExecutionRequest> {
        PosixSpelling::default().with_bash().spell(task)
    }

    fn set_literal(&self, config: &mut Config, name: &str, value: &str) -> bool {
        config
            .runtime
            .native
            .env
            .insert(name.to_owned(), value.to_owned());
        true
    }

    fn unusable(&self) -> Option<Config> {
        let mut config = self.config();
        config.runtime.native.shell = Some("/no/such/shell".into());
        Some(config)
    }
}
