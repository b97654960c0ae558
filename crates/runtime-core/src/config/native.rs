//! `[runtime.native]`

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::check;
use super::env_table::EnvTable;
use super::fault::Fault;

/// Commands as processes of this machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct NativeConfig {
    /// The shell that runs a command given as one line, called as `SHELL -c LINE`: an absolute
    /// path. A shell that is named here and missing is an error.
    ///
    /// Default: none, which is `/bin/bash`, or `/bin/sh` on a machine that has no bash (on Windows
    /// `cmd.exe`).
    #[cfg_attr(feature = "schema", schemars(with = "Option<super::ConfigPath>", example = &"/bin/bash"))]
    pub shell: Option<PathBuf>,

    /// Variables set for every command, over what `env_whitelist` lets through. Unlike the
    /// whitelist this table may hold variables of loaders and interpreters.
    ///
    /// Default: `{}`.
    #[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"RUSTFLAGS": "-D warnings"})))]
    pub env: EnvTable,
}

impl NativeConfig {
    /// The shell to start with: the configured one, else [`NativeConfig::DEFAULT_SHELL`].
    ///
    /// Only where [`NativeConfig::shell`] is `None` may a backend fall back to another shell.
    pub fn shell(&self) -> &Path {
        self.shell
            .as_deref()
            .unwrap_or(Path::new(Self::DEFAULT_SHELL))
    }

    /// The shell where none is configured.
    pub const DEFAULT_SHELL: &str = if cfg!(windows) {
        "cmd.exe"
    } else {
        "/bin/bash"
    };

    pub(super) fn check(&self) -> Result<(), Fault> {
        if let Some(shell) = &self.shell
            && !shell.is_absolute()
        {
            let problem =
                format!("{shell:?} is no absolute path; expected one such as \"/bin/bash\"");
            return Err(Fault::at("shell", problem));
        }
        check::env_table(&self.env)
    }
}
