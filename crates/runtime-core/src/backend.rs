//! What a backend implements: start one command, and say how it can be waited for and ended.
//!
//! [`Supervisor`](crate::Supervisor) turns that into [`RuntimeAdapter`](crate::RuntimeAdapter).
//! A backend has no deadline, no grace and no capture of its own: it pushes output into the
//! [`Stdio`] it was given, and does as it is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Capabilities, EnvironmentRules, Isolation, Plan, Probe, Result, Stdio};

/// How the main process of an execution ended, as the backend knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// It ended by itself with this code.
    Code(i32),
    /// A signal ended it; its number.
    Signal(i32),
    /// A memory limit ended it.
    OutOfMemory,
    /// A trap ended it; the reason.
    Trapped(String),
    /// The confiner said that it denied the command.
    SandboxDenied {
        /// The exit code that the confiner reported.
        code: i32,
        /// What the confiner said.
        reason: String,
    },
}

/// One way to run commands.
#[async_trait]
pub trait Backend: Send + Sync {
    /// The name, as in `runtime.backend`.
    fn name(&self) -> &str;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// The rules that its environments are built by.
    fn environment(&self) -> &EnvironmentRules;

    /// A limit on the time of any one execution, beneath whatever the call asks.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// What it would do for `plan`, without doing any of it.
    ///
    /// # Errors
    ///
    /// What can be known to fail without trying: a program that is not there, a directory that may
    /// not be mounted.
    fn describe(&self, plan: &Plan) -> Result<Details>;

    /// Does real work to find out whether the backend can be used. Answers within 2 s.
    async fn probe(&self) -> Probe;

    /// Starts the command and returns as soon as it runs. What must come first and takes time
    /// (pulling an image, compiling a module) happens here, off the command's clock, and within a
    /// budget that the backend sets.
    ///
    /// Dropping the future leaves nothing behind.
    ///
    /// # Errors
    ///
    /// The command did not run, and nothing of it is left.
    async fn start(&self, plan: Plan, stdio: Stdio) -> Result<Box<dyn Running>>;
}

/// What a backend would do for a plan.
#[derive(Debug, Clone)]
pub struct Details {
    /// What it would start, word by word.
    pub argv: Vec<String>,
    /// The isolation that would hold.
    pub isolation: Arc<Isolation>,
    /// What else it would do, by name.
    pub more: BTreeMap<&'static str, String>,
}

/// A command that runs. Dropping it ends everything that the command started and releases
/// everything that was made for it, at once and without a grace.
#[async_trait]
pub trait Running: Send {
    /// Moves stdin and output until the main process has ended, and says how it ended. Cancel-safe;
    /// once it has answered it answers the same again at once.
    ///
    /// # Errors
    ///
    /// The engine beneath broke off and the end of the command cannot be known.
    async fn exited(&mut self) -> Result<Exit>;

    /// Moves output on until both streams are at their end. Called after [`exited`](Self::exited)
    /// has answered, and bounded by the caller: a descendant may hold a stream open for ever.
    /// Cancel-safe.
    async fn drain(&mut self);

    /// Asks everything that the command started to end (TERM, then CONT for what is stopped).
    async fn terminate(&mut self);

    /// Resolves when nothing that the command started is left. Called only after
    /// [`terminate`](Self::terminate), when the main process has ended, to let the rest use what
    /// remains of the grace. A backend whose main process takes everything along need not
    /// implement it. Cancel-safe.
    async fn settled(&mut self) {}

    /// Ends everything that the command started (KILL).
    async fn kill(&mut self);

    /// After the main process has ended: ends what it left behind and releases what was made for
    /// it. Returns how many processes were still there.
    async fn cleanup(&mut self) -> u32;

    /// How many processes [`cleanup`](Self::cleanup) has found, where it was given up before its
    /// end: those are gone with the drop, and are told all the same.
    fn leftovers_found(&self) -> u32 {
        0
    }

    /// What is in force around the command.
    fn isolation(&self) -> Arc<Isolation>;

    /// Something that ends everything at once, from any thread and without a runtime, for a handle
    /// that is dropped while the supervisor's task sleeps.
    fn kill_switch(&self) -> Option<KillSwitch> {
        None
    }

    /// What was kept on purpose and under which name, known after
    /// [`cleanup`](Self::cleanup).
    fn kept(&self) -> Option<String> {
        None
    }
}

/// Ends an execution at once when called. See [`Running::kill_switch`].
#[derive(Clone)]
pub struct KillSwitch(Arc<dyn Fn() + Send + Sync>);

impl KillSwitch {
    /// A switch that calls `kill`, which must not block and may be called more than once.
    pub fn new(kill: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(kill))
    }

    /// Ends the execution.
    pub fn pull(&self) {
        (self.0)();
    }
}

impl std::fmt::Debug for KillSwitch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KillSwitch")
    }
}
