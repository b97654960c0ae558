//! The engine, built once.

use std::fs::File;
use std::io::Read as _;

use prx_runtime_core::{Error, ErrorKind, Result};
use prx_runtime_wasm::{
    Artifact, EngineCapabilities, Guest, LoadError, ModuleKind, Started, WasmEngine,
};
use wasmer::sys::{Cranelift, CraneliftOptLevel, EngineBuilder, NativeEngineExt as _, vm};
use wasmer::{Engine, Module};

use crate::error::{component, invalid};
use crate::guest;
use crate::imports;
use crate::thread::Reaper;

/// wasmer, with WASI and WASIX.
pub(crate) struct WasmerEngine {
    engine: Engine,
    reaper: Reaper,
}

impl WasmerEngine {
    /// An engine.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`] on systems where nothing could end a guest.
    pub(crate) fn new() -> Result<Self> {
        if cfg!(not(unix)) {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "wasmer cannot end a guest that computes for ever on this system",
            )
            .with_hint("set runtime.wasm.engine = \"wasmtime\""));
        }
        let mut cranelift = Cranelift::new();
        cranelift.opt_level(CraneliftOptLevel::Speed);
        let engine: Engine = EngineBuilder::new(cranelift).engine().into();
        Ok(Self {
            engine,
            reaper: Reaper::default(),
        })
    }
}

impl WasmEngine for WasmerEngine {
    type Module = Module;

    fn name(&self) -> &'static str {
        "wasmer"
    }

    fn version(&self) -> &'static str {
        vm::VERSION
    }

    fn capabilities(&self) -> EngineCapabilities {
        let mut capabilities = EngineCapabilities::default();
        capabilities.components = false;
        // It notes the times that a guest sets, and does not tell the file system.
        capabilities.file_times = false;
        capabilities.hard_links = false;
        capabilities
    }

    fn fingerprint(&self) -> Vec<u8> {
        let target = self.engine.target();
        format!(
            "{} cranelift speed {} {:?}",
            vm::VERSION,
            target.triple(),
            target.cpu_features()
        )
        .into_bytes()
    }

    fn compile(&self, bytes: &[u8], kind: ModuleKind) -> Result<Vec<u8>> {
        if kind == ModuleKind::Component {
            return Err(component());
        }
        let module = Module::from_binary(&self.engine, bytes).map_err(|error| invalid(&error))?;
        let artifact = module.serialize().map_err(|error| invalid(&error))?;
        Ok(artifact.to_vec())
    }

    unsafe fn load(&self, artifact: Artifact<'_>, kind: ModuleKind) -> Result<Module, LoadError> {
        if kind == ModuleKind::Component {
            return Err(LoadError::Module(component()));
        }
        let read;
        let bytes = match artifact {
            Artifact::Bytes(bytes) => bytes,
            Artifact::File { file, len } => {
                read =
                    read_all(file, len).map_err(|error| LoadError::Artifact(error.to_string()))?;
                &read
            }
        };
        // SAFETY: the caller's promise is the one that this function asks for.
        let module = unsafe { Module::deserialize(&self.engine, bytes) }
            .map_err(|error| LoadError::Artifact(error.to_string()))?;
        imports::check(&self.engine, &module).map_err(LoadError::Module)?;
        Ok(module)
    }

    fn start(&self, module: &Module, guest: Guest) -> Result<Started> {
        guest::start(&self.engine, &self.reaper, module, guest)
    }
}

fn read_all(file: File, len: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(len).unwrap_or_default());
    file.take(len).read_to_end(&mut bytes)?;
    Ok(bytes)
}
