//! What a trial is given, and how it ends early.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use prx_runtime_core::config::Config;
use prx_runtime_core::{
    Captured, Error, Execution, ExecutionOutput, ExecutionRequest, Invocation, Result,
    RuntimeAdapter,
};
use tempfile::TempDir;
use tokio::sync::OnceCell;

use crate::{Driver, Marker, Task};

/// Why a trial ended before its end.
#[derive(Debug)]
pub enum Halt {
    /// The trial means nothing on this backend, and why.
    Gated(String),
    /// The clause is broken, and how.
    Failed(String),
    /// The machine was so slow that the trial says nothing: it is tried again, with markers that
    /// are written later.
    TooSlow,
}

impl Halt {
    pub(crate) fn failed(message: impl fmt::Display) -> Self {
        Self::Failed(message.to_string())
    }

    pub(crate) fn gated(reason: impl fmt::Display) -> Self {
        Self::Gated(reason.to_string())
    }
}

impl From<Error> for Halt {
    fn from(error: Error) -> Self {
        Self::Failed(format!(
            "unexpected error of kind `{}`: {error}",
            error.kind()
        ))
    }
}

impl From<std::io::Error> for Halt {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(format!("unexpected error of the system: {error}"))
    }
}

/// Ends the trial as failed unless the condition holds.
macro_rules! check {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err($crate::Halt::Failed(format!(
                "{} ({}:{})", format_args!($($message)+), file!(), line!()
            )));
        }
    };
}

/// Ends the trial as failed unless both are equal.
macro_rules! check_eq {
    ($left:expr, $right:expr) => {
        $crate::stage::check_eq!($left, $right, "")
    };
    ($left:expr, $right:expr, $($message:tt)+) => {
        match (&$left, &$right) {
            (left, right) => if *left != *right {
                return Err($crate::Halt::Failed(format!(
                    "`{}` is {left:?} and not {right:?} {} ({}:{})",
                    stringify!($left), format_args!($($message)+), file!(), line!()
                )));
            }
        }
    };
}
pub(crate) use {check, check_eq};

/// How much a trial spends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// All that the contract says.
    Full,
    /// Less of what only costs time: fewer bytes, shorter waits for what does not come. For the
    /// proof of the suite, which runs every trial many times over.
    Brief,
}

/// The timeout of requests whose timeout is not what is tried.
const AMPLE: Duration = Duration::from_secs(200);

/// What a trial is given: a backend, and a working directory of its own.
pub struct Stage {
    driver: Arc<dyn Driver>,
    workspace: TempDir,
    effort: Effort,
    marker_delay: Duration,
    adapter: OnceCell<Arc<dyn RuntimeAdapter>>,
}

impl Stage {
    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        effort: Effort,
        marker_delay: Duration,
    ) -> std::io::Result<Self> {
        let workspace = tempfile::Builder::new().prefix("trial-").tempdir()?;
        Ok(Self {
            driver,
            workspace,
            effort,
            marker_delay,
            adapter: OnceCell::new(),
        })
    }

    pub(crate) fn driver(&self) -> &Arc<dyn Driver> {
        &self.driver
    }

    /// The working directory that requests of [`spell`](Self::spell) have.
    pub(crate) fn directory(&self) -> &Path {
        self.workspace.path()
    }

    /// How long something may take that has to come.
    pub(crate) fn patience(&self) -> Duration {
        match self.effort {
            Effort::Full => Duration::from_secs(60),
            Effort::Brief => Duration::from_secs(20),
        }
    }

    /// `full`, or `brief` where time is dear.
    pub(crate) fn amount<T>(&self, full: T, brief: T) -> T {
        match self.effort {
            Effort::Full => full,
            Effort::Brief => brief,
        }
    }

    /// The adapter by the driver's configuration, one for the whole trial.
    pub(crate) async fn adapter(&self) -> Result<Arc<dyn RuntimeAdapter>, Halt> {
        let adapter = self.adapter.get_or_try_init(|| self.adapter_with(|_| {}));
        adapter.await.cloned()
    }

    /// A new adapter by the driver's configuration, changed.
    pub(crate) async fn adapter_with(
        &self,
        change: impl FnOnce(&mut Config),
    ) -> Result<Arc<dyn RuntimeAdapter>, Halt> {
        Ok(self.try_adapter_with(change).await?)
    }

    /// As [`adapter_with`](Self::adapter_with), where the refusal is what is tried.
    pub(crate) async fn try_adapter_with(
        &self,
        change: impl FnOnce(&mut Config),
    ) -> Result<Arc<dyn RuntimeAdapter>> {
        let mut config = self.driver.config();
        change(&mut config);
        self.driver.make(&config).await
    }

    /// The task as a request in the trial's working directory, with all the time there is.
    pub(crate) fn spell(&self, task: Task) -> Result<ExecutionRequest, Halt> {
        Ok(self
            .spell_bare(task)?
            .working_dir(self.directory())
            .timeout(AMPLE))
    }

    /// The task as a request that says nothing else.
    pub(crate) fn spell_bare(&self, task: Task) -> Result<ExecutionRequest, Halt> {
        let spelt = self.driver.spell(&task);
        spelt.ok_or_else(|| {
            let task = format!("{task:?}");
            let name = task.split(['(', ' ']).next().unwrap_or_default();
            Halt::Gated(format!(
                "{} has no spelling for `{name}`",
                self.driver.name()
            ))
        })
    }

    /// Runs a task.
    pub(crate) async fn run(&self, task: Task) -> Result<ExecutionOutput, Halt> {
        let request = self.spell(task)?;
        Ok(self.adapter().await?.run(request).await?)
    }

    /// Starts a task.
    pub(crate) async fn spawn(&self, task: Task) -> Result<Execution, Halt> {
        let request = self.spell(task)?;
        Ok(self.adapter().await?.spawn(request).await?)
    }

    /// A marker that is written three seconds after its guest started, were it to live on; later
    /// than that where three seconds were too short to tell.
    pub(crate) fn marker(&self) -> Watch {
        let marker = crate::host::marker(self.marker_delay);
        Watch {
            file: self.directory().join(&marker.file),
            marker,
            patience: self.patience(),
        }
    }

    /// What the published `execute` takes for `task`.
    pub(crate) fn call(&self, task: Task) -> Result<Call, Halt> {
        match self.spell_bare(task)?.invocation() {
            Invocation::Program { program, args } if !args.is_empty() => Ok(Call {
                command: program.clone(),
                args: args.clone(),
            }),
            Invocation::Program { program, .. } => Ok(Call {
                command: program.clone(),
                args: Vec::new(),
            }),
            Invocation::Shell { line } => Ok(Call {
                command: line.clone(),
                args: Vec::new(),
            }),
        }
    }
}

/// A call of the published `execute`.
pub(crate) struct Call {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
}

impl Call {
    pub(crate) async fn execute(
        &self,
        adapter: &dyn RuntimeAdapter,
        directory: Option<&Path>,
        timeout: Duration,
    ) -> Result<ExecutionOutput> {
        adapter
            .execute(
                &self.command,
                &self.args,
                &HashMap::new(),
                directory,
                timeout,
            )
            .await
    }
}

/// A [`Marker`] as the host sees it.
pub(crate) struct Watch {
    pub(crate) marker: Marker,
    file: PathBuf,
    patience: Duration,
}

impl Watch {
    /// The same marker, for a guest in another directory.
    pub(crate) fn move_to(&mut self, directory: &Path) {
        self.file = directory.join(&self.marker.file);
    }

    /// Whether the guest has started.
    pub(crate) fn has_started(&self) -> bool {
        let mut name = self.file.clone().into_os_string();
        name.push(Marker::STARTED);
        PathBuf::from(name).exists()
    }

    /// Whether the marker is there.
    pub(crate) fn has_appeared(&self) -> bool {
        self.file.exists()
    }

    /// Waits until the guest has started.
    pub(crate) async fn started(&self) -> Result<(), Halt> {
        eventually(self.patience, "the guest started", || self.has_started()).await
    }

    /// Waits until the marker would be there if its guest, which has started, lived on.
    pub(crate) async fn never_appears(&self) -> Result<(), Halt> {
        check!(
            self.has_started(),
            "the guest never started, so its end says nothing"
        );
        let ended = SystemTime::now();
        // The guest is started before now, so its delay is over before this one is, by half a
        // second; only then does absence mean anything.
        tokio::time::sleep(self.marker.delay + Duration::from_millis(500)).await;
        match std::fs::metadata(&self.file) {
            // Written before its guest was said to be ended.
            Ok(marker) if marker.modified()? <= ended => Err(Halt::TooSlow),
            Ok(_) => Err(Halt::failed("the guest lived on: it wrote its marker")),
            Err(_) => Ok(()),
        }
    }
}

/// Waits until a fact is there.
pub(crate) async fn eventually(
    patience: Duration,
    what: &str,
    mut fact: impl FnMut() -> bool,
) -> Result<(), Halt> {
    let start = Instant::now();
    while !fact() {
        check!(
            start.elapsed() < patience,
            "waited {patience:?} in vain: {what}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

/// The answer of a future that has to come.
pub(crate) async fn within<T>(
    patience: Duration,
    what: &str,
    future: impl Future<Output = T>,
) -> Result<T, Halt> {
    tokio::time::timeout(patience, future)
        .await
        .map_err(|_| Halt::failed(format_args!("waited {patience:?} in vain: {what}")))
}

/// The stream as text, exactly.
pub(crate) fn text(stream: &Captured) -> Result<&str, Halt> {
    std::str::from_utf8(stream.as_bytes())
        .map_err(|_| Halt::failed(format_args!("not UTF-8: {stream:?}")))
}
