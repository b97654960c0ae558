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

/// For how long it is waited for a container whose creation was asked for and not awaited. Later it
/// is looked for whenever the engine is used: it was never started, and holds nothing but its name.
const APPEARS: Duration = Duration::from_secs(5);
/// For how long a removal is tried before it is put aside until the engine is used again.
const TRIES: Duration = Duration::from_secs(15);
/// From one try to the next: at first, and at most.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// After this long a container does not appear any more whose creation was asked for.
const FORGOTTEN: Duration = Duration::from_secs(60 * 60);

/// One container to be ended.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) client: Client,
    /// Its name or id.
    pub(crate) container: String,
    pub(crate) end: End,
    /// When it was to be ended.
    since: Instant,
    /// What is put aside is not tried again before.
    next: Instant,
}

impl Job {
    pub(crate) fn new(client: Client, container: String, end: End) -> Self {
        let now = Instant::now();
        Self {
            client,
            container,
            end,
            since: now,
            next: now,
        }
    }
}

/// How a container is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Killed and removed.
    Remove,
    /// As `Remove`; it may appear only later, as long as the engine may be at work on it.
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
    /// What could not be ended while the engine did not answer, or has not appeared yet.
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
        let now = Instant::now();
        let due: Vec<_> = {
            let mut state = self.0.lock();
            let (due, later) = std::mem::take(&mut state.put_aside)
                .into_iter()
                .partition(|job| job.next <= now);
            state.put_aside = later;
            due
        };
        for job in due {
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
/// The job, where it was not done in time.
async fn carry_out(mut job: Job) -> Result<(), Job> {
    let started = Instant::now();
    let mut pause = PAUSE;
    loop {
        match attempt(&job).await {
            Ok(Removal::Removed) => return Ok(()),
            Ok(Removal::WasNotThere) if job.end != End::RemoveOnceThere => return Ok(()),
            Ok(Removal::WasNotThere) => {
                let waited = job.since.elapsed();
                if waited >= FORGOTTEN {
                    return Ok(());
                }
                if waited >= APPEARS {
                    // Later and later: each try is a request.
                    job.next = Instant::now() + waited / 4;
                    return Err(job);
                }
            }
            // Whoever removes it may fail: it is done once it is not there.
            Ok(Removal::Underway) => {
                job.end = End::Remove;
                if started.elapsed() >= TRIES {
                    tracing::warn!(
                        container = job.container,
                        "the removal of a container does not end; it is tried again later"
                    );
                    return Err(job);
                }
            }
            Err(failure) if started.elapsed() < TRIES => {
                tracing::debug!(container = job.container, ?failure, "a removal failed");
            }
            Err(failure) => {
                tracing::warn!(
                    container = job.container,
                    ?failure,
                    "a container could not be removed; it is tried again later"
                );
                return Err(job);
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::scripted::{Answer, ScriptedEngine};

    fn removed() -> Answer {
        Answer::ok("")
    }

    fn missing() -> Answer {
        Answer::refusal(404, "no such container")
    }

    #[tokio::test]
    async fn a_container_that_appears_late_is_removed() {
        // Nothing is there until it is put aside and tried again.
        let engine = ScriptedEngine::start(|_, turn| match turn {
            0..2 => missing(),
            _ => removed(),
        });
        let client = engine.client().await;
        let mut job = Job::new(client, "late".to_owned(), End::RemoveOnceThere);
        job.since = Instant::now().checked_sub(APPEARS).unwrap();
        let mut put_aside = 0;
        while let Err(again) = carry_out(job).await {
            assert!(again.next > Instant::now());
            put_aside += 1;
            job = again;
        }
        assert_eq!(put_aside, 2);
        assert_eq!(engine.count("DELETE /containers/late"), 3);
    }

    #[tokio::test]
    async fn one_that_never_appears_is_forgotten_in_the_end() {
        let engine = ScriptedEngine::start(|_, _| missing());
        let mut job = Job::new(engine.client().await, "x".to_owned(), End::RemoveOnceThere);
        job.since = Instant::now().checked_sub(FORGOTTEN).unwrap();
        assert!(carry_out(job).await.is_ok());
        // What was there and is not any more is done at once.
        let job = Job::new(engine.client().await, "y".to_owned(), End::Remove);
        assert!(carry_out(job).await.is_ok());
        assert_eq!(engine.count("DELETE"), 2);
    }

    #[tokio::test]
    async fn a_removal_by_another_counts_once_it_is_gone() {
        for end in [End::Remove, End::RemoveOnceThere] {
            let engine = ScriptedEngine::start(|_, turn| match turn {
                0 | 1 => Answer::refusal(409, "removal is already in progress"),
                // It failed.
                2 => removed(),
                _ => missing(),
            });
            let job = Job::new(engine.client().await, "x".to_owned(), end);
            assert!(carry_out(job).await.is_ok());
            assert_eq!(engine.count("DELETE /containers/x"), 3);
        }
    }

    #[tokio::test]
    async fn what_is_put_aside_waits_for_its_time() {
        let engine = ScriptedEngine::start(|_, _| removed());
        let client = engine.client().await;
        let reaper = Reaper::default();
        let due = Job::new(client.clone(), "due".to_owned(), End::Remove);
        let mut later = Job::new(client, "later".to_owned(), End::Remove);
        later.next = Instant::now() + FORGOTTEN;
        reaper.0.lock().put_aside = vec![later, due];
        reaper.retry();
        engine.asked("DELETE /containers/due").await;
        let state = reaper.0.lock();
        let left: Vec<_> = state.put_aside.iter().map(|job| &job.container).collect();
        assert_eq!(left, ["later"]);
    }
}
