//! A command in its container.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prx_runtime_core::backend::{Exit, KillSwitch, Running};
use prx_runtime_core::config::DockerConfig;
use prx_runtime_core::{Error, ErrorKind, Isolation, Result};
use tokio::time::{Instant, timeout};

use crate::container::Container;
use crate::engine::Answer;
use crate::exec_failure::{self, Search};
use crate::image::Image;
use crate::init::Init;
use crate::pump::{Input, Output};

/// How long the engine may take to send the last output of a command that has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(2);
/// How often it is looked whether the engine or a slow reader is waited for.
const LOOK: Duration = Duration::from_millis(20);

/// What was run, to tell afterwards whether it ran.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) program: String,
    /// Where it is looked for.
    pub(crate) search: Search,
    pub(crate) image: Image,
    pub(crate) config: Arc<DockerConfig>,
    pub(crate) init: Init,
}

pub(crate) struct DockerRunning {
    container: Container,
    /// The engine's answer to when it ended.
    wait: Pin<Box<dyn Future<Output = Answer<i64>> + Send>>,
    input: Input,
    output: Output,
    command: Command,
    isolation: Arc<Isolation>,
    /// Once it has ended.
    exit: Option<Exit>,
}

impl DockerRunning {
    pub(crate) fn new(
        container: Container,
        (input, output): (Input, Output),
        command: Command,
        isolation: Arc<Isolation>,
    ) -> Self {
        let wait = Box::pin(container.client().wait(container.id()));
        Self {
            container,
            wait,
            input,
            output,
            command,
            isolation,
            exit: None,
        }
    }

    /// Moves stdin and output until the engine says that the container has ended; its code.
    async fn code(&mut self) -> Result<i64> {
        loop {
            tokio::select! {
                biased;
                moved = self.output.run(), if !self.output.ended() => moved.map_err(|error| self.broken(error))?,
                () = self.input.run(), if !self.input.ended() => {}
                code = &mut self.wait => {
                    let endpoint = self.container.client().endpoint();
                    return code.map_err(|failure| failure.while_trying_to("run the container", endpoint));
                }
            }
        }
    }

    fn broken(&self, error: std::io::Error) -> Error {
        Error::new(
            ErrorKind::Engine,
            format!(
                "the engine at {} broke off the output",
                self.container.client().endpoint()
            ),
        )
        .with_source(error)
    }

    /// Takes what the engine has still to send. Nothing in the container is alive to write more.
    async fn last_output(&mut self) -> Result<()> {
        let until = Instant::now() + LAST_OUTPUT;
        while !self.output.ended() && Instant::now() < until {
            match timeout(LOOK, self.output.run()).await {
                Ok(moved) => moved.map_err(|error| self.broken(error))?,
                // The reader is slow; `drain` gives it what time it has.
                Err(_) if self.output.blocked() => break,
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn verdict(&mut self, code: i64) -> Result<Exit> {
        let never_ran =
            exec_failure::judge(code, self.output.seen(), &self.command, &self.container);
        if let Some(error) = never_ran.await {
            return Err(error);
        }
        let code = i32::try_from(code).unwrap_or(i32::MAX);
        Ok(match signal(code) {
            // The engine's flag is set for any process that was killed for want of memory; it is a
            // verdict on the command only where that ended it.
            Some(KILL) if self.was_out_of_memory().await => Exit::OutOfMemory,
            Some(signal) => Exit::Signal(signal),
            None => Exit::Code(code),
        })
    }

    async fn was_out_of_memory(&mut self) -> bool {
        match self.container.client().state(self.container.id()).await {
            Ok(state) => state.oom_killed == Some(true),
            Err(failure) => {
                tracing::warn!(?failure, "the engine does not say whether memory ran out");
                false
            }
        }
    }
}

const KILL: i32 = 9;

/// The signal that an exit code stands for: the init reports death by signal n as 128 + n, and so
/// does a shell. Signals that end no process are none.
fn signal(code: i32) -> Option<i32> {
    match code - 128 {
        17..=23 | 28 => None,
        signal @ 1..=31 => Some(signal),
        _ => None,
    }
}

#[async_trait]
impl Running for DockerRunning {
    async fn exited(&mut self) -> Result<Exit> {
        if let Some(exit) = &self.exit {
            return Ok(exit.clone());
        }
        let code = self.code().await?;
        // The answer came and must not be asked for again.
        self.wait = Box::pin(std::future::ready(Ok(code)));
        self.last_output().await?;
        let exit = self.verdict(code).await?;
        self.exit = Some(exit.clone());
        Ok(exit)
    }

    async fn drain(&mut self) {
        if let Err(error) = self.output.run().await {
            tracing::debug!(%error, "the last output of the command is missing");
        }
    }

    async fn terminate(&mut self) {
        self.signal(&["TERM", "CONT"]).await;
    }

    async fn kill(&mut self) {
        self.signal(&["KILL"]).await;
    }

    async fn cleanup(&mut self) -> u32 {
        if self.container.is_kept() {
            self.container.settle_if_ended(self.exit.is_some()).await;
        } else {
            self.container.remove().await;
        }
        // The kernel ends every process of a container along with its PID 1, uncounted.
        0
    }

    fn isolation(&self) -> Arc<Isolation> {
        Arc::clone(&self.isolation)
    }

    fn kill_switch(&self) -> Option<KillSwitch> {
        Some(self.container.kill_switch())
    }

    fn kept(&self) -> Option<String> {
        self.container
            .is_kept()
            .then(|| self.container.id().to_owned())
    }
}

impl DockerRunning {
    /// Sends signals, one after the other. Goes on in a task where the caller does not wait.
    async fn signal(&mut self, signals: &'static [&'static str]) {
        let (client, id) = (
            self.container.client().clone(),
            self.container.id().to_owned(),
        );
        let task = tokio::spawn(async move {
            for signal in signals {
                match client.kill(&id, signal).await {
                    Ok(()) => {}
                    // It has ended already.
                    Err(failure) if matches!(failure.refusal(), Some((404 | 409, _))) => break,
                    Err(failure) => tracing::debug!(?failure, signal, "a signal was not sent"),
                }
            }
        });
        // It does not panic, and where the runtime ends, the container's own end takes over.
        let _ = task.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_that_stand_for_signals() {
        for (code, expected) in [
            (0, None),
            (127, None),
            (128, None),
            (129, Some(1)),
            (137, Some(9)),
            (139, Some(11)),
            (143, Some(15)),
            (145, None),
            (156, None),
            (160, None),
            (255, None),
        ] {
            assert_eq!(signal(code), expected, "{code}");
        }
    }
}
