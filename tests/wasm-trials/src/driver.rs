//! The contract, in the words of the guest `BOX`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use prx_conformance::{Driver, Task};
use prx_fixtures::Guest;
use prx_runtime_core::config::{Config, ConfigPath, WasmEngineKind};
use prx_runtime_core::{ExecutionRequest, Result, RuntimeAdapter, async_trait};

/// Makes an adapter of an engine.
pub type Make = fn(&Config) -> Result<Arc<dyn RuntimeAdapter>>;

/// One of the engines, to be tried.
#[derive(Debug, Clone)]
pub struct WasmDriver {
    engine: WasmEngineKind,
    name: &'static str,
    cache: PathBuf,
    guest: Guest,
    directory: &'static str,
    adapted: bool,
    network: Option<Guest>,
    make: Make,
}

impl WasmDriver {
    /// The engine that `make` makes. What it compiles is kept below `scratch`, for the next time.
    pub fn new(engine: WasmEngineKind, name: &'static str, scratch: &Path, make: Make) -> Self {
        Self {
            engine,
            name,
            cache: scratch.join("wasm"),
            guest: Guest::BOX,
            directory: "/workspace",
            adapted: false,
            network: None,
            make,
        }
    }

    /// With another guest that does what `BOX` does.
    #[must_use]
    pub fn with_guest(mut self, guest: Guest) -> Self {
        self.guest = guest;
        self
    }

    /// Where a guest of this engine says that it is, if not in `/workspace`.
    #[must_use]
    pub fn with_directory(mut self, directory: &'static str) -> Self {
        self.directory = directory;
        self
    }

    /// With a component that was a module: the stable part of WASI 0.2 knows success and failure
    /// and no other codes, and the adapter has room for 64 KiB of arguments.
    #[must_use]
    pub fn adapted(mut self) -> Self {
        self.adapted = true;
        self
    }

    /// With a guest that uses the network, as `NETWORK` does: `connect PORT`.
    #[must_use]
    pub fn with_network(mut self, guest: Guest) -> Self {
        self.network = Some(guest);
        self
    }
}

#[async_trait]
impl Driver for WasmDriver {
    fn name(&self) -> &'static str {
        self.name
    }

    fn adapter_name(&self) -> &'static str {
        "wasm"
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        let wasm = &mut config.runtime.wasm;
        wasm.engine = self.engine;
        wasm.module_path = config_path(&prx_fixtures::guests());
        wasm.cache_path = Some(config_path(&self.cache));
        wasm.timeout_secs = 300;
        wasm.capabilities.filesystem_read = Vec::new();
        wasm.capabilities.filesystem_write = vec!["/workspace".to_owned()];
        config
    }

    async fn make(&self, config: &Config) -> Result<Arc<dyn RuntimeAdapter>> {
        let mut config = config.clone();
        // A guest gets a variable of the host that is on both lists; the trials are about one.
        let listed = config.runtime.env_whitelist.clone();
        config.runtime.wasm.capabilities.env_vars = listed;
        (self.make)(&config)
    }

    fn spell(&self, task: &Task) -> Option<ExecutionRequest> {
        if let Task::Connect(port) = task {
            let guest = self.network?;
            return Some(
                ExecutionRequest::program(guest.name()).args(["connect", &port.to_string()]),
            );
        }
        if self.adapted && is_beyond_the_adapter(task) {
            return None;
        }
        Some(ExecutionRequest::program(self.guest.name()).args(words(task)?))
    }

    fn guest_path(&self, _directory: &Path) -> PathBuf {
        self.directory.into()
    }

    fn ambient_variables(&self) -> &'static [&'static str] {
        &[]
    }

    fn set_literal(&self, config: &mut Config, name: &str, value: &str) -> bool {
        config
            .runtime
            .wasm
            .env
            .insert(name.to_owned(), value.to_owned());
        true
    }

    fn unusable(&self) -> Option<Config> {
        None
    }
}

/// Whether a module can do it, and not the component that is made of it.
fn is_beyond_the_adapter(task: &Task) -> bool {
    match task {
        Task::Exit(code) => *code > 1,
        Task::PrintArgs(args) => args.iter().map(String::len).sum::<usize>() > 32 << 10,
        _ => false,
    }
}

/// What `BOX` is told to do. `None` for what takes a process, a signal or a child.
fn words(task: &Task) -> Option<Vec<String>> {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    match task {
        Task::PrintArgs(args) => Some(
            std::iter::once("args".to_owned())
                .chain(args.iter().cloned())
                .collect(),
        ),
        Task::PrintEnv => words(&["env"]),
        Task::PrintVariable(name) => words(&["getenv", name]),
        Task::PrintDirectory => words(&["pwd"]),
        Task::Print { stdout, stderr } => words(&["print", &escaped(stdout), &escaped(stderr)]),
        Task::PrintPieces { pieces, pause } => {
            let pieces = pieces.iter().map(|piece| escaped(piece));
            Some(
                ["pieces".to_owned(), milliseconds(*pause)]
                    .into_iter()
                    .chain(pieces)
                    .collect(),
            )
        }
        Task::PrintThenSleep {
            stdout,
            stderr,
            sleep,
        } => words(&[
            "print-sleep",
            &escaped(stdout),
            &escaped(stderr),
            &milliseconds(*sleep),
        ]),
        Task::Fill { stdout, stderr } => words(&["fill", &stdout.to_string(), &stderr.to_string()]),
        Task::CopyStdin => words(&["cat"]),
        Task::CopySome(count) => words(&["head", &count.to_string()]),
        Task::EchoLines => words(&["echo-lines"]),
        Task::Exit(code) => words(&["exit", &code.to_string()]),
        Task::Sleep(time) => words(&["sleep", &milliseconds(*time)]),
        Task::Spin => words(&["spin"]),
        Task::CloseOutputThenSleep(time) => words(&["close-sleep", &milliseconds(*time)]),
        Task::Mark(marker) => words(&["mark", &marker.file, &milliseconds(marker.delay)]),
        Task::ReadFile(path) => words(&["read", path.to_str()?]),
        Task::WriteFile { file, text } => words(&["write", file, text]),
        _ => None,
    }
}

fn milliseconds(time: Duration) -> String {
    time.as_millis().to_string()
}

/// Bytes as `BOX` reads them: everything but plain characters as `\ooo`.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        if byte.is_ascii_graphic() && byte != b'\\' || byte == b' ' {
            text.push(char::from(byte));
        } else {
            // Writing to a string does not fail.
            let _ = write!(text, "\\{byte:03o}");
        }
    }
    text
}

/// A path in the configuration.
pub fn config_path(path: &Path) -> ConfigPath {
    ConfigPath::new(path.to_string_lossy())
}
