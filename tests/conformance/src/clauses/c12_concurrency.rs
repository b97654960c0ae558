//! C12: many at once.

use std::sync::Arc;
use std::time::Duration;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter, Stdin};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;

use crate::clause::{Clause, trials};
use crate::meeting::Meeting;
use crate::stage::{Halt, Stage, check, check_eq, eventually, text, within};
use crate::{Task, TokioKind};

pub(super) const CLAUSE: Clause = Clause {
    number: 12,
    module: "c12_concurrency",
    title: "Concurrency",
    rule: "Sixty-four executions at once on one adapter are all right; no lock is held across I/O. \
           `max_concurrent` bounds them, and who finds no slot within `queue_timeout_secs` is told \
           so.",
    why: "An adapter is shared by all tasks of a host. One that lets them pass one after the other \
          looks right until one command is slow. That they run at once is not measured: the stdin of \
          each ends only when all are being read.",
    trials: trials! {
        sixty_four_run_at_once: "Each ends only when all are running.";
        results_are_not_mixed_up: "Each of many gets its own output and its own code.";
        failures_do_not_spread: "Between missing programs and dying commands the others are all right.";
        a_slow_command_holds_up_no_other: "Many short ones pass while a long one runs.";
        a_slow_reader_holds_up_no_other: "A live execution that nobody reads is nobody else's trouble.", needs [Sessions];
        sixty_four_live_ones_at_once: "As many handles can be held, and each answers.", needs [Sessions];
        one_adapter_serves_several_tokio_runtimes: "Threads with runtimes of their own may share an adapter.";
        no_more_than_the_limit_run_at_once: "`max_concurrent` is never exceeded, and is reached.";
        without_a_slot_a_call_is_told_so: "A call that finds no slot in time is `Busy`, and did not run.";
        a_slot_is_free_after_every_end: "Success, failure and deadline all give their slot back.";
    },
};

fn attends(stage: &Stage, meeting: &Meeting) -> Result<ExecutionRequest, Halt> {
    Ok(stage
        .spell(Task::CopyStdin)?
        .stdin(Stdin::Reader(meeting.reader())))
}

async fn sixty_four_run_at_once(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_concurrent = 64)
        .await?;
    let meeting = Meeting::of(64);
    let mut runs = JoinSet::new();
    for _ in 0..64 {
        let (adapter, request) = (Arc::clone(&adapter), attends(stage, &meeting)?);
        runs.spawn(async move { adapter.run(request).await });
    }
    meeting.end_after(stage.patience()).await;
    check!(
        meeting.took_place(),
        "only {} of 64 were running at one time",
        meeting.most()
    );
    for output in runs.join_all().await {
        let output = output?;
        check!(output.success(), "{output:?}");
    }
    Ok(())
}

async fn results_are_not_mixed_up(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let mut runs = JoinSet::new();
    for number in 0..32_u8 {
        let adapter = Arc::clone(&adapter);
        let words = stage.spell(Task::PrintArgs(vec![format!("command {number}")]))?;
        let code = stage.spell(Task::Exit(number))?;
        runs.spawn(async move { (number, adapter.run(words).await, adapter.run(code).await) });
    }
    for (number, words, code) in runs.join_all().await {
        check_eq!(text(&words?.stdout)?, format!("command {number}\0"));
        check_eq!(code?.exit_code, i32::from(number));
    }
    Ok(())
}

async fn failures_do_not_spread(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let mut runs = JoinSet::new();
    for number in 0..30 {
        let adapter = Arc::clone(&adapter);
        let request = match number % 3 {
            0 => ExecutionRequest::program("no-such-program")
                .arg("x")
                .working_dir(stage.directory()),
            // Longer than it takes on a machine that has hardly any time for it.
            1 => stage
                .spell(Task::Sleep(Duration::from_secs(600)))?
                .timeout(Duration::from_millis(200)),
            _ => stage.spell(Task::Exit(3))?,
        };
        runs.spawn(async move { (number, adapter.run(request).await) });
    }
    for (number, result) in runs.join_all().await {
        match number % 3 {
            0 => check!(result.is_err(), "a program that is not there was run"),
            1 => {
                let output = result?;
                check!(!output.success(), "a long sleep was no failure: {output:?}");
            }
            _ => check_eq!(result?.exit_code, 3),
        }
    }
    Ok(())
}

async fn a_slow_command_holds_up_no_other(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let meeting = Meeting::of(2);
    let slow = adapter.run(attends(stage, &meeting)?);
    let short = async {
        eventually(stage.patience(), "the slow one ran", || meeting.most() > 0).await?;
        for _ in 0..10 {
            let run = adapter.run(stage.spell(Task::Exit(3))?);
            let output = within(stage.patience(), "a short one passed", run).await??;
            check_eq!(output.exit_code, 3);
        }
        Ok(())
    };
    let short = async {
        let result = short.await;
        meeting.end();
        result
    };
    let (slow, short) = tokio::join!(slow, short);
    short?;
    check!(slow?.success(), "the slow one failed");
    Ok(())
}

async fn a_slow_reader_holds_up_no_other(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    // More than any pipe holds, and nobody reads it.
    let unread = adapter
        .spawn(stage.spell(Task::Fill {
            stdout: 4 << 20,
            stderr: 0,
        })?)
        .await?;
    for _ in 0..10 {
        let run = adapter.run(stage.spell(Task::Exit(3))?);
        check_eq!(
            within(stage.patience(), "a short one passed", run)
                .await??
                .exit_code,
            3
        );
    }
    drop(unread);
    Ok(())
}

async fn sixty_four_live_ones_at_once(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_concurrent = 64)
        .await?;
    let mut live = Vec::new();
    for _ in 0..64 {
        let request = stage.spell(Task::EchoLines)?.stdin(Stdin::Piped);
        live.push(adapter.spawn(request).await?);
    }
    for (number, execution) in live.iter_mut().enumerate() {
        let (Some(stdin), Some(stdout)) = (&mut execution.stdin, &mut execution.stdout) else {
            return Err(Halt::failed("a live execution without its streams"));
        };
        stdin.write_all(format!("{number:02}\n").as_bytes()).await?;
        let mut answer = [0; 8];
        within(
            stage.patience(),
            "an answer came",
            stdout.read_exact(&mut answer),
        )
        .await??;
        check_eq!(
            String::from_utf8_lossy(&answer),
            format!("echo:{number:02}\n")
        );
    }
    for mut execution in live {
        check!(execution.wait().await?.success(), "one of them failed");
    }
    Ok(())
}

async fn one_adapter_serves_several_tokio_runtimes(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let mut threads = Vec::new();
    for number in 0..8_u8 {
        let adapter = Arc::clone(&adapter);
        let requests = [
            stage.spell(Task::Exit(number))?,
            stage.spell(Task::Exit(number))?,
        ];
        let kind = TokioKind::ALL[usize::from(number % 2)];
        threads.push(std::thread::spawn(move || -> Result<Vec<i32>, Halt> {
            let runtime = kind.build()?;
            let mut codes = Vec::new();
            for request in requests {
                codes.push(runtime.block_on(adapter.run(request))?.exit_code);
            }
            Ok(codes)
        }));
    }
    for (number, thread) in threads.into_iter().enumerate() {
        // The adapter may need the runtime that it was made in: wait without blocking that.
        eventually(stage.patience(), "a thread ended", || thread.is_finished()).await?;
        let codes = thread
            .join()
            .map_err(|_| Halt::failed("a thread panicked"))??;
        check_eq!(
            codes
                .iter()
                .all(|code| usize::try_from(*code) == Ok(number)),
            true,
            "{codes:?}"
        );
    }
    Ok(())
}

async fn no_more_than_the_limit_run_at_once(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_concurrent = 3)
        .await?;
    // Four never meet. They are let go when three have been there for a while.
    let meeting = Meeting::of(4);
    let mut runs = JoinSet::new();
    for _ in 0..9 {
        let (adapter, request) = (Arc::clone(&adapter), attends(stage, &meeting)?);
        runs.spawn(async move { adapter.run(request).await });
    }
    eventually(stage.patience(), "three were running", || {
        meeting.most() >= 3
    })
    .await?;
    meeting.end_after(Duration::from_millis(300)).await;
    for output in runs.join_all().await {
        check!(output?.success(), "one of them failed");
    }
    check_eq!(meeting.most(), 3, "ran at one time");
    Ok(())
}

async fn without_a_slot_a_call_is_told_so(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| {
            config.runtime.max_concurrent = 1;
            config.runtime.queue_timeout_secs = 0;
        })
        .await?;
    let meeting = Meeting::of(2);
    let holder = adapter.run(attends(stage, &meeting)?);
    let waiter = async {
        eventually(stage.patience(), "the slot was taken", || {
            meeting.most() > 0
        })
        .await?;
        let run = adapter.run(stage.spell(Task::Exit(0))?);
        let result = within(stage.patience(), "the call was answered", run).await;
        meeting.end();
        result
    };
    let (holder, waiter) = tokio::join!(holder, waiter);
    check!(holder?.success(), "the holder failed");
    let Err(error) = waiter? else {
        return Err(Halt::failed("there were two slots"));
    };
    check_eq!(error.kind(), ErrorKind::Busy, "{error}");
    check!(
        error.to_string().contains("max_concurrent"),
        "does not say what to raise: {error}"
    );
    Ok(())
}

async fn a_slot_is_free_after_every_end(stage: &Stage) -> Result<(), Halt> {
    let adapter: Arc<dyn RuntimeAdapter> = stage
        .adapter_with(|config| {
            config.runtime.max_concurrent = 1;
            config.runtime.queue_timeout_secs = 0;
            config.runtime.kill_grace_ms = 0;
        })
        .await?;
    let late = Duration::from_millis(100);
    for request in [
        stage.spell(Task::Exit(0))?,
        stage.spell(Task::Exit(3))?,
        ExecutionRequest::program("no-such-program").arg("x"),
        stage
            .spell(Task::Sleep(Duration::from_secs(60)))?
            .timeout(late),
        stage.spell(Task::Exit(0))?,
    ] {
        let request = request.working_dir(stage.directory());
        if let Err(error) = adapter.run(request).await {
            check!(error.kind() != ErrorKind::Busy, "{error}");
        }
    }
    Ok(())
}
