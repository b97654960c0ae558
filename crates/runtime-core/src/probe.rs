//! Whether a backend can be used, and why not.

use serde::Serialize;

use crate::{Error, ErrorKind};

/// The answer of a backend that was asked whether it works here and now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Probe {
    /// Whether the backend works.
    pub available: bool,
    /// What was found: a version where it works, the reason where it does not.
    pub detail: String,
    /// What to do about it, where it does not work.
    pub hint: Option<String>,
}

impl Probe {
    /// The backend works; `detail` says what was found.
    pub fn available(detail: impl Into<String>) -> Self {
        Self {
            available: true,
            detail: detail.into(),
            hint: None,
        }
    }

    /// The backend does not work, and why.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self {
            available: false,
            detail: reason.into(),
            hint: None,
        }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The backend does not work because of `error`.
    pub fn from_error(error: &Error) -> Self {
        let mut detail = error.message().to_owned();
        let mut cause = std::error::Error::source(error);
        while let Some(source) = cause {
            detail = format!("{detail}: {source}");
            cause = source.source();
        }
        Self {
            available: false,
            detail,
            hint: error.hint().map(str::to_owned),
        }
    }

    /// `Ok` where the backend works, otherwise an [`ErrorKind::Unavailable`] that names `backend`.
    ///
    /// # Errors
    ///
    /// As said.
    pub fn require(self, backend: &str) -> Result<(), Error> {
        if self.available {
            return Ok(());
        }
        let error = Error::new(
            ErrorKind::Unavailable,
            format!("the {backend} backend is not available: {}", self.detail),
        );
        Err(match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        })
    }
}
