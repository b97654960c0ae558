//! C5: what is kept of what a command writes.

use std::time::Duration;

use prx_runtime_core::{Captured, ErrorKind, ExecutionOutput, Termination};
use tokio::io::AsyncReadExt;

use crate::Task;
use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, check, check_eq, text, within};
use crate::task::FILLING;

pub(super) const CLAUSE: Clause = Clause {
    number: 5,
    module: "c05_output",
    title: "Output",
    rule: "At most `max_output_bytes` of each stream is kept, half of it from the start and half \
           from the end; the rest is read, counted and dropped, so that memory stays flat at a \
           gibibyte of output. Any bytes are legal. Text is made once, at the end, and no character \
           is split. All output up to the end is there, however the command ended.",
    why: "A command that prints without end must not take the host with it; the line that says what \
          went wrong is mostly the last; and what a command said before its deadline is what \
          explains why it needed longer.",
    trials: trials! {
        streams_are_told_apart: "Stdout and stderr are two.";
        short_output_is_whole: "What fits is kept as it came, with or without a newline at the end.";
        no_output_is_empty: "A command that says nothing has said nothing.";
        long_output_keeps_both_ends: "Head and tail are the stream's own, and the count is right.";
        an_odd_bound_favours_the_head: "Every byte of the bound is used.";
        output_of_exactly_the_bound_is_whole: "The bound itself is no truncation.";
        one_byte_more_is_one_byte_less: "One byte over the bound omits exactly one.";
        a_bound_of_one_byte_works: "The smallest bound keeps the first byte.";
        a_call_sets_its_own_bound: "A request's bound goes before the configured one.";
        each_stream_has_its_own_bound: "A noisy stream takes nothing from the other.";
        both_streams_flow_at_once: "A command that fills both is held up by neither.";
        a_bound_of_zero_is_refused: "To keep nothing is a mistake of the caller.";
        bytes_that_are_no_text_survive: "What is not UTF-8 is kept as it is, and shown with replacement characters.";
        a_character_in_two_pieces_is_whole: "Where the pieces were cut does not show in the text.";
        no_character_is_split_at_the_gap: "Text that lost its middle has no broken character in it.";
        output_up_to_the_deadline_is_there: "A command that was ended is not silenced.";
        output_before_a_signal_is_there: "A command that died has said what it said.", needs [Signals];
        #[alone] a_gibibyte_stays_flat: "Memory does not grow with output, and every byte is counted.";
        output_arrives_while_the_command_runs: "A live execution can be read as it goes.", needs [Sessions];
        a_slow_reader_loses_nothing: "A command ahead of its reader is held back, not cut.", needs [Sessions];
        a_reader_that_goes_costs_nothing: "What nobody reads any more is counted, and the command goes on.", needs [Sessions];
        waiting_collects_within_the_bound: "What `wait` collects is bounded as for `run`.", needs [Sessions];
    },
};

/// The bytes of [`Task::Fill`] from `start` to `end`.
fn filling(start: u64, end: u64) -> Vec<u8> {
    (start..end).map(|at| FILLING[(at % 16) as usize]).collect()
}

/// Whether `kept` is what a bound leaves of `total` bytes of [`Task::Fill`].
fn is_bounded(kept: &Captured, total: u64, bound: u64) -> Result<(), Halt> {
    let (head, tail) = (bound - bound / 2, bound / 2);
    check_eq!(kept.total_bytes(), total);
    check_eq!(kept.omitted_bytes(), total - bound);
    check!(kept.is_truncated(), "not said to be truncated");
    check!(
        kept.head() == filling(0, head),
        "the head is wrong: {kept:?}"
    );
    check!(
        kept.tail() == filling(total - tail, total),
        "the tail is wrong: {kept:?}"
    );
    Ok(())
}

fn is_whole(kept: &Captured, total: u64) -> Result<(), Halt> {
    check_eq!(kept.total_bytes(), total);
    check!(!kept.is_truncated(), "said to be truncated: {kept:?}");
    check!(
        kept.as_bytes() == filling(0, total),
        "not as it came: {kept:?}"
    );
    Ok(())
}

async fn fill(
    stage: &Stage,
    bound: usize,
    stdout: u64,
    stderr: u64,
) -> Result<ExecutionOutput, Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_output_bytes = bound)
        .await?;
    let output = adapter
        .run(stage.spell(Task::Fill { stdout, stderr })?)
        .await?;
    check!(output.success(), "{output:?}");
    Ok(output)
}

fn print(stdout: &[u8], stderr: &[u8]) -> Task {
    Task::Print {
        stdout: stdout.to_vec(),
        stderr: stderr.to_vec(),
    }
}

async fn streams_are_told_apart(stage: &Stage) -> Result<(), Halt> {
    let output = stage.run(print(b"to stdout\n", b"to stderr\n")).await?;
    check_eq!(text(&output.stdout)?, "to stdout\n");
    check_eq!(text(&output.stderr)?, "to stderr\n");
    Ok(())
}

async fn short_output_is_whole(stage: &Stage) -> Result<(), Halt> {
    for words in [
        "without a newline",
        "with one\n",
        "\n\nnothing but\r\n\n",
        "nul \0 byte",
    ] {
        let output = stage.run(print(words.as_bytes(), b"")).await?;
        check_eq!(text(&output.stdout)?, words);
        check_eq!(output.stdout.to_text(), words);
        check_eq!(output.stdout.total_bytes(), words.len() as u64);
        check!(!output.stdout.is_truncated(), "{output:?}");
    }
    Ok(())
}

async fn no_output_is_empty(stage: &Stage) -> Result<(), Halt> {
    let output = stage.run(Task::Exit(0)).await?;
    check!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
    check_eq!(output.stdout.to_text(), "");
    Ok(())
}

async fn long_output_keeps_both_ends(stage: &Stage) -> Result<(), Halt> {
    let output = fill(stage, 1000, 100_000, 0).await?;
    is_bounded(&output.stdout, 100_000, 1000)?;
    check!(
        output.stdout.to_text().contains("99000 bytes omitted"),
        "{}",
        output.stdout
    );
    Ok(())
}

async fn an_odd_bound_favours_the_head(stage: &Stage) -> Result<(), Halt> {
    is_bounded(&fill(stage, 777, 100_003, 0).await?.stdout, 100_003, 777)
}

async fn output_of_exactly_the_bound_is_whole(stage: &Stage) -> Result<(), Halt> {
    is_whole(&fill(stage, 5000, 5000, 0).await?.stdout, 5000)
}

async fn one_byte_more_is_one_byte_less(stage: &Stage) -> Result<(), Halt> {
    is_bounded(&fill(stage, 5000, 5001, 0).await?.stdout, 5001, 5000)
}

async fn a_bound_of_one_byte_works(stage: &Stage) -> Result<(), Halt> {
    is_bounded(&fill(stage, 1, 1000, 0).await?.stdout, 1000, 1)
}

async fn a_call_sets_its_own_bound(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_output_bytes = 10)
        .await?;
    let request = stage
        .spell(Task::Fill {
            stdout: 3000,
            stderr: 0,
        })?
        .max_output_bytes(2000);
    is_bounded(&adapter.run(request).await?.stdout, 3000, 2000)
}

async fn each_stream_has_its_own_bound(stage: &Stage) -> Result<(), Halt> {
    let output = fill(stage, 1000, 200_000, 999).await?;
    is_bounded(&output.stdout, 200_000, 1000)?;
    is_whole(&output.stderr, 999)
}

async fn both_streams_flow_at_once(stage: &Stage) -> Result<(), Halt> {
    let output = fill(stage, 4096, 3 << 20, 2 << 20).await?;
    is_bounded(&output.stdout, 3 << 20, 4096)?;
    is_bounded(&output.stderr, 2 << 20, 4096)
}

async fn a_bound_of_zero_is_refused(stage: &Stage) -> Result<(), Halt> {
    let request = stage.spell(Task::Exit(0))?.max_output_bytes(0);
    let Err(error) = stage.adapter().await?.run(request).await else {
        return Err(Halt::failed("a bound of zero was accepted"));
    };
    check_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    Ok(())
}

async fn bytes_that_are_no_text_survive(stage: &Stage) -> Result<(), Halt> {
    let bytes = b"\xff\xfe a \xc3\x28 b \0 \xf0\x9f end";
    let output = stage.run(print(bytes, b"\x80")).await?;
    check_eq!(output.stdout.as_bytes(), bytes);
    check_eq!(output.stderr.as_bytes(), b"\x80");
    check_eq!(output.stdout.to_text(), String::from_utf8_lossy(bytes));
    Ok(())
}

async fn a_character_in_two_pieces_is_whole(stage: &Stage) -> Result<(), Halt> {
    let words = "grüße 日本語 🦀";
    let pieces = words.bytes().map(|byte| vec![byte]).collect();
    let output = stage
        .run(Task::PrintPieces {
            pieces,
            pause: Duration::from_millis(5),
        })
        .await?;
    check_eq!(output.stdout.to_text(), words);
    Ok(())
}

async fn no_character_is_split_at_the_gap(stage: &Stage) -> Result<(), Halt> {
    let words = "日本語".repeat(20);
    for bound in 31..37 {
        let request = stage
            .spell(print(words.as_bytes(), b""))?
            .max_output_bytes(bound);
        let output = stage.adapter().await?.run(request).await?;
        let shown = output.stdout.to_text();
        check!(output.stdout.is_truncated(), "{output:?}");
        check!(!shown.contains('\u{FFFD}'), "bound {bound}: {shown}");
    }
    Ok(())
}

fn says_then_sleeps() -> Task {
    Task::PrintThenSleep {
        stdout: b"to stdout\n".to_vec(),
        stderr: b"to stderr".to_vec(),
        sleep: Duration::from_secs(60),
    }
}

async fn output_up_to_the_deadline_is_there(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.kill_grace_ms = 0)
        .await?;
    for timeout in [1500, 3000, 6000, 12_000] {
        let request = stage
            .spell(says_then_sleeps())?
            .timeout(Duration::from_millis(timeout));
        let output = adapter.run(request).await?;
        if output.stdout.is_empty() && timeout < 12_000 {
            // On a machine under load the guest may not have come so far.
            continue;
        }
        check_eq!(text(&output.stdout)?, "to stdout\n", "{output:?}");
        check_eq!(text(&output.stderr)?, "to stderr", "{output:?}");
        break;
    }
    Ok(())
}

async fn output_before_a_signal_is_there(stage: &Stage) -> Result<(), Halt> {
    let mut execution = stage.spawn(says_then_sleeps()).await?;
    let Some(stdout) = &mut execution.stdout else {
        return Err(Halt::failed("a live execution without its stdout"));
    };
    let mut said = [0; 10];
    within(
        stage.patience(),
        "the command spoke",
        stdout.read_exact(&mut said),
    )
    .await??;
    check_eq!(&said, b"to stdout\n");
    execution.kill();
    let output = execution.wait().await?;
    check_eq!(output.stdout.total_bytes(), 10, "{output:?}");
    check!(output.termination != Termination::Exited, "{output:?}");
    Ok(())
}

async fn a_gibibyte_stays_flat(stage: &Stage) -> Result<(), Halt> {
    // Far more than is kept, and far less than is written.
    const FLAT: u64 = 64 << 20;
    let total = stage.amount(1 << 30, 256 << 20);
    let before = resident_bytes();
    let adapter = stage.adapter().await?;
    let request = stage
        .spell(Task::Fill {
            stdout: total,
            stderr: 0,
        })?
        .timeout(Duration::from_secs(200));
    let run = adapter.run(request);
    tokio::pin!(run);
    let mut most = 0;
    let output = loop {
        tokio::select! {
            output = &mut run => break output?,
            () = tokio::time::sleep(Duration::from_millis(20)) => most = most.max(resident_bytes()),
        }
    };
    is_bounded(
        &output.stdout,
        total,
        stage.driver().config().runtime.max_output_bytes as u64,
    )?;
    let grown = most.saturating_sub(before);
    check!(grown < FLAT, "memory grew by {} MiB", grown >> 20);
    Ok(())
}

/// Memory of this process, in bytes; 0 where the system does not say.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split(' ').nth(1)?.parse::<u64>().ok());
    pages.unwrap_or(0) * 4096
}

async fn output_arrives_while_the_command_runs(stage: &Stage) -> Result<(), Halt> {
    let mut execution = stage.spawn(says_then_sleeps()).await?;
    let (Some(stdout), Some(stderr)) = (&mut execution.stdout, &mut execution.stderr) else {
        return Err(Halt::failed("a live execution without its streams"));
    };
    let (mut said, mut complained) = ([0; 10], [0; 9]);
    within(
        stage.patience(),
        "stdout came",
        stdout.read_exact(&mut said),
    )
    .await??;
    within(
        stage.patience(),
        "stderr came",
        stderr.read_exact(&mut complained),
    )
    .await??;
    check_eq!(&said, b"to stdout\n");
    check_eq!(&complained, b"to stderr");
    Ok(())
}

async fn a_slow_reader_loses_nothing(stage: &Stage) -> Result<(), Halt> {
    let mut execution = stage
        .spawn(Task::Fill {
            stdout: 1 << 20,
            stderr: 0,
        })
        .await?;
    let Some(mut stdout) = execution.stdout.take() else {
        return Err(Halt::failed("a live execution without its stdout"));
    };
    let mut all = Vec::new();
    let mut chunk = [0; 10_000];
    loop {
        match within(stage.patience(), "more came", stdout.read(&mut chunk)).await?? {
            0 => break,
            read => all.extend_from_slice(&chunk[..read]),
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    check!(
        all == filling(0, 1 << 20),
        "{} bytes came, or others",
        all.len()
    );
    check_eq!(execution.wait().await?.stdout.total_bytes(), 1 << 20);
    Ok(())
}

async fn a_reader_that_goes_costs_nothing(stage: &Stage) -> Result<(), Halt> {
    let mut execution = stage
        .spawn(Task::Fill {
            stdout: 1 << 20,
            stderr: 1 << 20,
        })
        .await?;
    drop((execution.stdout.take(), execution.stderr.take()));
    let output = within(stage.patience(), "the end came", execution.wait()).await??;
    check!(output.success(), "{output:?}");
    check_eq!(output.stdout.total_bytes(), 1 << 20);
    check_eq!(output.stderr.total_bytes(), 1 << 20);
    Ok(())
}

async fn waiting_collects_within_the_bound(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_output_bytes = 1000)
        .await?;
    let request = stage.spell(Task::Fill {
        stdout: 300_000,
        stderr: 10,
    })?;
    let output = adapter.spawn(request).await?.wait().await?;
    is_bounded(&output.stdout, 300_000, 1000)?;
    is_whole(&output.stderr, 10)
}
