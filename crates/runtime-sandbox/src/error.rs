//! What errors of the system mean here.

use std::io;

use prx_runtime_core::{Error, ErrorKind};

/// Whether there is nothing at a path.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// Whether a path leads nowhere for this process, and so for a command, which has no more rights.
/// Any other error says nothing of what the command finds there a moment later.
pub(crate) fn is_unreachable(error: &io::Error) -> bool {
    is_missing(error)
        || error.kind() == io::ErrorKind::PermissionDenied
        || matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENAMETOOLONG))
}

/// Whether this process or the machine has too little of something.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM)
    )
}

/// The kind of an error that keeps a command from being confined.
pub(crate) fn kind(error: &io::Error) -> ErrorKind {
    if is_shortage(error) {
        ErrorKind::Exhausted
    } else {
        ErrorKind::Refused
    }
}

/// What helps against it.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    if is_shortage(error) {
        "raise the limit of open files (`ulimit -n`), or run fewer commands at a time"
    } else {
        "the file system on which it lies has to answer before a command can be confined"
    }
}

/// That something cannot be looked at which has to be before a command can be confined.
pub(crate) fn unseen(what: String, error: io::Error) -> Error {
    let hint = remedy(&error);
    Error::new(kind(&error), what)
        .with_source(error)
        .with_hint(hint)
}
