//! The account of the caller, which firejail asks the system about.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use prx_runtime_core::{Error, ErrorKind, Result};

/// Firejail starts everything through the login shell, as `SHELL -c -- LINE`. These read no files of
/// the user then, or only such that a variable names.
const SHELLS: [&str; 7] = ["sh", "dash", "bash", "ash", "ksh", "mksh", "zsh"];

/// Enough for an entry of any account database.
const ENTRY: usize = 64 * 1024;

/// Whether firejail can start a command for the account of this process.
pub(crate) fn check() -> Result<()> {
    let hint =
        "give the account a shell such as /bin/sh, or choose another security.sandbox.backend";
    let Some(shell) = login_shell() else {
        return Err(Error::new(
            ErrorKind::Unavailable,
            "firejail serves accounts that the system knows, and not this one \
             (security.sandbox.backend = \"firejail\")",
        )
        .with_hint(hint));
    };
    let name = shell.file_name().unwrap_or_default();
    if SHELLS.iter().any(|known| name == *known) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        format!(
            "firejail starts commands through the account's login shell, and with `{}` that does \
             not work (security.sandbox.backend = \"firejail\")",
            shell.display()
        ),
    )
    .with_hint(hint))
}

fn login_shell() -> Option<PathBuf> {
    let user = rustix::process::getuid().as_raw();
    let mut text = vec![0; ENTRY];
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut found = std::ptr::null_mut();
    // SAFETY: the entry and the text are as long as is said, and live longer than what points there.
    let failed = unsafe {
        libc::getpwuid_r(
            user,
            entry.as_mut_ptr(),
            text.as_mut_ptr(),
            text.len(),
            &raw mut found,
        )
    };
    if failed != 0 || found.is_null() {
        return None;
    }
    // SAFETY: it was found, so the entry is filled.
    let shell = unsafe { (*found).pw_shell };
    // SAFETY: a string within the text.
    let shell = unsafe { CStr::from_ptr(shell) }.to_bytes();
    let shell = if shell.is_empty() { b"/bin/sh" } else { shell };
    Some(Path::new(std::ffi::OsStr::from_bytes(shell)).to_owned())
}
