//! The proof of the suite: an adapter that keeps the contract passes all of it, and each of many
//! with one defect fails trials of the clause that it breaks, and no other's.
//!
//! The adapter without a defect runs every trial, on both kinds of tokio runtime. One with a defect
//! runs all trials of the clause that it breaks, and of the others every fifth, another fifth for
//! each: all of them are some five thousand runs, which take minutes; `-- --all` runs them. It runs
//! on the multi-threaded runtime only, since a defect of an adapter is the same on both. Trials that
//! need the process to themselves go one by one, and are run where the broken clause has such.
//! The effort is brief: what only costs time is less.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test with a `main` of its own tells how it ended"
)]

mod broken;
#[path = "../../../../crates/runtime-native/tests/conformance/driver.rs"]
mod driver;

use std::collections::VecDeque;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use broken::{BrokenDriver, Defect};
use prx_conformance::{
    CONTRACT, Clause, Driver, Effort, Outcome, TokioKind, Trial, in_prepared_host,
};

/// How many trials run at one time: nearly all of them only wait.
const THREADS: usize = 32;

fn main() -> ExitCode {
    let native: Arc<dyn Driver> = Arc::new(driver::NativeDriver);
    in_prepared_host(&native, || prove(&native))
}

/// Of the trials of clauses that it does not break, an adapter runs one in so many.
const SAMPLE: usize = 5;

/// One adapter under proof.
struct Subject {
    /// The clause that it breaks, and how; `None` for the one that keeps all.
    defect: Option<(u8, Defect)>,
    driver: Arc<dyn Driver>,
}

/// One trial of one subject.
struct Job {
    subject: usize,
    clause: &'static Clause,
    trial: &'static Trial,
    kind: TokioKind,
}

fn prove(native: &Arc<dyn Driver>) -> ExitCode {
    let start = Instant::now();
    let all = std::env::args().any(|arg| arg == "--all");
    let subjects = subjects(native);
    let (alone, together): (Vec<_>, Vec<_>) = jobs(&subjects, all)
        .into_iter()
        .partition(|job| job.trial.alone);
    let count = alone.len() + together.len();
    let mut open = vec![0; subjects.len()];
    for job in alone.iter().chain(&together) {
        open[job.subject] += 1;
    }
    let records: Vec<_> = subjects
        .iter()
        .zip(open)
        .map(|(subject, open)| Mutex::new(Record::new(subject, open)))
        .collect();
    run_all(&records, together, THREADS);
    run_all(&records, alone, 1);
    let wrong = records.iter().filter(|record| !lock(record).proved).count();
    println!(
        "{count} trials of {} adapters in {:?}",
        subjects.len(),
        start.elapsed()
    );
    clear(&std::env::temp_dir());
    // In libtest's words, for who counts.
    let (verdict, code) = match wrong {
        0 => ("ok", ExitCode::SUCCESS),
        _ => ("FAILED", ExitCode::FAILURE),
    };
    let passed = subjects.len() - wrong;
    println!("test result: {verdict}. {passed} passed; {wrong} failed; 0 ignored");
    code
}

/// A panic while the lock is held has failed its trial, and the rest goes on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what broken adapters left.
fn clear(directory: &Path) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        // Where it is gone meanwhile, all the better.
        let path = entry.path();
        let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
    }
}

fn subjects(native: &Arc<dyn Driver>) -> Vec<Subject> {
    std::iter::once(None)
        .chain(Defect::ALL.map(Some))
        .map(|defect| Subject {
            defect,
            driver: Arc::new(BrokenDriver {
                driver: Arc::clone(native),
                defect: defect.map(|(_, defect)| defect),
            }),
        })
        .collect()
}

/// Every trial of the contract, with its clause.
fn trials() -> impl Iterator<Item = (&'static Clause, &'static Trial)> {
    CONTRACT
        .iter()
        .flat_map(|clause| clause.trials.iter().map(move |trial| (clause, trial)))
}

fn jobs(subjects: &[Subject], all: bool) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (subject, Subject { defect, .. }) in subjects.iter().enumerate() {
        let kinds = match defect {
            None => &TokioKind::ALL[..],
            Some(_) => &[TokioKind::MultiThread],
        };
        for (index, (clause, trial)) in trials().enumerate() {
            let runs = match defect {
                None => true,
                Some((number, _)) if *number == clause.number => true,
                Some((number, _)) => {
                    let has_alone = trials().any(|(clause, t)| clause.number == *number && t.alone);
                    (all || (index + subject) % SAMPLE == 0) && (!trial.alone || has_alone)
                }
            };
            if runs {
                jobs.extend(kinds.iter().map(|&kind| Job {
                    subject,
                    clause,
                    trial,
                    kind,
                }));
            }
        }
    }
    jobs
}

/// What is known of a subject.
struct Record<'a> {
    subject: &'a Subject,
    /// How many of its trials have not ended.
    open: usize,
    /// How those ended that did not pass, by the number of their clause.
    findings: Vec<(u8, String)>,
    /// Whether it failed what it breaks and nothing else.
    proved: bool,
}

impl<'a> Record<'a> {
    fn new(subject: &'a Subject, open: usize) -> Self {
        Self {
            subject,
            open,
            findings: Vec::new(),
            proved: false,
        }
    }

    /// Takes the outcome of one trial, and judges after the last.
    fn add(&mut self, job: &Job, outcome: Outcome) {
        let finding = match outcome {
            Outcome::Passed => None,
            Outcome::Gated(reason) => Some(format!("gated: {reason}")),
            Outcome::Failed(message) => Some(message),
        };
        if let Some(finding) = finding {
            let name = format!("{}[{}]", job.clause.name_of(job.trial), job.kind.as_str());
            self.findings
                .push((job.clause.number, format!("{name}: {finding}")));
        }
        self.open -= 1;
        if self.open > 0 {
            return;
        }
        match judge(self.subject, std::mem::take(&mut self.findings)) {
            Ok(what) => {
                println!("{what}");
                self.proved = true;
            }
            Err(what) => eprintln!("{what}"),
        }
    }
}

fn run_all(records: &[Mutex<Record<'_>>], jobs: Vec<Job>, threads: usize) {
    let jobs = Mutex::new(VecDeque::from(jobs));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(job) = lock(&jobs).pop_front() else {
                        break;
                    };
                    let driver = Arc::clone(&lock(&records[job.subject]).subject.driver);
                    let outcome = job.trial.run(&driver, job.kind, Effort::Brief);
                    lock(&records[job.subject]).add(&job, outcome);
                }
            });
        }
    });
}

/// Whether a subject failed what it breaks and nothing else, in words. Trials for backends without a shell
/// are gated here; no other is.
fn judge(subject: &Subject, mut findings: Vec<(u8, String)>) -> Result<String, String> {
    findings.retain(|(_, finding)| !finding.ends_with("gated: needs a backend without a shell"));
    let list = |findings: &[(u8, String)]| {
        let mut lines: Vec<_> = findings
            .iter()
            .map(|(_, finding)| format!("  {finding}"))
            .collect();
        lines.sort_unstable();
        lines.join("\n")
    };
    match subject.defect {
        None if findings.is_empty() => Ok("the adapter without a defect passes".to_owned()),
        None => Err(format!(
            "the adapter without a defect fails:\n{}",
            list(&findings)
        )),
        Some((clause, defect)) => {
            let (own, others): (Vec<_>, Vec<_>) = findings
                .into_iter()
                .partition(|(number, _)| *number == clause);
            let found = |(_, finding): &(u8, String)| !finding.contains(": gated: ");
            if !own.iter().any(found) {
                return Err(format!(
                    "C{clause} does not find {defect:?}:\n{}",
                    list(&own)
                ));
            }
            if !others.is_empty() {
                return Err(format!(
                    "{defect:?} breaks C{clause} and fails others:\n{}",
                    list(&others)
                ));
            }
            Ok(format!(
                "C{clause} finds {defect:?} by {} trials",
                own.len()
            ))
        }
    }
}
