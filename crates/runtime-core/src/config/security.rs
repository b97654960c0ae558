//! `[security.sandbox]` and `[security.resources]`

use std::fmt;

use serde::{Deserialize, Serialize};

use super::check;
use super::config_path::ConfigPath;
use super::fault::{Fault, list, nearest};

/// What confines local commands.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SecurityConfig {
    /// The sandbox around local commands.
    pub sandbox: SandboxConfig,

    /// Limits of the operating system for local commands.
    pub resources: ResourceLimits,
}

/// The sandbox around local commands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct SandboxConfig {
    /// What confines the command. `auto` takes the first that works on this machine.
    ///
    /// Default: `"none"`.
    pub backend: SandboxKind,

    /// Whether commands may use the network.
    ///
    /// Default: `false`.
    pub allow_network: bool,

    /// Directories commands may write, beside their working directory: absolute, or below `~`.
    ///
    /// Default: `["/tmp"]`.
    pub writable_paths: Vec<ConfigPath>,

    /// Directories commands may read and not write, also where they lie below a writable one.
    ///
    /// Default: `[]`.
    #[cfg_attr(feature = "schema", schemars(example = ["/srv/data"]))]
    pub readonly_paths: Vec<ConfigPath>,

    /// Directories and files commands must not see, wherever they lie.
    ///
    /// Default: `[]`.
    #[cfg_attr(feature = "schema", schemars(example = ["~/.ssh"]))]
    pub hidden_paths: Vec<ConfigPath>,

    /// What happens where the machine cannot enforce all of this.
    ///
    /// Default: `"require"`.
    pub level: SandboxLevel,
}

/// What confines a local command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum SandboxKind {
    /// The first that works on this machine: bubblewrap, landlock, firejail.
    Auto,
    /// Namespaces, by the program `bwrap`.
    Bubblewrap,
    /// The kernel's Landlock, without a program.
    Landlock,
    /// Namespaces, by the program `firejail`.
    Firejail,
    /// Nothing: commands have the rights of the user who runs the host.
    #[default]
    None,
}

impl SandboxKind {
    /// Every kind, by its name in the configuration.
    const NAMES: [&str; 5] = ["auto", "bubblewrap", "landlock", "firejail", "none"];

    /// The name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Firejail => "firejail",
            Self::None => "none",
        }
    }

    /// The kind called `name`, or what is wrong with the name.
    fn named(name: &str) -> Result<Self, String> {
        let expected = || list(&Self::NAMES, '"');
        Ok(match name {
            "auto" => Self::Auto,
            "bubblewrap" => Self::Bubblewrap,
            "landlock" => Self::Landlock,
            "firejail" => Self::Firejail,
            "none" => Self::None,
            "docker" | "wasm" => {
                return Err(format!(
                    "{name:?} is a runtime and no sandbox: set `runtime.backend = {name:?}`; \
                     expected {}",
                    expected()
                ));
            }
            other => {
                let near = match nearest(other, &Self::NAMES) {
                    Some(near) => format!("; did you mean {near:?}?"),
                    None => String::new(),
                };
                return Err(format!("found {other:?}, expected {}{near}", expected()));
            }
        })
    }
}

impl fmt::Display for SandboxKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// By hand, because a runtime in the place of a sandbox deserves words of its own.
impl<'de> Deserialize<'de> for SandboxKind {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).map_err(serde::de::Error::custom)
    }
}

/// How strictly the sandbox is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SandboxLevel {
    /// All of it is enforced, or the command does not run.
    #[default]
    Require,
    /// What can be enforced is, and the result says what was not.
    BestEffort,
}

impl SandboxLevel {
    /// The name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Require => "require",
            Self::BestEffort => "best-effort",
        }
    }
}

impl fmt::Display for SandboxLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Limits of the operating system for a local command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// The memory of a command, in MiB; at least 1.
    ///
    /// Default: none, which is no limit.
    #[cfg_attr(feature = "schema", schemars(example = 512))]
    pub max_memory_mb: Option<u64>,

    /// The processor time of a command, in seconds; at least 1.
    ///
    /// Default: none, which is no limit.
    #[cfg_attr(feature = "schema", schemars(example = 60))]
    pub max_cpu_time_seconds: Option<u64>,

    /// The number of processes a command may start; at least 1.
    ///
    /// Default: none, which is no limit.
    #[cfg_attr(feature = "schema", schemars(example = 10))]
    pub max_subprocesses: Option<u64>,

    /// The number of files each process of a command may hold open; at least 1.
    ///
    /// Default: none, which is no limit.
    #[cfg_attr(feature = "schema", schemars(example = 256))]
    pub max_open_files: Option<u64>,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self {
            backend: SandboxKind::None,
            allow_network: false,
            writable_paths: vec![ConfigPath::new("/tmp")],
            readonly_paths: Vec::new(),
            hidden_paths: Vec::new(),
            level: SandboxLevel::Require,
        }
    }
}

impl SecurityConfig {
    pub(super) fn check(&self) -> Result<(), Fault> {
        self.sandbox
            .check()
            .map_err(|fault| fault.under("sandbox"))?;
        self.resources
            .check()
            .map_err(|fault| fault.under("resources"))
    }
}

impl SandboxConfig {
    fn check(&self) -> Result<(), Fault> {
        check::absolute_paths("writable_paths", &self.writable_paths)?;
        check::absolute_paths("readonly_paths", &self.readonly_paths)?;
        check::absolute_paths("hidden_paths", &self.hidden_paths)
    }
}

impl ResourceLimits {
    /// Whether nothing is limited.
    pub const fn is_unlimited(&self) -> bool {
        self.max_memory_mb.is_none()
            && self.max_cpu_time_seconds.is_none()
            && self.max_subprocesses.is_none()
            && self.max_open_files.is_none()
    }

    fn check(&self) -> Result<(), Fault> {
        check::positive_limit("max_memory_mb", self.max_memory_mb)?;
        if let Some(mebibytes) = self.max_memory_mb {
            check::mebibytes("max_memory_mb", mebibytes)?;
        }
        check::positive_limit("max_cpu_time_seconds", self.max_cpu_time_seconds)?;
        check::positive_limit("max_subprocesses", self.max_subprocesses)?;
        check::positive_limit("max_open_files", self.max_open_files)
    }
}
