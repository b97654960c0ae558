//! `[tools.custom.NAME]`

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::check;
use super::config_path::ConfigPath;
use super::env_table::EnvTable;
use super::fault::{Fault, list};
use super::narrow;
use super::wasm::{WasmConfig, check_grants};

/// Tools by name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolsConfig {
    /// The tools, each in a table of its own name: letters, digits, `.`, `_` and `-`, not starting
    /// with `.`.
    pub custom: BTreeMap<String, ToolConfig>,
}

/// One tool: what runs it, and with which limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolConfig {
    /// What runs the tool, whatever `runtime.backend` says.
    ///
    /// Default: none; a tool has to say it.
    #[serde(rename = "type")]
    #[cfg_attr(feature = "schema", schemars(example = &"wasm"))]
    pub kind: ToolKind,

    /// The module of a `wasm` tool, required there: a file in `runtime.wasm.module_path`, or a path.
    ///
    /// Default: none.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(example = &"skill.wasm"))]
    pub module: Option<ConfigPath>,

    /// The program of a `native` tool, required there, or of a `docker` tool.
    ///
    /// Default: none.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(example = &"rg"))]
    pub command: Option<String>,

    /// The image of a `docker` tool.
    ///
    /// Default: none, which is `runtime.docker.image` or the entry of `tool_images`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(example = &"python:3.12-slim"))]
    pub image: Option<String>,

    /// Arguments that stand before those of a call.
    ///
    /// Default: `[]`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(example = ["--json"]))]
    pub args: Vec<String>,

    /// What the tool is for, in one line.
    ///
    /// Default: none.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(example = &"counts words"))]
    pub description: Option<String>,

    /// How long a call may take, in seconds; at least 1.
    ///
    /// Default: none, which is `runtime.default_timeout_secs`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(example = 30))]
    pub timeout_secs: Option<u64>,

    /// The memory of a call of a `wasm` tool, in MiB; at least 1.
    ///
    /// Default: none, which is `runtime.wasm.max_memory_mb`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(example = 128))]
    pub max_memory_mb: Option<u64>,

    /// Variables set for the tool, over those of its backend.
    ///
    /// Default: `{}`.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"MODE": "fast"})))]
    pub env: EnvTable,

    /// What a `wasm` tool may reach, where it differs from `runtime.wasm.capabilities`.
    #[serde(default)]
    pub capabilities: Option<ToolCapabilities>,
}

/// What a `wasm` tool may reach: at most what `[runtime.wasm.capabilities]` grants. A key that is
/// left out is as there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolCapabilities {
    /// Directories the tool may read.
    ///
    /// Default: none, which is as in `[runtime.wasm.capabilities]`.
    #[cfg_attr(feature = "schema", schemars(example = ["/workspace"]))]
    pub filesystem_read: Option<Vec<String>>,

    /// Directories the tool may read and write.
    ///
    /// Default: none, which is as in `[runtime.wasm.capabilities]`.
    #[cfg_attr(feature = "schema", schemars(example = ["/tmp"]))]
    pub filesystem_write: Option<Vec<String>>,

    /// Whether the tool may use the network.
    ///
    /// Default: none, which is as in `[runtime.wasm.capabilities]`.
    #[cfg_attr(feature = "schema", schemars(example = false))]
    pub network: Option<bool>,

    /// Variables of the host the tool may see; each must be on `runtime.env_whitelist`, too.
    ///
    /// Default: none, which is as in `[runtime.wasm.capabilities]`.
    #[cfg_attr(feature = "schema", schemars(example = ["HOME"]))]
    pub env_vars: Option<Vec<String>>,
}

/// What runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolKind {
    /// A WebAssembly module.
    Wasm,
    /// A process of this machine.
    Native,
    /// A container.
    Docker,
}

impl ToolKind {
    /// The name in the configuration; also the name of the backend.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wasm => "wasm",
            Self::Native => "native",
            Self::Docker => "docker",
        }
    }
}

impl fmt::Display for ToolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ToolsConfig {
    pub(super) fn check(&self, wasm: &WasmConfig) -> Result<(), Fault> {
        self.custom
            .iter()
            .try_for_each(|(name, tool)| {
                check_name(name)
                    .and_then(|()| tool.check())
                    .and_then(|()| narrow::check(tool, wasm))
                    .map_err(|fault| fault.under(name))
            })
            .map_err(|fault| fault.under("custom"))
    }
}

/// The name of a tool can stand in a command line and be a file name.
fn check_name(name: &str) -> Result<(), Fault> {
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.starts_with('.') || !name.bytes().all(letter) {
        return Err(Fault::new(format!(
            "{name:?} is no name of a tool; \
             expected letters, digits, `.`, `_` and `-`, not starting with `.`"
        )));
    }
    Ok(())
}

impl ToolConfig {
    /// A tool that has nothing but its kind.
    pub fn new(kind: ToolKind) -> Self {
        Self {
            kind,
            module: None,
            command: None,
            image: None,
            args: Vec::new(),
            description: None,
            timeout_secs: None,
            max_memory_mb: None,
            env: EnvTable::default(),
            capabilities: None,
        }
    }

    fn check(&self) -> Result<(), Fault> {
        self.check_keys()?;
        check::path("module", self.module.as_ref())?;
        if let Some(command) = &self.command {
            check::not_empty("command", command, "the name or path of a program")?;
        }
        if let Some(image) = &self.image {
            check::image("image", image)?;
        }
        check::each("args", &self.args, |argument| check::no_nul(argument))?;
        if let Some(seconds) = self.timeout_secs {
            check::positive("timeout_secs", seconds)?;
        }
        if let Some(mebibytes) = self.max_memory_mb {
            check::mebibytes("max_memory_mb", mebibytes)?;
        }
        check::env_table(&self.env)?;
        if let Some(capabilities) = &self.capabilities {
            capabilities
                .check()
                .map_err(|fault| fault.under("capabilities"))?;
        }
        Ok(())
    }

    /// Nothing is missing for the kind, and nothing is set that means nothing to it.
    fn check_keys(&self) -> Result<(), Fault> {
        use ToolKind::{Docker, Native, Wasm};

        let keys: [(&str, bool, &[ToolKind]); 5] = [
            ("module", self.module.is_some(), &[Wasm]),
            ("command", self.command.is_some(), &[Native, Docker]),
            ("image", self.image.is_some(), &[Docker]),
            ("max_memory_mb", self.max_memory_mb.is_some(), &[Wasm]),
            ("capabilities", self.capabilities.is_some(), &[Wasm]),
        ];
        for (key, is_set, kinds) in keys {
            if is_set && !kinds.contains(&self.kind) {
                let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
                return Err(Fault::at(
                    key,
                    format!(
                        "means nothing to a tool of type \"{}\"; it belongs to type {}",
                        self.kind,
                        list(&kinds, '"')
                    ),
                ));
            }
        }
        let missing = match self.kind {
            Wasm if self.module.is_none() => "`module`",
            Native if self.command.is_none() => "`command`",
            Docker if self.image.is_none() && self.command.is_none() => "`image` or `command`",
            _ => return Ok(()),
        };
        Err(Fault::new(format!(
            "a tool of type \"{}\" needs {missing}",
            self.kind
        )))
    }
}

impl ToolCapabilities {
    fn check(&self) -> Result<(), Fault> {
        let grants = |grants: &Option<Vec<String>>| grants.clone().unwrap_or_default();
        check_grants(
            &grants(&self.filesystem_read),
            &grants(&self.filesystem_write),
        )?;
        check::host_variables("env_vars", self.env_vars.as_deref().unwrap_or_default())
    }
}
