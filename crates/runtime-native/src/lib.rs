//! The native backend of prx-runtime: a command is a local process in a group of its own, and
//! everything it starts ends with it.
//!
//! ```no_run
//! use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, config::Config};
//! use prx_runtime_native::NativeRuntime;
//!
//! # async fn example() -> prx_runtime_core::Result<()> {
//! let runtime = NativeRuntime::new(&Config::default())?;
//! let output = runtime.run(ExecutionRequest::program("ls").arg("-la")).await?;
//! println!("{}", output.stdout);
//! # Ok(())
//! # }
//! ```
//!
//! # What ends a tree
//!
//! The command leads a process group, which one signal reaches. Processes that left the group, by
//! `setsid` or a double fork, are found on Linux by a random cookie in their environment
//! ([`EXECUTION_ID_VARIABLE`](prx_runtime_core::EXECUTION_ID_VARIABLE)) and by their ancestry, and
//! are signalled through descriptors, so that a recycled pid is never hit. A process that both
//! leaves the group and wipes its environment, and whose parent ends before the command does, is
//! out of reach of a bare process: confine the command in a sandbox with a PID namespace where
//! that matters.
//!
//! Tested on Linux. The code for other systems is written with care and untested.

mod adapter;
mod command;
#[cfg(target_os = "linux")]
mod confined;
#[cfg(not(target_os = "linux"))]
#[path = "unconfined.rs"]
mod confined;
mod error;
mod harden;
mod probe;
mod prune;
mod pump;
mod running;
mod shell;
#[cfg(target_os = "linux")]
mod spawn_thread;
mod tree;

pub use adapter::NativeRuntime;
pub use harden::{HostHardening, harden_host};
pub use prune::{PruneReport, prune};
