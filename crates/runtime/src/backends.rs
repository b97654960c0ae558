//! The table of backends. The only place that knows which are compiled in.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use prx_runtime_core::config::Config;
use prx_runtime_core::{IsolationLevel, Result, RuntimeAdapter};

/// A backend that this project has, whether or not this build has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendInfo {
    /// Its name, as in `runtime.backend`.
    pub name: &'static str,
    /// The feature that compiles it in.
    pub feature: &'static str,
    /// Whether this build has it.
    pub compiled: bool,
    /// The isolation it gives without further configuration.
    pub isolation: IsolationLevel,
}

type Creation<'a> = Pin<Box<dyn Future<Output = Result<Arc<dyn RuntimeAdapter>>> + Send + 'a>>;

/// Makes an adapter and checks that what it needs is there.
pub(crate) type Create = for<'a> fn(&'a Config) -> Creation<'a>;

pub(crate) struct Backend {
    pub(crate) name: &'static str,
    pub(crate) feature: &'static str,
    pub(crate) isolation: IsolationLevel,
    pub(crate) create: Option<Create>,
}

/// In the order in which `auto` tries them.
pub(crate) static BACKENDS: [Backend; 1] = [Backend {
    name: "native",
    feature: "native",
    isolation: IsolationLevel::None,
    create: NATIVE,
}];

#[cfg(feature = "native")]
const NATIVE: Option<Create> = Some(|config| {
    Box::pin(async move {
        let runtime = prx_runtime_native::NativeRuntime::new(config)?;
        Ok(Arc::new(runtime) as Arc<dyn RuntimeAdapter>)
    })
});
#[cfg(not(feature = "native"))]
const NATIVE: Option<Create> = None;

/// All backends of this project, in the order in which `auto` tries them.
pub fn backends() -> impl ExactSizeIterator<Item = BackendInfo> {
    BACKENDS.iter().map(|backend| BackendInfo {
        name: backend.name,
        feature: backend.feature,
        compiled: backend.create.is_some(),
        isolation: backend.isolation,
    })
}

/// The names of the backends in this build, for error messages.
pub(crate) fn compiled_names() -> String {
    let names: Vec<_> = BACKENDS
        .iter()
        .filter(|backend| backend.create.is_some())
        .map(|backend| backend.name)
        .chain(["auto"])
        .collect();
    names.join(", ")
}
