//! A place to run guests in, on wasmtime.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use prx_fixtures::Guest;
use prx_runtime_core::config::WasmEngineKind;
use prx_runtime_wasmtime::WasmtimeRuntime;

/// The guest that uses the network.
pub(crate) const NETWORK: Guest = Guest::NETWORK;

pub(crate) struct Place(prx_wasm_trials::Place);

/// A place, for what is tried on both engines.
pub(crate) fn place() -> prx_wasm_trials::Place {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    prx_wasm_trials::Place::new(WasmEngineKind::Wasmtime, scratch, |config| {
        Ok(Arc::new(WasmtimeRuntime::new(config)?))
    })
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(place())
    }

    pub(crate) fn with_own_modules() -> Self {
        Self(place().with_own_modules())
    }

    pub(crate) fn without_cache(self) -> Self {
        Self(self.0.without_cache())
    }

    pub(crate) fn runtime(&self) -> WasmtimeRuntime {
        WasmtimeRuntime::new(&self.0.config).unwrap()
    }
}

impl Deref for Place {
    type Target = prx_wasm_trials::Place;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Place {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
