//! The start of a confined command, and what its launcher reports.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use prx_runtime_core::backend::Exit;
use prx_runtime_core::confine::{Confiner, Hold, Launch, LocalCommand, Report, ReportPipe, Step};
use prx_runtime_core::{
    EXECUTION_ID_VARIABLE, Error, ErrorKind, Invocation, Isolation, Owner, Plan, Result,
    StdinSource, Stdio,
};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use crate::error::{self, Target};
use crate::pump::{InputPump, OutputPump};
use crate::running::NativeRunning;
use crate::shell::Shell;
use crate::spawn_thread::{Start, Thread};
use crate::tree::{Cookie, Leader, Started};

/// How long a command may take to run once its launcher is started. What takes longer waits for
/// something: a file system that does not answer, a lock.
const START_BUDGET: Duration = Duration::from_secs(60);
/// How much of what a failing launcher says is quoted, in bytes.
const QUOTED: u64 = 2048;
/// How often a launcher that failed without a report is tried again, and what lies between.
const TRIES: u32 = 6;
const PAUSE: Duration = Duration::from_millis(4);
/// How long a launcher that has given up may take to end.
const PATIENCE: Duration = Duration::from_secs(2);

/// What came with a confined command and lives as long as it.
pub(crate) struct Confinement {
    report: Option<Reports>,
    /// Said by the report: nothing but the main process was left.
    alone: bool,
    /// Before what is held: what dies with the thread, or was still being started by it, is gone by
    /// then.
    _thread: Thread,
    hold: Box<dyn Hold>,
    isolation: Arc<Isolation>,
}

impl fmt::Debug for Confinement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Confinement").finish_non_exhaustive()
    }
}

impl Confinement {
    pub(crate) fn isolation(&self) -> Arc<Isolation> {
        Arc::clone(&self.isolation)
    }

    /// Whether it is known that nothing but the main process was left.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Waits for the end of the command. Cancel-safe.
    pub(crate) async fn exited(&mut self, leader: &Leader) -> io::Result<Exit> {
        let exit = match &mut self.report {
            None => leader.wait().await?,
            Some(reports) => loop {
                match reports.next().await? {
                    Some(Report::Exited { status, alone }) => {
                        self.alone = alone;
                        break of_status(status);
                    }
                    Some(_) => {}
                    // The launcher was ended before it could report: so was all that it held.
                    None => break through_launcher(leader.wait().await?),
                }
            },
        };
        Ok(self.hold.judge(exit))
    }
}

/// A wait status, as the kernel encodes it.
fn of_status(status: i32) -> Exit {
    match status & 0x7f {
        0 => Exit::Code(status >> 8 & 0xff),
        signal => Exit::Signal(signal),
    }
}

/// What launchers make of the end of the process below them.
fn through_launcher(exit: Exit) -> Exit {
    match exit {
        Exit::Code(code) if code > 128 => Exit::Signal(code - 128),
        exit => exit,
    }
}

/// Starts what `plan` says, confined by `confiner`.
pub(crate) async fn start(
    plan: &Plan,
    stdio: Stdio,
    shell: &Shell,
    target: &Target,
    confiner: &dyn Confiner,
) -> Result<NativeRunning> {
    let with_stdin = !matches!(stdio.stdin, StdinSource::Empty);
    let mut tries = 0;
    let (started, confinement) = loop {
        let cookie = Cookie::new(plan.id, Owner::current());
        let launch = confiner.confine(&local_command(plan, shell, target, &cookie))?;
        let attempt = attempt(launch, cookie, with_stdin);
        let outcome = tokio::time::timeout(START_BUDGET, attempt).await;
        match outcome.unwrap_or(Err(Failure::Slow)) {
            Ok(done) => break done,
            // Nothing of the command has run. A launcher that copies the host's mounts fails when
            // one of them comes or goes meanwhile, as they do beside a container engine.
            Err(Failure::Mute(said)) if tries < TRIES => {
                tracing::debug!(
                    confiner = confiner.name(),
                    said,
                    "a launcher is tried again"
                );
                tries += 1;
                tokio::time::sleep(PAUSE * tries).await;
            }
            Err(failure) => return Err(failure.explain(plan, target, confiner)),
        }
    };
    Ok(NativeRunning::confined(
        started.leader,
        InputPump::new(started.stdin, stdio.stdin),
        OutputPump::new(started.stdout, stdio.stdout),
        OutputPump::new(started.stderr, stdio.stderr),
        confinement,
    ))
}

/// Starts the process of `launch` and waits until the command runs.
///
/// Where this is dropped, the order of the variables here counts: first the processes end, then the
/// thread, then what holds them, such as a group that has to be empty, and at last the descriptors
/// that the thread knows by their numbers are closed.
async fn attempt(
    launch: Launch,
    cookie: Cookie,
    with_stdin: bool,
) -> Result<(Started, Confinement), Failure> {
    let Launch {
        program,
        name,
        args,
        environment,
        working_dir,
        inherited,
        on_thread,
        report,
        supervisors,
        hold,
        isolation,
    } = launch;
    let report = report.map(Reports::new).transpose().map_err(Failure::Io)?;
    let streams = Streams::new(with_stdin).map_err(Failure::Io)?;
    let start = Start {
        program,
        name,
        args,
        environment,
        working_dir,
        inherited: inherited.iter().map(AsRawFd::as_raw_fd).collect(),
        on_thread: on_thread.clone(),
        streams: streams.theirs.each_ref().map(AsRawFd::as_raw_fd),
        cookie,
        supervisors,
        with_launcher: report.is_some(),
    };
    let (thread, spawned) = Thread::start(start).map_err(Failure::Io)?;
    // Before the processes, which end before what holds them is given up.
    let mut confinement = Confinement {
        report,
        alone: false,
        _thread: thread,
        hold,
        isolation,
    };
    let spawned = spawned
        .await
        .map_err(|_| Failure::Io(io::Error::other("the thread that starts it ended")))?;
    // The thread could only have closed its own copies of what these own.
    drop((inherited, on_thread));
    drop(streams.theirs);
    let mut started =
        Leader::adopt(spawned?, streams.stdin, streams.stdout_and_stderr).map_err(Failure::Io)?;
    meet_launcher(&mut confinement, &mut started).await?;
    Ok((started, confinement))
}

fn local_command(plan: &Plan, shell: &Shell, target: &Target, cookie: &Cookie) -> LocalCommand {
    let (name, args): (OsString, Vec<OsString>) = match &plan.invocation {
        Invocation::Program { program, args } => {
            (program.into(), args.iter().map(OsString::from).collect())
        }
        Invocation::Shell { line } => (
            target.path.clone().into(),
            shell.args(line).map(OsString::from).collect(),
        ),
    };
    let mark = (EXECUTION_ID_VARIABLE.into(), cookie.value().into());
    let environment = plan
        .environment
        .iter()
        .map(|(name, value)| (name.into(), value.to_owned()))
        .chain([mark])
        .collect();
    LocalCommand {
        id: plan.id,
        program: target.path.clone(),
        name,
        args,
        environment,
        working_dir: plan.working_dir.clone(),
    }
}

/// Why the command does not run.
pub(crate) enum Failure {
    /// The launcher says so.
    Step { step: Step, errno: i32 },
    /// The launcher ended before it could say anything; what it wrote to stderr.
    Mute(String),
    /// Nobody said in time whether it runs.
    Slow,
    /// The thread that starts it cannot have descriptors of its own.
    Descriptors(io::Error),
    /// What confines the thread that starts it cannot be had.
    Rules(io::Error),
    /// The launcher cannot be started.
    Launcher(io::Error),
    /// The command itself cannot be started.
    Program(io::Error),
    /// Something that it needs cannot be made.
    Io(io::Error),
}

impl Failure {
    fn explain(self, plan: &Plan, target: &Target, confiner: &dyn Confiner) -> Error {
        let name = confiner.name();
        match self {
            Self::Step {
                step: Step::Program,
                errno,
            } => error::spawn(io::Error::from_raw_os_error(errno), plan, target),
            Self::Step {
                step: Step::WorkingDirectory,
                errno,
            } => Error::new(
                ErrorKind::WorkingDirectory,
                format!(
                    "the working directory `{}` cannot be entered in the sandbox `{name}`",
                    plan.working_dir.display()
                ),
            )
            .with_source(io::Error::from_raw_os_error(errno)),
            Self::Step { step, errno } => refused(confiner, &format!("{} failed", step.as_str()))
                .with_source(io::Error::from_raw_os_error(errno)),
            Self::Mute(said) if said.is_empty() => refused(confiner, "its launcher ended"),
            Self::Mute(said) => refused(confiner, &format!("its launcher said `{said}`")),
            Self::Slow => refused(
                confiner,
                &format!("its launcher did not start it within {START_BUDGET:?}"),
            )
            .with_hint(
                "the launcher waits for something, such as a mounted file system that does not \
                 answer: run it by hand",
            ),
            Self::Descriptors(error) => refused(
                confiner,
                "the thread that starts it may have no descriptors of its own",
            )
            .with_source(error)
            .with_hint(
                "a filter of system calls around this process forbids both close_range with \
                 CLOSE_RANGE_UNSHARE and unshare: a container engine's filter does where it is \
                 older than 2021",
            ),
            Self::Rules(error) => {
                refused(confiner, "its rules cannot be made to hold").with_source(error)
            }
            Self::Launcher(error) => {
                refused(confiner, "its launcher cannot be started").with_source(error)
            }
            Self::Program(error) => error::spawn(error, plan, target),
            Self::Io(error) => Error::new(
                ErrorKind::Exhausted,
                "a confined command cannot be prepared",
            )
            .with_source(error),
        }
    }
}

fn refused(confiner: &dyn Confiner, what: &str) -> Error {
    let name = confiner.name();
    let error = Error::new(
        ErrorKind::Refused,
        format!("the command cannot be confined by `{name}`: {what}"),
    );
    match confiner.hint() {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Waits until the command runs, as far as its launcher reports.
async fn meet_launcher(
    confinement: &mut Confinement,
    started: &mut Started,
) -> Result<(), Failure> {
    let Some(reports) = &mut confinement.report else {
        return Ok(());
    };
    match reports.next().await.map_err(Failure::Io)? {
        Some(Report::Started) => Ok(()),
        Some(Report::Failed { step, errno }) => Err(Failure::Step { step, errno }),
        Some(Report::Exited { .. }) | None if reports.stays => {
            let mut said = Vec::new();
            let Started { leader, stderr, .. } = started;
            let listen = async {
                let _ = stderr.take(QUOTED).read_to_end(&mut said).await;
                let _ = leader.wait().await;
            };
            let _ = tokio::time::timeout(PATIENCE, listen).await;
            let said = String::from_utf8_lossy(&said);
            Err(Failure::Mute(said.trim().replace('\n', "; ")))
        }
        // It has become the command.
        Some(Report::Exited { .. }) | None => {
            confinement.report = None;
            Ok(())
        }
    }
}

/// The pipe that a launcher reports on.
struct Reports {
    pipe: pipe::Receiver,
    parse: fn([u8; ReportPipe::RECORD]) -> Option<Report>,
    stays: bool,
    record: [u8; ReportPipe::RECORD],
    read: usize,
}

impl Reports {
    fn new(report: ReportPipe) -> io::Result<Self> {
        Ok(Self {
            pipe: pipe::Receiver::from_owned_fd(report.pipe)?,
            parse: report.parse,
            stays: report.stays,
            record: [0; ReportPipe::RECORD],
            read: 0,
        })
    }

    /// The next report; `None` at the end of the stream. Cancel-safe.
    async fn next(&mut self) -> io::Result<Option<Report>> {
        while self.read < self.record.len() {
            let read = self.pipe.read(&mut self.record[self.read..]).await?;
            if read == 0 {
                return Ok(None);
            }
            self.read += read;
        }
        self.read = 0;
        (self.parse)(self.record)
            .map(Some)
            .ok_or_else(|| io::Error::other("the launcher reports what nobody understands"))
    }
}

/// The ends of the command's standard streams.
struct Streams {
    theirs: [OwnedFd; 3],
    stdin: Option<OwnedFd>,
    stdout_and_stderr: [OwnedFd; 2],
}

impl Streams {
    fn new(with_stdin: bool) -> io::Result<Self> {
        let (their_stdin, stdin) = if with_stdin {
            let (theirs, ours) = pipe_with(PipeFlags::CLOEXEC)?;
            (theirs, Some(ours))
        } else {
            (File::open("/dev/null")?.into(), None)
        };
        let (stdout, their_stdout) = pipe_with(PipeFlags::CLOEXEC)?;
        let (stderr, their_stderr) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Self {
            theirs: [their_stdin, their_stdout, their_stderr],
            stdin,
            stdout_and_stderr: [stdout, stderr],
        })
    }
}
