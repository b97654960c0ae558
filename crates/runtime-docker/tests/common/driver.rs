//! A container engine, as the suite of the contract sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prx_conformance::{Driver, PosixSpelling, Task, TokioKind};
use prx_runtime_core::config::Config;
use prx_runtime_core::{ExecutionRequest, Result, RuntimeAdapter, async_trait};
use prx_runtime_docker::DockerRuntime;

/// One engine.
pub(crate) struct EngineDriver {
    /// What it is called where backends are required.
    pub(crate) name: &'static str,
    /// `None` for the one that is found without being named.
    pub(crate) socket: Option<String>,
    pub(crate) image: &'static str,
    /// Variables that it gives to every container.
    pub(crate) ambient: &'static [&'static str],
    /// How many trials run at one time.
    pub(crate) at_once: usize,
    pub(crate) tokio_kinds: &'static [TokioKind],
}

#[async_trait]
impl Driver for EngineDriver {
    fn name(&self) -> &'static str {
        self.name
    }

    fn adapter_name(&self) -> &'static str {
        "docker"
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        config.runtime.docker.image = self.image.to_owned();
        config.runtime.docker.socket.clone_from(&self.socket);
        config
    }

    async fn make(&self, config: &Config) -> Result<Arc<dyn RuntimeAdapter>> {
        Ok(Arc::new(DockerRuntime::new(config)?))
    }

    fn spell(&self, task: &Task) -> Option<ExecutionRequest> {
        PosixSpelling::default().spell(task)
    }

    fn trials_at_once(&self) -> usize {
        self.at_once
    }

    fn tokio_kinds(&self) -> &'static [TokioKind] {
        self.tokio_kinds
    }

    fn guest_path(&self, _directory: &Path) -> PathBuf {
        "/workspace".into()
    }

    fn ambient_variables(&self) -> &'static [&'static str] {
        self.ambient
    }

    fn set_literal(&self, config: &mut Config, name: &str, value: &str) -> bool {
        config
            .runtime
            .docker
            .env
            .insert(name.to_owned(), value.to_owned());
        true
    }

    fn unusable(&self) -> Option<Config> {
        let mut config = self.config();
        config.runtime.docker.socket = Some("/nowhere/docker.sock".to_owned());
        Some(config)
    }
}
