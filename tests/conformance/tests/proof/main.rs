//! The proof of the suite: an adapter that keeps the contract passes all of it, and each of many
//! with one defect fails trials of the clause that it breaks, and no other's.
//!
//! Every trial is run on every one of them, with these exceptions. What is broken is tried on the
//! multi-threaded runtime only: a defect of an adapter is the same on both kinds. And trials that
//! need the process to themselves run one by one, which for all adapters would take longer than
//! all else together: an adapter runs them where the clause that it breaks has such trials. The
//! effort is brief: what only costs time is less.

mod broken;
#[path = "../../../../crates/runtime-native/tests/conformance/driver.rs"]
mod driver;

use std::collections::VecDeque;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use broken::{BrokenDriver, Defect};
use prx_conformance::{
    CONTRACT, Clause, Driver, Effort, Outcome, TokioKind, Trial, in_prepared_host,
};

/// How many trials run at one time: nearly all of them only wait.
const THREADS: usize = 128;

fn main() -> ExitCode {
    let native: Arc<dyn Driver> = Arc::new(driver::NativeDriver);
    in_prepared_host(&native, || prove(&native))
}

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
    let subjects = subjects(native);
    let (alone, together): (Vec<_>, Vec<_>) =
        jobs(&subjects).into_iter().partition(|job| job.trial.alone);
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
    let wrong = records
        .iter()
        .filter(|record| !record.lock().unwrap().proved)
        .count();
    println!(
        "{count} trials of {} adapters in {:?}",
        subjects.len(),
        start.elapsed()
    );
    for left in std::fs::read_dir(std::env::temp_dir()).unwrap() {
        let left = left.unwrap().path();
        // What a broken adapter left. Where it is gone meanwhile, all the better.
        let _ = std::fs::remove_file(&left).or_else(|_| std::fs::remove_dir_all(&left));
    }
    // In libtest's words, for who counts.
    let (verdict, code) = match wrong {
        0 => ("ok", ExitCode::SUCCESS),
        _ => ("FAILED", ExitCode::FAILURE),
    };
    let passed = subjects.len() - wrong;
    println!("test result: {verdict}. {passed} passed; {wrong} failed; 0 ignored");
    code
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

fn jobs(subjects: &[Subject]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for (subject, Subject { defect, .. }) in subjects.iter().enumerate() {
        let kinds = match defect {
            None => &TokioKind::ALL[..],
            Some(_) => &[TokioKind::MultiThread],
        };
        let runs_alone = |trial: &Trial| match defect {
            None => true,
            Some((number, _)) => {
                let clause = CONTRACT.iter().find(|clause| clause.number == *number);
                !trial.alone || clause.is_some_and(|clause| clause.trials.iter().any(|t| t.alone))
            }
        };
        for clause in CONTRACT {
            for trial in clause.trials.iter().filter(|trial| runs_alone(trial)) {
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
                    let Some(job) = jobs.lock().unwrap().pop_front() else {
                        break;
                    };
                    let driver = Arc::clone(&records[job.subject].lock().unwrap().subject.driver);
                    let outcome = job.trial.run(&driver, job.kind, Effort::Brief);
                    records[job.subject].lock().unwrap().add(&job, outcome);
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
            let gated = own.iter().any(|(_, finding)| finding.contains(": gated: "));
            if own.is_empty() || gated {
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
