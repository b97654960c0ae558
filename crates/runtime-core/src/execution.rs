//! A live execution.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::backend::KillSwitch;
use crate::sink::PipeReader;
use crate::{Capture, Error, ErrorKind, ExecutionId, ExecutionOutput, Result};

/// A command that runs, with its streams. Dropping it ends the command and all it started, at
/// once.
///
/// The command is held back when it is 64 KiB ahead of a reader. What it wrote before its end can
/// be read after it, however late. A stream whose reader was taken and dropped is read on, counted
/// and thrown away.
#[derive(Debug)]
pub struct Execution {
    /// The command's stdin, where the request asked for [`Stdin::Piped`](crate::Stdin::Piped).
    /// Dropping it gives the command end of file.
    pub stdin: Option<ExecutionStdin>,
    /// The command's stdout, to be taken by who wants to read it.
    pub stdout: Option<ExecutionReader>,
    /// The command's stderr, to be taken by who wants to read it.
    pub stderr: Option<ExecutionReader>,
    id: ExecutionId,
    collected: [Capture; 2],
    control: ExecutionControl,
    /// Until it has told the result.
    supervisor: Option<oneshot::Receiver<Result<ExecutionOutput>>>,
    /// From then on until somebody has waited for it.
    result: Option<Result<ExecutionOutput>>,
    task: AbortHandle,
    kill_switch: Option<KillSwitch>,
}

impl Execution {
    #[expect(clippy::too_many_arguments, reason = "called once, by the supervisor")]
    pub(crate) fn new(
        id: ExecutionId,
        cap: usize,
        stdin: Option<DuplexStream>,
        (stdout, stderr): (PipeReader, PipeReader),
        control: ExecutionControl,
        result: oneshot::Receiver<Result<ExecutionOutput>>,
        task: AbortHandle,
        kill_switch: Option<KillSwitch>,
    ) -> Self {
        Self {
            stdin: stdin.map(ExecutionStdin),
            stdout: Some(ExecutionReader(stdout)),
            stderr: Some(ExecutionReader(stderr)),
            id,
            collected: [Capture::new(cap), Capture::new(cap)],
            control,
            supervisor: Some(result),
            result: None,
            task,
            kill_switch,
        }
    }

    /// The random name of this execution, as in the logs.
    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// Waits for the end. Closes stdin if it is still here, and collects what comes on the streams
    /// that are still here, bounded as for `run`; a stream that was taken is only counted.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    ///
    /// The engine beneath broke off; or the end was waited for before, which is
    /// [`ErrorKind::InvalidRequest`].
    pub async fn wait(&mut self) -> Result<ExecutionOutput> {
        self.stdin = None;
        let [stdout, stderr] = &mut self.collected;
        let (supervisor, result) = (&mut self.supervisor, &mut self.result);
        // Kept at once: whoever waits may give up between the result and the end of the streams.
        let told = async {
            if let Some(receiver) = supervisor {
                *result = Some(receiver.await.unwrap_or_else(|_| Err(given_up())));
                *supervisor = None;
            }
        };
        tokio::join!(
            collect(&mut self.stdout, stdout),
            collect(&mut self.stderr, stderr),
            told,
        );
        let mut output = self.result.take().unwrap_or_else(|| {
            Err(Error::new(
                ErrorKind::InvalidRequest,
                "the end of this execution was already waited for",
            ))
        })?;
        for (kept, capture) in [&mut output.stdout, &mut output.stderr]
            .into_iter()
            .zip(&mut self.collected)
        {
            if capture.total_bytes() > 0 && capture.total_bytes() == kept.total_bytes() {
                *kept = std::mem::replace(capture, Capture::new(0)).finish();
            }
        }
        Ok(output)
    }

    /// As [`ExecutionControl::terminate`].
    pub fn terminate(&self, grace: Duration) {
        self.control.terminate(grace);
    }

    /// As [`ExecutionControl::kill`].
    pub fn kill(&self) {
        self.control.kill();
    }

    /// Something to end the execution with while another task waits for it.
    pub fn control(&self) -> ExecutionControl {
        self.control.clone()
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if self.supervisor.is_some() {
            if let Some(switch) = &self.kill_switch {
                switch.pull();
            }
            self.task.abort();
        }
    }
}

fn given_up() -> Error {
    Error::new(
        ErrorKind::Engine,
        "the execution was given up: its runtime is shutting down",
    )
}

/// Moves a stream that is still here into its capture. Cancel-safe: what was read is in the
/// capture.
async fn collect(stream: &mut Option<ExecutionReader>, capture: &mut Capture) {
    let Some(reader) = stream else { return };
    let mut chunk = [0; 8192];
    // The stream is a channel of our own, whose only failure is its end.
    while let Ok(read @ 1..) = reader.read(&mut chunk).await {
        capture.push(&chunk[..read]);
    }
}

/// The writing end of a live execution's stdin.
#[derive(Debug)]
pub struct ExecutionStdin(DuplexStream);

impl AsyncWrite for ExecutionStdin {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// The reading end of one of a live execution's output streams.
#[derive(Debug)]
pub struct ExecutionReader(PipeReader);

impl AsyncRead for ExecutionReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

/// Ends an execution from elsewhere. Holding one does not keep the execution alive.
#[derive(Debug, Clone)]
pub struct ExecutionControl(mpsc::UnboundedSender<Duration>);

impl ExecutionControl {
    pub(crate) fn channel() -> (Self, Controls) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), Controls(Some(receiver)))
    }

    /// Asks the command and all it started to end, and ends them when `grace` is over. Does not
    /// wait for that: [`Execution::wait`] does. Nothing happens where it has ended already.
    pub fn terminate(&self, grace: Duration) {
        // The supervisor has gone when the execution has ended: then there is nothing to end.
        let _ = self.0.send(grace);
    }

    /// Ends the command and all it started, without a grace. Does not wait for that:
    /// [`Execution::wait`] does. Nothing happens where it has ended already.
    pub fn kill(&self) {
        self.terminate(Duration::ZERO);
    }
}

/// The supervisor's end of that line.
pub(crate) struct Controls(Option<mpsc::UnboundedReceiver<Duration>>);

impl Controls {
    /// A line that nobody speaks on.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The next request to end, with its grace. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Duration {
        match &mut self.0 {
            Some(receiver) => match receiver.recv().await {
                Some(grace) => grace,
                None => std::future::pending().await,
            },
            None => std::future::pending().await,
        }
    }

    /// A request to end without a grace. Cancel-safe.
    pub(crate) async fn kill(&mut self) {
        while !self.next().await.is_zero() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OutputSink;

    #[tokio::test(start_paused = true)]
    async fn giving_up_between_the_result_and_the_end_of_the_streams_loses_nothing() {
        let (stdout, stdout_reader, _account) = OutputSink::pipe();
        let (stderr, stderr_reader, _other) = OutputSink::pipe();
        let (control, _controls) = ExecutionControl::channel();
        let (done, result) = oneshot::channel();
        let output = ExecutionOutput::new(Vec::new(), Vec::new(), 7, Duration::ZERO);
        done.send(Ok(output)).unwrap();
        let mut execution = Execution::new(
            ExecutionId::random().unwrap(),
            100,
            None,
            (stdout_reader, stderr_reader),
            control,
            result,
            tokio::spawn(async {}).abort_handle(),
            None,
        );
        let early = tokio::time::timeout(Duration::from_secs(1), execution.wait()).await;
        assert!(early.is_err(), "its streams are still open");
        drop((stdout, stderr));
        assert_eq!(execution.wait().await.unwrap().exit_code, 7);
        let again = execution.wait().await.unwrap_err();
        assert_eq!(again.kind(), ErrorKind::InvalidRequest);
    }
}
