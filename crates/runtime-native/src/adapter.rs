//! The backend's public face.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prx_runtime_core::backend::{Backend, Details, Running};
use prx_runtime_core::config::{Config, MinimumIsolation, SandboxKind};
use prx_runtime_core::{
    Capabilities, Description, EnvironmentRules, Error, ErrorKind, Execution, ExecutionOutput,
    ExecutionRequest, Isolation, IsolationLevel, Plan, Probe, Result, RuntimeAdapter, Stdio,
    Supervisor,
};

use crate::command::Confiners;
use crate::shell::Shell;
use crate::{command, probe, prune, running};

/// Runs commands as local processes, with the rights of the caller.
#[derive(Debug, Clone)]
pub struct NativeRuntime {
    backend: Arc<NativeBackend>,
    supervisor: Supervisor,
    /// With slots of its own, so that a probe waits for no command, and without a grace.
    probes: Supervisor,
}

#[derive(Debug)]
struct NativeBackend {
    shell: Shell,
    environment: EnvironmentRules,
    confiners: Confiners,
}

impl NativeRuntime {
    /// A runtime by `config`: `[runtime]`, `[runtime.native]` and `[security]`. Ends what hosts
    /// that died left behind, as [`prune`](crate::prune()) does.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for a shell that cannot be run or a forbidden variable;
    /// [`ErrorKind::Refused`] where `[security]` or `runtime.minimum_isolation` asks for what this
    /// backend does not enforce.
    pub fn new(config: &Config) -> Result<Self> {
        refuse_unenforced(config)?;
        Self::with(config, Confiners::default())
    }

    /// A runtime by `config` whose commands `confiner` confines: what `[security]` asks for is the
    /// confiner's to keep, and what it says about itself counts for `runtime.minimum_isolation`.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    #[cfg(target_os = "linux")]
    pub fn confined(
        config: &Config,
        confiner: Arc<dyn prx_runtime_core::confine::Confiner>,
    ) -> Result<Self> {
        let level = confiner.isolation().level;
        refuse_weaker(config.runtime.minimum_isolation, level)?;
        Self::with(config, Some(confiner))
    }

    fn with(config: &Config, confiners: Confiners) -> Result<Self> {
        let backend = NativeBackend {
            shell: Shell::from_config(&config.runtime.native)?,
            environment: EnvironmentRules::new(
                &config.runtime.env_whitelist,
                &config.runtime.native.env,
            )?,
            confiners,
        };
        let report = prune();
        if report.ended > 0 {
            tracing::warn!(
                ended = report.ended,
                "ended processes that a dead host had left"
            );
        }
        let mut probes = config.runtime.clone();
        probes.kill_grace_ms = 0;
        Ok(Self {
            backend: Arc::new(backend),
            supervisor: Supervisor::new(&config.runtime),
            probes: Supervisor::new(&probes),
        })
    }
}

/// Isolation that is weaker than what is demanded is refused.
fn refuse_weaker(minimum: MinimumIsolation, level: IsolationLevel) -> Result<()> {
    let demanded = match minimum {
        MinimumIsolation::None => IsolationLevel::None,
        MinimumIsolation::Sandbox => IsolationLevel::Sandbox,
        _ => IsolationLevel::Container,
    };
    if level >= demanded {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Refused,
        format!(
            "runtime.minimum_isolation = \"{minimum}\" is configured and the native backend isolates \
             by `{level}`",
        ),
    )
    .with_hint("lower it, or use a backend that isolates more"))
}

/// What is configured is enforced, or nothing runs.
fn refuse_unenforced(config: &Config) -> Result<()> {
    let Config {
        runtime, security, ..
    } = config;
    refuse_weaker(runtime.minimum_isolation, IsolationLevel::None)?;
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

impl NativeBackend {
    fn is_confined(&self) -> bool {
        cfg!(target_os = "linux") && self.isolation() != running::bare_isolation()
    }

    #[cfg(target_os = "linux")]
    fn isolation(&self) -> Arc<Isolation> {
        match &self.confiners {
            Some(confiner) => confiner.isolation(),
            None => running::bare_isolation(),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn isolation(&self) -> Arc<Isolation> {
        running::bare_isolation()
    }
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
            isolation: self.isolation(),
            more: BTreeMap::new(),
        })
    }

    async fn probe(&self) -> Probe {
        probe::probe(&self.shell).await
    }

    async fn start(&self, plan: Plan, stdio: Stdio) -> Result<Box<dyn Running>> {
        Ok(Box::new(
            command::start(&plan, stdio, &self.shell, &self.confiners).await?,
        ))
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
        self.probe().await.available
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
        if !self.backend.is_confined() {
            return self.backend.probe().await;
        }
        // Whether commands can be confined shows when one is.
        let request = ExecutionRequest::shell("exit 0")
            .working_dir(std::env::temp_dir())
            .timeout(probe::PATIENCE_CONFINED);
        let run = self.probes.run(&*self.backend, request);
        let result = tokio::time::timeout(probe::HANGS, run).await;
        probe::of_confined(&self.backend.shell, result.ok())
    }

    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }
}
