//! The whole configuration, and how it is read, checked and written.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::deserializer::from_table;
use super::document::Document;
use super::fault::Fault;
use super::runtime::RuntimeConfig;
use super::security::{SandboxKind, SecurityConfig};
use super::tools::{ToolKind, ToolsConfig};
use crate::{Error, ErrorKind, Result};

/// Everything an operator can set.
///
/// ```
/// # use prx_runtime_core::config::Config;
/// let config = Config::from_toml_str("[runtime]\nbackend = \"native\"\n", "config.toml")?;
/// assert_eq!(config.runtime.backend, "native");
///
/// let typo = Config::from_toml_str("[runtime.docker]\nmemry_limit = \"1g\"\n", "config.toml");
/// assert_eq!(
///     typo.unwrap_err().to_string(),
///     "config.toml:2: unknown key `runtime.docker.memry_limit`; did you mean `memory_limit`?"
/// );
/// # Ok::<(), prx_runtime_core::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Where commands run, and the rules that hold wherever that is.
    pub runtime: RuntimeConfig,

    /// What confines local commands.
    pub security: SecurityConfig,

    /// Tools by name.
    pub tools: ToolsConfig,
}

impl Config {
    /// Reads and checks a configuration. `origin` is what errors call the file.
    ///
    /// The file may be shared: sections other than `[runtime]`, `[security.sandbox]`,
    /// `[security.resources]` and `[tools.custom]` belong to others and are ignored. Inside ours an
    /// unknown key is an error. A section ignored whose name is close to one of ours is logged as a
    /// warning ([`Config::warnings`]).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] in one line: file, line, key, what was found, what is allowed.
    /// No value of an `env` table and no value of a wrong type is part of it.
    pub fn from_toml_str(text: &str, origin: impl AsRef<Path>) -> Result<Self> {
        let document = Document::parse(text, origin.as_ref())?;
        for warning in document.near_misses() {
            tracing::warn!("{warning}");
        }
        let read = || -> Result<Self, Fault> {
            let mut config: Self = from_table(document.ours())?;
            config
                .runtime
                .wasm
                .hoist(|key| document.has(&["runtime", "wasm", key]))
                .map_err(|fault| fault.under("wasm").under("runtime"))?;
            config.check()?;
            Ok(config)
        };
        read().map_err(|fault| document.error(&fault))
    }

    /// Reads and checks the configuration in a file, as [`Config::from_toml_str`] does.
    ///
    /// # Errors
    ///
    /// Those of [`Config::from_toml_str`], and [`ErrorKind::InvalidConfig`] for a file that cannot
    /// be read or is not UTF-8.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|error| {
            let message = format!("{}: the file cannot be read", path.display());
            Error::new(ErrorKind::InvalidConfig, message).with_source(error)
        })?;
        let text = str::from_utf8(&bytes).map_err(|error| {
            let valid = &bytes[..error.valid_up_to()];
            let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
            let message = format!("{}:{line}: the file is not UTF-8", path.display());
            Error::new(ErrorKind::InvalidConfig, message)
        })?;
        Self::from_toml_str(text, path)
    }

    /// Checks a configuration made in code. Loading a file does it by itself.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for the first value that cannot be meant, with its key.
    pub fn validate(&self) -> Result<()> {
        self.check()
            .map_err(|fault| Error::new(ErrorKind::InvalidConfig, fault.to_string()))
    }

    fn check(&self) -> Result<(), Fault> {
        self.runtime
            .check()
            .map_err(|fault| fault.under("runtime"))?;
        self.security
            .check()
            .map_err(|fault| fault.under("security"))?;
        self.tools
            .check(&self.runtime.wasm)
            .map_err(|fault| fault.under("tools"))?;
        self.check_that_the_sandbox_has_something_to_confine()
    }

    /// A sandbox that is asked for by name and confines nothing is taken for protection that is not
    /// there. `auto` is at ease with a backend that isolates by other means.
    fn check_that_the_sandbox_has_something_to_confine(&self) -> Result<(), Fault> {
        let sandbox = self.security.sandbox.backend;
        let local_tools = self.tools.custom.values();
        if self.runtime.backend != "docker"
            || matches!(sandbox, SandboxKind::None | SandboxKind::Auto)
            || local_tools
                .into_iter()
                .any(|tool| tool.kind == ToolKind::Native)
        {
            return Ok(());
        }
        let problem = format!(
            "\"{sandbox}\" confines local commands, and with `runtime.backend = \"docker\"` there \
             are none: the container isolates them; expected \"none\", or \"auto\" for a file that \
             is used with other backends too, or `runtime.backend = \"native\"`"
        );
        Err(Fault::at("backend", problem)
            .under("sandbox")
            .under("security"))
    }

    /// Sections of `text` that are ignored although their names are close to ours, such as
    /// `[runtim]` or `[security.sandbx]`: one line each, with file and line. Empty for a text that
    /// is no TOML; [`Config::from_toml_str`] says why.
    pub fn warnings(text: &str, origin: impl AsRef<Path>) -> Vec<String> {
        Document::parse(text, origin.as_ref())
            .map(|document| document.near_misses())
            .unwrap_or_default()
    }

    /// The configuration as a file that is read back as the same configuration.
    ///
    /// It holds the values of the `env` tables; for people to read, write the
    /// [`Config::redacted`] one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for what TOML cannot say: a path that is not UTF-8, an integer
    /// above [`i64::MAX`].
    pub fn to_toml(&self) -> Result<String> {
        toml::to_string(self).map_err(|error| {
            Error::new(
                ErrorKind::InvalidConfig,
                "the configuration cannot be written as TOML",
            )
            .with_source(error)
        })
    }

    /// The same configuration with `<hidden>` for every value of an `env` table.
    #[must_use]
    pub fn redacted(&self) -> Self {
        let mut config = self.clone();
        let runtime = &mut config.runtime;
        let tools = config.tools.custom.values_mut().map(|tool| &mut tool.env);
        for env in [
            &mut runtime.native.env,
            &mut runtime.docker.env,
            &mut runtime.wasm.env,
        ]
        .into_iter()
        .chain(tools)
        {
            *env = env.redacted();
        }
        config
    }
}
