//! WebAssembly modules, compiled ahead of their first run.

use std::path::PathBuf;
use std::time::Duration;

use prx_runtime_core::config::Config;
use prx_runtime_core::{Error, ErrorKind, Result};

/// What compiling a module led to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompiledModule {
    /// The module's file, links resolved.
    pub module: PathBuf,
    /// What it is: `module` or `component`.
    pub kind: &'static str,
    /// How long compiling took; `None` where the compiled form was there already.
    pub compiled_in: Option<Duration>,
    /// The file of the compiled form; `None` where none is kept.
    pub entry: Option<PathBuf>,
}

/// Compiles the tool or module `program` for the configured engine and keeps the result, so that
/// its first run, in whatever process, need not.
///
/// # Errors
///
/// The engine is not compiled in; there is no such module, or it cannot be used.
pub async fn compile_module(config: &Config, program: &str) -> Result<CompiledModule> {
    config.validate()?;
    match config.runtime.wasm.engine {
        #[cfg(feature = "wasmtime")]
        prx_runtime_core::config::WasmEngineKind::Wasmtime => {
            let runtime = prx_runtime_wasmtime::WasmtimeRuntime::new(config)?;
            let compiled = runtime.compile(program).await?;
            Ok(CompiledModule {
                module: compiled.module,
                kind: compiled.kind.as_str(),
                compiled_in: compiled.compiled_in,
                entry: compiled.entry,
            })
        }
        #[cfg(feature = "wasmer")]
        prx_runtime_core::config::WasmEngineKind::Wasmer => {
            let runtime = prx_runtime_wasmer::WasmerRuntime::new(config)?;
            let compiled = runtime.compile(program).await?;
            Ok(CompiledModule {
                module: compiled.module,
                kind: compiled.kind.as_str(),
                compiled_in: compiled.compiled_in,
                entry: compiled.entry,
            })
        }
        engine => Err(Error::new(
            ErrorKind::Unavailable,
            format!("the engine `{engine}` (runtime.wasm.engine) is not compiled in, so `{program}` cannot be compiled"),
        )
        .with_hint(format!("build with `--features {engine}`, or `--features wasm-runtime` for all"))),
    }
}
