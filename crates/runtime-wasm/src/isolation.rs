//! What is in force around a guest.

use prx_runtime_core::{Exposure, Isolation, IsolationLevel};

use crate::grants::Grants;

/// The isolation of every guest of `engine` with these grants and limits.
pub(crate) fn describe(
    engine: &'static str,
    grants: &Grants,
    network: bool,
    max_memory: u64,
) -> Isolation {
    let mut isolation = Isolation::new(IsolationLevel::Container)
        .applied(engine)
        .applied(format!("memory limit {} MiB", max_memory >> 20));
    for grant in grants.describe() {
        isolation = isolation.applied(grant);
    }
    // The working directory is what the command is about; anything else is more of the host.
    if grants.host_paths().next().is_some() {
        isolation = isolation.open(Exposure::FileSystem);
    }
    if network {
        isolation.open(Exposure::Network)
    } else {
        isolation.applied("no network")
    }
}
