//! The two output pipes of a child as one type, where tokio has two. Untested.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

/// Our end of stdout or stderr.
#[derive(Debug)]
pub(crate) enum OutputPipe {
    Stdout(ChildStdout),
    Stderr(ChildStderr),
}

impl AsyncRead for OutputPipe {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Stdout(pipe) => Pin::new(pipe).poll_read(cx, buffer),
            Self::Stderr(pipe) => Pin::new(pipe).poll_read(cx, buffer),
        }
    }
}

type Streams = (Option<ChildStdin>, OutputPipe, OutputPipe);

/// Our ends of the streams of a child that was started with pipes.
pub(crate) fn take_streams(child: &mut Child) -> io::Result<Streams> {
    let missing = || io::Error::other("a pipe that was asked for is not there");
    Ok((
        child.stdin.take(),
        OutputPipe::Stdout(child.stdout.take().ok_or_else(missing)?),
        OutputPipe::Stderr(child.stderr.take().ok_or_else(missing)?),
    ))
}
