//! The account of the caller, as the system knows it.

use std::ffi::CStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use prx_runtime_core::{Error, ErrorKind, Result};

use crate::error;

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
    let shell = text_of(user, |entry| entry.pw_shell).ok()??;
    Some(if shell.as_os_str().is_empty() {
        "/bin/sh".into()
    } else {
        shell
    })
}

/// The home of the account whose rights this process has, if the system knows one.
pub(crate) fn home() -> Result<Option<PathBuf>> {
    let user = rustix::process::geteuid().as_raw();
    let home = text_of(user, |entry| entry.pw_dir).map_err(|error| {
        let hint = error::remedy(&error);
        Error::new(
            error::kind(&error),
            format!(
                "the home of the user {user}, where secrets are to be hidden, cannot be found out"
            ),
        )
        .with_source(error)
        .with_hint(hint)
    })?;
    Ok(home.filter(|home| home.is_absolute()))
}

/// A path in the entry that the system has for `user`, if it has one.
fn text_of(
    user: u32,
    pick: impl FnOnce(&libc::passwd) -> *mut libc::c_char,
) -> io::Result<Option<PathBuf>> {
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
    // Systems disagree on which numbers say that there is no such account.
    let error = io::Error::from_raw_os_error(failed);
    if failed != 0 && error::is_shortage(&error) {
        return Err(error);
    }
    if failed != 0 || found.is_null() {
        return Ok(None);
    }
    // SAFETY: it was found, so the entry is filled.
    let picked = pick(unsafe { &*found });
    if picked.is_null() {
        return Ok(None);
    }
    // SAFETY: a string within the text.
    let picked = unsafe { CStr::from_ptr(picked) }.to_bytes();
    Ok(Some(
        Path::new(std::ffi::OsStr::from_bytes(picked)).to_owned(),
    ))
}
