//! A place to run guests in: directories, a configuration, and requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prx_fixtures::Guest;
use prx_runtime_core::config::{ByteSize, Config, WasmEngineKind};
use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter};
use tempfile::TempDir;

use crate::driver::{Make, config_path};

/// Directories of one test, and a configuration that knows them.
#[derive(Debug)]
pub struct Place {
    root: TempDir,
    /// The working directory is granted for reading and writing, nothing else is granted. The
    /// modules are the fixtures; what is compiled is shared between tests.
    pub config: Config,
    make: Make,
}

#[expect(
    clippy::missing_panics_doc,
    reason = "a test without its directories has failed"
)]
impl Place {
    /// A place for the engine that `make` makes. What it compiles is kept below `scratch`.
    pub fn new(engine: WasmEngineKind, scratch: &Path, make: Make) -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        for name in ["workspace", "modules"] {
            std::fs::create_dir(root.path().join(name)).expect("a directory");
        }
        let mut config = Config::default();
        let wasm = &mut config.runtime.wasm;
        wasm.engine = engine;
        wasm.module_path = config_path(&prx_fixtures::guests());
        wasm.cache_path = Some(config_path(&scratch.join("wasm")));
        wasm.capabilities.filesystem_read = Vec::new();
        wasm.capabilities.filesystem_write = vec!["/workspace".to_owned()];
        wasm.capabilities.env_vars = Vec::new();
        config.runtime.env_whitelist = Vec::new();
        config.runtime.kill_grace_ms = 500;
        Self { root, config, make }
    }

    /// With a module directory and a cache of the test's own.
    #[must_use]
    pub fn with_own_modules(mut self) -> Self {
        self.config.runtime.wasm.module_path = config_path(&self.modules());
        self.config.runtime.wasm.cache_path = Some(config_path(&self.cache()));
        self
    }

    /// Without a cache on disk.
    #[must_use]
    pub fn without_cache(mut self) -> Self {
        self.config.runtime.wasm.cache_size = ByteSize(0);
        self
    }

    /// Where everything is.
    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// The working directory of guests.
    pub fn workspace(&self) -> PathBuf {
        self.root().join("workspace")
    }

    /// The module directory of [`with_own_modules`](Self::with_own_modules).
    pub fn modules(&self) -> PathBuf {
        self.root().join("modules")
    }

    /// The cache of [`with_own_modules`](Self::with_own_modules).
    pub fn cache(&self) -> PathBuf {
        self.root().join("cache")
    }

    /// A runtime by the configuration as it is now.
    pub fn runtime(&self) -> Arc<dyn RuntimeAdapter> {
        (self.make)(&self.config).expect("a runtime")
    }

    /// A command in the working directory.
    pub fn request(&self, program: &str, args: &[&str]) -> ExecutionRequest {
        ExecutionRequest::program(program)
            .args(args.iter().copied())
            .working_dir(self.workspace())
    }

    /// One of the programs of the guest `BOX`.
    pub fn boxed(&self, args: &[&str]) -> ExecutionRequest {
        self.request(Guest::BOX.name(), args)
    }

    /// Runs one of the programs of `BOX`.
    pub async fn run(&self, args: &[&str]) -> ExecutionOutput {
        self.runtime()
            .run(self.boxed(args))
            .await
            .expect("the guest runs")
    }
}
