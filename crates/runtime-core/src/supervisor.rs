//! Deadline, grace, capture and clean-up: once, for every backend.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::task::unconstrained;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::Instrument;

use crate::audit::Audit;
use crate::backend::{Backend, Running};
use crate::config::RuntimeConfig;
use crate::describe::{Bounds, Description};
use crate::execution::{Controls, ExecutionControl};
use crate::output::{CANCELLED, TIMED_OUT, verdict};
use crate::sink::Account;
use crate::{
    Error, ErrorKind, Execution, ExecutionId, ExecutionOutput, ExecutionRequest, OutputSink, Plan,
    Result, Stdin, StdinSource, Stdio, Termination,
};

/// How long output is still read after the main process has ended.
const DRAIN: Duration = Duration::from_millis(250);
/// How long asking a backend to end a command may take.
const ASK: Duration = Duration::from_millis(200);
/// From KILL until the call returns, whatever happens.
const SETTLE: Duration = Duration::from_millis(700);
/// What each step of the clean-up has at least, also where the caller kept the runtime from
/// running until all time was over.
const STEP: Duration = Duration::from_millis(50);

/// Runs requests on a backend by the rules of `[runtime]`. One to an adapter.
#[derive(Debug, Clone)]
pub struct Supervisor {
    default_timeout: Duration,
    max_output_bytes: usize,
    kill_grace: Duration,
    queue_timeout: Duration,
    max_concurrent: usize,
    slots: Arc<Semaphore>,
}

impl Supervisor {
    /// A supervisor that keeps the rules of `config`.
    pub fn new(config: &RuntimeConfig) -> Self {
        Self {
            default_timeout: Duration::from_secs(config.default_timeout_secs),
            max_output_bytes: config.max_output_bytes,
            kill_grace: Duration::from_millis(config.kill_grace_ms),
            queue_timeout: Duration::from_secs(config.queue_timeout_secs),
            max_concurrent: config.max_concurrent,
            slots: Arc::new(Semaphore::new(
                config.max_concurrent.min(Semaphore::MAX_PERMITS),
            )),
        }
    }

    /// Runs `request` on `backend` and returns its output.
    ///
    /// Dropping the future ends the command.
    ///
    /// # Errors
    ///
    /// The command did not run: see [`Plan::prepare`] and [`Backend::start`]. [`ErrorKind::Busy`]
    /// where no slot became free in time.
    pub async fn run(
        &self,
        backend: &dyn Backend,
        request: ExecutionRequest,
    ) -> Result<ExecutionOutput> {
        if matches!(request.stdin, Stdin::Piped) {
            return Err(Error::new(
                ErrorKind::InvalidRequest,
                "piped stdin needs a handle to write to",
            )
            .with_hint("use `spawn`, or give the bytes or a reader"));
        }
        let (plan, limits) = self.plan(backend, &request, Some(self.default_timeout))?;
        let stdin = match request.stdin {
            Stdin::Empty | Stdin::Piped => StdinSource::Empty,
            Stdin::Bytes(bytes) => StdinSource::Bytes(bytes),
            Stdin::Reader(reader) => StdinSource::Reader(reader),
        };
        let cap = request.max_output_bytes.unwrap_or(self.max_output_bytes);
        let (stdout, stdout_account) = OutputSink::capture(cap);
        let (stderr, stderr_account) = OutputSink::capture(cap);
        let stdio = Stdio {
            stdin,
            stdout,
            stderr,
        };
        let audit = Audit::of(backend.name(), &plan);
        let accounts = (stdout_account, stderr_account);
        let result = async {
            let _slot = self.slot().await?;
            let record = Record::of(backend, &plan);
            let running = backend.start(plan, stdio).await?;
            supervise(running, limits, &mut Controls::none(), record, accounts).await
        }
        .instrument(audit.span())
        .await;
        audit.close(result.as_ref());
        result
    }

    /// Starts `request` on `backend` and returns it as a live execution. Needs a tokio runtime,
    /// whose end ends the command too.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub async fn spawn(
        &self,
        backend: &dyn Backend,
        request: ExecutionRequest,
    ) -> Result<Execution> {
        let (plan, limits) = self.plan(backend, &request, None)?;
        let cap = request.max_output_bytes.unwrap_or(self.max_output_bytes);
        let (stdin, stdin_handle) = match request.stdin {
            Stdin::Empty => (StdinSource::Empty, None),
            Stdin::Bytes(bytes) => (StdinSource::Bytes(bytes), None),
            Stdin::Reader(reader) => (StdinSource::Reader(reader), None),
            Stdin::Piped => {
                let (ours, theirs) = tokio::io::duplex(crate::sink::PIPE_CAPACITY);
                (StdinSource::Reader(Box::new(theirs)), Some(ours))
            }
        };
        let (stdout, stdout_reader, stdout_account) = OutputSink::pipe();
        let (stderr, stderr_reader, stderr_account) = OutputSink::pipe();
        let stdio = Stdio {
            stdin,
            stdout,
            stderr,
        };
        let audit = Audit::of(backend.name(), &plan);
        let started = async {
            let slot = self.slot().await?;
            let record = Record::of(backend, &plan);
            let running = backend.start(plan, stdio).await?;
            Ok((slot, record, running))
        }
        .instrument(audit.span())
        .await;
        let (slot, record, running) = match started {
            Ok(started) => started,
            Err(error) => {
                audit.close(Err(&error));
                return Err(error);
            }
        };
        let id = record.id;
        let kill_switch = running.kill_switch();
        let (control, mut controls) = ExecutionControl::channel();
        let (done, result) = oneshot::channel();
        let accounts = (stdout_account, stderr_account);
        let span = audit.span();
        let task = tokio::spawn(
            async move {
                let result = supervise(running, limits, &mut controls, record, accounts).await;
                drop(slot);
                audit.close(result.as_ref());
                // Whoever held the handle may have gone: then nobody wants the result.
                let _ = done.send(result);
            }
            .instrument(span),
        );
        Ok(Execution::new(
            id,
            cap,
            stdin_handle,
            (stdout_reader, stderr_reader),
            control,
            result,
            task.abort_handle(),
            kill_switch,
        ))
    }

    /// Says what [`run`](Self::run) would do, and does nothing.
    ///
    /// # Errors
    ///
    /// As [`Plan::prepare`], and what [`Backend::describe`] finds.
    pub fn describe(
        &self,
        backend: &dyn Backend,
        request: &ExecutionRequest,
    ) -> Result<Description> {
        let (plan, limits) = self.plan(backend, request, Some(self.default_timeout))?;
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let bounds = Bounds {
            timeout_ms: limits.timeout.map(millis),
            kill_grace_ms: millis(limits.grace),
            max_output_bytes: request.max_output_bytes.unwrap_or(self.max_output_bytes),
        };
        let details = backend.describe(&plan)?;
        Ok(Description::new(backend.name(), &plan, details, bounds))
    }

    async fn slot(&self) -> Result<tokio::sync::OwnedSemaphorePermit> {
        let slot = Arc::clone(&self.slots).acquire_owned();
        match timeout(self.queue_timeout, slot).await {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_)) | Err(_) => Err(Error::new(
                ErrorKind::Busy,
                format!(
                    "no slot became free within {:?}: {} commands are running",
                    self.queue_timeout, self.max_concurrent
                ),
            )
            .with_hint("raise runtime.max_concurrent or runtime.queue_timeout_secs")),
        }
    }

    fn plan(
        &self,
        backend: &dyn Backend,
        request: &ExecutionRequest,
        default: Option<Duration>,
    ) -> Result<(Plan, Limits)> {
        let mut plan = Plan::prepare(request, backend.environment())?;
        let asked = request.timeout.or(default);
        plan.timeout = match (asked, backend.time_limit()) {
            (Some(asked), Some(limit)) => Some(asked.min(limit)),
            (asked, limit) => asked.or(limit),
        };
        let limits = Limits {
            timeout: plan.timeout,
            grace: self.kill_grace,
        };
        Ok((plan, limits))
    }
}

#[derive(Clone, Copy)]
struct Limits {
    timeout: Option<Duration>,
    grace: Duration,
}

/// What the output says of the execution besides how it went.
struct Record {
    id: ExecutionId,
    backend: String,
    refused_env: Vec<String>,
}

impl Record {
    fn of(backend: &dyn Backend, plan: &Plan) -> Self {
        Self {
            id: plan.id,
            backend: backend.name().to_owned(),
            refused_env: plan.environment.refused().to_vec(),
        }
    }
}

/// Why the supervisor ended a command.
enum Cause {
    Deadline,
    Caller { grace: Duration },
}

async fn supervise(
    mut running: Box<dyn Running>,
    limits: Limits,
    controls: &mut Controls,
    record: Record,
    accounts: (Account, Account),
) -> Result<ExecutionOutput> {
    let started = Instant::now();
    let first = tokio::select! {
        biased;
        exit = running.exited() => Ok(exit?),
        cause = unconstrained(wait_for_cause(limits.timeout, controls)) => Err(cause),
    };
    let duration;
    let (termination, exit_code);
    let mut leftover_processes = 0;
    match first {
        Ok(exit) => {
            duration = started.elapsed();
            let until = Instant::now() + SETTLE;
            leftover_processes = finish(&mut *running, until, &accounts).await;
            (termination, exit_code) = verdict(exit);
        }
        Err(cause) => {
            let grace = match cause {
                Cause::Deadline => limits.grace,
                Cause::Caller { grace } => grace,
            };
            end(&mut *running, grace, controls, &accounts).await;
            duration = started.elapsed();
            (termination, exit_code) = match cause {
                Cause::Deadline => (Termination::TimedOut, TIMED_OUT),
                Cause::Caller { .. } => (Termination::Cancelled, CANCELLED),
            };
        }
    }
    let isolation = running.isolation();
    let kept = running.kept();
    drop(running);
    let (stdout, stderr) = accounts;
    Ok(ExecutionOutput {
        stdout: stdout.finish(),
        stderr: stderr.finish(),
        exit_code,
        duration,
        termination,
        isolation,
        leftover_processes,
        refused_env: record.refused_env,
        backend: record.backend,
        id: Some(record.id),
        kept,
    })
}

/// Polled [`unconstrained`]: a command that floods its streams uses up what a task may do at a time
/// (tokio's budget) in moving output, and then a constrained timer would never fire.
async fn wait_for_cause(timeout: Option<Duration>, controls: &mut Controls) -> Cause {
    let deadline = async {
        match timeout {
            // Far deadlines are clamped by the timer, not overflowed.
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        grace = controls.next() => Cause::Caller { grace },
        () = deadline => Cause::Deadline,
    }
}

/// TERM, grace, KILL, and the last of the output. Takes at most the grace and a second.
async fn end(
    running: &mut dyn Running,
    grace: Duration,
    controls: &mut Controls,
    accounts: &(Account, Account),
) {
    if !grace.is_zero() {
        let asked = Instant::now();
        let _ = timeout(ASK, running.terminate()).await;
        let gone = async {
            let exited = running.exited().await;
            running.settled().await;
            exited
        };
        tokio::select! {
            biased;
            _ = gone => {}
            () = unconstrained(tokio::time::sleep(grace.saturating_sub(asked.elapsed()))) => {}
            () = unconstrained(controls.kill()) => {}
        }
    }
    let until = Instant::now() + SETTLE;
    let _ = timeout(ASK, running.kill()).await;
    let _ = bounded(until, running.exited()).await;
    finish(running, until, accounts).await;
}

/// The last of the output, and the end of what the main process left behind: how many processes
/// those were.
async fn finish(running: &mut dyn Running, until: Instant, accounts: &(Account, Account)) -> u32 {
    let soon = |time| Instant::now() + time;
    let drained = bounded(until.min(soon(DRAIN)), running.drain()).await;
    let leftovers = bounded(until.max(soon(STEP)), running.cleanup()).await;
    if drained.is_none() {
        // What held the streams open is gone now; what it had written is still in them, and a slow
        // reader gets it too.
        accounts.0.release();
        accounts.1.release();
        let _ = bounded(until.min(soon(DRAIN)).max(soon(STEP)), running.drain()).await;
    }
    // On a machine under load their end may take longer than there is time.
    leftovers.unwrap_or_else(|| running.leftovers_found())
}

async fn bounded<T>(until: Instant, future: impl Future<Output = T>) -> Option<T> {
    timeout_at(until, future).await.ok()
}
