//! How one trial is run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::{Driver, Effort, Halt, Stage, Trial};

/// The kinds of tokio runtime that a caller may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokioKind {
    /// Everything on the caller's thread.
    CurrentThread,
    /// Two worker threads.
    MultiThread,
}

impl TokioKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::CurrentThread, Self::MultiThread];

    /// As it stands in the names of trials.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CurrentThread => "current-thread",
            Self::MultiThread => "multi-thread",
        }
    }

    pub(crate) fn build(self) -> std::io::Result<Runtime> {
        match self {
            Self::CurrentThread => Builder::new_current_thread().enable_all().build(),
            Self::MultiThread => Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build(),
        }
    }
}

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The clause holds.
    Passed,
    /// The trial means nothing on this backend, and why.
    Gated(String),
    /// The clause is broken, and how.
    Failed(String),
}

/// Held for reading by trials that mind no company, for writing by those that do.
static COMPANY: RwLock<()> = RwLock::new(());

/// What a trial may take before it is given up: far more than any has use for.
const GIVE_UP: Duration = Duration::from_secs(240);

/// From the start of a guest to the writing of its marker, at the first try and at further ones
/// where the machine was too slow to tell.
const MARKER_DELAYS: [Duration; 3] = [
    Duration::from_secs(3),
    Duration::from_secs(12),
    Duration::from_secs(40),
];

impl Trial {
    /// Runs the trial on a backend. A panic is a failure.
    pub fn run(&self, driver: &Arc<dyn Driver>, kind: TokioKind, effort: Effort) -> Outcome {
        let _company;
        let _alone;
        if self.alone {
            _alone = COMPANY.write().unwrap_or_else(PoisonError::into_inner);
        } else {
            _company = COMPANY.read().unwrap_or_else(PoisonError::into_inner);
        }
        for delay in MARKER_DELAYS {
            match self.run_once(driver, kind, effort, delay) {
                Ok(()) => return Outcome::Passed,
                Err(Halt::Gated(reason)) => return Outcome::Gated(reason),
                Err(Halt::Failed(message)) => return Outcome::Failed(message),
                Err(Halt::TooSlow) => {}
            }
        }
        Outcome::Failed("whatever was to be ended had time to end by itself".to_owned())
    }

    fn run_once(
        &self,
        driver: &Arc<dyn Driver>,
        kind: TokioKind,
        effort: Effort,
        marker_delay: Duration,
    ) -> Result<(), Halt> {
        let run = || self.run_inside(driver, kind, effort, marker_delay);
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(result) => result,
            Err(panic) => {
                let message = panic
                    .downcast_ref::<String>()
                    .map(String::as_str)
                    .or_else(|| panic.downcast_ref::<&str>().copied());
                let message = message.unwrap_or("without a word");
                Err(Halt::failed(format_args!("panicked: {message}")))
            }
        }
    }

    fn run_inside(
        &self,
        driver: &Arc<dyn Driver>,
        kind: TokioKind,
        effort: Effort,
        marker_delay: Duration,
    ) -> Result<(), Halt> {
        let stage = Stage::new(Arc::clone(driver), effort, marker_delay)?;
        let runtime = kind.build()?;
        let result = runtime.block_on(async {
            if !self.needs.is_empty() {
                let capabilities = stage.adapter().await?.capabilities();
                if let Some(need) = self.needs.iter().find(|need| !need.is_met(capabilities)) {
                    return Err(Halt::gated(format_args!("needs {need}")));
                }
            }
            tokio::time::timeout(GIVE_UP, (self.run)(&stage))
                .await
                .unwrap_or_else(|_| Err(Halt::failed(format_args!("gave up after {GIVE_UP:?}"))))
        });
        // Not for ever: a backend that blocks a thread has failed, and the suite goes on.
        runtime.shutdown_timeout(Duration::from_secs(10));
        result
    }
}
