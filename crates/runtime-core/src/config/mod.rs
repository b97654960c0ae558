//! Everything an operator can set, as types.
//!
//! One file, shared with the other settings of an agent, is read by [`Config::load`]. Each section
//! is a struct whose `Default` holds the defaults and whose documentation is the reference: the
//! default file, the JSON schema and the reference page are generated from them (`reference`, with
//! the feature `schema`).

mod byte_size;
mod check;
mod config_path;
mod cpu_limit;
mod decimal;
mod deserializer;
mod docker;
mod document;
mod duration;
mod env_table;
mod fault;
mod grant;
mod image_reference;
mod narrow;
mod native;
#[cfg(feature = "schema")]
pub mod reference;
mod root;
mod runtime;
mod security;
mod tools;
mod wasm;

#[cfg(test)]
mod tests;

pub use byte_size::ByteSize;
pub use config_path::ConfigPath;
pub use cpu_limit::CpuLimit;
pub use docker::{DockerConfig, DockerNetwork};
pub use duration::parse_duration;
pub use env_table::EnvTable;
pub use grant::{Grant, GrantHost};
pub use native::NativeConfig;
pub use root::Config;
pub use runtime::{MinimumIsolation, RuntimeConfig};
pub use security::{ResourceLimits, SandboxConfig, SandboxKind, SandboxLevel, SecurityConfig};
pub use tools::{ToolCapabilities, ToolConfig, ToolKind, ToolsConfig};
pub use wasm::{WasmCapabilities, WasmConfig, WasmEngineKind};
