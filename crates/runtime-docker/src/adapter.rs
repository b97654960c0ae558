//! The backend's public face.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prx_runtime_core::backend::Backend;
use prx_runtime_core::config::Config;
use prx_runtime_core::{
    Capabilities, Description, Error, ErrorKind, Execution, ExecutionOutput, ExecutionRequest,
    Probe, Result, RuntimeAdapter, Supervisor,
};

use crate::backend::DockerBackend;
use crate::engine::Budgets;
use crate::sweep::{PruneReport, Scope};

/// Runs commands in containers, a fresh one for each.
///
/// Cheap to clone; clones share the concurrency limit and what was learnt of the engine. Needs a
/// tokio runtime with I/O and time enabled. The end of the last clone waits up to two seconds for
/// containers of dropped executions that are still being removed.
#[derive(Debug, Clone)]
pub struct DockerRuntime {
    backend: Arc<DockerBackend>,
    supervisor: Supervisor,
}

impl DockerRuntime {
    /// A runtime by `config`: `[runtime]` and `[runtime.docker]`. Asks no engine anything; what
    /// dead hosts left behind is removed before the first command ([`sweep`](Self::sweep)).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for an image name, an address, a path or a variable that
    /// cannot be meant, and for a pool, which this build does not have.
    pub fn new(config: &Config) -> Result<Self> {
        config.validate()?;
        Ok(Self {
            backend: Arc::new(DockerBackend::new(config, Budgets::default())?),
            supervisor: Supervisor::new(&config.runtime),
        })
    }

    /// Makes sure that commands can run: the engine answers and enforces what is configured, and
    /// the image is there. Pulls it where it is missing and may be pulled, within
    /// `pull_timeout_secs`. Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] without an engine, [`ErrorKind::Refused`] for a limit or an OCI
    /// runtime that it does not have, [`ErrorKind::Image`] without the image.
    pub async fn validate(&self) -> Result<()> {
        self.backend.validate().await
    }

    /// Whether the image of `runtime.docker.image` is there or its registry has it, found out
    /// within `limit` and without pulling anything: for choosing a backend. Cancel-safe.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] without an engine or without an answer in time,
    /// [`ErrorKind::Image`] where the image cannot be had.
    pub async fn image_available_or_pullable(&self, limit: Duration) -> Result<()> {
        match tokio::time::timeout(limit, self.backend.image_obtainable()).await {
            Ok(result) => result,
            Err(_) => Err(Error::new(
                ErrorKind::Unavailable,
                format!("whether the image can be had was not found out within {limit:?}"),
            )
            .with_hint("pull it beforehand, or name another backend than `auto`")),
        }
    }

    /// Removes the containers of hosts that are provably dead, except those that
    /// `auto_remove = false` keeps. Happens by itself before the first command.
    ///
    /// A host is dead when its process is gone on the same boot of this machine, or when it lived on
    /// an earlier boot, the engine is one of this machine, and the container is older than this boot
    /// and does not run. Containers of living hosts, of other machines and of other PID namespaces
    /// are not touched.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] without an engine; [`ErrorKind::Engine`] where it does not list
    /// its containers.
    pub async fn sweep(&self) -> Result<PruneReport> {
        self.backend.sweep(Scope::Leftovers).await
    }

    /// As [`sweep`](Self::sweep), for the engine that `config` names, and with the containers that
    /// were kept: what `prx-runtime prune` does.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new) and [`sweep`](Self::sweep).
    pub async fn prune(config: &Config) -> Result<PruneReport> {
        Self::new(config)?.backend.sweep(Scope::All).await
    }
}

#[async_trait]
impl RuntimeAdapter for DockerRuntime {
    async fn execute(
        &self,
        command: &str,
        args: &[String],
        env: &HashMap<String, String>,
        working_dir: Option<&Path>,
        timeout: Duration,
    ) -> Result<ExecutionOutput> {
        self.run(ExecutionRequest::from_call(
            command,
            args,
            env,
            working_dir,
            timeout,
        ))
        .await
    }

    async fn is_available(&self) -> bool {
        self.backend.probe().await.available
    }

    fn name(&self) -> &str {
        self.backend.name()
    }

    async fn run(&self, request: ExecutionRequest) -> Result<ExecutionOutput> {
        self.supervisor.run(&*self.backend, request).await
    }

    async fn spawn(&self, request: ExecutionRequest) -> Result<Execution> {
        self.supervisor.spawn(&*self.backend, request).await
    }

    async fn probe(&self) -> Probe {
        self.backend.probe().await
    }

    fn describe(&self, request: &ExecutionRequest) -> Result<Description> {
        self.supervisor.describe(&*self.backend, request)
    }

    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }
}
