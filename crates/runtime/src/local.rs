//! Local commands: bare, or confined by what `[security]` says.

use prx_runtime_core::config::Config;
use prx_runtime_core::{Result, RuntimeAdapter};
use prx_runtime_native::NativeRuntime;

/// The native backend as `config` has it, checked.
pub(crate) async fn create(config: &Config) -> Result<NativeRuntime> {
    #[cfg(all(feature = "sandbox", target_os = "linux"))]
    if let Some(runtime) = sandboxed::create(config).await? {
        return Ok(runtime);
    }
    checked(NativeRuntime::new(config)?).await
}

async fn checked(runtime: NativeRuntime) -> Result<NativeRuntime> {
    runtime.probe().await.require("native")?;
    Ok(runtime)
}

#[cfg(all(feature = "sandbox", target_os = "linux"))]
mod sandboxed {
    use prx_runtime_core::config::{Config, SandboxKind, SandboxLevel};
    use prx_runtime_core::{Error, ErrorKind, Result};
    use prx_runtime_native::NativeRuntime;

    use super::checked;

    /// The native backend in the sandbox that `config` asks for, or under its limits. `None` where
    /// it asks for neither.
    pub(super) async fn create(config: &Config) -> Result<Option<NativeRuntime>> {
        let security = &config.security;
        let kinds = match security.sandbox.backend {
            SandboxKind::None if security.resources.is_unlimited() => return Ok(None),
            SandboxKind::Auto => prx_runtime_sandbox::AUTO.as_slice(),
            ref kind => std::slice::from_ref(kind),
        };
        let mut failures = Vec::new();
        for kind in kinds {
            match confined(config, *kind).await {
                Ok(runtime) => {
                    if kinds.len() > 1 {
                        let passed_over = failures.join("; ");
                        tracing::info!(sandbox = %kind, passed_over, "sandbox chosen by auto");
                    }
                    return Ok(Some(runtime));
                }
                // What is wrong with one is wrong with all: falling past it would hide it.
                Err(error) if error.kind() == ErrorKind::InvalidConfig => return Err(error),
                Err(error) if kinds.len() == 1 && !falls_back(config) => return Err(error),
                Err(error) => failures.push(format!("{kind}: {error}")),
            }
        }
        let failures = failures.join("; ");
        if !falls_back(config) {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("no sandbox works here: {failures}"),
            )
            .with_hint(
                "set security.sandbox.level = \"best-effort\" to run without one and be told so",
            ));
        }
        tracing::warn!(failures, "commands are not confined: no sandbox works here");
        let confiner = prx_runtime_sandbox::unconfined(security, failures)?;
        checked(NativeRuntime::confined(config, confiner)?)
            .await
            .map(Some)
    }

    fn falls_back(config: &Config) -> bool {
        config.security.sandbox.level == SandboxLevel::BestEffort
    }

    async fn confined(config: &Config, kind: SandboxKind) -> Result<NativeRuntime> {
        let confiner = prx_runtime_sandbox::confiner(kind, &config.security)?;
        checked(NativeRuntime::confined(config, confiner)?).await
    }
}
