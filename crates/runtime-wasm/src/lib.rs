//! What the WebAssembly engines share. An engine compiles modules and runs guests
//! ([`WasmEngine`]), and nothing else; everything around that is here, once: which module a
//! command means, what kind of module it is, what the guest is granted, how long the compiled form
//! is kept, and how an end is reported. [`WasmRuntime`] puts it together and is the only
//! [`RuntimeAdapter`](prx_runtime_core::RuntimeAdapter) for WebAssembly.
//!
//! A call on a module that was used before costs one `stat` of its file, the directories that are
//! granted being opened, and the guest itself: no task, no thread, no channel.

mod adapter;
mod cache;
mod command;
mod compile;
mod directory;
mod engine;
mod error;
mod grants;
mod inspect;
mod isolation;
mod kind;
mod lookup;
mod modules;
mod probe;
mod profile;
mod running;
mod source;
mod stdio;

pub use adapter::{Compiled, WasmRuntime};
pub use directory::{Entry, EntryKind, GrantedDirectory, OpenHow};
pub use engine::{Artifact, EngineCapabilities, Guest, LoadError, Preopen, Started, WasmEngine};
pub use error::exit_status;
pub use kind::ModuleKind;
pub use stdio::{GuestInput, GuestOutput, InputRead, WRITE_PERMIT};
