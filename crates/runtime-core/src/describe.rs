//! What would be done for a request, without doing it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::backend::Details;
use crate::environment::Source;
use crate::{Isolation, Plan, is_loader_variable};

/// What would be done for a request. Names of variables are here, their values are not.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Description {
    /// The backend that would do it.
    pub backend: String,
    /// What would be started, word by word, as far down as the backend starts it itself.
    pub argv: Vec<String>,
    /// The directory, as the caller names it.
    pub working_dir: String,
    /// The variables that the command would get, sorted by name.
    pub environment: Vec<DescribedVariable>,
    /// The variables that the call asks for and would not get, sorted.
    pub refused_env: Vec<String>,
    /// When the command would be asked to end, in milliseconds from its start.
    pub timeout_ms: Option<u64>,
    /// How long it then has before it is killed, in milliseconds.
    pub kill_grace_ms: u64,
    /// How much of each output stream would be kept, in bytes.
    pub max_output_bytes: usize,
    /// The isolation that would hold.
    pub isolation: Isolation,
    /// What else the backend would do, by name: the container's body, the preopened directories.
    pub details: BTreeMap<&'static str, String>,
}

/// A variable that a command would get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DescribedVariable {
    /// Its name.
    pub name: String,
    /// Where its value comes from.
    pub source: Source,
    /// Whether it makes a loader or an interpreter run code, which only the operator may ask for.
    pub loader: bool,
}

/// The bounds of an execution, for its description.
pub(crate) struct Bounds {
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) kill_grace_ms: u64,
    pub(crate) max_output_bytes: usize,
}

impl Description {
    pub(crate) fn new(backend: &str, plan: &Plan, details: Details, bounds: Bounds) -> Self {
        let environment = plan
            .environment
            .sources()
            .map(|(name, source)| DescribedVariable {
                name: name.to_owned(),
                source,
                loader: is_loader_variable(name),
            })
            .collect();
        Self {
            backend: backend.to_owned(),
            argv: details.argv,
            working_dir: plan.working_dir.display().to_string(),
            environment,
            refused_env: plan.environment.refused().to_vec(),
            timeout_ms: bounds.timeout_ms,
            kill_grace_ms: bounds.kill_grace_ms,
            max_output_bytes: bounds.max_output_bytes,
            isolation: Arc::unwrap_or_clone(details.isolation),
            details: details.more,
        }
    }
}
