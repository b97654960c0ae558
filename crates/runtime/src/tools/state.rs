//! What a registry knows under one configuration.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prx_runtime_core::config::{Config, ToolConfig, ToolKind};
use prx_runtime_core::{Description, Error, ErrorKind, ExecutionRequest, Result, RuntimeAdapter};
use tokio::sync::OnceCell;

use super::call::ToolCall;
use super::discover;
use super::tool::{Tool, ToolOrigin};
use crate::backends::Purpose;
use crate::create;

/// One configuration and the adapters that were made for it. Executions hold on to the one they
/// were started under.
pub(super) struct State {
    config: Config,
    /// By backend and, where a tool has variables or an image of its own, its name. Made when
    /// first needed.
    adapters: Mutex<BTreeMap<Key, Arc<Slot>>>,
}

type Key = (&'static str, String);
type Slot = OnceCell<Arc<dyn RuntimeAdapter>>;

impl State {
    pub(super) fn new(config: &Config) -> Result<Self> {
        config.validate()?;
        Ok(Self {
            config: config.clone(),
            adapters: Mutex::default(),
        })
    }

    /// All tools, sorted by name. A registered one hides a skill of the same name.
    pub(super) fn list(&self) -> Result<Vec<Tool>> {
        let configured = &self.config.tools.custom;
        let mut tools: BTreeMap<String, Tool> = configured
            .iter()
            .map(|(name, tool)| (name.clone(), Tool::configured(name, tool)))
            .collect();
        for (name, file) in discover::skills(&discover::directory(&self.config.runtime.wasm)?)? {
            tools
                .entry(name.clone())
                .or_insert_with(|| Tool::discovered(name, file));
        }
        Ok(tools.into_values().collect())
    }

    pub(super) fn resolve(&self, name: &str) -> Result<Tool> {
        if let Some(tool) = self.config.tools.custom.get(name) {
            return Ok(Tool::configured(name, tool));
        }
        let tools = self.list()?;
        if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
            return Ok(tool.clone());
        }
        let directory = discover::directory(&self.config.runtime.wasm)?;
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let error = Error::new(
            ErrorKind::ProgramNotFound,
            format!(
                "there is no tool `{name}`; searched [tools.custom] and `{}`",
                directory.display()
            ),
        );
        Err(if names.is_empty() {
            error.with_hint("register it in config.toml, or put its module into that directory")
        } else {
            error.with_hint(format!("there are: {}", names.join(", ")))
        })
    }

    /// The adapter for a tool and the request that runs it there.
    pub(super) async fn prepare(
        &self,
        name: &str,
        call: ToolCall,
    ) -> Result<(Arc<dyn RuntimeAdapter>, ExecutionRequest)> {
        let tool = self.resolve(name)?;
        let request = request(&tool, call)?;
        Ok((self.adapter(&tool).await?, request))
    }

    /// What a call would do.
    pub(super) async fn describe(&self, name: &str, call: ToolCall) -> Result<Description> {
        let tool = self.resolve(name)?;
        let request = request(&tool, call)?;
        let own = self.own_config(&tool);
        let config = own.as_ref().unwrap_or(&self.config);
        // One of its own: those that are kept have what they need.
        let backend = create::find(tool.kind.as_str())?;
        let made = create::create(backend, config, Purpose::Look).await?;
        made.adapter.describe(&request)
    }

    /// The configuration of a tool that has something of its own.
    fn own_config(&self, tool: &Tool) -> Option<Config> {
        match &tool.origin {
            // The WebAssembly backend knows registered tools and their limits by itself.
            ToolOrigin::Configured(own) if own.kind != ToolKind::Wasm => {
                with_own(&self.config, &tool.name, own)
            }
            _ => None,
        }
    }

    async fn adapter(&self, tool: &Tool) -> Result<Arc<dyn RuntimeAdapter>> {
        let config = self.own_config(tool);
        let own_name = if config.is_some() {
            tool.name.clone()
        } else {
            String::new()
        };
        let key = (tool.kind.as_str(), own_name);
        let cell = {
            let mut adapters = self.adapters.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(adapters.entry(key).or_default())
        };
        // Two first calls make one adapter; calls of other tools do not wait for it.
        let make = || async {
            let backend = create::find(tool.kind.as_str())?;
            let made = create::create(
                backend,
                config.as_ref().unwrap_or(&self.config),
                Purpose::Named,
            )
            .await?;
            Ok(made.adapter)
        };
        cell.get_or_try_init(make).await.map(Arc::clone)
    }
}

/// The configuration with what a tool has of its own; `None` where it has nothing.
fn with_own(config: &Config, name: &str, tool: &ToolConfig) -> Option<Config> {
    let mut config = config.clone();
    let runtime = &mut config.runtime;
    let env = match tool.kind {
        ToolKind::Docker => &mut runtime.docker.env,
        _ => &mut runtime.native.env,
    };
    for (variable, value) in tool.env.iter() {
        env.insert(variable.clone(), value.clone());
    }
    if let Some(image) = &tool.image {
        runtime
            .docker
            .tool_images
            .insert(name.to_owned(), image.clone());
        // So that the image that is checked is the one that will be used.
        runtime.docker.image.clone_from(image);
    }
    (!tool.env.is_empty() || tool.image.is_some()).then_some(config)
}

fn request(tool: &Tool, mut call: ToolCall) -> Result<ExecutionRequest> {
    let args = std::mem::take(&mut call.args);
    let asked = call.timeout;
    let (mut words, own_timeout) = match &tool.origin {
        ToolOrigin::Discovered(_) => (vec![tool.name.clone()], None),
        ToolOrigin::Configured(config) => {
            let own_timeout = config.timeout_secs.map(Duration::from_secs);
            let words = match config.kind {
                // Its own arguments are added by the backend.
                ToolKind::Wasm => vec![tool.name.clone()],
                _ => config.command.iter().chain(&config.args).cloned().collect(),
            };
            (words, own_timeout)
        }
    };
    words.extend(args);
    let mut words = words.into_iter();
    let program = words.next().ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidRequest,
            format!(
                "the tool `{}` has no command, and the call gives none",
                tool.name
            ),
        )
        .with_hint(format!(
            "set tools.custom.{}.command, or give the command as the first argument",
            tool.name
        ))
    })?;
    let mut request = ExecutionRequest::program(program)
        .args(words)
        .tool(&tool.name);
    let timeout = match (asked, own_timeout) {
        (Some(asked), Some(own)) => Some(asked.min(own)),
        (asked, own) => asked.or(own),
    };
    if let Some(timeout) = timeout {
        request = request.timeout(timeout);
    }
    Ok(call.apply(request))
}
