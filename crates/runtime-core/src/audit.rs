//! The span and the closing event of an execution.

use std::time::Duration;

use tracing::Span;

use crate::{Error, ExecutionOutput, Plan};

/// How much of a command line an event shows, in bytes.
const SHOWN: usize = 4096;

/// The span of one execution.
pub(crate) fn span(backend: &str, plan: &Plan) -> Span {
    tracing::info_span!("execution", id = %plan.id, backend, tool = plan.tool.as_deref())
}

/// What the closing event says of the command, prepared before the plan is given away.
pub(crate) struct Audit {
    command: String,
    backend: String,
}

impl Audit {
    pub(crate) fn of(backend: &str, plan: &Plan) -> Self {
        // Rendering a command costs more than all else here: only where somebody listens.
        let listened = tracing::enabled!(target: "prx_runtime::audit", tracing::Level::INFO);
        let command = if listened {
            shorten(plan.invocation.to_string())
        } else {
            String::new()
        };
        Self {
            command,
            backend: backend.to_owned(),
        }
    }

    /// Says how it ended. Called once for every execution that was asked for and checked.
    pub(crate) fn close(self, result: Result<&ExecutionOutput, &Error>, elapsed: Duration) {
        let Self { command, backend } = self;
        match result {
            Ok(output) => tracing::info!(
                target: "prx_runtime::audit",
                command,
                backend,
                exit_code = output.exit_code,
                termination = %output.termination,
                duration_ms = u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
                stdout_bytes = output.stdout.total_bytes(),
                stderr_bytes = output.stderr.total_bytes(),
                "execution ended"
            ),
            Err(error) => tracing::info!(
                target: "prx_runtime::audit",
                command,
                backend,
                error = %error,
                kind = %error.kind(),
                duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
                "execution failed"
            ),
        }
    }
}

fn shorten(mut command: String) -> String {
    if command.len() > SHOWN {
        command.truncate(command.floor_char_boundary(SHOWN));
        command.push('…');
    }
    command
}
