//! The suite as a test binary.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use libtest_mimic::{Arguments, Completion, Failed};
use prx_fixtures::{REQUIRE_BACKENDS, is_required};

use crate::host::{in_prepared_host, report};
use crate::remains::{Belongings, processes_left_now};
use crate::{CONTRACT, Clause, Driver, Effort, Outcome, Task, TokioKind, Trial};

/// How long what has ended may take to be gone.
const SETTLE: Duration = Duration::from_secs(10);

/// Runs the suite on the backend of `driver`: the whole of a backend's `tests/conformance.rs`.
pub fn main(driver: impl Driver) -> ExitCode {
    let driver: Arc<dyn Driver> = Arc::new(driver);
    in_prepared_host(&driver, || suite(&driver))
}

fn suite(driver: &Arc<dyn Driver>) -> ExitCode {
    let mut args = Arguments::from_args();
    args.test_threads = args.test_threads.or_else(|| Some(driver.trials_at_once()));
    let absence = if args.list { None } else { absence(driver) };
    // Taken after the first use of the backend: what a process makes once and keeps is no leak.
    let before = Belongings::now();
    let gated = Gated::default();
    let mut trials = trials(driver, absence.as_deref(), &gated);
    if let Some(reason) = absence
        && is_required(driver.name())
    {
        let message = format!("{REQUIRE_BACKENDS} has `{}`, and: {reason}", driver.name());
        trials.push(libtest_mimic::Trial::test("the_backend_is_there", || {
            Err(Failed::from(message))
        }));
    }
    let conclusion = libtest_mimic::run(&args, trials);
    if args.list {
        return conclusion.exit_code();
    }
    gated.report();
    let left = left_since(before.as_ref());
    for what in &left {
        report(&format!("left after the suite: {what}"));
    }
    if left.is_empty() {
        conclusion.exit_code()
    } else {
        ExitCode::FAILURE
    }
}

/// What this process has left, or has more of than before, in words. What ends needs a moment to be
/// gone.
fn left_since(before: Option<&Belongings>) -> Vec<String> {
    let start = Instant::now();
    loop {
        let mut left = processes_left_now();
        left.extend(before.iter().flat_map(|before| before.grown_now()));
        if left.is_empty() || start.elapsed() > SETTLE {
            return left;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Why the backend cannot be used here and now. Where it can, it has been used once.
fn absence(driver: &Arc<dyn Driver>) -> Option<String> {
    let used = TokioKind::MultiThread
        .build()
        .map_err(|error| error.to_string())
        .and_then(|runtime| {
            runtime.block_on(async {
                let adapter = driver
                    .make(&driver.config())
                    .await
                    .map_err(|error| error.to_string())?;
                let probe = adapter.probe().await;
                if !probe.available {
                    let hint = probe.hint.map(|hint| format!(" (hint: {hint})"));
                    return Err(probe.detail + &hint.unwrap_or_default());
                }
                if let Some(request) = driver.spell(&Task::Exit(0)) {
                    // Whether it works is for the trials to say.
                    let _ = adapter.run(request).await;
                }
                Ok(())
            })
        });
    used.err()
}

/// Every trial on every kind of tokio runtime, those that need the process to themselves last.
fn trials(
    driver: &Arc<dyn Driver>,
    absence: Option<&str>,
    gated: &Gated,
) -> Vec<libtest_mimic::Trial> {
    let mut all: Vec<(&Clause, &'static Trial, TokioKind)> = CONTRACT
        .iter()
        .flat_map(|clause| clause.trials.iter().map(move |trial| (clause, trial)))
        .flat_map(|(clause, trial)| {
            let kinds = driver.tokio_kinds().iter();
            kinds.map(move |kind| (clause, trial, *kind))
        })
        .collect();
    all.sort_by_key(|(_, trial, _)| trial.alone);
    all.into_iter()
        .map(|(clause, trial, kind)| {
            let name = format!("{}[{}]", clause.name_of(trial), kind.as_str());
            let driver = Arc::clone(driver);
            let absence = absence.map(|reason| format!("{} is not here: {reason}", driver.name()));
            let gated = gated.clone();
            libtest_mimic::Trial::ignorable_test(name, move || {
                if let Some(reason) = absence {
                    return Ok(gated.add(reason));
                }
                match trial.run(&driver, kind, Effort::Full) {
                    Outcome::Passed => Ok(Completion::Completed),
                    Outcome::Gated(reason) => Ok(gated.add(reason)),
                    Outcome::Failed(message) => Err(message.into()),
                }
            })
        })
        .collect()
}

/// How many trials meant nothing, by reason.
#[derive(Clone, Default)]
struct Gated(Arc<Mutex<BTreeMap<String, u32>>>);

impl Gated {
    fn add(&self, reason: String) -> Completion {
        let completion = Completion::ignored_with(&reason);
        *self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(reason)
            .or_default() += 1;
        completion
    }

    fn report(&self) {
        for (reason, count) in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            report(&format!("{count} gated: {reason}"));
        }
    }
}
