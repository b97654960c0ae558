//! A place to run guests in, on wasmer.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use prx_fixtures::Guest;
use prx_runtime_core::config::WasmEngineKind;
use prx_runtime_wasmer::WasmerRuntime;

/// The guest that uses the network.
pub(crate) const NETWORK: Guest = Guest::WASIX_NETWORK;

pub(crate) struct Place(prx_wasm_trials::Place);

/// A place, for what is tried on both engines.
pub(crate) fn place() -> prx_wasm_trials::Place {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR"));
    prx_wasm_trials::Place::new(WasmEngineKind::Wasmer, scratch, |config| {
        Ok(Arc::new(WasmerRuntime::new(config)?))
    })
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(place())
    }

    pub(crate) fn runtime(&self) -> WasmerRuntime {
        WasmerRuntime::new(&self.0.config).unwrap()
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
