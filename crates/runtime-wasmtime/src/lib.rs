//! WebAssembly by wasmtime. The engine compiles and runs, and nothing else; what the two engines
//! share is in `prx-runtime-wasm`.
//!
//! A guest runs on the thread that polls its execution, on a stack of its own, and gives that
//! thread back every few milliseconds, so that a guest that spins disturbs nothing else on a
//! runtime of one thread. It ends where its future is dropped.

mod adapter;
mod config;
mod engine;
mod error;
mod guest;
mod limiter;
mod network;
mod stdio;
mod ticker;

pub use adapter::WasmtimeRuntime;
