//! Threads for work that blocks: reading, compiling and loading modules. They live as long as
//! that work, belong to no runtime (which would wait for them when it ends) and are shared with
//! whatever parallelism the compiler has.
//!
//! No more than a few compile at the same time, which takes many times the size of a module. What
//! has only to be read or loaded waits for nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};

use prx_runtime_core::{Error, ErrorKind, Result};
use rayon::ThreadPoolBuilder;

/// Compilers recurse.
const STACK: usize = 8 << 20;

/// Starts `job`. It runs to its end also if nobody waits for it: a compiler cannot be interrupted,
/// and what it made will be wanted again. A job that panics ends itself and nothing else; whoever
/// waits for it sees that what it held has gone.
///
/// # Errors
///
/// [`ErrorKind::Exhausted`] where no thread can be had.
pub(crate) fn start(job: impl FnOnce() + Send + 'static) -> Result<()> {
    let pool = ThreadPoolBuilder::new()
        .thread_name(|index| format!("prx-compile-{index}"))
        .stack_size(STACK)
        // Without it, a panic on one of these threads would end the whole process.
        .panic_handler(|_| {})
        .build()
        .map_err(|error| {
            Error::new(
                ErrorKind::Exhausted,
                "no thread could be started to compile a module",
            )
            .with_source(error)
        })?;
    // The pool ends when its handle is gone and the job has been done.
    pool.spawn(|| {
        // What a panic is about is on stderr by now, or wherever the host's own hook put it.
        let _ = catch_unwind(AssertUnwindSafe(job));
    });
    Ok(())
}

/// How many compile now.
static WORKING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// The right to compile; dropping it gives it to the next.
pub(crate) struct Turn(());

impl Turn {
    /// Blocks until there is one.
    pub(crate) fn wait() -> Self {
        let most = std::thread::available_parallelism().map_or(2, |cpus| cpus.get().max(2));
        let working = WORKING.lock().unwrap_or_else(PoisonError::into_inner);
        let mut working = ENDED
            .wait_while(working, |working| *working >= most)
            .unwrap_or_else(PoisonError::into_inner);
        *working += 1;
        Self(())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *WORKING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_job_that_panics_ends_nothing_but_itself() {
        // More of them than may compile at once: each gives its turn back.
        for _ in 0..100 {
            let (done, outcome) = tokio::sync::oneshot::channel::<()>();
            start(move || {
                let _done = done;
                let _turn = Turn::wait();
                panic!("as a compiler does on a module that it does not expect");
            })
            .unwrap();
            assert!(outcome.await.is_err());
        }
        let (done, outcome) = tokio::sync::oneshot::channel();
        start(move || {
            let _turn = Turn::wait();
            let _ = done.send(7);
        })
        .unwrap();
        assert_eq!(outcome.await, Ok(7));
    }
}
