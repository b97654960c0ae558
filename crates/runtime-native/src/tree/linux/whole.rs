//! All of an execution: the main process and whatever it started, wherever that has gone.

use std::collections::HashSet;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::ROUND;
use super::proc::{self, Process};
use crate::tree::Cookie;

/// An execution shorter than this cannot have used up all pids in between: 32 768 forks, the
/// smallest table, take several times as long.
const TOO_SHORT_TO_WRAP: Duration = Duration::from_millis(100);
/// How often the process table of a busy machine is read before nobody is taken for nobody.
const LOOKS: u32 = 3;
/// How often a tree is looked at again for what it forked before all of it was stopped.
const FREEZES: u32 = 8;
/// How long a drop blocks before it leaves the rest to a thread.
const DROP_PATIENCE: Duration = Duration::from_millis(200);
/// How long that thread goes on.
const STUCK_PATIENCE: Duration = Duration::from_secs(10);

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
    /// What grows from the process `leader`, which was started at `started` or soon after.
    pub(super) fn new(leader: i32, supervisors: u32, cookie: Cookie, started: Instant) -> Self {
        Self {
            leader,
            supervisors,
            cookie,
            started,
            state: Mutex::default(),
        }
    }

    /// The pid of the main process.
    pub(super) fn leader(&self) -> i32 {
        self.leader
    }

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
    pub(super) fn cannot_have_forked(&self) -> bool {
        self.supervisors == 0
            && self.started.elapsed() < TOO_SHORT_TO_WRAP
            && proc::last_pid() == Some(self.leader)
    }

    /// Takes the exit status of `child` if it has ended, and then of strays that this process has
    /// inherited; says whether that is done.
    pub(super) fn reap(&self, child: &mut Child) -> bool {
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
    pub(super) fn end_now(self: &Arc<Self>, mut child: Child) {
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
