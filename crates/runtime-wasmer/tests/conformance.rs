//! The contract, on wasmer.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use prx_fixtures::Guest;
use prx_runtime_core::config::WasmEngineKind;
use prx_runtime_wasmer::WasmerRuntime;
use prx_wasm_trials::WasmDriver;

fn main() -> ExitCode {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let driver = WasmDriver::new(WasmEngineKind::Wasmer, "wasmer", scratch, |config| {
        Ok(Arc::new(WasmerRuntime::new(config)?))
    });
    // A module is in its working directory, and its C library calls that the root.
    let driver = driver.with_directory("/");
    prx_conformance::main(driver.with_network(Guest::WASIX_NETWORK))
}
