//! Real programs, on wasmtime.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "only a part of it is needed here")]
mod common;

use std::process::ExitCode;

fn main() -> ExitCode {
    prx_wasm_trials::programs("wasmtime", common::place)
}
