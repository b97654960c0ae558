//! The sweep of what dead hosts left behind.

use crate::tree;

/// What [`prune`] found and ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// How many processes were ended.
    pub ended: u32,
}

/// Ends the processes of executions whose host died without ending them, such as by SIGKILL.
///
/// A host is dead when no process has its pid and start time, both of which every process of an
/// execution carries in its environment. Processes of living hosts, of hosts in other PID
/// namespaces, and processes without such a mark are not touched. Elsewhere than on Linux this
/// finds nothing.
pub fn prune() -> PruneReport {
    PruneReport {
        ended: tree::end_orphans(),
    }
}
