//! What stands between the native backend and a sandbox: a confiner is given a command that is
//! ready to be started, and says what is to be started instead, and how.
//!
//! The native backend starts processes and ends them; a confiner never does. A confiner knows
//! namespaces, filters and limits; the native backend never does. Neither depends on the other.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use crate::backend::Exit;
use crate::{ExecutionId, Isolation, Result};

/// A local command, resolved: what would be started if nothing confined it.
#[derive(Clone)]
pub struct LocalCommand {
    /// The random name of the execution.
    pub id: ExecutionId,
    /// The file to execute; absolute.
    pub program: PathBuf,
    /// The name the program is called by.
    pub name: OsString,
    /// The arguments after the name.
    pub args: Vec<OsString>,
    /// The whole environment, the mark of the execution included.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory to run in; absolute.
    pub working_dir: PathBuf,
}

/// Names and counts only: arguments and values may be secrets.
impl fmt::Debug for LocalCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalCommand")
            .field("id", &self.id)
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("working_dir", &self.working_dir)
            .finish_non_exhaustive()
    }
}

/// Confines local commands.
pub trait Confiner: Send + Sync + fmt::Debug {
    /// What it is called, as in `security.sandbox.backend`.
    fn name(&self) -> &str;

    /// How `command` is started confined. Makes what has to be there before (a cgroup, say), which
    /// goes when the launch is dropped, and starts no process.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](crate::ErrorKind::Refused) where what is configured cannot be
    /// enforced around this command.
    fn confine(&self, command: &LocalCommand) -> Result<Launch>;

    /// What to do about it where a launcher fails, by what this machine says of itself.
    fn hint(&self) -> Option<String> {
        None
    }

    /// What holds around every command, as far as that is known before one is started.
    fn isolation(&self) -> Arc<Isolation>;
}

/// What runs on the thread that starts the process. See [`Launch::on_thread`].
pub type ThreadHook = Arc<dyn Fn() -> io::Result<()> + Send + Sync>;

/// How a confined command is started: the process that is really executed, and what comes with it.
pub struct Launch {
    /// The file to execute; absolute.
    pub program: PathBuf,
    /// The name it is called by.
    pub name: OsString,
    /// The arguments after the name. Everybody on the machine can read them.
    pub args: Vec<OsString>,
    /// The whole environment of that process.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory of that process.
    pub working_dir: PathBuf,
    /// Descriptors that the process inherits, under their own numbers, besides its standard
    /// streams. It inherits no others, whatever the host forgot to mark close-on-exec.
    pub inherited: Vec<OwnedFd>,
    /// Runs right before the start, on a thread that exists for this one start: what the thread
    /// does to itself (Landlock, seccomp, capabilities) is inherited by the process and by nothing
    /// else. The thread has a table of descriptors of its own by then: what the hook opens is closed
    /// in there, and what it owns is kept until it can be closed in the host's. The thread lives as long as the
    /// execution does, so that a process that dies with its parent dies with the execution.
    pub on_thread: Option<ThreadHook>,
    /// What a launcher between us and the command says about the command. Without one, the process
    /// that is started is the command.
    pub report: Option<ReportPipe>,
    /// How many generations of processes, from the started one down, are not the command but stand
    /// around it. They are not asked to end (TERM); they end with what they hold (KILL).
    pub supervisors: u32,
    /// What has to live as long as the execution.
    pub hold: Box<dyn Hold>,
    /// What is in force around the command.
    pub isolation: Arc<Isolation>,
}

impl fmt::Debug for Launch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launch")
            .field("program", &self.program)
            .field("args", &self.args.len())
            .field("supervisors", &self.supervisors)
            .finish_non_exhaustive()
    }
}

/// What was made for one execution. Dropping it, after every process of the execution has ended,
/// removes it.
pub trait Hold: Send {
    /// What the end of the command means by all that is known: whether the kernel ended it for want
    /// of memory, say.
    fn judge(&mut self, exit: Exit) -> Exit {
        exit
    }
}

/// Nothing to be held.
impl Hold for () {}

/// Our end of a pipe on which a launcher reports, out of the command's reach.
#[derive(Debug)]
pub struct ReportPipe {
    /// The end to read: records of [`RECORD`](Self::RECORD) bytes.
    pub pipe: OwnedFd,
    /// What a record means; `None` for one that no launcher of this confiner writes.
    pub parse: fn([u8; Self::RECORD]) -> Option<Report>,
    /// Whether the launcher stays: it then reports the start and the end of the command. A
    /// launcher that becomes the command reports only what kept it from doing so; the end of the
    /// stream without a record is the start.
    pub stays: bool,
}

impl ReportPipe {
    /// The length of a record in bytes: a pipe takes it as a whole or not at all.
    pub const RECORD: usize = 8;
}

/// What a launcher reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// The command runs.
    Started,
    /// The command does not run, and nothing of it ever did.
    Failed {
        /// What was tried.
        step: Step,
        /// The error number of the system.
        errno: i32,
    },
    /// The main process of the command has ended.
    Exited {
        /// Its status, as `waitpid` has it.
        status: i32,
        /// Nothing that the command started is left.
        alone: bool,
    },
}

/// What a launcher does before the command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Its own business, such as reading what to do.
    Launcher,
    /// Joining a cgroup.
    Cgroup,
    /// Setting a limit.
    Limit,
    /// Entering the working directory.
    WorkingDirectory,
    /// Executing the program.
    Program,
    /// Finding itself in namespaces of its own.
    Namespaces,
    /// Forbidding the command what no namespace does.
    Filter,
}

impl Step {
    /// The step in words, as a lowercase fragment.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Launcher => "preparing the command",
            Self::Cgroup => "joining its cgroup",
            Self::Limit => "setting its limits",
            Self::WorkingDirectory => "entering its working directory",
            Self::Program => "executing its program",
            Self::Namespaces => "finding namespaces of its own around it",
            Self::Filter => "forbidding it system calls and files",
        }
    }
}
