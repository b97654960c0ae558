//! The random name of an execution.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::{Error, ErrorKind, Result};

/// 128 random bits that name one execution in logs, labels and cookies. Displays as 32 hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ExecutionId(u128);

impl ExecutionId {
    /// A new random id.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Exhausted`] where the operating system gives no random bytes.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            Error::new(
                ErrorKind::Exhausted,
                "cannot get random bytes for an execution id",
            )
            .with_source(error)
        })?;
        Ok(Self(u128::from_ne_bytes(bytes)))
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ExecutionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
