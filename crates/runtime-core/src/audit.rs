//! The span and the closing event of an execution.

use std::time::{Duration, Instant};

use tracing::Span;

use crate::{Error, ExecutionOutput, Plan, Termination};

/// How much of a command line an event shows, in bytes.
const SHOWN: usize = 4096;

/// The record of one execution, opened before the plan is given away. Dropped unclosed, it says
/// that the execution was given up: its caller's future or handle was dropped.
pub(crate) struct Audit {
    span: Span,
    command: String,
    backend: String,
    asked: Instant,
    closed: bool,
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
            span: tracing::info_span!(
                "execution", id = %plan.id, backend, tool = plan.tool.as_deref()
            ),
            command,
            backend: backend.to_owned(),
            asked: Instant::now(),
            closed: false,
        }
    }

    /// The span of the execution.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    /// Says how it ended. Called once for every execution that was asked for and checked.
    pub(crate) fn close(mut self, result: Result<&ExecutionOutput, &Error>) {
        self.closed = true;
        let _in_span = self.span.enter();
        match result {
            Ok(output) => tracing::info!(
                target: "prx_runtime::audit",
                command = self.command,
                backend = self.backend,
                exit_code = output.exit_code,
                termination = %output.termination,
                duration_ms = milliseconds(output.duration),
                stdout_bytes = output.stdout.total_bytes(),
                stderr_bytes = output.stderr.total_bytes(),
                "execution ended"
            ),
            Err(error) => tracing::info!(
                target: "prx_runtime::audit",
                command = self.command,
                backend = self.backend,
                error = %error,
                kind = %error.kind(),
                duration_ms = milliseconds(self.asked.elapsed()),
                "execution failed"
            ),
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        if !self.closed {
            let _in_span = self.span.enter();
            tracing::info!(
                target: "prx_runtime::audit",
                command = self.command,
                backend = self.backend,
                termination = %Termination::Cancelled,
                duration_ms = milliseconds(self.asked.elapsed()),
                "execution given up"
            );
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn shorten(mut command: String) -> String {
    if command.len() > SHOWN {
        command.truncate(command.floor_char_boundary(SHOWN));
        command.push('…');
    }
    command
}
