//! The one error type of every backend.

use std::error::Error as StdError;
use std::fmt;

/// The result of every fallible operation of prx-runtime.
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn StdError + Send + Sync + 'static>;

/// What kind of thing went wrong, for callers that decide by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request itself is wrong: an empty command, a NUL byte, a zero timeout.
    InvalidRequest,
    /// The configuration is wrong. The message names the file, the line and the key where known.
    InvalidConfig,
    /// The working directory is missing or is no directory.
    WorkingDirectory,
    /// The program was not found. The message says what was searched.
    ProgramNotFound,
    /// The program exists and cannot be executed.
    NotExecutable,
    /// Arguments or environment exceed what the operating system accepts.
    TooLarge,
    /// The backend cannot be used here and now: no engine, no permission, not compiled in.
    Unavailable,
    /// This backend cannot do what was asked, on any machine.
    Unsupported,
    /// What is configured cannot be enforced, so the command was not run.
    Refused,
    /// The container image or the module could not be obtained or is unusable.
    Image,
    /// No slot became free in time (`max_concurrent`).
    Busy,
    /// The operating system ran out of something: descriptors, processes, memory.
    Exhausted,
    /// An input or output operation failed.
    Io,
    /// The engine beneath the backend answered something unexpected or broke off.
    Engine,
}

impl ErrorKind {
    /// The kind in words, as a lowercase fragment.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid request",
            Self::InvalidConfig => "invalid configuration",
            Self::WorkingDirectory => "working directory",
            Self::ProgramNotFound => "program not found",
            Self::NotExecutable => "not executable",
            Self::TooLarge => "too large",
            Self::Unavailable => "unavailable",
            Self::Unsupported => "unsupported",
            Self::Refused => "refused",
            Self::Image => "image",
            Self::Busy => "busy",
            Self::Exhausted => "exhausted",
            Self::Io => "input or output",
            Self::Engine => "engine",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a command did not run, or why a runtime could not be made.
///
/// `Display` is one line: the message, then the causes, then the hint. Values of environment
/// variables are never part of it.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    hint: Option<String>,
    source: Option<Source>,
}

impl Error {
    /// An error of `kind`. `message` is a lowercase fragment that names the input concerned.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            hint: None,
            source: None,
        }))
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What went wrong, without causes and hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        let mut cause = self.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        if let Some(hint) = &self.0.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("hint", &self.0.hint)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_with_causes_and_hint() {
        let error = Error::new(ErrorKind::Unavailable, "cannot reach the engine")
            .with_source(std::io::Error::other("connection refused"))
            .with_hint("start dockerd");
        assert_eq!(
            error.to_string(),
            "cannot reach the engine: connection refused (hint: start dockerd)"
        );
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
