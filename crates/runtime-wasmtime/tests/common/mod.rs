//! A place to run guests in, on wasmtime.

use std::path::Path;
use std::sync::Arc;

use prx_fixtures::Guest;
use prx_runtime_core::config::WasmEngineKind;
use prx_runtime_wasmtime::WasmtimeRuntime;
use prx_wasm_trials::Place;

/// The guest that uses the network.
pub(crate) const NETWORK: Guest = Guest::NETWORK;

pub(crate) fn place() -> Place {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    Place::new(WasmEngineKind::Wasmtime, scratch, |config| {
        Ok(Arc::new(WasmtimeRuntime::new(config)?))
    })
}

/// The runtime of a place, with what only this one has.
pub(crate) fn engine(place: &Place) -> WasmtimeRuntime {
    WasmtimeRuntime::new(&place.config).unwrap()
}
