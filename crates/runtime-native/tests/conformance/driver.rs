//! Local processes, as the suite sees them.

use std::sync::Arc;

use prx_conformance::{Driver, PosixSpelling, Task};
use prx_runtime_core::config::Config;
use prx_runtime_core::{ExecutionRequest, Result, RuntimeAdapter, async_trait};
use prx_runtime_native::NativeRuntime;

/// The native backend on a POSIX system.
pub(crate) struct NativeDriver;

#[async_trait]
impl Driver for NativeDriver {
    fn name(&self) -> &'static str {
        "native"
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        config.runtime.backend = "native".to_owned();
        config
    }

    async fn make(&self, config: &Config) -> Result<Arc<dyn RuntimeAdapter>> {
        Ok(Arc::new(NativeRuntime::new(config)?))
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
