//! Windows: a job object. Written with care and untested.
//!
//! There is no signal to ask with: `terminate` does nothing, so that the grace passes and the job
//! is ended then.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use process_wrap::tokio::{ChildWrapper, CommandWrap, JobObject, KillOnDrop};
use prx_runtime_core::backend::Exit;
use tokio::process::{ChildStdin, Command};

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
    exit: Option<Exit>,
    tree: Arc<Tree>,
}

impl Leader {
    /// Starts `command` in a job of its own, marked with `cookie`, with pipes for its output.
    pub(crate) fn spawn(
        command: std::process::Command,
        cookie: Cookie,
        with_stdin: bool,
    ) -> io::Result<Started> {
        let mut command = Command::from(command);
        command
            .env(prx_runtime_core::EXECUTION_ID_VARIABLE, cookie.value())
            .stdin(if with_stdin {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = CommandWrap::from(command)
            .wrap(KillOnDrop)
            .wrap(JobObject)
            .spawn()?;
        let missing = || io::Error::other("a pipe that was asked for is not there");
        let stdin = child.stdin().take();
        let stdout = super::either::OutputPipe::Stdout(child.stdout().take().ok_or_else(missing)?);
        let stderr = super::either::OutputPipe::Stderr(child.stderr().take().ok_or_else(missing)?);
        Ok(Started {
            leader: Self {
                exit: None,
                tree: Arc::new(Tree {
                    job: Mutex::new(child),
                }),
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
        loop {
            if let Some(exit) = &self.exit {
                return Ok(exit.clone());
            }
            let status = self.tree.lock().inner_mut().try_wait()?;
            match status {
                Some(status) => self.exit = Some(Exit::Code(status.code().unwrap_or(0))),
                None => tokio::time::sleep(std::time::Duration::from_millis(5)).await,
            }
        }
    }

    /// Ends what the process left in its job.
    pub(crate) async fn release(&mut self, _alone: bool) -> u32 {
        self.tree.kill();
        0
    }

    /// What [`release`](Self::release) found: nothing can be asked here.
    pub(crate) fn leftovers_found(&self) -> u32 {
        0
    }
}

/// What can be ended of an execution, from any thread.
#[derive(Debug)]
pub(crate) struct Tree {
    job: Mutex<Box<dyn ChildWrapper>>,
}

impl Tree {
    /// Nothing can be asked here.
    pub(crate) fn terminate(&self) {}

    /// Ends the job.
    pub(crate) fn kill(&self) {
        let _ = self.lock().start_kill();
    }

    /// Whether the main process has ended.
    pub(crate) fn is_empty(&self) -> bool {
        !matches!(self.lock().inner_mut().try_wait(), Ok(None))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Box<dyn ChildWrapper>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A job ends with its last handle, so nothing outlives a host.
pub(crate) fn end_orphans() -> u32 {
    0
}
