//! A tool, as it is listed.

use std::path::PathBuf;

use prx_runtime_core::config::{ToolConfig, ToolKind};

/// A tool that can be run by name.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What runs it.
    pub kind: ToolKind,
    /// What it is for, where the configuration says.
    pub description: Option<String>,
    /// Where it comes from.
    pub origin: ToolOrigin,
}

/// Where a tool comes from.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ToolOrigin {
    /// `[tools.custom]`.
    Configured(Box<ToolConfig>),
    /// A file in `runtime.wasm.module_path`.
    Discovered(PathBuf),
}

impl Tool {
    pub(super) fn configured(name: &str, config: &ToolConfig) -> Self {
        Self {
            name: name.to_owned(),
            kind: config.kind,
            description: config.description.clone(),
            origin: ToolOrigin::Configured(Box::new(config.clone())),
        }
    }

    pub(super) fn discovered(name: String, file: PathBuf) -> Self {
        Self {
            name,
            kind: ToolKind::Wasm,
            description: None,
            origin: ToolOrigin::Discovered(file),
        }
    }
}
