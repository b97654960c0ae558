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

/// Enough for an entry of nearly any account database, and for one of any.
const ENTRY: usize = 4 * 1024;
const MOST: usize = 16 << 20;
/// How often a signal may interrupt it.
const INTERRUPTIONS: u32 = 100;

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
        let hint = if error::is_shortage(&error) {
            error::remedy(&error).to_owned()
        } else {
            format!("the database of accounts has to answer: try `getent passwd {user}`")
        };
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
    let mut interrupted = 0;
    loop {
        // SAFETY: the entry and the text are as long as is said, and live longer than what points
        // there.
        let failed = unsafe {
            libc::getpwuid_r(
                user,
                entry.as_mut_ptr(),
                text.as_mut_ptr(),
                text.len(),
                &raw mut found,
            )
        };
        match failed {
            0 => break,
            libc::EINTR if interrupted < INTERRUPTIONS => interrupted += 1,
            libc::ERANGE if text.len() < MOST => text.resize(text.len() * 4, 0),
            // Systems disagree on which say that there is no such account.
            libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM | libc::EINVAL => {
                return Ok(None);
            }
            // Whoever was asked did not answer.
            _ => return Err(io::Error::from_raw_os_error(failed)),
        }
    }
    if found.is_null() {
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
