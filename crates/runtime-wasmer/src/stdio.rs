//! The streams of a guest, as wasmer wants them.

use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use prx_runtime_wasm::{GuestInput, GuestOutput, InputRead};
use virtual_fs::{AsyncRead, AsyncSeek, AsyncWrite, FsError, ReadBuf, VirtualFile};

use crate::stop::{Stop, Stream};

/// Standard output or standard error.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) stream: GuestOutput,
    pub(crate) name: Stream,
    pub(crate) stop: Arc<Stop>,
}

/// Standard input.
#[derive(Debug)]
pub(crate) struct Input {
    pub(crate) stream: GuestInput,
    pub(crate) stop: Arc<Stop>,
}

/// What a stream answers when the guest is to end.
fn ended() -> io::Error {
    io::ErrorKind::BrokenPipe.into()
}

impl Output {
    fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.stop.may_wait(self.name, cx.waker()) {
            return Poll::Ready(Err(ended()));
        }
        self.stream.poll_sent(cx).map(Ok)
    }
}

impl Input {
    fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.stop.may_wait(Stream::Stdin, cx.waker()) {
            return Poll::Ready(Err(ended()));
        }
        self.stream.poll_readable(cx).map(Ok)
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_sent(cx))?;
        let taken = bytes.len().min(self.stream.permit());
        self.stream.write(Bytes::copy_from_slice(&bytes[..taken]));
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }
}

impl AsyncRead for Output {
    fn poll_read(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_readable(cx))?;
        match self.stream.read(buffer.remaining()) {
            InputRead::Bytes(bytes) => buffer.put_slice(&bytes),
            InputRead::Nothing | InputRead::End => {}
            InputRead::Failed(kind) => return Poll::Ready(Err(kind.into())),
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Input {
    fn poll_write(
        self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        _bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Err(io::ErrorKind::Unsupported.into()))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// What no stream has: a position, a size, a name.
macro_rules! stream {
    ($stream:ty, $fd:expr, $read:expr, $write:expr) => {
        impl AsyncSeek for $stream {
            fn start_seek(self: Pin<&mut Self>, _position: SeekFrom) -> io::Result<()> {
                Err(io::ErrorKind::NotSeekable.into())
            }

            fn poll_complete(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
                Poll::Ready(Err(io::ErrorKind::NotSeekable.into()))
            }
        }

        impl VirtualFile for $stream {
            fn last_accessed(&self) -> u64 {
                0
            }

            fn last_modified(&self) -> u64 {
                0
            }

            fn created_time(&self) -> u64 {
                0
            }

            fn size(&self) -> u64 {
                0
            }

            fn set_len(&mut self, _size: u64) -> virtual_fs::Result<()> {
                Err(FsError::PermissionDenied)
            }

            fn unlink(&mut self) -> virtual_fs::Result<()> {
                Err(FsError::PermissionDenied)
            }

            fn get_special_fd(&self) -> Option<u32> {
                Some($fd(self))
            }

            fn poll_read_ready(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<usize>> {
                $read(&self, cx)
            }

            fn poll_write_ready(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
            ) -> Poll<io::Result<usize>> {
                $write(&self, cx)
            }
        }
    };
}

stream!(
    Input,
    |_| 0,
    |input: &Input, cx: &mut Context<'_>| input.poll_readable(cx).map_ok(|()| 1),
    |_, _| Poll::Ready(Ok(0))
);
stream!(
    Output,
    |output: &Output| output.name as u32,
    |_, _| Poll::Ready(Ok(0)),
    |output: &Output, cx: &mut Context<'_>| output
        .poll_sent(cx)
        .map_ok(|()| output.stream.permit())
);
