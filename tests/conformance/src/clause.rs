//! Clauses and trials as data.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use prx_runtime_core::Capabilities;

use crate::{Halt, Stage};

/// A clause of the contract, with the trials that hold it.
#[derive(Debug)]
pub struct Clause {
    /// 1 for C1.
    pub number: u8,
    /// The module of its trials, with which their names start: `c05_output`.
    pub module: &'static str,
    /// What it is about, in a word.
    pub title: &'static str,
    /// What every backend keeps.
    pub rule: &'static str,
    /// What goes wrong where it is not kept.
    pub why: &'static str,
    /// What holds it.
    pub trials: &'static [Trial],
}

impl Clause {
    /// The full name of one of its trials: `c05_output::one_gibibyte_stays_flat`.
    pub fn name_of(&self, trial: &Trial) -> String {
        format!("{}::{}", self.module, trial.name)
    }
}

/// The future of a trial. It stays on the thread that runs it.
pub(crate) type TrialFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Halt>> + 'a>>;

/// One behaviour that is tried.
pub struct Trial {
    /// What is so: `empty_arguments_are_kept`.
    pub name: &'static str,
    /// Why it is tried, in a line.
    pub reason: &'static str,
    /// What a backend must be able to do for the trial to mean anything.
    pub needs: &'static [Need],
    /// Whether it measures the process as a whole, so that no other trial may run beside it.
    pub alone: bool,
    pub(crate) run: for<'a> fn(&'a Stage) -> TrialFuture<'a>,
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// What a trial needs of a backend or of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Need {
    /// [`Capabilities::shell`].
    Shell,
    /// The absence of [`Capabilities::shell`].
    NoShell,
    /// [`Capabilities::child_processes`].
    ChildProcesses,
    /// [`Capabilities::signals`].
    Signals,
    /// [`Capabilities::host_programs`].
    HostPrograms,
    /// [`Capabilities::sessions`].
    Sessions,
    /// [`Capabilities::exact_exit`].
    ExactExit,
    /// [`Capabilities::counts_leftovers`].
    CountedLeftovers,
    /// `/proc` as Linux has it.
    Linux,
}

impl Need {
    /// Whether a backend with `capabilities` meets it, on this system.
    pub(crate) fn is_met(self, capabilities: Capabilities) -> bool {
        match self {
            Self::Shell => capabilities.shell,
            Self::NoShell => !capabilities.shell,
            Self::ChildProcesses => capabilities.child_processes,
            Self::Signals => capabilities.signals,
            Self::HostPrograms => capabilities.host_programs,
            Self::Sessions => capabilities.sessions,
            Self::ExactExit => capabilities.exact_exit,
            Self::CountedLeftovers => capabilities.counts_leftovers,
            Self::Linux => cfg!(target_os = "linux"),
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Shell => "a shell",
            Self::NoShell => "a backend without a shell",
            Self::ChildProcesses => "child processes",
            Self::Signals => "signals",
            Self::HostPrograms => "programs of the host",
            Self::Sessions => "live executions",
            Self::ExactExit => "codes told apart from signals",
            Self::CountedLeftovers => "a count of leftovers",
            Self::Linux => "Linux",
        })
    }
}

/// The table of a clause's trials. `needs` is optional, as is `#[alone]` before the name.
macro_rules! trials {
    (@alone) => { false };
    (@alone alone) => { true };
    ($($(#[$alone:ident])? $name:ident: $reason:literal $(, needs [$($need:ident),+])?;)+) => {
        &[$($crate::clause::Trial {
            name: stringify!($name),
            reason: $reason,
            needs: &[$($($crate::clause::Need::$need),+)?],
            alone: $crate::clause::trials!(@alone $($alone)?),
            run: |stage| Box::pin($name(stage)),
        }),+]
    };
}
pub(crate) use trials;
