//! Moves the bytes of the streams, without a task for each.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use prx_runtime_core::{OutputSink, StdinSource};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::tree::{self, PipeReader, PipeWriter};

/// The buffer of a stream grows as reads fill it: most commands say little, some say a gigabyte.
const BUFFERS: [usize; 3] = [8 * 1024, 64 * 1024, 256 * 1024];

/// From a pipe into a sink.
#[derive(Debug)]
pub(crate) struct OutputPump {
    pipe: Option<PipeReader>,
    sink: OutputSink,
    buffer: Vec<u8>,
    /// The part of the buffer that the sink has not taken yet.
    pending: std::ops::Range<usize>,
}

impl OutputPump {
    pub(crate) fn new(pipe: PipeReader, sink: OutputSink) -> Self {
        Self {
            pipe: Some(pipe),
            sink,
            buffer: Vec::new(),
            pending: 0..0,
        }
    }

    /// Moves what there is. Ready when the stream is at its end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while !self.pending.is_empty() {
                let bytes = &self.buffer[self.pending.clone()];
                self.pending.start += ready!(Pin::new(&mut self.sink).poll_write(cx, bytes))?;
            }
            let Some(pipe) = &mut self.pipe else {
                return Poll::Ready(Ok(()));
            };
            if self.buffer.is_empty() {
                self.buffer.resize(BUFFERS[0], 0);
            }
            let mut buffer = ReadBuf::new(&mut self.buffer);
            let result = ready!(Pin::new(&mut *pipe).poll_read(cx, &mut buffer));
            let read = buffer.filled().len();
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(()) if read > 0 => {
                    self.pending = 0..read;
                    if !self.sink.push(&self.buffer[..read]) {
                        continue;
                    }
                    self.pending = 0..0;
                    if read == self.buffer.len() {
                        grow(&mut self.buffer, pipe);
                    }
                }
                end => {
                    self.close();
                    return Poll::Ready(end);
                }
            }
        }
    }

    fn close(&mut self) {
        self.pipe = None;
        self.buffer = Vec::new();
    }
}

fn grow(buffer: &mut Vec<u8>, pipe: &PipeReader) {
    if let Some(next) = BUFFERS.into_iter().find(|size| *size > buffer.len()) {
        buffer.resize(next, 0);
        if next == BUFFERS[BUFFERS.len() - 1] {
            tree::widen(pipe);
        }
    }
}

/// From the source of stdin into a pipe.
#[derive(Debug)]
pub(crate) struct InputPump {
    pipe: Option<PipeWriter>,
    source: StdinSource,
    /// What was read from the source and is still to be written.
    buffer: Vec<u8>,
    pending: std::ops::Range<usize>,
}

impl InputPump {
    /// Without a pipe there is nothing to move.
    pub(crate) fn new(pipe: Option<PipeWriter>, source: StdinSource) -> Self {
        let (source, buffer) = match source {
            StdinSource::Bytes(bytes) => (StdinSource::Empty, bytes),
            other => (other, Vec::new()),
        };
        Self {
            pipe,
            source,
            pending: 0..buffer.len(),
            buffer,
        }
    }

    /// Moves what there is. Ready when the source is at its end or the command reads no more,
    /// which is no error: then the source is dropped, so that whoever feeds it learns of it.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let Some(pipe) = &mut self.pipe else {
                return Poll::Ready(());
            };
            if !self.pending.is_empty() {
                let bytes = &self.buffer[self.pending.clone()];
                match ready!(Pin::new(pipe).poll_write(cx, bytes)) {
                    Ok(written) => self.pending.start += written,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_reads_no_more) => self.close(),
                }
                continue;
            }
            let StdinSource::Reader(reader) = &mut self.source else {
                self.close();
                continue;
            };
            self.buffer.resize(BUFFERS[0], 0);
            let mut buffer = ReadBuf::new(&mut self.buffer);
            match ready!(Pin::new(reader).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => self.pending = 0..buffer.filled().len(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(()) => self.close(),
                Err(error) => {
                    tracing::warn!(%error, "the source of stdin failed; the command sees its end");
                    self.close();
                }
            }
        }
    }

    fn close(&mut self) {
        self.pipe = None;
        self.source = StdinSource::Empty;
        self.buffer = Vec::new();
        self.pending = 0..0;
    }
}
