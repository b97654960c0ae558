//! `cargo xtask faults`: system calls that fail, one at a time.
//!
//! strace lets the N-th call of a kind fail in every process of a run, the host's and the
//! command's, for each N until no process makes that many. However that goes, the run must end in
//! time, say what went wrong if it was the host that failed, and leave no process behind.

use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use prx_runtime_core::EXECUTION_ID_VARIABLE;

use crate::process::Cmd;
use crate::workspace::Workspace;

/// What starts, moves, waits and ends; and what looks for strays.
const CALLS: &[&str] = &[
    "clone3",
    "vfork",
    "pipe2",
    "read",
    "waitid",
    "epoll_ctl",
    "kill",
    "openat",
    "pidfd_open",
    "pidfd_send_signal",
];
const ERRORS: &[&str] = &["EINTR", "EIO", "ENOMEM", "EMFILE"];

/// What is run, and how it ends where nothing fails.
struct Scenario {
    name: &'static str,
    timeout: &'static str,
    line: &'static str,
    code: i32,
}

/// When a run has to be over. The contract gives the longest one about six seconds; this is more
/// than twice that, because strace stops every process at every call.
const PATIENCE: Duration = Duration::from_secs(15);

/// As much for a second try: on a busy machine a run can take long, while one that hangs does so
/// for ever, or until what it left behind ends by itself, which is later.
const MORE_PATIENCE: Duration = Duration::from_secs(75);

/// For every run, in milliseconds.
const GRACE: u32 = 100;

const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "end",
        timeout: "5s",
        // With something left behind, which only its end by us ends.
        line: "echo hi; sleep 97 >/dev/null 2>&1 & sleep 0.02; exit 7",
        code: 7,
    },
    Scenario {
        name: "deadline",
        timeout: "300ms",
        line: "trap '' TERM; echo hi; setsid sleep 97 >/dev/null 2>&1 & sleep 97; sleep 97",
        code: 124,
    },
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many calls of each kind are made to fail, from the first one on.
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    positions: u32,
    /// How many runs are on their way at a time.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..))]
    jobs: u8,
    /// Only this system call (repeatable).
    #[arg(long = "call", value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(CALLS))]
    calls: Vec<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let strace = Cmd::new("strace", workspace.root())
        .arg("--version")
        .quiet();
    if !strace.succeeds() {
        bail!("strace is not here, or may not trace; `.ci/setup` installs it");
    }
    Cmd::cargo(workspace.root())
        .args(["build", "--package", "prx-runtime-cli"])
        .run()?;
    let bench = Bench::new(workspace)?;

    // Where nothing fails, all must be as it should: else the rest says nothing.
    for scenario in SCENARIOS {
        let outcome = bench.run(scenario, None, MORE_PATIENCE)?;
        if outcome.verdict != Verdict::Well {
            bail!("`{}` without any fault: {outcome}", scenario.name);
        }
    }
    let series = series(args);
    let next = AtomicUsize::new(0);
    let tally = Mutex::new(Tally::default());
    std::thread::scope(|scope| -> Result<()> {
        let work = || -> Result<()> {
            while let Some(series) = series.get(next.fetch_add(1, Ordering::Relaxed)) {
                let result = series.run(&bench, args.positions)?;
                tally
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .add(&result);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..args.jobs).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            match worker.join() {
                Ok(result) => result?,
                Err(_) => bail!("a worker panicked"),
            }
        }
        Ok(())
    })?;
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{tally}");
    if tally.injected == 0 {
        bail!("no call was made to fail: nothing was tried");
    }
    if tally.violations > 0 {
        bail!("{} violations", tally.violations);
    }
    Ok(())
}

/// One call that fails: the N-th of its kind in each process.
#[derive(Debug)]
struct Fault<'a> {
    call: &'a str,
    error: &'a str,
    position: u32,
}

impl fmt::Display for Fault<'_> {
    /// As strace takes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            call,
            error,
            position,
        } = self;
        write!(f, "inject={call}:error={error}:when={position}")
    }
}

/// One kind of call that fails with one error, at one position after the other.
struct Series {
    scenario: &'static Scenario,
    call: &'static str,
    error: &'static str,
}

fn series(args: &Args) -> Vec<Series> {
    let wanted = |call: &str| args.calls.is_empty() || args.calls.iter().any(|only| only == call);
    let mut series = Vec::new();
    for scenario in SCENARIOS {
        for call in CALLS.iter().filter(|call| wanted(call)) {
            series.extend(ERRORS.iter().map(|error| Series {
                scenario,
                call,
                error,
            }));
        }
    }
    series
}

impl Series {
    fn run(&self, bench: &Bench, positions: u32) -> Result<Tally> {
        let Self {
            scenario,
            call,
            error,
        } = *self;
        let mut tally = Tally::default();
        let mut missed = 0;
        for position in 1..=positions {
            let fault = Fault {
                call,
                error,
                position,
            };
            let mut outcome = bench.run(scenario, Some(&fault), PATIENCE)?;
            if outcome.code.is_none() {
                outcome = bench.run(scenario, Some(&fault), MORE_PATIENCE)?;
            }
            if let Verdict::Violation(what) = &outcome.verdict {
                eprintln!(
                    "violation in `{}`, {fault}: {what}: {outcome}",
                    scenario.name
                );
            }
            tally.count(&outcome.verdict);
            tally.injected += u32::from(outcome.injected);
            // Runs differ by a call or two.
            missed = if outcome.injected { 0 } else { missed + 1 };
            if missed == 2 {
                tally.unreached += positions - position;
                break;
            }
        }
        Ok(tally)
    }
}

/// Where the runs take place.
struct Bench {
    binary: PathBuf,
    dir: PathBuf,
    runs: AtomicUsize,
}

impl Bench {
    fn new(workspace: &Workspace) -> Result<Self> {
        let dir = workspace.target_dir().join("faults");
        fs::create_dir_all(&dir).with_context(|| format!("{} cannot be made", dir.display()))?;
        let config = format!("[runtime]\nbackend = \"native\"\nkill_grace_ms = {GRACE}\n");
        fs::write(dir.join("config.toml"), config)?;
        Ok(Self {
            binary: workspace.target_dir().join("debug").join("prx-runtime"),
            dir,
            runs: AtomicUsize::new(0),
        })
    }

    fn run(
        &self,
        scenario: &Scenario,
        fault: Option<&Fault>,
        patience: Duration,
    ) -> Result<Outcome> {
        let number = self.runs.fetch_add(1, Ordering::Relaxed);
        // Every process of the run carries this, the host too: an execution names the enclosing one.
        let mark = format!("faults-{}-{number}", std::process::id());
        let [trace, stdout, stderr] =
            ["trace", "stdout", "stderr"].map(|stream| self.dir.join(format!("{number}.{stream}")));
        let mut strace = Cmd::new("strace", &self.dir)
            .args(["-f", "-qq", "-o"])
            .arg(&trace)
            .env(EXECUTION_ID_VARIABLE, &mark)
            .env("RUST_LOG", "error")
            .quiet();
        strace = match fault {
            Some(fault) => strace
                .args(["-e", &format!("trace={}", fault.call)])
                .args(["-e", &fault.to_string()]),
            None => strace.args(["-e", "trace=none"]),
        };
        let begin = Instant::now();
        let mut child = strace
            .arg(&self.binary)
            .args(["run", "--config", "config.toml"])
            .args(["--timeout", scenario.timeout, "--", scenario.line])
            .start(File::create(&stdout)?, File::create(&stderr)?)?;
        // Ends with the last process of the run, whosever child that is.
        let code = loop {
            if let Some(status) = child.try_wait()? {
                break status.code();
            }
            if begin.elapsed() > patience {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let survivors = survivors(&mark);
        for pid in &survivors {
            // What is left of a violation shall not disturb the next run.
            Cmd::new("kill", &self.dir)
                .args(["-KILL", pid])
                .quiet()
                .succeeds();
        }
        let mut outcome = Outcome {
            code,
            stdout: String::from_utf8_lossy(&fs::read(&stdout)?).into_owned(),
            stderr: String::from_utf8_lossy(&fs::read(&stderr)?).into_owned(),
            survivors,
            injected: fs::read_to_string(&trace)?.contains("(INJECTED)"),
            verdict: Verdict::Well,
        };
        for file in [trace, stdout, stderr] {
            fs::remove_file(file)?;
        }
        outcome.verdict = outcome.judge(scenario);
        Ok(outcome)
    }
}

/// The pids of processes that carry `mark`.
fn survivors(mark: &str) -> Vec<String> {
    let carries = |pid: &str| {
        let environ = fs::read(Path::new("/proc").join(pid).join("environ")).unwrap_or_default();
        environ
            .windows(mark.len())
            .any(|window| window == mark.as_bytes())
    };
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && carries(name))
        .collect()
}

/// How a run went.
#[derive(Debug)]
struct Outcome {
    /// `None` where it had to be ended.
    code: Option<i32>,
    stdout: String,
    stderr: String,
    survivors: Vec<String>,
    /// Whether any process got as far as the fault.
    injected: bool,
    verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Verdict {
    /// As if nothing had failed.
    Well,
    /// The host failed, and said so.
    Typed,
    /// The command, or the loader of the host, failed, and the host passed that on.
    Elsewhere,
    Violation(String),
}

impl Outcome {
    fn judge(&self, scenario: &Scenario) -> Verdict {
        let violation = |what: &str| Verdict::Violation(what.to_owned());
        match self.code {
            None => violation("no end in time"),
            Some(_) if !self.survivors.is_empty() => {
                Verdict::Violation(format!("survived: {}", self.survivors.join(", ")))
            }
            Some(101) => violation("a panic"),
            Some(134 | 139) => violation("a crash"),
            Some(125) => {
                let mut lines = self.stderr.lines();
                let typed = lines.any(|line| line.starts_with("prx-runtime: "));
                if typed {
                    Verdict::Typed
                } else {
                    violation("a failure without a message")
                }
            }
            Some(code) if code == scenario.code && self.stdout == "hi\n" => Verdict::Well,
            Some(_) if self.stderr.is_empty() => violation("a wrong result that nobody explains"),
            Some(_) => Verdict::Elsewhere,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.code {
            Some(code) => write!(f, "code {code}")?,
            None => f.write_str("no code")?,
        }
        write!(f, ", stdout {:?}, stderr {:?}", self.stdout, self.stderr)
    }
}

/// How many runs ended how.
#[derive(Debug, Default)]
struct Tally {
    well: u32,
    typed: u32,
    elsewhere: u32,
    violations: u32,
    /// Runs in which a call was made to fail.
    injected: u32,
    /// Positions that no process came to.
    unreached: u32,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.well += other.well;
        self.typed += other.typed;
        self.elsewhere += other.elsewhere;
        self.violations += other.violations;
        self.injected += other.injected;
        self.unreached += other.unreached;
    }

    fn count(&mut self, verdict: &Verdict) {
        let slot = match verdict {
            Verdict::Well => &mut self.well,
            Verdict::Typed => &mut self.typed,
            Verdict::Elsewhere => &mut self.elsewhere,
            Verdict::Violation(_) => &mut self.violations,
        };
        *slot += 1;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            well,
            typed,
            elsewhere,
            violations,
            injected,
            unreached,
        } = self;
        let runs = well + typed + elsewhere + violations;
        write!(
            f,
            "{runs} runs, {injected} with a fault: {well} ended well, {typed} ended typed, \
             {elsewhere} failed in the command itself, {violations} violations; {unreached} positions that no process reaches"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(code: Option<i32>, stdout: &str, stderr: &str) -> Verdict {
        let outcome = Outcome {
            code,
            stdout: stdout.into(),
            stderr: stderr.into(),
            survivors: Vec::new(),
            injected: true,
            verdict: Verdict::Well,
        };
        outcome.judge(&SCENARIOS[0])
    }

    #[test]
    fn endings_are_told_apart() {
        assert_eq!(judge(Some(7), "hi\n", ""), Verdict::Well);
        assert_eq!(judge(Some(125), "", "prx-runtime: no\n"), Verdict::Typed);
        let loader = "sh: error while loading shared libraries";
        assert_eq!(judge(Some(127), "", loader), Verdict::Elsewhere);
    }

    #[test]
    fn what_must_not_be_is_a_violation() {
        for (code, stdout, stderr) in [
            (None, "hi\n", ""),
            (Some(101), "hi\n", "thread 'main' panicked"),
            (Some(125), "hi\n", ""),
            (Some(7), "", ""),
            (Some(0), "hi\n", ""),
        ] {
            let verdict = judge(code, stdout, stderr);
            assert!(matches!(verdict, Verdict::Violation(_)), "{code:?}");
        }
    }
}
