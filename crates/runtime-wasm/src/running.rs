//! A guest that runs, as the supervisor sees it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::ready;

use async_trait::async_trait;
use prx_runtime_core::backend::{Exit, KillSwitch, Running};
use prx_runtime_core::{Error, ErrorKind, Isolation, Result};

use crate::{GuestOutput, Started};

/// What the guest reports after it was ended: the number of SIGTERM, whatever the caller makes of
/// it.
const ENDED: Exit = Exit::Signal(15);

/// A guest. It runs inside [`exited`](Running::exited) and nowhere else, so dropping it ends it.
#[derive(Debug)]
pub(crate) struct GuestRun {
    started: Option<Started>,
    exit: Option<Exit>,
    stdout: GuestOutput,
    stderr: GuestOutput,
    isolation: Arc<Isolation>,
    kill_switch: Option<KillSwitch>,
}

impl GuestRun {
    pub(crate) fn new(
        started: Started,
        (stdout, stderr): (GuestOutput, GuestOutput),
        isolation: Arc<Isolation>,
    ) -> Self {
        Self {
            kill_switch: started.kill_switch.clone(),
            started: Some(started),
            exit: None,
            stdout,
            stderr,
            isolation,
        }
    }

    /// A guest knows no signals: being asked to end is the end of it.
    fn end(&mut self) {
        if self.started.take().is_some() {
            self.exit = Some(ENDED);
        }
    }
}

#[async_trait]
impl Running for GuestRun {
    async fn exited(&mut self) -> Result<Exit> {
        if let Some(started) = &mut self.started {
            let result = started.run.as_mut().await;
            self.started = None;
            self.exit = Some(result?);
        }
        self.exit.clone().ok_or_else(|| {
            Error::new(
                ErrorKind::Engine,
                "the engine broke off, and how the guest ended is unknown",
            )
        })
    }

    async fn drain(&mut self) {
        poll_fn(|cx| {
            let stdout = self.stdout.poll_sent(cx);
            ready!(self.stderr.poll_sent(cx));
            stdout
        })
        .await;
        self.stdout.close();
        self.stderr.close();
    }

    async fn terminate(&mut self) {
        self.end();
    }

    async fn kill(&mut self) {
        self.end();
    }

    async fn cleanup(&mut self) -> u32 {
        0
    }

    fn isolation(&self) -> Arc<Isolation> {
        Arc::clone(&self.isolation)
    }

    fn kill_switch(&self) -> Option<KillSwitch> {
        self.kill_switch.clone()
    }
}
