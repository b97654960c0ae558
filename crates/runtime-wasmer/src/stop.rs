//! Ending a guest from another thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;
use wasmer_wasix::WasiProcess;
use wasmer_wasix::wasmer_wasix_types::types::Signal;

/// What a guest and those who may end it share.
#[derive(Default)]
pub(crate) struct Stop {
    stopped: AtomicBool,
    state: Mutex<State>,
    ended: Condvar,
    timers: Notify,
    streams: [AtomicWaker; Stream::COUNT],
}

/// A stream whose waiting must end with the guest.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stream {
    Stdin,
    Stdout,
    Stderr,
}

impl Stream {
    const COUNT: usize = 3;
}

#[derive(Default)]
struct State {
    /// What runs, while it runs.
    process: Option<WasiProcess>,
    ended: bool,
}

impl Stop {
    /// Whether the guest is to end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    /// Tells the guest to end. Does not wait.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        // For what waits inside wasmer's own implementation of WASIX.
        if let Some(process) = &self.lock().process {
            process.signal_process(Signal::Sigkill);
        }
        for stream in &self.streams {
            stream.wake();
        }
        self.timers.notify_waiters();
    }

    /// The guest's thread: what waits inside WASIX is reached by `process`. Returns whether the
    /// guest may run at all.
    pub(crate) fn attach(&self, process: WasiProcess) -> bool {
        self.lock().process = Some(process);
        !self.is_stopped()
    }

    /// The guest's thread: guest code no longer runs.
    pub(crate) fn detach(&self) {
        self.lock().process = None;
    }

    /// The guest's thread: nothing of the guest is left.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.ended.notify_all();
    }

    /// Waits for the end of the guest, for `limit` at most, and says whether it came.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        let state = self.lock();
        let wait = self
            .ended
            .wait_timeout_while(state, limit, |state| !state.ended);
        wait.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// Before something waits on a stream: wakes it when the guest is to end. Returns whether it
    /// may wait.
    pub(crate) fn may_wait(&self, stream: Stream, waker: &Waker) -> bool {
        self.streams[stream as usize].register(waker);
        !self.is_stopped()
    }

    /// Resolves when the guest is to end.
    pub(crate) async fn stopped(self: Arc<Self>) {
        let notified = self.timers.notified();
        let mut notified = std::pin::pin!(notified);
        // Either the flag is seen, or this is among those who are notified.
        notified.as_mut().enable();
        if !self.is_stopped() {
            notified.await;
        }
    }

    /// A panic while the lock is held leaves a flag or a handle that is whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Stop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stop")
            .field("stopped", &self.is_stopped())
            .finish_non_exhaustive()
    }
}
