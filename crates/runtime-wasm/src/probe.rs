//! Whether guests can be run here: one is.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use prx_runtime_core::backend::Exit;
use prx_runtime_core::{Error, ErrorKind, Probe, Result, StdinSource};
use tokio::sync::oneshot;

use crate::{Artifact, Guest, GuestInput, GuestOutput, LoadError, ModuleKind, WasmEngine, compile};

/// A probe answers within 2 s.
const LIMIT: Duration = Duration::from_millis(1900);

/// `(module (memory 1) (func (export "_start")))`
const MODULE: &[u8] = b"\0asm\x01\0\0\0\
    \x01\x04\x01\x60\0\0\
    \x03\x02\x01\0\
    \x05\x03\x01\0\x01\
    \x07\x0a\x01\x06_start\0\0\
    \x0a\x04\x01\x02\0\x0b";

/// Compiles and runs a guest that does nothing.
pub(crate) async fn probe<E: WasmEngine>(engine: &Arc<E>, directory: PathBuf) -> Probe {
    let result = tokio::time::timeout(LIMIT, run(Arc::clone(engine))).await;
    let result = result.unwrap_or_else(|_| {
        Err(Error::new(
            ErrorKind::Unavailable,
            format!("a module that does nothing was not compiled and run within {LIMIT:?}"),
        ))
    });
    match result {
        Ok(()) => Probe::available(format!(
            "{} {}, modules in `{}`",
            engine.name(),
            engine.version(),
            directory.display()
        )),
        Err(error) => Probe::from_error(&error),
    }
}

async fn run<E: WasmEngine>(engine: Arc<E>) -> Result<()> {
    let (done, module) = oneshot::channel();
    compile::start({
        let engine = Arc::clone(&engine);
        move || {
            // Whoever waited may have gone.
            let _ = done.send(load(&*engine));
        }
    })?;
    let module = module
        .await
        .map_err(|_| engine_error("compiling broke off"))??;
    let guest = Guest {
        args: vec!["probe".to_owned()],
        env: Vec::new(),
        preopens: Vec::new(),
        working_dir: None,
        network: false,
        max_memory: 1 << 20,
        stdin: GuestInput::new(StdinSource::Empty),
        stdout: GuestOutput::nowhere(),
        stderr: GuestOutput::nowhere(),
    };
    match engine.start(&module, guest)?.run.await? {
        Exit::Code(0) => Ok(()),
        other => Err(engine_error(format!(
            "a guest that does nothing ended with {other:?}"
        ))),
    }
}

fn load<E: WasmEngine>(engine: &E) -> Result<E::Module> {
    let artifact = engine.compile(MODULE, ModuleKind::Core)?;
    // SAFETY: this engine made it a moment ago, and nobody else has it.
    let module = unsafe { engine.load(Artifact::Bytes(&artifact), ModuleKind::Core) };
    module.map_err(|error| match error {
        LoadError::Module(error) => error,
        LoadError::Artifact(problem) => engine_error(problem),
    })
}

fn engine_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Engine, message)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_probe_is_what_its_comment_says() {
        let text = r#"(module (memory 1) (func (export "_start")))"#;
        assert_eq!(wat::parse_str(text).unwrap(), super::MODULE);
    }
}
