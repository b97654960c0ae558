//! A place to run guests in: directories, a configuration, and requests.

use std::path::{Path, PathBuf};

use prx_fixtures::Guest;
use prx_runtime_core::config::{ByteSize, Config, ConfigPath};
use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter as _};
use prx_runtime_wasmtime::WasmtimeRuntime;
use tempfile::TempDir;

/// Directories of one test, and a configuration that knows them.
pub(crate) struct Place {
    root: TempDir,
    pub(crate) config: Config,
}

impl Place {
    /// The working directory is granted for reading and writing, nothing else is granted. The
    /// modules are the fixtures; what is compiled is shared between tests.
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["workspace", "modules"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        let mut config = Config::default();
        let wasm = &mut config.runtime.wasm;
        wasm.module_path = config_path(&prx_fixtures::guests());
        wasm.cache_path = Some(config_path(
            &Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm"),
        ));
        wasm.capabilities.filesystem_read = Vec::new();
        wasm.capabilities.filesystem_write = vec!["/workspace".to_owned()];
        wasm.capabilities.env_vars = Vec::new();
        config.runtime.env_whitelist = Vec::new();
        config.runtime.kill_grace_ms = 500;
        Self { root, config }
    }

    /// As [`new`](Self::new), with a module directory and a cache of the test's own.
    pub(crate) fn with_own_modules() -> Self {
        let mut place = Self::new();
        place.config.runtime.wasm.module_path = config_path(&place.modules());
        place.config.runtime.wasm.cache_path = Some(config_path(&place.cache()));
        place
    }

    pub(crate) fn without_cache(mut self) -> Self {
        self.config.runtime.wasm.cache_size = ByteSize(0);
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.root().join("workspace")
    }

    pub(crate) fn modules(&self) -> PathBuf {
        self.root().join("modules")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.root().join("cache")
    }

    pub(crate) fn runtime(&self) -> WasmtimeRuntime {
        WasmtimeRuntime::new(&self.config).unwrap()
    }

    /// A command in the working directory.
    pub(crate) fn request(&self, program: &str, args: &[&str]) -> ExecutionRequest {
        ExecutionRequest::program(program)
            .args(args.iter().copied())
            .working_dir(self.workspace())
    }

    /// One of the programs of the guest `BOX`.
    pub(crate) fn boxed(&self, args: &[&str]) -> ExecutionRequest {
        self.request(Guest::BOX.name(), args)
    }

    /// Runs one of the programs of `BOX`.
    pub(crate) async fn run(&self, args: &[&str]) -> ExecutionOutput {
        self.runtime().run(self.boxed(args)).await.unwrap()
    }
}

pub(crate) fn config_path(path: &Path) -> ConfigPath {
    ConfigPath::new(path.to_str().unwrap())
}
