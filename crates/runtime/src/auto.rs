//! `backend = "auto"`: the first backend that works.

use std::sync::Arc;

use prx_runtime_core::config::Config;
use prx_runtime_core::{Error, ErrorKind, Result, RuntimeAdapter};

use crate::backends::BACKENDS;
use crate::create;

/// Tries the backends in their order and takes the first that can be used. Says at `info` which,
/// and why each one before it was passed over.
pub(crate) async fn create(config: &Config) -> Result<Arc<dyn RuntimeAdapter>> {
    let mut passed_over = Vec::new();
    for backend in &BACKENDS {
        match create::create(backend, config).await {
            Ok(runtime) => {
                tracing::info!(
                    backend = backend.name,
                    passed_over = passed_over.join("; "),
                    "backend chosen by auto"
                );
                return Ok(runtime);
            }
            // A configuration that is wrong for one backend is wrong: falling past it would hide
            // the mistake behind less isolation.
            Err(error) if error.kind() == ErrorKind::InvalidConfig => return Err(error),
            Err(error) => passed_over.push(format!("{}: {error}", backend.name)),
        }
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        format!("no backend can be used: {}", passed_over.join("; ")),
    ))
}
