//! The sweep of what dead hosts left behind.

use prx_runtime_core::{OwnerState, Result};

use crate::engine::{Client, Removal};
use crate::labels;

/// What a sweep found and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// The ids of the containers that were removed.
    pub removed: Vec<String>,
    /// The ids of those that should have been removed and that the engine did not remove.
    pub failed: Vec<String>,
}

/// Which of the containers of dead hosts are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All but those that `auto_remove = false` keeps.
    Leftovers,
    /// All.
    All,
}

pub(crate) async fn sweep(client: &Client, scope: Scope) -> Result<PruneReport> {
    let containers = client
        .list(labels::OWNER)
        .await
        .map_err(|failure| failure.while_trying_to("list its containers", client.endpoint()))?;
    let mut report = PruneReport::default();
    for container in containers {
        let (Some(id), Some(labels)) = (container.id, container.labels) else {
            continue;
        };
        let spared = scope == Scope::Leftovers && labels::is_kept(&labels);
        if spared || labels::owner_state(&labels, client.endpoint()) != OwnerState::Dead {
            continue;
        }
        match client.remove(&id).await {
            Ok(Removal::Removed) => report.removed.push(id),
            // Another sweep was faster.
            Ok(Removal::WasNotThere | Removal::Underway) => {}
            Err(failure) => {
                tracing::warn!(container = id, ?failure, "a container of a dead host stays");
                report.failed.push(id);
            }
        }
    }
    Ok(report)
}
