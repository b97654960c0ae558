//! What really held around an execution.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

/// How strong an isolation is, by class. Ordered: a later one is stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum IsolationLevel {
    /// A process with the caller's rights.
    None,
    /// A process that the kernel confines.
    Sandbox,
    /// A container of its own, or a WebAssembly guest without ambient authority.
    Container,
}

impl IsolationLevel {
    /// The name used in the configuration: `none`, `sandbox`, `container`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sandbox => "sandbox",
            Self::Container => "container",
        }
    }
}

impl fmt::Display for IsolationLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Something of the host that the command could reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Exposure {
    /// Files of the host outside of the working directory, at least to be read.
    FileSystem,
    /// Modes, owners and times of files that the command may not write and its user owns.
    FileMetadata,
    /// The host's network.
    Network,
    /// The environment of the host process, readable through `/proc` by a process of the same user.
    HostEnvironment,
    /// The host's other processes: they can be listed, and signalled with the caller's rights.
    HostProcesses,
    /// Unix sockets of the host, such as those of a container engine.
    UnixSockets,
    /// System calls that no filter forbids.
    SystemCalls,
}

impl Exposure {
    /// The name used in JSON, such as `file_system`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::FileSystem => "file_system",
            Self::FileMetadata => "file_metadata",
            Self::Network => "network",
            Self::HostEnvironment => "host_environment",
            Self::HostProcesses => "host_processes",
            Self::UnixSockets => "unix_sockets",
            Self::SystemCalls => "system_calls",
        }
    }
}

/// What was really in force around an execution, as the backend established it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Isolation {
    /// The class of the isolation.
    pub level: IsolationLevel,
    /// What was applied, in words: `process group`, `bubblewrap`, `seccomp`, `memory limit 256 MiB`.
    pub applied: Vec<Cow<'static, str>>,
    /// What stayed open to the command.
    pub open: Vec<Exposure>,
    /// What was configured and could not be enforced, which only `level = "best-effort"` permits.
    pub not_enforced: Vec<Cow<'static, str>>,
}

impl Isolation {
    /// An isolation of `level` with nothing applied and nothing known to be open.
    pub fn new(level: IsolationLevel) -> Self {
        Self {
            level,
            applied: Vec::new(),
            open: Vec::new(),
            not_enforced: Vec::new(),
        }
    }

    /// Adds something that was applied.
    #[must_use]
    pub fn applied(mut self, what: impl Into<Cow<'static, str>>) -> Self {
        self.applied.push(what.into());
        self
    }

    /// Adds something that stayed open.
    #[must_use]
    pub fn open(mut self, what: Exposure) -> Self {
        self.open.push(what);
        self
    }

    /// Adds something that was configured and is not in force.
    #[must_use]
    pub fn not_enforced(mut self, what: impl Into<Cow<'static, str>>) -> Self {
        self.not_enforced.push(what.into());
        self
    }
}

impl Default for Isolation {
    /// No isolation that is known of: what an adapter that says nothing has.
    fn default() -> Self {
        Self::new(IsolationLevel::None)
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.level)?;
        if !self.applied.is_empty() {
            write!(f, "; applied: {}", self.applied.join(", "))?;
        }
        if !self.open.is_empty() {
            let open: Vec<_> = self.open.iter().map(|what| what.as_str()).collect();
            write!(f, "; open: {}", open.join(", "))?;
        }
        if !self.not_enforced.is_empty() {
            write!(f, "; not enforced: {}", self.not_enforced.join(", "))?;
        }
        Ok(())
    }
}
