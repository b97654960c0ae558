//! C11: what is said to hold around a command.

use std::net::TcpListener;
use std::path::Path;

use prx_runtime_core::config::{Config, MinimumIsolation};
use prx_runtime_core::{ErrorKind, ExecutionOutput, Exposure, IsolationLevel};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::host::SECRET;
use crate::stage::{Halt, Stage, check, check_eq};

pub(super) const CLAUSE: Clause = Clause {
    number: 11,
    module: "c11_isolation",
    title: "Isolation",
    rule: "What was configured is enforced or the call is refused. Nothing falls back to less \
           isolation silently. The output says what was really in force, and what of the host was \
           open to the command.",
    why: "A sandbox that is configured and not applied is worse than none, because somebody relies on \
          it. So these trials reach for the host, and compare what was reached with what is said.",
    trials: trials! {
        an_output_says_what_held: "Something was applied or something was open: silence is no report.";
        the_same_is_said_of_every_call: "One configuration, one isolation.";
        a_live_execution_says_the_same: "However a command is started, the same holds around it.", needs [Sessions];
        nothing_configured_is_left_out: "What is not enforced is only ever so by the operator's leave.";
        a_host_file_that_was_read_is_said_to_be_open: "Who can read the host's files is not said to be shut in.";
        a_host_environment_that_was_read_is_said_to_be_open: "The host's secrets can be read through /proc, or it is not so.", needs [Linux];
        a_host_process_that_was_seen_is_said_to_be_open: "Who can see the host's processes is not said to be alone.", needs [Linux];
        a_host_port_that_was_reached_is_said_to_be_open: "Who can reach the host's network is not said to be cut off.";
        a_level_is_what_it_says: "The level `container` means that no file of the host was read.";
        too_weak_an_isolation_is_refused: "A minimum that the backend does not reach is an error, not a wish.";
    },
};

async fn an_output_says_what_held(stage: &Stage) -> Result<(), Halt> {
    let isolation = stage.run(Task::Exit(0)).await?.isolation;
    let said = !isolation.applied.is_empty() || !isolation.open.is_empty();
    check!(said, "nothing is said: {isolation}");
    let unconfined = isolation.level == IsolationLevel::None;
    check!(
        !unconfined || !isolation.open.is_empty(),
        "unconfined and nothing open: {isolation}"
    );
    Ok(())
}

async fn the_same_is_said_of_every_call(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let one = adapter.run(stage.spell(Task::Exit(0))?).await?;
    let two = adapter.run(stage.spell(Task::Exit(1))?).await?;
    check_eq!(one.isolation, two.isolation);
    Ok(())
}

async fn a_live_execution_says_the_same(stage: &Stage) -> Result<(), Halt> {
    let live = stage.spawn(Task::Exit(0)).await?.wait().await?;
    let run = stage.run(Task::Exit(0)).await?;
    check_eq!(live.isolation, run.isolation);
    Ok(())
}

async fn nothing_configured_is_left_out(stage: &Stage) -> Result<(), Halt> {
    let isolation = stage.run(Task::Exit(0)).await?.isolation;
    check!(isolation.not_enforced.is_empty(), "{isolation}");
    Ok(())
}

fn is_said(output: &ExecutionOutput, open: Exposure) -> Result<(), Halt> {
    let isolation = &output.isolation;
    check!(
        isolation.open.contains(&open),
        "{} was reached and is not said to be",
        open.as_str()
    );
    Ok(())
}

/// Tries to read a file of the host; the output if that worked.
async fn reads(stage: &Stage, path: &Path, text: &str) -> Result<Option<ExecutionOutput>, Halt> {
    let request = stage
        .spell(Task::ReadFile(path.to_owned()))?
        .max_output_bytes(1 << 20);
    let output = stage.adapter().await?.run(request).await?;
    Ok(output.stdout.to_text().contains(text).then_some(output))
}

/// A file of the host outside the working directory, and what a command got of it.
async fn reads_a_host_file(stage: &Stage) -> Result<Option<ExecutionOutput>, Halt> {
    let mut file = tempfile::NamedTempFile::new()?;
    std::io::Write::write_all(&mut file, SECRET.as_bytes())?;
    reads(stage, file.path(), SECRET).await
}

async fn a_host_file_that_was_read_is_said_to_be_open(stage: &Stage) -> Result<(), Halt> {
    match reads_a_host_file(stage).await? {
        Some(output) => is_said(&output, Exposure::FileSystem),
        None => Ok(()),
    }
}

async fn a_host_environment_that_was_read_is_said_to_be_open(stage: &Stage) -> Result<(), Halt> {
    let path = format!("/proc/{}/environ", std::process::id());
    match reads(stage, Path::new(&path), SECRET).await? {
        Some(output) => is_said(&output, Exposure::HostEnvironment),
        None => Ok(()),
    }
}

async fn a_host_process_that_was_seen_is_said_to_be_open(stage: &Stage) -> Result<(), Halt> {
    let own = std::fs::read_to_string("/proc/self/cmdline")?;
    let path = format!("/proc/{}/cmdline", std::process::id());
    match reads(stage, Path::new(&path), &own).await? {
        Some(output) => is_said(&output, Exposure::HostProcesses),
        None => Ok(()),
    }
}

async fn a_host_port_that_was_reached_is_said_to_be_open(stage: &Stage) -> Result<(), Halt> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let output = stage
        .run(Task::Connect(listener.local_addr()?.port()))
        .await?;
    listener.set_nonblocking(true)?;
    // What counts is who came, not what the command said.
    if listener.accept().is_ok() {
        is_said(&output, Exposure::Network)?;
    }
    Ok(())
}

async fn a_level_is_what_it_says(stage: &Stage) -> Result<(), Halt> {
    let read = reads_a_host_file(stage).await?;
    let isolation = stage.run(Task::Exit(0)).await?.isolation;
    let contained = isolation.level >= IsolationLevel::Container;
    check!(
        !contained || read.is_none(),
        "a file of the host was read: {isolation}"
    );
    let confined = isolation.level >= IsolationLevel::Sandbox;
    check!(
        !confined || !isolation.applied.is_empty(),
        "confined by nothing: {isolation}"
    );
    Ok(())
}

async fn too_weak_an_isolation_is_refused(stage: &Stage) -> Result<(), Halt> {
    let level = stage.run(Task::Exit(0)).await?.isolation.level;
    let minimum = match level {
        IsolationLevel::None => MinimumIsolation::Sandbox,
        IsolationLevel::Sandbox => MinimumIsolation::Container,
        _ => return Err(Halt::gated("no minimum is stronger than this backend")),
    };
    let demand = |config: &mut Config| config.runtime.minimum_isolation = minimum;
    let refusal = match stage.try_adapter_with(demand).await {
        Ok(adapter) => adapter.run(stage.spell(Task::Exit(0))?).await.map(drop),
        Err(error) => Err(error),
    };
    let Err(error) = refusal else {
        return Err(Halt::failed("a command ran below the minimum of isolation"));
    };
    check_eq!(error.kind(), ErrorKind::Refused, "{error}");
    Ok(())
}
