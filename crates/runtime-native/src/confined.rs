//! The start of a confined command, on a thread of its own, and what its launcher reports.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio as Standard;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
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
use tokio::sync::oneshot;

use crate::command;
use crate::error::{self, Target};
use crate::pump::{InputPump, OutputPump};
use crate::running::NativeRunning;
use crate::shell::Shell;
use crate::tree::{Cookie, Leader, Spawned, Started};

/// The thread starts one process and then waits.
const STACK: usize = 256 * 1024;
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
    hold: Box<dyn Hold>,
    isolation: Arc<Isolation>,
    /// Last: what dies with the thread is gone by then.
    _thread: Thread,
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
        match attempt(launch, cookie, with_stdin).await {
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
/// Where this is dropped, the thread is waited for before the descriptors that it knows by their
/// numbers are closed: the order of the variables here.
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
    let with_launcher = report.is_some();
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
    };
    let (thread, spawned) = Thread::start(start).map_err(Failure::Io)?;
    let spawned = spawned
        .await
        .map_err(|_| Failure::Io(io::Error::other("the thread that starts it ended")))?;
    // The thread could only have closed its own copies of what these own.
    drop((inherited, on_thread));
    drop(streams.theirs);
    let spawned = spawned.map_err(|error| {
        if with_launcher {
            Failure::Launcher(error)
        } else {
            Failure::Program(error)
        }
    })?;
    let mut started =
        Leader::adopt(spawned, streams.stdin, streams.stdout_and_stderr).map_err(Failure::Io)?;
    let mut confinement = Confinement {
        report,
        alone: false,
        hold,
        isolation,
        _thread: thread,
    };
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
enum Failure {
    /// The launcher says so.
    Step { step: Step, errno: i32 },
    /// The launcher ended before it could say anything; what it wrote to stderr.
    Mute(String),
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

/// What the thread needs to start the process. Descriptors by their numbers: the thread has a table
/// of its own, in which they are copies.
struct Start {
    program: std::path::PathBuf,
    name: OsString,
    args: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    working_dir: std::path::PathBuf,
    inherited: Vec<RawFd>,
    on_thread: Option<prx_runtime_core::confine::ThreadHook>,
    streams: [RawFd; 3],
    cookie: Cookie,
    supervisors: u32,
}

impl Start {
    /// Starts the process from this thread, which is not good for much else afterwards.
    fn run(self) -> io::Result<Spawned> {
        take_own_table()?;
        for fd in &self.inherited {
            // SAFETY: only a flag is changed, in the table that this thread has for itself.
            if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } == -1 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(prepare) = self.on_thread {
            prepare()?;
        }
        // SAFETY: in this thread's own table these are copies that nothing else refers to.
        let [stdin, stdout, stderr] = self.streams.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let mut command = command::confined(&self.program);
        command
            .arg0(&self.name)
            .args(&self.args)
            .env_clear()
            .envs(self.environment)
            .current_dir(&self.working_dir)
            .process_group(0)
            .stdin(Standard::from(stdin))
            .stdout(Standard::from(stdout))
            .stderr(Standard::from(stderr));
        Spawned::start(&mut command, self.cookie, self.supervisors)
    }
}

/// From here on this thread's descriptors are its own, and none of them is inherited unless that
/// is said of it: neither by what this thread starts nor, by way of this thread, by what others do.
fn take_own_table() -> io::Result<()> {
    // SAFETY: the thread is ours; it holds no descriptor that anybody else would close by it.
    if unsafe { libc::unshare(libc::CLONE_FILES) } == -1 {
        return Err(io::Error::last_os_error());
    }
    on_all_descriptors(3, libc::CLOSE_RANGE_CLOEXEC)
}

/// Gives up the copies of everything that the host has open: they would keep its pipes from ending.
fn drop_own_table() {
    // Where it fails nothing can be done, and the thread ends with the execution.
    let _ = on_all_descriptors(0, 0);
}

fn on_all_descriptors(first: libc::c_uint, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the table is this thread's own, and nothing in this thread uses a descriptor later.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) };
    if done == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The thread that a process is started from. It waits until it is dropped: what is to die with its
/// parent dies with the thread that started it.
struct Thread {
    stop: Option<mpsc::Sender<()>>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    fn start(start: Start) -> io::Result<(Self, oneshot::Receiver<io::Result<Spawned>>)> {
        let (done, spawned) = oneshot::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let handle = std::thread::Builder::new()
            .name("prx-runtime-spawn".into())
            .stack_size(STACK)
            .spawn(move || {
                // Whoever waited may have gone; then the process goes with what was sent. Sending
                // comes before the table goes: a sleeping runtime is woken through a descriptor.
                drop(done.send(start.run()));
                drop_own_table();
                let _ = stopped.recv();
            })?;
        Ok((
            Self {
                stop: Some(stop),
                handle: Some(handle),
            },
            spawned,
        ))
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(handle) = self.handle.take() {
            // It only has to wake up.
            let _ = handle.join();
        }
    }
}
