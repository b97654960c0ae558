//! What works here, for people.

use std::time::Duration;

use prx_runtime_core::config::Config;
use prx_runtime_core::{IsolationLevel, Probe, Result};

use crate::backends::{BACKENDS, Backend, Purpose};
use crate::round_trip::{RoundTrip, round_trip};

/// Longer than any backend may take to answer, so that one that breaks that rule is named.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of one backend on this machine, or of one sandbox for local commands.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The backend, as in `runtime.backend`.
    pub name: &'static str,
    /// The sandbox around its commands, as in `security.sandbox.backend`; `None` for a backend as it
    /// is configured.
    pub sandbox: Option<&'static str>,
    /// Whether this build has it.
    pub compiled: bool,
    /// The isolation it gives under the configuration.
    pub isolation: IsolationLevel,
    /// Whether it works, and why not.
    pub probe: Probe,
    /// What came of really using it; `None` where it does not work, or takes only modules.
    pub round_trip: Option<RoundTrip>,
}

/// Asks every backend whether it works under `config`, and every sandbox whether it would, and uses
/// each that does: runs a command, writes a file in a workspace, tries to reach a listener of the
/// host. Bounded in time, whatever hangs.
pub async fn diagnose(config: &Config) -> Vec<Diagnosis> {
    let mut diagnoses = Vec::with_capacity(BACKENDS.len() + sandboxes::KINDS.len());
    for backend in &BACKENDS {
        diagnoses.push(Box::pin(of_backend(backend, config)).await);
    }
    for kind in sandboxes::KINDS {
        diagnoses.push(Box::pin(sandboxes::of_sandbox(kind, config)).await);
    }
    diagnoses
}

async fn of_backend(backend: &Backend, config: &Config) -> Diagnosis {
    let asked = match backend.create {
        None => Err(not_compiled(backend.feature)),
        Some(create) => {
            in_time(async {
                let made = create(config, Purpose::Look).await?;
                let probe = made.adapter.probe().await;
                Ok((made, probe))
            })
            .await
        }
    };
    let (probe, round_trip) = match asked {
        Ok((made, probe)) if probe.available && made.resolves.is_none() => {
            let trip = round_trip(&*made.adapter).await;
            (probe, Some(trip))
        }
        Ok((_, probe)) | Err(probe) => (probe, None),
    };
    Diagnosis {
        name: backend.name,
        sandbox: None,
        compiled: backend.create.is_some(),
        isolation: backend.isolation(config),
        probe,
        round_trip,
    }
}

fn not_compiled(feature: &str) -> Probe {
    Probe::unavailable("not compiled in").with_hint(format!("build with `--features {feature}`"))
}

/// What `ask` answers, or a probe that says why there is no answer.
async fn in_time<T>(ask: impl Future<Output = Result<T>>) -> std::result::Result<T, Probe> {
    match tokio::time::timeout(PATIENCE, ask).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Probe::from_error(&error)),
        Err(_) => Err(Probe::unavailable(format!("no answer within {PATIENCE:?}"))),
    }
}

#[cfg(not(all(feature = "native", feature = "sandbox", target_os = "linux")))]
mod sandboxes {
    use prx_runtime_core::IsolationLevel;
    use prx_runtime_core::config::{Config, SandboxKind};

    use super::{Diagnosis, not_compiled};

    pub(super) const KINDS: [SandboxKind; 3] = [
        SandboxKind::Bubblewrap,
        SandboxKind::Landlock,
        SandboxKind::Firejail,
    ];

    pub(super) async fn of_sandbox(kind: SandboxKind, _: &Config) -> Diagnosis {
        Diagnosis {
            name: "native",
            sandbox: Some(kind.as_str()),
            compiled: false,
            isolation: IsolationLevel::Sandbox,
            probe: not_compiled("native,sandbox"),
            round_trip: None,
        }
    }
}

#[cfg(all(feature = "native", feature = "sandbox", target_os = "linux"))]
mod sandboxes {
    use prx_runtime_core::config::{Config, SandboxKind, SandboxLevel, SecurityConfig};
    use prx_runtime_core::{ExecutionRequest, IsolationLevel, RuntimeAdapter};
    use prx_runtime_native::NativeRuntime;
    pub(super) use prx_runtime_sandbox::AUTO as KINDS;

    use super::{Diagnosis, PATIENCE, in_time, round_trip};

    /// How the sandbox would do that `config` has or does not have.
    pub(super) async fn of_sandbox(kind: SandboxKind, config: &Config) -> Diagnosis {
        let mut config = config.clone();
        config.security.sandbox.backend = kind;
        config.security.sandbox.level = SandboxLevel::Require;
        let asked = in_time(async {
            let runtime = crate::local::create(&config).await?;
            let mut probe = runtime.probe().await;
            if let Some(version) = version(kind, &config).await {
                probe.detail = format!("{version}; {}", probe.detail);
            }
            Ok((runtime, probe))
        })
        .await;
        let (probe, round_trip) = match asked {
            Ok((runtime, probe)) if probe.available => {
                let trip = round_trip(&runtime).await;
                (probe, Some(trip))
            }
            Ok((_, probe)) | Err(probe) => (probe, None),
        };
        Diagnosis {
            name: "native",
            sandbox: Some(kind.as_str()),
            compiled: true,
            isolation: IsolationLevel::Sandbox,
            probe,
            round_trip,
        }
    }

    /// What the program that confines calls itself. Landlock is the kernel's own, and its
    /// isolation names the version of its interface.
    async fn version(kind: SandboxKind, config: &Config) -> Option<String> {
        let program = match kind {
            SandboxKind::Bubblewrap => "bwrap",
            SandboxKind::Firejail => "firejail",
            _ => return None,
        };
        let request = ExecutionRequest::program(program)
            .arg("--version")
            .timeout(PATIENCE / 5);
        let mut bare = config.clone();
        bare.security = SecurityConfig::default();
        let output = NativeRuntime::new(&bare).ok()?.run(request).await.ok()?;
        let text = output.stdout.to_text().into_owned();
        text.lines().next().map(|line| line.trim().to_owned())
    }
}
