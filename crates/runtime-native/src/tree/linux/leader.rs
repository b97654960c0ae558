//! The main process of a command.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use prx_runtime_core::backend::Exit;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{PipeReader, PipeWriter, ROUND, Tree};
use crate::tree::{Cookie, Started};

/// How long supervisors may take to end when there is nothing left for them to do.
const SUPERVISORS_END: Duration = Duration::from_millis(100);

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
        let descriptor = watch(spawned.tree.leader())?;
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
        let leader = child.id().cast_signed();
        Ok(Self {
            child: Some(child),
            tree: Arc::new(Tree::new(leader, supervisors, cookie, started)),
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
