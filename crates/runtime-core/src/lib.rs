//! What every backend of prx-runtime shares: the [`RuntimeAdapter`] trait, what goes in
//! ([`ExecutionRequest`]) and what comes out ([`ExecutionOutput`], [`Execution`]), the rules for
//! the environment, the bounded capture of output, the supervisor that applies deadline and
//! clean-up, the configuration types, and the error type.
//!
//! A backend implements [`backend::Backend`]: one operation that starts a command and hands out
//! something that can be waited for and ended. Everything a caller sees is built on that by the
//! [`Supervisor`], so that no backend has a deadline or a capture loop of its own.

pub mod backend;
pub mod config;
#[cfg(unix)]
pub mod confine;

mod adapter;
mod audit;
mod capture;
mod captured;
mod describe;
mod environment;
mod environment_names;
mod error;
mod execution;
mod id;
mod isolation;
mod output;
mod owner;
mod plan;
mod probe;
mod request;
mod sink;
mod supervisor;

pub use adapter::{Capabilities, RuntimeAdapter};
pub use async_trait::async_trait;
pub use capture::Capture;
pub use captured::Captured;
pub use describe::{DescribedVariable, Description};
pub use environment::{EXECUTION_ID_VARIABLE, Environment, EnvironmentRules, Source};
pub use environment_names::{is_loader_variable, is_secret_shaped};
pub use error::{Error, ErrorKind, Result};
pub use execution::{Execution, ExecutionControl, ExecutionReader, ExecutionStdin};
pub use id::ExecutionId;
pub use isolation::{Exposure, Isolation, IsolationLevel};
pub use output::{ExecutionOutput, Termination};
pub use owner::{Owner, OwnerState};
pub use plan::Plan;
pub use probe::Probe;
pub use request::{ExecutionRequest, Invocation, Stdin};
pub use sink::{OutputSink, StdinSource, Stdio};
pub use supervisor::Supervisor;
