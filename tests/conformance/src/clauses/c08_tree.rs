//! C8: what a command started.

use std::time::Duration;

use prx_runtime_core::{Execution, ExecutionOutput, ExecutionRequest, Stdin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, Watch, check, text, within};
use crate::{Descendant, Task, Then};

pub(super) const CLAUSE: Clause = Clause {
    number: 8,
    module: "c08_tree",
    title: "Tree",
    rule: "Nothing that the command started survives it, also what left its process group or its \
           session.",
    why: "The report that users of such systems write most: only the direct child was killed, and \
          its grandchildren live on, hold ports and files, and go on writing after the agent was \
          told that all is over. Each trial has a guest that would write a file three seconds \
          later; the file never appears.",
    trials: trials! {
        a_late_command_takes_its_child_along: "The deadline ends a child, too.", needs [ChildProcesses];
        a_late_command_takes_three_levels_along: "The deadline ends the whole tree.", needs [ChildProcesses];
        a_late_command_takes_another_session_along: "The deadline ends what called setsid.", needs [ChildProcesses];
        a_late_command_takes_an_orphan_along: "The deadline ends what forked twice.", needs [ChildProcesses];
        a_late_command_takes_a_daemon_along: "The deadline ends what forked twice, left the session and closed its streams.", needs [ChildProcesses];
        a_late_command_takes_a_deaf_child_along: "The deadline ends a child that ignores TERM.", needs [ChildProcesses, Signals];
        a_late_command_takes_a_stopped_child_along: "The deadline ends a child that stopped itself.", needs [ChildProcesses, Signals];
        an_ended_command_takes_its_child_along: "The end of the command is the end of its child.", needs [ChildProcesses];
        an_ended_command_takes_three_levels_along: "The end of the command is the end of its tree.", needs [ChildProcesses];
        an_ended_command_takes_another_session_along: "The end of the command is the end of what called setsid.", needs [ChildProcesses];
        an_ended_command_takes_an_orphan_along: "The end of the command is the end of what forked twice.", needs [ChildProcesses];
        an_ended_command_takes_a_daemon_along: "The end of the command is the end of its daemon.", needs [ChildProcesses];
        an_ended_command_takes_a_deaf_child_along: "The end of the command is the end of what ignores TERM.", needs [ChildProcesses, Signals];
        a_failed_command_takes_its_tree_along: "A code other than 0 makes no difference.", needs [ChildProcesses];
        a_killed_command_takes_its_tree_along: "Nor does a command that died of a signal.", needs [ChildProcesses, Signals];
        killing_takes_the_tree_along: "A handle that is told to kill kills all of it.", needs [ChildProcesses, Sessions];
        terminating_takes_a_daemon_along: "A handle that is told to end ends what left the session.", needs [ChildProcesses, Sessions];
        a_line_takes_its_tree_along: "What a shell line left in the background ends with it.", needs [ChildProcesses, Shell];
        the_neighbours_live_on: "The end of one command is the end of nothing that is not its own.", needs [ChildProcesses, Sessions];
    },
};

fn leaves(descendant: Descendant, watch: &Watch, then: Then) -> Task {
    Task::Leave {
        descendant,
        marker: watch.marker.clone(),
        then,
    }
}

async fn late(stage: &Stage, descendant: Descendant) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.kill_grace_ms = 200)
        .await?;
    let watch = stage.marker();
    let sleep = Then::Sleep(Duration::from_secs(60));
    for millis in [1000, 3000, 9000, 27_000] {
        let request = stage.spell(leaves(descendant, &watch, sleep))?;
        adapter
            .run(request.timeout(Duration::from_millis(millis)))
            .await?;
        // On a machine under load the guest may not have come so far.
        if watch.has_started() {
            break;
        }
    }
    watch.never_appears().await
}

async fn a_late_command_takes_its_child_along(stage: &Stage) -> Result<(), Halt> {
    late(stage, Descendant::Child).await
}

async fn a_late_command_takes_three_levels_along(stage: &Stage) -> Result<(), Halt> {
    late(stage, Descendant::GreatGrandchild).await
}

async fn a_late_command_takes_another_session_along(stage: &Stage) -> Result<(), Halt> {
    late(stage, Descendant::Session).await
}

async fn a_late_command_takes_an_orphan_along(stage: &Stage) -> Result<(), Halt> {
    late(stage, Descendant::Orphan).await
}

async fn a_late_command_takes_a_daemon_along(stage: &Stage) -> Result<(), Halt> {
    late(stage, Descendant::Daemon).await
}

async fn a_late_command_takes_a_deaf_child_along(stage: &Stage) -> Result<(), Halt> {
    late(stage, Descendant::Deaf).await
}

async fn a_late_command_takes_a_stopped_child_along(stage: &Stage) -> Result<(), Halt> {
    late(stage, Descendant::Stopped).await
}

/// The main process starts its descendant, says so, and ends.
async fn ended(stage: &Stage, descendant: Descendant, then: Then) -> Result<ExecutionOutput, Halt> {
    let watch = stage.marker();
    let output = stage.run(leaves(descendant, &watch, then)).await?;
    check!(text(&output.stdout)? == "left\n", "{output:?}");
    watch.never_appears().await?;
    Ok(output)
}

async fn an_ended_command_takes_its_child_along(stage: &Stage) -> Result<(), Halt> {
    ended(stage, Descendant::Child, Then::Exit(0))
        .await
        .map(drop)
}

async fn an_ended_command_takes_three_levels_along(stage: &Stage) -> Result<(), Halt> {
    ended(stage, Descendant::GreatGrandchild, Then::Exit(0))
        .await
        .map(drop)
}

async fn an_ended_command_takes_another_session_along(stage: &Stage) -> Result<(), Halt> {
    ended(stage, Descendant::Session, Then::Exit(0))
        .await
        .map(drop)
}

async fn an_ended_command_takes_an_orphan_along(stage: &Stage) -> Result<(), Halt> {
    ended(stage, Descendant::Orphan, Then::Exit(0))
        .await
        .map(drop)
}

async fn an_ended_command_takes_a_daemon_along(stage: &Stage) -> Result<(), Halt> {
    ended(stage, Descendant::Daemon, Then::Exit(0))
        .await
        .map(drop)
}

async fn an_ended_command_takes_a_deaf_child_along(stage: &Stage) -> Result<(), Halt> {
    ended(stage, Descendant::Deaf, Then::Exit(0))
        .await
        .map(drop)
}

async fn a_failed_command_takes_its_tree_along(stage: &Stage) -> Result<(), Halt> {
    let output = ended(stage, Descendant::GreatGrandchild, Then::Exit(3)).await?;
    check!(output.exit_code == 3, "{output:?}");
    Ok(())
}

async fn a_killed_command_takes_its_tree_along(stage: &Stage) -> Result<(), Halt> {
    ended(stage, Descendant::GreatGrandchild, Then::Die(9))
        .await
        .map(drop)
}

/// Ends a live execution by `end` when its descendant has started.
async fn told(
    stage: &Stage,
    descendant: Descendant,
    end: impl FnOnce(&Execution),
) -> Result<(), Halt> {
    let watch = stage.marker();
    let sleep = Then::Sleep(Duration::from_secs(60));
    let mut execution = stage.spawn(leaves(descendant, &watch, sleep)).await?;
    watch.started().await?;
    end(&execution);
    within(stage.patience(), "the end came", execution.wait()).await??;
    watch.never_appears().await
}

async fn killing_takes_the_tree_along(stage: &Stage) -> Result<(), Halt> {
    told(stage, Descendant::GreatGrandchild, |execution| {
        execution.kill()
    })
    .await
}

async fn terminating_takes_a_daemon_along(stage: &Stage) -> Result<(), Halt> {
    told(stage, Descendant::Daemon, |execution| {
        execution.terminate(Duration::from_secs(1))
    })
    .await
}

async fn a_line_takes_its_tree_along(stage: &Stage) -> Result<(), Halt> {
    let watch = stage.marker();
    let line = stage
        .spell_bare(Task::Mark(watch.marker.clone()))?
        .invocation()
        .to_string();
    let wait = format!(
        "while [ ! -e {}.started ]; do sleep 0.02; done",
        watch.marker.file
    );
    let request = ExecutionRequest::shell(format!("{line} & {wait}; echo left"))
        .working_dir(stage.directory());
    let output = stage.adapter().await?.run(request).await?;
    check!(text(&output.stdout)? == "left\n", "{output:?}");
    watch.never_appears().await
}

async fn the_neighbours_live_on(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let request = stage.spell(Task::EchoLines)?.stdin(Stdin::Piped);
    let mut neighbour = adapter.spawn(request).await?;
    let victim = stage.spell(leaves(
        Descendant::Child,
        &stage.marker(),
        Then::Sleep(Duration::from_secs(60)),
    ))?;
    let victim = adapter.spawn(victim).await?;
    stage.marker().started().await?;
    victim.kill();
    drop(victim);
    let (Some(stdin), Some(stdout)) = (&mut neighbour.stdin, &mut neighbour.stdout) else {
        return Err(Halt::failed("a live execution without its streams"));
    };
    stdin.write_all(b"alive\n").await?;
    let mut answer = [0; 11];
    within(
        stage.patience(),
        "the neighbour answered",
        stdout.read_exact(&mut answer),
    )
    .await??;
    check!(&answer == b"echo:alive\n", "{answer:?}");
    let output = neighbour.wait().await?;
    check!(output.success(), "{output:?}");
    Ok(())
}
