//! What a host can do for itself before it runs commands.

use prx_runtime_core::Result;

/// What [`harden_host`] achieved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostHardening {
    /// Processes of the same user can no longer read this process's environment and memory through
    /// `/proc`, nor trace it. Root still can.
    pub not_dumpable: bool,
    /// No descriptor that was open then, other than the standard streams, is inherited by a
    /// command.
    pub descriptors_closed_on_exec: bool,
}

/// Closes to commands what a bare process leaves open of its host: on Linux it makes this process
/// not dumpable (`PR_SET_DUMPABLE`) and marks its open descriptors close-on-exec. Call it once, at
/// the start of `main`.
///
/// It stops commands that run as the same unprivileged user from reading the host's secrets in
/// `/proc/PID/environ` and `/proc/PID/mem` and from attaching to it. It does not stop root, and it
/// does not hide files, the network or other processes. The price: no core dumps of the host, and
/// debuggers of the same user cannot attach. Elsewhere than on Linux it does nothing and says so.
///
/// # Errors
///
/// [`ErrorKind::Refused`](prx_runtime_core::ErrorKind::Refused) where the system forbids it.
pub fn harden_host() -> Result<HostHardening> {
    sys::harden()
}

#[cfg(target_os = "linux")]
mod sys {
    use prx_runtime_core::{Error, ErrorKind, Result};
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    use super::HostHardening;

    pub(super) fn harden() -> Result<HostHardening> {
        set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| {
            Error::new(
                ErrorKind::Refused,
                "this process cannot be made non-dumpable",
            )
            .with_source(error)
        })?;
        let first: libc::c_uint = 3;
        // SAFETY: with CLOSE_RANGE_CLOEXEC the call closes nothing; it sets a flag on descriptors.
        let closed = unsafe {
            libc::syscall(
                libc::SYS_close_range,
                first,
                libc::c_uint::MAX,
                libc::CLOSE_RANGE_CLOEXEC,
            )
        };
        Ok(HostHardening {
            not_dumpable: true,
            descriptors_closed_on_exec: closed == 0,
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    use prx_runtime_core::Result;

    use super::HostHardening;

    pub(super) fn harden() -> Result<HostHardening> {
        Ok(HostHardening {
            not_dumpable: false,
            descriptors_closed_on_exec: false,
        })
    }
}
