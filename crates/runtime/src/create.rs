//! The factory.

use std::sync::Arc;

use prx_runtime_core::config::{Config, MinimumIsolation};
use prx_runtime_core::{
    Description, Error, ErrorKind, ExecutionRequest, IsolationLevel, Result, RuntimeAdapter,
};

use crate::auto;
use crate::backends::{BACKENDS, Backend, Made, Purpose, compiled_names};

/// Makes the adapter that `config` asks for and checks that it can be used: that it is compiled
/// in, that what it needs is there and answers, and that it isolates as much as
/// `runtime.minimum_isolation` demands.
///
/// # Errors
///
/// [`ErrorKind::InvalidConfig`] for a configuration that cannot be right, such as an unknown
/// backend; [`ErrorKind::Unavailable`] for a backend that is not compiled in or does not work
/// here; [`ErrorKind::Image`] for an image that is not there and cannot be pulled;
/// [`ErrorKind::Refused`] where the isolation would be too weak. Each says what would help.
pub async fn create_runtime(config: &Config) -> Result<Arc<dyn RuntimeAdapter>> {
    match config.runtime.backend.as_str() {
        "auto" => configured(config, Purpose::Choice).await,
        _ => configured(config, Purpose::Named).await,
    }
}

/// Says what a call of `request` would do under `config`, and does nothing of it but look whether
/// the backend can be used: no image is pulled.
///
/// # Errors
///
/// As [`create_runtime`], and what the backend finds wrong with the request.
pub async fn describe(config: &Config, request: &ExecutionRequest) -> Result<Description> {
    configured(config, Purpose::Look).await?.describe(request)
}

async fn configured(config: &Config, purpose: Purpose) -> Result<Arc<dyn RuntimeAdapter>> {
    config.validate()?;
    match config.runtime.backend.as_str() {
        "auto" => auto::create(config, purpose).await,
        name => Ok(create(find(name)?, config, purpose).await?.adapter),
    }
}

/// The backend of that name, compiled in or not.
pub(crate) fn find(name: &str) -> Result<&'static Backend> {
    let found = BACKENDS.iter().find(|backend| backend.name == name);
    found.ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidConfig,
            format!("there is no backend `{name}` (runtime.backend)"),
        )
        .with_hint(format!("this build has: {}", compiled_names()))
    })
}

/// Makes one named backend and checks it.
pub(crate) async fn create(backend: &Backend, config: &Config, purpose: Purpose) -> Result<Made> {
    let Some(create) = backend.create else {
        return Err(Error::new(
            ErrorKind::Unavailable,
            format!("the backend `{}` is not compiled in", backend.name),
        )
        .with_hint(format!(
            "build with `--features {}`; this build has: {}",
            backend.feature,
            compiled_names()
        )));
    };
    let minimum = minimum(config);
    let isolation = backend.isolation(config);
    if isolation < minimum {
        return Err(Error::new(
            ErrorKind::Refused,
            format!(
                "the backend `{}` isolates by `{isolation}`, and runtime.minimum_isolation is \
                 `{minimum}`",
                backend.name
            ),
        )
        .with_hint("choose a backend that isolates more, or lower the minimum"));
    }
    create(config, purpose).await
}

fn minimum(config: &Config) -> IsolationLevel {
    match config.runtime.minimum_isolation {
        MinimumIsolation::Sandbox => IsolationLevel::Sandbox,
        MinimumIsolation::Container => IsolationLevel::Container,
        _ => IsolationLevel::None,
    }
}
