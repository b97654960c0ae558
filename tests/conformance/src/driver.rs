//! What a backend supplies to be tried.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prx_runtime_core::config::Config;
use prx_runtime_core::{
    EXECUTION_ID_VARIABLE, ExecutionRequest, Result, RuntimeAdapter, async_trait,
};

use crate::{Task, TokioKind};

/// A backend as the suite sees it: how it is made, and how it is told what to do.
///
/// Only the first four methods are required. A default of the others says what is so on most
/// backends; a backend on which it is not so overrides it, and thereby gates no trial.
///
/// A trial gives every guest a working directory below [`std::env::temp_dir`], and tasks name files
/// by names relative to it: a backend with a file system of its own has to show that directory to
/// the guest, readable and writable, as it does for any caller.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// The name in `PRX_REQUIRE_BACKENDS`: `native`, `docker`, `wasmtime`, …
    fn name(&self) -> &'static str;

    /// The configuration that the suite starts from. Trials change single keys of it, such as
    /// `runtime.env_whitelist` or `runtime.kill_grace_ms`.
    fn config(&self) -> Config;

    /// Makes an adapter, within the runtime of the trial. What this refuses, the trial sees as the
    /// backend's own refusal.
    ///
    /// # Errors
    ///
    /// Those of the backend's own constructor.
    async fn make(&self, config: &Config) -> Result<Arc<dyn RuntimeAdapter>>;

    /// Spells `task` for a guest of this backend, without working directory, timeout and stdin.
    /// `None` where the backend has no way to say it: the trial is gated then, and listed.
    fn spell(&self, task: &Task) -> Option<ExecutionRequest>;

    /// The name of the adapter itself: `wasm` for both engines.
    fn adapter_name(&self) -> &'static str {
        self.name()
    }

    /// How many trials run at one time unless `--test-threads` says: nearly all of them only wait.
    /// Fewer where a guest is dear to start.
    fn trials_at_once(&self) -> usize {
        16
    }

    /// The kinds of tokio runtime that each trial runs on. Fewer where a backend that was tried on
    /// all of them differs in nothing that has to do with them.
    fn tokio_kinds(&self) -> &'static [TokioKind] {
        &TokioKind::ALL
    }

    /// Where the guest sees `directory`, which is its working directory.
    fn guest_path(&self, directory: &Path) -> PathBuf {
        directory.to_owned()
    }

    /// Variables that a guest has although nobody asked for them.
    fn ambient_variables(&self) -> &'static [&'static str] {
        &[EXECUTION_ID_VARIABLE]
    }

    /// Sets an operator's variable in the backend's own table of `config`. Returns whether the
    /// backend has such a table.
    fn set_literal(&self, config: &mut Config, name: &str, value: &str) -> bool {
        let _ = (config, name, value);
        false
    }

    /// The configuration of a backend that cannot work: a socket that is not there, a shell that
    /// is missing.
    fn unusable(&self) -> Option<Config> {
        None
    }
}
