//! What an engine has to do: compile a module, load what was compiled, run a guest.

use std::fs::File;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;

use prx_runtime_core::backend::{Exit, KillSwitch};
use prx_runtime_core::{Error, Result};

use crate::{GuestInput, GuestOutput, ModuleKind};

/// A WebAssembly engine. It is built once, for one configuration.
pub trait WasmEngine: Send + Sync + 'static {
    /// A module ready to run as often as needed, also at the same time: compiled, loaded, and with
    /// its imports resolved.
    type Module: Send + Sync + 'static;

    /// The engine's name, as in `runtime.wasm.engine`.
    fn name(&self) -> &'static str;

    /// The engine's version, for the probe.
    fn version(&self) -> &'static str;

    /// What it can do that another engine cannot.
    fn capabilities(&self) -> EngineCapabilities {
        EngineCapabilities::default()
    }

    /// Everything that decides whether an artifact can be loaded: version, target, settings. Equal
    /// fingerprints mean that [`load`](Self::load) takes what [`compile`](Self::compile) made.
    fn fingerprint(&self) -> Vec<u8>;

    /// Compiles a module. Blocks, and may use the thread pool it is called in.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Image`](prx_runtime_core::ErrorKind::Image) for a module that is not valid.
    fn compile(&self, bytes: &[u8], kind: ModuleKind) -> Result<Vec<u8>>;

    /// Loads what [`compile`](Self::compile) made, and resolves the module's imports. Blocks.
    ///
    /// # Safety
    ///
    /// The artifact was made by `compile` of an engine with the same fingerprint and has not
    /// changed since; the file of an artifact does not change while the module lives.
    ///
    /// # Errors
    ///
    /// See [`LoadError`].
    unsafe fn load(
        &self,
        artifact: Artifact<'_>,
        kind: ModuleKind,
    ) -> Result<Self::Module, LoadError>;

    /// Makes a guest that runs when its future is polled, and ends when that is dropped. Neither
    /// blocks the thread for more than a few milliseconds at a time, whatever the guest does.
    ///
    /// # Errors
    ///
    /// A granted directory cannot be opened; the engine has no room for another guest.
    fn start(&self, module: &Self::Module, guest: Guest) -> Result<Started>;
}

/// What not every engine can do. The default is that it can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineCapabilities {
    /// It runs components, and not core modules only.
    pub components: bool,
    /// A guest that sets the times of a file finds them set afterwards.
    pub file_times: bool,
    /// A guest can give a file a second name (`link`).
    pub hard_links: bool,
    /// A guest that connects to where nobody listens is told so then, not when it first reads or
    /// writes.
    pub connect_errors: bool,
}

impl Default for EngineCapabilities {
    fn default() -> Self {
        Self {
            components: true,
            file_times: true,
            hard_links: true,
            connect_errors: true,
        }
    }
}

/// A compiled module.
#[derive(Debug)]
pub enum Artifact<'a> {
    /// In memory.
    Bytes(&'a [u8]),
    /// The first `len` bytes of a file that nobody changes, only ever replaces. An engine may map
    /// it.
    File {
        /// The file, open for reading and at its start.
        file: File,
        /// How much of it is the artifact.
        len: u64,
    },
}

/// Why something compiled could not be loaded.
#[derive(Debug)]
pub enum LoadError {
    /// The artifact is of another engine, version or configuration, or is damaged. Compiling again
    /// helps.
    Artifact(String),
    /// The module itself cannot be used: an import that nothing provides. Compiling again does not
    /// help.
    Module(Error),
}

/// What a guest is given, and all that it gets.
#[derive(Debug)]
pub struct Guest {
    /// The arguments, the first of which is the name of the program.
    pub args: Vec<String>,
    /// The environment.
    pub env: Vec<(String, String)>,
    /// The directories.
    pub preopens: Vec<Preopen>,
    /// Where the guest starts, as one of the preopens calls it; `None` without a workspace.
    pub working_dir: Option<String>,
    /// Whether TCP, UDP and name lookup are granted.
    pub network: bool,
    /// The memory of the guest over all its memories and tables, in bytes.
    pub max_memory: u64,
    /// Standard input.
    pub stdin: GuestInput,
    /// Standard output.
    pub stdout: GuestOutput,
    /// Standard error. A trap is described there.
    pub stderr: GuestOutput,
}

/// A directory of the host that a guest may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preopen {
    /// The directory of the host.
    pub host: PathBuf,
    /// Where the guest sees it.
    pub guest: String,
    /// Whether the guest may change anything in it.
    pub writable: bool,
}

/// A guest that was started.
pub struct Started {
    /// Runs the guest to its end. An error means that the guest never ran or that the engine broke
    /// off.
    pub run: Pin<Box<dyn Future<Output = Result<Exit>> + Send>>,
    /// Ends the guest where dropping `run` is not enough to do so at once, because a guest of this
    /// engine also runs while nobody polls.
    pub kill_switch: Option<KillSwitch>,
}

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Started")
    }
}

impl std::fmt::Display for Preopen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rights = if self.writable {
            "read and write"
        } else {
            "read"
        };
        write!(
            f,
            "`{}` as `{}` ({rights})",
            self.host.display(),
            self.guest
        )
    }
}
