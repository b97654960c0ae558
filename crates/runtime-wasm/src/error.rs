//! How this crate's failures and a guest's end are reported.

use std::path::Path;

use prx_runtime_core::backend::Exit;
use prx_runtime_core::{Error, ErrorKind};

/// How a guest that exited with `status` ended. As for a process, eight bits of the status count:
/// the same program answers the same on every backend.
pub fn exit_status(status: u32) -> Exit {
    Exit::Code((status & 0xff).cast_signed())
}

/// The module at `path` was found and cannot be used.
pub(crate) fn unusable(path: &Path, problem: &str) -> Error {
    Error::new(ErrorKind::Image, format!("`{}` {problem}", path.display()))
}

/// The file at `path` could not be read.
pub(crate) fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::ProgramNotFound,
        std::io::ErrorKind::PermissionDenied => ErrorKind::NotExecutable,
        _ => ErrorKind::Io,
    };
    Error::new(
        kind,
        format!("the module `{}` cannot be read", path.display()),
    )
    .with_source(error)
}

/// An error that several callers get, because they waited for the same thing.
#[derive(Debug, Clone)]
pub(crate) struct SharedError {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
}

impl From<Error> for SharedError {
    fn from(error: Error) -> Self {
        let mut message = error.message().to_owned();
        let mut cause = std::error::Error::source(&error);
        while let Some(source) = cause {
            message = format!("{message}: {source}");
            cause = source.source();
        }
        Self {
            kind: error.kind(),
            message,
            hint: error.hint().map(str::to_owned),
        }
    }
}

impl From<SharedError> for Error {
    fn from(shared: SharedError) -> Self {
        let error = Self::new(shared.kind, shared.message);
        match shared.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl SharedError {
    /// The error with its hint taken off, for one that carries the hint itself.
    pub(crate) fn without_hint(mut self) -> Self {
        self.hint = None;
        self
    }
}
