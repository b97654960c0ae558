//! One call of a tool.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, Stdin};

/// What a caller gives to a tool.
#[derive(Default)]
pub struct ToolCall {
    pub(crate) args: Vec<String>,
    env: HashMap<String, String>,
    working_dir: Option<PathBuf>,
    pub(crate) timeout: Option<Duration>,
    stdin: Option<Stdin>,
}

impl ToolCall {
    /// A call without arguments.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds arguments, after those that the tool's configuration has.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Asks for a variable, as [`ExecutionRequest::env`] does.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// The directory to run in, as [`ExecutionRequest::working_dir`] says.
    #[must_use]
    pub fn working_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(directory.into());
        self
    }

    /// How long the call may take; never longer than the tool's own `timeout_secs`.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Whether a timeout was set.
    pub fn has_timeout(&self) -> bool {
        self.timeout.is_some()
    }

    /// Where stdin comes from.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = Some(stdin);
        self
    }

    /// Puts everything but arguments and timeout into `request`.
    pub(crate) fn apply(self, mut request: ExecutionRequest) -> ExecutionRequest {
        request = request.envs(self.env);
        if let Some(directory) = self.working_dir {
            request = request.working_dir(directory);
        }
        match self.stdin {
            Some(stdin) => request.stdin(stdin),
            None => request,
        }
    }
}

impl fmt::Debug for ToolCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolCall")
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("working_dir", &self.working_dir)
            .field("timeout", &self.timeout)
            .field("stdin", &self.stdin)
            .finish()
    }
}
