//! Removes containers that nobody waits for any more: after a dropped future, a panic, the end of
//! a runtime, or an engine that did not answer.
//!
//! A `Drop` cannot await, and the runtime it happens in may be shutting down. So removals are done
//! by a thread with a small runtime of its own, which is there only while there is work.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::engine::{Client, Removal};

/// For how long a container may still appear whose creation was asked for and not awaited.
const APPEARS: Duration = Duration::from_secs(5);
/// For how long a removal is tried before it is put aside until the engine is used again.
const TRIES: Duration = Duration::from_secs(15);
/// From one try to the next.
const PAUSE: Duration = Duration::from_millis(100);

/// One container to be ended.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) client: Client,
    /// Its name or id.
    pub(crate) container: String,
    pub(crate) end: End,
}

/// How a container is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Killed and removed.
    Remove,
    /// As `Remove`; it may appear only later.
    RemoveOnceThere,
    /// Killed, and kept for inspection.
    Kill,
}

/// Ends containers in the background.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reaper(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Tells the thread of new work.
    work: Notify,
    /// Tells those who wait that the thread has ended.
    idle: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Job>,
    /// What could not be ended while the engine did not answer.
    put_aside: Vec<Job>,
    running: bool,
}

impl Reaper {
    /// Ends a container soon. Does not block.
    pub(crate) fn end(&self, job: Job) {
        let mut state = self.0.lock();
        state.queue.push_back(job);
        self.0.work.notify_one();
        if state.running {
            return;
        }
        let shared = Arc::clone(&self.0);
        let thread = std::thread::Builder::new()
            .name("prx-docker-reaper".to_owned())
            .spawn(move || shared.run());
        match thread {
            Ok(_) => state.running = true,
            Err(error) => {
                tracing::warn!(%error, "no thread to remove containers; it is tried again later");
                let jobs: Vec<_> = state.queue.drain(..).collect();
                state.put_aside.extend(jobs);
            }
        }
    }

    /// Tries again what could not be ended before.
    pub(crate) fn retry(&self) {
        let jobs = std::mem::take(&mut self.0.lock().put_aside);
        for job in jobs {
            self.end(job);
        }
    }

    /// Waits until nothing is left to be ended, but not longer than `limit`.
    pub(crate) fn wait(&self, limit: Duration) {
        let state = self.0.lock();
        // A poisoned wait is over as well.
        let _ = self
            .0
            .idle
            .wait_timeout_while(state, limit, |state| state.running);
    }
}

impl Shared {
    /// A panic while the lock is held leaves a queue that is still a queue.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        match runtime {
            Ok(runtime) => runtime.block_on(self.work()),
            Err(error) => {
                tracing::warn!(%error, "no runtime to remove containers; it is tried again later");
                let mut state = self.lock();
                let jobs: Vec<_> = state.queue.drain(..).collect();
                state.put_aside.extend(jobs);
                state.running = false;
            }
        }
        self.idle.notify_all();
    }

    async fn work(&self) {
        let mut jobs = JoinSet::new();
        loop {
            {
                let mut state = self.lock();
                while let Some(job) = state.queue.pop_front() {
                    jobs.spawn(carry_out(job));
                }
                if jobs.is_empty() {
                    state.running = false;
                    return;
                }
            }
            tokio::select! {
                Some(ended) = jobs.join_next() => {
                    if let Ok(Err(job)) = ended {
                        self.lock().put_aside.push(job);
                    }
                }
                () = self.work.notified() => {}
            }
        }
    }
}

/// # Errors
///
/// The job, where the engine did not do it in time.
async fn carry_out(job: Job) -> Result<(), Job> {
    let started = Instant::now();
    loop {
        let pause = match attempt(&job).await {
            Ok(Removal::Removed) => return Ok(()),
            Ok(Removal::WasNotThere) => {
                job.end == End::RemoveOnceThere && started.elapsed() < APPEARS
            }
            Ok(Removal::Underway) => started.elapsed() < TRIES,
            Err(failure) if started.elapsed() < TRIES => {
                tracing::debug!(container = job.container, ?failure, "a removal failed");
                true
            }
            Err(failure) => {
                tracing::warn!(
                    container = job.container,
                    ?failure,
                    "a container could not be removed; it is tried again later"
                );
                return Err(job);
            }
        };
        if !pause {
            return Ok(());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn attempt(job: &Job) -> Result<Removal, crate::error::Failure> {
    match job.end {
        End::Remove | End::RemoveOnceThere => job.client.remove(&job.container).await,
        End::Kill => match job.client.kill(&job.container, "KILL").await {
            Ok(()) => Ok(Removal::Removed),
            // 409: it does not run.
            Err(failure) if matches!(failure.refusal(), Some((404 | 409, _))) => {
                Ok(Removal::WasNotThere)
            }
            Err(failure) => Err(failure),
        },
    }
}
