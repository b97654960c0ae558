//! The thread of a guest, and how it comes to its end.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use prx_runtime_core::backend::Exit;
use prx_runtime_core::{Error, ErrorKind, Result};
use tokio::sync::oneshot;

use crate::stop::Stop;

/// The stack of a guest's thread, in bytes. Guest code has another; this is for host functions.
const STACK: usize = 2 << 20;

/// How long whoever ends a guest waits for it. A guest that computes ends within a fraction of
/// this.
const PATIENCE: Duration = Duration::from_millis(8);
/// How often a guest that has not ended is told to.
const AGAIN: Duration = Duration::from_millis(1);
/// The same, for one that is stuck in a call of the system.
const RARELY: Duration = Duration::from_millis(50);

/// What runs on the thread of a guest.
pub(crate) type Job = Box<dyn FnOnce() -> Result<Exit> + Send>;

/// A guest on its thread. The thread starts when this is first polled, and has ended when it
/// answers. Dropping it ends the guest.
pub(crate) struct GuestThread {
    job: Option<Job>,
    running: Option<Handle>,
    stop: Arc<Stop>,
    reaper: Reaper,
}

struct Handle {
    thread: JoinHandle<()>,
    result: oneshot::Receiver<Result<Exit>>,
}

impl GuestThread {
    pub(crate) fn new(job: Job, stop: Arc<Stop>, reaper: Reaper) -> Self {
        Self {
            job: Some(job),
            running: None,
            stop,
            reaper,
        }
    }
}

impl Future for GuestThread {
    type Output = Result<Exit>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<Exit>> {
        let this = self.get_mut();
        if let Some(job) = this.job.take() {
            this.running = Some(start(job, Arc::clone(&this.stop))?);
        }
        let Some(running) = &mut this.running else {
            return Poll::Ready(Err(broke_off()));
        };
        let result = ready!(Pin::new(&mut running.result).poll(cx));
        if let Some(running) = this.running.take() {
            // It has nothing left to do but to return.
            let _ = running.thread.join();
        }
        Poll::Ready(result.unwrap_or_else(|_| Err(broke_off())))
    }
}

fn start(job: Job, stop: Arc<Stop>) -> Result<Handle> {
    let (done, result) = oneshot::channel();
    let thread = thread::Builder::new()
        .name("prx-wasmer".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // What panics drops `done`, and that is an answer too.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            stop.detach();
            stop.end();
            if let Ok(result) = result {
                // Whoever waited may have gone.
                let _ = done.send(result);
            }
        })
        .map_err(|error| {
            Error::new(
                ErrorKind::Exhausted,
                "no thread could be started for a guest",
            )
            .with_source(error)
        })?;
    Ok(Handle { thread, result })
}

fn broke_off() -> Error {
    Error::new(
        ErrorKind::Engine,
        "wasmer broke off, and how the guest ended is unknown",
    )
}

impl Drop for GuestThread {
    fn drop(&mut self) {
        let Some(running) = self.running.take() else {
            return;
        };
        let tries = PATIENCE.as_millis() / AGAIN.as_millis();
        for _ in 0..tries {
            self.stop.stop();
            if self.stop.wait(AGAIN) {
                let _ = running.thread.join();
                return;
            }
        }
        self.reaper.take(Arc::clone(&self.stop), running.thread);
    }
}

/// Ends what did not end at once: a thread that has one only while there is something to end.
#[derive(Clone, Default)]
pub(crate) struct Reaper(Arc<Mutex<Reaping>>);

#[derive(Default)]
struct Reaping {
    guests: Vec<(Arc<Stop>, JoinHandle<()>)>,
    awake: bool,
}

impl Reaper {
    fn take(&self, stop: Arc<Stop>, thread: JoinHandle<()>) {
        let mut reaping = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reaping.guests.push((stop, thread));
        if reaping.awake {
            return;
        }
        let reaper = self.clone();
        let spawned = thread::Builder::new()
            .name("prx-wasmer-reaper".to_owned())
            .stack_size(64 << 10)
            .spawn(move || reaper.run());
        // Without a thread the guest is told again with the next one that is left over.
        reaping.awake = spawned.is_ok();
    }

    fn run(&self) {
        let mut pause = AGAIN;
        loop {
            thread::sleep(pause);
            pause = (pause * 2).min(RARELY);
            let mut reaping = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let guests = std::mem::take(&mut reaping.guests);
            let (ended, left): (Vec<_>, Vec<_>) = guests
                .into_iter()
                .partition(|(stop, _)| stop.wait(Duration::ZERO));
            reaping.guests = left;
            for (stop, _) in &reaping.guests {
                stop.stop();
            }
            reaping.awake = !reaping.guests.is_empty();
            let awake = reaping.awake;
            drop(reaping);
            for (_, thread) in ended {
                let _ = thread.join();
            }
            if !awake {
                return;
            }
        }
    }
}
