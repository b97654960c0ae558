//! The object that `run --json` prints.

use prx_runtime::{Captured, ExecutionOutput, Isolation, Result, Termination};
use serde::Serialize;

use crate::failure;

#[derive(Serialize)]
struct Report<'a> {
    backend: &'a str,
    exit_code: i32,
    termination: &'a Termination,
    stdout: &'a Captured,
    stderr: &'a Captured,
    stdout_total_bytes: u64,
    stderr_total_bytes: u64,
    truncated: bool,
    duration_ms: u64,
    isolation: &'a Isolation,
    leftover_processes: u32,
    refused_env: &'a [String],
}

/// The object, on one line.
pub(crate) fn render(output: &ExecutionOutput) -> Result<String> {
    let report = Report {
        backend: &output.backend,
        exit_code: output.exit_code,
        termination: &output.termination,
        stdout: &output.stdout,
        stderr: &output.stderr,
        stdout_total_bytes: output.stdout.total_bytes(),
        stderr_total_bytes: output.stderr.total_bytes(),
        truncated: output.stdout.is_truncated() || output.stderr.is_truncated(),
        duration_ms: u64::try_from(output.duration.as_millis()).unwrap_or(u64::MAX),
        isolation: &output.isolation,
        leftover_processes: output.leftover_processes,
        refused_env: &output.refused_env,
    };
    let text = serde_json::to_string(&report)
        .map_err(|error| failure::io("cannot write JSON", &error.into()))?;
    Ok(text + "\n")
}
