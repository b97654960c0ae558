//! The table of backends. The only place that knows which are compiled in.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use prx_runtime_core::config::{Config, SandboxKind};
use prx_runtime_core::{Invocation, IsolationLevel, Result, RuntimeAdapter};

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

/// Whether a command in a directory means something to a backend.
pub(crate) type Resolves = Box<dyn Fn(&Invocation, &Path) -> bool + Send + Sync>;

/// An adapter that was made and checked.
pub(crate) struct Made {
    pub(crate) adapter: Arc<dyn RuntimeAdapter>,
    /// Which commands it can run, where it cannot run all.
    pub(crate) resolves: Option<Resolves>,
}

type Creation<'a> = Pin<Box<dyn Future<Output = Result<Made>> + Send + 'a>>;

/// What an adapter is made for, which decides how much is worth waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It was named: what it needs is obtained, however long that takes within its own budget.
    Named,
    /// It is one of several: whether it needs can be had is found out soon, and then obtained.
    Choice,
    /// To be looked at: nothing is obtained.
    Look,
}

/// Makes an adapter and checks that what it needs is there.
pub(crate) type Create = for<'a> fn(&'a Config, Purpose) -> Creation<'a>;

pub(crate) struct Backend {
    pub(crate) name: &'static str,
    pub(crate) feature: &'static str,
    isolation: IsolationLevel,
    pub(crate) create: Option<Create>,
}

/// In the order in which `auto` tries them.
pub(crate) static BACKENDS: [Backend; 3] = [DOCKER, WASM, NATIVE];

const DOCKER: Backend = Backend {
    name: "docker",
    feature: "docker",
    isolation: IsolationLevel::Container,
    create: compiled::DOCKER,
};
const WASM: Backend = Backend {
    name: "wasm",
    feature: "wasm-runtime",
    isolation: IsolationLevel::Container,
    create: compiled::WASM,
};
const NATIVE: Backend = Backend {
    name: "native",
    feature: "native",
    isolation: IsolationLevel::None,
    create: compiled::NATIVE,
};

impl Backend {
    /// The isolation it gives under `config`.
    pub(crate) fn isolation(&self, config: &Config) -> IsolationLevel {
        let confined = config.security.sandbox.backend != SandboxKind::None;
        if self.name == "native" && confined {
            IsolationLevel::Sandbox
        } else {
            self.isolation
        }
    }
}

/// Fails where the adapter's own probe does, with what the probe found.
#[cfg(any(feature = "docker", feature = "wasmtime", feature = "wasmer"))]
async fn check(backend: &str, adapter: &dyn RuntimeAdapter) -> Result<()> {
    adapter.probe().await.require(backend)
}

mod compiled {
    //! What each feature adds. A backend that is left out is `None`.

    #[cfg(any(feature = "docker", feature = "wasmtime", feature = "wasmer"))]
    use super::check;

    use super::Create;
    #[cfg(any(
        feature = "native",
        feature = "docker",
        feature = "wasmtime",
        feature = "wasmer"
    ))]
    use super::Made;
    #[cfg(feature = "docker")]
    use super::Purpose;

    #[cfg(feature = "native")]
    pub(super) const NATIVE: Option<Create> = Some(|config, _| {
        Box::pin(async move {
            let runtime = crate::local::create(config).await?;
            Ok(Made {
                adapter: std::sync::Arc::new(runtime),
                resolves: None,
            })
        })
    });
    #[cfg(not(feature = "native"))]
    pub(super) const NATIVE: Option<Create> = None;

    /// How long finding out whether an image can be had may take.
    #[cfg(feature = "docker")]
    const SOON: std::time::Duration = std::time::Duration::from_secs(4);

    #[cfg(feature = "docker")]
    pub(super) const DOCKER: Option<Create> = Some(|config, purpose| {
        Box::pin(async move {
            let runtime = prx_runtime_docker::DockerRuntime::new(config)?;
            // Whatever is wrong with the engine is said best by the probe.
            check("docker", &runtime).await?;
            if purpose != Purpose::Named {
                runtime.image_available_or_pullable(SOON).await?;
            }
            if purpose != Purpose::Look {
                runtime.validate().await?;
            }
            Ok(Made {
                adapter: std::sync::Arc::new(runtime),
                resolves: None,
            })
        })
    });
    #[cfg(not(feature = "docker"))]
    pub(super) const DOCKER: Option<Create> = None;

    #[cfg(any(feature = "wasmtime", feature = "wasmer"))]
    pub(super) const WASM: Option<Create> = Some(|config, _| Box::pin(wasm(config)));
    #[cfg(not(any(feature = "wasmtime", feature = "wasmer")))]
    pub(super) const WASM: Option<Create> = None;

    /// The engines in this build, for error messages.
    #[cfg(any(feature = "wasmtime", feature = "wasmer"))]
    const ENGINES: &str = if cfg!(not(feature = "wasmer")) {
        "wasmtime"
    } else if cfg!(not(feature = "wasmtime")) {
        "wasmer"
    } else {
        "wasmtime, wasmer"
    };

    #[cfg(any(feature = "wasmtime", feature = "wasmer"))]
    async fn wasm(config: &prx_runtime_core::config::Config) -> prx_runtime_core::Result<Made> {
        use prx_runtime_core::config::WasmEngineKind;
        use prx_runtime_core::{Error, ErrorKind};

        match config.runtime.wasm.engine {
            #[cfg(feature = "wasmtime")]
            WasmEngineKind::Wasmtime => {
                let runtime = prx_runtime_wasmtime::WasmtimeRuntime::new(config)?;
                let resolver = runtime.clone();
                wasm_by(
                    runtime,
                    Box::new(move |line, directory| resolver.resolves(line, directory)),
                )
                .await
            }
            #[cfg(feature = "wasmer")]
            WasmEngineKind::Wasmer => {
                let runtime = prx_runtime_wasmer::WasmerRuntime::new(config)?;
                let resolver = runtime.clone();
                wasm_by(
                    runtime,
                    Box::new(move |line, directory| resolver.resolves(line, directory)),
                )
                .await
            }
            engine => Err(Error::new(
                ErrorKind::Unavailable,
                format!("the engine `{engine}` (runtime.wasm.engine) is not compiled in"),
            )
            .with_hint(format!(
                "build with `--features {engine}`; this build has: {ENGINES}"
            ))),
        }
    }

    /// One of the engines, checked.
    #[cfg(any(feature = "wasmtime", feature = "wasmer"))]
    async fn wasm_by(
        runtime: impl prx_runtime_core::RuntimeAdapter + 'static,
        resolves: super::Resolves,
    ) -> prx_runtime_core::Result<Made> {
        check("wasm", &runtime).await?;
        Ok(Made {
            adapter: std::sync::Arc::new(runtime),
            resolves: Some(resolves),
        })
    }
}

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
