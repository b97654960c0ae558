//! `[runtime.wasm]` and `[runtime.wasm.capabilities]`

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::byte_size::ByteSize;
use super::check;
use super::config_path::ConfigPath;
use super::env_table::EnvTable;
use super::fault::Fault;
use super::grant::Grant;
use crate::Result;

/// Commands as WebAssembly modules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WasmConfig {
    /// The engine that runs the modules. The host must have been built with it.
    ///
    /// Default: `"wasmtime"`.
    pub engine: WasmEngineKind,

    /// The directory that holds the modules: the command `name` is `name.wasm` there.
    ///
    /// Default: `"~/.local/share/openprx/wasm/"`.
    pub module_path: ConfigPath,

    /// The longest time of one call, in seconds; at least 1. A call's own timeout may be shorter,
    /// not longer.
    ///
    /// Default: `30`.
    pub timeout_secs: u64,

    /// The memory of one call over all memories of the guest, in MiB; at least 1.
    ///
    /// Default: `128`.
    pub max_memory_mb: u64,

    /// The private directory that keeps compiled modules between runs.
    ///
    /// Default: none, which is the user's cache directory.
    #[cfg_attr(feature = "schema", schemars(example = &"~/.cache/prx-runtime/wasm"))]
    pub cache_path: Option<ConfigPath>,

    /// The size to which the directory of compiled modules may grow; `0` keeps none.
    ///
    /// Default: `"1g"`.
    pub cache_size: ByteSize,

    /// Variables set for every guest, over what is granted to it.
    ///
    /// Default: `{}`.
    #[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"RUST_BACKTRACE": "1"})))]
    pub env: EnvTable,

    /// What guests may reach. They reach nothing else.
    pub capabilities: WasmCapabilities,
}

/// What a WebAssembly guest may reach.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct WasmCapabilities {
    /// Directories the guest may read. `/workspace` is the working directory of the execution; any
    /// other entry is a path of the host, seen at the same place, or `host::guest`.
    ///
    /// Default: `["/workspace"]`.
    pub filesystem_read: Vec<String>,

    /// Directories the guest may read and write, written like those of `filesystem_read`.
    ///
    /// Default: `["/tmp"]`.
    pub filesystem_write: Vec<String>,

    /// Whether the guest may use the network.
    ///
    /// Default: `false`.
    pub network: bool,

    /// Variables of the host the guest may see; each must be on `runtime.env_whitelist`, too.
    ///
    /// Default: `["HOME", "USER"]`.
    pub env_vars: Vec<String>,

    /// The same as `runtime.wasm.timeout_secs`, in seconds. Accepted here because it is easily
    /// written below the header of this table, as the published example does; set to two different
    /// values it is an error.
    ///
    /// Default: none, which leaves it to `runtime.wasm.timeout_secs`.
    #[cfg_attr(feature = "schema", schemars(example = 30))]
    pub timeout_secs: Option<u64>,

    /// The same as `runtime.wasm.max_memory_mb`, in MiB. Accepted here because it is easily written
    /// below the header of this table, as the published example does; set to two different values
    /// it is an error.
    ///
    /// Default: none, which leaves it to `runtime.wasm.max_memory_mb`.
    #[cfg_attr(feature = "schema", schemars(example = 128))]
    pub max_memory_mb: Option<u64>,
}

/// The engines that run WebAssembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum WasmEngineKind {
    /// Wasmtime, of the Bytecode Alliance.
    #[default]
    Wasmtime,
    /// Wasmer.
    Wasmer,
}

impl WasmEngineKind {
    /// The name in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wasmtime => "wasmtime",
            Self::Wasmer => "wasmer",
        }
    }
}

impl fmt::Display for WasmEngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Default for WasmConfig {
    fn default() -> Self {
        Self {
            engine: WasmEngineKind::Wasmtime,
            module_path: ConfigPath::new("~/.local/share/openprx/wasm/"),
            timeout_secs: 30,
            max_memory_mb: 128,
            cache_path: None,
            cache_size: ByteSize::mebibytes(1024),
            env: EnvTable::default(),
            capabilities: WasmCapabilities::default(),
        }
    }
}

impl Default for WasmCapabilities {
    fn default() -> Self {
        Self {
            filesystem_read: vec!["/workspace".to_owned()],
            filesystem_write: vec!["/tmp".to_owned()],
            network: false,
            env_vars: vec!["HOME".to_owned(), "USER".to_owned()],
            timeout_secs: None,
            max_memory_mb: None,
        }
    }
}

impl WasmConfig {
    /// The longest time of one call.
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_secs)
    }

    /// The memory of one call.
    pub const fn max_memory(&self) -> ByteSize {
        ByteSize::mebibytes(self.max_memory_mb)
    }

    /// Moves the limits written below the header of the capabilities to where they belong.
    /// `is_set` tells whether a key of this section stands in the file.
    pub(super) fn hoist(&mut self, is_set: impl Fn(&str) -> bool) -> Result<(), Fault> {
        let inner = &mut self.capabilities;
        for (key, own, misplaced) in [
            (
                "timeout_secs",
                &mut self.timeout_secs,
                &mut inner.timeout_secs,
            ),
            (
                "max_memory_mb",
                &mut self.max_memory_mb,
                &mut inner.max_memory_mb,
            ),
        ] {
            if let Some(value) = *misplaced {
                if is_set(key) {
                    agree(key, *own, value)?;
                }
                *own = value;
                *misplaced = None;
            }
        }
        Ok(())
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        check::path("module_path", Some(&self.module_path))?;
        check::positive("timeout_secs", self.timeout_secs)?;
        check::mebibytes("max_memory_mb", self.max_memory_mb)?;
        check::path("cache_path", self.cache_path.as_ref())?;
        check::env_table(&self.env)?;
        // A file was hoisted when it was loaded; this is for what was made in code.
        for (key, own, misplaced) in [
            (
                "timeout_secs",
                self.timeout_secs,
                self.capabilities.timeout_secs,
            ),
            (
                "max_memory_mb",
                self.max_memory_mb,
                self.capabilities.max_memory_mb,
            ),
        ] {
            misplaced.map_or(Ok(()), |value| agree(key, own, value))?;
        }
        self.capabilities
            .check()
            .map_err(|fault| fault.under("capabilities"))
    }
}

/// The two places of a limit say the same.
fn agree(key: &str, own: u64, misplaced: u64) -> Result<(), Fault> {
    if own == misplaced {
        return Ok(());
    }
    Err(Fault::at(
        key,
        format!("found {misplaced}, but `runtime.wasm.{key}` is {own}; expected one of the two"),
    )
    .under("capabilities"))
}

impl WasmCapabilities {
    /// What the guest may read, beside what it may write.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`](crate::ErrorKind::InvalidConfig) for an entry that is no grant,
    /// and for `~` without a home directory.
    pub fn read_grants(&self) -> Result<Vec<Grant>> {
        self.filesystem_read
            .iter()
            .map(|text| text.parse())
            .collect()
    }

    /// What the guest may read and write.
    ///
    /// # Errors
    ///
    /// Those of [`WasmCapabilities::read_grants`].
    pub fn write_grants(&self) -> Result<Vec<Grant>> {
        self.filesystem_write
            .iter()
            .map(|text| text.parse())
            .collect()
    }

    fn check(&self) -> Result<(), Fault> {
        check_grants(&self.filesystem_read, &self.filesystem_write)?;
        check::host_variables("env_vars", &self.env_vars)
    }
}

/// Each entry is a grant, and no place of the guest stands for two of the host.
pub(super) fn check_grants(read: &[String], write: &[String]) -> Result<(), Fault> {
    let mut seen: Vec<Grant> = Vec::new();
    for (key, texts) in [("filesystem_read", read), ("filesystem_write", write)] {
        for (index, text) in texts.iter().enumerate() {
            let at = |problem: String| Fault::new(problem).under_index(index).under(key);
            let grant = Grant::check(text).map_err(at)?;
            if seen
                .iter()
                .any(|other| other.guest == grant.guest && other.host != grant.host)
            {
                return Err(at(format!(
                    "{text:?} puts a second directory at {:?} of the guest",
                    grant.guest
                )));
            }
            seen.push(grant);
        }
    }
    Ok(())
}
