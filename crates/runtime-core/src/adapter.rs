//! The trait that callers hold.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use crate::request::{Stdin, quote};
use crate::{
    Description, Error, ErrorKind, Execution, ExecutionOutput, ExecutionRequest, Invocation, Probe,
    Result,
};

/// What `run` waits for where neither the request nor a configuration says, in adapters that only
/// have the published methods.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

/// One way to run commands, behind one face.
///
/// Three methods are required; an adapter with only these works wherever a
/// `dyn RuntimeAdapter` is taken. The backends of this project implement all.
///
/// # Cancellation
///
/// Dropping a future of [`execute`](Self::execute) or [`run`](Self::run) ends the command and all
/// it started, at once.
#[async_trait]
pub trait RuntimeAdapter: Send + Sync {
    /// Runs a command and returns its output. With `args`, `command` is a program that gets
    /// exactly those; without, it is a line for the backend's shell. `env` asks for variables,
    /// `working_dir` defaults to the caller's, `timeout` is counted from the command's start.
    ///
    /// # Errors
    ///
    /// The command did not run. A command that ran is `Ok`, however it ended.
    async fn execute(
        &self,
        command: &str,
        args: &[String],
        env: &HashMap<String, String>,
        working_dir: Option<&Path>,
        timeout: Duration,
    ) -> Result<ExecutionOutput>;

    /// Whether commands can be run here and now. Does real work, within 2 s.
    async fn is_available(&self) -> bool;

    /// The backend's name, as in `runtime.backend`.
    fn name(&self) -> &str;

    /// Runs a request: all that `execute` can, and stdin, output bound and tool besides.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute); [`ErrorKind::Unsupported`] where an adapter that only has
    /// the published methods is asked for more than they can say.
    async fn run(&self, request: ExecutionRequest) -> Result<ExecutionOutput> {
        let unsupported = |what: &str| {
            Error::new(
                ErrorKind::Unsupported,
                format!("the adapter `{}` cannot {what}", self.name()),
            )
        };
        match request.stdin {
            Stdin::Empty => {}
            _ => return Err(unsupported("give a command stdin")),
        }
        if request.max_output_bytes.is_some() {
            return Err(unsupported("bound the output of one call"));
        }
        let (command, args) = match request.invocation {
            Invocation::Shell { line } => (line, Vec::new()),
            // Without arguments `execute` reads a line: one word, quoted, means the same there.
            Invocation::Program { program, args } if args.is_empty() => {
                (quote(&program).into_owned(), args)
            }
            Invocation::Program { program, args } => (program, args),
        };
        self.execute(
            &command,
            &args,
            &request.env,
            request.working_dir.as_deref(),
            request.timeout.unwrap_or(DEFAULT_TIMEOUT),
        )
        .await
    }

    /// Starts a request and returns it as a live execution.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run); [`ErrorKind::Unsupported`] where the adapter has no live executions.
    async fn spawn(&self, request: ExecutionRequest) -> Result<Execution> {
        drop(request);
        Err(Error::new(
            ErrorKind::Unsupported,
            format!("the adapter `{}` has no live executions", self.name()),
        ))
    }

    /// Says what [`run`](Self::run) would do, and does nothing.
    ///
    /// # Errors
    ///
    /// What can be known to fail without trying; [`ErrorKind::Unsupported`] where the adapter does
    /// not say what it does.
    fn describe(&self, request: &ExecutionRequest) -> Result<Description> {
        let _ = request;
        Err(Error::new(
            ErrorKind::Unsupported,
            format!("the adapter `{}` does not say what it does", self.name()),
        ))
    }

    /// Whether commands can be run here and now, and why not.
    async fn probe(&self) -> Probe {
        if self.is_available().await {
            Probe::available("available")
        } else {
            Probe::unavailable("the adapter says so and gives no reason")
        }
    }

    /// What the adapter can do beyond running a program.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }
}

/// What a backend can do. Where one is missing, asking for it is an error that says so.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Capabilities {
    /// Lines are run by a shell: pipes, redirections, variables.
    pub shell: bool,
    /// A command can start processes of its own.
    pub child_processes: bool,
    /// A command can be sent signals, and die of one.
    pub signals: bool,
    /// Programs of the host are there; otherwise those of an image or a module directory.
    pub host_programs: bool,
    /// Live executions: [`RuntimeAdapter::spawn`] with piped stdin.
    pub sessions: bool,
    /// An end with code 128 + n is told apart from death by signal n; otherwise it is taken for
    /// that, because an init in between reports both alike.
    pub exact_exit: bool,
    /// How many processes a command left behind is known
    /// ([`ExecutionOutput::leftover_processes`]); otherwise they are ended uncounted, as the kernel
    /// does when the first process of a PID namespace ends.
    pub counts_leftovers: bool,
}

impl Capabilities {
    /// Everything.
    pub fn all() -> Self {
        Self {
            shell: true,
            child_processes: true,
            signals: true,
            host_programs: true,
            sessions: true,
            exact_exit: true,
            counts_leftovers: true,
        }
    }
}
