//! `[runtime]`

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::byte_size;
use super::check;
use super::docker::DockerConfig;
use super::fault::Fault;
use super::native::NativeConfig;
use super::wasm::WasmConfig;

/// Where commands run, and the rules that hold wherever that is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RuntimeConfig {
    /// Where commands run: `native`, `docker`, `wasm`, or `auto` for the best there is: Docker if
    /// its engine answers, else WebAssembly for what is a module, else native.
    ///
    /// Default: `"auto"`.
    pub backend: String,

    /// How long a command may run that sets no time of its own, in seconds; at least 1.
    ///
    /// Default: `60`.
    pub default_timeout_secs: u64,

    /// How much is kept of each of a command's two output streams, as a number of bytes or a size;
    /// at least 1. Of longer output the beginning and the end are kept, half and half.
    ///
    /// Default: `1048576`.
    #[serde(deserialize_with = "byte_size::deserialize_usize")]
    #[cfg_attr(feature = "schema", schemars(with = "byte_size::ByteSize"))]
    pub max_output_bytes: usize,

    /// The variables of the host and of a call that reach a command; all others are dropped.
    /// Variables that load code and names of secrets are refused here.
    ///
    /// Default: `["PATH", "HOME", "TERM", "LANG", "USER"]`.
    pub env_whitelist: Vec<String>,

    /// How long a command has to end after it was asked to, before it is killed, in milliseconds;
    /// `0` kills at once.
    ///
    /// Default: `2000`.
    pub kill_grace_ms: u64,

    /// How many commands run at the same time; at least 1. Further calls wait for a slot. Each
    /// backend in use counts for itself, and so does each registered tool that has an image or
    /// variables of its own.
    ///
    /// Default: `64`.
    pub max_concurrent: usize,

    /// How long a call waits for a slot before it is refused, in seconds; `0` refuses at once. This
    /// time does not count against the command's own.
    ///
    /// Default: `60`.
    pub queue_timeout_secs: u64,

    /// The weakest isolation that is acceptable. A backend below it is refused, and `auto` does not
    /// choose one.
    ///
    /// Default: `"none"`.
    pub minimum_isolation: MinimumIsolation,

    /// Commands as processes of this machine.
    pub native: NativeConfig,

    /// One fresh container for every command.
    pub docker: DockerConfig,

    /// Commands as WebAssembly modules.
    pub wasm: WasmConfig,
}

/// The weakest isolation that is acceptable. Ordered: a later one is stronger.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum MinimumIsolation {
    /// A process with the rights of the user who runs the host will do.
    #[default]
    None,
    /// At least a process that the kernel confines.
    Sandbox,
    /// At least a container, or a WebAssembly guest.
    Container,
}

impl MinimumIsolation {
    /// The name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sandbox => "sandbox",
            Self::Container => "container",
        }
    }
}

impl fmt::Display for MinimumIsolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Default for RuntimeConfig {
    fn default() -> Self {
        Self {
            backend: "auto".to_owned(),
            default_timeout_secs: 60,
            max_output_bytes: 1 << 20,
            env_whitelist: ["PATH", "HOME", "TERM", "LANG", "USER"]
                .map(str::to_owned)
                .to_vec(),
            kill_grace_ms: 2000,
            max_concurrent: 64,
            queue_timeout_secs: 60,
            minimum_isolation: MinimumIsolation::None,
            native: NativeConfig::default(),
            docker: DockerConfig::default(),
            wasm: WasmConfig::default(),
        }
    }
}

impl RuntimeConfig {
    /// How long a command may run that sets no time of its own.
    pub const fn default_timeout(&self) -> Duration {
        Duration::from_secs(self.default_timeout_secs)
    }

    /// How long a command has to end after it was asked to.
    pub const fn kill_grace(&self) -> Duration {
        Duration::from_millis(self.kill_grace_ms)
    }

    /// How long a call waits for a slot.
    pub const fn queue_timeout(&self) -> Duration {
        Duration::from_secs(self.queue_timeout_secs)
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        check::not_empty(
            "backend",
            &self.backend,
            "the name of a backend such as \"native\", \"docker\", \"wasm\" or \"auto\"",
        )?;
        check::positive("default_timeout_secs", self.default_timeout_secs)?;
        check_count("max_output_bytes", self.max_output_bytes)?;
        check::host_variables("env_whitelist", &self.env_whitelist)?;
        check_count("max_concurrent", self.max_concurrent)?;
        self.native.check().map_err(|fault| fault.under("native"))?;
        self.docker.check().map_err(|fault| fault.under("docker"))?;
        self.wasm.check().map_err(|fault| fault.under("wasm"))
    }
}

fn check_count(key: &str, count: usize) -> Result<(), Fault> {
    check::positive(key, count.try_into().unwrap_or(u64::MAX))
}
