//! What holds for one kind of call: any module, or one registered tool.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prx_runtime_core::config::{Config, ToolConfig, WasmConfig};
use prx_runtime_core::{EnvironmentRules, Error, ErrorKind, Isolation, Result};

use crate::grants::Grants;
use crate::isolation;

/// Limits and grants, resolved.
#[derive(Debug)]
pub(crate) struct Profile {
    pub(crate) tool: Option<Tool>,
    pub(crate) environment: EnvironmentRules,
    pub(crate) grants: Grants,
    pub(crate) network: bool,
    /// In bytes.
    pub(crate) max_memory: u64,
    pub(crate) time_limit: Duration,
    pub(crate) isolation: Arc<Isolation>,
}

/// A registered tool.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// As configured: absolute, or relative to the module directory.
    pub(crate) module: PathBuf,
    /// Arguments before those of the call.
    pub(crate) args: Vec<String>,
}

impl Profile {
    /// What holds where no tool is registered.
    pub(crate) fn common(config: &Config, engine: &'static str) -> Result<Self> {
        Self::new(config, None, engine)
    }

    /// What holds for the tool `name`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`], with the name of the tool.
    pub(crate) fn of_tool(
        config: &Config,
        name: &str,
        tool: &ToolConfig,
        engine: &'static str,
    ) -> Result<Self> {
        Self::new(config, Some((name, tool)), engine).map_err(|error| {
            Error::new(ErrorKind::InvalidConfig, format!("tools.custom.{name}")).with_source(error)
        })
    }

    fn new(
        config: &Config,
        tool: Option<(&str, &ToolConfig)>,
        engine: &'static str,
    ) -> Result<Self> {
        let wasm = effective(&config.runtime.wasm, tool.map(|(_, tool)| tool));
        let capabilities = &wasm.capabilities;
        let environment = EnvironmentRules::new(&config.runtime.env_whitelist, wasm.env.iter())?
            .host_variables_only(&capabilities.env_vars);
        let grants = Grants::new(capabilities.read_grants()?, capabilities.write_grants()?)?;
        let max_memory = wasm.max_memory().0;
        let isolation = isolation::describe(engine, &grants, capabilities.network, max_memory);
        Ok(Self {
            tool: tool.map(|(name, tool)| Tool::new(name, tool)).transpose()?,
            environment,
            grants,
            network: capabilities.network,
            max_memory,
            time_limit: wasm.timeout(),
            isolation: Arc::new(isolation),
        })
    }
}

/// `[runtime.wasm]` with what the tool says otherwise.
fn effective(wasm: &WasmConfig, tool: Option<&ToolConfig>) -> WasmConfig {
    let mut wasm = wasm.clone();
    let Some(tool) = tool else { return wasm };
    if let Some(seconds) = tool.timeout_secs {
        wasm.timeout_secs = wasm.timeout_secs.min(seconds);
    }
    if let Some(mebibytes) = tool.max_memory_mb {
        wasm.max_memory_mb = mebibytes;
    }
    for (name, value) in tool.env.iter() {
        wasm.env.insert(name.clone(), value.clone());
    }
    if let Some(tool) = &tool.capabilities {
        let own = &mut wasm.capabilities;
        own.filesystem_read.clone_from(
            tool.filesystem_read
                .as_ref()
                .unwrap_or(&own.filesystem_read.clone()),
        );
        own.filesystem_write.clone_from(
            tool.filesystem_write
                .as_ref()
                .unwrap_or(&own.filesystem_write.clone()),
        );
        own.env_vars
            .clone_from(tool.env_vars.as_ref().unwrap_or(&own.env_vars.clone()));
        own.network = tool.network.unwrap_or(own.network);
    }
    wasm
}

impl Tool {
    fn new(name: &str, tool: &ToolConfig) -> Result<Self> {
        let module = tool.module.as_ref().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidConfig,
                "a tool of type \"wasm\" needs `module`",
            )
        })?;
        Ok(Self {
            name: name.to_owned(),
            module: module.expand()?,
            args: tool.args.clone(),
        })
    }
}
