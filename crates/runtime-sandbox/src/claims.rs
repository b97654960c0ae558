//! What each kind of sandbox claims to enforce, and what it leaves open.

use prx_runtime_core::{Exposure, Isolation, IsolationLevel};

use crate::landlock;

/// Limits at most.
pub(crate) fn bare() -> Isolation {
    [
        Exposure::FileSystem,
        Exposure::Network,
        Exposure::HostEnvironment,
        Exposure::HostProcesses,
        Exposure::UnixSockets,
        Exposure::SystemCalls,
    ]
    .into_iter()
    .fold(
        Isolation::new(IsolationLevel::None).applied("process group"),
        Isolation::open,
    )
}

/// A sandbox `name` that makes `namespaces`.
pub(crate) fn namespaced(
    name: &'static str,
    namespaces: &'static str,
    allow_network: bool,
) -> Isolation {
    let mut isolation = Isolation::new(IsolationLevel::Sandbox);
    for what in [
        name,
        namespaces,
        "no capabilities",
        "no new privileges",
        "seccomp",
    ] {
        isolation = isolation.applied(what);
    }
    // Most of it can be read.
    isolation = isolation.open(Exposure::FileSystem);
    if allow_network {
        isolation
            .open(Exposure::Network)
            .open(Exposure::UnixSockets)
    } else {
        isolation.applied("network namespace")
    }
}

/// firejail, and Landlock of the version `landlock` for what firejail lacks.
pub(crate) fn firejailed(allow_network: bool, landlock: Option<i32>) -> Isolation {
    let isolation = namespaced(
        "firejail",
        "mount, pid, ipc and uts namespaces",
        allow_network,
    );
    match landlock {
        Some(version) => landlock::judge(
            isolation.applied(format!("landlock for writing (interface {version})")),
            version,
        ),
        None => isolation.not_enforced(
            "firejail: by itself it cannot keep commands from writing to all that is mounted, and \
             this kernel has no Landlock to add",
        ),
    }
}
