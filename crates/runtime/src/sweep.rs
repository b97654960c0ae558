//! What dead hosts left behind, on every backend.

use prx_runtime_core::Result;
use prx_runtime_core::config::Config;

/// What [`sweep`] ended and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// How many local processes were ended.
    pub processes: u32,
    /// The ids of the containers that were removed.
    pub containers: Vec<String>,
    /// What was not looked at or not removed, and why: an engine that does not answer.
    pub not_done: Vec<String>,
}

/// Ends and removes what executions left whose host is provably dead, kept containers included.
/// What belongs to a living host is not touched. An engine that cannot be asked is reported, and
/// the rest is done all the same.
///
/// # Errors
///
/// The configuration is wrong.
pub async fn sweep(config: &Config) -> Result<SweepReport> {
    config.validate()?;
    #[cfg_attr(
        not(any(feature = "native", feature = "docker")),
        expect(unused_mut, reason = "guests leave nothing that could be swept")
    )]
    let mut report = SweepReport::default();
    #[cfg(feature = "native")]
    {
        report.processes = prx_runtime_native::prune().ended;
    }
    #[cfg(feature = "docker")]
    match prx_runtime_docker::DockerRuntime::prune(config).await {
        Ok(pruned) => {
            report.containers = pruned.removed;
            let kept = pruned.failed.into_iter();
            report
                .not_done
                .extend(kept.map(|id| format!("docker: container {id} cannot be removed")));
        }
        Err(error) => report.not_done.push(format!("docker: {error}")),
    }
    Ok(report)
}
