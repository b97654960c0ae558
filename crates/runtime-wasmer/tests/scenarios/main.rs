//! What holds for guests on wasmer, one file for each kind of behaviour. Where the same holds on
//! wasmtime, it is the same file.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
mod common;

#[path = "../../../runtime-wasmtime/tests/scenarios/environment.rs"]
mod environment;
#[path = "../../../runtime-wasmtime/tests/scenarios/files.rs"]
mod files;
#[path = "../../../runtime-wasmtime/tests/scenarios/network.rs"]
mod network;
#[path = "../../../runtime-wasmtime/tests/scenarios/race.rs"]
mod race;
#[path = "../../../runtime-wasmtime/tests/scenarios/read_only.rs"]
mod read_only;
#[path = "../../../runtime-wasmtime/tests/scenarios/sockets.rs"]
mod sockets;

mod limits;
mod refused;
