//! Whether local commands can be run.

use std::process::Stdio;
use std::time::Duration;

use prx_runtime_core::{ExecutionOutput, Probe, Result, Termination};

use crate::command;
use crate::shell::Shell;

/// A probe answers within 2 s. This is what a busy machine has of them.
const PATIENCE: Duration = Duration::from_millis(1700);
/// As much, less what ending a command and its launcher may take.
pub(crate) const PATIENCE_CONFINED: Duration = Duration::from_millis(1200);
/// A sandbox that starts nothing at all in this time hangs. A launcher may take a fifth of a second
/// of a processor, and many may be asked for at the same time: less would take a busy machine for
/// one without a sandbox.
pub(crate) const HANGS: Duration = Duration::from_secs(10);

const BUSY: &str = "the machine is very busy, or the shell waits for something: run it by hand";

/// What an empty line in the sandbox says about the runtime. `None` where nothing came of it in
/// time.
pub(crate) fn of_confined(shell: &Shell, result: Option<Result<ExecutionOutput>>) -> Probe {
    let shown = shell.path().display();
    let Some(result) = result else {
        return Probe::unavailable(format!(
            "the sandbox does not start the shell `{shown}` within {HANGS:?}"
        ))
        .with_hint(BUSY);
    };
    match result {
        Ok(output) if output.success() => {
            Probe::available(format!("shell {shown}; {}", output.isolation))
        }
        Ok(output) if output.termination == Termination::TimedOut => Probe::unavailable(format!(
            "the shell `{shown}` does not answer in the sandbox within {PATIENCE_CONFINED:?}"
        ))
        .with_hint(BUSY),
        Ok(output) => Probe::unavailable(format!(
            "the shell fails on an empty line in the sandbox: {} ({})",
            output.termination,
            output.stderr.to_text().trim()
        )),
        Err(error) => Probe::from_error(&error),
    }
}

/// Runs the shell on an empty line.
pub(crate) async fn probe(shell: &Shell) -> Probe {
    let shown = shell.path().display();
    let mut command = command::new(shell.path());
    command
        .args(shell.args("exit 0"))
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            return Probe::unavailable(format!("the shell `{shown}` cannot be run: {error}"));
        }
    };
    match tokio::time::timeout(PATIENCE, child.wait()).await {
        Ok(Ok(status)) if status.success() => Probe::available(format!("shell {shown}")),
        Ok(Ok(status)) => Probe::unavailable(format!(
            "the shell `{shown}` fails on an empty line: {status}"
        )),
        Ok(Err(error)) => {
            Probe::unavailable(format!("the shell `{shown}` cannot be waited for: {error}"))
        }
        Err(_) => Probe::unavailable(format!(
            "the shell `{shown}` does not answer within {PATIENCE:?}"
        ))
        .with_hint(BUSY),
    }
}
