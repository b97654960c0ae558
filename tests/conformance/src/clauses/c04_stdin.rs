//! C4: what a command reads.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use prx_runtime_core::{ErrorKind, ExecutionRequest, Stdin};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, ReadBuf};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, check, check_eq, text, within};
use crate::task::FILLING;

pub(super) const CLAUSE: Clause = Clause {
    number: 4,
    module: "c04_stdin",
    title: "Stdin",
    rule: "Stdin is at its end from the start unless the request supplies it. A mebibyte in while a \
           mebibyte comes out never deadlocks; a command that stops reading is no error.",
    why: "A command that inherits stdin waits for ever for what nobody will type, or eats the \
          protocol that its host speaks there.",
    trials: trials! {
        it_is_at_its_end_from_the_start: "Nobody waits for input that nobody gives; the host's own stays the host's.";
        a_line_finds_it_at_its_end_too: "The same holds for what a shell starts.", needs [Shell];
        bytes_arrive_as_given: "Any bytes are legal: NUL, newlines, what is not UTF-8.";
        no_bytes_are_an_end: "Empty input is input that has ended.";
        a_mebibyte_each_way: "Input and output move at the same time, whole and in order.";
        a_command_may_stop_reading: "What reads the first line only is no error, and gets its code.";
        a_command_may_never_read: "What reads nothing is not held back by what it was given.";
        a_reader_is_read_to_its_end: "Input may come from a reader, piece by piece.";
        a_reader_without_an_end_holds_nobody: "The end of the command is the end of the call.";
        a_pipe_needs_a_handle: "`run` has none to give, and says so.";
        a_dialogue_goes_line_by_line: "An answer is there before the next question is asked.", needs [Sessions];
        a_thousand_turns: "A dialogue may be long.", needs [Sessions];
        dropping_the_writing_end_is_an_end: "The command sees the end when its peer lets go.", needs [Sessions];
        waiting_closes_what_is_open: "Waiting for a command that reads to the end does not wait for ever.", needs [Sessions];
        writing_to_what_has_gone_is_harmless: "A command that ended takes no more, and its code is still there.", needs [Sessions];
    },
};

async fn it_is_at_its_end_from_the_start(stage: &Stage) -> Result<(), Halt> {
    let output = within(stage.patience(), "stdin ended", stage.run(Task::CopyStdin)).await??;
    check!(output.success() && output.stdout.is_empty(), "{output:?}");
    Ok(())
}

async fn a_line_finds_it_at_its_end_too(stage: &Stage) -> Result<(), Halt> {
    let request = ExecutionRequest::shell("cat; echo end").working_dir(stage.directory());
    let run = async { Ok::<_, Halt>(stage.adapter().await?.run(request).await?) };
    let output = within(stage.patience(), "stdin ended", run).await??;
    check_eq!(text(&output.stdout)?, "end\n");
    Ok(())
}

async fn copies(stage: &Stage, stdin: Stdin, expected: &[u8]) -> Result<(), Halt> {
    let request = stage.spell(Task::CopyStdin)?.stdin(stdin);
    let output = stage.adapter().await?.run(request).await?;
    check!(output.success(), "{output:?}");
    check!(
        output.stdout.as_bytes() == expected,
        "{} bytes came back for {}: {output:?}",
        output.stdout.total_bytes(),
        expected.len()
    );
    Ok(())
}

async fn bytes_arrive_as_given(stage: &Stage) -> Result<(), Halt> {
    let bytes: Vec<u8> = (0..=255).chain(*b"\r\n\0\0end").collect();
    copies(stage, Stdin::Bytes(bytes.clone()), &bytes).await
}

async fn no_bytes_are_an_end(stage: &Stage) -> Result<(), Halt> {
    copies(stage, Stdin::Bytes(Vec::new()), b"").await
}

async fn a_mebibyte_each_way(stage: &Stage) -> Result<(), Halt> {
    let bytes = FILLING.repeat((1 << 20) / FILLING.len());
    copies(stage, Stdin::Bytes(bytes.clone()), &bytes).await
}

async fn a_command_may_stop_reading(stage: &Stage) -> Result<(), Halt> {
    let request = stage
        .spell(Task::CopySome(5))?
        .stdin_bytes(b"first".repeat(1 << 18));
    let output = stage.adapter().await?.run(request).await?;
    check!(output.success(), "{output:?}");
    check_eq!(text(&output.stdout)?, "first");
    Ok(())
}

async fn a_command_may_never_read(stage: &Stage) -> Result<(), Halt> {
    let request = stage.spell(Task::Exit(3))?.stdin_bytes(vec![b'x'; 1 << 20]);
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(output.exit_code, 3, "{output:?}");
    Ok(())
}

async fn a_reader_is_read_to_its_end(stage: &Stage) -> Result<(), Halt> {
    let (mut writer, reader) = tokio::io::duplex(4);
    let writing = async move {
        for piece in ["one ", "two ", "three"] {
            writer.write_all(piece.as_bytes()).await?;
            tokio::task::yield_now().await;
        }
        io::Result::Ok(())
    };
    let copying = copies(stage, Stdin::Reader(Box::new(reader)), b"one two three");
    let (written, copied) = tokio::join!(writing, copying);
    written?;
    copied
}

/// A reader that has nothing yet, for ever.
struct Silence;

impl AsyncRead for Silence {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        _: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

async fn a_reader_without_an_end_holds_nobody(stage: &Stage) -> Result<(), Halt> {
    let request = stage
        .spell(Task::Exit(3))?
        .stdin(Stdin::Reader(Box::new(Silence)));
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(output.exit_code, 3, "{output:?}");
    Ok(())
}

async fn a_pipe_needs_a_handle(stage: &Stage) -> Result<(), Halt> {
    let request = stage.spell(Task::CopyStdin)?.stdin(Stdin::Piped);
    let Err(error) = stage.adapter().await?.run(request).await else {
        return Err(Halt::failed(
            "a command ran with a stdin that nobody can write to",
        ));
    };
    check_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    check!(
        error.to_string().contains("spawn"),
        "the error does not say what to use: {error}"
    );
    Ok(())
}

/// Asks `turns` questions, each after the answer to the one before.
async fn dialogue(stage: &Stage, turns: u32) -> Result<(), Halt> {
    let request = stage.spell(Task::EchoLines)?.stdin(Stdin::Piped);
    let mut execution = stage.adapter().await?.spawn(request).await?;
    let (Some(mut stdin), Some(stdout)) = (execution.stdin.take(), execution.stdout.take()) else {
        return Err(Halt::failed("a live execution without its streams"));
    };
    let mut answers = BufReader::new(stdout).lines();
    for turn in 0..turns {
        stdin
            .write_all(format!("question {turn}\n").as_bytes())
            .await?;
        let answer = within(stage.patience(), "an answer came", answers.next_line()).await??;
        check_eq!(answer, Some(format!("echo:question {turn}")));
    }
    drop(stdin);
    check_eq!(
        within(stage.patience(), "the end came", answers.next_line()).await??,
        None
    );
    let output = execution.wait().await?;
    check!(output.success(), "{output:?}");
    Ok(())
}

async fn a_dialogue_goes_line_by_line(stage: &Stage) -> Result<(), Halt> {
    dialogue(stage, 3).await
}

async fn a_thousand_turns(stage: &Stage) -> Result<(), Halt> {
    dialogue(stage, stage.amount(1000, 100)).await
}

async fn dropping_the_writing_end_is_an_end(stage: &Stage) -> Result<(), Halt> {
    let request = stage.spell(Task::CopyStdin)?.stdin(Stdin::Piped);
    let mut execution = stage.adapter().await?.spawn(request).await?;
    let (Some(mut stdin), Some(mut stdout)) = (execution.stdin.take(), execution.stdout.take())
    else {
        return Err(Halt::failed("a live execution without its streams"));
    };
    stdin.write_all(b"some text").await?;
    drop(stdin);
    let mut all = String::new();
    within(
        stage.patience(),
        "the end came",
        stdout.read_to_string(&mut all),
    )
    .await??;
    check_eq!(all, "some text");
    Ok(())
}

async fn waiting_closes_what_is_open(stage: &Stage) -> Result<(), Halt> {
    let request = stage.spell(Task::CopyStdin)?.stdin(Stdin::Piped);
    let mut execution = stage.adapter().await?.spawn(request).await?;
    if let Some(stdin) = &mut execution.stdin {
        stdin.write_all(b"some text").await?;
    }
    let output = within(stage.patience(), "the end came", execution.wait()).await??;
    check_eq!(text(&output.stdout)?, "some text", "{output:?}");
    Ok(())
}

async fn writing_to_what_has_gone_is_harmless(stage: &Stage) -> Result<(), Halt> {
    let request = stage.spell(Task::Exit(3))?.stdin(Stdin::Piped);
    let mut execution = stage.adapter().await?.spawn(request).await?;
    let Some(mut stdin) = execution.stdin.take() else {
        return Err(Halt::failed("a live execution without its stdin"));
    };
    let writing = async {
        // Far more than any pipe holds: it fails when the reader has gone.
        for _ in 0..1024 {
            if stdin.write_all(&[b'x'; 4096]).await.is_err() {
                return;
            }
        }
    };
    within(stage.patience(), "the writer was let go", writing).await?;
    let output = execution.wait().await?;
    check_eq!(output.exit_code, 3, "{output:?}");
    Ok(())
}
