//! Unix other than Linux: a process group. Written with care and untested.
//!
//! What leaves the group is not found here, and the main process is reaped before its group is
//! signalled for the last time.

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use prx_runtime_core::backend::Exit;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStdin, Command};

use super::{Cookie, Started};

/// Our end of a stream that the command writes.
pub(crate) type PipeReader = super::either::OutputPipe;
/// Our end of a stream that the command reads.
pub(crate) type PipeWriter = ChildStdin;

/// Pipes have one size here.
pub(crate) fn widen(_: &PipeReader) {}

/// A command's main process.
#[derive(Debug)]
pub(crate) struct Leader {
    child: Child,
    tree: Arc<Tree>,
    released: bool,
}

impl Leader {
    /// Starts `command` in a group of its own, marked with `cookie`, with pipes for its output.
    pub(crate) fn spawn(
        command: std::process::Command,
        cookie: Cookie,
        with_stdin: bool,
    ) -> io::Result<Started> {
        let mut command = Command::from(command);
        command
            .env(prx_runtime_core::EXECUTION_ID_VARIABLE, cookie.value())
            .process_group(0)
            .kill_on_drop(true)
            .stdin(if with_stdin {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (stdin, stdout, stderr) = super::either::take_streams(&mut child)?;
        let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Started {
            leader: Self {
                child,
                tree: Arc::new(Tree {
                    group,
                    ended: AtomicBool::new(false),
                }),
                released: false,
            },
            stdin,
            stdout,
            stderr,
        })
    }

    pub(crate) fn tree(&self) -> &Arc<Tree> {
        &self.tree
    }

    /// Waits for the end of the process. Cancel-safe.
    pub(crate) async fn wait(&mut self) -> io::Result<Exit> {
        use std::os::unix::process::ExitStatusExt;
        let status = self.child.wait().await?;
        Ok(match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, Some(signal)) => Exit::Signal(signal),
            (None, None) => Exit::Code(0),
        })
    }

    /// Ends what the process left in its group. Returns 1 if anything was still there.
    pub(crate) async fn release(&mut self, _alone: bool) -> u32 {
        self.released = true;
        let left = u32::from(!self.tree.is_empty());
        self.tree.kill();
        self.tree.ended.store(true, Ordering::Relaxed);
        left
    }

    /// What [`release`](Self::release) found, were it given up: it does not wait, so it is not.
    pub(crate) fn leftovers_found(&self) -> u32 {
        0
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if !self.released {
            self.tree.kill();
        }
    }
}

/// What can be signalled of an execution, from any thread.
#[derive(Debug)]
pub(crate) struct Tree {
    group: Option<Pid>,
    /// The group was ended and its id may be another's.
    ended: AtomicBool,
}

impl Tree {
    /// TERM to everything, and CONT for what is stopped and could not act on it.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// KILL to everything.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Whether anything is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.group
            .is_none_or(|group| test_kill_process_group(group).is_err())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group
            && !self.ended.load(Ordering::Relaxed)
        {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// Processes cannot be asked for their marks here.
pub(crate) fn end_orphans() -> u32 {
    0
}
