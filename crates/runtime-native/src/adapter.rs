//! The backend's public face.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prx_runtime_core::backend::{Backend, Details, Running};
use prx_runtime_core::config::{Config, SandboxKind, SecurityConfig};
use prx_runtime_core::{
    Capabilities, Description, EnvironmentRules, Error, ErrorKind, Execution, ExecutionOutput,
    ExecutionRequest, Plan, Probe, Result, RuntimeAdapter, Stdio, Supervisor,
};

use crate::shell::Shell;
use crate::{command, probe, prune, running};

/// Runs commands as local processes, with the rights of the caller.
#[derive(Debug, Clone)]
pub struct NativeRuntime {
    backend: Arc<NativeBackend>,
    supervisor: Supervisor,
}

#[derive(Debug)]
struct NativeBackend {
    shell: Shell,
    environment: EnvironmentRules,
}

impl NativeRuntime {
    /// A runtime by `config`: `[runtime]`, `[runtime.native]` and `[security]`. Ends what hosts
    /// that died left behind, as [`prune`](crate::prune()) does.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for a shell that cannot be run or a forbidden variable;
    /// [`ErrorKind::Refused`] where `[security]` asks for what this backend does not enforce.
    pub fn new(config: &Config) -> Result<Self> {
        refuse_unenforced(&config.security)?;
        let backend = NativeBackend {
            shell: Shell::from_config(&config.runtime.native)?,
            environment: EnvironmentRules::new(
                &config.runtime.env_whitelist,
                &config.runtime.native.env,
            )?,
        };
        let report = prune();
        if report.ended > 0 {
            tracing::warn!(
                ended = report.ended,
                "ended processes that a dead host had left"
            );
        }
        Ok(Self {
            backend: Arc::new(backend),
            supervisor: Supervisor::new(&config.runtime),
        })
    }
}

/// What is configured is enforced, or nothing runs.
fn refuse_unenforced(security: &SecurityConfig) -> Result<()> {
    if security.sandbox.backend != SandboxKind::None {
        return Err(Error::new(
            ErrorKind::Refused,
            format!(
                "security.sandbox.backend = \"{}\" is configured and this build has no sandbox",
                security.sandbox.backend
            ),
        )
        .with_hint("set it to \"none\", or use the docker backend for isolation"));
    }
    let limits = &security.resources;
    let configured = [
        ("max_memory_mb", limits.max_memory_mb),
        ("max_cpu_time_seconds", limits.max_cpu_time_seconds),
        ("max_subprocesses", limits.max_subprocesses),
        ("max_open_files", limits.max_open_files),
    ];
    if let Some((limit, _)) = configured.into_iter().find(|(_, value)| value.is_some()) {
        return Err(Error::new(
            ErrorKind::Refused,
            format!("security.resources.{limit} is configured and this build does not enforce it"),
        )
        .with_hint("remove it, or use the docker backend for limits"));
    }
    Ok(())
}

#[async_trait]
impl Backend for NativeBackend {
    fn name(&self) -> &str {
        "native"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn environment(&self) -> &EnvironmentRules {
        &self.environment
    }

    fn describe(&self, plan: &Plan) -> Result<Details> {
        Ok(Details {
            argv: command::argv(plan, &self.shell)?,
            isolation: running::bare_isolation(),
            more: BTreeMap::new(),
        })
    }

    async fn probe(&self) -> Probe {
        probe::probe(&self.shell).await
    }

    async fn start(&self, plan: Plan, stdio: Stdio) -> Result<Box<dyn Running>> {
        Ok(Box::new(command::start(&plan, stdio, &self.shell).await?))
    }
}

#[async_trait]
impl RuntimeAdapter for NativeRuntime {
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

    fn describe(&self, request: &ExecutionRequest) -> Result<Description> {
        self.supervisor.describe(&*self.backend, request)
    }

    async fn probe(&self) -> Probe {
        self.backend.probe().await
    }

    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }
}
