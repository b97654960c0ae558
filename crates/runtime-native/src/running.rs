//! A local process that runs.

use std::future::poll_fn;
use std::sync::{Arc, LazyLock};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use prx_runtime_core::backend::{Exit, KillSwitch, Running};
use prx_runtime_core::{Error, ErrorKind, Exposure, Isolation, IsolationLevel, Result};

use crate::confined::Confinement;
use crate::pump::{InputPump, OutputPump};
use crate::tree::Leader;

/// Between two looks at whether everything has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A bare process: nothing is kept from it but what the environment rules keep.
static BARE: LazyLock<Arc<Isolation>> = LazyLock::new(|| {
    Arc::new(
        Isolation::new(IsolationLevel::None)
            .applied("process group")
            .open(Exposure::FileSystem)
            .open(Exposure::Network)
            .open(Exposure::HostEnvironment)
            .open(Exposure::HostProcesses)
            .open(Exposure::UnixSockets)
            .open(Exposure::SystemCalls),
    )
});

/// What holds around a bare process.
pub(crate) fn bare_isolation() -> Arc<Isolation> {
    Arc::clone(&BARE)
}

/// A started command with its streams.
#[derive(Debug)]
pub(crate) struct NativeRunning {
    leader: Leader,
    stdin: InputPump,
    stdout: OutputPump,
    stderr: OutputPump,
    exit: Option<Exit>,
    /// Last: it outlives the processes.
    confinement: Option<Confinement>,
}

impl NativeRunning {
    pub(crate) fn new(
        leader: Leader,
        stdin: InputPump,
        stdout: OutputPump,
        stderr: OutputPump,
    ) -> Self {
        Self {
            leader,
            stdin,
            stdout,
            stderr,
            exit: None,
            confinement: None,
        }
    }

    /// A command that is confined.
    #[cfg(target_os = "linux")]
    pub(crate) fn confined(
        leader: Leader,
        stdin: InputPump,
        stdout: OutputPump,
        stderr: OutputPump,
        confinement: Confinement,
    ) -> Self {
        Self {
            confinement: Some(confinement),
            ..Self::new(leader, stdin, stdout, stderr)
        }
    }
}

/// Moves output until both streams are at their end.
async fn pump_output(stdout: &mut OutputPump, stderr: &mut OutputPump) -> Result<()> {
    let (mut stdout_ended, mut stderr_ended) = (false, false);
    poll_fn(|cx| {
        for (ended, stream, name) in [
            (&mut stdout_ended, &mut *stdout, "stdout"),
            (&mut stderr_ended, &mut *stderr, "stderr"),
        ] {
            if !*ended && let Poll::Ready(result) = stream.poll(cx) {
                result.map_err(|error| {
                    Error::new(ErrorKind::Io, format!("cannot read the command's {name}"))
                        .with_source(error)
                })?;
                *ended = true;
            }
        }
        if stdout_ended && stderr_ended {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    })
    .await
}

#[async_trait]
impl Running for NativeRunning {
    async fn exited(&mut self) -> Result<Exit> {
        if let Some(exit) = &self.exit {
            return Ok(exit.clone());
        }
        let Self {
            leader,
            stdin,
            stdout,
            stderr,
            confinement,
            ..
        } = self;
        let leader = &*leader;
        let main = async {
            match confinement {
                Some(confinement) => confinement.exited(leader).await,
                None => leader.wait().await,
            }
        };
        let streams = async {
            let input = async {
                poll_fn(|cx| stdin.poll(cx)).await;
                Ok(())
            };
            tokio::try_join!(input, pump_output(stdout, stderr))?;
            // All streams are at their end while the process lives on.
            std::future::pending::<Result<()>>().await
        };
        let exit = tokio::select! {
            biased;
            exit = main => exit.map_err(|error| {
                Error::new(ErrorKind::Engine, "the command's exit status cannot be known")
                    .with_source(error)
                    .with_hint("the host may wait for children that are not its own, or ignore SIGCHLD")
            })?,
            Err(error) = streams => return Err(error),
        };
        self.exit = Some(exit.clone());
        Ok(exit)
    }

    async fn drain(&mut self) {
        if let Err(error) = pump_output(&mut self.stdout, &mut self.stderr).await {
            tracing::warn!(%error, "output after the end of the command is incomplete");
        }
    }

    async fn terminate(&mut self) {
        self.leader.tree().terminate();
    }

    async fn settled(&mut self) {
        while !self.leader.tree().is_empty() {
            // What the rest still says belongs to the output.
            let _ =
                tokio::time::timeout(LOOK, pump_output(&mut self.stdout, &mut self.stderr)).await;
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn kill(&mut self) {
        self.leader.tree().kill();
    }

    async fn cleanup(&mut self) -> u32 {
        let alone = self.confinement.as_ref().is_some_and(Confinement::is_alone);
        self.leader.release(alone).await
    }

    fn leftovers_found(&self) -> u32 {
        self.leader.leftovers_found()
    }

    fn isolation(&self) -> Arc<Isolation> {
        match &self.confinement {
            Some(confinement) => confinement.isolation(),
            None => bare_isolation(),
        }
    }

    fn kill_switch(&self) -> Option<KillSwitch> {
        let tree = Arc::clone(self.leader.tree());
        Some(KillSwitch::new(move || {
            tree.kill();
        }))
    }
}
