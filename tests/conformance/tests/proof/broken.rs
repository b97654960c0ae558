//! Adapters with one defect each.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use prx_conformance::{Driver, Task};
use prx_runtime_core::config::{Config, MinimumIsolation};
use prx_runtime_core::{
    Capabilities, Captured, EXECUTION_ID_VARIABLE, ErrorKind, Execution, ExecutionOutput,
    ExecutionRequest, Invocation, Isolation, IsolationLevel, Probe, Result, RuntimeAdapter, Stdin,
    Termination, async_trait,
};
use tokio::sync::{Mutex, MutexGuard};

/// What is wrong with an adapter: one thing, such as is found in the wild.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Defect {
    /// C1: arguments are trimmed.
    TrimsArguments,
    /// C1: a program's name with blanks in it is taken for a line.
    ReadsProgramsAsLines,
    /// C2: what was refused is not told.
    HidesRefusals,
    /// C2: a variable passes that nobody listed.
    WidensTheWhitelist,
    /// C3: a directory that cannot be used means the caller's own.
    RunsElsewhere,
    /// C4: bytes for stdin are lost.
    LosesInput,
    /// C4: the last byte for stdin is lost.
    CutsInput,
    /// C5: the account of what was dropped is lost.
    MiscountsOutput,
    /// C6: death by a signal is a success.
    HidesSignals,
    /// C6: what cannot be executed is an exit code.
    InventsCodes,
    /// C7: no time at all is taken for a minute.
    AcceptsZero,
    /// C7: the deadline looks like any signal.
    HidesDeadlines,
    /// C8: what left the process group cannot be found.
    LosesStrays,
    /// C9: a call that was dropped goes on by itself.
    GoesOnAlone,
    /// C10: nothing is ever said to be left.
    HidesLeftovers,
    /// C11: a container is claimed where there is none.
    ClaimsIsolation,
    /// C11: a minimum of isolation is taken for a wish.
    IgnoresMinimum,
    /// C12: commands pass one after the other.
    Serialises,
    /// C13: one of the two answers is wrong.
    ContradictsItself,
    /// C13: nothing is said with the answer.
    SaysNothing,
    /// C14: each call keeps a descriptor.
    KeepsDescriptors,
    /// C14: each call leaves a file.
    LeavesFiles,
}

impl Defect {
    /// Every defect, with the number of the clause that it breaks.
    pub(crate) const ALL: [(u8, Self); 22] = [
        (1, Self::TrimsArguments),
        (1, Self::ReadsProgramsAsLines),
        (2, Self::HidesRefusals),
        (2, Self::WidensTheWhitelist),
        (3, Self::RunsElsewhere),
        (4, Self::LosesInput),
        (4, Self::CutsInput),
        (5, Self::MiscountsOutput),
        (6, Self::HidesSignals),
        (6, Self::InventsCodes),
        (7, Self::AcceptsZero),
        (7, Self::HidesDeadlines),
        (8, Self::LosesStrays),
        (9, Self::GoesOnAlone),
        (10, Self::HidesLeftovers),
        (11, Self::ClaimsIsolation),
        (11, Self::IgnoresMinimum),
        (12, Self::Serialises),
        (13, Self::ContradictsItself),
        (13, Self::SaysNothing),
        (14, Self::KeepsDescriptors),
        (14, Self::LeavesFiles),
    ];
}

/// A driver whose adapters have a defect, or none: then they only pass on.
pub(crate) struct BrokenDriver {
    pub(crate) driver: Arc<dyn Driver>,
    pub(crate) defect: Option<Defect>,
}

#[async_trait]
impl Driver for BrokenDriver {
    fn name(&self) -> &'static str {
        self.driver.name()
    }

    fn config(&self) -> Config {
        self.driver.config()
    }

    async fn make(&self, config: &Config) -> Result<Arc<dyn RuntimeAdapter>> {
        let mut config = config.clone();
        match self.defect {
            Some(Defect::WidensTheWhitelist) => {
                config
                    .runtime
                    .env_whitelist
                    .push("PRX_SUITE_UNLISTED".to_owned());
            }
            Some(Defect::IgnoresMinimum) => {
                config.runtime.minimum_isolation = MinimumIsolation::None;
            }
            _ => {}
        }
        Ok(Arc::new(Broken {
            inner: self.driver.make(&config).await?,
            defect: self.defect,
            one_at_a_time: Mutex::new(()),
        }))
    }

    fn spell(&self, task: &Task) -> Option<ExecutionRequest> {
        self.driver.spell(task)
    }

    fn set_literal(&self, config: &mut Config, name: &str, value: &str) -> bool {
        self.driver.set_literal(config, name, value)
    }

    fn unusable(&self) -> Option<Config> {
        self.driver.unusable()
    }
}

/// Passes everything on, save for its defect.
struct Broken {
    inner: Arc<dyn RuntimeAdapter>,
    defect: Option<Defect>,
    one_at_a_time: Mutex<()>,
}

#[async_trait]
impl RuntimeAdapter for Broken {
    async fn execute(
        &self,
        command: &str,
        args: &[String],
        env: &HashMap<String, String>,
        working_dir: Option<&Path>,
        timeout: Duration,
    ) -> Result<ExecutionOutput> {
        self.run(ExecutionRequest::from_call(
            command,
            args,
            env,
            working_dir,
            timeout,
        ))
        .await
    }

    async fn is_available(&self) -> bool {
        self.inner.is_available().await && !self.has(Defect::ContradictsItself)
    }

    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn run(&self, request: ExecutionRequest) -> Result<ExecutionOutput> {
        let _turn = self.turn().await;
        let request = self.spoil(request);
        if self.has(Defect::GoesOnAlone) {
            let inner = Arc::clone(&self.inner);
            let alone = tokio::spawn(async move { inner.run(request).await });
            return alone.await.expect("it does not panic");
        }
        match self.inner.run(request).await {
            Err(error)
                if error.kind() == ErrorKind::NotExecutable && self.has(Defect::InventsCodes) =>
            {
                Ok(ExecutionOutput::new(
                    "",
                    error.to_string(),
                    126,
                    Duration::ZERO,
                ))
            }
            result => result.map(|output| self.spoil_output(output)),
        }
    }

    async fn spawn(&self, request: ExecutionRequest) -> Result<Execution> {
        self.inner.spawn(self.spoil(request)).await
    }

    async fn probe(&self) -> Probe {
        let mut probe = self.inner.probe().await;
        if self.has(Defect::SaysNothing) {
            probe.detail.clear();
        }
        probe
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
}

impl Broken {
    fn has(&self, defect: Defect) -> bool {
        self.defect == Some(defect)
    }

    async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        if self.has(Defect::Serialises) {
            Some(self.one_at_a_time.lock().await)
        } else {
            None
        }
    }

    /// What becomes of a request on its way.
    fn spoil(&self, request: ExecutionRequest) -> ExecutionRequest {
        match self.defect {
            Some(Defect::TrimsArguments) => match request.invocation().clone() {
                Invocation::Program { program, args } => {
                    let args = args.iter().map(|arg| arg.trim().to_owned()).collect();
                    request.with_invocation(Invocation::Program { program, args })
                }
                Invocation::Shell { .. } => request,
            },
            Some(Defect::ReadsProgramsAsLines) => match request.invocation().clone() {
                Invocation::Program {
                    program: line,
                    args,
                } if args.is_empty() && line.contains(' ') => {
                    request.with_invocation(Invocation::Shell { line })
                }
                _ => request,
            },
            Some(Defect::RunsElsewhere)
                if request
                    .requested_working_dir()
                    .is_some_and(|directory| !directory.is_dir()) =>
            {
                request.working_dir(".")
            }
            Some(Defect::LosesInput | Defect::CutsInput) => match request.requested_stdin() {
                Stdin::Bytes(bytes) => {
                    let kept = match self.defect {
                        Some(Defect::CutsInput) => bytes.len().saturating_sub(1),
                        _ => 0,
                    };
                    let bytes = bytes[..kept].to_vec();
                    request.stdin_bytes(bytes)
                }
                _ => request,
            },
            Some(Defect::AcceptsZero) if request.requested_timeout() == Some(Duration::ZERO) => {
                request.timeout(Duration::from_secs(60))
            }
            Some(Defect::LosesStrays) => lose_strays(request),
            Some(Defect::KeepsDescriptors) => {
                std::mem::forget(File::open("/dev/null"));
                request
            }
            Some(Defect::LeavesFiles) => {
                let file = tempfile::Builder::new().prefix("left-").tempfile();
                file.and_then(|file| Ok(file.keep()?))
                    .expect("a file can be made");
                request
            }
            _ => request,
        }
    }

    /// What becomes of an output on its way back.
    fn spoil_output(&self, mut output: ExecutionOutput) -> ExecutionOutput {
        match (self.defect, &output.termination) {
            (Some(Defect::HidesRefusals), _) => output.refused_env.clear(),
            (Some(Defect::MiscountsOutput), _) => {
                output.stdout = Captured::from(output.stdout.into_bytes());
                output.stderr = Captured::from(output.stderr.into_bytes());
            }
            (Some(Defect::HidesSignals), Termination::Signaled(_)) => {
                (output.termination, output.exit_code) = (Termination::Exited, 0);
            }
            (Some(Defect::HidesDeadlines), Termination::TimedOut) => {
                (output.termination, output.exit_code) = (Termination::Signaled(15), 143);
            }
            (Some(Defect::HidesLeftovers), _) => output.leftover_processes = 0,
            (Some(Defect::ClaimsIsolation), _) => {
                let claim = Isolation::new(IsolationLevel::Container).applied("container");
                output.isolation = Arc::new(claim);
            }
            _ => {}
        }
        output
    }
}

/// Takes the mark by which strays are found off what a shell starts.
fn lose_strays(request: ExecutionRequest) -> ExecutionRequest {
    let unmarked = |script: &str| format!("unset {EXECUTION_ID_VARIABLE}; {script}");
    match request.invocation().clone() {
        Invocation::Shell { line } if !line.trim().is_empty() => {
            request.with_invocation(Invocation::Shell {
                line: unmarked(&line),
            })
        }
        Invocation::Program { program, mut args } if program == "sh" && args.len() > 1 => {
            args[1] = unmarked(&args[1]);
            request.with_invocation(Invocation::Program { program, args })
        }
        _ => request,
    }
}
