//! The contract, for components on wasmtime.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use prx_fixtures::Guest;
use prx_runtime_core::config::WasmEngineKind;
use prx_runtime_wasmtime::WasmtimeRuntime;
use prx_wasm_trials::WasmDriver;

fn main() -> ExitCode {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let driver = WasmDriver::new(WasmEngineKind::Wasmtime, "wasmtime", scratch, |config| {
        Ok(Arc::new(WasmtimeRuntime::new(config)?))
    });
    prx_conformance::main(
        driver
            .with_guest(Guest::BOX_COMPONENT)
            // A component's C library, too, calls its working directory the root.
            .with_directory("/")
            .adapted()
            .with_network(Guest::NETWORK),
    )
}
