//! The engine, built once.

use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::Read as _;

use prx_runtime_core::{Error, ErrorKind, Result};
use prx_runtime_wasm::{Artifact, Guest, LoadError, ModuleKind, Started, WasmEngine};
use wasmtime::component::{Component, Linker as ComponentLinker};
use wasmtime::{Engine, Linker, Module, ModuleVersionStrategy};
use wasmtime_wasi::{I32Exit, p1, p2};

use crate::config::{self, Sizes};
use crate::error::{invalid, text_of, unlinkable};
use crate::guest::{self, Ready, State};
use crate::ticker::Ticker;

/// wasmtime, with WASI.
pub(crate) struct WasmtimeEngine {
    engine: Engine,
    modules: Linker<State>,
    components: ComponentLinker<State>,
    ticker: Ticker,
}

/// A module of this engine.
pub(crate) struct WasmtimeModule(Ready);

impl WasmtimeEngine {
    /// An engine with room for guests of these sizes.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] where wasmtime does not work on this machine.
    pub(crate) fn new(sizes: Sizes) -> Result<Self> {
        let engine = Engine::new(&config::pooling(sizes)).or_else(|error| {
            tracing::info!(
                error = text_of(&error),
                "guests start a little slower: room for them cannot be reserved"
            );
            Engine::new(&config::on_demand())
        });
        let engine = engine.map_err(|error| unavailable(&error))?;
        let mut modules = Linker::new(&engine);
        let mut components = ComponentLinker::new(&engine);
        link_modules(&mut modules).map_err(|error| unavailable(&error))?;
        p2::add_to_linker_async(&mut components).map_err(|error| unavailable(&error))?;
        Ok(Self {
            ticker: Ticker::new(engine.clone()),
            engine,
            modules,
            components,
        })
    }
}

fn link_modules(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    p1::add_to_linker_async(linker, State::p1)?;
    // wasmtime's own refuses the statuses from 126 on; a command may end with any.
    linker.allow_shadowing(true);
    linker.func_wrap(
        "wasi_snapshot_preview1",
        "proc_exit",
        |status: i32| -> wasmtime::Result<()> { Err(I32Exit(status).into()) },
    )?;
    linker.allow_shadowing(false);
    Ok(())
}

fn unavailable(error: &wasmtime::Error) -> Error {
    Error::new(
        ErrorKind::Unavailable,
        format!("wasmtime does not work here: {}", text_of(error)),
    )
}

impl WasmEngine for WasmtimeEngine {
    type Module = WasmtimeModule;

    fn name(&self) -> &'static str {
        "wasmtime"
    }

    fn version(&self) -> &'static str {
        ModuleVersionStrategy::WasmtimeVersion.as_str()
    }

    fn fingerprint(&self) -> Vec<u8> {
        let mut bytes = Collected(Vec::new());
        self.engine.precompile_compatibility_hash().hash(&mut bytes);
        bytes.0
    }

    fn compile(&self, bytes: &[u8], kind: ModuleKind) -> Result<Vec<u8>> {
        match kind {
            ModuleKind::Core => self.engine.precompile_module(bytes),
            ModuleKind::Component => self.engine.precompile_component(bytes),
        }
        .map_err(|error| invalid(&error))
    }

    unsafe fn load(
        &self,
        artifact: Artifact<'_>,
        kind: ModuleKind,
    ) -> Result<WasmtimeModule, LoadError> {
        let engine = &self.engine;
        let damaged = |error: wasmtime::Error| LoadError::Artifact(text_of(&error));
        let refused = |error: wasmtime::Error| LoadError::Module(unlinkable(&error));
        Ok(WasmtimeModule(match kind {
            ModuleKind::Core => {
                // SAFETY: the caller's promise is the one that these functions ask for.
                let module = unsafe {
                    match artifact {
                        Artifact::Bytes(bytes) => Module::deserialize(engine, bytes),
                        Artifact::File { file, .. } => Module::deserialize_open_file(engine, file),
                    }
                }
                .map_err(damaged)?;
                let start = module
                    .get_export_index("_start")
                    .ok_or_else(|| LoadError::Artifact("it exports no `_start`".to_owned()))?;
                let pre = self.modules.instantiate_pre(&module).map_err(refused)?;
                Ready::Core { pre, start }
            }
            ModuleKind::Component => {
                // SAFETY: as above.
                let component = unsafe {
                    match artifact {
                        Artifact::Bytes(bytes) => Component::deserialize(engine, bytes),
                        Artifact::File { file, len } => {
                            read(file, len).and_then(|bytes| Component::deserialize(engine, bytes))
                        }
                    }
                }
                .map_err(damaged)?;
                Ready::Component(guest::command(&self.components, &component).map_err(refused)?)
            }
        }))
    }

    fn start(&self, module: &WasmtimeModule, guest: Guest) -> Result<Started> {
        guest::start(&self.engine, &self.ticker, &module.0, guest)
    }
}

/// Components cannot be mapped from an open file.
fn read(file: File, len: u64) -> wasmtime::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(len)?);
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Takes in what is hashed instead of hashing it: a fingerprint that is kept between processes
/// must not depend on a hasher.
struct Collected(Vec<u8>);

impl Hasher for Collected {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}
