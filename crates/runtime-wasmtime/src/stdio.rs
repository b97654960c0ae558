//! The streams of a guest, as wasmtime wants them.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use prx_runtime_wasm::{GuestInput, GuestOutput, InputRead};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wasmtime_wasi::cli::{IsTerminal, StdinStream, StdoutStream};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// Standard output or standard error.
#[derive(Clone)]
pub(crate) struct Output(pub(crate) GuestOutput);

/// Standard input.
#[derive(Clone)]
pub(crate) struct Input(pub(crate) GuestInput);

impl IsTerminal for Output {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl IsTerminal for Input {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Output {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl StdinStream for Input {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Output {
    async fn ready(&mut self) {
        poll_fn(|cx| self.0.poll_sent(cx)).await;
    }
}

impl OutputStream for Output {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > self.0.permit() {
            return Err(StreamError::trap("more was written than was permitted"));
        }
        self.0.write(bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(self.0.permit())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Input {
    async fn ready(&mut self) {
        poll_fn(|cx| self.0.poll_readable(cx)).await;
    }
}

impl InputStream for Input {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        match self.0.read(size) {
            InputRead::Bytes(bytes) => Ok(bytes),
            InputRead::Nothing => Ok(Bytes::new()),
            InputRead::End => Err(StreamError::Closed),
            InputRead::Failed(kind) => Err(StreamError::LastOperationFailed(
                io::Error::from(kind).into(),
            )),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.0.poll_sent(cx));
        let taken = bytes.len().min(self.0.permit());
        self.0.write(Bytes::copy_from_slice(&bytes[..taken]));
        Poll::Ready(Ok(taken))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_sent(cx).map(Ok)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.0.poll_readable(cx));
        match self.0.read(buffer.remaining()) {
            InputRead::Bytes(bytes) => buffer.put_slice(&bytes),
            InputRead::Nothing | InputRead::End => {}
            InputRead::Failed(kind) => return Poll::Ready(Err(kind.into())),
        }
        Poll::Ready(Ok(()))
    }
}
