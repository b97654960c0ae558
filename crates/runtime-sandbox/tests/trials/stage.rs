//! What a trial is given: a workspace, a runtime in it, and one without any sandbox.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Failed;
use prx_runtime_core::config::{Config, ConfigPath, SandboxKind};
use prx_runtime_core::{Error, ExecutionOutput, ExecutionRequest, RuntimeAdapter};
use prx_runtime_native::NativeRuntime;
use prx_runtime_sandbox::Machine;
use tempfile::TempDir;

use crate::caller::Caller;

/// Longer than anything here takes.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    kind: SandboxKind,
    base: Arc<TempDir>,
    pub(crate) config: Config,
}

/// Why a sandbox cannot be tried on this machine.
pub(crate) fn missing(kind: SandboxKind) -> Option<String> {
    match kind {
        SandboxKind::Landlock if Machine::current().landlock().is_none() => {
            Some("machine has no landlock".to_owned())
        }
        SandboxKind::Bubblewrap => no_program("bwrap"),
        SandboxKind::Firejail => no_program("firejail"),
        _ => None,
    }
}

fn no_program(name: &str) -> Option<String> {
    which::which(name)
        .err()
        .map(|_| format!("machine has no {name}"))
}

impl Stage {
    /// `base/work` is the workspace; `base` is outside of it and of every writable path.
    pub(crate) fn new(kind: SandboxKind) -> Result<Self, Failed> {
        let base = tempfile::Builder::new()
            .prefix("prx-trial-")
            .tempdir_in(ground())?;
        std::fs::create_dir(base.path().join("workspace"))?;
        let mut config = Config::default();
        config.security.sandbox.backend = kind;
        // The default would be all of the directory that the trials themselves live in.
        config.security.sandbox.writable_paths.clear();
        Ok(Self {
            kind,
            base: Arc::new(base),
            config,
        })
    }

    /// The same with another configuration.
    pub(crate) fn with(mut self, edit: impl FnOnce(&mut Config, &Path)) -> Self {
        edit(&mut self.config, self.base.path());
        self
    }

    /// The same place under another configuration.
    pub(crate) fn under(&self, config: Config) -> Self {
        Self {
            kind: self.kind,
            base: Arc::clone(&self.base),
            config,
        }
    }

    pub(crate) fn kind(&self) -> SandboxKind {
        self.kind
    }

    /// The full name of a trial of this caller and sandbox.
    pub(crate) fn name(&self, trial: &str) -> String {
        let root = rustix::process::getuid().is_root();
        let caller = if root { Caller::Root } else { Caller::User };
        format!("{}::{caller}::{trial}", self.kind)
    }

    pub(crate) fn outside(&self) -> &Path {
        self.base.path()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.base.path().join("workspace")
    }

    pub(crate) fn runtime(&self) -> Result<NativeRuntime, Error> {
        self.runtime_by(&self.config)
    }

    pub(crate) fn runtime_by(&self, config: &Config) -> Result<NativeRuntime, Error> {
        let confiner = prx_runtime_sandbox::confiner(self.kind, &config.security)?;
        NativeRuntime::confined(config, confiner)
    }

    /// Runs a line in the sandbox.
    pub(crate) fn confined(&self, line: &str) -> Result<ExecutionOutput, Failed> {
        Ok(self.try_confined(line)?)
    }

    pub(crate) fn try_confined(&self, line: &str) -> Result<ExecutionOutput, Error> {
        self.run(&self.runtime()?, ExecutionRequest::shell(line))
    }

    /// Runs a line without any sandbox.
    pub(crate) fn bare(&self, line: &str) -> Result<ExecutionOutput, Failed> {
        let mut config = Config::default();
        config.runtime = self.config.runtime.clone();
        Ok(self.run(&NativeRuntime::new(&config)?, ExecutionRequest::shell(line))?)
    }

    pub(crate) fn run(
        &self,
        runtime: &dyn RuntimeAdapter,
        request: ExecutionRequest,
    ) -> Result<ExecutionOutput, Error> {
        block_on(runtime.run(request.working_dir(self.workspace()).timeout(TIMEOUT)))
    }

    /// The line succeeds in the sandbox; what it prints.
    pub(crate) fn allows(&self, line: &str) -> Result<String, Failed> {
        let output = self.confined(line)?;
        if !output.success() {
            return Err(format!("`{line}` fails in the sandbox: {}", told(&output)).into());
        }
        Ok(output.stdout.to_text().into_owned())
    }

    /// The line succeeds without the sandbox and fails in it.
    pub(crate) fn denies(&self, line: &str) -> Result<ExecutionOutput, Failed> {
        let control = self.bare(line)?;
        if !control.success() {
            let told = told(&control);
            return Err(format!("`{line}` fails even without the sandbox: {told}").into());
        }
        self.refuses(line)
    }

    /// The line prints `secret` without the sandbox, and in it does not even get that far.
    pub(crate) fn conceals(&self, line: &str, secret: &str) -> Result<(), Failed> {
        let says = |output: &ExecutionOutput| output.stdout.to_text().contains(secret);
        let control = self.bare(line)?;
        check!(says(&control), "`{line}`: {}", told(&control));
        let output = self.confined(line)?;
        check!(!says(&output), "`{line}`: {}", told(&output));
        // What firejail puts in the place of a file is empty and belongs to root.
        let empty = self.kind == SandboxKind::Firejail && rustix::process::getuid().is_root();
        check!(empty || !output.success(), "`{line}`: {}", told(&output));
        Ok(())
    }

    /// The line fails in the sandbox.
    pub(crate) fn refuses(&self, line: &str) -> Result<ExecutionOutput, Failed> {
        let output = self.confined(line)?;
        if output.success() {
            return Err(format!("`{line}` succeeds in the sandbox: {}", told(&output)).into());
        }
        Ok(output)
    }

    /// Puts a file outside of the workspace.
    pub(crate) fn outside_file(&self, name: &str, text: &str) -> Result<PathBuf, Failed> {
        let path = self.base.path().join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&path, text)?;
        Ok(path)
    }
}

/// Where the trials of this caller live.
fn ground() -> PathBuf {
    std::env::temp_dir()
}

pub(crate) fn told(output: &ExecutionOutput) -> String {
    format!(
        "{} with {}: {}{}",
        output.termination,
        output.exit_code,
        output.stdout.to_text(),
        output.stderr.to_text()
    )
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
        .block_on(future)
}

/// A path as the configuration has it.
pub(crate) fn path(path: impl AsRef<Path>) -> ConfigPath {
    ConfigPath::new(path.as_ref().to_string_lossy())
}

/// Fails unless the condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!("{} ({}:{})", format_args!($($message)+), file!(), line!()).into());
        }
    };
}
pub(crate) use check;
