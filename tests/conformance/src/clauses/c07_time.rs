//! C7: how long a command may take.

use std::time::{Duration, Instant};

use prx_runtime_core::{ErrorKind, ExecutionOutput, ExecutionRequest, RuntimeAdapter, Termination};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::meeting::Meeting;
use crate::stage::{Halt, Stage, check, check_eq, text, within};

pub(super) const CLAUSE: Clause = Clause {
    number: 7,
    module: "c07_time",
    title: "Time",
    rule: "The clock starts when the command starts; image pulls, compilation and waiting for a slot \
           have budgets of their own. At the deadline: TERM to everything, a grace, KILL. The call \
           returns within timeout + grace + 1 s, whatever the command does. Zero is refused; any \
           larger duration works without overflow.",
    why: "One command that ignores signals, spins or stops itself must not hold an agent for ever; \
          and a command that had no time to run must not be told to be too slow.",
    trials: trials! {
        a_late_command_is_ended: "At the deadline a sleeping command is ended: `TimedOut`, 124.";
        a_command_in_time_is_not_late: "A deadline that was not reached leaves no trace.";
        a_deaf_command_is_killed: "What ignores TERM is killed after the grace.";
        a_spinning_command_is_ended: "What never waits is ended, too.";
        a_stopped_command_is_ended: "What stopped itself is ended, too.";
        a_command_without_output_streams_is_ended: "What closed its output is still watched.";
        a_command_that_floods_is_ended: "Output without end does not keep the clock from being read.";
        a_command_has_its_last_words: "TERM comes first: a command may clean up within the grace.", needs [Signals];
        without_a_grace_there_are_none: "A grace of zero kills at once.", needs [Signals];
        the_grace_is_no_longer_than_needed: "What ends at TERM is not waited for until the grace is over.", needs [Signals];
        a_timeout_of_zero_is_refused: "No time at all is a mistake of the caller.";
        the_longest_duration_works: "There is no duration that overflows.";
        a_duration_beyond_every_clock_works: "Nor one that only a timer could not hold.";
        a_short_timeout_is_no_overflow: "The shortest duration ends the command and not the host.";
        the_configured_timeout_holds_where_none_is_asked: "A request without a timeout has that of the configuration.";
        a_call_sets_its_own_timeout: "A request's timeout goes before the configured one.";
        execute_keeps_the_timeout: "The published method keeps the same rule.";
        waiting_for_a_slot_is_not_counted: "A command that waited its turn has all its time.";
        the_duration_is_told: "The output says how long the command ran: not longer than the call.";
        a_live_execution_without_a_timeout_has_none: "What is meant to live is not ended by the default.", needs [Sessions];
        a_live_execution_keeps_its_timeout: "A live execution that has a deadline is ended there.", needs [Sessions];
    },
};

/// What a machine under load may add to the bound of the contract. Every task here would run for a
/// minute, so that this never decides whether it was ended.
const SLACK: Duration = Duration::from_secs(15);

/// Runs `request` and checks that its deadline ended it, in time.
async fn is_late(
    adapter: &dyn RuntimeAdapter,
    request: ExecutionRequest,
    timeout: Duration,
    grace: Duration,
) -> Result<ExecutionOutput, Halt> {
    let start = Instant::now();
    let output = adapter.run(request.timeout(timeout)).await?;
    let elapsed = start.elapsed();
    check_eq!(output.termination, Termination::TimedOut);
    check_eq!(output.exit_code, 124);
    check!(
        elapsed < timeout + grace + Duration::from_secs(1) + SLACK,
        "took {elapsed:?}"
    );
    check!(
        output.duration >= timeout,
        "ended after {:?}, before its time",
        output.duration
    );
    Ok(output)
}

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// The deadline ends `task` after a second, with a grace of half of one.
async fn ends(stage: &Stage, task: Task) -> Result<ExecutionOutput, Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.kill_grace_ms = 500)
        .await?;
    is_late(
        &*adapter,
        stage.spell(task)?,
        SECOND,
        Duration::from_millis(500),
    )
    .await
}

async fn a_late_command_is_ended(stage: &Stage) -> Result<(), Halt> {
    ends(stage, Task::Sleep(MINUTE)).await.map(drop)
}

async fn a_command_in_time_is_not_late(stage: &Stage) -> Result<(), Halt> {
    let output = stage.run(Task::Sleep(Duration::from_millis(100))).await?;
    check!(output.success(), "{output:?}");
    Ok(())
}

async fn a_deaf_command_is_killed(stage: &Stage) -> Result<(), Halt> {
    let mut watch = stage.marker();
    watch.marker.delay = MINUTE;
    ends(stage, Task::MarkDeaf(watch.marker)).await.map(drop)
}

async fn a_spinning_command_is_ended(stage: &Stage) -> Result<(), Halt> {
    ends(stage, Task::Spin).await.map(drop)
}

async fn a_stopped_command_is_ended(stage: &Stage) -> Result<(), Halt> {
    ends(stage, Task::MarkStopped(stage.marker().marker))
        .await
        .map(drop)
}

async fn a_command_without_output_streams_is_ended(stage: &Stage) -> Result<(), Halt> {
    ends(stage, Task::CloseOutputThenSleep(MINUTE))
        .await
        .map(drop)
}

async fn a_command_that_floods_is_ended(stage: &Stage) -> Result<(), Halt> {
    let output = ends(
        stage,
        Task::Fill {
            stdout: u64::MAX >> 2,
            stderr: 0,
        },
    )
    .await?;
    check!(!output.stdout.is_empty(), "{output:?}");
    Ok(())
}

/// Output of [`Task::LastWords`], ended by its deadline after it said that it was ready.
async fn last_words(stage: &Stage, grace: Duration) -> Result<(String, Duration), Halt> {
    let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
    let adapter = stage
        .adapter_with(|config| config.runtime.kill_grace_ms = grace_ms)
        .await?;
    for seconds in [1, 3, 9] {
        let timeout = Duration::from_secs(seconds);
        let start = Instant::now();
        let output = is_late(&*adapter, stage.spell(Task::LastWords)?, timeout, grace).await?;
        if !output.stdout.is_empty() {
            let elapsed = start.elapsed().saturating_sub(timeout);
            return Ok((text(&output.stdout)?.to_owned(), elapsed));
        }
        // On a machine under load the guest may not have come so far.
    }
    Err(Halt::failed("the guest never got ready"))
}

async fn a_command_has_its_last_words(stage: &Stage) -> Result<(), Halt> {
    check_eq!(
        last_words(stage, Duration::from_secs(20)).await?.0,
        "ready\nlast words\n"
    );
    Ok(())
}

async fn without_a_grace_there_are_none(stage: &Stage) -> Result<(), Halt> {
    check_eq!(last_words(stage, Duration::ZERO).await?.0, "ready\n");
    Ok(())
}

async fn the_grace_is_no_longer_than_needed(stage: &Stage) -> Result<(), Halt> {
    let (words, elapsed) = last_words(stage, MINUTE).await?;
    check_eq!(words, "ready\nlast words\n");
    check!(
        elapsed < MINUTE,
        "the whole grace was waited for: {elapsed:?}"
    );
    Ok(())
}

async fn a_timeout_of_zero_is_refused(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let zero = Duration::ZERO;
    let call = stage.call(Task::Exit(0))?;
    for result in [
        adapter.run(stage.spell(Task::Exit(0))?.timeout(zero)).await,
        call.execute(&*adapter, Some(stage.directory()), zero).await,
    ] {
        let Err(error) = result else {
            return Err(Halt::failed("a timeout of zero was accepted"));
        };
        check_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    }
    Ok(())
}

async fn has_time(stage: &Stage, timeout: Duration) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let output = adapter
        .run(stage.spell(Task::Exit(3))?.timeout(timeout))
        .await?;
    check_eq!(output.exit_code, 3, "{output:?}");
    let call = stage.call(Task::Exit(4))?;
    let output = call
        .execute(&*adapter, Some(stage.directory()), timeout)
        .await?;
    check_eq!(output.exit_code, 4, "{output:?}");
    Ok(())
}

async fn the_longest_duration_works(stage: &Stage) -> Result<(), Halt> {
    has_time(stage, Duration::MAX).await
}

async fn a_duration_beyond_every_clock_works(stage: &Stage) -> Result<(), Halt> {
    has_time(stage, Duration::from_secs(u64::MAX / 1000)).await?;
    has_time(stage, Duration::from_secs(1 << 40)).await
}

async fn a_short_timeout_is_no_overflow(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.kill_grace_ms = 0)
        .await?;
    let request = stage.spell(Task::Sleep(MINUTE))?;
    is_late(&*adapter, request, Duration::from_nanos(1), Duration::ZERO)
        .await
        .map(drop)
}

async fn the_configured_timeout_holds_where_none_is_asked(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| {
            config.runtime.default_timeout_secs = 1;
            config.runtime.kill_grace_ms = 0;
        })
        .await?;
    let request = stage
        .spell_bare(Task::Sleep(MINUTE))?
        .working_dir(stage.directory());
    let output = adapter.run(request).await?;
    check_eq!(output.termination, Termination::TimedOut);
    Ok(())
}

async fn a_call_sets_its_own_timeout(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.default_timeout_secs = 1)
        .await?;
    let output = adapter.run(stage.spell(Task::Sleep(2 * SECOND))?).await?;
    check!(output.success(), "{output:?}");
    Ok(())
}

async fn execute_keeps_the_timeout(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.kill_grace_ms = 0)
        .await?;
    let call = stage.call(Task::Sleep(MINUTE))?;
    let output = call
        .execute(&*adapter, Some(stage.directory()), SECOND)
        .await?;
    check_eq!(
        (output.termination, output.exit_code),
        (Termination::TimedOut, 124)
    );
    Ok(())
}

async fn waiting_for_a_slot_is_not_counted(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_concurrent = 1)
        .await?;
    // Holds the only slot until it has been held for longer than the other's whole time.
    let meeting = Meeting::of(2);
    let holder = adapter.run(
        stage
            .spell(Task::CopyStdin)?
            .stdin(prx_runtime_core::Stdin::Reader(meeting.reader())),
    );
    let time = 4 * SECOND;
    let waiter = async {
        while meeting.most() == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        adapter
            .run(stage.spell(Task::Exit(3))?.timeout(time))
            .await
            .map_err(Halt::from)
    };
    let (holder, waiter, ()) = tokio::join!(holder, waiter, meeting.end_after(time + 2 * SECOND));
    check!(holder?.success(), "the holder failed");
    check_eq!(waiter?.exit_code, 3);
    Ok(())
}

async fn the_duration_is_told(stage: &Stage) -> Result<(), Halt> {
    let start = Instant::now();
    let output = stage.run(Task::Sleep(Duration::from_millis(300))).await?;
    let (told, elapsed) = (output.duration, start.elapsed());
    check!(
        told <= elapsed,
        "told {told:?}, and the call took {elapsed:?}"
    );
    // The clock starts when the start of the command is known, which may be a moment late.
    check!(
        told >= Duration::from_millis(100),
        "told {told:?} for 300 ms"
    );
    Ok(())
}

async fn a_live_execution_without_a_timeout_has_none(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.default_timeout_secs = 1)
        .await?;
    let request = stage
        .spell_bare(Task::Sleep(2 * SECOND))?
        .working_dir(stage.directory());
    let output = adapter.spawn(request).await?.wait().await?;
    check!(output.success(), "{output:?}");
    Ok(())
}

async fn a_live_execution_keeps_its_timeout(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.kill_grace_ms = 0)
        .await?;
    let request = stage.spell(Task::Sleep(MINUTE))?.timeout(SECOND);
    let mut execution = adapter.spawn(request).await?;
    let output = within(stage.patience(), "the deadline came", execution.wait()).await??;
    check_eq!(
        (output.termination, output.exit_code),
        (Termination::TimedOut, 124)
    );
    Ok(())
}
