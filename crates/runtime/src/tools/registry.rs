//! The registry: tools by name, under a configuration that can be exchanged.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use prx_runtime_core::config::Config;
use prx_runtime_core::{Description, Execution, ExecutionOutput, Result};

use super::call::ToolCall;
use super::state::State;
use super::tool::Tool;

/// Lists, resolves and runs tools: those of `[tools.custom]`, each on the backend that its `type`
/// names, and the skills that lie in `runtime.wasm.module_path`, which are found without a restart.
///
/// ```no_run
/// use prx_runtime::{ToolCall, ToolRegistry, config::Config};
///
/// # async fn example() -> prx_runtime::Result<()> {
/// let tools = ToolRegistry::new(&Config::load("config.toml")?)?;
/// let output = tools.run("count", ToolCall::new().args(["words.txt"])).await?;
/// println!("{}", output.stdout);
/// # Ok(())
/// # }
/// ```
pub struct ToolRegistry {
    state: RwLock<Arc<State>>,
}

impl ToolRegistry {
    /// A registry by `config`. No backend is made before a tool needs it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`](prx_runtime_core::ErrorKind::InvalidConfig).
    pub fn new(config: &Config) -> Result<Self> {
        Ok(Self {
            state: RwLock::new(Arc::new(State::new(config)?)),
        })
    }

    /// All tools, sorted by name. A registered tool hides a skill of the same name.
    ///
    /// # Errors
    ///
    /// The module directory cannot be read.
    pub fn list(&self) -> Result<Vec<Tool>> {
        self.state().list()
    }

    /// The tool of that name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::ProgramNotFound`](prx_runtime_core::ErrorKind::ProgramNotFound), with what was
    /// searched and what there is.
    pub fn resolve(&self, name: &str) -> Result<Tool> {
        self.state().resolve(name)
    }

    /// Runs a tool. Dropping the future ends it.
    ///
    /// # Errors
    ///
    /// There is no such tool, its backend cannot be used, or it did not run.
    pub async fn run(&self, name: &str, call: ToolCall) -> Result<ExecutionOutput> {
        let (adapter, request) = self.state().prepare(name, call).await?;
        adapter.run(request).await
    }

    /// Starts a tool and returns it as a live execution.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn spawn(&self, name: &str, call: ToolCall) -> Result<Execution> {
        let (adapter, request) = self.state().prepare(name, call).await?;
        adapter.spawn(request).await
    }

    /// Says what [`run`](Self::run) would do, and does nothing of it but look whether the backend
    /// can be used: no image is pulled.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn describe(&self, name: &str, call: ToolCall) -> Result<Description> {
        self.state().describe(name, call).await
    }

    /// Applies another configuration to calls from now on. Executions under way go on as they were
    /// started.
    ///
    /// # Errors
    ///
    /// The configuration is wrong: then the old one stays.
    pub fn reload(&self, config: &Config) -> Result<()> {
        let state = Arc::new(State::new(config)?);
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
        Ok(())
    }

    /// Reads a configuration file again and applies it, as [`reload`](Self::reload) does.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is wrong: then the old configuration stays.
    pub fn reload_from(&self, file: impl AsRef<Path>) -> Result<()> {
        self.reload(&Config::load(file)?)
    }

    fn state(&self) -> Arc<State> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for ToolRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolRegistry")
            .field("tools", &self.list())
            .finish_non_exhaustive()
    }
}
