//! From a configuration to a confiner.

use std::path::PathBuf;
use std::sync::Arc;

use prx_runtime_core::Result;
use prx_runtime_core::config::{SandboxKind, SecurityConfig};
use prx_runtime_core::confine::Confiner;

use crate::confiner::Sandbox;
use crate::landlock;

/// What `backend = "auto"` tries, in this order: the strongest first.
pub const AUTO: [SandboxKind; 3] = [
    SandboxKind::Bubblewrap,
    SandboxKind::Landlock,
    SandboxKind::Firejail,
];

/// The confiner of `kind`, whatever `security.sandbox.backend` says, with the limits of
/// `security.resources`. Whether it works on this machine shows when a command is run in it.
///
/// # Errors
///
/// [`ErrorKind::InvalidConfig`](prx_runtime_core::ErrorKind::InvalidConfig) for paths that cannot
/// be right; [`ErrorKind::Unavailable`](prx_runtime_core::ErrorKind::Unavailable) where the program
/// or the part of the kernel that it needs is missing;
/// [`ErrorKind::Refused`](prx_runtime_core::ErrorKind::Refused) where something cannot be enforced
/// and `security.sandbox.level` is `require`.
pub fn confiner(kind: SandboxKind, security: &SecurityConfig) -> Result<Arc<dyn Confiner>> {
    Ok(Arc::new(Sandbox::new(kind, security, None, None)?))
}

/// Bubblewrap by the program at `bwrap`, whatever is on PATH.
///
/// # Errors
///
/// As [`confiner`].
pub fn bubblewrap_at(bwrap: PathBuf, security: &SecurityConfig) -> Result<Arc<dyn Confiner>> {
    Ok(Arc::new(Sandbox::new(
        SandboxKind::Bubblewrap,
        security,
        None,
        Some(bwrap),
    )?))
}

/// For `level = "best-effort"` on a machine where no sandbox works: the limits alone, and `missing`
/// in the isolation of every result.
///
/// # Errors
///
/// As [`confiner`]; [`ErrorKind::Refused`](prx_runtime_core::ErrorKind::Refused) where the level is
/// `require`.
pub fn unconfined(security: &SecurityConfig, missing: String) -> Result<Arc<dyn Confiner>> {
    Ok(Arc::new(Sandbox::new(
        SandboxKind::None,
        security,
        Some(missing),
        None,
    )?))
}

/// The version of the Landlock interface of this kernel, if it has one and it is on.
pub fn has_landlock() -> Option<i32> {
    Some(landlock::kernel_version()).filter(|version| *version > 0)
}
