//! What dead hosts left behind, on every backend.

use prx_runtime_core::Result;
use prx_runtime_core::config::Config;

/// What [`sweep`] ended and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SweepReport {
    /// How many local processes were ended.
    pub processes: u32,
}

/// Ends and removes what executions left whose host is provably dead. What belongs to a living
/// host is not touched.
///
/// # Errors
///
/// A backend that is configured and answers could not be swept.
pub async fn sweep(config: &Config) -> Result<SweepReport> {
    let mut report = SweepReport::default();
    #[cfg(feature = "native")]
    {
        report.processes = prx_runtime_native::prune().ended;
    }
    let _ = (config, &mut report);
    Ok(report)
}
