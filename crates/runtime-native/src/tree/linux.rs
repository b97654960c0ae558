//! Linux: a process group, the cookie, ancestry, and descriptors of processes.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prx_runtime_core::OwnerState;
use prx_runtime_core::backend::Exit;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;

use super::proc::{self, Process};
use super::{Cookie, Started, cookie};

/// Our end of a stream that the command writes.
pub(crate) type PipeReader = pipe::Receiver;
/// Our end of a stream that the command reads.
pub(crate) type PipeWriter = pipe::Sender;

/// What a pipe is widened to when a command fills it: measured, reads of 256 KiB from a pipe of
/// this size move almost twice as much as reads of 64 KiB from a pipe of the default size.
const WIDE_PIPE: usize = 1 << 20;
/// An execution shorter than this cannot have used up all pids in between: 32 768 forks, the
/// smallest table, take several times as long.
const TOO_SHORT_TO_WRAP: Duration = Duration::from_millis(100);
/// Between two looks at what is still there.
const ROUND: Duration = Duration::from_millis(2);
/// How many such looks a drop takes before it leaves the reaping to a thread.
const DROP_ROUNDS: u32 = 100;

/// Makes the pipe behind `reader` hold more. Where the system refuses, it stays as it is.
pub(crate) fn widen(reader: &PipeReader) {
    let _ = rustix::pipe::fcntl_setpipe_size(reader, WIDE_PIPE);
}

/// A command's main process. It stays unreaped until [`Leader::release`], so that its pid, which
/// names the group too, cannot be given to another process while we may still signal it.
#[derive(Debug)]
pub(crate) struct Leader {
    child: Option<Child>,
    descriptor: AsyncFd<OwnedFd>,
    tree: Arc<Tree>,
}

impl Leader {
    /// Starts `command` in a group of its own, marked with `cookie`, with pipes for its output.
    pub(crate) fn spawn(
        mut command: std::process::Command,
        cookie: Cookie,
        with_stdin: bool,
    ) -> io::Result<Started> {
        command
            .env(prx_runtime_core::EXECUTION_ID_VARIABLE, cookie.value())
            .process_group(0)
            .stdin(if with_stdin {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let started = Instant::now();
        let mut child = command.spawn()?;
        let tree = Arc::new(Tree {
            leader: child.id().cast_signed(),
            cookie,
            started,
            reaped: Mutex::new(false),
        });
        let streams = attach(&mut child);
        match streams {
            Ok((descriptor, stdin, stdout, stderr)) => Ok(Started {
                leader: Self {
                    child: Some(child),
                    descriptor,
                    tree,
                },
                stdin,
                stdout,
                stderr,
            }),
            Err(error) => {
                tree.end_now(child);
                Err(error)
            }
        }
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Waits for the end of the process and leaves it unreaped. Cancel-safe.
    pub(crate) async fn wait(&self) -> io::Result<Exit> {
        loop {
            let mut ready = self.descriptor.readable().await?;
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
            match waitid(WaitId::PidFd(self.descriptor.get_ref().as_fd()), look) {
                Ok(Some(status)) => {
                    return Ok(match (status.exit_status(), status.terminating_signal()) {
                        (Some(code), _) => Exit::Code(code),
                        (None, Some(signal)) => Exit::Signal(signal),
                        (None, None) => Exit::Code(0),
                    });
                }
                Ok(None) => ready.clear_ready(),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Ends what the process left behind and reaps it, after [`wait`](Self::wait) has answered or
    /// the tree was killed. Returns how many others were still there.
    pub(crate) async fn release(&mut self) -> u32 {
        let Some(child) = &mut self.child else {
            return 0;
        };
        let mut found = HashSet::new();
        if !self.tree.cannot_have_forked() {
            loop {
                let there = self.tree.kill();
                if there.is_empty() {
                    break;
                }
                found.extend(there);
                tokio::time::sleep(ROUND).await;
            }
        }
        loop {
            if self.tree.reap(child) {
                self.child = None;
                return u32::try_from(found.len()).unwrap_or(u32::MAX);
            }
            tokio::time::sleep(ROUND).await;
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.tree.end_now(child);
        }
    }
}

type Attached = (AsyncFd<OwnedFd>, Option<PipeWriter>, PipeReader, PipeReader);

/// Registers what is to be waited for. An error leaves the child to the caller.
fn attach(child: &mut Child) -> io::Result<Attached> {
    let missing = || io::Error::other("a pipe that was asked for is not there");
    let pid = Pid::from_child(child);
    let descriptor = pidfd_open(pid, PidfdFlags::NONBLOCK).or_else(|error| match error {
        // Kernels before 5.10 know no flag here; none is needed, the descriptor is never read.
        rustix::io::Errno::INVAL => pidfd_open(pid, PidfdFlags::empty()),
        error => Err(error),
    })?;
    // SAFETY: the descriptor is owned, nothing else closes it, and it stays the same one for as long
    // as the registration lives, which owns it from here on.
    let descriptor = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
    let stdin = match child.stdin.take() {
        Some(stdin) => Some(PipeWriter::from_owned_fd(stdin.into())?),
        None => None,
    };
    let stdout = PipeReader::from_owned_fd(child.stdout.take().ok_or_else(missing)?.into())?;
    let stderr = PipeReader::from_owned_fd(child.stderr.take().ok_or_else(missing)?.into())?;
    Ok((descriptor, stdin, stdout, stderr))
}

/// What can be signalled of an execution, from any thread.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The pid of the main process, which is the id of its group.
    leader: i32,
    cookie: Cookie,
    started: Instant,
    /// Once the main process is reaped its pid may belong to anybody.
    reaped: Mutex<bool>,
}

impl Tree {
    /// TERM to everything, and CONT for what is stopped and could not act on it.
    pub(crate) fn terminate(&self) {
        self.signal(&[Signal::TERM, Signal::CONT]);
    }

    /// KILL to everything. Returns what was there besides the main process.
    pub(crate) fn kill(&self) -> Vec<(i32, u64)> {
        let members = self.signal(&[Signal::KILL]);
        members
            .iter()
            .map(|process| (process.pid, process.start))
            .collect()
    }

    /// Whether anything is left besides the main process.
    pub(crate) fn is_empty(&self) -> bool {
        let reaped = self.lock();
        self.members(*reaped).is_empty()
    }

    fn signal(&self, signals: &[Signal]) -> Vec<Process> {
        let reaped = self.lock();
        let members = self.members(*reaped);
        for signal in signals {
            if !*reaped && let Some(group) = Pid::from_raw(self.leader) {
                // The unreaped leader keeps the group alive; all this can be is forbidden.
                let _ = kill_process_group(group, *signal);
            }
            for process in &members {
                process.signal(*signal);
            }
        }
        members
    }

    /// What is alive of this execution, without its main process.
    fn members(&self, reaped: bool) -> Vec<Process> {
        let processes = proc::others();
        let leader = processes
            .iter()
            .find(|process| !reaped && process.pid == self.leader);
        // Nothing of ours is older than the main process.
        let oldest = leader.map_or(0, |leader| leader.start);
        let mut roots: HashSet<i32> = processes
            .iter()
            .filter(|process| process.start >= oldest)
            .filter(|process| {
                leader.is_some_and(|leader| process.group == leader.pid)
                    || process
                        .cookie()
                        .is_some_and(|value| self.cookie.is_in(&value))
            })
            .map(|process| process.pid)
            .collect();
        roots.extend(leader.map(|leader| leader.pid));
        proc::with_descendants(&mut roots, &processes);
        processes
            .into_iter()
            .filter(|process| process.alive && process.start >= oldest)
            .filter(|process| roots.contains(&process.pid) && process.pid != self.leader)
            .collect()
    }

    /// The common short command that started nothing: no pid was given out after its own, so there
    /// is nobody to look for, and the process table need not be read.
    fn cannot_have_forked(&self) -> bool {
        self.started.elapsed() < TOO_SHORT_TO_WRAP && proc::last_pid() == Some(self.leader)
    }

    /// Takes the exit status of `child` if it has ended; says whether it has.
    fn reap(&self, child: &mut Child) -> bool {
        let mut reaped = self.lock();
        // An error means that somebody else took the status: it has ended all the same.
        *reaped = !matches!(child.try_wait(), Ok(None));
        *reaped
    }

    /// Ends everything, without a runtime. Blocks for as long as the kernel needs to end what was
    /// killed, which is below a millisecond unless it is stuck in the kernel.
    fn end_now(&self, mut child: Child) {
        for _ in 0..DROP_ROUNDS {
            let nobody_else = self.kill().is_empty();
            if nobody_else && self.reap(&mut child) {
                return;
            }
            std::thread::sleep(ROUND / 4);
        }
        // Something is stuck. Whoever it is, the main process must not stay a zombie.
        std::thread::spawn(move || child.wait());
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.reaped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends what executions left whose host is provably dead. Returns how many processes that were.
pub(crate) fn end_orphans() -> u32 {
    let mut ended = HashSet::new();
    for _ in 0..DROP_ROUNDS {
        let processes = proc::others();
        let mut roots: HashSet<i32> = processes
            .iter()
            .filter(|process| {
                process.alive
                    && process.cookie().is_some_and(|value| {
                        cookie::owners(&value).any(|owner| owner.state() == OwnerState::Dead)
                    })
            })
            .map(|process| process.pid)
            .collect();
        if roots.is_empty() {
            break;
        }
        proc::with_descendants(&mut roots, &processes);
        for process in processes
            .iter()
            .filter(|process| roots.contains(&process.pid))
        {
            process.signal(Signal::KILL);
            if process.alive {
                ended.insert((process.pid, process.start));
            }
        }
        std::thread::sleep(ROUND);
    }
    u32::try_from(ended.len()).unwrap_or(u32::MAX)
}
