//! What works here, for people.

use std::time::Duration;

use prx_runtime_core::config::Config;
use prx_runtime_core::{IsolationLevel, Probe};

use crate::backends::{BACKENDS, Purpose};
use crate::round_trip::{RoundTrip, round_trip};

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
    /// The isolation it gives under the configuration.
    pub isolation: IsolationLevel,
    /// Whether it works, and why not.
    pub probe: Probe,
    /// What came of really using it; `None` where it does not work, or takes only modules.
    pub round_trip: Option<RoundTrip>,
}

/// Asks every backend whether it works under `config`, and uses each that does: runs a command,
/// writes a file in a workspace, tries to reach a listener of the host. Bounded in time, whatever
/// hangs.
pub async fn diagnose(config: &Config) -> Vec<Diagnosis> {
    let mut diagnoses = Vec::with_capacity(BACKENDS.len());
    for backend in &BACKENDS {
        let mut trip = None;
        let probe = match backend.create {
            None => Probe::unavailable("not compiled in")
                .with_hint(format!("build with `--features {}`", backend.feature)),
            Some(create) => {
                let ask = async {
                    let made = create(config, Purpose::Look).await?;
                    let probe = made.adapter.probe().await;
                    Ok::<_, prx_runtime_core::Error>((made, probe))
                };
                match tokio::time::timeout(PATIENCE, ask).await {
                    Ok(Ok((made, probe))) => {
                        if probe.available && made.resolves.is_none() {
                            trip = Some(round_trip(&*made.adapter).await);
                        }
                        probe
                    }
                    Ok(Err(error)) => Probe::from_error(&error),
                    Err(_) => Probe::unavailable(format!("no answer within {PATIENCE:?}")),
                }
            }
        };
        diagnoses.push(Diagnosis {
            name: backend.name,
            compiled: backend.create.is_some(),
            isolation: backend.isolation(config),
            probe,
            round_trip: trip,
        });
    }
    diagnoses
}
