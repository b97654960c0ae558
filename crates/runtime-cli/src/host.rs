//! What this process does for itself before it runs anything.

#[cfg(unix)]
use std::fs::File;
use std::io;

/// As many descriptors as the asynchronous runtime takes for itself. It panics where it gets only
/// some of them.
#[cfg(unix)]
const NEEDED_DESCRIPTORS: usize = 8;

/// Says whether there are descriptors enough to start with.
pub(crate) fn check_descriptors() -> io::Result<()> {
    #[cfg(unix)]
    (0..NEEDED_DESCRIPTORS)
        .map(|_| File::open("/dev/null"))
        .collect::<io::Result<Vec<_>>>()?;
    Ok(())
}

/// Closes to commands what a bare process leaves open of its host, and takes back signal
/// dispositions that a parent may have left us and that would lose exit codes.
pub(crate) fn prepare() {
    #[cfg(unix)]
    {
        // SAFETY: the default disposition has no handler that could be unsound, and no other
        // thread runs yet.
        unsafe {
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        }
    }
    #[cfg(feature = "native")]
    if let Err(error) = prx_runtime::harden_host() {
        tracing::warn!(%error, "commands of the same user can read this process's environment");
    }
}
