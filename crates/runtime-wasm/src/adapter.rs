//! The backend's public face, for every engine.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prx_runtime_core::backend::{Backend, Details, Running};
use prx_runtime_core::config::{Config, ToolKind};
use prx_runtime_core::{
    Capabilities, Description, Environment, EnvironmentRules, Error, ErrorKind, Execution,
    ExecutionOutput, ExecutionRequest, Invocation, Plan, Probe, Result, RuntimeAdapter, Stdio,
    Supervisor,
};

use crate::cache::DiskCache;
use crate::command::Command;
use crate::grants::Grants;
use crate::lookup::{Located, Lookup};
use crate::modules::Modules;
use crate::probe::probe;
use crate::profile::Profile;
use crate::running::GuestRun;
use crate::{EngineCapabilities, Guest, GuestInput, GuestOutput, ModuleKind, WasmEngine};

/// Runs commands as WebAssembly guests that reach nothing but what the configuration grants.
///
/// A command's program is a registered tool (`[tools.custom.NAME]` with `type = "wasm"`), a module
/// of `runtime.wasm.module_path`, or the path of a module.
pub struct WasmRuntime<E: WasmEngine> {
    inner: Arc<Inner<E>>,
}

struct Inner<E: WasmEngine> {
    common: WasmBackend<E>,
    tools: HashMap<String, WasmBackend<E>>,
    supervisor: Supervisor,
}

/// Any module, or one registered tool with grants and limits of its own.
struct WasmBackend<E: WasmEngine> {
    engine: Arc<E>,
    modules: Arc<Modules<E>>,
    profile: Profile,
}

/// What compiling a module ahead of its first run led to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Compiled {
    /// The module's file, links resolved.
    pub module: PathBuf,
    /// What the module is.
    pub kind: ModuleKind,
    /// How long compiling took; `None` if the compiled form was there already.
    pub compiled_in: Option<Duration>,
    /// The compiled form; `None` where none is kept.
    pub entry: Option<PathBuf>,
}

impl<E: WasmEngine> WasmRuntime<E> {
    /// A runtime by `config` (`[runtime]`, `[runtime.wasm]`, `[tools.custom]`) on `engine`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for grants, variables or paths that cannot be.
    pub fn new(engine: E, config: &Config) -> Result<Self> {
        let engine = Arc::new(engine);
        let wasm = &config.runtime.wasm;
        let directory = absolute(&wasm.module_path.expand()?)?;
        let tools = || {
            config
                .tools
                .custom
                .iter()
                .filter(|(_, tool)| tool.kind == ToolKind::Wasm)
        };
        let lookup = Lookup::new(directory, tools().map(|(name, _)| name.clone()).collect());
        let common = Profile::common(config, engine.name())?;
        let profiles = tools()
            .map(|(name, tool)| {
                Ok((
                    name.clone(),
                    Profile::of_tool(config, name, tool, engine.name())?,
                ))
            })
            .collect::<Result<Vec<_>>>()?;
        let cache = DiskCache::open(wasm)?.filter(|cache| {
            let grants = profiles.iter().map(|(_, profile)| &profile.grants);
            let mut writable = std::iter::once(&common.grants)
                .chain(grants)
                .flat_map(Grants::writable_host_paths);
            let granted = writable.find(|path| cache.lies_in(path));
            if let Some(granted) = granted {
                tracing::warn!(
                    directory = %cache.directory().display(),
                    granted = %granted.display(),
                    "compiled modules are not kept: guests may write where they would be"
                );
            }
            granted.is_none()
        });
        let limits = profiles.iter().map(|(_, profile)| profile.max_memory);
        let largest = limits.fold(common.max_memory, u64::max);
        let modules = Arc::new(Modules::new(Arc::clone(&engine), cache, lookup, largest));
        let backend = |profile| WasmBackend {
            engine: Arc::clone(&engine),
            modules: Arc::clone(&modules),
            profile,
        };
        let common = backend(common);
        let tools = profiles
            .into_iter()
            .map(|(name, profile)| (name, backend(profile)))
            .collect();
        Ok(Self {
            inner: Arc::new(Inner {
                common,
                tools,
                supervisor: Supervisor::new(&config.runtime),
            }),
        })
    }

    /// What this engine can do that another cannot.
    pub fn engine_capabilities(&self) -> EngineCapabilities {
        self.inner.common.engine.capabilities()
    }

    /// Whether `invocation` in `working_dir` names a tool or a module. Nothing is read but
    /// directories.
    pub fn resolves(&self, invocation: &Invocation, working_dir: &Path) -> bool {
        Command::of(invocation)
            .and_then(|command| {
                self.inner
                    .backend(&command.program)
                    .locate(&command.program, working_dir)
            })
            .is_ok()
    }

    /// Compiles the tool or module `program` now, so that its first run need not, and keeps the
    /// result in the cache. A relative path resolves against the current directory.
    ///
    /// # Errors
    ///
    /// There is no such module, or it cannot be used.
    pub async fn compile(&self, program: &str) -> Result<Compiled> {
        let backend = self.inner.backend(program);
        let located = backend.locate(program, &absolute(Path::new("."))?)?;
        let prepared = backend.modules.get(&located).await?;
        Ok(Compiled {
            module: prepared.path.clone(),
            kind: prepared.kind,
            compiled_in: prepared.compiled_in,
            entry: prepared.entry.clone(),
        })
    }
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| {
        Error::new(ErrorKind::Io, "the current directory cannot be used").with_source(error)
    })
}

impl<E: WasmEngine> Inner<E> {
    fn backend(&self, program: &str) -> &WasmBackend<E> {
        self.tools.get(program).unwrap_or(&self.common)
    }

    /// The backend for a request. A line that cannot be read has none of its own; starting it says
    /// what is wrong.
    fn backend_for(&self, request: &ExecutionRequest) -> &WasmBackend<E> {
        match request.invocation() {
            Invocation::Program { program, .. } => self.backend(program),
            line => {
                Command::of(line).map_or(&self.common, |command| self.backend(&command.program))
            }
        }
    }
}

impl<E: WasmEngine> WasmBackend<E> {
    fn locate(&self, program: &str, working_dir: &Path) -> Result<Located> {
        let lookup = self.modules.lookup();
        match &self.profile.tool {
            Some(tool) if tool.name == program => Ok(lookup.of_tool(&tool.module)),
            _ => lookup.find(program, working_dir),
        }
    }

    /// What the guest is given as its arguments, the program's name first.
    fn argv(&self, command: Command) -> Vec<String> {
        let tool_args = self
            .profile
            .tool
            .iter()
            .flat_map(|tool| tool.args.iter().cloned());
        std::iter::once(command.program)
            .chain(tool_args)
            .chain(command.args)
            .collect()
    }

    fn guest(&self, command: Command, plan: &Plan, stdio: Stdio) -> Result<Guest> {
        let profile = &self.profile;
        Ok(Guest {
            args: self.argv(command),
            env: text_of(&plan.environment)?,
            preopens: profile.grants.preopens(&plan.working_dir),
            working_dir: profile.grants.working_dir().map(str::to_owned),
            network: profile.network,
            max_memory: profile.max_memory,
            stdin: GuestInput::new(stdio.stdin),
            stdout: GuestOutput::new(stdio.stdout),
            stderr: GuestOutput::new(stdio.stderr),
        })
    }
}

/// WebAssembly knows text only.
fn text_of(environment: &Environment) -> Result<Vec<(String, String)>> {
    environment
        .iter()
        .map(|(name, value)| {
            let value = value.to_str().ok_or_else(|| {
                Error::new(
                    ErrorKind::Unsupported,
                    format!("the value of `{name}` is not UTF-8, which a guest cannot be given"),
                )
                .with_hint("take it off runtime.wasm.capabilities.env_vars")
            })?;
            Ok((name.to_owned(), value.to_owned()))
        })
        .collect()
}

#[async_trait]
impl<E: WasmEngine> Backend for WasmBackend<E> {
    fn name(&self) -> &str {
        "wasm"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.sessions = true;
        capabilities
    }

    fn environment(&self) -> &EnvironmentRules {
        &self.profile.environment
    }

    fn time_limit(&self) -> Option<Duration> {
        Some(self.profile.time_limit)
    }

    fn describe(&self, plan: &Plan) -> Result<Details> {
        let command = Command::of(&plan.invocation)?;
        let located = self.locate(&command.program, &plan.working_dir)?;
        let module = self.modules.lookup().resolve(&located)?;
        let preopens = self.profile.grants.preopens(&plan.working_dir);
        self.modules.guard_cache(&preopens)?;
        let mut more = BTreeMap::from([("module", module.display().to_string())]);
        more.insert(
            "directories",
            preopens
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", "),
        );
        Ok(Details {
            argv: self.argv(command),
            isolation: Arc::clone(&self.profile.isolation),
            more,
        })
    }

    async fn probe(&self) -> Probe {
        probe(&self.engine, self.modules.lookup().directory().to_owned()).await
    }

    async fn start(&self, plan: Plan, stdio: Stdio) -> Result<Box<dyn Running>> {
        let command = Command::of(&plan.invocation)?;
        let located = self.locate(&command.program, &plan.working_dir)?;
        let prepared = self.modules.get(&located).await?;
        prepared
            .facts
            .require_within(self.profile.max_memory, &prepared.path)?;
        let guest = self.guest(command, &plan, stdio)?;
        self.modules.guard_cache(&guest.preopens)?;
        let outputs = (guest.stdout.clone(), guest.stderr.clone());
        let started = self.modules.engine().start(&prepared.module, guest)?;
        Ok(Box::new(GuestRun::new(
            started,
            outputs,
            Arc::clone(&self.profile.isolation),
        )))
    }
}

#[async_trait]
impl<E: WasmEngine> RuntimeAdapter for WasmRuntime<E> {
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
        self.inner.common.probe().await.available
    }

    fn name(&self) -> &str {
        self.inner.common.name()
    }

    async fn run(&self, request: ExecutionRequest) -> Result<ExecutionOutput> {
        let backend = self.inner.backend_for(&request);
        self.inner.supervisor.run(backend, request).await
    }

    async fn spawn(&self, request: ExecutionRequest) -> Result<Execution> {
        let backend = self.inner.backend_for(&request);
        self.inner.supervisor.spawn(backend, request).await
    }

    fn describe(&self, request: &ExecutionRequest) -> Result<Description> {
        self.inner
            .supervisor
            .describe(self.inner.backend_for(request), request)
    }

    async fn probe(&self) -> Probe {
        self.inner.common.probe().await
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.common.capabilities()
    }
}

impl<E: WasmEngine> Clone for WasmRuntime<E> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<E: WasmEngine> fmt::Debug for WasmRuntime<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasmRuntime")
            .field("engine", &self.inner.common.engine.name())
            .field("modules", &self.inner.common.modules.lookup().directory())
            .finish_non_exhaustive()
    }
}
