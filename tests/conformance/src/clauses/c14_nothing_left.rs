//! C14: what is there when all is over.

use std::time::{Duration, Instant};

use prx_runtime_core::{ExecutionRequest, Stdin};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::host::{VictimTask, names_in, start_victim};
use crate::remains::{Belongings, processes_left_now};
use crate::stage::{Halt, Stage, check, check_eq, eventually};

pub(super) const CLAUSE: Clause = Clause {
    number: 14,
    module: "c14_nothing_left",
    title: "Nothing left",
    rule: "No process, container, thread, file descriptor or temporary file remains after a call, \
           after an error, or after the host is killed with SIGKILL (gone, or ended by the sweep of \
           the next start, which touches only what belongs to an owner that is provably dead).",
    why: "A host runs for months and calls a million times: whatever one call leaves is a leak that \
          ends it. And what outlives a killed host is found by whoever pays for the machine. Besides \
          these trials the suite looks at its own process when all of them have run.",
    trials: trials! {
        #[alone] nothing_is_left_of_calls: "Thirty commands leave no descriptor, thread, process or file.";
        #[alone] nothing_is_left_of_errors: "Nor do thirty that could not be run.";
        #[alone] nothing_is_left_of_deadlines: "Nor do those that were ended.";
        #[alone] nothing_is_left_of_truncated_output: "Nor do those that wrote more than is kept.";
        #[alone] nothing_is_left_of_input_that_was_not_read: "Nor do those that did not take what they were given.";
        #[alone] nothing_is_left_of_leftovers: "Nor do those that left processes.", needs [ChildProcesses];
        #[alone] nothing_is_left_of_live_executions: "Nor do those that were talked to.", needs [Sessions];
        #[alone] nothing_is_left_of_killed_executions: "Nor do those that were killed.", needs [Sessions];
        #[alone] nothing_is_left_of_probes: "Nor does asking whether the backend is there.";
        #[alone] nothing_is_left_of_adapters: "Adapters come and go without a trace.";
        a_killed_host_leaves_no_command: "The next start ends what a dead host left.", needs [Linux];
        a_killed_host_leaves_no_daemon: "Also what had left the session.", needs [Linux, ChildProcesses];
        the_commands_of_a_living_host_are_spared: "A start ends nothing of a host that lives.", needs [Linux];
    },
};

/// Runs `calls` until everything is there that is made once, and then again: nothing more may
/// remain than before.
async fn leaves_nothing(
    stage: &Stage,
    mut calls: impl AsyncFnMut() -> Result<(), Halt>,
) -> Result<(), Halt> {
    calls().await?;
    settled(stage, processes_left_now).await?;
    let (files, temporary) = (
        names_in(stage.directory())?,
        names_in(&std::env::temp_dir())?,
    );
    let Some(before) = Belongings::now() else {
        return Err(Halt::gated("the system does not say what a process has"));
    };
    calls().await?;
    settled(stage, || {
        let mut left = processes_left_now();
        left.extend(before.grown_now());
        left
    })
    .await?;
    check_eq!(
        names_in(stage.directory())?,
        files,
        "in the working directory"
    );
    check_eq!(
        names_in(&std::env::temp_dir())?,
        temporary,
        "in the directory for temporary files"
    );
    Ok(())
}

/// Waits until nothing is left: what ends needs a moment to be gone.
async fn settled(stage: &Stage, mut left: impl FnMut() -> Vec<String>) -> Result<(), Halt> {
    // What is looked at stays the same for good, or is gone in no time.
    let patience = stage.amount(stage.patience(), Duration::from_secs(2));
    let start = Instant::now();
    loop {
        let left = left();
        if left.is_empty() {
            return Ok(());
        }
        check!(start.elapsed() < patience, "left: {}", left.join("; "));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn nothing_is_left_of_calls(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    leaves_nothing(stage, async || {
        for code in 0..stage.amount(30, 5) {
            adapter.run(stage.spell(Task::Exit(code))?).await?;
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_errors(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(30, 5) {
            let missing = ExecutionRequest::program("no-such-program").arg("x");
            let result = adapter.run(missing.working_dir(stage.directory())).await;
            check!(result.is_err(), "a program that is not there was run");
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_deadlines(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.kill_grace_ms = 100)
        .await?;
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(3, 1) {
            let request = stage.spell(Task::Sleep(Duration::from_secs(60)))?;
            adapter
                .run(request.timeout(Duration::from_millis(200)))
                .await?;
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_truncated_output(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(5, 2) {
            adapter
                .run(stage.spell(Task::Fill {
                    stdout: 3 << 20,
                    stderr: 3 << 20,
                })?)
                .await?;
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_input_that_was_not_read(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(10, 3) {
            adapter
                .run(stage.spell(Task::Exit(0))?.stdin_bytes(vec![b'x'; 1 << 20]))
                .await?;
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_leftovers(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let sleep = Duration::from_secs(60);
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(3, 1) {
            adapter
                .run(stage.spell(Task::LeaveMany { count: 3, sleep })?)
                .await?;
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_live_executions(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(10, 3) {
            let request = stage.spell(Task::CopyStdin)?.stdin(Stdin::Piped);
            adapter.spawn(request).await?.wait().await?;
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_killed_executions(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(10, 3) {
            let request = stage.spell(Task::Sleep(Duration::from_secs(60)))?;
            let mut execution = adapter.spawn(request).await?;
            execution.kill();
            execution.wait().await?;
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_probes(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(10, 3) {
            adapter.probe().await;
        }
        Ok(())
    })
    .await
}

async fn nothing_is_left_of_adapters(stage: &Stage) -> Result<(), Halt> {
    leaves_nothing(stage, async || {
        for _ in 0..stage.amount(10, 3) {
            starts_anew(stage).await?;
        }
        Ok(())
    })
    .await
}

async fn a_killed_host_leaves_no_command(stage: &Stage) -> Result<(), Halt> {
    killed_host(stage, VictimTask::Mark).await
}

async fn a_killed_host_leaves_no_daemon(stage: &Stage) -> Result<(), Halt> {
    killed_host(stage, VictimTask::Daemon).await
}

/// A host like this one is killed with SIGKILL while it runs `task`; the next start follows.
async fn killed_host(stage: &Stage, task: VictimTask) -> Result<(), Halt> {
    let watch = stage.marker();
    let delay = watch.marker.delay;
    stage.spell_bare(task.task(delay))?;
    let mut host = start_victim(task, delay, stage.directory())?;
    let started = watch.started().await;
    let begun = Instant::now();
    host.kill()?;
    host.wait()?;
    started?;
    starts_anew(stage).await?;
    if watch.has_appeared() && begun.elapsed() >= delay {
        // Until the next start nobody ends it.
        return Err(Halt::TooSlow);
    }
    watch.never_appears().await
}

/// A start as a host's: a new adapter, and a command.
async fn starts_anew(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter_with(|_| {}).await?;
    adapter.run(stage.spell(Task::Exit(0))?).await?;
    Ok(())
}

async fn the_commands_of_a_living_host_are_spared(stage: &Stage) -> Result<(), Halt> {
    let watch = stage.marker();
    let delay = watch.marker.delay;
    stage.spell_bare(VictimTask::Mark.task(delay))?;
    let mut host = start_victim(VictimTask::Mark, delay, stage.directory())?;
    let spared = async {
        watch.started().await?;
        starts_anew(stage).await?;
        eventually(stage.patience(), "the command did its work", || {
            watch.has_appeared()
        })
        .await
    };
    let spared = spared.await;
    let ended = eventually(stage.patience(), "the host ended", || {
        host.try_wait().is_ok_and(|status| status.is_some())
    });
    let ended = ended.await;
    // Whatever happened, it is not left.
    let _ = host.kill();
    host.wait()?;
    spared.and(ended)
}
