//! What holds for guests on wasmtime, one file for each kind of behaviour.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod cache;
mod calls;
mod changes;
mod environment;
mod files;
mod network;
mod race;
mod read_only;
mod sockets;
