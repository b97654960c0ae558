//! The engine, built once.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use prx_runtime_core::Result;
use prx_runtime_wasm::{
    Artifact, EngineCapabilities, Guest, LoadError, ModuleKind, Started, WasmEngine,
};
use wasmer::sys::{
    CompilerConfig as _, Cranelift, CraneliftOptLevel, EngineBuilder, NativeEngineExt as _, vm,
};
use wasmer::{Engine, Module};

use crate::error::{component, invalid};
use crate::guest;
use crate::imports;
use crate::thread::Reaper;
use crate::turns::Turns;

/// wasmer, with WASI and WASIX.
pub(crate) struct WasmerEngine {
    engine: Engine,
    reaper: Reaper,
}

impl WasmerEngine {
    pub(crate) fn new() -> Self {
        Self {
            engine: compiler(),
            reaper: Reaper::default(),
        }
    }
}

/// An engine that compiles one module: what is changed in a module is of that module.
fn compiler() -> Engine {
    let mut cranelift = Cranelift::new();
    cranelift.opt_level(CraneliftOptLevel::Speed);
    cranelift.push_middleware(Arc::new(Turns::default()));
    EngineBuilder::new(cranelift).engine().into()
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
        // It does not wait for the answer.
        capabilities.connect_errors = false;
        capabilities
    }

    fn fingerprint(&self) -> Vec<u8> {
        let target = self.engine.target();
        format!(
            "{} cranelift speed turns {} {:?}",
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
        let module = Module::from_binary(&compiler(), bytes).map_err(|error| invalid(&error))?;
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
