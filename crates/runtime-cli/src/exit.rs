//! The exit codes of this command, where it is not the command's own that it ran.

use std::process::ExitCode;

/// Everything went well.
pub(crate) const SUCCESS: Code = Code(0);
/// What was asked about does not hold: no backend works, a configuration is wrong.
pub(crate) const NEGATIVE: Code = Code(1);
/// We failed: the command did not run. As `docker run` has it.
pub(crate) const FAILURE: Code = Code(125);
/// Nobody reads our output any more; what a shell shows for SIGPIPE.
pub(crate) const BROKEN_PIPE: Code = Code(141);

/// An exit code of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Code(u8);

impl Code {
    /// The code of a command that ran. What does not fit into eight bits is cut as the system
    /// would cut it.
    pub(crate) fn of_command(code: i32) -> Self {
        Self(code.to_le_bytes()[0])
    }

    /// The code for a signal that ended us, as a shell shows it.
    pub(crate) fn of_signal(signal: u8) -> Self {
        Self(128 + signal)
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        code.0.into()
    }
}
