//! What works here, for people.

use std::time::Duration;

use prx_runtime_core::config::Config;
use prx_runtime_core::{IsolationLevel, Probe};

use crate::backends::BACKENDS;

/// Longer than any backend may take to answer, so that one that breaks that rule is named.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is known of one backend on this machine.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Diagnosis {
    /// Its name, as in `runtime.backend`.
    pub name: &'static str,
    /// Whether this build has it.
    pub compiled: bool,
    /// The isolation it gives without further configuration.
    pub isolation: IsolationLevel,
    /// Whether it works, and why not.
    pub probe: Probe,
}

/// Asks every backend whether it works under `config`. Bounded in time, whatever hangs.
pub async fn diagnose(config: &Config) -> Vec<Diagnosis> {
    let mut diagnoses = Vec::with_capacity(BACKENDS.len());
    for backend in &BACKENDS {
        let probe = match backend.create {
            None => Probe::unavailable("not compiled in")
                .with_hint(format!("build with `--features {}`", backend.feature)),
            Some(create) => {
                let ask = async {
                    match create(config).await {
                        Ok(runtime) => runtime.probe().await,
                        Err(error) => Probe::from_error(&error),
                    }
                };
                tokio::time::timeout(PATIENCE, ask)
                    .await
                    .unwrap_or_else(|_| {
                        Probe::unavailable(format!("no answer within {PATIENCE:?}"))
                    })
            }
        };
        diagnoses.push(Diagnosis {
            name: backend.name,
            compiled: backend.create.is_some(),
            isolation: backend.isolation,
            probe,
        });
    }
    diagnoses
}
