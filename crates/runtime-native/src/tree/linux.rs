//! Linux: a process group, the cookie, ancestry, and descriptors of processes.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prx_runtime_core::backend::Exit;
use prx_runtime_core::{Owner, OwnerState};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    test_kill_process, waitid,
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
/// How often the process table of a busy machine is read before nobody is taken for nobody.
const LOOKS: u32 = 3;
/// How often a tree is looked at again for what it forked before all of it was stopped.
const FREEZES: u32 = 8;
/// How long a drop blocks before it leaves the rest to a thread.
const DROP_PATIENCE: Duration = Duration::from_millis(200);
/// How long supervisors may take to end when there is nothing left for them to do.
const SUPERVISORS_END: Duration = Duration::from_millis(100);
/// How long that thread goes on.
const STUCK_PATIENCE: Duration = Duration::from_secs(10);
/// How long a sweep takes for what it cannot end.
const SWEEP_PATIENCE: Duration = Duration::from_millis(200);

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
    /// What it left behind, by pid and start.
    left: HashSet<(i32, u64)>,
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
        let mut spawned = Spawned::start(&mut command, cookie, 0)?;
        let missing = || io::Error::other("a pipe that was asked for is not there");
        let child = spawned.child.as_mut().ok_or_else(missing)?;
        let stdin = child.stdin.take().map(OwnedFd::from);
        let stdout = child.stdout.take().ok_or_else(missing)?.into();
        let stderr = child.stderr.take().ok_or_else(missing)?.into();
        Self::adopt(spawned, stdin, [stdout, stderr])
    }

    /// Takes over a process that was started elsewhere, with our ends of its streams.
    pub(crate) fn adopt(
        mut spawned: Spawned,
        stdin: Option<OwnedFd>,
        [stdout, stderr]: [OwnedFd; 2],
    ) -> io::Result<Started> {
        let descriptor = watch(spawned.tree.leader)?;
        let stdin = stdin.map(PipeWriter::from_owned_fd).transpose()?;
        let stdout = PipeReader::from_owned_fd(stdout)?;
        let stderr = PipeReader::from_owned_fd(stderr)?;
        Ok(Started {
            leader: Self {
                child: spawned.child.take(),
                descriptor,
                tree: Arc::clone(&spawned.tree),
                left: HashSet::new(),
            },
            stdin,
            stdout,
            stderr,
        })
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
    ///
    /// `alone`: it is known that there are none; supervisors then end by themselves, soon.
    pub(crate) async fn release(&mut self, alone: bool) -> u32 {
        let Some(child) = &mut self.child else {
            return 0;
        };
        if alone {
            let until = Instant::now() + SUPERVISORS_END;
            while !self.tree.reap(child) && Instant::now() < until {
                tokio::time::sleep(ROUND / 4).await;
            }
        }
        let alone = alone || self.tree.cannot_have_forked();
        while !(alone && self.tree.reap(child)) {
            let there = self.tree.kill();
            if there.is_empty() && self.tree.reap(child) {
                break;
            }
            self.left.extend(there);
            tokio::time::sleep(ROUND).await;
        }
        self.child = None;
        self.leftovers_found()
    }

    /// How many others [`release`](Self::release) has found.
    pub(crate) fn leftovers_found(&self) -> u32 {
        u32::try_from(self.left.len()).unwrap_or(u32::MAX)
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.tree.end_now(child);
        }
    }
}

/// Registers a child that is to be waited for.
fn watch(child: i32) -> io::Result<AsyncFd<OwnedFd>> {
    let pid = Pid::from_raw(child).ok_or_else(|| io::Error::other("a child without a pid"))?;
    let descriptor = pidfd_open(pid, PidfdFlags::NONBLOCK).or_else(|error| match error {
        // Kernels before 5.10 know no flag here; none is needed, the descriptor is never read.
        rustix::io::Errno::INVAL => pidfd_open(pid, PidfdFlags::empty()),
        error => Err(error),
    })?;
    // SAFETY: the descriptor is owned, nothing else closes it, and it stays the same one for as long
    // as the registration lives, which owns it from here on.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
    Ok(watched)
}

/// A process that was started and belongs to nobody yet. Dropping it ends it and all it started.
#[derive(Debug)]
pub(crate) struct Spawned {
    child: Option<Child>,
    tree: Arc<Tree>,
}

impl Spawned {
    /// Starts `command`. The first `supervisors` generations of processes, from it down, are not
    /// the command but stand around it.
    pub(crate) fn start(
        command: &mut std::process::Command,
        cookie: Cookie,
        supervisors: u32,
    ) -> io::Result<Self> {
        let started = Instant::now();
        let child = command.spawn()?;
        let tree = Arc::new(Tree {
            leader: child.id().cast_signed(),
            supervisors,
            cookie,
            started,
            state: Mutex::default(),
        });
        Ok(Self {
            child: Some(child),
            tree,
        })
    }
}

impl Drop for Spawned {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            self.tree.end_now(child);
        }
    }
}

/// What can be signalled of an execution, from any thread.
#[derive(Debug)]
pub(crate) struct Tree {
    /// The pid of the main process, which is the id of its group.
    leader: i32,
    /// Generations of processes, from the leader down, that stand around the command. With any,
    /// there is a PID namespace below them, whose end is the end of everything.
    supervisors: u32,
    cookie: Cookie,
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Once the main process is reaped its pid may belong to anybody.
    reaped: bool,
    /// All that was ever found besides the main process, by pid and start. What loses its parent
    /// to our own signals is a descendant no more, and may carry no cookie.
    seen: HashSet<(i32, u64)>,
    /// Those of the supervisors below the leader that were found.
    supervisors: HashSet<(i32, u64)>,
    /// The last look failed or was incomplete, for want of descriptors or memory.
    blind: bool,
}

/// What is alive of an execution.
struct Found {
    leader_alive: bool,
    /// Those that stand around the command, but for the leader.
    supervisors: Vec<Process>,
    /// All but the main process and those.
    others: Vec<Process>,
}

impl Tree {
    /// TERM to everything, and CONT for what is stopped and could not act on it.
    pub(crate) fn terminate(&self) {
        let mut state = self.lock();
        let found = self.find(&mut state);
        self.send(&state, &found, Signal::TERM);
        self.send(&state, &found, Signal::CONT);
    }

    /// KILL to everything. Returns what was there besides the main process, by pid and start.
    pub(crate) fn kill(&self) -> Vec<(i32, u64)> {
        let mut state = self.lock();
        let mut found = self.find(&mut state);
        if self.supervisors > 0 {
            // The kernel ends all of a namespace with its first process.
            self.send(&state, &found, Signal::KILL);
            return found.others.iter().map(Process::identity).collect();
        }
        // What forks between being found and being killed leaves a child that nothing points to:
        // first all of it is stopped.
        for _ in 0..FREEZES {
            if !found.leader_alive && found.others.is_empty() {
                break;
            }
            self.send(&state, &found, Signal::STOP);
            let known = state.seen.len();
            found = self.find(&mut state);
            if state.seen.len() == known {
                break;
            }
        }
        self.send(&state, &found, Signal::KILL);
        found.others.iter().map(Process::identity).collect()
    }

    /// Whether anything is left besides the main process.
    pub(crate) fn is_empty(&self) -> bool {
        let mut state = self.lock();
        self.find(&mut state).others.is_empty() && !state.blind
    }

    /// Sends a signal once to each: a program may take the second for impatience.
    fn send(&self, state: &State, found: &Found, signal: Signal) {
        let spare_supervisors = self.supervisors > 0 && signal != Signal::KILL;
        if !spare_supervisors {
            for process in &found.supervisors {
                process.signal(signal);
            }
        }
        if !state.reaped
            && !spare_supervisors
            && let Some(group) = Pid::from_raw(self.leader)
        {
            // The unreaped leader keeps the group alive; all this can be is forbidden.
            let _ = kill_process_group(group, signal);
        }
        for process in &found.others {
            if state.reaped || process.group != self.leader {
                process.signal(signal);
            }
        }
    }

    /// What is alive now. What is forked while the table is read, by a process that is gone when its
    /// turn comes, is in no such reading: finding nobody counts where no pid was given out
    /// meanwhile, or after a few looks.
    fn find(&self, state: &mut State) -> Found {
        for _ in 1..LOOKS {
            let before = proc::last_pid();
            let found = self.look(state);
            let undisturbed = before.is_some() && proc::last_pid() == before;
            if undisturbed || !found.others.is_empty() {
                return found;
            }
        }
        self.look(state)
    }

    fn look(&self, state: &mut State) -> Found {
        let table = proc::others();
        let mut blind = table.is_err();
        let processes = table.unwrap_or_default();
        let leader = processes
            .iter()
            .find(|process| !state.reaped && process.pid == self.leader);
        // Nothing of ours is older than the main process.
        let oldest = leader.map_or(0, |leader| leader.start);
        let mut roots: HashSet<i32> = processes
            .iter()
            .filter(|process| process.start >= oldest)
            .filter(|process| {
                leader.is_some_and(|leader| process.group == leader.pid)
                    || state.seen.contains(&process.identity())
                    || match process.cookie() {
                        Ok(value) => value.is_some_and(|value| self.cookie.is_in(&value)),
                        Err(_) => {
                            blind = true;
                            false
                        }
                    }
            })
            .map(|process| process.pid)
            .collect();
        roots.extend(leader.map(|leader| leader.pid));
        proc::with_descendants(&mut roots, &processes);
        let leader_alive = leader.is_some_and(|leader| leader.alive);
        let mut around: HashSet<i32> = leader.map(|leader| leader.pid).into_iter().collect();
        for _ in 1..self.supervisors {
            let below = processes
                .iter()
                .filter(|process| around.contains(&process.parent));
            around.extend(below.map(|process| process.pid).collect::<Vec<_>>());
        }
        let (supervisors, others): (Vec<Process>, Vec<Process>) = processes
            .into_iter()
            .filter(|process| process.alive && process.start >= oldest)
            .filter(|process| roots.contains(&process.pid) && process.pid != self.leader)
            .partition(|process| {
                around.contains(&process.pid) || state.supervisors.contains(&process.identity())
            });
        state
            .supervisors
            .extend(supervisors.iter().map(Process::identity));
        state.seen.extend(state.supervisors.iter().copied());
        state.seen.extend(others.iter().map(Process::identity));
        state.blind = blind;
        Found {
            leader_alive,
            supervisors,
            others,
        }
    }

    /// The common short command that started nothing: no pid was given out after its own, so there
    /// is nobody to look for, and the process table need not be read.
    fn cannot_have_forked(&self) -> bool {
        self.supervisors == 0
            && self.started.elapsed() < TOO_SHORT_TO_WRAP
            && proc::last_pid() == Some(self.leader)
    }

    /// Takes the exit status of `child` if it has ended, and then of strays that this process has
    /// inherited; says whether that is done.
    fn reap(&self, child: &mut Child) -> bool {
        let mut state = self.lock();
        if state.blind {
            // The main process names the group: it stays until the rest is known to have gone.
            return false;
        }
        state.reaped = match child.try_wait() {
            Ok(status) => status.is_some(),
            // Somebody else took the status: it has ended all the same.
            Err(error) => error.raw_os_error() == Some(libc::ECHILD),
        };
        state.reaped
            && state.supervisors.iter().all(proc::is_gone)
            && state.seen.iter().all(proc::reap_inherited)
    }

    /// Ends everything, without a runtime. Blocks for as long as the kernel needs to end what was
    /// killed, which is below a millisecond unless it is stuck in the kernel.
    fn end_now(self: &Arc<Self>, mut child: Child) {
        if self.end_within(&mut child, DROP_PATIENCE) {
            return;
        }
        // Something is stuck. Whoever it is, the main process must not stay a zombie. Where no
        // thread can be had, it does until this process ends.
        let tree = Arc::clone(self);
        let _ = std::thread::Builder::new()
            .name("prx-runtime-reaper".into())
            .spawn(move || {
                if !tree.end_within(&mut child, STUCK_PATIENCE) {
                    let _ = child.wait();
                }
            });
    }

    fn end_within(&self, child: &mut Child, patience: Duration) -> bool {
        let begin = Instant::now();
        loop {
            if self.kill().is_empty() && self.reap(child) {
                return true;
            }
            if begin.elapsed() > patience {
                return false;
            }
            std::thread::sleep(ROUND / 4);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends what executions left whose host is provably dead. Returns how many processes that were.
pub(crate) fn end_orphans() -> u32 {
    let begin = Instant::now();
    let mut ended = HashSet::new();
    while begin.elapsed() < SWEEP_PATIENCE {
        let Ok(processes) = proc::others() else {
            break;
        };
        let mut roots: HashSet<i32> = processes
            .iter()
            .filter(|process| process.alive)
            .filter(|process| {
                ended.contains(&process.identity())
                    || matches!(
                        process.cookie(),
                        Ok(Some(value)) if cookie::owners(&value).any(is_provably_dead)
                    )
            })
            .map(|process| process.pid)
            .collect();
        if roots.is_empty() {
            break;
        }
        proc::with_descendants(&mut roots, &processes);
        for process in processes
            .iter()
            .filter(|process| process.alive && roots.contains(&process.pid))
        {
            process.signal(Signal::KILL);
            ended.insert(process.identity());
        }
        std::thread::sleep(ROUND);
    }
    u32::try_from(ended.len()).unwrap_or(u32::MAX)
}

/// Whether no process has the pid of `owner`, or a later one has. Where `/proc` hides the
/// processes of other users (`hidepid`), one that it does not show may live all the same.
fn is_provably_dead(owner: Owner) -> bool {
    let Some(pid) = Pid::from_raw(owner.pid().cast_signed()) else {
        return false;
    };
    owner.state() == OwnerState::Dead
        && (Process::read(pid.as_raw_nonzero().get()).is_some()
            || test_kill_process(pid) == Err(rustix::io::Errno::SRCH))
}
