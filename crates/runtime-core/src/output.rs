//! What an execution returns.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::backend::Exit;
use crate::{Captured, ExecutionId, Isolation};

/// How an execution ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Termination {
    /// The command ended by itself.
    Exited,
    /// A signal that was not ours ended the command; its number.
    Signaled(i32),
    /// The deadline passed and the command was ended.
    TimedOut,
    /// The caller ended it through its handle.
    Cancelled,
    /// A memory limit ended it.
    OutOfMemory,
    /// A WebAssembly trap ended it; the reason.
    Trapped(String),
    /// The confiner itself said that it denied the command; what it said.
    SandboxDenied(String),
}

impl fmt::Display for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited => f.write_str("exited"),
            Self::Signaled(signal) => write!(f, "signaled({signal})"),
            Self::TimedOut => f.write_str("timed out"),
            Self::Cancelled => f.write_str("cancelled"),
            Self::OutOfMemory => f.write_str("out of memory"),
            Self::Trapped(reason) => write!(f, "trapped: {reason}"),
            Self::SandboxDenied(reason) => write!(f, "denied by the sandbox: {reason}"),
        }
    }
}

/// Exit code of an execution that its deadline ended, as `timeout(1)` has it.
pub(crate) const TIMED_OUT: i32 = 124;
/// Exit code of an execution that its caller ended, as a shell has it for an interrupt.
pub(crate) const CANCELLED: i32 = 130;
/// Exit code of a trapped guest, as for a process that `abort` ended.
pub(crate) const TRAPPED: i32 = 134;
/// Exit code of an execution that a memory limit ended, as for a process killed by the kernel.
pub(crate) const OUT_OF_MEMORY: i32 = 137;

/// A command that ran, however it ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ExecutionOutput {
    /// Standard output, up to its bound.
    pub stdout: Captured,
    /// Standard error, up to its bound.
    pub stderr: Captured,
    /// The command's own code; 128 + n for death by signal n, 124 after the deadline, 130 after
    /// cancellation, 134 for a trap, 137 for want of memory.
    pub exit_code: i32,
    /// From the start of the command to its end, clean-up not included.
    pub duration: Duration,
    /// How it ended.
    pub termination: Termination,
    /// What was really in force around it.
    pub isolation: Arc<Isolation>,
    /// Processes of the command that were still there after its main process had ended by itself
    /// and that were ended then.
    pub leftover_processes: u32,
    /// Names of the variables that the call asked for and the command did not get, sorted.
    pub refused_env: Vec<String>,
    /// The backend that ran it.
    pub backend: String,
    /// The random name of this execution, as in the logs; `None` from adapters that have none.
    pub id: Option<ExecutionId>,
    /// Where something of it was kept on purpose: the container's id under `auto_remove = false`.
    pub kept: Option<String>,
}

impl ExecutionOutput {
    /// The output of an adapter that knows no more than the four published fields.
    pub fn new(
        stdout: impl Into<Captured>,
        stderr: impl Into<Captured>,
        exit_code: i32,
        duration: Duration,
    ) -> Self {
        Self {
            stdout: stdout.into(),
            stderr: stderr.into(),
            exit_code,
            duration,
            termination: Termination::Exited,
            isolation: Arc::default(),
            leftover_processes: 0,
            refused_env: Vec::new(),
            backend: String::new(),
            id: None,
            kept: None,
        }
    }

    /// Whether the command ended by itself with code 0.
    pub fn success(&self) -> bool {
        self.termination == Termination::Exited && self.exit_code == 0
    }
}

/// What a backend's report means for the caller, when nothing of ours ended the command.
pub(crate) fn verdict(exit: Exit) -> (Termination, i32) {
    match exit {
        Exit::Code(code) => (Termination::Exited, code),
        Exit::Signal(signal) => (Termination::Signaled(signal), 128 + signal),
        Exit::OutOfMemory => (Termination::OutOfMemory, OUT_OF_MEMORY),
        Exit::Trapped(reason) => (Termination::Trapped(reason), TRAPPED),
        Exit::SandboxDenied { code, reason } => (Termination::SandboxDenied(reason), code),
    }
}
