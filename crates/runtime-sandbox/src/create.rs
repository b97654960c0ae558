//! From a configuration to a confiner.

use std::sync::Arc;

use prx_runtime_core::Result;
use prx_runtime_core::config::{SandboxKind, SecurityConfig};
use prx_runtime_core::confine::Confiner;

use crate::confiner::Sandbox;
use crate::machine::Machine;

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
    confiner_on(&Machine::current(), kind, security)
}

/// The same on a `machine` that is not the one we run on.
///
/// # Errors
///
/// As [`confiner`].
pub fn confiner_on(
    machine: &Machine,
    kind: SandboxKind,
    security: &SecurityConfig,
) -> Result<Arc<dyn Confiner>> {
    Ok(Arc::new(Sandbox::new(machine, kind, security, None)?))
}

/// For `level = "best-effort"` on a machine where no sandbox works: the limits alone, and `missing`
/// in the isolation of every result.
///
/// # Errors
///
/// As [`confiner`]; [`ErrorKind::Refused`](prx_runtime_core::ErrorKind::Refused) where the level is
/// `require`.
pub fn unconfined(security: &SecurityConfig, missing: String) -> Result<Arc<dyn Confiner>> {
    let machine = Machine::current();
    let kind = SandboxKind::None;
    let sandbox = Sandbox::new(&machine, kind, security, Some(missing))?;
    Ok(Arc::new(sandbox))
}
