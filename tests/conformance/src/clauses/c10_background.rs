//! C10: what a command leaves in the background.

use std::time::{Duration, Instant};

use prx_runtime_core::{ExecutionOutput, Termination};

use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, check, check_eq, text};
use crate::{Descendant, Task, Then};

pub(super) const CLAUSE: Clause = Clause {
    number: 10,
    module: "c10_background",
    title: "Background",
    rule: "When the main process ends the call returns, even if a descendant still holds the pipes: \
           a short drain (250 ms), then the leftovers are ended and `leftover_processes` says how \
           many there were, where the backend can count them.",
    why: "`server &` must not hang a call until its timeout, as it does wherever the end of a call is \
          the end of its pipes; and who left something must learn that it is gone.",
    trials: trials! {
        a_child_that_holds_the_pipes_holds_nobody: "The call returns when the command has ended.", needs [ChildProcesses];
        an_orphan_that_holds_the_pipes_holds_nobody: "Nor does what forked twice.", needs [ChildProcesses];
        another_session_that_holds_the_pipes_holds_nobody: "Nor does what left the session.", needs [ChildProcesses];
        the_code_is_the_commands_own: "A leftover does not change how the command ended.", needs [ChildProcesses];
        a_command_with_a_leftover_was_not_late: "A leftover is no timeout.", needs [ChildProcesses];
        leftovers_are_counted: "As many as there were.", needs [ChildProcesses, CountedLeftovers];
        a_single_leftover_is_counted: "One is not none.", needs [ChildProcesses, CountedLeftovers];
        an_orphan_is_counted: "A process whose parent has ended is a leftover.", needs [ChildProcesses, CountedLeftovers];
        no_leftover_is_zero: "A command without children leaves none.";
        a_child_that_was_waited_for_is_no_leftover: "What ended before the command is not counted.", needs [ChildProcesses];
        leftovers_are_ended: "Three seconds later nothing of them is seen.", needs [ChildProcesses];
        output_before_the_end_is_there: "What was written before is not lost to the drain.", needs [ChildProcesses];
        a_live_execution_returns_as_well: "Waiting for a handle ends with the main process, too.", needs [ChildProcesses, Sessions];
    },
};

/// How long each leftover would live: far longer than anything else here takes.
const LONG: Duration = Duration::from_secs(40);

/// Runs `task`, whose leftovers would live for [`LONG`], and checks that nobody waited for them.
async fn returns(stage: &Stage, task: Task) -> Result<ExecutionOutput, Halt> {
    let request = stage.spell(task)?.timeout(LONG);
    let start = Instant::now();
    let output = stage.adapter().await?.run(request).await?;
    check!(
        start.elapsed() < LONG / 2,
        "the call took {:?}",
        start.elapsed()
    );
    check_eq!(output.termination, Termination::Exited);
    Ok(output)
}

fn leaves(stage: &Stage, descendant: Descendant, code: u8) -> Task {
    let mut marker = stage.marker().marker;
    marker.delay = LONG;
    Task::Leave {
        descendant,
        marker,
        then: Then::Exit(code),
    }
}

async fn a_child_that_holds_the_pipes_holds_nobody(stage: &Stage) -> Result<(), Halt> {
    returns(stage, leaves(stage, Descendant::Child, 0))
        .await
        .map(drop)
}

async fn an_orphan_that_holds_the_pipes_holds_nobody(stage: &Stage) -> Result<(), Halt> {
    returns(stage, leaves(stage, Descendant::Orphan, 0))
        .await
        .map(drop)
}

async fn another_session_that_holds_the_pipes_holds_nobody(stage: &Stage) -> Result<(), Halt> {
    returns(stage, leaves(stage, Descendant::Session, 0))
        .await
        .map(drop)
}

async fn the_code_is_the_commands_own(stage: &Stage) -> Result<(), Halt> {
    check_eq!(
        returns(stage, leaves(stage, Descendant::Child, 4))
            .await?
            .exit_code,
        4
    );
    Ok(())
}

async fn a_command_with_a_leftover_was_not_late(stage: &Stage) -> Result<(), Halt> {
    let task = Task::LeaveMany {
        count: 1,
        sleep: LONG,
    };
    let request = stage.spell(task)?.timeout(Duration::from_secs(20));
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 0)
    );
    Ok(())
}

async fn leaves_many(stage: &Stage, count: u32) -> Result<(), Halt> {
    let output = returns(stage, Task::LeaveMany { count, sleep: LONG }).await?;
    check_eq!(output.leftover_processes, count, "{output:?}");
    Ok(())
}

async fn leftovers_are_counted(stage: &Stage) -> Result<(), Halt> {
    leaves_many(stage, 7).await
}

async fn a_single_leftover_is_counted(stage: &Stage) -> Result<(), Halt> {
    leaves_many(stage, 1).await
}

async fn an_orphan_is_counted(stage: &Stage) -> Result<(), Halt> {
    let output = returns(stage, leaves(stage, Descendant::Orphan, 0)).await?;
    check!(output.leftover_processes > 0, "{output:?}");
    Ok(())
}

async fn no_leftover_is_zero(stage: &Stage) -> Result<(), Halt> {
    check_eq!(stage.run(Task::Exit(0)).await?.leftover_processes, 0);
    Ok(())
}

async fn a_child_that_was_waited_for_is_no_leftover(stage: &Stage) -> Result<(), Halt> {
    let output = stage.run(Task::WaitForChild).await?;
    check!(output.success(), "{output:?}");
    check_eq!(output.leftover_processes, 0);
    Ok(())
}

async fn leftovers_are_ended(stage: &Stage) -> Result<(), Halt> {
    let watch = stage.marker();
    let marker = watch.marker.clone();
    let then = Then::Exit(0);
    stage
        .run(Task::Leave {
            descendant: Descendant::Child,
            marker,
            then,
        })
        .await?;
    watch.never_appears().await
}

async fn output_before_the_end_is_there(stage: &Stage) -> Result<(), Halt> {
    let output = returns(stage, leaves(stage, Descendant::Child, 0)).await?;
    check_eq!(text(&output.stdout)?, "left\n", "{output:?}");
    Ok(())
}

async fn a_live_execution_returns_as_well(stage: &Stage) -> Result<(), Halt> {
    let start = Instant::now();
    let output = stage
        .spawn(leaves(stage, Descendant::Child, 4))
        .await?
        .wait()
        .await?;
    check!(
        start.elapsed() < LONG / 2,
        "the wait took {:?}",
        start.elapsed()
    );
    check_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 4)
    );
    Ok(())
}
