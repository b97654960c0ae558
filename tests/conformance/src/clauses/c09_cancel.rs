//! C9: what happens when nobody wants the result any more.

use std::time::Duration;

use prx_runtime_core::{ErrorKind, Execution, Termination};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, check, check_eq, eventually, text, within};
use crate::{Descendant, Task, Then, TokioKind};

pub(super) const CLAUSE: Clause = Clause {
    number: 9,
    module: "c09_cancel",
    title: "Cancel",
    rule: "Dropping the future or the handle ends the command and all it started, as the deadline \
           does. A handle can end its execution with a grace or without one, and the output up to \
           then is there.",
    why: "An agent that is interrupted drops what it was waiting for; a command that goes on working \
          in the background undoes the interruption.",
    trials: trials! {
        dropping_the_future_ends_the_command: "A dropped `run` leaves no command behind.";
        dropping_the_future_of_execute_ends_the_command: "Nor does a dropped `execute`.";
        dropping_the_future_ends_the_tree: "What the command started goes with it.", needs [ChildProcesses];
        dropping_the_future_ends_a_deaf_command: "A command that ignores TERM is no exception.";
        a_future_that_was_never_polled_starts_nothing: "Asking is not yet running.";
        an_aborted_task_ends_its_command: "Aborting the task that waits is the same as dropping.";
        a_panicking_caller_ends_its_command: "So is a panic of who waits.";
        a_timeout_of_the_caller_ends_the_command: "So is a timeout around the call.";
        the_end_of_the_tokio_runtime_ends_the_command: "A host that shuts its runtime down leaves nothing running.";
        the_adapter_is_good_for_more: "After a dropped call the next one runs, and no slot is lost.";
        dropping_the_handle_ends_the_command: "A dropped handle leaves no command behind.", needs [Sessions];
        dropping_the_handle_ends_the_tree: "What the command started goes with it.", needs [Sessions, ChildProcesses];
        dropping_the_adapter_leaves_its_commands: "A live execution does not depend on who made it.", needs [Sessions];
        killing_is_told: "A killed execution is `Cancelled`, 130.", needs [Sessions];
        terminating_lets_it_clean_up: "A terminated execution has its last words, and is `Cancelled`.", needs [Sessions, Signals];
        terminating_a_deaf_one_kills_it: "When the grace is over, it is killed.", needs [Sessions, Signals];
        killing_cuts_a_grace_short: "A kill does not wait for the grace that was given before.", needs [Sessions, Signals];
        ending_what_has_ended_is_harmless: "Its own code stands, whatever is said afterwards.", needs [Sessions];
        waiting_can_be_given_up_and_taken_up: "A dropped wait loses nothing.", needs [Sessions];
        waiting_twice_is_an_error: "There is one end, and one who is told.", needs [Sessions];
    },
};

async fn dropping_the_future_ends_the_command(stage: &Stage) -> Result<(), Halt> {
    dropped(stage, Task::Mark(stage.marker().marker)).await
}

async fn dropping_the_future_ends_the_tree(stage: &Stage) -> Result<(), Halt> {
    dropped(stage, tree(stage)).await
}

async fn dropping_the_future_ends_a_deaf_command(stage: &Stage) -> Result<(), Halt> {
    dropped(stage, Task::MarkDeaf(stage.marker().marker)).await
}

fn tree(stage: &Stage) -> Task {
    Task::Leave {
        descendant: Descendant::GreatGrandchild,
        marker: stage.marker().marker,
        then: Then::Sleep(Duration::from_secs(60)),
    }
}

/// Drops the run of a task that writes the marker, when it has started.
async fn dropped(stage: &Stage, task: Task) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let run = adapter.run(stage.spell(task)?);
    let watch = stage.marker();
    tokio::select! {
        _ = run => return Err(Halt::TooSlow),
        started = watch.started() => started?,
    }
    watch.never_appears().await
}

async fn dropping_the_future_of_execute_ends_the_command(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let watch = stage.marker();
    let call = stage.call(Task::Mark(watch.marker.clone()))?;
    let run = call.execute(&*adapter, Some(stage.directory()), stage.patience());
    tokio::select! {
        _ = run => return Err(Halt::TooSlow),
        started = watch.started() => started?,
    }
    watch.never_appears().await
}

async fn a_future_that_was_never_polled_starts_nothing(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let watch = stage.marker();
    drop(adapter.run(stage.spell(Task::Mark(watch.marker.clone()))?));
    // A second run is proof that a first would have been there by now.
    adapter.run(stage.spell(Task::Exit(0))?).await?;
    check!(!watch.has_started(), "it was started");
    Ok(())
}

async fn an_aborted_task_ends_its_command(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let watch = stage.marker();
    let request = stage.spell(Task::Mark(watch.marker.clone()))?;
    let task = tokio::spawn(async move { adapter.run(request).await.map(drop) });
    watch.started().await?;
    task.abort();
    let ended = task.await;
    check!(
        ended.is_err_and(|error| error.is_cancelled()),
        "the task was not aborted"
    );
    watch.never_appears().await
}

/// What the caller panics with: no message and no backtrace are printed for it.
struct Unwound;

async fn a_panicking_caller_ends_its_command(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let watch = stage.marker();
    let request = stage.spell(Task::Mark(watch.marker.clone()))?;
    let (panic, panicked) = tokio::sync::oneshot::channel::<()>();
    let task = tokio::spawn(async move {
        tokio::select! {
            _ = adapter.run(request) => {}
            _ = panicked => std::panic::resume_unwind(Box::new(Unwound)),
        }
    });
    watch.started().await?;
    drop(panic);
    check!(
        task.await.is_err_and(|error| error.is_panic()),
        "the caller did not panic"
    );
    watch.never_appears().await
}

async fn a_timeout_of_the_caller_ends_the_command(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let watch = stage.marker();
    for seconds in [1, 2] {
        let request = stage.spell(Task::Mark(watch.marker.clone()))?;
        let run = adapter.run(request);
        let late = tokio::time::timeout(Duration::from_secs(seconds), run).await;
        check!(late.is_err(), "it ended by itself: {late:?}");
        // On a machine under load the guest may not have come so far.
        if watch.has_started() {
            break;
        }
    }
    watch.never_appears().await
}

async fn the_end_of_the_tokio_runtime_ends_the_command(stage: &Stage) -> Result<(), Halt> {
    for (kind, name) in [
        (TokioKind::CurrentThread, "one"),
        (TokioKind::MultiThread, "two"),
    ] {
        let directory = stage.directory().join(name);
        std::fs::create_dir(&directory)?;
        let mut watch = stage.marker();
        watch.move_to(&directory);
        let request = stage
            .spell(Task::Mark(watch.marker.clone()))?
            .working_dir(&directory);
        let driver = std::sync::Arc::clone(stage.driver());
        let host = move || -> Result<_, Halt> {
            let runtime = kind.build()?;
            let adapter = runtime.block_on(driver.make(&driver.config()))?;
            let run = runtime.spawn(async move { adapter.run(request).await.map(drop) });
            runtime.block_on(watch.started())?;
            runtime.shutdown_timeout(Duration::from_secs(5));
            drop(run);
            Ok(watch)
        };
        // A runtime can only be ended by a thread that is in none.
        let thread = std::thread::spawn(host);
        eventually(stage.patience(), "the host ended", || thread.is_finished()).await?;
        let watch = thread
            .join()
            .map_err(|_| Halt::failed("the host panicked"))??;
        watch.never_appears().await?;
    }
    Ok(())
}

async fn the_adapter_is_good_for_more(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_concurrent = 1)
        .await?;
    for _ in 0..3 {
        let request = stage.spell(Task::Sleep(Duration::from_secs(60)))?;
        let run = adapter.run(request);
        let _ = tokio::time::timeout(Duration::from_millis(50), run).await;
        let next = adapter.run(stage.spell(Task::Exit(3))?);
        let output = within(stage.patience(), "a slot became free", next).await??;
        check_eq!(output.exit_code, 3, "{output:?}");
    }
    Ok(())
}

/// Drops the handle of a task that writes the marker, when it has started.
async fn handle_dropped(stage: &Stage, task: Task) -> Result<(), Halt> {
    let watch = stage.marker();
    let execution = stage.spawn(task).await?;
    watch.started().await?;
    drop(execution);
    watch.never_appears().await
}

async fn dropping_the_handle_ends_the_command(stage: &Stage) -> Result<(), Halt> {
    handle_dropped(stage, Task::Mark(stage.marker().marker)).await
}

async fn dropping_the_handle_ends_the_tree(stage: &Stage) -> Result<(), Halt> {
    handle_dropped(stage, tree(stage)).await
}

async fn dropping_the_adapter_leaves_its_commands(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let request = stage
        .spell(Task::CopyStdin)?
        .stdin(prx_runtime_core::Stdin::Piped);
    let mut execution = adapter.spawn(request).await?;
    drop(adapter);
    if let Some(stdin) = &mut execution.stdin {
        stdin.write_all(b"some text").await?;
    }
    let output = execution.wait().await?;
    check!(output.success(), "{output:?}");
    check_eq!(text(&output.stdout)?, "some text");
    Ok(())
}

async fn waited(stage: &Stage, execution: &mut Execution) -> Result<(), Halt> {
    let output = within(stage.patience(), "the end came", execution.wait()).await??;
    check_eq!(
        (output.termination, output.exit_code),
        (Termination::Cancelled, 130)
    );
    Ok(())
}

async fn killing_is_told(stage: &Stage) -> Result<(), Halt> {
    let mut execution = stage.spawn(Task::Sleep(Duration::from_secs(60))).await?;
    execution.kill();
    waited(stage, &mut execution).await
}

async fn terminating_lets_it_clean_up(stage: &Stage) -> Result<(), Halt> {
    let mut execution = stage.spawn(Task::LastWords).await?;
    let Some(mut stdout) = execution.stdout.take() else {
        return Err(Halt::failed("a live execution without its stdout"));
    };
    let mut ready = [0; 6];
    within(
        stage.patience(),
        "it got ready",
        stdout.read_exact(&mut ready),
    )
    .await??;
    execution.terminate(stage.patience());
    let mut rest = String::new();
    within(
        stage.patience(),
        "the end came",
        stdout.read_to_string(&mut rest),
    )
    .await??;
    check_eq!(rest, "last words\n");
    waited(stage, &mut execution).await
}

async fn terminating_a_deaf_one_kills_it(stage: &Stage) -> Result<(), Halt> {
    let watch = stage.marker();
    let mut execution = stage.spawn(Task::MarkDeaf(watch.marker.clone())).await?;
    watch.started().await?;
    execution.terminate(Duration::from_millis(300));
    waited(stage, &mut execution).await?;
    watch.never_appears().await
}

async fn killing_cuts_a_grace_short(stage: &Stage) -> Result<(), Halt> {
    let watch = stage.marker();
    let mut execution = stage.spawn(Task::MarkDeaf(watch.marker.clone())).await?;
    watch.started().await?;
    execution.terminate(Duration::from_secs(600));
    execution.kill();
    waited(stage, &mut execution).await?;
    watch.never_appears().await
}

async fn ending_what_has_ended_is_harmless(stage: &Stage) -> Result<(), Halt> {
    let mut execution = stage.spawn(Task::Exit(3)).await?;
    let Some(mut stdout) = execution.stdout.take() else {
        return Err(Halt::failed("a live execution without its stdout"));
    };
    let output = within(stage.patience(), "the end came", execution.wait()).await??;
    check_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 3)
    );
    execution.kill();
    execution.terminate(Duration::from_secs(1));
    let mut rest = Vec::new();
    check_eq!(stdout.read_to_end(&mut rest).await?, 0);
    Ok(())
}

async fn waiting_can_be_given_up_and_taken_up(stage: &Stage) -> Result<(), Halt> {
    let pieces = vec![b"one ".to_vec(), b"two ".to_vec(), b"three".to_vec()];
    let task = Task::PrintPieces {
        pieces,
        pause: Duration::from_millis(100),
    };
    let mut execution = stage.spawn(task).await?;
    let start = std::time::Instant::now();
    let output = loop {
        let wait = tokio::time::timeout(Duration::from_millis(30), execution.wait()).await;
        if let Ok(output) = wait {
            break output?;
        }
        check!(start.elapsed() < stage.patience(), "the end never came");
    };
    check_eq!(text(&output.stdout)?, "one two three");
    Ok(())
}

async fn waiting_twice_is_an_error(stage: &Stage) -> Result<(), Halt> {
    let mut execution = stage.spawn(Task::Exit(0)).await?;
    execution.wait().await?;
    let Err(error) = execution.wait().await else {
        return Err(Halt::failed("there were two ends"));
    };
    check_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    Ok(())
}
