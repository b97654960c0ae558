//! One way to run an agent's commands, wherever they run: as local processes, in containers, in
//! WebAssembly. Which one is a line of `config.toml`; the call, its result and its rules stay.
//!
//! ```
//! use std::collections::HashMap;
//! use std::time::Duration;
//!
//! use prx_runtime::{config::Config, create_runtime};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> prx_runtime::Result<()> {
//! let config = Config::from_toml_str("[runtime]\nbackend = \"native\"", "config.toml")?;
//! let runtime = create_runtime(&config).await?;
//! let args = ["-n".to_owned(), "hello".to_owned()];
//! let output = runtime
//!     .execute("echo", &args, &HashMap::new(), None, Duration::from_secs(5))
//!     .await?;
//! assert_eq!((output.stdout.to_string().as_str(), output.exit_code), ("hello", 0));
//! # Ok(())
//! # }
//! ```
//!
//! [`RuntimeAdapter`] is the trait, [`create_runtime`] the factory, [`config`] what it reads.

mod auto;
mod backends;
mod create;
mod diagnose;
#[cfg(feature = "native")]
mod local;
mod modules;
mod round_trip;
mod split;
mod sweep;
mod tools;

pub use backends::{BackendInfo, backends};
pub use create::{create_runtime, describe};
pub use diagnose::{Diagnosis, diagnose};
pub use modules::{CompiledModule, compile_module};
pub use prx_runtime_core::*;
pub use round_trip::RoundTrip;
pub use sweep::{SweepReport, sweep};
pub use tools::{Tool, ToolCall, ToolOrigin, ToolRegistry};

#[cfg(feature = "native")]
pub use prx_runtime_native as native;
#[cfg(feature = "native")]
pub use prx_runtime_native::{HostHardening, harden_host};

/// The example of the README, compiled and run.
#[cfg(all(doctest, feature = "native"))]
#[doc = include_str!("../../../README.md")]
struct Readme;
