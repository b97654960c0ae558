//! What makes guests give their thread back: a clock that advances the engine's epoch.
//!
//! One thread ticks for all guests of an engine. It starts when a guest is polled and ends at the
//! first tick that finds none, so that neither an idle runtime nor one whose guests all wait has
//! such a thread, and calls that follow each other closely share one.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::Engine;

/// How long a guest runs before others have their turn.
const TICK: Duration = Duration::from_millis(2);

/// The clock of one engine.
#[derive(Clone)]
pub(crate) struct Ticker(Arc<Shared>);

struct Shared {
    engine: Engine,
    /// How many guests are being polled.
    polled: AtomicUsize,
    ticking: AtomicBool,
    /// Held while the thread is started and while it decides to end.
    turn: Mutex<()>,
}

/// The clock ticks while one of these exists.
pub(crate) struct Ticking<'a>(&'a Shared);

impl Ticker {
    pub(crate) fn new(engine: Engine) -> Self {
        Self(Arc::new(Shared {
            engine,
            polled: AtomicUsize::new(0),
            ticking: AtomicBool::new(false),
            turn: Mutex::new(()),
        }))
    }

    /// Makes the clock tick.
    ///
    /// # Errors
    ///
    /// No thread can be had.
    pub(crate) fn tick(&self) -> io::Result<Ticking<'_>> {
        let shared = &self.0;
        shared.polled.fetch_add(1, Ordering::SeqCst);
        let ticking = Ticking(shared);
        // Either this sees that the thread has decided to end, or the thread sees the new guest.
        if !shared.ticking.load(Ordering::SeqCst) {
            self.start()?;
        }
        Ok(ticking)
    }

    #[cold]
    fn start(&self) -> io::Result<()> {
        let _turn = self.0.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.0.ticking.load(Ordering::SeqCst) {
            let shared = Arc::clone(&self.0);
            thread::Builder::new()
                .name("prx-wasm-ticker".to_owned())
                .stack_size(64 << 10)
                .spawn(move || shared.run())?;
            self.0.ticking.store(true, Ordering::SeqCst);
        }
        Ok(())
    }
}

impl Shared {
    fn run(&self) {
        loop {
            thread::sleep(TICK);
            self.engine.increment_epoch();
            if self.polled.load(Ordering::SeqCst) > 0 {
                continue;
            }
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            self.ticking.store(false, Ordering::SeqCst);
            if self.polled.load(Ordering::SeqCst) == 0 {
                return;
            }
            // A guest came meanwhile, and found the clock ticking or waits for its turn to start
            // it.
            self.ticking.store(true, Ordering::SeqCst);
        }
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.polled.fetch_sub(1, Ordering::SeqCst);
    }
}
